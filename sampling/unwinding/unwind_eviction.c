/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/unwinding/unwind_eviction.h"

#include "sampling/unwinding/unwinder_internal.h"

#define OF_ANY_OWNER UINT32_MAX

uint64_t unwind_count_loaded_rows(const struct unwind_loaded_table *p)
{
        uint64_t rows = 0;

        for (size_t i = 0; i < p->extent_count; i++)
                rows += p->extents[i].count;
        return rows;
}

/* Evict the least recently used table of the owner. Returns its row count; 0 when all are in use. */
static uint64_t evict_unused_table(struct unwinder *u, uint32_t owner)
{
        struct unwinder_table *oldest = NULL;
        uint64_t rows;

        for (size_t i = 0; i < u->table_count; i++) {
                struct unwinder_table *t = &u->tables[i];

                if (t->state == TABLE_READY && !t->users && (owner == OF_ANY_OWNER || t->owner == owner) &&
                    (!oldest || t->used_at < oldest->used_at))
                        oldest = t;
        }
        if (!oldest)
                return 0;
        rows = unwind_count_loaded_rows(&oldest->placed);
        unwind_quota_refund(&u->quota, oldest->owner, UNWIND_ROWS, rows);
        unwind_quota_refund(&u->quota, oldest->owner, UNWIND_PAGES, oldest->placed.page_count);
        unwind_maps_remove_table(&u->maps, &oldest->placed);
        oldest->state = TABLE_UNKNOWN;
        for (size_t i = 0; i < u->table_count; i++)
                if (u->tables[i].state == TABLE_SAME && &u->tables[u->tables[i].same_as - 1] == oldest)
                        u->tables[i].state = TABLE_UNKNOWN;
        u->stats.tables_ready--;
        u->stats.tables_evicted++;
        return rows;
}

bool unwind_evict_for_quota(struct unwinder *u, uint32_t owner, const struct unwind_table *built)
{
        for (;;) {
                if (built->row_count <= unwind_quota_get_remaining(&u->quota, owner, UNWIND_ROWS) &&
                    built->page_count <= unwind_quota_get_remaining(&u->quota, owner, UNWIND_PAGES))
                        return true;
                if (!evict_unused_table(u, owner))
                        return false;
        }
}

void unwind_evict_rows(struct unwinder *u, uint64_t rows)
{
        uint64_t freed = 0, evicted = 1;

        while (evicted && freed < rows) {
                evicted = evict_unused_table(u, OF_ANY_OWNER);
                freed += evicted;
        }
}
