/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FEDERATION_H
#define CAIRN_DEBUGINFO_STORE_FEDERATION_H

/**
 * @file
 * Looking for build-ids at upstream debuginfod servers.
 *
 * Upstreams are asked one after the other, in the order of the configuration, each through its breaker (upstream.h) and
 * by a worker process (fetch.h). What comes goes through the same verification as an upload. Answers are remembered by
 * their kind: "nobody has it" for long, a failure for a moment, and something that was not what was asked for, for long
 * too. Equal questions in flight are one, and go on when whoever asked has left.
 *
 * Threads: any.
 */
#include <stdatomic.h>

#include "debuginfo-store/download.h"
#include "debuginfo-store/forwarded.h"
#include "debuginfo-store/store.h"
#include "debuginfo-store/upstream.h"

struct federation;

struct federation_options {
        size_t size;
        const char *const *urls;          /* copied; the order is the order of asking */
        const char *const *headers;       /* to send to each, NULL none, as in struct fetch_question; copied. NULL: to nobody */
        size_t url_count;
        uint64_t timeout_s;               /* for which an upstream may send nothing; 0: 90 */
        uint64_t miss_s;                  /* 0: 600; how long "not found" is remembered */
        uint64_t error_s;                 /* 0: 30 */
        unsigned threads;                 /* for wishes; 0: 2 */
        unsigned breaker_failures;        /* see upstream.h */
        uint64_t breaker_pause_s;
        /* Told of each object that arrived; on the thread that fetched it, no lock held. */
        void (*arrived)(void *context, const struct stored_object *object);
        /* Told why an object could not be fetched, other than that nobody has it; likewise. */
        void (*failed)(void *context, const struct build_id *id, const struct error *err);
        /* Told when an upstream is not asked for a while, and when it is again; likewise. May be NULL. */
        void (*upstream_changed)(void *context, const struct upstream_status *status);
        void *context;
};

enum status federation_start(struct debuginfo_store *store, const struct federation_options *options,
                             struct federation **ret, struct error *err) MUST_CHECK;
/** Nobody waits in federation_fetch() any more. What is being fetched is given up. */
void federation_stop(struct federation *f);

/** Queue build-ids; returns at once. Those known, in flight or remembered as missing are left out. */
void federation_want(struct federation *f, const struct build_id *ids, size_t count, enum object_kind kind);

/** Who asks. */
struct federation_client {
        const char *forwarded_for;   /* the client's X-Forwarded-For, or NULL; see forwarded.h */
        const atomic_bool *cancel;   /* polled; true ends the waiting with ST_BUSY, and not the fetch. NULL: never */
};

/**
 * Wait for one object on behalf of a client.
 * @param coming_ret NULL, or where to put what is coming once its first bytes are there: then ST_OK comes early, with
 *                   *coming_ret (download_unref()); it is NULL when the object is in the store.
 * @return ST_OK: it is in the store, or comes. ST_NOT_FOUND: no upstream has it, or the question has come far enough.
 *         ST_BUSY: transient failure.
 */
enum status federation_fetch(struct federation *f, const struct build_id *id, enum object_kind kind,
                             const struct federation_client *client, struct download **coming_ret,
                             struct error *err) MUST_CHECK;

/**
 * Wait for a section or a source file. What comes is kept for a while (pieces.h), and is not verified by anybody.
 * @param part   "section/NAME" or "source/PATH", escaped as in a URL.
 * @param fd_ret the file.
 * @return as federation_fetch(). ST_BUSY too when an upstream cannot tell sections from files.
 */
enum status federation_fetch_piece(struct federation *f, const struct build_id *id, const char *part,
                                   const struct federation_client *client, int *fd_ret, struct error *err) MUST_CHECK;

struct federation_status {
        size_t upstream_count;
        size_t queued, in_flight, missing, failed; /* questions: the last two are answers that are remembered */
};
void federation_get(struct federation *f, struct federation_status *ret);
/** @param i below upstream_count, in the order of asking. */
void federation_get_upstream(struct federation *f, size_t i, struct upstream_status *ret);

/** A question that is of no single object, and whose answers are joined. */
struct federation_question {
        const char *path;         /* what follows the URL of an upstream, escaped: "metadata?key=file&value=/x" */
        uint64_t total_s;         /* for each answer */
        uint64_t max_bytes;       /* of each answer */
        /* An answer: a file, borrowed. Anything but ST_OK: it is not what was asked for. */
        enum status (*answered)(void *context, int fd, struct error *err);
        /* Why there is none from an upstream that was asked. */
        void (*failed)(void *context, const char *url_text, const struct error *why);
        void *context;
};

/**
 * Ask all upstreams, at the same time, but those whose breaker is open. Both functions are called on the caller's thread
 * when all is over, in the order of the upstreams. Nothing is remembered.
 * @return ST_OK: each upstream has answered, or the question has come far enough and is not asked any further.
 *         ST_BUSY: some did not answer, or not what was asked for.
 */
enum status federation_ask_all(struct federation *f, const struct federation_question *question,
                               const struct federation_client *client, struct error *err) MUST_CHECK;

#endif
