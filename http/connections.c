/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every registered connection is in the list `all` and in that of its address; addresses are in a hash table. A
 * connection that is ended here is only shut down: it is marked is_cut, no longer counted, and remains in the lists
 * until its owner calls connection_close().
 *
 * One thread (run_connection_sweep()) does two things: within 100 ms it notes clients that left during WORKING
 * (note_departures(), cancel_departed_requests()), and once a second it checks each connection's rate
 * (sweep_connections()). Rates are measured per phase: `phase` has the number of phase changes in its high bits, so
 * the sweep detects a change between two looks even if the phase is the same again, and starts to measure anew.
 *
 * Order: the sweep, eviction, opening and closing with the functions for the owner of a request, start and stop.
 *
 * Locks: `lock` protects the lists, the counts and the state of the sweep; events of the epoll set are read under it.
 * The owner of a request sets `phase`, `held` and `waiting_since_ns` without a lock. watch_lock protects the cancel
 * flag; it is acquired inside `lock`, or alone.
 */
#include "http/connections.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/queue.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hash/lru_table.h"
#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "common/metrics.h"
#include "http/peer_key.h"

#define SECOND_NS 1000000000ll
#define SWEEP_NS SECOND_NS
#define DEPARTURES_AT_ONCE 64
#define DEPARTURE_GRACE_NS 50000000ll /* a client that only shuts down its sending side gets short responses */
/* TCP states as the kernel numbers them: the header that names them has a struct tcp_info without byte counts. */
#define STATE_ESTABLISHED 1
#define STATE_CLOSE_WAIT 8
#define VANISHED_S 60 /* without acknowledgement of sent data or of a keepalive probe */

struct address {
        struct lru_entry lru; /* the order of use is not needed */
        struct peer_key key;
        unsigned count;      /* connections that are not cut */
        unsigned admitted;   /* by connections_make_room() since the last connection_open(), */
        int64_t admitted_ns; /* the last of them at this time */
        TAILQ_HEAD(, connection) connections;
};

struct connection {
        TAILQ_ENTRY(connection) next, of_address;
        struct address *address;
        int fd;
        bool is_cut, slow;
        bool is_answered;        /* the server has sent bytes */
        atomic_bool client_left; /* while WORKING */
        int64_t departed_ns;     /* when the client shut down its side; 0: it did not, or the request has ended */
        unsigned departed_phase; /* phase at that time */
        atomic_uint phase;       /* enum connection_phase in the low bits; above it, the number of phase changes */
        _Atomic int64_t waiting_since_ns;
        /* State of the sweep for the phase it saw last. */
        unsigned seen;
        uint64_t base_bytes;
        int64_t owed_ns;         /* time during which the client should have sent or read */
        uint64_t interval_bytes; /* bytes at the start of the interval of connection_set_held_bytes(), */
        int64_t interval_ns;     /* and owed_ns at that time */
        _Atomic size_t held;
        pthread_mutex_t watch_lock; /* protects the next two; acquired inside the lock of all connections, or alone */
        atomic_bool *cancel;
        int64_t expires_ns;
};
#define PHASE_MASK 7u
#define PHASE_STEP 8u

struct connection_metrics {
        struct metric open, refused_full, refused_address, refused_handshakes, ended_headers, ended_body, ended_reader,
                ended_room;
};

struct connections {
        struct connection_limits limits;
        struct connection_metrics *metrics;
        pthread_mutex_t lock;
        int departures; /* epoll set: EPOLLRDHUP of connections, and `wake` */
        int wake;       /* eventfd: stop */
        bool departing; /* a connection has departed_ns */
        bool stop;
        pthread_t sweeper;
        unsigned count; /* connections that are not cut */
        TAILQ_HEAD(, connection) all;
        struct lru_table addresses;
};

#define REFUSED(name, reason) METRIC_COUNTER(name, "Connections refused at a limit.", "reason=\"" reason "\"")
#define ENDED(name, reason) METRIC_COUNTER(name, "Connections ended by the server.", "reason=\"" reason "\"")
#define METRICS(open_name, refused_name, ended_name)                                                                   \
        {                                                                                                              \
                .open = METRIC_GAUGE(open_name, "Open connections.", ""),                                              \
                .refused_full = REFUSED(refused_name, "full"), .refused_address = REFUSED(refused_name, "address"),    \
                .refused_handshakes = REFUSED(refused_name, "handshakes"),                                             \
                .ended_headers = ENDED(ended_name, "slow_headers"), .ended_body = ENDED(ended_name, "slow_body"),      \
                .ended_reader = ENDED(ended_name, "slow_reader"), .ended_room = ENDED(ended_name, "room"),             \
        }
static struct connection_metrics metrics_by_protocol[] = {
        [CONNECTIONS_HTTP] = METRICS("cairn_http_connections", "cairn_http_connections_refused_total",
                                     "cairn_http_connections_ended_total"),
        [CONNECTIONS_GRPC] = METRICS("cairn_grpc_connections", "cairn_grpc_connections_refused_total",
                                     "cairn_grpc_connections_ended_total"),
};

/* ---- the sweep ---- */

/* End a connection. @param why NULL: its client disconnected. */
static void cut_connection(struct connections *c, struct connection *connection, struct metric *why)
{
        assert(!connection->is_cut && connection->address->count > 0 && c->count > 0);
        connection->is_cut = true;
        connection->address->count--;
        c->count--;
        if (why)
                metric_add(why, 1);
        shutdown(connection->fd, SHUT_RDWR);
}

static bool is_holding_too_long(struct connection *connection, uint64_t bytes)
{
        int64_t interval_s = memory_budget_refused_recently() ? LIMIT_HTTP_HELD_SHORT_S : LIMIT_HTTP_HELD_S;
        int64_t passed_s = (connection->owed_ns - connection->interval_ns) / SECOND_NS;
        bool is_slow;

        if (passed_s < interval_s)
                return false;
        is_slow = bytes - connection->interval_bytes < (uint64_t)passed_s * LIMIT_HTTP_HELD_BYTES_PER_S;
        connection->interval_bytes = bytes;
        connection->interval_ns = connection->owed_ns;
        return is_slow && atomic_load(&connection->held) >= LIMIT_HTTP_HELD_BYTES;
}

static void check_transfer_rate(struct connections *c, struct connection *connection, uint64_t bytes,
                                struct metric *why)
{
        int64_t owed_s = connection->owed_ns / SECOND_NS, late_s = owed_s - c->limits.slow_s;

        connection->slow = bytes < (uint64_t)owed_s * LIMIT_HTTP_LEAST_BYTES_PER_S;
        if ((late_s > 0 && bytes < (uint64_t)late_s * LIMIT_HTTP_LEAST_BYTES_PER_S) ||
            is_holding_too_long(connection, bytes))
                cut_connection(c, connection, why);
}

static void cancel_request(struct connection *connection)
{
        pthread_mutex_lock(&connection->watch_lock);
        if (connection->cancel)
                atomic_store(connection->cancel, true);
        pthread_mutex_unlock(&connection->watch_lock);
}

static void note_client_left(struct connection *connection)
{
        atomic_store(&connection->client_left, true);
        cancel_request(connection);
}

static void check_expiry(struct connection *connection, int64_t now_ns)
{
        pthread_mutex_lock(&connection->watch_lock);
        if (connection->cancel && now_ns >= connection->expires_ns)
                atomic_store(connection->cancel, true);
        pthread_mutex_unlock(&connection->watch_lock);
}

static void check_connection(struct connections *c, struct connection *connection, int64_t passed_ns)
{
        struct tcp_info info = { 0 };
        socklen_t n = sizeof info;
        unsigned now = atomic_load(&connection->phase), phase = now & PHASE_MASK;
        int queued = 0;
        uint64_t bytes;

        if (getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &n))
                return;
        if (phase ==
            CONNECTION_WORKING) { /* FIN or RST: the response will not be read, whatever input is still unread */
                if (info.tcpi_state != STATE_ESTABLISHED)
                        note_client_left(connection);
                return;
        }
        bytes = phase == CONNECTION_SENDING ? info.tcpi_bytes_acked : info.tcpi_bytes_received;
        if (now != connection->seen) {
                connection->seen = now;
                connection->base_bytes = bytes;
                connection->owed_ns = 0;
                connection->interval_bytes = 0;
                connection->interval_ns = 0;
                connection->slow = false;
                return;
        }
        bytes -= connection->base_bytes;
        if (ioctl(connection->fd, phase == CONNECTION_SENDING ? SIOCOUTQ : SIOCINQ, &queued))
                return;
        if (phase == CONNECTION_SENDING && info.tcpi_state != STATE_ESTABLISHED && queued == 0)
                cancel_request(connection); /* stops the task that generates the rest of the response */
        if (phase != CONNECTION_SENDING && info.tcpi_state == STATE_CLOSE_WAIT && queued == 0) {
                cut_connection(c, connection, NULL);
                return;
        }
        switch (phase) {
        case CONNECTION_IDLE:
                break;
        case CONNECTION_WAITING:
                if (bytes)
                        connection->owed_ns += passed_ns;
                if (connection->owed_ns > c->limits.headers_s * SECOND_NS)
                        cut_connection(c, connection, &c->metrics->ended_headers);
                break;
        case CONNECTION_READING:
                if (queued == 0)
                        connection->owed_ns += passed_ns;
                check_transfer_rate(c, connection, bytes, &c->metrics->ended_body);
                break;
        default:
                if (queued > 0)
                        connection->owed_ns += passed_ns;
                check_transfer_rate(c, connection, bytes, &c->metrics->ended_reader);
        }
}

static void sweep_connections(struct connections *c, int64_t now_ns, int64_t passed_ns)
{
        struct connection *connection;

        TAILQ_FOREACH(connection, &c->all, next)
        {
                check_expiry(connection, now_ns);
                if (!connection->is_cut)
                        check_connection(c, connection, passed_ns);
        }
}

/*
 * Note the requests whose clients shut down their side. Events are read under the lock: none follow the removal of a
 * connection from the epoll set, so a freed connection is never referenced.
 */
static void note_departures(struct connections *c, int64_t now_ns)
{
        struct epoll_event events[DEPARTURES_AT_ONCE];
        int n;

        do {
                n = epoll_wait(c->departures, events, DEPARTURES_AT_ONCE, 0);
                for (int i = 0; i < n; i++) {
                        struct connection *connection = events[i].data.ptr;
                        unsigned phase = connection ? atomic_load(&connection->phase) : 0;

                        if (!connection || (phase & PHASE_MASK) != CONNECTION_WORKING)
                                continue;
                        connection->departed_ns = now_ns;
                        connection->departed_phase = phase;
                        c->departing = true;
                }
        } while (n == DEPARTURES_AT_ONCE);
}

/* Cancel the noted requests that still run after the grace period. */
static void cancel_departed_requests(struct connections *c, int64_t now_ns)
{
        struct connection *connection;

        if (!c->departing)
                return;
        c->departing = false;
        TAILQ_FOREACH(connection, &c->all, next)
        {
                if (!connection->departed_ns)
                        continue;
                if (atomic_load(&connection->phase) == connection->departed_phase &&
                    now_ns - connection->departed_ns < DEPARTURE_GRACE_NS) {
                        c->departing = true;
                        continue;
                }
                if (atomic_load(&connection->phase) == connection->departed_phase)
                        note_client_left(connection);
                connection->departed_ns = 0;
        }
}

static void *run_connection_sweep(void *arg)
{
        struct connections *c = arg;
        struct pollfd departures = { .fd = c->departures, .events = POLLIN };
        int64_t last = monotonic_ns();

        pthread_mutex_lock(&c->lock);
        while (!c->stop) {
                int64_t now, left_ns = last + SWEEP_NS - monotonic_ns();

                if (c->departing && left_ns > DEPARTURE_GRACE_NS / 2)
                        left_ns = DEPARTURE_GRACE_NS / 2;
                pthread_mutex_unlock(&c->lock);
                if (left_ns > 0)
                        (void)poll(&departures, 1, (int)(left_ns / 1000000) + 1);
                pthread_mutex_lock(&c->lock);
                now = monotonic_ns();
                note_departures(c, now);
                cancel_departed_requests(c, now);
                if (now - last >= SWEEP_NS) {
                        sweep_connections(c, now, now - last);
                        last = now;
                }
        }
        pthread_mutex_unlock(&c->lock);
        return NULL;
}

/* ---- eviction ---- */

static bool has_peer_key(const struct lru_entry *entry, const void *key)
{
        return peer_key_equal(&((const struct address *)entry)->key, key);
}

static struct address *find_address(struct connections *c, const struct peer_key *key)
{
        return (struct address *)lru_table_find(&c->addresses, peer_key_hash(key), has_peer_key, key);
}

/* The address with the most connections, not counting the incoming one. */
static struct address *find_busiest_address(struct connections *c, const struct connection *incoming)
{
        struct address *biggest = NULL;
        unsigned most = 0;

        for (struct lru_entry *one = lru_table_oldest(&c->addresses); one; one = lru_entry_newer(one)) {
                struct address *a = (struct address *)one;
                unsigned count = a->count - (incoming && incoming->address == a);

                if (!biggest || count > most) {
                        biggest = a;
                        most = count;
                }
        }
        return biggest;
}

/* The longest idle connection; if none is idle, a slow one. Never the incoming one. */
static struct connection *find_evictable_connection(const struct address *a, const struct connection *incoming)
{
        struct connection *oldest = NULL, *slow = NULL, *connection;

        TAILQ_FOREACH(connection, &a->connections, of_address)
        {
                unsigned phase = atomic_load(&connection->phase);

                if (connection == incoming || connection->is_cut)
                        continue;
                if ((phase & PHASE_MASK) != CONNECTION_WAITING && (phase & PHASE_MASK) != CONNECTION_IDLE)
                        slow = connection->slow && phase == connection->seen ? connection : slow;
                else if (!oldest || atomic_load(&connection->waiting_since_ns) < atomic_load(&oldest->waiting_since_ns))
                        oldest = connection;
        }
        return oldest ? oldest : slow;
}

/*
 * Make room for `more` connections of an address (own may be NULL), evicting one if needed. @param incoming the
 * incoming connection; NULL while it is not in the list.
 */
static bool evict_for_connection(struct connections *c, struct address *own, const struct connection *incoming,
                                 unsigned more)
{
        struct address *crowd = NULL;
        struct connection *victim;
        struct metric *refused = NULL;

        if (own && own->count + more > c->limits.per_address) {
                crowd = own;
                refused = &c->metrics->refused_address;
        } else if (c->count + more > c->limits.all) {
                crowd = find_busiest_address(c, incoming);
                refused = &c->metrics->refused_full;
        }
        if (!crowd)
                return true;
        victim = find_evictable_connection(crowd, incoming);
        if (victim)
                cut_connection(c, victim, &c->metrics->ended_room);
        else
                metric_add(refused, 1);
        return victim;
}

/* Whether the server has still to read or to answer the first bytes of a client. */
static bool is_waiting_for_handshake(struct connection *connection)
{
        struct tcp_info info = { 0 };
        socklen_t n = sizeof info;
        int queued = 0;

        if (connection->is_answered || ioctl(connection->fd, SIOCINQ, &queued) || !queued ||
            getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &n))
                return false;
        connection->is_answered = info.tcpi_bytes_sent > 0;
        return !connection->is_answered;
}

/* Whether an address may begin another handshake. Those that were admitted, but not yet opened, count as waiting. */
static bool admit_handshake(struct connections *c, struct address *a)
{
        const int64_t now_ns = monotonic_ns();
        unsigned waiting;
        struct connection *connection;

        if (!c->limits.handshakes || !a)
                return true;
        if (now_ns - a->admitted_ns > SECOND_NS)
                a->admitted = 0;
        waiting = a->admitted;
        TAILQ_FOREACH(connection, &a->connections, of_address)
        {
                if (waiting >= c->limits.handshakes)
                        break;
                waiting += is_waiting_for_handshake(connection);
        }
        if (waiting >= c->limits.handshakes) {
                metric_add(&c->metrics->refused_handshakes, 1);
                return false;
        }
        a->admitted++;
        a->admitted_ns = now_ns;
        return true;
}

bool connections_make_room(struct connections *c, const struct sockaddr *address)
{
        struct peer_key key = peer_key_from_address(address);
        struct address *own;
        bool is_admitted;

        pthread_mutex_lock(&c->lock);
        own = find_address(c, &key);
        is_admitted = admit_handshake(c, own) && evict_for_connection(c, own, NULL, 1);
        pthread_mutex_unlock(&c->lock);
        return is_admitted;
}

int connections_evict_one(struct connections *c)
{
        struct address *crowd;
        struct connection *victim;
        int fd = -1;

        pthread_mutex_lock(&c->lock);
        crowd = find_busiest_address(c, NULL);
        victim = crowd ? find_evictable_connection(crowd, NULL) : NULL;
        if (victim) {
                cut_connection(c, victim, &c->metrics->ended_room);
                fd = victim->fd;
        }
        pthread_mutex_unlock(&c->lock);
        return fd;
}

/* ---- opening and closing ---- */

/* With keepalive the kernel detects vanished clients in every phase. */
static void enable_keepalive(int fd)
{
        const int on = 1, idle_s = VANISHED_S / 2, interval_s = VANISHED_S / 6, count = 3;
        const unsigned unacknowledged_ms = VANISHED_S * 1000;

        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
}

/* If this fails, the sweep detects a disconnected client. */
static void watch_departure(struct connections *c, struct connection *connection)
{
        struct epoll_event event = { .events = EPOLLRDHUP | EPOLLET, .data.ptr = connection };

        (void)epoll_ctl(c->departures, EPOLL_CTL_ADD, connection->fd, &event);
}

static struct address *get_or_create_address(struct connections *c, const struct peer_key *key)
{
        struct address *a = find_address(c, key);

        if (a || !(a = calloc(1, sizeof *a)))
                return a;
        a->key = *key;
        TAILQ_INIT(&a->connections);
        lru_table_insert(&c->addresses, &a->lru, peer_key_hash(key));
        return a;
}

struct connection *connection_open(struct connections *c, int fd, const struct sockaddr *address)
{
        struct connection *connection = calloc(1, sizeof *connection);
        struct peer_key key = peer_key_from_address(address);

        if (!connection)
                return NULL;
        connection->fd = fd;
        connection->waiting_since_ns = monotonic_ns();
        pthread_mutex_init(&connection->watch_lock, NULL);
        enable_keepalive(fd);
        pthread_mutex_lock(&c->lock);
        connection->address = get_or_create_address(c, &key);
        if (connection->address) {
                connection->address->count++;
                connection->address->admitted = 0;
                c->count++;
                TAILQ_INSERT_TAIL(&connection->address->connections, connection, of_address);
                TAILQ_INSERT_TAIL(&c->all, connection, next);
                watch_departure(c, connection);
                /* Several connections may have been admitted concurrently for one free slot. */
                if (!evict_for_connection(c, connection->address, connection, 0))
                        cut_connection(c, connection, NULL);
        }
        pthread_mutex_unlock(&c->lock);
        if (!connection->address) {
                pthread_mutex_destroy(&connection->watch_lock);
                free(connection);
                return NULL;
        }
        metric_add(&c->metrics->open, 1);
        return connection;
}

void connection_close(struct connections *c, struct connection *connection)
{
        struct address *a;

        if (!connection)
                return;
        pthread_mutex_lock(&c->lock);
        (void)epoll_ctl(c->departures, EPOLL_CTL_DEL, connection->fd, NULL);
        a = connection->address;
        if (!connection->is_cut) {
                a->count--;
                c->count--;
        }
        TAILQ_REMOVE(&a->connections, connection, of_address);
        TAILQ_REMOVE(&c->all, connection, next);
        if (TAILQ_EMPTY(&a->connections)) {
                lru_table_remove(&c->addresses, &a->lru);
                free(a);
        }
        pthread_mutex_unlock(&c->lock);
        metric_add(&c->metrics->open, -1);
        assert(!connection->cancel);
        pthread_mutex_destroy(&connection->watch_lock);
        free(connection);
}

const atomic_bool *connection_client_left(const struct connection *connection)
{
        return connection ? &connection->client_left : NULL;
}

void connection_watch(struct connection *connection, atomic_bool *cancel, int64_t expires_ns)
{
        if (!connection)
                return;
        pthread_mutex_lock(&connection->watch_lock);
        connection->cancel = cancel;
        connection->expires_ns = expires_ns;
        if (cancel && atomic_load(&connection->client_left))
                atomic_store(cancel, true);
        pthread_mutex_unlock(&connection->watch_lock);
}

void connections_cancel_all(struct connections *c)
{
        struct connection *connection;

        pthread_mutex_lock(&c->lock);
        TAILQ_FOREACH(connection, &c->all, next)
        cancel_request(connection);
        pthread_mutex_unlock(&c->lock);
}

void connection_set_held_bytes(struct connection *connection, size_t bytes)
{
        if (connection)
                atomic_store(&connection->held, bytes);
}

void connection_set_phase(struct connection *connection, enum connection_phase phase)
{
        unsigned now;

        if (!connection)
                return;
        if (phase == CONNECTION_WAITING || phase == CONNECTION_READING || phase == CONNECTION_IDLE)
                atomic_store(&connection->held, 0);
        if (phase == CONNECTION_WAITING || phase == CONNECTION_IDLE)
                atomic_store(&connection->waiting_since_ns, monotonic_ns());
        now = atomic_load(&connection->phase); /* one thread at a time owns the request, so this is the only writer */
        atomic_store(&connection->phase, ((now & ~PHASE_MASK) + PHASE_STEP) | phase);
}

/* ---- start and stop ---- */

static void register_connection_metrics(struct connection_metrics *m)
{
        struct metric *const metrics[] = { &m->refused_full,  &m->refused_address, &m->refused_handshakes,
                                           &m->ended_headers, &m->ended_body,      &m->ended_reader,
                                           &m->ended_room };

        for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
                metric_register(metrics[i]);
}

static void free_connections(struct connections *c)
{
        if (c->departures >= 0)
                close(c->departures);
        if (c->wake >= 0)
                close(c->wake);
        lru_table_deinit(&c->addresses);
        pthread_mutex_destroy(&c->lock);
        free(c);
}

static enum status start_connection_sweep(struct connections *c, struct error *err)
{
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
        int failed;

        if (c->departures < 0 || c->wake < 0 || epoll_ctl(c->departures, EPOLL_CTL_ADD, c->wake, &event))
                return error_os(err, errno, "cannot watch connections");
        failed = pthread_create(&c->sweeper, NULL, run_connection_sweep, c);
        return failed ? error_os(err, failed, "cannot start a thread") : ST_OK;
}

enum status connections_create(const struct connection_limits *limits, struct connections **ret, struct error *err)
{
        struct connections *c = calloc(1, sizeof *c);
        enum status st;

        if (!c)
                return error_no_memory(err);
        c->limits = *limits;
        c->metrics = &metrics_by_protocol[limits->protocol];
        TAILQ_INIT(&c->all);
        pthread_mutex_init(&c->lock, NULL);
        c->wake = eventfd(0, EFD_CLOEXEC);
        c->departures = c->wake < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
        register_connection_metrics(c->metrics);
        st = lru_table_init(&c->addresses, limits->all, err);
        if (!st)
                st = start_connection_sweep(c, err);
        if (st) {
                free_connections(c);
                return st;
        }
        pthread_setname_np(c->sweeper, "http-watch");
        *ret = c;
        return ST_OK;
}

void connections_destroy(struct connections *c)
{
        if (!c)
                return;
        pthread_mutex_lock(&c->lock);
        c->stop = true;
        pthread_mutex_unlock(&c->lock);
        (void)!eventfd_write(c->wake, 1);
        pthread_join(c->sweeper, NULL);
        free_connections(c);
}
