/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/tables/part_fetch.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/limits.h"
#include "common/memory/array.h"
#include "common/threads/waiting_tasks.h"
#include "profile-store/tables/table_storage.h"

struct fetch_group {
        const struct part_fetch *what;
        struct table_part *const *parts[PART_FETCH_GROUP];
        _Atomic uint64_t *bytes_left;
        pthread_mutex_t lock; /* protects the failure */
        enum status failed;
        struct error error;
};

struct range_list {
        struct file_range *items; /* owned */
        size_t count, capacity;
};

static void range_list_deinit(struct range_list *l)
{
        free(l->items);
}

/* False when all columns together are too large. */
static bool take_bytes(_Atomic uint64_t *left, uint64_t n)
{
        uint64_t had = atomic_load(left);

        while (had >= n)
                if (atomic_compare_exchange_weak(left, &had, had - n))
                        return true;
        return false;
}

static enum status list_column_ranges(const struct fetch_group *g, const struct part_file *f, uint32_t group,
                                      struct range_list *l, struct error *err)
{
        for (size_t i = 0; i < g->what->column_count; i++) {
                struct file_range chunk;

                if (!part_file_find_chunk(f, group, g->what->columns[i], &chunk) ||
                    chunk.size > PART_FETCH_CHUNK_BYTES || !take_bytes(g->bytes_left, chunk.size))
                        continue;
                if (!array_reserve(&l->items, &l->capacity, l->count))
                        return error_no_memory(err);
                l->items[l->count++] = chunk;
        }
        return ST_OK;
}

static enum status fetch_part(const struct fetch_group *g, const struct table_part *part, struct error *err)
{
        _cleanup_(range_list_deinit) struct range_list ranges = { 0 };
        _cleanup_part_file_ struct part_file f = { 0 };
        enum status st = part_file_open(part, &f, err);

        for (uint32_t i = 0; !st && i < part_file_count_groups(&f); i++)
                if (!g->what->wants_group || g->what->wants_group(g->what->context, &f, i))
                        st = list_column_ranges(g, &f, i, &ranges, err);
        return st || !ranges.count ? st : storage_require(&f.map, ranges.items, ranges.count, err);
}

static bool has_fetch_failed(struct fetch_group *g)
{
        bool ret;

        pthread_mutex_lock(&g->lock);
        ret = g->failed;
        pthread_mutex_unlock(&g->lock);
        return ret;
}

/* After a failure no further file is asked for: with few threads each would take the time limit of a request. */
static void fetch_part_of_group(void *context, size_t index)
{
        struct fetch_group *g = context;
        struct error err = { 0 };
        enum status st = has_fetch_failed(g) ? ST_OK : fetch_part(g, *g->parts[index], &err);

        if (st != ST_OS || err.os_errno == ENOENT)
                return;
        pthread_mutex_lock(&g->lock);
        g->failed = st;
        g->error = err;
        pthread_mutex_unlock(&g->lock);
}

static enum status fetch_group(struct fetch_group *g, size_t count, struct error *err)
{
        pthread_mutex_init(&g->lock, NULL);
        do_waiting_tasks(count, fetch_part_of_group, g);
        pthread_mutex_destroy(&g->lock);
        if (g->failed && err)
                *err = g->error;
        return g->failed;
}

bool is_part_at_hand(const struct table_part *part)
{
        return storage_has_at_hand(part->storage, part->key);
}

enum status part_files_fetch(struct table_part *const *parts, size_t count, const struct part_fetch *what,
                             struct work_meter *meter, struct error *err)
{
        uint64_t half = get_table_cache_limit() / 2; /* else the cache would drop what the query has not read yet */
        _Atomic uint64_t bytes_left = half < PART_FETCH_MAX_BYTES ? half : PART_FETCH_MAX_BYTES;
        enum status st = ST_OK;

        for (size_t at = 0; !st && at < count;) {
                struct fetch_group g = { .what = what, .bytes_left = &bytes_left };
                size_t n = 0;

                for (; at < count && n < PART_FETCH_GROUP; at++)
                        if (!is_part_at_hand(parts[at]))
                                g.parts[n++] = &parts[at];
                if (n && meter)
                        st = work_meter_check(meter, err);
                if (!st && n)
                        st = fetch_group(&g, n, err);
        }
        return st;
}
