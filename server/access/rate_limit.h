/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ACCESS_RATE_LIMIT_H
#define CAIRN_SERVER_ACCESS_RATE_LIMIT_H

/**
 * @file
 * Rate limiting with token buckets: requests per second, and bytes per day. Both refill continuously; the capacity is
 * RATE_LIMIT_BURST_S seconds of requests, and one day of bytes.
 *
 * A bucket is identified by a number, of a token or of an address. At most RATE_LIMIT_BUCKETS_MAX are kept, with LRU
 * eviction.
 *
 * Threads: any.
 */
#include <stdint.h>

#include "common/error.h"

#define RATE_LIMIT_BUCKETS_MAX 8192
#define RATE_LIMIT_BURST_S 10

struct rate_limit;

struct rate_limit_config {
        uint64_t requests_per_s; /* 0: no limit */
        unsigned interval_s;     /* requests_per_s is per this time instead, at the same capacity; 0: one second */
        uint64_t bytes_per_day;  /* 0: no limit */
};

enum rate_verdict { RATE_FINE, RATE_REQUESTS, RATE_BYTES };

enum status rate_limit_create(struct rate_limit **ret, struct error *err) MUST_CHECK;
void rate_limit_destroy(struct rate_limit *r); /* takes NULL */

/**
 * Charge one request and its declared bytes (0: unknown; at most a day's) to a bucket.
 * @param wait_s_ret set when refused: seconds until a retry would succeed; at least 1.
 */
enum rate_verdict rate_limit_take(struct rate_limit *r, uint64_t key, const struct rate_limit_config *limits,
                                  uint64_t bytes, int64_t now_ns, uint64_t *wait_s_ret);
/** Refund the request of a rate_limit_take(). */
void rate_limit_refund(struct rate_limit *r, uint64_t key, const struct rate_limit_config *limits, int64_t now_ns);
/**
 * Replace the bytes charged by rate_limit_take() with those received: the difference is charged, even past the limit,
 * or refunded.
 */
void rate_limit_correct(struct rate_limit *r, uint64_t key, const struct rate_limit_config *limits, uint64_t taken,
                        uint64_t received, int64_t now_ns);

#endif
