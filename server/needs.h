/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_NEEDS_H
#define CAIRN_SERVER_NEEDS_H

/**
 * @file
 * Which objects were indexed without companions (dwz supplementary files, .dwo
 * files) that are not stored yet: a file of lines "OBJECT COMPANION", rewritten
 * durably with each change, so that they are indexed again whenever one comes.
 *
 * Threads: the owner's lock.
 */
#include "common/build_id.h"
#include "common/error.h"

struct need {
        struct build_id object, companion;
        bool has_come;       /* meanwhile; not in the file */
};

struct needs {
        char *path;          /* owned */
        struct need *items;
        size_t count, capacity;
};

/** Reads what the file at path holds; lines that are malformed are left out. */
enum status needs_load(struct needs *n, const char *path, struct error *err) MUST_CHECK;
void needs_deinit(struct needs *n);

/** What the object needs, in place of what it needed. Durable when it returns. */
enum status needs_set(struct needs *n, const struct build_id *object, const struct build_id *companions, size_t count,
                      struct error *err) MUST_CHECK;

/**
 * This companion came: from *at on, the next object that needs it; false when no more does. Start with *at = 0.
 * @param all_ret whether all others that it needs came too.
 */
bool needs_came(struct needs *n, const struct build_id *companion, size_t *at, struct build_id *object_ret, bool *all_ret);

#endif
