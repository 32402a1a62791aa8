/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http_server_internal.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/files/open_files.h"
#include "common/json/json_out.h"
#include "common/metrics.h"
#include "common/program/log.h"

#define BUSY_TEXT "the service is out of memory for this request (cairn_memory_bytes in /metrics); retry later"
#define RETRY_AFTER_S UINT64_C(5) /* default Retry-After */

static struct metric answers[] = {
        METRIC_COUNTER("cairn_http_requests_total", "Requests answered.", "code=\"reset\""),
        METRIC_COUNTER("cairn_http_requests_total", "Requests answered.", "code=\"1xx\""),
        METRIC_COUNTER("cairn_http_requests_total", "Requests answered.", "code=\"2xx\""),
        METRIC_COUNTER("cairn_http_requests_total", "Requests answered.", "code=\"3xx\""),
        METRIC_COUNTER("cairn_http_requests_total", "Requests answered.", "code=\"4xx\""),
        METRIC_COUNTER("cairn_http_requests_total", "Requests answered.", "code=\"5xx\""),
};
static struct metric last_failure =
        METRIC_GAUGE("cairn_http_last_5xx_timestamp_seconds", "Unix time of the last answer of 5xx; 0: none.", "");

static void count_answer(unsigned code_class)
{
        metric_add(&answers[code_class], 1);
        if (code_class == 5)
                metric_set(&last_failure, wall_clock_ns() / 1000000000);
}

void http_set_header(struct http_request *req, const char *name, const char *value)
{
        char *copy;

        assert(req->header_count < MAX_RESPONSE_HEADERS);
        copy = strdup(value);
        if (!copy)
                return;
        for (char *p = copy; *p; p++) /* a value from outside must not begin another header */
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = '?';
        req->headers[req->header_count++] = (struct response_header){ name, copy };
}

static bool has_header(const struct http_request *req, const char *name)
{
        for (size_t i = 0; i < req->header_count; i++)
                if (strcasecmp(req->headers[i].name, name) == 0)
                        return true;
        return false;
}

static void add_default_header(const struct http_request *req, struct MHD_Response *response, const char *name,
                               const char *value)
{
        if (!has_header(req, name))
                MHD_add_response_header(response, name, value);
}

/* Security headers of every response; a handler's own header of the same name takes precedence. */
static void add_default_headers(const struct http_request *req, struct MHD_Response *response)
{
        if (req->id[0])
                add_default_header(req, response, "X-Request-Id", req->id);
        add_default_header(req, response, "X-Content-Type-Options", "nosniff");
        add_default_header(req, response, "Referrer-Policy", "no-referrer");
        add_default_header(req, response, "Cross-Origin-Opener-Policy", "same-origin");
        add_default_header(req, response, "Cross-Origin-Resource-Policy", "same-origin");
        add_default_header(req, response, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
        if (!req->route || !req->route->cacheable)
                add_default_header(req, response, "Cache-Control", "no-store");
}

void request_set_response(struct http_request *req, unsigned code, const char *content_type,
                          struct MHD_Response *response)
{
        assert(!req->answered);
        req->answered = true;
        req->code = code;
        if (req->server->options.answered)
                req->server->options.answered(req->server->options.context, req, code);
        if (req->arrived_ns && req->route->duration)
                histogram_observe(req->route->duration, monotonic_ns() - req->arrived_ns);
        req->response = response;
        connection_set_held_bytes(req->watched, req->answer.bytes);
        if (!response)
                return;
        if (content_type)
                MHD_add_response_header(response, "Content-Type", content_type);
        add_default_headers(req, response);
        for (size_t i = 0; i < req->header_count; i++)
                MHD_add_response_header(response, req->headers[i].name, req->headers[i].value);
}

void http_respond(struct http_request *req, unsigned code, const char *content_type, const void *body, size_t n)
{
        request_set_response(req, code, content_type,
                             MHD_create_response_from_buffer(n, (void *)(uintptr_t)body, MHD_RESPMEM_MUST_COPY));
}

/* The buffer grew by doubling, and a slow reader may hold it for long. */
static void trim_body(struct buf *body)
{
        void *data = body->size < body->capacity ? realloc(body->data, body->size) : NULL;

        if (!data)
                return;
        body->data = data;
        body->capacity = body->size;
        if (body->memory.use != MEMORY_BASE)
                memory_shrink(&body->memory, body->size);
}

void http_respond_buf(struct http_request *req, unsigned code, const char *content_type, struct buf *body)
{
        if (buf_status(body, NULL, "response")) {
                enum status failed = body->failed;

                buf_deinit(body);
                if (failed == ST_TOO_BIG)
                        http_fail_code(req, 413, "too_big",
                                       "the response is too large; request less, for example a shorter time range");
                else
                        http_fail(req, failed, NULL);
                return;
        }
        if (body->size == 0) {
                http_respond(req, code, content_type, "", 0);
                buf_deinit(body);
                return;
        }
        trim_body(body);
        req->answer = body->memory;
        body->memory.bytes = 0;
        request_set_response(req, code, content_type,
                             MHD_create_response_from_buffer(body->size, body->data, MHD_RESPMEM_MUST_FREE));
        if (!req->response)
                free(body->data);
        body->data = NULL;
        body->size = body->capacity = 0;
}

bool http_is_type(const char *value, const char *type)
{
        size_t n = strlen(type);

        return value && strncasecmp(value, type, n) == 0 && (!value[n] || strchr("; \t", value[n]));
}

static const char *put_error(const struct http_request *req, unsigned code, const char *reason, const char *text,
                             struct buf *to)
{
        const struct http_route *r = req->route;
        const char *type = r && r->put_error ? r->put_error(to, http_header(req, "Content-Type"), code, text) : NULL;
        struct json_out j;

        if (type)
                return type;
        json_out_init(&j, to);
        json_out_object(&j, NULL);
        json_out_str(&j, "error", text);
        json_out_str(&j, "reason", reason);
        if (req->id[0])
                json_out_str(&j, "request_id", req->id);
        json_out_object_end(&j);
        buf_append_str(to, "\n");
        return "application/json";
}

/*
 * With a Basic challenge, a browser that opens a page prompts its user for the token. Only for pages that read: the
 * browser must not send the remembered token with a form of another site.
 */
static const char *choose_auth_challenge(const struct http_request *req)
{
        const char *accept = http_header(req, "Accept");
        bool is_page = req->route && req->route->scope == SCOPE_READ && strcmp(req->route->method, "GET") == 0 &&
                       accept && strstr(accept, "text/html");

        return is_page ? "Basic realm=\"cairn: the token is the password\", charset=\"UTF-8\""
                       : "Bearer realm=\"cairn\"";
}

void http_fail_code(struct http_request *req, unsigned code, const char *reason, const char *fmt, ...)
{
        const char *type;
        char text[512], retry_after[24];
        va_list args;

        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        if (code >= 500) /* the counter of these answers does not say which requests they concern */
                log_warn("http", "%s %.512s: answered %u %s: %s", req->method, http_path(req), code, reason, text);
        buf_clear(&req->error_body);
        type = put_error(req, code, reason, text, &req->error_body);
        snprintf(retry_after, sizeof retry_after, "%" PRIu64, req->retry_after_s ? req->retry_after_s : RETRY_AFTER_S);
        if ((code == 429 || code == 503) && !has_header(req, "Retry-After"))
                http_set_header(req, "Retry-After", retry_after);
        if (code == 401)
                http_set_header(req, "WWW-Authenticate", choose_auth_challenge(req));
        http_respond(req, code, type, req->error_body.data, req->error_body.size);
}

/* Agents and uploaders keep their data and retry. */
static bool is_retried(const struct http_request *req)
{
        return req->route && (req->route->scope == SCOPE_INGEST || req->route->scope == SCOPE_UPLOAD);
}

void http_fail(struct http_request *req, enum status st, const struct error *err)
{
        static const struct {
                enum status st;
                unsigned code;
                const char *reason;
        } table[] = {
                { ST_BAD_DATA, 400, "bad_data" },       { ST_USAGE, 400, "usage" }, { ST_NOT_FOUND, 404, "not_found" },
                { ST_TOO_BIG, 413, "too_big" },         { ST_BUSY, 503, "busy" },   { ST_NO_MEMORY, 500, "no_memory" },
                { ST_UNSUPPORTED, 415, "unsupported" }, { ST_OS, 500, "system" },   { ST_TIMEOUT, 504, "timeout" },
        };

        if (st == ST_NO_MEMORY && memory_budget_refused_recently()) {
                st = ST_BUSY;
                err = NULL;
        }
        if (st == ST_BUSY && deadline_expired(&req->deadline)) { /* a wait ended by http_request_cancelled() */
                http_fail_code(req, 504, "timeout", "stopped after the time limit of %" PRIu64 " s",
                               req->deadline.timeout_s);
                return;
        }
        if (err && (open_files_is_shortage(err->os_errno) || (st == ST_OS && err->os_errno == EREMOTEIO))) {
                http_fail_code(req, 503, "busy", "%s; retry later", err->text);
                return;
        }
        if (st == ST_BUSY) {
                http_fail_code(req, is_retried(req) ? 429 : 503, "busy", "%s", err ? err->text : BUSY_TEXT);
                return;
        }
        if (st == ST_OS && err && (err->os_errno == ENOSPC || err->os_errno == EDQUOT)) {
                http_fail_code(req, 507, "disk_full", "%s", err->text);
                return;
        }
        if (st == ST_OS && err &&
            err->os_errno == EROFS) { /* remounted read-only by the kernel after an error: a retry may succeed later */
                http_fail_code(req, 503, "disk_read_only", "%s", err->text);
                return;
        }
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
                if (table[i].st != st)
                        continue;
                http_fail_code(req, table[i].code, table[i].reason, "%s", err ? err->text : status_name(st));
                return;
        }
        http_fail_code(req, 500, "internal", "%s", err ? err->text : "internal error");
}

void http_reset_connection(struct http_request *req)
{
        assert(!req->answered);
        req->answered = true;
        req->reset = true;
}

/*
 * connect() to AF_UNSPEC dissolves the association and sends RST. SO_LINGER does not: libmicrohttpd calls shutdown()
 * first, which sends FIN, and a debuginfod client interprets that as "not found".
 */
void reset_tcp_connection(struct MHD_Connection *connection)
{
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };

        if (info)
                (void)!connect(info->connect_fd, &nowhere, sizeof nowhere);
}

/* ---- sending ---- */

enum MHD_Result request_queue_response(struct http_request *req, bool close_after)
{
        req->phase = PHASE_ANSWER;
        connection_set_phase(req->watched, CONNECTION_SENDING);
        if (req->answer_expires_ns)
                request_watch(req, req->answer_expires_ns);
        else
                connection_watch(req->watched, NULL, 0);
        count_answer(req->reset ? 0 : req->code / 100);
        if (req->reset) {
                reset_tcp_connection(req->connection);
                return MHD_NO;
        }
        if (!req->response)
                return MHD_NO;
        if (close_after)
                MHD_add_response_header(req->response, "Connection", "close");
        return MHD_queue_response(req->connection, req->code, req->response);
}

static void write_past(struct MHD_Connection *connection, int fd, const char *text, size_t n)
{
        const union MHD_ConnectionInfo *tls = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);

        if (tls && tls->tls_session)
                (void)gnutls_record_send(tls->tls_session, text, n);
        else
                (void)!send(fd, text, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Callback of MHD_get_response_headers(). */
static enum MHD_Result append_raw_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
        (void)kind;
        buf_printf(context, "%s: %s\r\n", name, value);
        return MHD_YES;
}

void request_write_raw_response(struct http_request *req)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(req->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        _cleanup_buf_ struct buf text = { 0 };

        req->phase = PHASE_ANSWER;
        if (!info || req->reset || !req->response || !req->error_body.data)
                return;
        count_answer(req->code / 100);
        buf_init(&text, KiB(16));
        buf_printf(&text, "HTTP/1.1 %u Refused\r\nContent-Length: %zu\r\nConnection: close\r\n", req->code,
                   req->error_body.size);
        MHD_get_response_headers(req->response, append_raw_header, &text);
        buf_append_str(&text, "\r\n");
        buf_append(&text, req->error_body.data, req->error_body.size); /* may be binary */
        if (!text.failed)
                write_past(req->connection, info->connect_fd, (const char *)text.data, text.size);
}
