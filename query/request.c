/* SPDX-License-Identifier: Apache-2.0 */
#include "query/request.h"

#include <string.h>

#include "common/options.h"
#include "profile-formats/profile_type.h"
#include "query/unit_text.h"

const char *query_param_get(const struct query_param_source *params, const char *prefix, const char *name)
{
        char full[64];
        const char *value;

        snprintf(full, sizeof full, "%s%s", prefix, name);
        value = params->get(params->context, full);
        return value && *value ? value : NULL;
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
        if (!st)
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
        static const char *const names[] = { "json", "rows", "text", "html" };

        if (!text)
                return ST_OK;
        for (int i = 0; i < 4; i++) {
                if (strcmp(text, names[i]) == 0) {
                        *ret = (enum query_format)i;
                        return ST_OK;
                }
        }
        return error_set(err, ST_USAGE, "format '%.40s' is not one of json, rows, text, html", text);
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
        struct query_request r = { .type = query_param_get(params, "", "type") };
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
}

/* ---- types ------------------------------------------------------------------------------- */

static bool is_type_prefix(const char *id, const char *asked)
{
        size_t n = strlen(asked);

        return strncmp(id, asked, n) == 0 && (id[n] == ':' || id[n] == 0);
}

static bool matches_sample_type(const char *id, const char *asked)
{
        size_t n;
        const char *part = profile_type_part(id, TYPE_SAMPLE_TYPE, &n);

        return n == strlen(asked) && memcmp(part, asked, n) == 0;
}

/* The type that matches; of several, the first in `preferred`. */
static const char *pick_type(const struct scan_names *types, const char *asked,
                             bool (*agrees)(const char *, const char *), size_t *count_ret)
{
        static const char *const preferred[] = { "process_cpu:cpu", "process_cpu:samples" };
        const char *found = NULL;

        *count_ret = 0;
        for (size_t i = 0; i < types->count; i++) {
                if (asked && !agrees(types->items[i], asked))
                        continue;
                if (!found)
                        found = types->items[i];
                ++*count_ret;
        }
        for (size_t p = 0; *count_ret > 1 && p < 2; p++) {
                for (size_t i = 0; i < types->count; i++) {
                        if (is_type_prefix(types->items[i], preferred[p]) &&
                            (!asked || agrees(types->items[i], asked))) {
                                *count_ret = 1;
                                return types->items[i];
                        }
                }
        }
        return found;
}

static enum status report_bad_type(const struct scan_names *types, const char *asked, const char *what,
                                   struct error *err)
{
        char list[160] = "";
        size_t n = 0;

        for (size_t i = 0; i < types->count && n < sizeof list; i++)
                n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", types->items[i]);
        return error_set(err, ST_USAGE, "type '%.40s' names %s; there are: %s", asked, what, list);
}

/* Number of types that `asked` matches. *ret: the only or preferred one. */
static size_t find_requested_types(const struct scan_names *types, const char *asked, const char **ret)
{
        size_t count;

        for (size_t i = 0; i < types->count; i++) {
                if (strcmp(types->items[i], asked) == 0) {
                        *ret = types->items[i];
                        return 1;
                }
        }
        *ret = pick_type(types, asked, is_type_prefix, &count);
        if (count == 0)
                *ret = pick_type(types, asked, matches_sample_type, &count);
        return count;
}

enum status choose_profile_type(struct store_scan *scan, const struct query_selection *s, const char *asked,
                                const char **ret, struct error *err)
{
        const struct scan_filter selected = query_selection_make_filter(s, NULL),
                                 range = { .from_unix_ns = s->from_unix_ns, .to_unix_ns = s->to_unix_ns };
        struct scan_names types;
        const char *found = NULL;
        size_t count;
        enum status st = store_scan_list_types(scan, &selected, &types, err);

        if (st)
                return st;
        if (!asked) {
                *ret = pick_type(&types, NULL, NULL, &count);
                return ST_OK;
        }
        count = find_requested_types(&types, asked, &found);
        if (count != 1) {
                st = store_scan_list_types(scan, &range, &types, err);
                if (st)
                        return st;
                count = find_requested_types(&types, asked, &found);
        }
        if (count > 1 || (!count && types.count))
                return report_bad_type(&types, asked, count ? "several" : "none of those in this range", err);
        *ret = found;
        return ST_OK;
}
