/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_OUTLINE_H
#define CAIRN_DWARF_OUTLINE_H

/**
 * @file
 * The nesting of functions in namespaces and classes, for qualifying the names of functions without a linkage name.
 *
 * The walk of a unit creates its outline. For a unit that is only referred to, the outline is created on first use and
 * kept for all readers of the object.
 */
#include "dwarf/context.h"

#define DWARF_NO_QUALIFIER UINT32_MAX

struct dwarf_qualifier {
        uint32_t parent; /* DWARF_NO_QUALIFIER outside */
        uint16_t tag; /* DW_TAG_subprogram: a function with a class inside; the name's number is a dwarf_ref to its DIE
                       */
        struct dwarf_value name; /* or the signature of the type unit with the name (DW_FORM_ref_sig8) */
};

struct dwarf_declared { /* a function without a linkage name; in a full outline, any */
        uint64_t offset;
        uint32_t qualifier;
};

struct dwarf_outline {
        struct dwarf_qualifier *qualifiers; /* owned */
        size_t qualifier_count, qualifier_capacity;
        struct dwarf_declared *declared; /* owned, by offset */
        size_t declared_count, declared_capacity;
        const struct dwarf_unit *unit; /* of an outline kept by its file, and of a full one */
        bool is_full;                  /* has also functions with a linkage name, modules, and scopes of any language */
        struct dwarf_outline *next;
};

void dwarf_outline_deinit(struct dwarf_outline *o);
bool dwarf_outline_add_qualifier(struct dwarf_outline *o, const struct dwarf_qualifier *q);
bool dwarf_outline_add_declared(struct dwarf_outline *o, uint64_t offset, uint32_t qualifier);

/** The innermost qualifier of the function at this offset, or DWARF_NO_QUALIFIER. */
uint32_t dwarf_outline_find(const struct dwarf_outline *o, uint64_t offset);

#endif
