/* SPDX-License-Identifier: Apache-2.0 */
#include "scrape/scrape_status.h"

#include <inttypes.h>

#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/program/metrics_write.h"
#include "common/text/utf8.h"
#include "http/listen.h"

static const char *get_label(const struct scrape_report *r, const char *name)
{
        return label_set_get(&r->target->labels, name);
}

/* ---- a table ---- */

static void write_report_line(void *context, const struct scrape_report *r)
{
        const struct scrape_result *result = r->result;
        struct buf *to = context;

        utf8_append_escaped(to, get_label(r, "job"));
        buf_append_u8(to, ' ');
        utf8_append_escaped(to, get_label(r, "instance"));
        buf_printf(to, " %s ", r->profile->name);
        if (r->is_standby || !result->scrapes)
                buf_append_str(to, r->is_standby ? "standby" : "waiting");
        else if (result->is_up)
                buf_printf(to, "up %" PRIu64 " samples, %" PRIu64 " bytes, %" PRIu64 " ms", result->samples,
                           result->body_bytes, result->took_ms);
        else
                buf_append_str(to, "down: ");
        utf8_append_escaped(to, r->is_standby ? "" : result->error);
        buf_append_u8(to, '\n');
}

void scrape_status_write_table(struct scraper *s, struct buf *to)
{
        scraper_visit(s, write_report_line, to);
}

/* ---- JSON ---- */

static void write_report_json(void *context, const struct scrape_report *r)
{
        const struct scrape_result *result = r->result;
        struct json_out *j = context;
        char *url = scrape_target_url(r->target, r->profile);

        json_out_object(j, NULL);
        json_out_str(j, "job", r->target->job->name);
        json_out_str(j, "profile", r->profile->name);
        json_out_str(j, "url", url);
        json_out_object(j, "labels");
        for (size_t i = 0; i < r->target->labels.count; i++)
                json_out_str(j, r->target->labels.items[i].name, r->target->labels.items[i].value);
        json_out_object_end(j);
        json_out_str(j, "health",
                     r->is_standby      ? "standby"
                     : !result->scrapes ? "unknown"
                     : result->is_up    ? "up"
                                        : "down");
        json_out_str(j, "error", result->error[0] ? result->error : NULL);
        json_out_int(j, "last_scrape_unix_ms", result->began_unix_ns / 1000000);
        json_out_uint(j, "duration_ms", result->took_ms);
        json_out_uint(j, "samples", result->samples);
        json_out_uint(j, "body_bytes", result->body_bytes);
        json_out_uint(j, "scrapes", result->scrapes);
        json_out_uint(j, "failures", result->failures);
        json_out_uint(j, "resets", result->resets);
        json_out_uint(j, "missed", result->missed);
        json_out_object_end(j);
        free(url);
}

static void write_lease_json(struct scrape_lease *l, struct json_out *j)
{
        struct scrape_lease_state state;

        scrape_lease_get_state(l, &state);
        json_out_object(j, "lease");
        json_out_str(j, "name", state.name);
        json_out_str(j, "scraper", state.self);
        json_out_str(j, "holder", *state.holder ? state.holder : NULL);
        json_out_bool(j, "held", state.is_held);
        json_out_str(j, "error", *state.error ? state.error : NULL);
        json_out_object_end(j);
}

void scrape_status_write_json(struct scraper *s, struct scrape_lease *l, struct buf *to)
{
        struct json_out j;

        json_out_init(&j, to);
        json_out_object(&j, NULL);
        if (l)
                write_lease_json(l, &j);
        json_out_array(&j, "profiles");
        scraper_visit(s, write_report_json, &j);
        json_out_array_end(&j);
        json_out_object_end(&j);
        buf_append_u8(to, '\n');
}

/* ---- metrics ---- */

/* Metric families with one metric for each profile of each target. */
static const struct {
        const char *name, *type, *help;
} families[] = {
        { "cairn_scrape_up", "gauge", "1 when the last scrape succeeded." },
        { "cairn_scrape_last_unix_seconds", "gauge", "Start time of the last scrape." },
        { "cairn_scrape_duration_seconds", "gauge", "Duration of the last scrape." },
        { "cairn_scrape_samples", "gauge", "Samples sent by the last scrape." },
        { "cairn_scrape_body_bytes", "gauge", "Size of the last response body." },
};
#define FAMILY_COUNT (sizeof families / sizeof *families)

struct metric_writer {
        struct buf *to;
        size_t family;
};

static void write_report_metric(void *context, const struct scrape_report *r)
{
        const struct metric_writer *w = context;
        const double values[FAMILY_COUNT] = { r->result->is_up, (double)r->result->began_unix_ns / 1e9,
                                              (double)r->result->took_ms / 1e3, (double)r->result->samples,
                                              (double)r->result->body_bytes };

        if (!r->result->scrapes || r->is_standby)
                return;
        buf_printf(w->to, "%s{", families[w->family].name);
        metric_label(w->to, "job", get_label(r, "job"));
        buf_append_u8(w->to, ',');
        metric_label(w->to, "instance", get_label(r, "instance"));
        buf_append_u8(w->to, ',');
        metric_label(w->to, "profile", r->profile->name);
        buf_printf(w->to, "} %.15g\n", values[w->family]);
}

static void write_lease_metric(struct scrape_lease *l, struct buf *to)
{
        static const char name[] = "cairn_scrape_lease_held";
        struct scrape_lease_state state;

        scrape_lease_get_state(l, &state);
        buf_printf(to, "# HELP %s 1 while this scraper has the lease, and so scrapes.\n# TYPE %s gauge\n%s{", name,
                   name, name);
        metric_label(to, "lease", state.name);
        buf_printf(to, "} %d\n", state.is_held);
}

void scrape_status_write_metrics(struct scraper *s, struct scrape_lease *l, struct buf *to)
{
        if (l)
                write_lease_metric(l, to);
        for (size_t i = 0; i < FAMILY_COUNT; i++) {
                struct metric_writer w = { to, i };

                buf_printf(to, "# HELP %s %s\n# TYPE %s %s\n", families[i].name, families[i].help, families[i].name,
                           families[i].type);
                scraper_visit(s, write_report_metric, &w);
        }
        scraper_update_metrics(s);
        metrics_write(to);
}

/* ---- HTTP ---- */

#define DEFAULT_PORT 7702

struct scrape_listener {
        struct http_server *http;
        struct scraper *scraper;
        struct scrape_lease *lease;
};

static void answer_scrape_metrics(struct http_request *req)
{
        const struct scrape_listener *l = http_context(req);
        struct buf text;

        buf_init(&text, LIMIT_RESPONSE_BYTES);
        scrape_status_write_metrics(l->scraper, l->lease, &text);
        http_respond_buf(req, 200, "text/plain; version=0.0.4; charset=utf-8", &text);
}

static void answer_scrape_targets(struct http_request *req)
{
        const struct scrape_listener *l = http_context(req);
        struct buf text;

        buf_init(&text, LIMIT_RESPONSE_BYTES);
        scrape_status_write_json(l->scraper, l->lease, &text);
        http_respond_buf(req, 200, "application/json", &text);
}

static void answer_scrape_health(struct http_request *req)
{
        http_respond(req, 200, "text/plain; charset=utf-8", "ok\n", 3);
}

static const struct http_route routes[] = {
        { .method = "GET", .path = "/metrics", .handle = answer_scrape_metrics },
        { .method = "GET", .path = "/targets", .handle = answer_scrape_targets },
        { .method = "GET", .path = "/healthz", .handle = answer_scrape_health },
};

enum status scrape_listener_start(const char *address, struct scraper *s, struct scrape_lease *lease,
                                  struct scrape_listener **ret, struct error *err)
{
        struct scrape_listener *l = calloc(1, sizeof *l);
        struct http_options options = { .size = sizeof options, .threads = 1, .max_connections = 64 };
        struct listen_address listen;
        enum status st;

        if (!l)
                return error_no_memory(err);
        l->scraper = s;
        l->lease = lease;
        st = parse_listen_address(address, DEFAULT_PORT, &listen, err);
        if (!st) {
                options.host = listen.host;
                options.port = listen.port;
                st = http_server_start(&options, routes, sizeof routes / sizeof *routes, l, &l->http, err);
        }
        if (st) {
                free(l);
                return st;
        }
        log_info("scrape", "metrics at http://%s:%u/metrics", listen.host, http_server_port(l->http));
        *ret = l;
        return ST_OK;
}

void scrape_listener_stop(struct scrape_listener *l)
{
        if (!l)
                return;
        http_server_stop(l->http);
        free(l);
}
