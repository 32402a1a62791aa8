/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_REQUEST_H
#define CAIRN_QUERY_REQUEST_H

/** @file The parameters of a query, parsed and checked. Private to query/. */
#include "query/frames.h"
#include "query/query.h"
#include "query/selector.h"

#define DEFAULT_RANGE_NS (INT64_C(3600) * 1000000000)
#define DEFAULT_MAX_NODES 20000
#define LIMIT_MAX_NODES 200000
#define LIMIT_SERIES_POINTS 11000

enum query_format { FORMAT_JSON, FORMAT_ROWS, FORMAT_TEXT, FORMAT_HTML };

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
        const char *type; /* as asked for; NULL: choose */
        uint64_t limit;   /* rows or names; 0: all */
        uint32_t max_nodes;
        int64_t step_ns;
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

/** The filter for a scan; borrows from s. @param type  full id, or NULL for any. */
struct scan_filter query_selection_make_filter(const struct query_selection *s, const char *type);

enum status query_request_parse(const struct query_param_source *params, int64_t now_unix_ns, struct query_request *ret,
                                struct error *err) MUST_CHECK;
void query_request_deinit(struct query_request *r);

/** One parameter, NULL when absent or empty. */
const char *query_param_get(const struct query_param_source *params, const char *prefix, const char *name);

/**
 * The full type id for `asked`: the id itself, its first parts ("process_cpu", "process_cpu:cpu"), or its sample type
 * ("cpu"). NULL prefers CPU time, then CPU samples, then the first type of the selection. A type that only other series
 * of the time range have is accepted, and selects nothing.
 * @param ret  borrowed from the scan; NULL when the time range has no samples, or `asked` is NULL and the selection
 * none.
 * @return ST_USAGE when `asked` matches none or several; the text lists the types.
 */
enum status choose_profile_type(struct store_scan *scan, const struct query_selection *s, const char *asked,
                                const char **ret, struct error *err) MUST_CHECK;

#endif
