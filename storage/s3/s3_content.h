/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_S3_CONTENT_H
#define CAIRN_STORAGE_S3_CONTENT_H

/**
 * @file
 * The body of a request to an object store: its hashes, and how it is read from a file.
 *
 * Source: Amazon S3 API Reference, "Authenticating Requests" (x-amz-content-sha256) and "PutObject" (Content-MD5).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/files/file.h"
#include "common/hash/sha256.h"

struct s3_content {
        char sha256[SHA256_HEX_MAX];
        char md5[25]; /* base64; "": none */
};

/** @param data  NULL with 0 bytes. */
enum status s3_hash_content(const void *data, size_t n, bool has_md5, struct s3_content *ret,
                            struct error *err) MUST_CHECK;

/** A range of a file. Its functions are those of struct http_client_request. */
struct s3_file_body {
        int fd;
        struct file_range range;
        uint64_t sent;
};
ssize_t s3_file_body_read(void *body, void *to, size_t n);
bool s3_file_body_rewind(void *body);

/** Reads it from its beginning, to which it is rewound. */
enum status s3_hash_file_body(struct s3_file_body *b, bool has_md5, struct s3_content *ret,
                              struct error *err) MUST_CHECK;

#endif
