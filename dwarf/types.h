/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_TYPES_H
#define CAIRN_DWARF_TYPES_H

/**
 * @file
 * The type units of a file by their signatures (-fdebug-types-section): in
 * .debug_types before version 5, in .debug_info from then on.
 *
 * Made when somebody asks first, once per file: most files are never asked.
 * Threads: any number.
 * Source: DWARF 5, 3.1.4 and 7.32; DWARF 4, 3.1.3.
 */
#include "dwarf/file.h"

struct dwarf_type {
        uint64_t signature;
        struct dwarf_file *file; /* the one that was asked, or its .debug_types */
        const struct dwarf_unit *unit;
        _Atomic(const char *) name; /* once somebody looked: borrowed from the file, "" for one without; until then NULL */
};

struct dwarf_types {
        struct dwarf_file old;    /* .debug_types in the place of .debug_info */
        struct dwarf_type *items; /* owned, by signature */
        size_t count;
};

/**
 * @param ret borrowed from the file. Of two with one signature the one that comes first.
 * @return ST_NOT_FOUND; ST_NO_MEMORY.
 */
enum status dwarf_types_find(struct dwarf_file *f, uint64_t signature, struct dwarf_type **ret) MUST_CHECK;

/** NULL is fine. */
void dwarf_types_destroy(struct dwarf_types *t);

#endif
