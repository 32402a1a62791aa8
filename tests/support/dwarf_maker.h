/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_DWARF_MAKER_H
#define CAIRN_TESTS_SUPPORT_DWARF_MAKER_H

/*
 * Writes DWARF byte by byte, including malformed DWARF. A maker holds the sections of one file and the format in which
 * numbers are written.
 */
#include "common/memory/buf.h"
#include "dwarf/dwarf_object.h"

struct dwarf_maker {
        struct buf sections[DWARF_SECTION_COUNT];
        bool big_endian;
        uint8_t version, address_size, offset_size;
        size_t unit; /* offset of the open unit */
};

void dwarf_maker_init(struct dwarf_maker *m, uint8_t version);
void dwarf_maker_deinit(struct dwarf_maker *m);

void put_uint(struct dwarf_maker *m, enum dwarf_section_id to, uint64_t v, unsigned bytes);
void put_uleb(struct dwarf_maker *m, enum dwarf_section_id to, uint64_t v);
void put_text(struct dwarf_maker *m, enum dwarf_section_id to, const char *text); /* NUL-terminated */
void put_offset(struct dwarf_maker *m, enum dwarf_section_id to, uint64_t v);
void put_address(struct dwarf_maker *m, enum dwarf_section_id to, uint64_t v);

/** Offset of the next byte of a section. */
uint64_t put_at(const struct dwarf_maker *m, enum dwarf_section_id to);

/** An abbreviation; the attributes and forms end with two zeros. Tables end with put_uint(m, DWARF_ABBREV, 0, 1). */
void put_abbrev(struct dwarf_maker *m, uint64_t code, uint64_t tag, int children, ...);

/** The header of a unit in the maker's format. end_unit() fills in its length. */
void put_unit(struct dwarf_maker *m, enum dwarf_unit_type type, uint64_t abbrev_offset);
void end_unit(struct dwarf_maker *m);

/** An initial length, filled in by end_length(); for line tables and lists. */
size_t put_length(struct dwarf_maker *m, enum dwarf_section_id to);
void end_length(struct dwarf_maker *m, enum dwarf_section_id to, size_t at);

/** The sections made so far, borrowed from the maker; NULL: all empty. */
void made_sections(const struct dwarf_maker *m, struct dwarf_sections *ret);

/** Open the sections made so far; alt may be NULL. The maker keeps ownership of the bytes. */
enum status open_made(const struct dwarf_maker *m, const struct dwarf_maker *alt, struct dwarf_object *ret,
                      struct error *err) MUST_CHECK;

#endif
