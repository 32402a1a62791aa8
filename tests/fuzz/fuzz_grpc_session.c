/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a connection, passed through nghttp2 to the handlers, and their responses. The first byte of the input
 * determines how it is split into chunks.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "grpc/grpc_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t begun, ended, streams;

static void require(bool ok)
{
        if (!ok)
                abort();
}

static void echo_message(struct grpc_call *call, void *context)
{
        size_t n;
        const uint8_t *message = grpc_call_message(call, &n);
        struct buf answer;

        (void)context;
        require(n <= KiB(4));
        buf_init(&answer, KiB(4));
        if (n)
                buf_append(&answer, message, n);
        grpc_call_reply(call, &answer);
}

/* The state of a stream is its last message; a three-byte message makes it fail. */
static void take_stream_message(struct grpc_call *call, void *context)
{
        size_t n;

        (void)context;
        (void)grpc_call_message(call, &n);
        require(n <= KiB(4));
        streams += !grpc_call_state(call);
        grpc_call_set_state(call, &streams);
        if (n == 3)
                grpc_call_fail(call, GRPC_ABORTED, 0, "three");
}

static void end_stream(struct grpc_call *call, void *context)
{
        streams -= grpc_call_state(call) != NULL;
        echo_message(call, context);
}

static void abandon_stream(struct grpc_call *call, void *context)
{
        (void)context;
        require(grpc_call_state(call) == &streams);
        streams--;
}

static void refuse_message(struct grpc_call *call, void *context)
{
        (void)context;
        grpc_call_fail(call, GRPC_UNAVAILABLE, 5, "%s", grpc_call_path(call));
}

static enum http_access authorize_any_token(void *context, const char *token, enum http_scope scope,
                                            char name_ret[static HTTP_TOKEN_NAME_SIZE])
{
        (void)context;
        (void)scope;
        name_ret[0] = 0;
        return !token ? ACCESS_UNKNOWN : strlen(token) % 2 ? ACCESS_GRANTED : ACCESS_DENIED;
}

static uint64_t admit_every_call(void *context, const struct grpc_call *call, struct error *err)
{
        (void)context;
        begun++;
        return strcmp(grpc_call_peer(call), "127.0.0.1") == 0 ? 0 : (error_set(err, ST_BUSY, "who is it"), 1);
}

static void count_end(void *context, const struct grpc_call *call)
{
        (void)context;
        ended += grpc_call_is_admitted(call);
}

static void feed_session(struct grpc_session *s, const uint8_t *data, size_t size, size_t piece)
{
        int64_t now_ns = monotonic_ns();

        for (size_t at = 0; at < size; at += piece) {
                size_t n = size - at < piece ? size - at : piece;
                _cleanup_buf_ struct buf output;

                buf_init(&output, LIMIT_GRPC_OUTPUT_BYTES + KiB(32));
                if (grpc_session_receive(s, data + at, n, NULL))
                        return;
                do {
                        buf_clear(&output);
                        if (grpc_session_put_output(s, &output, NULL))
                                return;
                } while (output.size);
                require(grpc_session_get_activity(s).held_bytes <= LIMIT_GRPC_STREAMS * KiB(8));
                if (grpc_session_has_ended(s))
                        return;
                now_ns += INT64_C(1000000000);
                grpc_session_check_times(s, now_ns);
        }
        grpc_session_shutdown(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct grpc_method methods[] = {
                { .path = "/e/E",
                  .scope = SCOPE_NONE,
                  .max_message = KiB(4),
                  .memory = MEMORY_INGEST,
                  .at_once = true,
                  .handle = echo_message },
                { .path = "/r/R",
                  .scope = SCOPE_INGEST,
                  .max_message = KiB(4),
                  .memory = MEMORY_INGEST,
                  .at_once = true,
                  .handle = refuse_message },
                { .path = "/s/S",
                  .scope = SCOPE_NONE,
                  .max_message = KiB(4),
                  .memory = MEMORY_INGEST,
                  .at_once = true,
                  .stream = take_stream_message,
                  .handle = end_stream,
                  .abandon = abandon_stream },
        };
        const struct sockaddr_in peer = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct grpc_dispatcher d = { .options = { .methods = methods,
                                                  .method_count = 3,
                                                  .authorize = authorize_any_token,
                                                  .admit = admit_every_call,
                                                  .finished = count_end },
                                     .event_fd = -1 };
        struct grpc_session *s = NULL;

        begun = ended = streams = 0;
        if (size < 2)
                return 0;
        require(grpc_session_create(&d, (const struct sockaddr *)&peer, NULL, &s, NULL) == ST_OK);
        feed_session(s, data + 1, size - 1, data[0] ? (size_t)data[0] * 7 : size);
        grpc_session_destroy(s);
        require(begun == ended); /* each call is finished exactly once */
        require(streams == 0);   /* the state of each stream is freed */
        require(memory_use_held(MEMORY_CONNECTIONS) == 0 && memory_use_held(MEMORY_INGEST) == 0);
        return 0;
}
