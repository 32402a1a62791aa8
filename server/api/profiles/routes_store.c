/* SPDX-License-Identifier: Apache-2.0 */
/* Maintenance of the profile store: compaction and retention on demand. */
#include <string.h>

#include "common/json/json_out.h"
#include "profile-store/lifecycle/sample_retention.h"
#include "query/engine/sample_rules.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/protocol/respond.h"
#include "server/protocol/rules_request.h"

#define RULES_MAX 16

static enum status add_sample_rule(void *rules, const char *rule, struct error *err)
{
        return sample_rules_add(rules, rule, err);
}

/* Stops at shutdown, which must not wait for files to be rewritten. */
static bool continue_expiry(void *context)
{
        return !atomic_load(http_server_stopping(context));
}

static void handle_expire(struct http_request *req)
{
        _cleanup_sample_rules_ struct sample_rules rules = { 0 };
        struct expiry_request request = { .sweeps_locations = true, .proceed = continue_expiry, .context = req };
        struct expiry removed = { 0 };
        bool has_rules;
        struct buf body;
        struct error err;
        enum status st =
                read_rules_request(req, RULES_MAX, add_sample_rule, &rules, &has_rules, &request.dry_run, &err);

        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        request.limits = has_rules ? &rules.limits : NULL;
        if (!st)
                st = profile_store_expire(get_request_tenant(req)->profiles, &request, &removed, &err);
        if (!st)
                st = expiry_write_report(&removed, request.dry_run, &body, &err);
        expiry_deinit(&removed);
        respond_result(req, st, &body, &err);
}

/* Stops at shutdown, which must not wait for the whole store to be compacted. */
static bool continue_compaction(void *context, const struct compaction_result *so_far, uint64_t files_due)
{
        (void)so_far;
        (void)files_due;
        return !atomic_load(http_server_stopping(context));
}

static void handle_compact(struct http_request *req)
{
        struct compaction_result result = { 0 };
        struct json_out j;
        struct buf body;
        struct error err;
        enum status st =
                profile_store_compact(get_request_tenant(req)->profiles, continue_compaction, req, &result, &err);

        buf_init(&body, KiB(4));
        json_out_init(&j, &body);
        json_out_object(&j, NULL);
        json_out_uint(&j, "merges", result.merges);
        json_out_uint(&j, "files_before", result.files_before);
        json_out_uint(&j, "files_after", result.files_after);
        json_out_uint(&j, "bytes_read", result.bytes_read);
        json_out_uint(&j, "bytes_written", result.bytes_written);
        json_out_uint(&j, "skipped_files", result.skipped_files);
        json_out_object_end(&j);
        respond_result(req, st, &body, &err);
}

static const struct http_route routes[] = {
        { ROUTE("POST", "/api/v1/store/compact", SCOPE_ADMIN, TENANCY_OWN), .pool = POOL_ADMIN, .max_body = KiB(4),
          .body_type = "application/json", .handle = handle_compact, .writes = true },
        { ROUTE("POST", "/api/v1/store/expire", SCOPE_ADMIN, TENANCY_OWN), .pool = POOL_ADMIN,
          .max_body = LIMIT_HTTP_JSON_BYTES, .body_type = "application/json", .handle = handle_expire, .writes = true },
};
const struct route_table store_routes = ROUTE_TABLE(ROLE_MAINTAIN, routes);
