/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FETCH_H
#define CAIRN_DEBUGINFO_STORE_FETCH_H

/**
 * @file
 * One file from one upstream: a GET of the debuginfod web API by a worker process of its own (`cairn worker fetch`), so
 * that TLS, HTTP and whoever answers are not in the service's process.
 *
 * libcurl, not libdebuginfod, which says "not found" for every status of 400 and more and for what was cut off, keeps
 * what Retry-After says to itself, follows redirects anywhere, and hands a file out only when it is whole.
 */
#include <stdatomic.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"

#define FETCH_NAME_SIZE 128

/** What the upstream said; filled as it comes. */
struct fetch_answer {
        unsigned http_status;    /* 0: none came */
        uint64_t retry_after_s;  /* 0: it does not say, at most LIMIT_UPSTREAM_PAUSE_S */
        uint64_t size_bytes;     /* announced; 0 not known */
        uint64_t received_bytes; /* in the file by now */
        char name[FETCH_NAME_SIZE]; /* X-DEBUGINFOD-FILE; "" none */
};

struct fetch_question {
        const char *url;             /* of the upstream */
        const char *header;          /* to send there and nowhere else: "Authorization: Bearer x"; NULL none */
        const struct build_id *id;   /* NULL: of no object, */
        const char *part;            /* what follows the build-id in the URL, escaped: "debuginfo", "section/.text";
                                        and then what follows the upstream's URL: "metadata?key=file&value=/x" */
        const char *forwarded_for;   /* X-Forwarded-For to send, "" none */
        uint64_t timeout_s;          /* for which the upstream may send nothing */
        uint64_t total_s;            /* for all of it; 0: LIMIT_UPSTREAM_S */
        uint64_t max_bytes;          /* 0: LIMIT_OBJECT_BYTES */
        /* Told in the calling thread as the file grows, at least with its first bytes. May be NULL. */
        void (*progress)(void *context, const struct fetch_answer *answer);
        void *context;
};

/**
 * @param out empty file; holds what was asked for after ST_OK, and grows to it meanwhile.
 * @param ret filled in every case.
 * @return ST_NOT_FOUND: the upstream definitely has none (404, 410). ST_TOO_BIG: it is larger than max_bytes.
 *         ST_BUSY: every transient failure, with the reason; also any other status.
 */
enum status fetch_object(const struct fetch_question *question, int out, const atomic_bool *cancel,
                         struct fetch_answer *ret, struct error *err) MUST_CHECK;

/**
 * From now on these certificates (a PEM file, read for each question; borrowed) say who is an upstream over https, in place
 * of the system's. Before the first question.
 */
void fetch_set_authorities(const char *path);

#define FETCH_URL_TEXT 128
/** The URL as people may see it: without user and password, cut to FETCH_URL_TEXT. Returns ret. */
const char *fetch_url_text(const char *url, char ret[static FETCH_URL_TEXT]);

/* Descriptors of the worker. */
enum {
        FETCH_WORKER_OUT = 3,
        FETCH_WORKER_ANSWER = 4,
        FETCH_WORKER_URL = 5,
        FETCH_WORKER_AUTHORITIES = 6, /* closed: the system's */
};

/** The worker's side. @param args PATH SECONDS TOTAL-SECONDS MAX-BYTES FORWARDED-FOR */
#define FETCH_WORKER_ARGS 5
enum status fetch_worker(char *const args[static FETCH_WORKER_ARGS], struct error *err) MUST_CHECK;

#endif
