/* SPDX-License-Identifier: Apache-2.0 */
#include "grpc/message_reader.h"

#include <assert.h>
#include <string.h>

static enum status parse_message_prefix(struct message_reader *r, const struct buf *message, struct error *err)
{
        const uint8_t *p = r->prefix;

        r->length = (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
        r->is_compressed = p[0] == 1;
        if (p[0] > 1)
                return error_set(err, ST_BAD_DATA, "the flag of a message is 0x%02x: gRPC has 0 and 1", p[0]);
        if (r->length > message->max)
                return error_set(err, ST_TOO_BIG, "a message of %u bytes is larger than %zu: split it into several",
                                 r->length, message->max);
        return ST_OK;
}

bool message_reader_is_complete(const struct message_reader *r, const struct buf *message)
{
        return r->prefix_size == MESSAGE_PREFIX_BYTES && message->size == r->length;
}

enum status message_reader_feed(struct message_reader *r, const uint8_t *data, size_t n, struct buf *message,
                                size_t *used_ret, struct error *err)
{
        size_t used = 0, rest;

        while (used < n && r->prefix_size < MESSAGE_PREFIX_BYTES) {
                r->prefix[r->prefix_size++] = data[used++];
                if (r->prefix_size == MESSAGE_PREFIX_BYTES) {
                        enum status st = parse_message_prefix(r, message, err);

                        if (st)
                                return st;
                }
        }
        *used_ret = used;
        if (r->prefix_size < MESSAGE_PREFIX_BYTES)
                return ST_OK;
        assert(message->size <= r->length);
        rest = r->length - message->size;
        if (rest > n - used)
                rest = n - used;
        if (rest && buf_append(message, data + used, rest))
                return buf_status(message, err, "a message");
        *used_ret = used + rest;
        return ST_OK;
}

void put_message_prefix(struct buf *to, uint32_t n)
{
        const uint8_t prefix[MESSAGE_PREFIX_BYTES] = { 0, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
                                                       (uint8_t)n };

        buf_append(to, prefix, sizeof prefix);
}
