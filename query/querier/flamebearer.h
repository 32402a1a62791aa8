/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_QUERIER_FLAMEBEARER_H
#define CAIRN_QUERY_QUERIER_FLAMEBEARER_H

/**
 * @file
 * Call trees in the formats of Pyroscope's clients. Functions are identified by name only; children of a node that
 * exceed the limit of nodes are merged into one child "other". Private to query/querier/.
 *
 * Flame graph: level i has the nodes of depth i from left to right, four numbers each: the distance of its left edge
 * from the end of the previous node (of the first node, from the left edge of the graph), total, self, index of its
 * name. A diff has the first three for both sides, then the name. The root is the only node of level 0. Children begin
 * after the self value of their parent.
 *
 * Tree: for each node, parents before their children, the length of its name, the name, its self value and the number
 * of its children, numbers as varints. The root has the empty name. An empty tree is encoded as no bytes.
 */
#include "query/engine/loaded_sides.h"
#include "query/querier/querier_call.h"

/** The common part of both kinds of flame graphs. */
struct flamebearer {
        char **names;
        Querier__Level **levels;
        size_t name_count, level_count;
        int64_t max_self;
};

#define DEFAULT_FLAME_NODES 8192 /* as in Pyroscope */

/** The loaded samples and drawn tree of the call's selection, or of two selections in a diff. */
struct stack_view {
        struct querier_selection base, selection;
        bool has_base;
        struct loaded_sides l;
        struct tree tree;
        struct drawing drawing;
};
void stack_view_deinit(struct stack_view *v); /* also fine on a zeroed one */
#define _cleanup_stack_view_ _cleanup_(stack_view_deinit)
/** Load the samples, without a tree. */
enum status stack_view_load(struct querier_call *c, struct stack_view *v) MUST_CHECK;
/** Load the samples and draw the tree of functions by name, of up to c->q.r.max_nodes. */
enum status stack_view_draw(struct querier_call *c, struct stack_view *v) MUST_CHECK;

/** Identify functions by their names only; before the tree is built. */
enum status merge_frames_by_name(struct querier_call *c, struct loaded_sides *l) MUST_CHECK;

/** @param ret  in the memory of the answer. */
enum status flamebearer_make(struct querier_call *c, const struct loaded_sides *l, const struct drawing *d,
                             struct flamebearer *ret) MUST_CHECK;

/** Encode the tree of the first side. @param ret  in the memory of the answer. */
enum status tree_bytes_make(struct querier_call *c, const struct loaded_sides *l, const struct drawing *d,
                            ProtobufCBinaryData *ret) MUST_CHECK;

#endif
