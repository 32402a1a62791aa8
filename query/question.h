/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_QUESTION_H
#define CAIRN_QUERY_QUESTION_H

/** @file One call of query_run() on its way to the answer. Private to query/. */
#include "query/request.h"

#define TEXT_LIMIT 30 /* rows of a table for people, unless asked for more */

struct question {
        struct store_scan *scan;
        struct param_source params;
        struct work_meter *meter;
        struct request r;
        int64_t now_unix_ns;
        struct buf *ret;
        const char *content_type; /* question_json until an answer says otherwise */
        struct error *err;
};

/* Content types; constants. */
extern const char question_json[], question_text[];

static inline uint64_t question_text_limit(const struct question *q)
{
        return q->r.limit ? q->r.limit : TEXT_LIMIT;
}

/* Answers to one question each, appended to q->ret. */
enum status answer_missing(struct question *q) MUST_CHECK;
enum status answer_uploads(struct question *q) MUST_CHECK;

#endif
