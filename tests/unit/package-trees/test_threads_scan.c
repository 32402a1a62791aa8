/* SPDX-License-Identifier: Apache-2.0 */
/* What a scan stores of files and trees, and requests for sources. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/files/file.h"
#include "common/threads/condition.h"
#include "elf-image/section_list.h"
#include "package-trees/package_index.h"
#include "package-trees/package_scan_internal.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES];

static void set_up(void)
{
        temporary_dir_create(dir, "scan");
}

static void tear_down(void)
{
        temporary_dir_remove(dir);
}

/* ---- the index ---- */

static struct package_index *open_index(void)
{
        _cleanup_free_ char *path = path_join(dir, "index");
        struct package_index *ix;

        ck_assert_int_eq(package_index_open(path, &ix, NULL), ST_OK);
        return ix;
}

static struct build_id id_of(uint8_t last)
{
        struct build_id id;

        ck_assert(build_id_from_bytes(&id, (uint8_t[]){ 1, 2, 3, last }, 4));
        return id;
}

/* Add a file with one object and one source. */
static void put(struct package_index *ix, const char *path, int64_t mtime_ns, uint8_t last)
{
        static const char sections[] = ".text\0\x10\x80\x01.comment\0\x00\x02"; /* 0x80 bytes at 0x10; 2 at 0 */
        struct package_object o = { .build_id = id_of(last),
                                    .kinds = PACKAGE_DEBUGINFO,
                                    .quality = QUALITY_DWARF,
                                    .size_bytes = 5,
                                    .ordinal = 7,
                                    .path = "/usr/lib/debug/x",
                                    .sections = sections,
                                    .sections_bytes = last == 1 ? sizeof sections - 1 : 0 };
        struct package_source s = { package_path_hash("/usr/src/x.c"), 9 };
        struct package_result r = { .file = { mtime_ns, 10, 20, PACKAGE_FILE_ARCHIVE, true, path },
                                    .contents = {
                                            .objects = &o, .object_count = 1, .sources = &s, .source_count = 1 } };

        ck_assert_int_eq(package_index_put(ix, &r, 1, NULL), ST_OK);
}

START_TEST(changed_files_replace_earlier_entries)
{
        struct package_index *ix = open_index();
        struct build_id one = id_of(1), two = id_of(2);
        struct package_place *places;
        struct package_scan_counts counts;
        uint32_t number;
        size_t count;

        put(ix, "/p/a.deb", 100, 1);
        ck_assert_int_eq(package_index_find(ix, &one, &places, &count, NULL), ST_OK);
        ck_assert_uint_eq(count, 1);
        ck_assert_str_eq(places[0].file.path, "/p/a.deb");
        ck_assert_str_eq(places[0].object.path, "/usr/lib/debug/x");
        ck_assert_uint_eq(places[0].object.ordinal, 7);
        number = places[0].number;
        package_places_free(places, count);
        put(ix, "/p/a.deb", 200, 2);
        ck_assert_int_eq(package_index_find(ix, &one, &places, &count, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(package_index_find(ix, &two, &places, &count, NULL), ST_OK);
        ck_assert_uint_ne(places[0].number, number);
        number = places[0].number;
        package_places_free(places, count);
        ck_assert_int_eq(package_index_find_source(ix, package_path_hash("/usr/src/x.c"), &places, &count, NULL),
                         ST_OK);
        ck_assert_uint_eq(count, 1);
        ck_assert_uint_eq(places[0].object.ordinal, 9);
        package_places_free(places, count);
        ck_assert_int_eq(package_index_remove(ix, &number, 1, NULL), ST_OK);
        ck_assert_int_eq(package_index_count(ix, &counts, NULL), ST_OK);
        ck_assert_uint_eq(counts.files + counts.objects + counts.sources, 0);
        package_index_close(ix);
}
END_TEST

START_TEST(sections_belong_to_one_version_of_a_member)
{
        struct package_index *ix = open_index();
        uint64_t offset = 77, size = 77;
        struct build_id one = id_of(1);
        struct package_place *places;
        uint32_t number;
        size_t count;

        put(ix, "/p/s.deb", 100, 1);
        ck_assert_int_eq(package_index_find(ix, &one, &places, &count, NULL), ST_OK);
        number = places[0].number;
        package_places_free(places, count);
        ck_assert_int_eq(package_index_find_section(ix, number, 7, ".tex", &offset, &size, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(package_index_find_section(ix, number, 6, ".text", &offset, &size, NULL), ST_UNSUPPORTED);
        ck_assert_uint_eq(offset + size, 154);
        ck_assert_int_eq(package_index_find_section(ix, number, 7, ".text", &offset, &size, NULL), ST_OK);
        ck_assert_uint_eq(offset, 0x10);
        ck_assert_uint_eq(size, 0x80);
        ck_assert_int_eq(package_index_find_section(ix, number, 7, ".comment", &offset, &size, NULL), ST_OK);
        ck_assert_uint_eq(size, 2);
        put(ix, "/p/s.deb", 200, 2);
        ck_assert_int_eq(package_index_find_section(ix, number, 7, ".text", &offset, &size, NULL), ST_UNSUPPORTED);
        ck_assert_int_eq(package_index_find_section(ix, number + 1, 7, ".text", &offset, &size, NULL), ST_UNSUPPORTED);
        package_index_close(ix);
}
END_TEST

START_TEST(damaged_section_list_is_not_overread)
{
        static const char list[] = ".a\0\x01\x02.b\0\x01\x80"; /* the last size does not end */
        uint64_t offset = 0, size = 0;

        ck_assert_int_eq(section_list_find(list, sizeof list - 1, ".a", &offset, &size, NULL), ST_OK);
        ck_assert_int_eq(section_list_find(list, sizeof list - 1, ".b", &offset, &size, NULL), ST_BAD_DATA);
        ck_assert_int_eq(section_list_find(list, 2, ".a", &offset, &size, NULL), ST_BAD_DATA);
        ck_assert_int_eq(section_list_find(list, 0, ".a", &offset, &size, NULL), ST_NOT_FOUND);
        ck_assert_uint_eq(offset * 16 + size, 0x12);
}
END_TEST

START_TEST(ids_with_common_prefix_are_distinct)
{
        struct package_index *ix = open_index();
        struct build_id shorter, one = id_of(1);

        put(ix, "/p/a.deb", 100, 1);
        ck_assert(build_id_from_bytes(&shorter, one.bytes, 3));
        ck_assert_uint_eq(package_index_find_kinds(ix, &shorter), 0);
        ck_assert_uint_eq(package_index_find_kinds(ix, &one), PACKAGE_DEBUGINFO);
        package_index_close(ix);
        ix = open_index(); /* it persists across a restart */
        ck_assert_uint_eq(package_index_find_kinds(ix, &one), PACKAGE_DEBUGINFO);
        package_index_close(ix);
}
END_TEST

START_TEST(a_path_is_normalized)
{
        static const char *const pairs[][2] = { { "/a/./b/../c//d", "/a/c/d" }, { "/../../x", "/x" }, { "//", "" } };

        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
                char path[32];

                snprintf(path, sizeof path, "%s", pairs[i][0]);
                path_normalize(path);
                ck_assert_str_eq(path, pairs[i][1]);
        }
}
END_TEST

/* ---- sources ---- */

static struct extracted_cache *open_cache(void)
{
        _cleanup_free_ char *path = path_join(dir, "cache");
        struct extracted_cache *c;

        ck_assert_int_eq(extracted_cache_open(path, 1000, &c, NULL), ST_OK);
        return c;
}

#define QUESTIONS 16 /* more than the cache creates concurrently */

static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        unsigned count;
        int64_t end_ns;
} openers = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* Debuginfo that is opened once all requests have started, and then does not exist. */
static enum status open_after_all_requests(void *context, int *fd_ret, struct error *err)
{
        bool in_time = true;

        (void)context;
        (void)fd_ret;
        pthread_mutex_lock(&openers.lock);
        openers.count++;
        pthread_cond_broadcast(&openers.changed);
        while (openers.count < QUESTIONS && in_time)
                in_time = condition_wait_until(&openers.changed, &openers.lock, openers.end_ns);
        pthread_mutex_unlock(&openers.lock);
        return in_time ? error_set(err, ST_UNSUPPORTED, "it has none")
                       : error_set(err, ST_BUSY, "the others do not come");
}

struct question {
        struct package_scan *scan;
        char identity[33];
        enum status st;
};

static void *request_source(void *arg)
{
        struct question *q = arg;
        const struct package_debuginfo other = { .identity = q->identity, .open = open_after_all_requests };
        struct build_id one = id_of(1);
        struct package_opened o;
        struct error err;

        q->st = package_scan_open_source(q->scan, &one, "/usr/src/x.c", &other, NULL, &o, &err);
        return NULL;
}

START_TEST(opening_debuginfo_does_not_block_unpacking)
{
        struct package_scan s = { .cache = open_cache(), .index = open_index() };
        struct question questions[QUESTIONS];
        pthread_t threads[QUESTIONS];

        openers.end_ns = monotonic_ns() + INT64_C(60000000000);
        for (size_t i = 0; i < QUESTIONS; i++) {
                questions[i] = (struct question){ .scan = &s };
                snprintf(questions[i].identity, sizeof questions[i].identity, "%032zu", i);
                ck_assert_int_eq(pthread_create(&threads[i], NULL, request_source, &questions[i]), 0);
        }
        for (size_t i = 0; i < QUESTIONS; i++)
                pthread_join(threads[i], NULL);
        for (size_t i = 0; i < QUESTIONS; i++)
                ck_assert_int_eq(questions[i].st, ST_UNSUPPORTED);
        package_index_close(s.index);
        extracted_cache_close(s.cache);
}
END_TEST

/* ---- trees ---- */

START_TEST(files_outside_the_tree_are_not_opened)
{
        _cleanup_free_ char *root = path_join(dir, "tree"), *inside = path_join(root, "inside"),
                            *outside = path_join(dir, "outside");
        _cleanup_free_ char *link = path_join(root, "link"), *climb = path_join(root, "../outside"),
                            *good = path_join(root, "good");
        struct package_trees t;
        struct stat info;
        int fd;

        ck_assert_int_eq(file_make_dirs(root, NULL), ST_OK);
        ck_assert_int_eq(file_write_durable(inside, "x", 1, NULL), ST_OK);
        ck_assert_int_eq(file_write_durable(outside, "x", 1, NULL), ST_OK);
        ck_assert_int_eq(symlink(outside, link), 0);
        ck_assert_int_eq(symlink("inside", good), 0);
        ck_assert_int_eq(package_trees_init(&t, (const char *const[]){ root }, 1, NULL), ST_OK);
        ck_assert_int_eq(package_trees_open(&t, outside, PACKAGE_LINKS_INSIDE, &fd, &info, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(package_trees_open(&t, climb, PACKAGE_LINKS_INSIDE, &fd, &info, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(package_trees_open(&t, link, PACKAGE_LINKS_INSIDE, &fd, &info, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(package_trees_open(&t, good, PACKAGE_LINKS_NONE, &fd, &info, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(package_trees_open(&t, root, PACKAGE_LINKS_INSIDE, &fd, &info, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(package_trees_open(&t, good, PACKAGE_LINKS_INSIDE, &fd, &info, NULL), ST_OK);
        close(fd);
        ck_assert_int_eq(package_trees_open(&t, inside, PACKAGE_LINKS_NONE, &fd, &info, NULL), ST_OK);
        close(fd);
        for (size_t i = 0; i < 4; i++) {
                const char *const paths[] = { outside, link, climb, good };
                enum status st = package_trees_open(&t, paths[i], PACKAGE_LINKS_NONE_AT_ONCE, &fd, &info, NULL);

                ck_assert_msg(st == ST_NOT_FOUND || st == ST_BUSY, "%s: %d", paths[i], st);
        }
        fd = -1;
        if (package_trees_open(&t, inside, PACKAGE_LINKS_NONE_AT_ONCE, &fd, &info, NULL) != ST_BUSY)
                ck_assert_int_ge(fd, 0);
        close(fd);
        package_trees_deinit(&t);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("scan", changed_files_replace_earlier_entries, sections_belong_to_one_version_of_a_member,
                        damaged_section_list_is_not_overread, ids_with_common_prefix_are_distinct, a_path_is_normalized,
                        opening_debuginfo_does_not_block_unpacking, files_outside_the_tree_are_not_opened)
