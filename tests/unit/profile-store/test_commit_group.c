/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commits that one node makes for several, in one thread: a node that hands its commit lets the next one flush, and the
 * last one the holder. Races and faults are in test_nodes_simulation.c; requests are counted by test_commit_figures.c.
 */
#include <string.h>

#include "common/limits.h"
#include "profile-store/core/commit_group.h"
#include "profile-store/core/table_follow.h"
#include "profile-store/scan.h"
#include "tests/support/node_fleet.h"
#include "tests/support/store_fixture.h"

static struct node_fleet fleet;

static void set_up(void)
{
        node_fleet_begin(&fleet, 4);
}

static void tear_down(void)
{
        node_fleet_end(&fleet);
}

static int64_t get_version(unsigned node)
{
        return fleet.nodes[node].store->tables->versions[TABLE_SAMPLES];
}

static uint64_t count_queued_batches(unsigned node)
{
        uint64_t batches, bytes;

        profile_store_count_queued(fleet.nodes[node].store, &batches, &bytes);
        return batches;
}

/* Each node sees the sum, in the tables and without anything queued. */
static void check_sum(int64_t expected)
{
        for (unsigned i = 0; i < fleet.count; i++) {
                node_fleet_follow(&fleet, i);
                ck_assert_uint_eq(count_queued_batches(i), 0);
                ck_assert_int_eq(node_fleet_sum(&fleet, i), expected);
        }
}

/* The first node has the lease, and all tables have their rows of locations and stacks. */
static void warm_up(void)
{
        for (unsigned i = 0; i < fleet.count; i++) {
                node_fleet_append(&fleet, i, 1000 + i, NULL);
                node_fleet_flush(&fleet, i);
        }
        check_sum(fleet.count);
        ck_assert_uint_eq(fleet.offers, fleet.count - 1); /* of the others, one by one */
        fleet.offers = 0;
}

START_TEST(flushes_of_all_nodes_are_one_commit)
{
        int64_t before;

        warm_up();
        before = get_version(0);
        for (unsigned i = 0; i < fleet.count; i++)
                node_fleet_append(&fleet, i, i, NULL);
        fleet.chained = true;
        node_fleet_flush(&fleet, 1);
        check_sum(2 * fleet.count);
        ck_assert_uint_eq(fleet.offers, fleet.count - 1);
        for (unsigned i = 0; i < fleet.count; i++)
                ck_assert_int_eq(get_version(i), before + 1);
}
END_TEST

START_TEST(a_commit_begins_when_all_nodes_wait_that_handed_one_before)
{
        warm_up();
        ck_assert_uint_eq(fleet.due_offers, 1); /* the first one; then the holder knew another node */
        for (unsigned i = 1; i < fleet.count; i++)
                node_fleet_append(&fleet, i, i, NULL);
        fleet.chained = true;
        node_fleet_flush(&fleet, 1);
        ck_assert_uint_eq(fleet.offers, fleet.count - 1);
        ck_assert_uint_eq(fleet.due_offers, 2); /* the last one */
}
END_TEST

START_TEST(a_node_without_an_answer_commits_alone)
{
        int64_t before;

        warm_up();
        before = get_version(0);
        node_fleet_append(&fleet, 1, 1, NULL);
        fleet.stops_holder = true; /* it has the commit, and nobody waits for it */
        node_fleet_flush(&fleet, 1);
        check_sum(fleet.count + 1);
        ck_assert_int_eq(get_version(1), before + 1);
        node_fleet_flush(&fleet, 0); /* the holder goes on */
        node_fleet_append(&fleet, 0, 2, NULL);
        node_fleet_flush(&fleet, 0);
        check_sum(fleet.count + 2);
        ck_assert_int_eq(get_version(0), before + 2);
}
END_TEST

START_TEST(a_node_whose_answer_is_lost_finds_its_commit)
{
        int64_t before;

        warm_up();
        before = get_version(0);
        node_fleet_append(&fleet, 1, 1, NULL);
        fleet.loses_answers = true;
        node_fleet_flush(&fleet, 1);
        check_sum(fleet.count + 1);
        ck_assert_int_eq(get_version(1), before + 1);
        fleet.loses_answers = false;
        node_fleet_append(&fleet, 1, 2, NULL);
        fleet.offers = 0;
        node_fleet_flush(&fleet, 1); /* without asking again */
        ck_assert_uint_eq(fleet.offers, 0);
        node_fleet_append(&fleet, 1, 3, NULL);
        node_fleet_flush(&fleet, 1);
        ck_assert_uint_eq(fleet.offers, 1);
        check_sum(fleet.count + 3);
}
END_TEST

START_TEST(a_batch_of_two_nodes_counts_once)
{
        warm_up();
        node_fleet_append(&fleet, 1, 7, NULL);
        node_fleet_append(&fleet, 2, 7, NULL);
        node_fleet_append(&fleet, 2, 8, NULL);
        node_fleet_append(&fleet, 3, 9, NULL);
        node_fleet_append(&fleet, 0, 9, NULL); /* of the holder, which goes first */
        fleet.chained = true;
        node_fleet_flush(&fleet, 1);
        ck_assert_uint_eq(fleet.refusals, 2);
        check_sum(fleet.count + 3);
}
END_TEST

START_TEST(a_node_that_is_started_again_finds_its_commit)
{
        warm_up();
        node_fleet_append(&fleet, 1, 1, NULL);
        fleet.stops_holder = true;
        fleet.cuts_after_hand = true; /* the machine is lost while it waits */
        node_fleet_fail_flush(&fleet, 1);
        node_fleet_restart(&fleet, 1);
        node_fleet_append(&fleet, 1, 2, NULL);
        node_fleet_flush(&fleet, 0); /* commits for it now */
        node_fleet_flush(&fleet, 1);
        check_sum(fleet.count + 2);
}
END_TEST

/* Reads of the log of locations, which comes after that of stacks, by the flushes of the holder. */
static unsigned location_reads, acts_at_read;

static void hand_new_stack(struct faulty_storage *storage, const char *call, const char *key)
{
        (void)call;
        if (strncmp(key, "locations/_delta_log", 20) != 0 || ++location_reads != acts_at_read)
                return;
        storage->before = NULL;
        node_fleet_append_stack(&fleet, 1, 1, 0x2000);
        fleet.stops_holder = true; /* it goes on when this returns */
        fleet.cuts_after_hand = true;
        node_fleet_fail_flush(&fleet, 1);
}

/* The last time that the holder reads the tables before its commit, a new stack comes after it has read the stacks. */
START_TEST(a_scan_of_the_holder_has_stacks_that_were_handed_during_its_flush)
{
        int64_t before;

        warm_up();
        fleet.nodes[0].storage->before = hand_new_stack;
        node_fleet_flush(&fleet, 0);
        ck_assert_uint_gt(location_reads, 0);
        acts_at_read = location_reads;
        location_reads = 0;
        before = get_version(0);
        node_fleet_flush(&fleet, 0);
        ck_assert_int_eq(get_version(0), before + 1);
        ck_assert_int_eq(node_fleet_sum(&fleet, 0), fleet.count + 1);
        node_fleet_restart(&fleet, 1);
        check_sum(fleet.count + 1);
}
END_TEST

static void fail_at_stacks(struct faulty_storage *storage, const char *call, const char *key)
{
        (void)call;
        if (strncmp(key, "stacks/_delta_log", 17) == 0)
                faulty_storage_set(storage, STORAGE_FAULT_REFUSED, 1);
}

/* A node reads new samples, and fails to read their stacks. What it publishes next, for another reason, has both. */
START_TEST(samples_are_published_with_their_stacks_after_a_failure)
{
        struct profile_store *s = fleet.nodes[2].store;
        struct error err;

        warm_up();
        node_fleet_append_stack(&fleet, 1, 1, 0x2000);
        node_fleet_flush(&fleet, 1);
        fleet.nodes[2].storage->before = fail_at_stacks;
        pthread_mutex_lock(&s->writer_lock);
        ck_assert_int_eq(store_follow_tables(s, &err), ST_OS);
        fleet.nodes[2].storage->before = NULL;
        check_ok(store_publish_tables(s, &err), &err);
        pthread_mutex_unlock(&s->writer_lock);
        ck_assert_int_eq(node_fleet_sum(&fleet, 2), fleet.count + 1);
}
END_TEST

START_TEST(a_holder_with_a_new_column_refuses_the_others)
{
        warm_up();
        node_fleet_append(&fleet, 0, 1, "new=1");
        node_fleet_append(&fleet, 1, 2, NULL);
        node_fleet_flush(&fleet, 1);
        ck_assert_uint_eq(fleet.refusals, 1);
        check_sum(fleet.count + 2);
}
END_TEST

START_TEST(a_holder_that_ends_leaves_the_others_alone)
{
        warm_up();
        node_fleet_restart(&fleet, 0);
        for (unsigned i = 1; i < fleet.count; i++) {
                node_fleet_append(&fleet, i, i, NULL);
                node_fleet_flush(&fleet, i); /* refused by the former holder */
        }
        check_sum(2 * fleet.count - 1);
        for (unsigned i = 1; i < fleet.count; i++) {
                node_fleet_append(&fleet, i, 10 + i, NULL);
                node_fleet_flush(&fleet, i);
                node_fleet_append(&fleet, i, 20 + i, NULL);
                fleet.offers = 0;
                node_fleet_flush(&fleet, i);
                ck_assert_uint_eq(fleet.offers, i > 1); /* node 1 has the lease now */
        }
        check_sum(4 * fleet.count - 3);
}
END_TEST

/* ---- what another node may hand ---- */

static char good[4096];
#define NODE "0123456789abcdef"
#define NAME "date=2024-10-04/part-" NODE "-00000000000000000006-00000000000000000007-0badcafe"
#define ADD(path, date, size)                                                                                          \
        "{\"add\":{\"path\":\"" path "\",\"partitionValues\":{\"date\":\"" date "\"},\"size\":" size                   \
        ",\"modificationTime\":1,\"dataChange\":true,\"stats\":\"{\\\"numRecords\\\":1}\"}}\n"
#define INFO(ids) "{\"commitInfo\":{\"cairnBatchIds\":\"" ids "\"}}\n"
#define ID "00112233445566778899aabbccddeeff"
#define TXN(app, version) "{\"txn\":{\"appId\":\"" app "\",\"version\":" version "}}\n"
#define GOOD_TXN TXN("cairn-raw-queue/" NODE, "7")
#define GOOD_ADD ADD(NAME ".parquet", "2024-10-04", "10")

static enum status parse_offer(const char *text, uint64_t after)
{
        const struct handed_commit base = { .after = after };
        struct offered_commit *o = NULL;
        struct error err;
        enum status st = offered_commit_parse(&base, text, strlen(text), &o, &err);

        offered_commit_destroy(o);
        return st;
}

START_TEST(only_new_files_of_the_node_are_taken)
{
        static const char *const bad[] = {
                "",
                "{",
                INFO(ID) GOOD_TXN,
                INFO(ID) GOOD_ADD,
                GOOD_TXN GOOD_ADD,
                INFO("") GOOD_TXN GOOD_ADD,
                INFO(ID) GOOD_TXN GOOD_TXN GOOD_ADD,
                INFO(ID) GOOD_TXN GOOD_ADD GOOD_ADD,
                INFO(ID) GOOD_TXN GOOD_ADD "{\"remove\":{\"path\":\"" NAME ".parquet\"}}\n",
                INFO(ID) GOOD_TXN GOOD_ADD "{\"protocol\":{\"minReaderVersion\":1,\"minWriterVersion\":2}}\n",
                INFO(ID) GOOD_TXN GOOD_ADD
                "{\"metaData\":{\"id\":\"a\",\"schemaString\":\"{\\\"fields\\\":[]}\",\"partitionColumns\":[]}}\n",
                INFO(ID) TXN("cairn-removal", "7") GOOD_ADD,
                INFO(ID) TXN("cairn-raw-queue", "7") GOOD_ADD,
                INFO(ID) TXN("cairn-raw-queue/" NODE "0", "7") GOOD_ADD,
                INFO(ID) TXN("cairn-raw-queue/0123456789ABCDEF", "7") GOOD_ADD,
                INFO(ID) TXN("cairn-raw-queue/fedcba9876543210", "7") GOOD_ADD,
                INFO(ID) TXN("cairn-raw-queue/" NODE, "8") GOOD_ADD,
                INFO(ID) TXN("cairn-raw-queue/" NODE, "-7") GOOD_ADD,
                INFO(ID) GOOD_TXN ADD(NAME ".parquet", "2024-10-05", "10"),
                INFO(ID) GOOD_TXN ADD(NAME ".parquet", "2024-10-0x", "10"),
                INFO(ID) GOOD_TXN ADD(NAME ".parquet", "2024-10-04", "0"),
                INFO(ID) GOOD_TXN ADD(NAME "a.parquet", "2024-10-04", "10"),
                INFO(ID) GOOD_TXN ADD(NAME "-.parquet", "2024-10-04", "10"),
                INFO(ID) GOOD_TXN ADD(NAME "-1234567.parquet", "2024-10-04", "10"),
                INFO(ID) GOOD_TXN ADD(NAME "/../x.parquet", "2024-10-04", "10"),
                INFO(ID) GOOD_TXN ADD("date=2024-10-04/x.parquet", "2024-10-04", "10"),
                INFO(ID) GOOD_TXN ADD("../stacks/" NAME ".parquet", "2024-10-04", "10"),
                INFO(ID) GOOD_TXN ADD("date=2024-10-04/../" NAME ".parquet", "2024-10-04", "10"),
                INFO(ID) GOOD_TXN "{\"add\":{\"path\":\"" NAME
                                  ".parquet\",\"partitionValues\":{\"date\":\"2024-10-04\"},\"size\":10,"
                                  "\"modificationTime\":1,\"stats\":\"{\"}}\n",
                INFO(ID) GOOD_TXN "{\"add\":{\"path\":\"" NAME
                                  ".parquet\",\"partitionValues\":{},\"size\":10,\"modificationTime\":1}}\n",
        };

        ck_assert_int_eq(parse_offer(INFO(ID) GOOD_TXN GOOD_ADD, 5), ST_OK);
        ck_assert_int_eq(parse_offer(INFO(ID) GOOD_TXN GOOD_ADD ADD(NAME "-1.parquet", "2024-10-04", "10"), 5), ST_OK);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
                ck_assert_msg(parse_offer(bad[i], 5) == ST_BAD_DATA, "commit %zu is taken", i);
        ck_assert_int_eq(parse_offer(INFO(ID) GOOD_TXN GOOD_ADD, 4), ST_BAD_DATA);
        ck_assert_int_eq(parse_offer(INFO(ID) GOOD_TXN GOOD_ADD, 7), ST_BAD_DATA);
        ck_assert_int_eq(parse_offer(INFO(ID) GOOD_TXN GOOD_ADD, UINT64_MAX), ST_BAD_DATA);
}
END_TEST

static enum status offer_text(unsigned node, const char *text, const char *tables)
{
        struct profile_store *s = fleet.nodes[node].store;
        struct handed_commit base = { .after = 5, .removal = -1 };
        struct offered_commit *o;
        struct error err;
        enum status st;

        snprintf(base.holder, sizeof base.holder, "%s", s->logs.node);
        snprintf(base.tables, sizeof base.tables, "%s", tables ? tables : s->samples_id);
        st = profile_store_offer_commit(s, &base, text, strlen(text), &o, &err);
        if (!st)
                commit_group_abandon(s, o);
        return st;
}

START_TEST(only_the_holder_takes_commits_and_only_of_files_that_exist)
{
        int64_t before;

        snprintf(good, sizeof good, "%s", INFO(ID) GOOD_TXN GOOD_ADD);
        warm_up();
        before = get_version(0);
        ck_assert_int_eq(offer_text(1, good, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(offer_text(0, good, "other-tables"), ST_USAGE);
        ck_assert_int_eq(offer_text(0, good, NULL), ST_BAD_DATA); /* no such file */
        node_fleet_put(&fleet, "samples/" NAME ".parquet", "012345678");
        ck_assert_int_eq(offer_text(0, good, NULL), ST_BAD_DATA); /* of another size */
        node_fleet_put(&fleet, "samples/" NAME ".parquet", "0123456789");
        for (unsigned i = 0; i < LIMIT_HANDED_COMMITS; i++)
                ck_assert_int_eq(offer_text(0, good, NULL), ST_OK);
        ck_assert_int_eq(offer_text(0, good, NULL), ST_BUSY);
        node_fleet_flush(&fleet, 0); /* refuses them: the table has no position 5 of that node */
        check_sum(fleet.count);
        ck_assert_int_eq(get_version(0), before);
        profile_store_stop(fleet.nodes[0].store);
        ck_assert_int_eq(offer_text(0, good, NULL), ST_BUSY);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("commit_group", flushes_of_all_nodes_are_one_commit,
                        a_commit_begins_when_all_nodes_wait_that_handed_one_before,
                        a_node_without_an_answer_commits_alone, a_node_whose_answer_is_lost_finds_its_commit,
                        a_batch_of_two_nodes_counts_once, a_node_that_is_started_again_finds_its_commit,
                        a_scan_of_the_holder_has_stacks_that_were_handed_during_its_flush,
                        samples_are_published_with_their_stacks_after_a_failure,
                        a_holder_with_a_new_column_refuses_the_others, a_holder_that_ends_leaves_the_others_alone,
                        only_new_files_of_the_node_are_taken,
                        only_the_holder_takes_commits_and_only_of_files_that_exist)
