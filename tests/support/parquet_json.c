/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/parquet_json.h"

#include <string.h>

#include "common/files/file.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "parquet/column_cursor.h"
#include "parquet/parquet_reader.h"

struct dump {
        const struct parquet_schema *schema;
        struct parquet_column *columns; /* of the current row group */
        struct json_out out;
};

static bool slot_is_null(const struct parquet_column *c, uint64_t slot)
{
        return c->valid && !c->valid[slot];
}

/* Whether all leaves below a node are null in a slot or a row. */
static bool all_null(const struct dump *d, const struct parquet_node *n, uint64_t row, uint64_t slot)
{
        for (uint32_t i = n->column_start; i < n->column_end; i++) {
                const struct parquet_column *c = &d->columns[i];
                bool own_list = c->offsets && !n->max_rep;

                if (own_list ? !c->list_valid || c->list_valid[row] : !slot_is_null(c, slot))
                        return false;
        }
        return true;
}

static void dump_hex(struct dump *d, const char *key, const struct parquet_bytes *b)
{
        _cleanup_buf_ struct buf hex;

        buf_init(&hex, MiB(64));
        for (size_t i = 0; i < b->size; i++)
                buf_printf(&hex, "%02x", b->data[i]);
        json_out_strn(&d->out, key, (const char *)hex.data, hex.size);
}

static void dump_leaf(struct dump *d, const char *key, const struct parquet_column *c, uint64_t slot)
{
        const struct parquet_bytes *b;

        if (slot_is_null(c, slot)) {
                json_out_str(&d->out, key, NULL);
                return;
        }
        switch (c->kind) {
        case PARQUET_BOOL:
                json_out_bool(&d->out, key, c->ints[slot]);
                break;
        case PARQUET_DOUBLE:
                json_out_double(&d->out, key, c->doubles[slot]);
                break;
        case PARQUET_STRING:
                b = &c->dict[c->codes[slot]];
                json_out_strn(&d->out, key, (const char *)b->data, b->size);
                break;
        case PARQUET_BINARY:
                b = &c->dict[c->codes[slot]];
                dump_hex(d, key, b);
                break;
        default:
                json_out_int(&d->out, key, c->ints[slot]);
        }
}

static void dump_node(struct dump *d, const char *key, uint32_t node, uint64_t row, uint64_t slot);

static void dump_list(struct dump *d, const char *key, uint32_t node, uint64_t row)
{
        const struct parquet_node *n = &d->schema->nodes[node];
        const struct parquet_column *c = &d->columns[n->column_start];
        const struct parquet_column *value = &d->columns[n->column_end - 1];

        if (c->list_valid && !c->list_valid[row]) {
                json_out_str(&d->out, key, NULL);
                return;
        }
        if (n->kind == PARQUET_MAP) {
                json_out_object(&d->out, key);
                for (uint32_t i = c->offsets[row]; i < c->offsets[row + 1]; i++) {
                        const struct parquet_bytes *name = &c->dict[c->codes[i]];
                        char text[256];

                        snprintf(text, sizeof text, "%.*s", (int)name->size, (const char *)name->data);
                        dump_leaf(d, text, value, i);
                }
                json_out_object_end(&d->out);
                return;
        }
        json_out_array(&d->out, key);
        for (uint32_t i = c->offsets[row]; i < c->offsets[row + 1]; i++)
                dump_node(d, NULL, node + 2, row, i);
        json_out_array_end(&d->out);
}

static void dump_node(struct dump *d, const char *key, uint32_t node, uint64_t row, uint64_t slot)
{
        const struct parquet_node *n = &d->schema->nodes[node];

        if (n->column != PARQUET_NO_COLUMN) {
                dump_leaf(d, key, &d->columns[n->column], slot);
        } else if (n->kind == PARQUET_LIST || n->kind == PARQUET_MAP) {
                dump_list(d, key, node, row);
        } else if (node && all_null(d, n, row, slot)) {
                json_out_str(&d->out, key, NULL);
        } else {
                json_out_object(&d->out, key);
                for (uint32_t i = node + 1; i < n->end; i = d->schema->nodes[i].end)
                        dump_node(d, d->schema->nodes[i].name, i, row, slot);
                json_out_object_end(&d->out);
        }
}

/* ---- the same values read through a cursor ---- */

static bool has_piece_value(const struct parquet_cursor *cursor, const struct parquet_piece *p, uint32_t i,
                            const struct parquet_column *c, uint64_t row)
{
        uint32_t count, at = p->is_run ? 0 : i;
        const struct parquet_bytes *dict = parquet_cursor_dict(cursor, &count), *a, *b;

        if (c->ints)
                return p->ints && p->ints[at] == c->ints[row];
        if (slot_is_null(c, row) || p->codes[at] == PARQUET_NULL_CODE)
                return slot_is_null(c, row) && p->codes[at] == PARQUET_NULL_CODE;
        a = &dict[p->codes[at]];
        b = &c->dict[c->codes[row]];
        return p->codes[at] < count && a->size == b->size && (!a->size || memcmp(a->data, b->data, a->size) == 0);
}

/* Skips or reads runs of 1 to 3 * step rows, in an order that depends on step. */
static enum status compare_with_cursor(struct parquet_cursor *cursor, const struct parquet_file *f, uint32_t group,
                                       uint32_t node, const struct parquet_column *c, uint32_t step, struct error *err)
{
        uint32_t state = step;
        enum status st = parquet_cursor_open(cursor, f, group, node, err);

        for (uint64_t row = 0; !st && row < c->row_count;) {
                uint64_t n = 1 + (state >> 8) % (3 * step);

                state = state * 1664525 + 1013904223;
                n = n < c->row_count - row ? n : c->row_count - row;
                if (state >> 31) {
                        st = parquet_cursor_skip(cursor, n, err);
                        row += n;
                        continue;
                }
                for (uint64_t end = row + n; !st && row < end;) {
                        struct parquet_piece p;

                        st = parquet_cursor_read(cursor, (uint32_t)(end - row), &p, err);
                        for (uint32_t i = 0; !st && i < p.count; i++) {
                                if (!has_piece_value(cursor, &p, i, c, row + i))
                                        st = error_set(err, ST_BAD_DATA, "a cursor reads another value in row %ju",
                                                       (uintmax_t)(row + i));
                        }
                        row += p.count;
                }
        }
        return st;
}

/* One cursor over all columns, as scans use it. */
static enum status compare_with_cursors(struct dump *d, struct parquet_file *f, uint32_t group, struct error *err)
{
        static const uint32_t steps[] = { 1, 7, 300, 20000, 1000000 };
        struct parquet_cursor *cursor = parquet_cursor_create(NULL, NULL);
        enum status st = cursor ? ST_OK : error_no_memory(err);

        for (uint32_t i = 0; !st && i < d->schema->column_count; i++) {
                const struct parquet_node *n = &d->schema->nodes[d->schema->columns[i]];

                if (n->max_rep || n->max_def > 1 || n->kind == PARQUET_DOUBLE)
                        continue;
                for (size_t k = 0; !st && k < sizeof steps / sizeof *steps; k++)
                        st = compare_with_cursor(cursor, f, group, d->schema->columns[i], &d->columns[i], steps[k],
                                                 err);
        }
        parquet_cursor_destroy(cursor);
        return st;
}

static enum status dump_group(struct dump *d, struct parquet_file *f, uint32_t group, struct buf *ret,
                              struct error *err)
{
        enum status st = ST_OK;
        uint32_t read = 0;

        d->columns = calloc(d->schema->column_count, sizeof *d->columns);
        for (; !st && read < d->schema->column_count; read++)
                st = parquet_read_column(f, group, d->schema->columns[read], &d->columns[read], err);
        if (!st)
                st = compare_with_cursors(d, f, group, err);
        for (uint64_t row = 0; !st && row < parquet_file_group_rows(f, group); row++) {
                json_out_init(&d->out, ret);
                dump_node(d, NULL, 0, row, row);
                buf_append_str(ret, "\n");
        }
        while (read--)
                parquet_column_deinit(&d->columns[read]);
        free(d->columns);
        return st ? st : buf_status(ret, err, "the JSON lines");
}

enum status parquet_json_lines(const char *path, struct buf *ret, struct error *err)
{
        _cleanup_file_map_ struct file_map map = { 0 };
        struct parquet_file *f = NULL;
        struct dump d;
        enum status st = file_map_open(path, LIMIT_PARQUET_FILE_BYTES, &map, err);

        if (!st)
                st = parquet_file_open(map.data, map.size, path, &f, err);
        if (st)
                return st;
        d.schema = parquet_file_schema(f);
        for (uint32_t g = 0; !st && g < parquet_file_row_groups(f); g++)
                st = dump_group(&d, f, g, ret, err);
        parquet_file_close(f);
        return st;
}
