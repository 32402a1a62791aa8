/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_S3_REFUSALS_H
#define CAIRN_STORAGE_S3_REFUSALS_H

/**
 * @file
 * What answers of an object store that are no success mean: a status, and a text that says what to do.
 *
 * Source: Amazon S3 API Reference, "Error responses"; the codes for a full store are those of MinIO, Ceph and others.
 */
#include "storage/s3/s3_client.h"
#include "storage/s3/s3_location.h"

/** Whether the bucket takes only what has an MD5 or a checksum: it has object locks. */
bool s3_refusal_demands_md5(const struct s3_response *r);

/**
 * @param failed  of the HTTP client, whose text in err is taken when there was no answer.
 * @return as s3_send(); `failed` for a success.
 */
enum status s3_explain_refusal(const struct s3_location *l, const struct s3_request *q, enum status failed,
                               const struct s3_response *r, struct error *err) MUST_CHECK;

#endif
