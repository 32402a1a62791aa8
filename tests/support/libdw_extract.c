/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/libdw_extract.h"

#include <dwarf.h>

#include "tests/support/libdw_file.h"
#include "tests/support/libdw_unit.h"

static enum status walk_units(Dwarf *dwarf, const char *name, struct libdw_unit *u,
                              void (*visit)(struct libdw_unit *u, Dwarf_Die *die), struct error *err)
{
        Dwarf_CU *unit = NULL;
        Dwarf_Die die;
        uint8_t type;
        int r;

        while ((r = dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, NULL)) == 0) {
                if (u->builder->failed)
                        return ST_OK; /* reported when the table is finished */
                if (type != DW_UT_type && type != DW_UT_split_type && dwarf_tag(&die) != DW_TAG_partial_unit)
                        visit(u, &die);
        }
        if (r < 0)
                return error_set(err, ST_BAD_DATA, "cannot read the DWARF of '%s': %s", name, dwarf_errmsg(-1));
        return ST_OK;
}

/* Line tables that no unit refers to. libdw does not find the units of all tables. */
static void extract_unreferenced_lines(Dwarf *dwarf, struct libdw_unit *u)
{
        Dwarf_Off offset = 0, next;
        Dwarf_CU *unit = NULL;
        Dwarf_Files *files;
        Dwarf_Lines *lines;
        size_t file_count, line_count;

        while (!u->builder->failed &&
               dwarf_next_lines(dwarf, offset, &next, &unit, &files, &file_count, &lines, &line_count) == 0 &&
               next > offset) {
                libdw_unit_extract_lines(u, offset, files, file_count);
                offset = next;
        }
}

enum status libdw_extract(const struct elf_image *img, const struct elf_image *altlink, const struct code_map *code,
                          struct symbol_table_builder *builder, bool names_first, enum symbol_quality *quality_ret,
                          struct error *err)
{
        struct libdw_file main_file = { 0 }, alt_file = { 0 };
        struct libdw_unit unit;
        enum status st;

        st = libdw_file_open(img, &main_file, err);
        if (st == ST_NOT_FOUND) {
                *quality_ret = QUALITY_NONE;
                return ST_OK;
        }
        if (!st && altlink)
                st = libdw_file_open(altlink, &alt_file, err);
        if (!st) {
                if (alt_file.dwarf)
                        dwarf_setalt(main_file.dwarf, alt_file.dwarf);
                libdw_unit_init(&unit, &main_file, builder, code);
                for (int pass = 0; names_first && !st && pass < 2; pass++) /* outer scopes first, then inner ones */
                        st = walk_units(main_file.dwarf, img->name, &unit, libdw_unit_note, err);
                if (!st)
                        st = walk_units(main_file.dwarf, img->name, &unit, libdw_unit_extract, err);
                if (!st)
                        extract_unreferenced_lines(main_file.dwarf, &unit);
                *quality_ret = unit.function_total    ? QUALITY_DWARF
                               : builder->range_count ? QUALITY_LINES
                                                      : QUALITY_NONE;
                libdw_unit_deinit(&unit);
        }
        libdw_file_close(&main_file);
        libdw_file_close(&alt_file);
        return st;
}
