/* SPDX-License-Identifier: Apache-2.0 */
#include "common/threads/work_meter.h"

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"

#define SORT_RUN 16384 /* items sorted at once: about 2 ms */

static _Atomic(int64_t) urgent_tasks;

void work_meter_add_urgent_tasks(int64_t change)
{
        atomic_fetch_add_explicit(&urgent_tasks, change, memory_order_relaxed);
}

void work_meter_init(struct work_meter *m, work_interrupted *interrupted, void *context)
{
        assert(m);
        *m = (struct work_meter){ .interrupted = interrupted,
                                  .context = context,
                                  .regex_steps_left = LIMIT_REGEX_STEPS };
}

enum status work_meter_check(struct work_meter *m, struct error *err)
{
        if (!m)
                return ST_OK;
        m->units = 0;
        /* A kernel without preemption switches to a newly runnable thread only here or at its next tick. */
        if (atomic_load_explicit(&urgent_tasks, memory_order_relaxed) > 0)
                (void)sched_yield();
        if (!m->failed && m->interrupted) {
                m->checks++;
                m->failed = m->interrupted(m->context, &m->error);
        }
        if (m->failed && err)
                *err = m->error;
        return m->failed;
}

bool work_meter_add_regex(struct work_meter *m, uint64_t steps)
{
        if (!m)
                return true;
        if (steps > m->regex_steps_left) {
                m->regex_steps_left = 0;
                if (!m->failed)
                        m->failed = error_set(&m->error, ST_TOO_BIG,
                                              "the regular expressions of this query take more than %llu steps; use "
                                              "fewer repetitions, = in place of =~, or a shorter time range",
                                              (unsigned long long)LIMIT_REGEX_STEPS);
                return false;
        }
        m->regex_steps_left -= steps;
        return work_meter_add(m, steps, NULL) == ST_OK;
}

/* ---- sorting --------------------------------------------------------------------------------- */

struct merge {
        struct work_meter *meter;
        const char *from;
        char *to;
        size_t count, size;
        int (*compare)(const void *a, const void *b, void *context);
        void *context;
};

/* Merge the sorted runs [start, middle) and [middle, end) of `from` into the same place of `to`. */
static enum status merge_two_runs(const struct merge *m, size_t start, size_t middle, size_t end, struct error *err)
{
        size_t a = start, b = middle;
        enum status st = ST_OK;

        for (size_t at = start; !st && at < end; at++) {
                const char *x = m->from + a * m->size, *y = m->from + b * m->size;
                bool first = b == end || (a < middle && m->compare(x, y, m->context) <= 0);

                memcpy(m->to + at * m->size, first ? x : y, m->size);
                a += first;
                b += !first;
                st = work_meter_add(m->meter, 1, err);
        }
        return st;
}

static enum status merge_runs(struct merge *m, size_t width, struct error *err)
{
        enum status st = ST_OK;

        for (size_t start = 0; !st && start < m->count; start += 2 * width) {
                size_t left = m->count - start, middle = start + (width < left ? width : left),
                       end = start + (2 * width < left ? 2 * width : left);

                st = merge_two_runs(m, start, middle, end, err);
        }
        return st;
}

enum status work_meter_sort(struct work_meter *meter, void *items, size_t count, size_t size,
                            int (*compare)(const void *a, const void *b, void *context), void *context,
                            struct error *err)
{
        _cleanup_free_ char *scratch = NULL;
        struct merge m = {
                .meter = meter, .from = items, .count = count, .size = size, .compare = compare, .context = context
        };
        enum status st = ST_OK;

        for (size_t start = 0; !st && start < count; start += SORT_RUN) {
                size_t run = count - start < SORT_RUN ? count - start : SORT_RUN;

                qsort_r((char *)items + start * size, run, size, compare, context);
                st = work_meter_add(meter, run * 8, err);
        }
        if (st || count <= SORT_RUN)
                return st;
        scratch = reallocarray(NULL, count, size);
        if (!scratch)
                return error_no_memory(err);
        m.to = scratch;
        for (size_t width = SORT_RUN; !st && width < count; width *= 2) {
                char *done = m.to;

                st = merge_runs(&m, width, err);
                if (st)
                        break; /* `from` still contains all items */
                m.to = (char *)m.from;
                m.from = done;
        }
        if (m.from != items)
                memcpy(items, m.from, count * size);
        return st;
}
