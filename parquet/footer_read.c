/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/footer_read.h"

#include <endian.h>
#include <string.h>

#include "common/limits.h"
#include "common/reader.h"
#include "parquet/format.h"
#include "parquet/thrift.h"

/* ---- schema ---- */

struct element {
        int32_t physical; /* -1: a group */
        int32_t type_length;
        int32_t repetition;
        int32_t converted; /* -1: none */
        int32_t logical;   /* 0: none */
        int32_t unit;
        uint64_t child_count;
        const uint8_t *name;
        size_t name_size;
};

/* A union is a struct with one field. Returns the field's id and skips its content; 0 without a field. */
static int32_t read_union(struct reader *r, uint8_t type)
{
        struct thrift_fields s = { 0 };
        int32_t id = 0;

        if (type != THRIFT_STRUCT)
                thrift_fail(r);
        while (thrift_field(r, &s)) {
                id = s.id;
                thrift_skip(r, s.type);
        }
        return id;
}

static void read_timestamp(struct reader *r, uint8_t type, struct element *e)
{
        struct thrift_fields s = { 0 };

        if (type != THRIFT_STRUCT)
                thrift_fail(r);
        while (thrift_field(r, &s)) {
                if (s.id == 2)
                        e->unit = read_union(r, s.type);
                else
                        thrift_skip(r, s.type);
        }
}

static void read_logical(struct reader *r, uint8_t type, struct element *e)
{
        struct thrift_fields s = { 0 };

        if (type != THRIFT_STRUCT)
                thrift_fail(r);
        while (thrift_field(r, &s)) {
                e->logical = s.id;
                if (s.id == LOGICAL_TIMESTAMP)
                        read_timestamp(r, s.type, e);
                else
                        thrift_skip(r, s.type);
        }
}

static void read_element(struct reader *r, struct element *e)
{
        struct thrift_fields s = { 0 };

        *e = (struct element){ .physical = -1, .converted = -1 };
        while (thrift_field(r, &s)) {
                switch (s.id) {
                case 1:
                        thrift_read_i32(r, s.type, &e->physical);
                        break;
                case 2:
                        thrift_read_i32(r, s.type, &e->type_length);
                        break;
                case 3:
                        thrift_read_i32(r, s.type, &e->repetition);
                        break;
                case 4:
                        thrift_read_binary(r, s.type, &e->name, &e->name_size);
                        break;
                case 5:
                        thrift_read_size(r, s.type, &e->child_count);
                        break;
                case 6:
                        thrift_read_i32(r, s.type, &e->converted);
                        break;
                case 10:
                        read_logical(r, s.type, e);
                        break;
                default:
                        thrift_skip(r, s.type);
                }
        }
}

static enum parquet_kind group_kind(const struct element *e)
{
        if (e->logical == LOGICAL_LIST || e->converted == CONVERTED_LIST)
                return PARQUET_LIST;
        if (e->logical == LOGICAL_MAP || e->converted == CONVERTED_MAP || e->converted == CONVERTED_MAP_KEY_VALUE)
                return PARQUET_MAP;
        return PARQUET_STRUCT;
}

static enum parquet_kind int64_kind(const struct element *e, uint8_t *unit_ret)
{
        if (e->logical == LOGICAL_TIMESTAMP && e->unit >= TIME_UNIT_MILLIS && e->unit <= TIME_UNIT_NANOS)
                *unit_ret = (uint8_t)e->unit;
        else if (e->converted == CONVERTED_TIMESTAMP_MICROS)
                *unit_ret = TIME_UNIT_MICROS;
        else if (e->converted == CONVERTED_TIMESTAMP_MILLIS)
                *unit_ret = TIME_UNIT_MILLIS;
        else
                return PARQUET_INT64;
        return PARQUET_TIMESTAMP;
}

static bool is_text_element(const struct element *e)
{
        return e->logical == LOGICAL_STRING || e->logical == LOGICAL_ENUM || e->logical == LOGICAL_JSON ||
               e->converted == CONVERTED_UTF8 || e->converted == CONVERTED_ENUM || e->converted == CONVERTED_JSON;
}

static enum parquet_kind leaf_kind(const struct element *e, uint8_t *unit_ret)
{
        switch (e->physical) {
        case PHYSICAL_BOOLEAN:
                return PARQUET_BOOL;
        case PHYSICAL_INT32:
                return e->logical == LOGICAL_DATE || e->converted == CONVERTED_DATE ? PARQUET_DATE : PARQUET_INT32;
        case PHYSICAL_INT64:
                return int64_kind(e, unit_ret);
        case PHYSICAL_FLOAT:
        case PHYSICAL_DOUBLE:
                return PARQUET_DOUBLE;
        case PHYSICAL_BYTE_ARRAY:
                return is_text_element(e) ? PARQUET_STRING : PARQUET_BINARY;
        case PHYSICAL_FIXED:
                return PARQUET_BINARY;
        default:
                return PARQUET_OTHER;
        }
}

static bool element_valid(const struct element *e, bool is_root)
{
        if (e->physical < 0 ? !e->child_count : e->child_count || e->physical > PHYSICAL_FIXED)
                return false;
        if (e->physical == PHYSICAL_FIXED &&
            (e->type_length <= 0 || (size_t)e->type_length > LIMIT_PARQUET_VALUE_BYTES))
                return false;
        return e->child_count <= LIMIT_PARQUET_NODES && e->name && (!is_root || e->child_count) &&
               e->repetition >= REPETITION_REQUIRED && e->repetition <= REPETITION_REPEATED;
}

static enum status schema_read(struct reader *r, uint8_t type, struct arena *a, struct parquet_schema *ret,
                               struct error *err)
{
        struct parquet_schema s = { 0 };
        size_t count = 0;
        enum status st;

        thrift_read_struct_list(r, type, &count);
        if (r->failed)
                return reader_error(r, err, "the schema");
        if (count > LIMIT_PARQUET_NODES)
                return error_set(err, ST_TOO_BIG, "the schema has more than %d nodes", LIMIT_PARQUET_NODES);
        s.nodes = arena_alloc_array(a, count, sizeof *s.nodes);
        if (!s.nodes)
                return error_no_memory(err);
        for (; s.node_count < count; s.node_count++) {
                struct parquet_node *n = &s.nodes[s.node_count];
                struct element e;

                read_element(r, &e);
                if (r->failed)
                        return reader_error(r, err, "the schema");
                if (!element_valid(&e, s.node_count == 0))
                        return error_at(err, ST_BAD_DATA, r->base + r->pos, "schema node %u is malformed",
                                        s.node_count);
                n->name = arena_strndup(a, (const char *)e.name, e.name_size);
                if (!n->name)
                        return error_no_memory(err);
                n->child_count = (uint32_t)e.child_count;
                n->repetition = s.node_count ? (uint8_t)e.repetition : REPETITION_REQUIRED;
                n->kind = e.child_count ? group_kind(&e) : leaf_kind(&e, &n->unit);
                n->physical = e.child_count ? 0 : (uint8_t)e.physical;
                n->type_length = (uint32_t)e.type_length;
        }
        st = parquet_schema_resolve(a, &s, err);
        if (!st)
                *ret = s;
        return st;
}

struct parse {
        struct reader r;
        struct arena *arena;
        struct error *err;
        struct read_footer *footer;
        uint64_t pages_end; /* where the footer begins */
};

/* The metadata of a chunk before validation. */
struct raw_chunk {
        struct read_chunk chunk;
        int32_t physical;
        uint64_t data_offset;
        uint64_t dictionary_offset;
        bool has_meta;
        bool elsewhere;
};

static void read_statistics(struct reader *r, uint8_t type, struct read_chunk *c)
{
        struct thrift_fields s = { 0 };

        if (type != THRIFT_STRUCT)
                thrift_fail(r);
        while (thrift_field(r, &s)) {
                switch (s.id) {
                case 3:
                        thrift_read_size(r, s.type, &c->null_count);
                        c->has_null_count = true;
                        break;
                case 5:
                        thrift_read_binary(r, s.type, &c->max.data, &c->max.size);
                        break;
                case 6:
                        thrift_read_binary(r, s.type, &c->min.data, &c->min.size);
                        break;
                case 7:
                        thrift_read_bool(r, s.type, &c->max.exact);
                        break;
                case 8:
                        thrift_read_bool(r, s.type, &c->min.exact);
                        break;
                default:
                        thrift_skip(r, s.type);
                }
        }
}

static void read_column_meta(struct reader *r, uint8_t type, struct raw_chunk *raw)
{
        struct thrift_fields s = { 0 };

        if (type != THRIFT_STRUCT)
                thrift_fail(r);
        while (thrift_field(r, &s)) {
                switch (s.id) {
                case 1:
                        thrift_read_i32(r, s.type, &raw->physical);
                        break;
                case 4:
                        thrift_read_i32(r, s.type, &raw->chunk.codec);
                        break;
                case 5:
                        thrift_read_size(r, s.type, &raw->chunk.value_count);
                        break;
                case 7:
                        thrift_read_size(r, s.type, &raw->chunk.size);
                        break;
                case 9:
                        thrift_read_size(r, s.type, &raw->data_offset);
                        break;
                case 11:
                        thrift_read_size(r, s.type, &raw->dictionary_offset);
                        break;
                case 12:
                        read_statistics(r, s.type, &raw->chunk);
                        break;
                default:
                        thrift_skip(r, s.type);
                }
        }
        raw->has_meta = true;
}

static void read_raw_chunk(struct reader *r, struct raw_chunk *raw)
{
        struct thrift_fields s = { 0 };

        while (thrift_field(r, &s)) {
                if (s.id == 3) {
                        read_column_meta(r, s.type, raw);
                } else {
                        raw->elsewhere |= s.id == 1 || s.id == 8 || s.id == 9;
                        thrift_skip(r, s.type);
                }
        }
}

static enum status read_chunk(struct parse *p, uint32_t column, struct read_chunk *ret)
{
        const struct parquet_node *n = &p->footer->schema.nodes[p->footer->schema.columns[column]];
        struct raw_chunk raw = { .physical = -1 };
        struct read_chunk *c = &raw.chunk;

        read_raw_chunk(&p->r, &raw);
        if (p->r.failed)
                return reader_error(&p->r, p->err, "a column chunk's metadata");
        if (raw.elsewhere)
                return error_set(p->err, ST_UNSUPPORTED, "column '%s' is encrypted or in another file", n->name);
        c->start = raw.data_offset;
        if (raw.dictionary_offset && raw.dictionary_offset < raw.data_offset)
                c->start = raw.dictionary_offset;
        if (!raw.has_meta || raw.physical != n->physical || c->start < PARQUET_MAGIC_BYTES || c->start > p->pages_end ||
            c->size > p->pages_end - c->start)
                return error_at(p->err, ST_BAD_DATA, p->r.base + p->r.pos,
                                "a chunk of column '%s' is outside the file or of another type", n->name);
        *ret = *c;
        return ST_OK;
}

static enum status read_chunks(struct parse *p, uint8_t type, struct read_group *g)
{
        uint32_t column_count = p->footer->schema.column_count;
        size_t count = 0;

        thrift_read_struct_list(&p->r, type, &count);
        if (p->r.failed)
                return reader_error(&p->r, p->err, "a row group's metadata");
        if (count != column_count)
                return error_at(p->err, ST_BAD_DATA, p->r.base + p->r.pos, "a row group has %zu columns, the schema %u",
                                count, column_count);
        g->chunks = arena_alloc_array(p->arena, count, sizeof *g->chunks);
        if (!g->chunks)
                return error_set(p->err, ST_TOO_BIG, "the footer unpacks to more than %zu bytes",
                                 LIMIT_PARQUET_METADATA_BYTES);
        for (uint32_t i = 0; i < count; i++) {
                enum status st = read_chunk(p, i, &g->chunks[i]);

                if (st)
                        return st;
        }
        return ST_OK;
}

static enum status read_row_group(struct parse *p, struct read_group *g)
{
        struct thrift_fields s = { 0 };
        enum status st;

        while (thrift_field(&p->r, &s)) {
                if (s.id == 1) {
                        st = read_chunks(p, s.type, g);
                        if (st)
                                return st;
                } else if (s.id == 3) {
                        thrift_read_size(&p->r, s.type, &g->rows);
                } else {
                        thrift_skip(&p->r, s.type);
                }
        }
        if (p->r.failed || !g->chunks) {
                thrift_fail(&p->r);
                return reader_error(&p->r, p->err, "a row group's metadata");
        }
        return ST_OK;
}

static enum status read_row_groups(struct parse *p, uint8_t type)
{
        struct read_footer *f = p->footer;

        thrift_read_struct_list(&p->r, type, &f->group_count);
        if (!f->schema.nodes)
                thrift_fail(&p->r); /* fields are in ascending order: a schema comes first */
        if (p->r.failed)
                return reader_error(&p->r, p->err, "the list of row groups");
        if (f->group_count > LIMIT_PARQUET_ROW_GROUPS)
                return error_set(p->err, ST_TOO_BIG, "more than %d row groups", LIMIT_PARQUET_ROW_GROUPS);
        f->groups = arena_alloc_array(p->arena, f->group_count, sizeof *f->groups);
        if (!f->groups)
                return error_no_memory(p->err);
        for (size_t i = 0; i < f->group_count; i++) {
                enum status st = read_row_group(p, &f->groups[i]);

                if (st)
                        return st;
        }
        return ST_OK;
}

static enum status check_footer_rows(const struct parse *p)
{
        const struct read_footer *f = p->footer;
        uint64_t rows = 0;

        for (size_t i = 0; i < f->group_count; i++) {
                if (f->groups[i].rows > INT64_MAX - rows)
                        return error_set(p->err, ST_BAD_DATA, "the row groups' rows overflow");
                rows += f->groups[i].rows;
        }
        if (rows != f->rows)
                return error_set(p->err, ST_BAD_DATA, "the row groups have %ju rows, the file says %ju",
                                 (uintmax_t)rows, (uintmax_t)f->rows);
        return ST_OK;
}

static enum status read_file_metadata(struct parse *p)
{
        struct thrift_fields s = { 0 };
        enum status st = ST_OK;

        while (!st && thrift_field(&p->r, &s)) {
                switch (s.id) {
                case 2:
                        st = schema_read(&p->r, s.type, p->arena, &p->footer->schema, p->err);
                        break;
                case 3:
                        thrift_read_size(&p->r, s.type, &p->footer->rows);
                        break;
                case 4:
                        st = read_row_groups(p, s.type);
                        break;
                default:
                        thrift_skip(&p->r, s.type);
                }
        }
        if (st)
                return st;
        if (!p->footer->schema.nodes)
                thrift_fail(&p->r);
        if (p->r.failed)
                return reader_error(&p->r, p->err, "the footer");
        return check_footer_rows(p);
}

enum status footer_read(const uint8_t *data, size_t size, bool has_start, struct arena *a, struct read_footer *ret,
                        struct error *err)
{
        struct read_footer footer = { 0 };
        struct parse p = { .arena = a, .err = err, .footer = &footer };
        uint32_t footer_size;
        enum status st;

        if (size < PARQUET_MAGIC_BYTES + PARQUET_TAIL_BYTES ||
            (has_start && memcmp(data, PARQUET_MAGIC, PARQUET_MAGIC_BYTES) != 0))
                return error_set(err, ST_BAD_DATA, "not a Parquet file");
        if (memcmp(data + size - PARQUET_MAGIC_BYTES, "PARE", PARQUET_MAGIC_BYTES) == 0)
                return error_set(err, ST_UNSUPPORTED, "encrypted Parquet files are unsupported");
        if (memcmp(data + size - PARQUET_MAGIC_BYTES, PARQUET_MAGIC, PARQUET_MAGIC_BYTES) != 0)
                return error_at(err, ST_BAD_DATA, size, "truncated Parquet file: no magic number at its end");
        memcpy(&footer_size, data + size - PARQUET_TAIL_BYTES, sizeof footer_size);
        footer_size = le32toh(footer_size);
        if (footer_size > size - PARQUET_MAGIC_BYTES - PARQUET_TAIL_BYTES)
                return error_at(err, ST_BAD_DATA, size - PARQUET_TAIL_BYTES, "footer size of %u bytes exceeds the file",
                                footer_size);
        if (footer_size > LIMIT_PARQUET_FOOTER_BYTES)
                return error_set(err, ST_TOO_BIG, "footer of %u bytes is too large", footer_size);
        p.pages_end = size - PARQUET_TAIL_BYTES - footer_size;
        reader_init(&p.r, data + p.pages_end, footer_size);
        p.r.base = p.pages_end;
        st = read_file_metadata(&p);
        if (!st)
                *ret = footer;
        return st;
}
