/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SENDING_SENDER_H
#define CAIRN_SENDING_SENDER_H

/**
 * @file
 * Sends batches to the server in order, from its own thread.
 *
 * A batch stays in the outbox until the server acknowledges it. While the
 * server is unavailable it is retried with exponential backoff and jitter.
 * Each batch has an id, sent as "X-Cairn-Batch", so that a batch sent twice
 * counts once. With a spool:
 *
 * 1. When sender_put_profile() returns, the batch is written: if the agent ends for
 *    any reason, the next run sends it.
 * 2. It is synced once an attempt to send has failed, at most SENDER_TRY_MS
 *    after it was queued: from then on it survives a power cut. While the
 *    server responds, nothing is synced and little is written.
 * 3. An acknowledged batch is removed before the next one is sent.
 *
 * Threads: any; the sender's own thread logs too.
 */
#include "profile-formats/profile.h"
#include "sending/outbox.h"

#define SENDER_TRY_MS 60000 /* one attempt, from connecting to the response */

struct sender;

struct sender_options {
        const char *server;     /* "http://host:port" */
        const char *token;      /* NULL: none */
        const char *tenant;     /* http_client_options */
        const char *ca_file;    /* http_client_options */
        const char *user_agent; /* NULL: that of the agent */
        const char *spool;      /* directory, NULL: memory only */
        uint64_t spool_bytes;   /* its size limit */
};

struct sender_stats {
        uint64_t sent, retried, split; /* batches, attempts, batches */
        uint64_t rejected_samples;     /* of accepted batches */
        uint64_t lost_samples;         /* of profiles that were queued in part */
        bool failing;                  /* the last attempt failed */
        struct outbox_stats outbox;
};

enum status sender_create(const struct sender_options *o, struct sender **ret, struct error *err) MUST_CHECK;

/**
 * Queue a profile, as several batches where one would exceed LIMIT_HTTP_BODY_BYTES.
 * @return ST_OK when it is queued, or some of it: the rest is logged and counted in lost_samples. On failure nothing of
 *         it is queued: ST_TOO_BIG when each of its samples is too large for a batch, ST_BUSY, ST_NO_MEMORY.
 */
enum status sender_put_profile(struct sender *s, const struct profile *p, struct error *err) MUST_CHECK;

/** Send with another token from now on; NULL: none. */
enum status sender_set_token(struct sender *s, const char *token, struct error *err) MUST_CHECK;

/** Wait at most deadline_ms for the queue to drain: ST_BUSY on timeout. Retries are quick from then on. */
enum status sender_flush(struct sender *s, uint64_t deadline_ms, struct error *err) MUST_CHECK;

void sender_get_stats(struct sender *s, struct sender_stats *ret);

/** Stops the thread. Spooled batches are synced and kept, others are lost. NULL is allowed. */
void sender_destroy(struct sender *s);

#endif
