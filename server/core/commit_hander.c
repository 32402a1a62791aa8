/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/commit_hander.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "http/http_client.h"
#include "server/core/tenants.h"

/* What one store has of the hander. */
struct hand_lane {
        struct commit_hander *owner;
        struct http_client **clients; /* of each peer */
        size_t current;               /* that is asked first */
        bool has_failed;              /* the last commit had no answer */
};

struct commit_hander {
        const struct server_options *options; /* borrowed */
        struct hand_lane *lanes;
        size_t lane_count;
};

static enum hand_result judge_hand_answer(const struct http_client_response *r, enum status st)
{
        if (!st)
                return HAND_COMMITTED;
        if (r->code == 409)
                return HAND_REFUSED;
        /* One of another release, another role or other tables, or one without the lease. */
        return r->code == 404 || r->code == 405 || r->code == 421 || r->code == 400 ? HAND_NOT_HOLDER : HAND_NO_ANSWER;
}

static enum hand_result send_commit(struct http_client *client, const struct handed_commit *h, const void *text,
                                    size_t n, struct error *err)
{
        static const char *const headers[] = { "Content-Type: application/x-ndjson", NULL };
        char path[256], removal[32] = "";
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        const struct http_client_request request = {
                .method = "POST", .path = path, .headers = headers, .body = text, .body_size = n, .no_redirects = true
        };
        enum status st;

        if (h->removal >= 0)
                snprintf(removal, sizeof removal, "&removal=%" PRId64, h->removal);
        snprintf(path, sizeof path, "/api/v1/node/commits?holder=%s&tables=%s&after=%" PRIu64 "&columns=%" PRIu64 "%s",
                 h->holder, h->tables, h->after, h->columns, removal);
        st = http_client_send(client, &request, &response, err);
        return judge_hand_answer(&response, st);
}

static void note_hand_answer(struct hand_lane *lane, const char *url, enum hand_result result, const struct error *err)
{
        const bool has_failed = result == HAND_NO_ANSWER;

        if (has_failed && !lane->has_failed)
                log_warn("peers", "%s does not commit for this node: %s; it commits alone", url, err->text);
        else if (!has_failed && lane->has_failed)
                log_info("peers", "%s answers commits again", url);
        lane->has_failed = has_failed;
}

/* All peers have the time of one: those that are not asked now are asked first the next time. */
static enum hand_result hand_to_holder(void *context, const struct handed_commit *h, const void *text, size_t n)
{
        struct hand_lane *lane = context;
        const struct server_options *o = lane->owner->options;
        const int64_t until_ns = monotonic_ns() + HAND_ANSWER_MS * INT64_C(1000000);
        enum hand_result result = HAND_NOT_HOLDER;

        for (size_t i = 0; i < o->peer_count && monotonic_ns() < until_ns; i++) {
                const char *url = o->peers[lane->current];
                struct error err = { 0 };
                enum hand_result answer = send_commit(lane->clients[lane->current], h, text, n, &err);

                if (answer == HAND_COMMITTED || answer == HAND_REFUSED) {
                        note_hand_answer(lane, url, answer, &err);
                        return answer;
                }
                if (answer == HAND_NO_ANSWER) {
                        note_hand_answer(lane, url, answer, &err);
                        result = answer;
                }
                lane->current = (lane->current + 1) % o->peer_count;
        }
        return result;
}

static enum status open_hand_lane(struct commit_hander *h, struct hand_lane *lane, const char *tenant,
                                  const char *token, const atomic_bool *stop, struct error *err)
{
        const struct server_options *o = h->options;
        enum status st = ST_OK;

        lane->owner = h;
        lane->clients = calloc(o->peer_count, sizeof(struct http_client *));
        if (!lane->clients)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < o->peer_count; i++) {
                const struct http_client_options options = { .size = sizeof options,
                                                             .base_url = o->peers[i],
                                                             .ca_file = o->peer_ca,
                                                             .token = token,
                                                             .tenant = tenant,
                                                             .connect_timeout_ms = o->peer_timeout_ms,
                                                             .request_timeout_ms = HAND_ANSWER_MS,
                                                             .attempts = 1,
                                                             .stop = stop };

                st = http_client_create(&options, &lane->clients[i], err);
        }
        return st;
}

enum status commit_hander_create(const struct server_options *o, const struct tenant_configs *tenants,
                                 const atomic_bool *stop, struct commit_hander **ret, struct error *err)
{
        struct commit_hander *h = calloc(1, sizeof *h);
        _cleanup_free_ char *token = NULL;
        enum status st = ST_OK;

        if (!h)
                return error_no_memory(err);
        h->options = o;
        h->lane_count = 1 + (tenants ? tenants->count : 0);
        h->lanes = calloc(h->lane_count, sizeof *h->lanes);
        if (!h->lanes)
                st = error_no_memory(err);
        if (!st && o->peer_token_file)
                st = http_client_read_token(o->peer_token_file, &token, err);
        for (size_t i = 0; !st && i < h->lane_count; i++)
                st = open_hand_lane(h, &h->lanes[i],
                                    i         ? tenants->items[i - 1].name
                                    : tenants ? TENANT_DEFAULT
                                              : NULL,
                                    token, stop, err);
        if (st)
                commit_hander_destroy(h);
        else
                *ret = h;
        return st;
}

void commit_hander_set_store_options(struct commit_hander *h, size_t store, struct profile_store_options *options)
{
        options->hand = hand_to_holder;
        options->hand_context = &h->lanes[store];
}

void commit_hander_destroy(struct commit_hander *h)
{
        if (!h)
                return;
        for (size_t i = 0; h->lanes && i < h->lane_count; i++) {
                for (size_t k = 0; h->lanes[i].clients && k < h->options->peer_count; k++)
                        http_client_destroy(h->lanes[i].clients[k]);
                free(h->lanes[i].clients);
        }
        free(h->lanes);
        free(h);
}
