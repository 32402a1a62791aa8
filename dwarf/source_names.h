/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_SOURCE_NAMES_H
#define CAIRN_DWARF_SOURCE_NAMES_H

/**
 * @file
 * The source files named by the line tables of a debug file.
 * Source: DWARF 5, 6.2.4.
 */
#include "common/error.h"
#include "elf-image/elf_image.h"

/**
 * Call name() for every path, as written; paths may repeat. A path is relative if the compilation directory is.
 * Unreadable parts of a table are skipped.
 * @param name returns false when out of memory, which ends the enumeration.
 * @return ST_BAD_DATA when the file has no readable DWARF.
 */
enum status dwarf_source_names(const struct elf_image *img, bool (*name)(void *context, const char *path),
                               void *context, struct error *err) MUST_CHECK;

#endif
