/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_ELF_IMAGE_QUALITY_H
#define CAIRN_ELF_IMAGE_QUALITY_H

/**
 * @file
 * The quality of the symbols of an object: uploads, the store and the index compare objects by it.
 */
#include <stdbool.h>

/** Worst first: a greater value replaces a smaller one. */
enum symbol_quality {
        QUALITY_NONE = 0,
        QUALITY_DYNSYM = 1,
        QUALITY_MINIDEBUGINFO = 2,
        QUALITY_SYMTAB = 3,
        QUALITY_GO_PCLNTAB = 4,
        QUALITY_LINES = 5, /* DWARF line tables only */
        QUALITY_DWARF = 6, /* full DWARF */
};

/** "none", "dynsym", "minidebuginfo", "symtab", "go_pclntab", "lines", "dwarf": public in URLs, JSON and tables. */
const char *symbol_quality_name(enum symbol_quality q);

/** False, and *ret untouched, for any other text. */
bool symbol_quality_parse(const char *name, enum symbol_quality *ret);

/** Whether symbols a are better than b: of higher quality, or of equal quality and complete while b are partial. */
bool symbol_quality_is_better(enum symbol_quality a, bool a_is_partial, enum symbol_quality b, bool b_is_partial);

/** Size of the message that lists the parts of an object's symbols that could not be read, with its NUL. */
#define SYMBOL_PARTIAL_BYTES 160

#endif
