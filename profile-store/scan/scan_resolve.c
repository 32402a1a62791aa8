/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "profile-store/rows/identity.h"
#include "profile-store/scan/resolving.h"
#include "profile-store/scan/stack_cache.h"
#include "profile-store/tables/part_fetch.h"

#define PARTS_PER_THREAD 4 /* parts of stacks that are worth another thread */

/* ---- stacks ----------------------------------------------------------------------------------- */

static void resolving_deinit(struct resolving *r)
{
        pthread_mutex_destroy(&r->lock);
        key_map_deinit(&r->stack_numbers);
        key_map_deinit(&r->location_numbers);
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

/* A row group of stacks as read by one thread. */
struct stack_group {
        struct column_source from;
        struct parquet_column ids, lists;
        struct work_meter *meter;
};

static void stack_group_deinit(struct stack_group *g)
{
        parquet_column_deinit(&g->ids);
        parquet_column_deinit(&g->lists);
        column_source_deinit(&g->from);
}

/* The index of the row's stack if it has not been found yet, else NULL. */
static const uint64_t *find_missing_stack(struct resolving *r, const struct stack_group *g, uint64_t row,
                                          struct hash128 *id)
{
        const uint64_t *number = part_read_stack_id(&g->ids, row, id) ? key_map_find(&r->stack_numbers, id) : NULL;
        bool is_missing;

        if (!number)
                return NULL;
        pthread_mutex_lock(&r->lock);
        is_missing = !r->stacks[*number].ids;
        pthread_mutex_unlock(&r->lock);
        return is_missing ? number : NULL;
}

static enum status copy_stack_list(struct resolving *r, const struct stack_group *g, uint64_t row, uint64_t number,
                                   const struct hash128 *id, struct error *err)
{
        uint32_t count = g->lists.offsets[row + 1] - g->lists.offsets[row];
        const int64_t *list = g->lists.ints + g->lists.offsets[row];
        struct hash128 identity;
        uint64_t *copy;

        pthread_mutex_lock(&r->lock);
        copy = arena_alloc_array(&r->scan->arena, count + (size_t)1, sizeof *copy);
        if (copy) {
                memcpy(copy, list, count * sizeof *copy);
                set_stack_locations(r, number, copy, count);
        }
        pthread_mutex_unlock(&r->lock);
        if (!copy)
                return set_scan_too_big(err);
        identity = hash_stack_identity(copy, count);
        if (r->scan->stack_cache && hash128_equal(&identity, id)) /* skips stacks of a damaged file */
                stack_cache_add(r->scan->stack_cache, id, copy, count);
        return ST_OK;
}

/* The lists are only read when a row needs them: they are much larger than the ids. */
static enum status load_group_stacks(struct resolving *r, struct stack_group *g, struct error *err)
{
        bool have_lists = false;
        enum status st = work_meter_check(g->meter, err);

        if (!st)
                st = scan_read_column(&g->from, "stack_id", PARQUET_BINARY, &g->ids, err);
        for (uint64_t i = 0; !st && i < g->ids.row_count; i++) {
                struct hash128 id;
                const uint64_t *number = find_missing_stack(r, g, i, &id);

                st = work_meter_add(g->meter, 8, err);
                if (st || !number)
                        continue;
                if (!have_lists)
                        st = scan_read_column(&g->from, "location_ids.list.element", PARQUET_INT64, &g->lists, err);
                have_lists = true;
                if (!st)
                        st = copy_stack_list(r, g, i, *number, &id, err);
        }
        return st;
}

static bool has_missing_stacks(struct resolving *r)
{
        bool has;

        pthread_mutex_lock(&r->lock);
        has = r->missing > 0;
        pthread_mutex_unlock(&r->lock);
        return has;
}

bool note_unread_file(struct resolving *r, enum status st, const struct error *err)
{
        const bool is_lost = st == ST_OS && err->os_errno == ENOENT;

        if (st != ST_OS)
                return false;
        pthread_mutex_lock(&r->lock);
        if (!r->failed || (!r->is_away && !is_lost))
                r->failure = *err;
        r->failed = st;
        r->is_away |= !is_lost;
        pthread_mutex_unlock(&r->lock);
        return true;
}

enum status open_resolved_part(struct resolving *r, const struct table_part *part, struct part_file *ret,
                               struct error *err)
{
        bool is_away;

        pthread_mutex_lock(&r->lock);
        is_away = r->is_away;
        pthread_mutex_unlock(&r->lock);
        return is_away ? part_file_open_cached(part, ret, err) : part_file_open(part, ret, err);
}

/* While the store is away only parts at hand: for any other one the store would be asked again. */
static const struct table_part *take_stack_part(struct resolving *r)
{
        const struct tables *t = r->scan->tables;
        const struct table_part *part = NULL;

        pthread_mutex_lock(&r->lock);
        while (!part && r->missing && r->parts_left) {
                part = t->parts[TABLE_STACKS][r->parts_first + --r->parts_left];
                if (r->is_away && !is_part_at_hand(part))
                        part = NULL;
        }
        pthread_mutex_unlock(&r->lock);
        return part;
}

static enum status load_part_stacks(struct resolving *r, const struct table_part *part, struct work_meter *meter,
                                    struct error *err)
{
        _cleanup_part_file_ struct part_file f = { 0 };
        enum status st = open_resolved_part(r, part, &f, err);

        for (uint32_t i = 0; !st && i < part_file_count_groups(&f) && has_missing_stacks(r); i++) {
                _cleanup_(stack_group_deinit) struct stack_group g = {
                        .from = { .file = &f, .group = i, .memory.use = MEMORY_QUERIES }, .meter = meter
                };

                st = load_group_stacks(r, &g, err);
        }
        return st;
}

/* A stack has a row in each day with samples of it; the newest days are read first. */
static enum status load_stacks_of_parts(void *context, struct work_thread *t, struct error *err)
{
        struct resolving *r = context;
        const struct table_part *part;
        struct error failure = { 0 };
        enum status st = ST_OK;

        while (!st && (part = take_stack_part(r))) {
                st = load_part_stacks(r, part, &t->meter, &failure);
                if (st && note_unread_file(r, st, &failure))
                        st = ST_OK;
        }
        if (st && err)
                *err = failure;
        return st;
}

/* The number of threads is limited so that each reads at least a few parts. */
static enum status load_group_of_parts(struct resolving *r, size_t first, size_t count, struct error *err)
{
        static const char *const columns[] = { "stack_id", "location_ids.list.element" };
        const struct part_fetch what = { .columns = columns, .column_count = sizeof columns / sizeof *columns };
        struct table_part *const *parts = r->scan->tables->parts[TABLE_STACKS] + first;
        struct error failure = { 0 };
        enum status st = r->is_away ? ST_OK : part_files_fetch(parts, count, &what, r->scan->meter, &failure);

        if (st && !note_unread_file(r, st, &failure)) {
                if (err)
                        *err = failure;
                return st;
        }
        r->parts_first = first;
        r->parts_left = count;
        return share_work(r->scan->meter, (count + PARTS_PER_THREAD - 1) / PARTS_PER_THREAD, load_stacks_of_parts, r,
                          err);
}

static size_t count_newest_at_hand(struct table_part *const *parts, size_t count)
{
        size_t n = 0;

        while (n < count && is_part_at_hand(parts[count - 1 - n]))
                n++;
        return n;
}

/*
 * Newest first. In an object store in groups, since older files may have none of the stacks: those of a group that the
 * cache lacks are fetched unless newer ones that it has suffice.
 */
static enum status load_parts_of_stacks(struct resolving *r, struct error *err)
{
        struct table_part *const *parts = r->scan->tables->parts[TABLE_STACKS];
        const size_t count = r->scan->tables->part_count[TABLE_STACKS];
        enum status st = ST_OK;

        for (size_t left = count, n; !st && left && r->missing; left -= n) {
                n = count_newest_at_hand(parts, left);
                if (!n)
                        n = PART_FETCH_GROUP - (count - left) % PART_FETCH_GROUP;
                n = n < left ? n : left;
                st = load_group_of_parts(r, left - n, n, err);
        }
        if (st || !r->missing || !r->failed)
                return st;
        if (err)
                *err = r->failure;
        return r->failed;
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
        return st ? st : load_parts_of_stacks(r, err);
}

/* ---- numbers of locations --------------------------------------------------------------------------- */

/* The numbers of some locations; those that are new get the next ones. */
static enum status number_locations(struct key_map *m, const uint64_t *ids, uint32_t count, uint32_t *ret,
                                    struct error *err)
{
        uint64_t *found[KEY_MAP_BATCH];
        enum status st = ST_OK;

        key_map_find_ids(m, ids, count, found);
        for (uint32_t i = 0; i < count; i++)
                ret[i] = found[i] ? (uint32_t)*found[i] : NOT_FOUND;
        for (uint32_t i = 0; !st && i < count; i++) {
                struct hash128 key = make_u64_key(ids[i]);
                uint64_t *number;

                if (ret[i] != NOT_FOUND)
                        continue;
                st = key_map_put(m, &key, m->count, NULL, &number, err);
                if (!st)
                        ret[i] = (uint32_t)*number;
        }
        return st;
}

/* Room for this many, of which stacks have several uses on average, saves most growth of the map. */
#define RESERVED_LOCATIONS 50000
#define LOCATION_USES_EXPECTED 4

static enum status number_stack_locations(struct resolving *r, struct scan_stacks *s, struct error *err)
{
        struct arena *a = &r->scan->arena;
        size_t total = 0, expected;
        enum status st;

        for (size_t i = 0; i < r->stack_count; i++)
                total += r->stacks[i].count;
        s->count = r->stack_count;
        if (!(s->first = arena_alloc_array(a, s->count + 1, sizeof *s->first)) ||
            !(s->indexes = arena_alloc_array(a, total + 1, sizeof *s->indexes)))
                return set_scan_too_big(err);
        expected = total / LOCATION_USES_EXPECTED;
        st = key_map_reserve(&r->location_numbers, expected < RESERVED_LOCATIONS ? expected : RESERVED_LOCATIONS, err);
        total = 0;
        for (size_t i = 0; !st && i < r->stack_count; i++) {
                const struct stack_ids *stack = &r->stacks[i];

                s->first[i] = total;
                for (uint32_t at = 0, n; !st && at < stack->count; at += n) {
                        n = key_map_batch_size(stack->count - at);
                        st = work_meter_add(r->scan->meter, 8 * n, err);
                        if (!st)
                                st = number_locations(&r->location_numbers, stack->ids + at, n, s->indexes + total + at,
                                                      err);
                }
                total += stack->count;
        }
        s->first[s->count] = total;
        if (st)
                return st;
        assert(r->location_numbers.count < FOUND_IN_PART);
        r->places = arena_alloc_array(a, r->location_numbers.count + 1, sizeof *r->places);
        if (!r->places)
                return set_scan_too_big(err);
        memset(r->places, 0xff, r->location_numbers.count * sizeof *r->places); /* NOT_FOUND */
        return ST_OK;
}

/* ---- the answer ----------------------------------------------------------------------------------- */

/* A location without a row means damage; its stack is shown with an empty frame. */
static uint32_t append_lost_location(struct resolving *r, uint64_t id)
{
        assert(r->location_count < r->location_numbers.count);
        r->locations[r->location_count] = (struct scan_location){ .location_id = id,
                                                                  .build_id = &unknown_build_id,
                                                                  .mapping = "",
                                                                  .state = symbol_state_name(SYMBOL_NO_BUILD_ID) };
        return (uint32_t)r->location_count++;
}

/* Replace the numbers of locations by their places. */
static enum status place_stack_locations(struct resolving *r, struct scan_stacks *s, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < s->count; i++) {
                const struct stack_ids *stack = &r->stacks[i];

                st = work_meter_add(r->scan->meter, stack->count, err);
                for (uint32_t k = 0; !st && k < stack->count; k++) {
                        uint32_t *index = &s->indexes[s->first[i] + k], *place = &r->places[*index];

                        if (*place == NOT_FOUND)
                                *place = append_lost_location(r, stack->ids[k]);
                        *index = *place;
                }
        }
        s->location_count = r->location_count;
        s->locations = r->locations;
        return st;
}

enum status store_scan_resolve(struct store_scan *scan, const struct stack_sums *sums, const struct scan_stacks **ret,
                               struct error *err)
{
        _cleanup_(resolving_deinit) struct resolving r = {
                .scan = scan,
                .stack_numbers.memory.use = MEMORY_QUERIES,
                .location_numbers.memory.use = MEMORY_QUERIES,
        };
        struct scan_stacks *s = arena_alloc(&scan->arena, sizeof *s);
        enum status st;

        if (!s)
                return set_scan_too_big(err);
        pthread_mutex_init(&r.lock, NULL);
        st = find_stacks(&r, sums, err);
        if (!st)
                st = number_stack_locations(&r, s, err);
        if (!st)
                st = find_location_rows(&r, err);
        if (!st)
                st = place_stack_locations(&r, s, err);
        if (!st)
                *ret = s;
        return st;
}
