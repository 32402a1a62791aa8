/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_ATTRIBUTES_H
#define CAIRN_DWARF_ATTRIBUTES_H

/**
 * @file
 * All attributes of one DIE, also those that no plan (dwarf/abbrev.h) wants.
 * For explanations and what is rare: it reads the abbreviation table again for each DIE.
 *
 * Threads: those of the context.
 */
#include "dwarf/context.h"

struct dwarf_attributes {
        const struct dwarf_context *context;
        struct dwarf_cursor specs, values;
        uint16_t tag;
};

/** False when there is no DIE at this offset of the context's unit. */
bool dwarf_attributes_begin(struct dwarf_attributes *a, const struct dwarf_context *x, uint64_t die);

/** False at the end, and at what cannot be read. */
bool dwarf_attributes_next(struct dwarf_attributes *a, uint16_t *attribute_ret, struct dwarf_value *ret);

#endif
