/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_CONNECTIONS_H
#define CAIRN_HTTP_CONNECTIONS_H

/*
 * Connection limits: eviction of slow and idle clients.
 *
 * Problem: a connection costs a descriptor and memory, and a client can hold one by idling, or by sending or reading
 * one byte at a time.
 *
 * Model: each connection is in a phase (below). Once a second, a thread reads byte counts from the kernel (TCP_INFO),
 * so that the data path counts nothing, and ends the connections that are too slow:
 *
 *   WAITING   before the first byte of a request, libmicrohttpd's idle timeout applies;
 *             after it, the headers must be complete within headers_s.
 *   READING   LIMIT_HTTP_LEAST_BYTES_PER_S on average after slow_s, of the time during
 *             which the server has read all input. In both phases, a connection whose
 *             client has left is ended too.
 *   WORKING   never ended: it waits for the server. A client that leaves is detected within 100 ms
 *             (EPOLLRDHUP), so that the work can stop: connection_client_left().
 *   SENDING   as READING, of the time during which the client had data to read.
 *   IDLE      between the requests of a connection of HTTP/2, on which frames arrive that belong to none: as WAITING
 *             when room is needed, otherwise ended by its owner.
 *   A request that holds much memory has a higher minimum rate: connection_set_held_bytes().
 *
 * Limits: an address (IPv6: its /64) has at most per_address connections, all addresses together at most `all`. At a
 * limit, a new connection evicts the one that has been idle longest: of its own address, or of the address with the
 * most connections. If none is idle, it evicts one that is slower than the long-term minimum rate; if there is none,
 * the new connection is refused. So one address cannot take all connections.
 *
 * A handshake of TLS takes some milliseconds of the thread that serves all connections. While an address has
 * `handshakes` connections whose first bytes the server has not read, or not answered, its new connections are refused:
 * each of the other addresses waits for so many handshakes, not for all that one sends.
 *
 * A connection is ended with shutdown(); libmicrohttpd notices and closes it. Its own limit is therefore set somewhat
 * higher.
 *
 * Threads: any.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "common/error.h"

struct connections;
struct connection;

enum connection_phase {
        CONNECTION_WAITING,
        CONNECTION_READING,
        CONNECTION_WORKING,
        CONNECTION_SENDING,
        CONNECTION_IDLE
};

enum connection_protocol { CONNECTIONS_HTTP, CONNECTIONS_GRPC }; /* selects the metrics */

struct connection_limits {
        enum connection_protocol protocol;
        unsigned all, per_address; /* connections */
        unsigned handshakes;       /* that an address may have waiting for the server; 0: any number */
        unsigned headers_s, slow_s;
};

enum status connections_create(const struct connection_limits *limits, struct connections **ret,
                               struct error *err) MUST_CHECK;
/** All connections must be closed. NULL is allowed. */
void connections_destroy(struct connections *c);

/** Whether a new connection from this address is accepted; another one may be evicted in exchange. */
bool connections_make_room(struct connections *c, const struct sockaddr *address);
/**
 * Evict a connection of the address with the most connections, when a resource other than a slot is exhausted. @return
 * its descriptor, which the caller closes at once, after connection_close(); -1: none is idle or slow.
 */
int connections_evict_one(struct connections *c);
/**
 * Register an accepted connection.
 * @param fd borrowed until connection_close().
 * @return NULL when out of memory. If more were accepted concurrently than fit, one is ended here.
 */
struct connection *connection_open(struct connections *c, int fd, const struct sockaddr *address);
/** Call it before the descriptor is closed. NULL is allowed. */
void connection_close(struct connections *c, struct connection *connection);
/**
 * Flag that becomes true, within 100 ms, when the client closes its connection (or its half of it) while the
 * connection is WORKING; it stays true. Valid until connection_close(). Returns NULL for NULL.
 */
const atomic_bool *connection_client_left(const struct connection *connection);
/**
 * Set *cancel to true when the client disconnects (as above), and within about a second when it disconnects while
 * SENDING with nothing left to send or when monotonic_ns() reaches expires_ns. Replaces the previous flag of this
 * connection; NULL: none. The flag is borrowed until the next call. A NULL connection is allowed.
 */
void connection_watch(struct connection *connection, atomic_bool *cancel, int64_t expires_ns);
/** Set the flags of all connections: the server is stopping. */
void connections_cancel_all(struct connections *c);
/**
 * Set the memory held by the current request. From LIMIT_HTTP_HELD_BYTES on, the connection must transfer
 * LIMIT_HTTP_HELD_BYTES_PER_S in each interval of LIMIT_HTTP_HELD_S (LIMIT_HTTP_HELD_SHORT_S while the budget refuses
 * reservations), or it is ended. NULL is allowed.
 */
void connection_set_held_bytes(struct connection *connection, size_t bytes);
/** NULL is allowed. */
void connection_set_phase(struct connection *connection, enum connection_phase phase);

#endif
