/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_TYPES_H
#define CAIRN_DWARF_TYPES_H

/**
 * @file
 * Index of the type units of a file by signature (-fdebug-types-section): in .debug_types before version 5, in
 * .debug_info since then.
 *
 * Created on first use, once per file; most files never need it.
 * Threads: any number.
 * Source: DWARF 5, 3.1.4 and 7.32; DWARF 4, 3.1.3.
 */
#include "dwarf/dwarf_file.h"

struct dwarf_type {
        uint64_t signature;
        struct dwarf_file *file; /* the file of the index, or its .debug_types */
        const struct dwarf_unit *unit;
        _Atomic(const char *) name; /* NULL until resolved; then borrowed from the file, "" when the type has no name */
};

struct dwarf_types {
        struct dwarf_file old;    /* .debug_types in the place of .debug_info */
        struct dwarf_type *items; /* owned, by signature */
        size_t count;
};

/** NULL is fine. */
void dwarf_types_destroy(struct dwarf_types *t);

#endif
