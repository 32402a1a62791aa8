/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_SENDER_H
#define CAIRN_AGENT_SENDER_H

/**
 * @file
 * Brings batches to the server, in order, from a thread of its own.
 *
 * A batch stays queued in memory until the server has it; while the server is
 * away it is tried again with growing pauses. Each batch has a random id that
 * goes along as "X-Cairn-Batch", so that one sent twice counts once. Past
 * LIMIT_AGENT_QUEUE_BYTES the oldest ones that are not on their way are dropped
 * and counted. A batch that the server refuses for good is dropped at once.
 *
 * Threads: any; log lines come from the sender's own thread too.
 */
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

struct sender;

struct sender_options {
        const char *server; /* "http://host:port" */
        const char *token;  /* NULL: none */
};

struct sender_stats {
        uint64_t sent, retried, refused, dropped; /* batches */
        uint64_t queued, queued_bytes;
};

enum status sender_create(const struct sender_options *o, struct sender **ret, struct error *err) MUST_CHECK;

/**
 * Queue one OTLP request; it is packed here.
 * @param body copied.
 */
enum status sender_put(struct sender *s, const void *body, size_t n, struct error *err) MUST_CHECK;

/**
 * Wait until the queue is empty, for deadline_ms at most: ST_BUSY when it is not.
 * From then on pauses are short, since somebody waits.
 */
enum status sender_flush(struct sender *s, uint64_t deadline_ms, struct error *err) MUST_CHECK;

void sender_stats(struct sender *s, struct sender_stats *ret);

/** Stops the thread; what is still queued is lost. Takes NULL. */
void sender_destroy(struct sender *s);

#endif
