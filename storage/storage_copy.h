/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_STORAGE_COPY_H
#define CAIRN_STORAGE_STORAGE_COPY_H

/**
 * @file
 * Copies of objects from one storage to another, for a copy that was interrupted and is continued.
 *
 * Threads: any.
 */
#include "storage/storage.h"

struct storage_copies {
        uint64_t copied, copied_bytes;
        uint64_t present; /* were there, of the same size */
        /* Called after each object. May be NULL. */
        void (*progress)(void *context, const struct storage_copies *so_far);
        void *context;
};

/**
 * Copy an object unless one of its key and size is there; one of another size is replaced.
 * @param to_key  NULL: the same key. @param count  added to.
 */
enum status storage_copy(struct storage *from, const char *key, struct storage *to, const char *to_key,
                         struct storage_copies *count, struct error *err) MUST_CHECK;

#endif
