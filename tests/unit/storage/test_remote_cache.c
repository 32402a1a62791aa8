/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of remote objects in local files: what is fetched, once, and what is dropped. */
#include <string.h>
#include <unistd.h>

#include "common/limits.h"
#include "storage/s3/remote_cache.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define BLOCK REMOTE_CACHE_BLOCK_BYTES

static char dir[TEMPORARY_DIR_BYTES];
static struct remote_cache *cache;
static unsigned fetches;
static uint64_t fetched_bytes;
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

TEST_SUITE_WITH_FIXTURE("remote_cache", blocks_are_fetched_once, near_ranges_are_fetched_together,
                        failed_fetch_leaves_nothing_present, ranges_beyond_the_end_are_refused,
                        least_recently_used_object_is_dropped, objects_in_use_are_kept,
                        removed_object_stays_for_its_users, blocks_written_in_part_are_fetched)
