/* SPDX-License-Identifier: Apache-2.0 */
#include "server/protocol/grpc_unary.h"

#include "common/limits.h"

const void *grpc_call_decode(struct grpc_call *call, const ProtobufCMessageDescriptor *type, struct arena *memory)
{
        const void *message;
        struct error err;
        size_t n;
        const uint8_t *data = grpc_call_message(call, &n);
        enum status st = proto_message_decode(type, data, n, memory, "message", &message, &err);

        if (!st)
                return message;
        grpc_call_fail_status(call, st, &err);
        return NULL;
}

void grpc_call_reply_message(struct grpc_call *call, const ProtobufCMessage *answer)
{
        struct buf body;

        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        proto_message_append(&body, answer);
        grpc_call_reply(call, &body);
}
