/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/schema_read.h"

#include "common/limits.h"
#include "parquet/format.h"
#include "parquet/thrift_read.h"

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

/* A union: a struct with one field. Returns the field's id, 0 for none; its content is skipped. */
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

static bool is_text(const struct element *e)
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
                return is_text(e) ? PARQUET_STRING : PARQUET_BINARY;
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
        if (e->physical == PHYSICAL_FIXED && (e->type_length <= 0 || (size_t)e->type_length > LIMIT_PARQUET_VALUE_BYTES))
                return false;
        return e->child_count <= LIMIT_PARQUET_NODES && e->name && (!is_root || e->child_count) &&
               e->repetition >= REPETITION_REQUIRED && e->repetition <= REPETITION_REPEATED;
}

enum status schema_read(struct reader *r, uint8_t type, struct arena *a, struct parquet_schema *ret, struct error *err)
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
                        return error_at(err, ST_BAD_DATA, r->base + r->pos, "schema node %u is malformed", s.node_count);
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
