/* SPDX-License-Identifier: Apache-2.0 */
/* cairn status: the state of a running service on one screen, from /readyz, /metrics, /api/v1/status, its list of
   upstreams, and what its samples lack in debuginfo. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands/command.h"
#include "cli/shared/metrics_text.h"
#include "cli/shared/missing_advice.h"
#include "cli/shared/service.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json/json_out.h"
#include "common/json/json_value.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "query/engine/unit_text.h"

#define INTERVAL_MOST_S 3600
#define REQUEST_TIMEOUT_MS 15000
#define RECENT_MINUTES 5 /* as in the web page */

static const struct usage usage = {
        .synopsis = "cairn status [--server URL] [--token-file FILE] [--tenant NAME] [--interval SECONDS] [--watch | "
                    "--json]",
        .about =
                "Show the state of a running service: whether it is ready and why not, accepted and refused\n"
                "samples, its queue and storage, compaction, retention, re-symbolization, debuginfo and upstreams,\n"
                "and what to do about objects without debuginfo in the samples of the last hour.\n"
                "Rates of ingest are of the last 5 minutes, those of requests of one second; with --interval, all are\n"
                "measured over that time. A service with tokens requires one with the scope read that is bound to no\n"
                "tenant. With --watch, a service that does not respond is polled until it does.\n"
                "Exit status: 0 ready, 1 not ready or not reachable, 64 usage error or rejected token.",
        .examples = "  cairn status\n"
                    "  cairn status --server https://cairn.example --token-file ./token --json\n"
                    "  cairn status --watch --interval 5",
};

struct status_options {
        struct service_options service;
        uint64_t interval_s;
        bool is_interval_given;
        bool json, watch;
};

/* ---- figures ---- */

enum figure_kind {
        FIGURE_COUNT,
        FIGURE_BYTES,
        FIGURE_RATE,        /* a counter's increase per second */
        FIGURE_RECENT_RATE, /* the same over the last minutes: senders send in bursts; key: "COUNT_per_s" */
};

/* A figure of one section; those of a section follow each other. */
static const struct figure {
        const char *section, *key; /* key: name in JSON */
        enum figure_kind kind;
        const char *metric, *label; /* label NULL: the sum of all */
        const char *unit;           /* after the number; "file(s)" has an ending that 1 lacks */
        bool only_if_set;           /* shown as text when it is not 0 */
} figures[] = {
        { "ingest", "samples_per_s", FIGURE_RECENT_RATE, "cairn_ingest_samples_total", NULL, "samples/s", false },
        { "ingest", "batches_per_s", FIGURE_RECENT_RATE, "cairn_ingest_batches_total", NULL, "batches/s", false },
        { "ingest", "samples", FIGURE_COUNT, "cairn_ingest_samples_total", NULL, "sample(s) since the start", false },
        { "ingest", "batches", FIGURE_COUNT, "cairn_ingest_batches_total", NULL, "batch(es)", false },
        { "ingest", "failed_batches", FIGURE_COUNT, "cairn_ingest_failures_total", NULL, "batch(es) refused", true },
        { "ingest", "rejected_samples", FIGURE_COUNT, "cairn_ingest_rejected_samples_total", NULL, "sample(s) rejected",
          true },
        { "ingest", "limited_requests", FIGURE_COUNT, "cairn_limited_total", NULL, "request(s) limited", true },
        { "queue", "batches", FIGURE_COUNT, "cairn_queue_batches", NULL, "batch(es)", false },
        { "queue", "bytes", FIGURE_BYTES, "cairn_queue_bytes", NULL, "", false },
        { "queue", "flushes", FIGURE_COUNT, "cairn_flushes_total", NULL, "flush(es)", false },
        { "queue", "flush_failures", FIGURE_COUNT, "cairn_flush_failures_total", NULL, "flush(es) failed", true },
        { "queue", "quarantined_batches", FIGURE_COUNT, "cairn_quarantined_batches", NULL,
          "batch(es) in the quarantine", true },
        { "storage", "bytes", FIGURE_BYTES, "cairn_table_bytes", NULL, "in tables", false },
        { "storage", "sample_rows", FIGURE_COUNT, "cairn_table_rows", "table=\"samples\"", "sample(s)", false },
        { "storage", "stack_rows", FIGURE_COUNT, "cairn_table_rows", "table=\"stacks\"", "stack(s)", false },
        { "storage", "location_rows", FIGURE_COUNT, "cairn_table_rows", "table=\"locations\"", "location(s)", false },
        { "storage", "files", FIGURE_COUNT, "cairn_table_files", NULL, "file(s)", false },
        { "storage", "damaged_parts", FIGURE_COUNT, "cairn_damaged_parts_total", NULL, "damaged file(s)", true },
        { "compaction", "backlog_files", FIGURE_COUNT, "cairn_compaction_backlog_files", NULL, "file(s) due", false },
        { "compaction", "backlog_bytes", FIGURE_BYTES, "cairn_compaction_backlog_bytes", NULL, "due", false },
        { "compaction", "merges", FIGURE_COUNT, "cairn_compactions_total", NULL, "merge(s)", false },
        { "compaction", "failures", FIGURE_COUNT, "cairn_compaction_failures_total", NULL, "merge(s) failed", true },
        { "compaction", "skipped_files", FIGURE_COUNT, "cairn_compaction_skipped_files_total", NULL, "file(s) skipped",
          true },
        { "retention", "expired_rows", FIGURE_COUNT, "cairn_store_expired_rows_total", NULL, "row(s) expired", false },
        { "retention", "expired_bytes", FIGURE_BYTES, "cairn_store_expired_bytes_total", NULL, "of samples", false },
        { "retention", "objects_removed", FIGURE_COUNT, "cairn_debuginfo_removed_total", NULL, "object(s) removed",
          false },
        { "retention", "objects_removed_bytes", FIGURE_BYTES, "cairn_debuginfo_removed_bytes_total", NULL,
          "of debuginfo", false },
        { "retention", "failures", FIGURE_COUNT, "cairn_store_label_expiry_failures_total", NULL, "day(s) failed",
          true },
        { "retention", "collection_failures", FIGURE_COUNT, "cairn_debuginfo_collections_failed_total", NULL,
          "collection(s) failed", true },
        { "symbols", "unresolved_locations", FIGURE_COUNT, "cairn_unresolved_locations", NULL,
          "location(s) without symbols", false },
        { "symbols", "index_queue", FIGURE_COUNT, "cairn_index_queue", NULL, "object(s) to index", false },
        { "symbols", "indexed_objects", FIGURE_COUNT, "cairn_objects_indexed_total", NULL, "indexed", false },
        { "symbols", "postponed_objects", FIGURE_COUNT, "cairn_index_postponed", NULL, "postponed", true },
        { "symbols", "failed_objects", FIGURE_COUNT, "cairn_objects_failed_total", NULL, "object(s) failed", true },
        { "resymbolization", "queue", FIGURE_COUNT, "cairn_resymbolize_queue", NULL, "object(s) to look up again",
          false },
        { "resymbolization", "rounds", FIGURE_COUNT, "cairn_resymbolize_rounds_total", NULL, "round(s)", false },
        { "resymbolization", "locations", FIGURE_COUNT, "cairn_resymbolize_locations_total", NULL,
          "location(s) improved", false },
        { "resymbolization", "failing_objects", FIGURE_COUNT, "cairn_resymbolize_failing", NULL, "object(s) failing",
          true },
        { "resymbolization", "failures", FIGURE_COUNT, "cairn_resymbolize_failures_total", NULL, "round(s) failed",
          true },
        { "debuginfo", "objects", FIGURE_COUNT, "cairn_debuginfo_objects", NULL, "object(s)", false },
        { "debuginfo", "bytes", FIGURE_BYTES, "cairn_debuginfo_stored_bytes", NULL, "", false },
        { "debuginfo", "uploads_stored", FIGURE_COUNT, "cairn_uploads_total", "outcome=\"stored\"", "upload(s)",
          false },
        { "debuginfo", "uploads_receiving", FIGURE_COUNT, "cairn_uploads_receiving", NULL, "arriving", true },
        { "debuginfo", "uploads_refused", FIGURE_COUNT, "cairn_uploads_total", "outcome=\"refused\"", "refused", true },
        { "debuginfo", "requests", FIGURE_COUNT, "cairn_debuginfod_requests_total", NULL, "request(s)", false },
        { "debuginfo", "requests_missing", FIGURE_COUNT, "cairn_debuginfod_requests_total", "outcome=\"missing\"",
          "not found", true },
        { "memory", "bytes", FIGURE_BYTES, "cairn_memory_bytes", NULL, "reserved", false },
        { "memory", "limit_bytes", FIGURE_BYTES, "cairn_memory_limit_bytes", NULL, "at most", false },
        { "memory", "refused", FIGURE_COUNT, "cairn_memory_refused_total", NULL, "request(s) refused", true },
        { "requests", "connections", FIGURE_COUNT, "cairn_http_connections", NULL, "connection(s)", false },
        { "requests", "requests_per_s", FIGURE_RATE, "cairn_http_requests_total", NULL, "requests/s", false },
        { "requests", "server_errors", FIGURE_COUNT, "cairn_http_requests_total", "code=\"5xx\"", "answer(s) of 5xx",
          true },
        { "requests", "access_refused", FIGURE_COUNT, "cairn_access_refused_total", NULL, "refused access", true },
        { "requests", "reload_failures", FIGURE_COUNT, "cairn_reload_failures_total", NULL, "reload(s) failed", true },
};
#define FIGURE_TOTAL (sizeof figures / sizeof *figures)

static bool is_rate(const struct figure *f)
{
        return f->kind == FIGURE_RATE || f->kind == FIGURE_RECENT_RATE;
}

/* The state of the service, with its metrics at two times. */
struct service_view {
        bool is_ready;
        bool wants_recent; /* rates of ingest over the last minutes rather than over the interval */
        char *conditions;  /* owned; the lines of /readyz after the first */
        struct metrics_text before, now;
        double elapsed_s;
        struct buf upstreams; /* /api/v1/debuginfo/upstreams */
        struct buf report;    /* /api/v1/status; empty: an older service, which has none */
        struct buf missing;   /* MISSING_ADVICE_PATH; empty: not known */
};

static void service_view_deinit(struct service_view *v)
{
        free(v->conditions);
        metrics_text_deinit(&v->before);
        metrics_text_deinit(&v->now);
        buf_deinit(&v->upstreams);
        buf_deinit(&v->report);
        buf_deinit(&v->missing);
}

/* ---- requests ---- */

static enum status fetch_metrics(struct http_client *client, struct metrics_text *ret, struct error *err)
{
        const struct http_client_request request = { .method = "GET", .path = "/metrics", .max_response = MiB(16) };
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        enum status st = http_client_send(client, &request, &r, err);

        return st ? st : metrics_text_parse(r.body.data, r.body.size, ret, err);
}

/* A 503 that begins with "not ready" is a valid response, followed by the reasons; any other 503 is a failure. */
static enum status fetch_readiness(struct http_client *client, struct service_view *v, struct error *err)
{
        const struct http_client_request request = { .method = "GET", .path = "/readyz" };
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        enum status st = http_client_send(client, &request, &r, err);
        const char *text = r.body.size ? buf_cstr(&r.body) : NULL, *rest = text ? strchr(text, '\n') : NULL;

        v->is_ready = !st;
        if (st && !(r.code == 503 && rest && starts_with(text, "not ready\n")))
                return st;
        v->conditions = strdup(rest ? rest + 1 : "");
        return v->conditions ? ST_OK : error_no_memory(err);
}

static enum status fetch_document(struct http_client *client, const char *path, struct buf *ret, struct error *err)
{
        const struct http_client_request request = { .method = "GET", .path = path };
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        enum status st = http_client_send(client, &request, &r, err);

        if (st)
                return st;
        *ret = r.body;
        r.body = (struct buf){ 0 };
        return ST_OK;
}

/* A node without the role debuginfod has none, and answers 421. */
static enum status fetch_upstreams(struct http_client *client, struct buf *ret, struct error *err)
{
        const struct http_client_request request = { .method = "GET", .path = "/api/v1/debuginfo/upstreams" };
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        enum status st = http_client_send(client, &request, &r, err);

        if (st)
                return r.code == 421 ? ST_OK : st;
        *ret = r.body;
        r.body = (struct buf){ 0 };
        return ST_OK;
}

static enum status fetch_report(struct http_client *client, struct buf *ret, struct error *err)
{
        enum status st = fetch_document(client, "/api/v1/status", ret, err);

        return st == ST_NOT_FOUND ? ST_OK : st;
}

static void wait_for_interval(uint64_t seconds)
{
        struct timespec left = { .tv_sec = (time_t)seconds };

        while (nanosleep(&left, &left) < 0)
                ;
}

/* @param v  zeroed. */
static enum status view_service(struct http_client *client, const struct status_options *o, struct service_view *v,
                                struct error *err)
{
        enum status st = fetch_readiness(client, v, err);
        int64_t began;

        v->wants_recent = !o->is_interval_given;
        if (!st)
                st = fetch_metrics(client, &v->before, err);
        began = monotonic_ns();
        if (!st)
                st = fetch_upstreams(client, &v->upstreams, err);
        if (!st)
                st = fetch_report(client, &v->report, err);
        if (!st) {
                struct error
                        not_known; /* a long query may be refused or end; the rest of the view does not depend on it */

                (void)!fetch_document(client, MISSING_ADVICE_PATH, &v->missing, &not_known);
                wait_for_interval(o->interval_s);
        }
        if (!st)
                st = fetch_metrics(client, &v->now, err);
        v->elapsed_s = (double)(monotonic_ns() - began) / 1e9;
        return st;
}

/*
 * The rate of the last minutes, from the history of /api/v1/status. False without one, and if the service has samples
 * of other tenants, which the history lacks: it is then older than the metrics that were fetched before it.
 */
static bool compute_recent_rate(struct service_view *v, const char *key, double *ret)
{
        char count[32];
        uint64_t counts[RECENT_MINUTES] = { 0 }, sum = 0;
        int64_t starts[RECENT_MINUTES] = { 0 }, start, now;
        struct json_value root, ingest, list, minute;
        struct json_scan items;
        size_t n = 0;

        snprintf(count, sizeof count, "%.*s", (int)(strlen(key) - strlen("_per_s")), key);
        if (!v->report.size || json_value_parse(v->report.data, v->report.size, &root, NULL) ||
            !json_value_member(&root, "ingest", &ingest) || !json_value_member(&ingest, "minutes", &list) ||
            !json_value_open_array(&list, &items))
                return false;
        if ((double)json_value_uint(&ingest, "samples", 0) <
            metrics_text_sum(&v->before, "cairn_ingest_samples_total", NULL))
                return false;
        for (; json_value_next(&items, &minute); n++) {
                starts[n % RECENT_MINUTES] = (int64_t)json_value_uint(&minute, "start_unix_s", 0);
                counts[n % RECENT_MINUTES] = json_value_uint(&minute, count, 0);
        }
        if (n < RECENT_MINUTES)
                return false;
        for (size_t i = 0; i < RECENT_MINUTES; i++)
                sum += counts[i];
        start = (int64_t)json_value_uint(&ingest, "since_unix_s", 0);
        if (start < starts[n % RECENT_MINUTES]) /* the oldest of them */
                start = starts[n % RECENT_MINUTES];
        now = (int64_t)json_value_uint(&root, "now_unix_s", 0); /* within the last minute */
        *ret = (double)sum / (double)(now > start ? now - start : 1);
        return true;
}

static double compute_figure(struct service_view *v, const struct figure *f)
{
        double now = metrics_text_sum(&v->now, f->metric, f->label), before, recent;

        if (f->kind == FIGURE_RECENT_RATE && v->wants_recent && compute_recent_rate(v, f->key, &recent))
                return recent;
        if (!is_rate(f))
                return now;
        before = metrics_text_sum(&v->before, f->metric, f->label);
        return now > before && v->elapsed_s > 0 /* a smaller count: the service was restarted */
                       ? fmin((now - before) / v->elapsed_s, METRIC_VALUE_END)
                       : 0;
}

/* ---- as text ---- */

/* With at least two significant digits, in a binary unit. */
static void format_byte_count(double bytes, char *ret, size_t size)
{
        static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
        unsigned u = 0;

        while (bytes >= 1024 && u < 4) {
                bytes /= 1024;
                u++;
        }
        snprintf(ret, size, u && bytes < 100 ? "%.1f %s" : "%.0f %s", bytes, units[u]);
}

/* The unit without its ending in parentheses, which a single one lacks, or without the parentheses. */
static void put_figure_unit(struct buf *out, const char *unit, bool is_single)
{
        for (bool is_ending = false; *unit; unit++) {
                if (*unit == '(' || *unit == ')')
                        is_ending = *unit == '(';
                else if (!is_ending || !is_single)
                        buf_append_u8(out, (uint8_t)*unit);
        }
}

static void put_figure_text(struct buf *out, const struct figure *f, double value)
{
        char number[64];

        if (f->kind == FIGURE_BYTES)
                format_byte_count(value, number, sizeof number);
        else if (is_rate(f) && value < 100)
                snprintf(number, sizeof number, "%.1f", value);
        else
                format_value((int64_t)llround(value), "count", number, sizeof number);
        buf_printf(out, "%s%s", number, *f->unit ? " " : "");
        put_figure_unit(out, f->unit, strcmp(number, "1") == 0);
}

static void put_sections_text(struct buf *out, struct service_view *v)
{
        const char *section = "";

        for (size_t i = 0; i < FIGURE_TOTAL; i++) {
                double value = compute_figure(v, &figures[i]);

                if (figures[i].only_if_set && value == 0)
                        continue;
                if (strcmp(section, figures[i].section) != 0)
                        buf_printf(out, "%s%-16s ", *section ? "\n" : "", figures[i].section);
                else
                        buf_append_str(out, ", ");
                section = figures[i].section;
                put_figure_text(out, &figures[i], value);
        }
        buf_append_u8(out, '\n');
}

/* An entry of the service's list of refused data: count, reason, last sender, and the fix. */
struct refusal {
        uint64_t count;
        char reason[32], of[16], agent[128], address[64], text[256], next_step[256];
};

static bool open_refusals(struct buf *report, struct json_scan *items_ret)
{
        struct json_value root, ingest, list;

        return report->size && !json_value_parse(report->data, report->size, &root, NULL) &&
               json_value_member(&root, "ingest", &ingest) && json_value_member(&ingest, "problems", &list) &&
               json_value_open_array(&list, items_ret);
}

static bool read_next_refusal(struct json_scan *items, struct refusal *ret)
{
        struct json_value p;

        if (!json_value_next(items, &p))
                return false;
        *ret = (struct refusal){ .count = json_value_uint(&p, "count", 0) };
        json_value_text(&p, "reason", ret->reason, sizeof ret->reason);
        json_value_text(&p, "of", ret->of, sizeof ret->of);
        json_value_text(&p, "agent", ret->agent, sizeof ret->agent);
        json_value_text(&p, "address", ret->address, sizeof ret->address);
        json_value_text(&p, "text", ret->text, sizeof ret->text);
        json_value_text(&p, "next_step", ret->next_step, sizeof ret->next_step);
        return true;
}

static void put_refusals_text(struct buf *out, struct buf *report)
{
        struct json_scan items;
        struct refusal r;
        bool is_first = true;

        if (!open_refusals(report, &items))
                return;
        for (; read_next_refusal(&items, &r); is_first = false) {
                const bool is_of_batches = strcmp(r.of, "batches") == 0;

                buf_printf(out, "%-16s %s: %s, last of %s", is_first ? "refused" : "",
                           is_of_batches ? COUNTED(r.count, "batch", "batches") : COUNTED(r.count, "sample", "samples"),
                           PRINTABLE(r.reason), *r.agent ? PRINTABLE(r.agent) : "a sender");
                buf_printf(out, " from %s\n%-16s   %s\n", *r.address ? PRINTABLE(r.address) : "an unknown address", "",
                           PRINTABLE(r.next_step));
        }
}

static void put_upstreams_text(struct buf *out, struct buf *body)
{
        struct json_value root, list, u;
        struct json_scan items;
        bool is_first = true;

        if (json_value_parse(body->data, body->size, &root, NULL) || !json_value_member(&root, "upstreams", &list) ||
            !json_value_open_array(&list, &items))
                return;
        while (json_value_next(&items, &u)) {
                char url[256] = "", breaker[16] = "", error[256] = "";

                json_value_text(&u, "url", url, sizeof url);
                json_value_text(&u, "breaker", breaker, sizeof breaker);
                json_value_text(&u, "last_error", error, sizeof error);
                buf_printf(out,
                           "%-16s %s %s, %" PRIu64 " found, %" PRIu64 " missing, %" PRIu64 " failed, mean %" PRIu64
                           " ms\n",
                           is_first ? "upstreams" : "", PRINTABLE(url),
                           strcmp(breaker, "closed") == 0 ? "answers" : "is skipped", json_value_uint(&u, "found", 0),
                           json_value_uint(&u, "missing", 0), json_value_uint(&u, "failed", 0),
                           json_value_uint(&u, "mean_ms", 0));
                if (strcmp(breaker, "closed") != 0 && *error)
                        buf_printf(out, "%-16s   %s\n", "", PRINTABLE(error));
                is_first = false;
        }
        if (is_first)
                buf_printf(out, "%-16s none\n", "upstreams");
}

static void put_missing_advice_text(struct buf *out, const struct buf *body)
{
        struct missing_advice a;
        char objects[400];

        if (!missing_advice_read(body, &a) || !a.object_count)
                return;
        buf_printf(out, "%-16s %" PRIu64 " object%s in samples of the last hour lack%s debuginfo\n", "missing",
                   a.object_count, a.object_count > 1 ? "s" : "", a.object_count > 1 ? "" : "s");
        for (size_t i = 0; i < a.step_count; i++)
                buf_printf(out, "%-16s   %s: %s\n", "", missing_step_format(&a.steps[i], objects, sizeof objects),
                           PRINTABLE(a.steps[i].text));
}

static void put_conditions_text(struct buf *out, const char *lines)
{
        while (*lines) {
                size_t n = strcspn(lines, "\n");
                char line[600];

                snprintf(line, sizeof line, "%.*s", (int)n, lines);
                buf_printf(out, "  %s\n", PRINTABLE(line));
                lines += n + (lines[n] == '\n');
        }
}

static void put_status_text(struct buf *out, const struct status_options *o, struct service_view *v)
{
        buf_printf(out, "%s is %s\n", o->service.server, v->is_ready ? "ready" : "not ready");
        put_conditions_text(out, v->conditions);
        put_sections_text(out, v);
        put_refusals_text(out, &v->report);
        put_upstreams_text(out, &v->upstreams);
        put_missing_advice_text(out, &v->missing);
}

/* ---- as JSON ---- */

/* "error NAME: text" */
static void put_conditions_json(struct json_out *j, const char *lines)
{
        json_out_array(j, "conditions");
        while (*lines) {
                size_t n = strcspn(lines, "\n"), severity = strcspn(lines, " \n");
                const char *name = lines + severity + (lines[severity] == ' ');
                size_t name_size = strcspn(name, ":\n");
                const char *text = name + name_size + (name[name_size] == ':');

                text += *text == ' ';
                json_out_object(j, NULL);
                json_out_strn(j, "severity", lines, severity);
                json_out_strn(j, "name", name, name_size);
                json_out_strn(j, "text", text, text < lines + n ? (size_t)(lines + n - text) : 0);
                json_out_object_end(j);
                lines += n + (lines[n] == '\n');
        }
        json_out_array_end(j);
}

static void put_sections_json(struct json_out *j, struct service_view *v)
{
        for (size_t i = 0; i < FIGURE_TOTAL; i++) {
                const struct figure *f = &figures[i];
                double value = compute_figure(v, f);

                if (i == 0 || strcmp(figures[i - 1].section, f->section) != 0)
                        json_out_object(j, f->section);
                if (is_rate(f))
                        json_out_double(j, f->key, value);
                else
                        json_out_int(j, f->key, (int64_t)value);
                if (i + 1 == FIGURE_TOTAL || strcmp(figures[i + 1].section, f->section) != 0)
                        json_out_object_end(j);
        }
}

static void put_refusals_json(struct json_out *j, struct buf *report)
{
        struct json_scan items;
        struct refusal r;

        json_out_array(j, "refused");
        if (open_refusals(report, &items)) {
                while (read_next_refusal(&items, &r)) {
                        json_out_object(j, NULL);
                        json_out_str(j, "reason", r.reason);
                        json_out_str(j, "of", r.of);
                        json_out_uint(j, "count", r.count);
                        json_out_str(j, "agent", r.agent);
                        json_out_str(j, "address", r.address);
                        json_out_str(j, "text", r.text);
                        json_out_str(j, "next_step", r.next_step);
                        json_out_object_end(j);
                }
        }
        json_out_array_end(j);
}

/* Copies the service's list. */
static void put_upstreams_json(struct json_out *j, struct buf *body)
{
        static const char *const numbers[] = { "failures_in_a_row", "retry_in_s", "in_flight", "found",
                                               "missing",           "refused",    "failed",    "unsure",
                                               "skipped",           "filtered",   "bytes",     "mean_ms",
                                               "slowest_ms" };
        struct json_value root, list, u;
        struct json_scan items;

        json_out_array(j, "upstreams");
        if (!json_value_parse(body->data, body->size, &root, NULL) && json_value_member(&root, "upstreams", &list) &&
            json_value_open_array(&list, &items)) {
                while (json_value_next(&items, &u)) {
                        char text[256];

                        json_out_object(j, NULL);
                        json_out_str(j, "url", json_value_text(&u, "url", text, sizeof text));
                        json_out_str(j, "breaker", json_value_text(&u, "breaker", text, sizeof text));
                        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
                                json_out_uint(j, numbers[i], json_value_uint(&u, numbers[i], 0));
                        json_out_str(j, "last_error", json_value_text(&u, "last_error", text, sizeof text));
                        json_out_object_end(j);
                }
        }
        json_out_array_end(j);
}

static void put_missing_advice_json(struct json_out *j, const struct buf *body)
{
        struct missing_advice a;

        if (!missing_advice_read(body, &a))
                return;
        json_out_object(j, "missing");
        json_out_uint(j, "objects", a.object_count);
        json_out_array(j, "next_steps");
        for (size_t i = 0; i < a.step_count; i++) {
                json_out_object(j, NULL);
                json_out_str(j, "object", a.steps[i].object);
                json_out_double(j, "percent", a.steps[i].percent);
                json_out_uint(j, "more_objects", a.steps[i].more_objects);
                json_out_str(j, "next_step", a.steps[i].text);
                json_out_object_end(j);
        }
        json_out_array_end(j);
        json_out_object_end(j);
}

static void put_status_json(struct buf *out, const struct status_options *o, struct service_view *v)
{
        struct json_out j;

        json_out_init(&j, out);
        json_out_object(&j, NULL);
        json_out_str(&j, "server", o->service.server);
        json_out_bool(&j, "ready", v->is_ready);
        put_conditions_json(&j, v->conditions);
        json_out_double(&j, "interval_s", v->elapsed_s);
        put_sections_json(&j, v);
        put_refusals_json(&j, &v->report);
        put_upstreams_json(&j, &v->upstreams);
        put_missing_advice_json(&j, &v->missing);
        json_out_object_end(&j);
        buf_append_u8(out, '\n');
}

/* ---- the command ---- */

#define CLEAR_SCREEN "\033[H\033[2J" /* home, clear */

static bool is_screen(const struct status_options *o)
{
        return o->watch && !o->json && isatty(STDOUT_FILENO);
}

static enum status show_status(struct http_client *client, const struct status_options *o, bool *ready_ret,
                               struct error *err)
{
        _cleanup_(service_view_deinit) struct service_view v = { 0 };
        _cleanup_buf_ struct buf out;
        enum status st = view_service(client, o, &v, err);

        buf_init(&out, MiB(1));
        if (st)
                return st;
        if (is_screen(o))
                buf_append_str(&out, CLEAR_SCREEN);
        if (o->json)
                put_status_json(&out, o, &v);
        else
                put_status_text(&out, o, &v);
        fwrite(out.data, 1, out.size, stdout);
        fflush(stdout);
        *ready_ret = v.is_ready;
        return buf_status(&out, err, "the status");
}

/*
 * Runs until interrupted. A service that is restarting or unreachable is polled again; only failures that do not pass
 * by themselves end the loop: a rejected token, an invalid URL.
 */
static enum status watch_status(struct http_client *client, const struct status_options *o, struct error *err)
{
        for (;;) {
                bool is_ready;
                enum status st = show_status(client, o, &is_ready, err);

                if (!st)
                        continue;
                if (st == ST_USAGE || st == ST_NO_MEMORY)
                        return st;
                if (is_screen(o)) { /* old figures would be taken for current ones */
                        fputs(CLEAR_SCREEN, stdout);
                        fflush(stdout);
                }
                fprintf(stderr, "cairn status: %s; retrying in %" PRIu64 " s\n", PRINTABLE(err->text), o->interval_s);
                wait_for_interval(o->interval_s);
        }
}

int command_status(int argc, char **argv)
{
        struct status_options o = { .service.server = DEFAULT_SERVER, .interval_s = 1 };
        const struct http_client_options how = { .size = sizeof how,
                                                 .request_timeout_ms = REQUEST_TIMEOUT_MS,
                                                 .attempts = 1 };
        const struct option_spec specs[] = {
                OPTION_UINT("interval", 0, "SECONDS", &o.interval_s,
                            "measure rates over this time (default: 1, rates of ingest over 5 minutes)"),
                OPTION_STRING("server", 0, "URL", &o.service.server, "URL of the service (default " DEFAULT_SERVER ")"),
                SERVICE_OPTIONS(&o.service),
                OPTION_STRING("tenant", 0, "NAME", &o.service.tenant,
                              "refusals and upstreams of this tenant (default: the token's, else the default tenant)"),
                OPTION_FLAG("watch", 0, &o.watch, "repeat until interrupted"),
                OPTION_FLAG("json", 0, &o.json, "print JSON"),
                OPTION_END,
        };
        _cleanup_http_client_ struct http_client *client = NULL;
        struct error err;
        bool is_ready = false;
        bool given[OPTION_SPECS_MAX] = { false };
        enum status st = options_parse_given(&usage, specs, &argc, &argv, given, &err);

        o.is_interval_given = given[0]; /* index in specs */
        if (!st && argc)
                st = error_set(&err, ST_USAGE, "unexpected argument '%s'", argv[0]);
        if (!st && (!o.interval_s || o.interval_s > INTERVAL_MOST_S))
                st = error_set(&err, ST_USAGE, "--interval takes 1 to %d seconds", INTERVAL_MOST_S);
        if (!st)
                st = service_connect(&o.service, &how, &client, &err);
        if (!st)
                st = o.watch ? watch_status(client, &o, &err) : show_status(client, &o, &is_ready, &err);
        return st ? command_fail("status", st, &err) : is_ready ? EXIT_DONE : EXIT_FAILED;
}
