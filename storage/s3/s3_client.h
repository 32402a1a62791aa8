/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_S3_CLIENT_H
#define CAIRN_STORAGE_S3_CLIENT_H

/**
 * @file
 * Signed requests to one bucket of an S3-compatible store.
 *
 * A request is repeated by the HTTP client after connection errors, timeouts, 429 and 5xx, and once more by this one
 * when the store's clock differs from this host's, with new keys after they expired, or with the MD5 of its body, which
 * buckets with object locks demand. All attempts together take at most 40 s, and 1 s for each 128 KiB, unless the
 * request may take minutes. An answer that is too short, has another range than was asked for, or is no whole XML where
 * `wants_xml` says so, counts as one whose connection broke; answers to PUT and to the completion of an upload are not
 * checked. The caller decides about 409 and 412. Connections are kept and used by one thread at a time; there are as
 * many as threads that ask at once.
 *
 * Threads: any.
 * Source: Amazon S3 API Reference; RFC 9110 (13.1 preconditions, 14 ranges).
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "common/files/file.h"
#include "common/memory/buf.h"
#include "http/http_client.h"
#include "storage/s3/s3_signature.h"
#include "storage/storage.h"

struct s3_client;

/** Connections without a request that a client keeps; after more requests at once than that, the others are closed. */
#define S3_IDLE_CONNECTIONS_MAX 32

/** @param stop  when true, requests end with ST_BUSY; may be NULL. */
enum status s3_client_create(const char *url, const atomic_bool *stop, struct s3_client **ret,
                             struct error *err) MUST_CHECK;
void s3_client_destroy(struct s3_client *c); /* takes NULL */

/** Register the metrics of requests, so that they appear before the first. */
void s3_register_metrics(void);

struct s3_location;

/** Borrowed. */
const struct s3_location *s3_client_location(const struct s3_client *c);

/** The prefix of all keys, without slashes around it; "" for none. Borrowed. */
const char *s3_client_prefix(const struct s3_client *c);

/** The store's clock: this host's, corrected by what answers said. Milliseconds of Unix time. */
int64_t s3_client_now_ms(const struct s3_client *c);

struct s3_request {
        const char *method;
        const char *key;   /* below the prefix; NULL: the bucket itself */
        const char *query; /* as for struct s3_signing; NULL: none */
        struct s3_header headers[S3_HEADERS_MAX];
        size_t header_count;
        struct file_range wanted; /* of the object, as a header asks for; size 0: all of it */
        bool wants_end;           /* its last wanted.size bytes, or a smaller object as a whole */
        bool wants_xml;           /* without write */
        bool may_take_minutes;    /* until the store has answered */
        const void *body;         /* either memory, */
        size_t body_size;
        int fd; /* or a range of a file, when range.size is not 0 */
        struct file_range range;
        http_client_write *write;             /* receives the body of a 2xx answer; NULL: it is in response.body */
        void (*restart)(void *write_context); /* an answer begins, and what was written is obsolete; set with write */
        void *write_context;
        size_t max_response; /* 0: 1 MiB */
};

struct s3_response {
        unsigned code;   /* 0: no answer */
        uint64_t size;   /* of the object: of Content-Range, else Content-Length */
        uint64_t length; /* of the answer's body */
        int64_t modified_ms;
        char etag[STORAGE_ETAG_BYTES]; /* without quotes; "" if the answer has none or a longer one */
        char upload[40];               /* x-amz-meta-cairn-upload */
        char region[40];               /* where the bucket is, in some refusals */
        char error[64];                /* the store's code of an error, as "NoSuchKey" */
        char message[200];             /* and its text, unless it is longer */
        bool ignores_range;            /* the answer had the whole object instead */
        struct buf body;               /* owned */
};
void s3_response_deinit(struct s3_response *r); /* also valid on a zeroed struct */
#define _cleanup_s3_response_ _cleanup_(s3_response_deinit)

/**
 * Send a request.
 * @param response  filled in every case; zeroed or deinited before the call.
 * @return ST_OK for 2xx; ST_NOT_FOUND for 404 of a key; ST_BUSY for 409 and 412 (see response->code); ST_OS for no
 * answer, 5xx and all else, after which it is open what happened; ST_USAGE for what an administrator must change (keys,
 * rights, bucket, region): the text says what. With ST_OS, os_errno is EOPNOTSUPP for a store that ignores ranges.
 */
enum status s3_send(struct s3_client *c, const struct s3_request *request, struct s3_response *response,
                    struct error *err) MUST_CHECK;

#endif
