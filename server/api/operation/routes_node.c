/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes answer other nodes and gateways: docs/formats/head-page.md */
#include <string.h>

#include "common/json/json_out.h"
#include "common/text/number_text.h"
#include "profile-store/handed_commits.h"
#include "profile-store/peer_heads.h"
#include "server/core/ingest.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/protocol/respond.h"

static bool parse_head_mark(struct http_request *req, struct head_mark *ret)
{
        const char *node = http_query(req, "node"), *after = http_query(req, "after"),
                   *tables = http_query(req, "tables");

        *ret = (struct head_mark){ 0 };
        if (after && !parse_uint(after, &ret->after))
                return false;
        if ((node && strlen(node) >= sizeof ret->node) || (tables && strlen(tables) >= sizeof ret->tables))
                return false;
        snprintf(ret->node, sizeof ret->node, "%s", node ? node : "");
        snprintf(ret->tables, sizeof ret->tables, "%s", tables ? tables : "");
        return true;
}

/* In the pool of status requests: with that of queries, nodes that wait for each other could take all threads. */
static void handle_node_head(struct http_request *req)
{
        struct head_mark mark;
        struct buf page;
        struct error err;
        enum status st;

        if (!parse_head_mark(req, &mark)) {
                http_fail_code(req, 400, "usage", "node or tables is not an identity, or after is not a number");
                return;
        }
        buf_init_budget(&page, LIMIT_HEAD_ANSWER_BYTES, MEMORY_ANSWERS);
        st = profile_store_write_head(get_request_tenant(req)->profiles, &mark, &page, &err);
        if (!st) {
                http_respond_buf(req, 200, "application/octet-stream", &page);
                return;
        }
        buf_deinit(&page);
        http_fail(req, st, &err);
}

static const struct http_route routes[] = {
        { ROUTE("GET", "/api/v1/node/head", SCOPE_NODE, TENANCY_OWN), .pool = POOL_STATUS, .handle = handle_node_head },
};
const struct route_table node_routes = ROUTE_TABLE(ROLE_ANY, routes);

static void handle_node_batches(struct http_request *req)
{
        const struct ingest_batch batch = begin_http_batch(req);
        struct forwarded_batches added;
        struct json_out json;
        struct error err;
        struct buf body;
        size_t n;
        const void *page = http_body(req, &n);
        enum status st = append_forwarded_batches(&batch, page, n, &added, &err);

        if (st) {
                fail_ingest(req, st, &err);
                return;
        }
        buf_init(&body, KiB(4));
        json_out_init(&json, &body);
        json_out_object(&json, NULL);
        json_out_uint(&json, "batches", added.batches);
        json_out_uint(&json, "duplicates", added.duplicates);
        json_out_uint(&json, "samples", added.samples);
        json_out_object_end(&json);
        http_respond_buf(req, 200, "application/json", &body);
}

static bool copy_identity(const char *text, char *ret, size_t size)
{
        return text && strlen(text) < size && snprintf(ret, size, "%s", text) >= 0;
}

static bool parse_handed_commit(struct http_request *req, struct handed_commit *ret)
{
        const char *after = http_query(req, "after"), *removal = http_query(req, "removal"),
                   *columns = http_query(req, "columns");

        uint64_t number = 0;

        *ret = (struct handed_commit){ .removal = -1 };
        if (removal && (!parse_uint(removal, &number) || number > INT64_MAX))
                return false;
        if (removal)
                ret->removal = (int64_t)number;
        return after && columns && parse_uint(after, &ret->after) && ret->after <= INT64_MAX &&
               parse_uint(columns, &ret->columns) &&
               copy_identity(http_query(req, "holder"), ret->holder, sizeof ret->holder) &&
               copy_identity(http_query(req, "tables"), ret->tables, sizeof ret->tables);
}

/* Without a place in the thread pool: all nodes wait for one commit. */
static enum status wait_for_offered(struct profile_store *store, struct offered_commit *o, uint64_t *version_ret,
                                    bool *is_refused_ret, struct error *err)
{
        const bool has_left = !http_begin_wait(NULL);
        enum status st = profile_store_await_commit(store, o, has_left ? HAND_ANSWER_AFTER_MS : 0, version_ret,
                                                    is_refused_ret, err);

        if (has_left)
                http_end_wait();
        return st;
}

static void answer_commit(struct http_request *req, uint64_t version)
{
        struct json_out json;
        struct buf body;

        buf_init(&body, KiB(4));
        json_out_init(&json, &body);
        json_out_object(&json, NULL);
        json_out_uint(&json, "version", version);
        json_out_object_end(&json);
        http_respond_buf(req, 200, "application/json", &body);
}

static void handle_node_commits(struct http_request *req)
{
        struct profile_store *store = get_request_tenant(req)->profiles;
        struct offered_commit *offer;
        struct handed_commit base;
        struct error err = { 0 };
        bool is_refused = false;
        uint64_t version;
        size_t n;
        const void *text = http_body(req, &n);
        enum status st;

        if (!parse_handed_commit(req, &base)) {
                http_fail_code(req, 400, "usage",
                               "holder or tables is not an identity, or after, removal or columns is not a number");
                return;
        }
        st = profile_store_offer_commit(store, &base, text, n, &offer, &err);
        if (!st)
                st = wait_for_offered(store, offer, &version, &is_refused, &err);
        if (!st)
                answer_commit(req, version);
        else if (is_refused)
                http_fail_code(req, 409, "conflict", "%s", err.text);
        else
                http_fail(req, st, &err);
}

static const struct http_route batch_routes[] = {
        { ROUTE("POST", "/api/v1/node/batches", SCOPE_NODE, TENANCY_OWN), .pool = POOL_INGEST,
          .max_body = LIMIT_FORWARD_BODY_BYTES, .handle = handle_node_batches },
        { ROUTE("POST", "/api/v1/node/commits", SCOPE_NODE, TENANCY_OWN), .pool = POOL_INGEST,
          .max_body = LIMIT_HANDED_COMMIT_BYTES, .handle = handle_node_commits },
};
const struct route_table node_batch_routes = ROUTE_TABLE(ROLE_INGEST, batch_routes);
