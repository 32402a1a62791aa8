/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "profile-store/scan_internal.h"
#include "symbolizer/symbol_reason.h"

static bool is_resolved(const struct scan_location *l)
{
        enum symbol_state state;

        return symbol_state_parse(l->state, &state) && !symbol_state_is_reason(state);
}

/* Objects are told apart by build-id, or by path where there is none, and by the reason. */
static enum status key_of_location(const struct scan_location *l, struct buf *scratch, struct hash128 *ret,
                                   struct error *err)
{
        enum status st;

        buf_clear(scratch);
        buf_append_u8(scratch, l->build_id.size);
        buf_append(scratch, l->build_id.bytes, l->build_id.size);
        buf_append_str(scratch, l->state);
        if (!l->build_id.size)
                buf_append_str(scratch, l->mapping);
        st = buf_status(scratch, err, "a missing object");
        if (!st)
                *ret = hash128(scratch->data, scratch->size);
        return st;
}

struct counting {
        struct work_meter *meter;
        struct key_map objects; /* key to number in items */
        uint32_t *object_of;    /* location to number in items, UINT32_MAX: resolved */
        size_t *counted_in;     /* item to the last stack + 1 that counted for it */
        struct scan_missing *items;
        size_t count;
};

static void counting_deinit(struct counting *c)
{
        key_map_deinit(&c->objects);
        free(c->object_of);
        free(c->counted_in);
        free(c->items);
}

static enum status find_objects(struct counting *c, const struct scan_stacks *s, struct error *err)
{
        _cleanup_buf_ struct buf scratch;
        enum status st = ST_OK;

        buf_init(&scratch, SIZE_MAX / 2);
        for (size_t i = 0; !st && i < s->location_count; i++) {
                const struct scan_location *l = &s->locations[i];
                struct hash128 key;
                uint64_t *number;
                bool added;

                c->object_of[i] = UINT32_MAX;
                if (is_resolved(l))
                        continue;
                st = work_meter_add(c->meter, 16, err);
                if (!st)
                        st = key_of_location(l, &scratch, &key, err);
                if (!st)
                        st = key_map_put(&c->objects, &key, c->count, &added, &number, err);
                if (st)
                        break;
                if (added)
                        c->items[c->count++] = (struct scan_missing){ .build_id = l->build_id,
                                                                      .mapping = l->mapping,
                                                                      .state = l->state };
                c->object_of[i] = (uint32_t)*number;
                c->items[*number].locations++;
        }
        return st;
}

static enum status count_samples(struct counting *c, const struct scan_stacks *s, const struct stack_sums *sums,
                                 struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < s->count; i++) {
                st = work_meter_add(c->meter, 1 + s->first[i + 1] - s->first[i], err);
                for (size_t k = s->first[i]; k < s->first[i + 1]; k++) {
                        uint32_t object = c->object_of[s->indexes[k]];

                        if (object == UINT32_MAX || c->counted_in[object] == i + 1)
                                continue;
                        c->counted_in[object] = i + 1;
                        c->items[object].samples += (int64_t)sums->items[i].samples;
                }
        }
        return st;
}

static int most_samples_first(const void *a, const void *b, void *context)
{
        const struct scan_missing *x = a, *y = b;

        (void)context;
        if (x->samples != y->samples)
                return x->samples < y->samples ? 1 : -1;
        return build_id_compare(&x->build_id, &y->build_id);
}

static enum status count_missing(struct store_scan *scan, const struct stack_sums *sums, struct scan_missing **ret,
                                 size_t *count_ret, struct error *err)
{
        _cleanup_(counting_deinit) struct counting c = { .meter = scan->meter };
        const struct scan_stacks *s;
        struct scan_missing *items;
        enum status st = store_scan_resolve(scan, sums, &s, err);

        if (st)
                return st;
        c.object_of = calloc(s->location_count + 1, sizeof *c.object_of);
        c.counted_in = calloc(s->location_count + 1, sizeof *c.counted_in);
        c.items = calloc(s->location_count + 1, sizeof *c.items);
        if (!c.object_of || !c.counted_in || !c.items)
                return error_no_memory(err);
        st = find_objects(&c, s, err);
        if (!st)
                st = count_samples(&c, s, sums, err);
        if (!st)
                st = work_meter_sort(scan->meter, c.items, c.count, sizeof *c.items, most_samples_first, NULL, err);
        if (st)
                return st;
        items = arena_alloc_array(&scan->arena, c.count + 1, sizeof *items);
        if (!items)
                return scan_full(err);
        memcpy(items, c.items, c.count * sizeof *items);
        *ret = items;
        *count_ret = c.count;
        return ST_OK;
}

enum status store_scan_missing(struct store_scan *scan, const struct scan_filter *filter, struct scan_missing **ret,
                               size_t *count_ret, struct error *err)
{
        struct stack_sums sums;
        enum status st = scan_count_samples(scan, filter, &sums, err);

        if (st)
                return st;
        st = count_missing(scan, &sums, ret, count_ret, err);
        free(sums.items);
        return st;
}
