/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_PEER_HEADS_H
#define CAIRN_PROFILE_STORE_PEER_HEADS_H

/**
 * @file
 * Acknowledged batches of other nodes (peers) that write the same tables, before they are committed.
 *
 * A node answers with a page of its head (queue/head_page.h): the batches after a position, and the version of the log
 * of samples that has all batches which it no longer has in its head. The asking node keeps these batches until it has
 * read the commit that has them, so it asks for new ones only. A scan takes the tables, the node's own head and the
 * kept batches together, after it has followed the tables to the versions of all pages; so each batch counts once:
 *
 *  - one that a peer commits after its answer is in the kept batches, and dropped when its commit is read;
 *  - one that a peer committed before its answer is in the tables, since the scan reads them up to the page's version;
 *  - one that was sent to several nodes has the same id in each.
 *
 * Threads: any; pages of one peer are added by one thread at a time.
 */
#include "common/error.h"
#include "common/limits.h"
#include "common/memory/buf.h"
#include "profile-store/delta/delta_log.h"
#include "profile-store/profile_store.h"

/** A node whose samples a scan may lack. */
struct missing_node {
        char name[128];       /* its address; "" for the tables, whose commits could not be read */
        int64_t since_unix_s; /* samples that were acknowledged since then may be missing; 0: all */
};
struct missing_nodes {
        struct missing_node items[LIMIT_PEERS + 1];
        size_t count;
};

/** Up to where the head of a node is known. */
struct head_mark {
        char node[17];                    /* identity; "" unknown */
        uint64_t after;                   /* position in its queue */
        char tables[DELTA_TABLE_ID_SIZE]; /* id of the table of samples of the node that asks; "" unknown */
};

/**
 * Append a page of the durable head: the batches after a mark; all of them if the mark is of another node.
 * @param ret  bounded by its max, at least LIMIT_HEAD_ANSWER_BYTES.
 * @return ST_USAGE when no other nodes write the tables, or the mark is of other tables: of another store or tenant.
 */
enum status profile_store_write_head(struct profile_store *store, const struct head_mark *mark, struct buf *ret,
                                     struct error *err) MUST_CHECK;

/** Up to where the head of a peer is known. @param peer  below options.peer_count. */
void profile_store_get_head_mark(struct profile_store *store, unsigned peer, struct head_mark *ret);

/**
 * Keep the batches of a page.
 * @param is_self_ret   the page is of this node: nothing is kept.
 * @param has_more_ret  the peer has batches after this page.
 * @return ST_BAD_DATA for a damaged page; ST_TOO_BIG past LIMIT_PEER_HEAD_BYTES; ST_BUSY or ST_NO_MEMORY without
 *         memory. What was kept before stays.
 */
enum status profile_store_add_head(struct profile_store *store, unsigned peer, const void *page, size_t n,
                                   bool *is_self_ret, bool *has_more_ret, struct error *err) MUST_CHECK;

#endif
