/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_HOTSPOT_CODE_H
#define CAIRN_SAMPLING_RUNTIMES_HOTSPOT_CODE_H

/**
 * @file
 * Compiled code and stubs of a HotSpot process: the methods at an address, or the stub's name.
 *
 * A compiled method (nmethod) has a sorted table of the addresses at which the compiler noted the state of the virtual
 * machine, calls and safepoints (PcDesc). Each refers to a scope: a method and a bytecode, and the scope into which it
 * was inlined. A return address has an entry; for an interrupted address the next one counts, so it may state a later
 * line or another inlined method than the one that was interrupted, as in HotSpot's own profiles.
 *
 * Threads: no shared state.
 * Source: OpenJDK share/code/pcDesc.hpp, nmethod.hpp, scopeDesc.cpp.
 */
#include "common/limits.h"
#include "sampling/runtimes/hotspot_layout.h"

struct hotspot_place {
        uint64_t methods[LIMIT_HOTSPOT_INLINED];  /* addresses, innermost first */
        int32_t bytecodes[LIMIT_HOTSPOT_INLINED]; /* below 0: none */
        uint32_t count;                           /* 0: a stub */
        char stub[LIMIT_HOTSPOT_STUB_NAME];       /* its name */
};

enum hotspot_code_state {
        HOTSPOT_CODE_FOUND,
        HOTSPOT_CODE_FREED,      /* other code is at the address now */
        HOTSPOT_CODE_UNREADABLE, /* no code is there, or it cannot be read */
};

/**
 * @param blob      address of the CodeBlob.
 * @param position  of the frame: bpf/hotspot_walk.h.
 * @param ret       for HOTSPOT_CODE_FOUND.
 */
enum hotspot_code_state hotspot_code_locate(const struct process_memory *m, const struct hotspot_objects *o,
                                            uint64_t blob, uint64_t position, struct hotspot_place *ret);

#endif
