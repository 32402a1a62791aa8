/* SPDX-License-Identifier: Apache-2.0 */
#include "server/index_needs.h"

/* An index of before, and what 'cairn index' put there, say only when it was read. */
static bool is_read(const struct symbol_object *object, const struct stored_object *stored)
{
        if (object->inputs.count)
                return symbol_inputs_have(&object->inputs, stored->sha256);
        return object->state == OBJECT_FAILED || object->indexed_unix_s >= stored->stored_unix_s;
}

bool index_needs(void *symbols, const struct stored_object *stored)
{
        struct symbol_object object;
        struct symbol_view *view;
        enum status st;

        if (stored->kind == OBJECT_SOURCE || stored->kind == OBJECT_DWO)
                return false;
        st = symbol_view_begin(symbols, &view, NULL);
        if (st)
                return true;
        st = symbol_view_object_itself(view, &stored->build_id, &object, NULL);
        symbol_view_end(view);
        if (st || object.state == OBJECT_ABSENT || object.state == OBJECT_PENDING)
                return stored->kind != OBJECT_DWP; /* has no symbols without its file, and that is queued */
        return !is_read(&object, stored);
}
