/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_SHARE_STORE_H
#define CAIRN_SERVER_CORE_SHARE_STORE_H

/**
 * @file
 * Shared profiles, which are read by a link: one pprof file per share, DIR/shares/ID.pb.gz. An id is 128 random bits in
 * hexadecimal, so that a share cannot be found without its link. The age of a share is the age of its file.
 *
 * Threads: any, except open and close.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define SHARE_ID_CHARS 32

struct share_limits {
        uint64_t bytes; /* of all shares; 0: sharing is disabled */
        uint64_t age_s; /* 0: unlimited */
};

struct share_store;

/** Open DIR/shares, which the first share creates. Nothing is written when read_only. */
enum status share_store_open(const char *dir, const struct share_limits *limits, bool read_only,
                             struct share_store **ret, struct error *err) MUST_CHECK;
void share_store_close(struct share_store *s); /* NULL is allowed */

/**
 * Store a share durably. The oldest shares are removed to stay within LIMIT_SHARES and limits.bytes.
 * @param expires_ret  Unix time; 0: never.
 * @return ST_TOO_BIG over LIMIT_SHARE_BYTES or limits.bytes; ST_UNSUPPORTED when sharing is off; ST_OS.
 */
enum status share_store_add(struct share_store *s, const void *data, size_t n, char id_ret[SHARE_ID_CHARS + 1],
                            int64_t *expires_ret, struct error *err) MUST_CHECK;

/** Open a share for reading. @return ST_NOT_FOUND: it does not exist or has expired. */
enum status share_store_get(struct share_store *s, const char *id, int *fd_ret, struct error *err) MUST_CHECK;

/** Remove expired shares and abandoned temporary files, and update the metrics. Failures are logged. */
void share_store_expire(struct share_store *s);

#endif
