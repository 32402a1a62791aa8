/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_S3_PAGE_H
#define CAIRN_STORAGE_S3_PAGE_H

/**
 * @file
 * Pages of lists that an object store answers: keys (ListObjectsV2) and unfinished uploads (ListMultipartUploads).
 *
 * Source: Amazon S3 API Reference, ListObjectsV2 and ListMultipartUploads.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/limits.h"
#include "common/memory/buf.h"

#define S3_PAGE_BYTES MiB(4) /* of a page, which has at most 1,000 entries */

struct s3_page_entry {
        const char *key;       /* whole, with the prefix */
        const char *upload_id; /* of an unfinished upload; NULL: an object */
        uint64_t size;
        int64_t modified_ms; /* of an unfinished upload, when it began */
};

/** @param e  borrowed for the call. */
typedef enum status s3_page_visit(void *context, const struct s3_page_entry *e, struct error *err);

/**
 * Visit the entries of a page in its order.
 * @param next_ret  initialized; gets the token of the next page, or of uploads the key that it begins behind; empty
 *                  when this is the last.
 */
enum status s3_page_read(const void *data, size_t n, s3_page_visit *visit, void *context, struct buf *next_ret,
                         struct error *err) MUST_CHECK;

#endif
