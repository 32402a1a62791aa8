/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_SERVER_H
#define CAIRN_HTTP_SERVER_H

/**
 * @file
 * The server side of HTTP: a table of routes over libmicrohttpd, with limits,
 * bodies, ranges, errors and compression done once for all of them.
 *
 * A route either takes its body whole (decompressed, under a limit) or as a
 * stream. Unknown paths are 404, known paths with another method 405 with
 * Allow, errors are JSON {"error": "..."} with the next step in the text.
 *
 * Threads: handlers run on a pool of threads, several at a time; a request
 * belongs to one of them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "common/error.h"

struct http_server;
struct http_request;

/** Rights a token may carry; a route needs exactly one. */
enum http_scope { SCOPE_NONE, SCOPE_READ, SCOPE_INGEST, SCOPE_UPLOAD, SCOPE_ADMIN };

typedef void http_handler(struct http_request *req, void *context);

/** Body as it arrives (as sent, not decompressed). A non-OK status ends the request with http_fail() of it. */
typedef enum status http_body_chunk(struct http_request *req, void *context, const void *data, size_t n);

struct http_route {
        const char *method;           /* "GET" also answers HEAD */
        const char *path;             /* "/buildid/{id}/debuginfo"; a last "{rest...}" takes slashes too */
        enum http_scope scope;
        size_t max_body;              /* whole bodies: bytes after unpacking; 0: no body */
        http_handler *handle;         /* the whole body is there (or the stream has ended) */
        http_handler *begin;          /* streams only: headers are there, no byte yet; may already answer */
        http_body_chunk *chunk;       /* streams only */
        http_handler *abandon;        /* streams only: the client went away; free what begin made */
};

struct http_options {
        size_t size;
        const char *host;             /* "127.0.0.1", "::1", "0.0.0.0" */
        uint16_t port;                /* 0: any free one */
        unsigned threads;             /* 0: one per core, at least 4 */
        /* Returns whether token (NULL: none sent) carries scope. NULL: everything is allowed. */
        bool (*authorize)(void *context, const char *token, enum http_scope scope);
        void *context;
};

enum status http_server_start(const struct http_options *options, const struct http_route *routes, size_t route_count,
                              void *context, struct http_server **ret, struct error *err) MUST_CHECK;
uint16_t http_server_port(const struct http_server *s);
/** Finish what runs, refuse what comes. */
void http_server_stop(struct http_server *s);

/* ---- the request ---- */
const char *http_method(const struct http_request *req);
const char *http_path(const struct http_request *req);
/** The text of a {name} of the path, percent-decoded; "" when absent. Borrowed. */
const char *http_path_part(const struct http_request *req, const char *name);
/** A query parameter, decoded, or NULL. */
const char *http_query(const struct http_request *req, const char *name);
/** A header, or NULL. */
const char *http_header(const struct http_request *req, const char *name);
/** The unpacked body of a whole-body route. */
const uint8_t *http_body(const struct http_request *req, size_t *size_ret);
/** Something a stream's begin made, for its chunk, handle and abandon. */
void http_set_state(struct http_request *req, void *state);
void *http_state(struct http_request *req);

/* ---- the answer: exactly one of these per request ---- */
void http_respond(struct http_request *req, unsigned code, const char *content_type, const void *body, size_t n); /* copied */
void http_respond_buf(struct http_request *req, unsigned code, const char *content_type, struct buf *body); /* takes body's bytes */
/** JSON error; the code follows from the status: BAD_DATA/USAGE 400, NOT_FOUND 404, TOO_BIG 413, UNSUPPORTED 415,
 *  BUSY 429 with Retry-After, others 500. */
void http_fail(struct http_request *req, enum status st, const struct error *err);
void http_fail_code(struct http_request *req, unsigned code, const char *reason, const char *fmt, ...) PRINTF(4, 5);
/** Extra response header; before the answer. */
void http_set_header(struct http_request *req, const char *name, const char *value);
/** A part of an open file (taken), with Range, ETag and Last-Modified. */
void http_respond_file(struct http_request *req, const char *content_type, int fd, const char *etag);
/** A body made by a callback (pread-like: bytes at offset, 0 at the end, -1 on failure), of known size, with Range. */
typedef ssize_t http_read_body(void *state, void *to, size_t n, uint64_t offset);
void http_respond_stream(struct http_request *req, const char *content_type, uint64_t size, const char *etag,
                         http_read_body *read, void (*close)(void *state), void *state);
/** End the connection with a reset: a transient failure that a debuginfod client must not remember as "not found". */
void http_reset(struct http_request *req);

#endif
