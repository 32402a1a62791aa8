/* SPDX-License-Identifier: Apache-2.0 */
#include "query/flame.h"

#include <inttypes.h>
#include <string.h>

#include "common/json_out.h"
#include "query/assets.h"
#include "query/value_text.h"

/* ---- JSON --------------------------------------------------------------------------------- */

static void put_side(struct json_out *j, const struct merged *m)
{
        json_out_object(j, NULL);
        json_out_str(j, "selector", m->selection->text);
        json_out_int(j, "from_ms", m->selection->from_unix_ns / 1000000);
        json_out_int(j, "to_ms", m->selection->to_unix_ns / 1000000);
        json_out_int(j, "total", m->total);
        json_out_uint(j, "samples", m->samples);
        json_out_object_end(j);
}

static void put_frames(struct json_out *j, const struct frame_table *frames, const uint32_t *used, uint32_t count)
{
        json_out_array(j, "frames");
        for (uint32_t i = 0; i < count; i++) {
                const struct query_frame *f = &frames->items[used[i]];

                json_out_array(j, NULL);
                json_out_str(j, NULL, f->function);
                json_out_str(j, NULL, f->file);
                json_out_str(j, NULL, f->mapping);
                json_out_int(j, NULL, f->kind);
                json_out_str(j, NULL, f->kind == FRAME_UNRESOLVED ? f->state : "");
                json_out_array_end(j);
        }
        json_out_array_end(j);
}

enum status flame_put_json(const struct flame *f, struct buf *ret, struct error *err)
{
        const struct tree *t = f->tree;
        _cleanup_free_ uint32_t *order = NULL;
        _cleanup_free_ uint32_t *position = calloc(t->count, sizeof *position); /* of a node in the answer */
        _cleanup_free_ uint32_t *frame_number = calloc(f->frames->count + 1u, sizeof *frame_number); /* plus one */
        _cleanup_free_ uint32_t *used = calloc(f->frames->count + 1u, sizeof *used);
        uint32_t count, used_count = 0;
        struct json_out j;
        enum status st;

        if (!position || !frame_number || !used)
                return error_no_memory(err);
        st = tree_order(t, f->max_nodes, &order, &count, err);
        if (st)
                return st;
        for (uint32_t i = 1; i < count; i++) {
                uint32_t frame = t->nodes[order[i]].frame;

                if (!frame_number[frame]) {
                        used[used_count++] = frame;
                        frame_number[frame] = used_count;
                }
        }
        json_out_init(&j, ret);
        json_out_object(&j, NULL);
        json_out_int(&j, "version", 1);
        json_out_str(&j, "type",
                 *f->sides[0]->sums.type || !f->sides[1] ? f->sides[0]->sums.type : f->sides[1]->sums.type);
        json_out_str(&j, "unit",
                 *f->sides[0]->sums.unit || !f->sides[1] ? f->sides[0]->sums.unit : f->sides[1]->sums.unit);
        json_out_str(&j, "focus", f->focus->function);
        json_out_bool(&j, "inverted", f->focus->view == TREE_CALLERS);
        json_out_array(&j, "sides");
        for (int side = 0; side < 2 && f->sides[side]; side++)
                put_side(&j, f->sides[side]);
        json_out_array_end(&j);
        put_frames(&j, f->frames, used, used_count);
        json_out_uint(&j, "left_out", t->count - count);
        json_out_array(&j, "nodes");
        for (uint32_t i = 0; i < count; i++) {
                const struct tree_node *n = &t->nodes[order[i]];

                position[order[i]] = i;
                json_out_array(&j, NULL);
                json_out_int(&j, NULL, i ? (int64_t)position[n->parent] : -1);
                json_out_int(&j, NULL, i ? (int64_t)frame_number[n->frame] - 1 : -1);
                json_out_int(&j, NULL, n->self[0]);
                json_out_int(&j, NULL, n->total[0]);
                json_out_int(&j, NULL, n->line);
                if (f->sides[1]) {
                        json_out_int(&j, NULL, n->self[1]);
                        json_out_int(&j, NULL, n->total[1]);
                }
                json_out_array_end(&j);
        }
        json_out_array_end(&j);
        json_out_object_end(&j);
        return buf_status(ret, err, "flame graph");
}

enum status flame_put_html(const struct flame *f, struct buf *ret, struct error *err)
{
        _cleanup_buf_ struct buf json;
        enum status st;

        buf_init(&json, ret->max);
        st = flame_put_json(f, &json, err);
        if (st)
                return st;
        page_put_flame(ret, (const char *)json.data, json.size);
        return buf_status(ret, err, "flame graph page");
}

/* ---- text ---------------------------------------------------------------------------------- */

enum status flame_put_text(const struct flame *f, struct buf *ret, struct error *err)
{
        const struct merged *m = f->sides[0];
        _cleanup_free_ uint32_t *order = NULL;
        char from[32], to[32], value[40];
        uint32_t count;
        enum status st = tree_order(f->tree, f->max_nodes, &order, &count, err);

        if (st)
                return st;
        buf_printf(ret, "%s in %" PRIu64 " samples, %s to %s UTC%s%s\n%s\n\n",
                   value_text(m->total, m->sums.unit, value, 40), m->samples,
                   time_utc_text(m->selection->from_unix_ns, from, sizeof from),
                   time_utc_text(m->selection->to_unix_ns, to, sizeof to), *m->selection->text ? ", " : "",
                   m->selection->text, m->sums.type);
        for (uint32_t i = 1; i < count; i++) {
                const struct tree_node *n = &f->tree->nodes[order[i]];
                const struct query_frame *frame = &f->frames->items[n->frame];
                int64_t total = f->tree->nodes[0].total[0];
                double share = total ? 100.0 * (double)n->total[0] / (double)total : 0;

                if (share < 0.5)
                        continue;
                buf_printf(ret, "%6.2f%% %6.2f%%  %*s%s", share, 100.0 * (double)n->self[0] / (double)total,
                           2 * (int)(n->depth < 200 ? n->depth - 1 : 199), "", frame->function);
                if (*frame->file && n->line)
                        buf_printf(ret, "  %s:%" PRId64, frame->file, n->line);
                buf_append_u8(ret, '\n');
        }
        return buf_status(ret, err, "call tree");
}

/* ---- folded --------------------------------------------------------------------------------- */

/* ';' and line ends would be read as structure. */
static void put_folded_frame(struct buf *ret, const struct query_frame *f)
{
        for (const char *c = f->function; *c; c++)
                buf_append_u8(ret, *c == ';' ? ':' : *c == '\n' || *c == '\r' ? ' ' : (uint8_t)*c);
        if (f->kind == FRAME_KERNEL)
                buf_append_str(ret, "_[k]");
}

enum status flame_put_folded(const struct flame *f, struct buf *ret, struct error *err)
{
        const struct tree *t = f->tree;
        uint32_t path[LIMIT_TREE_DEPTH + 1];

        for (uint32_t i = 0; i < t->count && !ret->failed; i++) {
                uint32_t depth = t->nodes[i].depth;

                if (t->nodes[i].self[0] == 0)
                        continue;
                for (uint32_t node = i, at = depth; at > 0; node = t->nodes[node].parent)
                        path[--at] = node;
                if (depth == 0)
                        buf_append_str(ret, "[no stack]");
                for (uint32_t d = 0; d < depth; d++) {
                        if (d)
                                buf_append_u8(ret, ';');
                        put_folded_frame(ret, &f->frames->items[t->nodes[path[d]].frame]);
                }
                buf_printf(ret, " %" PRId64 "\n", t->nodes[i].self[0]);
        }
        return buf_status(ret, err, "folded stacks");
}
