/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan is made from one snapshot: make_plan() lists the files of samples and stacks as candidates, sorted by day,
 * and marks each with at most one reason, in passes: age, stacks of days without samples, size. expire_once() removes
 * the marked files, with one commit for each table, samples first. Nothing is read from the files: their days and
 * sizes are in the log.
 *
 * Label rules are not part of the plan. expire_in_steps() applies age, then the rules (label_expiry.c), then size. A
 * dry run removes nothing, so plan_dry_run() subtracts the rows that the rules would remove (plan.gone) from the
 * candidates.
 *
 * In the file: rules as text; the plan; removal; dry run and the sequence of steps; the report as JSON.
 * Locks: expire_days() holds s->writer_lock for plan and commits, and repeats both when another writer commits
 * meanwhile. Label rules and the sweep of locations run without it and lock for themselves; a dry run takes s->lock
 * for its snapshot.
 */
#include "profile-store/lifecycle/sample_retention.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "common/json/json_out.h"
#include "common/stable_clock.h"
#include "common/text/number_text.h"
#include "profile-store/compaction/label_expiry.h"
#include "profile-store/compaction/location_sweep.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/core/table_absence.h"
#include "profile-store/core/table_follow.h"
#include "profile-store/core/table_removal.h"
#include "profile-store/lifecycle/history_retention.h"

#define S_PER_DAY INT64_C(86400)
#define LEAST_AGE_S 3600
#define ATTEMPTS 3 /* when another writer commits meanwhile */

void retention_register_metrics(void)
{
        expiry_register_metrics();
        label_expiry_register_metrics();
        location_sweep_register_metrics();
}

/* ---- rules ---- */

static bool parse_limit(const char *part, struct sample_limits *l)
{
        uint64_t n;

        if (strncmp(part, "age=", 4) == 0) {
                if (!parse_age(part + 4, &n) || n < LEAST_AGE_S || n > INT32_MAX)
                        return false;
                l->age_s = l->age_s && l->age_s < n ? l->age_s : n;
                return true;
        }
        if (strncmp(part, "history=", 8) == 0) {
                if (!parse_age(part + 8, &n) || n < LEAST_AGE_S || n > INT32_MAX)
                        return false;
                l->history_age_s = l->history_age_s && l->history_age_s < n ? l->history_age_s : n;
                return true;
        }
        if (strncmp(part, "size=", 5) != 0 || !parse_bytes(part + 5, &n))
                return false;
        l->size_bytes = l->size_bytes && l->size_bytes < n ? l->size_bytes : n;
        return true;
}

enum status sample_limits_parse(const char *text, struct sample_limits *ret, struct error *err)
{
        _cleanup_free_ char *copy = strdup(text);
        struct sample_limits l = *ret;
        char *rest = copy, *part;

        if (!copy)
                return error_no_memory(err);
        while ((part = strsep(&rest, ","))) {
                if (!parse_limit(part, &l))
                        return error_set(err, ST_USAGE,
                                         "retention rule '%.100s' is not age=TIME, size=BYTES, history=TIME or "
                                         "{LABELS},age=TIME, as age=30d,size=200G,history=2y or {env=\"dev\"},age=3d",
                                         text);
        }
        *ret = l;
        return ST_OK;
}

/* ---- plan ---- */

static const enum table dated_tables[] = { TABLE_SAMPLES, TABLE_STACKS };

/* A file of samples or stacks. */
struct candidate {
        struct table_part *part; /* borrowed from the snapshot */
        int64_t day;
        enum table table;
        enum expiry_reason reason;
        uint64_t rows, bytes; /* without those that label rules remove before */
        bool is_gone;         /* label rules remove all of it */
};

struct plan {
        struct tables *tables; /* reference */
        struct candidate *files;
        size_t count;
        const struct expiry *gone; /* dry run: rows that label rules remove before, parts by name; NULL: none */
};

static void plan_deinit(struct plan *p)
{
        tables_unref(p->tables);
        free(p->files);
}

static int compare_expiry_candidates(const void *a, const void *b)
{
        const struct candidate *x = a, *y = b;

        if (x->day != y->day)
                return x->day < y->day ? -1 : 1;
        if (x->table != y->table)
                return x->table < y->table ? -1 : 1;
        if (x->part->max_us != y->part->max_us)
                return x->part->max_us < y->part->max_us ? -1 : 1;
        return strcmp(x->part->name, y->part->name);
}

static int compare_expired_parts(const void *a, const void *b)
{
        const struct expired_part *x = a, *y = b;

        return strcmp(x->name, y->name);
}

static struct candidate make_candidate(const struct plan *p, enum table table, struct table_part *part)
{
        const struct expired_part key = { .name = part->name }, *gone = NULL;
        struct candidate c = {
                .part = part, .day = part->day, .table = table, .rows = part->rows, .bytes = part->bytes
        };

        if (p->gone && p->gone->part_count && table == TABLE_SAMPLES)
                gone = bsearch(&key, p->gone->parts, p->gone->part_count, sizeof key, compare_expired_parts);
        if (!gone)
                return c;
        c.is_gone = gone->is_whole;
        c.rows -= gone->rows < c.rows ? gone->rows : c.rows;
        c.bytes -= gone->bytes < c.bytes ? gone->bytes : c.bytes;
        return c;
}

static enum status collect_candidates(struct plan *p, struct error *err)
{
        const struct tables *t = p->tables;

        p->files = calloc(t->part_count[TABLE_SAMPLES] + t->part_count[TABLE_STACKS] + 1, sizeof *p->files);
        if (!p->files)
                return error_no_memory(err);
        for (size_t i = 0; i < sizeof dated_tables / sizeof *dated_tables; i++) {
                for (size_t k = 0; k < t->part_count[dated_tables[i]]; k++) {
                        struct table_part *part = t->parts[dated_tables[i]][k];

                        if (part->has_day)
                                p->files[p->count++] = make_candidate(p, dated_tables[i], part);
                }
        }
        qsort(p->files, p->count, sizeof *p->files, compare_expiry_candidates);
        return ST_OK;
}

/* Bytes of files still on disk whose rows have been moved to other files. */
static enum status count_replaced_bytes(const struct table_logs *l, uint64_t *ret, struct error *err)
{
        uint64_t bytes = 0;

        for (int t = 0; t < TABLE_COUNT; t++) {
                struct delta_snapshot *removed;
                enum status st = ST_OK;

                if (!l->logs[t]) /* function_history of an earlier release */
                        continue;
                st = delta_removed_acquire(l->logs[t], &removed, err);
                if (st)
                        return st;
                for (size_t i = 0; i < removed->file_count; i++)
                        bytes += removed->files[i]->removal_changes_data ? 0 : removed->files[i]->size;
                delta_snapshot_release(removed);
        }
        *ret = bytes;
        return ST_OK;
}

static size_t find_candidates_end(const struct plan *p, size_t first)
{
        size_t end = first;

        while (end < p->count && p->files[end].day == p->files[first].day)
                end++;
        return end;
}

static bool is_sample_file(const struct candidate *c)
{
        return c->table == TABLE_SAMPLES;
}

static bool is_day_before(int64_t day, int64_t cutoff_s)
{
        return (day + 1) * S_PER_DAY <= cutoff_s;
}

uint64_t profile_store_count_expiring(struct profile_store *s, const struct profile *p, uint64_t *age_s_ret)
{
        struct store_limits *limits = store_limits_acquire(s);
        uint64_t age_s = limits->limits.age_s, count = 0;
        int64_t now_ns, latest_ns;

        store_limits_release(limits);
        stable_clock_get_range(&now_ns, &latest_ns);
        for (size_t i = 0; age_s && i < p->samples.count; i++)
                count += is_day_before(day_of_us(p->samples.items[i].time_unix_ns / 1000),
                                       now_ns / 1000000000 - (int64_t)age_s);
        *age_s_ret = age_s;
        return count;
}

static void mark_candidate(struct candidate *c, enum expiry_reason reason, uint64_t *bytes)
{
        if (c->reason != EXPIRY_NONE || c->is_gone)
                return;
        c->reason = reason;
        *bytes -= c->bytes < *bytes ? c->bytes : *bytes;
}

/* Only samples and stacks of whole days before cutoff_s. */
static void mark_old_days(struct plan *p, int64_t cutoff_s, uint64_t *bytes)
{
        for (size_t i = 0; i < p->count && is_day_before(p->files[i].day, cutoff_s); i++)
                mark_candidate(&p->files[i], EXPIRY_AGE, bytes);
}

static void mark_days_beyond_size(struct plan *p, int64_t newest_day, uint64_t limit, uint64_t *bytes)
{
        size_t i = 0, last = SIZE_MAX;

        for (size_t end; *bytes > limit && i < p->count && p->files[i].day < newest_day; i = end) {
                end = find_candidates_end(p, i);
                for (size_t k = i; k < end; k++)
                        mark_candidate(&p->files[k], EXPIRY_SIZE, bytes);
        }
        for (size_t k = i; k < p->count && p->files[k].day <= newest_day; k++)
                last = p->files[k].day == newest_day && is_sample_file(&p->files[k]) ? k : last;
        for (; *bytes > limit && last != SIZE_MAX && i < last; i++) {
                if (p->files[i].day == newest_day && is_sample_file(&p->files[i]))
                        mark_candidate(&p->files[i], EXPIRY_SIZE, bytes);
        }
}

/* Whether candidates [first, end) of a day include samples that label rules keep. */
static bool has_samples_left(const struct plan *p, size_t first, size_t end)
{
        for (size_t i = first; i < end; i++) {
                if (is_sample_file(&p->files[i]) && !p->files[i].is_gone)
                        return true;
        }
        return false;
}

/* Stacks left by an interrupted removal of samples. The writer lock is held, so no flush runs. */
static void mark_unused_stacks(struct plan *p, int64_t newest_day, uint64_t *bytes)
{
        for (size_t i = 0, end; i < p->count && p->files[i].day < newest_day; i = end) {
                end = find_candidates_end(p, i);
                if (has_samples_left(p, i, end))
                        continue;
                for (size_t k = i; k < end; k++) {
                        if (!is_sample_file(&p->files[k]))
                                mark_candidate(&p->files[k], EXPIRY_UNUSED, bytes);
                }
        }
}

static uint64_t sum_live_bytes(const struct plan *p)
{
        uint64_t bytes = 0;

        for (int t = 0; t < TABLE_COUNT; t++) {
                for (size_t i = 0; i < p->tables->part_count[t]; i++)
                        bytes += p->tables->parts[t][i]->bytes;
        }
        for (size_t i = 0; i < p->count; i++)
                bytes -= p->files[i].part->bytes - p->files[i].bytes;
        return bytes;
}

static enum status make_plan(struct plan *p, const struct table_logs *logs, const struct sample_limits *limits,
                             struct error *err)
{
        uint64_t bytes = 0;
        int64_t now_s, newest_day;
        enum status st = collect_candidates(p, err);

        if (!st)
                st = count_replaced_bytes(logs, &bytes, err);
        if (st || !retention_find_now(p->tables, &now_s, &newest_day))
                return st;
        bytes += sum_live_bytes(p);
        if (limits->age_s)
                mark_old_days(p, now_s - (int64_t)limits->age_s, &bytes);
        mark_unused_stacks(p, newest_day, &bytes);
        if (limits->size_bytes)
                mark_days_beyond_size(p, newest_day, limits->size_bytes, &bytes);
        return ST_OK;
}

static enum status summarize_plan(const struct plan *p, struct expiry *ret, struct error *err)
{
        size_t first = ret->count;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < p->count; i++) {
                const struct candidate *c = &p->files[i];
                struct expired_day *d = ret->count > first ? &ret->days[ret->count - 1] : NULL;

                if (c->reason == EXPIRY_NONE)
                        continue;
                if (!d || d->table != c->table || d->day != c->day || d->reason != c->reason) {
                        const struct expired_day next = { .table = c->table, .day = c->day, .reason = c->reason };

                        st = expiry_add_day(ret, &next, err);
                        d = st ? NULL : &ret->days[ret->count - 1];
                }
                if (!d)
                        break;
                d->files++;
                d->rows += c->rows;
                d->bytes += c->bytes;
        }
        return st;
}

/* ---- removal ---- */

/* @param change  of the table; its files are set here. */
static enum status remove_candidates(struct profile_store *s, const struct plan *p, struct table_change change,
                                     struct error *err)
{
        _cleanup_free_ struct table_part **parts = calloc(p->count + 1, sizeof *parts);
        size_t count = 0;

        if (!parts)
                return error_no_memory(err);
        for (size_t i = 0; i < p->count; i++) {
                if (p->files[i].table == change.table && p->files[i].reason != EXPIRY_NONE)
                        parts[count++] = p->files[i].part;
        }
        if (!count)
                return ST_OK;
        change.removes = parts;
        change.remove_count = count;
        return tables_commit(&s->logs, &change, err);
}

static bool has_stacks_to_remove(const struct plan *p)
{
        for (size_t i = 0; i < p->count; i++) {
                if (p->files[i].table == TABLE_STACKS && p->files[i].reason != EXPIRY_NONE)
                        return true;
        }
        return false;
}

/* @param stacks_ret  the change that will remove stacks, which other nodes must be told of before they are selected. */
static enum status plan_removal(struct profile_store *s, const struct sample_limits *limits, struct plan *ret,
                                struct table_change *stacks_ret, struct error *err)
{
        enum status st;

        ret->tables = tables_ref(s->tables);
        st = make_plan(ret, &s->logs, limits, err);
        if (st || !has_stacks_to_remove(ret) || !has_shared_tables(s))
                return st;
        st = removal_begin(s, stacks_ret, err);
        if (st)
                return st;
        plan_deinit(ret);
        *ret = (struct plan){ .tables = tables_ref(s->tables) };
        return make_plan(ret, &s->logs, limits, err);
}

static void count_expired(const struct expiry *e, size_t first, enum table t)
{
        for (size_t i = first; i < e->count; i++) {
                if (e->days[i].table == t)
                        retention_report_removed(&e->days[i]);
        }
}

static void note_removed_stacks(struct profile_store *s, const struct expiry *e, size_t first, enum table t)
{
        for (size_t i = first; t == TABLE_STACKS && i < e->count; i++) {
                if (e->days[i].table == t)
                        atomic_store(&s->sweep_due, true);
        }
}

/* ST_BUSY or ST_NOT_FOUND when another writer changed the tables. Caller holds the writer lock. */
static enum status expire_once(struct profile_store *s, const struct sample_limits *limits, struct expiry *ret,
                               struct error *err)
{
        _cleanup_(plan_deinit) struct plan p = { 0 };
        struct table_change stacks = { .table = TABLE_STACKS };
        size_t first = ret->count;
        enum status st = store_reconcile(s, err);

        if (!st)
                st = plan_removal(s, limits, &p, &stacks, err);
        if (!st)
                st = summarize_plan(&p, ret, err);
        if (!st && ret->count > first) {
                s->behind = true;
                known_rows_deinit(&s->known); /* a flush must not treat removed stacks as known */
                for (size_t i = 0; !st && i < sizeof dated_tables / sizeof *dated_tables; i++) {
                        const struct table_change others = { .table = dated_tables[i] };

                        st = remove_candidates(s, &p, dated_tables[i] == TABLE_STACKS ? stacks : others, err);
                        if (!st) { /* counted at once: the next removal may fail */
                                count_expired(ret, first, dated_tables[i]);
                                note_removed_stacks(s, ret, first, dated_tables[i]);
                        }
                }
                if (!st)
                        st = store_publish_tables(s, err);
                s->behind = st != ST_OK;
        }
        if (st)
                ret->count = first;
        return st;
}

/* Adds the removed rows to ret. */
static enum status expire_days(struct profile_store *s, const struct sample_limits *limits, struct expiry *ret,
                               struct error *err)
{
        enum status st = ST_OK;

        pthread_mutex_lock(&s->writer_lock);
        for (unsigned i = 0; i < ATTEMPTS; i++) {
                st = expire_once(s, limits, ret, err);
                if (st != ST_BUSY && st != ST_NOT_FOUND)
                        break;
        }
        pthread_mutex_unlock(&s->writer_lock);
        return st == ST_NOT_FOUND ? ST_BUSY : st;
}

static enum status plan_dry_run(struct profile_store *s, const struct sample_limits *limits, struct expiry *ret,
                                struct error *err)
{
        _cleanup_(plan_deinit) struct plan p = { .gone = ret };
        enum status st;

        if (ret->part_count)
                qsort(ret->parts, ret->part_count, sizeof *ret->parts, compare_expired_parts);
        pthread_mutex_lock(&s->lock);
        p.tables = tables_ref(s->tables);
        pthread_mutex_unlock(&s->lock);
        st = make_plan(&p, &s->logs, limits, err);
        return st ? st : summarize_plan(&p, ret, err);
}

/* Age first: expired days need no rewriting. Size last: rows that label rules remove need no room. */
static enum status expire_in_steps(struct profile_store *s, const struct sample_limits *limits,
                                   const struct expiry_request *request, struct expiry *ret, struct error *err)
{
        const struct sample_limits age = { .age_s = limits->age_s }, size = { .size_bytes = limits->size_bytes };
        enum status st, by_label;

        if (limits->history_age_s) {
                st = history_retention_apply(s, limits->history_age_s, false, ret, err);
                if (st)
                        return st;
        }
        if (!limits->rule_count)
                return expire_days(s, limits, ret, err);
        st = expire_days(s, &age, ret, err);
        if (st)
                return st;
        by_label = label_expiry_apply(s, limits, request, ret, err);
        if (by_label && (atomic_load(&s->stopping) || (request->proceed && !request->proceed(request->context))))
                return by_label;
        st = expire_days(s, &size, ret, by_label ? NULL : err); /* frees space on a full disk */
        return by_label ? by_label : st;
}

static int compare_expired_days(const void *a, const void *b)
{
        const struct expired_day *x = a, *y = b;

        if (x->day != y->day)
                return x->day < y->day ? -1 : 1;
        if (x->table != y->table)
                return x->table < y->table ? -1 : 1;
        return (x->reason > y->reason) - (x->reason < y->reason);
}

enum status profile_store_expire(struct profile_store *s, const struct expiry_request *request, struct expiry *ret,
                                 struct error *err)
{
        struct store_limits *own;
        const struct sample_limits *limits;
        const struct sweep_request sweep = { .proceed = request->proceed, .context = request->context };
        struct expiry e = { 0 };
        enum status st = store_check_tables(s, err);

        if (st)
                return st;
        own = request->limits ? NULL : store_limits_acquire(s);
        limits = own ? &own->limits : request->limits;
        assert(limits);
        if (!request->dry_run && s->options.read_only) {
                st = error_set(err, ST_USAGE, "'%s' is open for reading only", s->dir);
        } else if (!request->dry_run) {
                st = expire_in_steps(s, limits, request, &e, err);
                if (!st && request->sweeps_locations)
                        location_sweep_run_if_due(s, &sweep, true, &e);
        } else {
                if (limits->rule_count)
                        st = label_expiry_apply(s, limits, request, &e, err);
                if (!st)
                        st = plan_dry_run(s, limits, &e, err);
                if (!st && limits->history_age_s)
                        st = history_retention_apply(s, limits->history_age_s, true, &e, err);
        }
        store_limits_release(own);
        if (st) {
                expiry_deinit(&e);
                return st;
        }
        if (e.count)
                qsort(e.days, e.count, sizeof *e.days, compare_expired_days);
        *ret = e;
        return ST_OK;
}

/* ---- report ---- */

enum status expiry_write_report(const struct expiry *e, bool dry_run, struct buf *out, struct error *err)
{
        uint64_t files = 0, rewritten = 0, rows = 0, bytes = 0;
        struct json_out j;

        json_out_init(&j, out);
        json_out_object(&j, NULL);
        json_out_bool(&j, "dry_run", dry_run);
        json_out_array(&j, "removed");
        for (size_t i = 0; i < e->count; i++) {
                const struct expired_day *d = &e->days[i];
                char date[32] = "";

                if (d->table != TABLE_LOCATIONS)
                        format_table_day(d->day, date);
                json_out_object(&j, NULL);
                json_out_str(&j, "table", table_name(d->table));
                json_out_str(&j, "date", date);
                json_out_str(&j, "reason", expiry_reason_name(d->reason));
                json_out_uint(&j, "files", d->files);
                json_out_uint(&j, "rewritten", d->rewritten);
                json_out_uint(&j, "rows", d->rows);
                json_out_uint(&j, "bytes", d->bytes);
                json_out_object_end(&j);
                files += d->files;
                rewritten += d->rewritten;
                rows += d->rows;
                bytes += d->bytes;
        }
        json_out_array_end(&j);
        json_out_uint(&j, "files", files);
        json_out_uint(&j, "rewritten", rewritten);
        json_out_uint(&j, "rows", rows);
        json_out_uint(&j, "bytes", bytes);
        json_out_uint(&j, "skipped_files", e->skipped_files);
        json_out_object_end(&j);
        return buf_status(out, err, "the report");
}
