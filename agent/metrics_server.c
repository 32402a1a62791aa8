/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/metrics_server.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/metrics.h"
#include "http/listen.h"
#include "http/server.h"

#define DEFAULT_PORT 7701
#define MISSED_INTERVALS 3

struct metrics_server {
        struct http_server *http;
        uint64_t interval_s;
        _Atomic int64_t well_until_ns; /* monotonic */
};

static void on_health(struct http_request *req, void *context)
{
        struct metrics_server *s = context;

        if (monotonic_ns() < atomic_load(&s->well_until_ns))
                http_respond(req, 200, "text/plain; charset=utf-8", "ok\n", 3);
        else
                http_fail_code(req, 503, "stuck", "no samples were taken out for %d intervals; see the agent's log",
                               MISSED_INTERVALS);
}

static void on_metrics(struct http_request *req, void *context)
{
        struct buf text;

        (void)context;
        buf_init(&text, MiB(1));
        metrics_write(&text);
        http_respond_buf(req, 200, "text/plain; version=0.0.4; charset=utf-8", &text);
}

static const struct http_route routes[] = {
        { .method = "GET", .path = "/metrics", .handle = on_metrics },
        { .method = "GET", .path = "/healthz", .handle = on_health },
};

enum status metrics_server_start(const char *address, uint64_t interval_s, struct metrics_server **ret,
                                 struct error *err)
{
        struct metrics_server *s = calloc(1, sizeof *s);
        struct http_options options = { .size = sizeof options, .threads = 1,
                                        .max_connections = 64 };
        struct listen_address listen;
        enum status st;

        if (!s)
                return error_no_memory(err);
        s->interval_s = interval_s;
        metrics_server_drained(s);
        st = listen_parse(address, DEFAULT_PORT, &listen, err);
        if (!st) {
                options.host = listen.host;
                options.port = listen.port;
                st = http_server_start(&options, routes, sizeof routes / sizeof *routes, s, &s->http, err);
        }
        if (st) {
                free(s);
                return st;
        }
        log_info("agent", "metrics at http://%s:%u/metrics", listen.host, http_server_port(s->http));
        *ret = s;
        return ST_OK;
}

void metrics_server_stop(struct metrics_server *s)
{
        if (!s)
                return;
        http_server_stop(s->http);
        free(s);
}

void metrics_server_drained(struct metrics_server *s)
{
        if (s)
                atomic_store(&s->well_until_ns,
                             monotonic_ns() + (int64_t)(MISSED_INTERVALS * s->interval_s) * INT64_C(1000000000));
}
