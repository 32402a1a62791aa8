/* SPDX-License-Identifier: Apache-2.0 */
/* The probe of a storage that does not answer at some moment: it fails, and never says that a promise is broken. */
#include "storage/local_storage.h"
#include "storage/storage_probe.h"
#include "tests/support/faulty_storage.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES];
static struct faulty_storage *faulty;

static void set_up(void)
{
        struct storage *local;
        struct error err;

        temporary_dir_create(dir, "probe");
        ck_assert_int_eq(local_storage_open(dir, &local, &err), ST_OK);
        faulty = faulty_storage_create(local);
}

static void tear_down(void)
{
        storage_close(&faulty->storage);
        temporary_dir_remove(dir);
}

static bool keeps_promises(const struct storage_probe *p)
{
        return p->reads_own_writes && p->lists_own_writes && p->has_ranges && !storage_lacks_conditional_put(p);
}

START_TEST(local_files_keep_all_promises)
{
        struct storage_probe p;
        struct error err;

        ck_assert_int_eq(storage_run_probe(&faulty->storage, &p, &err), ST_OK);
        ck_assert(keeps_promises(&p));
        ck_assert_uint_eq(p.created, 1);
        ck_assert_uint_eq(p.refused, STORAGE_PROBE_RACERS - 1);
}
END_TEST

/* @param fault  hits each call in turn */
static void check_probes_with(enum storage_fault fault)
{
        unsigned calls, failed = 0;
        struct storage_probe p;
        struct error err;

        faulty_storage_set(faulty, STORAGE_FAULT_NONE, 0);
        ck_assert_int_eq(storage_run_probe(&faulty->storage, &p, &err), ST_OK);
        calls = faulty->calls;
        for (unsigned at = 1; at <= calls; at++) {
                faulty_storage_set(faulty, fault, at);
                if (storage_run_probe(&faulty->storage, &p, &err))
                        failed++;
                else
                        ck_assert_msg(keeps_promises(&p), "call %u of %u", at, calls);
        }
        /* All but racing creates, of which some may fail; each is two calls. */
        ck_assert_uint_ge(failed, calls - 2 * STORAGE_PROBE_RACERS);
}

START_TEST(refused_call_is_no_broken_promise)
{
        check_probes_with(STORAGE_FAULT_REFUSED);
}
END_TEST

START_TEST(loss_of_the_store_is_no_broken_promise)
{
        check_probes_with(STORAGE_FAULT_CUT);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("storage probe", local_files_keep_all_promises, refused_call_is_no_broken_promise,
                        loss_of_the_store_is_no_broken_promise)
