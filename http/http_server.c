/* SPDX-License-Identifier: Apache-2.0 */
/* Request phases, on the byte threads (libmicrohttpd's callbacks). */
#include "common/clock.h"
#include "common/program/log.h"
#include "common/text/number_text.h"
#include "http/http_server_internal.h"

/* Find the route, and answer requests that can be decided by their headers. */
static void route_request(struct http_request *req)
{
        struct http_server *s = req->server;
        const char *method = strcmp(req->method, "HEAD") == 0 ? "GET" : req->method;
        char allow[128] = "";

        for (size_t i = 0; i < s->route_count; i++) {
                const struct http_route *r = &s->routes[i];
                size_t used = strlen(allow);

                if (!match_route(r, req))
                        continue;
                if (strcmp(r->method, method) == 0) {
                        req->route = r;
                        return;
                }
                if (!strstr(allow, r->method))
                        snprintf(allow + used, sizeof allow - used, "%s%s%s", used ? ", " : "", r->method,
                                 strcmp(r->method, "GET") == 0 ? ", HEAD" : "");
        }
        if (allow[0]) {
                http_set_header(req, "Allow", allow);
                http_fail_code(req, 405, "method", "%.16s is not possible on '%.200s'; allowed: %s", req->method,
                               http_path(req), allow);
        } else {
                http_fail_code(req, 404, "not_found", "'%.200s' does not exist", http_path(req));
        }
}

static void check_rate(struct http_request *req, uint64_t bytes)
{
        struct http_server *s = req->server;
        struct error err;

        if (req->route->scope == SCOPE_NONE || !s->options.admit)
                return;
        req->retry_after_s = s->options.admit(s->options.context, req, bytes, &err);
        if (req->retry_after_s)
                http_fail_code(req, 429, "rate", "%s", err.text);
        else
                req->admitted_bytes = bytes;
}

bool http_check_scope(struct http_request *req, enum http_scope scope)
{
        static const char *const names[] = { "", "read", "ingest", "upload", "history", "node", "admin" };
        struct http_server *s = req->server;

        if (scope == SCOPE_NONE || !s->options.authorize)
                return true;
        switch (s->options.authorize(s->options.context, req, scope, req->token_name)) {
        case ACCESS_GRANTED:
                return true;
        case ACCESS_UNKNOWN:
                http_fail_code(req, 401, req->token ? "bad_token" : "no_token",
                               req->token ? "unknown token; send one with the scope '%s'"
                                          : "a token with the scope '%s' is needed: send Authorization: Bearer TOKEN",
                               names[scope]);
                return false;
        case ACCESS_DENIED:
                http_fail_code(req, 403, "scope", "the token does not carry the scope '%s'", names[scope]);
                return false;
        }
        return false;
}

static void choose_request_tenant(struct http_request *req)
{
        struct http_server *s = req->server;

        req->task.sender = pool_sender_number(req->token, req->peer_number);
        if (req->route->scope != SCOPE_NONE && s->options.choose_tenant)
                s->options.choose_tenant(s->options.context, req);
}

static void fail_body_too_big(struct http_request *req)
{
        if (req->route->max_body)
                http_fail_code(req, 413, "too_big", "the body is larger than %zu bytes; split it into several requests",
                               req->route->max_body);
        else
                http_fail_code(req, 413, "too_big", "'%.200s' takes no body", http_path(req));
}

static void start_request(struct http_request *req, const char *version)
{
        const char *length = http_header(req, "Content-Length");
        struct error err;
        enum status st;
        uint64_t n = 0;

        request_id_choose(http_count_headers(req, "X-Request-Id") == 1 ? http_header(req, "X-Request-Id") : NULL,
                          req->id);
        log_set_request(req->id);
        request_find_forwarded_peer(req);
        request_check_framing(req, version);
        if (!req->answered)
                request_check_host(req);
        if (req->answered)
                return;
        st = request_parse_uri(req, req->uri, &err);
        if (st) {
                http_fail(req, st, &err);
                return;
        }
        if (atomic_load(&req->server->stopping)) {
                http_fail_code(req, 503, "stopping", "the service is stopping; retry later");
                return;
        }
        if (length && !parse_uint(length, &n)) {
                http_fail_code(req, 400, "bad_data", "Content-Length is not a number");
                return;
        }
        route_request(req);
        find_request_token(req);
        if (!req->answered)
                request_check_origin(req);
        if (!req->answered && req->server->options.identify)
                req->server->options.identify(req->server->options.context, req);
        if (!req->answered)
                check_rate(req, n);
        if (!req->answered)
                (void)http_check_scope(req, req->route->scope);
        if (!req->answered)
                choose_request_tenant(req);
        if (!req->answered)
                request_check_type(req);
        if (req->answered)
                return;
        if (req->route->chunk) {
                req->stream_open = true;
                buf_init_budget(&req->body, LIMIT_HTTP_STEP_BYTES, MEMORY_UPLOADS);
                if (req->route->begin)
                        req->route->begin(req);
        } else if (n > req->route->max_body) {
                fail_body_too_big(req);
        } else {
                buf_init_budget(&req->body, req->route->max_body, get_request_memory_use(req));
                req->body.memory.group = req->body_group;
        }
}

static void append_request_body(struct http_request *req, const void *data, size_t n)
{
        struct error err;
        enum status st;

        if (n > req->body.max - req->body.size) {
                fail_body_too_big(req);
                return;
        }
        if (buf_append(&req->body, data, n)) {
                st = buf_status(&req->body, &err, "a request body");
                http_fail(req, st, &err);
        }
        connection_set_held_bytes(req->watched, req->body.memory.bytes);
}

static enum MHD_Result start_discard(struct http_request *req)
{
        req->phase = PHASE_DISCARD;
        req->discard_until_ns = monotonic_ns() + LIMIT_HTTP_IDLE_S * 1000000000ll;
        buf_deinit(&req->body);
        return MHD_YES;
}

static enum MHD_Result handle_headers_phase(struct http_request *req, const char *version)
{
        const char *length = http_header(req, "Content-Length");
        uint64_t n = 0;

        connection_set_phase(req->watched, CONNECTION_READING);
        start_request(req, version);
        if (!req->answered) {
                req->phase = PHASE_BODY;
                return MHD_YES;
        }
        request_end_stream(req);
        if (http_header(req, "Expect") || req->reset || req->must_close ||
            (length && parse_uint(length, &n) && n > LIMIT_HTTP_DISCARD_BYTES))
                return request_queue_response(req, true);
        return start_discard(req);
}

static struct handler_pool *get_route_pool(const struct http_request *req)
{
        return &req->server->pools[req->route->pool];
}

/*
 * Pass a piece of a streamed body to a pool thread. libmicrohttpd may call again while the connection is suspended
 * (chunked encoding); handle_body_phase() then consumes nothing.
 */
static void submit_body_chunk(struct http_request *req, const char *data, size_t *n)
{
        size_t taken = *n < LIMIT_HTTP_STEP_BYTES ? *n : LIMIT_HTTP_STEP_BYTES;

        buf_clear(&req->body);
        if (buf_append(&req->body, data, taken)) {
                http_fail(req, ST_NO_MEMORY, NULL);
                return;
        }
        *n -= taken;
        req->received_bytes += taken;
        req->stepped = 0;
        req->task.run = run_request_chunk;
        pthread_mutex_lock(&req->step_lock);
        req->stepping = true;
        MHD_suspend_connection(req->connection);
        if (!handler_pool_push(get_route_pool(req), &req->task)) {
                req->stepping = false;
                http_fail_code(req, 503, "stopping", "the service is stopping; retry later");
                MHD_resume_connection(req->connection);
        }
        pthread_mutex_unlock(&req->step_lock);
}

static enum MHD_Result handle_discard_phase(struct http_request *req, size_t *n);

static bool is_chunk_running(struct http_request *req)
{
        bool stepping;

        pthread_mutex_lock(&req->step_lock);
        stepping = req->stepping;
        pthread_mutex_unlock(&req->step_lock);
        return stepping;
}

static enum MHD_Result handle_body_phase(struct http_request *req, const char *data, size_t *n)
{
        struct handler_pool *pool;
        struct error err;

        if (req->route->chunk && is_chunk_running(req))
                return MHD_YES;
        if (req->answered) { /* chunk refused earlier input */
                request_end_stream(req);
                start_discard(req);
                return handle_discard_phase(req, n);
        }
        if (*n && req->route->chunk) {
                submit_body_chunk(req, data, n);
                return MHD_YES;
        }
        if (*n) {
                req->received_bytes += *n;
                append_request_body(req, data, *n);
                *n = 0;
                return req->answered ? start_discard(req) : MHD_YES;
        }
        req->arrived_ns = monotonic_ns();
        if (req->route->at_once)
                req->route->at_once(req);
        if (req->answered)
                return request_queue_response(req, false);
        req->phase = PHASE_HANDLE;
        connection_set_phase(req->watched, CONNECTION_WORKING);
        req->task.run = run_request_handler;
        MHD_suspend_connection(req->connection);
        pool = &req->server->pools[req->route->pool];
        if (pool->options.timeout_s) {
                req->deadline.timeout_s = pool->options.timeout_s;
                req->deadline.expires_ns = monotonic_ns() + pool->options.timeout_s * 1000000000ll;
        }
        request_watch(req, req->deadline.expires_ns);
        if (handler_pool_submit(pool, &req->task, &err)) {
                request_end_stream(req);
                http_fail_code(req, 503, "busy", "%s; retry later", err.text);
                MHD_resume_connection(req->connection);
        }
        return MHD_YES;
}

static enum MHD_Result handle_discard_phase(struct http_request *req, size_t *n)
{
        if (!*n) /* libmicrohttpd closes the connection after a response queued earlier, even if no body follows */
                return request_queue_response(req, request_has_body(req));
        req->received_bytes += *n;
        req->discarded_bytes += *n;
        *n = 0;
        if (!req->reset && req->discarded_bytes <= LIMIT_HTTP_DISCARD_BYTES && monotonic_ns() < req->discard_until_ns)
                return MHD_YES;
        if (req->reset)
                return request_queue_response(req, true);
        request_write_raw_response(req);
        return MHD_NO;
}

static enum MHD_Result handle_phase(struct http_request *req, const char *version, const char *data, size_t *n)
{
        switch (req->phase) {
        case PHASE_NEW:
                return handle_headers_phase(req, version);
        case PHASE_BODY:
                return handle_body_phase(req, data, n);
        case PHASE_DISCARD:
                return handle_discard_phase(req, n);
        case PHASE_HANDLE:
                return request_queue_response(req, false);
        case PHASE_ANSWER:
                break;
        }
        return MHD_NO;
}

enum MHD_Result handle_mhd_callback(void *context, struct MHD_Connection *connection, const char *url,
                                    const char *method, const char *version, const char *data, size_t *n, void **state)
{
        struct http_request *req = *state;
        enum MHD_Result result;

        (void)context;
        (void)connection;
        (void)url;
        if (!req)
                return MHD_NO;
        if (req->phase == PHASE_NEW)
                req->method = method;
        log_set_request(req->id);
        result = handle_phase(req, version, data, n);
        log_set_request(NULL);
        return result;
}
