/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_LOADED_SIDES_H
#define CAIRN_QUERY_ENGINE_LOADED_SIDES_H

/** @file Common part of the operations on stacks: one selection or two, loaded with the request's filters. Private to
 * query/. */
#include "query/engine/call_tree.h"
#include "query/engine/frame_filter.h"
#include "query/engine/label_groups.h"
#include "query/engine/merged_profile.h"
#include "query/engine/query_call.h"
#include "query/engine/type_plan.h"

struct loaded_sides {
        struct frame_table frames;
        struct label_groups groups;
        struct frame_filter filter;
        struct type_plan plan;
        struct merged_profile sides[2]; /* in a diff: before and after */
        unsigned side_count;
};

/**
 * Load the selection of the request; omitted types are added to q->note.
 * @param base  the selection to compare with, for a diff, or NULL.
 */
enum status loaded_sides_load(struct query_call *q, const struct query_selection *base,
                              struct loaded_sides *ret) MUST_CHECK;
void loaded_sides_deinit(struct loaded_sides *l);
#define _cleanup_loaded_sides_ _cleanup_(loaded_sides_deinit)

/** Whether a tree is drawn, without the negative values that bars cannot show, or listed with all values. */
enum tree_use { TREE_DRAWN, TREE_LISTED };

/**
 * Build the call tree of the sides, with the frames of groups above the stacks. Negative values that are dropped are
 * added to q->note. @param tree  tree_deinit() it.
 */
enum status loaded_sides_build_tree(struct query_call *q, struct loaded_sides *l, const struct tree_focus *focus,
                                    enum tree_use use, struct tree *tree) MUST_CHECK;

/** The functions in focus of a request, by frame. */
struct function_targets {
        uint8_t *is_target; /* owned */
        size_t count;       /* of frames */
};
void function_targets_deinit(struct function_targets *t);
#define _cleanup_function_targets_ _cleanup_(function_targets_deinit)

/** Add the frames that replace targets in a comparison. @param is_target  by frame. */
void function_targets_add_replacements(const struct frame_table *frames, uint8_t *is_target);

/**
 * Find the frames with a name that matches the regular expression. As of the next two, q->note says if there is none.
 * @param search  whether it may match a part of the name.
 */
enum status function_targets_find(struct query_call *q, const struct frame_table *frames, const char *function,
                                  bool search, struct function_targets *ret) MUST_CHECK;

/** Find the frames of which one of the names is `name`. */
enum status function_targets_find_exact(struct query_call *q, const struct frame_table *frames, const char *name,
                                        struct function_targets *ret) MUST_CHECK;

/**
 * Find the frames chosen by the parameters function and file (regular expressions), function_name and file_name
 * (exact).
 */
enum status function_targets_find_asked(struct query_call *q, const struct frame_table *frames,
                                        struct function_targets *ret) MUST_CHECK;

/** Write the leading members common to all JSON answers. */
void loaded_sides_put_head(const struct loaded_sides *l, struct json_out *j);

/** Append columns of a text: before, after, the change, and the change of the share of the side's total. */
void loaded_sides_put_change(const struct loaded_sides *l, const int64_t values[2], struct buf *ret);

#endif
