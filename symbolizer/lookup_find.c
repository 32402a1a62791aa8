/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "symbolizer/lookup_internal.h"

enum status symbol_view_find(struct symbol_view *view, const void *prefix, size_t n, struct build_id *ids, size_t max,
                             size_t *count_ret, struct error *err)
{
        MDB_val key = { n, (void *)(uintptr_t)prefix }, value;
        size_t count = 0;
        MDB_cursor *cursor;
        int rc = mdb_cursor_open(view->txn, view->index->objects, &cursor);

        if (rc)
                return index_error(err, view->index, rc, "cannot read the objects of the index");
        for (rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE); !rc && count < max;
             rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
                if (key.mv_size < n || memcmp(key.mv_data, prefix, n) != 0)
                        break;
                count += build_id_from_bytes(&ids[count], key.mv_data, key.mv_size);
        }
        mdb_cursor_close(cursor);
        if (rc && rc != MDB_NOTFOUND)
                return index_error(err, view->index, rc, "cannot read the objects of the index");
        *count_ret = count;
        return ST_OK;
}
