/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three maps by 128-bit key give numbers: the identity of a group (hash of type, unit, period, series and label
 * values), stack ids or times, and (group, item), the number of a sum. An item is the number of a stack or time, or
 * that of a step. Texts are copied to the arena when a group is new.
 *
 * A series is the sum of hashes of all labels, so labels may be collected in any order. Requested labels are part of
 * the identity in their own order; with all_labels the series stands for them.
 *
 * In the file: modes of grouping; groups and their labels; sums; merge of the tables of several threads, and the
 * final sort by content (group_table_finish()), which makes the result independent of threads.
 * No lock: each thread of a scan has a table, and they are merged at the end.
 */
#include "profile-store/scan/group_table.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "profile-formats/hidden_label.h"

#define UNCOUNTED_ENTRIES 1024 /* smaller arrays are not reserved: small queries need no budget */

void scan_group_sums_deinit(struct scan_group_sums *s)
{
        free(s->groups);
        free(s->items);
        free(s->stacks.items);
        memory_release(&s->memory);
        *s = (struct scan_group_sums){ 0 };
}

void group_table_init(struct group_table *t, const struct scan_group_by *by, struct arena *arena)
{
        *t = (struct group_table){ .by = by, .arena = arena };
        t->group_keys.memory.use = t->stack_keys.memory.use = t->sum_keys.memory.use = MEMORY_QUERIES;
        t->sums.memory.use = MEMORY_QUERIES;
        buf_init(&t->identity, MiB(64));
}

void group_table_deinit(struct group_table *t)
{
        key_map_deinit(&t->group_keys);
        key_map_deinit(&t->stack_keys);
        key_map_deinit(&t->sum_keys);
        scan_group_sums_deinit(&t->sums);
        buf_deinit(&t->identity);
        free(t->labels);
}

bool group_by_needs_all_labels(const struct scan_group_by *by)
{
        return by->all_labels || by->series;
}

bool group_by_collects_label(const struct scan_group_by *by, const char *name, size_t n)
{
        return by->hidden || !label_is_hidden(name, n);
}

bool group_by_sums_stacks(const struct scan_group_by *by)
{
        return !by->step_ns && !by->totals && !by->times;
}

bool group_by_numbers_items(const struct scan_group_by *by)
{
        return by->times || group_by_sums_stacks(by);
}

bool group_by_selects_type(const struct scan_group_by *by, struct parquet_bytes type)
{
        for (size_t i = 0; i < by->type_count; i++)
                if (strlen(by->types[i]) == type.size && memcmp(by->types[i], type.data, type.size) == 0)
                        return true;
        return by->type_count == 0;
}

/* Reserve room for one more entry of an array of sums. */
static enum status reserve_entry(struct group_table *t, void *array_pointer, size_t *capacity, size_t count,
                                 size_t size, struct error *err)
{
        size_t before = *capacity > UNCOUNTED_ENTRIES ? *capacity : 0;

        if (count < *capacity)
                return ST_OK;
        if (!array_grow(array_pointer, capacity, count, 1, size))
                return error_no_memory(err);
        return *capacity > UNCOUNTED_ENTRIES ? memory_reserve(&t->sums.memory, (*capacity - before) * size, err)
                                             : ST_OK;
}

/* ---- groups ---- */

static int compare_group_labels(const void *x, const void *y)
{
        const struct scan_group_label *a = x, *b = y;

        return strcmp(a->name, b->name);
}

static enum status copy_group_text(struct group_table *t, struct parquet_bytes text, const char **ret,
                                   struct error *err)
{
        *ret = text.size ? arena_strndup(t->arena, (const char *)text.data, text.size) : "";
        return *ret ? ST_OK : set_scan_too_big(err);
}

static enum status add_group(struct group_table *t, const struct group_kind *kind, struct error *err)
{
        struct scan_group g = { .period = kind->period, .label_count = (uint32_t)t->label_count };
        struct scan_group_label *labels;
        enum status st;

        if (t->sums.group_count == LIMIT_SCAN_GROUPS)
                return error_set(err, ST_TOO_BIG, "the samples are in more than %u groups; group by fewer labels",
                                 LIMIT_SCAN_GROUPS);
        st = reserve_entry(t, &t->sums.groups, &t->group_capacity, t->sums.group_count, sizeof g, err);
        if (!st)
                st = copy_group_text(t, kind->type, &g.type, err);
        if (!st)
                st = copy_group_text(t, kind->unit, &g.unit, err);
        labels = arena_alloc_array(t->arena, t->label_count + 1, sizeof *labels);
        if (!st && !labels)
                st = set_scan_too_big(err);
        for (size_t i = 0; !st && i < t->label_count; i++) {
                st = copy_group_text(t, t->labels[i].name, &labels[i].name, err);
                if (!st)
                        st = copy_group_text(t, t->labels[i].value, &labels[i].value, err);
        }
        if (st)
                return st;
        if (t->by->all_labels)
                qsort(labels, t->label_count, sizeof *labels, compare_group_labels);
        g.labels = labels;
        memcpy(g.series, t->series, sizeof g.series);
        t->sums.groups[t->sums.group_count++] = g;
        return ST_OK;
}

static void append_identity_bytes(struct group_table *t, const void *data, size_t n)
{
        buf_append_u64(&t->identity, n);
        if (n)
                buf_append(&t->identity, data, n);
}

enum status group_table_find_or_add(struct group_table *t, const struct group_kind *kind, uint32_t *ret,
                                    struct error *err)
{
        struct hash128 key;
        uint64_t *number;
        bool added;
        enum status st;

        buf_clear(&t->identity);
        append_identity_bytes(t, kind->type.data, kind->type.size);
        append_identity_bytes(t, kind->unit.data, kind->unit.size);
        buf_append_u64(&t->identity, (uint64_t)kind->period);
        append_identity_bytes(t, t->series, sizeof t->series);
        for (size_t i = 0; i < t->label_count && !t->by->all_labels; i++)
                append_identity_bytes(t, t->labels[i].value.data, t->labels[i].value.size);
        st = buf_status(&t->identity, err, "group");
        if (st)
                return st;
        key = hash_bytes128(t->identity.data, t->identity.size);
        st = key_map_put(&t->group_keys, &key, t->sums.group_count, &added, &number, err);
        if (st)
                return st;
        *ret = (uint32_t)*number;
        return added ? add_group(t, kind, err) : ST_OK;
}

void group_table_clear_labels(struct group_table *t)
{
        t->label_count = 0;
        t->series[0] = t->series[1] = 0;
}

enum status group_table_add_label(struct group_table *t, struct parquet_bytes name, struct parquet_bytes value,
                                  struct error *err)
{
        if (!array_reserve(&t->labels, &t->label_capacity, t->label_count))
                return error_no_memory(err);
        t->labels[t->label_count++] = (struct collected_label){ name, value };
        return ST_OK;
}

/* The hash of a series is a sum over its labels, so it does not depend on their order. */
enum status group_table_collect_label(struct group_table *t, struct parquet_bytes name, struct parquet_bytes value,
                                      struct error *err)
{
        struct hash128 a, b;
        uint64_t x[2], y[2];

        if (!value.size || !group_by_collects_label(t->by, (const char *)name.data, name.size))
                return ST_OK;
        a = hash_bytes128(name.data, name.size);
        b = hash_bytes128(value.data, value.size);
        memcpy(x, a.bytes, sizeof x);
        memcpy(y, b.bytes, sizeof y);
        t->series[0] += (x[0] ^ y[1]) * 0x9e3779b97f4a7c15u + y[0];
        t->series[1] += (x[1] ^ y[0]) * 0xc2b2ae3d27d4eb4fu + y[1];
        return t->by->all_labels ? group_table_add_label(t, name, value, err) : ST_OK;
}

/* ---- sums ---- */

enum status group_table_number_stack(struct group_table *t, const struct hash128 *id, uint32_t *ret, struct error *err)
{
        struct stack_sums *stacks = &t->sums.stacks;
        uint64_t *number;
        bool added;
        enum status st = key_map_put(&t->stack_keys, id, stacks->count, &added, &number, err);

        if (st)
                return st;
        if (added) {
                if (stacks->count == UINT32_MAX)
                        return set_scan_too_big(err);
                st = reserve_entry(t, &stacks->items, &t->stack_capacity, stacks->count, sizeof *stacks->items, err);
                if (st)
                        return st;
                stacks->items[stacks->count] = (struct stack_sum){ 0 };
                memcpy(stacks->items[stacks->count++].id, id->bytes, sizeof id->bytes);
        }
        *ret = (uint32_t)*number;
        return ST_OK;
}

enum status group_table_add_value(struct group_table *t, uint32_t group, uint32_t item, int64_t value, uint64_t samples,
                                  struct error *err)
{
        struct hash128 key = make_u64_key((uint64_t)group << 32 | item);
        struct scan_group_sum *sum;
        uint64_t *number;
        bool added;
        enum status st = key_map_put(&t->sum_keys, &key, t->sums.count, &added, &number, err);

        if (st)
                return st;
        if (added) {
                if (t->sums.count == LIMIT_SCAN_GROUP_SUMS)
                        return error_set(err, ST_TOO_BIG,
                                         "the groups have more than %u sums; group by fewer labels, or narrow the "
                                         "time range",
                                         LIMIT_SCAN_GROUP_SUMS);
                st = reserve_entry(t, &t->sums.items, &t->sum_capacity, t->sums.count, sizeof *sum, err);
                if (st)
                        return st;
                t->sums.items[t->sums.count++] = (struct scan_group_sum){ .group = group, .item = item };
        }
        sum = &t->sums.items[*number];
        if (__builtin_add_overflow(sum->value, value, &sum->value))
                sum->value = value > 0 ? INT64_MAX : INT64_MIN;
        sum->samples += samples;
        return ST_OK;
}

/* A time is numbered like a stack: its id is the time, so that ids are sorted like times. */
enum status group_table_add_at_time(struct group_table *t, uint32_t group, int64_t time_us, int64_t value,
                                    struct error *err)
{
        const uint64_t ordered = (uint64_t)time_us ^ UINT64_C(1) << 63;
        struct hash128 id = { { 0 } };
        uint32_t item;
        enum status st;

        if (t->by->nth_time > 1 && hash_bytes64(&time_us, sizeof time_us) % t->by->nth_time)
                return ST_OK;
        store_be64(id.bytes, ordered);
        st = group_table_number_stack(t, &id, &item, err);
        return st ? st : group_table_add_value(t, group, item, value, 1, err);
}

int64_t scan_group_sums_get_time(const struct scan_group_sums *s, uint32_t item)
{
        return (int64_t)(load_be64(s->stacks.items[item].id) ^ UINT64_C(1) << 63);
}

/* ---- merging the tables of threads ---- */

static enum status merge_group(struct group_table *into, const struct scan_group *g, uint32_t *ret, struct error *err)
{
        const struct group_kind kind = { as_text_bytes(g->type), as_text_bytes(g->unit), g->period };
        enum status st = ST_OK;

        group_table_clear_labels(into);
        memcpy(into->series, g->series, sizeof into->series);
        for (uint32_t i = 0; !st && i < g->label_count; i++)
                st = group_table_add_label(into, as_text_bytes(g->labels[i].name), as_text_bytes(g->labels[i].value),
                                           err);
        return st ? st : group_table_find_or_add(into, &kind, ret, err);
}

enum status group_table_merge(struct group_table *into, const struct group_table *from, struct work_meter *meter,
                              struct error *err)
{
        const struct scan_group_sums *s = &from->sums;
        _cleanup_free_ uint32_t *groups = calloc(s->group_count + 1, sizeof *groups);
        _cleanup_free_ uint32_t *stacks = calloc(s->stacks.count + 1, sizeof *stacks);
        enum status st = groups && stacks ? ST_OK : error_no_memory(err);

        for (size_t i = 0; !st && i < s->group_count; i++) {
                st = merge_group(into, &s->groups[i], &groups[i], err);
                if (!st)
                        st = work_meter_add(meter, 16, err);
        }
        for (size_t i = 0; !st && i < s->stacks.count; i++) {
                struct hash128 id;

                memcpy(id.bytes, s->stacks.items[i].id, sizeof id.bytes);
                st = group_table_number_stack(into, &id, &stacks[i], err);
                if (!st)
                        st = work_meter_add(meter, 4, err);
        }
        for (size_t i = 0; !st && i < s->count; i++) {
                const struct scan_group_sum *sum = &s->items[i];
                uint32_t item = group_by_numbers_items(into->by) ? stacks[sum->item] : sum->item;

                st = group_table_add_value(into, groups[sum->group], item, sum->value, sum->samples, err);
                if (!st)
                        st = work_meter_add(meter, 4, err);
        }
        return st;
}

static int compare_groups(const void *x, const void *y, void *context)
{
        const struct scan_group *groups = context;
        const struct scan_group *a = &groups[*(const uint32_t *)x], *b = &groups[*(const uint32_t *)y];
        int order = strcmp(a->type, b->type);

        if (!order)
                order = strcmp(a->unit, b->unit);
        if (!order && a->period != b->period)
                order = a->period < b->period ? -1 : 1;
        for (uint32_t i = 0; !order && i < a->label_count && i < b->label_count; i++) {
                order = strcmp(a->labels[i].name, b->labels[i].name);
                if (!order)
                        order = strcmp(a->labels[i].value, b->labels[i].value);
        }
        if (!order && a->label_count != b->label_count)
                order = a->label_count < b->label_count ? -1 : 1;
        return order ? order : memcmp(a->series, b->series, sizeof a->series);
}

static int compare_stacks(const void *x, const void *y, void *context)
{
        const struct stack_sum *stacks = context;

        return memcmp(stacks[*(const uint32_t *)x].id, stacks[*(const uint32_t *)y].id, sizeof(stack_id));
}

static int compare_group_sums(const void *x, const void *y, void *context)
{
        const struct scan_group_sum *a = x, *b = y;

        (void)context;
        if (a->group != b->group)
                return a->group < b->group ? -1 : 1;
        return a->item < b->item ? -1 : a->item > b->item;
}

/* Sort the array. ret: new index by old index. */
static enum status sort_by_number(struct work_meter *meter, void *array, size_t count, size_t size,
                                  int (*compare)(const void *, const void *, void *), uint32_t **ret, struct error *err)
{
        _cleanup_memory_ struct memory_reservation memory = { .use = MEMORY_QUERIES };
        _cleanup_free_ uint32_t *order = NULL;
        _cleanup_free_ uint8_t *sorted = NULL;
        uint32_t *places;
        enum status st =
                count > UNCOUNTED_ENTRIES ? memory_reserve(&memory, count * (size + 2 * sizeof *order), err) : ST_OK;

        if (st)
                return st;
        order = calloc(count + 1, sizeof *order);
        sorted = calloc(count + 1, size);
        places = calloc(count + 1, sizeof *places);
        if (!order || !sorted || !places)
                st = error_no_memory(err);
        for (size_t i = 0; !st && i < count; i++)
                order[i] = (uint32_t)i;
        if (!st)
                st = work_meter_sort(meter, order, count, sizeof *order, compare, array, err);
        if (st) {
                free(places);
                return st;
        }
        for (size_t i = 0; i < count; i++) {
                memcpy(sorted + i * size, (const uint8_t *)array + order[i] * size, size);
                places[order[i]] = (uint32_t)i;
        }
        if (count)
                memcpy(array, sorted, count * size);
        *ret = places;
        return ST_OK;
}

enum status group_table_finish(struct group_table *t, struct work_meter *meter, struct scan_group_sums *ret,
                               struct error *err)
{
        struct scan_group_sums *s = &t->sums;
        _cleanup_free_ uint32_t *groups = NULL;
        _cleanup_free_ uint32_t *stacks = NULL;
        enum status st =
                sort_by_number(meter, s->groups, s->group_count, sizeof *s->groups, compare_groups, &groups, err);

        if (!st)
                st = sort_by_number(meter, s->stacks.items, s->stacks.count, sizeof *s->stacks.items, compare_stacks,
                                    &stacks, err);
        for (size_t i = 0; !st && i < s->count; i++) {
                s->items[i].group = groups[s->items[i].group];
                if (group_by_numbers_items(t->by))
                        s->items[i].item = stacks[s->items[i].item];
        }
        if (!st)
                st = work_meter_sort(meter, s->items, s->count, sizeof *s->items, compare_group_sums, NULL, err);
        if (st)
                return st;
        *ret = *s;
        *s = (struct scan_group_sums){ 0 };
        return ST_OK;
}
