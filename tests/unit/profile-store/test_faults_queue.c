/* SPDX-License-Identifier: Apache-2.0 */
/* The raw queue when the disk rejects a new segment: it fails until recovery has created one. */
#include <errno.h>
#include <string.h>

#include "common/files/file.h"
#include "profile-store/queue/raw_queue.h"
#include "tests/faults/fault_fs.h"
#include "tests/support/suite.h"

static char dir[64];
static struct raw_queue *queue;

static enum status ignore_record(void *context, const struct raw_record *record, struct error *err)
{
        (void)context;
        (void)record;
        (void)err;
        return ST_OK;
}

static enum status append_record(struct raw_record *r, struct error *err)
{
        static const uint8_t payload[] = "record";

        *r = (struct raw_record){ .payload = payload, .payload_size = sizeof payload };
        return raw_queue_write(queue, r, err);
}

static void set_up(void)
{
        const struct raw_queue_options options = { .replay = ignore_record };
        struct raw_queue_report report;

        snprintf(dir, sizeof dir, "/dev/shm/cairn-queue-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(dir));
        ck_assert_int_eq(raw_queue_open(dir, &options, &queue, &report, NULL), ST_OK);
        fault_fs_watch(dir);
}

static void tear_down(void)
{
        fault_fs_off();
        raw_queue_close(queue);
        ck_assert_int_eq(file_remove_tree(dir, NULL), ST_OK);
}

START_TEST(queue_fails_until_recovery_creates_a_segment)
{
        struct raw_record r;
        uint64_t sealed;
        struct error err;

        fault_fs_fail_at(1, EIO);
        ck_assert_int_eq(append_record(&r, &err), ST_OS);
        ck_assert_int_eq(err.os_errno, EIO);
        ck_assert(raw_queue_has_failed(queue));
        ck_assert_int_eq(raw_queue_seal(queue, &sealed, &err), ST_OK);
        fault_fs_full_at(1);
        ck_assert_int_eq(raw_queue_recover(queue, &err), ST_OS);
        ck_assert_int_eq(err.os_errno, ENOSPC);
        ck_assert_msg(raw_queue_has_failed(queue), "a recovery that failed is taken for done");
        fault_fs_off();
        ck_assert_int_eq(raw_queue_recover(queue, &err), ST_OK);
        ck_assert(!raw_queue_has_failed(queue));
        ck_assert_int_eq(append_record(&r, &err), ST_OK);
        ck_assert_int_eq(raw_queue_sync(queue, r.position, &err), ST_OK);
}
END_TEST

START_TEST(a_full_disk_needs_no_recovery)
{
        struct raw_record r;
        struct error err;

        fault_fs_full_at(1);
        ck_assert_int_eq(append_record(&r, &err), ST_OS);
        ck_assert(!raw_queue_has_failed(queue));
        fault_fs_off();
        ck_assert_int_eq(append_record(&r, &err), ST_OK);
        ck_assert_int_eq(raw_queue_sync(queue, r.position, &err), ST_OK);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("faults queue", queue_fails_until_recovery_creates_a_segment, a_full_disk_needs_no_recovery)
