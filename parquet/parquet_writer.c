/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values go to one column builder per leaf column (column_builder.c), where they stay until the row group is complete.
 * parquet_writer_end_rows() checks that all columns have the same number of rows and, at a limit, writes the row
 * group: each column is encoded as a chunk (chunk_write.c) and appended to the file. Statistics and offsets of the
 * chunks stay in memory (row_groups), as do the page indexes; parquet_writer_finish() writes these and the footer.
 *
 * Failures of puts are kept by the column builders and reported by the next end_rows or finish.
 *
 * Size of the footer: it is estimated after each row group, so that parquet_writer_is_full() can tell the caller to
 * begin another file before the footer is larger than a reader accepts.
 *
 * Order: options, creation, puts, row groups, finish, summary of a column.
 */
#include "parquet/parquet_writer.h"

#include <assert.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "parquet/chunk_write.h"
#include "parquet/column_builder.h"
#include "parquet/footer_write.h"
#include "parquet/format.h"

struct parquet_writer {
        int fd;
        struct arena arena; /* name, schema, options' texts */
        const char *name;
        struct parquet_schema schema;
        struct parquet_writer_options options;
        uint32_t *sort_columns;
        struct column_builder *columns; /* one a column */
        struct chunk_writer chunks;
        struct buf row_groups; /* struct row_group_meta */
        uint64_t group_rows;   /* rows ended in the current row group */
        uint64_t rows;
        uint64_t bytes;
        size_t footer_bytes;  /* upper bound for the schema and all row groups */
        size_t largest_group; /* largest share of a single row group in footer_bytes */
};

static struct parquet_writer_options with_defaults(const struct parquet_writer_options *given)
{
        struct parquet_writer_options o = { 0 };

        if (given)
                memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
        o.size = sizeof o;
        o.zstd_level = o.zstd_level ? o.zstd_level : 3;
        o.row_group_rows = o.row_group_rows ? o.row_group_rows : KiB(128);
        o.row_group_bytes = o.row_group_bytes ? o.row_group_bytes : MiB(64);
        o.page_bytes = o.page_bytes ? o.page_bytes : MiB(1);
        o.page_rows = o.page_rows ? o.page_rows : 20000;
        if (!o.footer_bytes || o.footer_bytes > LIMIT_PARQUET_FOOTER_BYTES)
                o.footer_bytes = LIMIT_PARQUET_FOOTER_BYTES;
        return o;
}

static enum status copy_options(struct parquet_writer *w, struct error *err)
{
        struct parquet_writer_options *o = &w->options;
        struct parquet_key_value *metadata = arena_alloc_array(&w->arena, o->metadata_count, sizeof *metadata);
        struct parquet_sort *sort = arena_alloc_array(&w->arena, o->sort_count, sizeof *sort);

        w->sort_columns = arena_alloc_array(&w->arena, o->sort_count, sizeof *w->sort_columns);
        if (!metadata || !sort || !w->sort_columns)
                return error_no_memory(err);
        for (size_t i = 0; i < o->metadata_count; i++) {
                metadata[i].key = arena_strndup(&w->arena, o->metadata[i].key, strlen(o->metadata[i].key));
                metadata[i].value = arena_strndup(&w->arena, o->metadata[i].value, strlen(o->metadata[i].value));
                if (!metadata[i].key || !metadata[i].value)
                        return error_no_memory(err);
        }
        for (size_t i = 0; i < o->sort_count; i++) {
                uint32_t node = parquet_schema_find(&w->schema, o->sort[i].path);

                if (w->schema.nodes[node].column == PARQUET_NO_COLUMN)
                        return error_set(err, ST_USAGE, "'%s' cannot be sorted by '%s': no such column", w->name,
                                         o->sort[i].path);
                w->sort_columns[i] = w->schema.nodes[node].column;
                sort[i] = o->sort[i];
        }
        o->metadata = metadata;
        o->sort = sort;
        return ST_OK;
}

static struct footer estimate_footer_bytes(const struct parquet_writer *w)
{
        return (struct footer){ .schema = &w->schema,
                                .rows = w->rows,
                                .sort = w->options.sort,
                                .sort_columns = w->sort_columns,
                                .sort_count = w->options.sort_count,
                                .metadata = w->options.metadata,
                                .metadata_count = w->options.metadata_count,
                                .row_groups = (const struct row_group_meta *)w->row_groups.data,
                                .row_group_count = w->row_groups.size / sizeof(struct row_group_meta) };
}

/* Size of a footer without row groups. */
static size_t schema_footer_bytes(const struct parquet_writer *w)
{
        const struct footer f = estimate_footer_bytes(w);
        _cleanup_buf_ struct buf out;

        buf_init(&out, LIMIT_PARQUET_METADATA_BYTES);
        footer_append(&out, &f);
        return out.failed ? SIZE_MAX / 4 : out.size + 64; /* row count and list length may still grow */
}

static enum status writer_start(struct parquet_writer *w, const char *name, const struct parquet_field *fields,
                                size_t field_count, struct error *err)
{
        enum status st;

        w->name = arena_strndup(&w->arena, name, strlen(name));
        if (!w->name)
                return error_no_memory(err);
        st = parquet_schema_from_fields(&w->arena, fields, field_count, &w->schema, err);
        if (!st)
                st = copy_options(w, err);
        if (!st)
                st = chunk_writer_init(&w->chunks, err);
        if (st)
                return st;
        w->chunks.zstd_level = w->options.zstd_level;
        w->chunks.page_bytes = w->options.page_bytes;
        w->chunks.page_rows = w->options.page_rows;
        w->columns = calloc(w->schema.column_count, sizeof *w->columns);
        if (!w->columns)
                return error_no_memory(err);
        for (uint32_t i = 0; i < w->schema.column_count; i++)
                column_builder_init(&w->columns[i], &w->schema.nodes[w->schema.columns[i]]);
        w->bytes = PARQUET_MAGIC_BYTES;
        w->footer_bytes = schema_footer_bytes(w);
        return file_write_all(w->fd, PARQUET_MAGIC, PARQUET_MAGIC_BYTES, w->name, err);
}

enum status parquet_writer_create(int fd, const char *name, const struct parquet_field *fields, size_t field_count,
                                  const struct parquet_writer_options *options, struct parquet_writer **ret,
                                  struct error *err)
{
        struct parquet_writer *w = calloc(1, sizeof *w);
        enum status st;

        if (!w)
                return error_no_memory(err);
        w->fd = fd;
        arena_init(&w->arena, LIMIT_PARQUET_METADATA_BYTES);
        buf_init(&w->row_groups, LIMIT_PARQUET_ROW_GROUPS * sizeof(struct row_group_meta));
        w->options = with_defaults(options);
        st = writer_start(w, name, fields, field_count, err);
        if (st) {
                parquet_writer_destroy(w);
                return st;
        }
        *ret = w;
        return ST_OK;
}

void parquet_writer_destroy(struct parquet_writer *w)
{
        struct row_group_meta *groups;

        if (!w)
                return;
        groups = (struct row_group_meta *)w->row_groups.data;
        for (size_t i = 0; i < w->row_groups.size / sizeof *groups; i++)
                free(groups[i].chunks);
        buf_deinit(&w->row_groups);
        for (uint32_t i = 0; w->columns && i < w->schema.column_count; i++)
                column_builder_deinit(&w->columns[i]);
        free(w->columns);
        chunk_writer_deinit(&w->chunks);
        arena_deinit(&w->arena);
        free(w);
}

uint32_t parquet_writer_node(const struct parquet_writer *w, const char *path)
{
        uint32_t node = parquet_schema_find(&w->schema, path);

        assert(node != 0);
        return node;
}

const struct parquet_schema *parquet_writer_schema(const struct parquet_writer *w)
{
        return &w->schema;
}

static struct column_builder *get_leaf_builder(struct parquet_writer *w, uint32_t node)
{
        assert(node < w->schema.node_count && w->schema.nodes[node].column != PARQUET_NO_COLUMN);
        return &w->columns[w->schema.nodes[node].column];
}

void parquet_put_int(struct parquet_writer *w, uint32_t node, int64_t value)
{
        column_put_int(get_leaf_builder(w, node), value);
}

void parquet_put_ints(struct parquet_writer *w, uint32_t node, const int64_t *values, size_t count)
{
        column_put_ints(get_leaf_builder(w, node), values, count);
}

void parquet_put_bytes(struct parquet_writer *w, uint32_t node, const void *data, size_t n)
{
        column_put_bytes(get_leaf_builder(w, node), data, n);
}

void parquet_put_str(struct parquet_writer *w, uint32_t node, const char *s)
{
        column_put_bytes(get_leaf_builder(w, node), s, strlen(s));
}

void parquet_put_null(struct parquet_writer *w, uint32_t node)
{
        const struct parquet_node *n = &w->schema.nodes[node];

        for (uint32_t i = n->column_start; i < n->column_end; i++)
                column_put_null(&w->columns[i], n);
}

void parquet_put_nulls(struct parquet_writer *w, uint32_t node, size_t count)
{
        column_put_nulls(get_leaf_builder(w, node), count);
}

void parquet_put_list(struct parquet_writer *w, uint32_t node, uint64_t count)
{
        const struct parquet_node *n = &w->schema.nodes[node];

        assert(n->kind == PARQUET_LIST || n->kind == PARQUET_MAP);
        for (uint32_t i = n->column_start; i < n->column_end; i++)
                column_put_list(&w->columns[i], n, count);
}

void parquet_put_int_list(struct parquet_writer *w, uint32_t node, const int64_t *values, size_t count)
{
        const struct parquet_node *n = &w->schema.nodes[node];

        parquet_put_list(w, node, count);
        column_put_ints(&w->columns[n->column_start], values, count);
}

static enum status check_column_rows(const struct parquet_writer *w, struct error *err)
{
        for (uint32_t i = 0; i < w->schema.column_count; i++) {
                const struct column_builder *c = &w->columns[i];
                enum status st = column_builder_status(c);

                if (st == ST_USAGE)
                        return error_set(err, st,
                                         "cannot write '%s': a value or list does not fit the type of column %u '%s'",
                                         w->name, i, c->node->name);
                if (st)
                        return error_set(err, st, "cannot write '%s': column %u '%s' is too large or memory ran out",
                                         w->name, i, c->node->name);
                if (c->rows != w->group_rows)
                        return error_set(err, ST_USAGE, "cannot write '%s': column %u '%s' has %ju rows of %ju",
                                         w->name, i, c->node->name, (uintmax_t)c->rows, (uintmax_t)w->group_rows);
        }
        return ST_OK;
}

static void add_footer_bytes(struct parquet_writer *w)
{
        const struct footer f = estimate_footer_bytes(w);
        size_t bytes = footer_group_bytes(&f, f.row_group_count - 1);

        w->largest_group = bytes > w->largest_group ? bytes : w->largest_group;
        if (__builtin_add_overflow(w->footer_bytes, bytes, &w->footer_bytes))
                w->footer_bytes = SIZE_MAX;
}

/* The footer keeps room for the current row group and for another of up to twice the largest size. */
bool parquet_writer_is_full(const struct parquet_writer *w)
{
        size_t indexes = w->chunks.column_indexes.size + w->chunks.offset_indexes.size;

        return w->footer_bytes > w->options.footer_bytes ||
               4 * w->largest_group > w->options.footer_bytes - w->footer_bytes ||
               w->row_groups.size / sizeof(struct row_group_meta) + 2 > LIMIT_PARQUET_ROW_GROUPS ||
               indexes > LIMIT_PARQUET_METADATA_BYTES / 4 ||
               w->bytes > LIMIT_PARQUET_FILE_BYTES - 2 * LIMIT_PARQUET_CHUNK_BYTES;
}

static enum status write_row_group(struct parquet_writer *w, struct error *err)
{
        struct row_group_meta g = { .rows = w->group_rows, .file_offset = w->bytes };
        _cleanup_free_ struct chunk_meta *chunks = calloc(w->schema.column_count, sizeof *chunks);

        if (!chunks)
                return error_no_memory(err);
        for (uint32_t i = 0; i < w->schema.column_count; i++) {
                enum status st = chunk_write(&w->chunks, &w->columns[i], w->bytes, &chunks[i], err);

                if (!st)
                        st = file_write_all(w->fd, w->chunks.pages.data, w->chunks.pages.size, w->name, err);
                if (st)
                        return st;
                w->bytes += w->chunks.pages.size;
                column_builder_clear(&w->columns[i]);
        }
        g.chunks = chunks;
        if (buf_append(&w->row_groups, &g, sizeof g))
                return buf_status(&w->row_groups, err, "the list of row groups");
        chunks = NULL;
        w->group_rows = 0;
        add_footer_bytes(w);
        return ST_OK;
}

static uint64_t waiting_bytes(const struct parquet_writer *w)
{
        uint64_t n = 0;

        for (uint32_t i = 0; i < w->schema.column_count; i++)
                n += column_builder_bytes(&w->columns[i]);
        return n;
}

enum status parquet_writer_end_rows(struct parquet_writer *w, uint64_t count, struct error *err)
{
        enum status st;

        w->group_rows += count;
        w->rows += count;
        st = check_column_rows(w, err);
        if (st)
                return st;
        if (w->group_rows < w->options.row_group_rows && waiting_bytes(w) < w->options.row_group_bytes)
                return ST_OK;
        return write_row_group(w, err);
}

enum status parquet_writer_finish(struct parquet_writer *w, struct error *err)
{
        struct footer f;
        _cleanup_buf_ struct buf tail;
        size_t start;
        enum status st = check_column_rows(w, err);

        buf_init(&tail, LIMIT_PARQUET_METADATA_BYTES);
        if (!st && w->group_rows)
                st = write_row_group(w, err);
        if (st)
                return st;
        f = estimate_footer_bytes(w);
        f.column_indexes_at = w->bytes;
        f.offset_indexes_at = w->bytes + w->chunks.column_indexes.size;
        buf_append(&tail, w->chunks.column_indexes.data, w->chunks.column_indexes.size);
        buf_append(&tail, w->chunks.offset_indexes.data, w->chunks.offset_indexes.size);
        start = tail.size;
        footer_append(&tail, &f);
        st = buf_status(&tail, err, "the footer");
        if (!st && (tail.size - start > w->options.footer_bytes + PARQUET_TAIL_BYTES ||
                    f.row_group_count > LIMIT_PARQUET_ROW_GROUPS || w->bytes + tail.size > LIMIT_PARQUET_FILE_BYTES))
                st = error_set(
                        err, ST_TOO_BIG,
                        "cannot write '%s': a footer of %zu bytes for %zu row groups is more than a reader accepts "
                        "(%zu bytes)",
                        w->name, tail.size - start, f.row_group_count, w->options.footer_bytes);
        if (!st)
                st = file_write_all(w->fd, tail.data, tail.size, w->name, err);
        if (!st)
                w->bytes += tail.size;
        return st;
}

uint64_t parquet_writer_rows(const struct parquet_writer *w)
{
        return w->rows;
}

uint64_t parquet_writer_bytes(const struct parquet_writer *w)
{
        return w->bytes;
}

static double number_to_double(int64_t bits)
{
        double d;

        memcpy(&d, &bits, sizeof d);
        return d;
}

void parquet_writer_summary(const struct parquet_writer *w, uint32_t node, struct parquet_column_summary *ret)
{
        const struct parquet_node *n = &w->schema.nodes[node];
        const struct row_group_meta *groups = (const struct row_group_meta *)w->row_groups.data;
        size_t count = w->row_groups.size / sizeof *groups;
        const struct stats_bound *min = NULL, *max = NULL;
        bool missing = false;

        *ret = (struct parquet_column_summary){ 0 };
        for (size_t i = 0; i < count; i++) {
                const struct value_stats *s = &groups[i].chunks[n->column].stats;

                ret->null_count += s->null_count;
                if (!s->value_count)
                        continue;
                missing |= s->unordered || !s->min.present || !s->max.present;
                if (!min || stats_bound_ordered(n, &s->min, min))
                        min = &s->min;
                if (!max || stats_bound_ordered(n, max, &s->max))
                        max = &s->max;
        }
        if (!min || missing)
                return;
        ret->has_min_max = true;
        ret->min_int = min->number;
        ret->max_int = max->number;
        ret->min_double = number_to_double(min->number);
        ret->max_double = number_to_double(max->number);
        ret->min_bytes = min->bytes;
        ret->min_size = min->size;
        ret->max_bytes = max->bytes;
        ret->max_size = max->size;
}
