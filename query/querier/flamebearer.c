/* SPDX-License-Identifier: Apache-2.0 */
#include "query/querier/flamebearer.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash/hash_table.h"
#include "common/limits.h"

#define ROOT_NAME "total"
#define OTHER_NAME "other"

/* ---- frames by name ---- */

struct name_lookup {
        const struct frame_table *frames;
        struct hash_table table; /* frames by name */
};

static bool is_same_name(const void *context, uint32_t number, const void *key, size_t size)
{
        const char *name = ((const struct name_lookup *)context)->frames->items[number].function;

        return strlen(name) == size && memcmp(name, key, size) == 0;
}

/* For each frame, find the first frame with the same name. */
static enum status find_first_frames(struct querier_call *c, struct name_lookup *names, uint32_t *first)
{
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < names->frames->count; i++) {
                const char *name = names->frames->items[i].function;
                size_t n = strlen(name);
                uint32_t hash = hash_table_hash(name, n);

                st = work_meter_add(c->q.meter, 16 + n / 16, c->q.err);
                if (st || hash_table_find(&names->table, hash, is_same_name, names, name, n, &first[i]))
                        continue;
                st = hash_table_reserve(&names->table, c->q.err);
                if (!st)
                        hash_table_insert(&names->table, hash, i);
                first[i] = i;
        }
        return st;
}

enum status merge_frames_by_name(struct querier_call *c, struct loaded_sides *l)
{
        _cleanup_free_ uint32_t *first = calloc(l->frames.count + (size_t)1, sizeof *first);
        struct name_lookup names = { .frames = &l->frames };
        enum status st = first ? find_first_frames(c, &names, first) : error_no_memory(c->q.err);

        hash_table_deinit(&names.table);
        for (unsigned side = 0; !st && side < l->side_count; side++) {
                const struct merged_profile *m = &l->sides[side];
                uint32_t end = 0;

                for (size_t i = 0; i < m->stacks->location_count; i++)
                        end = m->locations.end[i] > end ? m->locations.end[i] : end;
                for (uint32_t k = 0; k < end; k++)
                        m->locations.frames[k] = first[m->locations.frames[k]];
                st = work_meter_add(c->q.meter, end + m->stacks->location_count, c->q.err);
        }
        return st;
}

/* ---- flame graph ---- */

struct flame_builder {
        struct querier_call *c;
        const struct loaded_sides *l;
        const struct drawing *d;
        struct flamebearer *f;
        uint32_t *name_numbers; /* by frame; 0: not assigned yet, since 0 is the root's number */
        uint32_t other_number;
        int64_t (*left)[2]; /* by placed node: left edge of its next child */
        int64_t (*ends)[2]; /* by level: right edge of the last node */
};

static void flame_builder_deinit(struct flame_builder *b)
{
        free(b->name_numbers);
        free(b->left);
        free(b->ends);
}

static enum status add_flame_name(struct flame_builder *b, const char *text, uint32_t *number)
{
        b->f->names[b->f->name_count] = querier_copy_text(b->c, text, strlen(text));
        *number = (uint32_t)b->f->name_count++;
        return b->f->names[*number] ? ST_OK : querier_get_failure(b->c);
}

static enum status get_name_number(struct flame_builder *b, const struct drawn_node *n, uint32_t *ret)
{
        uint32_t *number;

        if (!n->depth) {
                *ret = 0;
                return ST_OK;
        }
        number = n->frame == DRAWN_OTHER ? &b->other_number : &b->name_numbers[n->frame];
        if (!*number) {
                enum status st = add_flame_name(
                        b, n->frame == DRAWN_OTHER ? OTHER_NAME : b->l->frames.items[n->frame].function, number);

                if (st)
                        return st;
        }
        *ret = *number;
        return ST_OK;
}

/* Allocate levels with room for their nodes, and the names. */
static enum status allocate_flame(struct flame_builder *b)
{
        size_t values = b->l->side_count > 1 ? 7 : 4;
        _cleanup_free_ uint32_t *counts = calloc(b->d->count + (size_t)1, sizeof *counts);
        struct flamebearer *f = b->f;

        b->name_numbers = calloc(b->l->frames.count + (size_t)1, sizeof *b->name_numbers);
        b->left = calloc(b->d->count + (size_t)1, sizeof *b->left);
        if (!counts || !b->name_numbers || !b->left)
                return error_no_memory(b->c->q.err);
        for (uint32_t i = 0; i < b->d->count; i++) {
                counts[b->d->nodes[i].depth]++;
                f->level_count = b->d->nodes[i].depth >= f->level_count ? b->d->nodes[i].depth + 1 : f->level_count;
        }
        b->ends = calloc(f->level_count + 1, sizeof *b->ends);
        if (!b->ends)
                return error_no_memory(b->c->q.err);
        f->names = querier_alloc(b->c, b->d->count + (size_t)2, sizeof *f->names);
        f->levels = querier_alloc(b->c, f->level_count + 1, sizeof(*f->levels));
        if (!f->names || !f->levels)
                return querier_get_failure(b->c);
        for (size_t i = 0; i < f->level_count; i++) {
                f->levels[i] = querier_alloc(b->c, 1, sizeof(**f->levels));
                if (!f->levels[i])
                        return querier_get_failure(b->c);
                querier__level__init(f->levels[i]);
                f->levels[i]->values = querier_alloc(b->c, counts[i] * values, sizeof(int64_t));
                if (!f->levels[i]->values)
                        return querier_get_failure(b->c);
        }
        return ST_OK;
}

static int64_t subtract_wrapping(int64_t a, int64_t b)
{
        return (int64_t)((uint64_t)a - (uint64_t)b);
}

static enum status put_flame_node(struct flame_builder *b, uint32_t node)
{
        const struct drawn_node *n = &b->d->nodes[node];
        Querier__Level *level = b->f->levels[n->depth];
        uint32_t name;
        enum status st = get_name_number(b, n, &name);

        for (unsigned side = 0; !st && side < b->l->side_count; side++) {
                int64_t begin = n->depth ? b->left[n->parent][side] : 0;

                level->values[level->n_values++] = subtract_wrapping(begin, b->ends[n->depth][side]);
                level->values[level->n_values++] = n->total[side];
                level->values[level->n_values++] = n->self[side];
                b->ends[n->depth][side] = begin;
                add_saturating(&b->ends[n->depth][side], n->total[side]);
                if (n->depth)
                        b->left[n->parent][side] = b->ends[n->depth][side];
                b->left[node][side] = begin;
                add_saturating(&b->left[node][side], n->self[side]);
                b->f->max_self = n->self[side] > b->f->max_self ? n->self[side] : b->f->max_self;
        }
        if (!st)
                level->values[level->n_values++] = name;
        return st ? st : work_meter_add(b->c->q.meter, 64, b->c->q.err);
}

enum status flamebearer_make(struct querier_call *c, const struct loaded_sides *l, const struct drawing *d,
                             struct flamebearer *ret)
{
        struct flamebearer f = { 0 };
        _cleanup_(flame_builder_deinit) struct flame_builder b = { .c = c, .l = l, .d = d, .f = &f };
        uint32_t root;
        enum status st = allocate_flame(&b);

        if (!st)
                st = add_flame_name(&b, ROOT_NAME, &root);
        for (uint32_t i = 0; !st && i < d->count; i++)
                st = put_flame_node(&b, i);
        if (!st)
                *ret = f;
        return st;
}

/* ---- tree ---- */

enum status tree_bytes_make(struct querier_call *c, const struct loaded_sides *l, const struct drawing *d,
                            ProtobufCBinaryData *ret)
{
        _cleanup_free_ uint32_t *children = calloc(d->count + (size_t)1, sizeof *children);
        _cleanup_buf_ struct buf b;
        enum status st = ST_OK;

        buf_init_budget(&b, LIMIT_RESPONSE_BYTES, MEMORY_QUERIES);
        if (!children)
                return error_no_memory(c->q.err);
        if (d->count <= 1)
                return ST_OK; /* ret stays empty */
        for (uint32_t i = 1; i < d->count; i++)
                children[d->nodes[i].parent]++;
        for (uint32_t i = 0; !st && i < d->count; i++) {
                const struct drawn_node *n = &d->nodes[i];
                const char *name = !i ? "" : n->frame == DRAWN_OTHER ? OTHER_NAME : l->frames.items[n->frame].function;

                buf_append_uleb128(&b, strlen(name));
                buf_append_str(&b, name);
                buf_append_uleb128(&b, (uint64_t)n->self[0]);
                buf_append_uleb128(&b, children[i]);
                st = work_meter_add(c->q.meter, 64, c->q.err);
        }
        if (!st)
                st = buf_status(&b, c->q.err, "tree");
        if (st)
                return st;
        ret->data = querier_alloc(c, b.size, 1);
        if (!ret->data)
                return querier_get_failure(c);
        memcpy(ret->data, b.data, b.size);
        ret->len = b.size;
        return ST_OK;
}
