/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_JIT_NAMES_H
#define CAIRN_AGENT_JIT_NAMES_H

/**
 * @file
 * What a process says of the code that it made at run time: in a jitdump, which
 * knows lines too and comes first, or in a perf map.
 * Threads: as code_names.h.
 */
#include "agent/jitdump.h"
#include "agent/perf_map.h"
#include "agent/proc_maps.h"

struct jit_names {
        struct perf_map map;
        struct jitdump dump;
};

void jit_names_init(struct jit_names *j, struct code_budget *budget);
void jit_names_deinit(struct jit_names *j);

/**
 * Read what the process wrote since; what was read before a failure stays.
 * @param proc_fd  directory /proc/PID of the process.
 * @param left     bytes that may still be read, less what was.
 */
void jit_names_refresh(struct jit_names *j, int proc_fd, const struct proc_maps *maps, uint64_t *left);

/** Pieces of code whose name found no room, or made no sense. */
uint64_t jit_names_left_out(const struct jit_names *j);

/** False when nobody names the code at addr. */
bool jit_names_find(struct jit_names *j, uint64_t addr, struct jit_place *ret);

#endif
