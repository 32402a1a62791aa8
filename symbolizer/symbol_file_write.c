/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/limits.h"
#include "symbolizer/symbol_file.h"
#include "symbolizer/symbol_file_internal.h"

#define PIECE_BYTES MiB(1)
#define ELEMENT_BYTES 32 /* of one step, at most: three numbers of 64 bits */

struct body {
        struct buf piece;
        struct hash64_stream hash;
        uint64_t bytes;
        int fd;
        enum status failed;
        struct error *err;
};

static void flush(struct body *b)
{
        hash64_update(&b->hash, b->piece.data, b->piece.size);
        b->bytes += b->piece.size;
        if (!b->failed)
                b->failed = file_write_all(b->fd, b->piece.data, b->piece.size, "symbol file", b->err);
        buf_clear(&b->piece);
}

/* Where the next numbers go. */
static struct buf *next(struct body *b)
{
        if (b->piece.size > PIECE_BYTES - ELEMENT_BYTES)
                flush(b);
        return &b->piece;
}

/* By how much a column goes on. */
static void put_step(struct body *b, uint32_t value, uint32_t *last)
{
        buf_append_sleb128(next(b), (int64_t)value - *last);
        *last = value;
}

static void put_ranges(struct body *b, const struct symbol_table *t)
{
        uint64_t end = 0;
        uint32_t expected = 0;

        for (uint32_t i = 0; i < t->range_count; i++) {
                buf_append_uleb128(next(b), t->ranges[i].start - end);
                end = t->ranges[i].end;
        }
        for (uint32_t i = 0; i < t->range_count; i++)
                buf_append_uleb128(next(b), t->ranges[i].end - t->ranges[i].start);
        for (uint32_t i = 0; i < t->range_count; i++) {
                put_step(b, t->ranges[i].chain, &expected);
                expected++;
        }
}

enum column { FUNCTION, FILE_NAME, LINE };

static uint32_t frame_number(const struct symbol_table_frame *f, enum column c)
{
        return c == LINE ? f->line : c == FILE_NAME ? f->file : f->function + 1; /* unknown: 0 */
}

/* The frames of the first chain, of the second, and so on: where each lies need not be told then. */
static void put_frames(struct body *b, const struct symbol_table *t, enum column c)
{
        uint32_t last = 0;

        for (uint32_t i = 0; i < t->chain_count; i++)
                for (uint32_t k = 0; k < t->chains[i].frame_count; k++)
                        put_step(b, frame_number(&t->frames[t->chains[i].first_frame + k], c), &last);
}

static void put_functions(struct body *b, const struct symbol_table *t)
{
        uint32_t last = 0;

        for (uint32_t i = 0; i < t->function_count; i++)
                put_step(b, t->functions[i].linkage_name, &last);
        last = 0;
        for (uint32_t i = 0; i < t->function_count; i++)
                put_step(b, t->functions[i].name, &last);
}

static void put_body(struct body *b, const struct symbol_table *t)
{
        for (uint32_t i = 0; i < t->segment_count; i++) {
                struct buf *to = next(b);

                buf_append_uleb128(to, t->segments[i].file_offset);
                buf_append_uleb128(to, t->segments[i].file_size);
                buf_append_uleb128(to, t->segments[i].address);
        }
        put_ranges(b, t);
        for (uint32_t i = 0; i < t->chain_count; i++)
                buf_append_uleb128(next(b), t->chains[i].frame_count);
        for (enum column c = FUNCTION; c <= LINE; c++)
                put_frames(b, t, c);
        put_functions(b, t);
        flush(b);
        for (uint32_t at = 0; at < t->string_bytes && !b->failed;) {
                uint32_t n = t->string_bytes - at < PIECE_BYTES ? t->string_bytes - at : (uint32_t)PIECE_BYTES;

                buf_append(&b->piece, t->strings + at, n);
                flush(b);
                at += n;
        }
}

static enum status write_body(const struct symbol_table *t, int fd, uint64_t *bytes_ret, uint64_t *hash_ret, struct error *err)
{
        struct body b = { .fd = fd, .err = err };
        enum status st;

        buf_init(&b.piece, PIECE_BYTES);
        st = hash64_begin(&b.hash, err);
        if (!st) {
                put_body(&b, t);
                st = buf_status(&b.piece, err, "symbol file");
                *hash_ret = hash64_end(&b.hash);
                *bytes_ret = b.bytes;
        }
        buf_deinit(&b.piece);
        return st ? st : b.failed;
}

static uint64_t count_frames(const struct symbol_table *t)
{
        uint64_t n = 0;

        for (uint32_t i = 0; i < t->chain_count; i++)
                n += t->chains[i].frame_count;
        return n;
}

static void append_header(struct buf *b, const struct symbol_table *t, const struct build_id *go_id, uint64_t bytes, uint64_t hash)
{
        buf_append(b, SYMBOL_FILE_MAGIC, 8);
        buf_append_u32(b, SYMBOL_FILE_VERSION);
        buf_append_u32(b, (uint32_t)t->quality);
        buf_append_u32(b, t->segment_count);
        buf_append_u32(b, t->range_count);
        buf_append_u32(b, t->chain_count);
        buf_append_u32(b, (uint32_t)count_frames(t));
        buf_append_u32(b, t->function_count);
        buf_append_u32(b, t->string_bytes);
        buf_append_u32(b, t->partial);
        buf_append_u16(b, 0);
        buf_append_u8(b, t->build_id.size);
        buf_append_u8(b, go_id->size);
        buf_append(b, t->build_id.bytes, BUILD_ID_MAX);
        buf_append(b, go_id->bytes, BUILD_ID_MAX);
        buf_append_u64(b, bytes);
        buf_append_u64(b, hash);
        buf_append_u64(b, hash64(b->data, b->size));
}

/* The header holds the body's checksum: its place is left free first. */
enum status symbol_file_write(const struct symbol_table *t, const struct build_id *go_id, int fd, struct error *err)
{
        static const uint8_t zeros[SYMBOL_FILE_HEADER_BYTES];
        _cleanup_buf_ struct buf header;
        uint64_t bytes = 0, hash = 0;
        enum status st;

        buf_init(&header, SYMBOL_FILE_HEADER_BYTES);
        if (count_frames(t) > UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "the symbols have more than %u frames", UINT32_MAX);
        st = file_write_all(fd, zeros, sizeof zeros, "symbol file", err);
        if (!st)
                st = write_body(t, fd, &bytes, &hash, err);
        if (!st && bytes > LIMIT_SYMBOL_FILE_BYTES - SYMBOL_FILE_HEADER_BYTES)
                st = error_set(err, ST_TOO_BIG, "the symbols take %llu bytes, more than a symbol file may have",
                               (unsigned long long)bytes);
        if (st)
                return st;
        append_header(&header, t, go_id, bytes, hash);
        st = buf_status(&header, err, "symbol file header");
        if (!st && pwrite(fd, header.data, header.size, 0) != (ssize_t)header.size)
                st = error_os(err, errno, "cannot write the symbol file");
        return st;
}
