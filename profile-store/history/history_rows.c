/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of the hour are summed by stack and by type, unit, service and version (struct scan_group_sums), and the
 * stacks resolved. Functions and objects are numbered once per location; then each sum is added to the rows of its
 * stack's functions. Groups that differ only in their period give equal rows, which are merged after sorting.
 *
 * In the file: numbers of objects and functions; rows; the sums; sorting; the entry point.
 */
#include "profile-store/history/history_rows.h"

#include <string.h>

#include "common/files/file.h"
#include "common/hash/hash_table.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "profile-formats/profile_type.h"
#include "profile-store/scan/table_scan.h"
#include "profile-store/scan_groups.h"

#define NS_PER_HOUR INT64_C(3600000000000)
#define NO_OBJECT UINT32_MAX

/* ---- numbers ---- */

struct history_object {
        const char *build_id, *runtime; /* of one of them; "" */
};

struct history_function {
        const char *function, *file;
        uint32_t object; /* of locations without symbols; else NO_OBJECT */
};

struct history_cell {
        uint32_t group, function, object;
};

struct derivation {
        struct history_rows *out;
        struct scan_group_sums sums;
        const struct scan_stacks *stacks;
        struct history_object *objects;
        struct history_function *functions;
        struct history_cell *cells; /* of the rows, by index */
        size_t object_count, object_capacity, function_count, function_capacity, cell_count, cell_capacity,
                row_capacity;
        struct hash_table objects_by_text, functions_by_name, rows_by_cell;
        uint32_t *location_objects;
        size_t *first; /* functions of location i: numbers[first[i] .. first[i + 1]), innermost first */
        uint32_t *numbers;
        size_t number_count, number_capacity;
        uint32_t *seen;                   /* by function: last sum whose stack has it, plus one */
        struct memory_reservation memory; /* of all arrays */
};

static void derivation_deinit(struct derivation *d)
{
        scan_group_sums_deinit(&d->sums);
        free(d->objects);
        free(d->functions);
        free(d->cells);
        hash_table_deinit(&d->objects_by_text);
        hash_table_deinit(&d->functions_by_name);
        hash_table_deinit(&d->rows_by_cell);
        free(d->location_objects);
        free(d->first);
        free(d->numbers);
        free(d->seen);
        memory_release(&d->memory);
}

static bool is_same_object(const void *context, uint32_t number, const void *key, size_t size)
{
        const struct history_object *have = &((const struct derivation *)context)->objects[number], *wanted = key;

        (void)size;
        return strcmp(have->build_id, wanted->build_id) == 0 && strcmp(have->runtime, wanted->runtime) == 0;
}

static enum status number_history_object(struct derivation *d, const struct scan_location *l, uint32_t *ret,
                                         struct error *err)
{
        char hex[BUILD_ID_HEX_MAX] = "";
        struct history_object o = { "", "" };
        uint32_t hash;
        enum status st;

        if (l->build_id->size)
                o.build_id = build_id_hex(l->build_id, hex);
        else
                o.runtime = path_base(l->mapping);
        hash = hash_table_hash(*o.build_id ? o.build_id : o.runtime, strlen(*o.build_id ? o.build_id : o.runtime));
        if (hash_table_find(&d->objects_by_text, hash, is_same_object, d, &o, sizeof o, ret))
                return ST_OK;
        st = hash_table_reserve(&d->objects_by_text, err);
        if (!st)
                st = array_charge_growth(&d->memory, d->object_capacity, d->object_count, sizeof *d->objects, err);
        if (st)
                return st;
        if (!array_reserve(&d->objects, &d->object_capacity, d->object_count))
                return error_no_memory(err);
        o.build_id = arena_strndup(&d->out->arena, o.build_id, strlen(o.build_id));
        if (!o.build_id)
                return arena_error(&d->out->arena, err, "the objects of an hour");
        *ret = (uint32_t)d->object_count++;
        d->objects[*ret] = o;
        hash_table_insert(&d->objects_by_text, hash, *ret);
        return ST_OK;
}

static bool is_same_function(const void *context, uint32_t number, const void *key, size_t size)
{
        const struct history_function *have = &((const struct derivation *)context)->functions[number], *wanted = key;

        (void)size;
        return have->object == wanted->object && strcmp(have->function, wanted->function) == 0 &&
               strcmp(have->file, wanted->file) == 0;
}

static enum status number_history_function(struct derivation *d, const struct history_function *f, uint32_t *ret,
                                           struct error *err)
{
        const uint64_t hashes[2] = { keyed_hash(f->function, strlen(f->function)) + f->object,
                                     keyed_hash(f->file, strlen(f->file)) };
        uint32_t hash = hash_table_hash(hashes, sizeof hashes);
        enum status st;

        if (hash_table_find(&d->functions_by_name, hash, is_same_function, d, f, sizeof *f, ret))
                return ST_OK;
        st = hash_table_reserve(&d->functions_by_name, err);
        if (!st)
                st = array_charge_growth(&d->memory, d->function_capacity, d->function_count, sizeof *d->functions,
                                         err);
        if (st)
                return st;
        if (!array_reserve(&d->functions, &d->function_capacity, d->function_count))
                return error_no_memory(err);
        *ret = (uint32_t)d->function_count++;
        d->functions[*ret] = *f;
        hash_table_insert(&d->functions_by_name, hash, *ret);
        return ST_OK;
}

/* As frames are named in query/engine/location_frames.c. */
static const char *get_frame_function(const struct scan_frame *f)
{
        return *f->function ? f->function : *f->linkage_name ? f->linkage_name : "[no name]";
}

static enum status append_function_number(struct derivation *d, const struct history_function *f, struct error *err)
{
        uint32_t number = 0;
        enum status st = array_charge_growth(&d->memory, d->number_capacity, d->number_count, sizeof number, err);

        if (!st)
                st = number_history_function(d, f, &number, err);
        if (st)
                return st;
        if (!array_reserve(&d->numbers, &d->number_capacity, d->number_count))
                return error_no_memory(err);
        d->numbers[d->number_count++] = number;
        return ST_OK;
}

static enum status number_history_locations(struct derivation *d, struct error *err)
{
        size_t count = d->stacks->location_count;
        enum status st =
                memory_reserve(&d->memory, (count + 1) * (sizeof *d->first + sizeof *d->location_objects), err);

        if (st)
                return st;
        d->location_objects = calloc(count + 1, sizeof *d->location_objects);
        d->first = calloc(count + 1, sizeof *d->first);
        if (!d->location_objects || !d->first)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < count; i++) {
                const struct scan_location *l = &d->stacks->locations[i];

                d->first[i] = d->number_count;
                st = number_history_object(d, l, &d->location_objects[i], err);
                if (!st && !l->frame_count)
                        st = append_function_number(d, &(struct history_function){ "", "", d->location_objects[i] },
                                                    err);
                for (uint32_t k = 0; !st && k < l->frame_count; k++)
                        st = append_function_number(d,
                                                    &(struct history_function){ get_frame_function(&l->frames[k]),
                                                                                l->frames[k].file, NO_OBJECT },
                                                    err);
        }
        d->first[count] = d->number_count;
        return st;
}

/* ---- rows ---- */

static bool is_same_cell(const void *context, uint32_t row, const void *key, size_t size)
{
        return memcmp(&((const struct derivation *)context)->cells[row], key, size) == 0;
}

static enum status append_history_row(struct derivation *d, const struct history_cell *c, struct error *err)
{
        const struct scan_group *g = &d->sums.groups[c->group];
        const struct history_function *f = &d->functions[c->function];
        const struct history_object *o = &d->objects[c->object];
        struct history_rows *out = d->out;
        enum status st = array_charge_growth(&d->memory, d->cell_capacity, d->cell_count, sizeof *d->cells, err);

        if (!st)
                st = array_charge_growth(&out->memory, d->row_capacity, out->count, sizeof *out->items, err);
        if (st)
                return st;
        if (!array_reserve(&d->cells, &d->cell_capacity, d->cell_count) ||
            !array_reserve(&out->items, &d->row_capacity, out->count))
                return error_no_memory(err);
        d->cells[d->cell_count++] = *c;
        out->items[out->count++] = (struct history_row){ .type = g->type,
                                                         .unit = g->unit,
                                                         .service = g->labels[0].value,
                                                         .version = g->labels[1].value,
                                                         .build_id = o->build_id,
                                                         .runtime = o->runtime,
                                                         .function = f->function,
                                                         .file = f->file };
        return ST_OK;
}

static enum status find_or_add_row(struct derivation *d, const struct history_cell *c, struct history_row **ret,
                                   struct error *err)
{
        uint32_t hash = hash_table_hash(c, sizeof *c), row;
        enum status st = ST_OK;

        if (!hash_table_find(&d->rows_by_cell, hash, is_same_cell, d, c, sizeof *c, &row)) {
                row = (uint32_t)d->out->count;
                st = hash_table_reserve(&d->rows_by_cell, err);
                if (!st)
                        st = append_history_row(d, c, err);
                if (st)
                        return st;
                hash_table_insert(&d->rows_by_cell, hash, row);
        }
        *ret = &d->out->items[row];
        return ST_OK;
}

static void add_history_value(int64_t *sum, int64_t v)
{
        if (__builtin_add_overflow(*sum, v, sum))
                *sum = v < 0 ? INT64_MIN : INT64_MAX;
}

/* ---- sums ---- */

/* Add sum i to the rows of the functions of its stack. */
static enum status add_stack_sum(struct derivation *d, size_t i, struct error *err)
{
        const struct scan_group_sum *sum = &d->sums.items[i];
        bool is_leaf = true;
        enum status st = ST_OK;

        for (size_t at = d->stacks->first[sum->item]; !st && at < d->stacks->first[sum->item + 1]; at++) {
                uint32_t location = d->stacks->indexes[at];

                for (size_t k = d->first[location]; !st && k < d->first[location + 1]; k++) {
                        uint32_t function = d->numbers[k];
                        const struct history_cell cell = { sum->group, function, d->location_objects[location] };
                        struct history_row *row;

                        st = find_or_add_row(d, &cell, &row, err);
                        if (st)
                                break;
                        if (d->seen[function] != i + 1) {
                                d->seen[function] = (uint32_t)i + 1;
                                add_history_value(&row->total, sum->value);
                                row->samples += sum->samples;
                        }
                        if (is_leaf) {
                                add_history_value(&row->self, sum->value);
                                row->self_samples += sum->samples;
                                is_leaf = false;
                        }
                }
        }
        return st;
}

static enum status add_stack_sums(struct derivation *d, struct error *err)
{
        enum status st = memory_reserve(&d->memory, (d->function_count + 1) * sizeof *d->seen, err);

        if (st)
                return st;
        d->seen = calloc(d->function_count + 1, sizeof *d->seen);
        if (!d->seen)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < d->sums.count; i++)
                if (!profile_type_is_gauge(d->sums.groups[d->sums.items[i].group].type))
                        st = add_stack_sum(d, i, err);
        return st;
}

static uint64_t count_row_samples(const struct sample_count_rule *rule, int64_t value, uint64_t stacks)
{
        return stacks ? sample_count_round(compute_sample_count(rule, value, stacks)) : 0;
}

/* From the numbers of stacks, compute those of samples. */
static enum status count_history_samples(struct derivation *d, struct error *err)
{
        _cleanup_free_ struct sample_count_rule *rules = scan_group_sums_list_count_rules(&d->sums);

        if (!rules)
                return error_no_memory(err);
        for (size_t i = 0; i < d->cell_count; i++) {
                const struct sample_count_rule *rule = &rules[d->cells[i].group];
                struct history_row *row = &d->out->items[i];

                row->samples = count_row_samples(rule, row->total, row->samples);
                row->self_samples = count_row_samples(rule, row->self, row->self_samples);
                d->out->self_samples += row->self_samples;
        }
        return ST_OK;
}

static enum status sum_selected_stacks(struct derivation *d, struct store_scan *scan, const struct scan_filter *filter,
                                       struct error *err)
{
        static const char *const labels[] = { HISTORY_SERVICE, HISTORY_VERSION };
        const struct scan_group_by by = { .labels = labels, .label_count = 2 };
        enum status st = store_scan_sum_groups(scan, filter, &by, &d->sums, err);

        if (!st)
                st = store_scan_resolve(scan, &d->sums.stacks, &d->stacks, err);
        if (!st)
                st = number_history_locations(d, err);
        if (!st)
                st = add_stack_sums(d, err);
        return st ? st : count_history_samples(d, err);
}

static void sort_and_merge_rows(struct history_rows *r)
{
        size_t kept = 0;

        if (r->count)
                qsort(r->items, r->count, sizeof *r->items, history_row_compare);
        for (size_t i = 0; i < r->count; i++) {
                struct history_row *last = kept ? &r->items[kept - 1] : NULL;

                if (!last || history_row_compare(last, &r->items[i])) {
                        r->items[kept++] = r->items[i];
                        continue;
                }
                add_history_value(&last->self, r->items[i].self);
                add_history_value(&last->total, r->items[i].total);
                last->self_samples += r->items[i].self_samples;
                last->samples += r->items[i].samples;
        }
        r->count = kept;
}

enum status history_rows_derive_selection(struct store_scan *scan, const struct scan_filter *filter,
                                          struct history_rows *ret, struct error *err)
{
        struct history_rows rows = { .memory.use = MEMORY_QUERIES };
        _cleanup_(derivation_deinit) struct derivation d = { .out = &rows, .memory.use = MEMORY_QUERIES };
        int64_t hour_ns = filter->from_unix_ns - filter->from_unix_ns % NS_PER_HOUR;
        enum status st;

        arena_init_budget(&rows.arena, LIMIT_SCAN_MEMORY_BYTES, MEMORY_QUERIES);
        st = sum_selected_stacks(&d, scan, filter, err);
        if (st) {
                history_rows_deinit(&rows);
                return st;
        }
        for (size_t i = 0; i < rows.count; i++) {
                rows.items[i].hour_us = hour_ns / 1000;
                rows.items[i].source_version = store_scan_get_tables(scan)->versions[TABLE_SAMPLES];
        }
        sort_and_merge_rows(&rows);
        *ret = rows;
        return ST_OK;
}

enum status history_rows_derive(struct profile_store *store, struct tables *tables, int64_t hour,
                                struct history_rows *ret, struct error *err)
{
        const struct scan_filter filter = { .from_unix_ns = hour * NS_PER_HOUR,
                                            .to_unix_ns = (hour + 1) * NS_PER_HOUR };
        struct store_scan *scan;
        enum status st = store_scan_begin_tables(store, tables, &scan, err);

        if (st)
                return st;
        st = history_rows_derive_selection(scan, &filter, ret, err);
        if (st)
                store_scan_end(scan);
        else
                ret->owned_scan = scan;
        return st;
}

void history_rows_deinit(struct history_rows *r)
{
        if (r->owned_scan)
                store_scan_end(r->owned_scan);
        free(r->items);
        memory_release(&r->memory);
        arena_deinit(&r->arena);
        *r = (struct history_rows){ 0 };
}
