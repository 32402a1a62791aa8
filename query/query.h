/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_QUERY_H
#define CAIRN_QUERY_QUERY_H

/**
 * @file
 * Questions to a profile store, and their answers as bytes.
 *
 * One call answers one question; the HTTP routes GET /api/v1/query/OPERATION
 * and the command line both go through it, so that they cannot differ.
 * Parameters and answers are described in docs/formats/query-api.md.
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
 * Answer a question.
 * @param operation  "top", "flame", "folded", "pprof", "diff", "series", "labels", "values", "types", "missing",
 *                   "uploads".
 * @param now_unix_ns  what "now" in times means.
 * @param meter  told of all work, and may end it; NULL: the budgets of work_meter_init() alone.
 * @param ret  the answer is appended; its max bounds it.
 * @param content_type_ret  a constant.
 * @return ST_NOT_FOUND: no such operation; ST_USAGE: a parameter is wrong, the text names it; ST_TOO_BIG; what ended
 *         the meter.
 */
enum status query_run(struct profile_store *store, const char *operation, query_param *param, void *context,
                      int64_t now_unix_ns, struct work_meter *meter, struct buf *ret, const char **content_type_ret,
                      struct error *err) MUST_CHECK;

/** The same of a scan that has begun, of profiles in no store for one. */
enum status query_run_scan(struct store_scan *scan, const char *operation, query_param *param, void *context,
                           int64_t now_unix_ns, struct work_meter *meter, struct buf *ret,
                           const char **content_type_ret, struct error *err) MUST_CHECK;

#endif
