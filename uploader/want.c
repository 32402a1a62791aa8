/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/want.h"

#include <string.h>

#include "common/file.h"
#include "common/json_out.h"
#include "common/limits.h"
#include "uploader/want_internal.h"

#define NAME_MAX_BYTES 127 /* what the service keeps of a name */

/* Then its size is not known yet. */
static bool is_made_later(const struct upload_item *item)
{
        return item->split || item->kind == UPLOAD_SOURCE || item->kind == UPLOAD_SYMBOLS;
}

static enum status write_question(const struct upload_item *items, size_t count, struct buf *to, struct error *err)
{
        struct json_out j;

        json_out_init(&j, to);
        json_out_object(&j, NULL);
        json_out_array(&j, "files");
        for (size_t i = 0; i < count; i++) {
                const char *name = path_base(items[i].path);
                char hex[BUILD_ID_HEX_MAX];

                json_out_object(&j, NULL);
                json_out_str(&j, "build_id", build_id_hex(&items[i].build_id, hex));
                json_out_str(&j, "kind", upload_kind_name(items[i].kind));
                json_out_str(&j, "quality", symbol_quality_name(items[i].quality));
                json_out_uint(&j, "size", is_made_later(&items[i]) ? 0 : items[i].size_bytes);
                json_out_strn(&j, "name", name, strnlen(name, NAME_MAX_BYTES));
                json_out_object_end(&j);
        }
        json_out_array_end(&j);
        json_out_object_end(&j);
        return buf_status(to, err, "the question to the server");
}

static enum status ask_batch(struct http_client *client, struct upload_item *items, size_t count, struct error *err)
{
        static const char *const headers[] = { "Content-Type: application/json", NULL };
        _cleanup_buf_ struct buf question;
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        struct http_client_request q = { .method = "POST",
                                         .path = "/api/v1/debuginfo/want",
                                         .headers = headers,
                                         .max_response = LIMIT_HTTP_JSON_BYTES,
                                         .repeatable = true };
        enum status st;

        buf_init(&question, LIMIT_HTTP_JSON_BYTES);
        st = write_question(items, count, &question, err);
        if (st)
                return st;
        q.body = question.data;
        q.body_size = question.size;
        st = http_client_send(client, &q, &response, err);
        return st ? st : want_read_answers(&response.body, items, count, err);
}

enum status want_ask(struct http_client *client, struct upload_list *list, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; i < list->count && !st; i += LIMIT_WANT_FILES)
                st = ask_batch(client, &list->items[i],
                               list->count - i < LIMIT_WANT_FILES ? list->count - i : LIMIT_WANT_FILES, err);
        return st;
}
