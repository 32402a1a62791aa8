/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXPLAIN_EXPLAIN_INTERNAL_H
#define CAIRN_SYMBOLIZER_EXPLAIN_EXPLAIN_INTERNAL_H

/* Shared by the files that write a report. */
#include "common/json/json_out.h"
#include "symbolizer/extraction/extract_observer.h"

/** A chain of a table: what was found for an address. */
struct explain_chain {
        const struct symbol_table *table;
        const struct symbol_table_frame *frames; /* borrowed */
        size_t count;                            /* 0: nothing */
        uint64_t start, end;                     /* addresses of the range */
};
/** Linkage name, else plain name, of a frame; "" without one. */
const char *explain_function_name(const struct symbol_table *t, const struct symbol_table_frame *f);

void explain_put_hex(struct json_out *j, const char *key, uint64_t v);

/** DWARF of one object, opened once for all addresses; unreadable parts count as absent. */
struct explain_dwarf;
enum status explain_dwarf_open(const struct extract_view *v, const uint64_t *addresses, size_t count,
                               struct explain_dwarf **ret, struct error *err) MUST_CHECK;
void explain_dwarf_close(struct explain_dwarf *d);
/**
 * Choose the unit that explains address number i.
 * @param chain           the answer of all DWARF units.
 * @param named_by_symbol whether the name of the outermost function is a symbol's.
 */
enum status explain_dwarf_choose(struct explain_dwarf *d, size_t i, const struct explain_chain *chain,
                                 bool *named_by_symbol, struct error *err) MUST_CHECK;
/** Write "unit", "scopes", "line_row" and "other_units" of address number i, for which a unit was chosen. */
enum status explain_dwarf_put(struct explain_dwarf *d, struct json_out *j, size_t i, struct error *err) MUST_CHECK;

#endif
