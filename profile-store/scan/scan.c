/* SPDX-License-Identifier: Apache-2.0 */
#define ERROR_BODIES
#include "profile-store/scan.h"

#include <string.h>

#include "common/limits.h"
#include "profile-store/core/kept_heads.h"
#include "profile-store/scan/scan_internal.h"
#include "profile-store/scan/table_scan.h"

enum status store_scan_begin(struct profile_store *store, struct store_scan **ret, struct error *err)
{
        struct store_scan *scan = calloc(1, sizeof *scan);
        enum status st;

        if (!scan)
                return error_no_memory(err);
        scan->store = store;
        scan->symbols = store->options.symbols;
        scan->stack_cache = store->stack_cache;
        arena_init_budget(&scan->arena, LIMIT_SCAN_MEMORY_BYTES, MEMORY_QUERIES);
        if (!store->options.read_only || store->is_replica)
                store_gather_from_nodes(store, &scan->missing);
        pthread_mutex_lock(&store->lock);
        st = store->options.read_only && !store->is_replica ? store_reload(store, err) : ST_OK;
        if (!st)
                st = head_copy_durable(store, &scan->head, &scan->head_count, err);
        if (!st)
                st = kept_heads_copy(store, &scan->head, &scan->head_count, err);
        if (!st)
                scan->tables = tables_ref(store->tables);
        pthread_mutex_unlock(&store->lock);
        if (st)
                store_scan_end(scan);
        else
                *ret = scan;
        return st;
}

enum status store_scan_begin_tables(struct profile_store *store, struct tables *t, struct store_scan **ret,
                                    struct error *err)
{
        struct store_scan *scan = calloc(1, sizeof *scan);

        if (!scan)
                return error_no_memory(err);
        scan->stack_cache = store->stack_cache;
        scan->tables = tables_ref(t);
        arena_init_budget(&scan->arena, LIMIT_SCAN_MEMORY_BYTES, MEMORY_QUERIES);
        *ret = scan;
        return ST_OK;
}

enum status store_scan_begin_profiles(const struct profile *const *profiles, size_t count, struct store_scan **ret,
                                      struct error *err)
{
        struct store_scan *scan = calloc(1, sizeof *scan);
        enum status st = ST_OK;

        if (!scan)
                return error_no_memory(err);
        arena_init_budget(&scan->arena, LIMIT_SCAN_MEMORY_BYTES, MEMORY_QUERIES);
        scan->tables = tables_create_empty();
        scan->head = calloc(count + 1, sizeof(struct batch *));
        if (!scan->tables || !scan->head)
                st = error_no_memory(err);
        for (size_t i = 0; i < count && !st; i++) {
                st = batch_create(profiles[i], &scan->head[i], err);
                scan->head_count += !st;
        }
        if (st)
                store_scan_end(scan);
        else
                *ret = scan;
        return st;
}

const struct missing_nodes *store_scan_get_missing_nodes(const struct store_scan *scan)
{
        return &scan->missing;
}

const struct tables *store_scan_get_tables(const struct store_scan *scan)
{
        return scan->tables;
}

bool store_scan_lacks_tables(const struct store_scan *scan)
{
        return scan->tables->is_absent;
}

bool store_scan_has_head_between(const struct store_scan *scan, int64_t from_us, int64_t to_us)
{
        for (size_t i = 0; i < scan->head_count; i++)
                if (scan->head[i]->newest_us >= from_us && scan->head[i]->oldest_us < to_us)
                        return true;
        return false;
}

struct profile_store *store_scan_get_store(const struct store_scan *scan)
{
        return scan->store;
}

void store_scan_end(struct store_scan *scan)
{
        if (!scan)
                return;
        batches_unref(scan->head, scan->head_count);
        tables_unref(scan->tables);
        arena_deinit(&scan->arena);
        free(scan);
}

void store_scan_set_meter(struct store_scan *scan, struct work_meter *meter)
{
        scan->meter = meter;
}

enum status set_scan_too_big(struct error *err)
{
        if (memory_budget_refused_recently())
                return error_set(
                        err, ST_BUSY,
                        "the memory for queries is in use; retry later, or narrow the query's time range or labels");
        return error_set(err, ST_TOO_BIG, "a query's result needs more than %zu bytes; narrow its time range or labels",
                         (size_t)LIMIT_SCAN_MEMORY_BYTES);
}
