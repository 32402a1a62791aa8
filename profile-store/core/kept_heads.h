/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_CORE_KEPT_HEADS_H
#define CAIRN_PROFILE_STORE_CORE_KEPT_HEADS_H

/** @file The batches of other nodes that a store keeps (profile-store/peer_heads.h). */
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/peer_heads.h"
#include "profile-store/queue/head_page.h"

/** The records of a page. */
struct head_page_write {
        struct head_page_writer writer;
        const uint64_t *positions; /* of the head, ascending */
        size_t count, next;
        size_t most; /* bytes at which the page ends */
        size_t written;
        uint64_t last; /* position of the last record in the page */
        bool is_full;  /* there are more */
};

/** Append the durable records of positions to a page, without those that another node committed meanwhile. */
enum status head_write_records(struct profile_store *s, struct head_page_write *w, struct error *err) MUST_CHECK;

enum status kept_heads_open(struct profile_store *s, struct error *err) MUST_CHECK;
void kept_heads_close(struct profile_store *s);

/** Drop the batches that the tables of s have. Caller holds lock and peer_lock. */
void kept_heads_drop_committed(struct profile_store *s);

/** Before a scan: ask the peers, then follow the tables. Takes writer_lock. @param ret  empty; what may be missing */
void store_gather_from_nodes(struct profile_store *s, struct missing_nodes *ret);

/** Whether the tables have the versions that all pages demand. Takes lock. */
bool kept_heads_are_followed(struct profile_store *s);

/**
 * Append the kept batches, each with a reference and each id once, without those of the own head. Caller holds lock.
 * @param batches  array of *count batches; reallocated.
 */
enum status kept_heads_copy(struct profile_store *s, struct batch ***batches, size_t *count,
                            struct error *err) MUST_CHECK;

void kept_heads_register_metrics(void);

#endif
