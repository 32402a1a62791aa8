/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the name of an operation to its answer: query_run_scan() finds the operation in the table `operations`, parses
 * the request (request.h), and calls the operation in query_call_run(), which sets the limits of memory and work for
 * the time of the answer. query/querier/ uses query_call_run() without the table.
 *
 * Operations are in files of their own; only labels, types and values, lists of names, are answered here. A format or
 * parameter that an operation does not have is refused where the answer would be mistaken for another one
 * (check_format(), check_base(), query_call_refuse_filters()).
 *
 * In the file: lists of names; the table and checks; one call, with its limits; query_run() for a store, and
 * query_run_profiles() for profiles in memory, whose time range is the default one.
 */
#include "query/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "common/text/csv.h"
#include "common/text/utf8.h"
#include "query/engine/query_call.h"
#include "query/engine/type_plan.h"

static void put_name_answer(struct query_call *q, const struct scan_names *names)
{
        size_t count = q->r.limit && q->r.limit < names->count ? (size_t)q->r.limit : names->count;
        struct json_out j;

        q->content_type = query_call_content_type(q);
        json_out_init(&j, q->ret);
        if (q->r.format == FORMAT_CSV) {
                buf_append_str(q->ret, "name\r\n");
                for (size_t i = 0; i < count && !work_meter_add(q->meter, 16, NULL); i++) {
                        csv_put_text(q->ret, names->items[i], '\r');
                        buf_append_u8(q->ret, '\n');
                }
                return;
        }
        if (q->r.format == FORMAT_TEXT) {
                for (size_t i = 0; i < count && !work_meter_add(q->meter, 16, NULL); i++) {
                        utf8_append_escaped(q->ret, names->items[i]);
                        buf_append_u8(q->ret, '\n');
                }
                return;
        }
        json_out_array(&j, NULL);
        for (size_t i = 0; i < count && !work_meter_add(q->meter, 16, NULL); i++)
                json_out_str(&j, NULL, names->items[i]);
        json_out_array_end(&j);
}

/* Each label with its number of values among the selected samples; labels without values are omitted. */
static enum status answer_label_counts(struct query_call *q)
{
        const struct scan_filter filter = query_selection_make_filter(&q->r.selection, NULL);
        struct scan_label_count *counts = NULL;
        size_t count = 0;
        struct json_out j;
        enum status st = store_scan_count_label_values(q->scan, &filter, &counts, &count, q->err);

        if (st)
                return st;
        json_out_init(&j, q->ret);
        json_out_array(&j, NULL);
        for (size_t i = 0; i < count; i++) {
                bool is_more = counts[i].values > LIMIT_LABEL_VALUES_COUNTED;

                json_out_object(&j, NULL);
                json_out_str(&j, "name", counts[i].name);
                json_out_int(&j, "values", is_more ? LIMIT_LABEL_VALUES_COUNTED : counts[i].values);
                if (is_more)
                        json_out_bool(&j, "more", true);
                json_out_object_end(&j);
        }
        json_out_array_end(&j);
        return ST_OK;
}

static enum status answer_labels(struct query_call *q)
{
        const struct query_selection *s = &q->r.selection;
        const struct scan_filter whole_range = { .from_unix_ns = s->from_unix_ns, .to_unix_ns = s->to_unix_ns };
        struct scan_names names;
        bool counts = false;
        enum status st = query_param_get_flag(&q->params, "counts", &counts, q->err);

        if (!st && counts && q->r.format != FORMAT_JSON)
                return error_set(q->err, ST_USAGE, "labels with counts=1 have the format json only");
        if (!st && counts)
                return answer_label_counts(q);
        if (!st)
                st = store_scan_list_label_names(q->scan, &whole_range, &names, q->err);
        if (!st)
                put_name_answer(q, &names);
        return st;
}

static enum status answer_types(struct query_call *q)
{
        const struct scan_filter filter = query_selection_make_filter(&q->r.selection, NULL);
        struct scan_names names;
        enum status st = store_scan_list_types(q->scan, &filter, &names, q->err);

        if (!st)
                put_name_answer(q, &names);
        return st;
}

static enum status answer_values(struct query_call *q)
{
        const char *key = query_param_get(&q->params, "", "name"), *type = NULL;
        struct scan_filter filter;
        struct scan_names names;
        enum status st = ST_OK;

        if (!key)
                return error_set(q->err, ST_USAGE, "the parameter name is missing: the label whose values are listed");
        if (q->r.type)
                st = find_asked_type(q->scan, &q->r.selection, q->r.type, &q->note, &type, q->err);
        filter = query_selection_make_filter(&q->r.selection, type);
        if (!st)
                st = store_scan_list_label_values(q->scan, key, &filter, &names, q->err);
        if (!st)
                put_name_answer(q, &names);
        return st;
}

const char content_type_json[] = "application/json", content_type_text[] = "text/plain; charset=utf-8",
           content_type_csv[] = "text/csv; charset=utf-8; header=present",
           content_type_html[] = "text/html; charset=utf-8", content_type_binary[] = "application/octet-stream";

/* The formats of an answer, as bits. */
enum {
        AS_JSON = 1 << FORMAT_JSON,
        AS_ROWS = 1 << FORMAT_ROWS,
        AS_TEXT = 1 << FORMAT_TEXT,
        AS_HTML = 1 << FORMAT_HTML,
        AS_CSV = 1 << FORMAT_CSV,
};

static const struct {
        const char *name;
        enum status (*answer)(struct query_call *q);
        unsigned formats; /* 0: the operation is the format */
} operations[] = {
        { "top", query_answer_top, AS_JSON | AS_ROWS | AS_TEXT | AS_CSV },
        { "flame", query_answer_flame, AS_JSON | AS_TEXT | AS_HTML },
        { "folded", query_answer_folded, 0 },
        { "firefox", query_answer_firefox, 0 },
        { "pprof", query_answer_pprof, 0 },
        { "autofdo", query_answer_autofdo, 0 },
        { "diff", query_answer_diff, AS_JSON | AS_ROWS | AS_TEXT | AS_HTML | AS_CSV },
        { "series", query_answer_series, AS_JSON | AS_TEXT | AS_CSV },
        { "spans", query_answer_spans, AS_JSON | AS_TEXT | AS_CSV },
        { "sandwich", query_answer_sandwich, AS_JSON | AS_TEXT },
        { "lines", query_answer_lines, AS_JSON | AS_TEXT | AS_CSV },
        { "labels", answer_labels, AS_JSON | AS_TEXT | AS_CSV },
        { "values", answer_values, AS_JSON | AS_TEXT | AS_CSV },
        { "types", answer_types, AS_JSON | AS_TEXT | AS_CSV },
        { "missing", query_answer_missing, AS_JSON | AS_TEXT | AS_CSV },
        { "uploads", query_answer_uploads, AS_JSON | AS_TEXT | AS_CSV },
        { "disassembly", query_answer_disassembly, AS_JSON | AS_TEXT | AS_CSV },
        { "addresses", query_answer_addresses, AS_JSON | AS_CSV },
};

static enum status check_format(size_t operation, enum query_format format, struct error *err)
{
        unsigned formats = operations[operation].formats, left = formats;
        char list[40] = "";
        size_t n = 0;

        if (!formats || formats & 1u << format)
                return ST_OK;
        for (int f = 0; left; f++) {
                if (!(left & 1u << f))
                        continue;
                left &= ~(1u << f);
                n += (size_t)snprintf(list + n, sizeof list - n, "%s%s",
                                      n == 0 ? ""
                                      : left ? ", "
                                             : " and ",
                                      query_format_name((enum query_format)f));
        }
        return error_set(err, ST_USAGE, "the formats of %s are %s%s", operations[operation].name, list,
                         format == FORMAT_CSV ? "; csv is a format of tables: top, diff, series, lines" : "");
}

const char *query_call_find_base(const struct query_call *q)
{
        static const char *const names[] = { "base_selector", "base_from", "base_to" };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (query_param_get(&q->params, "", names[i]))
                        return names[i];
        return NULL;
}

void query_call_note_magnitude(struct query_call *q, value_magnitude magnitude)
{
        if (magnitude >= INT64_MAX)
                buf_printf(&q->note, "%ssums beyond %" PRId64 " are shown as this number", q->note.size ? "; " : "",
                           INT64_MAX);
}

/* Reject a comparison that the operation does not make: the answer would look like that of one side. */
static enum status check_base(const struct query_call *q, size_t operation)
{
        const char *name = query_call_find_base(q);

        if (!name || operations[operation].answer == query_answer_diff ||
            operations[operation].answer == query_answer_sandwich || operations[operation].answer == query_answer_lines)
                return ST_OK;
        return error_set(q->err, ST_USAGE, "%s is a parameter of diff, sandwich and lines, not of %s", name,
                         operations[operation].name);
}

enum status query_call_refuse_filters(const struct query_call *q, const char *operation)
{
        static const char *const names[] = { "focus", "ignore", "hide", "show" };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (query_param_get(&q->params, "", names[i]))
                        return error_set(q->err, ST_USAGE, "%s is not a parameter of %s, which sums whole samples",
                                         names[i], operation);
        return ST_OK;
}

void query_call_note_selection(const struct query_call *q, const char *selector, int64_t from_unix_ns,
                               int64_t to_unix_ns)
{
        if (!q->report)
                return;
        snprintf(q->report->selector, sizeof q->report->selector, "%s", selector ? selector : "");
        q->report->from_unix_ns = from_unix_ns;
        q->report->to_unix_ns = to_unix_ns;
}

enum status query_call_run(struct query_call *q, query_answer_function *answer, void *context)
{
        struct memory_account account = { .limit = memory_get_query_limit() };
        enum status st;

        store_scan_set_meter(q->scan, q->meter);
        memory_set_account(&account);
        st = answer(q, context);
        memory_set_account(NULL);
        store_scan_set_meter(q->scan, NULL);
        if (q->report)
                q->report->memory_bytes = account.most;
        if (st && account.refused)
                st = error_set(q->err, ST_TOO_BIG,
                               "the query needs more memory than its limit of %zu MiB (--query-memory); use a shorter "
                               "time range or a narrower selector",
                               account.limit >> 20);
        return st ? st
                  : work_meter_check(q->meter, q->err); /* matchers return invalid results after the meter failed */
}

static enum status run_operation(struct query_call *q, void *context)
{
        const size_t *operation = context;
        enum status st = check_format(*operation, q->r.format, q->err);

        if (!st)
                st = check_base(q, *operation);
        if (!st)
                st = operations[*operation].answer(q);
        return st ? st : buf_status(q->ret, q->err, "answer");
}

enum status query_run_scan(struct store_scan *scan, const char *operation, const struct query_input *in,
                           struct buf *ret, struct query_answer *answer, struct error *err)
{
        struct work_meter budgets = { 0 };
        struct query_call q = { .scan = scan,
                                .meter = in->meter ? in->meter : &budgets,
                                .now_unix_ns = in->now_unix_ns,
                                .sources = in->sources,
                                .code = in->code,
                                .report = in->report,
                                .ret = ret,
                                .err = err,
                                .content_type = content_type_json };
        size_t i = 0, count = sizeof operations / sizeof *operations;
        enum status st;

        while (i < count && strcmp(operations[i].name, operation) != 0)
                i++;
        if (i == count)
                return error_set(err, ST_NOT_FOUND, "unknown query '%.40s'", operation);
        work_meter_init(&budgets, NULL, NULL);
        q.params = (struct query_param_source){ in->param, in->param_context, q.meter };
        st = query_request_parse(&q.params, in->now_unix_ns, &q.r, err);
        if (st)
                return st;
        query_call_note_selection(&q, q.r.selection.text, q.r.selection.from_unix_ns, q.r.selection.to_unix_ns);
        buf_init(&q.note, sizeof answer->note - 1);
        st = query_call_run(&q, run_operation, &i);
        query_request_deinit(&q.r);
        if (!st) {
                answer->content_type = q.content_type;
                snprintf(answer->note, sizeof answer->note, "%.*s", (int)q.note.size, (const char *)q.note.data);
        }
        buf_deinit(&q.note);
        return st;
}

enum status query_run(struct profile_store *store, const char *operation, const struct query_input *in, struct buf *ret,
                      struct query_answer *answer, struct error *err)
{
        struct store_scan *scan;
        enum status st = store_scan_begin(store, &scan, err);

        if (st)
                return st;
        st = query_run_scan(scan, operation, in, ret, answer, err);
        store_scan_end(scan);
        return st;
}

/* ---- profiles outside of a store ---- */

/* The half-open range that contains the start and end of each sample. */
static void find_time_range(const struct profile *const *profiles, size_t count, int64_t *from_ret, int64_t *to_ret)
{
        int64_t from = INT64_MAX, to = INT64_MIN, end;

        for (size_t i = 0; i < count; i++) {
                for (uint32_t k = 0; k < profiles[i]->samples.count; k++) {
                        const struct profile_sample *s = &profiles[i]->samples.items[k];

                        from = s->time_unix_ns < from ? s->time_unix_ns : from;
                        if (__builtin_add_overflow(s->time_unix_ns, s->duration_ns, &end) || end == INT64_MAX)
                                end = INT64_MAX - 1;
                        to = end > to ? end : to;
                }
        }
        *from_ret = from > to ? 0 : from - from % 1000; /* the store's resolution is a microsecond */
        *to_ret = (from > to ? 0 : to) + 1;
}

/* Parameters with the time range of the profiles as the default. */
struct ranged_params {
        const struct query_input *given;
        char from[24], to[24];
};

static const char *get_ranged_param(void *context, const char *name)
{
        const struct ranged_params *r = context;
        const char *value = r->given->param(r->given->param_context, name);

        if (value && *value)
                return value;
        return strcmp(name, "from") == 0 ? r->from : strcmp(name, "to") == 0 ? r->to : value;
}

enum status query_run_profiles(const struct profile_query *query, struct buf *ret, struct query_answer *answer,
                               struct error *err)
{
        struct ranged_params params = { .given = query->input };
        struct query_input input = *query->input;
        struct store_scan *scan;
        int64_t from;
        enum status st = store_scan_begin_profiles(query->profiles, query->count, &scan, err);

        if (st)
                return st;
        find_time_range(query->profiles, query->count, &from, &input.now_unix_ns);
        snprintf(params.from, sizeof params.from, "%" PRId64, from);
        snprintf(params.to, sizeof params.to, "%" PRId64, input.now_unix_ns);
        input.param = get_ranged_param;
        input.param_context = &params;
        st = query_run_scan(scan, query->operation, &input, ret, answer, err);
        store_scan_end(scan);
        return st;
}
