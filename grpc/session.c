/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2 of one connection.
 *
 * Memory: a session reserves LIMIT_GRPC_CONNECTION_BYTES of the budget, and LIMIT_GRPC_CALL_BYTES for each stream, for
 * what nghttp2 and TLS allocate (an idle connection 14 KiB, with TLS 44); headers and messages are in buffers with
 * reservations of their own. Output that a peer can make nghttp2 queue is bounded because no input is read while output
 * is blocked (grpc_server.c), and because queued acknowledgements are bounded (LIMIT_GRPC_ACKS).
 *
 * Flood limit: each frame without data (SETTINGS, PING, PRIORITY, WINDOW_UPDATE, RST_STREAM, HEADERS, an empty DATA)
 * takes from a token bucket, which is refilled over time and by successful calls; when it is empty the connection ends
 * with ENHANCE_YOUR_CALM. This stops rapid reset (CVE-2023-44487) and ping floods.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/metrics.h"
#include "grpc/grpc_internal.h"
#include "http/peer_key.h"

#define RESET_COST 10                              /* a reset stream counts as this many frames */
#define CALL_CREDIT 4                              /* frames of a usual call */
#define BLOCK_MOST (2 * LIMIT_GRPC_HEADER_BYTES)   /* a header block as sent; beyond it the connection ends */
#define HEADERS_MOST (4 * LIMIT_GRPC_HEADER_BYTES) /* decompressed; beyond it a header block is not read to its end */
#define SECOND_NS INT64_C(1000000000)

struct grpc_session {
        struct grpc_dispatcher *dispatcher;
        nghttp2_session *h2;
        void *owner;
        TAILQ_HEAD(, grpc_call) calls;
        struct memory_reservation memory;
        char peer[46];
        uint64_t peer_number;
        bool is_established, is_flooding, is_stopping;
        int64_t frames_left; /* token bucket */
        int64_t filled_ns;
        size_t block_bytes, header_bytes; /* current header block: as sent, and decompressed */
};

#define ENDED_BY(reason)                                                                                               \
        METRIC_COUNTER("cairn_grpc_connections_ended_total", "Connections ended by the server.",                       \
                       "reason=\"" reason "\"")
static struct metric ended_flood = ENDED_BY("flood"), ended_protocol = ENDED_BY("protocol");

/* ---- flood limit ---- */

static void fill_frame_bucket(struct grpc_session *s)
{
        int64_t now = monotonic_ns(), seconds = (now - s->filled_ns) / SECOND_NS;

        if (seconds <= 0)
                return;
        s->filled_ns += seconds * SECOND_NS;
        s->frames_left += seconds < LIMIT_GRPC_FRAME_BURST ? seconds * LIMIT_GRPC_FRAMES_PER_S : LIMIT_GRPC_FRAME_BURST;
        if (s->frames_left > LIMIT_GRPC_FRAME_BURST)
                s->frames_left = LIMIT_GRPC_FRAME_BURST;
}

static void charge_frames(struct grpc_session *s, int64_t cost)
{
        fill_frame_bucket(s);
        s->frames_left -= cost;
        if (s->frames_left >= 0 || s->is_flooding)
                return;
        s->is_flooding = true;
        metric_add(&ended_flood, 1);
        (void)!nghttp2_session_terminate_session(s->h2, NGHTTP2_ENHANCE_YOUR_CALM);
}

static int64_t get_frame_cost(const nghttp2_frame *frame)
{
        switch (frame->hd.type) {
        case NGHTTP2_DATA:
                return frame->hd.length == 0 && !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
        case NGHTTP2_RST_STREAM:
                return RESET_COST;
        default:
                return 1;
        }
}

/* ---- calls ---- */

/* Unauthenticated responses earn no credit in the flood limit. */
static void credit_call(struct grpc_session *s, const struct grpc_call *call)
{
        if (!call->admitted || call->state != CALL_ANSWERED || call->code != GRPC_OK)
                return;
        s->frames_left += CALL_CREDIT;
        if (s->frames_left > LIMIT_GRPC_FRAME_BURST)
                s->frames_left = LIMIT_GRPC_FRAME_BURST;
}

/* The stream of a call, or its session, has ended. */
static void remove_session_call(struct grpc_session *s, struct grpc_call *call)
{
        TAILQ_REMOVE(&s->calls, call, of_session);
        memory_shrink(&s->memory, s->memory.bytes - LIMIT_GRPC_CALL_BYTES);
        credit_call(s, call);
        atomic_store(&call->cancelled, true);
        if (call->state == CALL_HANDLING)
                call->session = NULL;
        else
                grpc_call_destroy(call);
}

/* ---- nghttp2's callbacks ---- */

static struct grpc_call *get_stream_call(struct grpc_session *s, int32_t stream_id)
{
        return stream_id ? nghttp2_session_get_stream_user_data(s->h2, stream_id) : NULL;
}

/* nghttp2 buffers an incomplete header, in memory that is part of LIMIT_GRPC_CONNECTION_BYTES. */
static int on_h2_begin_frame(nghttp2_session *h2, const nghttp2_frame_hd *hd, void *context)
{
        struct grpc_session *s = context;

        (void)h2;
        if (hd->type == NGHTTP2_HEADERS)
                s->block_bytes = hd->length;
        else if (hd->type == NGHTTP2_CONTINUATION)
                s->block_bytes += hd->length;
        else
                return 0;
        return s->block_bytes <= BLOCK_MOST ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* When out of memory the stream is refused, and may be retried. nghttp2 enforces the number of streams. */
static int on_h2_begin_headers(nghttp2_session *h2, const nghttp2_frame *frame, void *context)
{
        struct grpc_session *s = context;
        struct grpc_call *call;

        s->header_bytes = 0;
        if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
                return 0;
        if (s->is_stopping || s->is_flooding || memory_reserve(&s->memory, LIMIT_GRPC_CALL_BYTES, NULL))
                call = NULL;
        else if (!(call = grpc_call_create(s, frame->hd.stream_id)))
                memory_shrink(&s->memory, s->memory.bytes - LIMIT_GRPC_CALL_BYTES);
        if (!call)
                return nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
        TAILQ_INSERT_TAIL(&s->calls, call, of_session);
        return nghttp2_session_set_stream_user_data(h2, frame->hd.stream_id, call);
}

/*
 * HPACK can repeat a header of 4 KiB with one byte, so a block of 16 KiB can expand to 64 MiB, all of which would be
 * processed: in headers of a call, in trailers, and in those of refused streams.
 */
static bool fits_header_block(struct grpc_session *s, size_t name_size, size_t value_size)
{
        s->header_bytes += name_size + value_size + 32; /* RFC 9113, 6.5.2 */
        if (s->header_bytes <= HEADERS_MOST)
                return true;
        charge_frames(s, RESET_COST);
        return false;
}

static int on_h2_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name, size_t name_size,
                        const uint8_t *value, size_t value_size, uint8_t flags, void *context)
{
        struct grpc_call *call = get_stream_call(context, frame->hd.stream_id);

        (void)h2;
        (void)flags;
        if (!fits_header_block(context, name_size, value_size))
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        if (!call || call->state != CALL_HEADERS) /* trailers are ignored */
                return 0;
        return grpc_call_add_header(call, (const char *)name, (const char *)value)
                       ? 0
                       : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

/* A header that HTTP does not allow; it is ignored. */
static int on_h2_invalid_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name, size_t name_size,
                                const uint8_t *value, size_t value_size, uint8_t flags, void *context)
{
        (void)h2;
        (void)frame;
        (void)name;
        (void)value;
        (void)flags;
        return fits_header_block(context, name_size, value_size) ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_h2_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *context)
{
        struct grpc_session *s = context;
        struct grpc_call *call = get_stream_call(s, frame->hd.stream_id);

        (void)h2;
        charge_frames(s, get_frame_cost(frame));
        if (frame->hd.type == NGHTTP2_SETTINGS)
                s->is_established = true;
        if (!call || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
                return 0;
        if (call->state == CALL_HEADERS)
                grpc_call_start(call);
        if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
                grpc_call_end_request(call);
        return 0;
}

static int on_h2_invalid_frame(nghttp2_session *h2, const nghttp2_frame *frame, int error, void *context)
{
        (void)h2;
        (void)frame;
        (void)error;
        charge_frames(context, RESET_COST);
        return 0;
}

static int on_h2_data(nghttp2_session *h2, uint8_t flags, int32_t stream_id, const uint8_t *data, size_t n,
                      void *context)
{
        struct grpc_call *call = get_stream_call(context, stream_id);
        size_t used = call ? grpc_call_receive(call, data, n) : n;

        (void)flags;
        if (nghttp2_session_consume_connection(h2, n) == NGHTTP2_ERR_NOMEM ||
            nghttp2_session_consume_stream(h2, stream_id, used) == NGHTTP2_ERR_NOMEM)
                return NGHTTP2_ERR_CALLBACK_FAILURE;
        return 0;
}

/* A response sent before the end of the request: the client need not send the rest. */
static int on_h2_frame_sent(nghttp2_session *h2, const nghttp2_frame *frame, void *context)
{
        struct grpc_call *call = get_stream_call(context, frame->hd.stream_id);

        if (!call || frame->hd.type != NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
            call->has_ended)
                return 0;
        return nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
}

static int on_h2_stream_close(nghttp2_session *h2, int32_t stream_id, uint32_t code, void *context)
{
        struct grpc_session *s = context;
        struct grpc_call *call = get_stream_call(s, stream_id);

        (void)h2;
        (void)code;
        if (call)
                remove_session_call(s, call);
        return 0;
}

nghttp2_session *grpc_session_http2(struct grpc_session *s)
{
        return s->h2;
}

struct grpc_dispatcher *grpc_session_dispatcher(struct grpc_session *s)
{
        return s->dispatcher;
}

void grpc_session_copy_peer(const struct grpc_session *s, struct grpc_call *call)
{
        memcpy(call->peer, s->peer, sizeof call->peer);
        call->peer_number = s->peer_number;
}

/* ---- the connection ---- */

void *grpc_session_owner(const struct grpc_session *s)
{
        return s->owner;
}

enum status grpc_session_receive(struct grpc_session *s, const uint8_t *data, size_t n, struct error *err)
{
        ssize_t used = nghttp2_session_mem_recv(s->h2, data, n);

        if (used < 0)
                metric_add(used == NGHTTP2_ERR_FLOODED ? &ended_flood : &ended_protocol, 1);
        if (used < 0)
                return error_set(err, ST_BAD_DATA, "not HTTP/2: %s", nghttp2_strerror((int)used));
        return ST_OK;
}

enum status grpc_session_put_output(struct grpc_session *s, struct buf *to, struct error *err)
{
        while (to->size < LIMIT_GRPC_OUTPUT_BYTES) {
                const uint8_t *data;
                ssize_t n = nghttp2_session_mem_send(s->h2, &data);

                if (n < 0)
                        return error_set(err, ST_BAD_DATA, "HTTP/2: %s", nghttp2_strerror((int)n));
                if (n == 0)
                        break;
                if (buf_append(to, data, (size_t)n))
                        return buf_status(to, err, "output");
        }
        return ST_OK;
}

bool grpc_session_has_ended(const struct grpc_session *s)
{
        return !nghttp2_session_want_read(s->h2) && !nghttp2_session_want_write(s->h2);
}

bool grpc_session_is_established(const struct grpc_session *s)
{
        return s->is_established;
}

struct grpc_activity grpc_session_get_activity(const struct grpc_session *s)
{
        struct grpc_activity ret = { 0 };
        const struct grpc_call *call;

        TAILQ_FOREACH(call, &s->calls, of_session)
        {
                ret.is_reading |= call->state == CALL_HEADERS || call->state == CALL_READING;
                ret.is_handling |= call->state == CALL_HANDLING;
                ret.is_sending |= call->state == CALL_ANSWERED;
                if (call->state == CALL_READING)
                        ret.held_bytes += call->message.memory.bytes + call->pending.memory.bytes;
        }
        return ret;
}

/* Open streams are finished. */
void grpc_session_shutdown(struct grpc_session *s)
{
        if (s->is_stopping)
                return;
        s->is_stopping = true;
        (void)!nghttp2_submit_goaway(s->h2, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(s->h2),
                                     NGHTTP2_NO_ERROR, NULL, 0);
}

void grpc_session_check_times(struct grpc_session *s, int64_t now_ns)
{
        struct grpc_call *call, *next;

        for (call = TAILQ_FIRST(&s->calls); call; call = next) {
                next = TAILQ_NEXT(call, of_session);
                grpc_call_check_time(call, now_ns);
        }
}

static enum status submit_settings(struct grpc_session *s, struct error *err)
{
        const nghttp2_settings_entry settings[] = {
                { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, LIMIT_GRPC_STREAMS },
                { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, LIMIT_GRPC_WINDOW_BYTES },
                { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LIMIT_GRPC_HEADER_BYTES },
                { NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
        };

        if (nghttp2_submit_settings(s->h2, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings) ||
            nghttp2_session_set_local_window_size(s->h2, NGHTTP2_FLAG_NONE, 0, LIMIT_GRPC_WINDOW_BYTES))
                return error_no_memory(err);
        return ST_OK;
}

static enum status create_http2(struct grpc_session *s, struct error *err)
{
        nghttp2_session_callbacks *callbacks = NULL;
        nghttp2_option *option = NULL;
        int failed = nghttp2_session_callbacks_new(&callbacks) || nghttp2_option_new(&option);

        if (!failed) {
                nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_h2_begin_frame);
                nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_h2_begin_headers);
                nghttp2_session_callbacks_set_on_header_callback(callbacks, on_h2_header);
                nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, on_h2_invalid_header);
                nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_h2_frame);
                nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_h2_invalid_frame);
                nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_h2_data);
                nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_h2_frame_sent);
                nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_h2_stream_close);
                nghttp2_option_set_no_auto_window_update(option, 1);
                nghttp2_option_set_no_closed_streams(option, 1);
                nghttp2_option_set_max_outbound_ack(option, LIMIT_GRPC_ACKS);
                nghttp2_option_set_max_settings(option, LIMIT_GRPC_SETTINGS);
                failed = nghttp2_session_server_new2(&s->h2, callbacks, s, option);
        }
        nghttp2_option_del(option);
        nghttp2_session_callbacks_del(callbacks);
        return failed ? error_no_memory(err) : submit_settings(s, err);
}

static void set_session_peer(struct grpc_session *s, const struct sockaddr *peer)
{
        struct peer_key key = peer_key_from_address(peer);
        socklen_t n = peer->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

        s->peer_number = peer_key_hash(&key);
        if (getnameinfo(peer, n, s->peer, sizeof s->peer, NULL, 0, NI_NUMERICHOST))
                s->peer[0] = 0;
}

enum status grpc_session_create(struct grpc_dispatcher *dispatcher, const struct sockaddr *peer, void *owner,
                                struct grpc_session **ret, struct error *err)
{
        struct grpc_session *s = calloc(1, sizeof *s);
        enum status st;

        if (!s)
                return error_no_memory(err);
        TAILQ_INIT(&s->calls);
        s->dispatcher = dispatcher;
        s->owner = owner;
        s->frames_left = LIMIT_GRPC_FRAME_BURST;
        s->filled_ns = monotonic_ns();
        s->memory.use = MEMORY_CONNECTIONS;
        set_session_peer(s, peer);
        metric_register(&ended_flood);
        metric_register(&ended_protocol);
        st = memory_reserve(&s->memory, LIMIT_GRPC_CONNECTION_BYTES, err);
        if (!st)
                st = create_http2(s, err);
        if (st)
                grpc_session_destroy(s);
        else
                *ret = s;
        return st;
}

void grpc_session_destroy(struct grpc_session *s)
{
        struct grpc_call *call;

        if (!s)
                return;
        while ((call = TAILQ_FIRST(&s->calls)))
                remove_session_call(s, call);
        nghttp2_session_del(s->h2);
        memory_release(&s->memory);
        free(s);
}
