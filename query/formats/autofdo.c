/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operation "autofdo": a sample profile as text for clang -fprofile-sample-use.
 *
 * A profile is a tree. Its roots are functions of the object; other nodes are calls that are inlined in the sampled
 * build, keyed by the offset of the call from the first line of the calling function. Each node has its samples by line
 * offset. Only leaf locations count, since time is spent there. A stack whose leaf lacks a line, or the first line of
 * one of its functions, is omitted.
 *
 * Source: clang, "Sample Profile Text Format"; LLVM SampleProfReader.cpp.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text/number_text.h"
#include "query/engine/loaded_sides.h"
#include "query/engine/unit_text.h"

#define LIMIT_LINE_OFFSET 0xffff /* line offsets of the format have 16 bits */
#define NO_NODE UINT32_MAX

struct profile_node {
        const char *name; /* borrowed from the frame table */
        uint32_t parent;  /* NO_NODE: a root */
        uint32_t offset;  /* of the call in the parent */
        uint64_t total;   /* including inlined calls */
};

struct line_count {
        uint32_t node, offset;
        uint64_t count;
};

struct sample_profile {
        struct query_call *q;
        const struct loaded_sides *l;
        struct number_map node_numbers, line_numbers;
        struct profile_node *nodes; /* parents before children; owned */
        struct line_count *lines;   /* owned */
        size_t node_count, node_capacity, line_count, line_capacity;
        uint32_t *order; /* nodes by parent and offset; owned */
        size_t *first_child, *first_line;
        struct counted_samples left_out; /* omitted samples */
        uint64_t unit;                   /* profile value per count */
};

static void sample_profile_deinit(struct sample_profile *p)
{
        number_map_deinit(&p->node_numbers);
        number_map_deinit(&p->line_numbers);
        free(p->nodes);
        free(p->lines);
        free(p->order);
        free(p->first_child);
        free(p->first_line);
}

/* ---- tree ---- */

/* The linkage name, NULL when the format cannot represent it. */
static const char *get_symbol_name(const struct query_frame *f)
{
        const char *name = *f->linkage_name ? f->linkage_name : f->function;

        if (f->kind == FRAME_KERNEL || f->kind == FRAME_UNRESOLVED || *name == ' ')
                return NULL;
        for (const char *c = name; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        return NULL;
        return name;
}

static enum status find_or_add_node(struct sample_profile *p, uint32_t parent, uint32_t offset, const char *name,
                                    uint32_t *ret)
{
        struct hash128 hash = hash_bytes128(name, strlen(name));
        struct number_key key = { { [4] = parent, [5] = offset } };
        bool fresh = false;
        enum status st;

        memcpy(key.parts, hash.bytes, sizeof hash.bytes);
        st = number_map_get(&p->node_numbers, &key, ret, &fresh, p->q->err);
        if (st || !fresh)
                return st;
        if (!array_reserve(&p->nodes, &p->node_capacity, p->node_count))
                return error_no_memory(p->q->err);
        p->nodes[p->node_count++] = (struct profile_node){ .name = name, .parent = parent, .offset = offset };
        return ST_OK;
}

static enum status add_line_count(struct sample_profile *p, uint32_t node, uint32_t offset, uint64_t count)
{
        const struct number_key key = { { node, offset } };
        uint32_t number;
        bool fresh = false;
        enum status st = number_map_get(&p->line_numbers, &key, &number, &fresh, p->q->err);

        if (!st && fresh) {
                if (!array_reserve(&p->lines, &p->line_capacity, p->line_count))
                        return error_no_memory(p->q->err);
                p->lines[p->line_count++] = (struct line_count){ node, offset, 0 };
        }
        if (!st)
                p->lines[number].count += count;
        return st;
}

/* Whether each frame of the location has a name and a line offset from its function's first line. */
static bool is_location_placed(const struct sample_profile *p, uint32_t location)
{
        const struct location_frames *l = &p->l->sides[0].locations;

        if (l->end[location] - l->first[location] > LIMIT_LOCATION_FRAMES) /* possible in tables of other writers */
                return false;
        for (uint32_t k = l->first[location]; k < l->end[location]; k++)
                if (!get_symbol_name(&p->l->frames.items[l->frames[k]]) || l->start_lines[k] <= 0 ||
                    l->lines[k] < l->start_lines[k] || l->lines[k] - l->start_lines[k] > LIMIT_LINE_OFFSET)
                        return false;
        return l->first[location] < l->end[location];
}

static enum status add_leaf(struct sample_profile *p, const struct merged_entry *e)
{
        const struct merged_profile *m = &p->l->sides[0];
        const struct location_frames *l = &m->locations;
        size_t at = m->stacks->first[e->stack];
        uint64_t count = e->value > 0 ? ((uint64_t)e->value + p->unit - 1) / p->unit : 0;
        uint32_t node = NO_NODE, offset = 0;
        enum status st = work_meter_add(p->q->meter, 32, p->q->err);

        if (st)
                return st;
        while (at < m->stacks->first[e->stack + 1] &&
               l->first[m->stacks->indexes[at]] == l->end[m->stacks->indexes[at]])
                at++; /* hidden: its cost is attributed to the caller */
        if (at == m->stacks->first[e->stack + 1] || !is_location_placed(p, m->stacks->indexes[at])) {
                sample_count_add(&p->left_out, e->samples);
                return ST_OK;
        }
        for (uint32_t k = l->first[m->stacks->indexes[at]]; !st && k < l->end[m->stacks->indexes[at]]; k++) {
                st = find_or_add_node(p, node, offset, get_symbol_name(&p->l->frames.items[l->frames[k]]), &node);
                if (!st)
                        p->nodes[node].total += count;
                offset = (uint32_t)(l->lines[k] - l->start_lines[k]);
        }
        return st ? st : add_line_count(p, node, offset, count);
}

/* ---- text ---- */

static int compare_nodes(const void *x, const void *y, void *context)
{
        const struct profile_node *nodes = context, *a = &nodes[*(const uint32_t *)x],
                                  *b = &nodes[*(const uint32_t *)y];

        if (a->parent != b->parent)
                return a->parent < b->parent ? -1 : 1;
        if (a->parent == NO_NODE && a->total != b->total)
                return a->total > b->total ? -1 : 1;
        if (a->offset != b->offset)
                return a->offset < b->offset ? -1 : 1;
        return strcmp(a->name, b->name);
}

static int compare_line_counts(const void *x, const void *y, void *context)
{
        const struct line_count *a = x, *b = y;

        (void)context;
        if (a->node != b->node)
                return a->node < b->node ? -1 : 1;
        return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Roots are last in `order`, since NO_NODE is the greatest parent. */
static enum status sort_profile(struct sample_profile *p)
{
        size_t at = 0;
        enum status st;

        p->order = calloc(p->node_count + 1, sizeof *p->order);
        p->first_child = calloc(p->node_count + 1, sizeof *p->first_child);
        p->first_line = calloc(p->node_count + 1, sizeof *p->first_line);
        if (!p->order || !p->first_child || !p->first_line)
                return error_no_memory(p->q->err);
        for (size_t i = 0; i < p->node_count; i++)
                p->order[i] = (uint32_t)i;
        st = work_meter_sort(p->q->meter, p->order, p->node_count, sizeof *p->order, compare_nodes, p->nodes,
                             p->q->err);
        if (!st)
                st = work_meter_sort(p->q->meter, p->lines, p->line_count, sizeof *p->lines, compare_line_counts, NULL,
                                     p->q->err);
        for (size_t i = 0; !st && i <= p->node_count; i++) {
                p->first_child[i] = at;
                while (at < p->node_count && p->nodes[p->order[at]].parent == i)
                        at++;
        }
        at = 0;
        for (size_t i = 0; !st && i <= p->node_count; i++) {
                p->first_line[i] = at;
                while (at < p->line_count && p->lines[at].node == i)
                        at++;
        }
        return st;
}

/* The samples and children of a node. depth is bounded by the frames of a location. */
static void put_node_body(const struct sample_profile *p, uint32_t node, int depth, struct buf *ret)
{
        if (work_meter_add(p->q->meter, 64, NULL))
                return;
        for (size_t i = p->first_line[node]; i < p->first_line[node + 1]; i++)
                buf_printf(ret, "%*s%" PRIu32 ": %" PRIu64 "\n", depth, "", p->lines[i].offset, p->lines[i].count);
        for (size_t i = p->first_child[node]; i < p->first_child[node + 1]; i++) {
                const struct profile_node *child = &p->nodes[p->order[i]];

                buf_printf(ret, "%*s%" PRIu32 ": %s:%" PRIu64 "\n", depth, "", child->offset, child->name,
                           child->total);
                put_node_body(p, p->order[i], depth + 1, ret);
        }
}

enum status query_answer_autofdo(struct query_call *q)
{
        _cleanup_loaded_sides_ struct loaded_sides l = { 0 };
        _cleanup_(sample_profile_deinit) struct sample_profile p = { .q = q, .l = &l };
        enum status st;
        double unit_ns;

        st = loaded_sides_load(q, NULL, &l);
        if (st)
                return st;
        unit_ns = get_unit_ns(l.sides[0].unit);
        p.unit = unit_ns > 0 && unit_ns < 1e6 ? (uint64_t)(1e6 / unit_ns) : 1; /* counts of times are milliseconds */
        for (size_t i = 0; !st && i < l.sides[0].count; i++)
                st = add_leaf(&p, &l.sides[0].entries[i]);
        if (!st)
                st = sort_profile(&p);
        if (st)
                return st;
        q->content_type = content_type_text;
        for (size_t i = p.first_child[p.node_count]; i < p.node_count; i++) {
                const struct profile_node *root = &p.nodes[p.order[i]];

                buf_printf(q->ret, "%s:%" PRIu64 ":0\n", root->name, root->total);
                put_node_body(&p, p.order[i], 1, q->ret);
        }
        if (sample_count_round(p.left_out))
                buf_printf(
                        &q->note, "%s%s a line, or the first line of a function, which senders may provide",
                        q->note.size ? "; " : "not included: ",
                        COUNTED(sample_count_round(p.left_out), "sample whose leaf lacks", "samples whose leaf lacks"));
        return buf_status(q->ret, q->err, "sample profile");
}
