/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress guarantee: what one sender or one failed sync does never keeps
 * the acknowledged batches of others from the tables.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/file.h"
#include "common/limits.h"
#include "profile-formats/profile_accept.h"
#include "profile-store/flush_rows.h"
#include "profile-store/quarantine.h"
#include "profile-store/scan.h"
#include "profile-store/store.h"
#include "profile-store/store_internal.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define DAY_NS INT64_C(86400000000000)
#define T0 (INT64_C(20000) * DAY_NS)

static char dir[64];
static struct profile_store *store;
static uint64_t part_rows, interval_ms = UINT64_MAX;

static void ok(enum status st, const struct error *err)
{
        ck_assert_msg(st == ST_OK, "%s", err->text);
}

static void open_store(void)
{
        const struct profile_store_options options = { .size = sizeof options,
                                                       .flush_interval_ms = interval_ms,
                                                       .part_rows = part_rows };
        struct error err;

        ok(profile_store_open(dir, &options, &store, &err), &err);
}

static void begin(void)
{
        snprintf(dir, sizeof dir, "/tmp/cairn-progress-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(dir));
        open_store();
}

static void reopen(void)
{
        profile_store_close(store);
        open_store();
}

static void end(void)
{
        profile_store_close(store);
        ck_assert_int_eq(file_remove_tree(dir, NULL), ST_OK);
}

static struct hash128 id_of(unsigned i)
{
        return hash128(&i, sizeof i);
}

/* Batch i: count samples of value 1 on stacks of their own, on as many days from first_day on. */
static enum status append_days(unsigned i, unsigned first_day, unsigned days, unsigned per_day, bool *duplicate,
                               struct error *err)
{
        struct test_profile t;
        enum status st;

        test_profile_init(&t, ID, "/bin/x");
        for (unsigned d = 0; d < days; d++) {
                for (unsigned k = 0; k < per_day; k++) {
                        uint32_t leaf = test_location(&t, 0x1000 + 0x10000 * i + k);

                        test_sample(&t, T0 + (first_day + d) * DAY_NS, 1, &leaf, 1, NULL);
                }
        }
        st = profile_store_append(store, &t.p, id_of(i), duplicate, err);
        test_profile_deinit(&t);
        return st;
}

static void append(unsigned i)
{
        struct error err;

        ok(append_days(i, 0, 1, 1, NULL, &err), &err);
}

static int64_t total(void)
{
        const struct scan_filter all = { 0, INT64_MAX, NULL, NULL, 0 };
        struct store_scan *scan;
        struct stack_sums sums;
        struct error err;
        int64_t sum = 0;

        ok(store_scan_begin(store, &scan, &err), &err);
        ok(store_scan_sum(scan, &all, &sums, &err), &err);
        for (size_t i = 0; i < sums.count; i++)
                sum += sums.items[i].value;
        free(sums.items);
        store_scan_end(scan);
        return sum;
}

static struct profile_store_health health(void)
{
        struct profile_store_health h;

        profile_store_health(store, &h);
        return h;
}

static void flush(void)
{
        struct error err;

        ok(profile_store_flush(store, &err), &err);
}

/* ---- isolation ---- */

static enum status hook_status;
static unsigned hook_calls;

/* Batches 3 and 7 fail. */
static enum status fail_two(const struct batch *b, struct error *err)
{
        struct hash128 third = id_of(3), seventh = id_of(7);

        hook_calls++;
        if (memcmp(&b->batch_id, &third, sizeof third) != 0 && memcmp(&b->batch_id, &seventh, sizeof seventh) != 0)
                return ST_OK;
        return hook_status == ST_OS ? error_os(err, EIO, "a disk") : error_set(err, hook_status, "a reason of the test");
}

START_TEST(batches_that_fail_alone_are_quarantined_and_the_others_reach_the_tables)
{
        _cleanup_free_ struct quarantine_item *items = NULL;
        struct profile_store_stat stat;
        struct profile p;
        struct error err;
        bool duplicate = false;
        size_t count;

        hook_status = ST_TOO_BIG;
        begin();
        for (unsigned i = 0; i < 12; i++)
                append(i);
        flush_test_hook = fail_two;
        flush();
        ok(profile_store_stat(store, &stat, &err), &err);
        ck_assert_uint_eq(stat.sample_rows, 10);
        ck_assert_uint_eq(stat.queued_batches, 0);
        ck_assert_uint_eq(stat.queue_disk_bytes, 0);
        ck_assert_uint_eq(stat.health.quarantined_batches, 2);
        ck_assert_str_eq(stat.health.quarantine_reason, "a reason of the test");
        ck_assert_int_eq(stat.health.flush_failing_since, 0);
        ok(append_days(3, 0, 1, 1, &duplicate, &err), &err);
        ck_assert(duplicate);
        reopen();
        ck_assert_uint_eq(health().quarantined_batches, 2);
        ck_assert_int_eq(total(), 10);
        ok(append_days(7, 0, 1, 1, &duplicate, &err), &err);
        ck_assert(duplicate);
        ok(quarantine_list(dir, &items, &count, &err), &err);
        ck_assert_uint_eq(count, 2);
        ck_assert_uint_eq(items[0].position, 4);
        ck_assert_str_eq(items[1].reason, "a reason of the test");
        ck_assert_int_gt(items[1].quarantined_unix_ns, items[1].received_unix_ns);
        ok(quarantine_decode(dir, &items[1], &p, &err), &err);
        ck_assert_uint_eq(p.samples.count, 1);
        profile_deinit(&p);
        flush_test_hook = NULL;
        ok(profile_store_retry(store, &items[0], &err), &err);
        ok(profile_store_discard(store, &items[1], &err), &err);
        ck_assert_uint_eq(health().quarantined_batches, 0);
        flush();
        ck_assert_int_eq(total(), 11);
        ok(append_days(3, 0, 1, 1, &duplicate, &err), &err);
        ck_assert(duplicate);
        reopen();
        ck_assert_int_eq(total(), 11);
        end();
}
END_TEST

START_TEST(isolation_takes_a_bounded_number_of_attempts)
{
        hook_status = ST_BAD_DATA;
        hook_calls = 0;
        begin();
        for (unsigned i = 0; i < 64; i++)
                append(i);
        flush_test_hook = fail_two;
        flush();
        ck_assert_int_eq(total(), 62);
        ck_assert_uint_eq(health().quarantined_batches, 2);
        ck_assert_uint_lt(hook_calls, 64 * 6);
        flush_test_hook = NULL;
        end();
}
END_TEST

START_TEST(what_the_disk_does_quarantines_nothing)
{
        struct error err;

        hook_status = ST_OS;
        begin();
        for (unsigned i = 0; i < 12; i++)
                append(i);
        flush_test_hook = fail_two;
        ck_assert_int_eq(profile_store_flush(store, &err), ST_OS);
        ck_assert_int_ne(health().flush_failing_since, 0);
        ck_assert_str_ne(health().flush_failure, "");
        ck_assert_uint_eq(health().quarantined_batches, 0);
        ck_assert_int_eq(total(), 12);
        flush_test_hook = NULL;
        flush();
        ck_assert_int_eq(health().flush_failing_since, 0);
        ck_assert_int_eq(total(), 12);
        end();
}
END_TEST

START_TEST(a_batch_that_runs_out_of_memory_alone_is_tried_again_first)
{
        struct error err;

        hook_status = ST_NO_MEMORY;
        begin();
        append(3);
        append(4);
        flush_test_hook = fail_two;
        ck_assert_int_eq(profile_store_flush(store, &err), ST_NO_MEMORY);
        ck_assert_uint_eq(health().quarantined_batches, 0);
        ck_assert_int_eq(profile_store_flush(store, &err), ST_NO_MEMORY);
        flush();
        ck_assert_uint_eq(health().quarantined_batches, 1);
        ck_assert_int_eq(total(), 1);
        flush_test_hook = NULL;
        end();
}
END_TEST

/* ---- size ---- */

START_TEST(a_flush_of_many_days_is_split_into_commits)
{
        struct error err;

        begin();
        for (unsigned i = 0; i < 8; i++)
                ok(append_days(i, i * 40, 40, 1, NULL, &err), &err);
        flush();
        ck_assert_int_eq(total(), 8 * 40);
        reopen();
        ck_assert_int_eq(total(), 8 * 40);
        end();
}
END_TEST

START_TEST(rows_that_do_not_fit_into_a_file_go_to_a_next_one)
{
        struct profile_store_stat stat;
        struct error err;

        part_rows = 3;
        begin();
        ok(append_days(0, 0, 2, 10, NULL, &err), &err);
        flush();
        ok(profile_store_stat(store, &stat, &err), &err);
        ck_assert_uint_eq(stat.sample_rows, 20);
        ck_assert_uint_eq(stat.sample_files, 8);
        ck_assert_uint_eq(stat.stack_files, 8);
        ck_assert_uint_eq(stat.location_files, 4);
        reopen();
        ck_assert_int_eq(total(), 20);
        end();
        part_rows = 0;
}
END_TEST

/* ---- label keys ---- */

static enum status append_keys(unsigned i, unsigned count, unsigned key_bytes, struct error *err)
{
        char label[8192];
        struct test_profile t;
        uint32_t leaf;
        enum status st;

        test_profile_init(&t, ID, "/bin/x");
        leaf = test_location(&t, 0x1000 + i);
        for (unsigned k = 0; k < count; k++) {
                memset(label, 'k', key_bytes);
                snprintf(label + key_bytes - 6, 16, "%06u=v", k);
                test_sample(&t, T0, 1, &leaf, 1, (const char *const[]){ label, NULL });
        }
        st = profile_store_append(store, &t.p, id_of(i), NULL, err);
        test_profile_deinit(&t);
        return st;
}

START_TEST(label_keys_are_limited_one_by_one_and_together)
{
        struct error err;

        begin();
        ck_assert_int_eq(append_keys(0, 1, LIMIT_LABEL_KEY_BYTES + 1, &err), ST_TOO_BIG);
        ck_assert_ptr_nonnull(strstr(err.text, "'kkkk"));
        ck_assert_ptr_nonnull(strstr(err.text, "256"));
        ck_assert_int_eq(append_keys(0, LIMIT_BATCH_LABEL_KEYS + 1, 10, &err), ST_TOO_BIG);
        ck_assert_ptr_nonnull(strstr(err.text, "label keys"));
        ck_assert_int_eq(append_keys(0, LIMIT_BATCH_LABEL_KEY_BYTES / 256 + 1, 256, &err), ST_TOO_BIG);
        ck_assert_ptr_nonnull(strstr(err.text, "bytes together"));
        ok(append_keys(0, LIMIT_BATCH_LABEL_KEY_BYTES / 256, 256, &err), &err);
        ok(append_keys(1, LIMIT_BATCH_LABEL_KEYS, 10, &err), &err);
        flush();
        ck_assert_int_eq(total(), LIMIT_BATCH_LABEL_KEY_BYTES / 256 + LIMIT_BATCH_LABEL_KEYS);
        end();
}
END_TEST

START_TEST(columns_have_a_bounded_number_and_length)
{
        size_t bytes = 0;
        struct error err;

        begin();
        ok(append_keys(0, 200, 256, &err), &err);
        flush();
        ok(append_keys(1, 1000, 10, &err), &err);
        flush();
        for (size_t i = 0; i < store->tables->columns.count; i++)
                bytes += strlen(store->tables->columns.names[i]);
        ck_assert_uint_le(bytes, LIMIT_LABEL_COLUMN_BYTES);
        ck_assert_uint_le(store->tables->columns.count, LIMIT_LABEL_COLUMNS);
        ck_assert_uint_ge(store->tables->columns.count, 64);
        ck_assert_int_eq(total(), 1200);
        end();
}
END_TEST

START_TEST(samples_outside_the_window_or_with_a_long_key_are_rejected_one_by_one)
{
        const struct profile_window window = { T0, T0 + DAY_NS };
        char label[400];
        struct test_profile t;
        struct error err;
        uint32_t leaf;

        memset(label, 'k', sizeof label);
        memcpy(label + sizeof label - 3, "=v", 3);
        test_profile_init(&t, ID, "/bin/x");
        leaf = test_location(&t, 0x1000);
        test_sample(&t, T0 - 1, 1, &leaf, 1, NULL);
        test_sample(&t, T0, 2, &leaf, 1, NULL);
        test_sample(&t, T0 + DAY_NS, 4, &leaf, 1, NULL);
        test_sample(&t, T0 + DAY_NS + 1, 8, &leaf, 1, NULL);
        test_sample(&t, T0 + 5, 16, &leaf, 1, (const char *const[]){ label, NULL });
        ok(profile_reject_unacceptable(&t.p, &window, &err), &err);
        ck_assert_uint_eq(t.p.samples.count, 2);
        ck_assert_int_eq(t.p.samples.items[0].value, 2);
        ck_assert_int_eq(t.p.samples.items[1].value, 4);
        ck_assert_uint_eq(t.p.rejected_samples, 3);
        ck_assert_ptr_nonnull(strstr(t.p.rejected_reason, "2024-10-03T23:59:59Z is too long ago"));
        test_profile_deinit(&t);
}
END_TEST

/* Each bad byte becomes three: the queue's copy must still be one that a decoder accepts. */
START_TEST(a_name_of_bad_bytes_survives_the_queue)
{
        static char name[LIMIT_NAME_BYTES];
        struct test_profile t;
        struct error err;
        uint32_t leaf, mapping;

        memset(name, 0xff, sizeof name);
        begin();
        test_profile_init(&t, ID, "/bin/x");
        leaf = test_location(&t, 0x1000);
        ok(profile_add_string(&t.p, name, sizeof name, &mapping, &err), &err);
        ck_assert_uint_le(t.p.strings.items[mapping].size, LIMIT_NAME_BYTES);
        t.p.mappings.items[0].file = mapping;
        test_sample(&t, T0, 1, &leaf, 1, NULL);
        ok(profile_store_append(store, &t.p, id_of(0), NULL, &err), &err);
        test_profile_deinit(&t);
        reopen();
        ck_assert_uint_eq(health().quarantined_batches, 0);
        ck_assert_int_eq(total(), 1);
        end();
}
END_TEST

/* ---- a failed sync ---- */

static atomic_int failing_syncs;

/* Stands before the C library's, for the whole program. */
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

/* Batch 1's sync fails; then the service goes on by itself, and is killed. */
static void fail_and_go_on(void)
{
        struct error err;

        open_store();
        append(0);
        atomic_store(&failing_syncs, 1);
        if (append_days(1, 0, 1, 1, NULL, &err) != ST_OS)
                _exit(2);
        while (health().sync_failing_since)
                sched_yield();
        append(1);
        append(2);
        _exit(0);
}

START_TEST(after_a_failed_sync_ingest_recovers_and_acknowledged_batches_survive_a_kill)
{
        int status;
        pid_t child;

        begin();
        profile_store_close(store);
        interval_ms = 3600 * 1000; /* recovery does not wait for it */
        child = fork();
        ck_assert_int_ge(child, 0);
        if (!child)
                fail_and_go_on();
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
        interval_ms = UINT64_MAX;
        open_store();
        ck_assert_int_eq(total(), 3);
        flush();
        ck_assert_int_eq(total(), 3);
        end();
}
END_TEST

START_TEST(a_batch_whose_sync_failed_is_not_there_and_not_a_duplicate)
{
        struct error err;
        bool duplicate = true;

        begin();
        append(0);
        atomic_store(&failing_syncs, 1);
        ck_assert_int_eq(append_days(1, 0, 1, 1, NULL, &err), ST_OS);
        ck_assert_int_eq(append_days(2, 0, 1, 1, NULL, &err), ST_OS);
        ck_assert_int_ne(health().sync_failing_since, 0);
        ck_assert_str_ne(health().sync_failure, "");
        ck_assert_int_eq(total(), 1);
        flush();
        ck_assert_int_eq(health().sync_failing_since, 0);
        ck_assert_int_eq(total(), 1);
        ok(append_days(1, 0, 1, 1, &duplicate, &err), &err);
        ck_assert(!duplicate);
        ck_assert_int_eq(total(), 2);
        reopen();
        ck_assert_int_eq(total(), 2);
        end();
}
END_TEST

TEST_SUITE("store progress", batches_that_fail_alone_are_quarantined_and_the_others_reach_the_tables,
           isolation_takes_a_bounded_number_of_attempts, what_the_disk_does_quarantines_nothing,
           a_batch_that_runs_out_of_memory_alone_is_tried_again_first, a_flush_of_many_days_is_split_into_commits,
           rows_that_do_not_fit_into_a_file_go_to_a_next_one, label_keys_are_limited_one_by_one_and_together,
           columns_have_a_bounded_number_and_length,
           samples_outside_the_window_or_with_a_long_key_are_rejected_one_by_one,
           a_name_of_bad_bytes_survives_the_queue,
           after_a_failed_sync_ingest_recovers_and_acknowledged_batches_survive_a_kill,
           a_batch_whose_sync_failed_is_not_there_and_not_a_duplicate)
