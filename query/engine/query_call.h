/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_QUERY_CALL_H
#define CAIRN_QUERY_ENGINE_QUERY_CALL_H

/** @file The state of one call of query_run(). Private to query/. */
#include "query/engine/request.h"

#define TEXT_LIMIT 30 /* default number of rows of a text table */

struct query_call {
        struct store_scan *scan;
        struct query_param_source params;
        struct work_meter *meter;
        struct query_request r;
        int64_t now_unix_ns;
        const struct query_sources *sources; /* NULL: none */
        const struct query_code *code;       /* NULL: none */
        struct buf *ret;
        struct query_report *report; /* NULL: none */
        struct buf note;             /* of the answer */
        bool has_negative_note;      /* of stacks that are not drawn */
        const char *content_type;    /* default content_type_json */
        struct error *err;
};

/* Content types; constants. */
extern const char content_type_json[], content_type_text[], content_type_csv[], content_type_html[],
        content_type_binary[];

static inline uint64_t query_call_text_limit(const struct query_call *q)
{
        return q->r.limit ? q->r.limit : TEXT_LIMIT;
}

static inline const char *query_call_content_type(const struct query_call *q)
{
        switch (q->r.format) {
        case FORMAT_TEXT:
                return content_type_text;
        case FORMAT_CSV:
                return content_type_csv;
        default:
                return content_type_json;
        }
}

/** The first given parameter of the selection before, NULL without a comparison. */
const char *query_call_find_base(const struct query_call *q);

/** Note that sums may be cut off, if they may. */
void query_call_note_magnitude(struct query_call *q, value_magnitude magnitude);

/** Record the selection in the report. */
void query_call_note_selection(const struct query_call *q, const char *selector, int64_t from_unix_ns,
                               int64_t to_unix_ns);

/**
 * Run one answer on the call's scan with its meter and within the memory limit of a query.
 * @return the status of the answer, or of the meter; ST_TOO_BIG when the memory limit was exceeded.
 */
typedef enum status query_answer_function(struct query_call *q, void *context);
enum status query_call_run(struct query_call *q, query_answer_function *answer, void *context) MUST_CHECK;

/* Operations; each appends its result to q->ret. */
enum status query_answer_top(struct query_call *q) MUST_CHECK;
enum status query_answer_flame(struct query_call *q) MUST_CHECK;
enum status query_answer_folded(struct query_call *q) MUST_CHECK;
enum status query_answer_firefox(struct query_call *q) MUST_CHECK;
enum status query_answer_diff(struct query_call *q) MUST_CHECK;
enum status query_answer_gate(struct query_call *q) MUST_CHECK;
enum status query_answer_pprof(struct query_call *q) MUST_CHECK;
enum status query_answer_autofdo(struct query_call *q) MUST_CHECK;
enum status query_answer_series(struct query_call *q) MUST_CHECK;
enum status query_answer_services(struct query_call *q) MUST_CHECK;
enum status query_answer_trend(struct query_call *q) MUST_CHECK;
enum status query_answer_changes(struct query_call *q) MUST_CHECK;
enum status query_answer_spans(struct query_call *q) MUST_CHECK;
enum status query_answer_sandwich(struct query_call *q) MUST_CHECK;
enum status query_answer_lines(struct query_call *q) MUST_CHECK;
enum status query_answer_disassembly(struct query_call *q) MUST_CHECK;
enum status query_answer_addresses(struct query_call *q) MUST_CHECK;
/** The pprof file of a selection without compression. */
enum status query_put_plain_pprof(struct query_call *q, struct buf *ret) MUST_CHECK;
enum status query_answer_labels(struct query_call *q) MUST_CHECK;
enum status query_answer_values(struct query_call *q) MUST_CHECK;
enum status query_answer_types(struct query_call *q) MUST_CHECK;
enum status query_answer_missing(struct query_call *q) MUST_CHECK;
enum status query_answer_uploads(struct query_call *q) MUST_CHECK;

#endif
