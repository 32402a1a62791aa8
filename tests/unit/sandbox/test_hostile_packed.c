/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Malicious compressed sections: each file must give an error or a usable table with a reason, within bounded time and
 * memory.
 */
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "common/limits.h"
#include "tests/support/hostile.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/* ---- debug sections ---- */

/* A debug section that claims to decompress to this many bytes, and a valid symbol table. */
static int packed_file(const char *name, bool is_zdebug, uint32_t algorithm, uint64_t claimed, const void *data,
                       size_t size)
{
        _cleanup_buf_ struct buf packed;
        struct elf_maker_section sections[] = {
                HOSTILE_GOOD_SYMBOLS, { .name = name, .type = SHT_PROGBITS, .flags = is_zdebug ? 0 : SHF_COMPRESSED }
        };

        buf_init(&packed, MiB(8));
        if (is_zdebug) {
                buf_append(&packed, "ZLIB", 4);
                for (int i = 7; i >= 0; i--)
                        buf_append_u8(&packed, (uint8_t)(claimed >> 8 * i));
        } else {
                buf_append_u32(&packed, algorithm);
                buf_append_u32(&packed, 0);
                buf_append_u64(&packed, claimed);
                buf_append_u64(&packed, 1);
        }
        buf_append(&packed, data, size);
        sections[2].content = packed.data;
        sections[2].size = packed.size;
        return made_file(sections, 3, NULL);
}

/* zlib: 64 bytes, all zero. zstd: one frame with one block of 128 KiB zeros. */
static const uint8_t zlib_zeros[] = { 0x78, 0x9c, 0x63, 0x60, 0xa0, 0x0c, 0x00, 0x00, 0x00, 0x40, 0x00, 0x01 };
static const uint8_t zstd_zeros[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38, 0x03, 0x00, 0x10, 0x00 };

START_TEST(sections_that_claim_to_unpack_to_more_than_there_is)
{
        static const uint64_t claims[] = {
                65, KiB(200), GiB(3), GiB(4), GiB(4) + 1, 1ull << 40, 1ull << 63, UINT64_MAX
        };

        for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
                hostile_partial(packed_file(".zdebug_info", true, 0, claims[i], zlib_zeros, sizeof zlib_zeros),
                                ".zdebug_info");
                hostile_partial(
                        packed_file(".debug_info", false, ELFCOMPRESS_ZLIB, claims[i], zlib_zeros, sizeof zlib_zeros),
                        ".debug_info");
                hostile_partial(packed_file(".debug_info", false, ELFCOMPRESS_ZSTD, claims[i] + KiB(128), zstd_zeros,
                                            sizeof zstd_zeros),
                                ".debug_info");
                hostile_function(MADE_CODE + 0x100, "from_symtab");
        }
}
END_TEST

START_TEST(sections_that_unpack_to_more_than_they_claim)
{
        static const uint64_t claims[] = { 1, 63 };

        for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
                hostile_partial(packed_file(".zdebug_info", true, 0, claims[i], zlib_zeros, sizeof zlib_zeros),
                                "cannot unpack");
                hostile_partial(
                        packed_file(".debug_info", false, ELFCOMPRESS_ZLIB, claims[i], zlib_zeros, sizeof zlib_zeros),
                        "cannot unpack");
                hostile_partial(
                        packed_file(".debug_info", false, ELFCOMPRESS_ZSTD, claims[i], zstd_zeros, sizeof zstd_zeros),
                        "cannot unpack");
                hostile_function(MADE_CODE + 0x100, "from_symtab");
        }
}
END_TEST

START_TEST(sections_of_unknown_compression)
{
        hostile_partial(packed_file(".debug_info", false, 0xbad, 64, zlib_zeros, sizeof zlib_zeros),
                        "unknown compression 2989");
        hostile_partial(packed_file(".debug_info", false, ELFCOMPRESS_ZLIB, 64, zlib_zeros, 0), "broken");
}
END_TEST

static const char *const debug_sections[] = { ".debug_info",   ".debug_abbrev",   ".debug_line", ".debug_str",
                                              ".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_line_str" };
#define DEBUG_SECTION_COUNT (sizeof debug_sections / sizeof *debug_sections)

/* The same compressed bytes in each of them. */
static int all_packed_file(uint32_t algorithm, uint64_t claimed, const void *data, size_t size)
{
        struct elf_maker_section sections[2 + DEBUG_SECTION_COUNT] = { HOSTILE_GOOD_SYMBOLS };
        _cleanup_buf_ struct buf packed;

        buf_init(&packed, MiB(1));
        buf_append_u32(&packed, algorithm);
        buf_append_u32(&packed, 0);
        buf_append_u64(&packed, claimed);
        buf_append_u64(&packed, 1);
        buf_append(&packed, data, size);
        for (size_t i = 0; i < DEBUG_SECTION_COUNT; i++)
                sections[2 + i] = (struct elf_maker_section){ .name = debug_sections[i],
                                                              .type = SHT_PROGBITS,
                                                              .flags = SHF_COMPRESSED,
                                                              .content = packed.data,
                                                              .size = packed.size };
        return made_file(sections, 2 + DEBUG_SECTION_COUNT, NULL);
}

/* Each claims as much as the limit for all sections. */
START_TEST(many_sections_that_claim_to_be_as_big_as_a_file)
{
        hostile_partial(all_packed_file(ELFCOMPRESS_ZSTD, GiB(4), zstd_zeros, sizeof zstd_zeros),
                        "cannot unpack section");
        hostile_function(MADE_CODE + 0x100, "from_symtab");
}
END_TEST

/* Compresses noise followed by zeros, which are never in memory at the same time. */
struct bomb {
        size_t noise, size;
};

static size_t fill(const struct bomb *b, size_t at, uint8_t *to, size_t room)
{
        size_t n = b->size - at < room ? b->size - at : room;
        static uint32_t noise = 1;

        memset(to, 0, n);
        for (size_t i = 0; i < n && at + i < b->noise; i++)
                to[i] = (uint8_t)((noise = noise * 1664525 + 1013904223) >> 24);
        return n;
}

static void pack_zlib(const struct bomb *b, struct buf *ret)
{
        uint8_t *in = malloc(MiB(1)), *out = malloc(MiB(2));
        z_stream z = { 0 };
        size_t at = 0;
        int rc = Z_OK;

        ck_assert_int_eq(deflateInit(&z, Z_DEFAULT_COMPRESSION), Z_OK);
        while (rc == Z_OK) {
                size_t n = fill(b, at, in, MiB(1));

                at += n;
                z.next_in = in;
                z.avail_in = (uInt)n;
                z.next_out = out;
                z.avail_out = (uInt)MiB(2);
                rc = deflate(&z, at == b->size ? Z_FINISH : Z_NO_FLUSH);
                buf_append(ret, out, MiB(2) - z.avail_out);
        }
        ck_assert_int_eq(rc, Z_STREAM_END);
        deflateEnd(&z);
        free(out);
        free(in);
}

static void pack_zstd(const struct bomb *b, struct buf *ret)
{
        ZSTD_CCtx *c = ZSTD_createCCtx();
        uint8_t *bytes = malloc(MiB(1)), *packed = malloc(MiB(2));
        size_t at = 0, left = 1;

        while (left || at < b->size) {
                size_t n = fill(b, at, bytes, MiB(1));
                ZSTD_inBuffer in = { bytes, n, 0 };
                ZSTD_outBuffer out = { packed, MiB(2), 0 };

                at += n;
                left = ZSTD_compressStream2(c, &out, &in, at == b->size ? ZSTD_e_end : ZSTD_e_continue);
                ck_assert_msg(!ZSTD_isError(left) && in.pos == n, "zstd");
                buf_append(ret, packed, out.pos);
        }
        ZSTD_freeCCtx(c);
        free(packed);
        free(bytes);
}

static void pack_bomb(uint32_t algorithm, const struct bomb *b, struct buf *ret)
{
        buf_init(ret, MiB(8));
        if (algorithm == ELFCOMPRESS_ZLIB)
                pack_zlib(b, ret);
        else
                pack_zstd(b, ret);
        ck_assert(!ret->failed);
}

static const uint32_t algorithms[] = { ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD };

START_TEST(small_sections_that_decompress_to_half_a_gigabyte)
{
        static const struct bomb bomb = { .size = MiB(512) };

        for (size_t i = 0; i < 2; i++) {
                _cleanup_buf_ struct buf packed = { 0 };

                pack_bomb(algorithms[i], &bomb, &packed);
                ck_assert_uint_lt(packed.size, MiB(1));
                hostile_partial(packed_file(".debug_info", false, algorithms[i], bomb.size, packed.data, packed.size),
                                "packed bytes cannot be the 536870912 it claims");
                hostile_function(MADE_CODE + 0x100, "from_symtab");
        }
}
END_TEST

/* Slightly more than the ratio that compilers reach: decompressed, and found to be useless. */
START_TEST(sections_of_two_megabytes_that_unpack_to_two_hundred)
{
        static const struct bomb bomb = { .noise = MiB(2), .size = MiB(200) };

        for (size_t i = 0; i < 2; i++) {
                _cleanup_buf_ struct buf packed = { 0 };

                pack_bomb(algorithms[i], &bomb, &packed);
                hostile_partial(packed_file(".debug_info", false, algorithms[i], bomb.size, packed.data, packed.size),
                                "DWARF units");
                hostile_function(MADE_CODE + 0x100, "from_symtab");
        }
}
END_TEST

/* Each as large as permitted by the absolute limit, from a few kilobytes. */
START_TEST(bombs_in_all_sections_at_once)
{
        static const struct bomb bomb = { .size = LIMIT_SECTION_UNPACKED_FREE_BYTES };

        for (size_t i = 0; i < 2; i++) {
                _cleanup_buf_ struct buf packed = { 0 };

                pack_bomb(algorithms[i], &bomb, &packed);
                ck_assert_int_eq(hostile_extract(all_packed_file(algorithms[i], bomb.size, packed.data, packed.size)),
                                 ST_OK);
                hostile_function(MADE_CODE + 0x100, "from_symtab");
        }
}
END_TEST

/* ---- minidebuginfo ---- */

static size_t xz_of_zeros(size_t size, struct buf *ret)
{
        lzma_stream stream = LZMA_STREAM_INIT;
        uint8_t *zeros = calloc(1, MiB(1));

        ck_assert_int_eq(lzma_easy_encoder(&stream, 0, LZMA_CHECK_CRC32), LZMA_OK);
        for (size_t done = 0; done <= size;) {
                bool is_last = done == size;

                if (stream.avail_in == 0 && !is_last) {
                        stream.next_in = zeros;
                        stream.avail_in = MiB(1);
                        done += MiB(1);
                }
                stream.next_out = buf_reserve(ret, KiB(64));
                stream.avail_out = KiB(64);
                ck_assert_ptr_nonnull(stream.next_out);
                if (lzma_code(&stream, is_last ? LZMA_FINISH : LZMA_RUN) == LZMA_STREAM_END)
                        done++;
                buf_commit(ret, KiB(64) - stream.avail_out);
        }
        lzma_end(&stream);
        free(zeros);
        return ret->size;
}

START_TEST(a_minidebuginfo_that_unpacks_to_more_than_the_limit)
{
        struct elf_maker_section sections[] = { HOSTILE_GOOD_SYMBOLS,
                                                { .name = ".gnu_debugdata", .type = SHT_PROGBITS } };
        _cleanup_buf_ struct buf packed;

        buf_init(&packed, MiB(8));
        sections[2].size = xz_of_zeros(LIMIT_MINIDEBUGINFO_BYTES + MiB(16), &packed);
        sections[2].content = packed.data;
        hostile_partial(made_file(sections, 3, NULL), ".gnu_debugdata");
        hostile_function(MADE_CODE + 0x100, "from_symtab");
}
END_TEST

static void pack(const void *data, size_t size, struct buf *ret)
{
        size_t used = 0;

        buf_init(ret, MiB(8));
        ck_assert_int_eq(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, data, size, buf_reserve(ret, size + KiB(4)),
                                                 &used, size + KiB(4)),
                         LZMA_OK);
        buf_commit(ret, used);
}

static const struct elf_maker_section good_symbols[] = { HOSTILE_GOOD_SYMBOLS };

/* Any nesting depth: only the first level is opened. */
START_TEST(a_minidebuginfo_in_a_minidebuginfo)
{
        struct elf_maker_section sections[] = { HOSTILE_GOOD_SYMBOLS,
                                                { .name = ".gnu_debugdata", .type = SHT_PROGBITS } };
        _cleanup_buf_ struct buf packed = { 0 };
        int fd = made_file(good_symbols, 2, NULL);

        for (int depth = 0; depth < 10; depth++) {
                uint8_t bytes[KiB(16)];
                ssize_t n = pread(fd, bytes, sizeof bytes, 0);

                ck_assert_int_gt(n, 0);
                close(fd);
                buf_deinit(&packed);
                pack(bytes, (size_t)n, &packed);
                sections[2].content = packed.data;
                sections[2].size = packed.size;
                fd = made_file(sections, 3, NULL);
        }
        hostile_whole(fd);
        hostile_function(MADE_CODE + 0x100, "from_symtab");
}
END_TEST

int main(int argc, char **argv)
{
        const TTest *const tests[] = {
                sections_that_claim_to_unpack_to_more_than_there_is,
                sections_that_unpack_to_more_than_they_claim,
                sections_of_unknown_compression,
                many_sections_that_claim_to_be_as_big_as_a_file,
                small_sections_that_decompress_to_half_a_gigabyte,
                sections_of_two_megabytes_that_unpack_to_two_hundred,
                bombs_in_all_sections_at_once,
                a_minidebuginfo_that_unpacks_to_more_than_the_limit,
                a_minidebuginfo_in_a_minidebuginfo,
        };

        (void)argc;
        return hostile_main("hostile packed", argv[0], tests, sizeof tests / sizeof *tests);
}
