/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_PERF_MAP_H
#define CAIRN_AGENT_PERF_MAP_H

/**
 * @file
 * Names of code that a process made at run time, from its perf-PID.map.
 *
 * Lines are "START SIZE NAME", hexadecimal; the name is the rest of the line.
 * The file grows while the process runs, so it is read on from where the last
 * reading ended; a later line overrides earlier ones where they overlap.
 * Threads: one thread at a time.
 * Source: linux tools/perf/Documentation/jit-interface.txt.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/code_names.h"
#include "common/error.h"

#define PERF_MAP_PATH "tmp/perf-%d.map" /* in the root of the process, by its pid there */

struct perf_map {
        struct code_names code;
        uint64_t read_to;       /* offset in the file after the last whole line */
        uint64_t device, inode; /* of the file that was read */
        uint64_t left_out;      /* lines that found no room */
};

void perf_map_init(struct perf_map *m, struct code_budget *budget);
void perf_map_deinit(struct perf_map *m);

/**
 * Take in more text. A last line without a newline is left for the next time;
 * lines that do not parse or find no room are skipped.
 * @return ST_OK and the number of bytes used up; ST_NO_MEMORY.
 */
enum status perf_map_feed(struct perf_map *m, const char *text, size_t n, size_t *ret, struct error *err) MUST_CHECK;

/**
 * Read what the process has added since.
 *
 * The file is looked for inside the process's own root, through no symbolic
 * link at its end and none that leaves that root, and must be a regular file
 * that belongs to the process's user or root.
 * @param root_fd   the process's root directory.
 * @param ns_pid    its number in its own pid namespace.
 * @param left      bytes that may still be read; the rest of the file is for the next time.
 * @return ST_OK; ST_NOT_FOUND when it has no such file; ST_UNSUPPORTED when the
 *         file is not the process's own.
 */
enum status perf_map_refresh(struct perf_map *m, int root_fd, pid_t ns_pid, uid_t uid, uint64_t *left,
                             struct error *err) MUST_CHECK;

#endif
