/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/array.h"
#include "dwarf/reader.h"

void dwarf_origins_clear(struct dwarf_origins *o)
{
        o->count = 0;
        if (++o->generation == 0) { /* slots of long ago would look new */
                for (size_t i = 0; i < o->slot_count; i++)
                        o->slots[i].generation = 0;
                o->generation = 1;
        }
}

/* The slot of a reference, or the free one where it belongs. */
static struct dwarf_origin *slot_of(const struct dwarf_origins *o, dwarf_ref ref)
{
        size_t at = (size_t)(ref * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (o->slot_count - 1);

        while (o->slots[at].generation == o->generation && o->slots[at].ref != ref)
                at = (at + 1) & (o->slot_count - 1);
        return &o->slots[at];
}

static bool grow(struct dwarf_origins *o)
{
        struct dwarf_origins grown = { .slot_count = o->slot_count ? o->slot_count * 2 : 1024, .count = o->count,
                                       .generation = o->generation };

        if (o->count * 2 < o->slot_count)
                return true;
        grown.slots = calloc(grown.slot_count, sizeof *grown.slots);
        if (!grown.slots)
                return false;
        for (size_t i = 0; i < o->slot_count; i++)
                if (o->slots[i].generation == o->generation)
                        *slot_of(&grown, o->slots[i].ref) = o->slots[i];
        free(o->slots);
        *o = grown;
        return true;
}

uint32_t dwarf_origins_add(struct dwarf_reader *r, struct dwarf_code *code, dwarf_ref ref)
{
        size_t n = code->name_count;

        if (n >= UINT32_MAX || !array_reserve(&r->refs, &r->ref_capacity, n) ||
            !array_reserve(&code->names, &code->name_capacity, n))
                return UINT32_MAX;
        r->refs[n] = ref;
        code->names[n] = (struct dwarf_name){ 0 };
        code->name_count++;
        return (uint32_t)n;
}

uint32_t dwarf_origins_name(struct dwarf_reader *r, struct dwarf_code *code, dwarf_ref ref)
{
        struct dwarf_origin *slot;
        uint32_t name;

        if (!grow(&r->origins))
                return UINT32_MAX;
        slot = slot_of(&r->origins, ref);
        if (slot->generation == r->origins.generation)
                return slot->name;
        name = dwarf_origins_add(r, code, ref);
        if (name != UINT32_MAX) {
                *slot = (struct dwarf_origin){ ref, name, r->origins.generation };
                r->origins.count++;
        }
        return name;
}
