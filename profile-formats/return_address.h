/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_RETURN_ADDRESS_H
#define CAIRN_PROFILE_FORMATS_RETURN_ADDRESS_H

/**
 * @file
 * Return address adjustment, and conversion of process addresses to object addresses.
 *
 * A return address points after its call. Readers of raw call chains subtract 1 from the addresses of callers, once:
 * stored addresses are looked up unchanged.
 */
#include <stdbool.h>
#include <stdint.h>

#include "profile-formats/profile.h"

enum address_source {
        /* Call chains without adjustment: BPF stacks of the agent, perf_event callchains, `perf script` text. */
        ADDRESS_SOURCE_RAW_CHAIN,
        /* OTLP profiles: the OpenTelemetry eBPF profiler and cairn-agent subtract before they send. */
        ADDRESS_SOURCE_OTLP,
        /* pprof: "the profile source is expected to perform any adjustment of the addresses to point to the calls".
         */
        ADDRESS_SOURCE_PPROF,
};

/**
 * The address to look up for one frame of a stack.
 *
 * @param depth        0 is the leaf, whose address is the interrupted instruction itself.
 * @param interrupted  the frame did not call the one below it: a signal or an exception interrupted it.
 */
uint64_t adjust_caller_address(enum address_source source, uint64_t address, uint32_t depth, bool interrupted);

#define KERNEL_FILE "[kernel.kallsyms]" /* the mapping of the kernel's code in perf's and pprof's files */

/** The mapping of an address, as the sender describes it. */
struct address_mapping {
        uint64_t memory_start, memory_limit, file_offset;
        const char *file; /* path or name, "" when unknown */
};

/**
 * Convert an address as sent to an object address or a file offset.
 *
 * Kernel addresses are unchanged: they are link-time addresses, or the shift is unknown. An address inside a mapping
 * that starts where programs are loaded rather than linked, or inside a mapping of a pprof file with a start, becomes a
 * file offset. That is valid for ET_EXEC and ET_DYN; the segments give the object address once the file is known. Any
 * other address is an object address.
 *
 * Sources: definition of pprof's Location.address (a process address unless the mapping has no start), of the
 * OpenTelemetry eBPF profiler (memory_start is the segment's own p_vaddr) and of OTLP made from pprof
 * (process addresses under OTLP's names).
 */
enum profile_address_kind normalize_sender_address(enum address_source source, const struct address_mapping *m,
                                                   uint64_t address, uint64_t *ret, bool *is_kernel_ret);

#endif
