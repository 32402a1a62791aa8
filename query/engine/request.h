/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_REQUEST_H
#define CAIRN_QUERY_ENGINE_REQUEST_H

/** @file The parameters of a query, parsed and checked. Private to query/. */
#include "query/engine/frames.h"
#include "query/engine/label_groups.h"
#include "query/engine/selector.h"
#include "query/query.h"
#include "query/query_operations.h"

#define DEFAULT_RANGE_NS (INT64_C(3600) * 1000000000)
#define DEFAULT_MAX_NODES 20000
#define LIMIT_MAX_NODES 1048576
#define LIMIT_SERIES_POINTS 11000

/* Cost by which rows of a table of functions are sorted. */
enum row_order { ORDER_FLAT, ORDER_CUMULATIVE };

/* A selection of samples; a diff has two. */
struct query_selection {
        const char *text; /* the selector as given, borrowed */
        struct selector selector;
        int64_t from_unix_ns, to_unix_ns;
};

struct query_request {
        struct query_selection selection;
        enum query_format format;
        enum query_names names;
        const char *type;             /* as requested; NULL: chosen by type_plan */
        bool is_type_exact;           /* type is a full id, which selects nothing if no sample has it */
        const char *const *call_site; /* as in struct frame_filter; borrowed */
        size_t call_site_count;
        uint64_t limit; /* rows or names; 0: all */
        struct label_list by;
        uint64_t groups; /* maximum of shown groups; 0: LIMIT_SHOWN_GROUPS */
        enum row_order order;
        bool is_match_exact; /* a comparison has names as they are, else functions are matched across builds */
        bool by_value;       /* a diff compares values, else their shares of the totals of the sides */
        uint32_t max_nodes;
        int64_t step_ns;
        bool average; /* of series: count profiles instead of samples, for averages */
};

struct query_param_source {
        query_param *get;
        void *context;
        struct work_meter *meter; /* for the regular expressions of selectors; NULL: unlimited */
};

/** Read "selector", "from" and "to", with a prefix before each name ("base_" for the other side of a diff). */
enum status query_selection_parse(const struct query_param_source *params, const char *prefix,
                                  const struct query_selection *fallback, int64_t now_unix_ns,
                                  struct query_selection *ret, struct error *err) MUST_CHECK;
void query_selection_deinit(struct query_selection *s);

/** The filter of a scan; borrows from s. @param type  full id, or NULL for any. */
struct scan_filter query_selection_make_filter(const struct query_selection *s, const char *type);

enum status query_request_parse(const struct query_param_source *params, int64_t now_unix_ns, struct query_request *ret,
                                struct error *err) MUST_CHECK;
void query_request_deinit(struct query_request *r);

/** A parameter that is 0 or 1, false when absent. */
enum status query_param_get_flag(const struct query_param_source *params, const char *name, bool *ret,
                                 struct error *err) MUST_CHECK;

/** One parameter, NULL when absent or empty. */
const char *query_param_get(const struct query_param_source *params, const char *prefix, const char *name);

#endif
