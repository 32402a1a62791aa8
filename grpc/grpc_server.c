/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread and one epoll set for all connections. Connection limits, eviction and slow clients: http/connections.h.
 * In addition, a client that does not send an HTTP/2 preface within LIMIT_HTTP_HEADERS_S is disconnected, and one
 * without a call for LIMIT_GRPC_IDLE_S gets GOAWAY.
 *
 * While output is blocked no input is read, so that a client that does not read cannot accumulate responses. A
 * connection whose responses wait only for a flow-control window is idle, and they are dropped after LIMIT_HTTP_SLOW_S.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/metrics.h"
#include "common/threads/time_slice.h"
#include "grpc/grpc_internal.h"
#include "grpc/transport.h"
#include "http/connections.h"
#include "http/listen.h"

#define EVENTS_MAX 64
#define ACCEPTS_MAX 64 /* consecutively */
#define READ_BYTES KiB(16)
#define TURN_BYTES KiB(256) /* read from one connection before others are served */
#define SWEEP_MS 1000
#define STOP_GRACE_S 5 /* for clients still sending or reading when the server stops */
#define SECOND_NS INT64_C(1000000000)

struct grpc_connection {
        TAILQ_ENTRY(grpc_connection) next;
        struct transport transport;
        struct grpc_session *session;
        struct connection *watched; /* may be NULL */
        struct buf output;          /* output of the session, of which output_sent bytes are sent */
        size_t output_sent;
        bool is_blocked; /* output waits for space in the socket buffer */
        bool is_closed;  /* in the list of closed connections */
        enum connection_phase phase;
        int64_t since_ns; /* when it was accepted, or when its last call ended */
        uint32_t events;  /* registered with epoll */
};

TAILQ_HEAD(connection_queue, grpc_connection);

struct grpc_server {
        struct grpc_dispatcher dispatcher;
        struct connections *limits;
        struct connection_queue open, closed; /* closed: freed after the current events are handled */
        int listener, epoll_fd;
        bool accepts; /* the listener is in the epoll set */
        uint16_t port;
        atomic_bool stop_asked;
        pthread_t thread;
        bool has_thread;
};

#define ENDED_BY(reason)                                                                                               \
        METRIC_COUNTER("cairn_grpc_connections_ended_total", "Connections ended by the server.",                       \
                       "reason=\"" reason "\"")
static struct metric ended_handshake = ENDED_BY("handshake"), ended_idle = ENDED_BY("idle");
static struct metric refused_memory =
        METRIC_COUNTER("cairn_grpc_connections_refused_total", "Connections refused at a limit.", "reason=\"memory\"");

/* ---- one connection ---- */

static void close_grpc_connection(struct grpc_server *s, struct grpc_connection *c)
{
        if (c->is_closed)
                return;
        c->is_closed = true;
        grpc_session_destroy(c->session);
        c->session = NULL;
        connection_close(s->limits, c->watched);
        if (c->events) /* close() does not remove it while a forked process also has the descriptor */
                (void)!epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, c->transport.fd, NULL);
        transport_close(&c->transport);
        buf_deinit(&c->output);
        TAILQ_REMOVE(&s->open, c, next);
        TAILQ_INSERT_TAIL(&s->closed, c, next);
}

static void free_closed_connections(struct grpc_server *s)
{
        struct grpc_connection *c;

        while ((c = TAILQ_FIRST(&s->closed))) {
                TAILQ_REMOVE(&s->closed, c, next);
                free(c);
        }
}

/* False: the connection failed. */
static bool flush_grpc_output(struct grpc_connection *c)
{
        for (;;) {
                size_t n = 0;

                if (c->output_sent == c->output.size) {
                        buf_clear(&c->output);
                        c->output_sent = 0;
                        if (grpc_session_put_output(c->session, &c->output, NULL))
                                return false;
                        c->is_blocked = false;
                        if (c->output.size == 0) {
                                buf_deinit(&c->output); /* idle connections hold no buffer */
                                return true;
                        }
                }
                switch (transport_write(&c->transport, c->output.data + c->output_sent, c->output.size - c->output_sent,
                                        &n)) {
                case TRANSPORT_DONE:
                        c->output_sent += n;
                        break;
                case TRANSPORT_WAIT:
                        c->is_blocked = true;
                        return true;
                case TRANSPORT_ENDED:
                        return false;
                }
        }
}

static void update_phase(struct grpc_connection *c)
{
        struct grpc_activity now = grpc_session_get_activity(c->session);
        enum connection_phase phase = CONNECTION_WAITING;

        if (c->is_blocked)
                phase = CONNECTION_SENDING;
        else if (now.is_reading)
                phase = CONNECTION_READING;
        else if (now.is_handling)
                phase = CONNECTION_WORKING;
        else if (grpc_session_is_established(
                         c->session)) /* responses without a flow-control window do not keep it open */
                phase = CONNECTION_IDLE;
        if (phase != c->phase) {
                c->phase = phase;
                c->since_ns = monotonic_ns();
                connection_set_phase(c->watched, phase);
        }
        connection_set_held_bytes(c->watched, now.held_bytes);
}

static void update_events(struct grpc_server *s, struct grpc_connection *c)
{
        uint32_t wanted = c->is_blocked || c->transport.wants_write ? EPOLLOUT : EPOLLIN;
        struct epoll_event e = { .events = wanted, .data.ptr = c };

        if (wanted == c->events)
                return;
        (void)!epoll_ctl(s->epoll_fd, c->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->transport.fd, &e);
        c->events = wanted;
}

/* Send pending output, and close the connection if it ended or failed. */
static void settle_connection(struct grpc_server *s, struct grpc_connection *c)
{
        if (c->transport.is_open && (!flush_grpc_output(c) || (grpc_session_has_ended(c->session) && !c->is_blocked))) {
                close_grpc_connection(s, c);
                return;
        }
        update_phase(c);
        update_events(s, c);
}

/* False: the connection has ended. */
static bool read_input(struct grpc_connection *c)
{
        uint8_t data[READ_BYTES];

        for (size_t moved = 0; moved < TURN_BYTES || transport_has_input(&c->transport);) {
                enum transport_result r;
                size_t n = 0;

                if (!flush_grpc_output(c))
                        return false;
                if (c->is_blocked || grpc_session_has_ended(c->session))
                        return true;
                r = transport_read(&c->transport, data, sizeof data, &n);
                if (r != TRANSPORT_DONE)
                        return r == TRANSPORT_WAIT;
                moved += n;
                if (grpc_session_receive(c->session, data, n, NULL))
                        return false;
        }
        return true;
}

static void drive_connection(struct grpc_server *s, struct grpc_connection *c)
{
        enum transport_result r;

        if (c->is_closed)
                return;
        r = transport_handshake(&c->transport);
        if (r == TRANSPORT_ENDED || (r == TRANSPORT_DONE && !read_input(c)))
                close_grpc_connection(s, c);
        else
                settle_connection(s, c);
}

/* ---- accepting ---- */

static bool evict_for_memory(struct grpc_server *s)
{
        int fd = connections_evict_one(s->limits);
        struct grpc_connection *c;

        if (fd < 0)
                return false;
        TAILQ_FOREACH(c, &s->open, next)
        {
                if (c->transport.fd != fd)
                        continue;
                close_grpc_connection(s, c);
                return true;
        }
        return false;
}

static enum status open_grpc_connection(struct grpc_server *s, int fd, const struct sockaddr *peer, struct error *err)
{
        struct grpc_connection *c = calloc(1, sizeof *c);
        const int on = 1;
        enum status st;

        if (!c) {
                close(fd);
                return error_no_memory(err);
        }
        buf_init(&c->output, LIMIT_GRPC_OUTPUT_BYTES + KiB(32));
        c->since_ns = monotonic_ns();
        c->phase = CONNECTION_WAITING;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        st = transport_open(&c->transport, fd, s->dispatcher.options.tls, err);
        if (!st)
                st = grpc_session_create(&s->dispatcher, peer, c, &c->session, err);
        if (st == ST_BUSY && evict_for_memory(s))
                st = grpc_session_create(&s->dispatcher, peer, c, &c->session, err);
        if (st) {
                transport_close(&c->transport);
                free(c);
                return st;
        }
        c->watched = connection_open(s->limits, fd, peer);
        TAILQ_INSERT_TAIL(&s->open, c, next);
        drive_connection(s, c);
        return ST_OK;
}

static void set_accepting(struct grpc_server *s, bool on)
{
        struct epoll_event e = { .events = EPOLLIN, .data.ptr = &s->listener };

        if (on == s->accepts || s->listener < 0)
                return;
        if (!epoll_ctl(s->epoll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, s->listener, &e))
                s->accepts = on;
}

static void accept_connections(struct grpc_server *s)
{
        for (unsigned i = 0; i < ACCEPTS_MAX; i++) {
                struct sockaddr_storage peer;
                socklen_t n = sizeof peer;
                int fd = accept4(s->listener, (struct sockaddr *)&peer, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

                if (fd < 0) {
                        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                                set_accepting(s, false); /* until the next sweep */
                        return;
                }
                if (!connections_make_room(s->limits, (struct sockaddr *)&peer))
                        close(fd);
                else if (open_grpc_connection(s, fd, (struct sockaddr *)&peer, NULL))
                        metric_add(&refused_memory, 1);
        }
}

/* ---- the connection thread ---- */

static void take_handled_calls(struct grpc_server *s)
{
        struct grpc_dispatcher *d = &s->dispatcher;
        STAILQ_HEAD(, grpc_call) handled = STAILQ_HEAD_INITIALIZER(handled);
        struct grpc_call *call;
        uint64_t count;

        pthread_mutex_lock(&d->lock);
        (void)!read(d->event_fd, &count, sizeof count);
        STAILQ_CONCAT(&handled, &d->handled);
        pthread_mutex_unlock(&d->lock);
        while ((call = STAILQ_FIRST(&handled))) {
                struct grpc_connection *c;

                STAILQ_REMOVE_HEAD(&handled, handled);
                assert(d->handling > 0);
                d->handling--;
                c = call->session ? grpc_session_owner(call->session) : NULL;
                grpc_call_take_back(call);
                if (c)
                        settle_connection(s, c);
        }
}

static void sweep_connection(struct grpc_server *s, struct grpc_connection *c, int64_t now_ns)
{
        int64_t waited_s = (now_ns - c->since_ns) / SECOND_NS;

        if (!grpc_session_is_established(c->session) && waited_s >= LIMIT_HTTP_HEADERS_S) {
                metric_add(&ended_handshake, 1);
                close_grpc_connection(s, c);
                return;
        }
        if (!c->transport.is_open)
                return;
        if (c->phase == CONNECTION_IDLE && waited_s >= LIMIT_GRPC_IDLE_S) {
                metric_add(&ended_idle, 1);
                grpc_session_shutdown(c->session);
        }
        grpc_session_check_times(c->session, now_ns);
        settle_connection(s, c);
}

static void sweep_grpc_connections(struct grpc_server *s)
{
        struct grpc_connection *c, *next;
        int64_t now_ns = monotonic_ns();

        for (c = TAILQ_FIRST(&s->open); c; c = next) {
                next = TAILQ_NEXT(c, next);
                sweep_connection(s, c, now_ns);
        }
        set_accepting(s, true);
}

/* Accept no new connections, and no new calls on open ones. */
static void begin_stop(struct grpc_server *s)
{
        struct grpc_connection *c, *next;

        if (s->dispatcher.stopping)
                return;
        s->dispatcher.stopping = true;
        set_accepting(s, false);
        close(s->listener);
        s->listener = -1;
        for (c = TAILQ_FIRST(&s->open); c; c = next) {
                next = TAILQ_NEXT(c, next);
                grpc_session_shutdown(c->session);
                if (c->transport.is_open)
                        settle_connection(s, c);
                else
                        close_grpc_connection(s, c);
        }
}

static void close_all_connections(struct grpc_server *s)
{
        struct grpc_connection *c;

        while ((c = TAILQ_FIRST(&s->open)))
                close_grpc_connection(s, c);
}

static void handle_grpc_event(struct grpc_server *s, void *subject)
{
        if (subject == &s->listener) {
                if (s->listener >= 0)
                        accept_connections(s);
        } else if (subject == &s->dispatcher) {
                take_handled_calls(s);
        } else {
                drive_connection(s, subject);
        }
}

static void *run_grpc_server(void *arg)
{
        struct grpc_server *s = arg;
        int64_t swept_ns = monotonic_ns(), stop_ns = INT64_MAX;

        shorten_time_slice();
        while (!s->dispatcher.stopping || !TAILQ_EMPTY(&s->open) || s->dispatcher.handling) {
                struct epoll_event events[EVENTS_MAX];
                int64_t rest_ms = SWEEP_MS - (monotonic_ns() - swept_ns) / 1000000;
                int count = epoll_wait(s->epoll_fd, events, EVENTS_MAX, rest_ms > 0 ? (int)rest_ms : 0);

                for (int i = 0; i < count; i++)
                        handle_grpc_event(s, events[i].data.ptr);
                if (monotonic_ns() - swept_ns >= SWEEP_MS * INT64_C(1000000)) {
                        swept_ns = monotonic_ns();
                        sweep_grpc_connections(s);
                }
                if (atomic_load(&s->stop_asked) && !s->dispatcher.stopping) {
                        stop_ns = monotonic_ns() + STOP_GRACE_S * SECOND_NS;
                        begin_stop(s);
                }
                if (monotonic_ns() >= stop_ns)
                        close_all_connections(s);
                free_closed_connections(s);
        }
        return NULL;
}

/* ---- start and stop ---- */

static unsigned compute_grpc_connections(unsigned wanted)
{
        struct rlimit l;
        unsigned most = wanted ? wanted : LIMIT_HTTP_CONNECTIONS;
        size_t memory = memory_use_ceiling(MEMORY_CONNECTIONS);

        /* Half of the connections' memory; the rest is for their calls. */
        if (memory != SIZE_MAX && memory / (2 * LIMIT_GRPC_CONNECTION_BYTES) < most)
                most = (unsigned)(memory / (2 * LIMIT_GRPC_CONNECTION_BYTES));
        /* A quarter of the descriptors; HTTP has half. */
        if (!getrlimit(RLIMIT_NOFILE, &l) && l.rlim_cur / 4 < most)
                most = (unsigned)l.rlim_cur / 4;
        return most ? most : 1;
}

static enum status open_grpc_descriptors(struct grpc_server *s, struct error *err)
{
        const struct grpc_options *o = &s->dispatcher.options;
        struct epoll_event e = { .events = EPOLLIN, .data.ptr = &s->dispatcher };

        s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        s->dispatcher.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (s->epoll_fd < 0 || s->dispatcher.event_fd < 0 ||
            epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->dispatcher.event_fd, &e))
                return error_os(err, errno, "cannot wait for connections");
        return open_listen_socket(o->host, o->port, &s->listener, &s->port, err);
}

static enum status start_grpc_thread(struct grpc_server *s, struct error *err)
{
        int failed;

        set_accepting(s, true);
        failed = pthread_create(&s->thread, NULL, run_grpc_server, s);
        if (failed)
                return error_os(err, failed, "cannot start a thread");
        s->has_thread = true;
        pthread_setname_np(s->thread, "grpc");
        return ST_OK;
}

static void register_grpc_metrics(void)
{
        struct metric *const metrics[] = { &ended_handshake, &ended_idle, &refused_memory };

        for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
                metric_register(metrics[i]);
        register_grpc_call_metrics();
}

enum status grpc_server_start(const struct grpc_options *options, struct grpc_server **ret, struct error *err)
{
        struct grpc_server *s = calloc(1, sizeof *s);
        struct connection_limits limits = { .protocol = CONNECTIONS_GRPC,
                                            .headers_s = LIMIT_HTTP_HEADERS_S,
                                            .slow_s = LIMIT_HTTP_SLOW_S };
        enum status st;

        if (!s)
                return error_no_memory(err);
        s->dispatcher.options = *options;
        s->dispatcher.event_fd = s->listener = s->epoll_fd = -1;
        STAILQ_INIT(&s->dispatcher.handled);
        pthread_mutex_init(&s->dispatcher.lock, NULL);
        TAILQ_INIT(&s->open);
        TAILQ_INIT(&s->closed);
        limits.all = compute_grpc_connections(options->max_connections);
        limits.per_address = options->max_per_address ? options->max_per_address : (limits.all + 1) / 2;
        limits.handshakes = options->tls ? LIMIT_TLS_HANDSHAKES : 0;
        register_grpc_metrics();
        st = connections_create(&limits, &s->limits, err);
        if (!st)
                st = open_grpc_descriptors(s, err);
        if (!st)
                st = start_grpc_thread(s, err);
        if (st)
                grpc_server_stop(s);
        else
                *ret = s;
        return st;
}

uint16_t grpc_server_port(const struct grpc_server *s)
{
        return s->port;
}

void grpc_server_stop(struct grpc_server *s)
{
        const uint64_t one = 1;

        if (!s)
                return;
        if (s->has_thread) {
                atomic_store(&s->stop_asked, true);
                (void)!write(s->dispatcher.event_fd, &one, sizeof one);
                pthread_join(s->thread, NULL);
        }
        connections_destroy(s->limits);
        if (s->listener >= 0)
                close(s->listener);
        if (s->epoll_fd >= 0)
                close(s->epoll_fd);
        if (s->dispatcher.event_fd >= 0)
                close(s->dispatcher.event_fd);
        pthread_mutex_destroy(&s->dispatcher.lock);
        free(s);
}
