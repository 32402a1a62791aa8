/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time limit: 300 s.
 *
 * What flushes of 1, 3 and 10 nodes cost, counted: commits of samples, their repetitions, and calls of the storage,
 * each of which is one request to an object store. The figures of docs/scaling.md are what this program prints.
 *
 * Three ways: each node commits alone, one after the other; all at the same moment, so that all that have not committed
 * yet try each version; and together, one for all. Alone at the same moment a barrier holds each commit until every
 * node has one or has ended, so the counts do not depend on threads.
 */
#include <pthread.h>
#include <string.h>

#include "tests/support/node_fleet.h"
#include "tests/support/store_fixture.h"

#define ROUNDS 6           /* fewer commits than a checkpoint needs */
#define FLUSHES_A_DAY 8640 /* of a node, each 10 s */

enum way { ONE_BY_ONE, AT_THE_SAME_MOMENT, TOGETHER };

static struct node_fleet fleet;

struct counts {
        unsigned put, get, head, list;
};

static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct counts counts;
        unsigned commits_tried;
        bool holds; /* commits wait for those of the other nodes */
        unsigned waiting, ended, generation;
} rounds = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static bool is_samples_commit(const char *call, const char *key)
{
        return strcmp(call, "publish") == 0 && strncmp(key, "samples/_delta_log/", 19) == 0 && strstr(key, ".json");
}

/* Caller holds the lock. */
static void release_if_all_wait(void)
{
        if (!rounds.waiting || rounds.waiting + rounds.ended < fleet.count)
                return;
        rounds.waiting = 0;
        rounds.generation++;
        pthread_cond_broadcast(&rounds.changed);
}

static void wait_for_others(void)
{
        unsigned generation = rounds.generation;

        rounds.waiting++;
        release_if_all_wait();
        while (generation == rounds.generation)
                pthread_cond_wait(&rounds.changed, &rounds.lock);
}

static void count_call(struct faulty_storage *f, const char *call, const char *key)
{
        struct counts *c = &rounds.counts;

        (void)f;
        pthread_mutex_lock(&rounds.lock);
        c->put += strcmp(call, "publish") == 0;
        c->get += strcmp(call, "read") == 0 || strcmp(call, "require") == 0 || strcmp(call, "open") == 0;
        c->head += strcmp(call, "stat") == 0 || strcmp(call, "map") == 0;
        c->list += strcmp(call, "list") == 0;
        rounds.commits_tried += is_samples_commit(call, key);
        if (rounds.holds && is_samples_commit(call, key))
                wait_for_others();
        pthread_mutex_unlock(&rounds.lock);
}

static void *flush_in_thread(void *context)
{
        struct node_fleet_node *n = context;

        node_fleet_flush(&fleet, n->number);
        pthread_mutex_lock(&rounds.lock);
        rounds.ended++;
        release_if_all_wait();
        pthread_mutex_unlock(&rounds.lock);
        return NULL;
}

static void flush_at_the_same_moment(void)
{
        pthread_t threads[NODE_FLEET_MAX];

        rounds.ended = 0;
        rounds.holds = true;
        for (unsigned i = 0; i < fleet.count; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, flush_in_thread, &fleet.nodes[i]), 0);
        for (unsigned i = 0; i < fleet.count; i++)
                ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        rounds.holds = false;
}

static void append_to_all(unsigned *batch)
{
        for (unsigned i = 0; i < fleet.count; i++)
                node_fleet_append(&fleet, i, (*batch)++, NULL);
}

static void flush_all(enum way way)
{
        if (way == AT_THE_SAME_MOMENT)
                flush_at_the_same_moment();
        else if (way == TOGETHER && fleet.count > 1)
                node_fleet_flush(&fleet, 1); /* then the next, and at last the holder */
        else
                for (unsigned i = 0; i < fleet.count; i++)
                        node_fleet_flush(&fleet, i);
}

static int64_t get_samples_version(void)
{
        node_fleet_follow(&fleet, 0);
        return fleet.nodes[0].store->tables->versions[TABLE_SAMPLES];
}

static unsigned per_day(unsigned of_rounds)
{
        return of_rounds * FLUSHES_A_DAY / ROUNDS;
}

/* Of one round. @param expected_gets  0: rounds differ */
static void measure_way(unsigned nodes, enum way way, unsigned expected_commits, unsigned expected_retries,
                        unsigned expected_gets)
{
        static const char *const names[] = { "one by one", "at the same moment", "together" };
        unsigned batch = 1, commits;
        int64_t before;

        memset(&fleet, 0, sizeof fleet);
        fleet.hands_nothing = way != TOGETHER;
        node_fleet_begin(&fleet, nodes);
        fleet.chained = true;
        append_to_all(&batch);
        for (unsigned i = 0; i < nodes; i++)
                node_fleet_flush(&fleet, i);
        for (unsigned i = 0; i < nodes; i++)
                fleet.nodes[i].storage->before = count_call;
        append_to_all(&batch);
        flush_all(way);
        before = get_samples_version();
        rounds.counts = (struct counts){ 0 };
        rounds.commits_tried = 0;
        for (unsigned i = 0; i < ROUNDS; i++) {
                append_to_all(&batch);
                flush_all(way);
        }
        for (unsigned i = 0; i < nodes; i++)
                fleet.nodes[i].storage->before = NULL;
        commits = (unsigned)(get_samples_version() - before);
        ck_assert_int_eq(node_fleet_sum(&fleet, 0), batch - 1);
        printf("# %2u writers %-18s commits %6u retries %6u PUT %6u GET %7u HEAD %7u LIST %u a day\n", nodes,
               names[way], per_day(commits), per_day(rounds.commits_tried - commits), per_day(rounds.counts.put),
               per_day(rounds.counts.get), per_day(rounds.counts.head), per_day(rounds.counts.list));
        ck_assert_uint_eq(commits, expected_commits * ROUNDS);
        ck_assert_uint_eq(rounds.commits_tried - commits, expected_retries * ROUNDS);
        ck_assert_uint_eq(rounds.counts.put, (nodes + expected_commits + expected_retries) * ROUNDS);
        if (expected_gets)
                ck_assert_uint_eq(rounds.counts.get, expected_gets * ROUNDS);
        node_fleet_end(&fleet);
}

START_TEST(one_writer_makes_one_commit_for_a_flush)
{
        measure_way(1, ONE_BY_ONE, 1, 0, 4); /* each log is asked once for its next version */
        measure_way(1, TOGETHER, 1, 0, 4);
}
END_TEST

START_TEST(writers_that_commit_alone_at_the_same_moment_repeat_commits)
{
        measure_way(3, ONE_BY_ONE, 3, 0, 29);
        measure_way(10, ONE_BY_ONE, 10, 0, 0);
        measure_way(3, AT_THE_SAME_MOMENT, 3, 3, 0);
        measure_way(10, AT_THE_SAME_MOMENT, 10, 45, 0);
}
END_TEST

START_TEST(writers_that_commit_together_make_one_commit)
{
        measure_way(3, TOGETHER, 1, 0, 28);
        measure_way(10, TOGETHER, 1, 0, 105);
}
END_TEST

TEST_SUITE("commit_figures", one_writer_makes_one_commit_for_a_flush,
           writers_that_commit_alone_at_the_same_moment_repeat_commits, writers_that_commit_together_make_one_commit)
