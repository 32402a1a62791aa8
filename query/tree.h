/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_TREE_H
#define CAIRN_QUERY_TREE_H

/**
 * @file
 * Call tree: stacks merged into a tree of frames, for one selection or two (a diff).
 *
 * Node 0 is the root; a node's number is greater than its parent's. self sums the
 * stacks that end in a node, total those that pass it.
 *
 * Threads: one tree belongs to one thread.
 */
#include "common/hash_table.h"
#include "common/memory_budget.h"
#include "query/merged_profile.h"

struct tree_node {
        uint32_t frame; /* in the frame table; of no meaning for the root */
        uint32_t parent;
        uint32_t depth; /* 0 for the root */
        int64_t self[2], total[2];
        int64_t line; /* of the most expensive stack through this node; 0 unknown */
        int64_t line_value;
};

struct tree {
        struct tree_node *nodes; /* owned */
        uint32_t count;
        size_t capacity;
        struct work_meter *meter;   /* NULL: unlimited; borrowed */
        struct hash_table children; /* nodes by (parent, frame); without the root */
        struct memory_reservation memory;
};

/** @param meter  counts the work done on the tree; borrowed; NULL: unlimited. */
enum status tree_init(struct tree *t, struct work_meter *meter, struct error *err) MUST_CHECK;
void tree_deinit(struct tree *t);
#define _cleanup_tree_ _cleanup_(tree_deinit)

/* The part of each stack that is added to the tree. */
enum tree_view {
        TREE_ALL,
        TREE_CALLEES, /* below the outermost frame of that function, with it as the top */
        TREE_CALLERS, /* above the innermost frame of that function, upside down */
};

struct tree_focus {
        enum tree_view view;
        const char *function; /* as asked for; of TREE_ALL: NULL */
        /* By frame: whether it is of that function, or of one of those that match. NULL for TREE_ALL. Borrowed. */
        const uint8_t *is_target;
};

/* Frames above the stacks of each group: the values of its labels. */
struct tree_roots {
        const struct label_groups *groups;
        const uint32_t *frames; /* label_count for each shown group */
};

/**
 * Add the stacks of one selection. Stacks deeper than LIMIT_TREE_DEPTH frames are cut at the leaf end and count for
 * the last frame that is left. More than LIMIT_TREE_NODES nodes are ST_TOO_BIG.
 * @param side  0, or 1 for the second selection of a diff.
 */
#define LIMIT_TREE_DEPTH 4096
#define LIMIT_TREE_NODES (1u << 25)
enum status tree_add(struct tree *t, const struct merged_profile *m, unsigned side, const struct tree_focus *focus,
                     const struct tree_roots *roots, struct error *err) MUST_CHECK;

/** Assert the invariants: parents come before children, depths, one table entry per node but the root. */
void tree_check(const struct tree *t);

/** Sum self up into total. Once, after the last tree_add(). One pass over at most LIMIT_TREE_NODES. */
void tree_sum_totals(struct tree *t);

/**
 * The nodes in the order of drawing: parents before children, siblings by falling total. When there are more than
 * max_nodes, those with the smallest totals are left out.
 * @param memory  reserves what is needed, and holds that of ret afterwards.
 * @param ret  owned by the caller, free().
 */
enum status tree_sort_for_drawing(const struct tree *t, uint32_t max_nodes, struct memory_reservation *memory,
                                  uint32_t **ret, uint32_t *count_ret, struct error *err) MUST_CHECK;

#define DRAWN_OTHER UINT32_MAX /* drawn_node.frame: what was left out below a node */

struct drawn_node {
        uint32_t parent; /* in the drawing; UINT32_MAX for the root */
        uint32_t frame;  /* of no meaning for the root */
        uint32_t depth;  /* 0 for the root */
        int64_t self[2], total[2];
        int64_t line; /* 0 unknown */
};

/**
 * The drawn nodes, each followed by its descendants, siblings by falling total. A node whose callees were left out ends
 * with a child DRAWN_OTHER that has the rest, so that a node's total is its self and its children's totals.
 */
struct drawing {
        struct drawn_node *nodes; /* owned */
        uint32_t count;
        uint32_t left_out; /* nodes of the tree */
        struct memory_reservation memory;
};
/** @param max_nodes  as tree_sort_for_drawing(); nodes DRAWN_OTHER come on top. */
enum status tree_draw(const struct tree *t, uint32_t max_nodes, struct drawing *ret, struct error *err) MUST_CHECK;
void drawing_deinit(struct drawing *d);
#define _cleanup_drawing_ _cleanup_(drawing_deinit)

#endif
