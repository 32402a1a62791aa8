/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_CLIENT_H
#define CAIRN_HTTP_CLIENT_H

/**
 * @file
 * One HTTP client for the uploader, the agent and the command line: libcurl
 * with our limits, retries and error texts.
 *
 * A client keeps its connection open between requests. Requests that may be
 * repeated are, with growing pauses, after connection errors and 429, 502, 503
 * and 504; Retry-After is honoured, and a longer one than the longest pause ends
 * the request. Errors name the URL, what happened, the
 * server's own text and the next step. A certificate is always verified, with its
 * host name; there is no way around that.
 *
 * Threads: a client belongs to one thread at a time; any number of clients.
 * Source: RFC 9110 (10.2.3 Retry-After, 9.2.2 idempotent methods), RFC 6750.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/error.h"

struct http_client;

struct http_client_options {
        size_t size;                 /* sizeof(struct http_client_options) */
        const char *base_url;        /* "http://host:port[/prefix]"; copied; a last slash is dropped */
        const char *ca_file;         /* PEM of who may sign the service's certificate; NULL: the system's; copied */
        const char *token;           /* bearer token, NULL: none; copied */
        const char *user_agent;      /* NULL: "cairn/VERSION"; copied */
        uint64_t connect_timeout_ms; /* 0: 10 s */
        uint64_t request_timeout_ms; /* one attempt from start to end; 0: no limit */
        uint64_t idle_timeout_s;     /* an attempt that moves almost nothing for so long is given up; 0: 60 s */
        unsigned attempts;           /* of a repeatable request; 0: 5 */
        uint64_t first_pause_ms;     /* before the second attempt, doubled after each; 0: 500 ms */
        uint64_t longest_pause_ms;   /* bound of a pause; 0: 30 s */
        uint64_t send_bytes_per_s;   /* of one request, on average; 0: no limit */
        const atomic_bool *stop;     /* once true, whatever runs or waits ends with ST_BUSY; may be NULL */
};

/** Bytes of a request body in order: up to n into to; 0 at the end; -1 to give up. */
typedef ssize_t http_client_read(void *context, void *to, size_t n);
/** Back to the first byte, before an attempt other than the first; false when that cannot be. */
typedef bool http_client_rewind(void *context);
/** Bytes of a 2xx response body as they come. A failure ends the request with it. */
typedef enum status http_client_write(void *context, const void *data, size_t n);

struct http_client_request {
        const char *method;         /* "GET", "POST", "PUT", "DELETE", "HEAD" */
        const char *path;           /* "/api/v1/..." behind the base, with query; or a whole URL */
        const char *const *headers; /* "Name: value", ended by NULL; may be NULL */

        const void *body; /* either bytes, borrowed, */
        size_t body_size;
        http_client_read *read;     /* or a stream, sent chunked unless its size is known */
        http_client_rewind *rewind; /* NULL: a stream that began cannot be sent again */
        void *context;              /* of read and rewind */
        uint64_t stream_size;       /* 0: not known */

        size_t max_response;      /* 0: 1 MiB; past it the request fails with ST_TOO_BIG */
        http_client_write *write; /* NULL: the body goes to response.body */
        void *write_context;
        bool repeatable; /* a POST that may be sent twice; others go by their method */
};

struct http_client_response {
        unsigned code;   /* 0: no answer came */
        struct buf body; /* of any answer, unless write took it; owned */
        char content_type[80];
        uint64_t retry_after_ms; /* of the last answer, 0 none */
        unsigned attempts;
};
void http_client_response_deinit(struct http_client_response *r); /* also fine on a zeroed one */
#define _cleanup_http_client_response_ _cleanup_(http_client_response_deinit)

enum status http_client_create(const struct http_client_options *options, struct http_client **ret,
                               struct error *err) MUST_CHECK;
void http_client_destroy(struct http_client *client); /* takes NULL */
static inline void http_client_cleanup(struct http_client **c)
{
        http_client_destroy(*c);
}
#define _cleanup_http_client_ _cleanup_(http_client_cleanup)

/** Would a token go to base_url for everybody on the way to read: http, and not to this machine? */
bool http_client_exposes_token(const char *base_url);

/**
 * Send one request and take the answer.
 * @param response filled in every case (code 0 when none came); deinit it. Must be zeroed or deinited before.
 * @return ST_OK for 2xx. Otherwise err tells, and the status says what to do:
 *         ST_BUSY: try again later (no connection, 429, 5xx, stopped);
 *         ST_NOT_FOUND: 404; ST_TOO_BIG: 413 or a response past max_response;
 *         ST_UNSUPPORTED: 415; ST_USAGE: 401, 403, 405, a wrong URL; ST_BAD_DATA: other 4xx.
 */
enum status http_client_send(struct http_client *client, const struct http_client_request *request,
                             struct http_client_response *response, struct error *err) MUST_CHECK;

/** Append text percent-encoded for a path segment or a query value. */
enum status http_client_escape(struct buf *to, const char *text);

/** A member of a JSON error answer ("error", "reason") as text, cut to size; "" when there is none. Returns out. */
const char *http_client_error_member(const struct http_client_response *r, const char *member, char *out,
                                     size_t size);

/** The first line of a token file, without spaces around it; owned. ST_USAGE when it is empty. */
enum status http_client_read_token(const char *path, char **ret, struct error *err) MUST_CHECK;

#endif
