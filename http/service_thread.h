/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_SERVICE_THREAD_H
#define CAIRN_HTTP_SERVICE_THREAD_H

/**
 * @file
 * A thread that sends requests to the service: its HTTP client, the lock and
 * condition that it shares with its owner, and its stop flag, which also aborts
 * a request.
 *
 * Threads: client is used by the thread only; init, start, stop and deinit by
 * the owner.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/error.h"
#include "http/http_client.h"

struct service_thread {
        struct http_client *client;
        pthread_mutex_t lock;   /* protects the owner's shared state */
        pthread_cond_t changed; /* signalled when that state or stop changes */
        atomic_bool stop;
        void *(*run)(void *);
        void *arg;
        pthread_t thread;
        bool is_started;
        bool has_ended; /* protected by the lock */
};

/**
 * Create client and lock.
 * @param t  zeroed; must not be moved afterwards. Nothing to release on failure.
 * @param o  its stop flag is set here.
 */
enum status service_thread_init(struct service_thread *t, struct http_client_options *o, struct error *err) MUST_CHECK;

/** Start the thread. @param name  of at most 15 bytes. */
enum status service_thread_start(struct service_thread *t, const char *name, void *(*run)(void *), void *arg,
                                 struct error *err) MUST_CHECK;

/**
 * Set the stop flag and wait for the thread, if it was started.
 * @return false if it does not end, because it reads from a disk or mount that does not respond: it still uses t.
 */
bool service_thread_stop(struct service_thread *t) MUST_CHECK;

/** Release client and lock of a stopped thread. */
void service_thread_deinit(struct service_thread *t);

#endif
