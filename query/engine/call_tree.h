/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_CALL_TREE_H
#define CAIRN_QUERY_ENGINE_CALL_TREE_H

/**
 * @file
 * Call tree: stacks merged into a tree of frames, for one selection or two (a diff).
 *
 * Node 0 is the root; a node's index is greater than its parent's. self sums the
 * stacks that end at a node, total those that pass through it.
 *
 * Threads: one tree belongs to one thread.
 */
#include "common/hash/hash_table.h"
#include "common/memory/memory_budget.h"
#include "query/engine/merged_profile.h"

struct tree_node {
        uint32_t frame; /* index in the frame table; undefined for the root */
        uint32_t parent;
        uint32_t depth; /* 0 for the root */
        int64_t self[2], total[2];
        int64_t line; /* of the stack with the greatest value through this node; 0 unknown */
        int64_t line_value;
};

struct tree {
        struct tree_node *nodes; /* owned */
        uint32_t count;
        size_t capacity;
        int64_t negative[2];        /* by side: the sum that tree_drop_negative() removed */
        bool is_inverted;           /* of callers; set by tree_add() */
        struct work_meter *meter;   /* NULL: unlimited; borrowed */
        struct hash_table children; /* nodes by (parent, frame), except the root */
        struct memory_reservation memory;
};

/** @param meter  charged for work on the tree; borrowed; NULL: unlimited. */
enum status tree_init(struct tree *t, struct work_meter *meter, struct error *err) MUST_CHECK;
void tree_deinit(struct tree *t);
#define _cleanup_tree_ _cleanup_(tree_deinit)

/* The part of each stack that is added to the tree. */
enum tree_view {
        TREE_ALL,
        TREE_CALLEES, /* the outermost frame of the function and its callees */
        TREE_CALLERS, /* the innermost frame of the function and its callers, inverted */
};

struct tree_focus {
        enum tree_view view;
        const char *function; /* as requested; NULL for TREE_ALL */
        /* By frame: whether it is a function in focus. NULL for TREE_ALL. Borrowed. */
        const uint8_t *is_target;
};

/* Frames above the stacks of each group: the values of its labels. */
struct tree_roots {
        const struct label_groups *groups;
        const uint32_t *frames; /* label_count for each shown group */
};

/**
 * Add the stacks of one selection. Stacks deeper than LIMIT_TREE_DEPTH frames are truncated at the leaf end; their
 * value is attributed to the last remaining frame. More than LIMIT_TREE_NODES nodes are ST_TOO_BIG.
 * @param side  0, or 1 for the second selection of a diff.
 */
#define LIMIT_TREE_DEPTH 4096
#define LIMIT_TREE_NODES (1u << 25)
enum status tree_add(struct tree *t, const struct merged_profile *m, unsigned side, const struct tree_focus *focus,
                     const struct tree_roots *roots, struct error *err) MUST_CHECK;

/**
 * Set self values below zero to 0, so that no node is wider than its parent; before tree_sum_totals(). Such values come
 * from differences of heap profiles. A stack is dropped as a whole only if its sum is negative.
 */
void tree_drop_negative(struct tree *t);

/** Compute totals from self; once, after the last tree_add(). One pass over at most LIMIT_TREE_NODES. */
void tree_sum_totals(struct tree *t);

/**
 * The nodes in drawing order: parents before children, siblings by falling total. Beyond max_nodes, the nodes with the
 * smallest totals are omitted; in an inverted tree the functions at its first level only beyond half of them.
 * @param memory  charged for temporary memory; afterwards for that of ret.
 * @param ret  owned by the caller, free().
 */
enum status tree_sort_for_drawing(const struct tree *t, uint32_t max_nodes, struct memory_reservation *memory,
                                  uint32_t **ret, uint32_t *count_ret, struct error *err) MUST_CHECK;

#define DRAWN_OTHER UINT32_MAX /* drawn_node.frame: the omitted callees of a node */

struct drawn_node {
        uint32_t parent; /* index in the drawing; UINT32_MAX for the root */
        uint32_t frame;  /* undefined for the root */
        uint32_t depth;  /* 0 for the root */
        int64_t self[2], total[2];
        int64_t line; /* 0 unknown */
};

/**
 * The drawn nodes, each followed by its descendants, siblings by falling total. A node with omitted callees has a last
 * child DRAWN_OTHER with the rest, so that a node's total is the sum of its self and its children's totals.
 */
struct drawing {
        struct drawn_node *nodes; /* owned */
        uint32_t count;
        uint32_t left_out; /* omitted nodes of the tree */
        struct memory_reservation memory;
};
/** @param max_nodes  as tree_sort_for_drawing(); DRAWN_OTHER nodes are not counted. */
enum status tree_draw(const struct tree *t, uint32_t max_nodes, struct drawing *ret, struct error *err) MUST_CHECK;
void drawing_deinit(struct drawing *d);
#define _cleanup_drawing_ _cleanup_(drawing_deinit)

#endif
