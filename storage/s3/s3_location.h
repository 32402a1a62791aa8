/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_S3_LOCATION_H
#define CAIRN_STORAGE_S3_LOCATION_H

/**
 * @file
 * Where objects are in an S3-compatible store: s3://BUCKET/PREFIX, with variables of the environment as for Amazon's
 * SDKs.
 *
 * AWS_REGION, AWS_DEFAULT_REGION: the region; us-east-1 without them.
 * AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL: the address of another store than Amazon's, http:// or https://HOST[:PORT].
 *     The bucket is the first component of paths there, unless the address contains "{bucket}".
 * AWS_CA_BUNDLE: PEM file of certificate authorities.
 * AWS_SERVER_SIDE_ENCRYPTION: AES256, aws:kms or aws:kms:dsse, for what is written; AWS_SSE_KMS_KEY_ID: the key.
 * Without them the bucket's own setting holds. The names are those of delta-rs and Polars.
 *
 * Source: AWS SDKs and Tools Reference Guide, "Service-specific endpoints"; S3 User Guide, "Virtual hosting of
 * general purpose buckets", "General purpose bucket naming rules" and "Protecting data with server-side encryption".
 */
#include <stdbool.h>

#include "common/cleanup.h"
#include "common/error.h"

struct s3_location {
        char *bucket, *prefix; /* the prefix without slashes around it; "" for none */
        char *region;
        char *base_url;    /* scheme, host and port */
        const char *host;  /* within base_url */
        char *bucket_path; /* percent-encoded: "/BUCKET", or "" when the host names the bucket */
        char *ca_file;     /* NULL: the system's */
        char *encryption;  /* of objects that are written; NULL: the bucket's */
        char *kms_key;     /* NULL: the account's */
};
void s3_location_deinit(struct s3_location *l); /* also valid on a zeroed struct */
#define _cleanup_s3_location_ _cleanup_(s3_location_deinit)

/** Whether it begins with s3://. */
bool is_s3_url(const char *text);

/** @return ST_USAGE with the part that is wrong. */
enum status s3_location_parse(const char *url, struct s3_location *ret, struct error *err) MUST_CHECK;

#endif
