/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/compress.h"
#include "common/content_coding.h"
#include "common/metrics.h"
#include "grpc/grpc_internal.h"

#define RETRY_LATER_S 5 /* RetryInfo of what is busy */
#define ACCEPTED_CODINGS "identity,gzip,deflate,zstd,snappy"
#define SECOND_NS INT64_C(1000000000)

#define CALLS(code) METRIC_COUNTER("cairn_grpc_calls_total", "Calls, by status code.", "code=\"" code "\"")
static struct metric calls_by_code[GRPC_CODES] = {
        [GRPC_OK] = CALLS("ok"),
        [GRPC_CANCELLED] = CALLS("cancelled"),
        [GRPC_UNKNOWN] = CALLS("unknown"),
        [GRPC_INVALID_ARGUMENT] = CALLS("invalid_argument"),
        [GRPC_DEADLINE_EXCEEDED] = CALLS("deadline_exceeded"),
        [GRPC_NOT_FOUND] = CALLS("not_found"),
        [GRPC_ALREADY_EXISTS] = CALLS("already_exists"),
        [GRPC_PERMISSION_DENIED] = CALLS("permission_denied"),
        [GRPC_RESOURCE_EXHAUSTED] = CALLS("resource_exhausted"),
        [GRPC_FAILED_PRECONDITION] = CALLS("failed_precondition"),
        [GRPC_ABORTED] = CALLS("aborted"),
        [GRPC_OUT_OF_RANGE] = CALLS("out_of_range"),
        [GRPC_UNIMPLEMENTED] = CALLS("unimplemented"),
        [GRPC_INTERNAL] = CALLS("internal"),
        [GRPC_UNAVAILABLE] = CALLS("unavailable"),
        [GRPC_DATA_LOSS] = CALLS("data_loss"),
        [GRPC_UNAUTHENTICATED] = CALLS("unauthenticated"),
};

void register_grpc_call_metrics(void)
{
        for (size_t i = 0; i < GRPC_CODES; i++)
                metric_register(&calls_by_code[i]);
}

/* ---- coming and going ---- */

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
        buf_init(&call->reply, 0);
        grpc_session_copy_peer(session, call);
        return call;
}

void grpc_call_destroy(struct grpc_call *call)
{
        const struct grpc_options *o = &call->dispatcher->options;

        if (call->state != CALL_ANSWERED) /* its stream has ended before */
                metric_add(&calls_by_code[GRPC_CANCELLED], 1);
        if (o->finished)
                o->finished(o->context, call);
        buf_deinit(&call->headers);
        buf_deinit(&call->message);
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

const char *grpc_call_metadata(const struct grpc_call *call, const char *name)
{
        const char *at = (const char *)call->headers.data, *end = at ? at + call->headers.size : NULL;

        while (at < end) {
                const char *value = at + strlen(at) + 1;

                if (strcmp(at, name) == 0)
                        return value;
                at = value + strlen(value) + 1;
        }
        return NULL;
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

/* An answer that only HTTP has. */
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

        if (value && strncasecmp(value, "Bearer ", 7) == 0)
                call->token = value + 7 + strspn(value + 7, " ");
}

static void check_grpc_access(struct grpc_call *call)
{
        static const char *const names[] = { "", "read", "ingest", "upload", "history", "admin" };
        const struct grpc_options *o = &call->dispatcher->options;
        enum http_scope scope = call->method->scope;
        struct error err;
        uint64_t wait_s;

        if (scope == SCOPE_NONE)
                return;
        wait_s = o->admit ? o->admit(o->context, call, &err) : 0;
        if (wait_s) {
                grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, wait_s, "%s", err.text);
                return;
        }
        call->admitted = true;
        switch (o->authorize ? o->authorize(o->context, call->token, scope, call->token_name) : ACCESS_GRANTED) {
        case ACCESS_GRANTED:
                break;
        case ACCESS_UNKNOWN:
                grpc_call_fail(call, GRPC_UNAUTHENTICATED, 0,
                               call->token ? "the token is not known here; send one with the scope '%s'"
                                           : "a token with the scope '%s' is needed: send authorization: Bearer TOKEN",
                               names[scope]);
                break;
        case ACCESS_DENIED:
                grpc_call_fail(call, GRPC_PERMISSION_DENIED, 0, "the token does not carry the scope '%s'",
                               names[scope]);
        }
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

static void set_grpc_deadline(struct grpc_call *call)
{
        const char *timeout = grpc_call_metadata(call, "grpc-timeout");
        const struct grpc_options *o = &call->dispatcher->options;
        unsigned limit_s = o->http && !call->method->at_once
                                   ? handler_pool_get_timeout(http_server_get_pool(o->http, call->method->pool))
                                   : 0;
        int64_t ns = INT64_MAX, expires_ns;

        if (timeout && !parse_grpc_timeout(timeout, &ns)) {
                grpc_call_fail(call, GRPC_INVALID_ARGUMENT, 0, "grpc-timeout is no number with a unit");
                return;
        }
        call->has_client_deadline = timeout && (!limit_s || ns < limit_s * SECOND_NS);
        if (!call->has_client_deadline)
                ns = limit_s ? limit_s * SECOND_NS : INT64_MAX;
        call->deadline.timeout_s = (uint64_t)ns / SECOND_NS;
        call->deadline.expires_ns = __builtin_add_overflow(call->began_ns, ns, &expires_ns) ? INT64_MAX : expires_ns;
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
        find_grpc_token(call);
        find_grpc_method(call);
        if (!call->answered)
                check_grpc_access(call);
        if (!call->answered)
                check_grpc_coding(call);
        if (!call->answered)
                set_grpc_deadline(call);
}

void grpc_call_start(struct grpc_call *call)
{
        call->state = CALL_READING;
        check_grpc_headers(call);
        if (call->answered)
                grpc_call_submit_answer(call);
        else
                buf_init_budget(&call->message, call->method->max_message, call->method->memory);
}

/* ---- the message ---- */

void grpc_call_receive(struct grpc_call *call, const uint8_t *data, size_t n)
{
        struct error err;
        enum status st;
        size_t used = 0;

        if (call->state != CALL_READING)
                return;
        call->received_bytes += n;
        st = message_reader_feed(&call->reader, data, n, &call->message, &used, &err);
        if (!st && used < n)
                st = error_set(&err, ST_BAD_DATA, "'%s' takes one message", call->path);
        if (!st)
                return;
        buf_deinit(&call->message);
        grpc_call_fail_status(call, st, &err);
        grpc_call_submit_answer(call);
}

static enum status unpack_grpc_message(struct grpc_call *call, struct error *err)
{
        const char *coding = grpc_call_metadata(call, "grpc-encoding");
        _cleanup_buf_ struct buf out;
        enum status st;

        buf_init_budget(&out, call->method->max_message, call->method->memory);
        if (!call->reader.is_compressed)
                return ST_OK;
        if (is_identity(coding))
                return error_set(err, ST_BAD_DATA, "the message is compressed, and no grpc-encoding says how");
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
        call->unpacked_bytes = out.size;
        buf_deinit(&call->message);
        call->message = out;
        buf_init(&out, 0);
        return ST_OK;
}

static void handle_grpc_call(struct grpc_call *call)
{
        struct error err;
        enum status st = unpack_grpc_message(call, &err);

        if (st)
                grpc_call_fail_status(call, st, &err);
        else
                call->method->handle(call, call->dispatcher->options.context);
        if (!call->answered)
                grpc_call_fail(call, GRPC_INTERNAL, 0, "no answer was made");
        buf_deinit(&call->message);
}

/* On a pool thread. */
static void run_grpc_call(struct pool_task *task)
{
        struct grpc_call *call = (struct grpc_call *)task;
        struct grpc_dispatcher *d = call->dispatcher;
        const uint64_t one = 1;

        if (!deadline_expired(&call->deadline))
                handle_grpc_call(call);
        else if (call->has_client_deadline)
                grpc_call_fail(call, GRPC_DEADLINE_EXCEEDED, 0,
                               "no thread was free for this in the time of the client");
        else
                grpc_call_fail(call, GRPC_UNAVAILABLE, RETRY_LATER_S, "no thread was free for this in time");
        buf_deinit(&call->message);
        pthread_mutex_lock(&d->lock);
        STAILQ_INSERT_TAIL(&d->handled, call, handled);
        (void)!write(d->event_fd, &one, sizeof one); /* under the lock: the stop waits for it before it closes this */
        pthread_mutex_unlock(&d->lock);
}

void grpc_call_end_request(struct grpc_call *call)
{
        const struct grpc_options *o = &call->dispatcher->options;
        struct error err;

        call->has_ended = true;
        if (call->state != CALL_READING)
                return;
        if (!message_reader_is_complete(&call->reader, &call->message)) {
                grpc_call_fail(call, GRPC_INVALID_ARGUMENT, 0,
                               call->reader.prefix_size ? "the message is cut off" : "there is no message");
        } else if (call->method->at_once || !o->http) {
                handle_grpc_call(call);
        } else {
                call->state = CALL_HANDLING;
                call->task.run = run_grpc_call;
                if (!handler_pool_submit(http_server_get_pool(o->http, call->method->pool), &call->task, &err)) {
                        call->dispatcher->handling++;
                        return;
                }
                grpc_call_fail(call, GRPC_UNAVAILABLE, RETRY_LATER_S, "%s", err.text);
        }
        grpc_call_submit_answer(call);
}

void grpc_call_check_time(struct grpc_call *call, int64_t now_ns)
{
        int64_t late_s = (now_ns - call->began_ns) / SECOND_NS - LIMIT_HTTP_SLOW_S;

        if (call->state == CALL_ANSWERED && now_ns - call->answered_ns >= LIMIT_HTTP_SLOW_S * SECOND_NS) {
                call->answered_ns = INT64_MAX; /* once */
                (void)!nghttp2_submit_rst_stream(grpc_session_http2(call->session), NGHTTP2_FLAG_NONE, call->stream_id,
                                                 NGHTTP2_CANCEL);
        }
        if (call->state != CALL_READING)
                return;
        if (now_ns >= call->deadline.expires_ns)
                grpc_call_fail(call, GRPC_DEADLINE_EXCEEDED, 0, "the message did not arrive in time");
        else if (late_s > 0 && call->received_bytes < (uint64_t)late_s * LIMIT_HTTP_LEAST_BYTES_PER_S)
                grpc_call_fail(call, GRPC_DEADLINE_EXCEEDED, 0, "the message arrives with less than %zu bytes a second",
                               (size_t)LIMIT_HTTP_LEAST_BYTES_PER_S);
        else
                return;
        buf_deinit(&call->message);
        grpc_call_submit_answer(call);
}

/* ---- the answer ---- */

void grpc_call_reply(struct grpc_call *call, struct buf *message)
{
        struct error err;

        if (buf_status(message, &err, "response")) {
                grpc_call_fail_status(call, message->failed, &err);
                buf_deinit(message);
                return;
        }
        call->answered = true;
        call->code = GRPC_OK;
        call->reply = *message;
        buf_init(message, 0);
}

void grpc_call_fail(struct grpc_call *call, enum grpc_code code, uint64_t retry_after_s, const char *fmt, ...)
{
        va_list args;

        va_start(args, fmt);
        vsnprintf(call->text, sizeof call->text, fmt, args);
        va_end(args);
        call->answered = true;
        call->code = code;
        call->retry_after_s = retry_after_s;
}

void grpc_call_fail_status(struct grpc_call *call, enum status st, const struct error *err)
{
        enum grpc_code code = grpc_code_from_status(st);

        grpc_call_fail(call, code, code == GRPC_UNAVAILABLE ? RETRY_LATER_S : 0, "%s",
                       err ? err->text : status_name(st));
}

static nghttp2_nv make_header(const char *name, const char *value)
{
        return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value),
                             NGHTTP2_NV_FLAG_NONE };
}

static ssize_t read_grpc_reply(nghttp2_session *h2, int32_t stream_id, uint8_t *to, size_t n, uint32_t *flags,
                               nghttp2_data_source *source, void *context)
{
        const nghttp2_nv trailer = make_header("grpc-status", "0");
        struct grpc_call *call = source->ptr;
        size_t rest = call->reply.size - call->reply_sent;

        (void)context;
        if (n > rest)
                n = rest;
        memcpy(to, call->reply.data + call->reply_sent, n);
        call->reply_sent += n;
        if (call->reply_sent < call->reply.size)
                return (ssize_t)n;
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        return nghttp2_submit_trailer(h2, stream_id, &trailer, 1) ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : (ssize_t)n;
}

static int submit_grpc_reply(struct grpc_call *call, nghttp2_session *h2)
{
        const nghttp2_nv headers[] = { make_header(":status", "200"), make_header("content-type", "application/grpc"),
                                       make_header("grpc-accept-encoding", ACCEPTED_CODINGS) };
        nghttp2_data_provider provider = { .source.ptr = call, .read_callback = read_grpc_reply };
        struct buf framed;

        buf_init(&framed, call->reply.size + MESSAGE_PREFIX_BYTES);
        put_message_prefix(&framed, (uint32_t)call->reply.size);
        if (call->reply.size)
                buf_append(&framed, call->reply.data, call->reply.size);
        buf_deinit(&call->reply);
        call->reply = framed;
        if (framed.failed)
                return NGHTTP2_ERR_NOMEM;
        return nghttp2_submit_response(h2, call->stream_id, headers, sizeof headers / sizeof *headers, &provider);
}

/* Only headers, which are trailers at the same time. */
static int submit_grpc_failure(struct grpc_call *call, nghttp2_session *h2)
{
        _cleanup_buf_ struct buf message, details;
        nghttp2_nv headers[6];
        size_t count = 0;
        char code[4];

        buf_init(&message, 4 * sizeof call->text);
        buf_init(&details, KiB(4));
        put_grpc_message(&message, call->text);
        put_grpc_status_details(&details, call->code, call->text, call->retry_after_s);
        snprintf(code, sizeof code, "%u", (unsigned)call->code);
        headers[count++] = make_header(":status", "200");
        headers[count++] = make_header("content-type", "application/grpc");
        headers[count++] = make_header("grpc-accept-encoding", ACCEPTED_CODINGS);
        headers[count++] = make_header("grpc-status", code);
        if (buf_cstr(&message))
                headers[count++] = make_header("grpc-message", buf_cstr(&message));
        if (buf_cstr(&details))
                headers[count++] = make_header("grpc-status-details-bin", buf_cstr(&details));
        return nghttp2_submit_response(h2, call->stream_id, headers, count, NULL);
}

static int submit_http_failure(struct grpc_call *call, nghttp2_session *h2)
{
        char code[12];
        nghttp2_nv headers[2];
        size_t count = 1;

        snprintf(code, sizeof code, "%u", call->http_code);
        headers[0] = make_header(":status", code);
        if (call->http_code == 405)
                headers[count++] = make_header("allow", "POST");
        return nghttp2_submit_response(h2, call->stream_id, headers, count, NULL);
}

void grpc_call_submit_answer(struct grpc_call *call)
{
        nghttp2_session *h2 = grpc_session_http2(call->session);
        int failed;

        call->state = CALL_ANSWERED;
        call->answered_ns = monotonic_ns();
        metric_add(&calls_by_code[call->code], 1);
        if (call->http_code)
                failed = submit_http_failure(call, h2);
        else if (call->code == GRPC_OK)
                failed = submit_grpc_reply(call, h2);
        else
                failed = submit_grpc_failure(call, h2);
        if (failed)
                (void)!nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, call->stream_id, NGHTTP2_INTERNAL_ERROR);
}

/* ---- what handlers ask ---- */

const char *grpc_call_path(const struct grpc_call *call)
{
        return call->path;
}

const uint8_t *grpc_call_message(const struct grpc_call *call, size_t *size_ret)
{
        *size_ret = call->message.size;
        return call->message.data;
}

const char *grpc_call_token(const struct grpc_call *call)
{
        return call->token;
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
