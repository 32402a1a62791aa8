/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/outline.h"

#include <stdlib.h>

#include "common/array.h"

void dwarf_outline_deinit(struct dwarf_outline *o)
{
        free(o->qualifiers);
        free(o->declared);
        *o = (struct dwarf_outline){ 0 };
}

bool dwarf_outline_add_qualifier(struct dwarf_outline *o, const struct dwarf_qualifier *q)
{
        if (!array_reserve(&o->qualifiers, &o->qualifier_capacity, o->qualifier_count))
                return false;
        o->qualifiers[o->qualifier_count++] = *q;
        return true;
}

bool dwarf_outline_add_declared(struct dwarf_outline *o, uint64_t offset, uint32_t qualifier)
{
        if (!array_reserve(&o->declared, &o->declared_capacity, o->declared_count))
                return false;
        o->declared[o->declared_count++] = (struct dwarf_declared){ offset, qualifier };
        return true;
}

uint32_t dwarf_outline_find(const struct dwarf_outline *o, uint64_t offset)
{
        size_t low = 0, high = o->declared_count;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (o->declared[mid].offset < offset)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low < o->declared_count && o->declared[low].offset == offset ? o->declared[low].qualifier :
                                                                              DWARF_NO_QUALIFIER;
}
