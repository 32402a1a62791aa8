/* SPDX-License-Identifier: Apache-2.0 */
#include <json-c/json.h>
#include <string.h>

#include "uploader/want_internal.h"

static void cleanup_json(struct json_object **o)
{
        json_object_put(*o);
}

static const char *text_member(struct json_object *o, const char *name)
{
        struct json_object *v;

        return json_object_object_get_ex(o, name, &v) && json_object_is_type(v, json_type_string)
                       ? json_object_get_string(v)
                       : "";
}

static bool take_answer(struct json_object *answer, struct upload_item *item)
{
        struct json_object *want;
        char hex[BUILD_ID_HEX_MAX];
        const char *reason;

        if (!json_object_is_type(answer, json_type_object) ||
            strcmp(text_member(answer, "build_id"), build_id_hex(&item->build_id, hex)) != 0 ||
            !json_object_object_get_ex(answer, "want", &want) || !json_object_is_type(want, json_type_boolean))
                return false;
        reason = text_member(answer, "reason");
        snprintf(item->reason, sizeof item->reason, "%s", reason);
        if (json_object_get_boolean(want))
                item->state = UPLOAD_WANTED;
        else
                item->state = strcmp(reason, "same_or_better") == 0 ? UPLOAD_THERE : UPLOAD_REFUSED;
        return true;
}

enum status want_read_answers(const struct buf *body, struct upload_item *items, size_t count, struct error *err)
{
        _cleanup_(cleanup_json) struct json_object *root = NULL;
        struct json_tokener *tokener = json_tokener_new_ex(16);
        struct json_object *files;

        if (!tokener)
                return error_no_memory(err);
        if (body->size && body->size <= INT32_MAX)
                root = json_tokener_parse_ex(tokener, (const char *)body->data, (int)body->size);
        json_tokener_free(tokener);
        if (!root || !json_object_is_type(root, json_type_object) ||
            !json_object_object_get_ex(root, "files", &files) || !json_object_is_type(files, json_type_array) ||
            json_object_array_length(files) != count)
                goto strange;
        for (size_t i = 0; i < count; i++) {
                if (!take_answer(json_object_array_get_idx(files, i), &items[i]))
                        goto strange;
        }
        return ST_OK;
strange:
        return error_set(
                err, ST_BAD_DATA,
                "the server's answer is not of the upload protocol; check that --server is a Cairn service");
}
