/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/scan.h"

#include <string.h>

#include "common/limits.h"
#include "profile-store/scan_internal.h"

enum status store_scan_begin(struct profile_store *store, struct store_scan **ret, struct error *err)
{
        struct store_scan *scan = calloc(1, sizeof *scan);
        enum status st;

        if (!scan)
                return error_no_memory(err);
        scan->symbols = store->options.symbols;
        arena_init_budget(&scan->arena, LIMIT_SCAN_MEMORY_BYTES, MEMORY_QUERIES);
        pthread_mutex_lock(&store->lock);
        st = store->options.read_only ? store_reload(store, err) : ST_OK;
        if (!st)
                st = head_take(store, &scan->head, &scan->head_count, err);
        if (!st)
                scan->tables = tables_ref(store->tables);
        pthread_mutex_unlock(&store->lock);
        if (st)
                store_scan_end(scan);
        else
                *ret = scan;
        return st;
}

enum status store_scan_profiles(const struct profile *const *profiles, size_t count, struct store_scan **ret,
                                struct error *err)
{
        struct store_scan *scan = calloc(1, sizeof *scan);
        enum status st = ST_OK;

        if (!scan)
                return error_no_memory(err);
        arena_init_budget(&scan->arena, LIMIT_SCAN_MEMORY_BYTES, MEMORY_QUERIES);
        scan->tables = tables_empty();
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

enum status scan_full(struct error *err)
{
        if (memory_budget_is_short())
                return error_set(err, ST_BUSY, "the memory for queries is in use; retry later, or narrow the query's time range or labels");
        return error_set(err, ST_TOO_BIG,
                         "a query's result needs more than %zu bytes; narrow its time range or labels",
                         (size_t)LIMIT_SCAN_MEMORY_BYTES);
}

static enum status scan_part(const struct row_filter *r, const struct table_part *part, visit_chunk *visit,
                             void *context, struct error *err)
{
        _cleanup_part_file_ struct part_file f = { 0 };
        enum status st = work_meter_check(r->meter, err);

        if (!st)
                st = part_file_open(part, &f, err);
        for (uint32_t g = 0; !st && g < part_file_groups(&f); g++) {
                _cleanup_chosen_ struct chosen chosen = { 0 };
                const struct chunk chunk = { .file = &f, .group = g, .chosen = &chosen };

                st = work_meter_check(r->meter, err);
                if (!st)
                        st = choose_in_group(r, &f, g, &chosen, err);
                if (!st && chosen.chosen_count)
                        st = visit(context, &chunk, err);
        }
        return st;
}

enum status scan_chunks(struct store_scan *scan, const struct scan_filter *filter, visit_chunk *visit,
                        void *context, struct error *err)
{
        _cleanup_row_filter_ struct row_filter r;
        enum status st = row_filter_init(&r, filter, scan->meter, err);

        for (size_t i = 0; !st && i < scan->tables->part_count[TABLE_SAMPLES]; i++) {
                const struct table_part *part = scan->tables->parts[TABLE_SAMPLES][i];

                if (part_may_fit(&r, part))
                        st = scan_part(&r, part, visit, context, err);
        }
        for (size_t i = 0; !st && i < scan->head_count; i++) {
                _cleanup_chosen_ struct chosen chosen = { 0 };
                const struct chunk chunk = { .batch = scan->head[i], .chosen = &chosen };

                st = work_meter_add(r.meter, 64, err);
                if (!st)
                        st = choose_in_batch(&r, scan->head[i], &chosen, err);
                if (!st && chosen.chosen_count)
                        st = visit(context, &chunk, err);
        }
        return st;
}
