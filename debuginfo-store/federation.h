/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FEDERATION_H
#define CAIRN_DEBUGINFO_STORE_FEDERATION_H

/**
 * @file
 * Looking for build-ids at upstream debuginfod servers, in the background.
 *
 * Each fetch is one libdebuginfod call in a worker process of its own, with a
 * private cache, one upstream and one build-id; the file then goes through
 * the same verification as an upload. Misses are remembered: long for "not
 * found", short for errors. Equal requests in flight are one.
 *
 * Threads: any.
 */
#include <stdatomic.h>

#include "debuginfo-store/store.h"

struct federation;

struct federation_options {
        size_t size;
        const char *const *urls;          /* copied; the order is the order of asking */
        size_t url_count;
        uint64_t timeout_s;               /* 0: 90 */
        uint64_t miss_s;                  /* 0: 600; how long "not found" is remembered */
        uint64_t error_s;                 /* 0: 30 */
        unsigned threads;                 /* 0: 2 */
        /* Told of each object that arrived; on the thread that fetched it, no lock held. */
        void (*arrived)(void *context, const struct stored_object *object);
        /* Told why an object could not be fetched, other than that nobody has it; likewise. */
        void (*failed)(void *context, const struct build_id *id, const struct error *err);
        void *context;
};

enum status federation_start(struct debuginfo_store *store, const struct federation_options *options,
                             struct federation **ret, struct error *err) MUST_CHECK;
/** Nobody waits in federation_fetch() any more. What is being fetched is given up. */
void federation_stop(struct federation *f);

/** Queue build-ids; returns at once. Those known, in flight or remembered as missing are left out. */
void federation_want(struct federation *f, const struct build_id *ids, size_t count, enum object_kind kind);

/**
 * Wait for one object on behalf of a client.
 * @param forwarded_for the client's X-Forwarded-For, or NULL; see forwarded.h.
 * @param cancel        polled; true ends the waiting with ST_BUSY. NULL: never.
 * @return ST_OK: it is in the store. ST_NOT_FOUND: no upstream has it, or the question has come far enough.
 *         ST_BUSY: transient failure.
 */
enum status federation_fetch(struct federation *f, const struct build_id *id, enum object_kind kind,
                             const char *forwarded_for, const atomic_bool *cancel, struct error *err) MUST_CHECK;

#endif
