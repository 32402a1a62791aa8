/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/history/history_marks.h"

#include <string.h>

#include "common/clock.h"
#include "common/memory/array.h"
#include "profile-store/tables/history_part.h"

#define HOURS_PER_DAY 24

void history_marks_init(struct history_marks *m)
{
        *m = (struct history_marks){ 0 };
        pthread_mutex_init(&m->lock, NULL);
}

void history_marks_deinit(struct history_marks *m)
{
        free(m->items);
        pthread_mutex_destroy(&m->lock);
}

/* Position of an hour, or where it would be. */
static size_t find_mark(const struct history_marks *m, int64_t hour)
{
        size_t low = 0, high = m->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (m->items[middle].hour < hour)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static enum status mark_hour(struct history_marks *m, int64_t hour, uint64_t first, uint64_t last, struct error *err)
{
        size_t at = find_mark(m, hour);

        if (at == m->count || m->items[at].hour != hour) {
                if (!array_reserve(&m->items, &m->capacity, m->count))
                        return error_no_memory(err);
                memmove(m->items + at + 1, m->items + at, (m->count - at) * sizeof *m->items);
                m->items[at] = (struct history_mark){ .hour = hour, .first = first };
                m->count++;
        }
        m->items[at].first = first < m->items[at].first ? first : m->items[at].first;
        m->items[at].last = last > m->items[at].last ? last : m->items[at].last;
        m->items[at].touched_ns = monotonic_ns();
        return ST_OK;
}

static int64_t get_hour_of_us(int64_t us)
{
        return us / HISTORY_HOUR_US - (us % HISTORY_HOUR_US < 0);
}

/* The hours of a file of samples, of which there are at most those of its day; without bounds, all of them. */
static enum status mark_hours_between(struct history_marks *m, int64_t min_us, int64_t max_us, uint64_t first,
                                      uint64_t last, struct error *err)
{
        int64_t from = get_hour_of_us(min_us), to = get_hour_of_us(max_us);
        enum status st = ST_OK;

        for (int64_t hour = from; !st && hour <= to && hour - from <= HOURS_PER_DAY; hour++)
                st = mark_hour(m, hour, first, last, err);
        return st;
}

static enum status mark_commit(struct history_marks *m, const struct delta_past_commit *c, uint64_t version,
                               struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && !c->remove_count && i < c->add_count; i++) {
                int64_t min_us, max_us;

                if (!delta_file_get_int_range(c->adds[i], "time", &min_us, &max_us))
                        return error_set(err, ST_NOT_FOUND, "file '%s' has no statistics", c->adds[i]->path);
                st = mark_hours_between(m, min_us, max_us, version, version, err);
        }
        return st;
}

/* Mark all hours of the samples that are not older than the history. */
static enum status mark_all_hours(struct history_marks *m, const struct tables *t, struct error *err)
{
        int64_t newest_us = INT64_MIN;
        enum status st = ST_OK;

        for (size_t i = 0; i < t->part_count[TABLE_HISTORY]; i++) {
                const struct table_part *p = t->parts[TABLE_HISTORY][i];

                newest_us = table_part_has_times(p) && p->max_us > newest_us ? p->max_us : newest_us;
        }
        for (size_t i = 0; !st && i < t->part_count[TABLE_SAMPLES]; i++) {
                const struct table_part *p = t->parts[TABLE_SAMPLES][i];
                int64_t day_us = p->day * HOURS_PER_DAY * HISTORY_HOUR_US,
                        min_us = table_part_has_times(p) ? p->min_us : day_us,
                        max_us = table_part_has_times(p) ? p->max_us : day_us + HOURS_PER_DAY * HISTORY_HOUR_US - 1;

                if (!p->has_day || max_us < newest_us)
                        continue;
                st = mark_hours_between(m, min_us > newest_us ? min_us : newest_us, max_us, 0,
                                        (uint64_t)t->versions[TABLE_SAMPLES], err);
        }
        return st;
}

/* -1 also when samples were replaced by an older copy, which has other commits of these versions. */
static int64_t get_covered_version(const struct tables *t)
{
        return t->covered[TABLE_SAMPLES] <= t->versions[TABLE_SAMPLES] ? t->covered[TABLE_SAMPLES] : -1;
}

/* Drop what another process derived. */
static void forget_covered(struct history_marks *m, const struct tables *t)
{
        size_t kept = 0;

        for (size_t i = 0; i < m->count; i++) {
                struct history_mark *mark = &m->items[i];

                if ((int64_t)mark->last <= get_covered_version(t))
                        continue;
                m->items[kept++] = *mark;
        }
        m->count = kept;
}

static enum status read_commits(struct history_marks *m, struct delta_table *samples, const struct tables *t,
                                struct error *err)
{
        enum status st = ST_OK;

        while (!st && m->until < (uint64_t)t->versions[TABLE_SAMPLES]) {
                _cleanup_delta_past_commit_ struct delta_past_commit c = { 0 };

                st = delta_past_commit_read(samples, m->until + 1, TABLE_BUILD_IDS, &c, err);
                if (!st)
                        st = mark_commit(m, &c, m->until + 1, err);
                m->until += !st;
        }
        return st;
}

static enum status update_under_lock(struct history_marks *m, struct delta_table *samples, const struct tables *t,
                                     bool rebuilds, struct error *err)
{
        int64_t covered = get_covered_version(t);
        enum status st;

        m->is_started &= m->replacements == t->replacements;
        m->replacements = t->replacements;
        if (!m->is_started) {
                m->count = 0;
                m->until = covered > 0 ? (uint64_t)covered : 0;
        }
        forget_covered(m, t);
        if (m->is_started || covered >= 0)
                st = read_commits(m, samples, t, err);
        else
                st = error_set(err, ST_NOT_FOUND, "no history of functions was derived yet");
        if (st == ST_NOT_FOUND && rebuilds) {
                st = mark_all_hours(m, t, err);
                if (!st)
                        m->until = (uint64_t)t->versions[TABLE_SAMPLES];
        }
        m->is_started |= !st;
        return st;
}

enum status history_marks_update(struct history_marks *m, struct delta_table *samples, const struct tables *t,
                                 bool rebuilds, struct error *err)
{
        enum status st;

        pthread_mutex_lock(&m->lock);
        st = update_under_lock(m, samples, t, rebuilds, err);
        pthread_mutex_unlock(&m->lock);
        return st;
}

void history_marks_settle(struct history_marks *m, const int64_t *hours, size_t count, uint64_t version)
{
        pthread_mutex_lock(&m->lock);
        for (size_t i = 0; i < count; i++) {
                size_t at = find_mark(m, hours[i]);

                if (at == m->count || m->items[at].hour != hours[i])
                        continue;
                if (m->items[at].last > version) {
                        m->items[at].first = version + 1;
                        continue;
                }
                memmove(m->items + at, m->items + at + 1, (m->count - at - 1) * sizeof *m->items);
                m->count--;
        }
        pthread_mutex_unlock(&m->lock);
}

void history_marks_postpone(struct history_marks *m, int64_t hour, int64_t until_ns)
{
        size_t at;

        pthread_mutex_lock(&m->lock);
        at = find_mark(m, hour);
        if (at < m->count && m->items[at].hour == hour)
                m->items[at].postponed_ns = until_ns;
        pthread_mutex_unlock(&m->lock);
}

int64_t history_marks_get_covered(struct history_marks *m)
{
        int64_t ret;

        pthread_mutex_lock(&m->lock);
        ret = m->is_started ? (int64_t)m->until : -1;
        for (size_t i = 0; i < m->count; i++)
                ret = (int64_t)m->items[i].first - 1 < ret ? (int64_t)m->items[i].first - 1 : ret;
        pthread_mutex_unlock(&m->lock);
        return ret;
}

bool history_marks_has_later(struct history_marks *m, int64_t hour, int64_t version)
{
        bool ret;
        size_t at;

        pthread_mutex_lock(&m->lock);
        at = find_mark(m, hour);
        ret = at < m->count && m->items[at].hour == hour && (int64_t)m->items[at].last > version;
        pthread_mutex_unlock(&m->lock);
        return ret;
}

enum status history_marks_copy(struct history_marks *m, struct history_mark **ret, size_t *count_ret, struct error *err)
{
        struct history_mark *items;

        pthread_mutex_lock(&m->lock);
        items = calloc(m->count + 1, sizeof *items);
        if (items && m->count)
                memcpy(items, m->items, m->count * sizeof *items);
        *count_ret = items ? m->count : 0;
        pthread_mutex_unlock(&m->lock);
        if (!items)
                return error_no_memory(err);
        *ret = items;
        return ST_OK;
}
