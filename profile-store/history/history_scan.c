/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/history_scan.h"

#include <string.h>

#include "common/clock.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/history/function_history.h"
#include "profile-store/history/history_rows.h"
#include "profile-store/scan/table_scan.h"
#include "profile-store/tables/history_part.h"

#define NS_PER_HOUR INT64_C(3600000000000)

void history_hours_deinit(struct history_hours *h)
{
        free(h->is_answered);
        *h = (struct history_hours){ 0 };
}

static int64_t divide_down(int64_t n, int64_t by)
{
        return n / by - (n % by < 0);
}

/* The file that has an hour, by its statistics; NULL: no file has it. */
static const struct table_part *find_part_of_hour(const struct tables *t, int64_t hour)
{
        int64_t us = hour * HISTORY_HOUR_US;

        for (size_t i = 0; i < t->part_count[TABLE_HISTORY]; i++) {
                const struct table_part *p = t->parts[TABLE_HISTORY][i];

                if (table_part_has_times(p) && p->min_us <= us && us <= p->max_us)
                        return p;
        }
        return NULL;
}

/* Hours before the oldest of the history were derived never, or so long ago that they were removed. */
static int64_t find_oldest_hour(const struct tables *t)
{
        int64_t oldest_us = INT64_MAX;

        for (size_t i = 0; i < t->part_count[TABLE_HISTORY]; i++) {
                const struct table_part *p = t->parts[TABLE_HISTORY][i];

                if (table_part_has_times(p) && p->min_us < oldest_us)
                        oldest_us = p->min_us;
        }
        return oldest_us == INT64_MAX ? INT64_MAX : oldest_us / HISTORY_HOUR_US;
}

static bool is_hour_answered(const struct store_scan *scan, struct history_marks *marks, int64_t hour)
{
        const struct table_part *part = find_part_of_hour(store_scan_get_tables(scan), hour);

        return !history_marks_has_later(marks, hour, part ? part->source_version : -1) &&
               !store_scan_has_head_between(scan, hour * HISTORY_HOUR_US, (hour + 1) * HISTORY_HOUR_US);
}

enum status history_find_hours(struct store_scan *scan, int64_t from_unix_ns, int64_t to_unix_ns,
                               struct history_hours *ret, struct error *err)
{
        struct profile_store *store = store_scan_get_store(scan);
        const struct tables *t = store_scan_get_tables(scan);
        int64_t first = divide_down(from_unix_ns, NS_PER_HOUR) + (from_unix_ns % NS_PER_HOUR != 0),
                end = divide_down(to_unix_ns, NS_PER_HOUR), oldest = find_oldest_hour(t),
                now = wall_clock_ns() / NS_PER_HOUR;
        struct history_hours h = { .first = first, .count = end > first ? (size_t)(end - first) : 0 };
        struct error why = { 0 };
        enum status st = ST_NOT_FOUND;

        if (h.count > LIMIT_HISTORY_HOURS)
                return error_set(err, ST_TOO_BIG, "a time range of more than %d hours", LIMIT_HISTORY_HOURS);
        h.is_answered = calloc(h.count + 1, sizeof *h.is_answered);
        if (!h.is_answered)
                return error_no_memory(err);
        if (store && t->part_count[TABLE_HISTORY])
                st = history_marks_update(&store->history->marks, store->logs.logs[TABLE_SAMPLES], t, false, &why);
        for (size_t i = 0; !st && i < h.count; i++) {
                int64_t hour = first + (int64_t)i;

                h.is_answered[i] = hour >= oldest && hour < now && is_hour_answered(scan, &store->history->marks, hour);
        }
        if (st && st != ST_NOT_FOUND) {
                history_hours_deinit(&h);
                if (err)
                        *err = why;
                return st;
        }
        *ret = h;
        return ST_OK;
}

/* ---- rows ---- */

struct answered_visit {
        const struct history_hours *hours;
        visit_history_row *visit;
        void *context;
};

static enum status visit_if_answered(void *context, const struct history_row *row, struct error *err)
{
        const struct answered_visit *v = context;
        int64_t at = row->hour_us / HISTORY_HOUR_US - v->hours->first;

        return at >= 0 && at < (int64_t)v->hours->count && v->hours->is_answered[at] ? v->visit(v->context, row, err)
                                                                                     : ST_OK;
}

enum status history_visit_rows(struct store_scan *scan, const struct history_hours *hours, visit_history_row *visit,
                               void *context, struct error *err)
{
        const struct tables *t = store_scan_get_tables(scan);
        struct answered_visit v = { hours, visit, context };
        int64_t from_us = hours->first * HISTORY_HOUR_US, to_us = from_us + (int64_t)hours->count * HISTORY_HOUR_US;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < t->part_count[TABLE_HISTORY]; i++)
                st = history_part_visit(t->parts[TABLE_HISTORY][i], from_us, to_us, MEMORY_QUERIES, visit_if_answered,
                                        &v, err);
        return st;
}

/* ---- selections ---- */

/* The text of a row that a matcher tests; NULL: rows do not have it. */
static const char *get_matched_text(const struct history_row *row, const char *key)
{
        if (strcmp(key, HISTORY_SERVICE) == 0 || strcmp(key, "service.name") == 0)
                return row->service;
        if (strcmp(key, HISTORY_VERSION) == 0 || strcmp(key, "service.version") == 0)
                return row->version;
        if (strcmp(key, "__profile_type__") == 0)
                return row->type;
        return NULL;
}

static bool can_match_rows(const struct scan_filter *filter)
{
        const struct history_row any = { .service = "", .version = "", .type = "" };

        for (size_t i = 0; i < filter->matcher_count; i++)
                if (!get_matched_text(&any, filter->matchers[i].key))
                        return false;
        return true;
}

static bool is_row_matched(const struct history_row *row, const struct label_matcher *m)
{
        const char *text = get_matched_text(row, m->key);
        bool is_regex = m->op == LABEL_REGEX || m->op == LABEL_NOT_REGEX,
             matches = is_regex ? m->match(m->context, text, strlen(text)) : strcmp(text, m->value) == 0;

        return matches == (m->op == LABEL_EQUAL || m->op == LABEL_REGEX);
}

struct selection_visit {
        const struct scan_filter *filter;
        visit_history_row *visit;
        void *context;
};

static enum status visit_if_selected(void *context, const struct history_row *row, struct error *err)
{
        const struct selection_visit *v = context;

        if (v->filter->type && strcmp(v->filter->type, row->type) != 0)
                return ST_OK;
        for (size_t i = 0; i < v->filter->matcher_count; i++)
                if (!is_row_matched(row, &v->filter->matchers[i]))
                        return ST_OK;
        return v->visit(v->context, row, err);
}

static bool is_answered_hour(const struct history_hours *h, int64_t hour)
{
        return hour >= h->first && hour - h->first < (int64_t)h->count && h->is_answered[hour - h->first];
}

static enum status visit_derived(struct store_scan *scan, const struct scan_filter *part, visit_history_row *visit,
                                 void *context, struct error *err)
{
        struct history_rows rows;
        enum status st = history_rows_derive_selection(scan, part, &rows, err);

        if (st)
                return st;
        for (size_t i = 0; !st && i < rows.count; i++)
                st = visit(context, &rows.items[i], err);
        history_rows_deinit(&rows);
        return st;
}

/* Bound a range by the times of the samples, so that no empty hours are scanned. */
static void limit_to_samples(const struct store_scan *scan, struct scan_filter *f)
{
        int64_t from, to;

        if (!store_scan_get_time_range(scan, &from, &to)) {
                f->to_unix_ns = f->from_unix_ns;
                return;
        }
        f->from_unix_ns = from > f->from_unix_ns ? from : f->from_unix_ns;
        f->to_unix_ns = to < f->to_unix_ns - 1 ? to + 1 : f->to_unix_ns;
}

/* As history_find_hours(), without the hours before the oldest of the history and those after now. */
static enum status find_hours_of_history(struct store_scan *scan, const struct scan_filter *filter,
                                         struct history_hours *ret, struct error *err)
{
        int64_t oldest = find_oldest_hour(store_scan_get_tables(scan)), from = filter->from_unix_ns,
                to = filter->to_unix_ns, now = wall_clock_ns();

        if (oldest == INT64_MAX)
                return ST_OK;
        from = oldest * NS_PER_HOUR > from ? oldest * NS_PER_HOUR : from;
        return history_find_hours(scan, from, now < to ? now : to, ret, err);
}

enum status history_visit_selection(struct store_scan *scan, const struct scan_filter *filter, visit_history_row *visit,
                                    void *context, struct history_sources *ret, struct error *err)
{
        _cleanup_history_hours_ struct history_hours hours = { 0 };
        struct selection_visit selected = { filter, visit, context };
        struct history_sources sources = { 0 };
        struct scan_filter part = *filter;
        enum status st = ST_OK;

        if (can_match_rows(filter))
                st = find_hours_of_history(scan, filter, &hours, err);
        if (!st && hours.count)
                st = history_visit_rows(scan, &hours, visit_if_selected, &selected, err);
        for (size_t i = 0; i < hours.count; i++)
                sources.history_hours += hours.is_answered[i];
        limit_to_samples(scan, &part);
        for (int64_t from = part.from_unix_ns, to, end = part.to_unix_ns; !st && from < end; from = to) {
                to = (divide_down(from, NS_PER_HOUR) + 1) * NS_PER_HOUR;
                if (is_answered_hour(&hours, divide_down(from, NS_PER_HOUR)))
                        continue;
                part.from_unix_ns = from;
                part.to_unix_ns = to < end ? to : end;
                st = visit_derived(scan, &part, visit, context, err);
                sources.sample_hours++;
        }
        if (!st)
                *ret = sources;
        return st;
}
