/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of an upstream's circuit breaker, without a server. */
#include <sched.h>

#include "common/clock.h"
#include "debuginfo-store/federation/upstream.h"
#include "tests/support/suite.h"

#define PATIENCE_NS 60000000000
#define FAILURES 3

static struct upstream *upstream;

static void set_up(void)
{
        const struct upstream_options o = { .url = "http://127.0.0.1:1", .failures_max = FAILURES, .pause_s = 1 };

        ck_assert_int_eq(upstream_create(&o, &upstream, NULL), ST_OK);
}

static void tear_down(void)
{
        upstream_unref(upstream);
}

static uint64_t begin(void)
{
        uint64_t epoch;

        ck_assert_int_eq(upstream_begin_request(upstream, &epoch, NULL), ST_OK);
        return epoch;
}

static bool is_refused(void)
{
        uint64_t epoch;

        return upstream_begin_request(upstream, &epoch, NULL) == ST_BUSY;
}

static enum upstream_change end(uint64_t epoch, enum upstream_outcome outcome)
{
        const struct fetch_response answer = { 0 };
        const struct error why = { .text = "it failed" };

        return upstream_end_request(upstream, epoch, outcome, &answer, 1, &why);
}

static struct upstream_status status(void)
{
        struct upstream_status s;

        upstream_get_status(upstream, &s);
        return s;
}

static void open_breaker(void)
{
        for (int i = 0; i < FAILURES; i++)
                end(begin(), UPSTREAM_FAILED);
        ck_assert_int_eq(status().state, UPSTREAM_OPEN);
}

/* After its pause. */
static uint64_t begin_probe(void)
{
        int64_t until = monotonic_ns() + PATIENCE_NS;
        uint64_t epoch;

        while (upstream_begin_request(upstream, &epoch, NULL)) {
                ck_assert_int_lt(monotonic_ns(), until);
                sched_yield();
        }
        ck_assert_int_eq(status().state, UPSTREAM_HALF_OPEN);
        return epoch;
}

START_TEST(consecutive_failures_open_breaker)
{
        end(begin(), UPSTREAM_FAILED);
        end(begin(), UPSTREAM_FAILED);
        ck_assert_int_eq(end(begin(), UPSTREAM_MISSING), UPSTREAM_UNCHANGED);
        end(begin(), UPSTREAM_FAILED);
        ck_assert_int_eq(end(begin(), UPSTREAM_UNSURE), UPSTREAM_UNCHANGED);
        ck_assert_int_eq(end(begin(), UPSTREAM_FAILED), UPSTREAM_UNCHANGED);
        ck_assert_int_eq(end(begin(), UPSTREAM_FAILED), UPSTREAM_LOST);
        ck_assert_int_eq(status().state, UPSTREAM_OPEN);
}
END_TEST

START_TEST(changed_header_closes_breaker)
{
        uint64_t late = begin();
        bool is_changed;

        open_breaker();
        ck_assert_int_eq(upstream_set_header(upstream, NULL, &is_changed, NULL), ST_OK);
        ck_assert(!is_changed && is_refused());
        ck_assert_int_eq(upstream_set_header(upstream, "Authorization: Bearer new", &is_changed, NULL), ST_OK);
        ck_assert(is_changed);
        for (int i = 0; i < FAILURES - 1; i++)
                end(begin(), UPSTREAM_FAILED);
        ck_assert_int_eq(end(late, UPSTREAM_FAILED), UPSTREAM_UNCHANGED); /* of the previous header */
        ck_assert_int_eq(status().state, UPSTREAM_CLOSED);
        ck_assert_int_eq(upstream_set_header(upstream, "Authorization: Bearer new", &is_changed, NULL), ST_OK);
        ck_assert(!is_changed);
        ck_assert_uint_eq(status().failures, FAILURES - 1);
}
END_TEST

START_TEST(requests_from_before_opening_do_not_affect_probe)
{
        uint64_t unsure = begin(), failed = begin(), probe;

        open_breaker();
        probe = begin_probe();
        ck_assert_int_eq(end(unsure, UPSTREAM_UNSURE), UPSTREAM_UNCHANGED);
        ck_assert(is_refused());
        ck_assert_int_eq(end(failed, UPSTREAM_FAILED), UPSTREAM_UNCHANGED);
        ck_assert(is_refused());
        ck_assert_int_eq(status().state, UPSTREAM_HALF_OPEN);
        ck_assert_int_eq(end(probe, UPSTREAM_UNSURE), UPSTREAM_UNCHANGED);
        ck_assert_int_eq(end(begin(), UPSTREAM_FOUND), UPSTREAM_RETURNED); /* the next request is permitted */
        ck_assert_uint_eq(status().in_flight, 0);
}
END_TEST

START_TEST(successful_request_from_before_opening_closes_breaker)
{
        uint64_t answered = begin(), failed = begin();

        open_breaker();
        ck_assert_int_eq(end(answered, UPSTREAM_FOUND), UPSTREAM_RETURNED);
        ck_assert_int_eq(end(failed, UPSTREAM_FAILED), UPSTREAM_UNCHANGED);
        ck_assert_uint_eq(status().failures, 0);
        open_breaker();
}
END_TEST

#define NOT_CANCELLED false

START_TEST(only_busy_counts_against_upstream)
{
        static const enum upstream_outcome outcomes[] = {
                [-ST_OK] = UPSTREAM_FOUND,         [-ST_NOT_FOUND] = UPSTREAM_MISSING,
                [-ST_BAD_DATA] = UPSTREAM_REFUSED, [-ST_TOO_BIG] = UPSTREAM_REFUSED,
                [-ST_BUSY] = UPSTREAM_FAILED,      [-ST_UNSUPPORTED] = UPSTREAM_UNSURE,
                [-ST_NO_MEMORY] = UPSTREAM_UNSURE, [-ST_OS] = UPSTREAM_UNSURE,
                [-ST_USAGE] = UPSTREAM_UNSURE,
        };
        const struct fetch_response none = { 0 };

        for (int st = ST_OK; st >= ST_USAGE; st--) {
                ck_assert_int_eq(upstream_classify_fetch(st, &none, "debuginfo", NOT_CANCELLED), outcomes[-st]);
                ck_assert_int_eq(upstream_classify_poll(st, &none, NOT_CANCELLED), outcomes[-st]);
        }
}
END_TEST

START_TEST(cancelled_request_does_not_count_against_upstream)
{
        const struct fetch_response none = { 0 };

        ck_assert_int_eq(upstream_classify_fetch(ST_BUSY, &none, "debuginfo", true), UPSTREAM_UNSURE);
        ck_assert_int_eq(upstream_classify_poll(ST_BUSY, &none, true), UPSTREAM_UNSURE);
        ck_assert_int_eq(upstream_classify_fetch(ST_NOT_FOUND, &none, "debuginfo", true), UPSTREAM_MISSING);
}
END_TEST

START_TEST(http_error_counts_for_fetch_of_object_only)
{
        const struct fetch_response refused = { .http_status = 400 };

        ck_assert_int_eq(upstream_classify_fetch(ST_BUSY, &refused, "debuginfo", NOT_CANCELLED), UPSTREAM_FAILED);
        ck_assert_int_eq(upstream_classify_fetch(ST_BUSY, &refused, "section/.text", NOT_CANCELLED), UPSTREAM_UNSURE);
        ck_assert_int_eq(upstream_classify_poll(ST_BUSY, &refused, NOT_CANCELLED), UPSTREAM_UNSURE);
}
END_TEST

START_TEST(busy_upstream_may_have_a_filter)
{
        static const struct {
                unsigned code;
                enum status st, ret;
        } results[] = {
                { 200, ST_OK, ST_OK },          { 404, ST_NOT_FOUND, ST_NOT_FOUND }, { 400, ST_BUSY, ST_NOT_FOUND },
                { 401, ST_BUSY, ST_NOT_FOUND }, { 403, ST_BUSY, ST_NOT_FOUND },      { 405, ST_BUSY, ST_NOT_FOUND },
                { 408, ST_BUSY, ST_BUSY },      { 425, ST_BUSY, ST_BUSY },           { 429, ST_BUSY, ST_BUSY },
                { 500, ST_BUSY, ST_BUSY },      { 503, ST_BUSY, ST_BUSY },           { 0, ST_BUSY, ST_BUSY },
        };

        for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
                const struct fetch_response response = { .http_status = results[i].code };

                ck_assert_int_eq(upstream_classify_filter(results[i].st, &response), results[i].ret);
        }
}
END_TEST

TEST_SUITE_WITH_FIXTURE("upstream", consecutive_failures_open_breaker, changed_header_closes_breaker,
                        requests_from_before_opening_do_not_affect_probe,
                        successful_request_from_before_opening_closes_breaker, only_busy_counts_against_upstream,
                        cancelled_request_does_not_count_against_upstream, http_error_counts_for_fetch_of_object_only,
                        busy_upstream_may_have_a_filter)
