/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server_internal.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/options.h"

#define STOP_GRACE_S 5 /* for those that still send or read when the server stops */

/* ---- the byte thread's part of a request ---- */

static void find_token(struct http_request *req)
{
        const char *value = http_header(req, "Authorization");

        if (value && strncasecmp(value, "Bearer ", 7) == 0)
                req->token = strdup(value + 7 + strspn(value + 7, " "));
}

/* Find the route and answer whatever the headers alone decide. */
static void route_request(struct http_request *req)
{
        struct http_server *s = req->server;
        const char *method = strcmp(req->method, "HEAD") == 0 ? "GET" : req->method;
        char allow[128] = "";

        for (size_t i = 0; i < s->route_count; i++) {
                const struct http_route *r = &s->routes[i];
                size_t used = strlen(allow);

                if (!route_matches(r, req))
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
                http_fail_code(req, 404, "not_found", "there is no '%.200s' here", http_path(req));
        }
}

static void check_access(struct http_request *req)
{
        static const char *const names[] = { "", "read", "ingest", "upload", "admin" };
        struct http_server *s = req->server;

        find_token(req);
        if (req->route->scope == SCOPE_NONE || !s->options.authorize)
                return;
        switch (s->options.authorize(s->options.context, req->token, req->route->scope, req->token_name)) {
        case ACCESS_GRANTED:
                return;
        case ACCESS_UNKNOWN:
                http_fail_code(req, 401, req->token ? "bad_token" : "no_token",
                               req->token ? "the token is not known here; send one with the scope '%s'"
                                          : "a token with the scope '%s' is needed: send Authorization: Bearer TOKEN",
                               names[req->route->scope]);
                return;
        case ACCESS_DENIED:
                http_fail_code(req, 403, "scope", "the token does not carry the scope '%s'", names[req->route->scope]);
                return;
        }
}

static void fail_too_big(struct http_request *req)
{
        if (req->route->max_body)
                http_fail_code(req, 413, "too_big", "the body is larger than %zu bytes; send it in several requests",
                               req->route->max_body);
        else
                http_fail_code(req, 413, "too_big", "'%.200s' takes no body", http_path(req));
}

static void begin_request(struct http_request *req)
{
        struct error err;
        enum status st = request_parse_uri(req, req->uri, &err);
        const char *length = http_header(req, "Content-Length");
        uint64_t n = 0;

        if (st) {
                http_fail(req, st, &err);
                return;
        }
        if (atomic_load(&req->server->stopping)) {
                http_fail_code(req, 503, "stopping", "the service is stopping; retry later");
                return;
        }
        route_request(req);
        if (!req->answered)
                check_access(req);
        if (req->answered)
                return;
        if (length && !parse_uint(length, &n)) {
                http_fail_code(req, 400, "bad_data", "Content-Length is not a number");
                return;
        }
        if (req->route->chunk) {
                req->stream_open = true;
                if (req->route->begin)
                        req->route->begin(req, req->server->context);
        } else if (n > req->route->max_body) {
                fail_too_big(req);
        } else {
                req->body.max = req->route->max_body;
        }
}

static void end_stream_early(struct http_request *req)
{
        if (!req->stream_open)
                return;
        req->stream_open = false;
        if (req->route->abandon)
                req->route->abandon(req, req->server->context);
}

static void take_body(struct http_request *req, const void *data, size_t n)
{
        struct error err;
        enum status st;

        if (req->route->chunk) {
                st = req->route->chunk(req, req->server->context, data, n);
                if (st && !req->answered)
                        http_fail(req, st, NULL);
                if (st)
                        end_stream_early(req);
                return;
        }
        if (n > req->body.max - req->body.size) {
                fail_too_big(req);
                return;
        }
        st = request_budget(req, n, &err);
        if (!st && buf_append(&req->body, data, n))
                st = buf_status(&req->body, &err, "request body");
        if (st)
                http_fail(req, st, &err);
}

static enum MHD_Result start_discard(struct http_request *req)
{
        req->phase = PHASE_DISCARD;
        req->discard_until_ns = monotonic_ns() + LIMIT_HTTP_IDLE_S * 1000000000ll;
        buf_deinit(&req->body);
        return MHD_YES;
}

static enum MHD_Result on_headers(struct http_request *req)
{
        const char *length = http_header(req, "Content-Length");
        uint64_t n = 0;

        begin_request(req);
        if (!req->answered) {
                req->phase = PHASE_BODY;
                return MHD_YES;
        }
        end_stream_early(req);
        if (http_header(req, "Expect") || req->reset || (length && parse_uint(length, &n) && n > LIMIT_HTTP_DISCARD_BYTES))
                return answer_queue(req, true);
        return start_discard(req);
}

static enum MHD_Result on_body(struct http_request *req, const char *data, size_t *n)
{
        if (*n) {
                take_body(req, data, *n);
                *n = 0;
                return req->answered ? start_discard(req) : MHD_YES;
        }
        req->phase = PHASE_HANDLE;
        MHD_suspend_connection(req->connection);
        if (!handler_pool_push(req->route->slow ? &req->server->slow : &req->server->fast, &req->task)) {
                http_fail_code(req, 503, "stopping", "the service is stopping; retry later");
                MHD_resume_connection(req->connection);
        }
        return MHD_YES;
}

static enum MHD_Result on_discard(struct http_request *req, size_t *n)
{
        if (!*n) /* libmicrohttpd closes after an answer that was queued any earlier, even where no body is to come */
                return answer_queue(req, request_has_body(req));
        req->discarded_bytes += *n;
        *n = 0;
        if (!req->reset && req->discarded_bytes <= LIMIT_HTTP_DISCARD_BYTES && monotonic_ns() < req->discard_until_ns)
                return MHD_YES;
        if (req->reset)
                return answer_queue(req, true);
        answer_write_raw(req);
        return MHD_NO;
}

static enum MHD_Result on_access(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                                 const char *version, const char *data, size_t *n, void **state)
{
        struct http_request *req = *state;

        (void)context;
        (void)connection;
        (void)url;
        (void)version;
        if (!req)
                return MHD_NO;
        switch (req->phase) {
        case PHASE_NEW:
                req->method = method;
                return on_headers(req);
        case PHASE_BODY:
                return on_body(req, data, n);
        case PHASE_DISCARD:
                return on_discard(req, n);
        case PHASE_HANDLE:
                return answer_queue(req, false);
        case PHASE_ANSWER:
                break;
        }
        return MHD_NO;
}

static void *on_uri(void *context, const char *uri, struct MHD_Connection *connection)
{
        return request_create(context, connection, uri);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode why)
{
        (void)context;
        (void)connection;
        (void)why;
        if (*state)
                request_destroy(*state);
        *state = NULL;
}

/* Paths are taken apart by server_path.c from what was sent. */
static size_t no_unescape(void *context, struct MHD_Connection *connection, char *text)
{
        (void)context;
        (void)connection;
        return strlen(text);
}

/* ---- start and stop ---- */

static enum status bind_listener(const struct http_options *o, int *fd_ret, uint16_t *port_ret, struct error *err)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
        struct addrinfo *info;
        struct sockaddr_storage bound = { 0 };
        socklen_t n = sizeof bound;
        _cleanup_close_ int fd = -1;
        char port[8];
        int failed, on = 1;

        snprintf(port, sizeof port, "%u", (unsigned)o->port);
        failed = getaddrinfo(o->host, port, &hints, &info);
        if (failed)
                return error_set(err, ST_USAGE, "cannot listen on '%s': %s", o->host, gai_strerror(failed));
        fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0)
                setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (fd < 0 || bind(fd, info->ai_addr, info->ai_addrlen) < 0 || listen(fd, 511) < 0 ||
            getsockname(fd, (struct sockaddr *)&bound, &n) < 0)
                failed = errno;
        freeaddrinfo(info);
        if (failed)
                return error_os(err, failed, "cannot listen on %s:%s", o->host, port);
        *port_ret = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                      : ((struct sockaddr_in *)&bound)->sin_port);
        *fd_ret = steal_fd(&fd);
        return ST_OK;
}

static unsigned core_count(void)
{
        long n = sysconf(_SC_NPROCESSORS_ONLN);

        return n < 1 ? 1 : n > 64 ? 64 : (unsigned)n;
}

/*
 * poll, not epoll: libmicrohttpd takes epoll's events by edge, and a client that closes together with its last bytes
 * makes one edge for both. Its end is then seen only after the idle time, and hundreds of them block the service.
 */
static enum status start_daemon(struct http_server *s, int listener, struct error *err)
{
        unsigned byte_threads = core_count() < 2 ? 2 : core_count() > 4 ? 4 : core_count();

        s->daemon = MHD_start_daemon(
                MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_SUSPEND_RESUME, 0, NULL, NULL, on_access, s,
                MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_THREAD_POOL_SIZE, byte_threads,
                MHD_OPTION_CONNECTION_LIMIT, (unsigned)LIMIT_HTTP_CONNECTIONS,
                MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)LIMIT_HTTP_IDLE_S,
                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(2 * LIMIT_HTTP_HEADER_BYTES),
                MHD_OPTION_URI_LOG_CALLBACK, on_uri, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
                MHD_OPTION_UNESCAPE_CALLBACK, no_unescape, NULL, MHD_OPTION_END);
        return s->daemon ? ST_OK : error_set(err, ST_OS, "cannot start the HTTP server");
}

enum status http_server_start(const struct http_options *options, const struct http_route *routes, size_t route_count,
                              void *context, struct http_server **ret, struct error *err)
{
        struct http_server *s = calloc(1, sizeof *s);
        int listener = -1;
        enum status st;

        if (!s)
                return error_no_memory(err);
        s->options = *options;
        s->routes = routes;
        s->route_count = route_count;
        s->context = context;
        pthread_mutex_init(&s->lock, NULL);
        pthread_cond_init(&s->idle, NULL);
        st = bind_listener(options, &listener, &s->port, err);
        if (!st)
                st = handler_pool_start(&s->fast, options->threads ? options->threads : core_count() < 4 ? 4 : core_count(),
                                        "http", err);
        if (!st)
                st = handler_pool_start(&s->slow, options->slow_threads ? options->slow_threads : 16, "http-slow", err);
        if (!st)
                st = start_daemon(s, listener, err);
        if (st) {
                if (listener >= 0)
                        close(listener);
                http_server_stop(s);
                return st;
        }
        *ret = s;
        return ST_OK;
}

uint16_t http_server_port(const struct http_server *s)
{
        return s->port;
}

static void wait_idle(struct http_server *s)
{
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += STOP_GRACE_S;
        pthread_mutex_lock(&s->lock);
        while (s->active && pthread_cond_timedwait(&s->idle, &s->lock, &until) == 0)
                ;
        pthread_mutex_unlock(&s->lock);
}

void http_server_stop(struct http_server *s)
{
        if (!s)
                return;
        atomic_store(&s->stopping, true);
        if (s->daemon) {
                int listener = MHD_quiesce_daemon(s->daemon);

                if (listener >= 0)
                        close(listener);
                wait_idle(s);
        }
        handler_pool_stop(&s->fast);
        handler_pool_stop(&s->slow);
        if (s->daemon)
                MHD_stop_daemon(s->daemon);
        handler_pool_deinit(&s->fast);
        handler_pool_deinit(&s->slow);
        pthread_cond_destroy(&s->idle);
        pthread_mutex_destroy(&s->lock);
        free(s);
}
