/* SPDX-License-Identifier: Apache-2.0 */
/* Opens bytes as a Parquet file and reads every value of every column. */
#include <string.h>

#include "parquet/column_cursor.h"
#include "parquet/parquet_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

static uint64_t sum_bytes(const struct parquet_bytes *b)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < b->size; i++)
                sum += b->data[i];
        return sum;
}

static void touch_column(const struct parquet_column *c)
{
        uint64_t sum = 0;

        for (uint64_t row = 0; c->offsets && row < c->row_count; row++) {
                if (c->offsets[row] > c->offsets[row + 1] || c->offsets[row + 1] > c->count)
                        abort();
                sum += c->list_valid && c->list_valid[row];
        }
        for (uint32_t i = 0; i < c->dict_count; i++)
                sum += sum_bytes(&c->dict[i]);
        for (uint64_t i = 0; i < c->count; i++) {
                bool is_null = c->valid && !c->valid[i];

                if (c->codes && (is_null ? c->codes[i] != PARQUET_NULL_CODE : c->codes[i] >= c->dict_count))
                        abort();
                if (c->ints)
                        sum += (uint64_t)c->ints[i];
                if (c->doubles)
                        sum += c->doubles[i] > 0;
        }
        sink += sum;
}

static bool is_same_value(const struct parquet_cursor *cursor, const struct parquet_piece *p, uint32_t i,
                          const struct parquet_column *c, uint64_t row)
{
        uint32_t count, at = p->is_run ? 0 : i;
        const struct parquet_bytes *dict = parquet_cursor_dict(cursor, &count), *a, *b;

        if (c->ints)
                return p->ints[at] == c->ints[row];
        if (p->codes[at] == PARQUET_NULL_CODE || c->codes[row] == PARQUET_NULL_CODE)
                return p->codes[at] == c->codes[row];
        a = &dict[p->codes[at]];
        b = &c->dict[c->codes[row]];
        return a->size == b->size && (!a->size || memcmp(a->data, b->data, a->size) == 0);
}

/* False if the cursor fails. */
static bool walk_cursor(struct parquet_cursor *cursor, const struct parquet_file *f, uint32_t group,
                        const struct parquet_column *c)
{
        uint64_t rows = parquet_file_group_rows(f, group);

        for (uint64_t row = 0; row < rows;) {
                struct parquet_piece p;

                if (row % 5 == 4) {
                        if (parquet_cursor_skip(cursor, 1, NULL))
                                return false;
                        row++;
                        continue;
                }
                if (parquet_cursor_read(cursor, rows - row < 700 ? (uint32_t)(rows - row) : 700, &p, NULL))
                        return false;
                for (uint32_t i = 0; c && i < p.count; i++) {
                        if (!is_same_value(cursor, &p, i, c, row + i))
                                abort();
                }
                row += p.count;
        }
        return true;
}

/*
 * A column that can be read as a whole must give the same values through a cursor; any other must not crash the cursor.
 */
static void touch_by_cursor(struct parquet_cursor *cursor, const struct parquet_file *f, uint32_t group, uint32_t node,
                            const struct parquet_column *c)
{
        if (!parquet_cursor_open(cursor, f, group, node, NULL) && !walk_cursor(cursor, f, group, c) && c)
                abort();
}

static void touch_stats(const struct parquet_file *f, uint32_t group, uint32_t node)
{
        struct parquet_stats s;
        struct parquet_bytes min, max;

        parquet_file_stats(f, group, node, &s);
        min = (struct parquet_bytes){ s.min_bytes, s.has_min ? s.min_size : 0 };
        max = (struct parquet_bytes){ s.max_bytes, s.has_max ? s.max_size : 0 };
        sink += sum_bytes(&min) + sum_bytes(&max) + s.null_count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct parquet_cursor *cursor = parquet_cursor_create(NULL, NULL);
        struct parquet_file *f = NULL;
        const struct parquet_schema *schema;

        if (!cursor || parquet_file_open(data, size, "fuzz", &f, NULL)) {
                parquet_cursor_destroy(cursor);
                return 0;
        }
        schema = parquet_file_schema(f);
        sink += parquet_schema_find(schema, "a.list.element");
        for (uint32_t group = 0; group < parquet_file_row_groups(f) && group < 16; group++) {
                for (uint32_t i = 0; i < schema->column_count && i < 64; i++) {
                        struct parquet_column c;

                        touch_stats(f, group, schema->columns[i]);
                        if (parquet_read_column(f, group, schema->columns[i], &c, NULL)) {
                                touch_by_cursor(cursor, f, group, schema->columns[i], NULL);
                                continue;
                        }
                        touch_column(&c);
                        touch_by_cursor(cursor, f, group, schema->columns[i], &c);
                        parquet_column_deinit(&c);
                }
        }
        parquet_cursor_destroy(cursor);
        parquet_file_close(f);
        return 0;
}
