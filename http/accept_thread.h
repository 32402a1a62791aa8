/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_ACCEPT_THREAD_H
#define CAIRN_HTTP_ACCEPT_THREAD_H

/**
 * @file
 * A thread that accepts the connections of a listening socket.
 *
 * Problem: while the process has no file descriptor left, a connection stays in the socket's backlog, and the socket
 * stays readable. libmicrohttpd then tries again at once, in each of its threads, as long as it has no connection of
 * its own that could end: tens of thousands of system calls a second. It has no option for that.
 *
 * Model: libmicrohttpd has no listening socket. This thread accepts; when it fails for lack of descriptors or memory,
 * it waits ACCEPT_PAUSE_MS before it tries again. While there is no room for another connection, those that wait stay
 * in the backlog, too; room is made by connections that end, so it is looked for more often.
 *
 * Threads: start and stop by the owner.
 */
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "common/error.h"

#define ACCEPT_PAUSE_MS 100

struct accept_thread {
        int listener; /* non-blocking; owned from the start on */
        int wake;     /* eventfd: stop */
        /* Whether another connection may be accepted; called before each. */
        bool (*has_room)(void *context);
        /* Takes the descriptor, which is non-blocking. */
        void (*take)(void *context, int fd, const struct sockaddr *address, socklen_t n);
        void *context;
        pthread_t thread;
        bool is_started;
};

/** @param t zeroed, with the listener, has_room, take and context. The listener stays the caller's on failure. */
enum status accept_thread_start(struct accept_thread *t, struct error *err) MUST_CHECK;

/** Connections are refused from here on. Does nothing if it was not started. */
void accept_thread_stop(struct accept_thread *t);

#endif
