/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/known_names.h"

#include <stdlib.h>

#include "common/limits.h"

void dwarf_known_names_init(struct dwarf_known_names *k)
{
        *k = (struct dwarf_known_names){ 0 };
        arena_init(&k->texts, LIMIT_DWARF_UNIT_TEXT_BYTES);
}

void dwarf_known_names_deinit(struct dwarf_known_names *k)
{
        free(k->slots);
        arena_deinit(&k->texts);
        dwarf_known_names_init(k);
}

/* The slot of a reference, or the free one where it belongs. */
static struct dwarf_known_name *slot_of(const struct dwarf_known_names *k, dwarf_ref ref)
{
        size_t at = (size_t)(ref * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (k->slot_count - 1);

        while (k->slots[at].is_used && k->slots[at].ref != ref)
                at = (at + 1) & (k->slot_count - 1);
        return &k->slots[at];
}

const struct dwarf_name *dwarf_known_names_find(const struct dwarf_known_names *k, dwarf_ref ref)
{
        const struct dwarf_known_name *slot = k->slot_count ? slot_of(k, ref) : NULL;

        return slot && slot->is_used ? &slot->name : NULL;
}

bool dwarf_known_names_have_room(struct dwarf_known_names *k)
{
        struct dwarf_known_names grown = *k;

        if (k->count >= LIMIT_DWARF_KNOWN_NAMES || k->texts.used > k->texts.max / 2)
                return false;
        if (k->count * 2 < k->slot_count)
                return true;
        grown.slot_count = k->slot_count ? k->slot_count * 2 : 256;
        grown.slots = calloc(grown.slot_count, sizeof *grown.slots);
        if (!grown.slots)
                return false;
        for (size_t i = 0; i < k->slot_count; i++)
                if (k->slots[i].is_used)
                        *slot_of(&grown, k->slots[i].ref) = k->slots[i];
        free(k->slots);
        *k = grown;
        return true;
}

void dwarf_known_names_add(struct dwarf_known_names *k, dwarf_ref ref, const struct dwarf_name *name)
{
        *slot_of(k, ref) = (struct dwarf_known_name){ ref, *name, true };
        k->count++;
}
