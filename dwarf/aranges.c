/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/aranges.h"

#define ARANGES_VERSION 2

void dwarf_aranges_begin(struct dwarf_aranges *a, const struct dwarf_sections *s)
{
        *a = (struct dwarf_aranges){ .sets = dwarf_section_at(s, DWARF_ARANGES, 0) };
}

enum status dwarf_aranges_next_set(struct dwarf_aranges *a)
{
        const uint8_t *start = a->sets.pos;
        uint8_t offset_size, segment_size;
        uint64_t length, misplaced;

        if (!dwarf_left(&a->sets))
                return a->sets.failed ? ST_BAD_DATA : ST_NOT_FOUND;
        length = dwarf_initial_length(&a->sets, &offset_size);
        a->set = a->sets;
        dwarf_skip(&a->sets, length);
        if (a->sets.failed)
                return ST_BAD_DATA;
        a->set.end = a->sets.pos;
        if (dwarf_u16(&a->set) != ARANGES_VERSION)
                return ST_BAD_DATA;
        a->unit = dwarf_uint(&a->set, offset_size);
        a->address_size = dwarf_u8(&a->set);
        segment_size = dwarf_u8(&a->set);
        if (a->set.failed || segment_size || (a->address_size != 4 && a->address_size != 8))
                return ST_BAD_DATA;
        misplaced = (uint64_t)(a->set.pos - start) % (2u * a->address_size);
        dwarf_skip(&a->set, misplaced ? 2u * a->address_size - misplaced : 0);
        return a->set.failed ? ST_BAD_DATA : ST_OK;
}

enum status dwarf_aranges_next(struct dwarf_aranges *a, uint64_t *start_ret, uint64_t *size_ret)
{
        uint64_t start = dwarf_uint(&a->set, a->address_size), size = dwarf_uint(&a->set, a->address_size);

        if (a->set.failed)
                return ST_BAD_DATA;
        if (!start && !size)
                return dwarf_left(&a->set) ? ST_BAD_DATA : ST_NOT_FOUND;
        *start_ret = start;
        *size_ret = size;
        return ST_OK;
}
