/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/source_names.h"

#include "common/limits.h"
#include "dwarf/line.h"
#include "dwarf/ranges.h"

static bool unit_covers_address(const struct dwarf_context *x, const struct dwarf_die *d, uint64_t address)
{
        struct dwarf_ranges ranges;
        uint64_t start, end;

        dwarf_ranges_begin(&ranges, x, d);
        while (dwarf_ranges_next(&ranges, &start, &end))
                if (start <= address && address < end)
                        return true;
        return false;
}

static enum status report_line_files(struct dwarf_lines *lines, const struct dwarf_context *x, bool is_of_address,
                                     bool (*give)(void *context, const struct dwarf_source *), void *context)
{
        _cleanup_buf_ struct buf path;

        buf_init(&path, LIMIT_PATH_BYTES + 1);
        if (dwarf_lines_read_files(lines, x, x->line_offset) == ST_NO_MEMORY)
                return ST_NO_MEMORY;
        for (size_t i = 0; i < lines->file_count; i++) {
                buf_clear(&path);
                dwarf_lines_path(lines, i, &path);
                if (buf_cstr(&path) && path.size &&
                    !give(context, &(struct dwarf_source){ buf_cstr(&path), lines->files[i].text, is_of_address }))
                        return ST_NO_MEMORY;
        }
        return ST_OK;
}

enum status dwarf_source_names(const struct elf_image *img, bool has_relative_paths, uint64_t address,
                               bool (*give)(void *context, const struct dwarf_source *), void *context,
                               struct error *err)
{
        struct dwarf_object object;
        struct dwarf_context x = { 0 };
        struct dwarf_lines lines = { 0 };
        uint64_t last = UINT64_MAX;
        enum status st = dwarf_object_open(img, NULL, &object, err);

        if (st)
                return st;
        object.has_relative_paths = has_relative_paths;
        for (size_t i = 0; i < object.main.units.count && !st; i++) {
                struct dwarf_die die;
                bool is_of_address;

                if (dwarf_context_peek(&x, &object, &object.main, &object.main.units.items[i], &die) || !x.has_lines)
                        continue;
                is_of_address = unit_covers_address(&x, &die, address);
                if (x.line_offset == last && !is_of_address) /* type units share a table with the next one */
                        continue;
                last = x.line_offset;
                st = report_line_files(&lines, &x, is_of_address, give, context);
        }
        dwarf_lines_deinit(&lines);
        dwarf_context_deinit(&x);
        dwarf_object_close(&object);
        return st ? error_no_memory(err) : ST_OK;
}
