/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/memory/array.h"

#include <assert.h>
#include "profile-store/scan/scan_internal.h"
#include "profile-store/scan/stack_counts.h"
#include "symbol-index/symbol_state.h"

/* ---- locations without frames, by object and reason ---- */

static bool is_resolved_location(const struct scan_location *l)
{
        enum symbol_state state;

        return symbol_state_parse(l->state, &state) && !symbol_state_is_reason(state);
}

/* Objects are distinguished by build-id, or by path if they have none, and by reason. */
static enum status make_missing_key(const struct scan_location *l, struct buf *scratch, struct hash128 *ret,
                                    struct error *err)
{
        enum status st;

        buf_clear(scratch);
        buf_append_u8(scratch, l->build_id->size);
        buf_append(scratch, l->build_id->bytes, l->build_id->size);
        buf_append_str(scratch, l->state);
        if (!l->build_id->size)
                buf_append_str(scratch, l->mapping);
        st = buf_status(scratch, err, "a missing object");
        if (!st)
                *ret = hash_bytes128(scratch->data, scratch->size);
        return st;
}

struct missing_counts {
        struct work_meter *meter;
        struct key_map objects;    /* key to index in items */
        uint32_t *location_object; /* location to index in items; UINT32_MAX: resolved */
        size_t *counted_in;        /* by item: 1 + the last stack that counted for it */
        struct scan_missing *items;
        size_t count;
};

static void missing_counts_deinit(struct missing_counts *c)
{
        key_map_deinit(&c->objects);
        free(c->location_object);
        free(c->counted_in);
        free(c->items);
}

static enum status find_missing_objects(struct missing_counts *c, const struct scan_stacks *s, struct error *err)
{
        _cleanup_buf_ struct buf scratch;
        enum status st = ST_OK;

        buf_init(&scratch, SIZE_MAX / 2);
        for (size_t i = 0; !st && i < s->location_count; i++) {
                const struct scan_location *l = &s->locations[i];
                struct hash128 key;
                uint64_t *number;
                bool added;

                c->location_object[i] = UINT32_MAX;
                if (is_resolved_location(l))
                        continue;
                st = work_meter_add(c->meter, 16, err);
                if (!st)
                        st = make_missing_key(l, &scratch, &key, err);
                if (!st)
                        st = key_map_put(&c->objects, &key, c->count, &added, &number, err);
                if (st)
                        break;
                if (added)
                        c->items[c->count++] = (struct scan_missing){ .build_id = *l->build_id,
                                                                      .mapping = l->mapping,
                                                                      .state = l->state };
                c->location_object[i] = (uint32_t)*number;
                c->items[*number].locations++;
        }
        return st;
}

static enum status count_object_samples(struct missing_counts *c, const struct scan_stacks *s,
                                        const struct counted_samples *samples, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < s->count; i++) {
                st = work_meter_add(c->meter, 1 + s->first[i + 1] - s->first[i], err);
                for (size_t k = s->first[i]; k < s->first[i + 1]; k++) {
                        uint32_t object = c->location_object[s->indexes[k]];

                        if (object == UINT32_MAX || c->counted_in[object] == i + 1)
                                continue;
                        c->counted_in[object] = i + 1;
                        sample_count_add(&c->items[object].samples, samples[i]);
                }
        }
        return st;
}

static int compare_missing_samples(const void *a, const void *b, void *context)
{
        const struct scan_missing *x = a, *y = b;
        int order = sample_count_compare(y->samples, x->samples);

        (void)context;
        return order ? order : build_id_compare(&x->build_id, &y->build_id);
}

static enum status build_missing_list(struct store_scan *scan, const struct stack_counts *counts,
                                      struct scan_missing **ret, size_t *count_ret, struct error *err)
{
        _cleanup_(missing_counts_deinit) struct missing_counts c = { .meter = scan->meter,
                                                                     .objects.memory.use = MEMORY_QUERIES };
        const struct scan_stacks *s;
        struct scan_missing *items;
        enum status st = store_scan_resolve(scan, &counts->sums.stacks, &s, err);

        if (st)
                return st;
        c.location_object = calloc(s->location_count + 1, sizeof *c.location_object);
        c.counted_in = calloc(s->location_count + 1, sizeof *c.counted_in);
        c.items = calloc(s->location_count + 1, sizeof *c.items);
        if (!c.location_object || !c.counted_in || !c.items)
                return error_no_memory(err);
        st = find_missing_objects(&c, s, err);
        if (!st)
                st = count_object_samples(&c, s, counts->samples, err);
        if (!st)
                st = work_meter_sort(scan->meter, c.items, c.count, sizeof *c.items, compare_missing_samples, NULL,
                                     err);
        if (st)
                return st;
        items = arena_alloc_array(&scan->arena, c.count + 1, sizeof *items);
        if (!items)
                return set_scan_too_big(err);
        memcpy(items, c.items, c.count * sizeof *items);
        *ret = items;
        *count_ret = c.count;
        return ST_OK;
}

enum status store_scan_list_missing(struct store_scan *scan, const struct scan_filter *filter,
                                    struct scan_missing **ret, size_t *count_ret, struct error *err)
{
        _cleanup_stack_counts_ struct stack_counts counts = { 0 };
        enum status st = stack_counts_load(scan, filter, NULL, &counts, err);

        return st ? st : build_missing_list(scan, &counts, ret, count_ret, err);
}

enum status store_scan_count_unresolved(struct store_scan *scan, const struct scan_filter *filter,
                                        uint64_t samples_ret[static SYMBOL_STATE_COUNT], struct error *err)
{
        struct counted_samples by_reason[SYMBOL_STATE_COUNT] = { 0 };
        _cleanup_stack_counts_ struct stack_counts counts = { 0 };
        const struct scan_stacks *s = NULL;
        enum status st = stack_counts_load(scan, filter, NULL, &counts, err);

        if (!st)
                st = store_scan_resolve(scan, &counts.sums.stacks, &s, err);
        for (size_t i = 0; !st && i < s->count; i++) {
                uint32_t reasons = 0;

                st = work_meter_add(scan->meter, 1 + s->first[i + 1] - s->first[i], err);
                for (size_t k = s->first[i]; k < s->first[i + 1]; k++) {
                        enum symbol_state state;

                        if (symbol_state_parse(s->locations[s->indexes[k]].state, &state) &&
                            symbol_state_is_reason(state))
                                reasons |= 1u << state;
                }
                for (; reasons; reasons &= reasons - 1)
                        sample_count_add(&by_reason[__builtin_ctz(reasons)], counts.samples[i]);
        }
        for (size_t i = 0; i < SYMBOL_STATE_COUNT; i++)
                samples_ret[i] = sample_count_round(by_reason[i]);
        return st;
}

/* ---- objects for which debuginfo would help ---- */

enum gain { GAIN_NONE, GAIN_NAMES, GAIN_LINES };

struct upload_object {
        struct scan_upload shown;
        enum gain gain;
        struct counted_samples by_state[SYMBOL_STATE_COUNT]; /* once for each frame */
        size_t counted_in;                                   /* 1 + the last stack that counted for it */
};

struct upload_counts {
        struct work_meter *meter;
        struct key_map numbers;    /* (build-id, gain) to index in objects */
        uint32_t *location_object; /* by location: index in objects; UINT32_MAX: no gain */
        struct upload_object *objects;
        size_t count, capacity;
};

static void upload_counts_deinit(struct upload_counts *c)
{
        key_map_deinit(&c->numbers);
        free(c->location_object);
        free(c->objects);
}

static enum symbol_state get_location_state(const struct scan_location *l)
{
        enum symbol_state state;

        return symbol_state_parse(l->state, &state) ? state : SYMBOL_NO_DEBUGINFO;
}

static bool has_source_file(const struct scan_location *l)
{
        for (uint32_t i = 0; i < l->frame_count; i++) {
                if (*l->frames[i].file)
                        return true;
        }
        return false;
}

/* Addresses not covered by full debuginfo are padding or data, or belong to no object: no gain. */
static enum gain get_location_gain(const struct scan_location *l)
{
        enum symbol_state state = get_location_state(l);

        if (!l->build_id->size)
                return GAIN_NONE;
        switch (state) {
        case SYMBOL_RESOLVED:
                return l->quality <= QUALITY_SYMTAB ? GAIN_LINES : GAIN_NONE;
        case SYMBOL_SENDER: /* names without files, as from kallsyms: symbols with lines help most */
                return l->address && !has_source_file(l) ? GAIN_LINES : GAIN_NONE;
        case SYMBOL_UNCOVERED:
        case SYMBOL_OUTSIDE:
                return l->quality < QUALITY_LINES ? GAIN_NAMES : GAIN_NONE;
        default:
                return symbol_state_wants_debuginfo(state) ? GAIN_NAMES : GAIN_NONE;
        }
}

static enum status find_or_add_object(struct upload_counts *c, const struct scan_location *l, enum gain gain,
                                      uint32_t *ret, struct error *err)
{
        uint8_t bytes[sizeof l->build_id->bytes + 1];
        struct hash128 key;
        uint64_t *number;
        bool added;
        enum status st;

        memcpy(bytes, l->build_id->bytes, l->build_id->size);
        bytes[l->build_id->size] = (uint8_t)gain;
        key = hash_bytes128(bytes, l->build_id->size + (size_t)1);
        st = key_map_put(&c->numbers, &key, c->count, &added, &number, err);
        if (st)
                return st;
        if (added && !array_reserve(&c->objects, &c->capacity, c->count))
                return error_no_memory(err);
        if (added)
                c->objects[c->count++] =
                        (struct upload_object){ .shown = { .build_id = *l->build_id, .mapping = "" }, .gain = gain };
        *ret = (uint32_t)*number;
        return ST_OK;
}

static enum status find_upload_objects(struct upload_counts *c, const struct scan_stacks *s, struct error *err)
{
        enum status st = ST_OK;

        c->location_object = calloc(s->location_count + 1, sizeof *c->location_object);
        if (!c->location_object)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < s->location_count; i++) {
                const struct scan_location *l = &s->locations[i];
                enum gain gain = get_location_gain(l);
                struct scan_upload *o;

                c->location_object[i] = UINT32_MAX;
                if (gain == GAIN_NONE)
                        continue;
                st = work_meter_add(c->meter, 16, err);
                if (!st)
                        st = find_or_add_object(c, l, gain, &c->location_object[i], err);
                if (st)
                        break;
                o = &c->objects[c->location_object[i]].shown;
                o->locations++;
                if (!*o->mapping)
                        o->mapping = l->mapping;
                if (l->quality > o->quality)
                        o->quality = l->quality;
        }
        return st;
}

static void count_upload_stack(struct upload_counts *c, const struct scan_stacks *s, size_t stack,
                               const struct stack_counts *counts)
{
        for (size_t k = s->first[stack]; k < s->first[stack + 1]; k++) {
                const struct scan_location *l = &s->locations[s->indexes[k]];
                uint32_t number = c->location_object[s->indexes[k]];
                struct upload_object *o;

                if (number == UINT32_MAX)
                        continue;
                assert(c->objects);
                o = &c->objects[number];
                sample_count_add(&o->by_state[get_location_state(l)], counts->samples[stack]);
                if (o->counted_in == stack + 1)
                        continue;
                o->counted_in = stack + 1;
                sample_count_add(&o->shown.samples, counts->samples[stack]);
                if (__builtin_add_overflow(o->shown.value, counts->values[stack], &o->shown.value))
                        o->shown.value = counts->values[stack] < 0 ? INT64_MIN : INT64_MAX;
        }
}

static int compare_upload_samples(const void *a, const void *b, void *context)
{
        const struct scan_upload *x = a, *y = b;
        int order = sample_count_compare(y->samples, x->samples);

        (void)context;
        if (order)
                return order;
        if (x->value != y->value)
                return x->value < y->value ? 1 : -1;
        return build_id_compare(&x->build_id, &y->build_id);
}

static enum symbol_state find_main_state(const struct upload_object *o)
{
        enum symbol_state most = SYMBOL_RESOLVED;

        for (enum symbol_state s = 0; s < SYMBOL_STATE_COUNT; s++) {
                if (sample_count_compare(o->by_state[s], o->by_state[most]) > 0)
                        most = s;
        }
        return most;
}

static enum status build_upload_list(const struct upload_counts *c, enum gain gain, struct arena *a,
                                     struct scan_upload **ret, size_t *count_ret, struct error *err)
{
        struct scan_upload *items = arena_alloc_array(a, c->count + 1, sizeof *items);
        size_t count = 0;
        enum status st;

        if (!items)
                return set_scan_too_big(err);
        for (size_t i = 0; i < c->count; i++) {
                if (c->objects[i].gain != gain)
                        continue;
                items[count] = c->objects[i].shown;
                items[count++].state = find_main_state(&c->objects[i]);
        }
        st = work_meter_sort(c->meter, items, count, sizeof *items, compare_upload_samples, NULL, err);
        if (st)
                return st;
        *ret = items;
        *count_ret = count;
        return ST_OK;
}

static enum status build_upload_lists(struct store_scan *scan, const struct stack_counts *counts,
                                      struct scan_uploads *ret, struct error *err)
{
        _cleanup_(upload_counts_deinit) struct upload_counts c = { .meter = scan->meter,
                                                                   .numbers.memory.use = MEMORY_QUERIES };
        struct scan_uploads uploads = { 0 };
        const struct scan_stacks *s;
        enum status st = store_scan_resolve(scan, &counts->sums.stacks, &s, err);

        if (!st)
                st = find_upload_objects(&c, s, err);
        if (st)
                return st;
        for (size_t i = 0; !st && i < s->count; i++) {
                st = work_meter_add(scan->meter, 1 + s->first[i + 1] - s->first[i], err);
                sample_count_add(&uploads.samples, counts->samples[i]);
                count_upload_stack(&c, s, i, counts);
        }
        memcpy(uploads.unit, counts->unit, sizeof uploads.unit);
        if (!st)
                st = build_upload_list(&c, GAIN_NAMES, &scan->arena, &uploads.missing, &uploads.missing_count, err);
        if (!st)
                st = build_upload_list(&c, GAIN_LINES, &scan->arena, &uploads.poor, &uploads.poor_count, err);
        if (!st)
                *ret = uploads;
        return st;
}

enum status store_scan_rank_uploads(struct store_scan *scan, const struct scan_filter *filter,
                                    const struct scan_names *types, struct scan_uploads *ret, struct error *err)
{
        _cleanup_stack_counts_ struct stack_counts counts = { 0 };
        enum status st = stack_counts_load(scan, filter, types, &counts, err);

        return st ? st : build_upload_lists(scan, &counts, ret, err);
}
