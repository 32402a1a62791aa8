/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_NEEDS_H
#define CAIRN_SERVER_NEEDS_H

/**
 * @file
 * Which objects were indexed without a dwz supplementary file that is not
 * stored yet: a file of lines "OBJECT SUPPLEMENT", rewritten durably with each
 * change, so that they are indexed again whenever it comes.
 *
 * Threads: the owner's lock.
 */
#include "common/build_id.h"
#include "common/error.h"

struct need {
        struct build_id object, supplement;
};

struct needs {
        char *path;          /* owned */
        struct need *items;
        size_t count;
};

/** Reads what the file at path holds; lines that are malformed are left out. */
enum status needs_load(struct needs *n, const char *path, struct error *err) MUST_CHECK;
void needs_deinit(struct needs *n);

/** Durable when it returns; ST_OK also when it is known already. */
enum status needs_add(struct needs *n, const struct build_id *object, const struct build_id *supplement,
                      struct error *err) MUST_CHECK;

/** The next object that needs this supplement, taken out; false when none does. Not durable before needs_save(). */
bool needs_take(struct needs *n, const struct build_id *supplement, struct build_id *object_ret);
enum status needs_save(struct needs *n, struct error *err) MUST_CHECK;

#endif
