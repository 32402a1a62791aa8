/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_POST_H
#define CAIRN_AGENT_POST_H

/**
 * @file
 * One try to hand a batch to an OTLP receiver, and what its answer means.
 * Source: OTLP 1.8.0, "OTLP/HTTP Response" and "Failures".
 */
#include "agent/outbox.h"
#include "http/client.h"

enum verdict {
        VERDICT_TAKEN,
        VERDICT_LATER,    /* the service is away, busy, or not what or as we were told: nothing is wrong with the batch */
        VERDICT_FAILED,   /* the service failed over it: a few times more */
        VERDICT_TOO_BIG,  /* 413 */
        VERDICT_REFUSED,  /* it will never be taken */
};

struct post_result {
        enum verdict verdict;
        uint64_t retry_after_ms;   /* asked for; 0 none */
        uint64_t rejected_samples; /* of one that was taken */
        struct error err;          /* unless it was taken */
};

/** Threads: the client's. */
struct post_result post_batch(struct http_client *client, const struct batch *b);

#endif
