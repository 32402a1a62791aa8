/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compaction of a store: the tables keep the same rows in fewer, sorted files. Files that cannot be merged, other
 * commits and other operations are not affected.
 */
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "profile-store/compaction/compaction_jobs.h"
#include "profile-store/compaction/merge.h"
#include "profile-store/compaction/row_removal.h"
#include "profile-store/lifecycle/sample_retention.h"
#include "profile-store/scan.h"
#include "profile-store/scan/scan_rows.h"
#include "tests/support/disk_storage.h"
#include "tests/support/foreign_writer.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"
#include "tests/support/table_rows.h"

#define DAY_US INT64_C(86400000000)

static struct store_fixture fixture;
static struct symbol_index *symbols;

static void set_up(void)
{
        store_fixture_begin(&fixture);
}

static void tear_down(void)
{
        store_fixture_end(&fixture);
        if (symbols)
                symbol_index_close(symbols);
}

/* Samples of several types, stacks, labels and days; each flush shares some of them with others. */
static void append_mixed(unsigned batch)
{
        struct test_profile t;
        struct error err;
        char host[32], rare[32];

        snprintf(host, sizeof host, "host=h%u", batch % 3);
        snprintf(rare, sizeof rare, "rare%u=x", batch % 5);
        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        for (unsigned i = 0; i < 40; i++) {
                uint32_t stack[2] = { test_location(&t, 0x1000 + 16 * ((i * 7 + batch) % 23)),
                                      test_location(&t, 0x10) };
                const char *const labels[] = { host, "service=api", i % 4 ? NULL : rare, NULL };

                test_sample(&t, STORE_FIXTURE_T0 + (i % 10 == 9) * STORE_FIXTURE_DAY_NS + (batch * 40 + i) * 1000,
                            i + 1, stack, 1 + i % 2, labels);
        }
        check_ok(profile_store_append(fixture.store, &t.p, store_fixture_batch_id(batch), NULL, &err), &err);
        test_profile_deinit(&t);
}

static void fill_store(unsigned first, unsigned flushes)
{
        for (unsigned i = 0; i < flushes; i++) {
                append_mixed(first + i);
                store_fixture_flush(&fixture);
        }
}

static struct compaction_result compact(void)
{
        struct compaction_result r;
        struct error err = { 0 };

        check_ok(profile_store_compact(fixture.store, NULL, NULL, &r, &err), &err);
        return r;
}

#define MERGED_TABLES TABLE_HISTORY /* the tables before it in enum table */

struct store_rows {
        struct table_rows rows[MERGED_TABLES];
};

static struct store_rows read_store_rows(void)
{
        struct store_rows r;

        for (int t = 0; t < MERGED_TABLES; t++)
                r.rows[t] = read_table_rows(fixture.store, t);
        return r;
}

static void store_rows_deinit(struct store_rows *r)
{
        for (int t = 0; t < MERGED_TABLES; t++)
                table_rows_deinit(&r->rows[t]);
}

static void check_rows_are(struct store_rows *before)
{
        struct store_rows now = read_store_rows();

        for (int t = 0; t < MERGED_TABLES; t++)
                check_same_rows(&before->rows[t], &now.rows[t]);
        store_rows_deinit(&now);
}

START_TEST(rows_of_a_day_are_merged_into_one_file)
{
        struct store_rows before;
        struct profile_store_stat stat;
        struct compaction_result r;
        int64_t sum;

        fill_store(0, 12);
        before = read_store_rows();
        sum = store_fixture_sum(&fixture);
        stat = store_fixture_stat(&fixture);
        ck_assert_uint_ge(stat.compaction_backlog_files, 2 * 12);
        ck_assert_uint_gt(stat.compaction_backlog_bytes, 0);
        r = compact();
        ck_assert_uint_ge(r.merges, 4);
        ck_assert_uint_eq(r.failed_partitions + r.skipped_files, 0);
        ck_assert_uint_ge(r.files_before, 12 * 2 + 12);
        stat = store_fixture_stat(&fixture);
        ck_assert_uint_eq(stat.sample_files, 2);
        ck_assert_uint_eq(stat.stack_files, 2);
        ck_assert_uint_eq(stat.location_files, 1);
        ck_assert_uint_eq(stat.compaction_backlog_files, 0);
        check_rows_are(&before);
        ck_assert_int_eq(store_fixture_sum(&fixture), sum);
        ck_assert_uint_eq(compact().merges, 0);
        store_fixture_reopen(&fixture);
        check_rows_are(&before);
        store_rows_deinit(&before);
}
END_TEST

/* "type labels stack time" from a row's text, which has columns sorted by name. */
static void get_sort_text(const char *row, char *ret, size_t size)
{
        static const char *const parts[] = { " profile_type=",  " label_host=", " label_rare",
                                             " label_service=", " stack_id=",   " time=" };
        size_t n = 0;

        ret[0] = 0;
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
                const char *at = strstr(row, parts[i]);

                if (at)
                        n += (size_t)snprintf(ret + n, size - n, "%.*s", (int)strcspn(at + 1, " ") + 1, at);
        }
}

START_TEST(rows_are_sorted_by_type_labels_stack_and_time)
{
        const struct tables *t;

        fill_store(0, 12);
        compact();
        t = fixture.store->tables;
        ck_assert_uint_eq(t->part_count[TABLE_SAMPLES], 2);
        for (size_t i = 0; i < 2; i++) {
                struct table_rows rows = read_part_rows(t->parts[TABLE_SAMPLES][i]);
                char before[512] = "", now[512];

                for (size_t k = 0; k < rows.count; k++, memcpy(before, now, sizeof before)) {
                        get_sort_text(rows.items[k], now, sizeof now);
                        ck_assert_msg(strcmp(before, now) <= 0, "'%s' comes before '%s'", before, now);
                }
                ck_assert_uint_ge(rows.count, 12 * 4);
                table_rows_deinit(&rows);
        }
}
END_TEST

START_TEST(later_and_empty_columns_are_kept)
{
        struct store_rows before;
        struct error err;

        /* The first file has only its own label columns; the schema grows with each flush. */
        for (unsigned i = 0; i < 6; i++) {
                char label[32];
                struct test_profile t;
                uint32_t leaf;

                snprintf(label, sizeof label, "key%u=v%u", i, i);
                test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
                leaf = test_location(&t, 0x1000);
                test_sample(&t, STORE_FIXTURE_T0 + i, 1, &leaf, 1, i ? (const char *const[]){ label, NULL } : NULL);
                check_ok(profile_store_append(fixture.store, &t.p, store_fixture_batch_id(i), NULL, &err), &err);
                test_profile_deinit(&t);
                store_fixture_flush(&fixture);
        }
        before = read_store_rows();
        ck_assert_uint_eq(before.rows[TABLE_SAMPLES].count, 6);
        compact();
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_SAMPLES], 1);
        check_rows_are(&before);
        store_rows_deinit(&before);
        /* A label without values is not in the file, but still in the table. */
        append_mixed(100);
        store_fixture_flush(&fixture);
        ck_assert_uint_eq(fixture.store->tables->columns.count, 5 + 3);
}
END_TEST

START_TEST(labels_without_a_column_are_kept)
{
        struct store_rows before;
        struct error err;

        for (unsigned i = 0; i < 3; i++) {
                struct test_profile t;
                uint32_t leaf;

                test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
                leaf = test_location(&t, 0x1000);
                for (unsigned k = 0; k < LIMIT_LABEL_COLUMNS; k++) {
                        char label[64];

                        snprintf(label, sizeof label, "key_%u_%u=v", i, k);
                        test_sample(&t, STORE_FIXTURE_T0 + k, 1, &leaf, 1,
                                    (const char *const[]){ label, "zone=z", NULL });
                }
                check_ok(profile_store_append(fixture.store, &t.p, store_fixture_batch_id(i), NULL, &err), &err);
                test_profile_deinit(&t);
                store_fixture_flush(&fixture);
        }
        before = read_store_rows();
        ck_assert_ptr_nonnull(strstr(before.rows[TABLE_SAMPLES].items[0], "key"));
        compact();
        check_rows_are(&before);
        store_rows_deinit(&before);
}
END_TEST

/* ---- duplicates ------------------------------------------------------------------------------ */

static void check_last_commit(const char *table, const char *wanted)
{
        _cleanup_free_ char *log = NULL;
        _cleanup_buf_ struct buf text;
        glob_t files;
        struct error err;

        ck_assert_int_gt(asprintf(&log, "%s/tables/%s/_delta_log/*.json", fixture.dir, table), 0);
        ck_assert_int_eq(glob(log, 0, NULL, &files), 0);
        buf_init(&text, MiB(16));
        check_ok(file_read(files.gl_pathv[files.gl_pathc - 1], &text, &err), &err);
        globfree(&files);
        ck_assert_msg(strstr(buf_cstr(&text), wanted), "no %s in %s", wanted, buf_cstr(&text));
}

START_TEST(duplicate_stacks_are_merged_without_data_change)
{
        struct store_rows before;

        append_mixed(0);
        store_fixture_flush(&fixture);
        before = read_store_rows();
        foreign_writer_add_copy(&fixture, TABLE_STACKS, fixture.store->tables->parts[TABLE_STACKS][0], "again.parquet");
        store_fixture_reopen(&fixture);
        ck_assert_uint_eq(compact().merges, 1);
        check_rows_are(&before);
        store_rows_deinit(&before);
        check_last_commit("stacks", "\"dataChange\":false");
        check_last_commit("stacks", "\"OPTIMIZE\"");
}
END_TEST

static void begin_with_symbols(void)
{
        _cleanup_free_ char *index = store_fixture_path(&fixture, "index");
        struct error err;

        check_ok(symbol_index_open(index, false, &symbols, &err), &err);
        fixture.options.symbols = symbols;
        store_fixture_reopen(&fixture);
}

static void load_better_symbols(enum symbol_quality quality, const char *name)
{
        struct error err;

        test_load_symbols(symbols, STORE_FIXTURE_ID, quality, 0, 64, name, "/src/x.c");
        check_ok(profile_store_resymbolize(fixture.store, &(struct resymbolize_request){ 0 }, NULL, &err), &err);
}

static void check_all_names(const char *name)
{
        struct table_rows rows = read_table_rows(fixture.store, TABLE_LOCATIONS);

        ck_assert_uint_gt(rows.count, 0);
        for (size_t i = 0; i < rows.count; i++)
                ck_assert_msg(strstr(rows.items[i], name), "no '%s' in '%s'", name, rows.items[i]);
        table_rows_deinit(&rows);
}

/* The copies are merged before and after the newest file, depending on their names. */
START_TEST(newest_frames_of_duplicate_locations_are_kept)
{
        struct table_rows rows;
        struct tables *raw, *middle;
        size_t count;

        begin_with_symbols();
        append_mixed(0);
        store_fixture_flush(&fixture);
        raw = tables_ref(fixture.store->tables);
        load_better_symbols(QUALITY_SYMTAB, "middle");
        middle = tables_ref(fixture.store->tables);
        load_better_symbols(QUALITY_DWARF, "newest");
        check_all_names("newest");
        foreign_writer_add_copy(&fixture, TABLE_LOCATIONS, raw->parts[TABLE_LOCATIONS][0], "a.parquet");
        foreign_writer_add_copy(&fixture, TABLE_LOCATIONS, middle->parts[TABLE_LOCATIONS][0], "b.parquet");
        foreign_writer_add_copy(&fixture, TABLE_LOCATIONS, raw->parts[TABLE_LOCATIONS][0], "y.parquet");
        foreign_writer_add_copy(&fixture, TABLE_LOCATIONS, middle->parts[TABLE_LOCATIONS][0], "z.parquet");
        count = raw->parts[TABLE_LOCATIONS][0]->rows;
        tables_unref(raw);
        tables_unref(middle);
        store_fixture_reopen(&fixture);
        ck_assert_uint_ge(compact().merges, 1);
        rows = read_table_rows(fixture.store, TABLE_LOCATIONS);
        ck_assert_uint_eq(rows.count, count);
        table_rows_deinit(&rows);
        check_all_names("newest");
        check_last_commit("locations", "\"dataChange\":true"); /* rows that differ are gone */
}
END_TEST

/* The better names have the lower generation, that of another index. */
START_TEST(better_frames_of_duplicate_locations_are_kept)
{
        _cleanup_free_ char *folder = store_fixture_path(&fixture, "index-of-another-node");
        struct symbol_index *first;
        struct tables *worse;
        struct error err;

        begin_with_symbols();
        append_mixed(0);
        store_fixture_flush(&fixture);
        load_better_symbols(QUALITY_SYMTAB, "first");
        load_better_symbols(QUALITY_SYMTAB, "worse");
        check_all_names("worse");
        worse = tables_ref(fixture.store->tables);
        first = symbols;
        check_ok(symbol_index_open(folder, false, &symbols, &err), &err);
        fixture.options.symbols = symbols;
        store_fixture_reopen(&fixture);
        symbol_index_close(first);
        load_better_symbols(QUALITY_DWARF, "better");
        check_all_names("better");
        foreign_writer_add_copy(&fixture, TABLE_LOCATIONS, worse->parts[TABLE_LOCATIONS][0], "a.parquet");
        foreign_writer_add_copy(&fixture, TABLE_LOCATIONS, worse->parts[TABLE_LOCATIONS][0], "z.parquet");
        tables_unref(worse);
        store_fixture_reopen(&fixture);
        ck_assert_uint_ge(compact().merges, 1);
        check_all_names("better");
}
END_TEST

/* ---- other writers and damage ------------------------------------------------------------------ */

static size_t count_files(const char *pattern)
{
        _cleanup_free_ char *path = store_fixture_path(&fixture, pattern);
        glob_t files;
        size_t n = 0;

        if (glob(path, 0, NULL, &files) == 0)
                n = files.gl_pathc;
        globfree(&files);
        return n;
}

START_TEST(merge_is_abandoned_when_input_is_removed)
{
        struct table_rows before, after;
        size_t removed;

        fill_store(0, 4);
        before = read_table_rows(fixture.store, TABLE_SAMPLES);
        removed = fixture.store->tables->parts[TABLE_SAMPLES][1]->rows;
        foreign_writer_remove(&fixture, TABLE_SAMPLES, fixture.store->tables->parts[TABLE_SAMPLES][1]);
        compact(); /* starts with the previous snapshot */
        after = read_table_rows(fixture.store, TABLE_SAMPLES);
        ck_assert_uint_eq(after.count, before.count - removed);
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_SAMPLES], 2);
        ck_assert_uint_eq(count_files("tables/samples/date=*/compact-*"),
                          2); /* the file of the first attempt is removed */
        table_rows_deinit(&before);
        table_rows_deinit(&after);
}
END_TEST

START_TEST(merge_continues_when_another_writer_adds_a_file)
{
        struct table_rows before, after;

        fill_store(0, 4);
        before = read_table_rows(fixture.store, TABLE_SAMPLES);
        foreign_writer_add_copy(&fixture, TABLE_SAMPLES, fixture.store->tables->parts[TABLE_SAMPLES][0],
                                "again.parquet");
        compact();
        after = read_table_rows(fixture.store, TABLE_SAMPLES);
        ck_assert_uint_gt(after.count, before.count);
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_SAMPLES], 2);
        table_rows_deinit(&before);
        table_rows_deinit(&after);
}
END_TEST

START_TEST(damaged_file_is_skipped)
{
        struct compaction_result r;
        const struct table_part *bad;
        int fd;

        fill_store(0, 5);
        bad = fixture.store->tables->parts[TABLE_SAMPLES][2];
        fd = open(bad->path, O_WRONLY | O_CLOEXEC);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(pwrite(fd, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, 30), 8);
        close(fd);
        ck_assert_int_eq(truncate(fixture.store->tables->parts[TABLE_STACKS][0]->path, 100), 0);
        r = compact();
        ck_assert_uint_eq(r.skipped_files, 2);
        ck_assert_uint_eq(r.failed_partitions, 0);
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_SAMPLES], 3);
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_STACKS], 3);
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_LOCATIONS], 1);
        ck_assert_uint_eq(compact().skipped_files, 0); /* not retried */
}
END_TEST

START_TEST(missing_file_is_skipped)
{
        _cleanup_free_ char *path = NULL, *away = NULL;
        struct compaction_result r;
        struct table_rows before, now;

        fill_store(0, 5);
        before = read_table_rows(fixture.store, TABLE_SAMPLES);
        path = strdup(fixture.store->tables->parts[TABLE_SAMPLES][2]->path);
        ck_assert_int_ge(asprintf(&away, "%s.away", path), 0);
        ck_assert_int_eq(rename(path, away), 0);
        ck_assert_int_eq(unlink(fixture.store->tables->parts[TABLE_STACKS][0]->path), 0);
        r = compact();
        ck_assert_uint_eq(r.skipped_files, 2);
        ck_assert_uint_eq(r.failed_partitions, 0);
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_SAMPLES], 3);
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_STACKS], 3);
        ck_assert_uint_eq(compact().skipped_files, 0); /* not retried */
        ck_assert_int_eq(rename(away, path), 0);
        ck_assert_uint_ge(compact().merges, 1); /* except once it is back */
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_SAMPLES], 2);
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_STACKS], 3);
        now = read_table_rows(fixture.store, TABLE_SAMPLES);
        check_same_rows(&before, &now);
        table_rows_deinit(&before);
        table_rows_deinit(&now);
}
END_TEST

START_TEST(file_removed_by_another_writer_is_not_missing)
{
        struct compaction_result r;
        struct table_part *part;

        fill_store(0, 5);
        part = fixture.store->tables->parts[TABLE_SAMPLES][1];
        foreign_writer_remove(&fixture, TABLE_SAMPLES, part);
        ck_assert_int_eq(unlink(part->path), 0);
        r = compact(); /* starts with the previous snapshot */
        ck_assert_uint_eq(r.skipped_files + r.failed_partitions, 0);
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_SAMPLES], 2);
}
END_TEST

START_TEST(failure_is_cleared_once_partition_needs_no_merge)
{
        _cleanup_free_ char *log = store_fixture_path(&fixture, "tables/stacks/_delta_log");
        _cleanup_free_ char *moved = store_fixture_path(&fixture, "tables/stacks/moved");
        struct profile_store_health health;
        struct table_part *const *stacks;
        struct error err;

        fill_store(0, 2);
        ck_assert_int_eq(rename(log, moved), 0);
        for (int i = 0; i < 3; i++)
                ck_assert_int_ne(profile_store_compact(fixture.store, NULL, NULL, NULL, &err), ST_OK);
        ck_assert_int_eq(rename(moved, log), 0);
        profile_store_get_health(fixture.store, &health);
        ck_assert_int_ne(health.compaction_failing_since, 0);
        stacks = fixture.store->tables->parts[TABLE_STACKS]; /* two for each day */
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_STACKS], 4);
        foreign_writer_remove(&fixture, TABLE_STACKS, stacks[0]);
        foreign_writer_remove(&fixture, TABLE_STACKS, stacks[2]);
        foreign_writer_remove(&fixture, TABLE_STACKS, stacks[3]);
        fixture.store->behind = true;
        check_ok(store_reconcile(fixture.store, &err), &err);
        compact();
        profile_store_get_health(fixture.store, &health);
        ck_assert_int_eq(health.compaction_failing_since, 0);
        ck_assert_str_eq(health.compaction_failure, "");
}
END_TEST

/* ---- during a re-symbolization -------------------------------------------------------------------- */

/* The merge of locations is the smallest, so it comes first. */
static void fill_for_locations_first(void)
{
        fill_store(0, 12);
        store_fixture_append(&fixture, 100, 0x9000);
        store_fixture_flush(&fixture);
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_LOCATIONS], 2);
}

/* Until everything else is merged, and a few more calls. */
static bool end_resymbolization(void *context, const struct compaction_result *so_far, uint64_t files_due)
{
        unsigned *calls = context;

        (void)files_due;
        if (so_far->merges == 4 && ++*calls == 5)
                pthread_mutex_unlock(&fixture.store->resymbolize_lock);
        return true;
}

START_TEST(samples_and_stacks_are_merged_during_a_resymbolization)
{
        struct compaction_result r;
        struct error err = { 0 };
        unsigned calls = 0;

        fill_for_locations_first();
        pthread_mutex_lock(&fixture.store->resymbolize_lock);
        check_ok(profile_store_compact(fixture.store, end_resymbolization, &calls, &r, &err), &err);
        ck_assert_uint_eq(r.merges, 5);
        ck_assert_uint_ge(calls, 5);
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_LOCATIONS], 1);
}
END_TEST

static bool end_while_waiting(void *context, const struct compaction_result *so_far, uint64_t files_due)
{
        (void)files_due;
        return so_far->merges < 4 || ++*(unsigned *)context < 3; /* two calls without a merge */
}

START_TEST(compaction_that_waits_for_resymbolization_can_be_cancelled)
{
        struct compaction_result r;
        struct error err = { 0 };
        unsigned calls = 0;

        fill_for_locations_first();
        pthread_mutex_lock(&fixture.store->resymbolize_lock);
        ck_assert_int_eq(profile_store_compact(fixture.store, end_while_waiting, &calls, &r, &err), ST_BUSY);
        ck_assert_uint_eq(r.merges, 4);
        pthread_mutex_unlock(&fixture.store->resymbolize_lock);
}
END_TEST

static size_t count_samples_files(void)
{
        size_t ret;

        pthread_mutex_lock(&fixture.store->lock);
        ret = fixture.store->tables->part_count[TABLE_SAMPLES];
        pthread_mutex_unlock(&fixture.store->lock);
        return ret;
}

START_TEST(the_thread_merges_samples_during_a_resymbolization)
{
        static const struct timespec pause = { .tv_nsec = 1000000 };
        struct profile_store_stat stat;

        for (unsigned i = 0; i < 12; i++) {
                append_mixed(i);
                store_fixture_append(&fixture, 100 + i, 0x9000 + 16 * i);
                store_fixture_flush(&fixture);
        }
        stat = store_fixture_stat(&fixture);
        ck_assert_uint_lt(stat.locations.bytes, stat.samples.bytes / 2); /* they come before the samples of a day */
        fixture.options.compact_interval_ms = 5;
        profile_store_close(fixture.store);
        store_fixture_open(&fixture);
        pthread_mutex_lock(&fixture.store->resymbolize_lock);
        while (count_samples_files() > 4)
                nanosleep(&pause, NULL); /* until the test's time limit */
        pthread_mutex_unlock(&fixture.store->resymbolize_lock);
}
END_TEST

/* ---- a merge in progress ------------------------------------------------------------------------ */

struct other_compaction {
        pthread_t thread;
        struct compaction_result result;
        enum status st;
        struct error err;
};

static void *run_other_compaction(void *context)
{
        struct other_compaction *o = context;

        o->st = profile_store_compact(fixture.store, NULL, NULL, &o->result, &o->err);
        return NULL;
}

/* Starts a compaction in another thread; its first merge is written and waits for the writer lock to commit. */
static void begin_waiting_compaction(struct other_compaction *o)
{
        static const struct timespec pause = { .tv_nsec = 1000000 };

        *o = (struct other_compaction){ 0 };
        pthread_mutex_lock(&fixture.store->writer_lock);
        ck_assert_int_eq(pthread_create(&o->thread, NULL, run_other_compaction, o), 0);
        while (!count_files("tables/*/date=*/compact-*"))
                nanosleep(&pause, NULL); /* until the test's time limit */
}

static void end_waiting_compaction(struct other_compaction *o)
{
        pthread_mutex_unlock(&fixture.store->writer_lock);
        ck_assert_int_eq(pthread_join(o->thread, NULL), 0);
}

static bool end_second_look(void *context, const struct compaction_result *so_far, uint64_t files_due)
{
        unsigned *calls = context;

        (void)files_due;
        ck_assert_uint_eq(so_far->merges, 0);
        return ++*calls < 2;
}

static bool proceed_once(void *context)
{
        unsigned *calls = context;

        return ++*calls < 2;
}

/* Otherwise the shutdown of a service would wait for merges in other processes. */
START_TEST(work_that_waits_for_another_merge_can_be_cancelled)
{
        struct other_compaction other;
        unsigned calls = 0;
        struct error err;

        fill_store(0, 4);
        begin_waiting_compaction(&other);
        ck_assert_int_eq(profile_store_compact(fixture.store, end_second_look, &calls, NULL, &err), ST_BUSY);
        ck_assert_uint_eq(calls, 2);
        calls = 0;
        ck_assert_int_eq(compaction_begin_removal(fixture.store->compaction, proceed_once, &calls, &err), ST_BUSY);
        ck_assert_uint_eq(calls, 2);
        atomic_store(&fixture.store->stopping, true);
        ck_assert_int_eq(compaction_begin_removal(fixture.store->compaction, NULL, NULL, &err), ST_BUSY);
        ck_assert_int_eq(profile_store_compact(fixture.store, NULL, NULL, NULL, &err), ST_BUSY);
        atomic_store(&fixture.store->stopping, false);
        end_waiting_compaction(&other);
        check_ok(other.st, &other.err);
        check_ok(compaction_begin_removal(fixture.store->compaction, NULL, NULL, &err), &err);
        compaction_end_removal(fixture.store->compaction);
}
END_TEST

START_TEST(merge_with_missing_output_is_not_committed_and_repeated)
{
        _cleanup_free_ char *pattern = NULL;
        struct other_compaction other;
        struct store_rows before;
        glob_t files;

        fill_store(0, 4);
        before = read_store_rows();
        pattern = store_fixture_path(&fixture, "tables/*/date=*/compact-*");
        begin_waiting_compaction(&other);
        ck_assert_int_eq(glob(pattern, 0, NULL, &files), 0);
        for (size_t i = 0; i < files.gl_pathc; i++) /* like the search for orphans after a suspend */
                ck_assert_int_eq(unlink(files.gl_pathv[i]), 0);
        globfree(&files);
        end_waiting_compaction(&other);
        ck_assert_int_eq(other.st, ST_OS);
        ck_assert_uint_eq(other.result.failed_partitions, 1);
        ck_assert_ptr_nonnull(strstr(other.err.text, "compact-"));
        check_rows_are(&before);
        ck_assert_uint_eq(compact().merges, 1);
        check_rows_are(&before);
        store_rows_deinit(&before);
}
END_TEST

struct other_expiry {
        pthread_t thread;
        struct expiry removed;
        enum status st;
        struct error err;
};

static void *run_other_expiry(void *context)
{
        const struct sample_limits limits = { .age_s = 86400 };
        const struct expiry_request request = { .limits = &limits };
        struct other_expiry *o = context;

        o->st = profile_store_expire(fixture.store, &request, &o->removed, &o->err);
        return NULL;
}

static void drop_first_day(struct table_rows *r)
{
        size_t kept = 0;

        for (size_t i = 0; i < r->count; i++) {
                const char *at = strstr(r->items[i], " time=");

                ck_assert_ptr_nonnull(at);
                if (atoll(at + 6) < (STORE_FIXTURE_T0 + STORE_FIXTURE_DAY_NS) / 1000)
                        free(r->items[i]);
                else
                        r->items[kept++] = r->items[i];
        }
        ck_assert_uint_lt(kept, r->count);
        r->count = kept;
}

/* Both need the writer lock to commit. In either order the day is removed, and no merge restores it. */
START_TEST(day_expired_during_merge_is_not_restored)
{
        for (int round = 0; round < 8; round++) {
                struct other_expiry expiry = { 0 };
                struct other_compaction other;
                struct table_rows wanted, left;

                if (round) { /* the store opened by the fixture */
                        tear_down();
                        set_up();
                }
                fill_store(0, 4);
                wanted = read_table_rows(fixture.store, TABLE_SAMPLES);
                drop_first_day(&wanted);
                begin_waiting_compaction(&other);
                ck_assert_int_eq(pthread_create(&expiry.thread, NULL, run_other_expiry, &expiry), 0);
                if (round % 2)
                        sched_yield();
                end_waiting_compaction(&other);
                ck_assert_int_eq(pthread_join(expiry.thread, NULL), 0);
                check_ok(other.st, &other.err);
                check_ok(expiry.st, &expiry.err);
                ck_assert_uint_gt(expiry.removed.count, 0);
                expiry_deinit(&expiry.removed);
                left = read_table_rows(fixture.store, TABLE_SAMPLES);
                check_same_rows(&wanted, &left);
                table_rows_deinit(&left);
                compact();
                store_fixture_reopen(&fixture);
                left = read_table_rows(fixture.store, TABLE_SAMPLES);
                check_same_rows(&wanted, &left);
                for (int t = 0; t <= TABLE_STACKS; t++)
                        ck_assert_uint_eq(fixture.store->tables->part_count[t], 1);
                table_rows_deinit(&left);
                table_rows_deinit(&wanted);
        }
}
END_TEST

START_TEST(failed_partition_does_not_stop_others)
{
        struct profile_store_health health;
        struct store_rows before;
        _cleanup_free_ char *log = NULL, *moved = NULL;
        struct error err;

        fill_store(0, 5);
        before = read_store_rows();
        log = store_fixture_path(&fixture, "tables/stacks/_delta_log");
        moved = store_fixture_path(&fixture, "tables/stacks/moved");
        ck_assert_int_eq(rename(log, moved), 0);
        for (int i = 0; i < 3; i++) {
                struct compaction_result r;

                profile_store_get_health(fixture.store, &health);
                ck_assert_int_eq(health.compaction_failing_since, 0);
                ck_assert_int_ne(profile_store_compact(fixture.store, NULL, NULL, &r, &err), ST_OK);
                ck_assert_uint_ge(r.failed_partitions, 1);
        }
        profile_store_get_health(fixture.store, &health);
        ck_assert_int_ne(health.compaction_failing_since, 0);
        ck_assert_ptr_nonnull(strstr(health.compaction_failure, "stacks"));
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_SAMPLES], 2);
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_LOCATIONS], 1);
        ck_assert_int_eq(rename(moved, log), 0);
        compact();
        profile_store_get_health(fixture.store, &health);
        ck_assert_int_eq(health.compaction_failing_since, 0);
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_STACKS], 2);
        check_rows_are(&before);
        store_rows_deinit(&before);
}
END_TEST

/* ---- merges without a store ------------------------------------------------------------------------- */

static enum status proceed_always(void *context, uint64_t bytes, struct error *err)
{
        (void)err;
        *(uint64_t *)context += bytes;
        return ST_OK;
}

static enum status merge_part_list(struct table_part *const *parts, size_t count, unsigned outputs,
                                   struct merge_result *ret, struct error *err)
{
        uint64_t bytes = 0;
        size_t failed;
        const struct part_merge_request request = { .logs = &fixture.store->logs,
                                                    .table = TABLE_SAMPLES,
                                                    .columns = &fixture.store->tables->columns,
                                                    .parts = parts,
                                                    .part_count = count,
                                                    .output_count = outputs,
                                                    .proceed = proceed_always,
                                                    .context = &bytes };
        enum status st = merge_parts(&request, ret, &failed, err);

        if (!st)
                ck_assert_uint_ge(bytes, ret->bytes_written);
        return st;
}

static struct table_rows read_merged_rows(const struct merge_result *m)
{
        struct table_rows rows = { 0 };

        for (size_t i = 0; i < m->add_count; i++) {
                _cleanup_free_ char *key = make_table_key(TABLE_SAMPLES, m->adds[i].name);
                struct table_part part = { .storage = fixture.store->storage, .path = key, .key = key };
                struct table_rows more = read_part_rows(&part);

                rows.items = realloc(rows.items, (rows.count + more.count) * sizeof *rows.items);
                memcpy(rows.items + rows.count, more.items, more.count * sizeof *more.items);
                rows.count += more.count;
                free(more.items);
        }
        return rows;
}

START_TEST(large_merge_is_split_into_consecutive_files)
{
        struct table_part *const *parts;
        struct merge_result m;
        struct table_rows rows;
        char before[512] = "", now[512];
        struct error err = { 0 };

        for (unsigned i = 0; i < 3; i++) { /* more rows than are copied at a time */
                for (unsigned k = 0; k < 300; k++)
                        append_mixed(i * 300 + k);
                store_fixture_flush(&fixture);
        }
        parts = fixture.store->tables->parts[TABLE_SAMPLES];
        check_ok(merge_part_list(parts, 3, 2, &m, &err), &err);
        ck_assert_uint_eq(m.add_count, 2);
        ck_assert_uint_eq(m.rows_read, m.rows_written);
        ck_assert_uint_ge(m.adds[0].written.rows, m.rows_written / 3);
        rows = read_merged_rows(&m);
        ck_assert_uint_eq(rows.count, m.rows_read);
        for (size_t k = 0; k < rows.count; k++, memcpy(before, now, sizeof before)) {
                get_sort_text(rows.items[k], now, sizeof now);
                ck_assert_msg(strcmp(before, now) <= 0, "'%s' comes before '%s'", before, now);
        }
        table_rows_deinit(&rows);
        merge_result_discard(&fixture.store->logs, TABLE_SAMPLES, &m);
        ck_assert_uint_eq(count_files("tables/samples/date=*/compact-*"), 0);
        merge_result_deinit(&m);
}
END_TEST

/* A file with overlapping row groups, as another program or an older version may have written it. */
static struct table_part *write_unsorted_part(const char *path)
{
        struct table_part *part = calloc(1, sizeof *part);
        struct parquet_writer_options o = { .size = sizeof o, .row_group_rows = 4 };
        const struct parquet_field *fields;
        struct parquet_writer *w;
        struct arena a;
        size_t count;
        struct error err;
        struct stat st;
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

        arena_init(&a, MiB(1));
        check_ok(make_table_fields(&a, TABLE_SAMPLES, NULL, false, &fields, &count, &err), &err);
        check_ok(parquet_writer_create(fd, path, fields, count, &o, &w, &err), &err);
        for (unsigned i = 0; i < 12; i++) {
                uint8_t stack[16] = { (uint8_t)(i * 37) };

                for (size_t f = 0; f < count; f++) {
                        uint32_t node = parquet_writer_node(w, fields[f].name);

                        if (strcmp(fields[f].name, "profile_type") == 0)
                                parquet_put_str(w, node, i % 3 ? "b" : "a");
                        else if (strcmp(fields[f].name, "unit") == 0)
                                parquet_put_str(w, node, "count");
                        else if (strcmp(fields[f].name, "stack_id") == 0)
                                parquet_put_bytes(w, node, stack, sizeof stack);
                        else if (strcmp(fields[f].name, "time") == 0 || strcmp(fields[f].name, "value") == 0)
                                parquet_put_int(w, node, STORE_FIXTURE_T0 / 1000 + (i * 5) % 12);
                        else
                                parquet_put_null(w, node);
                }
                check_ok(parquet_writer_end_rows(w, 1, &err), &err);
        }
        check_ok(parquet_writer_finish(w, &err), &err);
        parquet_writer_destroy(w);
        arena_deinit(&a);
        ck_assert_int_eq(fstat(fd, &st), 0);
        close(fd);
        part->storage = disk_storage();
        part->path = strdup(path);
        part->key = part->path + 1;
        part->bytes = (uint64_t)st.st_size;
        part->has_day = true;
        return part;
}

START_TEST(overlapping_row_groups_are_sorted)
{
        _cleanup_free_ char *path = store_fixture_path(&fixture, "unsorted.parquet");
        struct table_part *part = write_unsorted_part(path), *two[2] = { part, part };
        struct table_rows before = read_part_rows(part), after;
        char last[512] = "", now[512];
        struct merge_result m;
        struct error err = { 0 };

        check_ok(merge_part_list(two, 2, 1, &m, &err), &err);
        after = read_merged_rows(&m);
        ck_assert_uint_eq(after.count, 24);
        for (size_t i = 0; i < after.count; i++, memcpy(last, now, sizeof last)) {
                get_sort_text(after.items[i], now, sizeof now);
                ck_assert_msg(strcmp(last, now) <= 0, "'%s' comes before '%s'", last, now);
                for (size_t k = 0; k < before.count; k++) { /* each row of the first is stored twice */
                        if (strcmp(before.items[k], after.items[i]) != 0)
                                continue;
                        before.items[k][0]++;
                        break;
                }
        }
        table_rows_deinit(&before);
        table_rows_deinit(&after);
        merge_result_discard(&fixture.store->logs, TABLE_SAMPLES, &m);
        merge_result_deinit(&m);
        free(part->path);
        free(part);
}
END_TEST

static enum status select_row_groups(void *context, const struct part_file *f, uint32_t group, uint8_t *rows,
                                     struct error *err)
{
        return row_selector_mark(context, f, group, rows, err);
}

/* Rows are selected by their position in the file, and merged in another order. */
START_TEST(dropped_rows_are_omitted_from_row_groups_in_any_order)
{
        const struct scan_filter filter = { INT64_MIN, INT64_MAX, "a", NULL, 0 };
        _cleanup_free_ char *path = store_fixture_path(&fixture, "unsorted.parquet");
        struct table_part *part = write_unsorted_part(path);
        struct table_rows before = read_part_rows(part), after;
        struct row_selector *selector;
        uint64_t bytes = 0;
        struct part_merge_request request = { .logs = &fixture.store->logs,
                                              .table = TABLE_SAMPLES,
                                              .columns = &fixture.store->tables->columns,
                                              .parts = &part,
                                              .part_count = 1,
                                              .output_count = 1,
                                              .proceed = proceed_always,
                                              .context = &bytes,
                                              .select_dropped = select_row_groups };
        struct merge_result m;
        size_t failed, found = 0;
        struct error err = { 0 };

        check_ok(row_selector_create(&filter, &selector, &err), &err);
        request.drop_context = selector;
        check_ok(merge_parts(&request, &m, &failed, &err), &err);
        ck_assert_uint_eq(m.rows_read, 12);
        ck_assert_uint_eq(m.rows_written, 8);
        after = read_merged_rows(&m);
        for (size_t i = 0; i < before.count; i++) {
                for (size_t k = 0; k < after.count; k++)
                        found += strcmp(before.items[i], after.items[k]) == 0;
        }
        ck_assert_uint_eq(found, 8);
        for (size_t k = 0; k < after.count; k++)
                ck_assert_ptr_nonnull(strstr(after.items[k], "profile_type=b"));
        row_selector_destroy(selector);
        table_rows_deinit(&before);
        table_rows_deinit(&after);
        merge_result_discard(&fixture.store->logs, TABLE_SAMPLES, &m);
        merge_result_deinit(&m);
        free(part->path);
        free(part);
}
END_TEST

/* All rows of files whose path contains this text. */
static enum status select_file(void *context, const struct part_file *f, uint32_t group, uint8_t *rows,
                               struct error *err)
{
        uint64_t count = parquet_file_group_rows(f->file, group);

        (void)err;
        for (uint64_t i = 0; i < count; i++)
                rows[i] = strstr(f->path, context) != NULL;
        return ST_OK;
}

/* Of two files with the same stacks one is dropped, or both. */
START_TEST(undropped_row_of_equal_ids_is_kept)
{
        static const struct {
                const char *dropped;
                unsigned kept; /* of two files */
        } cases[] = { { "copy", 1 }, { "part-", 1 }, { "parquet", 0 }, { "none", 1 } };

        fill_store(0, 1);
        foreign_writer_add_copy(&fixture, TABLE_STACKS, fixture.store->tables->parts[TABLE_STACKS][0], "copy.parquet");
        store_fixture_reopen(&fixture);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                uint64_t bytes = 0,
                         rows = fixture.store->tables->parts[TABLE_STACKS][1]->rows; /* the copy has no statistics */
                char dropped[16];
                const struct part_merge_request request = { .logs = &fixture.store->logs,
                                                            .table = TABLE_STACKS,
                                                            .parts = fixture.store->tables->parts[TABLE_STACKS],
                                                            .part_count = 2,
                                                            .output_count = 1,
                                                            .proceed = proceed_always,
                                                            .context = &bytes,
                                                            .select_dropped = select_file,
                                                            .drop_context = dropped };
                struct merge_result m;
                size_t failed;
                struct error err = { 0 };

                snprintf(dropped, sizeof dropped, "%s", cases[i].dropped);
                check_ok(merge_parts(&request, &m, &failed, &err), &err);
                ck_assert_uint_eq(m.rows_read, 2 * rows);
                ck_assert_uint_eq(m.rows_written, cases[i].kept * rows);
                merge_result_discard(&fixture.store->logs, TABLE_STACKS, &m);
                merge_result_deinit(&m);
        }
}
END_TEST

START_TEST(outputs_inherit_retention_rules_applied_to_all_inputs)
{
        fill_store(0, 2);
        for (size_t i = 0; i < fixture.store->tables->part_count[TABLE_SAMPLES]; i++) {
                struct table_part *part = fixture.store->tables->parts[TABLE_SAMPLES][i];

                atomic_store(&part->done_rules, part->day == 20000 ? i % 2 ? 3 : 6 : 5);
        }
        compact();
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_SAMPLES], 2);
        ck_assert_uint_eq(atomic_load(&fixture.store->tables->parts[TABLE_SAMPLES][0]->done_rules), 2);
        ck_assert_uint_eq(atomic_load(&fixture.store->tables->parts[TABLE_SAMPLES][1]->done_rules), 5);
}
END_TEST

static enum status stop_at_once(void *context, uint64_t bytes, struct error *err)
{
        (void)context;
        (void)bytes;
        return error_set(err, ST_BUSY, "stopped by a test");
}

START_TEST(cancelled_merge_leaves_no_files)
{
        struct merge_result m = { 0 };
        struct error err = { 0 };
        size_t failed;

        fill_store(0, 4);
        {
                const struct part_merge_request request = { .logs = &fixture.store->logs,
                                                            .table = TABLE_SAMPLES,
                                                            .columns = &fixture.store->tables->columns,
                                                            .parts = fixture.store->tables->parts[TABLE_SAMPLES],
                                                            .part_count = 2,
                                                            .output_count = 1,
                                                            .proceed = stop_at_once };

                ck_assert_int_eq(merge_parts(&request, &m, &failed, &err), ST_BUSY);
        }
        ck_assert_uint_eq(failed, MERGE_NO_PART);
        ck_assert_uint_eq(count_files("tables/samples/date=*/compact-*"), 0);
        ck_assert_uint_eq(count_files("tables/samples/date=*/.tmp-*"), 0);
}
END_TEST

static bool stop_after_first(void *context, const struct compaction_result *so_far, uint64_t files_due)
{
        ck_assert_uint_ge(files_due, 2);
        *(unsigned *)context += 1;
        return so_far->merges < 1;
}

START_TEST(progress_callback_is_called_and_can_cancel)
{
        unsigned calls = 0;
        struct error err;

        fill_store(0, 4);
        ck_assert_int_eq(profile_store_compact(fixture.store, stop_after_first, &calls, NULL, &err), ST_BUSY);
        ck_assert_uint_eq(calls, 1);
        compact();
}
END_TEST

/* With little memory fewer files are merged at a time, until all are merged. */
START_TEST(merge_without_memory_uses_fewer_files)
{
        struct memory_reservation taken = { .use = MEMORY_COMPACTION };
        struct store_rows before;
        struct error err;

        check_ok(memory_budget_set_limit(LIMIT_MEMORY_LEAST_BYTES, &err), &err);
        fill_store(0, 20);
        before = read_store_rows();
        check_ok(memory_reserve(&taken, memory_use_ceiling(MEMORY_COMPACTION) - KiB(256), &err), &err);
        compact();
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_SAMPLES], 2);
        check_rows_are(&before);
        store_rows_deinit(&before);
        ck_assert_uint_eq(memory_use_held(MEMORY_COMPACTION), taken.bytes);
        memory_release(&taken);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("compaction", rows_of_a_day_are_merged_into_one_file,
                        rows_are_sorted_by_type_labels_stack_and_time, later_and_empty_columns_are_kept,
                        labels_without_a_column_are_kept, duplicate_stacks_are_merged_without_data_change,
                        newest_frames_of_duplicate_locations_are_kept, better_frames_of_duplicate_locations_are_kept,
                        merge_is_abandoned_when_input_is_removed, merge_continues_when_another_writer_adds_a_file,
                        damaged_file_is_skipped, missing_file_is_skipped, file_removed_by_another_writer_is_not_missing,
                        failure_is_cleared_once_partition_needs_no_merge,
                        samples_and_stacks_are_merged_during_a_resymbolization,
                        compaction_that_waits_for_resymbolization_can_be_cancelled,
                        the_thread_merges_samples_during_a_resymbolization,
                        work_that_waits_for_another_merge_can_be_cancelled, day_expired_during_merge_is_not_restored,
                        merge_with_missing_output_is_not_committed_and_repeated, failed_partition_does_not_stop_others,
                        large_merge_is_split_into_consecutive_files, overlapping_row_groups_are_sorted,
                        dropped_rows_are_omitted_from_row_groups_in_any_order, undropped_row_of_equal_ids_is_kept,
                        outputs_inherit_retention_rules_applied_to_all_inputs, cancelled_merge_leaves_no_files,
                        progress_callback_is_called_and_can_cancel, merge_without_memory_uses_fewer_files)
