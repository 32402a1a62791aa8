/* SPDX-License-Identifier: Apache-2.0 */
/* What a scan keeps: the cache of what is taken out of archives, and the index of files. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/condition.h"
#include "common/file.h"
#include "elf-image/section_list.h"
#include "scan/cache.h"
#include "scan/index.h"
#include "scan/scan_internal.h"
#include "tests/support/suite.h"

static char dir[] = "/tmp/cairn-scan-XXXXXX";

static void make_dir(void)
{
        ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_dir(void)
{
        ck_assert_int_eq(file_remove_tree(dir, NULL), ST_OK);
}

/* ---- the cache ---- */

struct maker {
        size_t bytes;
        enum status st;
        atomic_uint calls;
        atomic_bool may_go_on;
};

static enum status make(void *context, int out, const atomic_bool *cancel, struct error *err)
{
        struct maker *m = context;
        char text[100];

        (void)cancel;
        atomic_fetch_add(&m->calls, 1);
        while (!atomic_load(&m->may_go_on))
                usleep(1000);
        memset(text, 'x', sizeof text);
        if (m->st)
                return error_set(err, m->st, "it was asked to fail");
        return file_write_all(out, text, m->bytes, "made", err);
}

static struct scan_cache *open_cache(uint64_t max_bytes)
{
        _cleanup_free_ char *path = path_join(dir, "cache");
        struct scan_cache *c;

        ck_assert_int_eq(scan_cache_open(path, max_bytes, &c, NULL), ST_OK);
        return c;
}

static void get(struct scan_cache *c, const char *key, struct maker *m, enum status want)
{
        struct error err;
        char text[101];
        int fd = -1;

        ck_assert_int_eq(scan_cache_get(c, key, make, m, NULL, &fd, &err), want);
        if (want)
                return;
        ck_assert_int_eq(pread(fd, text, sizeof text, 0), (ssize_t)m->bytes);
        close(fd);
}

struct asker {
        struct scan_cache *cache;
        struct maker *maker;
        enum status want;
};

static void *ask(void *arg)
{
        struct asker *a = arg;

        get(a->cache, "one", a->maker, a->want);
        return NULL;
}

static void ask_from_many_threads(struct scan_cache *c, struct maker *m, enum status want)
{
        struct asker a = { c, m, want };
        pthread_t threads[8];

        for (size_t i = 0; i < 8; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, &a), 0);
        while (atomic_load(&m->calls) == 0)
                usleep(1000);
        usleep(50000); /* the others are waiting by now, or find it made: both are right */
        atomic_store(&m->may_go_on, true);
        for (size_t i = 0; i < 8; i++)
                pthread_join(threads[i], NULL);
}

START_TEST(a_file_that_many_ask_for_is_made_once)
{
        struct scan_cache *c = open_cache(1000);
        struct maker m = { .bytes = 100 };

        ask_from_many_threads(c, &m, ST_OK);
        ck_assert_uint_eq(atomic_load(&m.calls), 1);
        scan_cache_close(c);
}
END_TEST

START_TEST(who_waits_for_a_file_that_cannot_be_made_gets_the_reason)
{
        struct scan_cache *c = open_cache(1000);
        struct maker m = { .st = ST_BAD_DATA };
        int fd;

        ask_from_many_threads(c, &m, ST_BAD_DATA);
        ck_assert_int_eq(scan_cache_look(c, "one", &fd), ST_NOT_FOUND);
        m.st = ST_OK;
        m.bytes = 10;
        get(c, "one", &m, ST_OK); /* a failure is not remembered */
        scan_cache_close(c);
}
END_TEST

START_TEST(what_was_used_last_stays)
{
        struct scan_cache *c = open_cache(250);
        struct maker m = { .bytes = 100, .may_go_on = true };
        int fd;

        get(c, "a", &m, ST_OK);
        get(c, "b", &m, ST_OK);
        ck_assert_int_eq(scan_cache_look(c, "a", &fd), ST_OK);
        get(c, "c", &m, ST_OK);
        ck_assert_int_eq(scan_cache_look(c, "b", &(int){ -1 }), ST_NOT_FOUND);
        ck_assert_int_eq(pread(fd, (char[1]){ 0 }, 1, 0), 1);
        close(fd);
        ck_assert_int_eq(scan_cache_look(c, "a", &fd), ST_OK);
        close(fd);
        ck_assert_uint_eq(atomic_load(&m.calls), 3);
        scan_cache_close(c);
}
END_TEST

START_TEST(a_file_larger_than_the_cache_is_handed_out_and_costs_the_others_nothing)
{
        struct scan_cache *c = open_cache(99);
        struct maker small = { .bytes = 50, .may_go_on = true }, large = { .bytes = 100, .may_go_on = true };
        int fd;

        get(c, "small", &small, ST_OK);
        get(c, "large", &large, ST_OK);
        ck_assert_int_eq(scan_cache_look(c, "large", &fd), ST_NOT_FOUND);
        ck_assert_int_eq(scan_cache_look(c, "small", &fd), ST_OK);
        close(fd);
        get(c, "large", &large, ST_OK);
        ck_assert_uint_eq(atomic_load(&large.calls), 2);
        scan_cache_close(c);
}
END_TEST

/* ---- the index ---- */

static struct scan_index *open_index(void)
{
        _cleanup_free_ char *path = path_join(dir, "index");
        struct scan_index *ix;

        ck_assert_int_eq(scan_index_open(path, &ix, NULL), ST_OK);
        return ix;
}

static struct build_id id_of(uint8_t last)
{
        struct build_id id;

        ck_assert(build_id_from_bytes(&id, (uint8_t[]){ 1, 2, 3, last }, 4));
        return id;
}

/* A file at path with one object and one source. */
static void put(struct scan_index *ix, const char *path, int64_t mtime_ns, uint8_t last)
{
        static const char sections[] = ".text\0\x10\x80\x01.comment\0\x00\x02"; /* 0x80 bytes at 0x10; 2 at 0 */
        struct found_object o = { .build_id = id_of(last), .kinds = FOUND_DEBUGINFO, .quality = QUALITY_DWARF, .size_bytes = 5,
                                  .ordinal = 7, .path = "/usr/lib/debug/x", .sections = sections,
                                  .sections_bytes = last == 1 ? sizeof sections - 1 : 0 };
        struct found_source s = { found_path_hash("/usr/src/x.c"), 9 };
        struct scan_result r = { .file = { mtime_ns, 10, 20, FOUND_ARCHIVE, true, path },
                                 .found = { .objects = &o, .object_count = 1, .sources = &s, .source_count = 1 } };

        ck_assert_int_eq(scan_index_put(ix, &r, 1, NULL), ST_OK);
}

START_TEST(what_changed_takes_the_place_of_what_was_there)
{
        struct scan_index *ix = open_index();
        struct build_id one = id_of(1), two = id_of(2);
        struct scan_place *places;
        struct scan_counts counts;
        uint32_t number;
        size_t count;

        put(ix, "/p/a.deb", 100, 1);
        ck_assert_int_eq(scan_index_find(ix, &one, &places, &count, NULL), ST_OK);
        ck_assert_uint_eq(count, 1);
        ck_assert_str_eq(places[0].file.path, "/p/a.deb");
        ck_assert_str_eq(places[0].object.path, "/usr/lib/debug/x");
        ck_assert_uint_eq(places[0].object.ordinal, 7);
        number = places[0].number;
        scan_places_free(places, count);
        put(ix, "/p/a.deb", 200, 2);
        ck_assert_int_eq(scan_index_find(ix, &one, &places, &count, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(scan_index_find(ix, &two, &places, &count, NULL), ST_OK);
        ck_assert_uint_ne(places[0].number, number);
        number = places[0].number;
        scan_places_free(places, count);
        ck_assert_int_eq(scan_index_find_source(ix, found_path_hash("/usr/src/x.c"), &places, &count, NULL), ST_OK);
        ck_assert_uint_eq(count, 1);
        ck_assert_uint_eq(places[0].object.ordinal, 9);
        scan_places_free(places, count);
        ck_assert_int_eq(scan_index_remove(ix, &number, 1, NULL), ST_OK);
        ck_assert_int_eq(scan_index_count(ix, &counts, NULL), ST_OK);
        ck_assert_uint_eq(counts.files + counts.objects + counts.sources, 0);
        scan_index_close(ix);
}
END_TEST

START_TEST(sections_are_those_of_one_member_of_the_file_as_it_was)
{
        struct scan_index *ix = open_index();
        uint64_t offset = 77, size = 77;
        struct build_id one = id_of(1);
        struct scan_place *places;
        uint32_t number;
        size_t count;

        put(ix, "/p/s.deb", 100, 1);
        ck_assert_int_eq(scan_index_find(ix, &one, &places, &count, NULL), ST_OK);
        number = places[0].number;
        scan_places_free(places, count);
        ck_assert_int_eq(scan_index_section(ix, number, 7, ".tex", &offset, &size, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(scan_index_section(ix, number, 6, ".text", &offset, &size, NULL), ST_UNSUPPORTED);
        ck_assert_uint_eq(offset + size, 154);
        ck_assert_int_eq(scan_index_section(ix, number, 7, ".text", &offset, &size, NULL), ST_OK);
        ck_assert_uint_eq(offset, 0x10);
        ck_assert_uint_eq(size, 0x80);
        ck_assert_int_eq(scan_index_section(ix, number, 7, ".comment", &offset, &size, NULL), ST_OK);
        ck_assert_uint_eq(size, 2);
        put(ix, "/p/s.deb", 200, 2);
        ck_assert_int_eq(scan_index_section(ix, number, 7, ".text", &offset, &size, NULL), ST_UNSUPPORTED);
        ck_assert_int_eq(scan_index_section(ix, number + 1, 7, ".text", &offset, &size, NULL), ST_UNSUPPORTED);
        scan_index_close(ix);
}
END_TEST

START_TEST(a_damaged_list_of_sections_names_nothing_outside_of_it)
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

START_TEST(an_id_that_begins_like_another_is_another)
{
        struct scan_index *ix = open_index();
        struct build_id shorter, one = id_of(1);

        put(ix, "/p/a.deb", 100, 1);
        ck_assert(build_id_from_bytes(&shorter, one.bytes, 3));
        ck_assert_uint_eq(scan_index_kinds(ix, &shorter), 0);
        ck_assert_uint_eq(scan_index_kinds(ix, &one), FOUND_DEBUGINFO);
        scan_index_close(ix);
        ix = open_index(); /* it outlives a restart */
        ck_assert_uint_eq(scan_index_kinds(ix, &one), FOUND_DEBUGINFO);
        scan_index_close(ix);
}
END_TEST

START_TEST(a_path_is_normalised)
{
        static const char *const pairs[][2] = { { "/a/./b/../c//d", "/a/c/d" }, { "/../../x", "/x" }, { "//", "" } };

        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
                char path[32];

                snprintf(path, sizeof path, "%s", pairs[i][0]);
                found_path_normalise(path);
                ck_assert_str_eq(path, pairs[i][1]);
        }
}
END_TEST

/* ---- sources ---- */

#define QUESTIONS 16 /* more than the cache makes files at one time */

static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        unsigned count;
        int64_t end_ns;
} openers = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* Debuginfo that comes once all who ask are here, and then is none. */
static enum status open_once_all_ask(void *context, int *fd_ret, struct error *err)
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
        return in_time ? error_set(err, ST_UNSUPPORTED, "it has none") : error_set(err, ST_BUSY, "the others do not come");
}

struct question {
        struct scan *scan;
        char identity[33];
        enum status st;
};

static void *ask_for_source(void *arg)
{
        struct question *q = arg;
        const struct scan_debuginfo other = { .identity = q->identity, .open = open_once_all_ask };
        struct build_id one = id_of(1);
        struct scan_opened o;
        struct error err;

        q->st = scan_open_source(q->scan, &one, "/usr/src/x.c", &other, NULL, &o, &err);
        return NULL;
}

START_TEST(who_opens_debuginfo_for_its_names_keeps_nobody_from_unpacking)
{
        struct scan s = { .cache = open_cache(1000), .index = open_index() };
        struct question questions[QUESTIONS];
        pthread_t threads[QUESTIONS];

        openers.end_ns = monotonic_ns() + INT64_C(60000000000);
        for (size_t i = 0; i < QUESTIONS; i++) {
                questions[i] = (struct question){ .scan = &s };
                snprintf(questions[i].identity, sizeof questions[i].identity, "%032zu", i);
                ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_for_source, &questions[i]), 0);
        }
        for (size_t i = 0; i < QUESTIONS; i++)
                pthread_join(threads[i], NULL);
        for (size_t i = 0; i < QUESTIONS; i++)
                ck_assert_int_eq(questions[i].st, ST_UNSUPPORTED);
        scan_index_close(s.index);
        scan_cache_close(s.cache);
}
END_TEST

/* ---- trees ---- */

START_TEST(nothing_outside_of_a_tree_is_opened)
{
        _cleanup_free_ char *root = path_join(dir, "tree"), *inside = path_join(root, "inside"), *outside = path_join(dir, "outside");
        _cleanup_free_ char *link = path_join(root, "link"), *climb = path_join(root, "../outside"), *good = path_join(root, "good");
        struct scan_trees t;
        struct stat info;
        int fd;

        ck_assert_int_eq(file_make_dirs(root, NULL), ST_OK);
        ck_assert_int_eq(file_write_durable(inside, "x", 1, NULL), ST_OK);
        ck_assert_int_eq(file_write_durable(outside, "x", 1, NULL), ST_OK);
        ck_assert_int_eq(symlink(outside, link), 0);
        ck_assert_int_eq(symlink("inside", good), 0);
        ck_assert_int_eq(scan_trees_init(&t, (const char *const[]){ root }, 1, NULL), ST_OK);
        ck_assert_int_eq(scan_trees_open(&t, outside, SCAN_LINKS_INSIDE, &fd, &info, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(scan_trees_open(&t, climb, SCAN_LINKS_INSIDE, &fd, &info, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(scan_trees_open(&t, link, SCAN_LINKS_INSIDE, &fd, &info, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(scan_trees_open(&t, good, SCAN_LINKS_NONE, &fd, &info, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(scan_trees_open(&t, root, SCAN_LINKS_INSIDE, &fd, &info, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(scan_trees_open(&t, good, SCAN_LINKS_INSIDE, &fd, &info, NULL), ST_OK);
        close(fd);
        ck_assert_int_eq(scan_trees_open(&t, inside, SCAN_LINKS_NONE, &fd, &info, NULL), ST_OK);
        close(fd);
        for (size_t i = 0; i < 4; i++) {
                const char *const paths[] = { outside, link, climb, good };
                enum status st = scan_trees_open(&t, paths[i], SCAN_LINKS_NONE_AT_ONCE, &fd, &info, NULL);

                ck_assert_msg(st == ST_NOT_FOUND || st == ST_BUSY, "%s: %d", paths[i], st);
        }
        fd = -1;
        if (scan_trees_open(&t, inside, SCAN_LINKS_NONE_AT_ONCE, &fd, &info, NULL) != ST_BUSY)
                ck_assert_int_ge(fd, 0);
        close(fd);
        scan_trees_deinit(&t);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = { a_file_that_many_ask_for_is_made_once,
                                       who_waits_for_a_file_that_cannot_be_made_gets_the_reason,
                                       what_was_used_last_stays,
                                       a_file_larger_than_the_cache_is_handed_out_and_costs_the_others_nothing,
                                       what_changed_takes_the_place_of_what_was_there,
                                       sections_are_those_of_one_member_of_the_file_as_it_was,
                                       a_damaged_list_of_sections_names_nothing_outside_of_it,
                                       an_id_that_begins_like_another_is_another,
                                       a_path_is_normalised,
                                       who_opens_debuginfo_for_its_names_keeps_nobody_from_unpacking,
                                       nothing_outside_of_a_tree_is_opened };

        return suite_run_with("scan", make_dir, remove_dir, tests, sizeof tests / sizeof *tests);
}
