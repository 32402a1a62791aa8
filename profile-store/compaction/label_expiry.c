/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four levels: struct label_pass goes through the days, oldest first; struct label_run is one attempt on one day,
 * with a snapshot and the rules; struct label_day lists the files of the day with expired rows; struct assessed_part
 * is one file.
 *
 * A day takes three steps: assess_day() counts expired rows by their label columns; remove_expired_files() removes
 * files without other rows in one commit; rewrite_part() replaces the others, with one commit for each. A failure of
 * one file does not stop the others. When a merge has replaced a file, run_pass_day() repeats the day from a new
 * snapshot, with merges excluded for the whole day. A dry run stops after the first step.
 *
 * In the file: exclusion of merges; due rules; assessment; one day; passes, by the thread or by a call.
 * Locks: c->lock of the compaction from begin_label_work() to end_label_work(); below it rules_lock while matchers
 * run, and s->lock to look at the current tables. The commits take writer_lock. A dry run does not exclude merges.
 */
#include "profile-store/compaction/label_expiry.h"

#include "common/clock.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "profile-store/compaction/merge_commit.h"
#include "profile-store/compaction/row_removal.h"
#include "profile-store/scan/scan_rows.h"

#define NS_PER_S INT64_C(1000000000)
#define SECONDS_PER_DAY INT64_C(86400)
#define ATTEMPTS 3     /* per day, when another writer commits meanwhile */
#define LABEL_SHARE 16 /* label columns take at most about this fraction of a sorted file */
#define POSTPONED_S 60
#define POSTPONED_DOUBLINGS 6

static struct metric failed_days =
        METRIC_COUNTER("cairn_store_label_expiry_failures_total",
                       "Failed removals of a day's samples by label rules; each is retried.", "");

void label_expiry_register_metrics(void)
{
        metric_register(&failed_days);
}

/* Application of the rules to one day. */
struct label_run {
        struct profile_store *s;
        const struct sample_limits *limits;
        struct store_limits *current;         /* reference; the store's limits when the run began */
        const struct expiry_request *request; /* NULL: called by the compaction thread */
        struct tables *tables;                /* reference */
        int64_t now_s, day;
        struct scan_filter filters[LABEL_RULES_MAX];
        struct row_selector *selectors[LABEL_RULES_MAX]; /* created on first use */
        uint32_t due;                                    /* rules for the current file */
        bool is_alone;                                   /* merges are excluded for the whole day */
};

static void label_run_deinit(struct label_run *r)
{
        for (size_t i = 0; i < LABEL_RULES_MAX; i++)
                row_selector_destroy(r->selectors[i]);
        tables_unref(r->tables);
        store_limits_release(r->current);
}

/* False when the store has no samples. */
static bool begin_label_run(struct label_run *r, struct profile_store *s, const struct sample_limits *limits,
                            const struct expiry_request *request)
{
        int64_t newest_day;

        *r = (struct label_run){ .s = s, .limits = limits, .request = request, .current = store_limits_acquire(s) };
        pthread_mutex_lock(&s->lock);
        r->tables = tables_ref(s->tables);
        pthread_mutex_unlock(&s->lock);
        return retention_find_now(r->tables, &r->now_s, &newest_day);
}

static bool is_label_dry_run(const struct label_run *r)
{
        return r->request && r->request->dry_run;
}

static bool may_proceed_with_labels(void *context)
{
        const struct label_run *r = context;

        return !r->request || !r->request->proceed || r->request->proceed(r->request->context);
}

static bool is_label_run_ended(struct label_run *r)
{
        return atomic_load(&r->s->stopping) || !may_proceed_with_labels(r);
}

/* ---- exclusion of merges ---- */

/*
 * Merges are excluded for one file at a time, so that neither side waits for a whole day of the other. Once a merge has
 * replaced files of the day, merges are excluded for the whole day.
 */
static enum status begin_label_work(struct label_run *r, struct error *err)
{
        if (is_label_dry_run(r) || r->is_alone)
                return ST_OK;
        return compaction_begin_removal(r->s->compaction, may_proceed_with_labels, r, err);
}

static void end_label_work(struct label_run *r)
{
        if (!is_label_dry_run(r) && !r->is_alone)
                compaction_end_removal(r->s->compaction);
}

static enum status begin_label_day_alone(struct label_run *r, struct error *err)
{
        enum status st = begin_label_work(r, err);

        r->is_alone = !st && !is_label_dry_run(r);
        return st;
}

static void end_label_day_alone(struct label_run *r)
{
        if (!r->is_alone)
                return;
        r->is_alone = false;
        end_label_work(r);
}

/* Whether the file of the snapshot is still live: no merge has replaced it. */
static bool is_part_still_live(struct label_run *r, const struct table_part *part)
{
        bool ret;

        if (is_label_dry_run(r))
                return true;
        pthread_mutex_lock(&r->s->lock);
        ret = find_live_part(r->s->tables, TABLE_SAMPLES, part->name) != NULL;
        pthread_mutex_unlock(&r->s->lock);
        return ret;
}

/* ---- due rules ---- */

/* Applied rules are recorded only if they are the store's current ones. */
static bool remembers_rules(const struct label_run *r)
{
        return r->limits == &r->current->limits;
}

static bool is_day_past(const struct label_run *r, int64_t day, uint64_t age_s)
{
        return (day + 1) * SECONDS_PER_DAY <= r->now_s - (int64_t)age_s;
}

static uint32_t find_due_rules(const struct label_run *r, const struct table_part *part)
{
        uint32_t due = 0;

        if (!part->has_day || (r->limits->age_s && is_day_past(r, part->day, r->limits->age_s)))
                return 0;
        for (size_t i = 0; i < r->limits->rule_count; i++)
                due |= is_day_past(r, part->day, r->limits->rules[i].age_s) ? UINT32_C(1) << i : 0;
        if (remembers_rules(r))
                due &= ~get_done_rules(atomic_load(&part->done_rules), r->current->generation);
        return due;
}

static bool find_next_due_day(const struct label_run *r, const struct label_pass *pass, int64_t *ret)
{
        bool found = false;

        for (size_t i = 0; i < r->tables->part_count[TABLE_SAMPLES]; i++) {
                const struct table_part *part = r->tables->parts[TABLE_SAMPLES][i];

                if ((!pass->is_running || part->day > pass->day) && (!found || part->day < *ret) &&
                    find_due_rules(r, part)) {
                        *ret = part->day;
                        found = true;
                }
        }
        return found;
}

/* ---- the rows of a file ---- */

static enum status prepare_selector(struct label_run *r, size_t i, struct error *err)
{
        const struct label_rule *rule = &r->limits->rules[i];

        if (r->selectors[i])
                return ST_OK;
        r->filters[i] = (struct scan_filter){ .from_unix_ns = INT64_MIN,
                                              .to_unix_ns = (r->now_s - (int64_t)rule->age_s) * NS_PER_S,
                                              .type = rule->type,
                                              .matchers = rule->matchers,
                                              .matcher_count = rule->matcher_count };
        return row_selector_create(&r->filters[i], &r->selectors[i], err);
}

static enum status mark_expired_rows(void *context, const struct part_file *f, uint32_t group, uint8_t *rows,
                                     struct error *err)
{
        struct label_run *r = context;
        enum status st = ST_OK;

        pthread_mutex_lock(&r->s->rules_lock);
        for (size_t i = 0; !st && i < r->limits->rule_count; i++) {
                if (!(r->due >> i & 1))
                        continue;
                st = prepare_selector(r, i, err);
                if (!st)
                        st = row_selector_mark(r->selectors[i], f, group, rows, err);
        }
        pthread_mutex_unlock(&r->s->rules_lock);
        return st;
}

/* A file of the day. Counting ends once both kept and expired rows were found, except in a dry run. */
struct assessed_part {
        struct table_part *part;
        uint32_t due;
        uint64_t rows, expired;
        bool is_left; /* unreadable */
};

static enum status count_rows_to_drop(struct label_run *r, const struct part_file *f, uint32_t group,
                                      struct assessed_part *a, struct error *err)
{
        _cleanup_memory_ struct memory_reservation memory = { .use = MEMORY_COMPACTION };
        _cleanup_free_ uint8_t *rows = NULL;
        uint64_t count = parquet_file_group_rows(f->file, group);
        enum status st;

        if (count > LIMIT_PARQUET_CHUNK_VALUES)
                return error_set(err, ST_TOO_BIG, "a row group of '%s' has %ju rows", f->path, (uintmax_t)count);
        st = memory_reserve(&memory, count, err);
        if (st)
                return st;
        rows = calloc(count + 1, 1);
        if (!rows)
                return error_no_memory(err);
        st = mark_expired_rows(r, f, group, rows, err);
        for (uint64_t i = 0; !st && i < count; i++)
                a->expired += rows[i];
        a->rows += count;
        return st;
}

static enum status assess_rows(struct label_run *r, struct assessed_part *a, struct error *err)
{
        _cleanup_part_file_ struct part_file f = { 0 };
        enum status st = part_file_open(a->part, &f, err);

        r->due = a->due;
        for (uint32_t g = 0; !st && g < part_file_count_groups(&f); g++) {
                st = count_rows_to_drop(r, &f, g, a, err);
                if (!is_label_dry_run(r) && a->expired && a->expired < a->rows)
                        break;
        }
        return st;
}

static enum status pace_label_run(struct label_run *r, uint64_t bytes, struct error *err)
{
        const struct row_removal pace = { .day = r->day, .proceed = may_proceed_with_labels, .context = r };

        if (!is_label_dry_run(r))
                return compaction_proceed(r->s->compaction, &pace, bytes, err);
        return may_proceed_with_labels(r) ? ST_OK : error_set(err, ST_BUSY, "retention was interrupted");
}

static enum status assess_part(struct label_run *r, struct assessed_part *a, struct error *err)
{
        struct error why = { 0 };
        enum status st = assess_rows(r, a, &why);

        if (!st)
                return pace_label_run(r, a->part->bytes / LABEL_SHARE, err);
        a->rows = a->expired = 0;
        a->is_left = true;
        if (is_label_dry_run(r))
                st = part_is_unreadable(st, &why) ? ST_OK : st;
        else
                st = compaction_note_unreadable(r->s->compaction, TABLE_SAMPLES, a->part, st, &why);
        if (st && err)
                *err = why;
        return st;
}

/* ---- one day ---- */

struct label_day {
        struct assessed_part *parts; /* with due rules */
        size_t count;
        struct expired_day removed;
        uint64_t skipped;
        bool is_stale;      /* a merge or another writer replaced a file: load the tables again */
        enum status failed; /* of the first file that failed; the others are processed */
        struct error why;
};

/* @return false when processing of the day must end. */
static bool note_label_failure(struct label_run *r, struct label_day *d, enum status st, const struct error *why)
{
        if (!st)
                return true;
        if (st == ST_NOT_FOUND) {
                d->is_stale = true;
                return true;
        }
        if (!d->failed) {
                d->failed = st;
                d->why = *why;
        }
        return !is_label_run_ended(r);
}

/* Caller excludes merges. */
static enum status assess_live_part(struct label_run *r, struct label_day *d, struct assessed_part *a,
                                    struct error *err)
{
        enum status st = ST_OK;

        if (!is_part_still_live(r, a->part))
                return error_set(err, ST_NOT_FOUND, "a merge replaced '%s'", a->part->path);
        a->is_left = !is_label_dry_run(r) && compaction_leaves_part(r->s->compaction, a->part);
        if (!a->is_left)
                st = assess_part(r, a, err);
        if (!st && a->expired)
                d->parts[d->count++] = *a;
        else if (!st && !a->is_left && remembers_rules(r))
                add_done_rules(&a->part->done_rules, r->current->generation, a->due);
        d->skipped += a->is_left;
        return st;
}

static bool assess_day(struct label_run *r, struct label_day *d)
{
        const struct tables *t = r->tables;
        bool goes_on = true;

        d->parts = calloc(t->part_count[TABLE_SAMPLES] + 1, sizeof *d->parts);
        if (!d->parts) {
                d->failed = error_no_memory(&d->why);
                return false;
        }
        for (size_t i = 0; goes_on && i < t->part_count[TABLE_SAMPLES]; i++) {
                struct assessed_part a = { .part = t->parts[TABLE_SAMPLES][i] };
                struct error why = { 0 };
                enum status st;

                if (a.part->day != r->day || !(a.due = find_due_rules(r, a.part)))
                        continue;
                st = begin_label_work(r, &why);
                if (!st) {
                        st = assess_live_part(r, d, &a, &why);
                        end_label_work(r);
                }
                goes_on = note_label_failure(r, d, st, &why);
        }
        return goes_on;
}

static bool is_expired_throughout(const struct assessed_part *a)
{
        return a->expired == a->rows;
}

static enum status add_dry_run_part(struct label_day *d, const struct assessed_part *a, struct expiry *ret,
                                    struct error *err)
{
        const struct expired_part gone = { .rows = a->expired,
                                           .bytes = (uint64_t)((double)a->part->bytes * (double)a->expired /
                                                               (double)a->rows),
                                           .is_whole = is_expired_throughout(a) };

        if (gone.is_whole)
                d->removed.files++;
        else
                d->removed.rewritten++;
        d->removed.rows += gone.rows;
        d->removed.bytes += gone.bytes;
        return expiry_add_part(ret, a->part->name, &gone, err);
}

/* Remove files whose rows all expire, in one commit. Caller excludes merges. */
static enum status remove_expired_files(struct label_run *r, struct label_day *d, struct error *err)
{
        _cleanup_free_ struct table_part **parts = calloc(d->count + 1, sizeof *parts);
        struct row_removal removal = { .day = r->day, .parts = parts };
        struct merge_result nothing = { 0 };
        struct expired_day removed = { 0 };
        enum status st;

        if (!parts)
                return error_no_memory(err);
        for (size_t i = 0; i < d->count; i++) {
                const struct assessed_part *a = &d->parts[i];

                if (!is_expired_throughout(a))
                        continue;
                if (!is_part_still_live(r, a->part)) {
                        d->is_stale = true;
                        continue;
                }
                parts[removal.part_count++] = a->part;
                removed.files++;
                removed.rows += a->rows;
                removed.bytes += a->part->bytes;
        }
        if (!removal.part_count)
                return ST_OK;
        st = compaction_remove_rows(r->s->compaction, r->tables, &removal, &nothing, err);
        if (st)
                return st;
        d->removed.files += removed.files;
        d->removed.rows += removed.rows;
        d->removed.bytes += removed.bytes;
        return ST_OK;
}

/* Caller excludes merges. */
static enum status rewrite_part(struct label_run *r, struct label_day *d, struct assessed_part *a, struct error *err)
{
        const struct row_removal removal = { .day = r->day,
                                             .parts = &a->part,
                                             .part_count = 1,
                                             .done_rules = remembers_rules(r)
                                                                   ? make_done_rules(r->current->generation, a->due)
                                                                   : 0,
                                             .select = mark_expired_rows,
                                             .proceed = may_proceed_with_labels,
                                             .context = r };
        struct merge_result merged = { 0 };
        enum status st;

        if (!is_part_still_live(r, a->part))
                return error_set(err, ST_NOT_FOUND, "a merge replaced '%s'", a->part->path);
        r->due = a->due;
        st = compaction_remove_rows(r->s->compaction, r->tables, &removal, &merged, err);
        if (!st && !merged.rows_read) {
                d->skipped++;
        } else if (!st) {
                d->removed.rewritten++;
                d->removed.rows += merged.rows_read - merged.rows_written;
                d->removed.bytes += a->part->bytes > merged.bytes_written ? a->part->bytes - merged.bytes_written : 0;
        }
        merge_result_deinit(&merged);
        return st;
}

/* Process one file, or with a == NULL all files whose rows all expire. */
static bool apply_label_removal(struct label_run *r, struct label_day *d, struct assessed_part *a)
{
        struct error why = { 0 };
        enum status st = begin_label_work(r, &why);

        if (!st) {
                st = a ? rewrite_part(r, d, a, &why) : remove_expired_files(r, d, &why);
                end_label_work(r);
        }
        return note_label_failure(r, d, st, &why);
}

/* Works on the snapshot in r->tables. A file that fails does not stop the others. */
static enum status expire_labels_of_day(struct label_run *r, struct label_day *d, struct expiry *ret, struct error *err)
{
        bool goes_on = assess_day(r, d);

        for (size_t i = 0; goes_on && is_label_dry_run(r) && i < d->count; i++) {
                struct error why;
                enum status st = add_dry_run_part(d, &d->parts[i], ret, &why);

                goes_on = note_label_failure(r, d, st, &why);
        }
        goes_on = goes_on && !is_label_dry_run(r) && apply_label_removal(r, d, NULL);
        for (size_t i = 0; goes_on && i < d->count; i++)
                goes_on = is_expired_throughout(&d->parts[i]) || apply_label_removal(r, d, &d->parts[i]);
        if (d->failed && err)
                *err = d->why;
        return d->failed ? d->failed : d->is_stale ? error_set(err, ST_BUSY, "files changed during retention") : ST_OK;
}

/* Add to the entry of the same day, which an earlier attempt may have made. */
static enum status add_label_day(struct expiry *ret, const struct expired_day *d, struct error *err)
{
        for (size_t i = 0; i < ret->count; i++) {
                struct expired_day *before = &ret->days[i];

                if (before->table != d->table || before->day != d->day || before->reason != d->reason)
                        continue;
                before->files += d->files;
                before->rewritten += d->rewritten;
                before->rows += d->rows;
                before->bytes += d->bytes;
                return ST_OK;
        }
        return expiry_add_day(ret, d, err);
}

static enum status report_label_day(const struct label_run *r, const struct label_day *d, struct expiry *ret,
                                    struct error *err)
{
        if (!d->removed.rows)
                return ST_OK;
        if (!is_label_dry_run(r))
                retention_report_removed(&d->removed);
        return ret ? add_label_day(ret, &d->removed, err) : ST_OK;
}

/*
 * Process the next due day after that of the pass, or the first one.
 * @param day_ret  untouched when no day is due (ST_NOT_FOUND).
 */
static enum status run_next_day(struct label_run *r, const struct label_pass *pass, int64_t *day_ret,
                                struct expiry *ret, struct error *err)
{
        struct label_day d = { .removed = { .table = TABLE_SAMPLES, .reason = EXPIRY_LABELS } };
        enum status st, reported;

        if (!find_next_due_day(r, pass, &r->day))
                return ST_NOT_FOUND;
        *day_ret = d.removed.day = r->day;
        st = expire_labels_of_day(r, &d, ret, err);
        reported = report_label_day(r, &d, ret, st ? NULL : err);
        if (ret && !st)
                ret->skipped_files += d.skipped;
        free(d.parts);
        return st ? st : reported;
}

/* One day of the pass; ST_NOT_FOUND at its end. */
static enum status run_pass_day(struct profile_store *s, const struct sample_limits *limits,
                                const struct expiry_request *request, struct label_pass *pass, struct expiry *ret,
                                struct error *err)
{
        bool may_proceed = true;
        int64_t day = 0;
        enum status st = ST_BUSY;

        for (unsigned i = 0; st == ST_BUSY && i < ATTEMPTS && may_proceed; i++) {
                struct label_run r = { .s = s, .request = request };
                enum status waited = i ? begin_label_day_alone(&r, err) : ST_OK;
                bool is_alone = r.is_alone;

                if (!waited) {
                        st = begin_label_run(&r, s, limits, request) ? ST_OK : ST_NOT_FOUND;
                        r.is_alone = is_alone;
                }
                if (!waited && !st)
                        st = run_next_day(&r, pass, &day, ret, err);
                may_proceed = !is_label_run_ended(&r);
                end_label_day_alone(&r);
                label_run_deinit(&r);
        }
        if (st != ST_NOT_FOUND) {
                pass->is_running = true;
                pass->day = day;
        }
        return st;
}

/* ---- passes ---- */

static void end_label_pass(struct profile_store *s, struct label_pass *pass)
{
        unsigned doublings = pass->failures < POSTPONED_DOUBLINGS ? pass->failures : POSTPONED_DOUBLINGS;

        if (pass->failed_days) {
                pass->retry_ns = monotonic_ns() + (POSTPONED_S * NS_PER_S << doublings);
                pass->failures++;
        } else {
                pass->failures = 0;
                health_set_label_expiry(s, ST_OK, NULL);
        }
        pass->failed_days = 0;
        pass->is_running = false;
}

bool label_expiry_has_rules(struct profile_store *s)
{
        struct store_limits *limits = store_limits_acquire(s);
        bool ret = limits->limits.rule_count;

        store_limits_release(limits);
        return ret;
}

bool label_expiry_run_next(struct profile_store *s, struct label_pass *pass)
{
        struct store_limits *limits;
        struct error err = { 0 };
        char date[32];
        enum status st;

        if (!label_expiry_has_rules(s) || atomic_load(&s->stopping) ||
            (!pass->is_running && pass->failures && monotonic_ns() < pass->retry_ns))
                return false;
        limits = store_limits_acquire(s);
        st = run_pass_day(s, &limits->limits, NULL, pass, NULL, &err);
        store_limits_release(limits);
        if (st == ST_NOT_FOUND) {
                end_label_pass(s, pass);
                return false;
        }
        if (!st || atomic_load(&s->stopping))
                return true;
        format_table_day(pass->day, date);
        log_error("store", "cannot remove samples of %s by their labels, retrying later: %s", date, err.text);
        health_set_label_expiry(s, st, &err);
        metric_add(&failed_days, 1);
        pass->failed_days++;
        return true;
}

enum status label_expiry_apply(struct profile_store *s, const struct sample_limits *limits,
                               const struct expiry_request *request, struct expiry *ret, struct error *err)
{
        struct label_pass pass = { 0 };
        enum status first = ST_OK, st = ST_OK;

        while (st != ST_NOT_FOUND) {
                struct error why = { 0 };

                st = run_pass_day(s, limits, request, &pass, ret, &why);
                if (!st || st == ST_NOT_FOUND)
                        continue;
                if (!first && err)
                        *err = why;
                first = first ? first : st;
                if (atomic_load(&s->stopping) || (request->proceed && !request->proceed(request->context)))
                        break;
        }
        return first;
}
