/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_STORAGE_S3_CREDENTIALS_H
#define CAIRN_STORAGE_S3_CREDENTIALS_H

/**
 * @file
 * Keys for an S3-compatible store, found in the same places and order as by Amazon's SDKs:
 *
 * 1. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN;
 * 2. the section AWS_PROFILE ("default") of the file AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials);
 * 3. AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN, as in Kubernetes: a role's keys from the token service;
 * 4. AWS_CONTAINER_CREDENTIALS_FULL_URI or ..._RELATIVE_URI, as in ECS and EKS;
 * 5. the instance metadata service (version 2), unless AWS_EC2_METADATA_DISABLED is "true".
 *
 * Keys that expire are replaced S3_CREDENTIALS_EARLY_S before they do. While that fails, they are used until they
 * expire, also when their source has none for a moment, as a file that is being written; a later source is only asked
 * when they have expired. The file of 2 is read again after an hour.
 *
 * Threads: any.
 * Source: AWS SDKs and Tools Reference Guide, "Standardized credential providers"; STS API Reference,
 * AssumeRoleWithWebIdentity; EC2 User Guide, "Use IMDSv2".
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

#define S3_CREDENTIALS_EARLY_S 300

struct s3_credentials {
        char *access_key, *secret_key; /* owned */
        char *session_token;           /* owned; NULL: none */
        int64_t expires_s;             /* Unix time; INT64_MAX: never */
        uint64_t number;               /* of the keys that their source found, from 1 */
};
void s3_credentials_deinit(struct s3_credentials *c); /* also valid on a zeroed struct */
#define _cleanup_s3_credentials_ _cleanup_(s3_credentials_deinit)

struct s3_credential_source;

enum status s3_credential_source_create(const char *region, struct s3_credential_source **ret,
                                        struct error *err) MUST_CHECK;
void s3_credential_source_destroy(struct s3_credential_source *s); /* takes NULL */

/**
 * Get a copy of the current keys. It may wait for a service for up to 10 s, while other threads get the keys that are
 * still valid.
 * @return ST_USAGE without keys anywhere: the text lists where they can be given; ST_BUSY when their service does not
 *         answer.
 */
enum status s3_get_credentials(struct s3_credential_source *s, struct s3_credentials *ret,
                               struct error *err) MUST_CHECK;

/**
 * Look for new keys before the next use, as the store does not accept these; a service is asked at most each 10 s.
 * Without new ones these are used on.
 * @param number  of the keys that were not accepted.
 * @return whether to send again: new keys are looked for, or were found meanwhile.
 */
bool s3_doubt_credentials(struct s3_credential_source *s, uint64_t number);

#endif
