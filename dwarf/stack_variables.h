/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_STACK_VARIABLES_H
#define CAIRN_DWARF_STACK_VARIABLES_H

/**
 * @file
 * The variables and parameters of the function at an address, with those of the calls inlined into it.
 *
 * Threads: as for the reader.
 * Source: DWARF 5, 4.1 (variables), 5 (types), 2.6 (locations).
 */
#include "dwarf/code.h"
#include "elf-image/elf_image.h"

struct dwarf_variable {
        const char *function, *name; /* borrowed until the function returns; NULL unknown */
        const char *path;            /* of the declaration; "" unknown */
        uint64_t line;               /* 0 unknown */
        bool has_frame_offset, has_size, has_tag_offset;
        int64_t frame_offset; /* from the frame base */
        uint64_t size;        /* in bytes */
        uint64_t tag_offset;  /* of the tag that HWASan gives it */
};

/**
 * Call give for each variable, in the order of the DIEs. Units are those of the linked file; a skeleton has none.
 * @param img  the image of the reader's object: its lists of locations are read.
 * @return ST_OK, also without any; ST_TOO_BIG past LIMIT_STACK_VARIABLES, or when variables share long lists of
 *         locations, which would take quadratic time; ST_BAD_DATA at a malformed DIE.
 */
enum status dwarf_stack_variables_find(struct dwarf_reader *r, const struct elf_image *img, uint64_t address,
                                       void (*give)(void *context, const struct dwarf_variable *), void *context,
                                       struct error *err) MUST_CHECK;

#endif
