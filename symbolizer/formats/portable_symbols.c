/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body is written by columns: all gaps between ranges, then all lengths, and so on, because numbers of one kind
 * compress best side by side; most are stored as differences from the previous number of their column. Frames are in
 * the order of their chains, so that a chain is only a count. put_portable_body() and read_portable_body() have the
 * columns in the same order.
 *
 * The writer leaves room for the header, writes the body in pieces while hashing it, and writes the header last. The
 * reader maps the file and checks header, checksums and counts before it allocates memory.
 *
 * Order: writing (columns, body, header), reading (header, columns, body), the file.
 */
#include "symbolizer/formats/portable_symbols.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/files/file.h"
#include "common/hash.h"
#include "common/limits.h"
#include "common/memory/buf.h"
#include "common/reader.h"
#include "symbolizer/formats/portable_symbols_internal.h"

/* ---- writing ---- */

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

static void flush_body(struct body *b)
{
        hash64_update(&b->hash, b->piece.data, b->piece.size);
        b->bytes += b->piece.size;
        if (!b->failed)
                b->failed = file_write_all(b->fd, b->piece.data, b->piece.size, "symbol file", b->err);
        buf_clear(&b->piece);
}

/* The buffer, with room for the numbers of one step. */
static struct buf *reserve_numbers_room(struct body *b)
{
        if (b->piece.size > PIECE_BYTES - ELEMENT_BYTES)
                flush_body(b);
        assert(b->piece.size <= PIECE_BYTES - ELEMENT_BYTES);
        return &b->piece;
}

/* Append the difference to the column's last value. */
static void put_step(struct body *b, uint32_t value, uint32_t *last)
{
        buf_append_sleb128(reserve_numbers_room(b), (int64_t)value - *last);
        *last = value;
}

static void put_range_columns(struct body *b, const struct symbol_table *t)
{
        uint64_t end = 0;
        uint32_t expected = 0;

        for (uint32_t i = 0; i < t->range_count; i++) {
                buf_append_uleb128(reserve_numbers_room(b), t->ranges[i].start - end);
                end = t->ranges[i].end;
        }
        for (uint32_t i = 0; i < t->range_count; i++)
                buf_append_uleb128(reserve_numbers_room(b), t->ranges[i].end - t->ranges[i].start);
        for (uint32_t i = 0; i < t->range_count; i++) {
                put_step(b, t->ranges[i].chain, &expected);
                expected++;
        }
}

enum column { FUNCTION, FILE_NAME, LINE };

static uint32_t get_frame_number(const struct symbol_table_frame *f, enum column c)
{
        return c == LINE ? f->line : c == FILE_NAME ? f->file : f->function + 1; /* unknown: 0 */
}

/* Frames in the order of their chains: no positions need to be stored. */
static void put_frame_columns(struct body *b, const struct symbol_table *t, enum column c)
{
        uint32_t last = 0;

        for (uint32_t i = 0; i < t->chain_count; i++)
                for (uint32_t k = 0; k < t->chains[i].frame_count; k++)
                        put_step(b, get_frame_number(&t->frames[t->chains[i].first_frame + k], c), &last);
}

/* In the order of the file. Version 1 had the first two. */
static uint32_t *get_function_number(struct symbol_function *f, unsigned column)
{
        uint32_t *const numbers[] = { &f->linkage_name, &f->name, &f->file, &f->start_line };

        return numbers[column];
}

static void put_function_columns(struct body *b, const struct symbol_table *t)
{
        for (unsigned c = 0; c < PORTABLE_SYMBOLS_FUNCTION_NUMBERS; c++) {
                uint32_t last = 0;

                for (uint32_t i = 0; i < t->function_count; i++)
                        put_step(b, *get_function_number(&t->functions[i], c), &last);
        }
}

static void put_portable_body(struct body *b, const struct symbol_table *t)
{
        for (uint32_t i = 0; i < t->segment_count; i++) {
                struct buf *to = reserve_numbers_room(b);

                buf_append_uleb128(to, t->segments[i].file_offset);
                buf_append_uleb128(to, t->segments[i].file_size);
                buf_append_uleb128(to, t->segments[i].address);
        }
        put_range_columns(b, t);
        for (uint32_t i = 0; i < t->chain_count; i++)
                buf_append_uleb128(reserve_numbers_room(b), t->chains[i].frame_count);
        for (enum column c = FUNCTION; c <= LINE; c++)
                put_frame_columns(b, t, c);
        put_function_columns(b, t);
        flush_body(b);
        for (uint32_t at = 0; at < t->string_bytes && !b->failed;) {
                uint32_t n = t->string_bytes - at < PIECE_BYTES ? t->string_bytes - at : (uint32_t)PIECE_BYTES;

                buf_append(&b->piece, t->strings + at, n);
                flush_body(b);
                at += n;
        }
}

static enum status write_portable_body(const struct symbol_table *t, int fd, uint64_t *bytes_ret, uint64_t *hash_ret,
                                       struct error *err)
{
        struct body b = { .fd = fd, .err = err };
        enum status st;

        buf_init(&b.piece, PIECE_BYTES);
        st = hash64_begin(&b.hash, err);
        if (!st) {
                put_portable_body(&b, t);
                st = buf_status(&b.piece, err, "symbol file");
                *hash_ret = hash64_end(&b.hash);
                *bytes_ret = b.bytes;
        }
        buf_deinit(&b.piece);
        return st ? st : b.failed;
}

static uint64_t count_chain_frames(const struct symbol_table *t)
{
        uint64_t n = 0;

        for (uint32_t i = 0; i < t->chain_count; i++)
                n += t->chains[i].frame_count;
        return n;
}

static void append_portable_header(struct buf *b, const struct symbol_table *t, const struct build_id *go_id,
                                   uint64_t bytes, uint64_t hash)
{
        buf_append(b, PORTABLE_SYMBOLS_MAGIC, 8);
        buf_append_u32(b, PORTABLE_SYMBOLS_VERSION);
        buf_append_u32(b, (uint32_t)t->quality);
        buf_append_u32(b, t->segment_count);
        buf_append_u32(b, t->range_count);
        buf_append_u32(b, t->chain_count);
        buf_append_u32(b, (uint32_t)count_chain_frames(t));
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
        buf_append_u64(b, hash_bytes64(b->data, b->size));
}

/* The header contains the checksum of the body and is written last. */
enum status portable_symbols_write(const struct symbol_table *t, const struct build_id *go_id, int fd,
                                   struct error *err)
{
        static const uint8_t zeros[PORTABLE_SYMBOLS_HEADER_BYTES];
        _cleanup_buf_ struct buf header;
        uint64_t bytes = 0, hash = 0;
        enum status st;

        buf_init(&header, PORTABLE_SYMBOLS_HEADER_BYTES);
        if (count_chain_frames(t) > UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "the symbols have more than %u frames", UINT32_MAX);
        st = file_write_all(fd, zeros, sizeof zeros, "symbol file", err);
        if (!st)
                st = write_portable_body(t, fd, &bytes, &hash, err);
        if (!st && bytes > LIMIT_SYMBOL_FILE_BYTES - PORTABLE_SYMBOLS_HEADER_BYTES)
                st = error_set(err, ST_TOO_BIG, "the symbols take %llu bytes, more than a symbol file may have",
                               (unsigned long long)bytes);
        if (st)
                return st;
        append_portable_header(&header, t, go_id, bytes, hash);
        st = buf_status(&header, err, "symbol file header");
        if (!st && pwrite(fd, header.data, header.size, 0) != (ssize_t)header.size)
                st = error_os(err, errno, "cannot write the symbol file");
        return st;
}

/* ---- reading ---- */

/*
 * Each number of the file has at least one byte: the counts are checked against
 * the size of the body before anything is allocated, and a file of n bytes needs
 * at most 8 * n bytes of memory (a range of three bytes becomes one of 24).
 */

bool portable_symbols_has_magic(const void *portable_head, size_t n)
{
        return n >= 8 && memcmp(portable_head, PORTABLE_SYMBOLS_MAGIC, 8) == 0;
}

struct portable_head {
        uint64_t body_bytes, body_hash;
        struct build_id go_id;
};

static bool parse_object_id(struct build_id *to, uint8_t size, const uint8_t *bytes)
{
        return !size || build_id_from_bytes(to, bytes, size);
}

static bool read_portable_head(struct reader *r, struct symbol_table *t, struct portable_head *h)
{
        uint8_t id_size, go_id_size;
        const uint8_t *id, *go_id;
        uint32_t quality;

        if (!reader_u32(r, &quality) || !reader_u32(r, &t->segment_count) || !reader_u32(r, &t->range_count) ||
            !reader_u32(r, &t->chain_count) || !reader_u32(r, &t->frame_count) || !reader_u32(r, &t->function_count) ||
            !reader_u32(r, &t->string_bytes) || !reader_u32(r, &t->partial) || !reader_skip(r, 2) ||
            !reader_u8(r, &id_size) || !reader_u8(r, &go_id_size) || !reader_bytes(r, BUILD_ID_MAX, &id) ||
            !reader_bytes(r, BUILD_ID_MAX, &go_id) || !reader_u64(r, &h->body_bytes) || !reader_u64(r, &h->body_hash))
                return false;
        t->quality = (enum symbol_quality)quality;
        return quality <= QUALITY_DWARF && id_size <= BUILD_ID_MAX && go_id_size <= BUILD_ID_MAX &&
               parse_object_id(&t->build_id, id_size, id) && parse_object_id(&h->go_id, go_id_size, go_id);
}

static bool counts_fit(const struct symbol_table *t, const struct portable_head *h)
{
        return (uint64_t)t->segment_count * PORTABLE_SYMBOLS_SEGMENT_NUMBERS +
                       (uint64_t)t->range_count * PORTABLE_SYMBOLS_RANGE_NUMBERS +
                       (uint64_t)t->chain_count * PORTABLE_SYMBOLS_CHAIN_NUMBERS +
                       (uint64_t)t->frame_count * PORTABLE_SYMBOLS_FRAME_NUMBERS +
                       (uint64_t)t->function_count * PORTABLE_SYMBOLS_FUNCTION_NUMBERS + t->string_bytes <=
               h->body_bytes;
}

/* ---- columns ---- */

static bool read_step(struct reader *r, uint32_t *last)
{
        int64_t step;

        if (!reader_sleb128(r, &step) || step < -(int64_t)*last || step > (int64_t)UINT32_MAX - *last)
                return false;
        *last = (uint32_t)(*last + step);
        return true;
}

static bool read_segment_columns(struct reader *r, struct symbol_table *t)
{
        for (uint32_t i = 0; i < t->segment_count; i++) {
                struct symbol_segment *s = &t->segments[i];

                if (!reader_uleb128(r, &s->file_offset) || !reader_uleb128(r, &s->file_size) ||
                    !reader_uleb128(r, &s->address))
                        return false;
        }
        return true;
}

static bool read_range_columns(struct reader *r, struct symbol_table *t)
{
        uint64_t at = 0, gap;
        uint32_t expected = 0;

        for (uint32_t i = 0; i < t->range_count; i++)
                if (!reader_uleb128(r, &t->ranges[i].start)) /* the gap before it, until its length is read */
                        return false;
        for (uint32_t i = 0; i < t->range_count; i++) {
                gap = t->ranges[i].start;
                if (!reader_uleb128(r, &t->ranges[i].end) || __builtin_add_overflow(at, gap, &t->ranges[i].start) ||
                    __builtin_add_overflow(t->ranges[i].start, t->ranges[i].end, &t->ranges[i].end))
                        return false;
                at = t->ranges[i].end;
        }
        for (uint32_t i = 0; i < t->range_count; i++) {
                if (!read_step(r, &expected))
                        return false;
                t->ranges[i].chain = expected++;
        }
        return true;
}

static bool read_chain_columns(struct reader *r, struct symbol_table *t)
{
        uint64_t first = 0, count;

        for (uint32_t i = 0; i < t->chain_count; i++) {
                if (!reader_uleb128(r, &count) || count > t->frame_count - first)
                        return false;
                t->chains[i] = (struct symbol_chain){ (uint32_t)first, (uint32_t)count };
                first += count;
        }
        return first == t->frame_count;
}

static bool read_frame_columns(struct reader *r, struct symbol_table *t)
{
        uint32_t function = 0, file = 0, line = 0;

        for (uint32_t i = 0; i < t->frame_count; i++) {
                if (!read_step(r, &function))
                        return false;
                t->frames[i].function = function - 1; /* 0 becomes SYMBOL_NO_FUNCTION */
        }
        for (uint32_t i = 0; i < t->frame_count; i++) {
                if (!read_step(r, &file))
                        return false;
                t->frames[i].file = file;
        }
        for (uint32_t i = 0; i < t->frame_count; i++) {
                if (!read_step(r, &line))
                        return false;
                t->frames[i].line = line;
        }
        return true;
}

static bool read_function_columns(struct reader *r, struct symbol_table *t)
{
        for (unsigned c = 0; c < PORTABLE_SYMBOLS_FUNCTION_NUMBERS; c++) {
                uint32_t last = 0;

                for (uint32_t i = 0; i < t->function_count; i++) {
                        if (!read_step(r, &last))
                                return false;
                        *get_function_number(&t->functions[i], c) = last;
                }
        }
        return true;
}

static bool read_portable_body(struct reader *r, struct symbol_table *t)
{
        const uint8_t *strings;

        if (!read_segment_columns(r, t) || !read_range_columns(r, t) || !read_chain_columns(r, t) ||
            !read_frame_columns(r, t) || !read_function_columns(r, t) || reader_left(r) != t->string_bytes ||
            !reader_bytes(r, t->string_bytes, &strings))
                return false;
        memcpy(t->strings, strings, t->string_bytes);
        return true;
}

/* ---- the file ---- */

static enum status read_portable_header(struct reader *r, struct symbol_table *t, struct portable_head *h,
                                        struct error *err)
{
        const uint8_t *magic;
        uint64_t header_hash;
        uint32_t version;

        if (!reader_bytes(r, 8, &magic) || !portable_symbols_has_magic(magic, 8))
                return error_set(err, ST_BAD_DATA, "not a symbol file");
        if (!reader_u32(r, &version))
                return reader_error(r, err, "symbol file header");
        if (version != PORTABLE_SYMBOLS_VERSION)
                return error_set(err, ST_UNSUPPORTED,
                                 "symbol file of version %u, not %u: send it with a cairn-upload of this version",
                                 version, PORTABLE_SYMBOLS_VERSION);
        if (!read_portable_head(r, t, h) || !reader_u64(r, &header_hash))
                return error_at(err, ST_BAD_DATA, r->pos, "symbol file header is cut off or malformed");
        if (header_hash != hash_bytes64(r->data, PORTABLE_SYMBOLS_HASHED_BYTES))
                return error_at(err, ST_BAD_DATA, PORTABLE_SYMBOLS_HASHED_BYTES,
                                "symbol file header has a wrong checksum");
        if (h->body_bytes != reader_left(r))
                return error_at(err, ST_BAD_DATA, r->pos, "symbol file has %zu bytes after its header, not %llu",
                                reader_left(r), (unsigned long long)h->body_bytes);
        if (h->body_hash != hash_bytes64(r->data + r->pos, reader_left(r)))
                return error_at(err, ST_BAD_DATA, r->pos, "symbol file has a wrong checksum");
        return ST_OK;
}

static enum status parse_portable(const struct file_map *map, struct symbol_table *t, struct portable_head *h,
                                  struct error *err)
{
        struct reader r;
        enum status st;

        reader_init(&r, map->data, map->size);
        st = read_portable_header(&r, t, h, err);
        if (st)
                return st;
        if (t->segment_count > LIMIT_ELF_SEGMENTS || !counts_fit(t, h))
                return error_set(err, ST_BAD_DATA, "the counts in the symbol file exceed its size");
        st = symbol_table_allocate(t, err);
        if (st)
                return st;
        if (!read_portable_body(&r, t))
                return error_at(err, ST_BAD_DATA, r.pos, "symbol file is malformed");
        t->is_complete = true;
        return symbol_table_check(t, err);
}

enum status portable_symbols_read(int fd, const char *name, struct symbol_table *ret, struct build_id *go_id_ret,
                                  struct error *err)
{
        _cleanup_file_map_ struct file_map map = { 0 };
        struct symbol_table t = { 0 };
        struct portable_head h = { 0 };
        enum status st = file_map_fd(fd, LIMIT_SYMBOL_FILE_BYTES, name, &map, err);

        if (st)
                return st;
        st = parse_portable(&map, &t, &h, err);
        if (st) {
                symbol_table_deinit(&t);
                return error_prefix(err, st, "cannot read '%s'", name);
        }
        *ret = t;
        if (go_id_ret)
                *go_id_ret = h.go_id;
        return ST_OK;
}
