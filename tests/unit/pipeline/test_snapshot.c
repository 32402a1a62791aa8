/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations of snapshots: file systems that cannot rename without replacing, and spellings of the path. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/file.h"
#include "pipeline/snapshot.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static struct store_fixture fixture;
static char folder[TEMPORARY_DIR_BYTES], data[64], target[64];
static int rename_error;            /* errno of renameat2() */
static void (*before_rename)(void); /* like another process in the meantime */

/* Interposes the C library's function. */
int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
        (void)flags;
        if (before_rename)
                before_rename();
        if (!rename_error)
                return renameat(from_dir, from, to_dir, to);
        errno = rename_error;
        return -1;
}

/* A data directory that contains one sample. */
static void set_up(void)
{
        store_fixture_begin(&fixture);
        store_fixture_append(&fixture, 1, 0x1000);
        store_fixture_flush(&fixture);
        temporary_dir_create(folder, "snapshot");
        snprintf(data, sizeof data, "%s/data", folder);
        snprintf(target, sizeof target, "%s/copy", folder);
        ck_assert_int_eq(mkdir(data, 0755), 0);
        snprintf(data, sizeof data, "%s/data/profiles", folder);
        ck_assert_int_eq(symlink(fixture.dir, data), 0);
        snprintf(data, sizeof data, "%s/data", folder);
}

static void tear_down(void)
{
        store_fixture_end(&fixture);
        check_ok(file_remove_tree(folder, NULL), &(struct error){ .text = "cannot remove" });
}

static bool exists_below(const char *dir, const char *name)
{
        char path[128];

        snprintf(path, sizeof path, "%s%s", dir, name);
        return access(path, F_OK) == 0;
}

START_TEST(snapshot_without_rename_noreplace_support)
{
        static const int errors[] = { EINVAL, ENOSYS, EOPNOTSUPP };
        struct snapshot_result r;
        struct error err;

        for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
                rename_error = errors[i];
                check_ok(take_snapshot(data, target, &r, &err), &err);
                ck_assert_uint_eq(r.sample_rows, 1);
                ck_assert(exists_below(target, "/profiles/tables/samples/_delta_log"));
                ck_assert(!exists_below(target, ".incomplete"));
                ck_assert_int_eq(take_snapshot(data, target, &r, &err), ST_BUSY);
                check_ok(file_remove_tree(target, &err), &err);
        }
}
END_TEST

static void make_target_file(void)
{
        check_ok(file_write_durable(target, "mine", 4, NULL), &(struct error){ .text = "cannot write" });
}

START_TEST(target_created_concurrently_is_not_replaced)
{
        _cleanup_buf_ struct buf content;
        struct snapshot_result r;
        struct error err;

        buf_init(&content, 100);
        rename_error = EINVAL;
        before_rename = make_target_file;
        ck_assert_int_eq(take_snapshot(data, target, &r, &err), ST_BUSY);
        ck_assert_ptr_nonnull(strstr(err.text, "exists: name a new directory"));
        check_ok(file_read(target, &content, &err), &err);
        ck_assert_str_eq(buf_cstr(&content), "mine");
        ck_assert(!exists_below(target, ".incomplete"));
}
END_TEST

START_TEST(other_rename_errors_are_reported)
{
        struct snapshot_result r;
        struct error err;

        rename_error = EROFS;
        ck_assert_int_eq(take_snapshot(data, target, &r, &err), ST_OS);
        ck_assert_int_eq(err.os_errno, EROFS);
        ck_assert(!exists_below(target, "") && !exists_below(target, ".incomplete"));
}
END_TEST

START_TEST(trailing_slashes_are_ignored)
{
        struct snapshot_result r;
        struct error err;
        char path[80];

        snprintf(path, sizeof path, "%s//", target);
        check_ok(take_snapshot(data, path, &r, &err), &err);
        ck_assert(exists_below(target, "/profiles/tables/samples/_delta_log"));
        ck_assert(!exists_below(target, ".incomplete"));
        ck_assert_int_eq(take_snapshot(data, path, &r, &err), ST_BUSY);
        ck_assert_int_eq(take_snapshot(data, "/", &r, &err), ST_BUSY);
}
END_TEST

START_TEST(a_dangling_link_is_not_replaced)
{
        struct snapshot_result r;
        struct error err;

        ck_assert_int_eq(symlink("nowhere", target), 0);
        ck_assert_int_eq(take_snapshot(data, target, &r, &err), ST_BUSY);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("snapshot", snapshot_without_rename_noreplace_support,
                        target_created_concurrently_is_not_replaced, other_rename_errors_are_reported,
                        trailing_slashes_are_ignored, a_dangling_link_is_not_replaced)
