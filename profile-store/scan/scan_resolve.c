/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/array.h"
#include "profile-store/identity.h"
#include "profile-store/scan/scan_internal.h"
#include "profile-store/scan/stack_cache.h"

#define HEAD_SLICE 65536 /* locations that are looked up at once */

/* ---- stacks ----------------------------------------------------------------------------------- */

struct stack_ids {
        const uint64_t *ids; /* NULL: not found yet */
        uint32_t count;
};

struct resolving {
        struct store_scan *scan;
        struct key_map stack_numbers; /* id to number in the sum */
        struct stack_ids *stacks;
        size_t stack_count, missing;
        struct key_map location_numbers; /* location id to number */
        struct location_rows rows;
};

static void resolving_deinit(struct resolving *r)
{
        key_map_deinit(&r->stack_numbers);
        key_map_deinit(&r->location_numbers);
        location_rows_deinit(&r->rows);
        free(r->stacks);
}

static void set_stack_locations(struct resolving *r, uint64_t number, const uint64_t *ids, uint32_t count)
{
        if (r->stacks[number].ids)
                return;
        r->stacks[number] = (struct stack_ids){ ids, count };
        r->missing--;
}

static enum status load_cached_stacks(struct resolving *r, const struct stack_sums *sums, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && r->scan->stack_cache && i < sums->count; i++) {
                struct hash128 id;
                const uint64_t *ids;
                uint32_t count = 0;

                memcpy(id.bytes, sums->items[i].id, sizeof id.bytes);
                st = stack_cache_find(r->scan->stack_cache, &id, &r->scan->arena, &ids, &count);
                if (st)
                        return set_scan_too_big(err);
                if (ids)
                        set_stack_locations(r, i, ids, count);
                st = work_meter_add(r->scan->meter, 8, err);
        }
        return st;
}

static enum status load_head_stacks(struct resolving *r, struct error *err)
{
        static const uint64_t none;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < r->scan->head_count && r->missing; i++) {
                const struct batch *b = r->scan->head[i];

                for (uint32_t k = 0; !st && k < b->stack_count; k++) {
                        const uint64_t *number = key_map_find(&r->stack_numbers, &b->stacks[k].id);

                        if (number)
                                set_stack_locations(r, *number,
                                                    b->stacks[k].location_count ? b->stacks[k].location_ids : &none,
                                                    b->stacks[k].location_count);
                        st = work_meter_add(r->scan->meter, 8, err);
                }
        }
        return st;
}

static enum status load_group_stacks(struct resolving *r, const struct part_file *f, uint32_t group, struct error *err)
{
        _cleanup_column_source_ struct column_source from = { .file = f, .group = group, .memory.use = MEMORY_QUERIES };
        _cleanup_parquet_column_ struct parquet_column ids = { 0 }, lists = { 0 };
        bool have_lists = false;
        enum status st = scan_read_column(&from, "stack_id", PARQUET_BINARY, &ids, err);

        for (uint64_t i = 0; !st && i < ids.row_count && r->missing; i++) {
                struct hash128 id, identity;
                const uint64_t *number = part_read_stack_id(&ids, i, &id) ? key_map_find(&r->stack_numbers, &id) : NULL;
                uint32_t count;
                uint64_t *copy;

                st = work_meter_add(r->scan->meter, 8, err);
                if (st)
                        return st;
                if (!number || r->stacks[*number].ids)
                        continue;
                if (!have_lists)
                        st = scan_read_column(&from, "location_ids.list.element", PARQUET_INT64, &lists, err);
                if (st)
                        return st;
                have_lists = true;
                count = lists.offsets[i + 1] - lists.offsets[i];
                copy = arena_alloc_array(&r->scan->arena, count + (size_t)1, sizeof *copy);
                if (!copy)
                        return set_scan_too_big(err);
                memcpy(copy, lists.ints + lists.offsets[i], count * sizeof *copy);
                set_stack_locations(r, *number, copy, count);
                identity = hash_stack_identity(copy, count);
                if (r->scan->stack_cache && hash128_equal(&identity, &id)) /* not of a damaged file */
                        stack_cache_add(r->scan->stack_cache, &id, copy, count);
        }
        return st;
}

/* A stack has a row in each day with samples of it; newest days first. */
static enum status load_part_stacks(struct resolving *r, struct error *err)
{
        const struct tables *t = r->scan->tables;
        enum status st = ST_OK;

        for (size_t i = t->part_count[TABLE_STACKS]; !st && i-- > 0 && r->missing;) {
                _cleanup_part_file_ struct part_file f = { 0 };

                st = work_meter_check(r->scan->meter, err);
                if (!st)
                        st = part_file_open(t->parts[TABLE_STACKS][i], &f, err);
                for (uint32_t g = 0; !st && g < part_file_count_groups(&f); g++) {
                        st = work_meter_check(r->scan->meter, err);
                        if (!st)
                                st = load_group_stacks(r, &f, g, err);
                }
        }
        return st;
}

static enum status find_stacks(struct resolving *r, const struct stack_sums *sums, struct error *err)
{
        enum status st = ST_OK;

        r->stack_count = r->missing = sums->count;
        r->stacks = calloc(sums->count + 1, sizeof *r->stacks);
        if (!r->stacks)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < sums->count; i++) {
                struct hash128 id;

                memcpy(id.bytes, sums->items[i].id, sizeof id.bytes);
                st = key_map_put(&r->stack_numbers, &id, i, NULL, NULL, err);
        }
        if (!st)
                st = load_cached_stacks(r, sums, err);
        if (!st)
                st = load_head_stacks(r, err);
        return st ? st : load_part_stacks(r, err);
}

/* ---- locations ---------------------------------------------------------------------------------- */

static enum status collect_location_ids(struct resolving *r, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < r->stack_count; i++) {
                for (uint32_t k = 0; !st && k < r->stacks[i].count; k++) {
                        struct hash128 key = make_u64_key(r->stacks[i].ids[k]);

                        st = work_meter_add(r->scan->meter, 8, err);
                        if (!st)
                                st = key_map_put(&r->location_numbers, &key, UINT64_MAX, NULL, NULL, err);
                }
        }
        return st;
}

/* Number the rows from first on. Of a location that is in two parts, the first row counts. */
static void number_location_rows(struct resolving *r, size_t first)
{
        size_t kept = first;

        for (size_t i = first; i < r->rows.count; i++) {
                struct hash128 key = make_u64_key(r->rows.items[i].shown.location_id);
                uint64_t *number = key_map_find(&r->location_numbers, &key);

                if (*number != UINT64_MAX)
                        continue;
                *number = kept;
                r->rows.items[kept++] = r->rows.items[i];
        }
        r->rows.count = kept;
}

static enum status load_part_locations(struct resolving *r, struct error *err)
{
        const struct tables *t = r->scan->tables;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < t->part_count[TABLE_LOCATIONS] && r->rows.count < r->location_numbers.count;
             i++) {
                _cleanup_part_file_ struct part_file f = { 0 };

                st = work_meter_check(r->scan->meter, err);
                if (!st)
                        st = part_file_open(t->parts[TABLE_LOCATIONS][i], &f, err);
                for (uint32_t g = 0; !st && g < part_file_count_groups(&f); g++) {
                        size_t first = r->rows.count;

                        st = work_meter_check(r->scan->meter, err);
                        if (!st)
                                st = part_read_locations(&f, g, &r->location_numbers, &r->scan->arena, &r->rows, err);
                        if (!st)
                                number_location_rows(r, first);
                }
        }
        return st;
}

static enum status append_location_row(struct resolving *r, const struct location_row *row, struct error *err)
{
        if (!array_reserve(&r->rows.items, &r->rows.capacity, r->rows.count))
                return error_no_memory(err);
        r->rows.items[r->rows.count++] = *row;
        return ST_OK;
}

/* Looks rows of the head up in slices, between which the query may end. */
static enum status resolve_head_rows(struct resolving *r, size_t first, struct error *err)
{
        enum status st = ST_OK;

        for (size_t at = first, n; !st && at < r->rows.count; at += n) {
                n = r->rows.count - at < HEAD_SLICE ? r->rows.count - at : HEAD_SLICE;
                st = work_meter_check(r->scan->meter, err);
                if (!st)
                        st = location_rows_resolve(r->rows.items + at, n, r->scan->symbols, &r->scan->arena, NULL, err);
        }
        return st;
}

/* Locations that are only in the head are looked up. */
static enum status load_head_locations(struct resolving *r, struct error *err)
{
        size_t first = r->rows.count;
        enum status st = ST_OK;

        for (size_t i = 0; i < r->scan->head_count; i++) {
                const struct batch *b = r->scan->head[i];

                for (uint32_t k = 0; k < b->location_count; k++) {
                        struct hash128 key = make_u64_key(b->locations[k].id);
                        uint64_t *number = key_map_find(&r->location_numbers, &key);
                        struct location_row row;

                        if (!number || *number != UINT64_MAX)
                                continue;
                        *number = r->rows.count;
                        st = work_meter_add(r->scan->meter, 16, err);
                        if (!st)
                                st = location_row_from_batch(&row, &b->locations[k], &r->scan->arena, err);
                        if (!st)
                                st = append_location_row(r, &row, err);
                        if (st)
                                return st;
                }
        }
        return resolve_head_rows(r, first, err);
}

/* ---- the answer ----------------------------------------------------------------------------------- */

/* A location without a row is damage; its stack is shown with an empty frame. */
static enum status get_row_number(struct resolving *r, uint64_t id, uint64_t *ret, struct error *err)
{
        struct hash128 key = make_u64_key(id);
        uint64_t *number = key_map_find(&r->location_numbers, &key);

        if (*number == UINT64_MAX) {
                struct location_row row = { .shown = { .location_id = id, .mapping = "" } };
                enum status st;

                row.shown.state = symbol_state_name(SYMBOL_NO_BUILD_ID);
                st = append_location_row(r, &row, err);
                if (st)
                        return st;
                *number = r->rows.count - 1;
        }
        *ret = *number;
        return ST_OK;
}

static enum status build_scan_stacks(struct resolving *r, const struct scan_stacks **ret, struct error *err)
{
        struct arena *a = &r->scan->arena;
        struct scan_stacks *s = arena_alloc(a, sizeof *s);
        size_t total = 0;
        enum status st = ST_OK;

        for (size_t i = 0; i < r->stack_count; i++)
                total += r->stacks[i].count;
        if (!s || !(s->first = arena_alloc_array(a, r->stack_count + 1, sizeof *s->first)) ||
            !(s->indexes = arena_alloc_array(a, total + 1, sizeof *s->indexes)))
                return set_scan_too_big(err);
        s->count = r->stack_count;
        total = 0;
        for (size_t i = 0; !st && i < r->stack_count; i++) {
                s->first[i] = total;
                for (uint32_t k = 0; !st && k < r->stacks[i].count; k++) {
                        uint64_t number = 0;

                        st = work_meter_add(r->scan->meter, 4, err);
                        if (!st)
                                st = get_row_number(r, r->stacks[i].ids[k], &number, err);
                        s->indexes[total++] = (uint32_t)number;
                }
        }
        s->first[r->stack_count] = total;
        if (st)
                return st;
        s->location_count = r->rows.count;
        s->locations = arena_alloc_array(a, r->rows.count + 1, sizeof *s->locations);
        if (!s->locations)
                return set_scan_too_big(err);
        for (size_t i = 0; i < r->rows.count; i++)
                s->locations[i] = r->rows.items[i].shown;
        *ret = s;
        return ST_OK;
}

enum status store_scan_resolve(struct store_scan *scan, const struct stack_sums *sums, const struct scan_stacks **ret,
                               struct error *err)
{
        _cleanup_(resolving_deinit) struct resolving r = {
                .scan = scan,
                .stack_numbers.memory.use = MEMORY_QUERIES,
                .location_numbers.memory.use = MEMORY_QUERIES,
                .rows.memory.use = MEMORY_QUERIES,
        };
        enum status st = find_stacks(&r, sums, err);

        if (!st)
                st = collect_location_ids(&r, err);
        if (!st)
                st = load_part_locations(&r, err);
        if (!st)
                st = load_head_locations(&r, err);
        return st ? st : build_scan_stacks(&r, ret, err);
}
