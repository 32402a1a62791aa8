/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_DWARF_USUAL_H
#define CAIRN_TESTS_SUPPORT_DWARF_USUAL_H

/* A small DWARF file that tests modify, and helpers that read it back. A failure ends the test. */
#include "dwarf/code.h"
#include "tests/support/dwarf_maker.h"

#define CODE 0x401000 /* start of the only page of code */

/* ---- writing ---- */

/* The codes of the common abbreviations; OTHER is unused. */
enum { CU = 1, FUNCTION, ABSTRACT, INLINED, RANGED, OTHER };

void put_usual_abbrevs(struct dwarf_maker *m);
void begin_usual(struct dwarf_maker *m, uint8_t version);
void begin_cu(struct dwarf_maker *m, uint64_t low_pc);
void put_function(struct dwarf_maker *m, const char *name, uint64_t start, uint64_t size);
uint64_t put_abstract(struct dwarf_maker *m, const char *name);
void put_inlined(struct dwarf_maker *m, uint64_t origin, uint64_t start, uint64_t size, uint64_t line);
void put_end(struct dwarf_maker *m, unsigned levels);

/* ---- reading ---- */

struct dwarf_read {
        struct dwarf_object object;
        struct dwarf_reader *reader;
        struct dwarf_code code;
};

void open_read(struct dwarf_read *r, const struct dwarf_maker *m, const struct dwarf_maker *alt);
const struct dwarf_code *read_unit(struct dwarf_read *r, size_t i);
void close_read(struct dwarf_read *r);
/* "" for none. */
const char *plain(const struct dwarf_code *c, size_t scope);

#endif
