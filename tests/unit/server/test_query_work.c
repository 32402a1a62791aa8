/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "query/querier/querier.h"
#include "server/core/query_work.h"
#include "tests/support/suite.h"

/* Finish a query with an answer. @param log_ret  what the log of slow queries says; initialized here */
static bool finish_with(const struct buf *answer, struct buf *log_ret)
{
        static const atomic_bool stopping;
        const struct deadline deadline = { 0 };
        const struct query_bounds bounds = { .kind = "querier",
                                             .target = "/querier.v1.QuerierService/SelectSeries",
                                             .tenant = "default",
                                             .arrived_ns = monotonic_ns() - 1000000,
                                             .deadline = &deadline,
                                             .stopping = &stopping };
        char path[] = "/tmp/query-work-XXXXXX";
        struct query_work work;
        int saved = dup(STDERR_FILENO), fd = mkstemp(path);
        bool is_complete;

        ck_assert(fd >= 0 && saved >= 0);
        query_work_set_slow(1);
        query_work_init_other(&work, &bounds);
        ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
        is_complete = query_work_finish(&work, answer);
        ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
        close(saved);
        close(fd);
        buf_init(log_ret, KiB(64));
        ck_assert_int_eq(file_read(path, log_ret, NULL), ST_OK);
        unlink(path);
        return is_complete;
}

START_TEST(a_query_is_answered_only_with_a_complete_answer)
{
        _cleanup_buf_ struct buf answer, of_complete, of_failed;

        buf_init(&answer, 8);
        buf_append_str(&answer, "short");
        ck_assert(finish_with(&answer, &of_complete));
        ck_assert_ptr_nonnull(strstr(buf_cstr(&of_complete), " s, answered:"));
        buf_append_str(&answer, " and too long");
        ck_assert(!finish_with(&answer, &of_failed));
        ck_assert_ptr_nonnull(strstr(buf_cstr(&of_failed), " s, failed:"));
}
END_TEST

START_TEST(points_out_of_range_are_the_nearest_integer)
{
        ck_assert_int_eq(querier_round_point(2.9), 2);
        ck_assert_int_eq(querier_round_point((double)INT64_MAX), INT64_MAX);
        ck_assert_int_eq(querier_round_point(INFINITY), INT64_MAX);
        ck_assert_int_eq(querier_round_point((double)INT64_MIN), INT64_MIN);
        ck_assert_int_eq(querier_round_point(-1e300), INT64_MIN);
        ck_assert_int_eq(querier_round_point(NAN), 0);
}
END_TEST

TEST_SUITE("query work", a_query_is_answered_only_with_a_complete_answer, points_out_of_range_are_the_nearest_integer)
