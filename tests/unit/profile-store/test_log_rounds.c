/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time limit: 120 s.
 *
 * Requests for the commits of other nodes: which are made at the same time, and that a snapshot has the stack of each
 * sample whatever is committed between two answers.
 */
#include <pthread.h>
#include <string.h>

#include "common/clock.h"
#include "common/threads/condition.h"
#include "profile-store/core/table_follow.h"
#include "profile-store/scan/table_scan.h"
#include "tests/support/node_fleet.h"
#include "tests/support/store_fixture.h"

#define ROUNDS_MAX 8

enum { WRITER, READER }; /* nodes */

static struct node_fleet fleet;

/* The requests of the reader for its logs, in rounds: each waits until all of its round have been made. */
static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        unsigned expected[ROUNDS_MAX]; /* requests in each round */
        unsigned round, waiting;
        bool has_ended; /* a request has waited for too long */
        bool has_table[ROUNDS_MAX][TABLE_COUNT];
} rounds = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void note_table(const char *key)
{
        for (int t = 0; t < TABLE_COUNT; t++) {
                const char *name = table_name(t);

                if (strncmp(key, name, strlen(name)) == 0 && key[strlen(name)] == '/')
                        rounds.has_table[rounds.round][t] = true;
        }
}

#define HOLD_S 30 /* requests that are made one after the other wait for so long, and fail the test */

static void hold_until_round_is_full(struct faulty_storage *f, const char *call, const char *key)
{
        const int64_t until_ns = monotonic_ns() + HOLD_S * INT64_C(1000000000);
        unsigned round;

        (void)f;
        if ((strcmp(call, "read") != 0 && strcmp(call, "stat") != 0) || !strstr(key, "/_delta_log/"))
                return;
        pthread_mutex_lock(&rounds.lock);
        round = rounds.round;
        note_table(key);
        if (++rounds.waiting == rounds.expected[round]) {
                rounds.round++;
                rounds.waiting = 0;
                pthread_cond_broadcast(&rounds.changed);
        }
        while (round == rounds.round && monotonic_ns() < until_ns)
                condition_wait_until(&rounds.changed, &rounds.lock, until_ns);
        rounds.has_ended |= round == rounds.round;
        pthread_mutex_unlock(&rounds.lock);
}

static void set_up(void)
{
        fleet = (struct node_fleet){ .hands_nothing = true };
        node_fleet_begin(&fleet, 2);
        node_fleet_append(&fleet, WRITER, 1, NULL);
        node_fleet_flush(&fleet, WRITER);
        node_fleet_follow(&fleet, READER);
}

static void tear_down(void)
{
        node_fleet_end(&fleet);
}

static void expect_rounds(const unsigned *expected, unsigned count)
{
        memset(rounds.expected, 0, sizeof rounds.expected);
        memcpy(rounds.expected, expected, count * sizeof *expected);
        memset(rounds.has_table, 0, sizeof rounds.has_table);
        rounds.round = rounds.waiting = 0;
        fleet.nodes[READER].storage->asking = ASKS_AT_ONCE;
        fleet.nodes[READER].storage->before = hold_until_round_is_full;
        node_fleet_follow(&fleet, READER);
        fleet.nodes[READER].storage->before = NULL;
        ck_assert(!rounds.has_ended);
        ck_assert_uint_eq(rounds.round, count);
        ck_assert_uint_eq(rounds.waiting, 0);
}

static void check_tables_of_round(unsigned round, unsigned tables)
{
        for (int t = 0; t < TABLE_COUNT; t++)
                ck_assert_msg(rounds.has_table[round][t] == (tables >> t & 1), "round %u, %s", round, table_name(t));
}

#define ALL_TABLES (1U << TABLE_COUNT) - 1
#define REFERRING (1U << TABLE_SAMPLES | 1U << TABLE_STACKS | 1U << TABLE_LOCATIONS)

START_TEST(without_new_commits_all_logs_are_asked_once_and_at_once)
{
        const unsigned one[] = { TABLE_COUNT };

        expect_rounds(one, 1);
        check_tables_of_round(0, ALL_TABLES);
        expect_rounds(one, 1);
}
END_TEST

/* Whether later commits were deleted, which is asked from time to time, takes no round of its own. */
START_TEST(the_question_for_deleted_commits_is_asked_at_the_same_time)
{
        const unsigned both[] = { 2 * TABLE_COUNT };

        fleet.nodes[READER].storage->now_ms = storage_now_ms(fleet.nodes[READER].storage->inner) + 60000;
        expect_rounds(both, 1);
}
END_TEST

START_TEST(after_a_commit_the_tables_that_refer_to_each_other_are_asked_again)
{
        const unsigned two[] = { TABLE_COUNT, 3 };

        node_fleet_append(&fleet, WRITER, 2, NULL);
        node_fleet_flush(&fleet, WRITER);
        expect_rounds(two, 2);
        check_tables_of_round(0, ALL_TABLES);
        check_tables_of_round(1, REFERRING);
        ck_assert_int_eq(node_fleet_sum(&fleet, READER), 2);
}
END_TEST

START_TEST(several_commits_of_one_table_are_read_before_the_others_are_asked_again)
{
        const unsigned many[] = { TABLE_COUNT, 3, 1, 1, 2 };

        for (unsigned i = 0; i < 3; i++) {
                node_fleet_append(&fleet, WRITER, 2 + i, NULL);
                node_fleet_flush(&fleet, WRITER);
        }
        expect_rounds(many, 5);
        check_tables_of_round(2, 1U << TABLE_SAMPLES);
        check_tables_of_round(3, 1U << TABLE_SAMPLES);
        check_tables_of_round(4, 1U << TABLE_STACKS | 1U << TABLE_LOCATIONS);
        ck_assert_int_eq(node_fleet_sum(&fleet, READER), 4);
}
END_TEST

/* ---- commits between two answers ---- */

static unsigned calls_before_flush;

static void flush_meanwhile(struct faulty_storage *f, const char *call, const char *key)
{
        (void)f, (void)call, (void)key;
        if (calls_before_flush-- == 0) {
                static unsigned batch = 100;

                node_fleet_append_stack(&fleet, WRITER, batch, 0x4000 + 16 * batch);
                batch++;
                node_fleet_flush(&fleet, WRITER);
        }
}

/* In the reader's snapshot, which is not read again for it. @return the sum of its samples */
static int64_t check_no_sample_lacks_its_stack(void)
{
        const struct scan_filter all = { INT64_MIN, INT64_MAX, NULL, NULL, 0 };
        struct profile_store *s = fleet.nodes[READER].store;
        struct stack_sums sums = { 0 };
        const struct scan_stacks *stacks;
        struct store_scan *scan;
        struct error err;
        int64_t sum = 0;

        check_ok(store_scan_begin_tables(s, s->tables, &scan, &err), &err);
        check_ok(store_scan_sum(scan, &all, &sums, &err), &err);
        check_ok(store_scan_resolve(scan, &sums, &stacks, &err), &err);
        ck_assert_uint_gt(sums.count, 0);
        for (size_t i = 0; i < sums.count; i++) {
                ck_assert_uint_gt(stacks->first[i + 1], stacks->first[i]);
                sum += sums.items[i].value;
        }
        for (size_t i = 0; i < stacks->location_count; i++)
                ck_assert(stacks->locations[i].build_id->size);
        stack_sums_deinit(&sums);
        store_scan_end(scan);
        return sum;
}

static void flush_between_answers(enum faulty_asking asking)
{
        for (unsigned at = 0; at < 2 * TABLE_COUNT; at++) {
                calls_before_flush = at;
                fleet.nodes[READER].storage->before = flush_meanwhile;
                fleet.nodes[READER].storage->asking = asking;
                node_fleet_follow(&fleet, READER);
                fleet.nodes[READER].storage->before = NULL;
                check_no_sample_lacks_its_stack();
        }
}

START_TEST(a_flush_between_two_answers_shows_no_sample_without_its_stack)
{
        flush_between_answers(ASKS_IN_ORDER);
        flush_between_answers(ASKS_BACKWARDS);
}
END_TEST

static unsigned calls, batches;

#define CALLS_MAX 100

static void flush_at_each_third_call(struct faulty_storage *f, const char *call, const char *key)
{
        (void)f, (void)call, (void)key;
        ck_assert_uint_lt(calls, CALLS_MAX);
        if (++calls % 3 == 0) {
                node_fleet_append_stack(&fleet, WRITER, 100 + batches, 0x4000 + 16 * batches);
                node_fleet_flush(&fleet, WRITER);
                batches++;
        }
}

START_TEST(a_refresh_ends_though_others_commit_as_often_as_it_asks)
{
        for (enum faulty_asking asking = ASKS_IN_ORDER; asking <= ASKS_BACKWARDS; asking++) {
                const int64_t before = node_fleet_sum(&fleet, WRITER);

                calls = 0;
                fleet.nodes[READER].storage->before = flush_at_each_third_call;
                fleet.nodes[READER].storage->asking = asking;
                node_fleet_follow(&fleet, READER);
                fleet.nodes[READER].storage->before = NULL;
                ck_assert_int_ge(check_no_sample_lacks_its_stack(), before);
        }
}
END_TEST

/*
 * After four commits in each log, the fifth round finds one more in those of stacks and locations, and the sixth round,
 * which asks these two, finds none. The logs are read in order then, in which that of samples has one commit more.
 */
static void flush_while_logs_are_read_in_order(struct faulty_storage *f, const char *call, const char *key)
{
        (void)f, (void)call, (void)key;
        if (++calls == 15 || calls == 20) {
                node_fleet_append_stack(&fleet, WRITER, 100 + batches, 0x4000 + 16 * batches);
                node_fleet_flush(&fleet, WRITER);
                batches++;
        }
}

START_TEST(after_a_lost_answer_of_logs_that_are_read_in_order_no_sample_lacks_its_stack)
{
        for (unsigned at = 19; at <= 24; at++) { /* from the history to the stacks */
                struct profile_store *s = fleet.nodes[READER].store;

                for (unsigned i = 0; i < 4; i++, batches++) {
                        node_fleet_append_stack(&fleet, WRITER, 100 + batches, 0x4000 + 16 * batches);
                        node_fleet_flush(&fleet, WRITER);
                }
                calls = 0;
                fleet.nodes[READER].storage->before = flush_while_logs_are_read_in_order;
                faulty_storage_set(fleet.nodes[READER].storage, STORAGE_FAULT_REFUSED, at);
                pthread_mutex_lock(&s->writer_lock);
                ck_assert_int_eq(store_follow_tables(s, NULL), ST_OS);
                fleet.nodes[READER].storage->before = NULL;
                ck_assert_int_eq(store_publish_tables(s, NULL), ST_OK);
                pthread_mutex_unlock(&s->writer_lock);
                check_no_sample_lacks_its_stack();
        }
}
END_TEST

START_TEST(after_a_lost_answer_the_tables_are_asked_again)
{
        for (unsigned at = 1; at <= 7; at++) { /* of two rounds */
                struct profile_store *s = fleet.nodes[READER].store;

                node_fleet_append_stack(&fleet, WRITER, 200 + at, 0x8000 + 16 * at);
                node_fleet_flush(&fleet, WRITER);
                faulty_storage_set(fleet.nodes[READER].storage, STORAGE_FAULT_REFUSED, at);
                fleet.nodes[READER].storage->asking = ASKS_BACKWARDS;
                pthread_mutex_lock(&s->writer_lock);
                ck_assert_int_eq(store_follow_tables(s, NULL), ST_OS);
                ck_assert_int_eq(store_publish_tables(s, NULL), ST_OK); /* asks for what is missing only */
                pthread_mutex_unlock(&s->writer_lock);
                check_no_sample_lacks_its_stack();
        }
}
END_TEST

TEST_SUITE_WITH_FIXTURE("log rounds", without_new_commits_all_logs_are_asked_once_and_at_once,
                        the_question_for_deleted_commits_is_asked_at_the_same_time,
                        after_a_commit_the_tables_that_refer_to_each_other_are_asked_again,
                        several_commits_of_one_table_are_read_before_the_others_are_asked_again,
                        a_flush_between_two_answers_shows_no_sample_without_its_stack,
                        a_refresh_ends_though_others_commit_as_often_as_it_asks,
                        after_a_lost_answer_of_logs_that_are_read_in_order_no_sample_lacks_its_stack,
                        after_a_lost_answer_the_tables_are_asked_again)
