/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/parquet_reader.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "common/limits.h"
#include "parquet/chunk_read.h"
#include "parquet/footer_read.h"
#include "parquet/format.h"

struct parquet_file {
        struct parquet_source source;
        struct arena arena;
        const char *name;
        struct read_footer footer;
};

static enum status require_ranges(const struct parquet_file *f, const struct file_range *ranges, size_t count,
                                  struct error *err)
{
        return f->source.require ? f->source.require(f->source.context, ranges, count, err) : ST_OK;
}

/* Damage may look like what is not supported, or too large. */
static bool may_be_damage(enum status st)
{
        return st == ST_BAD_DATA || st == ST_UNSUPPORTED || st == ST_TOO_BIG;
}

static enum status reload_range(const struct parquet_file *f, const struct file_range *range, enum status failed,
                                struct error *err)
{
        enum status st = may_be_damage(failed) && f->source.reload ? f->source.reload(f->source.context, range, 1, err)
                                                                   : ST_UNSUPPORTED;

        return st == ST_UNSUPPORTED ? failed : st;
}

static struct file_range get_end_range(const struct parquet_file *f)
{
        const uint64_t size = f->source.size, end = size < PARQUET_END_BYTES ? size : PARQUET_END_BYTES;

        return (struct file_range){ size - end, end };
}

/* False: the end of the file has it, or its size is too large, which is left to footer_read(). */
static bool find_larger_footer(const struct parquet_file *f, struct file_range *ret)
{
        const uint64_t size = f->source.size;
        uint32_t n;

        memcpy(&n, (const uint8_t *)f->source.data + size - PARQUET_TAIL_BYTES, sizeof n);
        n = le32toh(n);
        if ((uint64_t)n + PARQUET_TAIL_BYTES <= get_end_range(f).size || n > size - PARQUET_TAIL_BYTES ||
            n > LIMIT_PARQUET_FOOTER_BYTES)
                return false;
        *ret = (struct file_range){ size - PARQUET_TAIL_BYTES - n, n };
        return true;
}

static enum status require_footer(const struct parquet_file *f, struct error *err)
{
        const struct file_range end = get_end_range(f);
        struct file_range footer;
        enum status st;

        if (!f->source.require || f->source.size < PARQUET_MAGIC_BYTES + PARQUET_TAIL_BYTES)
                return ST_OK;
        st = require_ranges(f, &end, 1, err);
        return !st && find_larger_footer(f, &footer) ? require_ranges(f, &footer, 1, err) : st;
}

static enum status load_footer(struct parquet_file *f, const char *name, struct error *err)
{
        enum status st;

        arena_init(&f->arena, LIMIT_PARQUET_METADATA_BYTES);
        f->name = arena_strndup(&f->arena, name, strlen(name));
        st = f->name ? require_footer(f, err) : error_no_memory(err);
        return st ? st : footer_read(f->source.data, f->source.size, !f->source.require, &f->arena, &f->footer, err);
}

static enum status reload_footer(struct parquet_file *f, const char *name, enum status failed, struct error *err)
{
        const struct file_range end = get_end_range(f);
        struct file_range footer;
        enum status st = reload_range(f, &end, failed, err);

        if (!st && end.size >= PARQUET_MAGIC_BYTES + PARQUET_TAIL_BYTES && find_larger_footer(f, &footer))
                st = reload_range(f, &footer, failed, err);
        if (st)
                return st;
        arena_deinit(&f->arena);
        f->footer = (struct read_footer){ 0 };
        return load_footer(f, name, err);
}

enum status parquet_file_open_source(const struct parquet_source *source, const char *name, struct parquet_file **ret,
                                     struct error *err)
{
        struct parquet_file *f = calloc(1, sizeof *f);
        enum status st;

        if (!f)
                return error_no_memory(err);
        f->source = *source;
        st = load_footer(f, name, err);
        if (st)
                st = reload_footer(f, name, st, err);
        if (st) {
                st = error_prefix(err, st, "cannot read '%s'", name);
                parquet_file_close(f);
                return st;
        }
        *ret = f;
        return ST_OK;
}

enum status parquet_file_open(const void *data, size_t size, const char *name, struct parquet_file **ret,
                              struct error *err)
{
        const struct parquet_source whole = { .data = data, .size = size };

        return parquet_file_open_source(&whole, name, ret, err);
}

void parquet_file_close(struct parquet_file *f)
{
        if (!f)
                return;
        arena_deinit(&f->arena);
        free(f);
}

const struct parquet_schema *parquet_file_schema(const struct parquet_file *f)
{
        return &f->footer.schema;
}

uint32_t parquet_file_row_groups(const struct parquet_file *f)
{
        return (uint32_t)f->footer.group_count;
}

uint64_t parquet_file_group_rows(const struct parquet_file *f, uint32_t group)
{
        assert(group < f->footer.group_count);
        return f->footer.groups[group].rows;
}

const struct read_chunk *parquet_file_chunk(const struct parquet_file *f, uint32_t group, uint32_t node)
{
        const struct parquet_node *n = &f->footer.schema.nodes[node];

        assert(group < f->footer.group_count && node < f->footer.schema.node_count && n->column != PARQUET_NO_COLUMN);
        return &f->footer.groups[group].chunks[n->column];
}

struct file_range parquet_file_get_chunk_range(const struct parquet_file *f, uint32_t group, uint32_t node)
{
        const struct read_chunk *chunk = parquet_file_chunk(f, group, node);

        return (struct file_range){ chunk->start, chunk->size };
}

enum status parquet_require_chunk(const struct parquet_file *f, const struct read_chunk *chunk, struct error *err)
{
        return require_ranges(f, &(struct file_range){ chunk->start, chunk->size }, 1, err);
}

enum status parquet_reload_chunk(const struct parquet_file *f, const struct read_chunk *chunk, enum status failed,
                                 struct error *err)
{
        return reload_range(f, &(struct file_range){ chunk->start, chunk->size }, failed, err);
}

const uint8_t *parquet_file_data(const struct parquet_file *f)
{
        return f->source.data;
}

const char *parquet_file_name(const struct parquet_file *f)
{
        return f->name;
}

/* A bound as a number; false when its size does not match its type. */
static bool bound_number(const struct parquet_node *n, const struct raw_bound *b, int64_t *int_ret, double *double_ret)
{
        uint64_t raw = 0;
        float single;

        if (!b->data)
                return false;
        if (n->physical == PHYSICAL_BYTE_ARRAY || n->physical == PHYSICAL_FIXED)
                return true;
        if (n->kind == PARQUET_OTHER || b->size > sizeof raw ||
            b->size != (n->physical == PHYSICAL_BOOLEAN                                  ? 1u
                        : n->physical == PHYSICAL_INT32 || n->physical == PHYSICAL_FLOAT ? 4u
                                                                                         : 8u))
                return false;
        memcpy(&raw, b->data, b->size);
        raw = le64toh(raw);
        switch (n->physical) {
        case PHYSICAL_INT32:
                *int_ret = (int32_t)raw;
                break;
        case PHYSICAL_FLOAT:
                memcpy(&single, &raw, sizeof single);
                *double_ret = single;
                break;
        case PHYSICAL_DOUBLE:
                memcpy(double_ret, &raw, sizeof *double_ret);
                break;
        default:
                *int_ret = (int64_t)raw;
        }
        return true;
}

void parquet_file_stats(const struct parquet_file *f, uint32_t group, uint32_t node, struct parquet_stats *ret)
{
        const struct parquet_node *n = &f->footer.schema.nodes[node];
        const struct read_chunk *c;

        assert(group < f->footer.group_count && node < f->footer.schema.node_count && n->column != PARQUET_NO_COLUMN);
        c = &f->footer.groups[group].chunks[n->column];
        *ret = (struct parquet_stats){
                .has_null_count = c->has_null_count,
                .null_count = c->null_count,
                .value_count = c->value_count,
                .min_exact = c->min.exact,
                .max_exact = c->max.exact,
                .min_bytes = c->min.data,
                .min_size = c->min.size,
                .max_bytes = c->max.data,
                .max_size = c->max.size,
        };
        ret->has_min = bound_number(n, &c->min, &ret->min_int, &ret->min_double);
        ret->has_max = bound_number(n, &c->max, &ret->max_int, &ret->max_double);
}

enum status parquet_read_column(const struct parquet_file *f, uint32_t group, uint32_t node, struct parquet_column *ret,
                                struct error *err)
{
        const struct parquet_node *n = &f->footer.schema.nodes[node];
        const struct read_group *g;
        enum status st;

        assert(group < f->footer.group_count && node < f->footer.schema.node_count && n->column != PARQUET_NO_COLUMN);
        g = &f->footer.groups[group];
        st = parquet_require_chunk(f, &g->chunks[n->column], err);
        if (!st)
                st = chunk_read(f->source.data, n, &g->chunks[n->column], g->rows, ret, err);
        if (st && !(st = parquet_reload_chunk(f, &g->chunks[n->column], st, err)))
                st = chunk_read(f->source.data, n, &g->chunks[n->column], g->rows, ret, err);
        return st ? error_prefix(err, st, "cannot read '%s': row group %u, column '%s'", f->name, group, n->name)
                  : ST_OK;
}
