/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of gRPC that are parsed and written by Cairn and not by nghttp2. The input starts with two lines: a
 * grpc-timeout and an error message. The rest is the data of a stream, whose first byte determines how it is split into
 * chunks.
 */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "grpc/grpc_status.h"
#include "grpc/message_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MESSAGE_MAX KiB(4)

static void require(bool ok)
{
        if (!ok)
                abort();
}

static void parse_timeout(const char *text)
{
        int64_t ns = -1;

        if (parse_grpc_timeout(text, &ns))
                require(ns >= 0 && strlen(text) <= 9);
        else
                require(ns == -1);
}

/* Both are header values: printable ASCII. */
static void write_failure(const char *text)
{
        _cleanup_buf_ struct buf message, details;

        buf_init(&message, MiB(64));
        buf_init(&details, KiB(4));
        put_grpc_message(&message, text);
        require(!message.failed && message.size >= strlen(text) && message.size <= 3 * strlen(text));
        for (size_t i = 0; i < message.size; i++)
                require(message.data[i] >= ' ' && message.data[i] <= '~');
        put_grpc_status_details(&details, GRPC_UNAVAILABLE, text, strlen(text));
        for (size_t i = 0; i < details.size; i++)
                require(strchr("+/", details.data[i]) || (details.data[i] >= '0' && details.data[i] <= 'z'));
}

/* The messages of a stream, reassembled from chunks, have the lengths announced by their prefixes. */
static void read_messages(const uint8_t *data, size_t size)
{
        size_t piece = size ? data[0] + 1 : 1, at = 1;

        while (at < size) {
                struct message_reader r = { 0 };
                _cleanup_buf_ struct buf message;
                size_t used = 0;

                buf_init(&message, MESSAGE_MAX);
                while (at < size && !message_reader_is_complete(&r, &message)) {
                        size_t n = size - at < piece ? size - at : piece;
                        struct error err;

                        if (message_reader_feed(&r, data + at, n, &message, &used, &err))
                                return;
                        require(used <= n && message.size <= MESSAGE_MAX);
                        require(used == n || message_reader_is_complete(&r, &message));
                        at += used;
                }
                if (message_reader_is_complete(&r, &message) && message.size)
                        require(memcmp(message.data, data + at - message.size, message.size) == 0);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ char *text = calloc(1, size + 1);
        char *rest = text, *timeout, *failure;

        require(text != NULL);
        if (size)
                memcpy(text, data, size);
        timeout = strsep(&rest, "\n");
        parse_timeout(timeout);
        failure = rest ? strsep(&rest, "\n") : NULL;
        write_failure(failure ? failure : "");
        if (rest)
                read_messages(data + (rest - text), size - (size_t)(rest - text));
        return 0;
}
