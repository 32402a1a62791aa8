/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_FORMATS_FLAME_H
#define CAIRN_QUERY_FORMATS_FLAME_H

/** @file A tree as JSON, text, self-contained HTML page, and folded stacks. Private to query/. */
#include "common/json/json_out.h"
#include "common/memory/buf.h"
#include "query/engine/call_tree.h"
#include "query/engine/merged_profile.h"

struct flame {
        const struct frame_table *frames;
        const struct tree *tree;
        const struct merged_profile *sides[2]; /* the second is NULL except in a diff */
        const struct type_plan *plan;
        const struct label_groups *groups;
        uint32_t max_nodes;
        const struct tree_focus *focus;
        enum query_names names; /* default: short in JSON and pages, full in text and folded stacks */
};

/** docs/formats/query-api.md, "Flame graph". */
enum status flame_put_json(const struct flame *f, struct json_out *j, const char *key, struct error *err) MUST_CHECK;

/** A self-contained page with the JSON, which works offline. */
enum status flame_put_html(const struct flame *f, struct buf *ret, struct error *err) MUST_CHECK;

/** An indented tree; nodes under half a percent are omitted. */
enum status flame_put_text(const struct flame *f, struct buf *ret, struct error *err) MUST_CHECK;

/** One line per stack, root first, with its value; kernel frames end in "_[k]". Not for diffs. */
enum status flame_put_folded(const struct flame *f, struct buf *ret, struct error *err) MUST_CHECK;

#endif
