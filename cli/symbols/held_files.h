/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SYMBOLS_HELD_FILES_H
#define CAIRN_CLI_SYMBOLS_HELD_FILES_H

/**
 * @file
 * Open descriptors of the ELF files that recorded processes had mapped. When symbols are resolved, the process and its
 * container may be gone, and the file replaced or removed.
 *
 * Past LIMIT_RECORD_FILES, or half of RLIMIT_NOFILE, files are opened by name instead.
 * Threads: one at a time.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/build_id.h"

struct object;
struct proc_mapping;
#define HELD_PATH_SIZE 32

struct held_file;

struct held_files {
        struct held_file *items; /* owned */
        size_t count, capacity, max;
        uint64_t missed; /* files beyond the limit */
};

void held_files_init(struct held_files *h);
void held_files_deinit(struct held_files *h);

/** An object_observer (sampling/objects/object_cache.h); ctx is the struct held_files. */
void held_files_observe(void *ctx, const struct object *object, int proc_fd, const struct proc_mapping *mapping,
                        int *fd);

/**
 * The path of a held file whose name does not lead to it.
 * @param id    size 0: unknown, look up by name.
 * @param name  as the process sees it.
 * @param ret   a path below /proc/self/fd: of the container's debug file if there is one.
 */
bool held_files_find(const struct held_files *h, const struct build_id *id, const char *name,
                     char ret[static HELD_PATH_SIZE]);

#endif
