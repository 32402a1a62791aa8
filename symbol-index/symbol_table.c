/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first half is the table in memory: allocation, the check of the invariants, lookup. The second is its file:
 * put_table_body() and read_table_body() have the arrays in the same order, and a change of one is a change of the
 * other and of VERSION.
 *
 * Reading trusts nothing: the counts of the header are compared with the file's size before memory is allocated,
 * checksums with the bytes, and symbol_table_check() runs on the result, so that users of a table need no checks.
 */
#include "symbol-index/symbol_table.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/file.h"
#include "common/hash.h"
#include "common/limits.h"
#include "common/memory/buf.h"
#include "common/reader.h"
#include "common/search.h"
#include "common/text/utf8.h"

void symbol_table_deinit(struct symbol_table *t)
{
        free(t->segments);
        free(t->ranges);
        free(t->chains);
        free(t->frames);
        free(t->functions);
        free(t->strings);
        free(t->positions);
        *t = (struct symbol_table){ 0 };
}

enum status symbol_table_allocate(struct symbol_table *t, struct error *err)
{
        t->segments = calloc(t->segment_count + 1ul, sizeof *t->segments);
        t->ranges = calloc(t->range_count + 1ul, sizeof *t->ranges);
        t->chains = calloc(t->chain_count + 1ul, sizeof *t->chains);
        t->frames = calloc(t->frame_count + 1ul, sizeof *t->frames);
        t->functions = calloc(t->function_count + 1ul, sizeof *t->functions);
        t->strings = malloc(t->string_bytes + 1ul);
        return t->segments && t->ranges && t->chains && t->frames && t->functions && t->strings ? ST_OK
                                                                                                : error_no_memory(err);
}

static enum status check_ranges(const struct symbol_table *t, struct error *err)
{
        uint64_t end = 0;

        for (uint32_t i = 0; i < t->range_count; i++) {
                const struct symbol_range *r = &t->ranges[i];

                if (r->start >= r->end || r->start < end)
                        return error_set(err, ST_BAD_DATA, "symbol table range %u is empty or out of order", i);
                if (r->chain >= t->chain_count)
                        return error_set(err, ST_BAD_DATA, "symbol table range %u has no chain %u", i, r->chain);
                end = r->end;
        }
        return ST_OK;
}

static enum status check_frames(const struct symbol_table *t, struct error *err)
{
        for (uint32_t i = 0; i < t->chain_count; i++) {
                const struct symbol_chain *c = &t->chains[i];

                if (c->frame_count == 0 || c->first_frame > t->frame_count ||
                    c->frame_count > t->frame_count - c->first_frame)
                        return error_set(err, ST_BAD_DATA, "symbol table chain %u is outside the frames", i);
        }
        for (uint32_t i = 0; i < t->frame_count; i++) {
                const struct symbol_table_frame *f = &t->frames[i];

                if (f->function != SYMBOL_NO_FUNCTION && f->function >= t->function_count)
                        return error_set(err, ST_BAD_DATA, "symbol table frame %u has no function %u", i, f->function);
                if (f->file >= t->string_bytes)
                        return error_set(err, ST_BAD_DATA, "symbol table frame %u has its file outside the strings", i);
        }
        return ST_OK;
}

const char *symbol_table_partial_text(const struct symbol_table *t)
{
        return t->partial ? t->strings + t->partial : "";
}

static enum status check_partial(const struct symbol_table *t, struct error *err)
{
        bool is_line = true;
        const char *text;
        size_t n;

        if (t->partial >= t->string_bytes)
                return error_set(err, ST_BAD_DATA, "symbol table has its list of unreadable parts outside the strings");
        text = symbol_table_partial_text(t);
        n = strnlen(text, SYMBOL_PARTIAL_BYTES);
        for (size_t i = 0; i < n; i++)
                is_line &= (unsigned char)text[i] >= ' ' && text[i] != 0x7f;
        if (!is_line || n == SYMBOL_PARTIAL_BYTES || !utf8_valid(text, n))
                return error_set(err, ST_BAD_DATA, "symbol table has a list of unreadable parts that is not one line");
        return ST_OK;
}

enum status symbol_table_check(const struct symbol_table *t, struct error *err)
{
        enum status st;

        /* Since the last byte is NUL, every string that starts inside the strings ends inside. */
        if (t->string_bytes == 0 || t->strings[0] != 0 || t->strings[t->string_bytes - 1] != 0)
                return error_set(err, ST_BAD_DATA, "symbol table strings do not begin and end with NUL");
        if (t->quality < QUALITY_NONE || t->quality > QUALITY_DWARF)
                return error_set(err, ST_BAD_DATA, "symbol table has an unknown quality %d", (int)t->quality);
        st = check_partial(t, err);
        if (st)
                return st;
        st = check_ranges(t, err);
        if (st)
                return st;
        st = check_frames(t, err);
        if (st)
                return st;
        for (uint32_t i = 0; i < t->function_count; i++) {
                const struct symbol_function *f = &t->functions[i];

                if (f->linkage_name >= t->string_bytes || f->name >= t->string_bytes)
                        return error_set(err, ST_BAD_DATA, "symbol table function %u has its name outside the strings",
                                         i);
                if (f->file >= t->string_bytes)
                        return error_set(err, ST_BAD_DATA, "symbol table function %u has its file outside the strings",
                                         i);
        }
        return ST_OK;
}

uint32_t symbol_table_start_line(const struct symbol_table *t, const struct symbol_table_frame *f)
{
        const struct symbol_function *function;

        if (f->function == SYMBOL_NO_FUNCTION || !f->file)
                return 0;
        function = &t->functions[f->function];
        return function->file == f->file ? function->start_line : 0;
}

const struct symbol_range *symbol_table_find(const struct symbol_table *t, uint64_t address)
{
        size_t at = find_lower_bound(i, 0, t->range_count, t->ranges[i].end <= address);

        return at < t->range_count && t->ranges[at].start <= address ? &t->ranges[at] : NULL;
}

enum symbol_state symbol_table_gap_state(const struct symbol_table *t, uint64_t address)
{
        bool has_bytes = false;

        if (symbol_table_find(t, address))
                return SYMBOL_RESOLVED;
        if (!t->range_count)
                return SYMBOL_STRIPPED;
        for (uint32_t i = 0; i < t->segment_count; i++) {
                if (address >= t->segments[i].address && address - t->segments[i].address < t->segments[i].file_size)
                        return SYMBOL_UNCOVERED;
                has_bytes |= t->segments[i].file_size != 0;
        }
        return has_bytes ? SYMBOL_NOT_IN_OBJECT : SYMBOL_OUTSIDE; /* segments of a debug file have no bytes */
}

/* ---- the file ---- */

/*
 * Symbol table file (docs/formats/symbol-table.md): a header of 128 bytes with the counts and two checksums, then the
 * arrays, with little-endian numbers and no padding.
 */

#define MAGIC "cairntbl"
#define VERSION 1
#define HEADER_BYTES 128
#define HEADER_HASHED 120

#define SEGMENT_BYTES 24
#define RANGE_BYTES 20
#define CHAIN_BYTES 8
#define FRAME_BYTES 12
#define FUNCTION_BYTES 16

/* Bytes after the header; the counts are 32 bits wide, so it cannot wrap. */
static uint64_t count_body_bytes(const struct symbol_table *t)
{
        return (uint64_t)t->segment_count * SEGMENT_BYTES + (uint64_t)t->range_count * RANGE_BYTES +
               (uint64_t)t->chain_count * CHAIN_BYTES + (uint64_t)t->frame_count * FRAME_BYTES +
               (uint64_t)t->function_count * FUNCTION_BYTES + t->string_bytes;
}

/*
 * The body is written in pieces, since it is as large as the table. Its hash
 * precedes it and fd may be a pipe, so the body is encoded twice, first for the
 * hash.
 */
#define PIECE_BYTES MiB(1)
#define ELEMENT_BYTES 24 /* at most */

struct body_out {
        struct buf piece;
        struct hash64_stream hash;
        int fd; /* -1: only compute the hash */
        enum status failed;
        struct error *err;
};

static void flush_piece(struct body_out *o)
{
        hash64_update(&o->hash, o->piece.data, o->piece.size);
        if (o->fd >= 0 && !o->failed)
                o->failed = file_write_all(o->fd, o->piece.data, o->piece.size, "symbol table", o->err);
        buf_clear(&o->piece);
}

/* The buffer, with room for one more element. */
static struct buf *reserve_element(struct body_out *o)
{
        if (o->piece.size > PIECE_BYTES - ELEMENT_BYTES)
                flush_piece(o);
        return &o->piece;
}

static void put_table_body(const struct symbol_table *t, struct body_out *o)
{
        for (uint32_t i = 0; i < t->segment_count; i++) {
                struct buf *b = reserve_element(o);

                buf_append_u64(b, t->segments[i].file_offset);
                buf_append_u64(b, t->segments[i].file_size);
                buf_append_u64(b, t->segments[i].address);
        }
        for (uint32_t i = 0; i < t->range_count; i++) {
                struct buf *b = reserve_element(o);

                buf_append_u64(b, t->ranges[i].start);
                buf_append_u64(b, t->ranges[i].end);
                buf_append_u32(b, t->ranges[i].chain);
        }
        for (uint32_t i = 0; i < t->chain_count; i++) {
                struct buf *b = reserve_element(o);

                buf_append_u32(b, t->chains[i].first_frame);
                buf_append_u32(b, t->chains[i].frame_count);
        }
        for (uint32_t i = 0; i < t->frame_count; i++) {
                struct buf *b = reserve_element(o);

                buf_append_u32(b, t->frames[i].function);
                buf_append_u32(b, t->frames[i].file);
                buf_append_u32(b, t->frames[i].line);
        }
        for (uint32_t i = 0; i < t->function_count; i++) {
                struct buf *b = reserve_element(o);

                buf_append_u32(b, t->functions[i].linkage_name);
                buf_append_u32(b, t->functions[i].name);
                buf_append_u32(b, t->functions[i].file);
                buf_append_u32(b, t->functions[i].start_line);
        }
        flush_piece(o);
        for (uint32_t at = 0; at < t->string_bytes && !o->piece.failed;) {
                uint32_t n = t->string_bytes - at < PIECE_BYTES ? t->string_bytes - at : (uint32_t)PIECE_BYTES;

                buf_append(&o->piece, t->strings + at, n);
                flush_piece(o);
                at += n;
        }
}

static enum status write_table_body(const struct symbol_table *t, int fd, uint64_t *hash_ret, struct error *err)
{
        struct body_out o = { .fd = fd, .err = err };
        enum status st;

        buf_init(&o.piece, PIECE_BYTES);
        st = hash64_begin(&o.hash, err);
        if (!st) {
                put_table_body(t, &o);
                st = buf_status(&o.piece, err, "symbol table");
                *hash_ret = hash64_end(&o.hash);
        }
        buf_deinit(&o.piece);
        return st ? st : o.failed;
}

static void append_table_header(const struct symbol_table *t, uint64_t body_hash, struct buf *b)
{
        static const uint8_t zeros[3];

        buf_append(b, MAGIC, 8);
        buf_append_u32(b, VERSION);
        buf_append_u32(b, (uint32_t)t->quality);
        buf_append_u32(b, t->segment_count);
        buf_append_u32(b, t->range_count);
        buf_append_u32(b, t->chain_count);
        buf_append_u32(b, t->frame_count);
        buf_append_u32(b, t->function_count);
        buf_append_u32(b, t->string_bytes);
        buf_append_u8(b, t->build_id.size);
        buf_append(b, zeros, sizeof zeros);
        buf_append_u32(b, t->partial);
        buf_append(b, t->build_id.bytes, BUILD_ID_MAX);
        buf_append_u64(b, body_hash);
        buf_append_u64(b, hash_bytes64(b->data, b->size));
}

enum status symbol_table_write(const struct symbol_table *t, int fd, struct error *err)
{
        _cleanup_buf_ struct buf header = { 0 };
        uint64_t hash = 0;
        enum status st;

        assert(t->string_bytes > 0 && t->build_id.size <= BUILD_ID_MAX);
        if (HEADER_BYTES + count_body_bytes(t) > LIMIT_SYMBOL_TABLE_BYTES)
                return error_set(err, ST_TOO_BIG, "a symbol table of %" PRIu64 " bytes is over the limit of %zu",
                                 HEADER_BYTES + count_body_bytes(t), LIMIT_SYMBOL_TABLE_BYTES);
        buf_init(&header, HEADER_BYTES);
        st = write_table_body(t, -1, &hash, err);
        if (st)
                return st;
        append_table_header(t, hash, &header);
        st = buf_status(&header, err, "symbol table header");
        if (!st)
                st = file_write_all(fd, header.data, header.size, "symbol table", err);
        return st ? st : write_table_body(t, fd, &hash, err);
}

static bool read_table_header(struct reader *r, struct symbol_table *t, uint64_t *body_hash_ret)
{
        uint32_t quality;
        const uint8_t *id;

        if (!reader_u32(r, &quality) || !reader_u32(r, &t->segment_count) || !reader_u32(r, &t->range_count) ||
            !reader_u32(r, &t->chain_count) || !reader_u32(r, &t->frame_count) || !reader_u32(r, &t->function_count) ||
            !reader_u32(r, &t->string_bytes) || !reader_u8(r, &t->build_id.size) || !reader_skip(r, 3) ||
            !reader_u32(r, &t->partial) || !reader_bytes(r, BUILD_ID_MAX, &id) || !reader_u64(r, body_hash_ret))
                return false;
        if (quality > QUALITY_DWARF || t->build_id.size > BUILD_ID_MAX)
                return false;
        t->quality = (enum symbol_quality)quality;
        memcpy(t->build_id.bytes, id, BUILD_ID_MAX);
        return true;
}

static bool read_table_body(struct reader *r, struct symbol_table *t)
{
        const uint8_t *strings;
        bool ok = true;

        for (uint32_t i = 0; ok && i < t->segment_count; i++)
                ok = reader_u64(r, &t->segments[i].file_offset) && reader_u64(r, &t->segments[i].file_size) &&
                     reader_u64(r, &t->segments[i].address);
        for (uint32_t i = 0; ok && i < t->range_count; i++)
                ok = reader_u64(r, &t->ranges[i].start) && reader_u64(r, &t->ranges[i].end) &&
                     reader_u32(r, &t->ranges[i].chain);
        for (uint32_t i = 0; ok && i < t->chain_count; i++)
                ok = reader_u32(r, &t->chains[i].first_frame) && reader_u32(r, &t->chains[i].frame_count);
        for (uint32_t i = 0; ok && i < t->frame_count; i++)
                ok = reader_u32(r, &t->frames[i].function) && reader_u32(r, &t->frames[i].file) &&
                     reader_u32(r, &t->frames[i].line);
        for (uint32_t i = 0; ok && i < t->function_count; i++)
                ok = reader_u32(r, &t->functions[i].linkage_name) && reader_u32(r, &t->functions[i].name) &&
                     reader_u32(r, &t->functions[i].file) && reader_u32(r, &t->functions[i].start_line);
        if (!ok || !reader_bytes(r, t->string_bytes, &strings))
                return false;
        memcpy(t->strings, strings, t->string_bytes);
        return true;
}

static enum status parse_table_file(const uint8_t *data, size_t size, struct symbol_table *t, struct error *err)
{
        struct reader r;
        const uint8_t *magic;
        uint32_t version;
        uint64_t body_hash, header_hash;
        enum status st;

        reader_init(&r, data, size);
        if (!reader_bytes(&r, 8, &magic) || memcmp(magic, MAGIC, 8) != 0)
                return error_set(err, ST_BAD_DATA, "not a symbol table file");
        if (!reader_u32(&r, &version))
                return reader_error(&r, err, "symbol table header");
        if (version != VERSION)
                return error_set(err, ST_UNSUPPORTED, "symbol table of version %u, not %u", version, VERSION);
        if (!read_table_header(&r, t, &body_hash) || !reader_u64(&r, &header_hash))
                return error_at(err, ST_BAD_DATA, r.pos, "symbol table header is cut off or malformed");
        if (header_hash != hash_bytes64(data, HEADER_HASHED))
                return error_at(err, ST_BAD_DATA, HEADER_HASHED, "symbol table header has a wrong checksum");
        if (count_body_bytes(t) != reader_left(&r))
                return error_at(err, ST_BAD_DATA, r.pos, "symbol table has %zu bytes after its header, not %llu",
                                reader_left(&r), (unsigned long long)count_body_bytes(t));
        if (body_hash != hash_bytes64(data + r.pos, reader_left(&r)))
                return error_at(err, ST_BAD_DATA, r.pos, "symbol table has a wrong checksum");
        st = symbol_table_allocate(t, err);
        if (st)
                return st;
        if (!read_table_body(&r, t))
                return reader_error(&r, err, "symbol table");
        return symbol_table_check(t, err);
}

/* A copy, not a mapping: the file may be modified by another process after the checks. */
static enum status read_table_file(int fd, uint8_t **data_ret, size_t *size_ret, struct error *err)
{
        _cleanup_free_ uint8_t *data = NULL;
        struct stat stat;
        size_t have = 0;

        if (fstat(fd, &stat))
                return error_os(err, errno, "cannot stat the symbol table");
        if (stat.st_size < 0 || (uint64_t)stat.st_size > LIMIT_SYMBOL_TABLE_BYTES)
                return error_set(err, ST_TOO_BIG, "symbol table of %lld bytes is over the limit",
                                 (long long)stat.st_size);
        data = malloc((size_t)stat.st_size + 1);
        if (!data)
                return error_no_memory(err);
        while (have < (size_t)stat.st_size) {
                ssize_t n = pread(fd, data + have, (size_t)stat.st_size - have, (off_t)have);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_os(err, errno, "cannot read the symbol table");
                if (n == 0)
                        break;
                have += (size_t)n;
        }
        *data_ret = steal_ptr(data);
        *size_ret = have;
        return ST_OK;
}

enum status symbol_table_read(int fd, const char *name, struct symbol_table *ret, struct error *err)
{
        _cleanup_free_ uint8_t *data = NULL;
        struct symbol_table t = { 0 };
        enum status st;
        size_t size = 0;

        st = read_table_file(fd, &data, &size, err);
        if (!st)
                st = parse_table_file(data, size, &t, err);
        if (st) {
                symbol_table_deinit(&t);
                return error_prefix(err, st, "cannot read '%s'", name);
        }
        *ret = t;
        return ST_OK;
}
