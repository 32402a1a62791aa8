/* SPDX-License-Identifier: Apache-2.0 */
/* When the filter of an upstream is requested and used, with a clock that the tests move. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/limits.h"
#include "debuginfo-store/build_id_filter.h"
#include "debuginfo-store/federation/upstream_filter.h"
#include "tests/support/suite.h"

#define MINUTE 60

static struct upstream_filter *filter;
static time_t ahead_s;

/* In place of libc's. */
int clock_gettime(clockid_t id, struct timespec *ret);
int clock_gettime(clockid_t id, struct timespec *ret)
{
        int rc = (int)syscall(SYS_clock_gettime, id, ret);

        if (rc == 0 && id == CLOCK_MONOTONIC)
                ret->tv_sec += ahead_s;
        return rc;
}

static void set_up(void)
{
        ahead_s = 0;
        ck_assert_int_eq(upstream_filter_create(&filter, NULL), ST_OK);
}

static void tear_down(void)
{
        upstream_filter_destroy(filter);
}

static void miss_often(void)
{
        for (int i = 0; i < UPSTREAM_FILTER_MISSES; i++)
                upstream_filter_note_missing(filter);
}

/* The upstream publishes that it has nothing. */
static void receive_empty_filter(void)
{
        struct buf file;
        FILE *f = tmpfile();

        buf_init(&file, LIMIT_FILTER_BYTES);
        ck_assert_int_eq(build_id_filter_write(NULL, 0, &file, NULL), ST_OK);
        ck_assert(f && fwrite(file.data, 1, file.size, f) == file.size && !fflush(f));
        upstream_filter_set(filter, ST_OK, fileno(f));
        fclose(f);
        buf_deinit(&file);
}

static bool excludes_some_id(void)
{
        const struct build_id id = { .size = 20, .bytes = { 1 } };

        return upstream_filter_excludes(filter, &id);
}

START_TEST(filter_is_requested_after_misses_by_one_thread)
{
        for (int i = 0; i < UPSTREAM_FILTER_MISSES; i++) {
                ck_assert(!upstream_filter_begin_fetch(filter));
                upstream_filter_note_missing(filter);
        }
        ck_assert(upstream_filter_begin_fetch(filter));
        ck_assert(!upstream_filter_begin_fetch(filter));
        ck_assert(!excludes_some_id());
        receive_empty_filter();
        ck_assert(excludes_some_id());
        ck_assert(!upstream_filter_begin_fetch(filter));
        ahead_s += MINUTE + 1;
        ck_assert(upstream_filter_begin_fetch(filter));
}
END_TEST

START_TEST(busy_upstream_keeps_its_filter_for_five_minutes)
{
        miss_often();
        ck_assert(upstream_filter_begin_fetch(filter));
        receive_empty_filter();
        for (int minute = 1; minute < 5; minute++) {
                ahead_s += MINUTE + 1;
                ck_assert(upstream_filter_begin_fetch(filter));
                upstream_filter_set(filter, ST_BUSY, -1);
                ck_assert(excludes_some_id());
                ck_assert(!upstream_filter_begin_fetch(filter));
        }
        ahead_s += MINUTE;
        ck_assert(!excludes_some_id());
}
END_TEST

START_TEST(busy_upstream_is_asked_again_after_a_minute)
{
        miss_often();
        ck_assert(upstream_filter_begin_fetch(filter));
        upstream_filter_set(filter, ST_BUSY, -1);
        miss_often();
        ck_assert(!upstream_filter_begin_fetch(filter));
        ahead_s += MINUTE + 1;
        ck_assert(upstream_filter_begin_fetch(filter));
}
END_TEST

START_TEST(upstream_without_filter_is_asked_again_after_an_hour)
{
        miss_often();
        ck_assert(upstream_filter_begin_fetch(filter));
        receive_empty_filter();
        ahead_s += MINUTE + 1;
        ck_assert(upstream_filter_begin_fetch(filter));
        upstream_filter_set(filter, ST_NOT_FOUND, -1);
        ck_assert(!excludes_some_id());
        miss_often();
        ahead_s += 59 * MINUTE;
        ck_assert(!upstream_filter_begin_fetch(filter));
        ahead_s += MINUTE + 1;
        ck_assert(upstream_filter_begin_fetch(filter));
        ahead_s = 0; /* libcheck refuses tests that take more than an hour */
}
END_TEST

START_TEST(damaged_filter_is_not_used)
{
        FILE *f = tmpfile();

        miss_often();
        ck_assert(upstream_filter_begin_fetch(filter));
        receive_empty_filter();
        ahead_s += MINUTE + 1;
        ck_assert(upstream_filter_begin_fetch(filter));
        ck_assert(f && fputs("<html>Please log in.</html>", f) >= 0 && !fflush(f));
        upstream_filter_set(filter, ST_OK, fileno(f));
        fclose(f);
        ck_assert(excludes_some_id()); /* by the filter before it */
        ck_assert(!upstream_filter_begin_fetch(filter));
}
END_TEST

TEST_SUITE_WITH_FIXTURE("upstream_filter", filter_is_requested_after_misses_by_one_thread,
                        busy_upstream_keeps_its_filter_for_five_minutes, busy_upstream_is_asked_again_after_a_minute,
                        upstream_without_filter_is_asked_again_after_an_hour, damaged_filter_is_not_used)
