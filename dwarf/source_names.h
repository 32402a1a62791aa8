/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_SOURCE_NAMES_H
#define CAIRN_DWARF_SOURCE_NAMES_H

/**
 * @file
 * The source files that debuginfo names, from the tables of its line programs.
 * Source: DWARF 5, 6.2.4; what debuginfod's clients ask for.
 */
#include "common/error.h"
#include "elf-image/elf_image.h"

/**
 * Tell every absolute path, as it is written there; some come many times. What cannot be read of a table is left out.
 * @param name returns false when it has no memory, which ends it.
 * @return ST_BAD_DATA when there is no DWARF to read.
 */
enum status dwarf_source_names(const struct elf_image *img, bool (*name)(void *context, const char *path), void *context,
                               struct error *err) MUST_CHECK;

#endif
