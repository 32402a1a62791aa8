/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_DEBUG_FETCHER_H
#define CAIRN_CLI_DEBUG_FETCHER_H

/**
 * @file
 * Debug files from debuginfod servers, for this user.
 *
 * What came is kept in the user's cache (cli/symbol_cache.h) under debuginfod/, which is laid out as a debug directory:
 * .build-id/xx/yyyy.debug, with the supplementary files that dwz made. What all servers said they do not have is not
 * asked for again for ten minutes. A server that cannot be reached is not asked again in this run. Without a cache the
 * files go to a directory of their own that is removed at the end.
 *
 * Threads: one at a time; *cancel may be set from anywhere.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "common/build_id.h"
#include "common/error.h"

struct debug_fetcher;

struct debug_fetcher_stats {
        unsigned fetched, missing, failed; /* files: failed are those that a server could not be asked for */
        char failure[240];                 /* the first one; "" */
};

/**
 * @param urls    separated by blanks, as in $DEBUGINFOD_URLS.
 * @param cancel  borrowed; once true nothing is fetched any more.
 * @return ST_USAGE when urls names nobody.
 */
enum status debug_fetcher_create(const char *urls, const atomic_bool *cancel, struct debug_fetcher **ret,
                                 struct error *err) MUST_CHECK;
void debug_fetcher_destroy(struct debug_fetcher *f);

/** The directory that is laid out as /usr/lib/debug; borrowed. */
const char *debug_fetcher_directory(const struct debug_fetcher *f);

/**
 * Have the debug file there. Tells on stderr when it has to be fetched.
 * @param name  what people call the object.
 * @param ret   its path, PATH_MAX bytes.
 * @return ST_NOT_FOUND when it cannot be had.
 */
enum status debug_fetcher_get(struct debug_fetcher *f, const struct build_id *id, const char *name, char *ret,
                              struct error *err) MUST_CHECK;

const struct debug_fetcher_stats *debug_fetcher_stats(const struct debug_fetcher *f);

#endif
