/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_RATES_H
#define CAIRN_SERVER_RATES_H

/**
 * @file
 * How much somebody may do: requests a second, and bytes a day. Both are
 * buckets that fill evenly and hold so many: the requests of RATES_BURST_S
 * seconds, the bytes of a day.
 *
 * Who somebody is, is a number: of a token or of an address. RATES_MAX of them
 * are remembered; whose last request is longest ago is forgotten first.
 *
 * Threads: any.
 */
#include <stdint.h>

#include "common/error.h"

#define RATES_MAX 8192
#define RATES_BURST_S 10

struct rates;

struct rate_limits {
        uint64_t requests_per_s; /* 0: no limit */
        uint64_t bytes_per_day;  /* 0: no limit */
};

enum rate_verdict { RATE_FINE, RATE_REQUESTS, RATE_BYTES };

enum status rates_create(struct rates **ret, struct error *err) MUST_CHECK;
void rates_destroy(struct rates *r); /* takes NULL */

/**
 * Take one request with so many bytes to come (0: not known) from what who may; those of a day at most.
 * @param wait_s_ret when it is not fine: in how many seconds it would be; at least 1.
 */
enum rate_verdict rates_take(struct rates *r, uint64_t who, const struct rate_limits *limits, uint64_t bytes, int64_t now_ns,
                             uint64_t *wait_s_ret);
/** What came in place of the bytes that rates_take() took: the difference is taken, though less be left, or given back. */
void rates_received(struct rates *r, uint64_t who, const struct rate_limits *limits, uint64_t taken, uint64_t received,
                    int64_t now_ns);

#endif
