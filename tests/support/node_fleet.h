/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_NODE_FLEET_H
#define CAIRN_TESTS_SUPPORT_NODE_FLEET_H

/*
 * Nodes that write the same tables, and hand their commits to the one that has the lease, without a network: a node
 * that waits for an answer lets the holder flush, or with `chained` first the node after it, whose commit is then in
 * the same one. They flush only on request.
 */
#include "profile-store/core/profile_store_internal.h"
#include "tests/support/faulty_storage.h"
#include "tests/support/temporary_dir.h"

#define NODE_FLEET_MAX 10

struct node_fleet_node {
        struct node_fleet *fleet;
        unsigned number;
        struct profile_store *store;
        struct faulty_storage *storage;
};

struct node_fleet {
        char dir[TEMPORARY_DIR_BYTES];
        struct node_fleet_node nodes[NODE_FLEET_MAX];
        unsigned count;
        bool hands_nothing; /* set before node_fleet_begin(): each node commits alone */
        bool chained;
        bool stops_holder;    /* the holder gets the next commit, and does nothing with it for now */
        bool loses_answers;   /* the holder commits, and its answer is lost */
        bool cuts_after_hand; /* the node that waits loses its storage */
        unsigned offers, refusals;
        unsigned due_offers; /* after which the flush of the holder was due at once */
};

/** @param count  of nodes, at most NODE_FLEET_MAX; other members of f are zero, or chosen. */
void node_fleet_begin(struct node_fleet *f, unsigned count);
void node_fleet_end(struct node_fleet *f);
/* Close the store and open it again, with its storage back. */
void node_fleet_restart(struct node_fleet *f, unsigned node);

/* A sample of value 1 on a stack that all batches share. @param label  "key=value" or NULL */
void node_fleet_append(struct node_fleet *f, unsigned node, unsigned batch, const char *label);
/* The same on a stack of its own, of one address. */
void node_fleet_append_stack(struct node_fleet *f, unsigned node, unsigned batch, uint64_t address);
void node_fleet_flush(struct node_fleet *f, unsigned node);
void node_fleet_fail_flush(struct node_fleet *f, unsigned node);
/* Read what others committed. */
void node_fleet_follow(struct node_fleet *f, unsigned node);
/* Of all samples that the node sees and whose stacks it finds. */
int64_t node_fleet_sum(struct node_fleet *f, unsigned node);
/* Put an object, below the tables. */
void node_fleet_put(struct node_fleet *f, const char *key, const char *text);

#endif
