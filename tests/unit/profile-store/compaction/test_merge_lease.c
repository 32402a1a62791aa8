/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges of the background thread that take longer than the lease of maintenance lasts: the thread renews it while it
 * merges, and ends the merge when another node has taken it. The time is set in the lease, when the merge reads its
 * first file.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

#include "profile-store/core/profile_store_internal.h"
#include "profile-store/delta/delta_place.h"
#include "storage/local_storage.h"
#include "tests/support/faulty_storage.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temporary_dir.h"

#define FILES 9 /* one more than may stay small */

static struct store_fixture fixture;
static struct faulty_storage *storage;
static bool is_taken_by_other, is_renewal_refused;
static atomic_uint renewals, commits, attempts; /* of the thread, since its merge began */
static atomic_uint questions;                   /* likewise, whether another node has the lease */
static atomic_uint renewals_before_commit, questions_before_commit;
static atomic_bool has_begun, are_files_flushed;

static bool is_compaction_thread(void)
{
        char name[16] = "";

        prctl(PR_GET_NAME, name);
        return strcmp(name, "cairn-compact") == 0;
}

static void take_lease_for_other(int64_t epoch)
{
        static const char text[] = "{\"node\": \"0123456789abcdef\"}";
        char key[64];
        struct error err;

        snprintf(key, sizeof key, "leases/maintenance/%0*" PRId64, DELTA_VERSION_DIGITS, epoch);
        check_ok(storage_put(storage->inner, key, text, strlen(text), STORAGE_NEW, &err), &err);
}

static void begin_long_merge(void)
{
        struct store_lease *l = &fixture.store->maintenance_lease;

        while (!atomic_load(&are_files_flushed)) /* no other thread has calls that may fail */
                sched_yield();
        pthread_mutex_lock(&fixture.store->lease_lock);
        l->renew_ns = 0;
        if (is_taken_by_other)
                take_lease_for_other(l->epoch + 1);
        pthread_mutex_unlock(&fixture.store->lease_lock);
        atomic_store(&has_begun, true);
}

static void note_call(struct faulty_storage *f, const char *call, const char *key)
{
        if (!is_compaction_thread())
                return;
        if (!atomic_load(&has_begun)) {
                if (strncmp(key, "samples/date=", 13) == 0)
                        begin_long_merge();
                return;
        }
        if (strcmp(call, "list") == 0 && strncmp(key, "leases/maintenance/", 19) == 0)
                atomic_fetch_add(&attempts, 1);
        if (strcmp(call, "stat") == 0 && strncmp(key, "leases/maintenance/", 19) == 0) {
                atomic_fetch_add(&questions, 1);
                if (is_renewal_refused)
                        faulty_storage_set(f, STORAGE_FAULT_REFUSED, 1);
        }
        if (strcmp(call, "publish") != 0)
                return;
        if (strncmp(key, "leases/maintenance/", 19) == 0)
                atomic_fetch_add(&renewals, 1);
        if (strncmp(key, "samples/_delta_log/", 19) == 0 && !atomic_load(&commits)) {
                atomic_store(&renewals_before_commit, atomic_load(&renewals));
                atomic_store(&questions_before_commit, atomic_load(&questions));
                atomic_store(&commits, 1);
        }
}

static void set_up(void)
{
        _cleanup_free_ char *tables = NULL;
        struct storage *inner = NULL;
        struct error err;

        temporary_dir_create(fixture.dir, "merge-lease");
        tables = store_fixture_path(&fixture, "tables");
        check_ok(local_storage_open(tables, &inner, &err), &err);
        storage = faulty_storage_create(inner);
        storage->before = note_call;
        fixture.options = (struct profile_store_options){
                .tables = &storage->storage, .is_shared = true, .lease_ms = 3600000, .compact_interval_ms = 1
        };
        store_fixture_open(&fixture);
}

static void tear_down(void)
{
        store_fixture_end(&fixture);
        storage_close(&storage->storage);
}

static void flush_files(void)
{
        for (unsigned i = 0; i < FILES; i++) {
                store_fixture_append(&fixture, i, 0x1000);
                store_fixture_flush(&fixture);
        }
        atomic_store(&are_files_flushed, true);
}

START_TEST(long_merge_renews_the_lease)
{
        flush_files();
        while (!atomic_load(&commits))
                sched_yield();
        ck_assert_uint_eq(atomic_load(&renewals_before_commit), 1);
        ck_assert_int_eq(store_fixture_sum(&fixture), FILES);
}
END_TEST

START_TEST(merge_ends_when_another_node_has_the_lease)
{
        is_taken_by_other = true;
        flush_files();
        while (atomic_load(&attempts) < 3) /* to take it again, each after the end of the merge */
                sched_yield();
        ck_assert_uint_eq(atomic_load(&commits), 0);
        ck_assert_uint_eq(store_fixture_stat(&fixture).sample_files, FILES);
}
END_TEST

/* Each step of the merge would wait for the network again. */
START_TEST(lease_that_cannot_be_renewed_is_not_asked_for_in_each_step)
{
        is_renewal_refused = true;
        flush_files();
        while (!atomic_load(&commits))
                sched_yield();
        ck_assert_uint_eq(atomic_load(&questions_before_commit), 1);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("merge lease", long_merge_renews_the_lease, merge_ends_when_another_node_has_the_lease,
                        lease_that_cannot_be_renewed_is_not_asked_for_in_each_step)
