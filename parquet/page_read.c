/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/page_read.h"

#include <stdlib.h>
#include <libdeflate.h>

#include "common/compress/zstd_contexts.h"
#include "common/memory/array.h"
#include "common/limits.h"
#include "parquet/format.h"
#include "parquet/thrift.h"

static void read_v1_header(struct reader *r, struct page_header *h)
{
        struct thrift_fields s = { 0 };

        while (thrift_field(r, &s)) {
                if (s.id == 1)
                        thrift_read_size(r, s.type, &h->value_count);
                else if (s.id == 2)
                        thrift_read_i32(r, s.type, &h->encoding);
                else if (s.id == 3)
                        thrift_read_i32(r, s.type, &h->def_encoding);
                else if (s.id == 4)
                        thrift_read_i32(r, s.type, &h->rep_encoding);
                else
                        thrift_skip(r, s.type);
        }
}

static void read_dictionary_header(struct reader *r, struct page_header *h)
{
        struct thrift_fields s = { 0 };

        while (thrift_field(r, &s)) {
                if (s.id == 1)
                        thrift_read_size(r, s.type, &h->value_count);
                else if (s.id == 2)
                        thrift_read_i32(r, s.type, &h->encoding);
                else
                        thrift_skip(r, s.type);
        }
}

static void read_v2_header(struct reader *r, struct page_header *h)
{
        struct thrift_fields s = { 0 };

        h->is_compressed = true;
        while (thrift_field(r, &s)) {
                if (s.id == 1)
                        thrift_read_size(r, s.type, &h->value_count);
                else if (s.id == 4)
                        thrift_read_i32(r, s.type, &h->encoding);
                else if (s.id == 5)
                        thrift_read_size(r, s.type, &h->def_bytes);
                else if (s.id == 6)
                        thrift_read_size(r, s.type, &h->rep_bytes);
                else if (s.id == 7)
                        thrift_read_bool(r, s.type, &h->is_compressed);
                else
                        thrift_skip(r, s.type);
        }
}

static void read_header_detail(struct reader *r, uint8_t type, struct page_header *h,
                               void (*read)(struct reader *, struct page_header *))
{
        if (type != THRIFT_STRUCT)
                thrift_fail(r);
        read(r, h);
        h->has_detail = true;
}

static enum status read_page_header(struct page_source *s, struct page_header *h, struct error *err)
{
        struct reader *r = &s->chunk;
        size_t start = r->pos;
        struct thrift_fields f = { 0 };

        *h = (struct page_header){ .type = -1, .def_encoding = ENCODING_RLE, .rep_encoding = ENCODING_RLE };
        while (thrift_field(r, &f)) {
                if (f.id == 1)
                        thrift_read_i32(r, f.type, &h->type);
                else if (f.id == 2)
                        thrift_read_size(r, f.type, &h->unpacked);
                else if (f.id == 3)
                        thrift_read_size(r, f.type, &h->stored);
                else if (f.id == 4) {
                        thrift_read_i32(r, f.type, &h->crc);
                        h->has_crc = true;
                } else if (f.id == 5 && h->type == PAGE_DATA)
                        read_header_detail(r, f.type, h, read_v1_header);
                else if (f.id == 7 && h->type == PAGE_DICTIONARY)
                        read_header_detail(r, f.type, h, read_dictionary_header);
                else if (f.id == 8 && h->type == PAGE_DATA_V2)
                        read_header_detail(r, f.type, h, read_v2_header);
                else
                        thrift_skip(r, f.type);
        }
        if (!h->has_detail && h->type != PAGE_INDEX)
                thrift_fail(r);
        if (r->failed)
                return reader_error(r, err, "a page header");
        if (r->pos - start > LIMIT_PARQUET_PAGE_HEADER_BYTES || h->unpacked > LIMIT_PARQUET_PAGE_BYTES)
                return error_at(err, ST_TOO_BIG, r->base + start, "page of %ju bytes is too large",
                                (uintmax_t)h->unpacked);
        if (h->value_count > LIMIT_PARQUET_CHUNK_VALUES)
                return error_at(err, ST_TOO_BIG, r->base + start, "page of %ju values is too large",
                                (uintmax_t)h->value_count);
        return ST_OK;
}

/* Fuzz targets skip checksums: a fuzzer cannot compute them. */
static bool page_crc_matches(const struct page_header *h, const uint8_t *stored)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
        (void)h;
        (void)stored;
        return true;
#else
        return !h->has_crc || (uint32_t)h->crc == libdeflate_crc32(0, stored, h->stored);
#endif
}

static enum status keep_page_bytes(struct parquet_column *c, void *page)
{
        if (!array_reserve(&c->pages, &c->page_capacity, c->page_count))
                return ST_NO_MEMORY;
        c->pages[c->page_count++] = page;
        return ST_OK;
}

/* Allocate an unpacked page: in the buffer, or without one as a block that the column owns. */
static uint8_t *allocate_page(struct page_source *s, struct page_buffer *into, size_t size)
{
        uint8_t *page;

        if (into && size <= into->capacity)
                return into->data;
        page = malloc(size);
        if (!page)
                return NULL;
        if (into) {
                free(into->data);
                *into = (struct page_buffer){ page, size };
        } else if (keep_page_bytes(s->column, page)) {
                free(page);
                return NULL;
        }
        return page;
}

static enum status decompress_page(struct page_source *s, const struct reader *stored, size_t unpacked,
                                   struct page_buffer *into, struct reader *ret, struct error *err)
{
        uint8_t *page;
        size_t n;

        if (unpacked > LIMIT_PARQUET_CHUNK_BYTES - s->unpacked_bytes)
                return error_set(err, ST_TOO_BIG, "its pages unpack to more than %zu bytes", LIMIT_PARQUET_CHUNK_BYTES);
        s->unpacked_bytes += unpacked;
        if (!s->zstd)
                s->zstd = take_zstd_context();
        page = allocate_page(s, into, unpacked ? unpacked : 1);
        if (!s->zstd || !page)
                return error_no_memory(err);
        n = ZSTD_decompressDCtx(s->zstd, page, unpacked, stored->data + stored->pos, reader_left(stored));
        if (ZSTD_isError(n) || n != unpacked)
                return error_at(err, ST_BAD_DATA, s->chunk.base + s->chunk.pos,
                                "a page does not unpack to %zu bytes: %s", unpacked,
                                ZSTD_isError(n) ? ZSTD_getErrorName(n) : "it is shorter");
        reader_init(ret, page, unpacked);
        return ST_OK;
}

static enum status open_page_payload(struct page_source *s, const struct page_header *h, struct reader *stored,
                                     struct page_buffer *into, struct read_page *p, struct error *err)
{
        size_t levels = 0, size, unpacked;
        bool packed = s->codec != CODEC_UNCOMPRESSED;

        if (h->type == PAGE_DATA_V2) {
                p->levels_apart = true;
                packed = packed && h->is_compressed;
                if (!reader_sub(stored, h->rep_bytes, &p->rep_levels) ||
                    !reader_sub(stored, h->def_bytes, &p->def_levels))
                        return reader_error(stored, err, "a page's levels");
                levels = stored->pos;
        }
        size = reader_left(stored);
        if (h->unpacked < levels || (!packed && h->unpacked - levels != size))
                return error_at(err, ST_BAD_DATA, stored->base, "a page's sizes contradict each other");
        unpacked = h->unpacked - levels;
        if (!packed || (unpacked == 0 && size == 0))
                return reader_sub(stored, size, &p->payload) ? ST_OK : reader_error(stored, err, "a page");
        return decompress_page(s, stored, unpacked, into, &p->payload, err);
}

enum status page_next(struct page_source *s, struct stored_page *ret, struct error *err)
{
        struct stored_page p;
        enum status st;

        do {
                if (reader_left(&s->chunk) == 0)
                        return ST_NOT_FOUND;
                st = read_page_header(s, &p.header, err);
                if (st)
                        return st;
                if (!reader_sub(&s->chunk, p.header.stored, &p.payload))
                        return reader_error(&s->chunk, err, "a page");
        } while (p.header.type != PAGE_DATA && p.header.type != PAGE_DATA_V2 && p.header.type != PAGE_DICTIONARY);
        *ret = p;
        return ST_OK;
}

enum status page_open(struct page_source *s, const struct stored_page *stored, struct page_buffer *into,
                      struct read_page *ret, struct error *err)
{
        const struct page_header *h = &stored->header;
        struct read_page p = { .type = h->type, .encoding = h->encoding, .value_count = (uint32_t)h->value_count };
        struct reader payload = stored->payload;
        enum status st;

        if (s->codec != CODEC_UNCOMPRESSED && s->codec != CODEC_ZSTD)
                return error_set(err, ST_UNSUPPORTED,
                                 "unsupported compression codec %d, only none and zstd are supported", s->codec);
        if (!page_crc_matches(h, payload.data))
                return error_at(err, ST_BAD_DATA, payload.base, "a page's checksum does not match");
        if (h->def_encoding != ENCODING_RLE || h->rep_encoding != ENCODING_RLE)
                return error_set(err, ST_UNSUPPORTED, "unsupported encoding of levels");
        st = open_page_payload(s, h, &payload, into, &p, err);
        if (!st)
                *ret = p;
        return st;
}

void page_source_deinit(struct page_source *s)
{
        give_zstd_context(s->zstd);
        s->zstd = NULL;
}
