/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACT_SYMBOLS_H
#define CAIRN_SYMBOLIZER_EXTRACT_SYMBOLS_H

/**
 * @file
 * What ELF symbols add to a table: a name for every address that DWARF does
 * not cover, and for every function that DWARF does not name.
 *
 * Of several symbols at one address the first of these decides: a function
 * before an untyped label; one with a size; global, weak, local; fewer leading
 * underscores; the shorter name; the smaller name. So `malloc` wins over
 * `__libc_malloc`. A symbol without a size reaches to the next one or to the end
of its section, and never over one with a size.
 */
#include "symbolizer/extract_internal.h"
#include "symbolizer/source_fill.h"
#include "symbolizer/wanted.h"

struct code_symbol {
        const char *name;   /* borrowed from its image */
        uint64_t start, end;
        enum symbol_quality source;
        bool is_function, is_sized;
        uint8_t binding;
};
struct code_symbols {
        struct code_symbol *items; /* owned */
        size_t count, capacity;
};
void code_symbols_deinit(struct code_symbols *s);

struct symbol_source {
        const struct elf_image *img;
        enum symbol_quality quality;
        uint64_t displacement; /* what its addresses are to be increased by: extract_displacement() */
};

/**
 * Add the symbols of a SHT_SYMTAB or SHT_DYNSYM section that name code. Those of several files and sections may be
 * added, in any order: a symbol that is in two of them counts once.
 */
enum status code_symbols_add(struct code_symbols *s, const struct symbol_source *source,
                             const struct elf_section *section, const struct code_map *code,
                             struct error *err) MUST_CHECK;

/** Leave out symbols that decide nothing about the wanted addresses. */
enum status code_symbols_keep(struct code_symbols *s, const struct wanted *wanted, struct error *err) MUST_CHECK;

/**
 * Fill the builder's table with them.
 * @return the best source of any symbol that names an address; QUALITY_NONE when none was needed.
 */
enum symbol_quality code_symbols_fill(struct code_symbols *s, struct symbol_table_builder *b);

#endif
