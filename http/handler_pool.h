/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_HANDLER_POOL_H
#define CAIRN_HTTP_HANDLER_POOL_H

/**
 * @file
 * The thread pools of an HTTP server, also usable by another listener, which then shares threads and bounds.
 *
 * Tasks are queued in lanes, one per tenant. Lanes are served round-robin; the length limit applies to each lane, and
 * with several lanes none can occupy all threads. Within a lane the senders, by token and address, are served
 * round-robin. One of them can occupy all usual threads and three quarters of the queue, but not the spare threads of
 * the pool: they run only tasks of senders that have no other running, so that expensive requests of one sender share
 * the CPU with those of the others instead of stopping them.
 *
 * Threads: any.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/error.h"

struct handler_pool;
struct http_server;

/** A task for a pool thread; embedded in its subject, reusable once run is called. */
struct pool_task {
        STAILQ_ENTRY(pool_task) next;
        unsigned lane;   /* below http_options.lanes */
        uint32_t sender; /* pool_sender_number(); 0: unknown */
        void (*run)(struct pool_task *task);
};

/** A number for a token (NULL: none) and an address (http_peer_number()). */
uint32_t pool_sender_number(const char *token, uint64_t address);

/** Get a pool by its index in http_options.pools; valid until the server stops. */
struct handler_pool *http_server_get_pool(struct http_server *s, unsigned number);
/** The time limit of a request, from http_pool_options.timeout_s; 0: none. */
unsigned handler_pool_get_timeout(const struct handler_pool *p);
/** Queue a task for a new request. ST_BUSY when the queue is full or the pool has stopped. */
enum status handler_pool_submit(struct handler_pool *p, struct pool_task *task, struct error *err) MUST_CHECK;
/**
 * Queue a task that continues a running request, regardless of the queue limit. False if the pool has stopped: the task
 * will not run.
 */
bool handler_pool_push(struct handler_pool *p, struct pool_task *task) MUST_CHECK;

#endif
