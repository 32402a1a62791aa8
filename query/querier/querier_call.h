/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_QUERIER_QUERIER_CALL_H
#define CAIRN_QUERY_QUERIER_QUERIER_CALL_H

/** @file The state of one call of querier_run(), and functions shared by its methods. Private to query/querier/. */
#include "profile-formats/profile_type.h"
#include "profile-formats/proto/querier.pb-c.h"
#include "query/engine/query_call.h"

/* The value of service_name for samples without it, as in Pyroscope, whose user interface requires one. */
#define UNKNOWN_SERVICE "unknown_service"

struct querier_call {
        struct query_call q; /* without parameters */
        struct arena *memory;
        struct buf scratch;
        const ProtobufCMessage *answer;
};

/** The status of a failed call, such as after querier_alloc() returned NULL; never ST_OK. */
static inline enum status querier_get_failure(const struct querier_call *c)
{
        return c->q.err->code ? c->q.err->code : ST_NO_MEMORY;
}

/** Methods; each sets c->answer. */
typedef enum status querier_answer(struct querier_call *c, const void *request);
querier_answer querier_answer_profile_types, querier_answer_label_names, querier_answer_label_values,
        querier_answer_series, querier_answer_profile_stats, querier_answer_analysis, querier_answer_stacktraces,
        querier_answer_span_profile, querier_answer_profile, querier_answer_diff, querier_answer_select_series;

/** Methods of Parca's service, in parca.c. */
querier_answer parca_answer_profile_types, parca_answer_labels, parca_answer_values, parca_answer_query_range,
        parca_answer_query, parca_answer_series;

/* ---- answers ---- */

/** Allocate a zeroed array that lives as long as the answer; NULL with the error. */
void *querier_alloc(struct querier_call *c, size_t count, size_t size);
/** Copy a text as valid UTF-8; NULL with the error. */
char *querier_copy_text(struct querier_call *c, const char *text, size_t n);
/** A label with copied texts; the value has n bytes. NULL with the error. */
Querier__LabelPair *querier_make_label_pair(struct querier_call *c, const char *name, const char *value, size_t n);

/* ---- selections ---- */

/** The samples selected by a request, with the matchers of its selector and ids. */
struct querier_selection {
        struct query_selection selection; /* its selector borrows from the other members */
        struct selector parsed;
        struct label_matcher *matchers;   /* owned, except what they point to */
        struct service_matcher *services; /* owned, as is the next */
        char *type;                       /* a full id; NULL: any */
};

/** Parameters of a selection; all borrowed. */
struct querier_choice {
        const char *type;         /* profile_typeID; NULL: any */
        const char *selector;     /* "": all */
        int64_t start_ms, end_ms; /* both 0: all times */
        char **trace_ids, **span_ids;
        size_t trace_id_count, span_id_count; /* 0: any id */
        size_t profile_id_count;              /* ST_UNSUPPORTED unless 0: stored profiles have no ids */
};

/** @return ST_USAGE for a malformed type, selector, id or range. */
enum status querier_selection_init(struct querier_selection *s, struct querier_call *c,
                                   const struct querier_choice *choice) MUST_CHECK;
void querier_selection_deinit(struct querier_selection *s); /* also fine on a zeroed one */
#define _cleanup_querier_selection_ _cleanup_(querier_selection_deinit)

/** The filter of a scan, with the selection's type; borrows from s. */
struct scan_filter querier_selection_make_filter(const struct querier_selection *s);

/** Set the selection and type of c->q.r; borrows from s. */
void querier_call_select(struct querier_call *c, const struct querier_selection *s);

/* ---- labels derived from the type ---- */

#define TYPE_LABEL_COUNT 6
extern const char *const querier_type_labels[TYPE_LABEL_COUNT]; /* sorted */

bool querier_is_type_label(const char *name);
/** The value of a type label for a type, "" if none; borrowed from the type. */
const char *querier_get_type_label(const char *name, const char *type, size_t *n_ret);

#endif
