/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_SERVER_INTERNAL_H
#define CAIRN_HTTP_SERVER_INTERNAL_H

/*
 * The life of a request, and which thread has it:
 *
 *   NEW      byte thread   headers are there: find the route, ask for the token, test the length, call begin
 *   BODY     byte thread   collect the body; at its end call at_once. A streamed body goes to chunk piece by piece, on a
 *                          pool thread, while the connection is suspended: stepping is true, and the request is that
 *                          thread's
 *   DISCARD  byte thread   an answer is ready, the client still sends: throw it away, then ANSWER
 *   HANDLE   pool thread   the connection is suspended while handle runs; resuming it gives the request back
 *   ANSWER   byte thread   libmicrohttpd sends; nothing of ours is called but a stream's read. The pieces of an
 *                          answer are made by pool threads meanwhile (server_pieces.c)
 *
 * A response may only be queued before the first body byte was read or after
 * the last one, which is why DISCARD exists.
 */
#include <assert.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "common/limits.h"
#include "common/metrics.h"
#include "common/packer.h"
#include "http/connections.h"
#include "http/server.h"
#include "http/tls.h"

#define MAX_PATH_PARTS 8
#define MAX_ANSWER_HEADERS 16

struct path_part {
        const char *name; /* borrowed from the route's path, name_size bytes */
        size_t name_size;
        char *text;       /* owned, decoded */
};

struct query_parameter {
        char *name, *value; /* owned, decoded */
};

struct answer_header {
        const char *name; /* borrowed: literals */
        char *value;      /* owned */
};

/* What is kept of a connection beside its requests. */
struct connection_state {
        struct connection *watched; /* may be NULL */
        struct tls_pair *pair;      /* NULL: http */
};

enum request_phase { PHASE_NEW, PHASE_BODY, PHASE_DISCARD, PHASE_HANDLE, PHASE_ANSWER };

/* Something for a pool's thread to do; part of what it is about. */
struct pool_task {
        STAILQ_ENTRY(pool_task) next;
        void (*run)(struct pool_task *task);
};

struct http_request {
        struct pool_task task;           /* first: handle it */
        struct http_server *server;
        struct MHD_Connection *connection;
        struct connection *watched;      /* may be NULL */
        enum request_phase phase;
        const struct http_route *route;

        char *uri;                       /* owned, as sent */
        char *path;                      /* owned, decoded as a whole; for messages */
        const char *method;              /* borrowed from the connection */
        struct path_part parts[MAX_PATH_PARTS];
        size_t part_count;
        struct query_parameter query[LIMIT_HTTP_QUERY_PARAMETERS];
        size_t query_count;
        char peer[46];
        uint64_t peer_number;
        uint64_t admitted_bytes, received_bytes, unpacked_bytes;
        struct deadline deadline;        /* of handle */
        uint64_t retry_after_s;          /* for 429 and 503; 0: the usual */
        char *token;
        char token_name[HTTP_TOKEN_NAME_SIZE];

        struct buf body;                 /* whole bodies, as sent, then unpacked; of a stream the piece that chunk has */
        size_t stepped;                  /* of that piece, taken by chunk */
        pthread_mutex_t step_lock;       /* of stepping, and around suspending and resuming for it */
        bool stepping;
        struct memory_reservation held;  /* http_hold() */
        struct memory_reservation answer; /* of the response's bytes */
        uint64_t discarded_bytes;
        int64_t discard_until_ns;
        bool stream_open;                /* begin was called; handle or abandon must follow */
        void *state;

        struct answer_header headers[MAX_ANSWER_HEADERS];
        size_t header_count;
        struct MHD_Response *response;   /* the answer, once there is one */
        unsigned code;
        struct buf error_body;           /* copy of an error answer, for a client that never stops sending */
        bool reset;                      /* the answer is a reset */
        bool answered;
        bool must_close;                 /* the connection, at once: it is unclear where the request ends */
};

STAILQ_HEAD(task_queue, pool_task);

/* Threads that run `handle`, and make the pieces of answers. */
struct handler_pool {
        struct http_pool_options options;
        struct metric *metrics;  /* POOL_METRICS of them */
        pthread_mutex_t lock;
        pthread_cond_t work;
        struct task_queue queue;
        unsigned queued;         /* in queue */
        pthread_t *threads;
        unsigned thread_count;
        unsigned at_once;        /* that may work */
        unsigned working, waiting;
        bool stop;
};

enum status handler_pool_start(struct handler_pool *p, const struct http_pool_options *options, struct error *err) MUST_CHECK;
/* False when the pool has stopped: the task will not run. The queue's bound is not for these, which end what has begun. */
bool handler_pool_push(struct handler_pool *p, struct pool_task *task) MUST_CHECK;
/* The same for a new request: ST_BUSY when the queue is at its bound or the pool has stopped. */
enum status handler_pool_offer(struct handler_pool *p, struct pool_task *task, struct error *err) MUST_CHECK;
/* Runs what is queued to its end, then joins. */
void handler_pool_stop(struct handler_pool *p);
void handler_pool_deinit(struct handler_pool *p);

struct http_server {
        struct MHD_Daemon *daemon;
        const struct http_route *routes;
        size_t route_count;
        void *context;
        struct http_options options;
        uint16_t port;
        struct handler_pool pools[HTTP_POOLS_MAX];
        unsigned pool_count;
        struct connections *connections;
        unsigned max_connections;        /* as far as is promised; some more are open while others are closed for them */
        atomic_bool stopping;
        pthread_mutex_t lock;
        pthread_cond_t idle;
        size_t active;                   /* requests that began and did not end; under lock */
};

/* server.c */

/** libmicrohttpd's access handler: what each piece of a request means in its phase. */
enum MHD_Result request_access(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                               const char *version, const char *data, size_t *n, void **state);

/* server_check.c: each answers when its check fails */

void request_check_framing(struct http_request *req, const char *version);
void request_check_host(struct http_request *req);
/** Needs the route, as does the next. */
void request_check_origin(struct http_request *req);
void request_check_type(struct http_request *req);

/* server_path.c */

/** Split uri into the request's path, and query parameters. ST_BAD_DATA when an escape is malformed or holds NUL. */
enum status request_parse_uri(struct http_request *req, const char *uri, struct error *err) MUST_CHECK;
/** Whether the request's path is the route's; fills the parts when it is. */
bool route_matches(const struct http_route *route, struct http_request *req);
void request_forget_parts(struct http_request *req);

/* server_request.c */
struct http_request *request_create(struct http_server *s, struct MHD_Connection *connection, const char *uri);
void request_destroy(struct http_request *req);
/** Sent with a body, as far as the headers say. */
bool request_has_body(const struct http_request *req);
/** What the memory of its body counts as. */
enum memory_use request_memory_use(const struct http_request *req);
/** Give the piece of a streamed body to chunk: a task of a suspended request, which resumes it at its end. */
void request_step(struct pool_task *task);
/** No more of a streamed body is taken: call abandon, if it is due. */
void request_end_stream(struct http_request *req);
/** Run `handle`: the task of a suspended request, which resumes it at its end. */
void request_handle(struct pool_task *task);
/** Undo Content-Encoding. */
enum status request_unpack_body(struct http_request *req, struct error *err) MUST_CHECK;

/* server_token.c */

/** The token that was sent, if one was. */
void request_find_token(struct http_request *req);

/* server_answer.c */

/** The one place where a request gets its answer; response (taken) may be NULL for want of memory. */
void answer_set(struct http_request *req, unsigned code, const char *content_type, struct MHD_Response *response);
/** Give the answer to libmicrohttpd; MHD_NO closes the connection. */
enum MHD_Result answer_queue(struct http_request *req, bool close_after);
/** Write the answer to the socket past libmicrohttpd, which allows none while a body arrives. The caller closes. */
void answer_write_raw(struct http_request *req);
/** Make the next close of the connection a TCP reset. */
void connection_reset(struct MHD_Connection *connection);

/* server_accept.c */

/** What an Accept-Encoding header (NULL: none) likes best of what we have. RFC 9110, 12.5.3. */
enum packing accepted_packing(const char *header);

/* server_range.c */

struct byte_range {
        uint64_t start, end; /* half-open */
};

enum range_kind { RANGE_NONE /* answer 200 */, RANGE_ONE /* 206 */, RANGE_BAD /* 416 */ };

/** Read a Range header against a body of size bytes. Several ranges in one header are answered as none. RFC 9110, 14. */
enum range_kind range_parse(const char *header, uint64_t size, struct byte_range *ret);
/** Whether an If-None-Match list names etag (without quotes). */
bool etag_listed(const char *header, const char *etag);

#endif
