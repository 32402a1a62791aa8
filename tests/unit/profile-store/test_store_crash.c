/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kills the writer at random times: every acknowledged batch must be stored exactly once.
 *
 * A child continuously appends batches and flushes; after each acknowledgement it reports the batch's number through a
 * pipe. It is killed at a random time, and the next child continues in the same directory and resends the batches whose
 * acknowledgement was not reported. Files are merged concurrently, by the store itself and on demand, so that it is
 * killed during flushes and merges. Batch i is one sample of value 1 on a stack of its own, so that lost and duplicate
 * batches can be detected individually. The history of functions, derived concurrently, must agree with the samples in
 * each hour that it answers.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "profile-store/history_scan.h"
#include "profile-store/profile_store.h"
#include "profile-store/scan.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define T0 INT64_C(1728000000000000000)
#define ROUNDS 40
#define BUDGET_NS INT64_C(8000000000)
#define BATCHES 100000
#define NS_PER_HOUR INT64_C(3600000000000)
#define FIRST_HOUR (T0 / NS_PER_HOUR)
#define HOURS 30 /* of the samples; batches go round */

static uint8_t acknowledged[BATCHES];

static struct profile_store *open_store(const char *dir, uint64_t interval_ms)
{
        const struct profile_store_options options = { .size = sizeof options,
                                                       .flush_interval_ms = interval_ms,
                                                       .flush_bytes = 1 };
        struct profile_store *store;
        struct error err;

        ck_assert_msg(profile_store_open(dir, &options, &store, &err) == ST_OK, "%s", err.text);
        return store;
}

static void append(struct profile_store *store, uint32_t i)
{
        struct test_profile t;
        struct error err;
        uint32_t stack[2];

        test_profile_init(&t, ID, "/bin/x");
        stack[0] = test_location(&t, 0x1000 + i);
        stack[1] = test_location(&t, 0x10);
        test_sample(&t, T0 + (int64_t)(i % HOURS) * NS_PER_HOUR + i, 1, stack, 2,
                    (const char *const[]){ i % 2 ? "odd=1" : "even=1", NULL });
        ck_assert_msg(profile_store_append(store, &t.p, hash_bytes128(&i, sizeof i), NULL, &err) == ST_OK, "%s",
                      err.text);
        test_profile_deinit(&t);
}

static void *compact_until_killed(void *store)
{
        struct error err = { 0 };

        for (;;)
                ck_assert_msg(profile_store_compact(store, NULL, NULL, NULL, &err) == ST_OK, "%s", err.text);
        return NULL;
}

static void write_until_killed(const char *dir, uint32_t first, int pipe_fd)
{
        struct profile_store *store = open_store(dir, 1);
        pthread_t compactor;

        ck_assert_int_eq(pthread_create(&compactor, NULL, compact_until_killed, store), 0);
        for (uint32_t i = first;; i++) {
                append(store, i);
                if (write(pipe_fd, &i, sizeof i) != sizeof i)
                        _exit(0);
        }
}

/* Runs a writer for a while; returns the first batch that was not acknowledged. */
static uint32_t run_and_kill(const char *dir, uint32_t first, long ns)
{
        struct timespec pause = { .tv_nsec = ns };
        int fds[2], status;
        uint32_t i;
        pid_t child;

        ck_assert_int_eq(pipe(fds), 0);
        child = fork();
        ck_assert_int_ge(child, 0);
        if (!child) {
                close(fds[0]);
                write_until_killed(dir, first, fds[1]);
        }
        close(fds[1]);
        nanosleep(&pause, NULL);
        kill(child, SIGKILL);
        while (read(fds[0], &i, sizeof i) == sizeof i) {
                ck_assert_uint_lt(i, BATCHES);
                acknowledged[i] = 1;
                first = i + 1;
        }
        close(fds[0]);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFSIGNALED(status), "the writer ended by itself, see above");
        return first;
}

/* Every acknowledged batch must be stored once, and at most the batch in flight in addition. */
static void check(struct profile_store *store, uint32_t first_unknown)
{
        static uint8_t seen[BATCHES];
        const struct scan_filter all = { 0, INT64_MAX, NULL, NULL, 0 };
        struct store_scan *scan;
        struct stack_sums sums;
        const struct scan_stacks *stacks;
        struct error err;

        memset(seen, 0, sizeof seen);
        ck_assert_msg(store_scan_begin(store, &scan, &err) == ST_OK, "%s", err.text);
        ck_assert_msg(store_scan_sum(scan, &all, &sums, &err) == ST_OK, "%s", err.text);
        ck_assert_msg(store_scan_resolve(scan, &sums, &stacks, &err) == ST_OK, "%s", err.text);
        for (size_t i = 0; i < sums.count; i++) {
                uint64_t batch;

                ck_assert_uint_eq(stacks->first[i + 1] - stacks->first[i], 2);
                batch = stacks->locations[stacks->indexes[stacks->first[i]]].address - 0x1000;
                ck_assert_uint_lt(batch, BATCHES);
                ck_assert_msg(sums.items[i].value == 1 && sums.items[i].samples == 1, "batch %llu counts %lld times",
                              (unsigned long long)batch, (long long)sums.items[i].value);
                seen[batch] = 1;
        }
        for (uint32_t i = 0; i < BATCHES;
             i++) { /* libcheck records every assertion in a file: use them only for failures */
                if (acknowledged[i] && !seen[i])
                        ck_abort_msg("batch %u was acknowledged and is lost", i);
                if (seen[i] && !acknowledged[i] && i != first_unknown)
                        ck_abort_msg("batch %u was never sent", i);
        }
        stack_sums_deinit(&sums);
        store_scan_end(scan);
}

/* ---- the history of functions ---- */

static enum status add_history_row(void *context, const struct history_row *row, struct error *err)
{
        int64_t *sums = context;

        (void)err;
        sums[row->hour_us / HISTORY_HOUR_US - FIRST_HOUR] += row->self;
        return ST_OK;
}

/*
 * In each hour that the history answers it has the samples of the store. @return the number of samples of these hours.
 */
static int64_t check_history(struct profile_store *store)
{
        static int64_t sums[HOURS];
        struct history_hours hours;
        struct store_scan *scan;
        struct error err;
        int64_t all = 0;

        memset(sums, 0, sizeof sums);
        ck_assert_msg(store_scan_begin(store, &scan, &err) == ST_OK, "%s", err.text);
        ck_assert_msg(history_find_hours(scan, FIRST_HOUR * NS_PER_HOUR, (FIRST_HOUR + HOURS) * NS_PER_HOUR, &hours,
                                         &err) == ST_OK,
                      "%s", err.text);
        ck_assert_uint_eq(hours.count, HOURS);
        ck_assert_msg(history_visit_rows(scan, &hours, add_history_row, sums, &err) == ST_OK, "%s", err.text);
        for (int i = 0; i < HOURS; i++) {
                const struct scan_filter hour = { .from_unix_ns = (FIRST_HOUR + i) * NS_PER_HOUR,
                                                  .to_unix_ns = (FIRST_HOUR + i + 1) * NS_PER_HOUR };
                struct stack_sums s;

                ck_assert_msg(store_scan_sum(scan, &hour, &s, &err) == ST_OK, "%s", err.text);
                if (hours.is_answered[i] && (int64_t)s.count != sums[i])
                        ck_abort_msg("hour %d has %zu samples, its history %lld", i, s.count, (long long)sums[i]);
                all += hours.is_answered[i] ? sums[i] : 0;
                stack_sums_deinit(&s);
        }
        history_hours_deinit(&hours);
        store_scan_end(scan);
        return all;
}

START_TEST(acknowledged_batches_are_stored_once_after_random_kills)
{
        char dir[TEMPORARY_DIR_BYTES];
        int64_t end = monotonic_ns() + BUDGET_NS;
        uint32_t next = 0;
        struct profile_store *store;
        struct error err;

        temporary_dir_create(dir, "crash");
        srandom((unsigned)end);
        /* A slow machine needs more rounds until batches are acknowledged. */
        for (int round = 0; next <= 100 || (round < ROUNDS && monotonic_ns() < end); round++) {
                next = run_and_kill(dir, next, 5000000 + random() % 120000000);
                store = open_store(dir, UINT64_MAX);
                check(store, next);
                check_history(store);
                profile_store_close(store);
        }
        store = open_store(dir, UINT64_MAX);
        ck_assert_msg(profile_store_flush(store, &err) == ST_OK, "%s", err.text);
        check(store, next);
        ck_assert_msg(profile_store_compact(store, NULL, NULL, NULL, &err) == ST_OK, "%s", err.text);
        check(store, next);
        ck_assert_int_ge(check_history(store), next);
        profile_store_close(store);
        temporary_dir_remove(dir);
}
END_TEST

TEST_SUITE("profile store crash", acknowledged_batches_are_stored_once_after_random_kills)
