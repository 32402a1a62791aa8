/* SPDX-License-Identifier: Apache-2.0 */
/* The response of a call: the message with trailers, or a failure in a "trailers-only" header block. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/files/open_files.h"
#include "common/metrics.h"
#include "grpc/grpc_internal.h"

#define ACCEPTED_CODINGS "identity,gzip,deflate,zstd,snappy"

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

void count_grpc_call(enum grpc_code code)
{
        metric_add(&calls_by_code[code], 1);
}

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
        enum grpc_code code =
                err && open_files_is_shortage(err->os_errno) ? GRPC_UNAVAILABLE : grpc_code_from_status(st);

        grpc_call_fail(call, code, code == GRPC_UNAVAILABLE ? GRPC_RETRY_LATER_S : 0, "%s",
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
                                       make_header("grpc-accept-encoding", ACCEPTED_CODINGS),
                                       make_header("x-request-id", call->id) };
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

/* Trailers-only response. */
static int submit_grpc_failure(struct grpc_call *call, nghttp2_session *h2)
{
        _cleanup_buf_ struct buf message, details;
        nghttp2_nv headers[7];
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
        headers[count++] = make_header("x-request-id", call->id);
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
        nghttp2_nv headers[3];
        size_t count = 2;

        snprintf(code, sizeof code, "%u", call->http_code);
        headers[0] = make_header(":status", code);
        headers[1] = make_header("x-request-id", call->id);
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
        count_grpc_call(call->code);
        if (call->http_code)
                failed = submit_http_failure(call, h2);
        else if (call->code == GRPC_OK)
                failed = submit_grpc_reply(call, h2);
        else
                failed = submit_grpc_failure(call, h2);
        if (failed)
                (void)!nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, call->stream_id, NGHTTP2_INTERNAL_ERROR);
}
