/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why no range covers an address: told apart behind the walk, for the few keys
 * that need it, so that the walk has one answer for all gaps.
 */
#include "symbolizer/lookup_internal.h"

enum symbol_state lookup_gap_state(const struct index_object *o, uint64_t address)
{
        if (!index_object_has_bytes(o))
                return SYMBOL_OUTSIDE;
        return index_object_holds(o, address) ? SYMBOL_UNCOVERED : SYMBOL_NOT_IN_OBJECT;
}

void lookup_tell_gaps(struct lookup *l, const struct lookup_group *g, const uint64_t *elements)
{
        const struct index_object *o = &l->known.objects[g->object].object;

        for (uint32_t i = 0; l->has_gaps && i < g->count; i++) {
                struct symbol_result *r = &l->results[(uint32_t)elements[i]];

                if (r->state == SYMBOL_OUTSIDE)
                        r->state = lookup_gap_state(o, r->address);
        }
        l->has_gaps = false;
}
