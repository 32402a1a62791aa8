/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_SPLIT_UNITS_H
#define CAIRN_DWARF_SPLIT_UNITS_H

/**
 * @file
 * Which other halves the skeletons of a linked file ask for, and whose half a
 * .dwo file or a package is: what storing them needs, without reading code.
 *
 * Threads: any; images are only read.
 * Source: DWARF 5, 3.1.2 and 7.5.1.2; GCC wiki, DebugFission for version 4.
 */
#include "elf-image/elf_image.h"

struct dwarf_split_unit {
        uint64_t id;
        const char *directory, *name; /* where the .dwo was made; borrowed for the call; NULL unknown */
};

/** Anything but ST_OK ends the walk with it. */
typedef enum status dwarf_split_each(void *context, const struct dwarf_split_unit *unit);

/**
 * Every skeleton of a linked file, in the order of its units; units that cannot be read are left out.
 * @return ST_OK also without any; ST_NO_MEMORY; what each returned.
 */
enum status dwarf_split_units(const struct elf_image *img, dwarf_split_each *each, void *context, struct error *err) MUST_CHECK;

/**
 * The id of the (first) compile unit of a .dwo file.
 * @return ST_NOT_FOUND for a file that is none; ST_BAD_DATA for one whose units have no id.
 */
enum status dwarf_split_file_id(const struct elf_image *img, uint64_t *ret, struct error *err) MUST_CHECK;

/**
 * How many units a package (.dwp) has, and how many of those that the linked file asks for.
 * @param linked NULL: not counted.
 * @return ST_NOT_FOUND for a file that is none; ST_BAD_DATA for a damaged index.
 */
enum status dwarf_split_package_units(const struct elf_image *package, const struct elf_image *linked, uint64_t *units_ret,
                                      uint64_t *asked_ret, struct error *err) MUST_CHECK;

#endif
