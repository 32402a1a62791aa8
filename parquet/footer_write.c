/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/footer_write.h"

#include <string.h>

#include "common/limits.h"
#include "parquet/format.h"
#include "parquet/thrift.h"

#define CREATED_BY "cairn version " CAIRN_VERSION " (build 0)"

static int converted_type_of(enum parquet_kind kind)
{
        switch (kind) {
        case PARQUET_STRING:
                return CONVERTED_UTF8;
        case PARQUET_DATE:
                return CONVERTED_DATE;
        case PARQUET_TIMESTAMP:
                return CONVERTED_TIMESTAMP_MICROS;
        case PARQUET_LIST:
                return CONVERTED_LIST;
        case PARQUET_MAP:
                return CONVERTED_MAP;
        default:
                return -1;
        }
}

static void append_logical(struct thrift_writer *t, enum parquet_kind kind)
{
        static const uint8_t fields[] = {
                [PARQUET_STRING] = LOGICAL_STRING,
                [PARQUET_DATE] = LOGICAL_DATE,
                [PARQUET_TIMESTAMP] = LOGICAL_TIMESTAMP,
                [PARQUET_LIST] = LOGICAL_LIST,
                [PARQUET_MAP] = LOGICAL_MAP,
        };

        thrift_struct(t, 10);
        thrift_struct(t, fields[kind]);
        if (kind == PARQUET_TIMESTAMP) {
                thrift_bool(t, 1, true); /* adjusted to UTC */
                thrift_struct(t, 2);
                thrift_struct(t, TIME_UNIT_MICROS);
                thrift_struct_end(t);
                thrift_struct_end(t);
        }
        thrift_struct_end(t);
        thrift_struct_end(t);
}

static void append_footer_schema(struct thrift_writer *t, const struct parquet_schema *s)
{
        thrift_list(t, 2, THRIFT_STRUCT, s->node_count);
        for (uint32_t i = 0; i < s->node_count; i++) {
                const struct parquet_node *n = &s->nodes[i];
                int converted = converted_type_of(n->kind);

                thrift_struct(t, 0);
                if (!n->child_count)
                        thrift_i32(t, 1, n->physical);
                if (i)
                        thrift_i32(t, 3, n->repetition);
                thrift_str(t, 4, n->name);
                if (n->child_count)
                        thrift_i32(t, 5, (int32_t)n->child_count);
                if (converted >= 0) {
                        thrift_i32(t, 6, converted);
                        append_logical(t, n->kind);
                }
                thrift_struct_end(t);
        }
}

static void append_statistics(struct thrift_writer *t, const struct value_stats *s)
{
        thrift_struct(t, 12);
        thrift_i64(t, 3, (int64_t)s->null_count);
        if (s->max.present && !s->unordered)
                thrift_binary(t, 5, s->max.bytes, s->max.size);
        if (s->min.present && !s->unordered)
                thrift_binary(t, 6, s->min.bytes, s->min.size);
        if (s->max.present && !s->unordered)
                thrift_bool(t, 7, s->max.exact);
        if (s->min.present && !s->unordered)
                thrift_bool(t, 8, s->min.exact);
        thrift_struct_end(t);
}

static void append_path(struct thrift_writer *t, const struct parquet_schema *s, uint32_t node)
{
        uint32_t path[LIMIT_PARQUET_DEPTH + 1];
        size_t depth = 0;

        for (; node; node = s->nodes[node].parent)
                path[depth++] = node;
        thrift_list(t, 3, THRIFT_BINARY, depth);
        while (depth--) {
                /* cppcheck-suppress uninitvar ; path[0, depth) is set above */
                const char *name = s->nodes[path[depth]].name;

                thrift_element_binary(t, name, strlen(name));
        }
}

static void append_chunk(struct thrift_writer *t, const struct footer *f, uint32_t column, const struct chunk_meta *m)
{
        uint32_t node = f->schema->columns[column];
        bool dictionary = m->dictionary_offset != 0;

        thrift_struct(t, 0);
        thrift_i64(t, 2, 0);
        thrift_struct(t, 3);
        thrift_i32(t, 1, f->schema->nodes[node].physical);
        thrift_list(t, 2, THRIFT_I32, dictionary ? 3 : 2);
        if (dictionary)
                thrift_element_i32(t, ENCODING_PLAIN);
        thrift_element_i32(t, ENCODING_RLE);
        thrift_element_i32(t, m->encoding);
        append_path(t, f->schema, node);
        thrift_i32(t, 4, CODEC_ZSTD);
        thrift_i64(t, 5, (int64_t)m->value_count);
        thrift_i64(t, 6, (int64_t)m->total_unpacked_bytes);
        thrift_i64(t, 7, (int64_t)m->total_bytes);
        thrift_i64(t, 9, (int64_t)m->data_offset);
        if (dictionary)
                thrift_i64(t, 11, (int64_t)m->dictionary_offset);
        append_statistics(t, &m->stats);
        thrift_list(t, 13, THRIFT_STRUCT, dictionary ? 2 : 1);
        if (dictionary) {
                thrift_struct(t, 0);
                thrift_i32(t, 1, PAGE_DICTIONARY);
                thrift_i32(t, 2, ENCODING_PLAIN);
                thrift_i32(t, 3, 1);
                thrift_struct_end(t);
        }
        thrift_struct(t, 0);
        thrift_i32(t, 1, PAGE_DATA);
        thrift_i32(t, 2, m->encoding);
        thrift_i32(t, 3, (int32_t)m->data_page_count);
        thrift_struct_end(t);
        thrift_struct_end(t);
        thrift_i64(t, 4, (int64_t)(f->offset_indexes_at + m->offset_index_start));
        thrift_i32(t, 5, (int32_t)m->offset_index_size);
        if (m->column_index_size) {
                thrift_i64(t, 6, (int64_t)(f->column_indexes_at + m->column_index_start));
                thrift_i32(t, 7, (int32_t)m->column_index_size);
        }
        thrift_struct_end(t);
}

static void append_row_group(struct thrift_writer *t, const struct footer *f, size_t ordinal)
{
        const struct row_group_meta *g = &f->row_groups[ordinal];
        uint64_t bytes = 0, unpacked = 0;

        for (uint32_t i = 0; i < f->schema->column_count; i++) {
                bytes += g->chunks[i].total_bytes;
                unpacked += g->chunks[i].total_unpacked_bytes;
        }
        thrift_struct(t, 0);
        thrift_list(t, 1, THRIFT_STRUCT, f->schema->column_count);
        for (uint32_t i = 0; i < f->schema->column_count; i++)
                append_chunk(t, f, i, &g->chunks[i]);
        thrift_i64(t, 2, (int64_t)unpacked);
        thrift_i64(t, 3, (int64_t)g->rows);
        if (f->sort_count) {
                thrift_list(t, 4, THRIFT_STRUCT, f->sort_count);
                for (size_t i = 0; i < f->sort_count; i++) {
                        thrift_struct(t, 0);
                        thrift_i32(t, 1, (int32_t)f->sort_columns[i]);
                        thrift_bool(t, 2, f->sort[i].descending);
                        thrift_bool(t, 3, f->sort[i].nulls_first);
                        thrift_struct_end(t);
                }
        }
        thrift_i64(t, 5, (int64_t)g->file_offset);
        thrift_i64(t, 6, (int64_t)bytes);
        if (ordinal <= INT16_MAX)
                thrift_i16(t, 7, (int16_t)ordinal);
        thrift_struct_end(t);
}

void footer_append(struct buf *out, const struct footer *f)
{
        size_t start = out->size;
        struct thrift_writer t;

        thrift_writer_init(&t, out);
        thrift_struct(&t, 0);
        thrift_i32(&t, 1, 1);
        append_footer_schema(&t, f->schema);
        thrift_i64(&t, 3, (int64_t)f->rows);
        thrift_list(&t, 4, THRIFT_STRUCT, f->row_group_count);
        for (size_t i = 0; i < f->row_group_count; i++)
                append_row_group(&t, f, i);
        if (f->metadata_count) {
                thrift_list(&t, 5, THRIFT_STRUCT, f->metadata_count);
                for (size_t i = 0; i < f->metadata_count; i++) {
                        thrift_struct(&t, 0);
                        thrift_str(&t, 1, f->metadata[i].key);
                        thrift_str(&t, 2, f->metadata[i].value);
                        thrift_struct_end(&t);
                }
        }
        thrift_str(&t, 6, CREATED_BY);
        thrift_list(&t, 7, THRIFT_STRUCT, f->schema->column_count);
        for (uint32_t i = 0; i < f->schema->column_count; i++) {
                thrift_struct(&t, 0);
                thrift_struct(&t, 1); /* TYPE_ORDER */
                thrift_struct_end(&t);
                thrift_struct_end(&t);
        }
        thrift_struct_end(&t);
        buf_append_u32(out, (uint32_t)(out->size - start));
        buf_append(out, PARQUET_MAGIC, PARQUET_MAGIC_BYTES);
}

size_t footer_group_bytes(const struct footer *f, size_t ordinal)
{
        const size_t varint_slack = 64; /* offsets of a chunk may grow with the file */
        _cleanup_buf_ struct buf out;
        struct thrift_writer t;

        buf_init(&out, LIMIT_PARQUET_METADATA_BYTES);
        thrift_writer_init(&t, &out);
        append_row_group(&t, f, ordinal);
        return out.failed ? SIZE_MAX / 4 : out.size + f->schema->column_count * varint_slack;
}
