/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/lifecycle/history_retention.h"

#include <stdlib.h>

#include "common/stable_clock.h"
#include "profile-store/core/profile_store_internal.h"

#define S_PER_DAY INT64_C(86400)
#define US_PER_S INT64_C(1000000)

/* Days that end before this time are removed; INT64_MIN: none. */
static int64_t find_history_cutoff(const struct tables *t, uint64_t age_s)
{
        int64_t newest_s = INT64_MIN, now_ns, latest_ns;

        for (size_t i = 0; i < t->part_count[TABLE_HISTORY]; i++) {
                const struct table_part *p = t->parts[TABLE_HISTORY][i];

                if (table_part_has_times(p) && p->max_us / US_PER_S > newest_s)
                        newest_s = p->max_us / US_PER_S;
        }
        if (newest_s == INT64_MIN)
                return INT64_MIN;
        stable_clock_get_range(&now_ns, &latest_ns);
        return (now_ns / 1000000000 < newest_s + S_PER_DAY ? now_ns / 1000000000 : newest_s + S_PER_DAY) -
               (int64_t)age_s;
}

/* Files are sorted by name, so those of a day are contiguous. */
static enum status select_old_parts(const struct tables *t, int64_t cutoff_s, struct table_part **parts,
                                    size_t *count_ret, struct expiry *ret, struct error *err)
{
        size_t first = ret->count, count = 0;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < t->part_count[TABLE_HISTORY]; i++) {
                struct table_part *p = t->parts[TABLE_HISTORY][i];
                const struct expired_day day = { .table = TABLE_HISTORY, .day = p->day, .reason = EXPIRY_AGE };

                if (!p->has_day || (p->day + 1) * S_PER_DAY > cutoff_s)
                        continue;
                if (ret->count == first || ret->days[ret->count - 1].day != p->day)
                        st = expiry_add_day(ret, &day, err);
                if (st)
                        break;
                ret->days[ret->count - 1].files++;
                ret->days[ret->count - 1].rows += p->rows;
                ret->days[ret->count - 1].bytes += p->bytes;
                parts[count++] = p;
        }
        *count_ret = count;
        return st;
}

/* Caller holds writer_lock. */
static enum status remove_old_parts(struct profile_store *s, struct table_part **parts, size_t count, struct error *err)
{
        enum status st;

        s->behind = true;
        st = tables_commit(&s->logs,
                           &(struct table_change){ .table = TABLE_HISTORY, .removes = parts, .remove_count = count },
                           err);
        if (!st)
                st = store_publish_tables(s, err);
        s->behind = st != ST_OK;
        return st;
}

static enum status apply_history_retention(struct profile_store *s, uint64_t age_s, bool dry_run, struct expiry *ret,
                                           struct error *err)
{
        _cleanup_free_ struct table_part **parts = NULL;
        size_t first = ret->count, count = 0;
        struct tables *t;
        enum status st = dry_run ? ST_OK : store_reconcile(s, err);

        if (st)
                return st;
        pthread_mutex_lock(&s->lock);
        t = tables_ref(s->tables);
        pthread_mutex_unlock(&s->lock);
        parts = calloc(t->part_count[TABLE_HISTORY] + 1, sizeof *parts);
        st = parts ? select_old_parts(t, find_history_cutoff(t, age_s), parts, &count, ret, err) : error_no_memory(err);
        if (!st && !dry_run && count)
                st = remove_old_parts(s, parts, count, err);
        for (size_t i = first; !st && !dry_run && i < ret->count; i++)
                retention_report_removed(&ret->days[i]);
        if (st)
                ret->count = first;
        tables_unref(t);
        return st;
}

enum status history_retention_apply(struct profile_store *s, uint64_t age_s, bool dry_run, struct expiry *ret,
                                    struct error *err)
{
        enum status st;

        if (dry_run)
                return apply_history_retention(s, age_s, true, ret, err);
        pthread_mutex_lock(&s->writer_lock);
        st = apply_history_retention(s, age_s, false, ret, err);
        pthread_mutex_unlock(&s->writer_lock);
        return st == ST_NOT_FOUND ? ST_BUSY : st;
}
