/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/stored_dwo.h"

enum status stored_dwo_open(void *context, uint64_t unit, const char *directory, const char *name, unsigned attempt,
                            int *fd_ret)
{
        struct stored_dwo *from = context;
        struct build_id id;
        enum status st;

        (void)directory;
        (void)name;
        if (attempt)
                return ST_NOT_FOUND;
        object_make_dwo_id(&id, unit);
        st = debuginfo_store_unpack(from->objects, &id, OBJECT_DWO, fd_ret, NULL);
        if (st == ST_NOT_FOUND && from->missing && from->missing->count < from->missing_max)
                (void)!id_set_add(from->missing, &id);
        return st;
}
