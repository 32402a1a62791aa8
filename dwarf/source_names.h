/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_SOURCE_NAMES_H
#define CAIRN_DWARF_SOURCE_NAMES_H

/**
 * @file
 * The source files named by the line tables of a debug file.
 * Source: DWARF 5, 6.2.4; LLVM, DW_LNCT_LLVM_source (-gembed-source).
 */
#include "common/error.h"
#include "elf-image/elf_image.h"

struct dwarf_source {
        const char *path;   /* as dwarf_lines_path() has it */
        const char *text;   /* of the file if the line table embeds it, else NULL */
        bool is_of_address; /* a unit of the table covers the address */
};

/**
 * Call give() for every file, as written; paths may repeat. A path is relative if the compilation directory is.
 * Unreadable parts of a table are skipped.
 * @param has_relative_paths  paths are not joined with the compilation directory.
 * @param address  of the DWARF; of no meaning unless is_of_address is read.
 * @param give  its source is borrowed until it returns; returns false when out of memory, which ends the enumeration.
 * @return ST_BAD_DATA when the file has no readable DWARF.
 */
enum status dwarf_source_names(const struct elf_image *img, bool has_relative_paths, uint64_t address,
                               bool (*give)(void *context, const struct dwarf_source *), void *context,
                               struct error *err) MUST_CHECK;

#endif
