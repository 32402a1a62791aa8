/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_column_pages() has the sequence: choose the encoding of the chunk (choose_for_bytes(), choose_for_numbers()),
 * write the dictionary page, then one data page after another: its end (choose_page_end()), its levels, its values,
 * compressed with a header in front. The bounds of each page are merged into those of the chunk and kept in
 * `locations`, from which chunk_write() makes the two page indexes at the end.
 *
 * The sizes of encodings are compared before compression: delta encoding is tried out completely; a dictionary of
 * numbers is built only while it is smaller than the best size so far, that of strings exists in the column builder.
 *
 * The buffers of struct chunk_writer are reused by all chunks; only the page indexes grow until the end of the file. A
 * buf keeps its failure, so most functions return no status.
 *
 * Order: page indexes, choice of the encoding, levels and values, pages, the chunk.
 */
#include "parquet/chunk_write.h"

#include <endian.h>
#include <string.h>
#include <libdeflate.h>

#include "common/limits.h"
#include "parquet/dictionary.h"
#include "parquet/encoding.h"
#include "parquet/format.h"
#include "parquet/thrift.h"

/* ---- page index: position and bounds of each page, by which readers skip pages ---- */

struct page_location {
        uint64_t offset;
        uint64_t first_row; /* in the row group */
        uint32_t size;      /* with its header */
        struct value_stats stats;
};

enum { UNORDERED = 0, ASCENDING = 1, DESCENDING = 2 };

static void append_offset_index(struct buf *out, const struct page_location *pages, size_t count)
{
        struct thrift_writer t;

        thrift_writer_init(&t, out);
        thrift_struct(&t, 0);
        thrift_list(&t, 1, THRIFT_STRUCT, count);
        for (size_t i = 0; i < count; i++) {
                thrift_struct(&t, 0);
                thrift_i64(&t, 1, (int64_t)pages[i].offset);
                thrift_i32(&t, 2, (int32_t)pages[i].size);
                thrift_i64(&t, 3, (int64_t)pages[i].first_row);
                thrift_struct_end(&t);
        }
        thrift_struct_end(&t);
}

/* Without both bounds in every page that has values, the chunk has no column index. */
static bool has_bounds(const struct page_location *pages, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                if (pages[i].stats.value_count && (!pages[i].stats.min.present || !pages[i].stats.max.present))
                        return false;
        }
        return count > 0;
}

/* Pages that hold only nulls are ignored. */
static int boundary_order(const struct parquet_node *node, const struct page_location *pages, size_t count)
{
        const struct value_stats *previous = NULL;
        bool up = true, down = true;

        for (size_t i = 0; i < count; i++) {
                const struct value_stats *s = &pages[i].stats;

                if (!s->value_count)
                        continue;
                if (previous) {
                        up = up && stats_bound_ordered(node, &previous->min, &s->min) &&
                             stats_bound_ordered(node, &previous->max, &s->max);
                        down = down && stats_bound_ordered(node, &s->min, &previous->min) &&
                               stats_bound_ordered(node, &s->max, &previous->max);
                }
                previous = s;
        }
        return up ? ASCENDING : down ? DESCENDING : UNORDERED;
}

static void append_column_index(struct buf *out, const struct parquet_node *node, const struct page_location *pages,
                                size_t count)
{
        struct thrift_writer t;

        thrift_writer_init(&t, out);
        thrift_struct(&t, 0);
        /* The specification's element type is 2, but every writer and reader uses 1. */
        thrift_list(&t, 1, THRIFT_TRUE, count);
        for (size_t i = 0; i < count; i++)
                thrift_element_bool(&t, pages[i].stats.value_count == 0);
        thrift_list(&t, 2, THRIFT_BINARY, count);
        for (size_t i = 0; i < count; i++)
                thrift_element_binary(&t, pages[i].stats.min.bytes, pages[i].stats.min.size);
        thrift_list(&t, 3, THRIFT_BINARY, count);
        for (size_t i = 0; i < count; i++)
                thrift_element_binary(&t, pages[i].stats.max.bytes, pages[i].stats.max.size);
        thrift_i32(&t, 4, boundary_order(node, pages, count));
        thrift_list(&t, 5, THRIFT_I64, count);
        for (size_t i = 0; i < count; i++)
                thrift_element_i64(&t, (int64_t)pages[i].stats.null_count);
        thrift_struct_end(&t);
}

static enum status page_index_append(struct chunk_writer *w, const struct parquet_node *node, struct chunk_meta *m)
{
        const struct page_location *pages = (const struct page_location *)w->locations.data;
        size_t count = w->locations.size / sizeof *pages;

        m->offset_index_start = w->offset_indexes.size;
        append_offset_index(&w->offset_indexes, pages, count);
        m->offset_index_size = (uint32_t)(w->offset_indexes.size - m->offset_index_start);
        m->column_index_start = w->column_indexes.size;
        if (has_bounds(pages, count))
                append_column_index(&w->column_indexes, node, pages, count);
        m->column_index_size = (uint32_t)(w->column_indexes.size - m->column_index_start);
        return w->column_indexes.failed ? w->column_indexes.failed : w->offset_indexes.failed;
}

#define DICTIONARY_BYTES MiB(2) /* readers load the dictionary page whole, even for a few values */

/* The encoded input of the pages of a chunk. */
struct chunk_source {
        const struct column_builder *column;
        const uint32_t *codes; /* RLE_DICTIONARY: one a value */
        uint32_t dictionary_count;
        unsigned code_width;
        uint8_t encoding;
        struct int_dict int_dict;
        struct buf dictionary; /* the dictionary page's payload */
};

enum status chunk_writer_init(struct chunk_writer *w, struct error *err)
{
        buf_init(&w->pages, LIMIT_PARQUET_CHUNK_BYTES);
        buf_init(&w->payload, LIMIT_PARQUET_PAGE_BYTES);
        buf_init(&w->scratch, LIMIT_PARQUET_CHUNK_BYTES);
        buf_init(&w->locations, LIMIT_PARQUET_METADATA_BYTES);
        buf_init(&w->column_indexes, LIMIT_PARQUET_METADATA_BYTES);
        buf_init(&w->offset_indexes, LIMIT_PARQUET_METADATA_BYTES);
        w->zstd = ZSTD_createCCtx();
        return w->zstd ? ST_OK : error_no_memory(err);
}

void chunk_writer_deinit(struct chunk_writer *w)
{
        buf_deinit(&w->pages);
        buf_deinit(&w->payload);
        buf_deinit(&w->scratch);
        buf_deinit(&w->locations);
        buf_deinit(&w->column_indexes);
        buf_deinit(&w->offset_indexes);
        ZSTD_freeCCtx(w->zstd);
}

static void append_plain_number(struct buf *out, uint8_t physical, int64_t v)
{
        if (physical == PHYSICAL_INT32)
                buf_append_u32(out, (uint32_t)v);
        else
                buf_append_u64(out, (uint64_t)v);
}

static void append_plain_bytes(struct buf *out, const struct byte_dict *d, uint32_t code)
{
        const struct byte_dict_entry *e = byte_dict_entry(d, code);

        buf_append_u32(out, e->size);
        buf_append(out, d->bytes.data + e->offset, e->size);
}

static void use_dictionary(struct chunk_source *s, const uint32_t *codes, uint32_t count)
{
        s->encoding = ENCODING_RLE_DICTIONARY;
        s->codes = codes;
        s->dictionary_count = count;
        s->code_width = bits_for_max(count - 1) ? bits_for_max(count - 1) : 1;
}

static void choose_for_bytes(struct chunk_source *s)
{
        const struct column_builder *c = s->column;
        const struct byte_dict *d = &c->dict;
        const uint32_t *codes = (const uint32_t *)c->codes.data;
        uint64_t dictionary_bytes = d->bytes.size + 4 * (uint64_t)d->count;
        size_t count = column_value_count(c);

        if (!count || dictionary_bytes > DICTIONARY_BYTES ||
            dictionary_bytes + encode_hybrid_size(codes, count, bits_for_max(d->count - 1)) >= c->plain_bytes)
                return;
        use_dictionary(s, codes, d->count);
        for (uint32_t i = 0; i < d->count; i++)
                append_plain_bytes(&s->dictionary, d, i);
}

static enum status choose_for_numbers(struct chunk_source *s, struct buf *scratch)
{
        const struct column_builder *c = s->column;
        const int64_t *values = (const int64_t *)c->ints.data;
        size_t count = column_value_count(c);
        size_t width = c->node->physical == PHYSICAL_INT32 ? 4 : 8;
        size_t best = count * width, most_entries;

        if (!count || c->node->physical == PHYSICAL_BOOLEAN)
                return ST_OK;
        if (c->node->physical == PHYSICAL_INT64) {
                buf_clear(scratch);
                encode_delta(scratch, values, count);
                if (scratch->failed)
                        return scratch->failed;
                if (scratch->size < best) {
                        best = scratch->size;
                        s->encoding = ENCODING_DELTA_BINARY_PACKED;
                }
        }
        most_entries = (best < DICTIONARY_BYTES ? best : DICTIONARY_BYTES) / width;
        if (!int_dict_fill(&s->int_dict, values, count, (uint32_t)most_entries))
                return s->int_dict.failed;
        if (s->int_dict.count * width +
                    encode_hybrid_size(s->int_dict.codes, count, bits_for_max(s->int_dict.count - 1)) >=
            best)
                return ST_OK;
        use_dictionary(s, s->int_dict.codes, s->int_dict.count);
        for (uint32_t i = 0; i < s->int_dict.count; i++)
                append_plain_number(&s->dictionary, c->node->physical, s->int_dict.values[i]);
        return s->dictionary.failed;
}

/* v1 levels: length of the runs, then the runs. */
static void append_levels(struct chunk_writer *w, const struct buf *levels, size_t start, size_t count, uint8_t max)
{
        size_t at = w->payload.size;
        uint32_t *wide;

        if (!max)
                return;
        buf_clear(&w->scratch);
        wide = buf_reserve(&w->scratch, count * sizeof *wide);
        if (!wide) {
                w->payload.failed = w->scratch.failed;
                return;
        }
        for (size_t i = 0; i < count; i++)
                wide[i] = levels->data[start + i];
        buf_append_u32(&w->payload, 0);
        encode_hybrid(&w->payload, wide, count, bits_for_max(max));
        if (!w->payload.failed) {
                uint32_t size = htole32((uint32_t)(w->payload.size - at - 4));

                memcpy(w->payload.data + at, &size, sizeof size);
        }
}

static void append_values(struct chunk_writer *w, const struct chunk_source *s, size_t start, size_t count)
{
        const struct column_builder *c = s->column;
        const int64_t *ints = (const int64_t *)c->ints.data;
        const uint32_t *codes = (const uint32_t *)c->codes.data;

        if (s->encoding == ENCODING_RLE_DICTIONARY) {
                buf_append_u8(&w->payload, (uint8_t)s->code_width);
                encode_hybrid(&w->payload, s->codes + start, count, s->code_width);
        } else if (s->encoding == ENCODING_DELTA_BINARY_PACKED) {
                encode_delta(&w->payload, count ? ints + start : NULL, count);
        } else if (!count) {
                return;
        } else if (column_is_bytes(c)) {
                for (size_t i = start; i < start + count; i++)
                        append_plain_bytes(&w->payload, &c->dict, codes[i]);
        } else if (c->node->physical == PHYSICAL_BOOLEAN) {
                encode_bools(&w->payload, ints + start, count);
        } else {
                for (size_t i = start; i < start + count; i++)
                        append_plain_number(&w->payload, c->node->physical, ints[i]);
        }
}

/* Compress payload and append page header and content to w->pages. */
static enum status append_values_page(struct chunk_writer *w, struct buf *payload, enum parquet_page type,
                                      uint32_t value_count, uint8_t encoding, struct chunk_meta *m)
{
        size_t bound = ZSTD_compressBound(payload->size);
        struct thrift_writer t;
        size_t packed, header;
        uint8_t *to;

        if (payload->failed)
                return payload->failed;
        buf_clear(&w->scratch);
        to = buf_reserve(&w->scratch, bound);
        if (!to)
                return w->scratch.failed;
        ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, w->zstd_level);
        packed = ZSTD_compress2(w->zstd, to, bound, payload->data, payload->size);
        if (ZSTD_isError(packed))
                return ST_NO_MEMORY; /* with room for the bound, running out of memory is the only failure */

        header = w->pages.size;
        thrift_writer_init(&t, &w->pages);
        thrift_struct(&t, 0);
        thrift_i32(&t, 1, type);
        thrift_i32(&t, 2, (int32_t)payload->size);
        thrift_i32(&t, 3, (int32_t)packed);
        thrift_i32(&t, 4, (int32_t)libdeflate_crc32(0, to, packed));
        thrift_struct(&t, type == PAGE_DICTIONARY ? 7 : 5);
        thrift_i32(&t, 1, (int32_t)value_count);
        thrift_i32(&t, 2, encoding);
        if (type == PAGE_DATA) {
                thrift_i32(&t, 3, ENCODING_RLE);
                thrift_i32(&t, 4, ENCODING_RLE);
        }
        thrift_struct_end(&t);
        thrift_struct_end(&t);
        header = w->pages.size - header;
        buf_append(&w->pages, to, packed);
        m->total_bytes += header + packed;
        m->total_unpacked_bytes += header + payload->size;
        return w->pages.failed;
}

struct page_range {
        size_t slot, slot_end;
        size_t value, value_end;
        uint64_t row, row_end;
};

/* Move p to the next page: whole rows, until page_bytes or page_rows is reached. */
static void choose_page_end(const struct chunk_writer *w, const struct chunk_source *s, struct page_range *p)
{
        const struct column_builder *c = s->column;
        const uint32_t *codes = (const uint32_t *)c->codes.data;
        bool plain_bytes = column_is_bytes(c) && s->encoding == ENCODING_PLAIN;
        size_t bytes = 0;

        p->slot = p->slot_end;
        p->value = p->value_end;
        p->row = p->row_end;
        while (p->slot_end < c->slots) {
                bool row_start = !c->node->max_rep || c->reps.data[p->slot_end] == 0;

                if (row_start) {
                        if (p->slot_end > p->slot && (bytes >= w->page_bytes || p->row_end - p->row >= w->page_rows))
                                return;
                        p->row_end++;
                }
                if (!c->node->max_def || c->defs.data[p->slot_end] == c->node->max_def) {
                        bytes += plain_bytes ? 4 + (size_t)byte_dict_entry(&c->dict, codes[p->value_end])->size
                                 : s->encoding == ENCODING_PLAIN ? 8
                                                                 : 3;
                        p->value_end++;
                }
                p->slot_end++;
        }
}

static enum status write_data_page(struct chunk_writer *w, const struct chunk_source *s, const struct page_range *p,
                                   uint64_t file_offset, struct chunk_meta *m)
{
        const struct column_builder *c = s->column;
        struct page_location at = { .offset = file_offset + w->pages.size, .first_row = p->row };
        size_t count = p->slot_end - p->slot;
        enum status st;

        buf_clear(&w->payload);
        append_levels(w, &c->reps, p->slot, count, c->node->max_rep);
        append_levels(w, &c->defs, p->slot, count, c->node->max_def);
        append_values(w, s, p->value, p->value_end - p->value);
        st = append_values_page(w, &w->payload, PAGE_DATA, (uint32_t)count, s->encoding, m);
        if (st)
                return st;
        m->data_page_count++;
        at.size = (uint32_t)(file_offset + w->pages.size - at.offset);
        value_stats_of(c, p->value, p->value_end, count - (p->value_end - p->value), &at.stats);
        value_stats_merge(c->node, &m->stats, &at.stats);
        return buf_append(&w->locations, &at, sizeof at);
}

static enum status write_column_pages(struct chunk_writer *w, struct chunk_source *s, uint64_t file_offset,
                                      struct chunk_meta *m)
{
        struct page_range p = { 0 };
        enum status st = ST_OK;

        s->encoding = ENCODING_PLAIN;
        if (column_is_bytes(s->column))
                choose_for_bytes(s);
        else
                st = choose_for_numbers(s, &w->scratch);
        if (!st && s->encoding == ENCODING_RLE_DICTIONARY) {
                m->dictionary_offset = file_offset;
                st = append_values_page(w, &s->dictionary, PAGE_DICTIONARY, s->dictionary_count, ENCODING_PLAIN, m);
        }
        m->encoding = s->encoding;
        m->data_offset = file_offset + w->pages.size;
        while (!st && p.slot_end < s->column->slots) {
                choose_page_end(w, s, &p);
                st = write_data_page(w, s, &p, file_offset, m);
        }
        return st;
}

enum status chunk_write(struct chunk_writer *w, const struct column_builder *c, uint64_t file_offset,
                        struct chunk_meta *ret, struct error *err)
{
        struct chunk_meta m = { .value_count = c->slots };
        struct chunk_source s = { .column = c };
        enum status st;

        buf_init(&s.dictionary, 2 * DICTIONARY_BYTES);
        buf_clear(&w->pages);
        buf_clear(&w->locations);
        st = write_column_pages(w, &s, file_offset, &m);
        buf_deinit(&s.dictionary);
        int_dict_deinit(&s.int_dict);
        if (!st)
                st = page_index_append(w, c->node, &m);
        if (st)
                return error_set(err, st, "column '%s' cannot be written: its pages are too large or memory ran out",
                                 c->node->name);
        *ret = m;
        return ST_OK;
}
