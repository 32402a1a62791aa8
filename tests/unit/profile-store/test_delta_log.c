/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With DELTA_SAMPLES the tests keep their tables in that directory; tests/e2e/store/parquet-readers.t reads them with
 * other readers.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "parquet/parquet_writer.h"
#include "profile-store/delta/delta_log.h"
#include "storage/local_storage.h"
#include "tests/support/disk_storage.h"
#include "tests/support/faulty_storage.h"
#include "tests/support/suite.h"

static const struct parquet_field one_column[] = { { .name = "n", .kind = PARQUET_INT64, .optional = true } };

static const struct parquet_field frame_fields[] = {
        { .name = "function", .kind = PARQUET_STRING, .optional = true },
        { .name = "line", .kind = PARQUET_INT64, .optional = true },
};
static const struct parquet_field frame[] = {
        { .name = "element", .kind = PARQUET_STRUCT, .optional = true, .children = frame_fields, .child_count = 2 },
};
static const struct parquet_field id_element[] = { { .name = "element", .kind = PARQUET_INT64, .optional = true } };
static const struct parquet_field key_value[] = {
        { .name = "key", .kind = PARQUET_STRING },
        { .name = "value", .kind = PARQUET_STRING, .optional = true },
};
/* The last two are added to the schema later; the first is the partition column, which files do not contain. */
static const struct parquet_field make_table_fields[] = {
        { .name = "date", .kind = PARQUET_DATE, .optional = true },
        { .name = "time", .kind = PARQUET_TIMESTAMP, .optional = true },
        { .name = "value", .kind = PARQUET_INT64, .optional = true },
        { .name = "stack_id", .kind = PARQUET_BINARY, .optional = true },
        { .name = "ids", .kind = PARQUET_LIST, .optional = true, .children = id_element, .child_count = 1 },
        { .name = "frames", .kind = PARQUET_LIST, .optional = true, .children = frame, .child_count = 1 },
        { .name = "label_pod", .kind = PARQUET_STRING, .optional = true },
        { .name = "labels_rest", .kind = PARQUET_MAP, .optional = true, .children = key_value, .child_count = 2 },
};
static const char *const partition_columns[] = { "date" };

#define OK(call)                                                                                                       \
        do {                                                                                                           \
                struct error err = { 0 };                                                                              \
                ck_assert_msg(!(call), "%s", err.text);                                                                \
        } while (0)

static char *new_dir(const char *name)
{
        const char *base = getenv("DELTA_SAMPLES");
        char template[] = "/tmp/delta-log-XXXXXX";

        return path_join(base ? base : mkdtemp(template), name);
}

static void drop_dir(char *dir)
{
        if (!getenv("DELTA_SAMPLES")) {
                char *slash = strrchr(dir, '/');

                *slash = 0;
                OK(file_remove_tree(dir, &err));
        }
        free(dir);
}

static struct delta_table *new_table(const char *dir)
{
        struct delta_table *t = NULL;

        OK(delta_table_create(disk_storage(), dir + 1, one_column, 1, NULL, 0, NULL, &err));
        OK(delta_table_open(disk_storage(), dir + 1, &t, &err));
        return t;
}

static enum status add_file(struct delta_table *t, const char *path, struct error *err)
{
        struct delta_add add = { .path = path, .size = 10, .stats = "{\"numRecords\":3}" };
        struct delta_commit c = { .size = sizeof c, .adds = &add, .add_count = 1 };

        return delta_commit(t, &c, err);
}

static size_t file_count(struct delta_table *t)
{
        struct delta_snapshot *s = NULL;
        size_t n;

        OK(delta_snapshot_acquire(t, &s, &err));
        n = s->file_count;
        delta_snapshot_release(s);
        return n;
}

START_TEST(created_table_is_empty_at_version_0)
{
        char *dir = new_dir("created");
        struct delta_table *t = new_table(dir);
        struct delta_snapshot *s = NULL;

        OK(delta_snapshot_acquire(t, &s, &err));
        ck_assert_uint_eq(s->version, 0);
        ck_assert_uint_eq(s->file_count, 0);
        ck_assert_str_eq(s->schema_json, "{\"type\":\"struct\",\"fields\":[{\"name\":\"n\",\"type\":\"long\","
                                         "\"nullable\":true,\"metadata\":{}}]}");
        delta_snapshot_release(s);
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

START_TEST(creating_twice_is_busy)
{
        char *dir = new_dir("twice");
        struct delta_table *t = new_table(dir);

        ck_assert_int_eq(delta_table_create(disk_storage(), dir + 1, one_column, 1, NULL, 0, NULL, NULL), ST_BUSY);
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

START_TEST(absent_table_is_not_found)
{
        struct delta_table *t = NULL;

        ck_assert_int_eq(delta_table_open(disk_storage(), "nonexistent/table", &t, NULL), ST_NOT_FOUND);
        ck_assert_ptr_null(t);
}
END_TEST

START_TEST(second_writer_is_busy_and_sees_first_after_refresh)
{
        char *dir = new_dir("race");
        struct delta_table *a = new_table(dir);
        struct delta_table *b = NULL;

        OK(delta_table_open(disk_storage(), dir + 1, &b, &err));
        OK(add_file(a, "a.parquet", &err));
        ck_assert_int_eq(add_file(b, "b.parquet", NULL), ST_BUSY);
        ck_assert_uint_eq(file_count(b), 0);
        OK(delta_table_refresh(b, &err));
        ck_assert_uint_eq(file_count(b), 1);
        OK(add_file(b, "b.parquet", &err));
        OK(delta_table_refresh(a, &err));
        ck_assert_uint_eq(file_count(a), 2);
        delta_table_close(a);
        delta_table_close(b);
        drop_dir(dir);
}
END_TEST

/* In an object store each call is a request. */
START_TEST(calls_of_a_refresh_and_of_opening_are_few)
{
        char *dir = new_dir("calls");
        struct delta_table *t = new_table(dir);
        struct storage *inner = NULL;
        struct faulty_storage *counted;

        OK(add_file(t, "a", &err));
        delta_table_close(t);
        OK(local_storage_open(dir, &inner, &err));
        counted = faulty_storage_create(inner);
        OK(delta_table_open(&counted->storage, "", &t, &err));
        ck_assert_uint_eq(counted->calls, 1 + 2); /* the list, two commits */
        faulty_storage_set(counted, STORAGE_FAULT_NONE, 0);
        OK(delta_table_refresh(t, &err));
        ck_assert_uint_eq(counted->calls, 2); /* the next commit, which is not there, and whether this one is */
        delta_table_close(t);
        storage_close(&counted->storage);
        drop_dir(dir);
}
END_TEST

START_TEST(snapshot_outlives_removal_and_table)
{
        char *dir = new_dir("snapshot");
        struct delta_table *t = new_table(dir);
        const char *remove[] = { "a.parquet" };
        struct delta_commit c = { .size = sizeof c, .removes = remove, .remove_count = 1 };
        struct delta_snapshot *s = NULL;

        OK(add_file(t, "a.parquet", &err));
        OK(delta_snapshot_acquire(t, &s, &err));
        OK(delta_commit(t, &c, &err));
        ck_assert_uint_eq(file_count(t), 0);
        delta_table_close(t);
        ck_assert_uint_eq(s->version, 1);
        ck_assert_uint_eq(s->file_count, 1);
        ck_assert_str_eq(s->files[0]->path, "a.parquet");
        delta_snapshot_release(s);
        drop_dir(dir);
}
END_TEST

START_TEST(invalid_commits_change_nothing)
{
        char *dir = new_dir("senseless");
        struct delta_table *t = new_table(dir);
        const char *remove[] = { "no.parquet" };
        struct delta_commit gone = { .size = sizeof gone, .removes = remove, .remove_count = 1 };
        static const struct parquet_field other[] = { { .name = "n", .kind = PARQUET_STRING, .optional = true } };
        static const struct parquet_field required[] = { { .name = "n", .kind = PARQUET_INT64, .optional = true },
                                                         { .name = "m", .kind = PARQUET_INT64 } };
        struct delta_commit changed = { .size = sizeof changed, .fields = other, .field_count = 1 };
        struct delta_commit needed = { .size = sizeof needed, .fields = required, .field_count = 2 };

        OK(add_file(t, "a.parquet", &err));
        ck_assert_int_eq(delta_commit(t, &gone, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(delta_commit(t, &changed, NULL), ST_USAGE);
        ck_assert_int_eq(delta_commit(t, &needed, NULL), ST_USAGE);
        ck_assert_int_eq(add_file(t, "a.parquet", NULL), ST_USAGE);
        ck_assert_int_eq(add_file(t, "../a.parquet", NULL), ST_BAD_DATA);
        ck_assert_int_eq(add_file(t, "a b.parquet", NULL), ST_USAGE);
        ck_assert_uint_eq(file_count(t), 1);
        OK(delta_table_refresh(t, &err));
        ck_assert_uint_eq(file_count(t), 1);
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

START_TEST(application_transaction_is_kept)
{
        char *dir = new_dir("txn");
        struct delta_table *t = new_table(dir);
        struct delta_commit c = { .size = sizeof c, .app_id = "flush", .txn_version = 41 };

        ck_assert_int_eq(delta_table_get_txn_version(t, "flush"), -1);
        OK(delta_commit(t, &c, &err));
        c.txn_version = 42;
        OK(delta_commit(t, &c, &err));
        OK(delta_checkpoint(t, &err));
        delta_table_close(t);
        OK(delta_table_open(disk_storage(), dir + 1, &t, &err));
        ck_assert_int_eq(delta_table_get_txn_version(t, "flush"), 42);
        ck_assert_int_eq(delta_table_get_txn_version(t, "other"), -1);
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

static void unlink_commit(const char *dir, unsigned version)
{
        _cleanup_free_ char *path = NULL;

        ck_assert_int_gt(asprintf(&path, "%s/_delta_log/%020u.json", dir, version), 0);
        ck_assert_int_eq(unlink(path), 0);
}

START_TEST(checkpoint_replaces_earlier_commits)
{
        char *dir = new_dir("checkpoint");
        struct delta_table *t = new_table(dir);
        const char *remove[] = { "f7.parquet" };
        struct delta_commit c = { .size = sizeof c, .removes = remove, .remove_count = 1 };
        struct delta_snapshot *s = NULL;

        for (int i = 1; i < DELTA_CHECKPOINT_INTERVAL; i++) {
                char name[32];

                snprintf(name, sizeof name, "f%d.parquet", i);
                OK(add_file(t, name, &err));
        }
        OK(delta_commit(t, &c, &err)); /* version 100 writes a checkpoint */
        OK(add_file(t, "last.parquet", &err));
        delta_table_close(t);
        for (unsigned v = 0; v < DELTA_CHECKPOINT_INTERVAL; v++)
                unlink_commit(dir, v);
        OK(delta_table_open(disk_storage(), dir + 1, &t, &err));
        OK(delta_snapshot_acquire(t, &s, &err));
        ck_assert_uint_eq(s->version, DELTA_CHECKPOINT_INTERVAL + 1);
        ck_assert_uint_eq(s->file_count, DELTA_CHECKPOINT_INTERVAL - 1);
        ck_assert_str_eq(s->files[0]->path, "f1.parquet");
        ck_assert_str_eq(s->files[0]->stats, "{\"numRecords\":3}");
        ck_assert_uint_eq(s->files[0]->size, 10);
        ck_assert_ptr_nonnull(strstr(s->schema_json, "\"name\":\"n\""));
        delta_snapshot_release(s);
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

/* The removed files remembered by the table; at most one. */
static size_t get_removed(struct delta_table *t, char path[64], struct delta_file *ret)
{
        struct delta_snapshot *s = NULL;
        size_t n;

        OK(delta_removed_acquire(t, &s, &err));
        n = s->file_count;
        ck_assert_uint_le(n, 1);
        if (n) {
                *ret = *s->files[0];
                snprintf(path, 64, "%s", s->files[0]->path);
                ck_assert_uint_eq(ret->partition_count, 0);
                ck_assert_ptr_null(ret->stats);
        }
        delta_snapshot_release(s);
        return n;
}

START_TEST(removed_files_are_remembered_through_checkpoints_until_forgotten)
{
        char *dir = new_dir("removed"), path[64];
        struct delta_table *t = new_table(dir);
        const char *remove[] = { "a.parquet" };
        struct delta_commit c = { .size = sizeof c, .removes = remove, .remove_count = 1, .rearranges = true };
        struct delta_file removed, again;

        OK(add_file(t, "a.parquet", &err));
        OK(add_file(t, "b.parquet", &err));
        OK(delta_commit(t, &c, &err));
        ck_assert_uint_eq(get_removed(t, path, &removed), 1);
        ck_assert_str_eq(path, "a.parquet");
        ck_assert_uint_eq(removed.size, 10);
        ck_assert(!removed.removal_changes_data);
        ck_assert_int_gt(removed.removed_ms, INT64_C(1700000000000));
        OK(delta_checkpoint(t, &err));
        OK(add_file(t, "c.parquet", &err));
        for (unsigned v = 0; v <= 3; v++)
                unlink_commit(dir, v); /* only stored in the checkpoint */
        delta_table_close(t);
        OK(delta_table_open(disk_storage(), dir + 1, &t, &err));
        ck_assert_uint_eq(get_removed(t, path, &again), 1);
        ck_assert_str_eq(path, "a.parquet");
        ck_assert_int_eq(again.removed_ms, removed.removed_ms);
        ck_assert_uint_eq(again.size, 10);
        ck_assert(!again.removal_changes_data);
        again.path = path;
        again.removed_ms++;
        delta_table_forget(t, &again); /* another removal of the same path */
        ck_assert_uint_eq(get_removed(t, path, &removed), 1);
        again.removed_ms--;
        delta_table_forget(t, &again);
        ck_assert_uint_eq(get_removed(t, path, &removed), 0);
        OK(delta_checkpoint(t, &err));
        delta_table_close(t);
        OK(delta_table_open(disk_storage(), dir + 1, &t, &err));
        ck_assert_uint_eq(get_removed(t, path, &removed), 0);
        ck_assert_uint_eq(file_count(t), 2);
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

START_TEST(path_added_again_is_not_removed)
{
        char *dir = new_dir("re-added"), path[64];
        struct delta_table *t = new_table(dir);
        const char *remove[] = { "a.parquet" };
        struct delta_commit c = { .size = sizeof c, .removes = remove, .remove_count = 1 };
        struct delta_file removed;

        OK(add_file(t, "a.parquet", &err));
        OK(delta_commit(t, &c, &err));
        ck_assert_uint_eq(get_removed(t, path, &removed), 1);
        ck_assert(removed.removal_changes_data);
        OK(add_file(t, "a.parquet", &err));
        ck_assert_uint_eq(get_removed(t, path, &removed), 0);
        delta_table_close(t);
        OK(delta_table_open(disk_storage(), dir + 1, &t, &err));
        ck_assert_uint_eq(get_removed(t, path, &removed), 0);
        ck_assert_uint_eq(file_count(t), 1);
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

/* The text of a commit; owned. */
static char *read_commit(const char *dir, unsigned version)
{
        _cleanup_free_ char *path = NULL;
        _cleanup_buf_ struct buf text;

        buf_init(&text, MiB(1));
        ck_assert_int_gt(asprintf(&path, "%s/_delta_log/%020u.json", dir, version), 0);
        OK(file_read(path, &text, &err));
        return strndup((const char *)text.data, text.size);
}

START_TEST(retention_is_written_once_and_kept_by_schema_change)
{
        static const struct parquet_field two[] = { { .name = "n", .kind = PARQUET_INT64, .optional = true },
                                                    { .name = "m", .kind = PARQUET_INT64, .optional = true } };
        struct delta_retention hour = { .removed_s = 3600, .log_s = 7200 },
                               day = { .removed_s = 86400, .log_s = 86400 };
        struct delta_commit grown = { .size = sizeof grown, .fields = two, .field_count = 2 };
        char *dir = new_dir("retention");
        _cleanup_free_ char *created = NULL, *changed = NULL, *schema = NULL, *added = NULL;
        struct delta_table *t = NULL;
        struct delta_snapshot *s = NULL;

        OK(delta_table_create(disk_storage(), dir + 1, one_column, 1, NULL, 0, &hour, &err));
        OK(delta_table_open(disk_storage(), dir + 1, &t, &err));
        created = read_commit(dir, 0);
        ck_assert_ptr_nonnull(strstr(created, "\"delta.deletedFileRetentionDuration\":\"interval 3600 seconds\""));
        ck_assert_ptr_nonnull(strstr(created, "\"delta.logRetentionDuration\":\"interval 7200 seconds\""));
        OK(delta_table_set_retention(t, &hour, &err)); /* no commit file */
        OK(delta_table_set_retention(t, &day, &err));
        changed = read_commit(dir, 1);
        ck_assert_ptr_nonnull(strstr(changed, "\"delta.deletedFileRetentionDuration\":\"interval 86400 seconds\""));
        OK(delta_commit(t, &grown, &err));
        schema = read_commit(dir, 2);
        ck_assert_ptr_nonnull(strstr(schema, "interval 86400 seconds"));
        OK(add_file(t, "a.parquet", &err));
        added = read_commit(dir, 3);
        ck_assert_ptr_nonnull(strstr(added, "\"isBlindAppend\":true"));
        ck_assert_ptr_nonnull(strstr(changed, "\"isBlindAppend\":false"));
        OK(delta_checkpoint(t, &err));
        delta_table_close(t);
        OK(delta_table_open(disk_storage(), dir + 1, &t, &err));
        OK(delta_table_set_retention(t, &day, &err)); /* no commit file: the checkpoint includes it */
        OK(delta_snapshot_acquire(t, &s, &err));
        ck_assert_uint_eq(s->version, 3);
        delta_snapshot_release(s);
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

START_TEST(malformed_checkpoint_is_skipped)
{
        char *dir = new_dir("broken-checkpoint");
        struct delta_table *t = new_table(dir);
        _cleanup_free_ char *path = NULL;

        OK(add_file(t, "a.parquet", &err));
        ck_assert_int_gt(asprintf(&path, "%s/_delta_log/%020u.checkpoint.parquet", dir, 1), 0);
        OK(file_write_durable(path, "PAR1 garbage PAR1", 17, &err));
        delta_table_close(t);
        OK(delta_table_open(disk_storage(), dir + 1, &t, &err));
        ck_assert_uint_eq(file_count(t), 1);
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

/* Set the times of the commits [first, end) far into the past. */
static void age_commits(const char *dir, unsigned first, unsigned end)
{
        static const struct timespec long_ago[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };

        for (unsigned v = first; v < end; v++) {
                _cleanup_free_ char *path = NULL;

                ck_assert_int_gt(asprintf(&path, "%s/_delta_log/%020u.json", dir, v), 0);
                ck_assert_int_eq(utimensat(AT_FDCWD, path, long_ago, 0), 0);
        }
}

static bool log_has(const char *dir, unsigned version, const char *suffix)
{
        _cleanup_free_ char *path = NULL;

        ck_assert_int_gt(asprintf(&path, "%s/_delta_log/%020u%s", dir, version, suffix), 0);
        return access(path, F_OK) == 0;
}

/* Files f0 to f9, with checkpoints at versions 3, 6 and 9; version n adds fn-1, and the last removes f1. */
static struct delta_table *new_table_with_checkpoints(const char *dir)
{
        struct delta_table *t = new_table(dir);
        const char *remove[] = { "f1.parquet" };
        struct delta_commit c = { .size = sizeof c, .removes = remove, .remove_count = 1 };

        for (unsigned v = 1; v <= 10; v++) {
                char name[32];

                snprintf(name, sizeof name, "f%u.parquet", v - 1);
                OK(add_file(t, name, &err));
                if (v % 3 == 0)
                        OK(delta_checkpoint(t, &err));
        }
        OK(delta_commit(t, &c, &err));
        return t;
}

static void reads_whole(const char *dir)
{
        struct delta_table *t = NULL;

        OK(delta_table_open(disk_storage(), dir + 1, &t, &err));
        ck_assert_uint_eq(file_count(t), 9);
        delta_table_close(t);
}

START_TEST(old_commits_are_deleted_up_to_an_old_checkpoint)
{
        char *dir = new_dir("clean");
        struct delta_table *t = new_table_with_checkpoints(dir);
        struct delta_log_cleanup cleaned = { 0 };

        OK(delta_table_clean_up_log(t, 2000000, &cleaned, &err));
        ck_assert_uint_eq(cleaned.files, 0); /* nothing is old enough */
        age_commits(dir, 0, 3);
        OK(delta_table_clean_up_log(t, 2000000, &cleaned, &err));
        ck_assert_uint_eq(cleaned.files, 0); /* the checkpoint at 3 belongs to a newer commit */
        age_commits(dir, 0, 5);
        OK(delta_table_clean_up_log(t, 2000000, &cleaned, &err));
        ck_assert_uint_eq(cleaned.files, 3);
        ck_assert_uint_gt(cleaned.bytes, 100);
        ck_assert(!log_has(dir, 2, ".json") && log_has(dir, 3, ".json") && log_has(dir, 3, ".checkpoint.parquet"));
        reads_whole(dir);
        delta_table_close(t);
        OK(delta_table_open(disk_storage(), dir + 1, &t, &err));
        age_commits(dir, 3, 12);
        OK(delta_table_clean_up_log(t, 2000000, &cleaned, &err));
        ck_assert_uint_eq(cleaned.files, 3 + 4); /* 3, 4, 5 and a checkpoint; 6 is the second newest */
        ck_assert(!log_has(dir, 5, ".json") && log_has(dir, 6, ".checkpoint.parquet"));
        OK(delta_table_clean_up_log(t, 2000000, &cleaned, &err));
        ck_assert_uint_eq(cleaned.files, 3 + 4);
        reads_whole(dir);
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

static void check_refreshed_past_gap(const char *name, bool has_hint)
{
        char *dir = new_dir(name);
        struct delta_table *writer = new_table(dir), *idle = NULL;
        struct delta_log_cleanup cleaned = { 0 };
        struct delta_snapshot *before = NULL;
        _cleanup_free_ char *hint = path_join(dir, "_delta_log/_last_checkpoint");

        OK(add_file(writer, "a.parquet", &err));
        OK(delta_table_open(disk_storage(), dir + 1, &idle, &err));
        OK(delta_snapshot_acquire(idle, &before, &err));
        for (unsigned v = 2; v <= 9; v++) {
                char file[32];

                snprintf(file, sizeof file, "b%u.parquet", v);
                OK(add_file(writer, file, &err));
                if (v % 4 == 0)
                        OK(delta_checkpoint(writer, &err));
        }
        age_commits(dir, 0, 9);
        OK(delta_table_clean_up_log(writer, 2000000, &cleaned, &err));
        ck_assert(!log_has(dir, 2, ".json") && log_has(dir, 9, ".json"));
        if (!has_hint)
                ck_assert_int_eq(unlink(hint), 0);
        ck_assert_int_eq(add_file(idle, "lost.parquet", NULL), ST_BUSY); /* not as version 2 */
        ck_assert_uint_eq(file_count(idle), 1);
        OK(delta_table_refresh(idle, &err));
        ck_assert_uint_eq(file_count(idle), 9);
        OK(add_file(idle, "last.parquet", &err));
        ck_assert(log_has(dir, 10, ".json"));
        OK(delta_table_refresh(writer, &err));
        ck_assert_uint_eq(file_count(writer), 10);
        ck_assert_uint_eq(before->file_count, 1);
        delta_snapshot_release(before);
        delta_table_close(idle);
        delta_table_close(writer);
        drop_dir(dir);
}

START_TEST(an_idle_reader_catches_up_after_the_commits_it_lacks_were_deleted)
{
        check_refreshed_past_gap("gap", true);
        check_refreshed_past_gap("gap-without-hint", false);
}
END_TEST

START_TEST(hint_with_nonexistent_version_is_ignored)
{
        char *dir = new_dir("hint-ahead");
        struct delta_table *t = new_table(dir);
        _cleanup_free_ char *hint = path_join(dir, "_delta_log/_last_checkpoint");

        OK(file_write_durable(hint, "{\"version\":30,\"size\":5}", 23, &err));
        OK(add_file(t, "a.parquet", &err));
        OK(delta_table_refresh(t, &err));
        OK(add_file(t, "b.parquet", &err));
        ck_assert_uint_eq(file_count(t), 2);
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

static void damage(const char *dir, const char *name)
{
        _cleanup_free_ char *path = path_join(dir, name);

        ck_assert_int_eq(truncate(path, 100), 0);
}

START_TEST(commits_covered_only_by_damaged_checkpoint_are_kept)
{
        char *dir = new_dir("clean-damaged");
        struct delta_table *t = new_table_with_checkpoints(dir);
        struct delta_log_cleanup cleaned = { 0 };

        age_commits(dir, 0, 12);
        damage(dir, "_delta_log/00000000000000000006.checkpoint.parquet");
        OK(delta_table_clean_up_log(t, 2000000, &cleaned, &err)); /* up to the previous one */
        ck_assert_uint_eq(cleaned.files, 3);
        ck_assert(log_has(dir, 3, ".json") && log_has(dir, 3, ".checkpoint.parquet"));
        damage(dir, "_delta_log/00000000000000000009.checkpoint.parquet");
        reads_whole(dir);
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

START_TEST(checkpoint_of_another_state_is_not_used)
{
        char *dir = new_dir("clean-other");
        struct delta_table *t = new_table_with_checkpoints(dir);
        struct delta_log_cleanup cleaned = { 0 };
        struct error err = { 0 };
        _cleanup_free_ char *from = path_join(dir, "_delta_log/00000000000000000003.checkpoint.parquet");
        _cleanup_free_ char *to = path_join(dir, "_delta_log/00000000000000000006.checkpoint.parquet");

        age_commits(dir, 0, 12);
        ck_assert_int_eq(rename(from, to), 0);
        ck_assert_int_eq(delta_table_clean_up_log(t, 2000000, &cleaned, &err), ST_BAD_DATA);
        ck_assert_uint_eq(cleaned.files, 0);
        ck_assert_ptr_nonnull(strstr(err.text, "checkpoint 6 of"));
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

START_TEST(a_damaged_newest_checkpoint_is_replaced)
{
        char *dir = new_dir("clean-newest");
        struct delta_table *t = new_table_with_checkpoints(dir);
        struct delta_log_cleanup cleaned = { 0 };

        age_commits(dir, 0, 12);
        damage(dir, "_delta_log/00000000000000000009.checkpoint.parquet");
        OK(delta_table_clean_up_log(t, 2000000, &cleaned, &err));
        ck_assert(log_has(dir, 11, ".checkpoint.parquet"));
        ck_assert_uint_eq(cleaned.files, 6 + 1);
        for (unsigned v = 6; v <= 11; v++)
                ck_assert(log_has(dir, v, ".json"));
        reads_whole(dir);
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

START_TEST(hint_with_deleted_checkpoint_is_replaced)
{
        char *dir = new_dir("clean-hint");
        struct delta_table *t = new_table_with_checkpoints(dir);
        struct delta_log_cleanup cleaned = { 0 };
        _cleanup_free_ char *hint = path_join(dir, "_delta_log/_last_checkpoint");
        _cleanup_buf_ struct buf text;

        age_commits(dir, 0, 12);
        OK(file_write_durable(hint, "{\"version\":3,\"size\":5}", 22, &err));
        OK(delta_table_clean_up_log(t, 2000000, &cleaned, &err));
        ck_assert_uint_eq(cleaned.files, 6 + 1);
        buf_init(&text, KiB(1));
        OK(file_read(hint, &text, &err));
        ck_assert_ptr_nonnull(strstr(buf_cstr(&text), "\"version\":11,\"size\":12,\"numOfAddFiles\":9"));
        reads_whole(dir);
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

START_TEST(checkpoint_interval_depends_on_table_size)
{
        char *dir = new_dir("checkpoint-share");
        struct delta_table *t = new_table(dir);
        struct delta_add *adds = calloc(5000, sizeof *adds);
        struct delta_commit c = { .size = sizeof c, .adds = adds, .add_count = 5000 };
        unsigned count = 0;

        for (unsigned i = 0; i < 5000; i++) {
                char *name;

                ck_assert_int_gt(asprintf(&name, "big-%u.parquet", i), 0);
                adds[i] = (struct delta_add){ .path = name, .size = 1 };
        }
        OK(delta_commit(t, &c, &err)); /* with 5000 files: a tenth is 500 commits of one file */
        OK(delta_checkpoint(t, &err));
        for (unsigned v = 2; v <= 600; v++) {
                char name[32];

                snprintf(name, sizeof name, "f%u.parquet", v);
                OK(add_file(t, name, &err));
                count += log_has(dir, v, ".checkpoint.parquet");
        }
        ck_assert_uint_eq(count, 1);
        ck_assert(log_has(dir, 1 + 555, ".checkpoint.parquet")); /* 555 = (5000 + 555) / 10 */
        for (unsigned i = 0; i < 5000; i++)
                free((char *)adds[i].path);
        free(adds);
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

START_TEST(log_with_a_gap_is_bad_data)
{
        char *dir = new_dir("missing-commit");
        struct delta_table *t = new_table(dir);

        OK(add_file(t, "a.parquet", &err));
        OK(add_file(t, "b.parquet", &err));
        delta_table_close(t);
        unlink_commit(dir, 1);
        ck_assert_int_eq(delta_table_open(disk_storage(), dir + 1, &t, NULL), ST_BAD_DATA);
        drop_dir(dir);
}
END_TEST

START_TEST(hostile_commits_are_refused)
{
        static const struct {
                const char *line;
                enum status want;
        } lines[] = {
                { "", ST_BAD_DATA }, /* what a power cut leaves of a file without fsync */
                { "garbage", ST_BAD_DATA },
                { "[]", ST_BAD_DATA },
                { "{\"add\":{\"path\":\"a\"}}", ST_BAD_DATA },
                { "{\"add\":{\"path\":\"..%2fa\",\"size\":1,\"modificationTime\":1,\"partitionValues\":{}}}",
                  ST_BAD_DATA },
                { "{\"add\":{\"path\":\"/etc/x\",\"size\":1,\"modificationTime\":1,\"partitionValues\":{}}}",
                  ST_BAD_DATA },
                { "{\"add\":{\"path\":\"a\\u0000b\",\"size\":1,\"modificationTime\":1,\"partitionValues\":{}}}",
                  ST_BAD_DATA },
                { "{\"add\":{\"path\":\"a\",\"size\":-1,\"modificationTime\":1,\"partitionValues\":{}}}", ST_BAD_DATA },
                { "{\"remove\":7}", ST_BAD_DATA },
                { "{\"metaData\":{\"id\":\"x\",\"schemaString\":\"{\",\"partitionColumns\":[]}}", ST_BAD_DATA },
                { "{\"metaData\":{\"id\":\"x\",\"schemaString\":\"{\\\"fields\\\":[1]}\",\"partitionColumns\":[]}}",
                  ST_BAD_DATA },
                { "{\"protocol\":{\"minReaderVersion\":3,\"minWriterVersion\":7}}", ST_UNSUPPORTED },
                { "{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{"
                  "\"a\":{\"a\":"
                  "{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{"
                  "\"a\":{\"a\":"
                  "{\"a\":{}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}",
                  ST_BAD_DATA },
        };

        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
                char *dir = new_dir("hostile");
                struct delta_table *t = new_table(dir);
                _cleanup_free_ char *path = NULL;

                ck_assert_int_gt(asprintf(&path, "%s/_delta_log/%020u.json", dir, 1), 0);
                OK(file_write_durable(path, lines[i].line, strlen(lines[i].line), &err));
                ck_assert_msg(delta_table_refresh(t, NULL) == lines[i].want, "line %zu", i);
                ck_assert_uint_eq(file_count(t), 0);
                delta_table_close(t);
                OK(file_remove_tree(dir, &err));
                drop_dir(dir);
        }
}
END_TEST

START_TEST(statistics_of_a_file_are_bounds)
{
        static const struct parquet_field fields[] = {
                { .name = "time", .kind = PARQUET_TIMESTAMP },
                { .name = "value", .kind = PARQUET_INT64, .optional = true },
                { .name = "text", .kind = PARQUET_STRING },
                { .name = "value_2", .kind = PARQUET_INT64, .optional = true },
                { .name = "other", .kind = PARQUET_INT64, .optional = true },
        };
        char template[] = "/tmp/delta-stats-XXXXXX";
        static const char *const names[] = { "time", "text", "absent" };
        static const struct delta_stats_columns columns = {
                .names = names, .count = 3, .prefix = "v", .prefix_count = 1
        };
        int fd = mkstemp(template);
        struct parquet_writer *w = NULL;
        _cleanup_buf_ struct buf stats;
        struct delta_file f = { 0 };
        int64_t min = 0, max = 0;
        uint64_t rows = 0;

        OK(parquet_writer_create(fd, template, fields, 5, NULL, &w, &err));
        for (int i = 0; i < 3; i++) {
                parquet_put_int(w, 1, -1 - i * 1234567);
                if (i)
                        parquet_put_int(w, 2, i);
                else
                        parquet_put_null(w, 2);
                parquet_put_str(w, 3, i ? "b" : "a");
                parquet_put_int(w, 4, i);
                parquet_put_int(w, 5, i);
        }
        OK(parquet_writer_end_rows(w, 3, &err));
        OK(parquet_writer_finish(w, &err));
        buf_init(&stats, KiB(64));
        ck_assert_int_eq(delta_stats_append(w, &columns, &stats), ST_OK);
        f.stats = buf_cstr(&stats);
        ck_assert_str_eq(f.stats, "{\"numRecords\":3,"
                                  "\"minValues\":{\"time\":\"1969-12-31T23:59:57.530Z\",\"value\":1,\"text\":\"a\"},"
                                  "\"maxValues\":{\"time\":\"1970-01-01T00:00:00.000Z\",\"value\":2,\"text\":\"b\"},"
                                  "\"nullCount\":{\"time\":0,\"value\":1,\"text\":0}}");
        ck_assert(delta_file_get_int_range(&f, "time", &min, &max));
        ck_assert_int_eq(min, -2470000);
        ck_assert_int_ge(max, -1);
        ck_assert_int_le(max, 999);
        ck_assert(delta_file_get_int_range(&f, "value", &min, &max) && min == 1 && max == 2);
        ck_assert(!delta_file_get_int_range(&f, "text", &min, &max));
        ck_assert(!delta_file_get_int_range(&f, "absent", &min, &max));
        ck_assert(delta_file_get_row_count(&f, &rows) && rows == 3);
        parquet_writer_destroy(w);
        close(fd);
        unlink(template);
}
END_TEST

/* Write a part of count rows and commit it to a table. */
static void write_part(struct delta_table *t, const char *dir, const char *date, int part, size_t column_count,
                       const struct delta_commit *with)
{
        _cleanup_free_ char *name = NULL, *path = NULL, *day = NULL, *tmp = NULL;
        _cleanup_buf_ struct buf stats;
        const struct parquet_field *fields = make_table_fields + 1;
        struct delta_partition partition = { "date", date };
        struct delta_add add = { .partitions = &partition, .partition_count = 1 };
        struct delta_commit c = *with;
        struct parquet_writer *w = NULL;
        int fd;

        buf_init(&stats, MiB(1));
        ck_assert_int_gt(asprintf(&name, "date=%s/part-%d.parquet", date, part), 0);
        ck_assert_int_gt(asprintf(&day, "%s/date=%s", dir, date), 0);
        path = path_join(dir, name);
        OK(file_make_dirs(day, &err));
        OK(file_create_temporary(path, &tmp, &fd, &err));
        OK(parquet_writer_create(fd, path, fields, column_count - 1, NULL, &w, &err));
        for (int64_t i = 0; i < 1000; i++) {
                int64_t ids[3] = { i, -i, part };
                uint8_t id[2] = { (uint8_t)i, 0xff };

                parquet_put_int(w, parquet_writer_node(w, "time"), 1763650000000000 + part * 1000000000ll + i * 1001);
                parquet_put_int(w, parquet_writer_node(w, "value"), i % 10);
                parquet_put_bytes(w, parquet_writer_node(w, "stack_id"), id, 2);
                parquet_put_int_list(w, parquet_writer_node(w, "ids"), ids, (size_t)(i % 4));
                if (i % 5 == 0) {
                        parquet_put_null(w, parquet_writer_node(w, "frames"));
                } else {
                        parquet_put_list(w, parquet_writer_node(w, "frames"), 1);
                        parquet_put_str(w, parquet_writer_node(w, "frames.list.element.function"),
                                        i % 2 ? "mäin" : "f");
                        parquet_put_int(w, parquet_writer_node(w, "frames.list.element.line"), i);
                }
                if (column_count > 6) {
                        parquet_put_str(w, parquet_writer_node(w, "label_pod"), "pod-1");
                        parquet_put_list(w, parquet_writer_node(w, "labels_rest"), 1);
                        parquet_put_str(w, parquet_writer_node(w, "labels_rest.key_value.key"), "zone");
                        parquet_put_null(w, parquet_writer_node(w, "labels_rest.key_value.value"));
                }
                OK(parquet_writer_end_rows(w, 1, &err));
        }
        OK(parquet_writer_finish(w, &err));
        ck_assert_int_eq(
                delta_stats_append(w, &(struct delta_stats_columns){ .prefix = "", .prefix_count = SIZE_MAX }, &stats),
                ST_OK);
        add.path = name;
        add.size = parquet_writer_bytes(w);
        add.stats = buf_cstr(&stats);
        parquet_writer_destroy(w);
        OK(file_publish(fd, tmp, path, &err));
        c.size = sizeof c;
        c.adds = &add;
        c.add_count = 1;
        OK(delta_commit(t, &c, &err));
}

static bool has_column(struct delta_table *t, const char *name)
{
        struct delta_snapshot *s = NULL;
        char want[64];
        bool found;

        snprintf(want, sizeof want, "\"name\":\"%s\"", name);
        OK(delta_snapshot_acquire(t, &s, &err));
        found = strstr(s->schema_json, want) != NULL;
        delta_snapshot_release(s);
        return found;
}

/* Parts 0..3 with the first columns, part 1 removed, then a schema change with part 4, and a checkpoint in between. */
START_TEST(table_with_partitions_removal_and_a_new_column)
{
        char *dir = new_dir("table");
        struct delta_table *t = NULL;
        struct delta_commit plain = { .operation = "WRITE" };
        struct delta_commit grown = { .operation = "WRITE", .fields = make_table_fields, .field_count = 8 };
        const char *remove[] = { "date=2025-11-20/part-1.parquet" };
        struct delta_commit removal = {
                .size = sizeof removal, .operation = "DELETE", .removes = remove, .remove_count = 1
        };

        OK(delta_table_create(disk_storage(), dir + 1, make_table_fields, 6, partition_columns, 1, NULL, &err));
        OK(delta_table_open(disk_storage(), dir + 1, &t, &err));
        write_part(t, dir, "2025-11-20", 0, 6, &plain);
        write_part(t, dir, "2025-11-20", 1, 6, &plain);
        write_part(t, dir, "2025-11-21", 2, 6, &plain);
        OK(delta_commit(t, &removal, &err));
        OK(delta_checkpoint(t, &err));
        ck_assert(!has_column(t, "label_pod"));
        write_part(t, dir, "2025-11-21", 3, 6, &plain);
        write_part(t, dir, "2025-11-22", 4, 8, &grown);
        ck_assert(has_column(t, "label_pod"));
        ck_assert_uint_eq(file_count(t), 4);
        delta_table_close(t);
        drop_dir(dir);
}
END_TEST

/* DELTA_FOREIGN is the table of the previous test, to which tests/e2e/store/parquet-readers.t had deltalake append. */
START_TEST(commits_of_another_writer_are_read)
{
        const char *dir = getenv("DELTA_FOREIGN");
        struct delta_table *t = NULL;
        struct delta_snapshot *s = NULL;
        uint64_t rows = 0;

        if (!dir)
                return;
        OK(delta_table_open(disk_storage(), dir + 1, &t, &err));
        OK(delta_snapshot_acquire(t, &s, &err));
        ck_assert_uint_ge(s->version, 8);
        ck_assert_uint_eq(s->file_count, 6);
        for (size_t i = 0; i < s->file_count; i++) {
                uint64_t n = 0;

                ck_assert(delta_file_get_row_count(s->files[i], &n));
                ck_assert_uint_eq(s->files[i]->partition_count, 1);
                ck_assert_str_eq(s->files[i]->partitions[0].key, "date");
                rows += n;
        }
        ck_assert_uint_eq(rows, 4006);
        delta_snapshot_release(s);
        delta_table_close(t);
}
END_TEST

TEST_SUITE("delta_log", commits_of_another_writer_are_read, created_table_is_empty_at_version_0, creating_twice_is_busy,
           absent_table_is_not_found, second_writer_is_busy_and_sees_first_after_refresh,
           calls_of_a_refresh_and_of_opening_are_few, snapshot_outlives_removal_and_table,
           invalid_commits_change_nothing, application_transaction_is_kept, checkpoint_replaces_earlier_commits,
           malformed_checkpoint_is_skipped, removed_files_are_remembered_through_checkpoints_until_forgotten,
           path_added_again_is_not_removed, retention_is_written_once_and_kept_by_schema_change,
           old_commits_are_deleted_up_to_an_old_checkpoint,
           an_idle_reader_catches_up_after_the_commits_it_lacks_were_deleted, hint_with_nonexistent_version_is_ignored,
           commits_covered_only_by_damaged_checkpoint_are_kept, checkpoint_of_another_state_is_not_used,
           a_damaged_newest_checkpoint_is_replaced, hint_with_deleted_checkpoint_is_replaced,
           checkpoint_interval_depends_on_table_size, log_with_a_gap_is_bad_data, hostile_commits_are_refused,
           statistics_of_a_file_are_bounds, table_with_partitions_removal_and_a_new_column)
