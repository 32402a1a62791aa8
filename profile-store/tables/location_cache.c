/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/tables/location_cache.h"

#include <stdlib.h>

#include "common/limits.h"
#include "common/metrics.h"
#include "common/program/log.h"

#define ROW_BYTES_EXPECTED 400 /* with frames and names: a group that is larger in all likelihood is not decoded */

static struct metric hits =
        METRIC_COUNTER("cairn_location_cache_hits_total", "Row groups of locations that queries found in memory.", "");
static struct metric misses = METRIC_COUNTER("cairn_location_cache_misses_total",
                                             "Row groups of locations that queries read from files.", "");
static struct metric cached_bytes =
        METRIC_GAUGE("cairn_location_cache_bytes", "Memory of the cached row groups of locations.", "");

static _Atomic size_t used_bytes; /* of all groups in the process */

/* A decoded row group; immutable. */
struct location_group {
        struct arena arena; /* holds frames and texts */
        struct location_rows rows;
        size_t bytes; /* counted in used_bytes */
};

struct cached_group {
        _Atomic(struct location_group *) rows; /* owned; NULL: not cached */
        atomic_bool was_read;                  /* by a query */
        atomic_bool is_refused;                /* it did not fit */
};

struct part_locations {
        uint32_t count;
        struct cached_group groups[];
};

void location_cache_register_metrics(void)
{
        metric_register(&hits);
        metric_register(&misses);
        metric_register(&cached_bytes);
}

static size_t get_cache_limit(void)
{
        size_t share = memory_use_ceiling(MEMORY_CACHES) / 4;

        return share < LIMIT_LOCATION_CACHE_BYTES ? share : LIMIT_LOCATION_CACHE_BYTES;
}

static size_t get_cache_room(void)
{
        size_t limit = get_cache_limit(), used = atomic_load(&used_bytes);

        return used < limit ? limit - used : 0;
}

/* Count a group, unless other threads have used the room that it was decoded for. */
static bool add_group_bytes(const struct location_group *g)
{
        size_t limit = get_cache_limit(), used = atomic_load(&used_bytes);

        do {
                if (used > limit || g->bytes > limit - used)
                        return false;
        } while (!atomic_compare_exchange_weak(&used_bytes, &used, used + g->bytes));
        metric_add(&cached_bytes, (int64_t)g->bytes);
        return true;
}

static void remove_group_bytes(const struct location_group *g)
{
        atomic_fetch_sub(&used_bytes, g->bytes);
        metric_add(&cached_bytes, -(int64_t)g->bytes);
}

static void free_location_group(struct location_group *g)
{
        if (!g)
                return;
        location_rows_deinit(&g->rows);
        arena_deinit(&g->arena);
        free(g);
}

void location_cache_drop(struct part_locations *cached)
{
        for (uint32_t i = 0; cached && i < cached->count; i++) {
                struct location_group *g = atomic_load(&cached->groups[i].rows);

                if (g)
                        remove_group_bytes(g);
                free_location_group(g);
        }
        free(cached);
}

/* NULL without memory. */
static struct part_locations *get_part_locations(struct table_part *part, const struct part_file *f)
{
        struct part_locations *cached = atomic_load(&part->locations), *before = NULL;

        if (cached)
                return cached;
        cached = calloc(1, sizeof *cached + part_file_count_groups(f) * sizeof *cached->groups);
        if (!cached)
                return NULL;
        cached->count = part_file_count_groups(f);
        if (atomic_compare_exchange_strong(&part->locations, &before, cached))
                return cached;
        free(cached);
        return before;
}

/* A file that was replaced since the part was first read may have more row groups. */
static struct cached_group *find_cached_group(const struct table_part *part, uint32_t group)
{
        struct part_locations *cached = atomic_load(&part->locations);

        return cached && group < cached->count ? &cached->groups[group] : NULL;
}

const struct location_rows *location_cache_find(const struct table_part *part, uint32_t group)
{
        const struct cached_group *c = find_cached_group(part, group);
        const struct location_group *g = c ? atomic_load(&c->rows) : NULL;

        metric_add(g ? &hits : &misses, 1);
        return g ? &g->rows : NULL;
}

/* Decode and count a row group. *ret is NULL when it does not fit. */
static enum status decode_location_group(const struct part_file *f, uint32_t group, struct location_group **ret,
                                         struct error *err)
{
        size_t room = get_cache_room();
        struct location_group *g;
        enum status st;

        *ret = NULL;
        if (parquet_file_group_rows(f->file, group) > room / ROW_BYTES_EXPECTED)
                return ST_OK;
        g = calloc(1, sizeof *g);
        if (!g)
                return error_no_memory(err);
        arena_init_budget(&g->arena, room, MEMORY_CACHES);
        g->rows.memory.use = MEMORY_CACHES;
        st = part_read_locations(f, group, NULL, &g->arena, &g->rows, err);
        g->bytes = sizeof *g + g->arena.memory.bytes + g->rows.memory.bytes;
        if (!st && add_group_bytes(g)) {
                *ret = g;
                return ST_OK;
        }
        free_location_group(g);
        return st == ST_TOO_BIG || st == ST_BUSY ? ST_OK : st;
}

/* Cache a row group, unless another thread does it first. */
static enum status load_cached_group(struct cached_group *c, const struct part_file *f, uint32_t group,
                                     struct error *err)
{
        struct location_group *g, *before = NULL;
        enum status st = decode_location_group(f, group, &g, err);

        if (st)
                return st;
        if (!g) {
                atomic_store(&c->is_refused, true);
                return ST_OK;
        }
        if (!atomic_compare_exchange_strong(&c->rows, &before, g)) {
                remove_group_bytes(g);
                free_location_group(g);
        }
        return ST_OK;
}

enum status location_cache_offer(struct table_part *part, const struct part_file *f, uint32_t group,
                                 const struct location_rows **ret, struct error *err)
{
        struct cached_group *c = get_part_locations(part, f) ? find_cached_group(part, group) : NULL;
        enum status st = ST_OK;

        *ret = NULL;
        if (!c || !atomic_exchange(&c->was_read, true) || atomic_load(&c->is_refused))
                return ST_OK;
        st = load_cached_group(c, f, group, err);
        if (!st && atomic_load(&c->rows))
                *ret = &atomic_load(&c->rows)->rows;
        return st;
}

static enum status fill_from_part(struct table_part *part, const atomic_bool *stop, struct error *err)
{
        _cleanup_part_file_ struct part_file f = { 0 };
        enum status st = part_file_open(part, &f, err);

        if (!st && !get_part_locations(part, &f))
                st = error_no_memory(err);
        for (uint32_t i = 0; !st && i < part_file_count_groups(&f); i++) {
                struct cached_group *c = find_cached_group(part, i);

                if (atomic_load(stop) || !get_cache_room())
                        break;
                if (c && !atomic_load(&c->rows))
                        st = load_cached_group(c, &f, i, err);
        }
        return st;
}

void location_cache_fill(struct tables *t, const atomic_bool *stop)
{
        for (size_t i = t->part_count[TABLE_LOCATIONS]; i-- > 0;) {
                struct error err;

                if (atomic_load(stop) || !get_cache_room())
                        break;
                if (fill_from_part(t->parts[TABLE_LOCATIONS][i], stop, &err))
                        log_debug("store", "%s, not caching its locations", err.text);
        }
}
