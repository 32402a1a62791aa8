/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/package.h"

#include <assert.h>

#include "common/limits.h"

#define HEADER_BYTES 16
#define COLUMNS_MAX 64

/* ---- the index ---- */

/* The numbers of sections in column heads (DW_SECT_); version 2 has others where version 5 has range lists. */
static int find_package_section(uint32_t version, uint32_t number)
{
        switch (number) {
        case 1:
                return DWARF_INFO;
        case 2:
                return version == 2 ? DWARF_TYPES : -1;
        case 3:
                return DWARF_ABBREV;
        case 4:
                return DWARF_LINE;
        case 6:
                return DWARF_STR_OFFSETS;
        case 8:
                return version == 5 ? DWARF_RNGLISTS : -1;
        default:
                return -1;
        }
}

static struct dwarf_cursor package_cursor(const struct dwarf_package_index *ix, uint64_t offset)
{
        struct dwarf_cursor c = ix->bytes;

        dwarf_skip(&c, offset);
        return c;
}

static uint64_t columns_offset(const struct dwarf_package_index *ix)
{
        return HEADER_BYTES + UINT64_C(12) * ix->slots;
}

static uint64_t package_row_bytes(const struct dwarf_package_index *ix)
{
        return UINT64_C(4) * ix->columns;
}

static enum status read_package_columns(struct dwarf_package_index *ix)
{
        struct dwarf_cursor c = package_cursor(ix, columns_offset(ix));

        for (uint32_t i = 0; i < ix->columns; i++) {
                int section = find_package_section(ix->version, dwarf_u32(&c));

                if (section < 0)
                        continue;
                if (ix->column_of[section] >= 0)
                        return ST_BAD_DATA;
                ix->column_of[section] = (int8_t)i;
        }
        if (ix->rows &&
            ((ix->column_of[DWARF_INFO] < 0 && ix->column_of[DWARF_TYPES] < 0) || ix->column_of[DWARF_ABBREV] < 0))
                return ST_BAD_DATA;
        return ST_OK;
}

enum status dwarf_package_index_read(struct dwarf_cursor bytes, struct dwarf_package_index *ret)
{
        struct dwarf_package_index ix = { .bytes = bytes };
        struct dwarf_cursor c = bytes;
        enum status st;

        memset(ix.column_of, -1, sizeof ix.column_of);
        if (!dwarf_left(&bytes)) {
                *ret = ix;
                return ST_OK;
        }
        ix.version = dwarf_u32(&c);
        if (ix.version == 5u << 16) /* two bytes and two of padding, which LLVM 14 writes as one number */
                ix.version = 5;
        ix.columns = dwarf_u32(&c);
        ix.rows = dwarf_u32(&c);
        ix.slots = dwarf_u32(&c);
        if (c.failed)
                return ST_BAD_DATA;
        if (ix.version != 2 && ix.version != 5)
                return ST_UNSUPPORTED;
        if (ix.rows > LIMIT_DWARF_PACKAGE_UNITS || ix.slots > LIMIT_DWARF_PACKAGE_UNITS || ix.columns > COLUMNS_MAX)
                return ST_TOO_BIG;
        if ((ix.slots & (ix.slots - 1)) || ix.rows > ix.slots ||
            columns_offset(&ix) + package_row_bytes(&ix) * (1 + UINT64_C(2) * ix.rows) > dwarf_left(&bytes))
                return ST_BAD_DATA;
        st = read_package_columns(&ix);
        if (!st)
                *ret = ix;
        return st;
}

enum status dwarf_package_index_find(const struct dwarf_package_index *ix, uint64_t id, uint32_t *row_ret)
{
        uint32_t mask = ix->slots - 1, step = ((uint32_t)(id >> 32) & mask) | 1, slot = (uint32_t)id & mask;

        for (uint32_t i = 0; i < ix->slots; i++, slot = (slot + step) & mask) {
                struct dwarf_cursor ids = package_cursor(ix, HEADER_BYTES + UINT64_C(8) * slot);
                struct dwarf_cursor rows =
                        package_cursor(ix, HEADER_BYTES + UINT64_C(8) * ix->slots + UINT64_C(4) * slot);
                uint64_t found = dwarf_u64(&ids);
                uint32_t row = dwarf_u32(&rows);

                if (row == 0)
                        return ST_NOT_FOUND;
                if (found != id)
                        continue;
                if (row > ix->rows)
                        return ST_BAD_DATA;
                *row_ret = row - 1;
                return ST_OK;
        }
        return ST_NOT_FOUND;
}

void dwarf_package_index_part(const struct dwarf_package_index *ix, uint32_t row, enum dwarf_section_id section,
                              uint64_t *offset_ret, uint64_t *size_ret)
{
        int column = ix->column_of[section];
        uint64_t offsets = columns_offset(ix) + package_row_bytes(ix) * (1 + (uint64_t)row) +
                           4 * (uint64_t)(column < 0 ? 0 : column);
        struct dwarf_cursor offset = package_cursor(ix, offsets),
                            size = package_cursor(ix, offsets + package_row_bytes(ix) * ix->rows);

        assert(row < ix->rows);
        *offset_ret = column < 0 ? 0 : dwarf_u32(&offset);
        *size_ret = column < 0 ? 0 : dwarf_u32(&size);
}

/* ---- the package ---- */

static enum status open_package_index(const struct elf_image *img, const char *name,
                                      const struct dwarf_sections *sections, struct elf_section_data *data,
                                      struct dwarf_package_index *ret, struct error *err)
{
        const struct elf_section *s = elf_image_section(img, name);
        enum status st;

        if (!s || !elf_section_has_content(s))
                return error_set(err, ST_NOT_FOUND, "'%s' is not a package of split DWARF", img->name);
        st = elf_section_data(img, s, LIMIT_SECTION_UNPACKED_BYTES, data, err);
        if (st)
                return st;
        st = dwarf_package_index_read(
                (struct dwarf_cursor){ .pos = data->bytes, .end = data->bytes + data->size, .swap = sections->swap },
                ret);
        return st ? error_set(err, st, "the %s of '%s' is malformed", name, img->name) : ST_OK;
}

enum status dwarf_package_open(const struct elf_image *img, struct dwarf_package *ret, struct error *err)
{
        struct dwarf_package p = { .index_data.size = 0 };
        enum status st;

        if (!elf_image_section(img, ".debug_cu_index"))
                return error_set(err, ST_NOT_FOUND, "'%s' is not a package of split DWARF", img->name);
        st = dwarf_sections_load(img, DWARF_SPLIT, &p.sections, err);
        if (st)
                return st;
        st = open_package_index(img, ".debug_cu_index", &p.sections, &p.index_data, &p.index, err);
        if (!st && open_package_index(img, ".debug_tu_index", &p.sections, &p.types_data, &p.types, NULL))
                p.types.slots = p.types.rows = 0; /* without them some classes have no names */
        if (st) {
                dwarf_package_close(&p);
                return st;
        }
        *ret = p;
        return ST_OK;
}

void dwarf_package_close(struct dwarf_package *p)
{
        dwarf_sections_free(&p->sections);
        elf_section_data_free(&p->index_data);
        elf_section_data_free(&p->types_data);
}

enum status dwarf_package_find(const struct dwarf_package *p, const struct dwarf_package_index *ix, uint64_t id,
                               struct dwarf_sections *ret)
{
        struct dwarf_sections s = p->sections;
        uint32_t row;
        enum status st = dwarf_package_index_find(ix, id, &row);

        if (st)
                return st;
        for (int i = 0; i < DWARF_SECTION_COUNT; i++) {
                uint64_t offset, size;

                s.data[i].owned = NULL;
                if (i == DWARF_STR)
                        continue;
                dwarf_package_index_part(ix, row, (enum dwarf_section_id)i, &offset, &size);
                if (offset > s.data[i].size || size > s.data[i].size - offset)
                        return ST_BAD_DATA;
                s.data[i].bytes += offset;
                s.data[i].size = size;
                s.string_end[i] = 0;
        }
        *ret = s;
        return ST_OK;
}
