/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_S3_UPLOAD_H
#define CAIRN_STORAGE_S3_UPLOAD_H

/**
 * @file
 * Putting a file into an object store as one object: whole, or in parts when it is large.
 *
 * Each upload has a random id that the object carries as x-amz-meta-cairn-upload. When the answer of the last request
 * is lost, or says that the object exists, the object is asked for its id: an upload that won its race unseen is a
 * success.
 *
 * Source: Amazon S3 API Reference, PutObject, CreateMultipartUpload, UploadPart, CompleteMultipartUpload; S3 User
 * Guide, "Conditional writes".
 */
#include "common/limits.h"
#include "storage/s3/s3_client.h"

#define S3_PART_BYTES MiB(32) /* a larger file is put in parts of this size, */
#define S3_PARTS_MAX 10000    /* or larger ones, so that they are no more than this */

/**
 * Put size bytes of a file.
 * @return ST_OK: the object is there, durably; with STORAGE_NEW ST_BUSY when another one is; else as of s3_send(), and
 *         it is open whether the object is there.
 */
enum status s3_upload_file(struct s3_client *c, const char *key, int fd, uint64_t size, enum storage_mode mode,
                           struct error *err) MUST_CHECK;

/** End an upload in parts without an object, and free its parts. */
enum status s3_abort_upload(struct s3_client *c, const char *key, const char *upload_id, struct error *err) MUST_CHECK;

#endif
