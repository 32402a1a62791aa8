/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_REQUEST_H
#define CAIRN_QUERY_REQUEST_H

/** @file The parameters of a question, read and checked. Private to query/. */
#include "query/frames.h"
#include "query/query.h"
#include "query/selector.h"

#define DEFAULT_RANGE_NS (INT64_C(3600) * 1000000000)
#define DEFAULT_MAX_NODES 20000
#define LIMIT_MAX_NODES 200000
#define LIMIT_SERIES_POINTS 11000

enum query_format { FORMAT_JSON, FORMAT_ROWS, FORMAT_TEXT, FORMAT_HTML };

/* Which samples: one of them, two for a diff. */
struct selection {
        const char *text; /* the selector as given, borrowed */
        struct selector selector;
        int64_t from_unix_ns, to_unix_ns;
};

struct request {
        struct selection selection;
        enum query_format format;
        enum query_names names;
        const char *type; /* as asked for; NULL: choose */
        uint64_t limit;   /* rows or names; 0: all */
        uint32_t max_nodes;
        int64_t step_ns;
};

struct param_source {
        query_param *get;
        void *context;
        struct work_meter *meter; /* for the regular expressions of selectors; NULL: unlimited */
};

/** Read "selector", "from" and "to", with a prefix before each name ("base_" for the other side of a diff). */
enum status selection_read(const struct param_source *params, const char *prefix, const struct selection *fallback,
                           int64_t now_unix_ns, struct selection *ret, struct error *err) MUST_CHECK;
void selection_deinit(struct selection *s);

/** The same as a scan takes it; borrows from s. @param type  full id, or NULL for any. */
struct scan_filter selection_filter(const struct selection *s, const char *type);

enum status request_read(const struct param_source *params, int64_t now_unix_ns, struct request *ret,
                         struct error *err) MUST_CHECK;
void request_deinit(struct request *r);

/** One parameter, NULL when absent or empty. */
const char *param_get(const struct param_source *params, const char *prefix, const char *name);

/**
 * The full type id for what was asked for: the id itself, its first parts ("process_cpu", "process_cpu:cpu"), or
 * its sample type ("cpu"). Asked for nothing, CPU time wins, then CPU samples, then the first, of those that the
 * selection has samples of; what is asked for may be of another series in the time range, so that it finds nothing.
 * @param ret  borrowed from the scan; NULL when the selection has no samples and nothing that is there was asked for.
 * @return ST_USAGE when it names none or several; the text lists what there is.
 */
enum status choose_type(struct store_scan *scan, const struct selection *s, const char *asked, const char **ret,
                        struct error *err) MUST_CHECK;

#endif
