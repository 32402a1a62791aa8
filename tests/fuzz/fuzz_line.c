/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as .debug_line: a byte of flags (1: big-endian), the length of .debug_line_str in 16 bits and that
 * section, then the tables. Both line program readers must agree.
 */
#include <assert.h>
#include <string.h>

#include "common/limits.h"
#include "dwarf/dwarf_explain.h"
#include "dwarf/dwarf_reader_internal.h"
#include "tests/fuzz/dwarf_input.h"

#define ROWS_MAX 32 /* rows of one table that are looked up again */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct dwarf_region code[] = { { 0x1000, 0x2000 }, { 0x401000, 0x402000 } };
static const struct dwarf_regions regions = { code, 2 };

static void check_table(const struct dwarf_lines *l)
{
        for (size_t i = 0; i < l->row_count; i++) {
                assert(l->rows[i].start < l->rows[i].end);
                assert(i == 0 || l->rows[i - 1].end <= l->rows[i].start);
        }
        for (size_t i = 0; i <= l->file_count && i < 64; i++) {
                _cleanup_buf_ struct buf path = { 0 };

                buf_init(&path, LIMIT_NAME_BYTES);
                dwarf_lines_path(l, i, &path);
                if (i < l->file_count && l->files[i].text)
                        assert(*l->files[i].text && strlen(l->files[i].text) < SIZE_MAX);
        }
}

/* A table has at most one start for every opcode that sets an address. */
static void check_line_starts(struct dwarf_object *o, uint64_t table)
{
        static const struct dwarf_unit unit = { .format = { .version = 5, .address_size = 8, .offset_size = 4 } };
        const struct dwarf_context x = { .object = o, .file = &o->main, .unit = &unit };
        struct dwarf_line_starts starts;
        uint64_t address, count = 0;

        if (!dwarf_line_starts_begin(&starts, &x, table))
                return;
        while (dwarf_line_starts_next(&starts, &address))
                count++;
        assert(count <= o->main.sections.data[DWARF_LINE].size / 3);
}

/* The reference reader must find each row of the other one, unless sequences overlap. */
static void check_row(const struct dwarf_reader *r, uint64_t table, const struct dwarf_lines *l)
{
        struct dwarf_lines files = { 0 };

        for (size_t i = 0; i < l->row_count && i < ROWS_MAX; i++) {
                const struct dwarf_row *row = &l->rows[i];
                struct dwarf_row_found found;

                assert(dwarf_row_find(&r->lone, table, row->start, &regions, &files, &found) == ST_OK);
                assert(found.address <= row->start && row->start < found.end);
                if (found.other_sequences)
                        continue;
                assert((found.line <= INT32_MAX ? found.line : 0) == row->line);
                assert((found.file < UINT32_MAX ? found.file : UINT32_MAX) == row->file);
        }
        dwarf_lines_deinit(&files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct dwarf_sections sections, none;
        struct dwarf_object object;
        struct dwarf_reader *reader;
        struct dwarf_code result;
        size_t strings;

        if (size < 3)
                return 0;
        dwarf_sections_init(&sections, data[0] & 1);
        dwarf_sections_init(&none, data[0] & 1);
        strings = (size_t)(data[1] | data[2] << 8);
        strings = strings < size - 3 ? strings : size - 3;
        dwarf_input_own(&sections, DWARF_LINE_STR, data + 3, strings);
        dwarf_input_own(&sections, DWARF_LINE, data + 3 + strings, size - 3 - strings);
        if (dwarf_object_from_sections(&sections, &none, &object, NULL))
                return 0;
        if (dwarf_reader_create(&object, regions, &reader, NULL))
                abort();
        dwarf_code_init(&result);
        for (uint64_t at = 0; at != UINT64_MAX; at = dwarf_lines_next(&object.main.sections, at)) {
                check_line_starts(&object, at);
                if (dwarf_reader_lines(reader, at, &result))
                        continue;
                check_table(&result.lines);
                if (!result.damage)
                        check_row(reader, at, &result.lines);
        }
        dwarf_code_deinit(&result);
        dwarf_reader_destroy(reader);
        dwarf_object_close(&object);
        return 0;
}
