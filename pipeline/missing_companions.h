/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_MISSING_COMPANIONS_H
#define CAIRN_PIPELINE_MISSING_COMPANIONS_H

/**
 * @file
 * Missing companions (dwz supplementary files, .dwo files) of indexed objects: a file of lines "OBJECT COMPANION",
 * rewritten durably with each change, so that an object is re-indexed when a companion is stored.
 *
 * Threads: the owner's lock.
 */
#include "common/build_id.h"
#include "common/error.h"

struct missing_companion {
        struct build_id object, companion;
        bool has_arrived; /* since the file was read or written; not in the file */
};

struct missing_companions {
        char *path; /* owned */
        struct missing_companion *items;
        size_t count, capacity;
};

/** Read the file at path; malformed lines are ignored. */
enum status missing_companions_load(struct missing_companions *m, const char *path, struct error *err) MUST_CHECK;
void missing_companions_deinit(struct missing_companions *m);

/** Replace the object's missing companions. Durable when it returns. */
enum status missing_companions_set(struct missing_companions *m, const struct build_id *object,
                                   const struct build_id *companions, size_t count, struct error *err) MUST_CHECK;

/**
 * A companion was stored: iterate over the objects that lack it. Start with *at = 0; false at the end.
 * @param all_ret whether all other missing companions of the object arrived too.
 */
bool missing_companions_mark_arrived(struct missing_companions *m, const struct build_id *companion, size_t *at,
                                     struct build_id *object_ret, bool *all_ret);

#endif
