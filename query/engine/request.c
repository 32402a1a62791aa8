/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/request.h"

#include <string.h>

#include "common/text/number_text.h"
#include "query/engine/type_plan.h"
#include "query/engine/unit_text.h"

const char *query_param_get(const struct query_param_source *params, const char *prefix, const char *name)
{
        char full[64];
        const char *value;

        if (*prefix)
                snprintf(full, sizeof full, "%s%s", prefix, name);
        value = params->get(params->context, *prefix ? full : name);
        return value && *value ? value : NULL;
}

/*
 * A type in the selector of a side must be that of the request, or its first parts: all sides of an answer have the
 * type of the request.
 */
static enum status check_selection_type(const struct query_param_source *params, const char *prefix,
                                        const struct query_selection *fallback, const struct query_selection *s,
                                        struct error *err)
{
        const char *type = query_param_get(params, "", "type");

        if (!type && fallback)
                type = fallback->selector.type;
        if (!s->selector.type || (!type && !fallback) || (type && is_matching_type(type, s->selector.type)))
                return ST_OK;
        return error_set(err, ST_USAGE, "%sselector has the type '%.60s', but the request has %s%.60s%s", prefix,
                         s->selector.type, type ? "'" : "", type ? type : "none", type ? "'" : "");
}

enum status query_selection_parse(const struct query_param_source *params, const char *prefix,
                                  const struct query_selection *fallback, int64_t now_unix_ns,
                                  struct query_selection *ret, struct error *err)
{
        const char *from = query_param_get(params, prefix, "from"), *to = query_param_get(params, prefix, "to");
        struct query_selection s = { .text = query_param_get(params, prefix, "selector") };
        enum status st = ST_OK;

        if (!s.text)
                s.text = fallback ? fallback->text : "";
        s.to_unix_ns = fallback ? fallback->to_unix_ns : now_unix_ns;
        if (to)
                st = time_text_parse(to, now_unix_ns, &s.to_unix_ns, err);
        s.from_unix_ns = fallback ? fallback->from_unix_ns : s.to_unix_ns - DEFAULT_RANGE_NS;
        if (!st && from)
                st = time_text_parse(from, now_unix_ns, &s.from_unix_ns, err);
        if (!st && s.from_unix_ns >= s.to_unix_ns)
                st = error_set(err, ST_USAGE, "%sfrom is not before %sto", prefix, prefix);
        if (!st)
                st = selector_parse(s.text, params->meter, &s.selector, err);
        if (st)
                return st;
        st = check_selection_type(params, prefix, fallback, &s, err);
        if (st)
                query_selection_deinit(&s);
        else
                *ret = s;
        return st;
}

void query_selection_deinit(struct query_selection *s)
{
        selector_deinit(&s->selector);
}

struct scan_filter query_selection_make_filter(const struct query_selection *s, const char *type)
{
        return (struct scan_filter){ .from_unix_ns = s->from_unix_ns,
                                     .to_unix_ns = s->to_unix_ns,
                                     .type = type,
                                     .matchers = s->selector.matchers,
                                     .matcher_count = s->selector.count };
}

static enum status parse_format(const char *text, enum query_format *ret, struct error *err)
{
        if (!text)
                return ST_OK;
        for (enum query_format f = 0; f < FORMAT_COUNT; f++) {
                if (strcmp(text, query_format_name(f)) == 0) {
                        *ret = f;
                        return ST_OK;
                }
        }
        return error_set(err, ST_USAGE, "format '%.40s' is not one of json, rows, text, html, csv", text);
}

static enum status parse_number_param(const struct query_param_source *params, const char *name, uint64_t max,
                                      uint64_t *ret, struct error *err)
{
        const char *text = query_param_get(params, "", name);

        if (text && (!parse_uint(text, ret) || *ret > max))
                return error_set(err, ST_USAGE, "%s '%.40s' is not a number up to %llu", name, text,
                                 (unsigned long long)max);
        return ST_OK;
}

enum status query_param_get_flag(const struct query_param_source *params, const char *name, bool *ret,
                                 struct error *err)
{
        const char *text = query_param_get(params, "", name);

        if (text && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
                return error_set(err, ST_USAGE, "%s '%.40s' is neither 0 nor 1", name, text);
        *ret = text && *text == '1';
        return ST_OK;
}

static enum status parse_row_order(const char *text, enum row_order *ret, struct error *err)
{
        if (text && strcmp(text, "flat") != 0 && strcmp(text, "cumulative") != 0)
                return error_set(err, ST_USAGE, "sort '%.40s' is not one of flat, cumulative", text);
        *ret = text && *text == 'c' ? ORDER_CUMULATIVE : ORDER_FLAT;
        return ST_OK;
}

static enum status parse_comparison(const char *text, bool *by_value_ret, struct error *err)
{
        if (text && strcmp(text, "shares") != 0 && strcmp(text, "values") != 0)
                return error_set(err, ST_USAGE, "compare '%.40s' is not one of shares, values", text);
        *by_value_ret = text && *text == 'v';
        return ST_OK;
}

static enum status parse_matching(const char *text, bool *is_exact_ret, struct error *err)
{
        if (text && strcmp(text, "functions") != 0 && strcmp(text, "exact") != 0)
                return error_set(err, ST_USAGE, "match '%.40s' is not one of functions, exact", text);
        *is_exact_ret = text && *text == 'e';
        return ST_OK;
}

static enum status parse_names_form(const char *text, enum query_names *ret, struct error *err)
{
        if (!text)
                *ret = NAMES_DEFAULT;
        else if (strcmp(text, "short") == 0)
                *ret = NAMES_SHORT;
        else if (strcmp(text, "full") == 0)
                *ret = NAMES_FULL;
        else
                return error_set(err, ST_USAGE, "names '%.40s' is not one of short, full", text);
        return ST_OK;
}

enum status query_request_parse(const struct query_param_source *params, int64_t now_unix_ns, struct query_request *ret,
                                struct error *err)
{
        struct query_request r = { .type = query_param_get(params, "", "type"), .groups = DEFAULT_SHOWN_GROUPS };
        const char *step = query_param_get(params, "", "step");
        uint64_t max_nodes = DEFAULT_MAX_NODES;
        enum status st = query_selection_parse(params, "", NULL, now_unix_ns, &r.selection, err);

        if (st)
                return st;
        st = parse_format(query_param_get(params, "", "format"), &r.format, err);
        if (!st)
                st = parse_names_form(query_param_get(params, "", "names"), &r.names, err);
        if (!st)
                st = parse_number_param(params, "limit", UINT32_MAX, &r.limit, err);
        if (!st)
                st = parse_number_param(params, "max_nodes", LIMIT_MAX_NODES, &max_nodes, err);
        if (!st)
                st = parse_number_param(params, "groups", LIMIT_SHOWN_GROUPS, &r.groups, err);
        if (!st)
                st = parse_row_order(query_param_get(params, "", "sort"), &r.order, err);
        if (!st)
                st = parse_comparison(query_param_get(params, "", "compare"), &r.by_value, err);
        if (!st)
                st = parse_matching(query_param_get(params, "", "match"), &r.is_match_exact, err);
        if (!st)
                st = label_list_parse(query_param_get(params, "", "by"), &r.by, err);
        r.max_nodes = max_nodes ? (uint32_t)max_nodes : LIMIT_MAX_NODES;
        if (!st && step)
                st = duration_text_parse(step, &r.step_ns, err);
        if (!r.type)
                r.type = r.selection.selector.type;
        if (st) {
                query_request_deinit(&r);
                return st;
        }
        *ret = r;
        return ST_OK;
}

void query_request_deinit(struct query_request *r)
{
        query_selection_deinit(&r->selection);
        label_list_deinit(&r->by);
}
