/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFOD_CLIENT_DEBUGINFO_FETCHER_H
#define CAIRN_DEBUGINFOD_CLIENT_DEBUGINFO_FETCHER_H

/**
 * @file
 * Debuginfo files from debuginfod servers, through libdebuginfod.
 *
 * The cache directory and all DEBUGINFOD_* variables are those of libdebuginfod, so files fetched by gdb are found by
 * Cairn and vice versa. The library runs in a confined worker process that may write only to the cache. The worker is
 * started by the first request and serves all requests, so that connections are reused.
 *
 * There is no network access and no worker unless $DEBUGINFOD_URLS names a server (debuginfo_fetcher_is_configured()).
 *
 * Threads: one at a time; *cancel may be set by any thread. Starts a thread.
 * Source: elfutils, debuginfod_find_debuginfo(3).
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"

struct debuginfo_fetcher;

/** Progress of a transfer. */
struct debuginfo_progress {
        const char *name; /* as given to debuginfo_fetch() */
        const char *url;  /* "" while unknown */
        uint64_t done_bytes;
        uint64_t total_bytes; /* 0: unknown */
        bool is_finished;     /* the last call for this file */
};

struct debuginfo_fetcher_options {
        const atomic_bool *cancel; /* borrowed; once true the transfer is aborted. May be NULL */
        /** Called at least once a second during a transfer. May be NULL. */
        void (*progress)(void *context, const struct debuginfo_progress *progress);
        void *context;
};

struct debuginfo_fetcher_stats {
        unsigned downloaded, cached, missing, failed; /* number of requests */
        char failure[240];                            /* the first failure; "" if none */
};

/** Whether $DEBUGINFOD_URLS names a server. */
bool debuginfo_fetcher_is_configured(void);

/** Does not start the worker yet. */
enum status debuginfo_fetcher_create(const struct debuginfo_fetcher_options *options, struct debuginfo_fetcher **ret,
                                     struct error *err) MUST_CHECK;
/** Takes NULL. */
void debuginfo_fetcher_destroy(struct debuginfo_fetcher *f);

/**
 * The debuginfo file of a build-id, from the cache or a server. Its content is not verified.
 * @param name  of the object, for progress and messages.
 * @param ret   owned descriptor, open for reading; untouched on failure.
 * @return ST_NOT_FOUND: no server has it, now or at a recent attempt; ST_BUSY: cancelled, or it could not be fetched.
 */
enum status debuginfo_fetch(struct debuginfo_fetcher *f, const struct build_id *id, const char *name, int *ret,
                            struct error *err) MUST_CHECK;

/** The cache directory, absolute; "" before the first request. Borrowed. */
const char *debuginfo_fetcher_cache_path(const struct debuginfo_fetcher *f);

const struct debuginfo_fetcher_stats *debuginfo_fetcher_stats(const struct debuginfo_fetcher *f);

#endif
