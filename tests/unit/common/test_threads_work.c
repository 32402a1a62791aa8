/* SPDX-License-Identifier: Apache-2.0 */
/* Work of a query that is shared by threads. */
#include <stdatomic.h>
#include <string.h>

#include "common/threads/work_threads.h"
#include "tests/support/suite.h"

#define NUMBERS 100000

static _Atomic unsigned taken[NUMBERS];

struct counting {
        struct work_ranges ranges;
        size_t fail_at; /* the number whose thread fails; NUMBERS: none */
        _Atomic size_t interrupted;
};

static enum status count_numbers(void *context, struct work_thread *t, struct error *err)
{
        struct counting *c = context;
        size_t i, end;
        enum status st = ST_OK;

        ck_assert_uint_lt(t->number, count_work_threads());
        while (!st && take_work_range(&c->ranges, &i, &end)) {
                for (; !st && i < end; i++) {
                        atomic_fetch_add(&taken[i], 1);
                        t->meter.rows++;
                        st = i == c->fail_at ? error_set(err, ST_BAD_DATA, "number %zu is damaged", i)
                                             : work_meter_add(&t->meter, WORK_CHECK_UNITS, err);
                }
        }
        return st;
}

START_TEST(each_number_is_processed_once)
{
        struct counting c = { .ranges = { .count = NUMBERS, .step = 7 }, .fail_at = NUMBERS };
        struct work_meter meter;

        work_meter_init(&meter, NULL, NULL);
        ck_assert_int_eq(share_work(&meter, WORK_THREADS_MAX, count_numbers, &c, NULL), ST_OK);
        for (size_t i = 0; i < NUMBERS; i++)
                ck_assert_uint_eq(taken[i], 1);
        ck_assert_uint_eq(meter.rows, NUMBERS);
}
END_TEST

START_TEST(first_failure_stops_others_and_is_returned)
{
        struct counting c = { .ranges = { .count = NUMBERS, .step = 1 }, .fail_at = 100 };
        struct work_meter meter;
        struct error err;

        work_meter_init(&meter, NULL, NULL);
        ck_assert_int_eq(share_work(&meter, WORK_THREADS_MAX, count_numbers, &c, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "number 100 is damaged"));
        ck_assert_uint_eq(taken[NUMBERS - 1], 0);
}
END_TEST

static enum status interrupt_later(void *context, struct error *err)
{
        _Atomic size_t *checks = context;

        return atomic_fetch_add(checks, 1) < 100 ? ST_OK : error_set(err, ST_TIMEOUT, "the client has gone");
}

static enum status add_few_units(void *context, struct work_thread *t, struct error *err)
{
        (void)context;
        return work_meter_add(&t->meter, WORK_CHECK_UNITS / 8, err);
}

START_TEST(cancelled_query_stops_all_threads)
{
        struct counting c = { .ranges = { .count = NUMBERS, .step = 1 }, .fail_at = NUMBERS };
        struct work_meter meter;
        struct error err;

        work_meter_init(&meter, interrupt_later, &c.interrupted);
        ck_assert_int_eq(share_work(&meter, WORK_THREADS_MAX, count_numbers, &c, &err), ST_TIMEOUT);
        ck_assert_ptr_nonnull(strstr(err.text, "the client has gone"));
        ck_assert_uint_eq(taken[NUMBERS - 1], 0);
}
END_TEST

/* Work with many small shares. */
START_TEST(unchecked_units_are_added_to_query)
{
        struct work_meter meter;
        struct error err;
        enum status st = ST_OK;
        unsigned shares = 0;
        _Atomic size_t checks = 0;

        work_meter_init(&meter, interrupt_later, &checks);
        while (!st && shares < 10000) {
                st = share_work(&meter, 1, add_few_units, NULL, &err);
                shares++;
        }
        ck_assert_int_eq(st, ST_TIMEOUT);
        ck_assert_uint_ge(shares, 800);
        ck_assert_uint_le(shares, 816);
}
END_TEST

/* Not atomic: protected by the lock. */
static size_t guarded;

static enum status add_guarded(void *context, struct work_thread *t, struct error *err)
{
        (void)context;
        for (int i = 0; i < 10000; i++) {
                enum status st = work_meter_check(&t->meter, err);

                if (st)
                        return st;
                lock_query_meter(t);
                guarded++;
                unlock_query_meter(t);
        }
        return ST_OK;
}

START_TEST(shared_state_of_query_is_locked)
{
        struct work_meter meter;
        struct counting c = { 0 };

        work_meter_init(&meter, NULL, NULL);
        ck_assert_int_eq(share_work(&meter, WORK_THREADS_MAX, add_guarded, &c, NULL), ST_OK);
        ck_assert_uint_eq(guarded % 10000, 0);
        ck_assert_uint_ge(guarded, 10000);
}
END_TEST

/* Each thread's meter includes the helpers of the whole process: inside a share none is available. */
static enum status share_again(void *context, struct work_thread *t, struct error *err)
{
        return share_work(&t->meter, WORK_THREADS_MAX, count_numbers, context, err);
}

START_TEST(nested_shares_terminate)
{
        struct counting c = { .ranges = { .count = NUMBERS, .step = 16 }, .fail_at = NUMBERS };

        ck_assert_int_eq(share_work(NULL, WORK_THREADS_MAX, share_again, &c, NULL), ST_OK);
        for (size_t i = 0; i < NUMBERS; i++)
                ck_assert_uint_eq(taken[i], 1);
}
END_TEST

TEST_SUITE("threads_work", each_number_is_processed_once, first_failure_stops_others_and_is_returned,
           cancelled_query_stops_all_threads, unchecked_units_are_added_to_query, shared_state_of_query_is_locked,
           nested_shares_terminate)
