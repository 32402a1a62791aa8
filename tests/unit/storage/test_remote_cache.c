/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time limit: 60 s.
 *
 * Parts of remote objects in local files: what is fetched, once, and what is dropped.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/threads/condition.h"
#include "storage/s3/remote_cache.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define BLOCK REMOTE_CACHE_BLOCK_BYTES

static char dir[TEMPORARY_DIR_BYTES];
static struct remote_cache *cache;
static _Atomic unsigned fetches; /* of several threads */
static _Atomic uint64_t fetched_bytes;
static bool is_away;

static void set_up(void)
{
        struct error err;

        temporary_dir_create(dir, "cache");
        check_ok(remote_cache_create(dir, 8 * BLOCK, &cache, &err), &err);
        fetches = 0;
        fetched_bytes = 0;
        is_away = false;
}

static void tear_down(void)
{
        remote_cache_destroy(cache);
        temporary_dir_remove(dir);
}

/* Byte i of each object is i / BLOCK + 1. */
static enum status fetch_numbers(void *context, const char *key, const struct storage_info *info, int fd,
                                 const struct file_range *range, struct error *err)
{
        (void)context, (void)key, (void)info;
        if (is_away)
                return error_set(err, ST_OS, "away");
        fetches++;
        fetched_bytes += range->size;
        for (uint64_t at = range->offset; at < range->offset + range->size; at++) {
                char byte = (char)(at / BLOCK + 1);

                if (at % KiB(4) == 0) /* one byte of a page is enough */
                        ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)at), 1);
        }
        return ST_OK;
}

static struct remote_object *add_object(const char *key, uint64_t size)
{
        const struct storage_info info = { .size = size, .etag = "e" };
        struct remote_object *o = NULL;
        struct error err;

        check_ok(remote_cache_add(cache, key, &info, &o, &err), &err);
        return o;
}

static enum status require_range(struct remote_object *o, uint64_t offset, uint64_t size)
{
        return remote_cache_require(cache, o, &(struct file_range){ offset, size }, 1, fetch_numbers, NULL, NULL);
}

static int read_byte(const struct remote_object *o, uint64_t at)
{
        char byte;

        ck_assert_int_eq(pread(remote_object_fd(o), &byte, 1, (off_t)at), 1);
        return byte;
}

START_TEST(blocks_are_fetched_once)
{
        struct remote_object *o = add_object("a", 100 * BLOCK + 5);

        check_ok(require_range(o, BLOCK + 7, 1), NULL);
        ck_assert_uint_eq(fetched_bytes, BLOCK);
        ck_assert_int_eq(read_byte(o, BLOCK), 2);
        check_ok(require_range(o, BLOCK, BLOCK), NULL);
        ck_assert_uint_eq(fetches, 1);
        check_ok(require_range(o, 100 * BLOCK, 5), NULL); /* the last block is short */
        ck_assert_uint_eq(fetched_bytes, BLOCK + 5);
        remote_cache_release(cache, o);
}
END_TEST

START_TEST(near_ranges_are_fetched_together)
{
        struct remote_object *o = add_object("a", 100 * BLOCK);
        const struct file_range ranges[] = { { 50 * BLOCK, 1 }, { 0, 1 }, { 3 * BLOCK, 1 } };

        check_ok(remote_cache_require(cache, o, ranges, 3, fetch_numbers, NULL, NULL), NULL);
        ck_assert_uint_eq(fetches, 2);
        ck_assert_uint_eq(fetched_bytes, 5 * BLOCK);
        remote_cache_release(cache, o);
}
END_TEST

static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        unsigned begun, alone; /* fetches; those that waited in vain for the others */
} held = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

#define HELD 3

/* Fails the test when fetches are made one after the other. */
static enum status fetch_when_all_have_begun(void *context, const char *key, const struct storage_info *info, int fd,
                                             const struct file_range *range, struct error *err)
{
        const int64_t until_ns = monotonic_ns() + INT64_C(30000000000);

        pthread_mutex_lock(&held.lock);
        held.begun++;
        pthread_cond_broadcast(&held.changed);
        while (held.begun < HELD && monotonic_ns() < until_ns)
                condition_wait_until(&held.changed, &held.lock, until_ns);
        held.alone += held.begun < HELD;
        pthread_mutex_unlock(&held.lock);
        return fetch_numbers(context, key, info, fd, range, err);
}

START_TEST(distant_ranges_are_fetched_at_the_same_time)
{
        struct remote_object *o = add_object("a", 100 * BLOCK);
        const struct file_range ranges[HELD] = { { 50 * BLOCK, 1 }, { 0, 1 }, { 90 * BLOCK, 1 } };

        check_ok(remote_cache_require(cache, o, ranges, HELD, fetch_when_all_have_begun, NULL, NULL), NULL);
        ck_assert_uint_eq(held.alone, 0);
        ck_assert_uint_eq(fetches, HELD);
        for (int i = 0; i < HELD; i++)
                ck_assert_int_eq(read_byte(o, ranges[i].offset), (int)(ranges[i].offset / BLOCK + 1));
        check_ok(remote_cache_require(cache, o, ranges, HELD, fetch_numbers, NULL, NULL), NULL);
        ck_assert_uint_eq(fetches, HELD);
        remote_cache_release(cache, o);
}
END_TEST

START_TEST(failed_fetch_leaves_nothing_present)
{
        struct remote_object *o = add_object("a", 2 * BLOCK);

        is_away = true;
        ck_assert_int_eq(require_range(o, 0, 1), ST_OS);
        is_away = false;
        check_ok(require_range(o, 0, 1), NULL);
        ck_assert_int_eq(read_byte(o, 0), 1);
        remote_cache_release(cache, o);
}
END_TEST

START_TEST(without_a_fetch_only_present_ranges_are_there)
{
        struct remote_object *o = add_object("a", 10 * BLOCK);
        const struct file_range ranges[] = { { 2 * BLOCK, BLOCK }, { 3 * BLOCK, 1 } };
        struct error err = { 0 };

        check_ok(require_range(o, 2 * BLOCK, 1), NULL);
        check_ok(remote_cache_require(cache, o, ranges, 1, NULL, NULL, &err), &err);
        ck_assert_int_eq(remote_cache_require(cache, o, ranges, 2, NULL, NULL, &err), ST_OS);
        ck_assert_int_eq(err.os_errno, EREMOTEIO);
        check_ok(require_range(o, 3 * BLOCK, 1), NULL);
        remote_cache_release(cache, o);
}
END_TEST

START_TEST(ranges_beyond_the_end_are_refused)
{
        struct remote_object *o = add_object("a", 10);

        ck_assert_int_eq(require_range(o, 0, 11), ST_BAD_DATA);
        ck_assert_int_eq(require_range(o, UINT64_MAX, 2), ST_BAD_DATA);
        ck_assert_uint_eq(fetches, 0);
        remote_cache_release(cache, o);
}
END_TEST

START_TEST(least_recently_used_object_is_dropped)
{
        struct remote_object *a = add_object("a", 4 * BLOCK), *b = add_object("b", 4 * BLOCK), *c;

        check_ok(require_range(a, 0, 4 * BLOCK), NULL);
        check_ok(require_range(b, 0, 4 * BLOCK), NULL);
        remote_cache_release(cache, a);
        remote_cache_release(cache, b);
        remote_cache_release(cache, remote_cache_get(cache, "a"));
        c = add_object("c", BLOCK);
        check_ok(require_range(c, 0, 1), NULL);
        ck_assert_ptr_null(remote_cache_get(cache, "b"));
        a = remote_cache_get(cache, "a");
        ck_assert_ptr_nonnull(a);
        remote_cache_release(cache, a);
        remote_cache_release(cache, c);
}
END_TEST

/* A map must not lose its bytes, whatever else is read. */
START_TEST(objects_in_use_are_kept)
{
        struct remote_object *a = add_object("a", 8 * BLOCK), *b = add_object("b", 8 * BLOCK);

        check_ok(require_range(a, 0, 8 * BLOCK), NULL);
        check_ok(require_range(b, 0, 8 * BLOCK), NULL);
        fetches = 0;
        check_ok(require_range(a, 0, 8 * BLOCK), NULL);
        ck_assert_uint_eq(fetches, 0);
        ck_assert_int_eq(read_byte(a, 7 * BLOCK), 8);
        remote_cache_release(cache, a);
        remote_cache_release(cache, b);
}
END_TEST

START_TEST(removed_object_stays_for_its_users)
{
        struct remote_object *a = add_object("a", BLOCK);

        check_ok(require_range(a, 0, 1), NULL);
        remote_cache_remove(cache, "a");
        ck_assert_ptr_null(remote_cache_get(cache, "a"));
        ck_assert_int_eq(read_byte(a, 0), 1);
        remote_cache_release(cache, a);
}
END_TEST

/* The end of an object is fetched before its size is known; only whole blocks of it count. */
START_TEST(blocks_written_in_part_are_fetched)
{
        struct remote_object *a = add_object("a", 3 * BLOCK + 10);

        remote_cache_note_present(cache, a, &(struct file_range){ 2 * BLOCK + 10, BLOCK });
        check_ok(require_range(a, 3 * BLOCK, 10), NULL);
        ck_assert_uint_eq(fetches, 0);
        check_ok(require_range(a, 2 * BLOCK, 1), NULL);
        ck_assert_uint_eq(fetched_bytes, BLOCK);
        remote_cache_release(cache, a);
}
END_TEST

/* ---- restarts ---- */

static void reopen_cache(uint64_t max_bytes)
{
        struct error err;

        remote_cache_destroy(cache);
        check_ok(remote_cache_create(dir, max_bytes, &cache, &err), &err);
        fetches = 0;
        fetched_bytes = 0;
}

/* Write a byte at an offset of each file of the cache whose name has this suffix. */
static void damage_files(const char *suffix, uint64_t at)
{
        _cleanup_closedir_ DIR *d = opendir(dir);
        const struct dirent *entry;
        unsigned found = 0;

        ck_assert_ptr_nonnull(d);
        while ((entry = readdir(d))) {
                _cleanup_free_ char *path = path_join(dir, entry->d_name);
                _cleanup_close_ int fd = -1;

                if (!strstr(entry->d_name, suffix))
                        continue;
                fd = open(path, O_WRONLY | O_CLOEXEC);
                ck_assert_int_eq(pwrite(fd, "!", 1, (off_t)at), 1);
                found++;
        }
        ck_assert_uint_gt(found, 0);
}

static unsigned count_cache_files(void)
{
        _cleanup_closedir_ DIR *d = opendir(dir);
        const struct dirent *entry;
        unsigned count = 0;

        while ((entry = readdir(d)))
                count += strstr(entry->d_name, ".data") || strstr(entry->d_name, ".blocks");
        return count;
}

static void fill_object(const char *key, uint64_t size)
{
        struct remote_object *o = add_object(key, size);

        check_ok(require_range(o, 0, size), NULL);
        remote_cache_release(cache, o);
}

START_TEST(objects_are_there_after_a_restart)
{
        struct remote_object *o = add_object("tables/a", 3 * BLOCK + 5);

        check_ok(require_range(o, 0, 1), NULL);
        check_ok(require_range(o, 3 * BLOCK, 5), NULL);
        remote_cache_release(cache, o);
        reopen_cache(8 * BLOCK);
        o = remote_cache_get(cache, "tables/a");
        ck_assert_ptr_nonnull(o);
        ck_assert_uint_eq(remote_object_info(o)->size, 3 * BLOCK + 5);
        ck_assert_str_eq(remote_object_info(o)->etag, "e");
        check_ok(require_range(o, 0, BLOCK), NULL);
        check_ok(require_range(o, 3 * BLOCK, 5), NULL);
        ck_assert_uint_eq(fetches, 0);
        ck_assert_int_eq(read_byte(o, 0), 1);
        check_ok(require_range(o, BLOCK, 1), NULL);
        ck_assert_uint_eq(fetched_bytes, BLOCK);
        remote_cache_release(cache, o);
}
END_TEST

START_TEST(damaged_blocks_are_fetched_again)
{
        struct remote_object *o;

        fill_object("a", 3 * BLOCK);
        damage_files(".data", BLOCK);
        reopen_cache(8 * BLOCK);
        o = remote_cache_get(cache, "a");
        ck_assert_ptr_nonnull(o);
        check_ok(require_range(o, 0, 3 * BLOCK), NULL);
        ck_assert_uint_eq(fetched_bytes, BLOCK);
        ck_assert_int_eq(read_byte(o, BLOCK), 2);
        remote_cache_release(cache, o);
        reopen_cache(8 * BLOCK);
        o = remote_cache_get(cache, "a");
        check_ok(require_range(o, 0, 3 * BLOCK), NULL);
        ck_assert_uint_eq(fetches, 0);
        remote_cache_release(cache, o);
}
END_TEST

/* Each byte of the description may be damaged: the object is unknown then, and its files are removed. */
START_TEST(objects_with_damaged_descriptions_are_unknown)
{
        for (uint64_t at = 0; at < 60; at++) {
                fill_object("a", BLOCK);
                damage_files(".blocks", at);
                reopen_cache(8 * BLOCK);
                ck_assert_ptr_null(remote_cache_get(cache, "a"));
                ck_assert_uint_eq(count_cache_files(), 0);
        }
}
END_TEST

START_TEST(limit_holds_after_a_restart)
{
        fill_object("a", 4 * BLOCK);
        fill_object("b", 4 * BLOCK);
        reopen_cache(4 * BLOCK);
        ck_assert_uint_eq(count_cache_files(), 2);
        reopen_cache(0);
        ck_assert_uint_eq(count_cache_files(), 0);
}
END_TEST

START_TEST(a_removed_object_is_not_there_after_a_restart)
{
        fill_object("a", BLOCK);
        remote_cache_remove(cache, "a");
        reopen_cache(8 * BLOCK);
        ck_assert_ptr_null(remote_cache_get(cache, "a"));
}
END_TEST

/* As of a command that reads the directory of a service. */
START_TEST(a_second_cache_leaves_the_files_of_the_first)
{
        struct remote_cache *first = cache, *second = NULL;
        struct remote_object *o;
        struct error err;

        fill_object("a", BLOCK);
        check_ok(remote_cache_create(dir, 8 * BLOCK, &second, &err), &err);
        ck_assert_ptr_null(remote_cache_get(second, "a"));
        cache = second;
        fill_object("b", BLOCK);
        remote_cache_destroy(second);
        cache = first;
        ck_assert_uint_eq(count_cache_files(), 2);
        reopen_cache(8 * BLOCK);
        o = remote_cache_get(cache, "a");
        ck_assert_ptr_nonnull(o);
        remote_cache_release(cache, o);
}
END_TEST

START_TEST(dropped_ranges_are_fetched_again_until_the_object_must_be_damaged)
{
        const struct file_range two_blocks = { 2 * BLOCK - 1, 2 };
        struct remote_object *o = add_object("a", 100 * BLOCK);

        check_ok(require_range(o, 0, 4 * BLOCK), NULL);
        for (unsigned i = 0; i < REMOTE_CACHE_DROPS_MAX; i++) {
                fetched_bytes = 0;
                ck_assert(remote_cache_drop(cache, o, &two_blocks, 1));
                check_ok(require_range(o, 0, 4 * BLOCK), NULL);
                ck_assert_uint_eq(fetched_bytes, 2 * BLOCK);
                ck_assert_int_eq(read_byte(o, BLOCK), 2);
        }
        fetched_bytes = 0;
        ck_assert(!remote_cache_drop(cache, o, &two_blocks, 1));
        check_ok(require_range(o, 0, 4 * BLOCK), NULL);
        ck_assert_uint_eq(fetched_bytes, 0);
        remote_cache_release(cache, o);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("remote_cache", blocks_are_fetched_once,
                        dropped_ranges_are_fetched_again_until_the_object_must_be_damaged,
                        near_ranges_are_fetched_together, distant_ranges_are_fetched_at_the_same_time,
                        failed_fetch_leaves_nothing_present, without_a_fetch_only_present_ranges_are_there,
                        ranges_beyond_the_end_are_refused, least_recently_used_object_is_dropped,
                        objects_in_use_are_kept, removed_object_stays_for_its_users, blocks_written_in_part_are_fetched,
                        objects_are_there_after_a_restart, damaged_blocks_are_fetched_again,
                        objects_with_damaged_descriptions_are_unknown, limit_holds_after_a_restart,
                        a_removed_object_is_not_there_after_a_restart, a_second_cache_leaves_the_files_of_the_first)
