/* SPDX-License-Identifier: Apache-2.0 */
/* Answers from a service: POST /api/v1/symbolize (docs/formats/symbolize.md). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "cli/symbolize.h"
#include "common/build_id.h"
#include "common/limits.h"
#include "http/client.h"
#include "symbolizer/lookup.h"

struct server_source {
        struct http_client *client;
        char build_id[BUILD_ID_HEX_MAX];
};

static void server_source_close(void *context)
{
        struct server_source *s = context;

        http_client_destroy(s->client);
        free(s);
}

/* Nothing in it needs an escape. */
static void write_request(const struct server_source *s, const uint64_t *addresses, size_t count, struct buf *b)
{
        buf_printf(b, "{\"objects\":[{\"build_id\":\"%s\",\"addresses\":[", s->build_id);
        for (size_t i = 0; i < count; i++)
                buf_printf(b, "%s\"0x%" PRIx64 "\"", i ? "," : "", addresses[i]);
        buf_append_str(b, "]}]}");
}

static struct json_object *member(struct json_object *o, const char *name, enum json_type type)
{
        struct json_object *value;

        return json_object_is_type(o, json_type_object) && json_object_object_get_ex(o, name, &value) &&
                               json_object_is_type(value, type) ?
                       value :
                       NULL;
}

static const char *text_member(struct json_object *o, const char *name)
{
        struct json_object *value = member(o, name, json_type_string);

        return value ? json_object_get_string(value) : "";
}

static uint64_t uint_member(struct json_object *o, const char *name)
{
        struct json_object *value = member(o, name, json_type_int);

        return value ? json_object_get_uint64(value) : 0;
}

static void read_frame(struct json_object *o, struct answer_frame *f)
{
        struct json_object *inlined = member(o, "inlined", json_type_boolean);

        f->function = text_member(o, "function");
        f->linkage_name = text_member(o, "linkage_name");
        f->file = text_member(o, "file");
        f->line = (uint32_t)uint_member(o, "line");
        f->inlined = inlined && json_object_get_boolean(inlined);
}

static enum status give_results(struct json_object *root, const uint64_t *addresses, size_t count,
                                void (*give)(void *printer, const struct answer *), void *printer, struct error *err)
{
        struct json_object *objects = member(root, "objects", json_type_array);
        struct json_object *object = objects ? json_object_array_get_idx(objects, 0) : NULL;
        struct json_object *results = member(object, "results", json_type_array);

        if (!results || json_object_array_length(results) != count)
                return error_set(err, ST_BAD_DATA, "the service did not answer every address");
        for (size_t i = 0; i < count; i++) {
                struct json_object *result = json_object_array_get_idx(results, i);
                struct json_object *list = member(result, "frames", json_type_array);
                struct answer_frame frames[LIMIT_INLINE_DEPTH];
                struct answer a = { .address = addresses[i], .state = text_member(result, "state"), .frames = frames };

                if (list)
                        a.frame_count = json_object_array_length(list);
                if (a.frame_count > LIMIT_INLINE_DEPTH)
                        a.frame_count = LIMIT_INLINE_DEPTH;
                for (size_t n = 0; n < a.frame_count; n++)
                        read_frame(json_object_array_get_idx(list, n), &frames[n]);
                give(printer, &a);
        }
        return ST_OK;
}

static enum status server_source_ask(void *context, const uint64_t *addresses, size_t count,
                                     void (*give)(void *printer, const struct answer *), void *printer,
                                     struct error *err)
{
        static const char *const headers[] = { "Content-Type: application/json", NULL };
        struct server_source *s = context;
        _cleanup_buf_ struct buf body = { 0 };
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        struct http_client_request request = { .method = "POST", .path = "/api/v1/symbolize", .headers = headers,
                                               .max_response = LIMIT_RESPONSE_BYTES, .repeatable = true };
        struct json_object *root;
        enum status st;

        buf_init(&body, LIMIT_HTTP_JSON_BYTES);
        write_request(s, addresses, count, &body);
        st = buf_status(&body, err, "request");
        if (st)
                return st;
        request.body = body.data;
        request.body_size = body.size;
        st = http_client_send(s->client, &request, &response, err);
        if (st)
                return st;
        root = buf_cstr(&response.body) ? json_tokener_parse(buf_cstr(&response.body)) : NULL;
        if (!root)
                return error_set(err, ST_BAD_DATA, "the service's answer is not JSON");
        st = give_results(root, addresses, count, give, printer, err);
        json_object_put(root);
        return st;
}

enum status answer_source_server(const char *url, const char *token_file, const char *build_id,
                                 struct answer_source *ret, struct error *err)
{
        _cleanup_free_ char *token = NULL;
        struct http_client_options options = { .size = sizeof options, .base_url = url };
        struct server_source *s;
        struct build_id id;
        enum status st = ST_OK;

        if (!build_id_from_hex(&id, build_id, strlen(build_id)))
                return error_set(err, ST_USAGE, "'%s' is not a build-id", build_id);
        if (token_file)
                st = http_client_read_token(token_file, &token, err);
        if (st)
                return st;
        options.token = token;
        s = calloc(1, sizeof *s);
        if (!s)
                return error_no_memory(err);
        build_id_hex(&id, s->build_id);
        st = http_client_create(&options, &s->client, err);
        if (st) {
                server_source_close(s);
                return st;
        }
        *ret = (struct answer_source){ .context = s, .ask = server_source_ask, .close = server_source_close };
        build_id_hex(&id, ret->build_id);
        return ST_OK;
}
