/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_S3_SIGNATURE_H
#define CAIRN_STORAGE_S3_SIGNATURE_H

/**
 * @file
 * Signature of a request to an S3-compatible store: AWS Signature Version 4, in the Authorization header.
 *
 * libcurl can sign, too, but which forms of a path, query and header it signs correctly changed in eleven releases from
 * 7.87 to 8.21. This one is the same everywhere and is checked with Amazon's examples.
 *
 * Source: Amazon S3 API Reference, "Authenticating Requests (AWS Signature Version 4)".
 */
#include <stddef.h>
#include <time.h>

#include "common/error.h"
#include "common/hash/sha256.h"
#include "storage/s3/s3_credentials.h"

#define S3_HEADERS_MAX 8

struct s3_header {
        const char *name; /* lower case */
        const char *value;
};

struct s3_signing {
        const char *method;
        const char *host;  /* with a port that is not the scheme's */
        const char *path;  /* percent-encoded, as sent */
        const char *query; /* percent-encoded, as sent: sorted by name, each name with "="; "" for none */
        struct s3_header headers[S3_HEADERS_MAX]; /* besides those that signing adds */
        size_t header_count;
        const char *content_sha256; /* of the body, hexadecimal */
        const char *region;
        time_t time;
};

/** Header lines "name: value", for struct http_client_request. */
struct s3_signed_headers {
        char *lines[S3_HEADERS_MAX + 5]; /* owned, ended by NULL */
        size_t count;
};

/** @param ret  free it with s3_signed_headers_deinit(), also after a failure. */
enum status s3_sign(const struct s3_signing *s, const struct s3_credentials *credentials, struct s3_signed_headers *ret,
                    struct error *err) MUST_CHECK;

void s3_signed_headers_deinit(struct s3_signed_headers *h); /* also valid on a zeroed struct */
#define _cleanup_s3_signed_headers_ _cleanup_(s3_signed_headers_deinit)

#endif
