/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the debug sections of a file and of its dwz file: a byte of
 * flags, then for each section its length (16 bits) and its bytes, .debug_types
 * of both behind all others.
 * Every unit and every line table is read, every name and path looked at.
 */
#include <assert.h>

#include "common/limits.h"
#include "dwarf/code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each section goes into memory of its own, so that the sanitizer sees a read past its end. */
static void take_sections(struct dwarf_sections *s, int first, int behind, const uint8_t **data, size_t *size)
{
        for (int i = first; i < behind && *size >= 2; i++) {
                size_t n = (size_t)((*data)[0] | (*data)[1] << 8);
                struct elf_section_data d = { 0 };

                *data += 2;
                *size -= 2;
                d.size = n < *size ? n : *size;
                if (!d.size)
                        continue;
                d.owned = malloc(d.size);
                memcpy(d.owned, *data, d.size);
                d.bytes = d.owned;
                *data += d.size;
                *size -= d.size;
                dwarf_sections_set(s, (enum dwarf_section_id)i, &d);
        }
}

static size_t look_at(const char *text)
{
        return text ? strlen(text) : 0;
}

static void check(const struct dwarf_code *c, const struct dwarf_regions *regions)
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
                sum += look_at(c->names[i].linkage) + look_at(c->names[i].plain);
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
        struct dwarf_sections main_sections, alt_sections;
        struct dwarf_object object;
        struct dwarf_reader *reader;
        struct dwarf_code result;
        uint8_t flags = size ? *data++ : 0;

        size -= size > 0;
        dwarf_sections_init(&main_sections, flags & 1);
        dwarf_sections_init(&alt_sections, flags & 1);
        take_sections(&main_sections, 0, DWARF_TYPES, &data, &size);
        take_sections(&alt_sections, 0, DWARF_TYPES, &data, &size);
        take_sections(&main_sections, DWARF_TYPES, DWARF_SECTION_COUNT, &data, &size);
        take_sections(&alt_sections, DWARF_TYPES, DWARF_SECTION_COUNT, &data, &size);
        if (dwarf_object_from_sections(&main_sections, &alt_sections, &object, NULL))
                return 0;
        if (dwarf_reader_create(&object, regions, &reader, NULL))
                abort();
        dwarf_code_init(&result);
        for (size_t i = 0; i < object.main.units.count; i++)
                if (dwarf_reader_unit(reader, i, &result) == ST_OK)
                        check(&result, &regions);
        for (uint64_t at = 0; at != UINT64_MAX; at = dwarf_lines_next(&object.main.sections, at))
                if (dwarf_reader_lines(reader, at, &result) == ST_OK)
                        check(&result, &regions);
        dwarf_code_deinit(&result);
        dwarf_reader_destroy(reader);
        dwarf_object_close(&object);
        return 0;
}
