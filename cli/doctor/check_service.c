/* SPDX-License-Identifier: Apache-2.0 */
/* A running service, and its upstream debuginfod servers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/doctor/doctor_checks.h"
#include "cli/shared/missing_advice.h"
#include "cli/shared/service.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"
#include "debuginfo-store/federation/fetch.h"

#define ASK_TIMEOUT_MS 8000 /* below the time limit of a check, so that the failure itself is reported */
#define SLOW_UPSTREAM_MS 2000
#define SERVICE_REQUESTS 4

/* An equal share of a check's remaining time. */
static uint64_t share_time_ms(int64_t left_ms, size_t parts, uint64_t most_ms)
{
        uint64_t share = left_ms > 0 ? (uint64_t)left_ms / parts : 0;

        return share > most_ms ? most_ms : share ? share : 1;
}

static enum status get_from_service(const struct examined *x, const char *path, struct http_client_response *ret,
                                    struct error *err)
{
        const struct service_options o = { .server = x->server, .token_file = x->token_file, .ca_file = x->ca_file };
        uint64_t timeout_ms = share_time_ms((int64_t)x->budget_ms * 9 / 10, SERVICE_REQUESTS, ASK_TIMEOUT_MS / 2);
        const struct http_client_options how = {
                .size = sizeof how, .connect_timeout_ms = timeout_ms, .request_timeout_ms = timeout_ms, .attempts = 1
        };
        const struct http_client_request request = { .method = "GET", .path = path };
        _cleanup_http_client_ struct http_client *client = NULL;
        enum status st = service_connect(&o, &how, &client, err);

        return st ? st : http_client_send(client, &request, ret, err);
}

/* ---- readiness ---- */

/* "error NAME: what happened; what to do" (server/core/readiness.h) */
static void report_condition(char *line, struct findings *f)
{
        bool is_error = starts_with(line, "error ");
        char *name = strchr(line, ' '), *text = name ? strstr(name, ": ") : NULL, *fix = NULL;

        if (!text || (!is_error && !starts_with(line, "warning ")))
                return;
        *text = 0;
        text += 2;
        for (char *at = text; (at = strstr(at, "; ")); at += 2)
                fix = at;
        if (fix) {
                *fix = 0;
                fix += 2;
        }
        report_finding(f, is_error ? FINDING_ERROR : FINDING_WARNING, name + 1, fix ? fix : "see docs/operations.md",
                       "%s", text);
}

static void check_readiness(const struct examined *x, struct findings *f)
{
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        struct error err = { 0 };
        char *rest, *line;
        bool is_ready;

        (void)!get_from_service(x, "/readyz", &r, &err); /* 503 has a body too */
        if (!r.body.size || !buf_cstr(&r.body)) {
                report_finding(f, FINDING_ERROR, "readiness", "see the service's log", "%s", err.text);
                return;
        }
        is_ready = starts_with(buf_cstr(&r.body), "ready");
        report_finding(f, is_ready ? FINDING_OK : FINDING_ERROR, "readiness",
                       "see the conditions below, and the service's log", is_ready ? "ready" : "not ready");
        rest = (char *)r.body.data;
        while ((line = strsep(&rest, "\n")))
                report_condition(line, f);
}

/* ---- access ---- */

static void check_access(const struct examined *x, struct findings *f)
{
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        struct error err = { 0 };
        enum status st = get_from_service(x, "/metrics", &r, &err);

        if (st && (r.code == 401 || r.code == 403))
                report_finding(f, x->token_file ? FINDING_WARNING : FINDING_SKIPPED, "access",
                               "give --token-file a token with the scope read that is bound to no tenant", "%s",
                               x->token_file ? err.text : "the service requires a token: --token-file");
        else
                report_finding(f, st ? FINDING_ERROR : FINDING_OK, "access", "see the service's log", "%s",
                               st ? err.text : "the service accepts requests from this machine");
}

/* ---- missing debuginfo ---- */

/* Nothing if the samples cannot be read: check_access() has the reason. */
static void check_missing_debuginfo(const struct examined *x, struct findings *f)
{
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        struct missing_advice advice;
        struct error err = { 0 };
        char objects[400];

        if (get_from_service(x, MISSING_ADVICE_PATH, &r, &err) || !missing_advice_read(&r.body, &advice))
                return;
        if (!advice.object_count)
                report_finding(f, FINDING_OK, "debuginfo", "", "no object in samples of the last hour lacks debuginfo");
        for (size_t i = 0; i < advice.step_count; i++)
                report_finding(f, FINDING_WARNING, "debuginfo", advice.steps[i].text, "without debuginfo: %s",
                               missing_step_format(&advice.steps[i], objects, sizeof objects));
}

void check_running_service(const struct examined *x, struct findings *f)
{
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        int64_t began = monotonic_ns();
        struct error err = { 0 };

        if (get_from_service(x, "/healthz", &r, &err)) {
                report_finding(f, x->expects_service ? FINDING_ERROR : FINDING_SKIPPED, "reachable",
                               "start it (systemctl start cairn), or name it with --server and its CA with --ca", "%s",
                               err.text);
                return;
        }
        report_finding(f, FINDING_OK, "reachable", "", "%s answers within %" PRId64 " ms", x->server,
                       (monotonic_ns() - began) / 1000000);
        check_readiness(x, f);
        check_access(x, f);
        check_missing_debuginfo(x, f);
}

/* ---- upstreams ---- */

/* Requests a build-id that no file has: a working server responds with 404. */
static void check_upstream(const char *url, const char *header, const char *ca_file, uint64_t timeout_ms,
                           struct findings *f)
{
        static const char path[] = "/buildid/0000000000000000000000000000000000000000/debuginfo";
        const struct http_client_options how = { .size = sizeof how,
                                                 .base_url = url,
                                                 .ca_file = ca_file,
                                                 .connect_timeout_ms = timeout_ms,
                                                 .request_timeout_ms = timeout_ms,
                                                 .attempts = 1 };
        const char *const headers[] = { header, NULL };
        const struct http_client_request request = { .method = "GET", .path = path, .headers = headers };
        _cleanup_http_client_ struct http_client *client = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        char shown[FETCH_URL_TEXT];
        struct error err = { 0 };
        int64_t began = monotonic_ns(), took_ms;
        enum status st = http_client_create(&how, &client, &err);

        if (!st)
                st = http_client_send(client, &request, &r, &err);
        took_ms = (monotonic_ns() - began) / 1000000;
        fetch_url_redact(url, shown);
        if (r.code == 401 || r.code == 403)
                report_finding(f, FINDING_WARNING, "upstream", "give its token in the file of --upstreams",
                               "%s: HTTP %u", shown, r.code);
        else if (st && st != ST_NOT_FOUND)
                report_finding(
                        f, FINDING_WARNING, "upstream",
                        "fix the network or --upstream-ca, or remove it: it delays the upstreams after it until it is "
                        "skipped",
                        "%s: %s", shown, r.code ? "not a debuginfod response" : err.text);
        else
                report_finding(f, took_ms > SLOW_UPSTREAM_MS ? FINDING_WARNING : FINDING_OK, "upstream",
                               "put it last: upstreams are tried in order", "%s answers within %" PRId64 " ms", shown,
                               took_ms);
}

void check_upstreams(const struct examined *x, struct findings *f)
{
        int64_t until_ms = monotonic_ns() / 1000000 + (int64_t)x->budget_ms * 9 / 10;
        const struct server_options *o;

        if (!x->settings)
                return;
        o = &x->settings->server;
        if (!o->upstream_count)
                report_finding(f, FINDING_OK, "upstream", "", "none: debuginfo comes by uploads alone");
        for (size_t i = 0; i < o->upstream_count; i++)
                check_upstream(
                        o->upstreams[i], o->upstream_headers[i], o->upstream_ca,
                        share_time_ms(until_ms - monotonic_ns() / 1000000, o->upstream_count - i, ASK_TIMEOUT_MS), f);
}
