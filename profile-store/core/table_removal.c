/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/core/table_removal.h"

#include "profile-store/core/table_follow.h"

static enum status commit_removal_number(struct profile_store *s, struct error *err)
{
        const struct table_change begin = { .table = TABLE_SAMPLES,
                                            .mark = REMOVAL_APP_ID,
                                            .mark_version = s->tables->removal + 1,
                                            .base = s->tables };
        enum status st = tables_commit(&s->logs, &begin, err);

        s->behind |= st && st != ST_BUSY;
        return st;
}

enum status removal_begin(struct profile_store *s, struct table_change *change_ret, struct error *err)
{
        enum status st = ST_BUSY;

        if (!has_shared_tables(s))
                return ST_OK;
        for (int i = 0; st == ST_BUSY && i < COMMIT_ATTEMPTS; i++) {
                st = store_reconcile(s, err);
                if (!st)
                        st = commit_removal_number(s, err);
        }
        if (!st)
                st = store_follow_tables(s, err);
        if (st)
                return st;
        if (s->tables->settled[change_ret->table] >= s->tables->removal)
                return error_set(err, ST_BUSY, "a flush of another node stopped the removal of rows of %s",
                                 table_name(change_ret->table));
        change_ret->mark = REMOVAL_APP_ID;
        change_ret->mark_version = s->tables->removal;
        change_ret->base = s->tables;
        return ST_OK;
}

enum status removal_stop_others(struct profile_store *s, struct error *err)
{
        static const enum table tables[] = { TABLE_STACKS, TABLE_LOCATIONS };
        bool has_stopped = false;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < sizeof tables / sizeof *tables; i++) {
                const struct table_change stop = { .table = tables[i],
                                                   .mark = REMOVAL_APP_ID,
                                                   .mark_version = s->tables->removal };

                if (!has_shared_tables(s) || s->tables->settled[tables[i]] >= s->tables->removal)
                        continue;
                st = tables_commit(&s->logs, &stop, err);
                s->behind |= st && st != ST_BUSY;
                has_stopped = true;
        }
        return st || !has_stopped ? st : store_follow_tables(s, err);
}
