/* SPDX-License-Identifier: Apache-2.0 */
#include "query/query_operations.h"

#include <string.h>

#include "common/text.h"
#include "query/engine/query_call.h"

enum {
        AS_JSON = 1 << FORMAT_JSON,
        AS_ROWS = 1 << FORMAT_ROWS,
        AS_TEXT = 1 << FORMAT_TEXT,
        AS_HTML = 1 << FORMAT_HTML,
        AS_TABLE = 1 << FORMAT_JSON | 1 << FORMAT_TEXT | 1 << FORMAT_CSV,
};

#define FILTERS "type focus ignore hide show "
#define PART "callees_of callers_of callees_matching callers_matching "
#define SIDES "base_selector base_from base_to match "
#define BASE "base_selector base_from base_to compare match "
#define FUNCTIONS "function file function_name file_name "

const struct query_operation query_operations[] = {
        { .name = "top",
          .answer = query_answer_top,
          .formats = AS_TABLE | AS_ROWS,
          .parameters = FILTERS "by groups sort limit names function" },
        { .name = "flame",
          .answer = query_answer_flame,
          .formats = AS_JSON | AS_TEXT | AS_HTML,
          .parameters = FILTERS PART "by groups max_nodes names" },
        { .name = "folded",
          .answer = query_answer_folded,
          .parameters = FILTERS PART "by groups names",
          .offer = QUERY_FLAME_FORMAT },
        { .name = "pprof",
          .answer = query_answer_pprof,
          .parameters = FILTERS "by labels",
          .offer = QUERY_FLAME_FORMAT },
        { .name = "autofdo", .answer = query_answer_autofdo, .parameters = FILTERS, .offer = QUERY_FLAME_FORMAT },
        { .name = "firefox",
          .answer = query_answer_firefox,
          .parameters = FILTERS PART "by groups max_nodes",
          .offer = QUERY_FLAME_FORMAT },
        { .name = "diff",
          .answer = query_answer_diff,
          .formats = AS_TABLE | AS_ROWS | AS_HTML,
          .parameters = FILTERS PART BASE "by groups sort limit max_nodes names function view" },
        { .name = "gate", .answer = query_answer_gate, .parameters = FILTERS BASE "cluster part fail_if limit" },
        { .name = "services",
          .help = "list the services, or with --by values of other labels, with cost, change and versions",
          .answer = query_answer_services,
          .formats = AS_TABLE,
          .parameters = FILTERS "base_selector base_from base_to by groups step",
          .offer = QUERY_OPTION },
        { .name = "types",
          .help = "list the profile types",
          .answer = query_answer_types,
          .formats = AS_TABLE,
          .parameters = "limit",
          .offer = QUERY_OPTION },
        { .name = "labels",
          .help = "list the label names",
          .answer = query_answer_labels,
          .formats = AS_TABLE,
          .parameters = "limit counts",
          .offer = QUERY_OPTION },
        { .name = "values",
          .help = "list the values of a label",
          .answer = query_answer_values,
          .formats = AS_TABLE,
          .parameters = "name type limit",
          .offer = QUERY_OPTION,
          .value_name = "LABEL",
          .value_parameter = "name" },
        { .name = "series",
          .help = "print the cost over time",
          .answer = query_answer_series,
          .formats = AS_TABLE,
          .parameters = FILTERS "step by groups versions",
          .offer = QUERY_OPTION },
        { .name = "trend",
          .help = "print the cost over time of functions whose whole name matches",
          .answer = query_answer_trend,
          .formats = AS_TABLE,
          .parameters = "type function step by limit",
          .offer = QUERY_OPTION,
          .value_name = "REGEX",
          .value_parameter = "function" },
        { .name = "changes",
          .help = "list since when which functions cost more or less, and the build that came then",
          .answer = query_answer_changes,
          .formats = AS_TABLE,
          .parameters = "type min_change all limit",
          .offer = QUERY_OPTION },
        { .name = "spans",
          .help = "list the most expensive spans; with --by trace_id the traces",
          .answer = query_answer_spans,
          .formats = AS_TABLE,
          .parameters = "type by limit",
          .offer = QUERY_OPTION },
        { .name = "missing",
          .help = "list objects without debuginfo, most sampled first",
          .answer = query_answer_missing,
          .formats = AS_TABLE,
          .parameters = "limit",
          .offer = QUERY_OPTION },
        { .name = "uploads", .answer = query_answer_uploads, .formats = AS_TABLE, .parameters = "type limit server" },
        { .name = "lines",
          .help = "print the cost of each source line of --function or --file",
          .answer = query_answer_lines,
          .formats = AS_TABLE,
          .parameters = FILTERS FUNCTIONS BASE "limit source server",
          .offer = QUERY_OPTION },
        { .name = "disassembly",
          .help = "print the cost of each instruction of --function",
          .answer = query_answer_disassembly,
          .formats = AS_TABLE,
          .parameters = FILTERS FUNCTIONS SIDES "build_id base_build_id start end syntax server",
          .offer = QUERY_OPTION },
        { .name = "addresses",
          .answer = query_answer_addresses,
          .formats = 1 << FORMAT_JSON | 1 << FORMAT_CSV,
          .parameters = FILTERS FUNCTIONS "build_id limit" },
        { .name = "sandwich",
          .help = "print callers and callees of the functions whose whole name matches",
          .answer = query_answer_sandwich,
          .formats = AS_JSON | AS_TEXT,
          .parameters = FILTERS BASE "function limit",
          .offer = QUERY_OPTION,
          .value_name = "REGEX",
          .value_parameter = "function" },
};

const size_t query_operation_count = sizeof query_operations / sizeof *query_operations;
_Static_assert(sizeof query_operations / sizeof *query_operations <= QUERY_OPERATIONS_MAX, "raise the limit");

const char *query_format_name(enum query_format format)
{
        static const char *const names[] = { [FORMAT_JSON] = "json",
                                             [FORMAT_ROWS] = "rows",
                                             [FORMAT_TEXT] = "text",
                                             [FORMAT_HTML] = "html",
                                             [FORMAT_CSV] = "csv" };

        return names[format];
}

const struct query_operation *query_operation_find(const char *name)
{
        for (size_t i = 0; i < query_operation_count; i++)
                if (strcmp(query_operations[i].name, name) == 0)
                        return &query_operations[i];
        return NULL;
}

bool query_operation_has_parameter(const struct query_operation *operation, const char *name)
{
        return has_word(operation->parameters, name);
}

bool query_parameter_exists(const char *name)
{
        bool exists = has_word("selector from to format", name);

        for (size_t i = 0; !exists && i < query_operation_count; i++)
                exists = query_operation_has_parameter(&query_operations[i], name);
        return exists;
}
