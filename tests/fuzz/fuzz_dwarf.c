/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as debug sections, with split and supplementary files (dwarf_input.h). Every unit and line table is
 * read, and every name and path.
 */
#include <assert.h>

#include "common/limits.h"
#include "tests/fuzz/dwarf_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t touch_text(const char *text)
{
        return text ? strlen(text) : 0;
}

static void check_scope(const struct dwarf_code *c, const struct dwarf_regions *regions)
{
        size_t sum = 0;

        for (size_t i = 0; i < c->scope_count; i++) {
                assert(c->scopes[i].parent == DWARF_NO_SCOPE || c->scopes[i].parent < i);
                assert(c->scopes[i].name < c->name_count);
        }
        for (size_t i = 0; i < c->interval_count; i++) {
                assert(c->intervals[i].scope < c->scope_count);
                assert(c->intervals[i].start < c->intervals[i].end);
                assert(dwarf_regions_find(regions, c->intervals[i].end - 1));
        }
        for (size_t i = 0; i < c->name_count; i++)
                sum += touch_text(c->names[i].linkage) + touch_text(c->names[i].plain);
        for (size_t i = 0; i < c->lines.row_count; i++) {
                assert(c->lines.rows[i].start < c->lines.rows[i].end);
                assert(i == 0 || c->lines.rows[i - 1].end <= c->lines.rows[i].start);
        }
        for (size_t i = 0; i < c->lines.file_count && i < 64; i++) {
                _cleanup_buf_ struct buf path = { 0 };

                buf_init(&path, LIMIT_NAME_BYTES);
                dwarf_lines_path(&c->lines, i, &path);
                sum += path.size;
        }
        __asm__ volatile("" ::"r"(sum));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct dwarf_region code[] = { { 0x1000, 0x2000 }, { 0x401000, 0x402000 } };
        const struct dwarf_regions regions = { code, 2 };
        struct dwarf_input in;
        struct dwarf_reader *reader;
        struct dwarf_code result;

        if (!dwarf_input_open(data, size, &in))
                return 0;
        if (dwarf_reader_create(&in.object, regions, &reader, NULL))
                abort();
        dwarf_code_init(&result);
        for (size_t i = 0; i < in.object.main.units.count; i++)
                if (dwarf_reader_unit(reader, i, &result) == ST_OK)
                        check_scope(&result, &regions);
        for (uint64_t at = 0; at != UINT64_MAX; at = dwarf_lines_next(&in.object.main.sections, at))
                if (dwarf_reader_lines(reader, at, &result) == ST_OK)
                        check_scope(&result, &regions);
        dwarf_code_deinit(&result);
        dwarf_reader_destroy(reader);
        dwarf_input_close(&in);
        return 0;
}
