/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_RETURN_ADDRESS_H
#define CAIRN_PROFILE_FORMATS_RETURN_ADDRESS_H

/**
 * @file
 * The two address rules of the project, each in one function.
 *
 * A return address points after the call it stands for. Whoever first reads a
 * raw chain takes callers back by one; nobody does it again, and the service
 * looks stored addresses up as they are.
 */
#include <stdbool.h>
#include <stdint.h>

#include "profile-formats/profile.h"

enum address_source {
        /* Chains as the CPU left them: our agent's BPF stacks, perf_event callchains, `perf script` text. */
        ADDRESS_SOURCE_RAW_CHAIN,
        /* OTLP profiles: the OpenTelemetry eBPF profiler and our agent subtract before they send. */
        ADDRESS_SOURCE_OTLP,
        /* pprof: "the profile source is expected to perform any adjustment of the addresses to point to the calls".
         */
        ADDRESS_SOURCE_PPROF,
};

/**
 * The address to look up for one frame of a stack.
 *
 * @param depth        0 is the leaf, whose address is the interrupted instruction itself.
 * @param interrupted  the frame did not call the one below it: a signal or an exception came between.
 */
uint64_t profile_caller_address(enum address_source source, uint64_t address, uint32_t depth, bool interrupted);

/** What a sender says of the mapping that an address lies in. */
struct address_mapping {
        uint64_t memory_start, memory_limit, file_offset;
        const char *file; /* path or name, "" when unknown */
};

/**
 * Take the load address off.
 *
 * Kernel mappings keep the address: the sender gave the link-time one, or we
 * cannot know the shift. A mapping that covers the address and lies where
 * programs are loaded rather than linked (or that names a file offset, or that
 * is any mapping of a pprof file with a start) makes it a file offset, which is
 * right for ET_EXEC and ET_DYN alike and is turned into an object address by the
 * segments once the file is known. Everything else already is an object address.
 *
 * Sources: facts of pprof's Location.address (a process address unless the mapping has no start), of the
 * OpenTelemetry eBPF profiler (memory_start is the segment's own p_vaddr) and of OTLP made from pprof
 * (process addresses under OTLP's names).
 */
enum profile_address_kind profile_object_address(enum address_source source, const struct address_mapping *m,
                                                 uint64_t address, uint64_t *ret, bool *is_kernel_ret);

#endif
