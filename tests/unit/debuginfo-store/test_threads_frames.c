/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of decompressed frames of stored objects. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "debuginfo-store/frame_cache.h"
#include "debuginfo-store/seekable.h"
#include "tests/support/suite.h"

#define FRAME SEEKABLE_FRAME_BYTES

static const uint8_t content[32] = { 1, 2, 3 }, other[32] = { 1, 2, 4 };

/* The value of the byte at an offset encodes the offset. */
static uint8_t byte_at(uint64_t offset)
{
        return (uint8_t)(offset * 31 + offset / FRAME);
}

static void put(struct frame_cache *f, const uint8_t *sha256, uint64_t at, size_t n)
{
        uint8_t *bytes = malloc(n);

        ck_assert_ptr_nonnull(bytes);
        for (size_t i = 0; i < n; i++)
                bytes[i] = byte_at(at + i);
        frame_cache_insert(f, sha256, at, bytes, n);
}

/* The number of cached bytes, of n from offset on; these must be correct. */
static size_t copied(struct frame_cache *f, const uint8_t *sha256, uint64_t offset, size_t n)
{
        uint8_t *to = malloc(n);
        size_t done = frame_cache_read(f, sha256, to, n, offset);

        ck_assert_uint_le(done, n);
        for (size_t i = 0; i < done; i++)
                ck_assert_uint_eq(to[i], byte_at(offset + i));
        free(to);
        return done;
}

static struct frame_cache *make(size_t max_bytes)
{
        struct frame_cache *f;

        ck_assert_int_eq(frame_cache_create(max_bytes, &f, NULL), ST_OK);
        return f;
}

START_TEST(bytes_are_copied_up_to_first_uncached_one)
{
        struct frame_cache *f = make(MiB(8));

        put(f, content, 0, FRAME);
        put(f, content, FRAME, FRAME);
        put(f, content, 3 * FRAME, 100); /* the last frame of its file */
        ck_assert_uint_eq(copied(f, content, 0, 2 * FRAME), 2 * FRAME);
        ck_assert_uint_eq(copied(f, content, FRAME - 10, 20), 20);
        ck_assert_uint_eq(copied(f, content, 2 * FRAME - 10, 20), 10);
        ck_assert_uint_eq(copied(f, content, 2 * FRAME, 20), 0);
        ck_assert_uint_eq(copied(f, content, 3 * FRAME + 90, 20), 10);
        ck_assert_uint_eq(copied(f, content, 3 * FRAME + 100, 20), 0);
        ck_assert_uint_eq(copied(f, other, 0, 20), 0);
        ck_assert_uint_eq(copied(f, content, UINT64_MAX - 5, 20), 0);
        frame_cache_destroy(f);
}
END_TEST

START_TEST(least_recently_used_frames_are_evicted)
{
        struct frame_cache *f = make(8 * FRAME);

        for (unsigned i = 0; i < 7; i++)
                put(f, content, (uint64_t)i * FRAME, FRAME);
        ck_assert_uint_eq(copied(f, content, 0, 1), 1); /* now the most recently used */
        put(f, content, 7 * FRAME, FRAME);
        ck_assert_uint_eq(copied(f, content, 0, 1), 1);
        ck_assert_uint_eq(copied(f, content, FRAME, 1), 0);
        ck_assert_uint_eq(copied(f, content, 7 * FRAME, 1), 1);
        for (unsigned i = 0; i < 1000; i++)
                put(f, other, (uint64_t)i * FRAME, FRAME);
        ck_assert_uint_eq(copied(f, content, 0, 1), 0);
        ck_assert_uint_le(copied(f, other, 993 * FRAME, 7 * FRAME), 7 * FRAME);
        put(f, content, 0, 9 * FRAME); /* larger than all */
        ck_assert_uint_eq(copied(f, content, 0, 1), 0);
        frame_cache_destroy(f);
}
END_TEST

/* ---- concurrent use ---- */

#define ROUNDS 2000
#define FRAMES 12

static void *use(void *context)
{
        struct frame_cache *f = context;
        unsigned seed = (unsigned)(uintptr_t)pthread_self();

        for (unsigned i = 0; i < ROUNDS; i++) {
                uint64_t at = (uint64_t)(rand_r(&seed) % FRAMES) * FRAME;

                if (!copied(f, content, at + 10, 100))
                        put(f, content, at, 200);
        }
        return NULL;
}

START_TEST(bytes_are_correct_during_concurrent_eviction)
{
        struct frame_cache *f = make(6 * 300);
        pthread_t threads[4];

        for (size_t i = 0; i < 4; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, use, f), 0);
        for (size_t i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        frame_cache_destroy(f);
}
END_TEST

START_TEST(caches_of_several_stores_share_one_limit)
{
        struct frame_cache *a = make(2 * FRAME + FRAME / 2), *b = make(2 * FRAME + FRAME / 2);

        put(a, content, 0, FRAME);
        put(a, content, FRAME, FRAME);
        put(b, content, 0, FRAME);
        put(b, content, FRAME, FRAME);
        ck_assert_uint_eq(copied(b, content, FRAME, FRAME), FRAME); /* the newest */
        ck_assert_uint_eq(copied(b, content, 0, FRAME), 0);
        ck_assert_uint_eq(copied(a, content, 0, 2 * FRAME), 2 * FRAME);
        frame_cache_destroy(a);
        put(b, content, 0, FRAME);
        ck_assert_uint_eq(copied(b, content, 0, 2 * FRAME), 2 * FRAME);
        frame_cache_destroy(b);
}
END_TEST

TEST_SUITE("threads frames", bytes_are_copied_up_to_first_uncached_one, least_recently_used_frames_are_evicted,
           caches_of_several_stores_share_one_limit, bytes_are_correct_during_concurrent_eviction)
