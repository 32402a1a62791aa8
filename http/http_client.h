/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_HTTP_CLIENT_H
#define CAIRN_HTTP_HTTP_CLIENT_H

/**
 * @file
 * HTTP client for the uploader, the agent and the command line: libcurl with limits, retries and error texts.
 *
 * A client keeps its connection open between requests. Idempotent requests are retried with exponential backoff after
 * connection errors, timeouts and 429, 502, 503 and 504. Retry-After is honoured; one longer than longest_pause_ms
 * ends the request. Errors have the server's error text or the failure with the next step, and the URL without its
 * query. TLS certificates and host names are always verified.
 *
 * Threads: a client belongs to one thread at a time; any number of clients.
 * Source: RFC 9110 (10.2.3 Retry-After, 9.2.2 idempotent methods), RFC 6750.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "common/memory/buf.h"

struct http_client;

struct http_client_options {
        size_t size;            /* sizeof(struct http_client_options) */
        const char *base_url;   /* "http://host:port[/prefix]"; copied; a trailing slash is removed */
        const char *ca_file;    /* PEM file of certificate authorities for the service; NULL: the system's; copied */
        const char *ca_setting; /* how a user gives it, for messages; borrowed; NULL: "--ca FILE" */
        const char *cert_file;  /* PEM file of the client's certificate, with key_file; NULL: none; copied */
        const char *key_file;
        const char *token;           /* bearer token, NULL: none; copied */
        const char *tenant;          /* sent as X-Scope-OrgID, NULL: none; copied */
        const char *user_agent;      /* NULL: "cairn/VERSION"; copied */
        uint64_t connect_timeout_ms; /* 0: 10 s */
        uint64_t request_timeout_ms; /* per attempt, in total; 0: no limit */
        unsigned connect_timeouts;   /* after so many a request ends, whatever its attempts; 0: no bound */
        uint64_t unacked_timeout_ms; /* until the peer's system confirms a request without a body; 0: no limit */
        uint64_t idle_timeout_s;     /* an attempt without progress for this long fails; 0: 60 s */
        unsigned attempts;           /* of a repeatable request, in total; 0: 5 */
        uint64_t first_pause_ms;     /* before the second attempt, doubled after each; 0: 500 ms */
        uint64_t longest_pause_ms;   /* upper bound of a pause; 0: 30 s */
        uint64_t send_bytes_per_s;   /* of one request, on average; 0: no limit */
        const atomic_bool *stop;     /* when true, running and waiting requests end with ST_BUSY; may be NULL */
};

/** Read up to n bytes of the request body into to; 0 at the end, -1 to abort. */
typedef ssize_t http_client_read(void *context, void *to, size_t n);
/** Rewind to the first byte before a retry; false when impossible. */
typedef bool http_client_rewind(void *context);
/**
 * Receives the bytes of a 2xx response body. A failure ends the request with that status, but ST_BUSY only the attempt:
 * it counts as one whose connection broke.
 */
typedef enum status http_client_write(void *context, const void *data, size_t n);
/** Whether a 2xx response that has arrived is what was asked for; else the attempt counts as one that broke, too. */
typedef bool http_client_check(void *context);
/**
 * Receives a header of a response, also of one that is retried or redirects.
 * @param name, value  not terminated; name_size 0: a response begins, and what earlier ones had is obsolete.
 */
typedef void http_client_header(void *context, const char *name, size_t name_size, const char *value,
                                size_t value_size);

struct http_client_request {
        const char *method;         /* "GET", "POST", "PUT", "DELETE", "HEAD" */
        const char *path;           /* "/api/v1/..." relative to base_url, with query; or a full URL */
        const char *const *headers; /* "Name: value", ended by NULL; may be NULL */

        const void *body; /* either a buffer, borrowed, */
        size_t body_size;
        http_client_read *read;     /* or a stream, sent chunked unless its size is known */
        http_client_rewind *rewind; /* NULL: the request cannot be retried after its stream was read from */
        void *context;              /* of read and rewind */
        uint64_t stream_size;       /* 0: unknown */

        size_t max_response;      /* 0: 1 MiB; beyond it the request fails with ST_TOO_BIG */
        http_client_write *write; /* NULL: the body is stored in response.body */
        void *write_context;
        http_client_header *header; /* NULL: only those of the response */
        http_client_check *check;   /* with header_context; NULL: every response is */
        void *header_context;
        uint64_t deadline_ms;  /* for all attempts and pauses; 0: none */
        bool repeatable;       /* a POST that may be retried; other methods are retried if idempotent */
        bool no_timeout_retry; /* after a timeout or 504: the same work would take as long again */
        bool retries_500;      /* the service answers 500 for failures that pass */
        bool no_redirects;     /* a redirection of a GET is an error, too; by default up to five are followed */
};

struct http_client_response {
        unsigned code;   /* 0: no response */
        struct buf body; /* of any response, unless write received it; owned */
        char content_type[80];
        char content_encoding[40]; /* of the last response, whose body is not decoded; "": none */
        char note[600];            /* header X-Cairn-Note of the last response, which lists what it omits; "": none */
        uint64_t expiring_samples; /* header X-Cairn-Expiring-Samples of the last response */
        uint64_t retry_after_ms;   /* of the last response; 0: none */
        unsigned attempts;
        bool timed_out;  /* the last attempt timed out */
        char cause[160]; /* libcurl's error of the last attempt if there is no response; without the URL */
};
void http_client_response_deinit(struct http_client_response *r); /* also valid on a zeroed struct */
#define _cleanup_http_client_response_ _cleanup_(http_client_response_deinit)

enum status http_client_create(const struct http_client_options *options, struct http_client **ret,
                               struct error *err) MUST_CHECK;
void http_client_destroy(struct http_client *client); /* takes NULL */
static inline void http_client_cleanup(struct http_client **c)
{
        http_client_destroy(*c);
}
#define _cleanup_http_client_ _cleanup_(http_client_cleanup)

/** Set the token for subsequent requests; NULL: none. Any thread. @param token copied. */
enum status http_client_set_token(struct http_client *client, const char *token, struct error *err) MUST_CHECK;

/** Whether a token sent to base_url could be read on the network: http to a non-loopback address. */
bool http_client_exposes_token(const char *base_url);

/**
 * Send one request and receive the response.
 * @param response filled in every case (code 0: no response); deinit it. It must be zeroed or deinited before the call.
 * @return ST_OK for 2xx. Otherwise err has the failure, and the status tells how to proceed: ST_BUSY: retry later (no
 *         connection, 429, 5xx, stopped); ST_NOT_FOUND: 404; ST_TOO_BIG: 413 or a response beyond max_response;
 *         ST_UNSUPPORTED: 415; ST_USAGE: 401, 403, 405, an invalid URL; ST_BAD_DATA: other 4xx.
 */
enum status http_client_send(struct http_client *client, const struct http_client_request *request,
                             struct http_client_response *response, struct error *err) MUST_CHECK;

/** Append text percent-encoded for a path segment or a query value. */
enum status http_client_escape(struct buf *to, const char *text);

/** Copy a member of a JSON error response ("error", "reason") as text, truncated to size; "" if absent. Returns out. */
const char *http_client_get_error_member(const struct http_client_response *r, const char *member, char *out,
                                         size_t size);

/** The first word of a token file; owned. ST_USAGE if its first line is empty. */
enum status http_client_read_token(const char *path, char **ret, struct error *err) MUST_CHECK;

#endif
