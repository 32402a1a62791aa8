/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/lookup_internal.h"

enum symbol_state lookup_gap_state(const struct index_object *o, uint64_t address)
{
        if (!index_object_has_bytes(o))
                return SYMBOL_OUTSIDE;
        return index_object_holds(o, address) ? SYMBOL_UNCOVERED : SYMBOL_NOT_IN_OBJECT;
}
