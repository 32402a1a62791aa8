/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FEDERATION_FETCH_ORDER_H
#define CAIRN_DEBUGINFO_STORE_FEDERATION_FETCH_ORDER_H

/**
 * @file
 * The order of background fetches. Build-ids come from samples, so one sender can name any number of objects that do
 * not exist. Each sender therefore has its own queue of at most LIMIT_FETCH_SENDER_IDS; the queues take turns, and in
 * each the object with the greatest weight is first. With LIMIT_FETCH_SENDERS queues, further senders share that of the
 * unknown sender.
 *
 * Threads: the caller's lock.
 */
#include "debuginfo-store/federation/fetch_queue.h"

TAILQ_HEAD(fetch_entries, fetch_entry);

struct fetch_sender {
        TAILQ_ENTRY(fetch_sender) next;
        uint32_t number; /* 0: unknown */
        size_t count;
        struct fetch_entries entries;
};

struct fetch_order {
        TAILQ_HEAD(, fetch_sender) senders; /* those with entries, in the order of their turns */
        size_t sender_count;
};

void fetch_order_init(struct fetch_order *o);
/** Forgets the entries, which belong to their table. */
void fetch_order_deinit(struct fetch_order *o);

/** Append an entry to the queue of entry->sender. False, and not appended, if it is full or without memory. */
bool fetch_order_add(struct fetch_order *o, struct fetch_entry *entry) MUST_CHECK;
void fetch_order_remove(struct fetch_order *o, struct fetch_entry *entry);
/** Remove and return the entry to fetch now; NULL: none. */
struct fetch_entry *fetch_order_take(struct fetch_order *o);
/** The last entry of the longest queue, to make room for an entry of another sender; NULL: none is longer. */
struct fetch_entry *fetch_order_find_excess(const struct fetch_order *o, uint32_t sender);

#endif
