/* SPDX-License-Identifier: Apache-2.0 */
/* Status of the upstream debuginfod servers. */
#include "common/json/json_out.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/protocol/respond.h"

static void put_upstream(struct json_out *j, const struct upstream_status *u)
{
        json_out_object(j, NULL);
        json_out_str(j, "url", u->url);
        json_out_str(j, "breaker", upstream_state_name(u->state));
        json_out_uint(j, "failures_in_a_row", u->failures);
        json_out_uint(j, "retry_in_s", u->retry_in_s);
        json_out_uint(j, "in_flight", u->in_flight);
        json_out_uint(j, "found", u->answers[UPSTREAM_FOUND]);
        json_out_uint(j, "missing", u->answers[UPSTREAM_MISSING]);
        json_out_uint(j, "refused", u->answers[UPSTREAM_REFUSED]);
        json_out_uint(j, "failed", u->answers[UPSTREAM_FAILED]);
        json_out_uint(j, "unsure", u->answers[UPSTREAM_UNSURE]);
        json_out_uint(j, "skipped", u->skipped);
        json_out_uint(j, "filtered", u->filtered);
        json_out_uint(j, "bytes", u->bytes);
        json_out_uint(j, "mean_ms", u->mean_ms);
        json_out_uint(j, "slowest_ms", u->slowest_ms);
        if (u->last_error_unix_s) {
                json_out_str(j, "last_error", u->last_error);
                json_out_int(j, "last_error_unix_s", u->last_error_unix_s);
        }
        json_out_object_end(j);
}

static void handle_upstreams(struct http_request *req)
{
        struct debuginfo_space *s = get_request_space(req);
        struct federation_status all = { 0 };
        struct upstream_status u;
        struct json_out j;
        struct buf body;

        if (s->federation)
                federation_get_status(s->federation, &all);
        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        json_out_init(&j, &body);
        json_out_object(&j, NULL);
        json_out_array(&j, "upstreams");
        for (size_t i = 0; s->federation && federation_get_upstream(s->federation, i, &u); i++)
                put_upstream(&j, &u);
        json_out_array_end(&j);
        json_out_object(&j, "questions");
        json_out_uint(&j, "queued", all.queued);
        json_out_uint(&j, "in_flight", all.in_flight);
        json_out_uint(&j, "known_missing", all.missing);
        json_out_uint(&j, "known_failed", all.failed);
        json_out_object_end(&j);
        json_out_object_end(&j);
        respond_json(req, &body);
}

static const struct http_route routes[] = {
        { ROUTE("GET", "/api/v1/debuginfo/upstreams", SCOPE_READ, TENANCY_WHOLE), .handle = handle_upstreams },
};
const struct route_table upstream_routes = ROUTE_TABLE(ROLE_DEBUGINFOD, routes);
