/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_GRPC_MESSAGE_READER_H
#define CAIRN_GRPC_MESSAGE_READER_H

/**
 * @file
 * Framing of gRPC messages in the data of a stream: a flag (1: compressed), a big-endian length of 32 bits, the
 * message. Chunk boundaries are arbitrary.
 *
 * Source: gRPC over HTTP/2, Length-Prefixed-Message.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/memory/buf.h"
#include "common/error.h"

#define MESSAGE_PREFIX_BYTES 5

/** Zeroed: before a message. */
struct message_reader {
        uint8_t prefix[MESSAGE_PREFIX_BYTES];
        unsigned prefix_size; /* received bytes of the prefix */
        uint32_t length;      /* of the message; valid once the prefix is complete, like the next */
        bool is_compressed;
};

/**
 * Append the data that belongs to the current message.
 * @param message  empty before the first piece; its max bounds the message. Memory grows with the received data, not
 *         with the announced length.
 * @param used_ret bytes of data consumed: fewer than n when the message is complete.
 * @return ST_BAD_DATA: a flag that is neither 0 nor 1; ST_TOO_BIG; ST_BUSY, ST_NO_MEMORY from the buffer.
 */
enum status message_reader_feed(struct message_reader *r, const uint8_t *data, size_t n, struct buf *message,
                                size_t *used_ret, struct error *err) MUST_CHECK;
bool message_reader_is_complete(const struct message_reader *r, const struct buf *message);

/** Append the prefix of an uncompressed message of n bytes. */
void put_message_prefix(struct buf *to, uint32_t n);

#endif
