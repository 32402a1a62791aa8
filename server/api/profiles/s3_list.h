/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_API_PROFILES_S3_LIST_H
#define CAIRN_SERVER_API_PROFILES_S3_LIST_H

/**
 * @file
 * ListObjectsV2 of the tables (docs/formats/s3.md): the live data files and the logs.
 *
 * Memory: the matching names of one table's log folder, a snapshot of its log, and an answer of at most S3_KEYS_MAX
 * keys.
 * Threads: any.
 */
#include "common/memory/buf.h"
#include "server/core/server_internal.h"

#define S3_BUCKET "cairn"
#define S3_KEYS_MAX 1000
#define S3_KEY_BYTES_MAX 1024

struct s3_list_request {
        const char *prefix, *delimiter;    /* "" without */
        const char *start_after;           /* list only keys after this one; "" for all */
        const char *token;                 /* as requested, "" without; start_after is its decoded value */
        const char *requested_start_after; /* "" without */
        uint64_t max_keys;                 /* at most S3_KEYS_MAX */
        bool encodes_url;                  /* encoding-type=url */
};

/** Append the XML of the answer. ST_TOO_BIG when out is full. */
enum status write_s3_list(const struct tenant *t, const struct s3_list_request *request, struct buf *out,
                          struct error *err) MUST_CHECK;

/** Decode a continuation token, the last key in hexadecimal. False when it is malformed. */
bool parse_s3_token(const char *token, char key_ret[static S3_KEY_BYTES_MAX + 1]);

#endif
