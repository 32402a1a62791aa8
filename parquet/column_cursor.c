/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cursor has one current page, with page_rows rows of which `at` are read or skipped. next_data_page() reads the
 * header of the next page only; unpack_page() decompresses it at the first read, so a page that is skipped completely
 * is never unpacked. The page then has a form (enum page_form): codes of the dictionary decoded piece by piece, all
 * values decoded, or only nulls. Definition levels are expanded only if a page has both nulls and values.
 *
 * A piece is a run if the codes have a run of at least RUN_ROWS (read_run()), else up to PIECE_ROWS rows copied into
 * the cursor, or a range of the decoded page.
 *
 * Memory: every growth is reserved with reserve_page_memory() first. `kept` are pages with PLAIN bytes, whose values
 * point into them; the next chunk reuses their reservation as `spare`, since a reservation is never returned.
 *
 * Order: creation and opening, pages, levels, values of a page, rows.
 */
#include "parquet/column_cursor.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "parquet/chunk_read.h"
#include "parquet/encoding.h"
#include "parquet/format.h"
#include "parquet/page_read.h"
#include "parquet/value_read.h"

#define PIECE_ROWS 2048
#define EMPTY_PAGES_MAX                                                                                                \
        1000        /* no known writer emits them; headers are parsed without checking the query's deadline            \
                     */
#define RUN_ROWS 32 /* shorter runs are expanded */

/* How the rows of the current page are held. */
enum page_form {
        PAGE_UNREAD, /* as in the file */
        PAGE_CODES,  /* codes of the dictionary, decoded piece by piece */
        PAGE_VALUES, /* all decoded, in column.codes or column.ints */
        PAGE_NULLS,
};

struct parquet_cursor {
        parquet_cursor_reserve *reserve;
        void *context;
        const struct parquet_file *file; /* for messages */
        uint32_t group, node_number;
        const struct parquet_node *node;
        bool is_bytes;
        uint64_t rows_ahead; /* after the current page */
        struct page_source pages;
        struct value_reader values;
        struct parquet_column column; /* dictionary, kept pages; codes and ints of capacity slots */
        size_t capacity, dict_bytes;
        size_t kept, spare; /* reserved memory: of pages that this chunk keeps, and unused at present */
        struct page_buffer buffer, dictionary;
        uint8_t *levels;
        size_t levels_capacity;

        struct stored_page page;
        size_t page_at;  /* in the chunk */
        bool may_reload; /* the chunk was read, and was not loaded anew yet */
        enum page_form form;
        uint32_t page_rows, at; /* at: rows of the page already read or skipped */
        struct hybrid_reader codes;
        uint32_t piece_codes[PIECE_ROWS];
        int64_t piece_ints[PIECE_ROWS];
};

struct parquet_cursor *parquet_cursor_create(parquet_cursor_reserve *reserve, void *context)
{
        struct parquet_cursor *c = calloc(1, sizeof *c);

        if (c) {
                c->reserve = reserve;
                c->context = context;
        }
        return c;
}

/* Drop the data of the last chunk; buffers are kept. */
static void reset_cursor(struct parquet_cursor *c)
{
        for (size_t i = 0; i < c->column.page_count; i++)
                free(c->column.pages[i]);
        free(c->column.pages);
        c->column.pages = NULL;
        c->column.page_count = c->column.page_capacity = 0;
        c->column.dict_count = 0;
        c->spare += c->kept;
        c->kept = 0;
        free(c->values.dict_ints);
        c->values.dict_ints = NULL;
        c->values.dict_ints_count = c->values.page_dict_count = 0;
        c->pages.unpacked_bytes = 0;
        c->rows_ahead = 0;
        c->page_rows = c->at = 0;
        c->form = PAGE_UNREAD;
        c->may_reload = false;
}

void parquet_cursor_destroy(struct parquet_cursor *c)
{
        if (!c)
                return;
        reset_cursor(c);
        page_source_deinit(&c->pages);
        parquet_column_deinit(&c->column);
        value_reader_deinit(&c->values);
        free(c->buffer.data);
        free(c->dictionary.data);
        free(c->levels);
        free(c);
}

/* Once for each chunk, when there is another copy. */
static enum status reload_chunk(struct parquet_cursor *c, enum status failed, struct error *err)
{
        const uint32_t node = (uint32_t)(c->node - parquet_file_schema(c->file)->nodes);

        if (!c->may_reload)
                return failed;
        c->may_reload = false;
        return parquet_reload_chunk(c->file, parquet_file_chunk(c->file, c->group, node), failed, err);
}

/* Rows of the chunk may have been used, so it is for the next reader that damage is repaired. */
static enum status fail_cursor(struct parquet_cursor *c, enum status st, struct error *err)
{
        enum status ignored = reload_chunk(c, st, NULL);

        (void)ignored;
        return error_prefix(err, st, "cannot read '%s': row group %u, column '%s'", parquet_file_name(c->file),
                            c->group, c->node->name);
}

uint64_t parquet_cursor_chunk_bytes(const struct parquet_cursor *c)
{
        return parquet_file_chunk(c->file, c->group, (uint32_t)(c->node - parquet_file_schema(c->file)->nodes))->size;
}

enum status parquet_cursor_open(struct parquet_cursor *c, const struct parquet_file *f, uint32_t group, uint32_t node,
                                struct error *err)
{
        const struct read_chunk *chunk = parquet_file_chunk(f, group, node);
        const uint8_t *data = parquet_file_data(f);
        enum status st;

        reset_cursor(c);
        c->file = f;
        c->group = group;
        c->node = &parquet_file_schema(f)->nodes[node];
        c->is_bytes = c->node->physical == PHYSICAL_BYTE_ARRAY || c->node->physical == PHYSICAL_FIXED;
        st = chunk_check(c->node, chunk, parquet_file_group_rows(f, group), err);
        if (!st && (c->node->max_rep || c->node->max_def > 1 || c->node->kind == PARQUET_DOUBLE))
                st = error_set(err, ST_UNSUPPORTED,
                               "unsupported column: a list, a group or a number other than an integer");
        if (!st)
                st = parquet_require_chunk(f, chunk, err);
        if (st)
                return fail_cursor(c, st, err);
        c->values.node = c->node;
        c->values.column = c->pages.column = &c->column;
        c->pages.codec = chunk->codec;
        reader_init(&c->pages.chunk, data + chunk->start, chunk->size);
        c->pages.chunk.base = chunk->start;
        c->rows_ahead = chunk->value_count;
        c->may_reload = true;
        return ST_OK;
}

/* ---- pages ---- */

static enum status reserve_page_memory(struct parquet_cursor *c, size_t n, struct error *err)
{
        size_t more = n > c->spare ? n - c->spare : 0;
        enum status st = c->reserve && more ? c->reserve(c->context, more, err) : ST_OK;

        if (st)
                c->may_reload = false; /* the file is not at fault */
        else
                c->spare -= n - more;
        return st;
}

static enum status reserve_kept_page(struct parquet_cursor *c, struct error *err)
{
        size_t n = c->page.header.unpacked + c->page_rows * sizeof(struct parquet_bytes);
        enum status st = reserve_page_memory(c, n, err);

        if (!st)
                c->kept += n;
        return st;
}

static enum status reserve_buffer(struct parquet_cursor *c, const struct page_buffer *b, size_t size, struct error *err)
{
        return reserve_page_memory(c, size > b->capacity ? size - b->capacity : 0, err);
}

/* Go back to the current page when it is damaged and there is another copy. */
static enum status reload_page(struct parquet_cursor *c, enum status failed, struct error *err)
{
        enum status st = reload_chunk(c, failed, err);

        c->pages.chunk.pos = c->page_at;
        c->pages.chunk.failed = false;
        return st ? st : page_next(&c->pages, &c->page, err);
}

static enum status find_next_page(struct parquet_cursor *c, struct error *err)
{
        enum status st;

        c->page_at = c->pages.chunk.pos;
        st = page_next(&c->pages, &c->page, err);
        return st && st != ST_NOT_FOUND ? reload_page(c, st, err) : st;
}

static enum status open_found_page(struct parquet_cursor *c, struct page_buffer *into, struct read_page *ret,
                                   struct error *err)
{
        const struct page_header before = c->page.header;
        enum status st = page_open(&c->pages, &c->page, into, ret, err);

        if (!st)
                return ST_OK;
        st = reload_page(c, st, err);
        if (!st && (c->page.header.type != before.type || c->page.header.value_count != before.value_count ||
                    c->page.header.unpacked != before.unpacked || c->page.header.encoding != before.encoding))
                return error_set(err, ST_BAD_DATA, "a page's header was damaged");
        return st ? st : page_open(&c->pages, &c->page, into, ret, err);
}

static enum status read_dictionary_page(struct parquet_cursor *c, struct error *err)
{
        struct read_page p;
        size_t entries = c->page.header.value_count * (c->is_bytes ? sizeof(struct parquet_bytes) : sizeof(int64_t));
        enum status st = reserve_buffer(c, &c->dictionary, c->page.header.unpacked, err);

        if (!st && entries > c->dict_bytes) {
                st = reserve_page_memory(c, entries - c->dict_bytes, err);
                c->dict_bytes = st ? c->dict_bytes : entries;
        }
        if (!st)
                st = open_found_page(c, &c->dictionary, &p, err);
        return st ? st : value_read_dictionary(&c->values, &p, err);
}

/* Move to the next data page without unpacking it. */
static enum status next_data_page(struct parquet_cursor *c, struct error *err)
{
        unsigned empty = 0;
        enum status st;

        do {
                if (empty++ > EMPTY_PAGES_MAX)
                        return error_set(err, ST_BAD_DATA, "it has more than %d pages without a value in a row",
                                         EMPTY_PAGES_MAX);
                st = find_next_page(c, err);
                if (st == ST_NOT_FOUND)
                        return error_set(err, ST_BAD_DATA, "its pages have fewer rows than its row group");
                if (!st && c->page.header.type == PAGE_DICTIONARY)
                        st = read_dictionary_page(c, err);
                if (st)
                        return st;
        } while (c->page.header.type == PAGE_DICTIONARY || !c->page.header.value_count);
        if (c->page.header.value_count > c->rows_ahead)
                return error_set(err, ST_BAD_DATA, "its pages have more rows than its row group");
        c->page_rows = (uint32_t)c->page.header.value_count;
        c->rows_ahead -= c->page_rows;
        c->at = 0;
        c->form = PAGE_UNREAD;
        return ST_OK;
}

/* ---- levels ---- */

static enum status report_bad_levels(const struct read_page *p, struct error *err)
{
        return error_at(err, ST_BAD_DATA, p->payload.base, "a page's levels are cut off or malformed");
}

static enum status decode_page_levels(struct parquet_cursor *c, struct reader *levels, const struct read_page *p,
                                      struct error *err)
{
        if (c->page_rows > c->levels_capacity) {
                enum status st = reserve_page_memory(c, c->page_rows - c->levels_capacity, err);

                if (st)
                        return st;
                free(c->levels);
                c->levels = malloc(c->page_rows);
                c->levels_capacity = c->levels ? c->page_rows : 0;
                if (!c->levels)
                        return error_no_memory(err);
        }
        return decode_levels(levels, 1, c->levels, c->page_rows) ? ST_OK : report_bad_levels(p, err);
}

/* Count rows with a value. When all rows have one, or none has, the levels are a single run and are not expanded. */
static enum status count_page_values(struct parquet_cursor *c, struct read_page *p, uint32_t *ret, struct error *err)
{
        struct reader levels;
        struct hybrid_reader runs;
        uint32_t size;
        size_t run;
        enum status st;

        *ret = c->page_rows;
        if (!c->node->max_def)
                return ST_OK;
        if (p->levels_apart)
                levels = p->def_levels;
        else if (!reader_u32(&p->payload, &size) || !reader_sub(&p->payload, size, &levels))
                return report_bad_levels(p, err);
        if (!hybrid_begin(&runs, &levels, 1) || !hybrid_peek_run(&runs, &run))
                return report_bad_levels(p, err);
        if (run >= c->page_rows && runs.value <= 1) {
                *ret = runs.value ? c->page_rows : 0;
                return ST_OK;
        }
        st = decode_page_levels(c, &levels, p, err);
        *ret = 0;
        for (uint32_t i = 0; !st && i < c->page_rows; i++)
                *ret += c->levels[i];
        return st;
}

/* ---- values ---- */

static enum status reserve_values(struct parquet_cursor *c, struct error *err)
{
        enum status st;

        if (c->page_rows <= c->capacity)
                return ST_OK;
        st = reserve_page_memory(c, (c->page_rows - c->capacity) * (sizeof *c->column.codes + sizeof *c->column.ints),
                                 err);
        if (st)
                return st;
        free(c->column.codes);
        free(c->column.ints);
        c->capacity = 0;
        c->column.codes = malloc(c->page_rows * sizeof *c->column.codes);
        c->column.ints = malloc(c->page_rows * sizeof *c->column.ints);
        if (!c->column.codes || !c->column.ints)
                return error_no_memory(err);
        c->capacity = c->page_rows;
        return ST_OK;
}

#define NULL_ROWS 8 /* written at a time: the levels of 8 rows are one 64-bit word */

static bool are_null_rows(const uint8_t *levels)
{
        uint64_t word;

        static_assert(sizeof word == NULL_ROWS, "a level is a byte");
        memcpy(&word, levels, sizeof word);
        return !word;
}

/*
 * Move the count dense values to the rows whose level has a value, from the last row to the first: a row is never
 * before the last value still to be moved.
 */
static void spread_page_values(struct parquet_cursor *c, uint32_t count)
{
        for (uint32_t i = c->page_rows; i-- > 0;) {
                bool has_value = c->levels[i];

                if (!has_value && i + 1 >= NULL_ROWS && are_null_rows(c->levels + i + 1 - NULL_ROWS)) {
                        i -= NULL_ROWS - 1;
                        if (c->is_bytes)
                                memset(c->column.codes + i, 0xff, NULL_ROWS * sizeof *c->column.codes);
                        else
                                memset(c->column.ints + i, 0, NULL_ROWS * sizeof *c->column.ints);
                        continue;
                }

                count -= has_value;
                if (c->is_bytes)
                        c->column.codes[i] = has_value ? c->column.codes[count] : PARQUET_NULL_CODE;
                else
                        c->column.ints[i] = has_value ? c->column.ints[count] : 0;
        }
}

static bool is_dictionary_page(const struct read_page *p)
{
        return p->encoding == ENCODING_RLE_DICTIONARY || p->encoding == ENCODING_PLAIN_DICTIONARY;
}

/* Decode the current page, or prepare to decode it piece by piece. */
static enum status unpack_page(struct parquet_cursor *c, struct error *err)
{
        bool keeps = c->is_bytes && c->page.header.encoding != ENCODING_RLE_DICTIONARY &&
                     c->page.header.encoding != ENCODING_PLAIN_DICTIONARY;
        struct read_page p;
        uint32_t count;
        enum status st =
                keeps ? reserve_kept_page(c, err) : reserve_buffer(c, &c->buffer, c->page.header.unpacked, err);

        if (!st)
                st = open_found_page(c, keeps ? NULL : &c->buffer, &p, err);
        if (!st)
                st = count_page_values(c, &p, &count, err);
        if (st)
                return st;
        if (!count) {
                c->form = PAGE_NULLS;
                return ST_OK;
        }
        if (count == c->page_rows && is_dictionary_page(&p)) {
                uint8_t width;

                if (!reader_u8(&p.payload, &width) || !hybrid_begin(&c->codes, &p.payload, width))
                        return error_at(err, ST_BAD_DATA, p.payload.base, "a page's values are cut off or malformed");
                c->form = PAGE_CODES;
                return hybrid_skip(&c->codes, c->at) ? ST_OK
                                                     : error_set(err, ST_BAD_DATA, "a page's codes are cut off");
        }
        st = reserve_values(c, err);
        if (!st)
                st = value_read_page(&c->values, &p, 0, count, err);
        if (st)
                return st;
        if (count < c->page_rows)
                spread_page_values(c, count);
        c->form = PAGE_VALUES;
        return ST_OK;
}

/* ---- rows ---- */

enum status parquet_cursor_skip(struct parquet_cursor *c, uint64_t rows, struct error *err)
{
        while (rows) {
                uint64_t n;

                if (c->at == c->page_rows) {
                        enum status st = next_data_page(c, err);

                        if (st)
                                return fail_cursor(c, st, err);
                }
                n = c->page_rows - c->at < rows ? c->page_rows - c->at : rows;
                if (c->form == PAGE_CODES && n < c->page_rows - c->at && !hybrid_skip(&c->codes, n))
                        return fail_cursor(c, error_set(err, ST_BAD_DATA, "a page's codes are cut off"), err);
                c->at += (uint32_t)n;
                rows -= n;
        }
        return ST_OK;
}

static enum status report_bad_codes(struct error *err)
{
        return error_set(err, ST_BAD_DATA, "a page's codes are cut off or not in its dictionary");
}

static bool read_run(struct parquet_cursor *c, uint32_t max, size_t run, struct parquet_piece *ret)
{
        uint32_t n = run < max ? (uint32_t)run : max;
        uint32_t entries = c->is_bytes ? c->values.page_dict_count : c->values.dict_ints_count;

        if (c->codes.value >= entries || !hybrid_skip(&c->codes, n))
                return false;
        c->piece_codes[0] = c->codes.value;
        if (!c->is_bytes)
                c->piece_ints[0] = c->values.dict_ints[c->codes.value];
        ret->count = n;
        ret->is_run = true;
        return true;
}

/* Up to max rows, at most PIECE_ROWS; a long run is left to the next piece. */
static bool read_codes_piece(struct parquet_cursor *c, uint32_t max, struct parquet_piece *ret)
{
        uint32_t entries = c->is_bytes ? c->values.page_dict_count : c->values.dict_ints_count, largest = 0, done = 0;

        max = max < PIECE_ROWS ? max : PIECE_ROWS;
        while (done < max) {
                size_t run, n;

                if (!hybrid_peek_run(&c->codes, &run))
                        return false;
                if (done && run >= RUN_ROWS)
                        break;
                n = run ? run : (size_t)c->codes.left;
                n = n < max - done ? n : max - done;
                if (!hybrid_read(&c->codes, c->piece_codes + done, n))
                        return false;
                done += (uint32_t)n;
        }
        for (uint32_t i = 0; i < done; i++)
                largest = c->piece_codes[i] > largest ? c->piece_codes[i] : largest;
        if (largest >= entries)
                return false;
        for (uint32_t i = 0; !c->is_bytes && i < done; i++)
                c->piece_ints[i] = c->values.dict_ints[c->piece_codes[i]];
        ret->count = done;
        return true;
}

static enum status read_coded_rows(struct parquet_cursor *c, uint32_t max, struct parquet_piece *ret, struct error *err)
{
        size_t run;

        ret->codes = c->is_bytes ? c->piece_codes : NULL;
        ret->ints = c->is_bytes ? NULL : c->piece_ints;
        if (!hybrid_peek_run(&c->codes, &run))
                return report_bad_codes(err);
        if (run >= RUN_ROWS ? !read_run(c, max, run, ret) : !read_codes_piece(c, max, ret))
                return report_bad_codes(err);
        return ST_OK;
}

static enum status read_page_rows(struct parquet_cursor *c, uint32_t max, struct parquet_piece *ret, struct error *err)
{
        enum status st = c->form == PAGE_UNREAD ? unpack_page(c, err) : ST_OK;

        if (st)
                return st;
        max = max < c->page_rows - c->at ? max : c->page_rows - c->at;
        *ret = (struct parquet_piece){ .count = max };
        switch (c->form) {
        case PAGE_CODES:
                return read_coded_rows(c, max, ret, err);
        case PAGE_NULLS:
                c->piece_codes[0] = PARQUET_NULL_CODE;
                c->piece_ints[0] = 0;
                ret->is_run = true;
                ret->codes = c->is_bytes ? c->piece_codes : NULL;
                ret->ints = c->is_bytes ? NULL : c->piece_ints;
                return ST_OK;
        default:
                ret->codes = c->is_bytes ? c->column.codes + c->at : NULL;
                ret->ints = c->is_bytes ? NULL : c->column.ints + c->at;
                return ST_OK;
        }
}

enum status parquet_cursor_read(struct parquet_cursor *c, uint32_t max, struct parquet_piece *ret, struct error *err)
{
        enum status st = ST_OK;

        assert(max);
        if (c->at == c->page_rows)
                st = next_data_page(c, err);
        if (!st)
                st = read_page_rows(c, max, ret, err);
        if (st)
                return fail_cursor(c, st, err);
        c->at += ret->count;
        return ST_OK;
}

const struct parquet_bytes *parquet_cursor_dict(const struct parquet_cursor *c, uint32_t *count_ret)
{
        *count_ret = c->column.dict_count;
        return c->column.dict;
}
