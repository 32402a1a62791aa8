/* SPDX-License-Identifier: Apache-2.0 */
/* /healthz, /readyz (and /ready), /metrics, and the status for people: docs/formats/status.md */
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "common/metrics.h"
#include "common/program/metrics_write.h"
#include "common/text/number_text.h"
#include "server/access/identify.h"
#include "server/api/operation/status_report.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/protocol/respond.h"

static void handle_health(struct http_request *req)
{
        http_respond(req, 200, "text/plain; charset=utf-8", "ok\n", 3);
}

static void handle_ready(struct http_request *req)
{
        struct server *s = http_context(req);
        char roles[NODE_ROLES_TEXT];
        struct buf lines, body;
        bool is_ready;

        if (!atomic_load(&s->ready)) {
                http_fail_code(req, 503, "starting", "the service is starting or stopping; retry later");
                return;
        }
        buf_init(&lines, KiB(16));
        buf_init(&body, KiB(16));
        is_ready = readiness_write(s->readiness, &lines);
        buf_printf(&body, "%s\n%s", is_ready ? "ready" : "not ready", buf_cstr(&lines));
        http_set_header(req, "X-Cairn-Roles", node_roles_write(s->options->roles, roles));
        buf_deinit(&lines);
        http_respond_buf(req, is_ready ? 200 : 503, "text/plain; charset=utf-8", &body);
}

static struct metric queued_bytes = METRIC_GAUGE("cairn_queue_bytes", "Bytes acknowledged and not yet in a part.", "");
static struct metric queued_batches =
        METRIC_GAUGE("cairn_queue_batches", "Batches acknowledged and not yet in a part.", "");
static struct metric rows[] = {
        METRIC_GAUGE("cairn_table_rows", "Rows in parts.", "table=\"samples\""),
        METRIC_GAUGE("cairn_table_rows", "Rows in parts.", "table=\"stacks\""),
        METRIC_GAUGE("cairn_table_rows", "Rows in parts.", "table=\"locations\""),
        METRIC_GAUGE("cairn_table_rows", "Rows in parts.", "table=\"function_history\""),
};
static struct metric files[] = {
        METRIC_GAUGE("cairn_table_files", "Live parts.", "table=\"samples\""),
        METRIC_GAUGE("cairn_table_files", "Live parts.", "table=\"stacks\""),
        METRIC_GAUGE("cairn_table_files", "Live parts.", "table=\"locations\""),
        METRIC_GAUGE("cairn_table_files", "Live parts.", "table=\"function_history\""),
};
static struct metric table_bytes = METRIC_GAUGE("cairn_table_bytes", "Bytes of all live parts.", "");
static struct metric quarantined_batches = METRIC_GAUGE("cairn_quarantined_batches", "Batches in the quarantine.", "");
static struct metric quarantined_bytes = METRIC_GAUGE("cairn_quarantined_bytes", "Bytes of the quarantine.", "");
static struct metric unresolved = METRIC_GAUGE("cairn_unresolved_locations", "Locations without symbols.", "");

static void add_store_stat(struct profile_store_stat *sum, const struct profile_store_stat *s)
{
        sum->queued_bytes += s->queued_bytes;
        sum->queued_batches += s->queued_batches;
        sum->sample_rows += s->sample_rows;
        sum->stack_rows += s->stack_rows;
        sum->location_rows += s->location_rows;
        sum->sample_files += s->sample_files;
        sum->stack_files += s->stack_files;
        sum->location_files += s->location_files;
        sum->history.rows += s->history.rows;
        sum->history.files += s->history.files;
        sum->bytes += s->bytes;
        sum->health.quarantined_batches += s->health.quarantined_batches;
        sum->health.quarantined_bytes += s->health.quarantined_bytes;
        sum->unresolved_locations += s->unresolved_locations;
}

static void gather_metrics(struct server *s)
{
        size_t count = tenants_count(s->tenants);
        _cleanup_free_ struct profile_store_stat *stats = calloc(count, sizeof *stats);
        struct profile_store_stat stat = { 0 };
        _cleanup_buf_ struct buf conditions;

        buf_init(&conditions, KiB(16));
        readiness_write(s->readiness, &conditions); /* sets their metrics */
        if (stats) {
                readiness_get_store_stats(s->readiness, stats);
                tenants_publish_metrics(s->tenants, stats);
        }
        for (size_t i = 0; stats && i < count; i++)
                add_store_stat(&stat, &stats[i]);
        metric_set(&queued_bytes, (int64_t)stat.queued_bytes);
        metric_set(&queued_batches, (int64_t)stat.queued_batches);
        metric_set(&rows[0], (int64_t)stat.sample_rows);
        metric_set(&rows[1], (int64_t)stat.stack_rows);
        metric_set(&rows[2], (int64_t)stat.location_rows);
        metric_set(&rows[3], (int64_t)stat.history.rows);
        metric_set(&files[0], (int64_t)stat.sample_files);
        metric_set(&files[1], (int64_t)stat.stack_files);
        metric_set(&files[2], (int64_t)stat.location_files);
        metric_set(&files[3], (int64_t)stat.history.files);
        metric_set(&table_bytes, (int64_t)stat.bytes);
        metric_set(&quarantined_batches, (int64_t)stat.health.quarantined_batches);
        metric_set(&quarantined_bytes, (int64_t)stat.health.quarantined_bytes);
        metric_set(&unresolved, (int64_t)stat.unresolved_locations);
}

/* Serializes scrapes, so that none returns stale gauges. */
static pthread_mutex_t gathering = PTHREAD_MUTEX_INITIALIZER;

static void handle_metrics(struct http_request *req)
{
        struct buf text;

        buf_init(&text, MiB(16));
        pthread_mutex_lock(&gathering);
        gather_metrics(http_context(req));
        metrics_write(&text);
        pthread_mutex_unlock(&gathering);
        http_respond_buf(req, 200, "text/plain; version=0.0.4; charset=utf-8", &text);
}

/* ---- status for people ---- */

/* Same rule as TENANCY_WHOLE: a token that is bound to a tenant may not. */
static bool may_see_service(struct server *s, const struct http_request *req)
{
        char token_tenant[TENANT_NAME_SIZE];

        if (!s->access_control.tokens)
                return true;
        return access_get_tenant(&s->access_control, http_sender(req), SCOPE_READ, token_tenant) &&
               (!token_tenant[0] || strcmp(token_tenant, TOKEN_ANY_TENANT) == 0);
}

static void handle_status(struct http_request *req)
{
        struct buf body;
        struct error err;

        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        respond_result(req,
                       write_tenant_status(http_context(req), get_request_tenant(req),
                                           may_see_service(http_context(req), req), &body, &err),
                       &body, &err);
}

static void handle_senders(struct http_request *req)
{
        const char *text = http_query(req, "limit");
        uint64_t limit = LIMIT_SENDERS;
        struct buf body;
        struct error err;

        if (text && !parse_uint(text, &limit)) {
                http_fail_code(req, 400, "usage", "limit is not a number");
                return;
        }
        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        respond_result(req, write_tenant_senders(get_request_tenant(req), limit, &body, &err), &body, &err);
}

/* The body is not charged to the memory budget, because it contains the budget's metrics. */
static void handle_service_status(struct http_request *req)
{
        struct buf body;

        buf_init(&body, MiB(16));
        pthread_mutex_lock(&gathering);
        gather_metrics(http_context(req));
        write_service_status(http_context(req), &body);
        pthread_mutex_unlock(&gathering);
        respond_json(req, &body);
}

static const struct http_route routes[] = {
        { OPEN_ROUTE("GET", "/healthz"), .pool = POOL_STATUS, .at_once = handle_health, .handle = handle_health },
        { OPEN_ROUTE("GET", "/readyz"), .pool = POOL_STATUS, .at_once = handle_ready, .handle = handle_ready },
        /* Pyroscope's path of the same */
        { OPEN_ROUTE("GET", "/ready"), .pool = POOL_STATUS, .at_once = handle_ready, .handle = handle_ready },
        { ROUTE("GET", "/metrics", SCOPE_READ, TENANCY_WHOLE), .pool = POOL_STATUS, .handle = handle_metrics },
        { ROUTE("GET", "/api/v1/status", SCOPE_READ, TENANCY_OWN), .pool = POOL_STATUS, .handle = handle_status },
        { ROUTE("GET", "/api/v1/status/senders", SCOPE_READ, TENANCY_OWN), .pool = POOL_STATUS,
          .handle = handle_senders },
        { ROUTE("GET", "/api/v1/status/service", SCOPE_READ, TENANCY_WHOLE), .pool = POOL_STATUS,
          .handle = handle_service_status },
};
const struct route_table status_routes = ROUTE_TABLE(ROLE_ANY, routes);
