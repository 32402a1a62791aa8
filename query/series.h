/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_SERIES_H
#define CAIRN_QUERY_SERIES_H

#include "common/buf.h"
#include "query/request.h"

/**
 * Sums per step of time, as JSON or text. Steps begin at multiples of the step; without one it is chosen for about
 * 120 points. Private to query/.
 */
enum status put_series(struct store_scan *scan, const struct query_request *r, const char *type, struct buf *ret,
                       struct error *err) MUST_CHECK;

#endif
