/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/forwarder.h"

#include <stdlib.h>
#include <sys/random.h>

#include "common/limits.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "http/http_client.h"
#include "server/core/tenants.h"

#define CONNECT_TIMEOUT_MS 5000
#define ANSWER_TIMEOUT_MS 30000 /* with --ack=store the other node waits for a commit */

static struct metric requests =
        METRIC_COUNTER("cairn_forward_requests_total", "Requests of a gateway that a node answered with 200.", "");
static struct metric failures =
        METRIC_COUNTER("cairn_forward_failures_total", "Requests of a gateway that failed; each is repeated.", "");
static struct metric bytes = METRIC_COUNTER("cairn_forward_bytes_total",
                                            "Bytes in requests of a gateway that a node answered with 200.", "");

/* What one store has of the forwarder. */
struct forward_lane {
        struct forwarder *owner;
        struct http_client **clients; /* of each URL */
        size_t current;
        bool has_failed; /* the last page */
};

struct forwarder {
        const struct server_options *options; /* borrowed */
        struct forward_lane *lanes;
        size_t lane_count;
};

/* Which failures are those of a batch; others say something about the node. */
static enum status judge_answer(const struct http_client_response *r, enum status st, struct error *err)
{
        if (st == ST_OK || r->code == 400 || r->code == 413)
                return st;
        err->code = ST_BUSY;
        return ST_BUSY;
}

static enum status send_page(struct http_client *client, const void *page, size_t n, struct error *err)
{
        static const char *const headers[] = { "Content-Type: application/octet-stream", NULL };
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        const struct http_client_request request = { .method = "POST",
                                                     .path = "/api/v1/node/batches",
                                                     .headers = headers,
                                                     .body = page,
                                                     .body_size = n,
                                                     .no_redirects = true };
        enum status st = http_client_send(client, &request, &response, err);

        return judge_answer(&response, st, err);
}

static void note_forward_failure(struct forward_lane *lane, const char *url, const struct error *err)
{
        metric_add(&failures, 1);
        if (!lane->has_failed)
                log_warn("gateway", "%s does not take batches: %s; they stay queued here", url, err->text);
        lane->has_failed = true;
}

static void note_forward_success(struct forward_lane *lane, const char *url, size_t n)
{
        metric_add(&requests, 1);
        metric_add(&bytes, (int64_t)n);
        if (lane->has_failed)
                log_info("gateway", "%s takes batches", url);
        lane->has_failed = false;
}

static enum status forward_to_any(void *context, const void *page, size_t n, struct error *err)
{
        struct forward_lane *lane = context;
        const struct server_options *o = lane->owner->options;
        enum status st = ST_BUSY;

        for (size_t i = 0; st == ST_BUSY && i < o->forward_count; i++) {
                const char *url = o->forwards[lane->current];

                st = send_page(lane->clients[lane->current], page, n, err);
                if (st == ST_OK) {
                        note_forward_success(lane, url, n);
                        return ST_OK;
                }
                note_forward_failure(lane, url, err);
                if (st == ST_BUSY)
                        lane->current = (lane->current + 1) % o->forward_count;
        }
        return st;
}

/* Not for secrets: without randomness it is the first. */
static size_t choose_first_url(size_t count)
{
        unsigned random = 0;

        if (getrandom(&random, sizeof random, 0) != sizeof random)
                random = 0;
        return random % count;
}

static enum status open_lane(struct forwarder *f, struct forward_lane *lane, const char *tenant, const char *token,
                             const atomic_bool *stop, struct error *err)
{
        const struct server_options *o = f->options;
        enum status st = ST_OK;

        lane->owner = f;
        lane->clients = calloc(o->forward_count, sizeof(struct http_client *));
        if (!lane->clients)
                return error_no_memory(err);
        lane->current = choose_first_url(o->forward_count);
        for (size_t i = 0; !st && i < o->forward_count; i++) {
                const struct http_client_options options = { .size = sizeof options,
                                                             .base_url = o->forwards[i],
                                                             .ca_file = o->peer_ca,
                                                             .token = token,
                                                             .tenant = tenant,
                                                             .connect_timeout_ms = CONNECT_TIMEOUT_MS,
                                                             .request_timeout_ms = ANSWER_TIMEOUT_MS,
                                                             .attempts = 1,
                                                             .stop = stop };

                st = http_client_create(&options, &lane->clients[i], err);
        }
        return st;
}

static void warn_of_exposed_token(const struct server_options *o)
{
        for (size_t i = 0; i < o->forward_count; i++)
                if (http_client_exposes_token(o->forwards[i]))
                        log_warn("gateway", "the token goes to %s unencrypted; use https", o->forwards[i]);
}

enum status forwarder_create(const struct server_options *o, const struct tenant_configs *tenants,
                             const atomic_bool *stop, struct forwarder **ret, struct error *err)
{
        struct forwarder *f = calloc(1, sizeof *f);
        _cleanup_free_ char *token = NULL;
        enum status st = ST_OK;

        if (!f)
                return error_no_memory(err);
        f->options = o;
        f->lane_count = 1 + (tenants ? tenants->count : 0);
        f->lanes = calloc(f->lane_count, sizeof *f->lanes);
        if (!f->lanes)
                st = error_no_memory(err);
        if (!st && o->peer_token_file)
                st = http_client_read_token(o->peer_token_file, &token, err);
        if (!st && token)
                warn_of_exposed_token(o);
        for (size_t i = 0; !st && i < f->lane_count; i++)
                st = open_lane(f, &f->lanes[i],
                               i         ? tenants->items[i - 1].name
                               : tenants ? TENANT_DEFAULT
                                         : NULL,
                               token, stop, err);
        if (st) {
                forwarder_destroy(f);
                return st;
        }
        metric_register(&requests);
        metric_register(&failures);
        metric_register(&bytes);
        *ret = f;
        return ST_OK;
}

void forwarder_set_store_options(struct forwarder *f, size_t store, struct profile_store_options *options)
{
        options->forward = forward_to_any;
        options->forward_context = &f->lanes[store];
}

void forwarder_destroy(struct forwarder *f)
{
        if (!f)
                return;
        for (size_t i = 0; f->lanes && i < f->lane_count; i++) {
                for (size_t k = 0; f->lanes[i].clients && k < f->options->forward_count; k++)
                        http_client_destroy(f->lanes[i].clients[k]);
                free(f->lanes[i].clients);
        }
        free(f->lanes);
        free(f);
}
