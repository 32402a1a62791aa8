/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of gRPC is parsed and written here and not by nghttp2. The input is text of two lines, a grpc-timeout and the
 * text of a failure; what follows is the data of a stream, whose first byte says in which pieces it arrives.
 */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "grpc/grpc_status.h"
#include "grpc/message_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MESSAGE_MAX KiB(4)

static void must(bool ok)
{
        if (!ok)
                abort();
}

static void parse_timeout(const char *text)
{
        int64_t ns = -1;

        if (parse_grpc_timeout(text, &ns))
                must(ns >= 0 && strlen(text) <= 9);
        else
                must(ns == -1);
}

/* Both are values of a header: printable ASCII. */
static void write_failure(const char *text)
{
        _cleanup_buf_ struct buf message, details;

        buf_init(&message, MiB(64));
        buf_init(&details, KiB(4));
        put_grpc_message(&message, text);
        must(!message.failed && message.size >= strlen(text) && message.size <= 3 * strlen(text));
        for (size_t i = 0; i < message.size; i++)
                must(message.data[i] >= ' ' && message.data[i] <= '~');
        put_grpc_status_details(&details, GRPC_UNAVAILABLE, text, strlen(text));
        for (size_t i = 0; i < details.size; i++)
                must(strchr("+/", details.data[i]) || (details.data[i] >= '0' && details.data[i] <= 'z'));
}

/* The messages of a stream, each put together from pieces, have the lengths that their prefixes announce. */
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
                        must(used <= n && message.size <= MESSAGE_MAX);
                        must(used == n || message_reader_is_complete(&r, &message));
                        at += used;
                }
                if (message_reader_is_complete(&r, &message) && message.size)
                        must(memcmp(message.data, data + at - message.size, message.size) == 0);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ char *text = calloc(1, size + 1);
        char *rest = text, *timeout, *failure;

        must(text != NULL);
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
