/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/buf.h"
#include "debuginfo-store/frame_cache.h"
#include "debuginfo-store/seekable.h"
#include "storage/storage_operations.h"
#include "tests/support/suite.h"

#define SIZE (13 * SEEKABLE_FRAME_BYTES + 12345)

static uint8_t content[SIZE];

static int packed_file(uint64_t *stored)
{
        int in = memfd_create("in", 0), out = memfd_create("out", 0);
        struct error err;

        for (size_t i = 0; i < SIZE; i++)
                content[i] = (uint8_t)(i * 2654435761u >> (i % 13));
        ck_assert_int_eq(file_write_all(in, content, SIZE, "in", &err), ST_OK);
        ck_assert_int_eq(seekable_compress(in, SIZE, out, "out", stored, &err), ST_OK);
        close(in);
        return out;
}

START_TEST(ranges_across_frames_are_correct)
{
        static const struct {
                uint64_t at;
                size_t n;
        } ranges[] = {
                { 0, 1 },
                { 0, SIZE },
                { SEEKABLE_FRAME_BYTES - 1, 2 },
                { 2 * SEEKABLE_FRAME_BYTES, 100 },
                { SIZE - 1, 10 },
                { 5, 2 * SEEKABLE_FRAME_BYTES },
        };
        struct seekable_reader *r;
        struct error err;
        uint64_t stored;
        int fd = packed_file(&stored);
        uint8_t *got = malloc(SIZE + 10);

        ck_assert_int_eq(seekable_open(fd, "out", &r, &err), ST_OK);
        ck_assert_uint_eq(seekable_get_size(r), SIZE);
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
                size_t left = SIZE - ranges[i].at, want = ranges[i].n < left ? ranges[i].n : left;

                ck_assert_int_eq(seekable_pread(r, got, ranges[i].n, ranges[i].at, &err), (ssize_t)want);
                ck_assert(memcmp(got, content + ranges[i].at, want) == 0);
        }
        ck_assert_int_eq(seekable_pread(r, got, 10, SIZE, &err), 0);
        free(got);
        seekable_close(r);
}
END_TEST

START_TEST(truncations_and_flipped_table_bytes_give_error_or_same_bytes)
{
        struct error err;
        uint64_t stored;
        int whole = packed_file(&stored);
        uint8_t *bytes = malloc(stored), *got = malloc(SIZE);

        ck_assert_int_eq(pread(whole, bytes, stored, 0), (ssize_t)stored);
        close(whole);
        for (uint64_t cut = stored - 60; cut < stored; cut++) {
                struct seekable_reader *r;
                int fd = memfd_create("cut", 0);

                ck_assert_int_eq(file_write_all(fd, bytes, cut, "cut", &err), ST_OK);
                ck_assert_int_ne(seekable_open(fd, "cut", &r, &err), ST_OK);
        }
        for (uint64_t at = stored - 60; at < stored; at++) {
                struct seekable_reader *r;
                int fd = memfd_create("flip", 0);

                bytes[at] ^= 0x41;
                ck_assert_int_eq(file_write_all(fd, bytes, stored, "flip", &err), ST_OK);
                bytes[at] ^= 0x41;
                if (seekable_open(fd, "flip", &r, &err))
                        continue;
                if (seekable_pread(r, got, SIZE, 0, &err) == SIZE)
                        ck_assert(memcmp(got, content, SIZE) == 0);
                seekable_close(r);
        }
        free(bytes);
        free(got);
}
END_TEST

/* Frames of 1 MiB, as other writers use. */
static int file_of_large_frames(void)
{
        enum { LARGE = 4 * SEEKABLE_FRAME_BYTES };
        size_t bound = ZSTD_compressBound(LARGE);
        int fd = memfd_create("large", 0);
        uint8_t *packed = malloc(bound);
        _cleanup_buf_ struct buf table;
        uint32_t frames = 0;

        buf_init(&table, KiB(64));
        for (size_t at = 0; at < SIZE; at += LARGE, frames++) {
                size_t n = SIZE - at < LARGE ? SIZE - at : LARGE;
                size_t size = ZSTD_compress(packed, bound, content + at, n, 3);

                ck_assert_int_eq(write(fd, packed, size), (ssize_t)size);
                buf_append_u32(&table, (uint32_t)size);
                buf_append_u32(&table, (uint32_t)n);
        }
        ck_assert_int_eq(write(fd, (const uint32_t[]){ 0x184D2A5E, 8 * frames + 9 }, 8), 8);
        buf_append_u32(&table, frames);
        buf_append_u8(&table, 0);
        buf_append_u32(&table, 0x8F92EAB1);
        ck_assert_int_eq(write(fd, table.data, table.size), (ssize_t)table.size);
        free(packed);
        return fd;
}

START_TEST(frames_above_the_limit_are_refused)
{
        struct seekable_reader *r;
        struct error err;
        uint64_t stored;

        close(packed_file(&stored)); /* fills content */
        ck_assert_int_eq(seekable_open(file_of_large_frames(), "large", &r, &err), ST_BAD_DATA);
}
END_TEST

START_TEST(cached_frames_give_the_same_bytes)
{
        static const uint8_t sha256[32] = { 7 };
        struct frame_cache *frames;
        struct seekable_reader *r;
        uint8_t got[3000];
        struct error err;
        uint64_t stored;

        ck_assert_int_eq(frame_cache_create(MiB(4), &frames, &err), ST_OK);
        ck_assert_int_eq(seekable_open(packed_file(&stored), "packed", &r, &err), ST_OK);
        seekable_use_cache(r, frames, sha256);
        for (uint64_t at = 0; at + sizeof got <= SIZE; at += 100001) {
                for (unsigned again = 0; again < 2; again++) {
                        memset(got, 0, sizeof got);
                        ck_assert_int_eq(seekable_pread(r, got, sizeof got, at, &err), (ssize_t)sizeof got);
                        ck_assert(memcmp(got, content + at, sizeof got) == 0);
                }
                ck_assert_uint_eq(frame_cache_read(frames, sha256, got, sizeof got, at), sizeof got);
        }
        seekable_close(r);
        frame_cache_destroy(frames);
}
END_TEST

/* ---- a remote object, of which some bytes were damaged on the way ---- */

static struct {
        uint8_t *sent, *received;
        unsigned reloads;
} remote;

static enum status require_nothing(struct storage_map *m, const struct file_range *ranges, size_t count,
                                   struct error *err)
{
        (void)m, (void)ranges, (void)count, (void)err;
        return ST_OK;
}

static enum status receive_again(struct storage_map *m, const struct file_range *ranges, size_t count,
                                 struct error *err)
{
        (void)m, (void)err;
        remote.reloads++;
        for (size_t i = 0; i < count; i++)
                memcpy(remote.received + ranges[i].offset, remote.sent + ranges[i].offset, ranges[i].size);
        return ST_OK;
}

static void unmap_nothing(struct storage_map *m)
{
        (void)m;
}

START_TEST(frames_and_tables_that_another_copy_has_whole_are_read)
{
        static const struct storage_operations operations = { .require = require_nothing,
                                                              .reload = receive_again,
                                                              .unmap = unmap_nothing };
        struct storage storage = { .operations = &operations };
        uint8_t *got = malloc(SIZE);
        struct error err;
        uint64_t stored;
        int fd = packed_file(&stored);
        const uint64_t damaged[] = { 7, stored / 2, stored - 30, stored - 1 }; /* two frames, the table, its footer */

        remote.sent = malloc(stored);
        remote.received = malloc(stored);
        ck_assert_int_eq(pread(fd, remote.sent, stored, 0), (ssize_t)stored);
        close(fd);
        for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
                struct storage_map map = { .file = { remote.received, stored }, .storage = &storage };
                struct seekable_reader *r;

                memcpy(remote.received, remote.sent, stored);
                remote.received[damaged[i]] ^= 0x10;
                remote.reloads = 0;
                check_ok(seekable_open_map(&map, "remote", &r, &err), &err);
                ck_assert_int_eq(seekable_pread(r, got, SIZE, 0, &err), SIZE);
                ck_assert(memcmp(got, content, SIZE) == 0);
                ck_assert_uint_eq(remote.reloads, 1);
                seekable_close(r);
        }
        free(remote.sent);
        free(remote.received);
        free(got);
}
END_TEST

TEST_SUITE("seekable", ranges_across_frames_are_correct, cached_frames_give_the_same_bytes,
           frames_above_the_limit_are_refused, truncations_and_flipped_table_bytes_give_error_or_same_bytes,
           frames_and_tables_that_another_copy_has_whole_are_read)
