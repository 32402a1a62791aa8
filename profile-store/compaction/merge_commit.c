/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/compaction/merge_commit.h"

#include <stdlib.h>
#include <string.h>

#include "profile-store/core/table_follow.h"
#include "profile-store/core/table_removal.h"

static bool is_live_name(const struct tables *t, enum table table, const char *name)
{
        return find_live_part(t, table, name) != NULL;
}

/*
 * Caller holds writer_lock. After a failure it is unknown whether the commit was made until the log is read again.
 * @return ST_NOT_FOUND when another commit removed an input.
 */
static enum status try_commit(struct profile_store *s, const struct replaced_parts *r,
                              const struct merge_result *merged, struct error *err)
{
        struct table_change change = { .table = r->table,
                                       .adds = merged->adds,
                                       .add_count = merged->add_count,
                                       .removes = r->parts,
                                       .remove_count = r->part_count,
                                       /* Rows of one stack are equal; those of one location may differ. */
                                       .rearranges = !r->loses_rows && (r->table != TABLE_LOCATIONS ||
                                                                        merged->rows_read == merged->rows_written) };
        enum status st = store_reconcile(s, err);

        if (!st && r->table == TABLE_LOCATIONS && r->loses_rows)
                st = removal_begin(s, &change, err);
        if (st)
                return st;
        if (merged->add_count && is_live_name(s->tables, r->table, merged->adds[0].name))
                return ST_OK; /* committed by the previous attempt */
        if (!are_live_parts(s->tables, r->table, r->parts, r->part_count))
                return error_set(err, ST_NOT_FOUND, "another commit removed a file that was merged");
        st = merge_result_check_files(&s->logs, r->table, merged, err);
        if (!st && r->check)
                st = r->check(r->context, s->tables, err);
        if (st)
                return st;
        s->behind = true;
        if (r->table == TABLE_LOCATIONS && r->loses_rows)
                known_rows_forget_locations(&s->known); /* flushes write removed ones that are sampled again */
        st = tables_commit(&s->logs, &change, err);
        if (!st)
                st = store_publish_tables(s, err);
        if (!st)
                s->behind = false;
        return st;
}

/* Rules applied to all inputs count as applied to the outputs. Caller holds writer_lock; called after the commit. */
static void inherit_done_rules(struct profile_store *s, const struct replaced_parts *r,
                               const struct merge_result *merged)
{
        uint32_t done = r->part_count ? atomic_load(&r->parts[0]->done_rules) : r->done_rules;

        for (size_t i = 1; i < r->part_count; i++)
                done = intersect_done_rules(done, atomic_load(&r->parts[i]->done_rules));
        if (r->done_rules)
                done = unite_done_rules(r->done_rules, done);
        for (size_t i = 0; i < merged->add_count; i++) {
                struct table_part *part = find_live_part(s->tables, r->table, merged->adds[i].name);

                if (part)
                        atomic_store(&part->done_rules, done);
        }
}

enum status commit_merge(struct profile_store *s, const struct replaced_parts *r, const struct merge_result *merged,
                         struct error *err)
{
        enum status st;
        int attempts = 0;

        pthread_mutex_lock(&s->writer_lock);
        do
                st = try_commit(s, r, merged, err);
        while (st == ST_BUSY && ++attempts < COMMIT_ATTEMPTS);
        if (st && !store_reconcile(s, NULL)) {
                if (merged->add_count && is_live_name(s->tables, r->table, merged->adds[0].name))
                        st = ST_OK;
                else if (!may_commit_appear(s, st))
                        merge_result_discard(&s->logs, r->table, merged);
        }
        if (!st)
                inherit_done_rules(s, r, merged);
        pthread_mutex_unlock(&s->writer_lock);
        return st;
}
