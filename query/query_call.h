/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_QUERY_CALL_H
#define CAIRN_QUERY_QUERY_CALL_H

/** @file The state of one call of query_run(). Private to query/. */
#include "query/request.h"

#define TEXT_LIMIT 30 /* default number of rows of a text table */

struct query_call {
        struct store_scan *scan;
        struct query_param_source params;
        struct work_meter *meter;
        struct query_request r;
        int64_t now_unix_ns;
        struct buf *ret;
        const char *content_type; /* default content_type_json */
        struct error *err;
};

/* Content types; constants. */
extern const char content_type_json[], content_type_text[];

static inline uint64_t query_call_text_limit(const struct query_call *q)
{
        return q->r.limit ? q->r.limit : TEXT_LIMIT;
}

/* Operations; each appends its result to q->ret. */
enum status query_answer_missing(struct query_call *q) MUST_CHECK;
enum status query_answer_uploads(struct query_call *q) MUST_CHECK;

#endif
