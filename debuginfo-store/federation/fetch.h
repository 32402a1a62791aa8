/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FEDERATION_FETCH_H
#define CAIRN_DEBUGINFO_STORE_FEDERATION_FETCH_H

/**
 * @file
 * Fetch one file from one upstream: a GET of the debuginfod web API in a separate worker process (`cairn worker
 * fetch`), which isolates the service from TLS, HTTP and the upstream's response.
 *
 * It uses libcurl instead of libdebuginfod, which reports every status of 400 and above and truncated responses as "not
 * found", hides Retry-After, follows redirects to any host, and returns a file only when it is complete.
 */
#include <stdatomic.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"

#define FETCH_NAME_SIZE 128

/** The upstream's response; updated while it arrives. */
struct fetch_response {
        unsigned http_status;       /* 0: no response */
        uint64_t retry_after_s;     /* at most LIMIT_UPSTREAM_PAUSE_S; 0: none */
        uint64_t size_bytes;        /* announced; 0: unknown */
        uint64_t received_bytes;    /* in the file so far */
        char name[FETCH_NAME_SIZE]; /* X-DEBUGINFOD-FILE; "": none */
};

struct fetch_request {
        const char *url;           /* of the upstream */
        const char *header;        /* sent to that origin only: "Authorization: Bearer x"; NULL: none */
        const struct build_id *id; /* NULL: the request does not name an object */
        const char *resource;      /* URL path after the build-id, escaped: "debuginfo", "section/.text"; without an id,
                                      after the upstream's URL: "metadata?key=file&value=/x" */
        const char *forwarded_for; /* X-Forwarded-For to send; "": none */
        uint64_t timeout_s;        /* maximum silence of the upstream */
        uint64_t total_s;          /* time limit of the transfer; 0: fetch_set_time_limit() */
        uint64_t max_bytes;        /* 0: LIMIT_OBJECT_BYTES */
        /* Called on the calling thread while the file grows, at least for its first bytes. May be NULL. */
        void (*progress)(void *context, const struct fetch_response *response);
        void *context;
};

/**
 * @param out an empty file that receives the content; complete after ST_OK.
 * @param ret set in every case.
 * @return ST_NOT_FOUND: the upstream does not have it (404, 410). ST_TOO_BIG: it is larger than max_bytes. ST_BUSY: any
 * other status or transient failure, with the reason.
 */
enum status fetch_object(const struct fetch_request *request, int out, const atomic_bool *cancel,
                         struct fetch_response *ret, struct error *err) MUST_CHECK;

/**
 * Trust the certificate authorities in this PEM file instead of the system's. Call before the first fetch. @param path
 * borrowed; the file is read for each fetch.
 */
void fetch_set_authorities(const char *path);

/** Default time limit of a transfer. 0: LIMIT_UPSTREAM_S. */
void fetch_set_time_limit(uint64_t seconds);

#define FETCH_URL_TEXT 128
/** The URL for messages: without user and password, truncated to FETCH_URL_TEXT. Returns ret. */
const char *fetch_url_redact(const char *url, char ret[static FETCH_URL_TEXT]);

/* Descriptors of the worker. */
enum {
        FETCH_WORKER_OUT = 3,
        FETCH_WORKER_ANSWER = 4,
        FETCH_WORKER_URL = 5,
        FETCH_WORKER_AUTHORITIES = 6, /* closed: use the system's */
};

/** The worker's entry point. @param args PATH SECONDS TOTAL-SECONDS MAX-BYTES FORWARDED-FOR */
#define FETCH_WORKER_ARGS 5
enum status fetch_worker_run(char *const args[static FETCH_WORKER_ARGS], struct error *err) MUST_CHECK;

#endif
