/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/json_value.h"
#include "uploader/want_internal.h"

static bool take_answer(const struct json_value *answer, struct upload_item *item)
{
        char hex[BUILD_ID_HEX_MAX], text[BUILD_ID_HEX_MAX], reason[sizeof item->reason];
        struct json_value present;
        bool want;

        if (!json_value_text(answer, "build_id", text, sizeof text) || strcmp(text, build_id_hex(&item->build_id, hex)) != 0 ||
            !json_value_member(answer, "want", &present) || !json_value_bool(answer, "want", &want))
                return false;
        if (!json_value_text(answer, "reason", reason, sizeof reason))
                reason[0] = 0;
        snprintf(item->reason, sizeof item->reason, "%s", reason);
        if (want)
                item->state = UPLOAD_WANTED;
        else
                item->state = strcmp(reason, "same_or_better") == 0 ? UPLOAD_THERE : UPLOAD_REFUSED;
        return true;
}

enum status want_read_answers(const struct buf *body, struct upload_item *items, size_t count, struct error *err)
{
        struct json_value root, files, answer;
        struct json_scan list;

        if (json_value_parse(body->data, body->size, &root, NULL) || !json_value_member(&root, "files", &files) ||
            !json_value_open_array(&files, &list) || json_value_count(&files, count) != count)
                goto strange;
        for (size_t i = 0; json_value_next(&list, &answer); i++) {
                if (!take_answer(&answer, &items[i]))
                        goto strange;
        }
        return ST_OK;
strange:
        return error_set(
                err, ST_BAD_DATA,
                "the server's answer is not of the upload protocol; check that --server is a Cairn service");
}
