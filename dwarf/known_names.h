/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_KNOWN_NAMES_H
#define CAIRN_DWARF_KNOWN_NAMES_H

/**
 * @file
 * Names of functions that stand in other units than the one that is read. With
 * link time optimisation, and in files that dwz made, many units lead to the
 * same function; what it is called is found out by each reader once.
 *
 * Threads: they belong to one reader.
 */
#include "dwarf/code.h"
#include "dwarf/context.h"

struct dwarf_known_name {
        dwarf_ref ref;
        struct dwarf_name name;
        bool is_used;
};

struct dwarf_known_names {
        struct dwarf_known_name *slots; /* owned */
        size_t slot_count, count;
        struct arena texts;             /* of names that had to be made: for as long as the reader */
};

void dwarf_known_names_init(struct dwarf_known_names *k);
void dwarf_known_names_deinit(struct dwarf_known_names *k);

/** NULL: not yet known. Valid until the next one is added. */
const struct dwarf_name *dwarf_known_names_find(const struct dwarf_known_names *k, dwarf_ref ref);

/** Is there room for one more? Without memory, and past LIMIT_DWARF_KNOWN_NAMES, there is none, and names are not kept. */
bool dwarf_known_names_have_room(struct dwarf_known_names *k);

/** Keep one that was not known. There is room. */
void dwarf_known_names_add(struct dwarf_known_names *k, dwarf_ref ref, const struct dwarf_name *name);

#endif
