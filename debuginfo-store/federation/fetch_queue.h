/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FEDERATION_FETCH_QUEUE_H
#define CAIRN_DEBUGINFO_STORE_FEDERATION_FETCH_QUEUE_H

/**
 * @file
 * Single flight and negative cache of upstream requests: an entry for each resource that is queued, in flight, or
 * cached as missing or failed until its expiry. Expired entries are removed during a lookup in their bucket; cached
 * results are evicted at FETCH_QUEUE_MAX entries. Clients choose build-ids and resources, so buckets are chosen by
 * keyed_hash().
 *
 * Threads: the caller's lock.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/build_id.h"
#include "common/hash/lru_table.h"
#include "debuginfo-store/federation/download.h"
#include "debuginfo-store/federation/forward_loop.h"

#define FETCH_QUEUE_MAX 100000

enum fetch_entry_state { FETCH_ENTRY_QUEUED, FETCH_ENTRY_IN_FLIGHT, FETCH_ENTRY_MISSING, FETCH_ENTRY_FAILED };

struct fetch_entry {
        struct lru_entry lru;
        TAILQ_ENTRY(fetch_entry) next_queued; /* fetch_order.h */
        uint32_t sender;                      /* as in struct wanted_object; 0: a client that waits */
        uint64_t weight;
        struct build_id id;
        char *resource; /* as in struct fetch_request */
        enum fetch_entry_state state;
        int64_t forget_ns;         /* monotonic; FETCH_ENTRY_MISSING and FETCH_ENTRY_FAILED */
        struct download *download; /* in progress; NULL: none */
        char *forwarded_for;       /* to send */
        char *via;                 /* as in struct forward_list */
};

/** Whether the resource is a part of an object: a section or a source file. */
bool fetch_resource_is_part(const char *resource);

/* Cached results are evicted in the order in which their requests were added. */
struct fetch_queue {
        struct lru_table entries;
};

enum status fetch_queue_init(struct fetch_queue *t, struct error *err) MUST_CHECK;
void fetch_queue_deinit(struct fetch_queue *t);

/** Find the pending or cached entry for this request: one with the same forwarding route, or a direct request that
 * found nothing. NULL: none. */
struct fetch_entry *fetch_queue_find(struct fetch_queue *t, const struct build_id *id, const char *resource,
                                     const struct forward_list *route);
/** Add an entry in state FETCH_ENTRY_QUEUED. NULL if the table is full of pending entries, or when out of memory. */
struct fetch_entry *fetch_queue_add(struct fetch_queue *t, const struct build_id *id, const char *resource,
                                    const struct forward_list *route);
void fetch_queue_remove(struct fetch_queue *t, struct fetch_entry *entry);
/** Let all cached results expire now; pending entries stay. */
void fetch_queue_expire(struct fetch_queue *t);

#endif
