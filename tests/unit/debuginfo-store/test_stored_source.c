/* SPDX-License-Identifier: Apache-2.0 */
/* Source files fetched from an upstream; tests/e2e/query/query-lines.t tests those of bundles. */
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "debuginfo-store/part_cache.h"
#include "debuginfo-store/stored_source.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES];
static const struct build_id id = { .bytes = { 1, 2, 3, 4 }, .size = 4 };
static struct debuginfo_store *store;

static void set_up(void)
{
        _cleanup_close_ int fd = -1;
        char *path;

        temporary_dir_create(dir, "source");
        path = path_join(dir, "text");
        ck_assert_int_eq(file_write_durable(path, "int x;\n", 7, NULL), ST_OK);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        free(path);
        ck_assert_int_eq(debuginfo_store_open(dir, false, &store, NULL), ST_OK);
        ck_assert_int_eq(part_cache_insert(store, &id, "source/src/a%20b.c", fd, NULL), ST_OK);
}

static void tear_down(void)
{
        debuginfo_store_close(store);
        temporary_dir_remove(dir);
}

static enum status append_cached(const char *path, size_t max, struct buf *ret, struct error *err)
{
        buf_init(ret, max);
        return cached_source_append(store, &id, path, ret, err);
}

START_TEST(a_fetched_file_is_found_by_its_unescaped_path)
{
        _cleanup_buf_ struct buf text;

        ck_assert_int_eq(append_cached("/src/a b.c", 100, &text, NULL), ST_OK);
        ck_assert_str_eq(buf_cstr(&text), "int x;\n");
}
END_TEST

START_TEST(a_relative_path_and_one_above_its_root_are_not_found)
{
        static const char *const paths[] = { "src/a b.c", "", "/src/../../src/a b.c", "/src/a%20b.c" };

        for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
                _cleanup_buf_ struct buf text;

                ck_assert_int_eq(append_cached(paths[i], 100, &text, NULL), ST_NOT_FOUND);
                ck_assert_uint_eq(text.size, 0);
        }
}
END_TEST

START_TEST(a_file_that_exceeds_the_limit_is_too_big)
{
        _cleanup_buf_ struct buf text;

        ck_assert_int_eq(append_cached("/src/a b.c", 6, &text, NULL), ST_TOO_BIG);
}
END_TEST

static bool is_aged;

/* Set the time of the only cached file to 1000 s, or check that it is unchanged. */
static int visit_cached_file(const char *path, const struct stat *info, int flag, struct FTW *walk)
{
        const struct timespec then[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };

        (void)walk;
        if (flag != FTW_F || !strstr(path, "/pieces/"))
                return 0;
        is_aged = info->st_mtim.tv_sec == 1000;
        return utimensat(AT_FDCWD, path, then, 0);
}

START_TEST(a_read_only_store_does_not_change_the_time_of_a_fetched_file)
{
        for (int read_only = 0; read_only < 2; read_only++) {
                _cleanup_buf_ struct buf text;

                debuginfo_store_close(store);
                ck_assert_int_eq(debuginfo_store_open(dir, read_only, &store, NULL), ST_OK);
                ck_assert_int_eq(nftw(dir, visit_cached_file, 8, FTW_PHYS), 0);
                ck_assert_int_eq(append_cached("/src/a b.c", 100, &text, NULL), ST_OK);
                ck_assert_int_eq(nftw(dir, visit_cached_file, 8, FTW_PHYS), 0);
                ck_assert_int_eq(is_aged, read_only);
        }
}
END_TEST

START_TEST(a_missing_file_has_the_reason)
{
        struct error err;

        ck_assert_int_eq(stored_source_explain_missing(store, &id, ", rest", &err), ST_NOT_FOUND);
        ck_assert_str_eq(err.text, "no sources of build-id 01020304 are stored, rest");
        ck_assert_int_eq(stored_source_explain_missing(NULL, &id, "", &err), ST_NOT_FOUND);
        ck_assert_str_eq(err.text, "no sources of build-id 01020304 are stored");
}
END_TEST

TEST_SUITE_WITH_FIXTURE("stored source", a_fetched_file_is_found_by_its_unescaped_path,
                        a_relative_path_and_one_above_its_root_are_not_found, a_file_that_exceeds_the_limit_is_too_big,
                        a_read_only_store_does_not_change_the_time_of_a_fetched_file, a_missing_file_has_the_reason)
