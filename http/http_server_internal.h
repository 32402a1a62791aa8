/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_HTTP_SERVER_INTERNAL_H
#define CAIRN_HTTP_HTTP_SERVER_INTERNAL_H

/*
 * Phases of a request, and the thread that owns it:
 *
 *   NEW      byte thread   headers complete: find the route, check access and length, call begin
 *   BODY     byte thread   collect the body; at its end call at_once. A streamed body is passed to
 *                          chunk piece by piece, on a pool thread, while the connection is
 *                          suspended: stepping is true, and that thread owns the request
 *   DISCARD  byte thread   the response is ready, the client still sends: discard, then ANSWER
 *   HANDLE   pool thread   the connection is suspended while handle runs; resuming it gives the
 *                          request back to the byte thread
 *   ANSWER   byte thread   libmicrohttpd sends; only a stream's read is called. Pool threads generate
 *                          the pieces of a response meanwhile (server_answer_streamed.c)
 *
 * libmicrohttpd accepts a response only before the first body byte was read or after the last one, which is why DISCARD
 * exists.
 */
#include <assert.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "common/compress/stream_compressor.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "common/request_id.h"
#include "http/accept_thread.h"
#include "http/connections.h"
#include "http/handler_pool.h"
#include "http/http_server.h"
#include "http/tls.h"

#define MAX_PATH_PARTS 8
#define MAX_RESPONSE_HEADERS 16

struct path_part {
        const char *name; /* borrowed from the route's path, name_size bytes */
        size_t name_size;
        char *text; /* owned, decoded */
};

struct query_parameter {
        char *name, *value; /* owned, decoded */
};

struct response_header {
        const char *name; /* borrowed: literals */
        char *value;      /* owned */
};

/* State of a connection across its requests. */
struct connection_state {
        struct connection *watched; /* may be NULL */
        struct tls_pair *pair;      /* NULL: http */
};

enum request_phase { PHASE_NEW, PHASE_BODY, PHASE_DISCARD, PHASE_HANDLE, PHASE_ANSWER };

/* Set when a request should end; shared with the task that generates the rest of its response. */
struct cancel_flag {
        atomic_bool value;
        atomic_uint references;
};

struct cancel_flag *cancel_flag_ref(struct cancel_flag *flag);
void cancel_flag_unref(struct cancel_flag *flag); /* takes NULL */

struct http_request {
        struct pool_task task; /* first: runs handle */
        struct http_server *server;
        struct MHD_Connection *connection;
        struct connection *watched; /* may be NULL */
        enum request_phase phase;
        const struct http_route *route;

        char *uri;          /* owned, as sent */
        char *path;         /* owned, decoded as a whole; for messages */
        const char *method; /* borrowed from the connection */
        struct path_part parts[MAX_PATH_PARTS];
        size_t part_count;
        struct query_parameter query[LIMIT_HTTP_QUERY_PARAMETERS];
        size_t query_count;
        char id[REQUEST_ID_SIZE]; /* X-Request-Id if it is valid (common/request_id.h), else random; "" before the
                                     headers */
        char peer[46];
        uint64_t peer_number;
        bool is_from_proxy; /* connected through a trusted proxy */
        uint64_t admitted_bytes, received_bytes, unpacked_bytes;
        struct deadline deadline; /* of handle */
        struct cancel_flag *cancel;
        int64_t arrived_ns;        /* when the last byte arrived; 0: not yet */
        int64_t answer_expires_ns; /* of a response generated in pieces; 0: none */
        uint64_t retry_after_s;    /* for 429 and 503; 0: default */
        char *token;
        void *sender; /* owned */
        char token_name[HTTP_TOKEN_NAME_SIZE];
        void *tenant;                    /* http_set_tenant() */
        struct memory_group *body_group; /* NULL: none */

        struct buf body; /* a whole body, as sent, then decompressed; for a stream, the piece passed to chunk */
        size_t stepped;  /* bytes of that piece that chunk consumed */
        pthread_mutex_t step_lock; /* protects stepping, and suspending and resuming for it */
        bool stepping;
        struct memory_reservation held;   /* http_reserve_memory() */
        struct memory_reservation answer; /* for the bytes of the response */
        uint64_t discarded_bytes;
        int64_t discard_until_ns;
        bool stream_open; /* begin was called; handle or abandon must follow */
        void *state;

        struct response_header headers[MAX_RESPONSE_HEADERS];
        size_t header_count;
        struct MHD_Response *response; /* NULL: no response yet */
        unsigned code;
        struct buf error_body; /* copy of an error response, for a client that never stops sending */
        bool reset;            /* answer with a TCP reset */
        bool answered;
        bool must_close; /* close at once: the end of the request is ambiguous */
};

STAILQ_HEAD(task_queue, pool_task);

/* A sender that has tasks. */
struct pool_sender {
        TAILQ_ENTRY(pool_sender) next;
        struct task_queue queue;
        uint32_t number;
        unsigned queued, working, waiting; /* waiting: of the started ones, in http_begin_wait() */
};

struct pool_lane {
        TAILQ_HEAD(, pool_sender) senders; /* in the order in which they are served */
        struct pool_sender common;         /* always present: tasks of unknown senders, or without memory for another */
        unsigned queued, working;
};

/* A pool of threads that run `handle` and generate the pieces of responses. */
struct handler_pool {
        struct http_pool_options options;
        struct metric *metrics; /* POOL_METRICS of them */
        pthread_mutex_t lock;
        pthread_cond_t work;
        struct pool_lane *lanes;
        unsigned lane_count, lane_most; /* lane_most: maximum of threads occupied by one lane */
        unsigned next_lane;             /* lane served next */
        unsigned queued;                /* total of all lanes */
        pthread_t *threads;
        unsigned thread_count;
        unsigned at_once, spare; /* limits of `working`: for all tasks, and in addition for senders without any */
        unsigned working, waiting;
        int64_t told_urgent; /* tasks of a pool without niceness that were reported to work_meter_add_urgent_tasks() */
        bool stop;
};

enum status handler_pool_start(struct handler_pool *p, const struct http_pool_options *options, unsigned lanes,
                               struct error *err) MUST_CHECK;
/* Runs all queued tasks, then joins the threads. */
void handler_pool_stop(struct handler_pool *p);
void handler_pool_deinit(struct handler_pool *p);

struct http_server {
        struct MHD_Daemon *daemon;
        struct accept_thread acceptor;
        const struct http_route *routes;
        size_t route_count;
        void *context;
        struct http_options options;
        uint16_t port;
        struct handler_pool pools[HTTP_POOLS_MAX];
        unsigned pool_count;
        struct connections *connections;
        unsigned max_connections; /* without those being closed to make room */
        atomic_bool stopping;
        pthread_mutex_t lock;
        pthread_cond_t idle;
        size_t active; /* unfinished requests; protected by lock */
        pthread_cond_t begun;
        unsigned unbegun;  /* connections that libmicrohttpd's threads have not yet taken; protected by lock */
        unsigned mhd_room; /* max_connections, and those being closed to make room */
};

/* http_server.c */

/** libmicrohttpd's access handler: dispatches by the request's phase. */
enum MHD_Result handle_mhd_callback(void *context, struct MHD_Connection *connection, const char *url,
                                    const char *method, const char *version, const char *data, size_t *n, void **state);

/* request_check.c and origin_check.c: each responds when its check fails */

void request_check_framing(struct http_request *req, const char *version);
void request_check_host(struct http_request *req);
/** Both require that the route is set. */
void request_check_origin(struct http_request *req);
void request_check_type(struct http_request *req);

/* server_path.c */

/** Split uri into path and query parameters. ST_BAD_DATA when an escape is malformed or encodes NUL. */
enum status request_parse_uri(struct http_request *req, const char *uri, struct error *err) MUST_CHECK;
/** Whether the request's path matches the route's; sets the path parts. */
bool match_route(const struct http_route *route, struct http_request *req);
void request_clear_parts(struct http_request *req);

/* server_request.c */
struct http_request *request_create(struct http_server *s, struct MHD_Connection *connection, const char *uri);
void request_destroy(struct http_request *req);
/** Set the peer to the client named by a trusted proxy. Call it after the headers have arrived. */
void request_find_forwarded_peer(struct http_request *req);
/** Let http_request_cancelled() become true when the client disconnects or the time limit passes. */
void request_watch(struct http_request *req, int64_t expires_ns);
/** Whether the headers announce a body. */
bool request_has_body(const struct http_request *req);
/** The memory use of its body. */
enum memory_use get_request_memory_use(const struct http_request *req);
/** Pass a piece of a streamed body to chunk: task of a suspended request, which it resumes at its end. */
void run_request_chunk(struct pool_task *task);
/** Stop receiving a streamed body: call abandon, if handle was not called. */
void request_end_stream(struct http_request *req);
/** Run `handle`: task of a suspended request, which it resumes at its end. */
void run_request_handler(struct pool_task *task);

/* server_answer.c */

/** Set the response; all responses pass through here. @param response owned; NULL when out of memory. */
void request_set_response(struct http_request *req, unsigned code, const char *content_type,
                          struct MHD_Response *response);
/** Pass the response to libmicrohttpd; MHD_NO closes the connection. */
enum MHD_Result request_queue_response(struct http_request *req, bool close_after);
/** Write the response directly to the socket: libmicrohttpd cannot respond while a body arrives. The caller closes. */
void request_write_raw_response(struct http_request *req);
/** Reset the connection with RST instead of FIN when it is closed. */
void reset_tcp_connection(struct MHD_Connection *connection);

/* server_headers.c */

/** The best supported coding in an Accept-Encoding header (NULL: none). RFC 9110, 12.5.3. */
enum compression choose_compression(const char *header);

struct byte_range {
        uint64_t start, end; /* half-open */
};

enum range_kind { RANGE_NONE /* answer 200 */, RANGE_ONE /* 206 */, RANGE_BAD /* 416 */ };

/** Parse a Range header for a body of size bytes. Several ranges in one header are treated as none. RFC 9110, 14. */
enum range_kind parse_range(const char *header, uint64_t size, struct byte_range *ret);

/** Whether an If-None-Match list contains etag (without quotes). */
bool is_etag_listed(const char *header, const char *etag);

/** Set the request's token from its Authorization header, if it has one. */
void find_request_token(struct http_request *req);

#endif
