/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_QUERY_OPERATIONS_H
#define CAIRN_QUERY_QUERY_OPERATIONS_H

/**
 * @file
 * The table of operations of the query API. The HTTP routes, the metrics of queries, `cairn query` and `cairn flame`,
 * their completions and the tests of the documentation read it: an operation is a row here, a file in
 * query/operations/, a line in docs/formats/query-api.md and an entry in docs/openapi.yaml.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

struct query_call;

/** Formats of an answer. */
enum query_format { FORMAT_JSON, FORMAT_ROWS, FORMAT_TEXT, FORMAT_HTML, FORMAT_CSV, FORMAT_COUNT };

const char *query_format_name(enum query_format format);

/** How the command line offers an operation, beside commands of its own. */
enum query_offer {
        QUERY_NOT_OFFERED,
        QUERY_OPTION,       /* cairn query --NAME, and with a value_parameter --NAME VALUE */
        QUERY_FLAME_FORMAT, /* cairn flame --format NAME */
};

struct query_operation {
        const char *name;
        const char *help;                            /* of the option; NULL: none */
        enum status (*answer)(struct query_call *q); /* appends its result to q->ret */
        unsigned formats; /* bits, 1 << enum query_format; 0: the answer has one format and no such parameter */
        /*
         * Parameters, separated by spaces, beside those of all operations: selector, from, to, and format. The command
         * line permits the options of these names, with '-' for '_'.
         */
        const char *parameters;
        enum query_offer offer;
        const char *value_name, *value_parameter; /* of QUERY_OPTION; NULL: a flag */
};

#define QUERY_OPERATIONS_MAX 32
extern const struct query_operation query_operations[];
extern const size_t query_operation_count; /* at most QUERY_OPERATIONS_MAX */

/** NULL: unknown. */
const struct query_operation *query_operation_find(const char *name);
bool query_operation_has_parameter(const struct query_operation *operation, const char *name);
/** Whether any operation has the parameter, or all have it. */
bool query_parameter_exists(const char *name);

#endif
