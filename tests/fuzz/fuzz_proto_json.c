/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of Connect clients. The first byte selects the type, and whether the rest is protobuf or JSON. A message
 * that can be decoded is written as JSON, which is decoded again and must be written as the same text.
 */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/json/proto_json.h"
#include "profile-formats/proto/connect_upload.pb-c.h"
#include "profile-formats/proto/push.pb-c.h"
#include "profile-formats/proto/querier.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCMessageDescriptor *const types[] = {
        &querier__select_merge_stacktraces_request__descriptor,
        &querier__select_series_request__descriptor,
        &querier__diff_request__descriptor,
        &querier__series_request__descriptor,
        &querier__profile__descriptor,
        &querier__diff_response__descriptor,
        &querier__select_series_response__descriptor,
        &connect_upload__should_initiate_upload_request__descriptor,
        &push__push_request__descriptor,
};

/* False if the message cannot be decoded. */
static bool rewrite_message(const ProtobufCMessageDescriptor *type, bool is_proto, const void *data, size_t n,
                            struct buf *ret)
{
        _cleanup_arena_ struct arena memory;
        const void *message;
        struct error err = { .text = "" };
        enum status st;

        arena_init(&memory, MiB(16));
        st = is_proto ? proto_message_decode(type, data, n, &memory, "message", &message, &err)
                      : proto_json_decode(type, data, n, &memory, "message", &message, &err);
        if (st) {
                if (!err.text[0])
                        abort();
                return false;
        }
        proto_json_append(ret, message);
        return !ret->failed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const ProtobufCMessageDescriptor *type;
        _cleanup_buf_ struct buf first, second;

        buf_init(&first, MiB(16));
        buf_init(&second, MiB(16));
        if (!size)
                return 0;
        type = types[(data[0] >> 1) % (sizeof types / sizeof *types)];
        if (!rewrite_message(type, data[0] & 1, data + 1, size - 1, &first))
                return 0;
        if (!rewrite_message(type, false, first.data, first.size, &second) || first.size != second.size ||
            memcmp(first.data, second.data, first.size) != 0)
                abort();
        return 0;
}
