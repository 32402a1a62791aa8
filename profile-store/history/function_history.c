/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct history_pass is one pass: a snapshot of the tables, from which all of its hours are derived, and the hours,
 * sorted. rewrite_day() makes the new files of a day: derived hours, and the other hours of the files that it
 * replaces; commit_day() replaces them.
 *
 * In the file: metrics; the hours of a pass, marked or renamed; one day; merging; the pass.
 */
#include "profile-store/history/function_history.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/core/table_absence.h"
#include "profile-store/core/table_follow.h"
#include "profile-store/history/history_rows.h"

#define NS_PER_S INT64_C(1000000000)
#define S_PER_HOUR 3600
#define HOURS_PER_DAY 24
#define RETRY_S 60      /* after a failed pass */
#define POSTPONE_S 600  /* an hour that could not be derived */
#define COVERED_LAG 256 /* commits that a restart reads again before a commit for the version alone */
#define HISTORY_GROUP_BYTES MiB(4)

static struct metric derived_hours =
        METRIC_COUNTER("cairn_history_derivations_total", "Hours derived for the history of functions.", "");
static struct metric kept_hours =
        METRIC_COUNTER("cairn_history_kept_total",
                       "Hours whose history was kept because retention had removed some of their samples.", "");
static struct metric failures =
        METRIC_COUNTER("cairn_history_failures_total",
                       "Hours that could not be derived for the history of functions, and failed commits; they are "
                       "repeated.",
                       "");
static struct histogram duration = HISTOGRAM("cairn_history_pass_duration_seconds",
                                             "Duration of passes that changed the history of functions.", "");

void function_history_register_metrics(void)
{
        metric_register(&derived_hours);
        metric_register(&kept_hours);
        metric_register(&failures);
        metric_register(&duration.metric);
}

struct function_history *function_history_create(void)
{
        struct function_history *h = calloc(1, sizeof *h);

        if (!h)
                return NULL;
        pthread_mutex_init(&h->pass_lock, NULL);
        history_marks_init(&h->marks);
        return h;
}

void function_history_destroy(struct function_history *h)
{
        if (!h)
                return;
        history_marks_deinit(&h->marks);
        pthread_mutex_destroy(&h->pass_lock);
        free(h);
}

/* ---- the hours of a pass ---- */

struct history_pass {
        struct profile_store *s;
        struct tables *tables;
        int64_t history_version; /* of the log of function_history after the last commit */
        bool is_full;            /* also hours that got samples just now */
        int64_t *hours;          /* sorted, distinct; owned */
        size_t hour_count, hour_capacity;
        struct build_id *renamed; /* objects with new symbols, sorted; owned */
        size_t renamed_count, renamed_capacity;
        bool renamed_all;
        bool changed;
        bool postponed; /* an hour could not be derived */
};

static void history_pass_deinit(struct history_pass *p)
{
        tables_unref(p->tables);
        free(p->hours);
        free(p->renamed);
}

static enum status add_hour(struct history_pass *p, int64_t hour, struct error *err)
{
        if (!array_reserve(&p->hours, &p->hour_capacity, p->hour_count))
                return error_no_memory(err);
        p->hours[p->hour_count++] = hour;
        return ST_OK;
}

static int64_t get_day_of_hour(int64_t hour)
{
        return hour / HOURS_PER_DAY - (hour % HOURS_PER_DAY < 0);
}

static int compare_hours(const void *a, const void *b)
{
        const int64_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static void sort_hours(struct history_pass *p)
{
        size_t kept = 0;

        if (p->hour_count)
                qsort(p->hours, p->hour_count, sizeof *p->hours, compare_hours);
        for (size_t i = 0; i < p->hour_count; i++)
                if (!kept || p->hours[kept - 1] != p->hours[i])
                        p->hours[kept++] = p->hours[i];
        p->hour_count = kept;
}

/* Whether the rows of an hour were derived from its samples already, before a crash. */
static bool has_derived_hour(const struct history_pass *p, const struct history_mark *m)
{
        const struct tables *t = p->tables;
        int64_t hour_us = m->hour * HISTORY_HOUR_US;

        for (size_t i = 0; i < t->part_count[TABLE_HISTORY]; i++) {
                const struct table_part *part = t->parts[TABLE_HISTORY][i];

                if (part->min_us == hour_us && part->max_us == hour_us && part->source_version >= (int64_t)m->last)
                        return true;
        }
        return false;
}

static enum status add_marked_hours(struct history_pass *p, struct error *err)
{
        _cleanup_free_ struct history_mark *marks = NULL;
        int64_t now_hour = wall_clock_ns() / NS_PER_S / S_PER_HOUR, now_ns = monotonic_ns();
        size_t count;
        enum status st = history_marks_copy(&p->s->history->marks, &marks, &count, err);

        for (size_t i = 0; !st && i < count; i++) {
                if (marks[i].hour >= now_hour)
                        continue;
                if (has_derived_hour(p, &marks[i]))
                        history_marks_settle(&p->s->history->marks, &marks[i].hour, 1, marks[i].last);
                else if (p->is_full || (now_ns >= marks[i].touched_ns + HISTORY_QUIET_S * NS_PER_S &&
                                        now_ns >= marks[i].postponed_ns))
                        st = add_hour(p, marks[i].hour, err);
        }
        return st;
}

/* ---- renamed objects ---- */

static int compare_renamed(const void *a, const void *b)
{
        return build_id_compare(a, b);
}

static enum status add_renamed(struct history_pass *p, char *list, struct error *err)
{
        char *hex;

        while ((hex = strsep(&list, ","))) {
                if (!array_reserve(&p->renamed, &p->renamed_capacity, p->renamed_count))
                        return error_no_memory(err);
                if (build_id_from_hex(&p->renamed[p->renamed_count], hex, strlen(hex)))
                        p->renamed_count++;
                else
                        p->renamed_all = true;
        }
        return ST_OK;
}

/* Read the objects of the re-symbolizations that the history lacks. */
static enum status find_renamed(struct history_pass *p, struct error *err)
{
        struct function_history *h = p->s->history;
        int64_t covered = p->tables->covered[TABLE_LOCATIONS];
        enum status st = ST_OK;

        if (covered > (int64_t)h->renamed_until)
                h->renamed_until = (uint64_t)covered;
        for (uint64_t v = h->renamed_until + 1;
             !st && !p->renamed_all && v <= (uint64_t)p->tables->versions[TABLE_LOCATIONS]; v++) {
                _cleanup_delta_past_commit_ struct delta_past_commit c = { 0 };

                st = delta_past_commit_read(p->s->logs.logs[TABLE_LOCATIONS], v, TABLE_BUILD_IDS, &c, err);
                if (st == ST_NOT_FOUND) { /* a deleted commit: it may have renamed anything */
                        p->renamed_all = true;
                        st = ST_OK;
                } else if (!st && c.parameter) {
                        st = add_renamed(p, c.parameter, err);
                }
        }
        if (p->renamed_count)
                qsort(p->renamed, p->renamed_count, sizeof *p->renamed, compare_renamed);
        return st;
}

static bool has_samples_of_day(const struct tables *t, int64_t day)
{
        for (size_t i = 0; i < t->part_count[TABLE_SAMPLES]; i++)
                if (t->parts[TABLE_SAMPLES][i]->has_day && t->parts[TABLE_SAMPLES][i]->day == day)
                        return true;
        return false;
}

static enum status add_hour_if_renamed(void *context, const struct history_row *row, struct error *err)
{
        struct history_pass *p = context;
        int64_t hour = row->hour_us / HISTORY_HOUR_US;
        struct build_id id;

        if (p->hour_count && p->hours[p->hour_count - 1] == hour)
                return ST_OK;
        if (p->renamed_all || (build_id_from_hex(&id, row->build_id, strlen(row->build_id)) &&
                               bsearch(&id, p->renamed, p->renamed_count, sizeof id, compare_renamed)))
                return add_hour(p, hour, err);
        return ST_OK;
}

/* Hours whose samples are gone keep their names. */
static enum status add_renamed_hours(struct history_pass *p, struct error *err)
{
        const struct tables *t = p->tables;
        enum status st = find_renamed(p, err);

        for (size_t i = 0; !st && (p->renamed_count || p->renamed_all) && i < t->part_count[TABLE_HISTORY]; i++) {
                const struct table_part *part = t->parts[TABLE_HISTORY][i];

                if (part->has_day && has_samples_of_day(t, part->day))
                        st = history_part_visit(part, INT64_MIN, INT64_MAX, MEMORY_COMPACTION, add_hour_if_renamed, p,
                                                err);
        }
        return st;
}

/* ---- one day ---- */

/* New files of a day, and those that they replace. */
struct day_rewrite {
        struct history_pass *p;
        int64_t day;
        const int64_t *hours; /* to derive, of the day */
        size_t hour_count;
        struct table_part **parts; /* replaced; owned */
        size_t part_count;
        uint64_t old_samples[HOURS_PER_DAY]; /* self_samples of the hours in them */
        bool has_hour[HOURS_PER_DAY];
        struct table_add *adds; /* owned */
        size_t add_count, add_capacity;
        struct history_part to;
        bool is_writing;
        int64_t settled[HOURS_PER_DAY]; /* hours that were derived or are kept */
        size_t settled_count;
};

static void discard_day_files(struct day_rewrite *d)
{
        for (size_t i = 0; i < d->add_count; i++) {
                _cleanup_free_ char *key = make_table_key(TABLE_HISTORY, d->adds[i].name);

                if (key && d->adds[i].written.bytes)
                        (void)!storage_remove(d->p->s->storage, key, NULL);
        }
}

static void day_rewrite_deinit(struct day_rewrite *d)
{
        if (d->is_writing)
                part_writer_deinit(&d->to.part);
        for (size_t i = 0; i < d->add_count; i++)
                table_add_deinit(&d->adds[i]);
        free(d->adds);
        free(d->parts);
}

static char *make_history_name(int64_t day)
{
        char name[80];
        uint64_t unique;

        if (getrandom(&unique, sizeof unique, 0) != sizeof unique)
                return NULL;
        snprintf(name, sizeof name, "hours-%020" PRId64 "-%016" PRIx64 ".parquet", wall_clock_ns(), unique);
        return make_day_path(day, name);
}

static enum status begin_day_file(struct day_rewrite *d, struct error *err)
{
        const struct part_limits limits = { .max_rows = UINT64_MAX,
                                            .use = MEMORY_COMPACTION,
                                            .group_bytes = HISTORY_GROUP_BYTES };
        _cleanup_free_ char *key = NULL;
        struct table_add *add;

        if (!array_reserve(&d->adds, &d->add_capacity, d->add_count))
                return error_no_memory(err);
        add = &d->adds[d->add_count];
        *add = (struct table_add){ .name = make_history_name(d->day), .has_day = true, .day = d->day };
        if (!add->name)
                return error_no_memory(err);
        d->add_count++;
        key = make_table_key(TABLE_HISTORY, add->name);
        if (!key)
                return error_no_memory(err);
        d->is_writing = true;
        return history_part_begin(&d->to, d->p->s->storage, key, &limits, err);
}

static enum status finish_day_file(struct day_rewrite *d, struct error *err)
{
        enum status st = ST_OK;

        if (!d->is_writing)
                return ST_OK;
        st = part_writer_finish(&d->to.part, &d->adds[d->add_count - 1].written, err);
        part_writer_deinit(&d->to.part);
        d->is_writing = false;
        return st;
}

static enum status put_day_row(void *context, const struct history_row *row, struct error *err)
{
        struct day_rewrite *d = context;
        enum status st = ST_OK;

        if (d->is_writing && !part_writer_has_room(&d->to.part))
                st = finish_day_file(d, err);
        if (!st && !d->is_writing)
                st = begin_day_file(d, err);
        return st ? st : history_part_put(&d->to, row, err);
}

static enum status count_old_samples(void *context, const struct history_row *row, struct error *err)
{
        struct day_rewrite *d = context;
        int64_t hour = row->hour_us / HISTORY_HOUR_US - d->day * HOURS_PER_DAY;

        (void)err;
        if (hour >= 0 && hour < HOURS_PER_DAY) {
                d->has_hour[hour] = true;
                d->old_samples[hour] += row->self_samples;
        }
        return ST_OK;
}

static bool has_any_hour(const struct table_part *part, const int64_t *hours, size_t count)
{
        if (!table_part_has_times(part))
                return true;
        for (size_t i = 0; i < count; i++)
                if (hours[i] * HISTORY_HOUR_US >= part->min_us && hours[i] * HISTORY_HOUR_US <= part->max_us)
                        return true;
        return false;
}

/* @param all  also the files without an hour to derive. */
static enum status find_day_parts(struct day_rewrite *d, bool all, struct error *err)
{
        const struct tables *t = d->p->tables;
        enum status st = ST_OK;

        d->parts = calloc(t->part_count[TABLE_HISTORY] + 1, sizeof *d->parts);
        if (!d->parts)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < t->part_count[TABLE_HISTORY]; i++) {
                struct table_part *part = t->parts[TABLE_HISTORY][i];

                if (!part->has_day || part->day != d->day || (!all && !has_any_hour(part, d->hours, d->hour_count)))
                        continue;
                d->parts[d->part_count++] = part;
                st = history_part_visit(part, INT64_MIN, INT64_MAX, MEMORY_COMPACTION, count_old_samples, d, err);
        }
        return st;
}

static enum status copy_old_hours(struct day_rewrite *d, int64_t first, int64_t end, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < d->part_count; i++)
                st = history_part_visit(d->parts[i], first * HISTORY_HOUR_US, end * HISTORY_HOUR_US, MEMORY_COMPACTION,
                                        put_day_row, d, err);
        return st;
}

/* Failures that another hour need not have. */
static bool is_failure_of_hour(enum status st, const struct error *why)
{
        return st == ST_BUSY || st == ST_NO_MEMORY || part_is_unreadable(st, why);
}

static enum status put_derived_rows(struct day_rewrite *d, const struct history_rows *rows, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < rows->count; i++)
                st = put_day_row(d, &rows->items[i], err);
        return st;
}

static enum status put_derived_hour(struct day_rewrite *d, int64_t hour, struct error *err)
{
        uint64_t old = d->old_samples[hour - d->day * HOURS_PER_DAY];
        struct history_rows rows = { 0 };
        struct error why = { 0 };
        enum status st = history_rows_derive(d->p->s, d->p->tables, hour, &rows, &why);

        if (!st && rows.self_samples >= old) {
                st = put_derived_rows(d, &rows, err);
                metric_add(&derived_hours, 1);
                d->settled[d->settled_count++] = hour;
                history_rows_deinit(&rows);
                return st;
        }
        history_rows_deinit(&rows);
        if (st && !is_failure_of_hour(st, &why)) {
                if (err)
                        *err = why;
                return st;
        }
        if (st) {
                log_error("store", "cannot derive an hour of the history of functions, retrying in %d s: %s",
                          POSTPONE_S, why.text);
                metric_add(&failures, 1);
                history_marks_postpone(&d->p->s->history->marks, hour, monotonic_ns() + POSTPONE_S * NS_PER_S);
                d->p->postponed = true;
        } else {
                metric_add(&kept_hours, 1);
                d->settled[d->settled_count++] = hour;
        }
        return copy_old_hours(d, hour, hour + 1, err);
}

static bool is_derived_hour(const struct day_rewrite *d, int64_t hour)
{
        return d->hour_count && bsearch(&hour, d->hours, d->hour_count, sizeof hour, compare_hours);
}

static enum status write_day(struct day_rewrite *d, struct error *err)
{
        int64_t first = d->day * HOURS_PER_DAY;
        enum status st = ST_OK;

        for (int64_t hour = first, end; !st && hour < first + HOURS_PER_DAY; hour = end) {
                end = hour + 1;
                if (is_derived_hour(d, hour)) {
                        st = put_derived_hour(d, hour, err);
                        continue;
                }
                if (!d->has_hour[hour - first])
                        continue;
                while (d->part_count == 1 && end < first + HOURS_PER_DAY && !is_derived_hour(d, end))
                        end++;
                st = copy_old_hours(d, hour, end, err);
        }
        return st ? st : finish_day_file(d, err);
}

static bool is_day_committed(const struct day_rewrite *d)
{
        return d->add_count && find_live_part(d->p->s->tables, TABLE_HISTORY, d->adds[0].name);
}

/* Caller holds writer_lock. */
static enum status try_commit_day(struct day_rewrite *d, const struct table_coverage *covers, bool rearranges,
                                  struct error *err)
{
        struct profile_store *s = d->p->s;
        struct table_change change = { .table = TABLE_HISTORY,
                                       .adds = d->adds,
                                       .add_count = d->add_count,
                                       .removes = d->parts,
                                       .remove_count = d->part_count,
                                       .rearranges = rearranges,
                                       .covers = covers };
        enum status st = store_reconcile(s, err);

        if (!st)
                st = store_publish_tables(s, err); /* with commits of properties, which nobody published */
        if (st || is_day_committed(d))
                return st;
        if (s->tables->versions[TABLE_HISTORY] != d->p->history_version)
                return error_set(err, ST_BUSY, "another commit changed the history of functions");
        s->behind = true;
        change.base = s->tables;
        st = tables_commit(&s->logs, &change, err);
        if (!st)
                st = store_publish_tables(s, err);
        if (!st)
                s->behind = false;
        return st;
}

static enum status commit_day(struct day_rewrite *d, const struct table_coverage *covers, bool rearranges,
                              struct error *err)
{
        struct profile_store *s = d->p->s;
        enum status st;

        if (!d->add_count && !d->part_count && !covers)
                return ST_OK;
        pthread_mutex_lock(&s->writer_lock);
        st = try_commit_day(d, covers, rearranges, err);
        if (st && !store_reconcile(s, NULL)) {
                if (is_day_committed(d))
                        st = ST_OK;
                else if (!may_commit_appear(s, st))
                        discard_day_files(d);
        }
        if (!st)
                d->p->history_version = s->tables->versions[TABLE_HISTORY];
        pthread_mutex_unlock(&s->writer_lock);
        d->p->changed |= !st;
        return st;
}

/* The version that the history covers once the hours of the pass are settled; false when it is no progress. */
static bool find_new_coverage(struct history_pass *p, struct table_coverage *ret)
{
        int64_t covered = history_marks_get_covered(&p->s->history->marks);

        *ret = (struct table_coverage){ TABLE_SAMPLES, (uint64_t)covered };
        return covered >= 0 && covered > p->tables->covered[TABLE_SAMPLES];
}

static enum status rewrite_day(struct history_pass *p, size_t first, size_t end, struct error *err)
{
        _cleanup_(day_rewrite_deinit) struct day_rewrite d = {
                .p = p, .day = get_day_of_hour(p->hours[first]), .hours = p->hours + first, .hour_count = end - first
        };
        enum status st = find_day_parts(&d, false, err);

        if (!st)
                st = write_day(&d, err);
        if (st)
                discard_day_files(&d);
        else if (d.settled_count)
                st = commit_day(&d, NULL, false, err);
        if (!st)
                history_marks_settle(&p->s->history->marks, d.settled, d.settled_count,
                                     (uint64_t)p->tables->versions[TABLE_SAMPLES]);
        return st;
}

/* ---- merging ---- */

static enum status merge_day(struct history_pass *p, int64_t day, struct error *err)
{
        _cleanup_(day_rewrite_deinit) struct day_rewrite d = { .p = p, .day = day };
        enum status st = find_day_parts(&d, true, err);

        if (!st)
                st = write_day(&d, err);
        if (st)
                discard_day_files(&d);
        return st ? st : commit_day(&d, NULL, true, err);
}

static bool is_day_in_pass(const struct history_pass *p, int64_t day)
{
        for (size_t i = 0; i < p->hour_count; i++)
                if (get_day_of_hour(p->hours[i]) == day)
                        return true;
        return false;
}

/* Merge the files of days that are over; those that the pass changed wait for the next one. */
static enum status merge_days(struct history_pass *p, struct error *err)
{
        const struct tables *t = p->tables;
        int64_t today = get_day_of_hour(wall_clock_ns() / NS_PER_S / S_PER_HOUR);
        enum status st = ST_OK;

        for (size_t i = 0, end; !st && i < t->part_count[TABLE_HISTORY]; i = end) {
                const struct table_part *part = t->parts[TABLE_HISTORY][i];

                for (end = i + 1; end < t->part_count[TABLE_HISTORY]; end++)
                        if (t->parts[TABLE_HISTORY][end]->day != part->day)
                                break;
                if (end - i > 1 && part->has_day && part->day < today && !is_day_in_pass(p, part->day))
                        st = merge_day(p, part->day, err);
        }
        return st;
}

/* ---- the pass ---- */

static enum status commit_coverage(struct history_pass *p, const struct table_coverage *covers, struct error *err)
{
        struct day_rewrite d = { .p = p };

        return commit_day(&d, covers, false, err);
}

/* Versions that the history covers now; a commit only for them when it is worthwhile. */
static enum status cover_versions(struct history_pass *p, struct error *err)
{
        const struct tables *t = p->tables;
        const struct table_coverage renamed = { TABLE_LOCATIONS, (uint64_t)t->versions[TABLE_LOCATIONS] };
        struct table_coverage samples;
        bool is_progress = find_new_coverage(p, &samples);
        int64_t lag = (int64_t)samples.version - t->covered[TABLE_SAMPLES],
                renamed_lag = (int64_t)renamed.version - t->covered[TABLE_LOCATIONS];
        enum status st = ST_OK;

        if (is_progress && (p->changed || lag > COVERED_LAG))
                st = commit_coverage(p, &samples, err);
        if (!st && !p->postponed && renamed_lag > 0 &&
            (p->renamed_count || p->renamed_all || renamed_lag > COVERED_LAG || (p->changed && is_progress)))
                st = commit_coverage(p, &renamed, err);
        if (!st && !p->postponed)
                p->s->history->renamed_until = renamed.version;
        return st;
}

/*
 * No hour has been derived yet: all will have the current names. This is recorded before the first one, since a later
 * re-symbolization must find it.
 */
static enum status begin_history(struct history_pass *p, struct error *err)
{
        const struct table_coverage names = { TABLE_LOCATIONS, (uint64_t)p->tables->versions[TABLE_LOCATIONS] };

        if (!p->tables->part_count[TABLE_SAMPLES])
                return ST_OK;
        p->s->history->renamed_until = names.version;
        return commit_coverage(p, &names, err);
}

static enum status run_pass_of_tables(struct history_pass *p, struct error *err)
{
        enum status st =
                history_marks_update(&p->s->history->marks, p->s->logs.logs[TABLE_SAMPLES], p->tables, true, err);

        if (!st && p->tables->covered[TABLE_LOCATIONS] < 0)
                st = begin_history(p, err);
        else if (!st)
                st = add_renamed_hours(p, err);
        if (!st)
                st = add_marked_hours(p, err);
        sort_hours(p);
        for (size_t i = 0, end; !st && i < p->hour_count && !atomic_load(&p->s->stopping); i = end) {
                for (end = i + 1; end < p->hour_count; end++)
                        if (get_day_of_hour(p->hours[end]) != get_day_of_hour(p->hours[i]))
                                break;
                st = rewrite_day(p, i, end, err);
        }
        if (atomic_load(&p->s->stopping))
                return st;
        if (!st)
                st = merge_days(p, err);
        return st ? st : cover_versions(p, err);
}

static enum status run_pass(struct profile_store *s, bool is_full, struct error *err)
{
        _cleanup_(history_pass_deinit) struct history_pass p = { .s = s, .is_full = is_full };
        int64_t begun_ns = monotonic_ns();
        enum status st = store_check_tables(s, err);

        if (st)
                return st;
        pthread_mutex_lock(&s->lock);
        p.tables = tables_ref(s->tables);
        pthread_mutex_unlock(&s->lock);
        p.history_version = p.tables->versions[TABLE_HISTORY];
        st = run_pass_of_tables(&p, err);
        if (p.changed)
                histogram_observe(&duration, monotonic_ns() - begun_ns);
        if (st)
                metric_add(&failures, 1);
        return st;
}

enum status profile_store_update_history(struct profile_store *s, struct error *err)
{
        enum status st;

        if (s->options.read_only)
                return error_set(err, ST_USAGE, "'%s' is open for reading only", s->dir);
        pthread_mutex_lock(&s->history->pass_lock);
        st = run_pass(s, true, err);
        pthread_mutex_unlock(&s->history->pass_lock);
        return st;
}

void function_history_run_due(struct profile_store *s)
{
        struct function_history *h = s->history;
        struct error err = { 0 };

        pthread_mutex_lock(&h->pass_lock);
        if (monotonic_ns() >= h->next_pass_ns) {
                enum status st = run_pass(s, false, &err);

                h->next_pass_ns = st ? monotonic_ns() + RETRY_S * NS_PER_S : 0;
                if (st && st != ST_BUSY)
                        log_error("store", "cannot update the history of functions, retrying in %d s: %s", RETRY_S,
                                  err.text);
        }
        pthread_mutex_unlock(&h->pass_lock);
}
