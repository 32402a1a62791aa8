/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_PERF_MAP_H
#define CAIRN_SAMPLING_PROCESSES_PERF_MAP_H

/**
 * @file
 * Names of generated code, from perf-PID.map.
 *
 * Lines are "START SIZE NAME", hexadecimal; the name is the rest of the line.
 * The file grows while the process runs, so it is read from the last position
 * on; a later line overrides earlier ones where they overlap.
 *
 * Threads: one thread at a time.
 * Source: linux tools/perf/Documentation/jit-interface.txt.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "sampling/objects/code_names.h"

#define PERF_MAP_PATH "tmp/perf-%d.map" /* in the root of the process, named by its pid there */

struct perf_map {
        struct code_names code;
        uint64_t read_to;       /* offset in the file after the last whole line */
        uint64_t device, inode; /* of the file read last */
        uint64_t dropped;       /* lines past a limit */
};

void perf_map_init(struct perf_map *m, struct code_budget *budget);
void perf_map_deinit(struct perf_map *m);

/**
 * Parse more text. An incomplete last line is left for the next call; lines that are malformed
 * or past a limit are skipped.
 * @return ST_OK and the number of bytes consumed; ST_NO_MEMORY.
 */
enum status perf_map_feed(struct perf_map *m, const char *text, size_t n, size_t *ret, struct error *err) MUST_CHECK;

/**
 * Read the lines added since the last call.
 *
 * The file is opened inside the root of the process; its name must not be a symbolic link, and
 * it must be a regular file that belongs to the user of the process or to root.
 * @param root_fd   root directory of the process.
 * @param ns_pid    pid of the process in its own pid namespace.
 * @param left      read budget in bytes, reduced by the bytes read; the rest of the file is read
 *         next time.
 * @return ST_OK; ST_NOT_FOUND when there is no such file; ST_UNSUPPORTED when it belongs to
 *         another user.
 */
enum status perf_map_refresh(struct perf_map *m, int root_fd, pid_t ns_pid, uid_t uid, uint64_t *left,
                             struct error *err) MUST_CHECK;

#endif
