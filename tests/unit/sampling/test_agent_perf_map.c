/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "sampling/processes/perf_map.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static void feed(struct perf_map *m, const char *text, size_t used)
{
        struct error err;
        size_t n = 0;

        ck_assert_msg(perf_map_feed(m, text, strlen(text), &n, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(n, used);
}

static const char *find(struct perf_map *m, uint64_t addr)
{
        const struct named_range *s = code_names_find(&m->code, addr);

        return s ? code_names_get_text(&m->code, s) : "none";
}

START_TEST(later_line_overrides_overlapping_range)
{
        struct perf_map m;

        perf_map_init(&m, NULL);
        feed(&m, "100 100 old\n", 12);
        ck_assert_str_eq(find(&m, 0x150), "old");
        feed(&m, "50 20 early\n180 100 new\n120 10 inside\n", 38);
        ck_assert_str_eq(find(&m, 0x4f), "none");
        ck_assert_str_eq(find(&m, 0x50), "early");
        ck_assert_str_eq(find(&m, 0x70), "none");
        ck_assert_str_eq(find(&m, 0x100), "old");
        ck_assert_str_eq(find(&m, 0x120), "inside");
        ck_assert_str_eq(find(&m, 0x130), "old");
        ck_assert_str_eq(find(&m, 0x17f), "old");
        ck_assert_str_eq(find(&m, 0x180), "new");
        ck_assert_str_eq(find(&m, 0x27f), "new");
        ck_assert_str_eq(find(&m, 0x280), "none");
        feed(&m, "0 1000 all\n", 11);
        ck_assert_str_eq(find(&m, 0x120), "all");
        ck_assert_uint_eq(m.code.range_count, 1);
        perf_map_deinit(&m);
}
END_TEST

/* Compares the sweep with a direct implementation of the rule: the last symbol that covers an address names it. */
START_TEST(random_symbols_agree_with_reference)
{
        static char names[300][16];
        uint64_t starts[300], ends[300];
        struct perf_map m;

        srand(7);
        perf_map_init(&m, NULL);
        for (int i = 0; i < 300; i++) {
                char line[64];

                starts[i] = (uint64_t)rand() % 1000;
                ends[i] = starts[i] + 1 + (uint64_t)rand() % 60;
                snprintf(names[i], sizeof names[i], "f%d", i);
                snprintf(line, sizeof line, "%lx %lx %.15s\n", starts[i], ends[i] - starts[i], names[i]);
                feed(&m, line, strlen(line));
        }
        for (uint64_t addr = 0; addr < 1100; addr++) {
                const char *expected = "none";

                for (int i = 0; i < 300; i++)
                        if (addr >= starts[i] && addr < ends[i])
                                expected = names[i];
                ck_assert_str_eq(find(&m, addr), expected);
        }
        perf_map_deinit(&m);
}
END_TEST

START_TEST(names_keep_spaces_and_malformed_lines_are_skipped)
{
        struct perf_map m;

        perf_map_init(&m, NULL);
        feed(&m, "0x10 0x10 LazyCompile:~f a b\nno line\n30 0 empty\nffffffffffffffff 2 wraps\n40 8\n50 8 half", 78);
        ck_assert_str_eq(find(&m, 0x1f), "LazyCompile:~f a b");
        ck_assert_uint_eq(m.code.range_count, 1);
        feed(&m, "50 8 half done\n", 15); /* the rest of the line */
        ck_assert_str_eq(find(&m, 0x50), "half done");
        perf_map_deinit(&m);
}
END_TEST

/* A runtime that continuously generates code: memory must be proportional to live code. */
START_TEST(overridden_code_uses_no_memory)
{
        struct code_budget budget = { .max = MiB(8) };
        struct perf_map m;
        char line[128];

        perf_map_init(&m, &budget);
        for (int i = 0; i < 400000; i++) {
                snprintf(line, sizeof line, "%x 100 LazyCompile:*function number %d\n", 0x10000 + i % 1000 * 0x100, i);
                feed(&m, line, strlen(line));
                if (i % 5000 == 0)
                        ck_assert_str_ne(find(&m, 0x10000), "none");
        }
        ck_assert_str_eq(find(&m, 0x10000 + 999 * 0x100), "LazyCompile:*function number 399999");
        ck_assert_uint_eq(m.code.range_count, 1000);
        ck_assert_uint_eq(m.dropped, 0);
        ck_assert_uint_lt(budget.used, KiB(512));
        perf_map_deinit(&m);
        ck_assert_uint_eq(budget.used, 0);
}
END_TEST

START_TEST(lines_over_limit_are_dropped_and_counted)
{
        struct code_budget budget = { .max = 100 };
        struct perf_map m;

        perf_map_init(&m, &budget);
        feed(&m, "100 10 one\n200 10 two\n300 10 three\n400 10 four\n", 47);
        ck_assert_str_eq(find(&m, 0x100), "one");
        ck_assert_str_eq(find(&m, 0x400), "none");
        ck_assert_uint_ge(m.dropped, 1);
        ck_assert_uint_le(budget.used, 100);
        perf_map_deinit(&m);
}
END_TEST

/* A root directory with tmp/perf-42.map in it. */
static int make_root(char dir[static TEMPORARY_DIR_BYTES])
{
        char path[64];

        temporary_dir_create(dir, "perf-map");
        snprintf(path, sizeof path, "%s/tmp", dir);
        ck_assert_int_eq(mkdir(path, 0755), 0);
        return open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void append(const char *dir, const char *text)
{
        char path[64];
        int fd;

        snprintf(path, sizeof path, "%s/tmp/perf-42.map", dir);
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        close(fd);
}

static enum status refresh(struct perf_map *m, int root, uid_t uid, struct error *err)
{
        uint64_t left = MiB(1);

        return perf_map_refresh(m, root, 42, uid, &left, err);
}

START_TEST(growing_file_is_continued_and_new_one_read_from_start)
{
        char dir[TEMPORARY_DIR_BYTES], path[64];
        _cleanup_close_ int root = make_root(dir);
        struct perf_map m;
        struct error err = { 0 };

        perf_map_init(&m, NULL);
        ck_assert_int_eq(refresh(&m, root, getuid(), &err), ST_NOT_FOUND);
        append(dir, "10 10 one\n20 10 t");
        ck_assert_msg(refresh(&m, root, getuid(), &err) == ST_OK, "%s", err.text);
        ck_assert_str_eq(find(&m, 0x10), "one");
        ck_assert_str_eq(find(&m, 0x20), "none");
        append(dir, "wo\n");
        ck_assert_int_eq(refresh(&m, root, getuid(), &err), ST_OK);
        ck_assert_str_eq(find(&m, 0x20), "two");
        ck_assert_uint_eq(m.code.range_count, 2);
        snprintf(path, sizeof path, "%s/tmp/perf-42.map", dir);
        unlink(path);
        append(dir, "30 10 three\n");
        ck_assert_int_eq(refresh(&m, root, getuid(), &err), ST_OK);
        ck_assert_str_eq(find(&m, 0x30), "three");
        perf_map_deinit(&m);
        temporary_dir_remove(dir);
}
END_TEST

START_TEST(symlinks_and_files_of_other_users_are_not_read)
{
        char dir[TEMPORARY_DIR_BYTES], path[64], secret[64];
        _cleanup_close_ int root = make_root(dir);
        struct perf_map m;
        struct error err = { 0 };

        perf_map_init(&m, NULL);
        snprintf(path, sizeof path, "%s/tmp/perf-42.map", dir);
        snprintf(secret, sizeof secret, "%s/secret", dir);
        append(dir, "10 10 secret\n");
        ck_assert_int_eq(rename(path, secret), 0);
        ck_assert_int_eq(symlink("/secret", path), 0);
        ck_assert_int_ne(refresh(&m, root, getuid(), &err), ST_OK); /* the last component is a symbolic link */
        unlink(path);
        ck_assert_int_eq(mkfifo(path, 0644), 0);
        ck_assert_int_eq(refresh(&m, root, getuid(), &err), ST_UNSUPPORTED);
        unlink(path);
        /* A directory link that leads out of the root is resolved inside it. */
        snprintf(path, sizeof path, "%s/tmp", dir);
        ck_assert_int_eq(rmdir(path), 0);
        ck_assert_int_eq(symlink("../../../../../../tmp", path), 0);
        ck_assert_int_ne(refresh(&m, root, getuid(), &err), ST_OK);
        if (getuid() == 0) {
                unlink(path);
                ck_assert_int_eq(mkdir(path, 0755), 0);
                append(dir, "10 10 stranger\n");
                snprintf(path, sizeof path, "%s/tmp/perf-42.map", dir);
                ck_assert_int_eq(chown(path, 1234, 1234), 0);
                ck_assert_int_eq(refresh(&m, root, 1000, &err), ST_UNSUPPORTED);
                ck_assert_int_eq(refresh(&m, root, 1234, &err), ST_OK);
        }
        perf_map_deinit(&m);
        temporary_dir_remove(dir);
}
END_TEST

START_TEST(device_is_not_opened)
{
        char dir[TEMPORARY_DIR_BYTES], path[sizeof dir + 32];
        struct perf_map m;
        struct error err;
        int root;

        temporary_dir_create(dir, "perf-map");
        perf_map_init(&m, NULL);
        snprintf(path, sizeof path, "%s/tmp", dir);
        ck_assert_int_eq(mkdir(path, 0755), 0);
        root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        snprintf(path, sizeof path, "%s/tmp/perf-42.map", dir);
        /* A character device without a driver: opening it fails, and makes the kernel try to load a module. */
        if (mknod(path, S_IFCHR | 0666, makedev(241, 7)) == 0) {
                ck_assert_int_eq(open(path, O_RDONLY | O_CLOEXEC), -1);
                ck_assert_int_eq(refresh(&m, root, getuid(), &err), ST_UNSUPPORTED);
        }
        close(root);
        perf_map_deinit(&m);
        temporary_dir_remove(dir);
}
END_TEST

TEST_SUITE("agent_perf_map", later_line_overrides_overlapping_range, random_symbols_agree_with_reference,
           names_keep_spaces_and_malformed_lines_are_skipped, overridden_code_uses_no_memory,
           lines_over_limit_are_dropped_and_counted, growing_file_is_continued_and_new_one_read_from_start,
           symlinks_and_files_of_other_users_are_not_read, device_is_not_opened)
