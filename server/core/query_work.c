/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/query_work.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/threads/deadline.h"
#include "query/formats/assets.h"
#include "query/query_operations.h"
#include "server/core/tenants.h"

#define CANCELLED_HELP "Queries that were ended before their answer was complete, by reason."
static struct metric cancelled_deadline =
        METRIC_COUNTER("cairn_queries_cancelled_total", CANCELLED_HELP, "reason=\"deadline\"");
static struct metric cancelled_client =
        METRIC_COUNTER("cairn_queries_cancelled_total", CANCELLED_HELP, "reason=\"client\"");
static struct metric cancelled_shutdown =
        METRIC_COUNTER("cairn_queries_cancelled_total", CANCELLED_HELP, "reason=\"shutdown\"");
static struct metric cancelled_regex =
        METRIC_COUNTER("cairn_queries_cancelled_total", CANCELLED_HELP, "reason=\"regex_steps\"");

/* Queries are counted by operation, those of other APIs and of shared answers under a name of their own. */
static const char *const other_kinds[] = { "parca", "querier", "share" };
#define KINDS_MAX (QUERY_OPERATIONS_MAX + sizeof other_kinds / sizeof *other_kinds)
static struct histogram durations[KINDS_MAX];
static char duration_labels[KINDS_MAX][40];
static pthread_once_t durations_once = PTHREAD_ONCE_INIT;

static const char *get_query_kind(size_t i)
{
        if (i < query_operation_count)
                return query_operations[i].name;
        i -= query_operation_count;
        return i < sizeof other_kinds / sizeof *other_kinds ? other_kinds[i] : NULL;
}

static void init_durations(void)
{
        for (size_t i = 0; get_query_kind(i); i++) {
                snprintf(duration_labels[i], sizeof duration_labels[i], "kind=\"%s\"", get_query_kind(i));
                durations[i] = (struct histogram)HISTOGRAM(
                        "cairn_query_duration_seconds",
                        "Time from the last byte of a query until its answer is complete.", duration_labels[i]);
        }
}

static enum status test_interruption(void *context, struct error *err)
{
        struct query_work *w = context;
        const struct deadline *d = w->deadline;

        if (atomic_load(w->stopping)) {
                w->end = QUERY_SHUTDOWN;
                return error_set(err, ST_BUSY, "the service is shutting down; repeat the query");
        }
        if (d->cancelled && atomic_load(d->cancelled)) {
                w->end = QUERY_CLIENT;
                return deadline_check(d, err);
        }
        if (deadline_expired(d)) {
                w->end = QUERY_DEADLINE;
                return error_set(err, ST_TIMEOUT,
                                 "the query took longer than %llu s; take a shorter time range, or choose fewer "
                                 "samples by their labels",
                                 (unsigned long long)d->timeout_s);
        }
        return ST_OK;
}

void query_work_init(struct query_work *w, struct http_request *req, const char *kind)
{
        const struct tenant *tenant = http_tenant(req); /* NULL: the route has no tenancy */
        const struct query_bounds bounds = { .kind = kind,
                                             .target = http_path(req),
                                             .tenant = tenant ? tenant->name : "",
                                             .arrived_ns = http_arrived_ns(req),
                                             .deadline = http_request_deadline(req),
                                             .stopping = http_server_stopping(req) };

        query_work_init_other(w, &bounds);
        w->req = req;
}

void query_work_init_other(struct query_work *w, const struct query_bounds *bounds)
{
        w->req = NULL;
        w->deadline = bounds->deadline;
        w->stopping = bounds->stopping;
        w->kind = bounds->kind;
        w->target = bounds->target;
        w->tenant = bounds->tenant;
        w->arrived_ns = bounds->arrived_ns;
        w->report = (struct query_report){ .selector = "" };
        w->end = QUERY_RUNS;
        work_meter_init(&w->meter, test_interruption, w);
}

/* ---- completion and slow queries ---- */

static _Atomic uint64_t slow_ns;
static struct metric slow_queries =
        METRIC_COUNTER("cairn_slow_queries_total", "Queries that took at least the time of --slow-query.", "");

void query_work_set_slow(uint64_t ns)
{
        metric_register(&slow_queries);
        atomic_store(&slow_ns, ns);
}

static void format_time(int64_t unix_ns, char ret[static 32])
{
        time_t seconds = unix_ns / 1000000000;
        struct tm tm;

        gmtime_r(&seconds, &tm);
        strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void log_slow_query(const struct query_work *w, uint64_t took_ns, const char *outcome)
{
        const struct query_report *r = &w->report;
        char from[32] = "", to[32] = "";

        if (r->to_unix_ns) { /* 0: failed before its parameters were read */
                format_time(r->from_unix_ns, from);
                format_time(r->to_unix_ns, to);
        }
        const struct log_field items[] = {
                { "kind", w->kind, 0 },
                { "target", w->target, 0 },
                { "tenant", w->tenant, 0 },
                { "outcome", outcome, 0 },
                { "selector", r->selector, 0 },
                { "from", from, 0 },
                { "to", to, 0 },
                { "duration_ms", NULL, took_ns / 1000000 },
                { "rows", NULL, r->cost.rows },
                { "bytes", NULL, r->cost.bytes },
                { "memory_bytes", NULL, r->cost.memory_bytes },
                { "store_requests", NULL, r->cost.store_requests },
                { "store_bytes", NULL, r->cost.store_bytes },
        };
        const struct log_fields fields = { items, sizeof items / sizeof *items };

        log_with_fields(LOG_WARN, "slow-query", &fields,
                        "%s %.160s took %" PRIu64 ".%03" PRIu64 " s, %s: tenant '%s', selector '%s', %s to %s, %" PRIu64
                        " rows, %" PRIu64 " bytes read, %" PRIu64 " bytes of memory, %" PRIu64
                        " requests to the object store for %" PRIu64 " bytes, request %s",
                        w->kind, w->target, took_ns / 1000000000, took_ns / 1000000 % 1000, outcome, w->tenant,
                        r->selector, from, to, r->cost.rows, r->cost.bytes, r->cost.memory_bytes,
                        r->cost.store_requests, r->cost.store_bytes, log_get_request());
}

static void end_query(const struct query_work *w, const char *outcome)
{
        uint64_t took_ns = (uint64_t)(monotonic_ns() - w->arrived_ns), least_ns = atomic_load(&slow_ns);

        pthread_once(&durations_once, init_durations);
        for (size_t i = 0; get_query_kind(i); i++)
                if (strcmp(get_query_kind(i), w->kind) == 0)
                        histogram_observe(&durations[i], (int64_t)took_ns);
        if (!least_ns || took_ns < least_ns)
                return;
        metric_add(&slow_queries, 1);
        log_slow_query(w, took_ns, outcome);
}

/* A page that may be saved carries its policy in a meta element, where frame-ancestors is not allowed. */
static void set_saved_page_policy(struct http_request *req, const char *policy)
{
        char text[1024];

        snprintf(text, sizeof text, "%s; frame-ancestors 'none'", policy);
        http_set_header(req, "Content-Security-Policy", text);
}

void query_work_respond(const struct query_work *w, const struct query_answer *answer, struct buf *body)
{
        query_work_finish(w, body);
        if (http_is_type(answer->content_type, "text/html")) /* a page with its script inside */
                set_saved_page_policy(w->req, page_flame_policy());
        http_respond_buf(w->req, 200, answer->content_type, body);
}

void query_work_count_failure(const struct query_work *w)
{
        static const char *const outcomes[] = { [QUERY_RUNS] = "failed",
                                                [QUERY_DEADLINE] = "deadline",
                                                [QUERY_CLIENT] = "client",
                                                [QUERY_SHUTDOWN] = "shutdown" };

        end_query(w, outcomes[w->end]);
        switch (w->end) {
        case QUERY_DEADLINE:
                metric_add(&cancelled_deadline, 1);
                break;
        case QUERY_CLIENT:
                metric_add(&cancelled_client, 1);
                break;
        case QUERY_SHUTDOWN:
                metric_add(&cancelled_shutdown, 1);
                break;
        case QUERY_RUNS:
                if (w->meter.failed)
                        metric_add(&cancelled_regex, 1);
        }
}

static void set_cost_header(struct http_request *req, const struct query_cost *c)
{
        char text[160];

        snprintf(text, sizeof text,
                 "rows=%" PRIu64 " bytes=%" PRIu64 " memory=%" PRIu64 " store-requests=%" PRIu64
                 " store-bytes=%" PRIu64,
                 c->rows, c->bytes, c->memory_bytes, c->store_requests, c->store_bytes);
        http_set_header(req, "X-Cairn-Cost", text);
}

bool query_work_finish(const struct query_work *w, const struct buf *answer)
{
        if (answer->failed)
                query_work_count_failure(w);
        else
                end_query(w, "answered");
        if (!answer->failed && w->req) {
                set_cost_header(w->req, &w->report.cost);
                if (*w->report.note)
                        http_set_header(w->req, "X-Cairn-Note", w->report.note);
        }
        return !answer->failed;
}

void query_work_answer_failure(const struct query_work *w, enum status st, const struct error *err)
{
        query_work_count_failure(w);
        switch (w->end) {
        case QUERY_DEADLINE:
                http_fail_code(w->req, 504, "timeout", "%s", err->text);
                return;
        case QUERY_CLIENT:
                http_fail(w->req, st, err); /* no client reads it, but the request must end */
                return;
        case QUERY_SHUTDOWN:
                http_fail_code(w->req, 503, "shutdown", "%s", err->text);
                return;
        case QUERY_RUNS:
                http_fail(w->req, st, err);
        }
}
