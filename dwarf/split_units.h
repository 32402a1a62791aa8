/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_SPLIT_UNITS_H
#define CAIRN_DWARF_SPLIT_UNITS_H

/**
 * @file
 * The split units that a linked file refers to, and the ids in a .dwo file or a package: enough to store and find them,
 * without reading code.
 */
#include "elf-image/elf_image.h"

struct dwarf_split_unit {
        uint64_t id;
        const char *directory, *name; /* where the .dwo was made; borrowed for the call; NULL unknown */
};

/** Anything but ST_OK ends the walk with it. */
typedef enum status dwarf_split_each(void *context, const struct dwarf_split_unit *unit);

/**
 * Call each() for every skeleton of a linked file, in unit order; unreadable units are skipped.
 * @return ST_OK, also when there are none; ST_NO_MEMORY; the status of each().
 */
enum status dwarf_split_units(const struct elf_image *img, dwarf_split_each *each, void *context,
                              struct error *err) MUST_CHECK;

/**
 * The id of the first compile unit of a .dwo file.
 * @return ST_NOT_FOUND when img is not a .dwo file; ST_BAD_DATA when its units have no id.
 */
enum status dwarf_split_file_id(const struct elf_image *img, uint64_t *ret, struct error *err) MUST_CHECK;

/**
 * Count the units of a package (.dwp), and those that the linked file refers to.
 * @param linked NULL: not counted.
 * @return ST_NOT_FOUND when the file is not a package; ST_BAD_DATA for a malformed index.
 */
enum status dwarf_split_package_units(const struct elf_image *package, const struct elf_image *linked,
                                      uint64_t *units_ret, uint64_t *referred_ret, struct error *err) MUST_CHECK;

#endif
