/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCES_CODE_SYMBOLS_H
#define CAIRN_SYMBOLIZER_SOURCES_CODE_SYMBOLS_H

/**
 * @file
 * ELF symbols as a source: a name for every address that DWARF does not cover,
 * and for every function that DWARF does not name.
 *
 * Of several symbols at one address the first of these criteria decides: a
 * function before an untyped label or an object in a section of code; one with a size; global, weak, local; fewer
 * leading underscores; the shorter name; the smaller name. So `malloc` wins over
 * `__libc_malloc`. A symbol without a size reaches to the next symbol or to the
 * end of its section, and never overlaps one with a size.
 */
#include "symbolizer/table/address_filter.h"
#include "symbolizer/table/code_map.h"
#include "symbolizer/table/gap_fill.h"

struct code_symbol {
        const char *name; /* borrowed from its image */
        uint64_t start, end;
        enum symbol_quality source;
        bool is_function, is_sized;
        bool is_stub; /* of the PLT: "sin$plt", or "sin" in .iplt, is sin@plt as in source_plt.h */
        uint8_t binding;
};
struct code_symbols {
        struct code_symbol *items; /* owned */
        size_t count, capacity;
};
void code_symbols_deinit(struct code_symbols *s);

/** Order by address, then best first. */
int compare_code_symbols(const void *a, const void *b);

struct symbol_source {
        const struct elf_image *img;
        const struct elf_image *running; /* has the content of .opd */
        enum symbol_quality quality;
        uint64_t prelink_bias; /* added to its addresses: find_prelink_bias() */
};

/**
 * Add the symbols of a table that name code: elf_symbols_begin_type(). Several files and tables may be added in any
 * order; duplicates count once. Function descriptors (.opd, 64-bit PowerPC ELF ABI 1) are followed.
 */
enum status code_symbols_add(struct code_symbols *s, const struct symbol_source *source, uint32_t type,
                             const struct code_map *code, struct error *err) MUST_CHECK;

/** Drop symbols that do not affect the addresses of the filter. */
enum status code_symbols_filter(struct code_symbols *s, const struct address_filter *filter,
                                struct error *err) MUST_CHECK;

/**
 * Add the symbols to the builder's table.
 * @return the best quality of a symbol that names an address; QUALITY_NONE when no symbol was used.
 */
enum symbol_quality code_symbols_fill(struct code_symbols *s, struct symbol_table_builder *b);

#endif
