/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/s3/s3_refusals.h"

#include <errno.h>
#include <string.h>

#define FULL_STORE_CODE 507 /* Insufficient Storage, RFC 4918 */

bool s3_refusal_demands_md5(const struct s3_response *r)
{
        return r->code == 400 && (strstr(r->message, "Content-MD5") || strstr(r->message, "x-amz-checksum"));
}

static enum status explain_region(const struct s3_location *l, const struct s3_response *r, struct error *err)
{
        return error_set(err, ST_USAGE, "bucket '%s' is in the region %s, not %s: set AWS_REGION=%s", l->bucket,
                         r->region, l->region, r->region);
}

/* QuotaExceeded, XMinioAdminBucketQuotaExceeded, XMinioStorageFull, StorageLimitExceeded, ... */
static bool is_store_full(const struct s3_response *r)
{
        return r->code == FULL_STORE_CODE || strstr(r->error, "Quota") || strstr(r->error, "StorageFull") ||
               strstr(r->error, "StorageLimit");
}

static enum status explain_full_store(const struct s3_location *l, const struct s3_request *q,
                                      const struct s3_response *r, struct error *err)
{
        return error_set(
                err, ST_OS,
                "bucket '%s' is full: %s refuses %s %.60s with HTTP %u%s%s; raise its quota or make room there",
                l->bucket, l->host, q->method, q->key ? q->key : "", r->code, *r->error ? ", " : "", r->error);
}

static enum status explain_missing_right(const struct s3_location *l, const struct s3_request *q,
                                         const struct s3_response *r, struct error *err)
{
        const char *object = q->key ? q->key : "the list of keys";

        if (strcmp(r->error, "InvalidAccessKeyId") == 0 || strcmp(r->error, "SignatureDoesNotMatch") == 0)
                return error_set(err, ST_USAGE,
                                 "the store at %s does not accept the keys (%s): check "
                                 "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
                                 l->host, r->error);
        if (strcmp(r->error, "RequestTimeTooSkewed") == 0)
                return error_set(err, ST_USAGE, "the clock of this host differs too much from that of %s", l->host);
        return error_set(err, ST_USAGE,
                         "no right to %s %.90s in bucket '%s'%s%s: the permissions needed are "
                         "in docs/operations.md, Object storage",
                         q->method, object, l->bucket, *r->error ? ", " : "", r->error);
}

static enum status explain_no_answer(const struct s3_location *l, enum status failed, const struct s3_response *r,
                                     struct error *err)
{
        if (failed != ST_BUSY)
                return failed;
        if (r->ignores_range)
                return error_os(err, EOPNOTSUPP,
                                "the object store at %s, or a proxy before it, answers a range of an object with the "
                                "whole object",
                                l->host);
        return error_prefix(err, ST_OS, "the object store does not answer");
}

enum status s3_explain_refusal(const struct s3_location *l, const struct s3_request *q, enum status failed,
                               const struct s3_response *r, struct error *err)
{
        const bool is_elsewhere = *r->region && strcmp(r->region, l->region) != 0;

        if (r->code >= 200 && r->code < 300)
                return failed;
        if (is_store_full(r))
                return explain_full_store(l, q, r, err);
        switch (r->code) {
        case 0:
                return explain_no_answer(l, failed, r, err);
        case 301:
        case 307:
        case 400:
                if (is_elsewhere)
                        return explain_region(l, r, err);
                break;
        case 403:
                return is_elsewhere ? explain_region(l, r, err) : explain_missing_right(l, q, r, err);
        case 404:
                if (strcmp(r->error, "NoSuchBucket") == 0 || !q->key)
                        return error_set(err, ST_USAGE, "bucket '%s' does not exist at %s", l->bucket, l->host);
                return error_set(err, ST_NOT_FOUND, "'%.150s' is not in bucket '%s'", q->key, l->bucket);
        case 409:
        case 412:
                return error_set(err, ST_BUSY, "'%.150s' is already in bucket '%s'", q->key ? q->key : "", l->bucket);
        default:
                break;
        }
        return error_set(err, ST_OS, "the object store answers %s %.60s with HTTP %u%s%s%s%.90s", q->method,
                         q->key ? q->key : l->bucket, r->code, *r->error ? ", " : "", r->error, *r->message ? ": " : "",
                         r->message);
}
