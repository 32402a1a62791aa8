/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording rules: settings.v1.RecordingRulesService over Connect, and the metrics that the rules make, for Prometheus
 * to scrape. docs/recording-rules.md
 *
 * A metric is a gauge: the cost per second of the last whole minute that ended a minute ago. It is computed by each
 * scrape, so nothing is lost by a restart, and all services on one store give the same.
 *
 * Order: calls of the service; the metrics of rules; the metrics of changes; routes.
 */
#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "common/json/json_node.h"
#include "common/metrics.h"
#include "common/program/metrics_write.h"
#include "common/text/utf8.h"
#include "query/engine/unit_text.h"
#include "query/query.h"
#include "server/core/query_work.h"
#include "server/core/recording_rules.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/protocol/connect_unary.h"

#define WINDOW_NS (INT64_C(60) * 1000000000)
#define DAY_MS INT64_C(86400000)
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

static struct metric failures =
        METRIC_COUNTER("cairn_recording_failures_total", "Recording rules that could not be evaluated.", "");

/* ---- calls of the service ---- */

static void fail_rules_call(struct http_request *req, enum status st, const struct error *err)
{
        if (st == ST_BUSY)
                http_fail_code(req, 409, "conflict", "%s", err->text);
        else if (st == ST_TOO_BIG)
                http_fail_code(req, 413, "too_big", "%s", err->text);
        else
                http_fail(req, st, err);
}

/* Answer with the rule of an id, or with all. @param id  NULL: all */
static void answer_with_rules(struct connect_unary *call, const char *id, bool of_upsert)
{
        const Recording__ListRulesResponse *list = NULL;
        Recording__GetRuleResponse one = RECORDING__GET_RULE_RESPONSE__INIT;
        Recording__UpsertRuleResponse upserted = RECORDING__UPSERT_RULE_RESPONSE__INIT;
        _cleanup_buf_ struct buf text;
        _cleanup_arena_ struct arena memory;
        struct error err;
        enum status st = recording_rules_list(get_request_tenant(call->req)->recording, &memory, &text, &list, &err);

        if (!st && id) {
                one.rule = upserted.rule = (Recording__Rule *)recording_rules_find(list, id);
                if (!one.rule)
                        st = error_set(&err, ST_NOT_FOUND, "there is no recording rule '%.60s'", id);
        }
        if (st)
                fail_rules_call(call->req, st, &err);
        else
                connect_unary_respond(call, !id ? &list->base : of_upsert ? &upserted.base : &one.base);
}

static void list_recording_rules(struct http_request *req)
{
        _cleanup_connect_unary_ struct connect_unary call = { 0 };

        if (connect_unary_begin(req, &recording__list_rules_request__descriptor, &call))
                answer_with_rules(&call, NULL, false);
}

static void get_recording_rule(struct http_request *req)
{
        _cleanup_connect_unary_ struct connect_unary call = { 0 };

        if (connect_unary_begin(req, &recording__get_rule_request__descriptor, &call))
                answer_with_rules(&call, ((const Recording__GetRuleRequest *)call.message)->id, false);
}

static void upsert_recording_rule(struct http_request *req)
{
        _cleanup_connect_unary_ struct connect_unary call = { 0 };
        char id[RECORDING_RULE_ID_CHARS + 1];
        struct error err;
        enum status st;

        if (!connect_unary_begin(req, &recording__upsert_rule_request__descriptor, &call))
                return;
        st = recording_rules_upsert(get_request_tenant(req)->recording, call.message, id, &err);
        if (st)
                fail_rules_call(req, st, &err);
        else
                answer_with_rules(&call, id, true);
}

static void delete_recording_rule(struct http_request *req)
{
        _cleanup_connect_unary_ struct connect_unary call = { 0 };
        struct error err;
        enum status st;

        if (!connect_unary_begin(req, &recording__delete_rule_request__descriptor, &call))
                return;
        st = recording_rules_remove(get_request_tenant(req)->recording,
                                    ((const Recording__DeleteRuleRequest *)call.message)->id, &err);
        if (st)
                fail_rules_call(req, st, &err);
        else
                connect_respond_empty(req, call.codec);
}

/* ---- the metrics of rules ---- */

struct rule_query {
        const char *names[8], *values[8];
        size_t count;
};

static const char *get_rule_param(void *context, const char *name)
{
        const struct rule_query *q = context;

        for (size_t i = 0; i < q->count; i++)
                if (strcmp(q->names[i], name) == 0)
                        return q->values[i];
        return NULL;
}

static void add_rule_param(struct rule_query *q, const char *name, const char *value)
{
        q->names[q->count] = name;
        q->values[q->count++] = value;
}

/* ^NAME$, with all characters of the name meant literally. */
static void put_function_pattern(const char *function, struct buf *ret)
{
        buf_append_str(ret, "^");
        for (const char *c = function; *c; c++)
                buf_printf(ret, strchr("\\.+*?()|[]{}^$", *c) ? "\\%c" : "%c", *c);
        buf_append_str(ret, "$");
}

static void put_rule_labels(const Recording__Rule *rule, struct buf *to)
{
        buf_append_str(to, "{");
        metric_label(to, "rule_id", rule->id);
        for (size_t i = 0; i < rule->n_external_labels; i++) {
                buf_append_str(to, ",");
                metric_label(to, rule->external_labels[i]->name, rule->external_labels[i]->value);
        }
}

/* A value per second: seconds of times. */
static double convert_rate(const struct json_node *answer, double value)
{
        double unit_ns = get_unit_ns(json_node_text(answer, "unit"));

        return unit_ns > 0 ? value * unit_ns / 1e9 : value;
}

static void put_rule_value(const struct json_node *answer, const struct json_node *of, struct buf *to)
{
        double value = (double)json_node_int(of, "total");

        if (strcmp(json_node_text(answer, "aggregation"), "average") != 0)
                value /= (double)WINDOW_NS / 1e9;
        buf_printf(to, "} %.17g\n", convert_rate(answer, value));
}

static void put_rule_groups(const Recording__Rule *rule, const struct json_node *answer, struct buf *to)
{
        const struct json_node *group;

        for (struct json_node_list l = json_node_list(answer, "groups"); (group = json_node_next(&l));) {
                const struct json_node *labels = json_node_member(group, "labels");

                buf_append_str(to, rule->metric_name);
                put_rule_labels(rule, to);
                for (size_t i = 0; i < rule->n_group_by; i++) {
                        buf_append_str(to, ",");
                        metric_label(to, rule->group_by[i],
                                     labels ? json_node_text(labels, rule->group_by[i]) : "(other)");
                }
                put_rule_value(answer, group, to);
        }
}

static void put_group_names(const Recording__Rule *rule, struct buf *ret)
{
        for (size_t i = 0; i < rule->n_group_by; i++)
                buf_printf(ret, "%s%s", i ? "," : "", rule->group_by[i]);
}

struct rule_run {
        struct http_request *req;
        struct query_work work;
        char from[24], to[24], groups[12];
};

/* Append the series of one rule. */
static enum status put_rule_series(struct rule_run *run, const Recording__Rule *rule, struct buf *to, struct error *err)
{
        _cleanup_buf_ struct buf selector, by, focus, answer;
        const char *function = recording_rule_get_function(rule);
        struct rule_query q = { 0 };
        const struct query_input input = { .param = get_rule_param,
                                           .param_context = &q,
                                           .now_unix_ns = wall_clock_ns(),
                                           .meter = &run->work.meter,
                                           .report = &run->work.report };
        const struct json_node *root;
        struct query_answer ignored;
        struct arena nodes;
        enum status st;

        buf_init(&selector, KiB(64));
        buf_init(&by, KiB(16));
        buf_init(&focus, KiB(16));
        buf_init(&answer, MiB(4));
        recording_rule_put_selector(rule, &selector);
        put_group_names(rule, &by);
        add_rule_param(&q, "selector", buf_cstr(&selector));
        add_rule_param(&q, "from", run->from);
        add_rule_param(&q, "to", run->to);
        add_rule_param(&q, "step", "60s");
        if (rule->n_group_by) {
                add_rule_param(&q, "by", buf_cstr(&by));
                add_rule_param(&q, "groups", run->groups);
        }
        if (function) {
                put_function_pattern(function, &focus);
                add_rule_param(&q, "focus", buf_cstr(&focus));
        }
        st = query_run(get_request_tenant(run->req)->profiles, "series", &input, &answer, &ignored, err);
        if (st)
                return st;
        root = json_node_parse(answer.data, answer.size, &nodes);
        if (!root) {
                st = error_no_memory(err);
        } else if (rule->n_group_by) {
                put_rule_groups(rule, root, to);
        } else {
                buf_append_str(to, rule->metric_name);
                put_rule_labels(rule, to);
                put_rule_value(root, root, to);
        }
        arena_deinit(&nodes);
        return st;
}

/* All rules with one metric name, as one family. */
static enum status put_rule_family(struct rule_run *run, const Recording__ListRulesResponse *rules, size_t first,
                                   struct buf *to, struct error *err)
{
        const char *name = rules->rules[first]->metric_name;
        enum status st = ST_OK;

        buf_printf(to, "# HELP %s Cost per second by a recording rule of Cairn.\n# TYPE %s gauge\n", name, name);
        for (size_t i = first; !st && i < rules->n_rules; i++) {
                if (strcmp(rules->rules[i]->metric_name, name) != 0)
                        continue;
                st = put_rule_series(run, rules->rules[i], to, err);
                if (st)
                        metric_add(&failures, 1);
                if (st == ST_USAGE || st == ST_NOT_FOUND || st == ST_TOO_BIG) {
                        buf_printf(to, "# rule %s: %s\n", rules->rules[i]->id, PRINTABLE(err->text));
                        st = ST_OK; /* the other rules may be fine */
                }
        }
        return st;
}

static bool is_first_of_family(const Recording__ListRulesResponse *rules, size_t at)
{
        for (size_t i = 0; i < at; i++)
                if (strcmp(rules->rules[i]->metric_name, rules->rules[at]->metric_name) == 0)
                        return false;
        return true;
}

static void handle_recorded(struct http_request *req)
{
        const int64_t now = wall_clock_ns(), to = now - WINDOW_NS - (now - WINDOW_NS) % WINDOW_NS;
        struct rule_run run = { .req = req };
        const Recording__ListRulesResponse *rules = NULL;
        _cleanup_buf_ struct buf text;
        _cleanup_arena_ struct arena memory;
        struct buf body;
        struct error err;
        enum status st = recording_rules_list(get_request_tenant(req)->recording, &memory, &text, &rules, &err);

        snprintf(run.from, sizeof run.from, "%" PRId64, to - WINDOW_NS);
        snprintf(run.to, sizeof run.to, "%" PRId64, to);
        snprintf(run.groups, sizeof run.groups, "%d", LIMIT_RECORDING_SERIES);
        query_work_init(&run.work, req, "series");
        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        for (size_t i = 0; !st && i < rules->n_rules; i++)
                if (is_first_of_family(rules, i))
                        st = put_rule_family(&run, rules, i, &body, &err);
        if (!st)
                st = buf_status(&body, &err, "the metrics");
        if (st) {
                buf_deinit(&body);
                query_work_answer_failure(&run.work, st, &err);
                return;
        }
        (void)query_work_finish(&run.work, &body);
        http_respond_buf(req, 200, METRICS_TYPE, &body);
}

/* ---- the metrics of changes ---- */

static const char change_metric[] = "cairn_function_change_per_second";

/* A series for each change: those of one function have different hours. */
static void put_change_series(const struct json_node *answer, const struct json_node *row, struct buf *to)
{
        static const char *const labels[] = { "service_name", "function",    "file",           "state",
                                              "cause",        "build_after", "version_before", "version_after" };
        double cost = json_node_double(row, "cost_per_hour") / 3600;
        char time[32];

        buf_printf(to, "%s{", change_metric);
        for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
                metric_label(to, labels[i], json_node_text(row, labels[i]));
                buf_append_str(to, ",");
        }
        metric_label(to, "since", format_time_utc(json_node_int(row, "time_ms") * 1000000, time, sizeof time));
        buf_printf(to, "} %.6g\n", convert_rate(answer, cost));
}

static void handle_recorded_changes(struct http_request *req)
{
        struct rule_query q = { 0 };
        struct query_work work;
        const struct query_input input = { .param = get_rule_param,
                                           .param_context = &q,
                                           .now_unix_ns = wall_clock_ns(),
                                           .meter = &work.meter,
                                           .report = &work.report };
        const struct json_node *root, *row;
        _cleanup_buf_ struct buf answer;
        struct query_answer ignored;
        struct arena nodes;
        struct buf body;
        struct error err;
        enum status st;

        add_rule_param(&q, "from", "now-7d");
        add_rule_param(&q, "selector", http_query(req, "selector"));
        add_rule_param(&q, "limit", "100");
        buf_init_budget(&answer, MiB(16), MEMORY_ANSWERS);
        query_work_init(&work, req, "changes");
        st = query_run(get_request_tenant(req)->profiles, "changes", &input, &answer, &ignored, &err);
        if (st) {
                query_work_answer_failure(&work, st, &err);
                return;
        }
        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        buf_printf(&body, "# HELP %s Cost per second of the changes of functions since yesterday.\n# TYPE %s gauge\n",
                   change_metric, change_metric);
        root = json_node_parse(answer.data, answer.size, &nodes);
        for (struct json_node_list l = json_node_list(root, "rows"); root && (row = json_node_next(&l));)
                if (json_node_int(row, "time_ms") >= input.now_unix_ns / 1000000 - DAY_MS)
                        put_change_series(root, row, &body);
        arena_deinit(&nodes);
        (void)query_work_finish(&work, &body);
        http_respond_buf(req, 200, METRICS_TYPE, &body);
}

/* ---- routes ---- */

#define RULES "/settings.v1.RecordingRulesService/"
#define RULES_CALL .max_body = LIMIT_RECORDING_FILE_BYTES, .put_error = connect_put_query_error

static const struct http_route routes[] = {
        { ROUTE("POST", RULES "ListRecordingRules", SCOPE_READ, TENANCY_OWN), .handle = list_recording_rules,
          RULES_CALL },
        { ROUTE("POST", RULES "GetRecordingRule", SCOPE_READ, TENANCY_OWN), .handle = get_recording_rule, RULES_CALL },
        { ROUTE("POST", RULES "UpsertRecordingRule", SCOPE_ADMIN, TENANCY_OWN), .handle = upsert_recording_rule,
          .writes = true, RULES_CALL },
        { ROUTE("POST", RULES "DeleteRecordingRule", SCOPE_ADMIN, TENANCY_OWN), .handle = delete_recording_rule,
          .writes = true, RULES_CALL },
        { ROUTE("GET", "/api/v1/recorded", SCOPE_READ, TENANCY_OWN), .handle = handle_recorded },
        { ROUTE("GET", "/api/v1/recorded/changes", SCOPE_READ, TENANCY_OWN), .handle = handle_recorded_changes },
};
const struct route_table recording_routes = ROUTE_TABLE(ROLE_QUERY, routes);
