/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_SECTIONS_H
#define CAIRN_DWARF_SECTIONS_H

/**
 * @file
 * The debug sections of one ELF file that describe code: borrowed from the mapped file, or decompressed into memory.
 */
#include "dwarf/cursor.h"
#include "elf-image/elf_image.h"

enum dwarf_section_id {
        DWARF_INFO,
        DWARF_ABBREV,
        DWARF_LINE,
        DWARF_LINE_STR,
        DWARF_STR,
        DWARF_STR_OFFSETS,
        DWARF_ADDR,
        DWARF_RANGES,
        DWARF_RNGLISTS,
        DWARF_TYPES,   /* type units before version 5 */
        DWARF_ARANGES, /* read only as a hint: damage of it is not recorded */
        DWARF_SECTION_COUNT,
};

struct dwarf_sections {
        struct elf_section_data data[DWARF_SECTION_COUNT];
        size_t string_end[DWARF_SECTION_COUNT]; /* of DWARF_STR and DWARF_LINE_STR: after the last NUL */
        bool holds_types;                       /* DWARF_INFO holds .debug_types */
        bool swap;                              /* the byte order is not this machine's */
        struct error damage; /* the error of the first unreadable section, which is left empty; ST_OK if none */
};

/** Start with sections that are all empty. */
void dwarf_sections_init(struct dwarf_sections *s, bool big_endian);

/** Take the bytes of a section; d->owned, if any, is freed with the sections. */
void dwarf_sections_set(struct dwarf_sections *s, enum dwarf_section_id id, const struct elf_section_data *d);

enum dwarf_flavour {
        DWARF_LINKED, /* .debug_info and so on */
        DWARF_SPLIT,  /* .debug_info.dwo and so on */
};

/**
 * Missing sections are empty, and so are those that cannot be read (ret->damage).
 * @param ret free with dwarf_sections_free(), before img is closed.  @return ST_NO_MEMORY.
 */
enum status dwarf_sections_load(const struct elf_image *img, enum dwarf_flavour flavour, struct dwarf_sections *ret,
                                struct error *err) MUST_CHECK;
void dwarf_sections_free(struct dwarf_sections *s);

/** The same sections, borrowed, with .debug_types in the place of .debug_info. */
void dwarf_sections_of_types(const struct dwarf_sections *s, struct dwarf_sections *ret);

/** A cursor from offset to the end of a section; a failed one when offset is past it. */
struct dwarf_cursor dwarf_section_at(const struct dwarf_sections *s, enum dwarf_section_id id, uint64_t offset);

/** The string at an offset of DWARF_STR or DWARF_LINE_STR, borrowed; NULL when it does not end inside. */
static inline const char *dwarf_section_string(const struct dwarf_sections *s, enum dwarf_section_id id,
                                               uint64_t offset)
{
        return offset < s->string_end[id] ? (const char *)s->data[id].bytes + offset : NULL;
}

#endif
