/* SPDX-License-Identifier: Apache-2.0 */
/* A store is opened on a full disk after a flush that could not write the ids of its batches. */
#include "common/cleanup.h"
#include "tests/faults/fault_fs.h"
#include "tests/support/store_fixture.h"

static struct store_fixture fixture;

static void set_up(void)
{
        fixture = (struct store_fixture){ 0 };
        store_fixture_begin(&fixture);
}

static void tear_down(void)
{
        fault_fs_off();
        store_fixture_end(&fixture);
}

static void flush_without_ids(void)
{
        _cleanup_free_ char *ids = store_fixture_path(&fixture, "queue/batch-ids");
        struct error err;

        fault_fs_watch(ids);
        fault_fs_full_at(1);
        ck_assert_int_eq(profile_store_flush(fixture.store, &err), ST_OS);
}

START_TEST(batch_is_known_while_its_id_cannot_be_written)
{
        store_fixture_append(&fixture, 1, 0x1000);
        flush_without_ids();
        store_fixture_reopen(&fixture);
        store_fixture_append(&fixture, 1, 0x1000);
        ck_assert_int_eq(store_fixture_sum(&fixture), 1);
}
END_TEST

START_TEST(id_is_written_before_the_queue_drops_the_batch)
{
        uint64_t batches, bytes;

        store_fixture_append(&fixture, 1, 0x1000);
        flush_without_ids();
        store_fixture_reopen(&fixture);
        fault_fs_off();
        store_fixture_append(&fixture, 2, 0x1000);
        store_fixture_flush(&fixture);
        store_fixture_reopen(&fixture);
        profile_store_count_queued(fixture.store, &batches, &bytes);
        ck_assert_uint_eq(batches, 0);
        store_fixture_append(&fixture, 1, 0x1000);
        ck_assert_int_eq(store_fixture_sum(&fixture), 2);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("faults flushed ids", batch_is_known_while_its_id_cannot_be_written,
                        id_is_written_before_the_queue_drops_the_batch)
