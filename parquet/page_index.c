/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/page_index.h"

#include "parquet/thrift_write.h"

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

/* Every page that has values must have both bounds, else the chunk has no column index. */
static bool has_bounds(const struct page_location *pages, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                if (pages[i].stats.value_count && (!pages[i].stats.min.present || !pages[i].stats.max.present))
                        return false;
        }
        return count > 0;
}

/* Pages of nulls alone do not count. */
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

enum status page_index_append(struct chunk_writer *w, const struct parquet_node *node, struct chunk_meta *m)
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
