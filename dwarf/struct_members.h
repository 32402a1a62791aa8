/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_STRUCT_MEMBERS_H
#define CAIRN_DWARF_STRUCT_MEMBERS_H

/**
 * @file
 * Offsets of members of structures that the units of one name define. Structures inside of others are not searched.
 *
 * Threads: no shared state.
 * Source: DWARF 5, 5.7.6.
 */
#include "dwarf/dwarf_object.h"

struct dwarf_member {
        const char *structure, *name;
        bool is_found;
        uint64_t offset; /* in bytes; set if it is found */
};

/**
 * @param unit  the name (DW_AT_name) of the units: Go has several of one name.
 * @param members  in: what is sought; out: the offsets.
 * @return ST_OK also if there is no such unit; ST_BAD_DATA when one cannot be read; ST_TOO_BIG; ST_NO_MEMORY.
 */
enum status dwarf_struct_members_find(struct dwarf_object *object, const char *unit, struct dwarf_member *members,
                                      size_t count) MUST_CHECK;

#endif
