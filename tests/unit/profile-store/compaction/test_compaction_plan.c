/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the compaction plan, and a simulated month of flushes. */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "profile-store/compaction/compaction_plan.h"
#include "tests/support/suite.h"

#define NOW INT64_C(1800000000)

static struct compaction_file files[20000];
static size_t chosen[20000];

/* Of one row group. */
static uint64_t get_memory(uint64_t rows)
{
        return (rows < KiB(128) ? rows : KiB(128)) * 100;
}

static void fill(size_t count, uint64_t rows, uint64_t bytes, int64_t age_s)
{
        for (size_t i = 0; i < count; i++)
                files[i] = (struct compaction_file){
                        .bytes = bytes, .rows = rows, .memory = get_memory(rows), .added_s = NOW - age_s
                };
}

static size_t plan(size_t count, enum compaction_mode mode)
{
        return compaction_plan(files, count, mode, NOW, &compaction_default_rules, chosen);
}

START_TEST(files_of_equal_size_are_merged_when_there_are_nine)
{
        fill(9, 500, 6000, 0);
        ck_assert_uint_eq(plan(8, COMPACTION_OPEN), 0);
        ck_assert_uint_eq(plan(9, COMPACTION_OPEN), 9);
}
END_TEST

START_TEST(outputs_of_merges_are_merged_when_they_fill_the_partition)
{
        static const uint64_t outputs[] = { 9, 8, 7, 6 };

        for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
                fill(9, 1, 6000, 0);
                for (size_t k = 0; k <= i; k++)
                        files[k].rows = outputs[k];
                ck_assert_uint_eq(plan(9, COMPACTION_OPEN), 8 - i); /* the files of one row */
        }
        for (size_t i = 0; i < 9; i++)
                files[i].rows = 9 - i;
        ck_assert_uint_eq(plan(9, COMPACTION_OPEN), 9);
}
END_TEST

START_TEST(large_file_is_excluded_from_merges_of_small_ones)
{
        fill(11, 500, 6000, 0);
        files[4].rows = 100000;
        files[4].bytes = 1000000;
        ck_assert_uint_eq(plan(11, COMPACTION_OPEN), 10);
        for (size_t i = 0; i < 10; i++)
                ck_assert_uint_ne(chosen[i], 4);
}
END_TEST

START_TEST(an_idle_partition_is_merged_with_fewer_files)
{
        fill(3, 500, 6000, COMPACTION_IDLE_S);
        ck_assert_uint_eq(plan(3, COMPACTION_OPEN), 3);
        files[0].added_s = NOW; /* it is still being appended to */
        ck_assert_uint_eq(plan(3, COMPACTION_OPEN), 0);
        fill(2, 500, 6000, COMPACTION_IDLE_S);
        files[0].rows = 100000;
        ck_assert_uint_eq(plan(2, COMPACTION_OPEN), 0);
}
END_TEST

START_TEST(file_with_future_time_does_not_keep_partition_active)
{
        fill(3, 500, 6000, COMPACTION_SETTLED_S);
        files[1].added_s = NOW + 1; /* clocks differ slightly */
        ck_assert_uint_eq(plan(3, COMPACTION_OPEN), 0);
        files[1].added_s = NOW + 10 * 365 * 86400;
        ck_assert_uint_eq(plan(3, COMPACTION_OPEN), 3);
        files[0].rows = 100000;
        ck_assert_uint_eq(plan(3, COMPACTION_CLOSED), 3);
        files[0].added_s = files[1].added_s = files[2].added_s = INT64_MAX / 1000; /* as a log may contain */
        ck_assert_uint_eq(plan(3, COMPACTION_CLOSED), 3);
}
END_TEST

START_TEST(past_day_becomes_one_file)
{
        fill(3, 100, 6000, COMPACTION_QUIET_S);
        files[1].rows = 300;
        ck_assert_uint_eq(plan(3, COMPACTION_CLOSED), 3);
        files[1].rows = 10000; /* too many rows to rewrite for 200 late ones, until the day has settled */
        ck_assert_uint_eq(plan(3, COMPACTION_CLOSED), 2);
        fill(2, 100, 6000, COMPACTION_SETTLED_S);
        files[1].rows = 10000;
        ck_assert_uint_eq(plan(2, COMPACTION_CLOSED), 2);
        ck_assert_uint_eq(plan(1, COMPACTION_CLOSED), 0);
}
END_TEST

START_TEST(large_files_are_final)
{
        fill(20, 5000000, MiB(64), COMPACTION_SETTLED_S);
        ck_assert_uint_eq(plan(20, COMPACTION_OPEN), 0);
        ck_assert_uint_eq(plan(20, COMPACTION_CLOSED), 0);
        ck_assert_uint_eq(plan(20, COMPACTION_FULL), 0);
        files[3].bytes = MiB(10); /* is merged with a final file of a day that has settled */
        files[3].rows = 1000000;
        files[7].bytes = MiB(70);
        files[8].bytes = MiB(63) + 1;
        files[8].rows = 1000000;
        ck_assert_uint_eq(plan(20, COMPACTION_CLOSED), 2);
        files[8].bytes = MiB(90);
        ck_assert_uint_eq(plan(20, COMPACTION_CLOSED), 2);
        ck_assert_uint_eq(chosen[0], 3);
        ck_assert_uint_eq(plan(20, COMPACTION_OPEN), 0);
}
END_TEST

START_TEST(files_that_reach_final_size_are_merged_at_once)
{
        fill(2, 5000000, MiB(63), 0);
        files[1].bytes = MiB(64) - 1;
        files[0].bytes = MiB(64) - 1;
        ck_assert_uint_eq(plan(2, COMPACTION_OPEN), 0);
        fill(3, 5000000, MiB(60), 0);
        ck_assert_uint_eq(plan(3, COMPACTION_OPEN), 3);
        ck_assert_uint_eq(compaction_count_outputs(MiB(180), &compaction_default_rules), 1);
        ck_assert_uint_eq(compaction_count_outputs(MiB(512), &compaction_default_rules), 3);
        ck_assert_uint_eq(compaction_count_outputs(1, &compaction_default_rules), 1);
}
END_TEST

START_TEST(merge_is_limited_in_files_bytes_and_memory)
{
        struct compaction_rules rules = compaction_default_rules;

        fill(8640, 500, 6000, 0);
        ck_assert_uint_eq(plan(8640, COMPACTION_OPEN), rules.job_files);
        fill(40, 1000000, MiB(30), 0);
        ck_assert_uint_le(plan(40, COMPACTION_FULL) * MiB(30), rules.job_bytes);
        fill(40, 500, 6000, 0);
        rules.job_memory = 5 * 500 * 100;
        ck_assert_uint_eq(compaction_plan(files, 40, COMPACTION_OPEN, NOW, &rules, chosen), 5);
        rules.job_memory = 1; /* two are always tried, unless one of them has most of the rows */
        ck_assert_uint_eq(compaction_plan(files, 40, COMPACTION_OPEN, NOW, &rules, chosen), 2);
        files[0].rows = 1;
        ck_assert_uint_eq(compaction_plan(files, 2, COMPACTION_OPEN, NOW, &rules, chosen), 0);
}
END_TEST

START_TEST(unmergeable_files_are_excluded)
{
        fill(10, 500, 6000, 0);
        files[2].is_unmergeable = true;
        ck_assert_uint_eq(plan(10, COMPACTION_FULL), 9);
        for (size_t i = 0; i < 9; i++)
                ck_assert_uint_ne(chosen[i], 2);
        files[1].is_unmergeable = true;
        ck_assert_uint_eq(plan(10, COMPACTION_OPEN), 0);
        ck_assert_uint_eq(plan(2, COMPACTION_FULL), 0);
}
END_TEST

START_TEST(files_without_row_count_are_compared_by_size)
{
        fill(10, 0, 6000, 0);
        ck_assert_uint_eq(plan(10, COMPACTION_OPEN), 10);
}
END_TEST

/* ---- a month --------------------------------------------------------------------------------- */

#define DAYS 30
#define FLUSHES 8640
#define FLUSH_S 10

struct simulated_day {
        struct compaction_file files[200];
        size_t count, most;
};

static struct simulated_day days[DAYS];
static uint64_t flushed_rows, written_rows;

static void add_simulated(struct simulated_day *d, uint64_t rows, uint64_t row_bytes, int64_t now)
{
        ck_assert_uint_lt(d->count, 200);
        d->files[d->count++] = (struct compaction_file){
                .bytes = rows * row_bytes + 2000, .rows = rows, .memory = get_memory(rows), .added_s = now
        };
        d->most = d->count > d->most ? d->count : d->most;
        written_rows += rows;
}

static int compare_indexes(const void *a, const void *b)
{
        return *(const size_t *)a < *(const size_t *)b ? 1 : -1;
}

static void merge_simulated(struct simulated_day *d, int64_t day_end, uint64_t row_bytes, int64_t now)
{
        size_t n;

        while ((n = compaction_plan(d->files, d->count, now >= day_end + 900 ? COMPACTION_CLOSED : COMPACTION_OPEN, now,
                                    &compaction_default_rules, chosen)) > 0) {
                uint64_t rows = 0, bytes = 0;
                unsigned outputs;

                qsort(chosen, n, sizeof *chosen, compare_indexes);
                for (size_t i = 0; i < n; i++) {
                        rows += d->files[chosen[i]].rows;
                        bytes += d->files[chosen[i]].bytes;
                        d->files[chosen[i]] = d->files[--d->count];
                }
                outputs = compaction_count_outputs(bytes, &compaction_default_rules);
                for (unsigned i = 0; i < outputs; i++)
                        add_simulated(d, rows / outputs + (i < rows % outputs), row_bytes, now);
        }
}

/* Flushes every 10 s for 30 days, each with some probability also for the previous day; with idle times. */
static void simulate_month(uint64_t rows, uint64_t row_bytes, unsigned late_percent)
{
        const int64_t begin = 20000 * INT64_C(86400);

        memset(days, 0, sizeof days);
        flushed_rows = written_rows = 0;
        srandom(7);
        for (int64_t tick = 0; tick < DAYS * FLUSHES + 2 * FLUSHES; tick++) {
                int64_t now = begin + tick * FLUSH_S;
                int day = (int)(tick / FLUSHES), hour = (int)(tick % FLUSHES / 360);

                if (day < DAYS && !(day % 7 == 6 && hour < 6)) {
                        uint64_t n = rows / 2 + (uint64_t)random() % rows;

                        add_simulated(&days[day], n, row_bytes, now);
                        flushed_rows += n;
                }
                if (day > 0 && day < DAYS && random() % 10000 < (long)late_percent * 100) {
                        add_simulated(&days[day - 1], 3, row_bytes, now);
                        flushed_rows += 3;
                }
                for (int i = day < 2 ? 0 : day - 2; i <= day && i < DAYS; i++)
                        merge_simulated(&days[i], begin + (i + 1) * INT64_C(86400), row_bytes, now);
        }
}

START_TEST(a_month_of_small_flushes_stays_in_few_files_and_few_writes)
{
        simulate_month(500, 12, 0);
        for (int i = 0; i < DAYS; i++) {
                ck_assert_uint_eq(days[i].count, 1); /* 52 MB a day */
                ck_assert_uint_le(days[i].most, COMPACTION_SMALL_FILES + 1);
        }
        ck_assert_msg(written_rows <= 10 * flushed_rows, "%.2f writes a row",
                      (double)written_rows / (double)flushed_rows);
}
END_TEST

START_TEST(a_month_of_large_flushes_becomes_files_of_the_final_size)
{
        simulate_month(40000, 12, 0);
        for (int i = 0; i < DAYS; i++) {
                ck_assert_uint_le(days[i].most, 110); /* 4 GB a day */
                for (size_t k = 0; k < days[i].count; k++) {
                        ck_assert_uint_ge(days[i].files[k].bytes, MiB(60));
                        ck_assert_uint_le(days[i].files[k].bytes, MiB(256));
                }
        }
        ck_assert_msg(written_rows <= 5 * flushed_rows, "%.2f writes a row",
                      (double)written_rows / (double)flushed_rows);
}
END_TEST

START_TEST(late_samples_do_not_rewrite_a_day_repeatedly)
{
        simulate_month(500, 12, 5);
        for (int i = 0; i < DAYS; i++)
                ck_assert_uint_le(days[i].count, 2);
        ck_assert_msg(written_rows <= 11 * flushed_rows, "%.2f writes a row",
                      (double)written_rows / (double)flushed_rows);
}
END_TEST

/* ---- hours --------------------------------------------------------------------------------------- */

#define HOURS 6
#define HOUR_FLUSHES 360
#define HOUR_FILES_MAX (COMPACTION_SMALL_FILES + 2) /* with rows of an hour, while it is ingested; two are final */
#define SETTLED_HOUR_FILES_MAX 4                    /* HOUR_SETTLED_FLUSHES after its end */
#define HOUR_SETTLED_FLUSHES 150                    /* 25 minutes */

/* The files of a day, and the flushes [first, end) whose rows each of them has. */
struct simulated_hours {
        struct compaction_file files[100];
        struct flush_span {
                size_t first, end;
        } spans[100];
        size_t count;
};

static void add_hour_file(struct simulated_hours *h, uint64_t rows, uint64_t row_bytes, int64_t now,
                          struct flush_span span)
{
        ck_assert_uint_lt(h->count, 100);
        h->files[h->count] = (struct compaction_file){
                .bytes = rows * row_bytes + 2000, .rows = rows, .memory = get_memory(rows), .added_s = now
        };
        h->spans[h->count++] = span;
}

static void merge_hour_files(struct simulated_hours *h, uint64_t row_bytes, int64_t now)
{
        size_t n;

        while ((n = compaction_plan(h->files, h->count, COMPACTION_OPEN, now, &compaction_default_rules, chosen)) > 0) {
                struct flush_span span = { SIZE_MAX, 0 };
                uint64_t rows = 0;

                qsort(chosen, n, sizeof *chosen, compare_indexes);
                for (size_t i = 0; i < n; i++) {
                        const struct flush_span *s = &h->spans[chosen[i]];

                        rows += h->files[chosen[i]].rows;
                        span.first = s->first < span.first ? s->first : span.first;
                        span.end = s->end > span.end ? s->end : span.end;
                        h->files[chosen[i]] = h->files[--h->count];
                        h->spans[chosen[i]] = h->spans[h->count];
                }
                add_hour_file(h, rows, row_bytes, now, span);
        }
}

static size_t count_hour_files(const struct simulated_hours *h, size_t hour)
{
        size_t ret = 0;

        for (size_t i = 0; i < h->count; i++)
                ret += h->spans[i].first < (hour + 1) * HOUR_FLUSHES && h->spans[i].end > hour * HOUR_FLUSHES;
        return ret;
}

/* Hours of flushes of 10 s, each with rows/2 to rows*3/2 rows, with a round of compaction after each. */
static void check_files_of_hours(uint64_t rows, uint64_t row_bytes)
{
        struct simulated_hours h = { 0 };

        srandom(11);
        for (size_t tick = 0; tick < HOURS * HOUR_FLUSHES; tick++) {
                int64_t now = NOW + (int64_t)tick * FLUSH_S;

                add_hour_file(&h, rows / 2 + (uint64_t)random() % rows, row_bytes, now,
                              (struct flush_span){ tick, tick + 1 });
                merge_hour_files(&h, row_bytes, now);
                for (size_t hour = 0; hour <= tick / HOUR_FLUSHES; hour++) {
                        bool is_settled = tick >= (hour + 1) * HOUR_FLUSHES + HOUR_SETTLED_FLUSHES;
                        size_t count = count_hour_files(&h, hour);

                        ck_assert_msg(count <= (is_settled ? SETTLED_HOUR_FILES_MAX : HOUR_FILES_MAX),
                                      "%zu files of hour %zu at flush %zu", count, hour, tick);
                }
        }
}

START_TEST(an_hour_is_in_few_files_while_it_is_ingested_and_after_it)
{
        check_files_of_hours(500, 12);   /* samples */
        check_files_of_hours(40000, 12); /* of many hosts */
        check_files_of_hours(200, 120);  /* stacks */
}
END_TEST

TEST_SUITE("compaction plan", files_of_equal_size_are_merged_when_there_are_nine,
           outputs_of_merges_are_merged_when_they_fill_the_partition, large_file_is_excluded_from_merges_of_small_ones,
           an_idle_partition_is_merged_with_fewer_files, file_with_future_time_does_not_keep_partition_active,
           past_day_becomes_one_file, large_files_are_final, files_that_reach_final_size_are_merged_at_once,
           merge_is_limited_in_files_bytes_and_memory, unmergeable_files_are_excluded,
           files_without_row_count_are_compared_by_size, a_month_of_small_flushes_stays_in_few_files_and_few_writes,
           a_month_of_large_flushes_becomes_files_of_the_final_size, late_samples_do_not_rewrite_a_day_repeatedly,
           an_hour_is_in_few_files_while_it_is_ingested_and_after_it)
