/* SPDX-License-Identifier: Apache-2.0 */
#include "common/limits.h"
#include "common/program/log.h"
#include "profile-store/rows/identity.h"
#include "profile-store/tables/part_read.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/scan/scan_internal.h"
#include "profile-store/scan/stack_cache.h"

/*
 * Add the stacks of one row group. An id is the hash of the list, so the id column is not read. The column is charged
 * as that of a query, and skipped when memory is refused.
 */
static enum status add_group_stacks(struct stack_cache *c, const struct part_file *f, uint32_t group, struct error *err)
{
        _cleanup_column_source_ struct column_source from = { .file = f, .group = group, .memory.use = MEMORY_QUERIES };
        struct parquet_column lists = { 0 };
        enum status st = scan_read_column(&from, "location_ids.list.element", PARQUET_INT64, &lists, err);

        for (uint64_t i = 0; !st && i < lists.row_count; i++) {
                uint32_t count = lists.offsets[i + 1] - lists.offsets[i];
                const uint64_t *ids = (const uint64_t *)lists.ints + lists.offsets[i];
                const struct hash128 stack = hash_stack_identity(ids, count);

                if (!stack_cache_has_room(c))
                        break;
                stack_cache_add(c, &stack, ids, count);
        }
        parquet_column_deinit(&lists);
        return st;
}

static enum status add_part_stacks(const struct profile_store *s, const struct table_part *part, struct error *err)
{
        _cleanup_part_file_ struct part_file f = { 0 };
        enum status st = part_file_open(part, &f, err);

        for (uint32_t i = 0; !st && i < part_file_count_groups(&f); i++) {
                if (atomic_load(&s->stopping) || !stack_cache_has_room(s->stack_cache))
                        break;
                st = add_group_stacks(s->stack_cache, &f, i, err);
        }
        return st;
}

void store_fill_stack_cache(struct profile_store *s)
{
        uint64_t left_bytes = LIMIT_STACK_CACHE_FILL_BYTES;
        struct tables *t;

        pthread_mutex_lock(&s->lock);
        t = tables_ref(s->tables);
        pthread_mutex_unlock(&s->lock);
        for (size_t i = t->part_count[TABLE_STACKS]; i-- > 0;) {
                const struct table_part *part = t->parts[TABLE_STACKS][i];
                struct error err;

                if (part->bytes > left_bytes || atomic_load(&s->stopping) || !stack_cache_has_room(s->stack_cache))
                        break;
                left_bytes -= part->bytes;
                if (add_part_stacks(s, part, &err))
                        log_debug("store", "%s, not caching its stacks", err.text);
        }
        tables_unref(t);
}
