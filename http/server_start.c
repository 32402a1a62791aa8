/* SPDX-License-Identifier: Apache-2.0 */
/* Start and stop of the server. */
#include "http/http_server_internal.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/threads/condition.h"
#include "common/threads/time_slice.h"
#include "http/listen.h"

#define STOP_GRACE_S 5 /* for clients still sending or reading when the server stops */

static void *on_mhd_uri(void *context, const char *uri, struct MHD_Connection *connection)
{
        return request_create(context, connection, uri);
}

static void on_mhd_completed(void *context, struct MHD_Connection *connection, void **state,
                             enum MHD_RequestTerminationCode why)
{
        (void)context;
        (void)connection;
        (void)why;
        if (*state) {
                connection_set_phase(((struct http_request *)*state)->watched, CONNECTION_WAITING);
                connection_watch(((struct http_request *)*state)->watched, NULL, 0);
                request_destroy(*state);
        }
        *state = NULL;
}

static enum MHD_Result on_mhd_accept(void *context, const struct sockaddr *address, socklen_t n)
{
        struct http_server *s = context;

        (void)n;
        return connections_make_room(s->connections, address) ? MHD_YES : MHD_NO;
}

static struct connection_state *open_connection(struct http_server *s, struct MHD_Connection *connection)
{
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct connection_state *state = calloc(1, sizeof *state);
        const union MHD_ConnectionInfo *address, *session;
        int fd = info ? info->connect_fd : -1;

        if (!state)
                return NULL;
        address = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        if (fd >= 0 && address)
                state->watched = connection_open(s->connections, fd, address->client_addr);
        session = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        if (s->options.tls && session) { /* a connection keeps the certificate it started with */
                state->pair = tls_pair_acquire(s->options.tls);
                tls_pair_apply(state->pair, session->tls_session);
        }
        return state;
}

static void shorten_slice_of_mhd_thread(void)
{
        static _Thread_local bool is_short;

        if (!is_short)
                shorten_time_slice();
        is_short = true;
}

static void note_begun_connection(struct http_server *s)
{
        pthread_mutex_lock(&s->lock);
        s->unbegun -= s->unbegun > 0;
        pthread_cond_signal(&s->begun);
        pthread_mutex_unlock(&s->lock);
}

static void on_mhd_connection(void *context, struct MHD_Connection *connection, void **kept,
                              enum MHD_ConnectionNotificationCode what)
{
        struct connection_state *state = *kept;
        struct http_server *s = context;

        shorten_slice_of_mhd_thread();
        if (what == MHD_CONNECTION_NOTIFY_STARTED) {
                note_begun_connection(s);
                *kept = open_connection(s, connection);
        } else if (state) {
                connection_close(s->connections, state->watched);
                tls_pair_release(state->pair);
                free(state);
                *kept = NULL;
        }
}

/* Disabled: server_path.c parses the path as sent. */
static size_t no_unescape(void *context, struct MHD_Connection *connection, char *text)
{
        (void)context;
        (void)connection;
        return strlen(text);
}

static unsigned count_cores(void)
{
        long n = sysconf(_SC_NPROCESSORS_ONLN);

        return n < 1 ? 1 : n > 64 ? 64 : (unsigned)n;
}

/* The other half of the descriptors is for files. */
static unsigned compute_connection_limit(void)
{
        struct rlimit l;

        return getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur / 2 > UINT_MAX ? UINT_MAX : (unsigned)l.rlim_cur / 2;
}

static unsigned number_or_default(unsigned v, unsigned standard)
{
        return v ? v : standard;
}

static enum status watch_connections(struct http_server *s, struct error *err)
{
        const struct http_options *o = &s->options;
        unsigned affordable = compute_connection_limit();
        struct connection_limits limits = { .headers_s = number_or_default(o->headers_s, LIMIT_HTTP_HEADERS_S),
                                            .slow_s = number_or_default(o->slow_s, LIMIT_HTTP_SLOW_S) };

        s->max_connections = number_or_default(o->max_connections, LIMIT_HTTP_CONNECTIONS);
        if (s->max_connections > affordable)
                s->max_connections = affordable;
        limits.all = s->max_connections;
        limits.per_address = number_or_default(o->max_per_address, (s->max_connections + 1) / 2);
        limits.handshakes = o->tls ? LIMIT_TLS_HANDSHAKES : 0;
        return connections_create(&limits, &s->connections, err);
}

#define UNBEGUN_MAX 16
#define UNBEGUN_WAIT_MS 100 /* libmicrohttpd does not report those that it could not begin */

/* A limit of libmicrohttpd itself would end connections that are added past it. */
static bool has_connection_room(void *context)
{
        const union MHD_DaemonInfo *info;
        struct http_server *s = context;
        int64_t until = monotonic_ns() + UNBEGUN_WAIT_MS * INT64_C(1000000);
        unsigned unbegun;

        pthread_mutex_lock(&s->lock);
        while (s->unbegun >= UNBEGUN_MAX)
                if (!condition_wait_until(&s->begun, &s->lock, until))
                        s->unbegun = 0;
        unbegun = s->unbegun;
        pthread_mutex_unlock(&s->lock);
        info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
        return !info || info->num_connections + unbegun < s->mhd_room;
}

/* Closes the connection if libmicrohttpd does not take it. */
static void add_mhd_connection(void *context, int fd, const struct sockaddr *address, socklen_t n)
{
        struct http_server *s = context;

        pthread_mutex_lock(&s->lock);
        s->unbegun++; /* before it begins */
        pthread_mutex_unlock(&s->lock);
        if (MHD_add_connection(s->daemon, fd, address, n) != MHD_YES)
                note_begun_connection(s);
}

/*
 * epoll: poll() walks all connections for each event, so thousands of idle connections would slow down every response.
 * libmicrohttpd uses edge-triggered events: a client that closes together with its last bytes causes a single edge, so
 * libmicrohttpd misses the close; connections.c detects it.
 */
static enum status start_daemon(struct http_server *s, struct error *err)
{
        unsigned byte_threads = count_cores() < 2 ? 2 : count_cores() > 4 ? 4 : count_cores();
        unsigned flags =
                MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC;
        struct tls_pair *pair = s->options.tls ? tls_pair_acquire(s->options.tls) : NULL;
        struct MHD_OptionItem tls[] = {
                { MHD_OPTION_HTTPS_MEM_CERT, 0, pair ? (void *)(uintptr_t)tls_pair_cert(pair) : NULL },
                { MHD_OPTION_HTTPS_MEM_KEY, 0, pair ? (void *)(uintptr_t)tls_pair_key(pair) : NULL },
                { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES },
                { MHD_OPTION_END, 0, NULL },
        };

        s->mhd_room = s->max_connections + s->max_connections / 8 + 16 * byte_threads;
        s->daemon =
                MHD_start_daemon(flags | (pair ? MHD_USE_TLS : 0), 0, on_mhd_accept, s, handle_mhd_callback, s,
                                 MHD_OPTION_THREAD_POOL_SIZE, byte_threads, MHD_OPTION_CONNECTION_LIMIT,
                                 s->mhd_room * byte_threads /* each has a part */, MHD_OPTION_CONNECTION_TIMEOUT,
                                 (unsigned)LIMIT_HTTP_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 (size_t)LIMIT_HTTP_CONNECTION_BYTES, MHD_OPTION_URI_LOG_CALLBACK, on_mhd_uri, s,
                                 MHD_OPTION_NOTIFY_COMPLETED, on_mhd_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION,
                                 on_mhd_connection, s, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK,
                                 no_unescape, NULL, MHD_OPTION_ARRAY, pair ? tls : tls + 3, MHD_OPTION_END);
        tls_pair_release(pair);
        return s->daemon ? ST_OK : error_set(err, ST_OS, "cannot start the HTTP server");
}

static enum status start_pools(struct http_server *s, struct error *err)
{
        const struct http_pool_options single = { .name = "http", .threads = s->options.threads };
        const struct http_pool_options *pools = s->options.pools ? s->options.pools : &single;
        unsigned count = s->options.pools ? s->options.pool_count : 1;
        enum status st = ST_OK;

        assert(count <= HTTP_POOLS_MAX);
        for (size_t i = 0; i < s->route_count; i++)
                assert(s->routes[i].pool < count && !pools[s->routes[i].pool].is_unused);
        while (!st && s->pool_count < count) {
                struct http_pool_options o = pools[s->pool_count];

                if (o.is_unused)
                        o.threads = o.spare = 0;
                else if (!o.threads)
                        o.threads = count_cores() < 4 ? 4 : count_cores();
                st = handler_pool_start(&s->pools[s->pool_count++], &o, s->options.lanes ? s->options.lanes : 1, err);
        }
        return st;
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
        pthread_cond_init(&s->begun, NULL);
        st = open_listen_socket(options->host, options->port, &listener, &s->port, err);
        if (!st)
                st = start_pools(s, err);
        if (!st)
                st = watch_connections(s, err);
        if (!st)
                st = start_daemon(s, err);
        s->acceptor = (struct accept_thread){
                .listener = listener, .has_room = has_connection_room, .take = add_mhd_connection, .context = s
        };
        if (!st)
                st = accept_thread_start(&s->acceptor, err);
        if (st) {
                if (listener >= 0)
                        close(listener);
                http_server_stop(s);
                return st;
        }
        *ret = s;
        return ST_OK;
}

struct handler_pool *http_server_get_pool(struct http_server *s, unsigned number)
{
        assert(number < s->pool_count);
        return &s->pools[number];
}

uint16_t http_server_port(const struct http_server *s)
{
        return s->port;
}

static void wait_until_idle(struct http_server *s)
{
        int64_t until = monotonic_ns() + STOP_GRACE_S * INT64_C(1000000000);

        pthread_mutex_lock(&s->lock);
        while (s->active && condition_wait_until(&s->idle, &s->lock, until))
                ;
        pthread_mutex_unlock(&s->lock);
}

void http_server_stop(struct http_server *s)
{
        if (!s)
                return;
        atomic_store(&s->stopping, true);
        accept_thread_stop(&s->acceptor);
        if (s->daemon) {
                connections_cancel_all(s->connections);
                wait_until_idle(s);
        }
        for (unsigned i = 0; i < s->pool_count; i++)
                handler_pool_stop(&s->pools[i]);
        if (s->daemon)
                MHD_stop_daemon(s->daemon);
        connections_destroy(s->connections);
        for (unsigned i = 0; i < s->pool_count; i++)
                handler_pool_deinit(&s->pools[i]);
        pthread_cond_destroy(&s->idle);
        pthread_cond_destroy(&s->begun);
        pthread_mutex_destroy(&s->lock);
        free(s);
}
