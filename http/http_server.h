/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_HTTP_SERVER_H
#define CAIRN_HTTP_HTTP_SERVER_H

/**
 * @file
 * HTTP server: a table of routes over libmicrohttpd, with limits, bodies, ranges, errors and compression.
 *
 * A route takes its body either whole (decompressed, under a limit) or as a stream. Unknown paths are 404, known paths
 * with another method 405 with Allow. Errors are JSON {"error": "...", "reason": "...", "request_id": "..."}, and the
 * text contains the next step.
 *
 * A response that is determined before the body has arrived (too large, no token) is sent at once to a client that
 * waits for "100 Continue"; from other clients the body is read and discarded, up to LIMIT_HTTP_DISCARD_BYTES, so that
 * they can read the response, and then the connection is closed.
 *
 * Refused are cross-origin requests of browsers, except followed links (origin_check.c), and ambiguous requests
 * (request_check.c). Slow and idle clients are evicted: connections.h.
 *
 * Threads: a few byte threads transfer data. They also call a stream's begin and a route's at_once, and read a stream's
 * response, so these must not block. `handle` and a stream's chunk and abandon run in one of several thread pools, each
 * with a bounded queue, so that one kind of work does not delay another. A request belongs to one thread at a time. A
 * request whose deadline passed or whose client disconnected before a thread is free is not handled.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/memory/buf.h"
#include "common/threads/deadline.h"

struct http_server;
struct http_request;
struct address_range;
struct histogram;
struct tls;

/** Scopes of tokens; a route requires exactly one, and may check another with http_check_scope(). */
enum http_scope { SCOPE_NONE, SCOPE_READ, SCOPE_INGEST, SCOPE_UPLOAD, SCOPE_HISTORY, SCOPE_NODE, SCOPE_ADMIN };

/** Whose data a route reads or writes. Enforced outside of http/; every route with a scope sets it. */
enum http_tenancy {
        TENANCY_UNDECIDED,
        TENANCY_OWN,    /* only the samples of the request's tenant */
        TENANCY_SPACE,  /* the debuginfo, sources and symbols of the request's tenant: shared by tenants, or its own */
        TENANCY_UPKEEP, /* changes of these: with a token bound to a tenant only if they are the tenant's own */
        TENANCY_WHOLE,  /* the whole service: refused to a token bound to a tenant */
};

enum http_access { ACCESS_GRANTED, ACCESS_UNKNOWN /* 401: no token, or an unknown one */, ACCESS_DENIED /* 403 */ };

typedef void http_handler(struct http_request *req);

/**
 * Receives a body as it arrives (not decompressed), at most LIMIT_HTTP_STEP_BYTES at a time, on a thread of the route's
 * pool. It may consume fewer than *n bytes and set *n to that number: it is called again with the rest after the
 * waiting requests, so that an expensive body does not delay others. A non-OK status ends the request with the response
 * that was set, else with http_fail() of the status; then abandon is called.
 */
typedef enum status http_body_chunk(struct http_request *req, const void *data, size_t *n);

struct http_route {
        const char *method; /* "GET" also answers HEAD */
        const char *path;   /* "/buildid/{id}/debuginfo"; a final "{rest...}" also matches slashes */
        enum http_scope scope;
        enum http_tenancy tenancy;
        size_t max_body;        /* whole bodies: bytes after decompression; 0: no body */
        http_handler *handle;   /* the whole body has arrived (or the stream has ended) */
        http_handler *at_once;  /* before handle; must not block, may respond (handle is skipped then). May be NULL */
        http_handler *begin;    /* streams only: after the headers, before the body; may already respond */
        http_body_chunk *chunk; /* streams only */
        http_handler *abandon;  /* streams only: handle will not be called; free what begin allocated */
        unsigned pool;          /* of http_options.pools; its threads run handle */
        const char *body_type;  /* required Content-Type of the body, else 415; NULL: checked by handle */
        bool cacheable;         /* responses may be cached: no Cache-Control: no-store unless a handler sets one */
        bool cross_origin;      /* also allowed for pages of http_options.allowed_origins */
        bool writes;            /* modifies shared data: logged in the audit log */
        int argument;           /* http_route_argument() */
        /* Observes the time from http_arrived_ns() to the decision on the response, of any kind. May be NULL. */
        struct histogram *duration;
        /*
         * Write an error in the format expected for requests of this Content-Type. Returns its type; NULL: nothing was
         * written.
         */
        const char *(*put_error)(struct buf *to, const char *type, unsigned code, const char *text);
};

/** Whether value is this media type, ignoring case and parameters. False for NULL. */
bool http_is_type(const char *value, const char *type);

#define HTTP_TOKEN_NAME_SIZE 64

/**
 * A thread pool for the handlers of some routes, so that other kinds of work need not wait for them. Metrics:
 * cairn_http_pool_*{pool="NAME"}; its threads have the same name.
 */
struct http_pool_options {
        const char *name;   /* at most 15 characters; borrowed until the server stops */
        unsigned threads;   /* 0: one per core, at least 4 */
        unsigned queue_max; /* queued requests per lane; further ones get 503 with Retry-After. 0: unlimited */
        unsigned
                timeout_s; /* time limit of a request, from the end of its body, see http_request_deadline(). 0: none */
        unsigned niceness; /* added to that of the process: other pools have precedence while all CPUs are busy */
        unsigned spare;    /* further threads, for senders that have no request running (http/handler_pool.h) */
        bool is_unused;    /* no route is handled in it: it has no threads */
};
#define HTTP_POOLS_MAX 8

struct http_options {
        size_t size;
        const char *host; /* "127.0.0.1", "::1", "0.0.0.0" */
        uint16_t port;    /* 0: any free port */
        struct tls *tls;  /* http/tls.h; serve https. NULL: http. Borrowed until the server stops */
        unsigned threads; /* 0: one per core, at least 4 */
        const struct http_pool_options *pools; /* NULL: one, "http", of `threads`, unlimited; copied */
        unsigned pool_count;                   /* at most HTTP_POOLS_MAX */
        unsigned lanes;                        /* of each pool (http/handler_pool.h); 0: 1 */
        unsigned max_connections; /* 0: LIMIT_HTTP_CONNECTIONS; at most half of the process's descriptors */
        unsigned max_per_address; /* 0: half of them; an IPv6 /64 counts as one address */
        /*
         * Refuse requests whose Host is neither an address, localhost, a name below it, nor one of these (421): for a
         * service that is protected only by being reachable from this host alone. Otherwise a web page could reach it
         * by DNS rebinding.
         */
        bool check_host;
        const char *const *allowed_hosts;
        size_t allowed_host_count;
        /* Origins ("https://profiler.firefox.com", "*": all) whose pages may use routes with cross_origin. */
        const char *const *allowed_origins;
        size_t allowed_origin_count;
        const struct address_range *trusted_proxies; /* http/trusted_proxy.h; borrowed */
        size_t trusted_proxy_count;
        unsigned headers_s, slow_s; /* 0: LIMIT_HTTP_HEADERS_S, LIMIT_HTTP_SLOW_S */
        /*
         * Identify the sender of a request whose route is known: http_set_sender(), or respond. Called before the next
         * two, also for SCOPE_NONE. NULL: not called.
         */
        void (*identify)(void *context, struct http_request *req);
        /* Whether the sender has scope; not called for SCOPE_NONE. NULL: everything is allowed. */
        enum http_access (*authorize)(void *context, const struct http_request *req, enum http_scope scope,
                                      char name_ret[static HTTP_TOKEN_NAME_SIZE]);
        /*
         * Rate limit of requests with a scope, called before the token is checked; bytes: of the body, as far as known.
         * Returns 0, or in how many seconds to retry: the response is 429 with the text of err. NULL: no limit.
         */
        uint64_t (*admit)(void *context, const struct http_request *req, uint64_t bytes, struct error *err);
        /*
         * Choose the tenant of a request whose token has the route's scope, before its body: http_set_tenant(), or
         * respond. Not called for SCOPE_NONE. NULL: no tenants.
         */
        void (*choose_tenant)(void *context, struct http_request *req);
        /*
         * Decode a whole body in a coding other than gzip, deflate and zstd: append to ret, up to its maximum.
         * ST_UNSUPPORTED for an unknown one. May be NULL.
         */
        enum status (*decode_body)(const char *coding, const void *data, size_t n, struct buf *ret, struct error *err);
        /* Called at the end of each request, also a failed one. May be NULL. */
        void (*finished)(void *context, const struct http_request *req);
        /* Called for each response as it is decided, on the deciding thread; code 0 is a reset. May be NULL. */
        void (*answered)(void *context, const struct http_request *req, unsigned code);
        void *context;
};

enum status http_server_start(const struct http_options *options, const struct http_route *routes, size_t route_count,
                              void *context, struct http_server **ret, struct error *err) MUST_CHECK;
uint16_t http_server_port(const struct http_server *s);
/** Finish running requests and refuse new ones. Waits for handlers, but not for slow senders. NULL is allowed. */
void http_server_stop(struct http_server *s);
/**
 * Cancellation flag for workers and waits: becomes true, within about a second, when the request should end, because
 * its time limit passed, the client disconnected or the server is stopping. Valid until the response is set; for a
 * response generated in pieces, until the state of http_respond_pieces() is closed, with LIMIT_HTTP_STREAM_S as the
 * time limit.
 */
const atomic_bool *http_request_cancelled(const struct http_request *req);
/** Becomes true when the server is stopping; for handlers that wait. */
const atomic_bool *http_server_stopping(const struct http_request *req);
/**
 * Call it in a handler, or when generating pieces of a response, before blocking on an upstream, for example: other
 * requests are handled meanwhile. ST_BUSY if LIMIT_HTTP_WAITING are already waiting: do not wait then. After ST_OK
 * http_end_wait() must follow, on the same thread.
 */
enum status http_begin_wait(struct error *err) MUST_CHECK;
void http_end_wait(void);

/* ---- the request ---- */
/** NULL until the route is known. */
const struct http_route *http_route(const struct http_request *req);
const char *http_method(const struct http_request *req);
const char *http_path(const struct http_request *req);
/** Whether the request comes from a page whose origin is in http_options.allowed_origins. */
bool http_is_origin_allowed(const struct http_request *req);
/** Path and query as sent. */
const char *http_uri(const struct http_request *req);
/** The context of http_server_start(). */
void *http_context(const struct http_request *req);
/** The argument of the request's route, for handlers of several routes. */
int http_route_argument(const struct http_request *req);
/** The text of a {name} of the path, percent-decoded; "" if absent. Borrowed. */
const char *http_path_part(const struct http_request *req, const char *name);
/** A query parameter, decoded, or NULL. A request with two values for one parameter is refused. */
const char *http_query(const struct http_request *req, const char *name);
/** The name of query parameter i, decoded; NULL past the last one. */
const char *http_query_name(const struct http_request *req, size_t i);
/**
 * Deadline of handle: the time limit, or earlier if the client disconnects. A long-running handler passes it to the
 * functions it calls, and responds with http_fail() of the resulting ST_TIMEOUT. Valid until the response is set; not
 * for responses generated in pieces.
 */
const struct deadline *http_request_deadline(const struct http_request *req);
/** A header, or NULL. */
const char *http_header(const struct http_request *req, const char *name);
/** Number of headers with this name. */
unsigned http_count_headers(const struct http_request *req, const char *name);
/** The decompressed body of a whole-body route. */
const uint8_t *http_body(const struct http_request *req, size_t *size_ret);
/** Free the body and its reservation in the budget, once it is no longer used. */
void http_free_body(struct http_request *req);
/**
 * Reserve n bytes of the memory budget (MEMORY_SYMBOLIZE) until the request ends, for data that a handler keeps while
 * its response is sent. ST_BUSY if the budget is exhausted.
 */
enum status http_reserve_memory(struct http_request *req, size_t n, struct error *err) MUST_CHECK;
/** The value of a cookie, or NULL. Borrowed. */
const char *http_cookie(const struct http_request *req, const char *name);
/**
 * Decode a field of an application/x-www-form-urlencoded body. False if it is absent, malformed, contains NUL or needs
 * more than size bytes.
 */
bool http_form_field(const struct http_request *req, const char *name, char *to, size_t size);
/** Whether the request was sent by a page of another origin, including followed links. */
bool http_is_cross_origin(const struct http_request *req);
/** Whether the browser states that a page of the service's own origin sent the request. */
bool http_is_same_origin(const struct http_request *req);
/** The token as sent, or NULL. */
const char *http_token(const struct http_request *req);
/** Set the sender, called by identify. @param sender owned by the request, from malloc() */
void http_set_sender(struct http_request *req, void *sender);
const void *http_sender(const struct http_request *req);
/** The name that authorize returned for the sender; "": none. */
const char *http_token_name(const struct http_request *req);
void http_set_token_name(struct http_request *req, const char *name);
/** Whether the request's token also has this scope; if not, responds with 401 or 403. */
bool http_check_scope(struct http_request *req, enum http_scope scope);
/** Set the tenant, called by choose_tenant; NULL: none. @param lane the lane in which its requests are queued */
void http_set_tenant(struct http_request *req, void *tenant, unsigned lane);
/** Called by choose_tenant: account the memory of the whole body to a group, which outlives the server. */
void http_set_body_group(struct http_request *req, struct memory_group *group);
void *http_tenant(const struct http_request *req);
/** Whether the request came from one of http_options.trusted_proxies. */
bool http_is_from_proxy(const struct http_request *req);
/** Whether the client uses https, with the service or with a trusted proxy that says so in X-Forwarded-Proto. */
bool http_is_secure(const struct http_request *req);
/** Numeric address of the client, also behind trusted proxies; "": unknown. */
const char *http_peer(const struct http_request *req);
/** The same as a number, equal for all addresses of an IPv6 /64. */
uint64_t http_peer_number(const struct http_request *req);
/**
 * n bytes of the body were decompressed: http_received_bytes() counts them instead of the sent bytes if they are more.
 */
void http_add_unpacked(struct http_request *req, uint64_t n);
/** When the last byte of the request arrived, by monotonic_ns(); 0: not yet. */
int64_t http_arrived_ns(const struct http_request *req);
/** Bytes of the body received so far, as sent or decompressed, whichever is more. */
uint64_t http_received_bytes(const struct http_request *req);
/** The bytes passed to admit, if it admitted the request; else 0. */
uint64_t http_admitted_bytes(const struct http_request *req);
/** Pass state from a stream's begin to its chunk, handle and abandon. */
void http_set_state(struct http_request *req, void *state);
void *http_state(struct http_request *req);
/** Whether the response is set. */
bool http_is_answered(const struct http_request *req);

/* ---- the response: exactly one of these per request ---- */
/**
 * @param content_type NULL: none, for a response without a body; an encoded message may also be empty. @param body
 * copied
 */
void http_respond(struct http_request *req, unsigned code, const char *content_type, const void *body, size_t n);
/** Takes body's bytes, and their reservation in the budget (buf_init_budget()) until the response is sent. */
void http_respond_buf(struct http_request *req, unsigned code, const char *content_type, struct buf *body);
/** The same, compressed as the client accepts (zstd, gzip), unless it is short. */
void http_respond_packed(struct http_request *req, unsigned code, const char *content_type, struct buf *body);
/**
 * JSON error; the code follows from the status: BAD_DATA/USAGE 400, NOT_FOUND 404, TOO_BIG 413, UNSUPPORTED 415, BUSY
 *  429 (scopes ingest and upload) or 503 with Retry-After, NO_MEMORY likewise while the memory budget is exhausted,
 *  TIMEOUT
 * 504, a full disk 507, others 500. err may be NULL.
 */
void http_fail(struct http_request *req, enum status st, const struct error *err);
void http_fail_code(struct http_request *req, unsigned code, const char *reason, const char *fmt, ...) PRINTF(4, 5);
/**
 * Add a response header; call it before the response is set. It replaces the default header of that name. Defaults of
 * every response: nosniff, no referrer, X-Request-Id, this origin only, Content-Security-Policy "default-src 'none';
 * frame-ancestors 'none'", and no-store unless the route is cacheable.
 */
void http_set_header(struct http_request *req, const char *name, const char *value);
/**
 * For answers that are not files: set a weak ETag (given without quotes).
 * @return true if the client already has it (If-None-Match): the response is 304.
 */
bool http_answer_unchanged(struct http_request *req, const char *etag);
/**
 * Respond with an open regular file (takes fd), with Range, Last-Modified, and ETag if etag (without quotes) is not
 * NULL, and the conditions If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since and If-Range.
 */
void http_respond_file(struct http_request *req, const char *content_type, int fd, const char *etag);
/** Respond with a part of a file, which must lie inside it, without Last-Modified and ETag. */
void http_respond_file_part(struct http_request *req, const char *content_type, int fd, uint64_t offset, uint64_t size);
/** Respond with bytes in memory (takes them, from malloc(); may be empty), with Range, and ETag if etag is not NULL. */
void http_respond_bytes(struct http_request *req, const char *content_type, void *bytes, size_t n, const char *etag);
/**
 * A body generated by a callback (pread-like: bytes at offset, 0 at the end, -1 on failure), of known size, with Range
 * and ETag. A later failure resets the connection, so that the client cannot mistake a partial body for a complete one.
 * @param state owned; close is called with it in every case, even if read never was.
 */
typedef ssize_t http_read_body(void *state, void *to, size_t n, uint64_t offset);
void http_respond_stream(struct http_request *req, const char *content_type, uint64_t size, const char *etag,
                         http_read_body *read, void (*close)(void *state), void *state);
/**
 * A body of unknown size, generated in pieces while it is sent: at most one piece waits while another is sent, so
 * memory is bounded by two pieces even for slow readers, and no thread waits for the reader. make appends a piece to
 * `to`, which is empty, and sets *end with the last one; it runs on threads of the pool, one call at a time.
 *
 * The first piece is generated in this call: if that fails the response is http_fail(). A later failure, or a reader
 * slower than LIMIT_HTTP_STREAM_S, resets the connection. Compressed as the client accepts (zstd, gzip), except
 * application/octet-stream.
 * @param state owned; close is called with it in every case.
 */
typedef enum status http_make_piece(void *state, struct buf *to, bool *end, struct error *err);
void http_respond_pieces(struct http_request *req, const char *content_type, size_t piece_max, http_make_piece *make,
                         void (*close)(void *state), void *state);
/**
 * End the connection with a TCP reset: for a transient failure that a debuginfod client must not cache as "not found".
 */
void http_reset_connection(struct http_request *req);

#endif
