/* SPDX-License-Identifier: Apache-2.0 */
#include "query/formats/flame.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "common/json/json_out.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "query/engine/unit_text.h"
#include "query/formats/assets.h"

#define KIND_OTHER 4 /* in JSON only: omitted callees; distinct from all of enum frame_kind */

/* ---- JSON --------------------------------------------------------------------------------- */

static void put_selection_summary(struct json_out *j, const struct merged_profile *m)
{
        json_out_object(j, NULL);
        json_out_str(j, "selector", m->selection->text);
        json_out_int(j, "from_ms", m->selection->from_unix_ns / 1000000);
        json_out_int(j, "to_ms", m->selection->to_unix_ns / 1000000);
        json_out_int(j, "total", m->total);
        merged_profile_put_samples(m, false, j);
        if (m->is_average)
                json_out_str(j, "aggregation", "average");
        if (m->total != m->selected_total)
                json_out_int(j, "selected_total", m->selected_total);
        json_out_object_end(j);
}

/* Short and linkage name are last, and present only if they differ from the readable name. */
static void put_json_frame(struct json_out *j, const struct query_frame *f, int kind)
{
        bool is_short = f->short_name != f->function,
             is_linked = *f->linkage_name && strcmp(f->linkage_name, f->function) != 0;

        json_out_array(j, NULL);
        json_out_str(j, NULL, f->function);
        json_out_str(j, NULL, f->file);
        json_out_str(j, NULL, f->mapping);
        json_out_int(j, NULL, kind);
        json_out_str(j, NULL, f->kind == FRAME_UNRESOLVED ? f->state : "");
        if (is_short || is_linked)
                json_out_str(j, NULL, is_short ? f->short_name : "");
        if (is_linked)
                json_out_str(j, NULL, f->linkage_name);
        json_out_array_end(j);
}

struct flame_writer {
        const struct flame *f;
        struct json_out *j;
        struct drawing d;
        uint32_t *frame_number; /* output number of each frame of the table, plus one; 0: none yet. Owned */
        uint32_t frame_count;
};

static void flame_writer_deinit(struct flame_writer *w)
{
        drawing_deinit(&w->d);
        free(w->frame_number);
}

/* The frames of drawn nodes, then "(other)". */
static void put_json_frames(struct flame_writer *w)
{
        static const char name[] = "(other)";
        static const struct query_frame other = { .function = name,
                                                  .short_name = name,
                                                  .linkage_name = "",
                                                  .file = "",
                                                  .mapping = "",
                                                  .kind = FRAME_NATIVE };

        json_out_array(w->j, "frames");
        for (uint32_t i = 1; i < w->d.count && !work_meter_add(w->f->frames->meter, 64, NULL); i++) {
                uint32_t frame = w->d.nodes[i].frame;

                if (frame == DRAWN_OTHER || w->frame_number[frame])
                        continue;
                w->frame_number[frame] = ++w->frame_count;
                put_json_frame(w->j, &w->f->frames->items[frame], (int)w->f->frames->items[frame].kind);
        }
        if (w->d.left_out)
                put_json_frame(w->j, &other, KIND_OTHER);
        json_out_array_end(w->j);
}

static int64_t get_written_frame(const struct flame_writer *w, uint32_t node)
{
        uint32_t frame = w->d.nodes[node].frame;

        if (!node)
                return -1;
        return frame == DRAWN_OTHER ? w->frame_count : (int64_t)w->frame_number[frame] - 1;
}

static void put_json_nodes(struct flame_writer *w)
{
        json_out_array(w->j, "nodes");
        for (uint32_t i = 0; i < w->d.count && !work_meter_add(w->f->frames->meter, 64, NULL); i++) {
                const struct drawn_node *n = &w->d.nodes[i];

                json_out_array(w->j, NULL);
                json_out_int(w->j, NULL, i ? (int64_t)n->parent : -1);
                json_out_int(w->j, NULL, get_written_frame(w, i));
                json_out_int(w->j, NULL, n->self[0]);
                json_out_int(w->j, NULL, n->total[0]);
                json_out_int(w->j, NULL, n->line);
                if (w->f->sides[1]) {
                        json_out_int(w->j, NULL, n->self[1]);
                        json_out_int(w->j, NULL, n->total[1]);
                }
                json_out_array_end(w->j);
        }
        json_out_array_end(w->j);
}

enum status flame_put_json(const struct flame *f, struct json_out *j, const char *key, struct error *err)
{
        const struct merged_profile *named = *f->sides[0]->type || !f->sides[1] ? f->sides[0] : f->sides[1];
        _cleanup_(flame_writer_deinit) struct flame_writer w = { .f = f, .j = j };
        enum status st = tree_draw(f->tree, f->max_nodes, &w.d, err);

        if (!st && !(w.frame_number = calloc(f->frames->count + 1u, sizeof *w.frame_number)))
                st = error_no_memory(err);
        if (st)
                return st;
        json_out_object(j, key);
        json_out_int(j, "version", 1);
        json_out_str(j, "type", named->type);
        json_out_str(j, "unit", named->unit);
        json_out_str(j, "focus", f->focus->function);
        json_out_bool(j, "inverted", f->focus->view == TREE_CALLERS);
        json_out_str(j, "names", f->names == NAMES_FULL ? "full" : "short");
        json_out_array(j, "sides");
        for (int side = 0; side < 2 && f->sides[side]; side++)
                put_selection_summary(j, f->sides[side]);
        json_out_array_end(j);
        type_plan_put_json(f->plan, j);
        if (f->groups->labels->count) {
                json_out_array(j, "by");
                for (size_t i = 0; i < f->groups->labels->count; i++)
                        json_out_str(j, NULL, f->groups->labels->names[i]);
                json_out_array_end(j);
        }
        if (f->tree->negative[0])
                json_out_int(j, "negative", f->tree->negative[0]);
        if (f->tree->negative[1])
                json_out_int(j, "negative_after", f->tree->negative[1]);
        put_json_frames(&w);
        json_out_uint(j, "left_out", w.d.left_out);
        put_json_nodes(&w);
        json_out_object_end(j);
        return buf_status(j->buf, err, "flame graph");
}

enum status flame_put_html(const struct flame *f, struct buf *ret, struct error *err)
{
        _cleanup_buf_ struct buf json;
        struct json_out j;
        enum status st;

        buf_init(&json, ret->max);
        json_out_init(&j, &json);
        st = flame_put_json(f, &j, NULL, err);
        if (st)
                return st;
        page_put_flame(ret, (const char *)json.data, json.size);
        return buf_status(ret, err, "flame graph page");
}

/* ---- text ---------------------------------------------------------------------------------- */

enum status flame_put_text(const struct flame *f, struct buf *ret, struct error *err)
{
        const struct merged_profile *m = f->sides[0];
        _cleanup_memory_ struct memory_reservation memory = { .use = MEMORY_QUERIES };
        _cleanup_free_ uint32_t *order = NULL;
        char from[32], to[32], value[40];
        int64_t total = f->tree->nodes[0].total[0], with_negative = total;
        uint32_t count, left_out = 0;
        enum status st = tree_sort_for_drawing(f->tree, f->max_nodes, &memory, &order, &count, err);

        if (st)
                return st;
        left_out = f->tree->count - count;
        merged_profile_put_total(m, ret);
        buf_printf(ret, ", %s to %s UTC%s", format_time_utc(m->selection->from_unix_ns, from, sizeof from),
                   format_time_utc(m->selection->to_unix_ns, to, sizeof to), *m->selection->text ? ", " : "");
        utf8_append_escaped(ret, m->selection->text);
        buf_append_u8(ret, '\n');
        utf8_append_escaped(ret, m->type);
        buf_append_u8(ret, '\n');
        add_saturating(&with_negative, f->tree->negative[0]);
        if (with_negative != m->total) /* in focus of a function: some stacks lack it */
                buf_printf(ret, "matching stacks: %s (%.2f%%); percentages are of these\n",
                           format_value(total, m->unit, value, 40),
                           m->total ? 100.0 * (double)total / (double)m->total : 0);
        buf_append_u8(ret, '\n');
        for (uint32_t i = 1; i < count && !work_meter_add(f->frames->meter, 16, NULL); i++) {
                const struct tree_node *n = &f->tree->nodes[order[i]];
                const struct query_frame *frame = &f->frames->items[n->frame];
                double share = total ? 100.0 * (double)n->total[0] / (double)total : 0;

                if (share < 0.5) {
                        left_out++;
                        continue;
                }
                buf_printf(ret, "%6.2f%% %6.2f%%  %*s", share, 100.0 * (double)n->self[0] / (double)total,
                           2 * (int)(n->depth < 200 ? n->depth - 1 : 199), "");
                utf8_append_escaped(ret, query_frame_name(frame, f->names == NAMES_SHORT));
                if (*frame->file && n->line) {
                        buf_append_str(ret, "  ");
                        utf8_append_escaped(ret, frame->file);
                        buf_printf(ret, ":%" PRId64, n->line);
                }
                buf_append_u8(ret, '\n');
        }
        if (left_out)
                buf_printf(ret, "\n%s under half a percent\n",
                           COUNTED(left_out, "smaller frame is left out,", "smaller frames are left out, each"));
        return buf_status(ret, err, "call tree");
}

/* ---- folded --------------------------------------------------------------------------------- */

/* Replace ';' and line ends, which are structure; escape control characters, as for a terminal. */
static void put_folded_name(struct buf *ret, const struct query_frame *f, bool is_short)
{
        const char *at = query_frame_name(f, is_short);

        while (*at) {
                size_t n = strcspn(at, ";\n\r");

                utf8_append_escaped_n(ret, at, n);
                at += n;
                if (*at)
                        buf_append_u8(ret, *at++ == ';' ? ':' : ' ');
        }
        if (f->kind == FRAME_KERNEL)
                buf_append_str(ret, "_[k]");
}

enum status flame_put_folded(const struct flame *f, struct buf *ret, struct error *err)
{
        const struct tree *t = f->tree;
        uint32_t path[LIMIT_TREE_DEPTH + 1];

        assert(!f->sides[1]); /* diffs are not supported */
        for (uint32_t i = 0; i < t->count && !ret->failed; i++) {
                uint32_t depth = t->nodes[i].depth;
                enum status st =
                        work_meter_add(f->frames->meter, t->nodes[i].self[0] ? 1 + 32 * (uint64_t)depth : 1, err);

                if (st)
                        return st;
                if (t->nodes[i].self[0] == 0)
                        continue;
                assert(depth <= LIMIT_TREE_DEPTH);
                for (uint32_t node = i, at = depth; at > 0; node = t->nodes[node].parent)
                        path[--at] = node;
                if (depth == 0)
                        buf_append_str(ret, "[no stack]");
                for (uint32_t d = 0; d < depth; d++) {
                        if (d)
                                buf_append_u8(ret, ';');
                        put_folded_name(ret, &f->frames->items[t->nodes[path[d]].frame], f->names == NAMES_SHORT);
                }
                buf_printf(ret, " %" PRId64 "\n", t->nodes[i].self[0]);
        }
        return buf_status(ret, err, "folded stacks");
}
