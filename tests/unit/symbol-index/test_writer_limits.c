/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a writer writes at its limit must be accepted by the reader of the same format; anything larger must be
 * refused by the writer.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "parquet/parquet_reader.h"
#include "parquet/parquet_writer.h"
#include "profile-store/delta/delta_log.h"
#include "profile-store/queue/quarantine.h"
#include "profile-store/queue/raw_queue.h"
#include "sending/spool.h"
#include "source-bundle/bundle.h"
#include "symbol-index/index_load.h"
#include "symbol-index/lookup.h"
#include "symbol-index/symbol_table.h"
#include "tests/support/disk_storage.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES];

static void set_up(void)
{
        temporary_dir_create(dir, "limits");
}

static void tear_down(void)
{
        temporary_dir_remove(dir);
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

        check_ok(delta_table_open(disk_storage(), dir + 1, &t, &err), &err);
        check_ok(delta_snapshot_acquire(t, &s, &err), &err);
        for (size_t i = 0; i < s->file_count; i++)
                n += strlen(s->files[i]->stats);
        delta_snapshot_release(s);
        delta_table_close(t);
        return n;
}

/* The line around the statistics is shorter than KiB(1). */
START_TEST(log_lines_and_checkpoint_rows_at_the_limit_are_read)
{
        size_t n = LIMIT_DELTA_LINE_BYTES - KiB(1);
        char *stats = malloc(LIMIT_DELTA_LINE_BYTES + 2);
        _cleanup_free_ char *commit = NULL;
        struct delta_table *t;
        struct error err;

        set_up();
        check_ok(delta_table_create(disk_storage(), dir + 1, fields, 1, NULL, 0, NULL, &err), &err);
        check_ok(delta_table_open(disk_storage(), dir + 1, &t, &err), &err);
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
        for (int version = 0; version < 2; version++) { /* only the checkpoint */
                ck_assert_int_gt(asprintf(&commit, "%s/_delta_log/%020d.json", dir, version), 0);
                ck_assert_int_eq(unlink(commit), 0);
                free(steal_ptr(commit));
        }
        ck_assert_uint_eq(count_stats_bytes(), n);
        free(stats);
        tear_down();
}
END_TEST

START_TEST(commit_over_the_limit_is_refused_without_loss)
{
        enum { STATS_BYTES = 15 << 20, ADDS = (LIMIT_DELTA_COMMIT_BYTES) / STATS_BYTES + 1 };
        struct delta_add adds[ADDS] = { 0 };
        const struct delta_commit c = { .size = sizeof c, .operation = "WRITE", .adds = adds, .add_count = ADDS };
        char names[ADDS][32], *stats = malloc(STATS_BYTES + 1);
        _cleanup_free_ char *commit = NULL;
        struct delta_table *t;
        struct error err = { 0 };

        set_up();
        check_ok(delta_table_create(disk_storage(), dir + 1, fields, 1, NULL, 0, NULL, &err), &err);
        check_ok(delta_table_open(disk_storage(), dir + 1, &t, &err), &err);
        check_ok(commit_stats(t, "before.parquet", "{}", &err), &err);
        memset(stats, 'x', STATS_BYTES);
        stats[STATS_BYTES] = 0;
        for (int i = 0; i < ADDS; i++) {
                snprintf(names[i], sizeof names[i], "%d.parquet", i);
                adds[i] = (struct delta_add){ .path = names[i], .size = 1, .stats = stats };
        }
        ck_assert_int_eq(delta_commit(t, &c, &err), ST_TOO_BIG);
        ck_assert_msg(strstr(err.text, dir) && strstr(err.text, "larger than 268435456 bytes"), "%s", err.text);
        ck_assert_int_gt(asprintf(&commit, "%s/_delta_log/%020d.json", dir, 2), 0);
        ck_assert_int_ne(access(commit, F_OK), 0);
        ck_assert_uint_eq(count_stats_bytes(), 2);
        check_ok(commit_stats(t, "after.parquet", "{}", &err), &err); /* as the next version */
        ck_assert_int_eq(access(commit, F_OK), 0);
        ck_assert_uint_eq(count_stats_bytes(), 4);
        delta_table_close(t);
        free(stats);
        tear_down();
}
END_TEST

/*
 * A commit is encoded into and read into a buffer of LIMIT_DELTA_COMMIT_BYTES, and parsed before it is published, so
 * the behavior of file_read() at the limit is sufficient. Commits of this size would take half a minute.
 */
START_TEST(file_at_the_limit_is_read_and_longer_one_refused)
{
        static char text[4097];
        _cleanup_free_ char *path = NULL;
        struct error err;
        struct buf b;

        set_up();
        ck_assert_int_gt(asprintf(&path, "%s/file", dir), 0);
        memset(text, 'x', sizeof text);
        for (size_t n = 4096; n <= 4097; n++) {
                check_ok(file_write_durable(path, text, n, &err), &err);
                buf_init(&b, 4096);
                ck_assert_int_eq(file_read(path, &b, &err), n == 4096 ? ST_OK : ST_TOO_BIG);
                buf_deinit(&b);
        }
        tear_down();
}
END_TEST

/* ---- Parquet ---- */

/* A file with this much metadata in its footer, filled with row groups of one row until the writer is full. */
static enum status write_full_file(int fd, size_t metadata_bytes, uint64_t *rows_ret, struct error *err)
{
        char *value = malloc(metadata_bytes + 1);
        const struct parquet_key_value metadata = { "key", value };
        struct parquet_writer_options o = PARQUET_WRITER_OPTIONS;
        struct parquet_writer *w;
        enum status st = ST_OK;

        memset(value, 'x', metadata_bytes);
        value[metadata_bytes] = 0;
        o.row_group_rows = 1;
        o.metadata = &metadata;
        o.metadata_count = 1;
        check_ok(parquet_writer_create(fd, "test", fields, 1, &o, &w, err), err);
        do {
                parquet_put_int(w, parquet_writer_node(w, "value"), 1);
                st = parquet_writer_end_rows(w, 1, err);
        } while (!st && !parquet_writer_is_full(w));
        *rows_ret = parquet_writer_rows(w);
        if (!st)
                st = parquet_writer_finish(w, err);
        parquet_writer_destroy(w);
        free(value);
        return st;
}

START_TEST(full_parquet_file_is_read_and_longer_footer_refused)
{
        _cleanup_close_ int fd = memfd_create("parquet", 0), other = memfd_create("parquet", 0);
        struct parquet_file *f;
        struct file_map map;
        struct error err;
        uint64_t rows;

        check_ok(write_full_file(fd, LIMIT_PARQUET_FOOTER_BYTES - KiB(64), &rows, &err), &err);
        ck_assert_uint_gt(rows, 100);
        check_ok(file_map_fd(fd, LIMIT_PARQUET_FILE_BYTES, "test", &map, &err), &err);
        ck_assert_uint_gt(map.size, LIMIT_PARQUET_FOOTER_BYTES - KiB(64));
        check_ok(parquet_file_open(map.data, map.size, "test", &f, &err), &err);
        ck_assert_uint_eq(parquet_file_row_groups(f), rows);
        parquet_file_close(f);
        file_map_close(&map);
        ck_assert_int_eq(write_full_file(other, LIMIT_PARQUET_FOOTER_BYTES, &rows, &err), ST_TOO_BIG);
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

/*
 * A segment is finished once it has LIMIT_QUEUE_SEGMENT_BYTES, so the longest one is that minus one byte, plus a
 * record.
 */
START_TEST(longest_queue_segment_is_replayed_and_longer_record_refused)
{
        size_t first = LIMIT_QUEUE_SEGMENT_BYTES - RAW_SEGMENT_HEADER_BYTES - RAW_RECORD_HEADER_BYTES - 1;
        uint8_t *payload = calloc(1, LIMIT_QUEUE_RECORD_BYTES + 1);
        struct raw_record longer = { .payload = payload, .payload_size = LIMIT_QUEUE_RECORD_BYTES + 1 };
        const struct raw_queue_options options = { .replay = count_payload };
        struct raw_queue_report report;
        struct raw_queue *q;
        struct error err;

        set_up();
        check_ok(raw_queue_open(dir, &options, &q, &report, &err), &err);
        write_record(q, payload, first);
        write_record(q, payload, LIMIT_QUEUE_RECORD_BYTES);
        ck_assert_int_eq(raw_queue_write(q, &longer, &err), ST_TOO_BIG);
        check_ok(raw_queue_sync(q, 2, &err), &err);
        raw_queue_close(q);
        replayed_bytes = 0;
        check_ok(raw_queue_open(dir, &options, &q, &report, &err), &err);
        ck_assert_uint_eq(replayed_bytes, first + LIMIT_QUEUE_RECORD_BYTES);
        ck_assert_uint_eq(report.torn_bytes + report.damaged_segments, 0);
        raw_queue_close(q);
        free(payload);
        tear_down();
}
END_TEST

START_TEST(longest_record_is_read_from_quarantine)
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
        set_up();
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
        tear_down();
}
END_TEST

/* ---- agent's spool ---- */

START_TEST(largest_batch_is_read_from_spool)
{
        uint8_t *payload = calloc(1, LIMIT_AGENT_QUEUE_BYTES);
        struct spool_batch batch = { .number = 1, .payload = payload, .payload_size = LIMIT_AGENT_QUEUE_BYTES }, back;
        struct spool_found found;
        struct spool *spool;
        struct error err;
        struct buf file;

        set_up();
        check_ok(spool_open(dir, NULL, NULL, &spool, &found, &err), &err);
        check_ok(spool_write(spool, &batch, &err), &err);
        buf_init(&file, LIMIT_AGENT_QUEUE_BYTES + SPOOL_FILE_HEADER_BYTES);
        check_ok(spool_read(spool, 1, &file, &back, &err), &err);
        ck_assert_uint_eq(back.payload_size, LIMIT_AGENT_QUEUE_BYTES);
        buf_deinit(&file);
        spool_found_deinit(&found);
        spool_close(spool);
        free(payload);
        tear_down();
}
END_TEST

/* ---- source bundle ---- */

static enum status write_bundle(int fd, const char *const *names, size_t count, uint64_t *size_ret, struct error *err)
{
        static char empty[] = "/dev/null";
        struct source_file *files = calloc(count, sizeof *files);
        struct build_id id;
        enum status st;

        build_id_from_bytes(&id, (const uint8_t *)"0123456789abcdefghij", 20);
        for (size_t i = 0; i < count; i++)
                files[i] = (struct source_file){ .name = (char *)(uintptr_t)names[i], .path = empty };
        st = source_bundle_write(fd, &id, files, count, size_ret, err);
        free(files);
        return st;
}

static ssize_t read_bundle_bytes(void *context, void *to, size_t n, uint64_t offset, struct error *err)
{
        (void)err;
        return pread(*(int *)context, to, n, (off_t)offset);
}

/* The size of the table is that of its names plus 24 bytes for each. */
START_TEST(largest_source_table_is_read_and_larger_one_refused)
{
        enum { COUNT = LIMIT_SOURCE_TABLE_BYTES / (LIMIT_PATH_BYTES + 24), LONGEST = LIMIT_PATH_BYTES };
        _cleanup_close_ int fd = memfd_create("bundle", 0), other = memfd_create("bundle", 0);
        char *texts = malloc((size_t)(COUNT + 1) * (LONGEST + 2)), *names[COUNT + 1];
        struct source_bundle b;
        uint64_t size, offset, file_size;
        struct error err;

        for (size_t i = 0; i <= COUNT; i++) {
                names[i] = texts + i * (LONGEST + 2);
                memset(names[i], 'x', LONGEST);
                names[i][0] = '/';
                names[i][1 + snprintf(names[i] + 1, LONGEST, "%06zu", i)] = 'x';
                names[i][LONGEST] = 0;
        }
        check_ok(write_bundle(fd, (const char *const *)names, COUNT, &size, &err), &err);
        check_ok(source_bundle_open(read_bundle_bytes, &fd, size, &b, &err), &err);
        ck_assert_uint_eq(b.count, COUNT);
        ck_assert(source_bundle_find(&b, names[COUNT - 1], &offset, &file_size));
        source_bundle_close(&b);
        ck_assert_int_eq(write_bundle(other, (const char *const *)names, COUNT + 1, &size, &err), ST_TOO_BIG);
        memcpy(names[0] + LONGEST, "x", 2);
        ck_assert_int_eq(write_bundle(other, (const char *const *)names, 1, &size, &err), ST_USAGE);
        free(texts);
}
END_TEST

/* ---- symbol table and index ---- */

enum { LONG_NAMES = 24 };

/*
 * LONG_NAMES functions with names of LIMIT_NAME_BYTES in one chain of depth LIMIT_LOCATION_FRAMES, in an object with
 * LIMIT_ELF_SEGMENTS segments.
 */
static struct symbol_table make_large_table(void)
{
        struct symbol_table t = { .quality = QUALITY_DWARF,
                                  .segment_count = LIMIT_ELF_SEGMENTS,
                                  .range_count = 1,
                                  .chain_count = 1,
                                  .frame_count = LIMIT_LOCATION_FRAMES,
                                  .function_count = LONG_NAMES,
                                  .string_bytes = 1 + LONG_NAMES * (LIMIT_NAME_BYTES + 1) };
        struct error err;

        check_ok(symbol_table_allocate(&t, &err), &err);
        build_id_from_bytes(&t.build_id, (const uint8_t *)"0123456789abcdefghij", 20);
        memset(t.strings, 'x', t.string_bytes);
        t.strings[0] = t.strings[t.string_bytes - 1] = 0;
        for (uint32_t i = 0; i < LONG_NAMES; i++) {
                uint32_t at = (uint32_t)(1 + i * (LIMIT_NAME_BYTES + 1));

                if (i)
                        t.strings[at - 1] = 0;
                t.strings[at] = (char)('a' + i); /* they have no common prefix */
                t.functions[i] = (struct symbol_function){ .name = at };
        }
        for (uint32_t i = 0; i < t.segment_count; i++)
                t.segments[i] = (struct symbol_segment){ KiB(4) * i, KiB(4), KiB(4) * i };
        for (uint32_t i = 0; i < t.frame_count; i++)
                t.frames[i] = (struct symbol_table_frame){ .function = i % LONG_NAMES, .file = 0, .line = i + 1 };
        t.ranges[0] = (struct symbol_range){ 16, 32, 0 };
        t.chains[0] = (struct symbol_chain){ 0, t.frame_count };
        return t;
}

START_TEST(large_symbol_table_is_read_and_one_over_the_limit_refused)
{
        _cleanup_close_ int fd = memfd_create("table", 0);
        struct symbol_table t = make_large_table(), back = { 0 };
        struct error err;

        check_ok(symbol_table_write(&t, fd, &err), &err);
        check_ok(symbol_table_read(fd, "test", &back, &err), &err);
        ck_assert_uint_eq(back.string_bytes, t.string_bytes);
        ck_assert_int_eq(memcmp(back.strings, t.strings, t.string_bytes), 0);
        symbol_table_deinit(&back);
        back = t;
        back.range_count =
                LIMIT_SYMBOL_TABLE_BYTES / 20; /* refused because of its size, so the ranges are not accessed */
        ck_assert_int_eq(symbol_table_write(&back, fd, &err), ST_TOO_BIG);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(index_supports_longest_names_deepest_chain_and_most_segments)
{
        struct symbol_table t = make_large_table();
        struct symbol_key key = { .build_id = &t.build_id, .address = 16 };
        struct symbol_batch batch = { 0 };
        struct symbol_index *index;
        struct symbol_view *view;
        struct error err;
        uint64_t generation;
        bool replaced;

        set_up();
        check_ok(symbol_index_open(dir, false, &index, &err), &err);
        check_ok(symbol_index_load(index, &t, &replaced, &generation, &err), &err);
        check_ok(symbol_view_begin(index, &view, &err), &err);
        check_ok(symbol_view_lookup(view, &key, 1, &batch, &err), &err);
        ck_assert_int_eq(batch.results[0].state, SYMBOL_RESOLVED);
        ck_assert_uint_eq(batch.results[0].frame_count, LIMIT_LOCATION_FRAMES);
        for (uint32_t i = 0; i < LONG_NAMES; i++) {
                const struct symbol_frame *f = &batch.frames[batch.results[0].first_frame + i];
                const char *name, *linkage_name;

                check_ok(symbol_view_get_function(view, f->function, &name, &linkage_name, &err), &err);
                ck_assert_uint_eq(f->line, i + 1);
                ck_assert_uint_eq(strlen(name), LIMIT_NAME_BYTES);
                ck_assert_int_eq(name[0], 'a' + (int)i);
        }
        symbol_batch_deinit(&batch);
        symbol_view_end(view);
        symbol_index_close(index);
        symbol_table_deinit(&t);
        tear_down();
}
END_TEST

TEST_SUITE("writer limits", log_lines_and_checkpoint_rows_at_the_limit_are_read,
           commit_over_the_limit_is_refused_without_loss, file_at_the_limit_is_read_and_longer_one_refused,
           full_parquet_file_is_read_and_longer_footer_refused,
           longest_queue_segment_is_replayed_and_longer_record_refused, longest_record_is_read_from_quarantine,
           largest_batch_is_read_from_spool, largest_source_table_is_read_and_larger_one_refused,
           large_symbol_table_is_read_and_one_over_the_limit_refused,
           index_supports_longest_names_deepest_chain_and_most_segments)
