/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each number of the file has one byte at least. So the counts are held to the
 * body's size before anything is made, and a file of n bytes costs at most
 * eight times n of memory (a range of three bytes is one of 24).
 */
#include <string.h>

#include "common/file.h"
#include "common/hash.h"
#include "common/limits.h"
#include "common/reader.h"
#include "symbolizer/symbol_file.h"
#include "symbolizer/symbol_file_internal.h"

bool symbol_file_magic(const void *head, size_t n)
{
        return n >= 8 && memcmp(head, SYMBOL_FILE_MAGIC, 8) == 0;
}

struct head {
        uint64_t body_bytes, body_hash;
        struct build_id go_id;
};

static bool take_id(struct build_id *to, uint8_t size, const uint8_t *bytes)
{
        return !size || build_id_from_bytes(to, bytes, size);
}

static bool read_head(struct reader *r, struct symbol_table *t, struct head *h)
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
               take_id(&t->build_id, id_size, id) && take_id(&h->go_id, go_id_size, go_id);
}

static bool fits(const struct symbol_table *t, uint64_t body_bytes)
{
        return (uint64_t)t->segment_count * SYMBOL_FILE_SEGMENT_NUMBERS + (uint64_t)t->range_count * SYMBOL_FILE_RANGE_NUMBERS +
                       (uint64_t)t->chain_count * SYMBOL_FILE_CHAIN_NUMBERS +
                       (uint64_t)t->frame_count * SYMBOL_FILE_FRAME_NUMBERS +
                       (uint64_t)t->function_count * SYMBOL_FILE_FUNCTION_NUMBERS + t->string_bytes <= body_bytes;
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

static bool read_segments(struct reader *r, struct symbol_table *t)
{
        for (uint32_t i = 0; i < t->segment_count; i++) {
                struct symbol_segment *s = &t->segments[i];

                if (!reader_uleb128(r, &s->file_offset) || !reader_uleb128(r, &s->file_size) || !reader_uleb128(r, &s->address))
                        return false;
        }
        return true;
}

static bool read_ranges(struct reader *r, struct symbol_table *t)
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

static bool read_chains(struct reader *r, struct symbol_table *t)
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

static bool read_frames(struct reader *r, struct symbol_table *t)
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

static bool read_functions(struct reader *r, struct symbol_table *t)
{
        uint32_t linkage_name = 0, name = 0;

        for (uint32_t i = 0; i < t->function_count; i++) {
                if (!read_step(r, &linkage_name))
                        return false;
                t->functions[i].linkage_name = linkage_name;
        }
        for (uint32_t i = 0; i < t->function_count; i++) {
                if (!read_step(r, &name))
                        return false;
                t->functions[i].name = name;
        }
        return true;
}

static bool read_body(struct reader *r, struct symbol_table *t)
{
        const uint8_t *strings;

        if (!read_segments(r, t) || !read_ranges(r, t) || !read_chains(r, t) || !read_frames(r, t) || !read_functions(r, t) ||
            reader_left(r) != t->string_bytes || !reader_bytes(r, t->string_bytes, &strings))
                return false;
        memcpy(t->strings, strings, t->string_bytes);
        return true;
}

/* ---- the file ---- */

static enum status read_header(struct reader *r, struct symbol_table *t, struct head *h, struct error *err)
{
        const uint8_t *magic;
        uint64_t header_hash;
        uint32_t version;

        if (!reader_bytes(r, 8, &magic) || !symbol_file_magic(magic, 8))
                return error_set(err, ST_BAD_DATA, "not a symbol file");
        if (!reader_u32(r, &version))
                return reader_error(r, err, "symbol file header");
        if (version != SYMBOL_FILE_VERSION)
                return error_set(err, ST_UNSUPPORTED, "symbol file of version %u, not %u: send it with a cairn-upload of this version",
                                 version, SYMBOL_FILE_VERSION);
        if (!read_head(r, t, h) || !reader_u64(r, &header_hash))
                return error_at(err, ST_BAD_DATA, r->pos, "symbol file header is cut off or malformed");
        if (header_hash != hash64(r->data, SYMBOL_FILE_HEADER_HASHED))
                return error_at(err, ST_BAD_DATA, SYMBOL_FILE_HEADER_HASHED, "symbol file header has a wrong checksum");
        if (h->body_bytes != reader_left(r))
                return error_at(err, ST_BAD_DATA, r->pos, "symbol file has %zu bytes behind its header, not %llu", reader_left(r),
                                (unsigned long long)h->body_bytes);
        if (h->body_hash != hash64(r->data + r->pos, reader_left(r)))
                return error_at(err, ST_BAD_DATA, r->pos, "symbol file has a wrong checksum");
        return ST_OK;
}

static enum status parse(const struct file_map *map, struct symbol_table *t, struct head *h, struct error *err)
{
        struct reader r;
        enum status st;

        reader_init(&r, map->data, map->size);
        st = read_header(&r, t, h, err);
        if (st)
                return st;
        if (t->segment_count > LIMIT_ELF_SEGMENTS || !fits(t, h->body_bytes))
                return error_set(err, ST_BAD_DATA, "symbol file says that it has more than fits into it");
        st = symbol_table_allocate(t, err);
        if (st)
                return st;
        if (!read_body(&r, t))
                return error_at(err, ST_BAD_DATA, r.pos, "symbol file is malformed");
        t->is_complete = true;
        return symbol_table_check(t, err);
}

enum status symbol_file_read(int fd, const char *name, struct symbol_table *ret, struct build_id *go_id_ret, struct error *err)
{
        _cleanup_file_map_ struct file_map map = { 0 };
        struct symbol_table t = { 0 };
        struct head h = { 0 };
        enum status st = file_map_fd(fd, LIMIT_SYMBOL_FILE_BYTES, name, &map, err);

        if (st)
                return st;
        st = parse(&map, &t, &h, err);
        if (st) {
                symbol_table_deinit(&t);
                return error_prefix(err, st, "cannot read '%s'", name);
        }
        *ret = t;
        if (go_id_ret)
                *go_id_ret = h.go_id;
        return ST_OK;
}
