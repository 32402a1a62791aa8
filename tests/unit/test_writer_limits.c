/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a writer of the profile store may write at its limit, the reader of the same format accepts. */
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/limits.h"
#include "profile-store/delta/delta_log.h"
#include "profile-store/queue/quarantine.h"
#include "profile-store/queue/raw_queue.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"

static char dir[64];

static void make_dir(void)
{
        snprintf(dir, sizeof dir, "/tmp/cairn-limits-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_dir(void)
{
        ck_assert_int_eq(file_remove_tree(dir, NULL), ST_OK);
}

/* ---- table log ---- */

static const struct parquet_field fields[] = { { .name = "value", .kind = PARQUET_INT64, .optional = true } };

static enum status commit_stats(struct delta_table *t, const char *path, char *stats, struct error *err)
{
        const struct delta_add add = { .path = path, .size = 1, .stats = stats };
        const struct delta_commit c = { .size = sizeof c, .operation = "WRITE", .adds = &add, .add_count = 1 };

        return delta_commit(t, &c, err);
}

static size_t count_stats_bytes(void)
{
        struct delta_table *t;
        struct delta_snapshot *s;
        struct error err;
        size_t n = 0;

        check_ok(delta_table_open(dir, &t, &err), &err);
        check_ok(delta_snapshot_acquire(t, &s, &err), &err);
        for (size_t i = 0; i < s->file_count; i++)
                n += strlen(s->files[i]->stats);
        delta_snapshot_release(s);
        delta_table_close(t);
        return n;
}

/* The line around the statistics has less than KiB(1). */
START_TEST(a_log_line_and_a_checkpoint_row_at_the_limit_are_read_and_a_longer_line_is_not_published)
{
        size_t n = LIMIT_DELTA_LINE_BYTES - KiB(1);
        char *stats = malloc(LIMIT_DELTA_LINE_BYTES + 2);
        _cleanup_free_ char *commit = NULL;
        struct delta_table *t;
        struct error err;

        make_dir();
        check_ok(delta_table_create(dir, fields, 1, NULL, 0, NULL, &err), &err);
        check_ok(delta_table_open(dir, &t, &err), &err);
        memset(stats, 'x', n);
        stats[n] = 0;
        check_ok(commit_stats(t, "a.parquet", stats, &err), &err);
        memset(stats, 'x', LIMIT_DELTA_LINE_BYTES + 1);
        stats[LIMIT_DELTA_LINE_BYTES + 1] = 0;
        ck_assert_int_ne(commit_stats(t, "b.parquet", stats, &err), ST_OK);
        memset(stats, '"', n); /* twice as long in JSON */
        stats[n] = 0;
        ck_assert_int_ne(commit_stats(t, "c.parquet", stats, &err), ST_OK);
        ck_assert_uint_eq(count_stats_bytes(), n);
        check_ok(delta_checkpoint(t, &err), &err);
        delta_table_close(t);
        for (int version = 0; version < 2; version++) { /* the checkpoint alone */
                ck_assert_int_gt(asprintf(&commit, "%s/_delta_log/%020d.json", dir, version), 0);
                ck_assert_int_eq(unlink(commit), 0);
                free(steal_ptr(commit));
        }
        ck_assert_uint_eq(count_stats_bytes(), n);
        free(stats);
        remove_dir();
}
END_TEST

/* ---- raw queue ---- */

static uint64_t replayed_bytes;

static enum status count_payload(void *context, const struct raw_record *record, struct error *err)
{
        (void)context;
        (void)err;
        replayed_bytes += record->payload_size;
        return ST_OK;
}

static void write_record(struct raw_queue *q, uint8_t *payload, size_t size)
{
        struct raw_record record = { .payload = payload, .payload_size = (uint32_t)size };
        struct error err;

        check_ok(raw_queue_write(q, &record, &err), &err);
}

/* A segment is ended once it has LIMIT_QUEUE_SEGMENT_BYTES, so the longest one is a byte shorter, and then a record. */
START_TEST(the_longest_queue_segment_is_replayed_and_a_longer_record_is_refused)
{
        size_t first = LIMIT_QUEUE_SEGMENT_BYTES - RAW_SEGMENT_HEADER_BYTES - RAW_RECORD_HEADER_BYTES - 1;
        uint8_t *payload = calloc(1, LIMIT_QUEUE_RECORD_BYTES + 1);
        struct raw_record longer = { .payload = payload, .payload_size = LIMIT_QUEUE_RECORD_BYTES + 1 };
        struct raw_queue_report report;
        struct raw_queue *q;
        struct error err;

        make_dir();
        check_ok(raw_queue_open(dir, false, 0, count_payload, NULL, &q, &report, &err), &err);
        write_record(q, payload, first);
        write_record(q, payload, LIMIT_QUEUE_RECORD_BYTES);
        ck_assert_int_eq(raw_queue_write(q, &longer, &err), ST_TOO_BIG);
        check_ok(raw_queue_sync(q, 2, &err), &err);
        raw_queue_close(q);
        replayed_bytes = 0;
        check_ok(raw_queue_open(dir, false, 0, count_payload, NULL, &q, &report, &err), &err);
        ck_assert_uint_eq(replayed_bytes, first + LIMIT_QUEUE_RECORD_BYTES);
        ck_assert_uint_eq(report.torn_bytes + report.damaged_segments, 0);
        raw_queue_close(q);
        free(payload);
        remove_dir();
}
END_TEST

START_TEST(the_longest_record_is_read_back_from_the_quarantine)
{
        uint8_t *payload = calloc(1, LIMIT_QUEUE_RECORD_BYTES);
        struct raw_record record = { .position = 1, .payload = payload, .payload_size = LIMIT_QUEUE_RECORD_BYTES },
                          back;
        struct quarantine_item *items = NULL;
        char reason[sizeof items->reason];
        struct buf file;
        struct error err;
        size_t count;

        memset(reason, '\\', sizeof reason - 1); /* twice as long in JSON */
        reason[sizeof reason - 1] = 0;
        make_dir();
        check_ok(quarantine_add(dir, &record, reason, NULL, &err), &err);
        check_ok(quarantine_list(dir, &items, &count, &err), &err);
        ck_assert_uint_eq(count, 1);
        ck_assert(!items[0].damaged);
        ck_assert_str_eq(items[0].reason, reason);
        buf_init(&file, LIMIT_QUEUE_SEGMENT_FILE_BYTES);
        check_ok(quarantine_read(dir, &items[0], &file, &back, &err), &err);
        ck_assert_uint_eq(back.payload_size, LIMIT_QUEUE_RECORD_BYTES);
        buf_deinit(&file);
        free(items);
        free(payload);
        remove_dir();
}
END_TEST

TEST_SUITE("writer limits", a_log_line_and_a_checkpoint_row_at_the_limit_are_read_and_a_longer_line_is_not_published,
           the_longest_queue_segment_is_replayed_and_a_longer_record_is_refused,
           the_longest_record_is_read_back_from_the_quarantine)
