/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/array.h"
#include "profile-store/scan_internal.h"
#include "symbolizer/symbol_reason.h"

enum gain { GAIN_NONE, GAIN_NAMES, GAIN_LINES };

struct object {
        struct scan_upload shown;
        enum gain gain;
        uint64_t by_state[SYMBOL_STATE_COUNT]; /* samples, one for each frame */
        size_t counted_in;                     /* the last stack + 1 that counted for it */
};

struct counting {
        struct work_meter *meter;
        struct key_map numbers; /* of (build-id, gain), into objects */
        uint32_t *object_of;    /* one a location; UINT32_MAX: it gains nothing */
        struct object *objects;
        size_t count, capacity;
};

static void counting_deinit(struct counting *c)
{
        key_map_deinit(&c->numbers);
        free(c->object_of);
        free(c->objects);
}

static enum symbol_state state_of(const struct scan_location *l)
{
        enum symbol_state state;

        return symbol_state_parse(l->state, &state) ? state : SYMBOL_NO_DEBUGINFO;
}

static bool names_a_file(const struct scan_location *l)
{
        for (uint32_t i = 0; i < l->frame_count; i++) {
                if (*l->frames[i].file)
                        return true;
        }
        return false;
}

/* Addresses that full debuginfo does not cover are padding, data, or of no object at all: there is no better file. */
static enum gain gain_of(const struct scan_location *l)
{
        enum symbol_state state = state_of(l);

        if (!l->build_id.size)
                return GAIN_NONE;
        switch (state) {
        case SYMBOL_RESOLVED:
                return l->quality <= QUALITY_SYMTAB ? GAIN_LINES : GAIN_NONE;
        case SYMBOL_SENDER: /* the names of a kernel's kallsyms give way to lines */
                return l->address && !names_a_file(l) ? GAIN_LINES : GAIN_NONE;
        case SYMBOL_UNCOVERED:
        case SYMBOL_OUTSIDE:
                return l->quality < QUALITY_LINES ? GAIN_NAMES : GAIN_NONE;
        default:
                return symbol_state_wants_debuginfo(state) ? GAIN_NAMES : GAIN_NONE;
        }
}

static enum status object_of(struct counting *c, const struct scan_location *l, enum gain gain, uint32_t *ret,
                             struct error *err)
{
        uint8_t bytes[sizeof l->build_id.bytes + 1];
        struct hash128 key;
        uint64_t *number;
        bool added;
        enum status st;

        memcpy(bytes, l->build_id.bytes, l->build_id.size);
        bytes[l->build_id.size] = (uint8_t)gain;
        key = hash128(bytes, l->build_id.size + (size_t)1);
        st = key_map_put(&c->numbers, &key, c->count, &added, &number, err);
        if (st)
                return st;
        if (added && !array_reserve(&c->objects, &c->capacity, c->count))
                return error_no_memory(err);
        if (added)
                c->objects[c->count++] = (struct object){ .shown = { .build_id = l->build_id, .mapping = "" },
                                                          .gain = gain };
        *ret = (uint32_t)*number;
        return ST_OK;
}

static enum status find_objects(struct counting *c, const struct scan_stacks *s, struct error *err)
{
        enum status st = ST_OK;

        c->object_of = calloc(s->location_count + 1, sizeof *c->object_of);
        if (!c->object_of)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < s->location_count; i++) {
                const struct scan_location *l = &s->locations[i];
                enum gain gain = gain_of(l);
                struct scan_upload *o;

                c->object_of[i] = UINT32_MAX;
                if (gain == GAIN_NONE)
                        continue;
                st = work_meter_add(c->meter, 16, err);
                if (!st)
                        st = object_of(c, l, gain, &c->object_of[i], err);
                if (st)
                        break;
                o = &c->objects[c->object_of[i]].shown;
                o->locations++;
                if (!*o->mapping)
                        o->mapping = l->mapping;
                if (l->quality > o->quality)
                        o->quality = l->quality;
        }
        return st;
}

static void count_stack(struct counting *c, const struct scan_stacks *s, size_t stack, const struct stack_sum *sum)
{
        for (size_t k = s->first[stack]; k < s->first[stack + 1]; k++) {
                const struct scan_location *l = &s->locations[s->indexes[k]];
                uint32_t number = c->object_of[s->indexes[k]];
                struct object *o;

                if (number == UINT32_MAX)
                        continue;
                o = &c->objects[number];
                o->by_state[state_of(l)] += sum->samples;
                if (o->counted_in == stack + 1)
                        continue;
                o->counted_in = stack + 1;
                o->shown.samples += sum->samples;
                if (__builtin_add_overflow(o->shown.value, sum->value, &o->shown.value))
                        o->shown.value = sum->value < 0 ? INT64_MIN : INT64_MAX;
        }
}

static int most_samples_first(const void *a, const void *b, void *context)
{
        const struct scan_upload *x = a, *y = b;

        (void)context;
        if (x->samples != y->samples)
                return x->samples < y->samples ? 1 : -1;
        if (x->value != y->value)
                return x->value < y->value ? 1 : -1;
        return build_id_compare(&x->build_id, &y->build_id);
}

static enum symbol_state main_state(const struct object *o)
{
        enum symbol_state most = SYMBOL_RESOLVED;

        for (enum symbol_state s = 0; s < SYMBOL_STATE_COUNT; s++) {
                if (o->by_state[s] > o->by_state[most])
                        most = s;
        }
        return most;
}

static enum status take_list(const struct counting *c, enum gain gain, struct arena *a, struct scan_upload **ret,
                             size_t *count_ret, struct error *err)
{
        struct scan_upload *items = arena_alloc_array(a, c->count + 1, sizeof *items);
        size_t count = 0;
        enum status st;

        if (!items)
                return scan_full(err);
        for (size_t i = 0; i < c->count; i++) {
                if (c->objects[i].gain != gain)
                        continue;
                items[count] = c->objects[i].shown;
                items[count++].state = main_state(&c->objects[i]);
        }
        st = work_meter_sort(c->meter, items, count, sizeof *items, most_samples_first, NULL, err);
        if (st)
                return st;
        *ret = items;
        *count_ret = count;
        return ST_OK;
}

static enum status count_uploads(struct store_scan *scan, const struct stack_sums *sums, struct scan_uploads *ret,
                                 struct error *err)
{
        _cleanup_(counting_deinit) struct counting c = { .meter = scan->meter };
        struct scan_uploads uploads = { 0 };
        const struct scan_stacks *s;
        enum status st = store_scan_resolve(scan, sums, &s, err);

        if (!st)
                st = find_objects(&c, s, err);
        if (st)
                return st;
        for (size_t i = 0; !st && i < s->count; i++) {
                st = work_meter_add(scan->meter, 1 + s->first[i + 1] - s->first[i], err);
                uploads.samples += sums->items[i].samples;
                count_stack(&c, s, i, &sums->items[i]);
        }
        memcpy(uploads.unit, sums->unit, sizeof uploads.unit);
        if (!st)
                st = take_list(&c, GAIN_NAMES, &scan->arena, &uploads.missing, &uploads.missing_count, err);
        if (!st)
                st = take_list(&c, GAIN_LINES, &scan->arena, &uploads.poor, &uploads.poor_count, err);
        if (!st)
                *ret = uploads;
        return st;
}

enum status store_scan_uploads(struct store_scan *scan, const struct scan_filter *filter, struct scan_uploads *ret,
                               struct error *err)
{
        struct stack_sums sums;
        enum status st = scan_count_samples(scan, filter, &sums, err);

        if (st)
                return st;
        st = count_uploads(scan, &sums, ret, err);
        free(sums.items);
        return st;
}
