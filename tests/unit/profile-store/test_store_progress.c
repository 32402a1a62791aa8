/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress guarantee: a batch of one sender or a failed sync never permanently keeps the acknowledged batches of
 * others out of the tables.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "common/threads/condition.h"
#include "profile-formats/profile_accept.h"
#include "profile-store/profile_store.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/queue/quarantine.h"
#include "profile-store/scan.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"

static struct store_fixture fixture;

/* Batch i: count samples of value 1 on distinct stacks, on as many days from first_day on. */
static enum status append_days(unsigned i, unsigned first_day, unsigned days, unsigned per_day, bool *duplicate,
                               struct error *err)
{
        struct test_profile t;
        enum status st;

        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        for (unsigned d = 0; d < days; d++) {
                for (unsigned k = 0; k < per_day; k++) {
                        uint32_t leaf = test_location(&t, 0x1000 + 0x10000 * i + k);

                        test_sample(&t, STORE_FIXTURE_T0 + (first_day + d) * STORE_FIXTURE_DAY_NS, 1, &leaf, 1, NULL);
                }
        }
        st = profile_store_append(fixture.store, &t.p, store_fixture_batch_id(i), duplicate, err);
        test_profile_deinit(&t);
        return st;
}

static void append(unsigned i)
{
        struct error err;

        check_ok(append_days(i, 0, 1, 1, NULL, &err), &err);
}

static struct profile_store_health get_health(void)
{
        struct profile_store_health h;

        profile_store_get_health(fixture.store, &h);
        return h;
}

/* ---- isolation of batches that fail ---- */

static enum status hook_status;
static unsigned hook_calls;

/* Batches 3 and 7 fail. */
static enum status fail_two(const struct batch *b, struct error *err)
{
        struct hash128 third = store_fixture_batch_id(3), seventh = store_fixture_batch_id(7);

        hook_calls++;
        if (memcmp(&b->batch_id, &third, sizeof third) != 0 && memcmp(&b->batch_id, &seventh, sizeof seventh) != 0)
                return ST_OK;
        return hook_status == ST_OS ? error_os(err, EIO, "a disk")
                                    : error_set(err, hook_status, "a reason of the test");
}

START_TEST(failing_batches_are_quarantined_and_others_flushed)
{
        _cleanup_free_ struct quarantine_item *items = NULL;
        struct profile_store_stat stat;
        struct profile p;
        struct error err;
        bool duplicate = false;
        size_t count;

        hook_status = ST_TOO_BIG;
        store_fixture_begin(&fixture);
        for (unsigned i = 0; i < 12; i++)
                append(i);
        fixture.store->inject_failure = fail_two;
        store_fixture_flush(&fixture);
        check_ok(profile_store_stat(fixture.store, &stat, &err), &err);
        ck_assert_uint_eq(stat.sample_rows, 10);
        ck_assert_uint_eq(stat.queued_batches, 0);
        ck_assert_uint_eq(stat.queue_disk_bytes, 0);
        ck_assert_uint_eq(stat.health.quarantined_batches, 2);
        ck_assert_str_eq(stat.health.quarantine_reason, "a reason of the test");
        ck_assert_int_eq(stat.health.flush_failing_since, 0);
        check_ok(append_days(3, 0, 1, 1, &duplicate, &err), &err);
        ck_assert(duplicate);
        store_fixture_reopen(&fixture);
        ck_assert_uint_eq(get_health().quarantined_batches, 2);
        ck_assert_int_eq(store_fixture_sum(&fixture), 10);
        check_ok(append_days(7, 0, 1, 1, &duplicate, &err), &err);
        ck_assert(duplicate);
        check_ok(quarantine_list(fixture.dir, &items, &count, &err), &err);
        ck_assert_uint_eq(count, 2);
        ck_assert_uint_eq(items[0].position, 4);
        ck_assert_str_eq(items[1].reason, "a reason of the test");
        ck_assert_int_gt(items[1].quarantined_unix_ns, items[1].received_unix_ns);
        check_ok(quarantine_decode(fixture.dir, &items[1], &p, &err), &err);
        ck_assert_uint_eq(p.samples.count, 1);
        profile_deinit(&p);
        fixture.store->inject_failure = NULL;
        check_ok(profile_store_requeue(fixture.store, &items[0], &err), &err);
        check_ok(profile_store_discard(fixture.store, &items[1], &err), &err);
        ck_assert_uint_eq(get_health().quarantined_batches, 0);
        store_fixture_flush(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), 11);
        check_ok(append_days(3, 0, 1, 1, &duplicate, &err), &err);
        ck_assert(duplicate);
        store_fixture_reopen(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), 11);
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(isolation_attempts_are_limited)
{
        hook_status = ST_BAD_DATA;
        hook_calls = 0;
        store_fixture_begin(&fixture);
        for (unsigned i = 0; i < 64; i++)
                append(i);
        fixture.store->inject_failure = fail_two;
        store_fixture_flush(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), 62);
        ck_assert_uint_eq(get_health().quarantined_batches, 2);
        ck_assert_uint_lt(hook_calls, 64 * 6);
        fixture.store->inject_failure = NULL;
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(disk_errors_quarantine_nothing)
{
        struct error err;

        hook_status = ST_OS;
        store_fixture_begin(&fixture);
        for (unsigned i = 0; i < 12; i++)
                append(i);
        fixture.store->inject_failure = fail_two;
        ck_assert_int_eq(profile_store_flush(fixture.store, &err), ST_OS);
        ck_assert_int_ne(get_health().flush_failing_since, 0);
        ck_assert_str_ne(get_health().flush_failure, "");
        ck_assert_uint_eq(get_health().quarantined_batches, 0);
        ck_assert_int_eq(store_fixture_sum(&fixture), 12);
        fixture.store->inject_failure = NULL;
        store_fixture_flush(&fixture);
        ck_assert_int_eq(get_health().flush_failing_since, 0);
        ck_assert_int_eq(store_fixture_sum(&fixture), 12);
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(batch_that_exhausts_memory_is_retried_before_quarantine)
{
        struct error err;

        hook_status = ST_NO_MEMORY;
        store_fixture_begin(&fixture);
        append(3);
        append(4);
        fixture.store->inject_failure = fail_two;
        ck_assert_int_eq(profile_store_flush(fixture.store, &err), ST_NO_MEMORY);
        ck_assert_uint_eq(get_health().quarantined_batches, 0);
        ck_assert_int_eq(profile_store_flush(fixture.store, &err), ST_NO_MEMORY);
        store_fixture_flush(&fixture);
        ck_assert_uint_eq(get_health().quarantined_batches, 1);
        ck_assert_int_eq(store_fixture_sum(&fixture), 1);
        fixture.store->inject_failure = NULL;
        store_fixture_end(&fixture);
}
END_TEST

/* The quarantine has no size limit: a full one would block all other batches. */
START_TEST(large_quarantine_does_not_block_flush)
{
        _cleanup_free_ char *folder = NULL, *large = NULL;
        struct error err;

        hook_status = ST_TOO_BIG;
        store_fixture_begin(&fixture);
        folder = store_fixture_path(&fixture, "queue/quarantine");
        large = path_join(folder, "00000000000000000099-00000000000000000000000000000000.batch");
        check_ok(file_make_dirs(folder, &err), &err);
        check_ok(file_write_durable(large, "x", 1, &err), &err);
        ck_assert_int_eq(truncate(large, INT64_C(6) << 30), 0); /* sparse */
        store_fixture_reopen(&fixture);
        for (unsigned i = 0; i < 5; i++)
                append(i);
        fixture.store->inject_failure = fail_two;
        store_fixture_flush(&fixture);
        ck_assert_uint_eq(get_health().quarantined_batches, 2);
        ck_assert_uint_ge(get_health().quarantined_bytes, UINT64_C(6) << 30);
        ck_assert_uint_eq(store_fixture_stat(&fixture).sample_rows, 4);
        ck_assert_uint_eq(store_fixture_stat(&fixture).queued_batches, 0);
        store_fixture_end(&fixture);
}
END_TEST

/* ---- memory ---- */

static void take_memory(struct memory_reservation *held, enum memory_use use, size_t left)
{
        *held = (struct memory_reservation){ .use = use };
        for (size_t n = memory_use_ceiling(use); n > 1000; n /= 2)
                while (!memory_reserve(held, n, NULL))
                        ;
        memory_shrink(held, held->bytes > left ? held->bytes - left : 0);
}

static void take_memory_of_others(void)
{
        static struct memory_reservation held[MEMORY_USES]; /* until the test's process ends */
        struct error err;

        check_ok(memory_budget_set_limit(LIMIT_MEMORY_LEAST_BYTES, &err), &err);
        for (enum memory_use use = MEMORY_CONNECTIONS; use < MEMORY_USES; use++)
                if (use != MEMORY_FLUSH && use != MEMORY_CACHES)
                        take_memory(&held[use], use, 0);
}

START_TEST(flush_without_free_memory_is_repeated_without_loss)
{
        struct memory_reservation own;
        struct error err;

        store_fixture_begin(&fixture);
        for (unsigned i = 0; i < 4; i++)
                append(i);
        take_memory_of_others();
        take_memory(&own, MEMORY_FLUSH, 0);
        ck_assert_int_eq(profile_store_flush(fixture.store, &err), ST_NO_MEMORY);
        ck_assert_int_ne(get_health().flush_failing_since, 0);
        ck_assert_uint_eq(get_health().quarantined_batches, 0);
        ck_assert_int_eq(store_fixture_sum(&fixture), 4);
        memory_release(&own);
        store_fixture_flush(&fixture);
        ck_assert_uint_eq(store_fixture_stat(&fixture).sample_rows, 4);
        ck_assert_uint_eq(memory_use_held(MEMORY_FLUSH), 0);
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(batch_that_lacks_memory_gets_released_memory)
{
        struct memory_reservation own, queries = { .use = MEMORY_QUERIES };
        struct error err;

        store_fixture_begin(&fixture);
        append(1);
        check_ok(memory_budget_set_limit(LIMIT_MEMORY_LEAST_BYTES, &err), &err);
        take_memory(&own, MEMORY_FLUSH, 0);
        ck_assert_int_eq(profile_store_flush(fixture.store, &err), ST_NO_MEMORY);
        memory_release(&own);
        ck_assert_int_eq(memory_reserve(&queries, memory_use_ceiling(MEMORY_QUERIES), &err), ST_BUSY);
        store_fixture_flush(&fixture);
        check_ok(memory_reserve(&queries, memory_use_ceiling(MEMORY_QUERIES), &err), &err);
        ck_assert_uint_eq(store_fixture_stat(&fixture).health.quarantined_batches, 0);
        store_fixture_end(&fixture);
}
END_TEST

/* ---- two stores ---- */

static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool is_held, is_tried;
} meeting = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* A flush that uses all memory until the other store has made enough attempts, or waits for its end. */
static enum status flush_with_all_memory(const struct batch *b, struct error *err)
{
        int64_t until_ns = monotonic_ns() + INT64_C(500000000);
        struct memory_reservation all;

        (void)b;
        (void)err;
        take_memory(&all, MEMORY_FLUSH, 0);
        pthread_mutex_lock(&meeting.lock);
        meeting.is_held = true;
        pthread_cond_broadcast(&meeting.changed);
        while (!meeting.is_tried && condition_wait_until(&meeting.changed, &meeting.lock, until_ns))
                ;
        pthread_mutex_unlock(&meeting.lock);
        memory_release(&all);
        return ST_OK;
}

static void *flush_other_store(void *other)
{
        store_fixture_flush(other);
        return NULL;
}

static enum status flush_until_written(void)
{
        enum status st = ST_NO_MEMORY;
        struct error err;

        for (unsigned i = 0; st && i < 5; i++)
                st = profile_store_flush(fixture.store, &err);
        return st;
}

START_TEST(batch_is_not_quarantined_for_memory_of_another_store)
{
        struct store_fixture other = { 0 };
        struct error err;
        pthread_t thread;
        enum status st;

        store_fixture_begin(&fixture);
        append(1);
        store_fixture_begin(&other);
        store_fixture_append(&other, 2, 0x1000);
        other.store->inject_failure = flush_with_all_memory;
        check_ok(memory_budget_set_limit(LIMIT_MEMORY_LEAST_BYTES, &err), &err);
        ck_assert_int_eq(pthread_create(&thread, NULL, flush_other_store, &other), 0);
        pthread_mutex_lock(&meeting.lock);
        while (!meeting.is_held)
                pthread_cond_wait(&meeting.changed, &meeting.lock);
        pthread_mutex_unlock(&meeting.lock);
        st = flush_until_written();
        pthread_mutex_lock(&meeting.lock);
        meeting.is_tried = true;
        pthread_cond_broadcast(&meeting.changed);
        pthread_mutex_unlock(&meeting.lock);
        pthread_join(thread, NULL);
        ck_assert_int_eq(st, ST_OK);
        ck_assert_uint_eq(get_health().quarantined_batches, 0);
        ck_assert_uint_eq(store_fixture_stat(&fixture).sample_rows, 1);
        store_fixture_end(&other);
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(memory_claim_ends_with_its_store)
{
        struct memory_reservation own, queries = { .use = MEMORY_QUERIES };
        struct store_fixture other = { 0 };
        struct error err;

        store_fixture_begin(&fixture);
        append(1);
        store_fixture_begin(&other);
        store_fixture_append(&other, 2, 0x1000);
        check_ok(memory_budget_set_limit(LIMIT_MEMORY_LEAST_BYTES, &err), &err);
        take_memory(&own, MEMORY_FLUSH, 0);
        ck_assert_int_eq(profile_store_flush(fixture.store, &err), ST_NO_MEMORY);
        memory_release(&own);
        store_fixture_flush(&other);
        ck_assert_int_eq(memory_reserve(&queries, memory_use_ceiling(MEMORY_QUERIES), &err), ST_BUSY);
        store_fixture_end(&fixture);
        check_ok(memory_reserve(&queries, memory_use_ceiling(MEMORY_QUERIES), &err), &err);
        store_fixture_end(&other);
}
END_TEST

#define MANY 20000

START_TEST(a_flush_with_little_memory_writes_locations_in_slices)
{
        struct memory_reservation own;
        struct profile_store_stat stat;
        struct error err;

        store_fixture_begin(&fixture);
        check_ok(append_days(0, 0, 1, MANY, NULL, &err), &err);
        take_memory_of_others();
        take_memory(&own, MEMORY_FLUSH, MiB(3));
        store_fixture_flush(&fixture);
        stat = store_fixture_stat(&fixture);
        ck_assert_uint_eq(stat.location_rows, MANY);
        ck_assert_uint_gt(stat.location_files, 1);
        ck_assert_uint_eq(stat.sample_rows, MANY);
        ck_assert_uint_eq(stat.health.quarantined_batches, 0);
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(rows_are_written_once_without_memory_for_id_cache)
{
        struct memory_reservation caches;
        struct profile_store_stat stat;
        struct error err;

        store_fixture_begin(&fixture);
        check_ok(memory_budget_set_limit(LIMIT_MEMORY_LEAST_BYTES, &err), &err);
        append(1);
        store_fixture_flush(&fixture);
        append(1001);
        store_fixture_flush(&fixture);
        ck_assert_uint_gt(memory_use_held(MEMORY_CACHES), 0);
        store_fixture_reopen(&fixture);
        ck_assert_uint_eq(memory_use_held(MEMORY_CACHES), 0);
        take_memory(&caches, MEMORY_CACHES, 0);
        for (unsigned i = 0; i < 3; i++) {
                store_fixture_append(&fixture, 50 + i, 0x1000 + 0x10000 * 1);
                store_fixture_flush(&fixture);
        }
        stat = store_fixture_stat(&fixture);
        ck_assert_uint_eq(stat.location_rows, 2);
        ck_assert_uint_eq(stat.stack_rows, 2);
        ck_assert_uint_eq(stat.sample_rows, 5);
        store_fixture_end(&fixture);
}
END_TEST

/* ---- large flushes ---- */

START_TEST(a_flush_of_many_days_is_split_into_commits)
{
        struct error err;

        store_fixture_begin(&fixture);
        for (unsigned i = 0; i < 8; i++)
                check_ok(append_days(i, i * 40, 40, 1, NULL, &err), &err);
        store_fixture_flush(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), 8 * 40);
        store_fixture_reopen(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), 8 * 40);
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(rows_over_file_limit_go_to_next_file)
{
        struct profile_store_stat stat;
        struct error err;

        fixture.options.part_rows = 3;
        store_fixture_begin(&fixture);
        check_ok(append_days(0, 0, 2, 10, NULL, &err), &err);
        store_fixture_flush(&fixture);
        check_ok(profile_store_stat(fixture.store, &stat, &err), &err);
        ck_assert_uint_eq(stat.sample_rows, 20);
        ck_assert_uint_eq(stat.sample_files, 8);
        ck_assert_uint_eq(stat.stack_files, 8);
        ck_assert_uint_eq(stat.location_files, 4);
        store_fixture_reopen(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), 20);
        store_fixture_end(&fixture);
        fixture.options.part_rows = 0;
}
END_TEST

/* ---- label keys ---- */

static enum status append_keys(unsigned i, unsigned count, unsigned key_bytes, struct error *err)
{
        char label[8192];
        struct test_profile t;
        uint32_t leaf;
        enum status st;

        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        leaf = test_location(&t, 0x1000 + i);
        for (unsigned k = 0; k < count; k++) {
                memset(label, 'k', key_bytes);
                snprintf(label + key_bytes - 6, 16, "%06u=v", k);
                test_sample(&t, STORE_FIXTURE_T0, 1, &leaf, 1, (const char *const[]){ label, NULL });
        }
        st = profile_store_append(fixture.store, &t.p, store_fixture_batch_id(i), NULL, err);
        test_profile_deinit(&t);
        return st;
}

START_TEST(label_keys_are_limited_individually_and_in_total)
{
        struct error err;

        store_fixture_begin(&fixture);
        ck_assert_int_eq(append_keys(0, 1, LIMIT_LABEL_KEY_BYTES + 1, &err), ST_TOO_BIG);
        ck_assert_ptr_nonnull(strstr(err.text, "'kkkk"));
        ck_assert_ptr_nonnull(strstr(err.text, "256"));
        ck_assert_int_eq(append_keys(0, LIMIT_BATCH_LABEL_KEYS + 1, 10, &err), ST_TOO_BIG);
        ck_assert_ptr_nonnull(strstr(err.text, "label keys"));
        ck_assert_int_eq(append_keys(0, LIMIT_BATCH_LABEL_KEY_BYTES / 256 + 1, 256, &err), ST_TOO_BIG);
        ck_assert_ptr_nonnull(strstr(err.text, "bytes together"));
        check_ok(append_keys(0, LIMIT_BATCH_LABEL_KEY_BYTES / 256, 256, &err), &err);
        check_ok(append_keys(1, LIMIT_BATCH_LABEL_KEYS, 10, &err), &err);
        store_fixture_flush(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), LIMIT_BATCH_LABEL_KEY_BYTES / 256 + LIMIT_BATCH_LABEL_KEYS);
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(columns_are_limited_in_number_and_length)
{
        size_t bytes = 0;
        struct error err;

        store_fixture_begin(&fixture);
        check_ok(append_keys(0, 200, 256, &err), &err);
        store_fixture_flush(&fixture);
        check_ok(append_keys(1, 1000, 10, &err), &err);
        store_fixture_flush(&fixture);
        for (size_t i = 0; i < fixture.store->tables->columns.count; i++)
                bytes += strlen(fixture.store->tables->columns.names[i]);
        ck_assert_uint_le(bytes, LIMIT_LABEL_COLUMN_BYTES);
        ck_assert_uint_le(fixture.store->tables->columns.count, LIMIT_LABEL_COLUMNS);
        ck_assert_uint_ge(fixture.store->tables->columns.count, 64);
        ck_assert_int_eq(store_fixture_sum(&fixture), 1200);
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(samples_outside_window_or_with_long_key_are_rejected_individually)
{
        const struct profile_window window = { STORE_FIXTURE_T0, STORE_FIXTURE_T0 + STORE_FIXTURE_DAY_NS };
        struct profile_rejections by_reason;
        char label[400];
        struct test_profile t;
        struct error err;
        uint32_t leaf;

        memset(label, 'k', sizeof label);
        memcpy(label + sizeof label - 3, "=v", 3);
        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        leaf = test_location(&t, 0x1000);
        test_sample(&t, STORE_FIXTURE_T0 - 1, 1, &leaf, 1, NULL);
        test_sample(&t, STORE_FIXTURE_T0, 2, &leaf, 1, NULL);
        test_sample(&t, STORE_FIXTURE_T0 + STORE_FIXTURE_DAY_NS, 4, &leaf, 1, NULL);
        test_sample(&t, STORE_FIXTURE_T0 + STORE_FIXTURE_DAY_NS + 1, 8, &leaf, 1, NULL);
        test_sample(&t, STORE_FIXTURE_T0 + 5, 16, &leaf, 1, (const char *const[]){ label, NULL });
        check_ok(profile_reject_unacceptable(&t.p, &window, &by_reason, &err), &err);
        ck_assert_uint_eq(t.p.samples.count, 2);
        ck_assert_int_eq(t.p.samples.items[0].value, 2);
        ck_assert_int_eq(t.p.samples.items[1].value, 4);
        ck_assert_uint_eq(t.p.rejected_samples, 3);
        ck_assert_uint_eq(by_reason.too_old, 1);
        ck_assert_uint_eq(by_reason.too_far_ahead, 1);
        ck_assert_uint_eq(by_reason.long_label_key, 1);
        ck_assert_ptr_nonnull(strstr(t.p.rejected_reason, "2024-10-03T23:59:59Z is too long ago"));
        test_profile_deinit(&t);
}
END_TEST

/* Each invalid byte becomes three: the copy in the queue must still be accepted by the decoder. */
START_TEST(invalid_utf8_name_survives_queue)
{
        static char name[LIMIT_NAME_BYTES];
        struct test_profile t;
        struct error err;
        uint32_t leaf, mapping;

        memset(name, 0xff, sizeof name);
        store_fixture_begin(&fixture);
        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        leaf = test_location(&t, 0x1000);
        check_ok(profile_add_string(&t.p, name, sizeof name, &mapping, &err), &err);
        ck_assert_uint_le(t.p.strings.items[mapping].size, LIMIT_NAME_BYTES);
        t.p.mappings.items[0].file = mapping;
        test_sample(&t, STORE_FIXTURE_T0, 1, &leaf, 1, NULL);
        check_ok(profile_store_append(fixture.store, &t.p, store_fixture_batch_id(0), NULL, &err), &err);
        test_profile_deinit(&t);
        store_fixture_reopen(&fixture);
        ck_assert_uint_eq(get_health().quarantined_batches, 0);
        ck_assert_int_eq(store_fixture_sum(&fixture), 1);
        store_fixture_end(&fixture);
}
END_TEST

/* ---- a failed sync ---- */

static atomic_int failing_syncs;

/* Interposes the C library's function for the whole program. */
int fdatasync(int fd)
{
        int left = atomic_load(&failing_syncs);

        while (left > 0) {
                if (atomic_compare_exchange_weak(&failing_syncs, &left, left - 1)) {
                        errno = EIO;
                        return -1;
                }
        }
        return (int)syscall(SYS_fdatasync, fd);
}

/* The sync of batch 1 fails; then the service recovers by itself, and is killed. */
static void fail_sync_and_recover(void)
{
        struct error err;

        store_fixture_open(&fixture);
        append(0);
        atomic_store(&failing_syncs, 1);
        if (append_days(1, 0, 1, 1, NULL, &err) != ST_OS)
                _exit(2);
        while (get_health().sync_failing_since)
                sched_yield();
        append(1);
        append(2);
        _exit(0);
}

START_TEST(after_a_failed_sync_ingest_recovers_and_acknowledged_batches_survive_a_kill)
{
        int status;
        pid_t child;

        store_fixture_begin(&fixture);
        profile_store_close(fixture.store);
        fixture.options.flush_interval_ms = 3600 * 1000; /* recovery does not wait for it */
        child = fork();
        ck_assert_int_ge(child, 0);
        if (!child)
                fail_sync_and_recover();
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
        fixture.options.flush_interval_ms = UINT64_MAX;
        store_fixture_open(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), 3);
        store_fixture_flush(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), 3);
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(batch_with_failed_sync_is_not_stored_and_can_be_resent)
{
        struct error err;
        bool duplicate = true;

        store_fixture_begin(&fixture);
        append(0);
        atomic_store(&failing_syncs, 1);
        ck_assert_int_eq(append_days(1, 0, 1, 1, NULL, &err), ST_OS);
        ck_assert_int_eq(append_days(2, 0, 1, 1, NULL, &err), ST_OS);
        ck_assert_int_ne(get_health().sync_failing_since, 0);
        ck_assert_str_ne(get_health().sync_failure, "");
        ck_assert_int_eq(store_fixture_sum(&fixture), 1);
        store_fixture_flush(&fixture);
        ck_assert_int_eq(get_health().sync_failing_since, 0);
        ck_assert_int_eq(store_fixture_sum(&fixture), 1);
        check_ok(append_days(1, 0, 1, 1, &duplicate, &err), &err);
        ck_assert(!duplicate);
        ck_assert_int_eq(store_fixture_sum(&fixture), 2);
        store_fixture_reopen(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), 2);
        store_fixture_end(&fixture);
}
END_TEST

TEST_SUITE("store progress", failing_batches_are_quarantined_and_others_flushed, isolation_attempts_are_limited,
           disk_errors_quarantine_nothing, batch_that_lacks_memory_gets_released_memory,
           batch_is_not_quarantined_for_memory_of_another_store, memory_claim_ends_with_its_store,
           batch_that_exhausts_memory_is_retried_before_quarantine, large_quarantine_does_not_block_flush,
           flush_without_free_memory_is_repeated_without_loss, a_flush_with_little_memory_writes_locations_in_slices,
           rows_are_written_once_without_memory_for_id_cache, a_flush_of_many_days_is_split_into_commits,
           rows_over_file_limit_go_to_next_file, label_keys_are_limited_individually_and_in_total,
           columns_are_limited_in_number_and_length, samples_outside_window_or_with_long_key_are_rejected_individually,
           invalid_utf8_name_survives_queue,
           after_a_failed_sync_ingest_recovers_and_acknowledged_batches_survive_a_kill,
           batch_with_failed_sync_is_not_stored_and_can_be_resent)
