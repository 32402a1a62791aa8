/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "uploader/upload_list.h"

const char *upload_kind_name(enum upload_kind kind)
{
        static const char *const names[] = { "debuginfo", "executable", "source", "supplementary",
                                             "dwp",       "dwo",        "symbols" };

        return names[kind];
}

void upload_list_deinit(struct upload_list *list)
{
        for (size_t i = 0; i < list->count; i++)
                free(list->items[i].path);
        free(list->items);
        for (size_t i = 0; i < list->program_count; i++)
                free(list->programs[i].path);
        free(list->programs);
        *list = (struct upload_list){ 0 };
}
