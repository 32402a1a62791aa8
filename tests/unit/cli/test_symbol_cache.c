/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/symbols/symbol_cache.h"
#include "common/cleanup.h"
#include "tests/support/symcache_walk.h"
#include "tests/support/random_table.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define SYMCACHE_BYTES KiB(64) /* of those that are only evicted */

static char directory[TEMPORARY_DIR_BYTES];
static int directory_fd;

static void set_up(void)
{
        temporary_dir_create(directory, "cache");
        directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ck_assert_int_ge(directory_fd, 0);
}

static void tear_down(void)
{
        char command[64];

        close(directory_fd);
        snprintf(command, sizeof command, "rm -rf %s", directory);
        ck_assert_int_eq(system(command), 0);
}

static bool exists(const char *name)
{
        return faccessat(directory_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void use_at(const char *name, time_t seconds)
{
        const struct timespec times[] = { { .tv_sec = seconds }, { .tv_sec = seconds } };

        ck_assert_int_eq(utimensat(directory_fd, name, times, 0), 0);
}

static void put_file(const char *name, size_t size, time_t used)
{
        _cleanup_close_ int fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        _cleanup_free_ char *bytes = malloc(size);

        ck_assert(fd >= 0 && bytes);
        memset(bytes, 'x', size);
        ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
        use_at(name, used);
}

START_TEST(least_recently_used_file_is_evicted_first)
{
        put_file("b.symcache", SYMCACHE_BYTES, 200);
        put_file("d.symcache", SYMCACHE_BYTES, 400);
        put_file("a.symcache", SYMCACHE_BYTES, 100);
        put_file("c.symcache", SYMCACHE_BYTES, 300);
        symbol_cache_evict(directory_fd, 4 * SYMCACHE_BYTES);
        ck_assert(exists("a.symcache"));
        symbol_cache_evict(directory_fd, 4 * SYMCACHE_BYTES - 1);
        ck_assert(!exists("a.symcache") && exists("b.symcache"));
        symbol_cache_evict(directory_fd, SYMCACHE_BYTES);
        ck_assert(!exists("b.symcache") && !exists("c.symcache") && exists("d.symcache"));
        symbol_cache_evict(directory_fd, 0);
        ck_assert(!exists("d.symcache"));
}
END_TEST

START_TEST(only_symcaches_and_stale_temporary_files_are_removed)
{
        put_file("mine.txt", SYMCACHE_BYTES, 1);
        put_file("mine.symcache.txt", SYMCACHE_BYTES, 1);
        put_file(".tmp-1", SYMCACHE_BYTES, time(NULL) - 7200);
        put_file(".tmp-2", SYMCACHE_BYTES, time(NULL));
        ck_assert_int_eq(mkdirat(directory_fd, "folder.symcache", 0700), 0);
        ck_assert_int_eq(symlinkat("mine.txt", directory_fd, "link.symcache"), 0);
        symbol_cache_evict(directory_fd, 0);
        ck_assert(exists("mine.txt") && exists("mine.symcache.txt") && exists("folder.symcache") &&
                  exists("link.symcache"));
        ck_assert(exists(".tmp-2") && !exists(".tmp-1"));
}
END_TEST

/* ---- whole symcaches ---- */

static struct symcache make_symcache(void)
{
        const struct random_table_spec spec = { .seed = 3,
                                                .range_count = 2000,
                                                .function_count = 100,
                                                .file_count = 4,
                                                .base = 0x1000,
                                                .quality = QUALITY_DWARF };
        struct symbol_table t = random_table(&spec);
        _cleanup_close_ int fd = symcache_make_file(NULL, 0);
        struct symcache b;

        ck_assert_int_eq(symcache_write(&t, fd, NULL), ST_OK);
        ck_assert_int_eq(symcache_open(fd, "b", &b, NULL), ST_OK);
        symbol_table_deinit(&t);
        return b;
}

/* The cache key for one of several inputs. */
static struct symbol_cache cache_of(unsigned n)
{
        struct symbol_cache c = { .directory_fd = dup(directory_fd), .is_settled = true };

        ck_assert_int_ge(c.directory_fd, 0);
        snprintf(c.name, sizeof c.name, "%u" SYMBOL_CACHE_SUFFIX, n);
        return c;
}

static void put(unsigned n, const struct symcache *b, uint64_t max_bytes)
{
        struct symbol_cache c = cache_of(n);

        symbol_cache_put(&c, b, max_bytes);
        symbol_cache_close(&c);
}

static bool get(unsigned n)
{
        struct symbol_cache c = cache_of(n);
        struct symcache b;
        bool got = symbol_cache_get(&c, &b);

        if (got) {
                ck_assert_int_eq(symcache_walk(&b), ST_OK);
                symcache_close(&b);
        }
        symbol_cache_close(&c);
        return got;
}

START_TEST(cache_stays_within_limit_and_keeps_used_files)
{
        struct symcache b = make_symcache();
        uint64_t bytes = (b.map.size + 4095) & ~UINT64_C(4095);

        put(1, &b, 3 * bytes);
        use_at("1.symcache", 100);
        put(2, &b, 3 * bytes);
        use_at("2.symcache", 200);
        put(3, &b, 3 * bytes);
        use_at("3.symcache", 300);
        ck_assert(exists("1.symcache") && exists("2.symcache") && exists("3.symcache"));
        ck_assert(get(1)); /* the oldest until then, and the newest from now on */
        put(4, &b, 3 * bytes);
        ck_assert(exists("1.symcache") && !exists("2.symcache") && exists("3.symcache") && exists("4.symcache"));
        put(5, &b, 3 * bytes);
        ck_assert(!exists("3.symcache") && exists("1.symcache") && exists("4.symcache") && exists("5.symcache"));
        put(6, &b, bytes - 4096);
        ck_assert(!exists("6.symcache") && exists("5.symcache"));
        symcache_close(&b);
}
END_TEST

START_TEST(stale_temporary_file_of_same_pid_is_replaced)
{
        struct symcache b = make_symcache();
        char name[32];

        snprintf(name, sizeof name, SYMBOL_CACHE_TEMPORARY "%d", (int)getpid());
        put_file(name, 100, time(NULL) - 7200);
        put(1, &b, GiB(1));
        ck_assert(get(1));
        ck_assert(!exists(name));
        symcache_close(&b);
}
END_TEST

START_TEST(damaged_symcache_is_removed)
{
        struct symcache b = make_symcache();

        put(1, &b, GiB(1));
        _cleanup_close_ int fd = openat(directory_fd, "1.symcache", O_RDWR | O_CLOEXEC);

        ck_assert_int_eq(ftruncate(fd, (off_t)b.map.size - 1), 0);
        ck_assert(!get(1));
        ck_assert(!exists("1.symcache"));
        symcache_close(&b);
}
END_TEST

START_TEST(symcache_writable_by_others_is_not_used)
{
        struct symcache b = make_symcache();

        put(1, &b, GiB(1));
        ck_assert_int_eq(fchmodat(directory_fd, "1.symcache", 0622, 0), 0);
        ck_assert(!get(1));
        ck_assert_int_eq(fchmodat(directory_fd, "1.symcache", 0600, 0), 0);
        ck_assert_int_eq(renameat(directory_fd, "1.symcache", directory_fd, "2.symcache"), 0);
        ck_assert_int_eq(symlinkat("2.symcache", directory_fd, "1.symcache"), 0);
        ck_assert(get(2) && !get(1));
        symcache_close(&b);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("symbol_cache", least_recently_used_file_is_evicted_first,
                        only_symcaches_and_stale_temporary_files_are_removed,
                        cache_stays_within_limit_and_keeps_used_files, stale_temporary_file_of_same_pid_is_replaced,
                        damaged_symcache_is_removed, symcache_writable_by_others_is_not_used)
