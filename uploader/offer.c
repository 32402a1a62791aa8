/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/offer.h"

#include <assert.h>
#include <string.h>

#include "common/files/file.h"
#include "common/json/json_out.h"
#include "common/json/json_value.h"
#include "common/limits.h"

/* ---- the response ---- */

static bool read_offer_answer(const struct json_value *answer, struct upload_item *item)
{
        char hex[BUILD_ID_HEX_MAX], text[BUILD_ID_HEX_MAX], reason[sizeof item->reason];
        struct json_value present;
        bool want;

        if (!json_value_text(answer, "build_id", text, sizeof text) ||
            strcmp(text, build_id_hex(&item->build_id, hex)) != 0 || !json_value_member(answer, "want", &present) ||
            !json_value_bool(answer, "want", &want))
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

enum status offer_read_answers(const struct buf *body, struct upload_item *items, size_t count, struct error *err)
{
        struct json_value root, files, answer;
        struct json_scan list;

        if (json_value_parse(body->data, body->size, &root, NULL) || !json_value_member(&root, "files", &files) ||
            !json_value_open_array(&files, &list) || json_value_count(&files, count) != count)
                goto strange;
        for (size_t i = 0; json_value_next(&list, &answer); i++) {
                if (!read_offer_answer(&answer, &items[i]))
                        goto strange;
        }
        return ST_OK;
strange:
        return error_set(
                err, ST_BAD_DATA,
                "the server's response does not follow the upload protocol; check that --server is a Cairn service");
}

/* ---- the offer ---- */

#define NAME_MAX_BYTES 127 /* the service's limit for a name */

/* The size of such an item is unknown until it is sent. */
static bool is_generated_on_send(const struct upload_item *item)
{
        return item->split || item->kind == UPLOAD_SOURCE || item->kind == UPLOAD_SYMBOLS;
}

static enum status write_offer(const struct upload_item *items, size_t count, struct buf *to, struct error *err)
{
        struct json_out j;

        assert(count <= LIMIT_WANT_FILES);
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
                json_out_uint(&j, "size", is_generated_on_send(&items[i]) ? 0 : items[i].size_bytes);
                json_out_strn(&j, "name", name, strnlen(name, NAME_MAX_BYTES));
                json_out_object_end(&j);
        }
        json_out_array_end(&j);
        json_out_object_end(&j);
        return buf_status(to, err, "the offer to the server");
}

static enum status offer_batch(struct http_client *client, struct upload_item *items, size_t count, struct error *err)
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
        st = write_offer(items, count, &question, err);
        if (st)
                return st;
        q.body = question.data;
        q.body_size = question.size;
        st = http_client_send(client, &q, &response, err);
        return st ? st : offer_read_answers(&response.body, items, count, err);
}

enum status offer_files(struct http_client *client, struct upload_list *list, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; i < list->count && !st; i += LIMIT_WANT_FILES)
                st = offer_batch(client, &list->items[i],
                                 list->count - i < LIMIT_WANT_FILES ? list->count - i : LIMIT_WANT_FILES, err);
        return st;
}
