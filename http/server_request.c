/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server_internal.h"

#include <netdb.h>

#include "http/peer_key.h"

static struct connection *watched_connection(struct MHD_Connection *connection)
{
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        const struct connection_state *state = info ? info->socket_context : NULL;

        return state ? state->watched : NULL;
}

static void note_peer(struct http_request *req)
{
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(req->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        struct peer_key key;
        socklen_t n;

        if (!info || !info->client_addr)
                return;
        key = peer_key_of(info->client_addr);
        req->peer_number = peer_key_hash(&key);
        n = info->client_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
        if (getnameinfo(info->client_addr, n, req->peer, sizeof req->peer, NULL, 0, NI_NUMERICHOST))
                req->peer[0] = 0;
}

struct http_request *request_create(struct http_server *s, struct MHD_Connection *connection, const char *uri)
{
        struct http_request *req = calloc(1, sizeof *req);

        if (!req)
                return NULL;
        req->task.run = request_handle;
        req->server = s;
        req->connection = connection;
        req->watched = watched_connection(connection);
        req->deadline = (struct deadline){ .expires_ns = INT64_MAX, .cancelled = connection_client_left(req->watched) };
        req->uri = strdup(uri);
        if (!req->uri) {
                free(req);
                return NULL;
        }
        pthread_mutex_init(&req->step_lock, NULL);
        buf_init(&req->body, 0);
        req->held.use = MEMORY_SYMBOLIZE;
        req->answer.use = MEMORY_ANSWERS;
        buf_init(&req->error_body, KiB(4));
        note_peer(req);
        pthread_mutex_lock(&s->lock);
        s->active++;
        pthread_mutex_unlock(&s->lock);
        return req;
}

void request_handle(struct pool_task *task)
{
        struct http_request *req = (struct http_request *)task;
        struct error err;
        enum status st = ST_OK;

        if (!req->route->chunk) { /* what was streamed is stored in any case */
                if (deadline_expired(&req->deadline)) {
                        http_fail_code(req, 503, "busy", "no thread was free for this in time; retry later");
                        MHD_resume_connection(req->connection);
                        return;
                }
                st = request_unpack_body(req, &err);
        }
        req->stream_open = false;
        if (st)
                http_fail(req, st, &err);
        else
                req->route->handle(req, req->server->context);
        if (!req->answered)
                http_fail_code(req, 500, "internal", "no answer was made");
        MHD_resume_connection(req->connection); /* from here on the request is the byte thread's */
}

void request_end_stream(struct http_request *req)
{
        if (!req->stream_open)
                return;
        req->stream_open = false;
        if (req->route->abandon)
                req->route->abandon(req, req->server->context);
}

static struct handler_pool *pool_of_request(const struct http_request *req)
{
        return &req->server->pools[req->route->pool];
}

void request_step(struct pool_task *task)
{
        struct http_request *req = (struct http_request *)task;
        size_t n = req->body.size - req->stepped;
        enum status st = req->route->chunk(req, req->server->context, req->body.data + req->stepped, &n);

        req->stepped += n;
        if (!st && req->stepped < req->body.size) {
                if (handler_pool_push(pool_of_request(req), &req->task))
                        return;
                http_fail_code(req, 503, "stopping", "the service is stopping; retry later");
        } else if (st && !req->answered) {
                http_fail(req, st, NULL);
        }
        if (req->answered)
                request_end_stream(req);
        pthread_mutex_lock(&req->step_lock);
        req->stepping = false;
        MHD_resume_connection(req->connection); /* from here on the request is the byte thread's */
        pthread_mutex_unlock(&req->step_lock);
}

static void free_request(struct http_request *req)
{
        struct http_server *s = req->server;

        request_end_stream(req);
        request_forget_parts(req);
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
        free(req->token);
        free(req->path);
        free(req->uri);
        pthread_mutex_destroy(&req->step_lock);
        free(req);
        pthread_mutex_lock(&s->lock);
        if (--s->active == 0)
                pthread_cond_broadcast(&s->idle);
        pthread_mutex_unlock(&s->lock);
}

static void run_free(struct pool_task *task)
{
        free_request((struct http_request *)task);
}

/* What is abandoned may be a file of gigabytes, which takes the kernel a while to free. */
void request_destroy(struct http_request *req)
{
        struct http_server *s = req->server;

        if (s->options.finished)
                s->options.finished(s->options.context, req);
        req->connection = NULL;
        req->task.run = run_free;
        if (!req->stream_open || !handler_pool_push(pool_of_request(req), &req->task))
                free_request(req);
}

bool request_has_body(const struct http_request *req)
{
        const char *length = http_header(req, "Content-Length");

        return http_header(req, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
}

enum memory_use request_memory_use(const struct http_request *req)
{
        return req->route->scope == SCOPE_INGEST ? MEMORY_INGEST : MEMORY_BODIES;
}

void http_body_done(struct http_request *req)
{
        buf_deinit(&req->body);
}

enum status http_hold(struct http_request *req, size_t n, struct error *err)
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

const char *http_header(const struct http_request *req, const char *name)
{
        return MHD_lookup_connection_value(req->connection, MHD_HEADER_KIND, name);
}

const struct deadline *http_request_deadline(const struct http_request *req)
{
        return &req->deadline;
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

uint64_t http_received(const struct http_request *req)
{
        return req->unpacked_bytes > req->received_bytes ? req->unpacked_bytes : req->received_bytes;
}

void http_add_unpacked(struct http_request *req, uint64_t n)
{
        req->unpacked_bytes += n;
}

uint64_t http_admitted(const struct http_request *req)
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

bool http_answered(const struct http_request *req)
{
        return req->answered;
}

const atomic_bool *http_server_stopping(const struct http_request *req)
{
        return &req->server->stopping;
}
