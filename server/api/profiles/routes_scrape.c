/* SPDX-License-Identifier: Apache-2.0 */
/* Leases of programs that scrape the same targets: docs/formats/scrape-lease.md */
#include <string.h>

#include "common/json/json_out.h"
#include "common/text/number_text.h"
#include "profile-store/client_leases.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/protocol/respond.h"

static bool parse_lease_action(const char *text, struct client_lease_request *ret)
{
        static const char *const names[] = {
                [CLIENT_LEASE_CHECK] = "check", [CLIENT_LEASE_RENEW] = "renew", [CLIENT_LEASE_END] = "end"
        };

        for (size_t i = 0; text && i < sizeof names / sizeof *names; i++) {
                if (strcmp(text, names[i]) != 0)
                        continue;
                ret->action = i;
                return true;
        }
        return false;
}

/* Responds with 400 and returns false when a parameter is wrong. */
static bool parse_lease_request(struct http_request *req, struct client_lease_request *ret)
{
        const char *epoch = http_query(req, "epoch");
        uint64_t number = 0;

        ret->name = http_query(req, "name");
        ret->holder = http_query(req, "holder");
        if (!ret->name || !tenant_name_is_valid(ret->name))
                http_fail_code(req, 400, "usage", "name is not 1 to %d of a-z, 0-9, '-' and '_'", TENANT_NAME_SIZE - 1);
        else if (!ret->holder || !client_holder_is_valid(ret->holder))
                http_fail_code(req, 400, "usage", "holder is not 1 to %d letters, digits, '.', '_' and '-'",
                               CLIENT_HOLDER_BYTES - 1);
        else if (epoch && (!parse_uint(epoch, &number) || number >= INT64_MAX))
                http_fail_code(req, 400, "usage", "epoch is not a number");
        else if (!parse_lease_action(http_query(req, "action"), ret))
                http_fail_code(req, 400, "usage", "action is not check, renew or end");
        else {
                ret->epoch = (int64_t)number;
                return true;
        }
        return false;
}

/* Without a place in the thread pool: a store that hangs does not delay batches. */
static enum status ask_store_for_lease(struct http_request *req, const struct client_lease_request *r,
                                       struct client_lease_state *ret, struct error *err)
{
        enum status st = http_begin_wait(err);

        if (st)
                return st;
        st = profile_store_ask_client_lease(get_request_tenant(req)->profiles, r, ret, err);
        http_end_wait();
        return st;
}

static void handle_scrape_lease(struct http_request *req)
{
        struct client_lease_request r;
        struct client_lease_state state;
        struct json_out json;
        struct error err;
        struct buf body;
        enum status st;

        if (!parse_lease_request(req, &r))
                return;
        st = ask_store_for_lease(req, &r, &state, &err);
        if (st) {
                if (st == ST_OS || st == ST_BUSY) /* not a failure of the request: ask again */
                        http_fail_code(req, 503, "store_away", "%s", err.text);
                else
                        http_fail(req, st, &err);
                return;
        }
        buf_init(&body, KiB(4));
        json_out_init(&json, &body);
        json_out_object(&json, NULL);
        json_out_bool(&json, "held", state.is_held);
        json_out_uint(&json, "lease_ms", (uint64_t)state.lease_ms);
        if (state.is_held) {
                json_out_uint(&json, "epoch", (uint64_t)state.epoch);
        } else {
                json_out_str(&json, "holder", state.holder);
                json_out_bool(&json, "expired", state.is_expired);
        }
        json_out_object_end(&json);
        respond_json(req, &body);
}

static const struct http_route routes[] = {
        { ROUTE("POST", "/api/v1/scrape/lease", SCOPE_INGEST, TENANCY_OWN), .pool = POOL_INGEST,
          .handle = handle_scrape_lease },
};
const struct route_table scrape_routes = ROUTE_TABLE(ROLE_INGEST, routes);
