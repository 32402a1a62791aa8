/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCES_DWARF_STRAYS_H
#define CAIRN_SYMBOLIZER_SOURCES_DWARF_STRAYS_H

/**
 * @file
 * Line rows at addresses that the DIE of their unit does not give. They count
 * only where no other unit has the address: the units for a few addresses are
 * selected by their DIEs, so this one would not be read for it. Without other
 * units they do count, since a DIE can lack part of the code of its unit, and
 * rows extend into the padding after a function; but the latter only up to the
 * addresses of the next unit.
 */
#include "symbolizer/sources/dwarf_flatten.h"

struct dwarf_stray_range {
        struct dwarf_stray stray;
        size_t first, behind; /* the ranges of the unit, in the builder that is not settled yet */
};

struct dwarf_stray_list {
        struct dwarf_stray_range *items; /* owned */
        size_t count, capacity;
};

void dwarf_stray_list_deinit(struct dwarf_stray_list *l);

/** Add those of a unit whose ranges are the newest of the builder, from `first` on. @return false without memory. */
bool dwarf_stray_list_add(struct dwarf_stray_list *l, const struct dwarf_code *code,
                          const struct symbol_table_builder *b, size_t first) MUST_CHECK;

/** Cut the ranges of the units where their rows do not count. Failures are kept in the builder. */
void dwarf_stray_list_cut(const struct dwarf_stray_list *l, struct dwarf_object *o, const struct dwarf_regions *code,
                          struct symbol_table_builder *b);

#endif
