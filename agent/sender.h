/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_SENDER_H
#define CAIRN_AGENT_SENDER_H

/**
 * @file
 * Brings batches to the server, in order, from a thread of its own.
 *
 * A batch waits in the outbox until the server has it; while the server is
 * away it is tried again with growing pauses that are different for each agent.
 * Each batch has an id that goes along as "X-Cairn-Batch", so that one sent
 * twice counts once. With a spool:
 *
 * 1. sender_put() has written the batch when it returns: whatever ends the
 *    agent, the next run sends it.
 * 2. It is synced as soon as a try to send has failed, at most
 *    SENDER_TRY_MS after it was put: from then on it survives a power cut.
 *    Where the server answers, nothing is ever synced and little is written.
 * 3. What was acknowledged is removed before the next one is sent.
 *
 * Threads: any; log lines come from the sender's own thread too.
 */
#include "agent/outbox.h"
#include "profile-formats/profile.h"

#define SENDER_TRY_MS 60000 /* one try, from the connection to the answer */

struct sender;

struct sender_options {
        const char *server;    /* "http://host:port" */
        const char *token;     /* NULL: none */
        const char *ca_file;   /* http_client_options */
        const char *spool;     /* directory, NULL: memory only */
        uint64_t spool_bytes;  /* its bound */
};

struct sender_stats {
        uint64_t sent, retried, split; /* batches, tries, batches */
        uint64_t rejected_samples;     /* of batches that were taken */
        bool failing;                  /* the last try failed */
        struct outbox_stats outbox;
};

enum status sender_create(const struct sender_options *o, struct sender **ret, struct error *err) MUST_CHECK;

/** Queue a gzip'd OTLP request. @param packed taken. */
enum status sender_put(struct sender *s, struct buf *packed, struct error *err) MUST_CHECK;

/** Queue a profile, in several batches where one would be over LIMIT_HTTP_BODY_BYTES. */
enum status sender_put_profile(struct sender *s, const struct profile *p, struct error *err) MUST_CHECK;

/**
 * Wait until nothing waits any more, for deadline_ms at most: ST_BUSY when it does.
 * From then on pauses are short, since somebody waits.
 */
enum status sender_flush(struct sender *s, uint64_t deadline_ms, struct error *err) MUST_CHECK;

void sender_stats(struct sender *s, struct sender_stats *ret);

/** Stops the thread. What is in the spool is synced and stays there, what is not is lost. Takes NULL. */
void sender_destroy(struct sender *s);

#endif
