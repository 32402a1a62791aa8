/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/files/file.h"
#include "profile-store/queue/batch_ids.h"
#include "profile-store/queue/raw_queue.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

struct replayed {
        uint64_t positions[64];
        char texts[64][16];
        size_t count;
};

static enum status keep(void *context, const struct raw_record *record, struct error *err)
{
        struct replayed *r = context;

        (void)err;
        r->positions[r->count] = record->position;
        snprintf(r->texts[r->count], sizeof r->texts[0], "%.*s", (int)record->payload_size,
                 (const char *)record->payload);
        r->count++;
        return ST_OK;
}

static char dir[TEMPORARY_DIR_BYTES];

static const char *new_dir(void)
{
        temporary_dir_create(dir, "queue");
        return dir;
}

static void remove_dir(void)
{
        temporary_dir_remove(dir);
}

static struct raw_queue *open_queue(uint64_t flushed, struct replayed *replayed, struct raw_queue_report *report)
{
        const struct raw_queue_options options = { .flushed = flushed, .replay = keep, .context = replayed };
        struct raw_queue *q = NULL;
        struct raw_queue_report ignored;
        struct error err;

        *replayed = (struct replayed){ 0 };
        ck_assert_msg(raw_queue_open(dir, &options, &q, report ? report : &ignored, &err) == ST_OK, "%s", err.text);
        return q;
}

static uint64_t put(struct raw_queue *q, const char *text)
{
        struct raw_record r = { .payload = (const uint8_t *)text, .payload_size = (uint32_t)strlen(text) };
        struct error err;

        ck_assert_msg(raw_queue_write(q, &r, &err) == ST_OK, "%s", err.text);
        ck_assert_msg(raw_queue_sync(q, r.position, &err) == ST_OK, "%s", err.text);
        return r.position;
}

static char *segment(uint64_t first)
{
        char *path;

        ck_assert_int_gt(asprintf(&path, "%s/%020llu.queue", dir, (unsigned long long)first), 0);
        return path;
}

/* As a node does whose object store is away: the positions that were flushed are unknown. */
static struct raw_queue *open_queue_with_gap(uint64_t gap)
{
        struct replayed replayed = { 0 };
        const struct raw_queue_options options = { .gap = gap, .replay = keep, .context = &replayed };
        struct raw_queue *q = NULL;
        struct error err;

        check_ok(raw_queue_open(dir, &options, &q, NULL, &err), &err);
        return q;
}

static uint64_t seal(struct raw_queue *q)
{
        struct error err;
        uint64_t position;

        check_ok(raw_queue_seal(q, &position, &err), &err);
        return position;
}

/* Else a flush would commit, and peers would know, positions that a start without the gap gives to new records. */
START_TEST(gap_is_not_durable_before_its_first_record)
{
        struct replayed r;
        struct raw_queue *q;

        new_dir();
        q = open_queue(0, &r, NULL);
        put(q, "one");
        put(q, "two");
        raw_queue_close(q);
        q = open_queue_with_gap(1000);
        ck_assert_uint_eq(raw_queue_get_synced(q), 2);
        ck_assert_uint_eq(seal(q), 2);
        raw_queue_close(q);
        q = open_queue(0, &r, NULL);
        ck_assert_uint_eq(put(q, "three"), 3);
        raw_queue_close(q);
        q = open_queue_with_gap(1000);
        ck_assert_uint_eq(put(q, "four"), 1004);
        ck_assert_uint_eq(seal(q), 1004);
        raw_queue_close(q);
        q = open_queue(0, &r, NULL);
        ck_assert_uint_eq(put(q, "five"), 1005);
        raw_queue_close(q);
        remove_dir();
}
END_TEST

START_TEST(synced_records_are_replayed_in_order)
{
        struct replayed r;
        struct raw_queue *q;

        new_dir();
        q = open_queue(0, &r, NULL);
        ck_assert_uint_eq(put(q, "one"), 1);
        ck_assert_uint_eq(put(q, "two"), 2);
        raw_queue_close(q);
        q = open_queue(0, &r, NULL);
        ck_assert_uint_eq(r.count, 2);
        ck_assert_str_eq(r.texts[0], "one");
        ck_assert_str_eq(r.texts[1], "two");
        ck_assert_uint_eq(put(q, "three"), 3);
        raw_queue_close(q);
        q = open_queue(0, &r, NULL);
        ck_assert_uint_eq(r.count, 3);
        ck_assert_uint_eq(r.positions[2], 3);
        raw_queue_close(q);
        remove_dir();
}
END_TEST

START_TEST(torn_tail_is_truncated_to_complete_records)
{
        struct replayed r;
        struct raw_queue *q;
        _cleanup_free_ char *path = NULL;
        _cleanup_buf_ struct buf whole;
        const size_t first_end = RAW_SEGMENT_HEADER_BYTES + RAW_RECORD_HEADER_BYTES + 3;
        struct stat st;

        new_dir();
        q = open_queue(0, &r, NULL);
        put(q, "one");
        put(q, "two");
        raw_queue_close(q);
        path = segment(1);
        buf_init(&whole, 4096);
        ck_assert_int_eq(file_read(path, &whole, NULL), ST_OK);
        for (size_t size = first_end; size < whole.size; size++) {
                struct raw_queue_report report;

                ck_assert_int_eq(file_write_durable(path, whole.data, size, NULL), ST_OK);
                q = open_queue(0, &r, &report);
                ck_assert_uint_eq(r.count, 1);
                ck_assert_uint_eq(report.damaged_segments, 0);
                ck_assert_uint_eq(report.torn_bytes, size - first_end);
                raw_queue_close(q);
                ck_assert_int_eq(stat(path, &st), 0);
                ck_assert_uint_eq(st.st_size, first_end);
        }
        q = open_queue(0, &r, NULL);
        ck_assert_uint_eq(put(q, "two again"), 2);
        raw_queue_close(q);
        q = open_queue(0, &r, NULL);
        ck_assert_str_eq(r.texts[1], "two again");
        raw_queue_close(q);
        remove_dir();
}
END_TEST

START_TEST(a_flipped_bit_ends_the_segment_before_its_record)
{
        struct replayed r;
        struct raw_queue_report report;
        struct raw_queue *q;
        _cleanup_free_ char *path = NULL, *aside = NULL;
        _cleanup_buf_ struct buf bytes;
        uint64_t sealed;

        new_dir();
        q = open_queue(0, &r, NULL);
        put(q, "one");
        put(q, "two");
        ck_assert_int_eq(raw_queue_seal(q, &sealed, NULL), ST_OK);
        ck_assert_uint_eq(sealed, 2);
        put(q, "three");
        raw_queue_close(q);
        path = segment(1);
        buf_init(&bytes, 4096);
        ck_assert_int_eq(file_read(path, &bytes, NULL), ST_OK);
        bytes.data[bytes.size - 1] ^= 4;
        ck_assert_int_eq(file_write_durable(path, bytes.data, bytes.size, NULL), ST_OK);
        q = open_queue(0, &r, &report);
        ck_assert_uint_eq(r.count, 2);
        ck_assert_str_eq(r.texts[0], "one");
        ck_assert_str_eq(r.texts[1], "three");
        ck_assert_uint_eq(report.damaged_segments, 1);
        ck_assert_int_gt(asprintf(&aside, "%s.damaged", path), 0);
        ck_assert_int_eq(access(aside, F_OK), 0);
        raw_queue_close(q);
        remove_dir();
}
END_TEST

START_TEST(released_segments_are_deleted_and_positions_continue)
{
        struct replayed r;
        struct raw_queue *q;
        _cleanup_free_ char *first = NULL;
        uint64_t sealed;

        new_dir();
        q = open_queue(0, &r, NULL);
        put(q, "one");
        ck_assert_int_eq(raw_queue_seal(q, &sealed, NULL), ST_OK);
        put(q, "two");
        ck_assert_int_eq(raw_queue_release(q, sealed, NULL), ST_OK);
        first = segment(1);
        ck_assert_int_ne(access(first, F_OK), 0);
        ck_assert_int_eq(raw_queue_seal(q, &sealed, NULL), ST_OK);
        ck_assert_int_eq(raw_queue_release(q, sealed, NULL), ST_OK);
        ck_assert_uint_eq(raw_queue_count_bytes(q), 0);
        raw_queue_close(q);
        q = open_queue(2, &r, NULL);
        ck_assert_uint_eq(r.count, 0);
        ck_assert_uint_eq(put(q, "three"), 3);
        raw_queue_close(q);
        remove_dir();
}
END_TEST

/* Interposes the C library's function for the whole program. */
static unsigned data_syncs;
int fdatasync(int fd)
{
        data_syncs++;
        return fsync(fd);
}

START_TEST(replayed_records_are_synced_before_acknowledgement)
{
        struct raw_record unsynced = { .payload = (const uint8_t *)"one", .payload_size = 3 };
        struct replayed r;
        struct raw_queue *q;

        new_dir();
        q = open_queue(0, &r, NULL);
        ck_assert_int_eq(raw_queue_write(q, &unsynced, NULL), ST_OK);
        raw_queue_close(q);
        data_syncs = 0;
        q = open_queue(0, &r, NULL);
        ck_assert_uint_eq(r.count, 1);
        ck_assert_uint_eq(data_syncs, 1);
        raw_queue_close(q);
        remove_dir();
}
END_TEST

START_TEST(batch_ids_are_known_after_reopening_until_they_expire)
{
        struct batch_ids *ids;
        struct hash128 a = hash_bytes128("a", 1), b = hash_bytes128("b", 1), c = hash_bytes128("c", 1);

        new_dir();
        ck_assert_int_eq(batch_ids_open(dir, &ids, NULL), ST_OK);
        ck_assert(!batch_ids_contain(ids, &a));
        ck_assert_int_eq(batch_ids_add(ids, &a, 1, 1000, NULL), ST_OK);
        ck_assert_int_eq(batch_ids_add(ids, &a, 1, 1000, NULL), ST_OK);
        ck_assert_int_eq(batch_ids_add(ids, &b, 1, 1000 + 86400, NULL), ST_OK);
        batch_ids_close(ids);
        ck_assert_int_eq(batch_ids_open(dir, &ids, NULL), ST_OK);
        ck_assert(batch_ids_contain(ids, &a));
        ck_assert(batch_ids_contain(ids, &b));
        ck_assert_int_eq(batch_ids_add(ids, &c, 1, 1000 + 86400 * 5 / 2, NULL), ST_OK);
        ck_assert(!batch_ids_contain(ids, &a));
        ck_assert(batch_ids_contain(ids, &b));
        batch_ids_close(ids);
        ck_assert_int_eq(batch_ids_open(dir, &ids, NULL), ST_OK);
        ck_assert(!batch_ids_contain(ids, &a));
        ck_assert(batch_ids_contain(ids, &b));
        ck_assert(batch_ids_contain(ids, &c));
        batch_ids_close(ids);
        remove_dir();
}
END_TEST

/* ---- visits ---- */

#define VISITED 20
#define VISITED_BYTES 65536

struct visited {
        uint64_t positions[VISITED], end_at;
        size_t count;
};

static enum status note_visit(void *context, const struct raw_record *record, bool *end_ret, struct error *err)
{
        struct visited *v = context;

        (void)err;
        v->positions[v->count++] = record->position;
        *end_ret = record->position == v->end_at;
        return ST_OK;
}

/* A queue with large records in one segment. */
static struct raw_queue *fill_queue(void)
{
        static uint8_t payload[VISITED_BYTES];
        struct replayed r;
        struct raw_queue *q;

        new_dir();
        q = open_queue(0, &r, NULL);
        for (unsigned i = 0; i < VISITED; i++) {
                struct raw_record record = { .payload = payload, .payload_size = sizeof payload };
                struct error err;

                memset(payload, (int)i, sizeof payload);
                ck_assert_msg(raw_queue_write(q, &record, &err) == ST_OK, "%s", err.text);
                ck_assert_msg(raw_queue_sync(q, record.position, &err) == ST_OK, "%s", err.text);
        }
        return q;
}

static struct visited visit_queue(struct raw_queue *q, uint64_t after, uint64_t until, uint64_t end_at)
{
        struct visited v = { .end_at = end_at };
        struct error err;

        ck_assert_msg(raw_queue_visit(q, after, until, note_visit, &v, &err) == ST_OK, "%s", err.text);
        return v;
}

static void change_segment(uint64_t offset, bool cut)
{
        _cleanup_free_ char *path = segment(1);
        int fd = open(path, O_RDWR);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(pwrite(fd, "damage", 6, (off_t)offset), 6);
        if (cut)
                ck_assert_int_eq(ftruncate(fd, (off_t)offset), 0);
        close(fd);
}

static void check_visits(struct raw_queue *q)
{
        for (uint64_t after = 0; after <= VISITED; after++)
                for (uint64_t until = after; until <= VISITED; until++) {
                        const struct visited v = visit_queue(q, after, until, 0);

                        ck_assert_uint_eq(v.count, until - after);
                        for (size_t i = 0; i < v.count; i++)
                                ck_assert_uint_eq(v.positions[i], after + 1 + i);
                }
}

START_TEST(a_visit_has_exactly_the_positions_in_its_range)
{
        struct raw_queue *q = fill_queue();
        struct replayed r;

        check_visits(q);
        raw_queue_close(q);
        q = open_queue(VISITED, &r, NULL); /* the text of a replayed record is cut, which does not matter here */
        check_visits(q);
        raw_queue_close(q);
        remove_dir();
}
END_TEST

/* Damage tells what is read. */
START_TEST(a_visit_reads_only_what_is_near_its_records)
{
        struct raw_queue *q = fill_queue();

        change_segment(RAW_SEGMENT_HEADER_BYTES + RAW_RECORD_HEADER_BYTES, false);
        ck_assert_uint_eq(visit_queue(q, VISITED - 1, VISITED, 0).count, 1);
        ck_assert_uint_eq(visit_queue(q, VISITED / 2, VISITED, 0).count, VISITED / 2);
        raw_queue_close(q);
        remove_dir();
}
END_TEST

START_TEST(a_visit_reports_records_that_are_lost)
{
        struct raw_queue *q = fill_queue();
        struct visited v = { 0 };
        struct error err;

        change_segment(10 * VISITED_BYTES, true);
        ck_assert_uint_eq(visit_queue(q, 0, 5, 0).count, 5);
        ck_assert_int_eq(raw_queue_visit(q, 5, VISITED, note_visit, &v, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "no longer has position 10"));
        raw_queue_close(q);
        remove_dir();
}
END_TEST

START_TEST(a_visit_ends_where_its_visitor_says)
{
        struct raw_queue *q = fill_queue();

        ck_assert_uint_eq(visit_queue(q, 2, VISITED, 7).count, 5);
        raw_queue_close(q);
        remove_dir();
}
END_TEST

TEST_SUITE("raw queue", a_visit_has_exactly_the_positions_in_its_range, a_visit_reads_only_what_is_near_its_records,
           a_visit_reports_records_that_are_lost, a_visit_ends_where_its_visitor_says,
           gap_is_not_durable_before_its_first_record, synced_records_are_replayed_in_order,
           torn_tail_is_truncated_to_complete_records, a_flipped_bit_ends_the_segment_before_its_record,
           released_segments_are_deleted_and_positions_continue, replayed_records_are_synced_before_acknowledgement,
           batch_ids_are_known_after_reopening_until_they_expire)
