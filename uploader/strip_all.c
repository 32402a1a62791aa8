/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/strip_all.h"

#include "uploader/strip.h"

static bool is_acknowledged(const struct upload_list *list, const struct build_id *id)
{
        for (size_t i = 0; i < list->count; i++) {
                const struct upload_item *item = &list->items[i];

                if (item->kind == UPLOAD_DEBUGINFO && build_id_equal(&item->build_id, id))
                        return item->state == UPLOAD_SENT || item->state == UPLOAD_THERE;
        }
        return false;
}

size_t strip_all(const struct upload_list *list, struct report *report)
{
        size_t count = 0;

        for (size_t i = 0; i < list->program_count; i++) {
                const struct strip_candidate *c = &list->programs[i];
                struct error err;
                bool done = false;

                if (!is_acknowledged(list, &c->build_id))
                        report_note(report, c->path, "the service has not taken its debuginfo; it is not stripped");
                else if (strip_file(c->path, &c->build_id, &done, &err))
                        report_problem(report, &err);
                count += done;
        }
        return count;
}
