/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_QUERY_H
#define CAIRN_QUERY_QUERY_H

/**
 * @file
 * Queries of a profile store.
 *
 * The HTTP routes GET /api/v1/query/OPERATION and the command line both use this
 * interface. Parameters and results: docs/formats/query-api.md.
 *
 * Threads: any number of calls at once on one store.
 */
#include "common/buf.h"
#include "common/error.h"
#include "common/work_meter.h"
#include "profile-store/scan.h"

/** The value of a parameter, or NULL; borrowed until query_run() returns. */
typedef const char *query_param(void *context, const char *name);

/**
 * Run one query.
 * @param operation  "top", "flame", "folded", "pprof", "diff", "series", "labels", "values", "types", "missing",
 *                   "uploads".
 * @param now_unix_ns  the value of "now" in times.
 * @param meter  counts all work, and may end it; NULL: the budgets of work_meter_init() alone.
 * @param ret  the answer is appended; its max bounds it.
 * @param content_type_ret  a constant.
 * @return ST_NOT_FOUND: unknown operation; ST_USAGE: a parameter is wrong, the text names it; ST_TOO_BIG; the status
 *         of the meter when it ended the query.
 */
enum status query_run(struct profile_store *store, const char *operation, query_param *param, void *context,
                      int64_t now_unix_ns, struct work_meter *meter, struct buf *ret, const char **content_type_ret,
                      struct error *err) MUST_CHECK;

/** The same for an existing scan, for example of profiles outside of a store. */
enum status query_run_scan(struct store_scan *scan, const char *operation, query_param *param, void *context,
                           int64_t now_unix_ns, struct work_meter *meter, struct buf *ret,
                           const char **content_type_ret, struct error *err) MUST_CHECK;

#endif
