/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/outline.h"

#include <assert.h>
#include <stdlib.h>

#include "common/memory/array.h"
#include "common/search.h"

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
        assert(qualifier < o->qualifier_count);
        if (!array_reserve(&o->declared, &o->declared_capacity, o->declared_count))
                return false;
        o->declared[o->declared_count++] = (struct dwarf_declared){ offset, qualifier };
        return true;
}

uint32_t dwarf_outline_find(const struct dwarf_outline *o, uint64_t offset)
{
        size_t at = find_lower_bound(i, 0, o->declared_count, o->declared[i].offset < offset);

        return at < o->declared_count && o->declared[at].offset == offset ? o->declared[at].qualifier
                                                                          : DWARF_NO_QUALIFIER;
}
