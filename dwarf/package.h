/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_PACKAGE_H
#define CAIRN_DWARF_PACKAGE_H

/**
 * @file
 * Packages of split DWARF (.dwp): the units of many .dwo files, with an index
 * from ids to the parts of the sections that belong to each.
 *
 * Threads: immutable once open.
 * Source: DWARF 5, 7.3.5; GCC wiki, DebugFissionDWP, for version 2.
 */
#include "dwarf/sections.h"

/** .debug_cu_index or .debug_tu_index: a hash table from ids to rows, and for each row its part of each section. */
struct dwarf_package_index {
        struct dwarf_cursor bytes; /* the whole section */
        uint32_t version;          /* 2 or 5 */
        uint32_t columns, rows, slots;
        int8_t column_of[DWARF_SECTION_COUNT]; /* -1: the package has no such section */
};

/**
 * Validate an index, so that lookups need only check row numbers.
 * @param bytes the section, borrowed; an empty section is an index without rows.
 * @return ST_BAD_DATA; ST_UNSUPPORTED for another version; ST_TOO_BIG past LIMIT_DWARF_PACKAGE_UNITS.
 */
enum status dwarf_package_index_read(struct dwarf_cursor bytes, struct dwarf_package_index *ret) MUST_CHECK;

/** The row of an id, counted from 0. ST_NOT_FOUND; ST_BAD_DATA when its row is outside the index. */
enum status dwarf_package_index_find(const struct dwarf_package_index *ix, uint64_t id, uint32_t *row_ret) MUST_CHECK;

/** A row's part of a section, as written; nothing without a column. */
void dwarf_package_index_part(const struct dwarf_package_index *ix, uint32_t row, enum dwarf_section_id section,
                              uint64_t *offset_ret, uint64_t *size_ret);

struct dwarf_package {
        struct dwarf_sections sections;
        struct elf_section_data index_data, types_data;
        struct dwarf_package_index index, types; /* of units by their ids, of type units by their signatures */
};

/** @param ret free with dwarf_package_close(), before img is closed. @return ST_NOT_FOUND when img is not a package. */
enum status dwarf_package_open(const struct elf_image *img, struct dwarf_package *ret, struct error *err) MUST_CHECK;
void dwarf_package_close(struct dwarf_package *p);

/**
 * The sections of one unit, borrowed from the package.
 * @param ix p->index or p->types.
 * @return ST_NOT_FOUND; ST_BAD_DATA when a part ends past its section.
 */
enum status dwarf_package_find(const struct dwarf_package *p, const struct dwarf_package_index *ix, uint64_t id,
                               struct dwarf_sections *ret) MUST_CHECK;

#endif
