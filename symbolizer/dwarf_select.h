/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_DWARF_SELECT_H
#define CAIRN_SYMBOLIZER_DWARF_SELECT_H

/**
 * @file
 * Which units may say something about the wanted addresses.
 *
 * A unit tells in its own DIE which addresses it has: from low to high pc, or as
 * ranges. That is believed, but for the padding behind, and is all that is read of most units. A unit that
 * does not tell, or whose DIE cannot be read, is read in full. .debug_aranges is
 * not looked at: clang writes none, and the DIEs say the same.
 */
#include "dwarf/object.h"
#include "symbolizer/symbol_table_builder.h"
#include "symbolizer/wanted.h"

struct dwarf_selection {
        size_t *units;  /* owned; ascending */
        size_t count;
        uint64_t bytes; /* of .debug_info, in them */
        uint64_t *tables; /* owned; by unit of the object: the offset of its line table, UINT64_MAX none */
};
void dwarf_selection_deinit(struct dwarf_selection *s);

/** @param ret owned, also on failure. ST_NO_MEMORY. */
enum status dwarf_select(struct dwarf_object *o, const struct wanted *w, struct dwarf_selection *ret) MUST_CHECK;

#endif
