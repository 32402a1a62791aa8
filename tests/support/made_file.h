/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_MADE_FILE_H
#define CAIRN_TESTS_SUPPORT_MADE_FILE_H

/*
 * Generated ELF files with DWARF and other sources of symbols, valid and malformed, and lookups in the resulting symbol
 * table.
 */
#include "symbolizer/extraction/extract.h"
#include "tests/support/dwarf_maker.h"
#include "tests/support/elf_maker.h"

#define MADE_CODE 0x401000ul
#define MADE_CODE_SIZE 0x1000ul

/**
 * A 64-bit x86 file whose code at MADE_CODE has no contents: section 1 is .text, `others` start at 2, DWARF sections
 * are last.
 * @param dwarf NULL none.  @return a memfd.
 */
int made_file(const struct elf_maker_section *others, size_t count, const struct dwarf_maker *dwarf);

/** A memfd with these bytes. */
int made_memfd(const void *data, size_t size);

/** Begin DWARF 4 with the abbreviations for the following functions. */
void made_dwarf_begin(struct dwarf_maker *m);
/** A unit with one function, to be ended with end_unit(). */
void made_unit(struct dwarf_maker *m, const char *function, uint64_t start, uint64_t size);

/** Extract from one file, which is closed. */
enum status made_extract(int fd, struct symbol_table *ret, struct error *err) MUST_CHECK;

/**
 * "name file:line" of every frame at an address, innermost first, joined with " < "; "" if there is none. Static
 * buffer.
 */
const char *made_frames(const struct symbol_table *t, uint64_t address);

#endif
