/* SPDX-License-Identifier: Apache-2.0 */
#include <netdb.h>

#include "common/compress/compress.h"
#include "common/program/log.h"
#include "http/http_server_internal.h"
#include "http/peer_key.h"
#include "http/trusted_proxy.h"

/* Decompression stops at the route's limit, so a decompression bomb costs no more than a valid body. */
static enum status request_unpack_body(struct http_request *req, struct error *err)
{
        const char *encoding = http_header(req, "Content-Encoding");
        _cleanup_buf_ struct buf out;
        enum status st;

        buf_init_budget(&out, req->route->max_body, get_request_memory_use(req));
        out.memory.group = req->body_group;
        if (!encoding || !*encoding || strcasecmp(encoding, "identity") == 0 || req->body.size == 0)
                return ST_OK;
        /* x-gzip is gzip: RFC 9110, 8.4.1.3. */
        if (strcasecmp(encoding, "gzip") == 0 || strcasecmp(encoding, "x-gzip") == 0 ||
            strcasecmp(encoding, "deflate") == 0)
                st = gzip_decompress(req->body.data, req->body.size, &out, err);
        else if (strcasecmp(encoding, "zstd") == 0)
                st = zstd_decompress(req->body.data, req->body.size, &out, err);
        else if (req->server->options.decode_body)
                st = req->server->options.decode_body(encoding, req->body.data, req->body.size, &out, err);
        else
                st = error_set(err, ST_UNSUPPORTED, "Content-Encoding '%.40s' is not known; use gzip, zstd or none",
                               encoding);
        if (out.failed == ST_BUSY)
                return buf_status(&out, err, "a request body");
        if (st == ST_TOO_BIG)
                error_set(err, st, "the body is larger than %zu bytes after unpacking", req->route->max_body);
        if (st)
                return error_prefix(err, st, "cannot unpack the body");
        http_add_unpacked(req, out.size);
        buf_deinit(&req->body);
        req->body = out;
        buf_init(&out, 0);
        return ST_OK;
}

static struct connection *watched_connection(struct MHD_Connection *connection)
{
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        const struct connection_state *state = info ? info->socket_context : NULL;

        return state ? state->watched : NULL;
}

static void set_request_peer(struct http_request *req, const struct sockaddr *address)
{
        struct peer_key key = peer_key_from_address(address);
        socklen_t n = address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

        req->peer_number = peer_key_hash(&key);
        if (getnameinfo(address, n, req->peer, sizeof req->peer, NULL, 0, NI_NUMERICHOST))
                req->peer[0] = 0;
}

static const struct sockaddr *get_socket_address(const struct http_request *req)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(req->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

        return info ? info->client_addr : NULL;
}

static void record_peer(struct http_request *req)
{
        const struct sockaddr *address = get_socket_address(req);

        if (address)
                set_request_peer(req, address);
}

/* Callback of MHD_get_connection_values(): a proxy may append its header after one sent by the client. */
static enum MHD_Result find_last_forwarded(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
        (void)kind;
        if (strcasecmp(name, "X-Forwarded-For") == 0)
                *(const char **)context = value;
        return MHD_YES;
}

void request_find_forwarded_peer(struct http_request *req)
{
        const struct http_options *o = &req->server->options;
        struct sockaddr_in6 client = { .sin6_family = AF_INET6 };
        struct sockaddr_in client_v4 = { .sin_family = AF_INET };
        const struct sockaddr *address = get_socket_address(req);
        const char *header = NULL;

        if (!o->trusted_proxy_count || !address || !address_from_socket(address, &client.sin6_addr))
                return;
        req->is_from_proxy = is_address_in_ranges(&client.sin6_addr, o->trusted_proxies, o->trusted_proxy_count);
        if (!req->is_from_proxy)
                return;
        MHD_get_connection_values(req->connection, MHD_HEADER_KIND, find_last_forwarded, &header);
        find_forwarded_client(header, o->trusted_proxies, o->trusted_proxy_count, &client.sin6_addr);
        memcpy(&client_v4.sin_addr, client.sin6_addr.s6_addr + 12, sizeof client_v4.sin_addr);
        set_request_peer(req, IN6_IS_ADDR_V4MAPPED(&client.sin6_addr) ? (const struct sockaddr *)&client_v4
                                                                      : (const struct sockaddr *)&client);
}

bool http_is_from_proxy(const struct http_request *req)
{
        return req->is_from_proxy;
}

bool http_is_secure(const struct http_request *req)
{
        const char *protocol = req->is_from_proxy ? http_header(req, "X-Forwarded-Proto") : NULL;

        return req->server->options.tls || (protocol && strcasecmp(protocol, "https") == 0);
}

struct cancel_flag *cancel_flag_ref(struct cancel_flag *flag)
{
        atomic_fetch_add(&flag->references, 1);
        return flag;
}

void cancel_flag_unref(struct cancel_flag *flag)
{
        if (flag && atomic_fetch_sub(&flag->references, 1) == 1)
                free(flag);
}

struct http_request *request_create(struct http_server *s, struct MHD_Connection *connection, const char *uri)
{
        struct http_request *req = calloc(1, sizeof *req);

        if (!req)
                return NULL;
        req->task.run = run_request_handler;
        req->server = s;
        req->connection = connection;
        req->watched = watched_connection(connection);
        req->deadline = (struct deadline){ .expires_ns = INT64_MAX, .cancelled = connection_client_left(req->watched) };
        req->uri = strdup(uri);
        req->cancel = calloc(1, sizeof *req->cancel);
        if (!req->uri || !req->cancel) {
                free(req->cancel);
                free(req->uri);
                free(req);
                return NULL;
        }
        atomic_init(&req->cancel->references, 1);
        pthread_mutex_init(&req->step_lock, NULL);
        buf_init(&req->body, 0);
        req->held.use = MEMORY_SYMBOLIZE;
        req->answer.use = MEMORY_ANSWERS;
        buf_init(&req->error_body, KiB(4));
        record_peer(req);
        pthread_mutex_lock(&s->lock);
        s->active++;
        pthread_mutex_unlock(&s->lock);
        return req;
}

void request_watch(struct http_request *req, int64_t expires_ns)
{
        connection_watch(req->watched, &req->cancel->value, expires_ns);
        if (atomic_load(&req->server->stopping))
                atomic_store(&req->cancel->value, true);
}

void run_request_handler(struct pool_task *task)
{
        struct http_request *req = (struct http_request *)task;
        struct error err;
        enum status st = ST_OK;

        log_set_request(req->id);
        if (!req->route->chunk) { /* a streamed body was passed to chunk */
                if (deadline_expired(&req->deadline)) {
                        http_fail_code(req, 503, "busy", "no thread became free in time; retry later");
                        log_set_request(NULL);
                        MHD_resume_connection(req->connection);
                        return;
                }
                st = request_unpack_body(req, &err);
        }
        req->stream_open = false;
        if (st)
                http_fail(req, st, &err);
        else
                req->route->handle(req);
        if (!req->answered)
                http_fail_code(req, 500, "internal", "the handler did not respond");
        log_set_request(NULL);
        MHD_resume_connection(req->connection); /* from here on the byte thread owns the request */
}

void request_end_stream(struct http_request *req)
{
        if (!req->stream_open)
                return;
        req->stream_open = false;
        if (req->route->abandon)
                req->route->abandon(req);
}

static struct handler_pool *get_request_pool(const struct http_request *req)
{
        return &req->server->pools[req->route->pool];
}

void run_request_chunk(struct pool_task *task)
{
        struct http_request *req = (struct http_request *)task;
        size_t n = req->body.size - req->stepped;
        enum status st;

        log_set_request(req->id);
        st = req->route->chunk(req, req->body.data + req->stepped, &n);
        log_set_request(NULL);
        req->stepped += n;
        if (!st && req->stepped < req->body.size) {
                if (handler_pool_push(get_request_pool(req), &req->task))
                        return;
                http_fail_code(req, 503, "stopping", "the service is stopping; retry later");
        } else if (st && !req->answered) {
                http_fail(req, st, NULL);
        }
        if (req->answered)
                request_end_stream(req);
        pthread_mutex_lock(&req->step_lock);
        req->stepping = false;
        MHD_resume_connection(req->connection); /* from here on the byte thread owns the request */
        pthread_mutex_unlock(&req->step_lock);
}

static void free_request(struct http_request *req)
{
        struct http_server *s = req->server;

        request_end_stream(req);
        request_clear_parts(req);
        for (size_t i = 0; i < req->query_count; i++) {
                free(req->query[i].name);
                free(req->query[i].value);
        }
        for (size_t i = 0; i < req->header_count; i++)
                free(req->headers[i].value);
        if (req->response)
                MHD_destroy_response(req->response);
        buf_deinit(&req->body);
        buf_deinit(&req->error_body);
        memory_release(&req->held);
        memory_release(&req->answer);
        cancel_flag_unref(req->cancel);
        free(req->token);
        free(req->sender);
        free(req->path);
        free(req->uri);
        pthread_mutex_destroy(&req->step_lock);
        free(req);
        pthread_mutex_lock(&s->lock);
        if (--s->active == 0)
                pthread_cond_broadcast(&s->idle);
        pthread_mutex_unlock(&s->lock);
}

static void run_free_task(struct pool_task *task)
{
        free_request((struct http_request *)task);
}

/* Freeing an abandoned upload may delete gigabytes, which blocks: not on a byte thread. */
void request_destroy(struct http_request *req)
{
        struct http_server *s = req->server;

        if (s->options.finished)
                s->options.finished(s->options.context, req);
        atomic_store(&req->cancel->value, true);
        req->connection = NULL;
        req->task.run = run_free_task;
        if (!req->stream_open || !handler_pool_push(get_request_pool(req), &req->task))
                free_request(req);
}

bool request_has_body(const struct http_request *req)
{
        const char *length = http_header(req, "Content-Length");

        return http_header(req, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
}

enum memory_use get_request_memory_use(const struct http_request *req)
{
        return req->route->scope == SCOPE_INGEST ? MEMORY_INGEST : MEMORY_BODIES;
}

void http_free_body(struct http_request *req)
{
        buf_deinit(&req->body);
}

enum status http_reserve_memory(struct http_request *req, size_t n, struct error *err)
{
        return memory_reserve(&req->held, n, err);
}

const char *http_method(const struct http_request *req)
{
        return req->method;
}

const char *http_path(const struct http_request *req)
{
        return req->path ? req->path : req->uri;
}

const char *http_uri(const struct http_request *req)
{
        return req->uri;
}

void *http_context(const struct http_request *req)
{
        return req->server->context;
}

int http_route_argument(const struct http_request *req)
{
        return req->route->argument;
}

const char *http_path_part(const struct http_request *req, const char *name)
{
        size_t n = strlen(name);

        for (size_t i = 0; i < req->part_count; i++)
                if (req->parts[i].name_size == n && memcmp(req->parts[i].name, name, n) == 0)
                        return req->parts[i].text;
        return "";
}

const char *http_query(const struct http_request *req, const char *name)
{
        for (size_t i = 0; i < req->query_count; i++)
                if (strcmp(req->query[i].name, name) == 0)
                        return req->query[i].value;
        return NULL;
}

const char *http_query_name(const struct http_request *req, size_t i)
{
        return i < req->query_count ? req->query[i].name : NULL;
}

const char *http_header(const struct http_request *req, const char *name)
{
        return MHD_lookup_connection_value(req->connection, MHD_HEADER_KIND, name);
}

struct header_count {
        const char *name;
        unsigned count;
};

/* Callback of MHD_get_connection_values(). */
static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
        struct header_count *c = context;

        (void)kind;
        (void)value;
        c->count += strcasecmp(name, c->name) == 0;
        return MHD_YES;
}

unsigned http_count_headers(const struct http_request *req, const char *name)
{
        struct header_count c = { .name = name };

        MHD_get_connection_values(req->connection, MHD_HEADER_KIND, count_header, &c);
        return c.count;
}

const struct deadline *http_request_deadline(const struct http_request *req)
{
        return &req->deadline;
}

const atomic_bool *http_request_cancelled(const struct http_request *req)
{
        return &req->cancel->value;
}

const uint8_t *http_body(const struct http_request *req, size_t *size_ret)
{
        *size_ret = req->body.size;
        return req->body.data;
}

const char *http_token_name(const struct http_request *req)
{
        return req->token_name;
}

void http_set_tenant(struct http_request *req, void *tenant, unsigned lane)
{
        assert(lane == 0 || lane < req->server->options.lanes);
        req->task.lane = lane;
        req->tenant = tenant;
}

void http_set_body_group(struct http_request *req, struct memory_group *group)
{
        req->body_group = group;
}

void *http_tenant(const struct http_request *req)
{
        return req->tenant;
}

void http_set_token_name(struct http_request *req, const char *name)
{
        snprintf(req->token_name, sizeof req->token_name, "%s", name);
}

void http_set_sender(struct http_request *req, void *sender)
{
        free(req->sender);
        req->sender = sender;
}

const void *http_sender(const struct http_request *req)
{
        return req->sender;
}

const char *http_cookie(const struct http_request *req, const char *name)
{
        return MHD_lookup_connection_value(req->connection, MHD_COOKIE_KIND, name);
}

const struct http_route *http_route(const struct http_request *req)
{
        return req->route;
}

const char *http_token(const struct http_request *req)
{
        return req->token;
}

const char *http_peer(const struct http_request *req)
{
        return req->peer;
}

uint64_t http_peer_number(const struct http_request *req)
{
        return req->peer_number;
}

int64_t http_arrived_ns(const struct http_request *req)
{
        return req->arrived_ns;
}

uint64_t http_received_bytes(const struct http_request *req)
{
        return req->unpacked_bytes > req->received_bytes ? req->unpacked_bytes : req->received_bytes;
}

void http_add_unpacked(struct http_request *req, uint64_t n)
{
        req->unpacked_bytes += n;
}

uint64_t http_admitted_bytes(const struct http_request *req)
{
        return req->admitted_bytes;
}

void http_set_state(struct http_request *req, void *state)
{
        req->state = state;
}

void *http_state(struct http_request *req)
{
        return req->state;
}

bool http_is_answered(const struct http_request *req)
{
        return req->answered;
}

const atomic_bool *http_server_stopping(const struct http_request *req)
{
        return &req->server->stopping;
}
