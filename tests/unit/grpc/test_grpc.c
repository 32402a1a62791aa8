/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's encodings and framing, and sessions without a socket. */
#include <arpa/inet.h>
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/metrics.h"
#include "grpc/grpc_internal.h"
#include "tests/support/suite.h"

#define SECOND_NS INT64_C(1000000000)

/* ---- encodings ---- */

START_TEST(timeouts_have_up_to_eight_digits_and_a_unit)
{
        static const char *const bad[] = { "", "S", "1", "1s", "123456789S", "1SS", "-1S", " 1S", "1 S", "0x1S" };
        int64_t ns = 7;

        ck_assert(parse_grpc_timeout("10S", &ns) && ns == 10 * SECOND_NS);
        ck_assert(parse_grpc_timeout("1500m", &ns) && ns == 1500000000);
        ck_assert(parse_grpc_timeout("2H", &ns) && ns == 7200 * SECOND_NS);
        ck_assert(parse_grpc_timeout("3M", &ns) && ns == 180 * SECOND_NS);
        ck_assert(parse_grpc_timeout("4u", &ns) && ns == 4000);
        ck_assert(parse_grpc_timeout("0n", &ns) && ns == 0);
        ck_assert(parse_grpc_timeout("99999999H", &ns) && ns == INT64_MAX); /* more than fit */
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                ns = 7;
                ck_assert_msg(!parse_grpc_timeout(bad[i], &ns) && ns == 7, "%s", bad[i]);
        }
}
END_TEST

START_TEST(messages_are_percent_encoded)
{
        _cleanup_buf_ struct buf b;

        buf_init(&b, 256);
        put_grpc_message(&b, "50% of caf\xc3\xa9\r\n~");
        ck_assert_str_eq(buf_cstr(&b), "50%25 of caf%C3%A9%0D%0A~");
}
END_TEST

/* As written and encoded by Python's protobuf. */
START_TEST(details_are_a_status_with_retry_info)
{
        _cleanup_buf_ struct buf b;

        buf_init(&b, 256);
        put_grpc_status_details(&b, GRPC_UNAVAILABLE, "busy", 5);
        ck_assert_str_eq(buf_cstr(&b),
                         "CA4SBGJ1c3kaMAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIECgIIBQ");
        buf_clear(&b);
        put_grpc_status_details(&b, GRPC_INVALID_ARGUMENT, "bad", 0);
        ck_assert_str_eq(buf_cstr(&b), "CAMSA2JhZA");
}
END_TEST

/* ---- framing ---- */

START_TEST(message_may_be_split_anywhere)
{
        static const uint8_t data[] = { 1, 0, 0, 0, 3, 'a', 'b', 'c', 0, 0, 0, 0, 0 };

        for (size_t piece = 1; piece <= sizeof data; piece++) {
                struct message_reader r = { 0 };
                _cleanup_buf_ struct buf message;
                size_t at = 0, used = 0;

                buf_init(&message, 3);
                while (!message_reader_is_complete(&r, &message)) {
                        size_t n = sizeof data - at < piece ? sizeof data - at : piece;

                        ck_assert_int_eq(message_reader_feed(&r, data + at, n, &message, &used, NULL), ST_OK);
                        at += used;
                }
                ck_assert_uint_eq(at, 8); /* the next message is not consumed */
                ck_assert(r.is_compressed && message.size == 3 && memcmp(message.data, "abc", 3) == 0);
        }
}
END_TEST

START_TEST(a_long_message_is_refused_at_its_prefix)
{
        static const uint8_t data[] = { 0, 0xff, 0xff, 0xff, 0xff, 'a' }, flag[] = { 2, 0, 0, 0, 0 };
        struct message_reader r = { 0 };
        _cleanup_buf_ struct buf message;
        size_t used;

        buf_init(&message, MiB(64));
        ck_assert_int_eq(message_reader_feed(&r, data, sizeof data, &message, &used, NULL), ST_TOO_BIG);
        ck_assert_uint_eq(message.capacity, 0);
        r = (struct message_reader){ 0 };
        ck_assert_int_eq(message_reader_feed(&r, flag, sizeof flag, &message, &used, NULL), ST_BAD_DATA);
}
END_TEST

/* ---- sessions ---- */

static size_t finished;
static enum grpc_code finished_code;
static bool let_in;

static void ignore_request(struct grpc_call *call, void *context)
{
        struct buf none;

        (void)context;
        buf_init(&none, 16);
        grpc_call_reply(call, &none);
}

static void note_finished(void *context, const struct grpc_call *call)
{
        (void)context;
        finished++;
        finished_code = grpc_call_code(call);
}

static uint64_t admit_if_allowed(void *context, const struct grpc_call *call, struct error *err)
{
        (void)context;
        (void)call;
        return let_in ? 0 : (error_set(err, ST_BUSY, "not now"), 7);
}

/* ---- a stream: the sum of the lengths of its messages ---- */

static size_t stream_total, stream_messages, abandoned;

/* The token is revoked after two messages. */
static enum http_access authorize_two_messages(void *context, const char *token, enum http_scope scope,
                                               char name_ret[static HTTP_TOKEN_NAME_SIZE])
{
        (void)context;
        (void)token;
        ck_assert_int_eq(scope, SCOPE_INGEST);
        name_ret[0] = 0;
        return stream_messages < 2 ? ACCESS_GRANTED : ACCESS_UNKNOWN;
}

static void add_stream_message(struct grpc_call *call, void *context)
{
        size_t n;

        (void)context;
        (void)grpc_call_message(call, &n);
        ck_assert((grpc_call_state(call) == NULL) == (stream_messages == 0));
        stream_messages++;
        stream_total += n;
        grpc_call_set_state(call, &stream_total);
        if (n == 5)
                grpc_call_fail(call, GRPC_ABORTED, 0, "five");
}

static void end_stream(struct grpc_call *call, void *context)
{
        ck_assert_ptr_eq(grpc_call_state(call), &stream_total);
        ignore_request(call, context);
}

static void note_abandoned(struct grpc_call *call, void *context)
{
        (void)context;
        ck_assert_ptr_eq(grpc_call_state(call), &stream_total);
        abandoned++;
}

static const struct grpc_method methods[] = { { .path = "/t/T",
                                                .scope = SCOPE_INGEST,
                                                .max_message = 1000,
                                                .memory = MEMORY_INGEST,
                                                .at_once = true,
                                                .handle = ignore_request },
                                              { .path = "/t/S",
                                                .scope = SCOPE_INGEST,
                                                .max_message = 1000,
                                                .memory = MEMORY_INGEST,
                                                .at_once = true,
                                                .stream = add_stream_message,
                                                .handle = end_stream,
                                                .abandon = note_abandoned } };

struct pair {
        struct grpc_dispatcher dispatcher;
        struct grpc_session *server;
        nghttp2_session *client;
        char status[8], grpc_status[8], message[256];
        uint32_t goaway, reset; /* status codes */
        bool has_goaway, has_reset;
};

static int on_client_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name, size_t name_size,
                            const uint8_t *value, size_t value_size, uint8_t flags, void *context)
{
        struct pair *p = context;

        (void)h2;
        (void)frame;
        (void)name_size;
        (void)value_size;
        (void)flags;
        if (strcmp((const char *)name, ":status") == 0)
                snprintf(p->status, sizeof p->status, "%s", (const char *)value);
        if (strcmp((const char *)name, "grpc-status") == 0)
                snprintf(p->grpc_status, sizeof p->grpc_status, "%s", (const char *)value);
        if (strcmp((const char *)name, "grpc-message") == 0)
                snprintf(p->message, sizeof p->message, "%s", (const char *)value);
        return 0;
}

static int on_client_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *context)
{
        struct pair *p = context;

        (void)h2;
        if (frame->hd.type == NGHTTP2_GOAWAY) {
                p->has_goaway = true;
                p->goaway = frame->goaway.error_code;
        }
        if (frame->hd.type == NGHTTP2_RST_STREAM) {
                p->has_reset = true;
                p->reset = frame->rst_stream.error_code;
        }
        return 0;
}

static void move_frames(struct pair *p)
{
        const uint8_t *data;
        ssize_t n;

        for (bool moved = true; moved;) {
                _cleanup_buf_ struct buf out;

                buf_init(&out, KiB(64));
                moved = false;
                while ((n = nghttp2_session_mem_send(p->client, &data)) > 0) {
                        moved = true;
                        if (grpc_session_receive(p->server, data, (size_t)n, NULL))
                                return;
                }
                ck_assert_int_eq(grpc_session_put_output(p->server, &out, NULL), ST_OK);
                moved |= out.size > 0;
                if (out.size)
                        ck_assert_int_eq(nghttp2_session_mem_recv(p->client, out.data, out.size), (ssize_t)out.size);
        }
}

static void open_pair(struct pair *p)
{
        const struct sockaddr_in peer = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        nghttp2_session_callbacks *callbacks;

        *p = (struct pair){ .dispatcher = { .options = { .methods = methods,
                                                         .method_count = 2,
                                                         .admit = admit_if_allowed,
                                                         .finished = note_finished },
                                            .event_fd = -1 } };
        finished = stream_total = stream_messages = abandoned = 0;
        let_in = true;
        ck_assert_int_eq(nghttp2_session_callbacks_new(&callbacks), 0);
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_client_header);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_client_frame);
        ck_assert_int_eq(nghttp2_session_client_new(&p->client, callbacks, p), 0);
        nghttp2_session_callbacks_del(callbacks);
        ck_assert_int_eq(grpc_session_create(&p->dispatcher, (const struct sockaddr *)&peer, p, &p->server, NULL),
                         ST_OK);
        ck_assert_ptr_eq(grpc_session_owner(p->server), p);
        ck_assert(!grpc_session_is_established(p->server));
        ck_assert_int_eq(nghttp2_submit_settings(p->client, NGHTTP2_FLAG_NONE, NULL, 0), 0);
        move_frames(p);
        ck_assert(grpc_session_is_established(p->server));
}

static void close_pair(struct pair *p)
{
        grpc_session_destroy(p->server);
        nghttp2_session_del(p->client);
        ck_assert_uint_eq(memory_use_held(MEMORY_CONNECTIONS), 0);
        ck_assert_uint_eq(memory_use_held(MEMORY_INGEST), 0);
}

static nghttp2_nv header(const char *name, const char *value)
{
        return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value),
                             NGHTTP2_NV_FLAG_NONE };
}

struct sent_data {
        const char *bytes;
        size_t size, sent;
        bool is_last;
};

static ssize_t read_sent_data(nghttp2_session *h2, int32_t stream_id, uint8_t *to, size_t n, uint32_t *flags,
                              nghttp2_data_source *source, void *context)
{
        struct sent_data *d = source->ptr;
        size_t rest = d->size - d->sent;

        (void)h2;
        (void)stream_id;
        (void)context;
        n = n < rest ? n : rest;
        if (n == 0 && !d->is_last)
                return NGHTTP2_ERR_DEFERRED;
        memcpy(to, d->bytes + d->sent, n);
        d->sent += n;
        if (d->sent == d->size && d->is_last)
                *flags |= NGHTTP2_DATA_FLAG_EOF;
        return (ssize_t)n;
}

static int32_t begin_call(struct pair *p, const char *path, struct sent_data *d, nghttp2_nv more)
{
        const nghttp2_nv headers[] = { header(":method", "POST"),
                                       header(":scheme", "http"),
                                       header(":path", path),
                                       header(":authority", "x"),
                                       header("te", "trailers"),
                                       header("content-type", "application/grpc"),
                                       more };
        const nghttp2_data_provider provider = { .source.ptr = d, .read_callback = read_sent_data };
        int32_t id = nghttp2_submit_request(p->client, NULL, headers, 7, &provider, NULL);

        ck_assert_int_gt(id, 0);
        move_frames(p);
        return id;
}

#define NO_MORE header("user-agent", "test")

START_TEST(a_call_is_answered_and_finished_once)
{
        struct sent_data d = { .bytes = "\0\0\0\0\1x", .size = 6, .is_last = true };
        struct grpc_activity now;
        struct pair p;

        open_pair(&p);
        begin_call(&p, "/t/T", &d, NO_MORE);
        ck_assert_str_eq(p.status, "200");
        ck_assert_str_eq(p.grpc_status, "0");
        ck_assert_uint_eq(finished, 1);
        ck_assert_int_eq(finished_code, GRPC_OK);
        ck_assert(!p.has_reset);
        now = grpc_session_get_activity(p.server);
        ck_assert(!now.is_reading && !now.is_handling && !now.is_sending);
        close_pair(&p);
}
END_TEST

START_TEST(an_answer_before_the_end_of_the_message_resets_the_stream)
{
        struct sent_data d = { .bytes = "\0\0\0\x10\0", .size = 5 };
        struct pair p;

        open_pair(&p);
        begin_call(&p, "/t/T", &d, NO_MORE);
        ck_assert_str_eq(p.grpc_status, "8");
        ck_assert_str_eq(p.message, "a message of 4096 bytes is larger than 1000: split it into several");
        ck_assert(p.has_reset && p.reset == NGHTTP2_NO_ERROR);
        ck_assert(!grpc_session_get_activity(p.server).is_sending);
        close_pair(&p);
}
END_TEST

START_TEST(call_over_rate_limit_is_refused_before_its_message)
{
        struct sent_data d = { .size = 0 };
        struct pair p;

        open_pair(&p);
        let_in = false;
        begin_call(&p, "/t/T", &d, NO_MORE);
        ck_assert_str_eq(p.grpc_status, "8");
        ck_assert_str_eq(p.message, "not now");
        close_pair(&p);
}
END_TEST

/* Its memory counts as held while it is read, and a client that stops sending loses the call. */
START_TEST(stalled_message_is_aborted)
{
        struct sent_data d = { .bytes = "\0\0\0\0\7abc", .size = 8 };
        struct grpc_activity now;
        struct pair p;

        open_pair(&p);
        begin_call(&p, "/t/T", &d, NO_MORE);
        now = grpc_session_get_activity(p.server);
        ck_assert(now.is_reading && now.held_bytes >= 3);
        grpc_session_check_times(p.server, monotonic_ns() + (LIMIT_HTTP_SLOW_S - 1) * SECOND_NS);
        move_frames(&p);
        ck_assert_str_eq(p.grpc_status, "");
        grpc_session_check_times(p.server, monotonic_ns() + (LIMIT_HTTP_SLOW_S + 2) * SECOND_NS);
        move_frames(&p);
        ck_assert_str_eq(p.grpc_status, "4");
        ck_assert_uint_eq(finished, 1);
        close_pair(&p);
}
END_TEST

START_TEST(unread_response_is_aborted)
{
        static const nghttp2_settings_entry no_window = { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0 };
        struct sent_data d = { .bytes = "\0\0\0\0\0", .size = 5, .is_last = true };
        struct pair p;

        open_pair(&p);
        ck_assert_int_eq(nghttp2_submit_settings(p.client, NGHTTP2_FLAG_NONE, &no_window, 1), 0);
        begin_call(&p, "/t/T", &d, NO_MORE);
        ck_assert_str_eq(p.status, "200");
        grpc_session_check_times(p.server, monotonic_ns() + (LIMIT_HTTP_SLOW_S - 1) * SECOND_NS);
        move_frames(&p);
        ck_assert(!p.has_reset && grpc_session_get_activity(p.server).is_sending);
        grpc_session_check_times(p.server, monotonic_ns() + LIMIT_HTTP_SLOW_S * SECOND_NS);
        move_frames(&p);
        ck_assert(p.has_reset && p.reset == NGHTTP2_CANCEL);
        ck_assert(!grpc_session_get_activity(p.server).is_sending);
        ck_assert_uint_eq(finished, 1);
        close_pair(&p);
}
END_TEST

START_TEST(client_timeout_is_applied)
{
        struct sent_data d = { .size = 0 };
        struct pair p;

        open_pair(&p);
        begin_call(&p, "/t/T", &d, header("grpc-timeout", "5S"));
        grpc_session_check_times(p.server, monotonic_ns() + 4 * SECOND_NS);
        ck_assert_uint_eq(finished, 0);
        grpc_session_check_times(p.server, monotonic_ns() + 5 * SECOND_NS);
        move_frames(&p);
        ck_assert_str_eq(p.grpc_status, "4");
        close_pair(&p);
}
END_TEST

START_TEST(client_cancellation_ends_call)
{
        struct sent_data d = { .bytes = "\0\0\0\0\7abc", .size = 8 };
        struct pair p;
        int32_t id;

        open_pair(&p);
        id = begin_call(&p, "/t/T", &d, NO_MORE);
        ck_assert_uint_gt(memory_use_held(MEMORY_INGEST), 0);
        ck_assert_int_eq(nghttp2_submit_rst_stream(p.client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL), 0);
        move_frames(&p);
        ck_assert_uint_eq(finished, 1);
        ck_assert_int_eq(finished_code, GRPC_CANCELLED);
        ck_assert_uint_eq(memory_use_held(MEMORY_INGEST), 0);
        close_pair(&p);
}
END_TEST

START_TEST(stream_delivers_each_message_and_end)
{
        struct sent_data d = { .bytes = "\0\0\0\0\1x\0\0\0\0\0\0\0\0\0\3abc", .size = 19, .is_last = true };
        struct pair p;

        open_pair(&p);
        begin_call(&p, "/t/S", &d, NO_MORE);
        ck_assert_str_eq(p.grpc_status, "0");
        ck_assert_uint_eq(stream_messages, 3);
        ck_assert_uint_eq(stream_total, 4);
        ck_assert_uint_eq(abandoned, 0);
        ck_assert_uint_eq(finished, 1);
        close_pair(&p);
}
END_TEST

START_TEST(a_stream_whose_token_is_revoked_ends_at_its_next_message)
{
        struct sent_data d = { .bytes = "\0\0\0\0\1x\0\0\0\0\0\0\0\0\0\3abc", .size = 19, .is_last = true };
        struct pair p;

        open_pair(&p);
        p.dispatcher.options.authorize = authorize_two_messages;
        begin_call(&p, "/t/S", &d, NO_MORE);
        ck_assert_str_eq(p.grpc_status, "16");
        ck_assert_uint_eq(stream_messages, 2);
        ck_assert_uint_eq(stream_total, 1);
        ck_assert_uint_eq(abandoned, 1);
        ck_assert_uint_eq(finished, 1);
        close_pair(&p);
}
END_TEST

/* The end of the stream authorizes the token once more. */
START_TEST(a_stream_whose_token_is_revoked_before_its_end_is_not_completed)
{
        struct sent_data d = { .bytes = "\0\0\0\0\1x\0\0\0\0\0", .size = 11, .is_last = true };
        struct pair p;

        open_pair(&p);
        p.dispatcher.options.authorize = authorize_two_messages;
        begin_call(&p, "/t/S", &d, NO_MORE);
        ck_assert_str_eq(p.grpc_status, "16");
        ck_assert_uint_eq(stream_messages, 2);
        ck_assert_uint_eq(abandoned, 1);
        close_pair(&p);
}
END_TEST

START_TEST(a_stream_that_fails_is_abandoned)
{
        struct sent_data d = { .bytes = "\0\0\0\0\5abcde\0\0\0\0\1x", .size = 16 };
        struct pair p;

        open_pair(&p);
        begin_call(&p, "/t/S", &d, NO_MORE);
        ck_assert_str_eq(p.grpc_status, "10");
        ck_assert_uint_eq(stream_messages, 1);
        ck_assert_uint_eq(abandoned, 1);
        ck_assert_uint_eq(finished, 1);
        close_pair(&p);
}
END_TEST

START_TEST(a_stream_whose_client_leaves_is_abandoned)
{
        struct sent_data d = { .bytes = "\0\0\0\0\1x\0\0", .size = 8 };
        struct pair p;
        int32_t id;

        open_pair(&p);
        id = begin_call(&p, "/t/S", &d, NO_MORE);
        ck_assert_uint_eq(abandoned, 0);
        ck_assert_int_eq(nghttp2_submit_rst_stream(p.client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL), 0);
        move_frames(&p);
        ck_assert_uint_eq(abandoned, 1);
        ck_assert_uint_eq(finished, 1);
        ck_assert_int_eq(finished_code, GRPC_CANCELLED);
        close_pair(&p);
}
END_TEST

START_TEST(a_stream_that_ends_within_a_message_is_refused)
{
        struct sent_data d = { .bytes = "\0\0\0\0\1x\0\0", .size = 8, .is_last = true };
        struct pair p;

        open_pair(&p);
        begin_call(&p, "/t/S", &d, NO_MORE);
        ck_assert_str_eq(p.grpc_status, "3");
        ck_assert_str_eq(p.message, "the message is cut off");
        ck_assert_uint_eq(abandoned, 1);
        close_pair(&p);
}
END_TEST

/* Independent of earlier messages, it holds only what its handlers keep. */
START_TEST(stream_stalled_between_messages_is_aborted)
{
        static char bytes[100][5 + 1000];
        struct sent_data d = { .bytes = bytes[0], .size = sizeof bytes };
        struct pair p;

        for (size_t i = 0; i < 100; i++)
                memcpy(bytes[i], "\0\0\0\3\xe8", 5);
        open_pair(&p);
        begin_call(&p, "/t/S", &d, NO_MORE);
        ck_assert_uint_eq(stream_messages, 100);
        grpc_session_check_times(p.server, monotonic_ns() + (LIMIT_HTTP_SLOW_S - 1) * SECOND_NS);
        move_frames(&p);
        ck_assert_str_eq(p.grpc_status, "");
        grpc_session_check_times(p.server, monotonic_ns() + (LIMIT_HTTP_SLOW_S + 2) * SECOND_NS);
        move_frames(&p);
        ck_assert_str_eq(p.grpc_status, "4");
        ck_assert_uint_eq(abandoned, 1);
        close_pair(&p);
}
END_TEST

START_TEST(a_stream_of_empty_messages_is_refused)
{
        static char empty[5 * (LIMIT_GRPC_SMALL_MESSAGES + 10)];
        struct sent_data d = { .bytes = empty, .size = sizeof empty, .is_last = true };
        struct pair p;

        open_pair(&p);
        begin_call(&p, "/t/S", &d, NO_MORE);
        ck_assert_str_eq(p.grpc_status, "8");
        ck_assert_uint_ge(stream_messages, LIMIT_GRPC_SMALL_MESSAGES);
        ck_assert_uint_le(stream_messages, LIMIT_GRPC_SMALL_MESSAGES + 5);
        ck_assert_uint_eq(abandoned, 1);
        close_pair(&p);
}
END_TEST

START_TEST(rapid_reset_closes_connection)
{
        struct pair p;
        int turns = 0;

        open_pair(&p);
        while (!p.has_goaway && turns++ < 200) {
                struct sent_data d = { .size = 0 };
                int32_t id = begin_call(&p, "/t/T", &d, NO_MORE);

                ck_assert_int_eq(nghttp2_submit_rst_stream(p.client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL), 0);
                move_frames(&p);
        }
        ck_assert_uint_eq(p.goaway, NGHTTP2_ENHANCE_YOUR_CALM);
        ck_assert_int_le(turns, LIMIT_GRPC_FRAME_BURST / 10 + 1);
        close_pair(&p);
}
END_TEST

/* More calls than frames in the token bucket: answered calls refill it. */
START_TEST(many_honest_calls_keep_connection)
{
        struct pair p;

        open_pair(&p);
        for (int i = 0; i < 3 * LIMIT_GRPC_FRAME_BURST; i++) {
                struct sent_data d = { .bytes = "\0\0\0\0\0", .size = 5, .is_last = true };

                begin_call(&p, "/t/T", &d, NO_MORE);
                ck_assert_int_eq(nghttp2_submit_ping(p.client, NGHTTP2_FLAG_NONE, NULL), 0);
        }
        ck_assert(!p.has_goaway);
        ck_assert_uint_eq(finished, 3 * LIMIT_GRPC_FRAME_BURST);
        close_pair(&p);
}
END_TEST

START_TEST(refused_calls_do_not_refill_frame_bucket)
{
        struct pair p;
        int turns = 0;

        open_pair(&p);
        let_in = false;
        while (!p.has_goaway && turns++ < 3 * LIMIT_GRPC_FRAME_BURST) {
                struct sent_data d = { .bytes = "\0\0\0\0\0", .size = 5, .is_last = true };

                begin_call(&p, "/t/T", &d, NO_MORE);
        }
        ck_assert_uint_eq(p.goaway, NGHTTP2_ENHANCE_YOUR_CALM);
        close_pair(&p);
}
END_TEST

/* Credit gained before is limited to the usual burst. */
START_TEST(honest_calls_do_not_permit_a_flood)
{
        struct pair p;
        int pings = 0;

        open_pair(&p);
        for (int i = 0; i < 2 * LIMIT_GRPC_FRAME_BURST; i++) {
                struct sent_data d = { .bytes = "\0\0\0\0\0", .size = 5, .is_last = true };

                begin_call(&p, "/t/T", &d, NO_MORE);
        }
        for (; !p.has_goaway && pings < 4 * LIMIT_GRPC_FRAME_BURST; pings++) {
                ck_assert_int_eq(nghttp2_submit_ping(p.client, NGHTTP2_FLAG_NONE, NULL), 0);
                move_frames(&p);
        }
        ck_assert_uint_eq(p.goaway, NGHTTP2_ENHANCE_YOUR_CALM);
        close_pair(&p);
}
END_TEST

/* A header of 60,000 bytes, split over many frames. */
START_TEST(endless_header_block_closes_connection)
{
        static uint8_t frame[9 + 10000];
        struct pair p;

        open_pair(&p);
        memset(frame, 'a', sizeof frame);
        memcpy(frame,
               "\0\x27\x10\x01\0\0\0\0\x01"
               "\0\1x\x7f\xe1\xd3\x03",
               16);
        ck_assert_int_eq(grpc_session_receive(p.server, frame, sizeof frame, NULL), ST_OK);
        memcpy(frame, "\0\x10\0\x09\0\0\0\0\x01", 9);
        ck_assert_int_eq(grpc_session_receive(p.server, frame, 9 + 4096, NULL), ST_OK);
        ck_assert_int_eq(grpc_session_receive(p.server, frame, 9 + 4096, NULL), ST_BAD_DATA);
        close_pair(&p);
}
END_TEST

#define REPEATED 15 /* nghttp2 sends at most 64 KiB of headers, and indexes those of at most 3 KiB */

/* Headers of 45 KB that are encoded in REPEATED bytes, except the first time. */
static void fill_with_repeated(nghttp2_nv headers[static REPEATED], const char *value)
{
        for (size_t i = 0; i < REPEATED; i++)
                headers[i] = header("x", value);
}

static void send_repeated(struct pair *p, const char *value, bool as_trailers)
{
        nghttp2_nv headers[4 + REPEATED] = { header(":method", "POST"), header(":scheme", "http"),
                                             header(":path", "/t/T"), header(":authority", "x") };
        struct sent_data d = { .size = 0 };
        int32_t id = as_trailers ? begin_call(p, "/t/T", &d, NO_MORE) : -1;

        fill_with_repeated(headers + 4, value);
        if (as_trailers)
                ck_assert_int_eq(nghttp2_submit_headers(p->client, NGHTTP2_FLAG_END_STREAM, id, NULL, headers + 4,
                                                        REPEATED, NULL),
                                 0);
        else
                ck_assert_int_gt(nghttp2_submit_request(p->client, NULL, headers, 4 + REPEATED, NULL, NULL), 0);
        move_frames(p);
}

/* One byte decodes to 3000, processed 16,000 times for a frame of 16 KiB. */
START_TEST(large_decoded_headers_end_stream_and_connection)
{
        static const struct {
                const char *last;
                bool as_trailers;
                uint32_t reset;
        } cases[] = { { "a", false, NGHTTP2_INTERNAL_ERROR },
                      { "\x01", false, NGHTTP2_PROTOCOL_ERROR }, /* not allowed in HTTP/2 */
                      { "a", true, NGHTTP2_INTERNAL_ERROR } };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                char value[3001] = { 0 };
                struct pair p;
                int turns = 0;

                memset(value, 'a', 2999);
                value[2999] = cases[i].last[0];
                open_pair(&p);
                while (!p.has_goaway && turns++ < 200) {
                        send_repeated(&p, value, cases[i].as_trailers);
                        ck_assert_msg(p.has_goaway || (p.has_reset && p.reset == cases[i].reset), "%zu: %u", i,
                                      p.reset);
                }
                ck_assert_uint_eq(p.goaway, NGHTTP2_ENHANCE_YOUR_CALM);
                ck_assert_int_le(turns, LIMIT_GRPC_FRAME_BURST / 10 + 1);
                close_pair(&p);
        }
}
END_TEST

START_TEST(headers_of_refused_streams_are_counted)
{
        char value[3001] = { 0 };
        struct memory_reservation all = { .use = MEMORY_CONNECTIONS };
        struct pair p;
        int turns = 0;

        ck_assert_int_eq(memory_budget_set_limit(LIMIT_MEMORY_LEAST_BYTES, NULL), ST_OK);
        memset(value, 'a', 3000);
        open_pair(&p);
        while (memory_reserve(&all, KiB(1), NULL) == ST_OK)
                continue;
        while (!p.has_goaway && turns++ < 200)
                send_repeated(&p, value, false);
        ck_assert_uint_eq(finished, 0);
        ck_assert_uint_eq(p.goaway, NGHTTP2_ENHANCE_YOUR_CALM);
        memory_release(&all);
        close_pair(&p);
}
END_TEST

START_TEST(stopping_session_finishes_open_calls)
{
        struct sent_data d = { .bytes = "\0\0\0\0\1", .size = 5 };
        struct pair p;

        open_pair(&p);
        begin_call(&p, "/t/T", &d, NO_MORE);
        grpc_session_shutdown(p.server);
        move_frames(&p);
        ck_assert(p.has_goaway && p.goaway == NGHTTP2_NO_ERROR);
        ck_assert(!grpc_session_has_ended(p.server));
        d = (struct sent_data){ .bytes = "x", .size = 1, .is_last = true };
        ck_assert_int_eq(nghttp2_session_resume_data(p.client, 1), 0);
        move_frames(&p);
        ck_assert_str_eq(p.grpc_status, "0");
        ck_assert(grpc_session_has_ended(p.server));
        close_pair(&p);
}
END_TEST

TEST_SUITE("grpc", timeouts_have_up_to_eight_digits_and_a_unit, messages_are_percent_encoded,
           details_are_a_status_with_retry_info, message_may_be_split_anywhere, a_long_message_is_refused_at_its_prefix,
           a_call_is_answered_and_finished_once, an_answer_before_the_end_of_the_message_resets_the_stream,
           call_over_rate_limit_is_refused_before_its_message, stalled_message_is_aborted, unread_response_is_aborted,
           client_timeout_is_applied, client_cancellation_ends_call, stream_delivers_each_message_and_end,
           a_stream_whose_token_is_revoked_ends_at_its_next_message,
           a_stream_whose_token_is_revoked_before_its_end_is_not_completed, a_stream_that_fails_is_abandoned,
           a_stream_whose_client_leaves_is_abandoned, a_stream_that_ends_within_a_message_is_refused,
           stream_stalled_between_messages_is_aborted, a_stream_of_empty_messages_is_refused,
           rapid_reset_closes_connection, many_honest_calls_keep_connection, refused_calls_do_not_refill_frame_bucket,
           honest_calls_do_not_permit_a_flood, endless_header_block_closes_connection,
           large_decoded_headers_end_stream_and_connection, headers_of_refused_streams_are_counted,
           stopping_session_finishes_open_calls)
