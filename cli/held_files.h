/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_HELD_FILES_H
#define CAIRN_CLI_HELD_FILES_H

/**
 * @file
 * The ELF files that recorded processes had mapped, held open: when symbols are looked for, the process may have ended
 * with its container, and the file may be replaced or gone.
 *
 * Past LIMIT_RECORD_FILES, or half of the descriptors that the process may have, files are found by their names again.
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
        uint64_t missed; /* for which there was no room */
};

void held_files_init(struct held_files *h);
void held_files_deinit(struct held_files *h);

/** An object_observer (agent/object_cache.h); ctx is the struct held_files. */
void held_files_observe(void *ctx, const struct object *object, int proc_fd, const struct proc_mapping *mapping,
                        int *fd);

/**
 * Where to open a file that its name does not lead to any more, or never did.
 * @param id    size 0: unknown, the name decides.
 * @param name  as the process called it.
 * @param ret   a path of this process; in a container with debug files, of the debug file.
 */
bool held_files_find(const struct held_files *h, const struct build_id *id, const char *name,
                     char ret[static HELD_PATH_SIZE]);

#endif
