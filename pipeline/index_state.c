/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/index_state.h"

/* Records of 'cairn index' do not list inputs, only the time. */
static bool was_object_read(const struct symbol_object *object, const struct stored_object *stored)
{
        if (object->inputs.count)
                return symbol_inputs_contain(&object->inputs, stored->sha256);
        return object->state == OBJECT_FAILED || object->indexed_unix_s >= stored->stored_unix_s;
}

static enum status get_object_record(struct symbol_index *symbols, const struct build_id *id, struct symbol_object *ret)
{
        struct symbol_view *view;
        enum status st = symbol_view_begin(symbols, &view, NULL);

        if (st)
                return st;
        st = symbol_view_get_object_unaliased(view, id, ret, NULL);
        symbol_view_end(view);
        return st;
}

bool index_state_is_empty(struct symbol_index *symbols, const struct stored_object *stored)
{
        struct symbol_object object;

        return stored->kind == OBJECT_DEBUGINFO && stored->quality > QUALITY_NONE &&
               !get_object_record(symbols, &stored->build_id, &object) && object.state == OBJECT_INDEXED &&
               object.range_count == 0;
}

bool index_state_is_pending(void *symbols, const struct stored_object *stored)
{
        struct symbol_object object;
        struct symbol_view *view;
        enum status st;

        if (stored->kind == OBJECT_SOURCE || stored->kind == OBJECT_DWO)
                return false;
        if (!symbols)
                return true;
        st = symbol_view_begin(symbols, &view, NULL);
        if (st)
                return true;
        st = symbol_view_get_object_unaliased(view, &stored->build_id, &object, NULL);
        symbol_view_end(view);
        if (st || object.state == OBJECT_ABSENT || object.state == OBJECT_PENDING)
                return stored->kind != OBJECT_DWP; /* a DWP file is indexed with its executable, which is queued */
        return !was_object_read(&object, stored);
}
