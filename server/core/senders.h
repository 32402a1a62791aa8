/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_SENDERS_H
#define CAIRN_SERVER_CORE_SENDERS_H

/**
 * @file
 * Senders of a tenant's samples, in memory: for each host and program the last batch, and counts since it was first
 * seen. At most LIMIT_SENDERS are kept, fewer when the memory budget (MEMORY_CACHES) is exhausted, with LRU eviction.
 * Texts come from the sender and are truncated to their size.
 *
 * Threads: any, except create and destroy.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define SENDER_HOST_SIZE 128
#define SENDER_AGENT_SIZE 96
#define SENDER_ADDRESS_SIZE 64

/** The sender of a batch: identified by host, or by address without a host, and by program. "": unknown. Borrowed. */
struct sender_name {
        const char *host;  /* value of a label of the samples */
        const char *agent; /* User-Agent; the text before the first '/' is the program */
        const char *address;
};

/** A batch, or the part of it from one host. */
struct sender_batch {
        uint64_t samples, rejected;
        int64_t newest_unix_ns; /* time of its newest sample; 0: unknown */
        int64_t now_unix_ns;
};

struct sender_record {
        char host[SENDER_HOST_SIZE], agent[SENDER_AGENT_SIZE], address[SENDER_ADDRESS_SIZE]; /* as last seen */
        int64_t first_unix_ns, last_unix_ns;                                                 /* of its batches */
        int64_t newest_unix_ns; /* sender_batch.newest_unix_ns of the last batch */
        uint64_t batches, samples, rejected;
        uint64_t last_samples; /* samples of the last batch */
};

struct senders;

enum status senders_create(struct senders **ret, struct error *err) MUST_CHECK;
void senders_destroy(struct senders *s); /* takes NULL */

void senders_note_batch(struct senders *s, const struct sender_name *name, const struct sender_batch *batch);

/** Number of senders, and of evicted senders since startup. */
void senders_count(struct senders *s, size_t *kept_ret, uint64_t *forgotten_ret);

/**
 * Copy the most recent senders, the latest first.
 * @param ret  owned by the caller, free(); the caller reserves memory for `max` items from the budget.
 */
enum status senders_copy(struct senders *s, size_t max, struct sender_record **ret, size_t *count_ret,
                         struct error *err) MUST_CHECK;

#endif
