/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_CONNECTIONS_H
#define CAIRN_HTTP_CONNECTIONS_H

/*
 * The connections of a server, and who has to go.
 *
 * Problem: a connection costs a descriptor and memory, and a client may hold
 * one by doing nothing, by sending a byte now and then, or by reading as slowly.
 *
 * Model: each connection is in a phase (below). Once a second a thread asks
 * the kernel how many bytes came and were acknowledged, so that nothing has to
 * be counted where bytes are moved, and ends those that are too slow:
 *
 *   WAITING   no byte of a request: libmicrohttpd's idle time ends it.
 *             Some: the headers are whole within headers_s.
 *   READING   LIMIT_HTTP_LEAST_BYTES_PER_S on average after slow_s, of the
 *             time when nothing of what it sent was left unread by us.
 *             In both, one whose client has left is ended too.
 *   WORKING   never: it waits for us. That its client has left is noted, so
 *             that the work can stop: connection_client_left().
 *             A request that holds much memory has a higher rate: connection_hold().
 *   SENDING   the same as READING, of the time when it had something to read.
 *
 * Room: an address (of IPv6 its /64) has at most per_address connections, all
 * together at most `all`. At either limit the newcomer replaces the one that
 * has waited longest: of its own address, or of the address that has most; when
 * none waits, one that sends or reads more slowly than it may in the long run.
 * When there is none of these either, the newcomer is refused. So one address
 * cannot take the rest of the room from others.
 *
 * A connection is ended with shutdown(); libmicrohttpd sees the end and closes
 * it, which is why it is told of some more connections than there may be.
 *
 * Threads: any.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "common/error.h"

struct connections;
struct connection;

enum connection_phase { CONNECTION_WAITING, CONNECTION_READING, CONNECTION_WORKING, CONNECTION_SENDING };

struct connection_limits {
        unsigned all, per_address; /* connections */
        unsigned headers_s, slow_s;
};

enum status connections_create(const struct connection_limits *limits, struct connections **ret, struct error *err) MUST_CHECK;
/** All must be closed. NULL is allowed. */
void connections_destroy(struct connections *c);

/** Whether a new connection of this address may come; somebody else may be ended for it. */
bool connections_admit(struct connections *c, const struct sockaddr *address);
/**
 * It came: fd is borrowed until connection_close(). NULL without memory. Where
 * more were admitted at one time than there is room for, one is ended here.
 */
struct connection *connection_open(struct connections *c, int fd, const struct sockaddr *address);
/** It is about to be closed; its descriptor still is what it was. NULL is allowed. */
void connection_close(struct connections *c, struct connection *connection);
/**
 * Becomes true, within about a second, when the client closes its connection (or its half of it) while the connection is
 * WORKING; stays true. Valid until connection_close(). NULL for NULL.
 */
const atomic_bool *connection_client_left(const struct connection *connection);
/**
 * The request holds so many bytes of memory: from LIMIT_HTTP_HELD_BYTES on it moves LIMIT_HTTP_HELD_BYTES_PER_S in each
 * interval of LIMIT_HTTP_HELD_S (of LIMIT_HTTP_HELD_SHORT_S while memory is refused to others), or is ended. Until the
 * next request. NULL is allowed.
 */
void connection_hold(struct connection *connection, size_t bytes);
/** NULL is allowed. */
void connection_enter(struct connection *connection, enum connection_phase phase);

#endif
