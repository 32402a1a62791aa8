/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXPLAIN_INTERNAL_H
#define CAIRN_SYMBOLIZER_EXPLAIN_INTERNAL_H

/* Between the files that make one report. */
#include "common/json_out.h"
#include "symbolizer/extract_observer.h"

/** Best first. DWARF's own are not tables of a source: they are the table before any other joined it. */
enum explain_source { EXPLAIN_GO, EXPLAIN_SYMTAB, EXPLAIN_MINIDEBUGINFO, EXPLAIN_DYNSYM, EXPLAIN_PLT, EXPLAIN_SOURCE_COUNT };
const char *explain_source_name(enum explain_source s);

/** What each source would say if it were the only one. */
struct explain_sources {
        struct symbol_table tables[EXPLAIN_SOURCE_COUNT];
};
enum status explain_sources_make(const struct extract_view *v, struct explain_sources *ret, struct error *err) MUST_CHECK;
void explain_sources_deinit(struct explain_sources *s);

/** How much greater the addresses of the file that runs are than those of img, one of the view. */
uint64_t explain_displacement(const struct extract_view *v, const struct elf_image *img);

/** A chain of a table: what was found for an address. */
struct explain_chain {
        const struct symbol_table *table;
        const struct symbol_table_frame *frames; /* borrowed */
        size_t count;                            /* 0: nothing */
        uint64_t start, end;                     /* addresses of the range */
};
struct explain_chain explain_chain_find(const struct symbol_table *t, uint64_t address);
/** Linkage name, else plain name, of a frame; "" without one. */
const char *explain_function(const struct symbol_table *t, const struct symbol_table_frame *f);
bool explain_chain_equal(const struct explain_chain *a, const struct explain_chain *b);
/** Has the outermost frame a function, and is it the other one's? */
bool explain_same_function(const struct explain_chain *a, const struct explain_chain *b);

void explain_put_hex(struct json_out *j, const char *key, uint64_t v);

/** One ELF symbol, its table and its other names ("symbol"); nothing when none is found. */
void explain_put_symbol(struct json_out *j, const struct extract_view *v, enum explain_source source, const char *name,
                        uint64_t address);
/** The section and the segment that hold an address ("place"). */
void explain_put_place(struct json_out *j, const struct extract_view *v, uint64_t address);
/** The function of the pclntab ("go"); nothing when it has none there. */
void explain_put_go(struct json_out *j, const struct extract_view *v, uint64_t address);

/** DWARF of one object, opened once for all addresses; what cannot be read is as good as none. */
struct explain_dwarf;
enum status explain_dwarf_open(const struct extract_view *v, const uint64_t *addresses, size_t count,
                               struct explain_dwarf **ret, struct error *err) MUST_CHECK;
void explain_dwarf_close(struct explain_dwarf *d);
/** "unit", "scopes", "line_row" and "other_units" of address number i; chain is what all of DWARF says of it. */
enum status explain_dwarf_put(struct explain_dwarf *d, struct json_out *j, size_t i, const struct explain_chain *chain,
                              struct error *err) MUST_CHECK;

#endif
