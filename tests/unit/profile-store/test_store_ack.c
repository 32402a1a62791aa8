/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that are acknowledged when their commit is in the storage: shared commits, lost answers, an absent storage.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/files/file.h"
#include "profile-store/core/profile_store_internal.h"
#include "storage/local_storage.h"
#include "tests/support/faulty_storage.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temporary_dir.h"

#define SENDERS 8
#define LONG_MS 60000

static struct store_fixture fixture;
static struct faulty_storage *storage;
static char tables[80];

static void open_storage_at(const char *dir)
{
        struct storage *inner = NULL;
        struct error err;

        check_ok(local_storage_open(dir, &inner, &err), &err);
        storage = faulty_storage_create(inner);
        fixture.options.tables = &storage->storage;
}

/* Flushes come from waiting batches only. */
static void open_fixture(void)
{
        temporary_dir_create(fixture.dir, "store-ack");
        snprintf(tables, sizeof tables, "%s/tables", fixture.dir);
        fixture.options = (struct profile_store_options){ .is_shared = true,
                                                          .flush_interval_ms = 24 * 3600 * 1000,
                                                          .compact_interval_ms = UINT64_MAX,
                                                          .commit_interval_ms = 1 };
        open_storage_at(tables);
        store_fixture_open(&fixture);
}

static void close_fixture(void)
{
        store_fixture_end(&fixture);
        storage_close(&storage->storage);
}

static enum status send_batch(unsigned number, uint64_t timeout_ms)
{
        struct error err;

        store_fixture_append(&fixture, number, 0x1000 + number);
        return profile_store_wait_flushed(fixture.store, store_fixture_batch_id(number), timeout_ms, &err);
}

/* What another machine finds, which has nothing but the storage. */
static int64_t sum_on_empty_disk(void)
{
        struct store_fixture other = { .options = { .tables = &storage->storage, .is_shared = true } };
        int64_t sum;

        store_fixture_begin(&other);
        sum = store_fixture_sum(&other);
        store_fixture_end(&other);
        return sum;
}

static atomic_uint acknowledged, next_number;
static atomic_bool is_held, has_begun;

/* Holds the first write of the first flush until all other senders have queued their batches. */
static void hold_first_write(struct faulty_storage *f, const char *call, const char *key)
{
        (void)f;
        (void)key;
        if (strcmp(call, "publish") != 0 || !atomic_load(&is_held))
                return;
        atomic_store(&has_begun, true);
        while (atomic_load(&is_held))
                sched_yield();
}

static void *run_sender(void *context)
{
        (void)context;
        ck_assert_int_eq(send_batch(atomic_fetch_add(&next_number, 1), LONG_MS), ST_OK);
        atomic_fetch_add(&acknowledged, 1);
        return NULL;
}

static size_t count_waiters(void)
{
        size_t ret;

        pthread_mutex_lock(&fixture.store->lock);
        ret = fixture.store->flush_waiters;
        pthread_mutex_unlock(&fixture.store->lock);
        return ret;
}

static int64_t get_samples_version(void)
{
        int64_t ret;

        pthread_mutex_lock(&fixture.store->lock);
        ret = fixture.store->tables->versions[TABLE_SAMPLES];
        pthread_mutex_unlock(&fixture.store->lock);
        return ret;
}

START_TEST(batches_that_wait_share_a_commit_and_survive_an_empty_disk)
{
        pthread_t threads[SENDERS];
        int64_t version;

        open_fixture();
        version = get_samples_version();
        atomic_store(&is_held, true);
        storage->before = hold_first_write;
        ck_assert_int_eq(pthread_create(&threads[0], NULL, run_sender, NULL), 0);
        while (!atomic_load(&has_begun))
                sched_yield();
        for (unsigned i = 1; i < SENDERS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, run_sender, NULL), 0);
        while (count_waiters() < SENDERS)
                sched_yield();
        ck_assert_uint_eq(atomic_load(&acknowledged), 0);
        atomic_store(&is_held, false);
        for (unsigned i = 0; i < SENDERS; i++)
                pthread_join(threads[i], NULL);
        ck_assert_int_eq(get_samples_version() - version, 2);
        ck_assert_int_eq(sum_on_empty_disk(), SENDERS);
        storage->before = NULL;
        close_fixture();
}
END_TEST

START_TEST(each_acknowledged_batch_is_stored_once_whichever_call_fails)
{
        unsigned sent = 0;

        open_fixture();
        for (unsigned at = 1; at < 40; at++) {
                faulty_storage_set(storage, at % 2 ? STORAGE_FAULT_ANSWER_LOST : STORAGE_FAULT_REFUSED, at / 2 + 1);
                ck_assert_int_eq(send_batch(sent++, LONG_MS), ST_OK);
                faulty_storage_set(storage, STORAGE_FAULT_NONE, 0);
                if (at % 8 == 0)
                        ck_assert_int_eq(sum_on_empty_disk(), sent);
        }
        ck_assert_int_eq(sum_on_empty_disk(), sent);
        close_fixture();
}
END_TEST

START_TEST(batch_that_is_refused_in_time_counts_once_when_it_is_sent_again)
{
        open_fixture();
        ck_assert_int_eq(send_batch(0, LONG_MS), ST_OK);
        storage->is_cut = true;
        ck_assert_int_eq(send_batch(1, 50), ST_TIMEOUT);
        ck_assert_int_eq(send_batch(1, 50), ST_TIMEOUT);
        storage->is_cut = false;
        ck_assert_int_eq(send_batch(1, LONG_MS), ST_OK);
        ck_assert_int_eq(sum_on_empty_disk(), 2);
        ck_assert_int_eq(send_batch(1, LONG_MS), ST_OK); /* flushed: answered at once */
        ck_assert_int_eq(sum_on_empty_disk(), 2);
        close_fixture();
}
END_TEST

static enum status refuse_second_batch(const struct batch *b, struct error *err)
{
        struct hash128 second = store_fixture_batch_id(1);

        return memcmp(&b->batch_id, &second, sizeof second) == 0 ? error_set(err, ST_TOO_BIG, "a reason of the test")
                                                                 : ST_OK;
}

/* The storage does not have it, so it must not be acknowledged as if it had. */
START_TEST(batch_that_is_set_aside_is_refused)
{
        open_fixture();
        fixture.store->inject_failure = refuse_second_batch;
        ck_assert_int_eq(send_batch(0, LONG_MS), ST_OK);
        ck_assert_int_eq(send_batch(1, LONG_MS), ST_BAD_DATA);
        ck_assert_int_eq(send_batch(2, LONG_MS), ST_OK);
        ck_assert_int_eq(sum_on_empty_disk(), 2);
        close_fixture();
}
END_TEST

TEST_SUITE("store_ack", batch_that_is_set_aside_is_refused, batches_that_wait_share_a_commit_and_survive_an_empty_disk,
           each_acknowledged_batch_is_stored_once_whichever_call_fails,
           batch_that_is_refused_in_time_counts_once_when_it_is_sent_again)
