/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/chunk_read.h"

#include <string.h>

#include "common/limits.h"
#include "parquet/encoding.h"
#include "parquet/format.h"
#include "parquet/page_read.h"
#include "parquet/value_read.h"

/* Slots are allocated once, for the value_count of the chunk's metadata; pages with more values are rejected. */
struct assembly {
        const struct parquet_node *node;
        struct parquet_column column;
        struct value_reader values;
        struct page_source pages;
        uint64_t value_count; /* from the metadata */
        uint64_t levels_done;
        uint64_t rows_wanted;
        uint8_t *defs; /* definition levels of the current page */
        uint8_t *reps;
        size_t levels_capacity;
        bool has_null;
        bool has_null_list;
};

void parquet_column_deinit(struct parquet_column *c)
{
        for (size_t i = 0; i < c->page_count; i++)
                free(c->pages[i]);
        free(c->pages);
        free(c->offsets);
        free(c->list_valid);
        free(c->valid);
        free(c->ints);
        free(c->doubles);
        free(c->codes);
        free(c->dict);
        *c = (struct parquet_column){ 0 };
}

/* malloc() of at least one byte, so that NULL always means out of memory. */
static void *allocate_elements(uint64_t count, size_t size)
{
        return malloc(count ? count * size : 1);
}

static bool reserve_chunk_memory(struct assembly *a)
{
        struct parquet_column *c = &a->column;
        bool bytes = a->node->physical == PHYSICAL_BYTE_ARRAY || a->node->physical == PHYSICAL_FIXED;

        if (bytes)
                c->codes = allocate_elements(a->value_count, sizeof *c->codes);
        else
                c->ints = allocate_elements(a->value_count, sizeof *c->ints);
        if (a->node->max_def)
                c->valid = allocate_elements(a->value_count, 1);
        if (a->node->max_rep) {
                c->offsets = allocate_elements(a->rows_wanted + 1, sizeof *c->offsets);
                c->list_valid = allocate_elements(a->rows_wanted, 1);
                if (!c->offsets || !c->list_valid)
                        return false;
        }
        return (c->codes || c->ints) && (!a->node->max_def || c->valid);
}

static bool reserve_levels(struct assembly *a, size_t count)
{
        uint8_t *defs, *reps;

        if (count <= a->levels_capacity)
                return true;
        defs = realloc(a->defs, count);
        if (!defs)
                return false;
        a->defs = defs;
        reps = realloc(a->reps, count);
        if (!reps)
                return false;
        a->reps = reps;
        a->levels_capacity = count;
        return true;
}

static bool read_levels(struct read_page *p, struct reader *apart, uint8_t max, uint8_t *ret, size_t count)
{
        struct reader runs;
        uint32_t size;

        if (!max) {
                memset(ret, 0, count);
                return true;
        }
        if (p->levels_apart)
                return decode_levels(apart, max, ret, count);
        return reader_u32(&p->payload, &size) && reader_sub(&p->payload, size, &runs) &&
               decode_levels(&runs, max, ret, count);
}

/* Move count dense values, from slot start on, to the slots whose levels have a value. */
static void spread_values(struct assembly *a, size_t start, size_t slots, size_t count)
{
        struct parquet_column *c = &a->column;
        size_t from = start + count;

        for (size_t i = start + slots; i-- > start;) {
                if (c->valid[i]) {
                        from--;
                        if (c->codes)
                                c->codes[i] = c->codes[from];
                        else
                                c->ints[i] = c->ints[from];
                } else if (c->codes) {
                        c->codes[i] = PARQUET_NULL_CODE;
                } else {
                        c->ints[i] = 0;
                }
        }
}

/*
 * Turn the page's levels into rows, slots and validity. A level below list_def
 * has no slot: its list is empty (list_def - 1) or null (less).
 */
static bool place_levels(struct assembly *a, size_t count, size_t *slots_ret, size_t *values_ret)
{
        const struct parquet_node *n = a->node;
        struct parquet_column *c = &a->column;
        size_t slot = c->count;
        size_t values = 0;

        for (size_t i = 0; i < count; i++) {
                if (n->max_rep && a->reps[i] == 0) {
                        bool is_null = a->defs[i] + 1 < n->list_def;

                        if (c->row_count == a->rows_wanted)
                                return false;
                        c->list_valid[c->row_count] = !is_null;
                        a->has_null_list |= is_null;
                        c->offsets[c->row_count++] = (uint32_t)slot;
                } else if (n->max_rep &&
                           (c->row_count == 0 || a->defs[i] < n->list_def || c->offsets[c->row_count - 1] == slot)) {
                        return false; /* continues a list that was not started, is empty or null, or has no element */
                }
                if (a->defs[i] < n->list_def)
                        continue;
                if (n->max_def)
                        c->valid[slot] = a->defs[i] == n->max_def;
                values += a->defs[i] == n->max_def;
                slot++;
        }
        *slots_ret = slot - c->count;
        *values_ret = values;
        return true;
}

/*
 * Without lists or nulls, a page's levels are a single run: skip it without expanding it.
 * @return false, with p unchanged, for any other levels.
 */
static bool skip_full_levels(const struct assembly *a, struct read_page *p, size_t count)
{
        struct reader payload = p->payload, levels = p->def_levels;
        struct hybrid_reader runs;
        uint32_t size;
        size_t run;

        if (a->node->max_rep || !a->node->max_def)
                return false;
        if (!p->levels_apart && (!reader_u32(&payload, &size) || !reader_sub(&payload, size, &levels)))
                return false;
        if (!hybrid_begin(&runs, &levels, bits_for_max(a->node->max_def)) || !hybrid_peek_run(&runs, &run) ||
            run < count || runs.value != a->node->max_def)
                return false;
        p->payload = payload;
        return true;
}

static enum status read_data_page(struct assembly *a, struct read_page *p, struct error *err)
{
        struct parquet_column *c = &a->column;
        size_t count = p->value_count;
        size_t slots, values;
        enum status st;

        if (count > a->value_count - a->levels_done)
                return error_at(err, ST_BAD_DATA, p->payload.base, "its pages have more values than its metadata says");
        if (!count)
                return ST_OK;
        if (skip_full_levels(a, p, count)) {
                memset(c->valid + c->count, 1, count);
                st = value_read_page(&a->values, p, c->count, count, err);
                c->count += count;
                a->levels_done += count;
                return st;
        }
        if (!reserve_levels(a, count))
                return error_no_memory(err);
        if (!read_levels(p, &p->rep_levels, a->node->max_rep, a->reps, count) ||
            !read_levels(p, &p->def_levels, a->node->max_def, a->defs, count) ||
            !place_levels(a, count, &slots, &values))
                return error_at(err, ST_BAD_DATA, p->payload.base, "a page's levels are cut off or malformed");
        st = value_read_page(&a->values, p, c->count, values, err);
        if (st)
                return st;
        if (values != slots) {
                a->has_null = true;
                spread_values(a, c->count, slots, values);
        }
        c->count += slots;
        a->levels_done += count;
        return ST_OK;
}

static enum status read_pages(struct assembly *a, struct error *err)
{
        struct stored_page stored;
        struct read_page p;
        enum status st;

        while (!(st = page_next(&a->pages, &stored, err))) {
                st = page_open(&a->pages, &stored, NULL, &p, err);
                if (!st && p.type == PAGE_DICTIONARY)
                        st = value_read_dictionary(&a->values, &p, err);
                else if (!st)
                        st = read_data_page(a, &p, err);
                if (st)
                        return st;
        }
        if (st != ST_NOT_FOUND)
                return st;
        if (!a->node->max_rep)
                a->column.row_count = a->column.count;
        if (a->levels_done != a->value_count || a->column.row_count != a->rows_wanted)
                return error_set(err, ST_BAD_DATA, "its pages have %ju rows, its row group %ju",
                                 (uintmax_t)a->column.row_count, (uintmax_t)a->rows_wanted);
        return ST_OK;
}

/* Free arrays that hold only default values: callers then see NULL. */
static void finish_column(struct assembly *a)
{
        struct parquet_column *c = &a->column;

        if (c->offsets)
                c->offsets[c->row_count] = (uint32_t)c->count;
        if (!a->has_null_list) {
                free(c->list_valid);
                c->list_valid = NULL;
        }
        if (!a->has_null) {
                free(c->valid);
                c->valid = NULL;
        }
        if (a->node->kind == PARQUET_DOUBLE) {
                c->doubles = (double *)c->ints; /* where the bits of doubles are */
                for (uint64_t i = 0; i < c->count; i++) {
                        double d;

                        memcpy(&d, &c->ints[i], sizeof d);
                        c->doubles[i] = d;
                }
                c->ints = NULL;
        }
        c->kind = a->node->kind;
}

enum status chunk_check(const struct parquet_node *node, const struct read_chunk *chunk, uint64_t rows,
                        struct error *err)
{
        if (node->max_rep > 1 || node->kind == PARQUET_OTHER)
                return error_set(err, ST_UNSUPPORTED,
                                 node->max_rep > 1 ? "unsupported nested list" : "unsupported type");
        if (chunk->value_count > LIMIT_PARQUET_CHUNK_VALUES)
                return error_set(err, ST_TOO_BIG, "%ju values, more than %d", (uintmax_t)chunk->value_count,
                                 LIMIT_PARQUET_CHUNK_VALUES);
        if (node->max_rep ? rows > chunk->value_count : rows != chunk->value_count)
                return error_set(err, ST_BAD_DATA, "%ju values for %ju rows", (uintmax_t)chunk->value_count,
                                 (uintmax_t)rows);
        return ST_OK;
}

enum status chunk_read(const uint8_t *data, const struct parquet_node *node, const struct read_chunk *chunk,
                       uint64_t rows, struct parquet_column *ret, struct error *err)
{
        struct assembly a = { .node = node, .value_count = chunk->value_count, .rows_wanted = rows };
        enum status st = chunk_check(node, chunk, rows, err);

        if (st)
                return st;
        a.values = (struct value_reader){ .node = node, .column = &a.column };
        a.pages = (struct page_source){ .codec = chunk->codec, .column = &a.column };
        reader_init(&a.pages.chunk, data + chunk->start, chunk->size);
        a.pages.chunk.base = chunk->start;
        st = reserve_chunk_memory(&a) ? read_pages(&a, err) : error_no_memory(err);
        free(a.defs);
        free(a.reps);
        value_reader_deinit(&a.values);
        page_source_deinit(&a.pages);
        if (st) {
                parquet_column_deinit(&a.column);
                return st;
        }
        finish_column(&a);
        *ret = a.column;
        return ST_OK;
}
