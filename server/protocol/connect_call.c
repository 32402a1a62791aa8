/* SPDX-License-Identifier: Apache-2.0 */
#include "server/protocol/connect_call.h"

#include "common/json/json_out.h"

#define PROTO_TYPE "application/proto"
#define JSON_TYPE "application/json"

const char *connect_media_type(enum connect_codec codec)
{
        return codec == CONNECT_JSON ? JSON_TYPE : PROTO_TYPE;
}

bool connect_read_codec(struct http_request *req, enum connect_codec *ret)
{
        const char *type = http_header(req, "Content-Type");

        if (http_is_type(type, JSON_TYPE)) {
                *ret = CONNECT_JSON;
                return true;
        }
        if (http_is_type(type, PROTO_TYPE) || http_is_type(type, "application/x-protobuf")) {
                *ret = CONNECT_PROTO;
                return true;
        }
        http_set_header(req, "Accept-Post", JSON_TYPE ", " PROTO_TYPE);
        http_fail_code(req, 415, "encoding", "Content-Type '%.60s' is not supported; send " PROTO_TYPE " or " JSON_TYPE,
                       type ? type : "(none)");
        return false;
}

void connect_respond_empty(struct http_request *req, enum connect_codec codec)
{
        bool is_json = codec == CONNECT_JSON;

        http_respond(req, 200, connect_media_type(codec), is_json ? "{}" : "", is_json ? 2 : 0);
}

static const char *get_connect_code(unsigned code)
{
        static const struct {
                unsigned code;
                const char *name;
        } names[] = {
                { 400, "invalid_argument" },   { 401, "unauthenticated" },     { 403, "permission_denied" },
                { 404, "not_found" },          { 409, "failed_precondition" }, { 413, "resource_exhausted" },
                { 415, "unimplemented" },      { 429, "unavailable" },         { 499, "canceled" },
                { 501, "unimplemented" },      { 503, "unavailable" },         { 504, "deadline_exceeded" },
                { 507, "resource_exhausted" },
        };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (names[i].code == code)
                        return names[i].name;
        return "internal";
}

static const char *write_connect_error(struct buf *to, const char *code, const char *text)
{
        struct json_out j;

        json_out_init(&j, to);
        json_out_object(&j, NULL);
        json_out_str(&j, "code", code);
        json_out_str(&j, "message", text);
        json_out_object_end(&j);
        return JSON_TYPE;
}

/* Alloy retries resource_exhausted. A request over a limit would fail again, so it gets invalid_argument. */
const char *connect_put_error(struct buf *to, const char *type, unsigned code, const char *text)
{
        (void)type;
        return write_connect_error(to, code == 413 ? "invalid_argument" : get_connect_code(code), text);
}

const char *connect_put_query_error(struct buf *to, const char *type, unsigned code, const char *text)
{
        (void)type;
        return write_connect_error(to, get_connect_code(code), text);
}
