/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_LOCAL_SYMBOLS_H
#define CAIRN_CLI_LOCAL_SYMBOLS_H

/**
 * @file
 * Names for a profile from what this host has: files, debug files, the cache, and the servers in $DEBUGINFOD_URLS.
 * Threads: one at a time; *cancel may be set from anywhere.
 */
#include "cli/debug_fetcher.h"
#include "cli/profile_symbols.h"

struct local_symbols {
        const char *debug_directory;   /* NULL: the usual one */
        bool no_debuginfod;
        const struct held_files *held; /* NULL none */
        const atomic_bool *cancel;     /* NULL: never */
        struct profile_symbols symbols; /* of the profile that was filled */
        struct debug_fetcher *fetcher; /* owned; NULL nobody was asked */
};

/** @param l  what goes in set; local_symbols_deinit() in any case. */
enum status local_symbols_fill(struct local_symbols *l, struct profile *p, struct error *err) MUST_CHECK;
void local_symbols_deinit(struct local_symbols *l);

#endif
