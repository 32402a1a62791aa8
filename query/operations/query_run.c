/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the name of an operation to its answer: query_run_scan() finds the operation in the table (query_operations.h),
 * parses the request (request.h), and calls the operation in query_call_run(), which sets the limits of memory and work
 * for the time of the answer. query/querier/ uses query_call_run() without the table.
 *
 * A format or parameter that an operation does not have is refused, since the answer would be mistaken for another one
 * (check_format(), check_parameters()).
 *
 * In the file: checks; one call, with its limits; query_run() for a store, and query_run_profiles() for profiles in
 * memory, whose time range is the default one.
 */
#include "query/query.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/memory/memory_budget.h"
#include "query/engine/missing_nodes.h"
#include "query/engine/query_call.h"
#include "query/engine/unit_text.h"
#include "query/query_operations.h"

const char content_type_json[] = "application/json", content_type_text[] = "text/plain; charset=utf-8",
           content_type_csv[] = "text/csv; charset=utf-8; header=present",
           content_type_html[] = "text/html; charset=utf-8", content_type_binary[] = "application/octet-stream";

static enum status check_format(const struct query_operation *operation, enum query_format format, struct error *err)
{
        unsigned formats = operation->formats, left = formats;
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
        return error_set(err, ST_USAGE, "the formats of %s are %s%s", operation->name, list,
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

static enum status refuse_parameter(const char *name, const struct query_operation *operation, struct error *err)
{
        char owners[160] = "";
        size_t n = 0;

        for (size_t i = 0; i < query_operation_count && n < sizeof owners; i++)
                if (query_operation_has_parameter(&query_operations[i], name))
                        n += (size_t)snprintf(owners + n, sizeof owners - n, "%s%s", n ? ", " : "",
                                              query_operations[i].name);
        return error_set(err, ST_USAGE, "%s is not a parameter of %s; operations with it: %s", name, operation->name,
                         owners);
}

/* Reject the parameters of other operations: the answer would look as if they had had an effect. */
static enum status check_parameters(const struct query_call *q, const struct query_operation *operation)
{
        char name[40];

        for (size_t i = 0; i < query_operation_count; i++) {
                const char *word = query_operations[i].parameters;

                for (size_t n; word += strspn(word, " "), (n = strcspn(word, " ")); word += n) {
                        assert(n < sizeof name);
                        memcpy(name, word, n);
                        name[n] = 0;
                        if (query_param_get(&q->params, "", name) && !query_operation_has_parameter(operation, name))
                                return refuse_parameter(name, operation, q->err);
                }
        }
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

/* The store has the reason of the absence in its state and log, where it may name hosts that a reader should not see.
 */
static void note_absent_tables(struct query_call *q)
{
        if (store_scan_lacks_tables(q->scan))
                buf_printf(&q->note,
                           "%sincomplete: the object store has not answered since the service was started, so only "
                           "samples that wait for it are included",
                           q->note.size ? "; " : "");
}

/* The meter may be that of several calls for one answer. */
static void charge_query_cost(struct query_cost *c, const struct work_meter *meter,
                              const struct memory_account *account)
{
        c->rows = meter->rows;
        c->bytes = meter->bytes;
        c->memory_bytes = account->most > c->memory_bytes ? account->most : c->memory_bytes;
        c->store_requests += atomic_load(&account->store_requests);
        c->store_bytes += atomic_load(&account->store_bytes);
}

enum status query_call_run(struct query_call *q, query_answer_function *answer, void *context)
{
        struct memory_account account = { .limit = memory_get_query_limit() };
        enum status st;

        store_scan_set_meter(q->scan, q->meter);
        memory_set_account(&account);
        st = answer(q, context);
        note_absent_tables(q);
        put_missing_nodes_note(store_scan_get_missing_nodes(q->scan), &q->note);
        memory_set_account(NULL);
        store_scan_set_meter(q->scan, NULL);
        if (q->report) {
                charge_query_cost(&q->report->cost, q->meter, &account);
                if (q->note.size) /* else that of an earlier call for the same answer */
                        snprintf(q->report->note, sizeof q->report->note, "%.*s", (int)q->note.size,
                                 (const char *)q->note.data);
        }
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
        const struct query_operation *const *operation = context;
        enum status st = check_format(*operation, q->r.format, q->err);

        if (!st)
                st = check_parameters(q, *operation);
        if (!st)
                st = (*operation)->answer(q);
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
        const struct query_operation *chosen = query_operation_find(operation);
        enum status st;

        if (!chosen)
                return error_set(err, ST_NOT_FOUND, "unknown query '%.40s'", operation);
        work_meter_init(&budgets, NULL, NULL);
        q.params = (struct query_param_source){ in->param, in->param_context, q.meter };
        st = query_request_parse(&q.params, in->now_unix_ns, &q.r, err);
        if (st)
                return st;
        query_call_note_selection(&q, q.r.selection.text, q.r.selection.from_unix_ns, q.r.selection.to_unix_ns);
        buf_init(&q.note, sizeof answer->note - 1);
        st = query_call_run(&q, run_operation, &chosen);
        query_request_deinit(&q.r);
        if (!st && q.content_type == content_type_json)
                insert_missing_nodes_member(store_scan_get_missing_nodes(scan), ret);
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
        *from_ret = from > to ? 0 : from;
        *to_ret = (from > to ? 0 : to) + 1;
}

/* Parameters with the start of the profiles as the default; their end is "now". */
struct ranged_params {
        const struct query_input *given;
        char from[48];
};

/* As a date: a number of nanoseconds before 1973 would be one of a coarser unit. */
static void format_range_start(int64_t from_ns, char *out, size_t size)
{
        const int64_t second = 1000000000, first = INT64_MIN / second;
        int64_t seconds = from_ns / second - (from_ns % second < 0), fraction = 0;
        char time[24];

        if (seconds < first)
                seconds = first;
        else
                fraction = (from_ns - seconds * second) / 1000 * 1000; /* the store's resolution is a microsecond */
        snprintf(out, size, "%s.%09" PRId64 "Z", format_time_utc(seconds * second, time, sizeof time), fraction);
}

static const char *get_ranged_param(void *context, const char *name)
{
        const struct ranged_params *r = context;
        const char *value = r->given->param(r->given->param_context, name);

        if (value && *value)
                return value;
        return strcmp(name, "from") == 0 ? r->from : value;
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
        format_range_start(from, params.from, sizeof params.from);
        input.param = get_ranged_param;
        input.param_context = &params;
        st = query_run_scan(scan, query->operation, &input, ret, answer, err);
        store_scan_end(scan);
        return st;
}
