/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server_internal.h"

#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/json_out.h"
#include "common/metrics.h"

#define RETRY_AFTER_S UINT64_C(5) /* of whoever does not know better */
#define SMALL_BYTES KiB(16) /* a body up to this is copied: one packet and one system call in place of two */

static struct metric answers[] = {
        METRIC_COUNTER("cairn_http_requests_total", "Requests answered.", "code=\"reset\""),
        METRIC_COUNTER("cairn_http_requests_total", "Requests answered.", "code=\"1xx\""),
        METRIC_COUNTER("cairn_http_requests_total", "Requests answered.", "code=\"2xx\""),
        METRIC_COUNTER("cairn_http_requests_total", "Requests answered.", "code=\"3xx\""),
        METRIC_COUNTER("cairn_http_requests_total", "Requests answered.", "code=\"4xx\""),
        METRIC_COUNTER("cairn_http_requests_total", "Requests answered.", "code=\"5xx\""),
};

void http_set_header(struct http_request *req, const char *name, const char *value)
{
        char *copy;

        assert(req->header_count < MAX_ANSWER_HEADERS);
        copy = strdup(value);
        if (!copy)
                return;
        for (char *p = copy; *p; p++) /* what came from outside must not start a header of its own */
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = '?';
        req->headers[req->header_count++] = (struct answer_header){ name, copy };
}

static bool has_header(const struct http_request *req, const char *name)
{
        for (size_t i = 0; i < req->header_count; i++)
                if (strcmp(req->headers[i].name, name) == 0)
                        return true;
        return false;
}

void answer_set(struct http_request *req, unsigned code, const char *content_type, struct MHD_Response *response)
{
        assert(!req->answered);
        req->answered = true;
        req->code = code;
        if (req->server->options.answered)
                req->server->options.answered(req->server->options.context, req, code);
        req->response = response;
        if (!response)
                return;
        if (content_type)
                MHD_add_response_header(response, "Content-Type", content_type);
        for (size_t i = 0; i < req->header_count; i++)
                MHD_add_response_header(response, req->headers[i].name, req->headers[i].value);
}

void http_respond(struct http_request *req, unsigned code, const char *content_type, const void *body, size_t n)
{
        answer_set(req, code, n ? content_type : NULL,
                   MHD_create_response_from_buffer(n, (void *)(uintptr_t)body, MHD_RESPMEM_MUST_COPY));
}

void http_respond_buf(struct http_request *req, unsigned code, const char *content_type, struct buf *body)
{
        if (buf_status(body, NULL, "response")) {
                enum status failed = body->failed;

                buf_deinit(body);
                http_fail_code(req, failed == ST_TOO_BIG ? 413 : 500, failed == ST_TOO_BIG ? "too_big" : "no_memory",
                               "the answer is too large; ask for less, a shorter time range for example");
                return;
        }
        if (body->size == 0) {
                http_respond(req, code, NULL, "", 0);
                buf_deinit(body);
                return;
        }
        answer_set(req, code, content_type, MHD_create_response_from_buffer(body->size, body->data, MHD_RESPMEM_MUST_FREE));
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
        json_out_object_end(&j);
        buf_append_str(to, "\n");
        return "application/json";
}

void http_fail_code(struct http_request *req, unsigned code, const char *reason, const char *fmt, ...)
{
        const char *type;
        char text[512], retry_after[24];
        va_list args;

        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        buf_clear(&req->error_body);
        type = put_error(req, code, reason, text, &req->error_body);
        snprintf(retry_after, sizeof retry_after, "%" PRIu64, req->retry_after_s ? req->retry_after_s : RETRY_AFTER_S);
        if ((code == 429 || code == 503) && !has_header(req, "Retry-After"))
                http_set_header(req, "Retry-After", retry_after);
        if (code == 401)
                http_set_header(req, "WWW-Authenticate", "Bearer realm=\"cairn\"");
        http_respond(req, code, type, req->error_body.data, req->error_body.size);
}

void http_fail(struct http_request *req, enum status st, const struct error *err)
{
        static const struct {
                enum status st;
                unsigned code;
                const char *reason;
        } table[] = {
                { ST_BAD_DATA, 400, "bad_data" },       { ST_USAGE, 400, "usage" },  { ST_NOT_FOUND, 404, "not_found" },
                { ST_TOO_BIG, 413, "too_big" },         { ST_BUSY, 429, "busy" },    { ST_NO_MEMORY, 500, "no_memory" },
                { ST_UNSUPPORTED, 415, "unsupported" }, { ST_OS, 500, "system" },
        };

        if (st == ST_OS && err && (err->os_errno == ENOSPC || err->os_errno == EDQUOT)) {
                http_fail_code(req, 507, "disk_full", "%s", err->text);
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

void http_reset(struct http_request *req)
{
        assert(!req->answered);
        req->answered = true;
        req->reset = true;
}

/*
 * connect() to AF_UNSPEC dissolves the association and sends RST. SO_LINGER does not: libmicrohttpd calls shutdown()
 * first, which sends FIN, and a debuginfod client takes that for "not found".
 */
void connection_reset(struct MHD_Connection *connection)
{
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };

        if (info)
                (void)!connect(info->connect_fd, &nowhere, sizeof nowhere);
}

/* ---- bodies with ranges ---- */

struct streamed {
        struct MHD_Connection *connection;
        http_read_body *read;
        void (*close)(void *state);
        void *state;
        uint64_t start, end;
};

static ssize_t streamed_read(void *context, uint64_t at, char *to, size_t n)
{
        struct streamed *s = context;
        uint64_t left = s->end - s->start - at;
        ssize_t done;

        if (left == 0)
                return MHD_CONTENT_READER_END_OF_STREAM;
        done = s->read(s->state, to, n < left ? n : (size_t)left, s->start + at);
        if (done > 0)
                return done;
        connection_reset(s->connection);
        return MHD_CONTENT_READER_END_WITH_ERROR;
}

static void streamed_close(void *context)
{
        struct streamed *s = context;

        if (s->close)
                s->close(s->state);
        free(s);
}

/**
 * What conditions and ranges make of a body of size bytes.
 * @return 200 or 206 with the part to send; else the request was answered.
 */
static unsigned negotiate(struct http_request *req, uint64_t size, const char *etag, struct byte_range *part)
{
        char text[80];
        const char *if_range = http_header(req, "If-Range");
        bool range_holds = !if_range;

        *part = (struct byte_range){ 0, size };
        http_set_header(req, "Accept-Ranges", "bytes");
        if (etag) {
                snprintf(text, sizeof text, "\"%s\"", etag);
                http_set_header(req, "ETag", text);
                range_holds |= if_range && strcmp(if_range, text) == 0;
                if (etag_listed(http_header(req, "If-None-Match"), etag)) {
                        http_respond(req, 304, NULL, "", 0);
                        return 304;
                }
        }
        if (!range_holds || strcmp(req->method, "GET") != 0)
                return 200;
        switch (range_parse(http_header(req, "Range"), size, part)) {
        case RANGE_NONE:
                return 200;
        case RANGE_BAD:
                snprintf(text, sizeof text, "bytes */%" PRIu64, size);
                http_set_header(req, "Content-Range", text);
                http_fail_code(req, 416, "range", "the range lies outside of the %" PRIu64 " bytes there are", size);
                return 416;
        default:
                snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, part->start, part->end - 1, size);
                http_set_header(req, "Content-Range", text);
                return 206;
        }
}

/* Bytes of it that go out together with the headers; NULL when the file is too short for that or cannot be read. */
static struct MHD_Response *read_small(int fd, uint64_t offset, size_t n)
{
        struct MHD_Response *response;
        char *bytes = malloc(n);

        if (!bytes)
                return NULL;
        response = pread(fd, bytes, n, (off_t)offset) == (ssize_t)n
                           ? MHD_create_response_from_buffer(n, bytes, MHD_RESPMEM_MUST_FREE)
                           : NULL;
        if (!response)
                free(bytes);
        return response;
}

/* Takes fd. */
static void respond_part(struct http_request *req, const char *content_type, int fd, uint64_t offset, uint64_t size,
                         const char *etag)
{
        struct MHD_Response *response = NULL;
        struct byte_range part;
        unsigned code = negotiate(req, size, etag, &part);
        uint64_t n = part.end - part.start;

        if (code != 200 && code != 206) {
                close(fd);
                return;
        }
        if (n && n <= SMALL_BYTES && (response = read_small(fd, offset + part.start, (size_t)n))) {
                close(fd);
                answer_set(req, code, content_type, response);
                return;
        }
        if (n)
                response = MHD_create_response_from_fd_at_offset64(n, fd, offset + part.start);
        if (!response)
                close(fd);
        if (part.end == part.start)
                response = MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
        answer_set(req, code, content_type, response);
}

void http_respond_file_part(struct http_request *req, const char *content_type, int fd, uint64_t offset, uint64_t size)
{
        respond_part(req, content_type, fd, offset, size, NULL);
}

void http_respond_file(struct http_request *req, const char *content_type, int fd, const char *etag)
{
        struct stat st;
        struct tm tm;
        char modified[40];

        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
                close(fd);
                http_fail_code(req, 500, "system", "cannot read '%s'", http_path(req));
                return;
        }
        gmtime_r(&st.st_mtime, &tm);
        strftime(modified, sizeof modified, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        http_set_header(req, "Last-Modified", modified);
        respond_part(req, content_type, fd, 0, (uint64_t)st.st_size, etag);
}

void http_respond_stream(struct http_request *req, const char *content_type, uint64_t size, const char *etag,
                         http_read_body *read, void (*close_state)(void *state), void *state)
{
        struct byte_range part;
        unsigned code = negotiate(req, size, etag, &part);
        struct streamed *s = code == 200 || code == 206 ? malloc(sizeof *s) : NULL;

        if (!s) {
                if (close_state)
                        close_state(state);
                if (!req->answered)
                        answer_set(req, 500, NULL, NULL);
                return;
        }
        *s = (struct streamed){ req->connection, read, close_state, state, part.start, part.end };
        answer_set(req, code, content_type,
                   MHD_create_response_from_callback(part.end - part.start, KiB(64), streamed_read, s, streamed_close));
        if (!req->response)
                streamed_close(s);
}

/* ---- handing it over ---- */

enum MHD_Result answer_queue(struct http_request *req, bool close_after)
{
        req->phase = PHASE_ANSWER;
        connection_enter(req->watched, CONNECTION_SENDING);
        metric_add(&answers[req->reset ? 0 : req->code / 100], 1);
        if (req->reset) {
                connection_reset(req->connection);
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

void answer_write_raw(struct http_request *req)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(req->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        const char *type = req->response ? MHD_get_response_header(req->response, "Content-Type") : NULL;
        char text[KiB(4) + 256];
        int head;

        req->phase = PHASE_ANSWER;
        if (!info || req->reset || !type || !req->error_body.data)
                return;
        metric_add(&answers[req->code / 100], 1);
        head = snprintf(text, sizeof text,
                        "HTTP/1.1 %u Refused\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                        req->code, type, req->error_body.size);
        if (head <= 0 || req->error_body.size > sizeof text - (size_t)head)
                return;
        memcpy(text + head, req->error_body.data, req->error_body.size); /* may be binary */
        write_past(req->connection, info->connect_fd, text, (size_t)head + req->error_body.size);
}
