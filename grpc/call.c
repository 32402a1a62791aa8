/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of a call: grpc_call_create(), grpc_call_add_header() for each header, grpc_call_start() with all checks of
 * the headers (check_grpc_headers() has their order), grpc_call_receive() for its data, submit_grpc_task() for a
 * complete message. A pool thread runs run_grpc_call(), which unpacks the message and calls the handler;
 * return_grpc_call() puts the call into the dispatcher's list, and grpc_call_take_back() answers it or reads the next
 * message of the stream. A method that is answered at once, or has no pool, is handled on the connection thread
 * instead.
 *
 * A method without `stream` takes one message, which is submitted when the request has ended. With `stream`, each
 * message is submitted when complete, and `handle` is called once after the last one.
 *
 * A failed check sets `answered` (grpc_call_fail()) and the steps after it are skipped, so checks return no status.
 * States and owning threads are in grpc_internal.h; the response is in call_answer.c. Only the list of handled calls
 * needs a lock, that of the dispatcher: at any time one thread owns the call.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/compress/compress.h"
#include "common/compress/content_coding.h"
#include "common/program/log.h"
#include "grpc/grpc_internal.h"

#define SECOND_NS INT64_C(1000000000)

/* ---- creating and freeing ---- */

struct grpc_call *grpc_call_create(struct grpc_session *session, int32_t stream_id)
{
        struct grpc_call *call = calloc(1, sizeof *call);

        if (!call)
                return NULL;
        call->dispatcher = grpc_session_dispatcher(session);
        call->session = session;
        call->stream_id = stream_id;
        call->began_ns = monotonic_ns();
        call->code = GRPC_CANCELLED;
        call->deadline = (struct deadline){ .expires_ns = INT64_MAX, .cancelled = &call->cancelled };
        buf_init_budget(&call->headers, LIMIT_GRPC_HEADER_BYTES, MEMORY_CONNECTIONS);
        buf_init(&call->message, 0);
        buf_init(&call->pending, 0);
        buf_init(&call->reply, 0);
        grpc_session_copy_peer(session, call);
        return call;
}

static struct handler_pool *get_grpc_pool(const struct grpc_call *call)
{
        const struct grpc_options *o = &call->dispatcher->options;

        return call->method->at_once || !o->http ? NULL : http_server_get_pool(o->http, call->method->pool);
}

/* On the pool thread, if the call has a pool. */
static void abandon_grpc_stream(struct grpc_call *call)
{
        if (call->state_of_stream && call->method->abandon)
                call->method->abandon(call, call->dispatcher->options.context);
        call->state_of_stream = NULL;
}

static void return_grpc_call(struct grpc_call *call)
{
        struct grpc_dispatcher *d = call->dispatcher;
        const uint64_t one = 1;

        pthread_mutex_lock(&d->lock);
        STAILQ_INSERT_TAIL(&d->handled, call, handled);
        /* Under the lock, which the stop acquires before it closes the descriptor. */
        (void)!write(d->event_fd, &one, sizeof one);
        pthread_mutex_unlock(&d->lock);
}

static void run_grpc_abandon(struct pool_task *task)
{
        struct grpc_call *call = (struct grpc_call *)task;

        abandon_grpc_stream(call);
        return_grpc_call(call);
}

/* Freeing the received data of a stream may block. False: nothing to do in a pool. */
static bool abandon_in_pool(struct grpc_call *call)
{
        struct handler_pool *pool = call->state_of_stream ? get_grpc_pool(call) : NULL;

        call->session = NULL;
        call->task.run = run_grpc_abandon;
        if (pool && handler_pool_push(pool, &call->task)) {
                call->dispatcher->handling++;
                return true;
        }
        abandon_grpc_stream(call);
        return false;
}

void grpc_call_destroy(struct grpc_call *call)
{
        const struct grpc_options *o = &call->dispatcher->options;

        if (abandon_in_pool(call))
                return;
        if (call->state != CALL_ANSWERED) /* its stream has already ended */
                count_grpc_call(GRPC_CANCELLED);
        log_set_request(call->id);
        if (o->finished)
                o->finished(o->context, call);
        log_set_request(NULL);
        buf_deinit(&call->headers);
        buf_deinit(&call->message);
        buf_deinit(&call->pending);
        buf_deinit(&call->reply);
        free(call);
}

/* ---- headers ---- */

bool grpc_call_add_header(struct grpc_call *call, const char *name, const char *value)
{
        call->header_bytes += strlen(name) + strlen(value) + 32; /* RFC 9113, 6.5.2 */
        if (call->header_bytes > LIMIT_GRPC_HEADER_BYTES) {
                call->headers_too_big = true;
                return true;
        }
        if (strcmp(name, ":method") == 0)
                call->is_post = strcmp(value, "POST") == 0;
        else if (strcmp(name, ":path") == 0)
                snprintf(call->path, sizeof call->path, "%s", value);
        if (name[0] == ':')
                return true;
        buf_append(&call->headers, name, strlen(name) + 1);
        return !buf_append(&call->headers, value, strlen(value) + 1);
}

/* The first value of a header; returns the number of headers with this name. */
static unsigned find_metadata(const struct grpc_call *call, const char *name, const char **ret)
{
        const char *at = (const char *)call->headers.data, *end = at ? at + call->headers.size : NULL;
        unsigned count = 0;

        *ret = NULL;
        while (at < end) {
                const char *value = at + strlen(at) + 1;

                if (strcmp(at, name) == 0 && count++ == 0)
                        *ret = value;
                at = value + strlen(value) + 1;
        }
        return count;
}

const char *grpc_call_metadata(const struct grpc_call *call, const char *name)
{
        const char *value;

        (void)find_metadata(call, name, &value);
        return value;
}

unsigned grpc_call_count_metadata(const struct grpc_call *call, const char *name)
{
        const char *value;

        return find_metadata(call, name, &value);
}

/* "application/grpc", with "+proto" or parameters. */
static bool is_grpc_type(const char *type)
{
        static const char grpc[] = "application/grpc";
        size_t n = sizeof grpc - 1;

        if (!type || strncasecmp(type, grpc, n) != 0)
                return false;
        if (strncasecmp(type + n, "+proto", 6) == 0)
                n += 6;
        return !type[n] || type[n] == ';' || type[n] == ' ';
}

/* A response in plain HTTP, without gRPC status. */
static void fail_grpc_call_http(struct grpc_call *call, unsigned code)
{
        call->answered = true;
        call->http_code = code;
        call->code = GRPC_UNKNOWN;
}

static void find_grpc_method(struct grpc_call *call)
{
        const struct grpc_options *o = &call->dispatcher->options;

        for (size_t i = 0; i < o->method_count; i++)
                if (strcmp(o->methods[i].path, call->path) == 0)
                        call->method = &o->methods[i];
        if (!call->method)
                grpc_call_fail(call, GRPC_UNIMPLEMENTED, 0, "the method '%.200s' does not exist here", call->path);
}

static void find_grpc_token(struct grpc_call *call)
{
        const char *value = grpc_call_metadata(call, "authorization");

        if (grpc_call_count_metadata(call, "authorization") > 1) { /* a proxy may read another one than this server */
                grpc_call_fail(call, GRPC_INVALID_ARGUMENT, 0, "there are several authorization headers");
                return;
        }

        if (value && strncasecmp(value, "Bearer ", 7) == 0)
                call->token = value + 7 + strspn(value + 7, " ");
}

static void authorize_grpc_call(struct grpc_call *call)
{
        static const char *const names[] = { "", "read", "ingest", "upload", "history", "node", "admin" };
        const struct grpc_options *o = &call->dispatcher->options;
        enum http_scope scope = call->method->scope;

        switch (o->authorize ? o->authorize(o->context, call->token, scope, call->token_name) : ACCESS_GRANTED) {
        case ACCESS_GRANTED:
                break;
        case ACCESS_UNKNOWN:
                grpc_call_fail(call, GRPC_UNAUTHENTICATED, 0,
                               call->token ? "unknown token; send one with the scope '%s'"
                                           : "a token with the scope '%s' is needed: send authorization: Bearer TOKEN",
                               names[scope]);
                break;
        case ACCESS_DENIED:
                grpc_call_fail(call, GRPC_PERMISSION_DENIED, 0, "the token does not carry the scope '%s'",
                               names[scope]);
        }
}

static void check_grpc_access(struct grpc_call *call)
{
        const struct grpc_options *o = &call->dispatcher->options;
        struct error err;
        uint64_t wait_s;

        if (call->method->scope == SCOPE_NONE)
                return;
        wait_s = o->admit ? o->admit(o->context, call, &err) : 0;
        if (wait_s) {
                grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, wait_s, "%s", err.text);
                return;
        }
        call->admitted = true;
        authorize_grpc_call(call);
        call->task.sender = pool_sender_number(call->token, call->peer_number);
        if (!call->answered && o->choose_tenant)
                o->choose_tenant(o->context, call);
}

/* A stream may outlive its token: each message requires that it is still valid. */
static bool may_go_on(struct grpc_call *call)
{
        if (call->method->stream && call->method->scope != SCOPE_NONE)
                authorize_grpc_call(call);
        return !call->answered;
}

static bool is_identity(const char *coding)
{
        return !coding || strcmp(coding, "identity") == 0;
}

static void check_grpc_coding(struct grpc_call *call)
{
        static const char *const known[] = { "gzip", "deflate", "zstd", "snappy" };
        const char *coding = grpc_call_metadata(call, "grpc-encoding");
        bool is_known = is_identity(coding);

        for (size_t i = 0; !is_known && i < sizeof known / sizeof *known; i++)
                is_known = strcmp(coding, known[i]) == 0;
        if (!is_known)
                grpc_call_fail(call, GRPC_UNIMPLEMENTED, 0,
                               "the compression '%.40s' is not known; use gzip, zstd, snappy or none", coding);
}

static int64_t add_clamped(int64_t a, int64_t b)
{
        int64_t sum;

        return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Deadline from now: the client's timeout, and at most the limit of the pool (limit_s; 0: none). */
static void set_grpc_deadline(struct grpc_call *call, unsigned limit_s)
{
        int64_t now_ns = monotonic_ns(), limit_ns = limit_s ? add_clamped(now_ns, limit_s * SECOND_NS) : INT64_MAX;

        call->has_client_deadline = call->client_expires_ns < limit_ns;
        call->deadline.expires_ns = call->has_client_deadline ? call->client_expires_ns : limit_ns;
        call->deadline.timeout_s =
                call->has_client_deadline ? (uint64_t)(call->client_expires_ns - call->began_ns) / SECOND_NS : limit_s;
}

static unsigned get_grpc_limit(const struct grpc_call *call)
{
        struct handler_pool *pool = get_grpc_pool(call);

        return pool ? handler_pool_get_timeout(pool) : 0;
}

/* In a stream, the time limit of the pool applies to each message. */
static void read_grpc_timeout(struct grpc_call *call)
{
        const char *timeout = grpc_call_metadata(call, "grpc-timeout");
        int64_t ns = INT64_MAX;

        if (timeout && !parse_grpc_timeout(timeout, &ns)) {
                grpc_call_fail(call, GRPC_INVALID_ARGUMENT, 0, "grpc-timeout is not a number with a unit");
                return;
        }
        call->client_expires_ns = add_clamped(call->began_ns, ns);
        set_grpc_deadline(call, call->method->stream ? 0 : get_grpc_limit(call));
}

static void check_grpc_headers(struct grpc_call *call)
{
        if (call->headers_too_big) {
                grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, 0, "the headers are larger than %zu bytes",
                               (size_t)LIMIT_GRPC_HEADER_BYTES);
                return;
        }
        if (!call->is_post || !is_grpc_type(grpc_call_metadata(call, "content-type"))) {
                fail_grpc_call_http(call, call->is_post ? 415 : 405);
                return;
        }
        find_grpc_method(call);
        if (!call->answered)
                find_grpc_token(call);
        if (!call->answered)
                check_grpc_access(call);
        if (!call->answered)
                check_grpc_coding(call);
        if (!call->answered)
                read_grpc_timeout(call);
        if (!call->answered && call->method->refuse)
                call->method->refuse(call, call->dispatcher->options.context);
}

static void begin_grpc_message(struct grpc_call *call)
{
        call->state = CALL_READING;
        call->message_began_ns = monotonic_ns();
        call->message_began_bytes = call->received_bytes;
        call->reader = (struct message_reader){ 0 };
        buf_deinit(&call->message);
        buf_init_budget(&call->message, call->method->max_message, call->method->memory);
        call->message.memory.group = call->message_group;
}

void grpc_call_start(struct grpc_call *call)
{
        call->state = CALL_READING;
        request_id_choose(grpc_call_count_metadata(call, "x-request-id") == 1 ? grpc_call_metadata(call, "x-request-id")
                                                                              : NULL,
                          call->id);
        log_set_request(call->id);
        check_grpc_headers(call);
        log_set_request(NULL);
        if (call->answered) {
                grpc_call_submit_answer(call);
                return;
        }
        begin_grpc_message(call);
        buf_init_budget(&call->pending, 2 * LIMIT_GRPC_WINDOW_BYTES, call->method->memory);
}

/* ---- the message ---- */

static void submit_grpc_task(struct grpc_call *call);

static void free_received(struct grpc_call *call)
{
        buf_deinit(&call->message);
        buf_deinit(&call->pending);
}

static void fail_reading(struct grpc_call *call, enum status st, const struct error *err)
{
        free_received(call);
        grpc_call_fail_status(call, st, err);
        grpc_call_submit_answer(call);
}

/* Each message costs a turn of the pool. */
static bool has_small_messages(struct grpc_call *call)
{
        return ++call->messages > LIMIT_GRPC_SMALL_MESSAGES + call->received_bytes / LIMIT_GRPC_SMALL_MESSAGE_BYTES;
}

/* Returns at a complete message, or when all bytes are consumed. */
static size_t read_stream_messages(struct grpc_call *call, const uint8_t *data, size_t n)
{
        struct error err;
        size_t at = 0, used;

        while (at < n && call->state == CALL_READING) {
                enum status st = message_reader_feed(&call->reader, data + at, n - at, &call->message, &used, &err);

                if (st) {
                        fail_reading(call, st, &err);
                        break;
                }
                at += used;
                call->received_bytes += used;
                if (!message_reader_is_complete(&call->reader, &call->message))
                        continue;
                if (has_small_messages(call))
                        fail_reading(call,
                                     error_set(&err, ST_TOO_BIG, "more than %d messages of less than %d bytes",
                                               LIMIT_GRPC_SMALL_MESSAGES, LIMIT_GRPC_SMALL_MESSAGE_BYTES),
                                     &err);
                else
                        submit_grpc_task(call);
        }
        return call->state == CALL_ANSWERED ? n : at;
}

/*
 * Keep unconsumed bytes: at most one flow-control window, plus as many consumed bytes before them. Failures are
 * recorded in the buffer.
 */
static void keep_pending(struct grpc_call *call, const uint8_t *data, size_t n)
{
        struct buf *b = &call->pending;

        if (call->pending_used && call->pending_used >= b->size / 2) {
                memmove(b->data, b->data + call->pending_used, b->size - call->pending_used);
                b->size -= call->pending_used;
                call->pending_used = 0;
        }
        (void)!buf_append(b, data, n);
}

static size_t receive_stream(struct grpc_call *call, const uint8_t *data, size_t n)
{
        size_t used = 0;

        if (call->state == CALL_READING)
                used = read_stream_messages(call, data, n);
        else if (call->state != CALL_HANDLING)
                used = n;
        if (used < n)
                keep_pending(call, data + used, n - used);
        return used;
}

size_t grpc_call_receive(struct grpc_call *call, const uint8_t *data, size_t n)
{
        struct error err;
        enum status st;
        size_t used = 0;

        if (call->method && call->method->stream)
                return receive_stream(call, data, n);
        if (call->state != CALL_READING)
                return n;
        call->received_bytes += n;
        st = message_reader_feed(&call->reader, data, n, &call->message, &used, &err);
        if (!st && used < n)
                st = error_set(&err, ST_BAD_DATA, "'%s' takes one message", call->path);
        if (st)
                fail_reading(call, st, &err);
        return n;
}

static enum status unpack_grpc_message(struct grpc_call *call, struct error *err)
{
        const char *coding = grpc_call_metadata(call, "grpc-encoding");
        _cleanup_buf_ struct buf out;
        enum status st;

        buf_init_budget(&out, call->method->max_message, call->method->memory);
        out.memory.group = call->message_group;
        if (!call->reader.is_compressed)
                return ST_OK;
        if (is_identity(coding))
                return error_set(err, ST_BAD_DATA, "the message is compressed, but grpc-encoding is missing");
        if (strcmp(coding, "zstd") == 0)
                st = zstd_decompress(call->message.data, call->message.size, &out, err);
        else if (strcmp(coding, "snappy") == 0)
                st = content_coding_decode(coding, call->message.data, call->message.size, &out, err);
        else
                st = gzip_decompress(call->message.data, call->message.size, &out, err);
        if (out.failed == ST_BUSY)
                return buf_status(&out, err, "a message");
        if (st == ST_TOO_BIG)
                error_set(err, st, "the message is larger than %zu bytes after unpacking", call->method->max_message);
        if (st)
                return error_prefix(err, st, "cannot unpack the message");
        call->unpacked_bytes += out.size;
        buf_deinit(&call->message);
        call->message = out;
        buf_init(&out, 0);
        return ST_OK;
}

static void handle_grpc_call(struct grpc_call *call)
{
        void *context = call->dispatcher->options.context;
        struct error err;
        enum status st = unpack_grpc_message(call, &err);

        log_set_request(call->id);
        if (st) {
                grpc_call_fail_status(call, st, &err);
        } else if (!call->has_all_messages) {
                call->method->stream(call, context);
        } else {
                call->method->handle(call, context);
                call->state_of_stream = NULL;
        }
        log_set_request(NULL);
        if (!st && !call->has_all_messages)
                return;
        if (!call->answered)
                grpc_call_fail(call, GRPC_INTERNAL, 0, "the handler did not respond");
}

/* On a pool thread. */
static void run_grpc_call(struct pool_task *task)
{
        struct grpc_call *call = (struct grpc_call *)task;

        if (!deadline_expired(&call->deadline))
                handle_grpc_call(call);
        else if (call->has_client_deadline)
                grpc_call_fail(call, GRPC_DEADLINE_EXCEEDED, 0, "no thread became free before the client's deadline");
        else
                grpc_call_fail(call, GRPC_UNAVAILABLE, GRPC_RETRY_LATER_S, "no thread became free in time");
        buf_deinit(&call->message);
        if (call->answered)
                abandon_grpc_stream(call);
        return_grpc_call(call);
}

/* The handler returned from a message of a stream: read the next one, or end the request. */
static void resume_stream(struct grpc_call *call)
{
        struct buf *pending = &call->pending;
        size_t used = 0;
        struct error err;

        begin_grpc_message(call);
        set_grpc_deadline(call, 0);
        if (buf_status(pending, &err, "a message"))
                fail_reading(call, pending->failed, &err);
        else if (pending->size)
                used = read_stream_messages(call, pending->data + call->pending_used,
                                            pending->size - call->pending_used);
        (void)!nghttp2_session_consume_stream(grpc_session_http2(call->session), call->stream_id, used);
        call->pending_used += used;
        if (call->state != CALL_READING)
                return;
        buf_clear(pending);
        call->pending_used = 0;
        if (call->has_ended)
                grpc_call_end_request(call);
}

void grpc_call_take_back(struct grpc_call *call)
{
        if (!call->session)
                grpc_call_destroy(call);
        else if (call->answered)
                grpc_call_submit_answer(call);
        else
                resume_stream(call);
}

/*
 * Dispatch the message, or the end of stream. If handled synchronously, the call is answered or reading again on
 * return.
 */
static void submit_grpc_task(struct grpc_call *call)
{
        struct handler_pool *pool = get_grpc_pool(call);
        struct error err;

        call->arrived_ns = monotonic_ns();
        if (call->method->stream)
                set_grpc_deadline(call, get_grpc_limit(call));
        if (!may_go_on(call)) {
                buf_deinit(&call->message);
                grpc_call_submit_answer(call);
                return;
        }
        if (pool) {
                call->state = CALL_HANDLING;
                call->task.run = run_grpc_call;
                if (!handler_pool_submit(pool, &call->task, &err)) {
                        call->dispatcher->handling++;
                        return;
                }
                grpc_call_fail(call, GRPC_UNAVAILABLE, GRPC_RETRY_LATER_S, "%s", err.text);
        } else {
                handle_grpc_call(call);
        }
        buf_deinit(&call->message);
        if (call->answered)
                grpc_call_submit_answer(call);
        else
                begin_grpc_message(call);
}

/* Whether the request ended early: a stream inside a message, another call before its only message was complete. */
static bool is_cut_off(const struct grpc_call *call)
{
        if (call->method->stream)
                return call->reader.prefix_size > 0;
        return !message_reader_is_complete(&call->reader, &call->message);
}

void grpc_call_end_request(struct grpc_call *call)
{
        call->has_ended = true;
        if (call->state != CALL_READING)
                return;
        if (is_cut_off(call)) {
                grpc_call_fail(call, GRPC_INVALID_ARGUMENT, 0,
                               call->reader.prefix_size ? "the message is cut off" : "there is no message");
                grpc_call_submit_answer(call);
                return;
        }
        call->has_all_messages = true;
        submit_grpc_task(call);
}

static bool is_slower_than_allowed(int64_t passed_ns, uint64_t bytes)
{
        int64_t late_s = passed_ns / SECOND_NS - LIMIT_HTTP_SLOW_S;

        return late_s > 0 && bytes < (uint64_t)late_s * LIMIT_HTTP_LEAST_BYTES_PER_S;
}

void grpc_call_check_time(struct grpc_call *call, int64_t now_ns)
{
        if (call->state == CALL_ANSWERED && now_ns - call->answered_ns >= LIMIT_HTTP_SLOW_S * SECOND_NS) {
                call->answered_ns = INT64_MAX; /* only once */
                (void)!nghttp2_submit_rst_stream(grpc_session_http2(call->session), NGHTTP2_FLAG_NONE, call->stream_id,
                                                 NGHTTP2_CANCEL);
        }
        if (call->state != CALL_READING)
                return;
        if (now_ns >= call->deadline.expires_ns)
                grpc_call_fail(call, GRPC_DEADLINE_EXCEEDED, 0, "the message did not arrive in time");
        else if (is_slower_than_allowed(now_ns - call->began_ns, call->received_bytes) ||
                 is_slower_than_allowed(now_ns - call->message_began_ns,
                                        call->received_bytes - call->message_began_bytes))
                grpc_call_fail(call, GRPC_DEADLINE_EXCEEDED, 0, "the message arrives at less than %zu bytes per second",
                               (size_t)LIMIT_HTTP_LEAST_BYTES_PER_S);
        else
                return;
        free_received(call);
        grpc_call_submit_answer(call);
}

/* ---- accessors for handlers ---- */

const char *grpc_call_path(const struct grpc_call *call)
{
        return call->path;
}

const struct grpc_method *grpc_call_method(const struct grpc_call *call)
{
        return call->method;
}

const uint8_t *grpc_call_message(const struct grpc_call *call, size_t *size_ret)
{
        *size_ret = call->message.size;
        return call->message.data;
}

void grpc_call_set_state(struct grpc_call *call, void *state)
{
        call->state_of_stream = state;
}

void *grpc_call_state(const struct grpc_call *call)
{
        return call->state_of_stream;
}

const char *grpc_call_token(const struct grpc_call *call)
{
        return call->token;
}

void grpc_call_set_tenant(struct grpc_call *call, void *tenant, unsigned lane)
{
        call->task.lane = lane;
        call->tenant = tenant;
}

void grpc_call_set_message_group(struct grpc_call *call, struct memory_group *group)
{
        call->message_group = group;
}

void *grpc_call_tenant(const struct grpc_call *call)
{
        return call->tenant;
}

const char *grpc_call_token_name(const struct grpc_call *call)
{
        return call->token_name;
}

const char *grpc_call_peer(const struct grpc_call *call)
{
        return call->peer;
}

uint64_t grpc_call_peer_number(const struct grpc_call *call)
{
        return call->peer_number;
}

uint64_t grpc_call_received_bytes(const struct grpc_call *call)
{
        return call->unpacked_bytes > call->received_bytes ? call->unpacked_bytes : call->received_bytes;
}

int64_t grpc_call_arrived_ns(const struct grpc_call *call)
{
        return call->arrived_ns;
}

bool grpc_call_is_admitted(const struct grpc_call *call)
{
        return call->admitted;
}

enum grpc_code grpc_call_code(const struct grpc_call *call)
{
        return call->code;
}

const struct deadline *grpc_call_deadline(const struct grpc_call *call)
{
        return &call->deadline;
}
