/* SPDX-License-Identifier: Apache-2.0 */
/* Opens bytes as a Parquet file and touches every value of every column. */
#include <string.h>

#include "parquet/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

static uint64_t sum_bytes(const struct parquet_bytes *b)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < b->size; i++)
                sum += b->data[i];
        return sum;
}

static void touch(const struct parquet_column *c)
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
        struct parquet_file *f = NULL;
        const struct parquet_schema *schema;

        if (parquet_file_open(data, size, "fuzz", &f, NULL))
                return 0;
        schema = parquet_file_schema(f);
        sink += parquet_schema_find(schema, "a.list.element");
        for (uint32_t group = 0; group < parquet_file_row_groups(f) && group < 16; group++) {
                for (uint32_t i = 0; i < schema->column_count && i < 64; i++) {
                        struct parquet_column c;

                        touch_stats(f, group, schema->columns[i]);
                        if (parquet_read_column(f, group, schema->columns[i], &c, NULL))
                                continue;
                        touch(&c);
                        parquet_column_deinit(&c);
                }
        }
        parquet_file_close(f);
        return 0;
}
