/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_OUTLINE_H
#define CAIRN_DWARF_OUTLINE_H

/**
 * @file
 * Which functions of a unit stand inside which namespaces and classes: for the
 * names of those that have no linkage name.
 *
 * The walk of a unit makes its outline on the way. Units that are only referred
 * to get one when it is first asked for, kept for all readers of the object.
 */
#include "dwarf/context.h"

#define DWARF_NO_QUALIFIER UINT32_MAX

struct dwarf_qualifier {
        uint32_t parent; /* DWARF_NO_QUALIFIER outside */
        uint16_t tag;    /* DW_TAG_subprogram: a function with a class inside; the name's number is a dwarf_ref to its DIE */
        struct dwarf_value name; /* or the signature of the type that has it (DW_FORM_ref_sig8) */
};

struct dwarf_declared { /* a function without a linkage name */
        uint64_t offset;
        uint32_t qualifier;
};

struct dwarf_outline {
        struct dwarf_qualifier *qualifiers; /* owned */
        size_t qualifier_count, qualifier_capacity;
        struct dwarf_declared *declared;    /* owned, by offset */
        size_t declared_count, declared_capacity;
        const struct dwarf_unit *unit;      /* of a kept one */
        struct dwarf_outline *next;
};

void dwarf_outline_deinit(struct dwarf_outline *o);
bool dwarf_outline_add_qualifier(struct dwarf_outline *o, const struct dwarf_qualifier *q);
bool dwarf_outline_add_declared(struct dwarf_outline *o, uint64_t offset, uint32_t qualifier);

/** What the function at this offset stands in, DWARF_NO_QUALIFIER nothing. */
uint32_t dwarf_outline_find(const struct dwarf_outline *o, uint64_t offset);

#endif
