/* SPDX-License-Identifier: Apache-2.0 */
#include "server/index_needs.h"

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
        st = symbol_view_object(view, &stored->build_id, &object, NULL);
        symbol_view_end(view);
        if (stored->kind == OBJECT_DWP) /* has no symbols without its file */
                return !st && object.state == OBJECT_INDEXED && object.indexed_unix_s < stored->stored_unix_s;
        return st || object.state == OBJECT_ABSENT || object.state == OBJECT_PENDING ||
               (object.state == OBJECT_INDEXED && object.indexed_unix_s < stored->stored_unix_s);
}
