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
        QUALITY_BOUNDARIES = 1, /* starts of functions, without names */
        QUALITY_DYNSYM = 2,
        QUALITY_MINIDEBUGINFO = 3,
        QUALITY_SYMTAB = 4,
        QUALITY_GO_PCLNTAB = 5,
        QUALITY_LINES = 6, /* DWARF line tables only */
        QUALITY_DWARF = 7, /* full DWARF */
};

/**
 * "none", "boundaries", "dynsym", "minidebuginfo", "symtab", "go_pclntab", "lines", "dwarf": public in URLs, JSON and
 * tables.
 */
const char *symbol_quality_name(enum symbol_quality q);

/** False, and *ret untouched, for any other text. */
bool symbol_quality_parse(const char *name, enum symbol_quality *ret);

/** Whether symbols a are better than b: of higher quality, or of equal quality and complete while b are partial. */
bool symbol_quality_is_better(enum symbol_quality a, bool a_is_partial, enum symbol_quality b, bool b_is_partial);

/** Size of the message that lists the parts of an object's symbols that could not be read, with its NUL. */
#define SYMBOL_PARTIAL_BYTES 160

#endif
