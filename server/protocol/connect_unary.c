/* SPDX-License-Identifier: Apache-2.0 */
#include "server/protocol/connect_unary.h"

#include "common/limits.h"
#include "profile-formats/json/proto_json.h"

#define REQUEST_MEMORY_BYTES MiB(8) /* decoded from a body of at most a few hundred KiB */

bool connect_unary_begin(struct http_request *req, const ProtobufCMessageDescriptor *type, struct connect_unary *ret)
{
        struct connect_unary c = { .req = req };
        const uint8_t *body;
        struct error err;
        size_t n;
        enum status st;

        if (!connect_read_codec(req, &c.codec))
                return false;
        body = http_body(req, &n);
        arena_init_budget(&c.memory, REQUEST_MEMORY_BYTES, MEMORY_BODIES);
        st = c.codec == CONNECT_PROTO ? proto_message_decode(type, body, n, &c.memory, "request", &c.message, &err)
                                      : proto_json_decode(type, body, n, &c.memory, "request", &c.message, &err);
        if (st) {
                arena_deinit(&c.memory);
                http_fail(req, st, &err);
                return false;
        }
        *ret = c;
        return true;
}

void connect_unary_deinit(struct connect_unary *c)
{
        arena_deinit(&c->memory);
}

void connect_unary_write(const struct connect_unary *c, const ProtobufCMessage *answer, struct buf *ret)
{
        buf_init_budget(ret, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        if (c->codec == CONNECT_PROTO)
                proto_message_append(ret, answer);
        else
                proto_json_append(ret, answer);
}

void connect_unary_respond_body(const struct connect_unary *c, struct buf *body)
{
        http_respond_packed(c->req, 200, connect_media_type(c->codec), body);
}

void connect_unary_respond(const struct connect_unary *c, const ProtobufCMessage *answer)
{
        struct buf body;

        connect_unary_write(c, answer, &body);
        connect_unary_respond_body(c, &body);
}
