/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request of a store to a peer has a number. `begun` and `done` are the numbers of the last request that began and
 * that ended, `wanted` is the last one that a scan waits for: begun + 1, so that it begins after the scan did. The
 * thread of the peer serves the stores in turn.
 *
 * A peer is missing while it gives no answer at all; then none of its stores is asked for a second. An answer that one
 * store cannot use, such as a head that is too large, concerns the scans of this store only.
 *
 * Locks: p->lock for all members that change, released during requests. The stores are called without it.
 *
 * Order: metrics, requests, the thread, scans, the owner.
 */
#include "server/core/peers.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/threads/condition.h"
#include "http/http_client.h"
#include "query/engine/unit_text.h"

#define RETRY_NS INT64_C(1000000000) /* between requests to a peer that does not answer, or that is this node */
#define PAGES_MAX 1000               /* of one request */
#define SECOND_NS INT64_C(1000000000)

enum { PEER_UP, PEER_ANSWERED, PEER_FAILURES, PEER_METRICS };

static const struct metric metric_kinds[PEER_METRICS] = {
        [PEER_UP] = METRIC_GAUGE("cairn_peer_up", "1: the node answered the last request for its head.", ""),
        [PEER_ANSWERED] = METRIC_GAUGE("cairn_peer_answered_timestamp_seconds",
                                       "Unix time of the last answer of the node; 0: none.", ""),
        [PEER_FAILURES] = METRIC_COUNTER("cairn_peer_failures_total", "Requests to the node that failed.", ""),
};

/* The requests of one store to one peer. */
struct peer_slot {
        uint64_t wanted, begun, done;
        bool has_failed;  /* the last one */
        int64_t retry_ns; /* monotonic; after a failure */
        int64_t answered_unix_s;
};

struct peer {
        struct peers *owner;
        unsigned number;
        const char *url; /* borrowed from the options */
        struct http_client *client;
        pthread_t thread;
        bool thread_runs;
        struct peer_slot *slots; /* of each store */
        size_t next_slot;
        size_t failed_slots;
        bool is_missing, is_self;
        int64_t retry_ns;      /* monotonic; of a missing one */
        int64_t self_until_ns; /* monotonic; of this node: a proxy may answer for another one the next time */
        int64_t answered_unix_s;
        struct error failure;
        struct metric metrics[PEER_METRICS];
        char labels[300];
};

/* Context of struct profile_store_options.ask_peers. */
struct peer_asker {
        struct peers *owner;
        size_t store;
};

struct peers {
        struct peer *items;
        size_t count, store_count;
        struct peer_asker *askers;
        const struct tenants *tenants; /* NULL: not started */
        int64_t timeout_ns;
        pthread_mutex_t lock;
        pthread_cond_t wanted, answered;
        atomic_bool stopping;
};

/* ---- metrics ---- */

static void register_peer_metrics(struct peer *peer)
{
        size_t n = 0;

        n += (size_t)snprintf(peer->labels, sizeof peer->labels, "peer=\"");
        for (const char *c = peer->url; *c && n < sizeof peer->labels - 2; c++)
                if (*c != '"' && *c != '\\' && (unsigned char)*c > ' ')
                        peer->labels[n++] = *c;
        peer->labels[n] = '"';
        for (size_t i = 0; i < PEER_METRICS; i++) {
                peer->metrics[i].name = metric_kinds[i].name;
                peer->metrics[i].help = metric_kinds[i].help;
                peer->metrics[i].type = metric_kinds[i].type;
                peer->metrics[i].labels = peer->labels;
                metric_register(&peer->metrics[i]);
        }
}

/* ---- requests ---- */

/* What a request for the head of a store found; has_answered also when the answer was an error. */
struct head_answer {
        bool is_self, has_more, has_answered;
};

static enum status request_page(struct peer *peer, size_t store, struct head_answer *ret, struct error *err)
{
        const struct tenants *tenants = peer->owner->tenants;
        struct profile_store *profiles = tenants_get_stores(tenants)[store];
        char path[200], tenant[TENANT_NAME_SIZE + 32];
        const char *headers[] = { NULL, NULL };
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        const struct http_client_request request = { .method = "GET",
                                                     .path = path,
                                                     .headers = headers,
                                                     .max_response = LIMIT_HEAD_ANSWER_BYTES,
                                                     .no_redirects = true };
        struct head_mark mark;
        enum status st;

        profile_store_get_head_mark(profiles, peer->number, &mark);
        snprintf(path, sizeof path, "/api/v1/node/head?node=%s&after=%" PRIu64 "&tables=%s", mark.node, mark.after,
                 mark.tables);
        if (tenants_get_name(tenants, store)) {
                snprintf(tenant, sizeof tenant, TENANT_HEADER ": %s", tenants_get_name(tenants, store));
                headers[0] = tenant;
        }
        st = http_client_send(peer->client, &request, &response, err);
        ret->has_answered = response.code != 0;
        return st ? st
                  : profile_store_add_head(profiles, peer->number, response.body.data, response.body.size,
                                           &ret->is_self, &ret->has_more, err);
}

static enum status request_head(struct peer *peer, size_t store, struct head_answer *ret, struct error *err)
{
        enum status st = ST_OK;

        ret->has_more = true;
        for (int i = 0; !st && ret->has_more && i < PAGES_MAX; i++)
                st = request_page(peer, store, ret, err);
        if (!st && ret->has_more)
                st = error_set(err, ST_TOO_BIG, "its head has more than %d pages", PAGES_MAX);
        return st;
}

/* ---- the thread ---- */

/* Caller holds p->lock. */
static void note_peer_failure(struct peer *peer, struct peer_slot *slot, bool has_answered, const struct error *err)
{
        metric_add(&peer->metrics[PEER_FAILURES], 1);
        if (!peer->failed_slots)
                log_warn("peers", "%s does not answer: %s; queries lack what it acknowledges", peer->url, err->text);
        peer->failed_slots += !slot->has_failed;
        slot->has_failed = true;
        peer->failure = *err;
        slot->retry_ns = peer->retry_ns = monotonic_ns() + RETRY_NS;
        peer->is_missing = !has_answered;
}

/* Caller holds p->lock. */
static void note_peer_answer(struct peer *peer, struct peer_slot *slot, int64_t began_unix_s)
{
        slot->answered_unix_s = peer->answered_unix_s = began_unix_s;
        metric_set(&peer->metrics[PEER_ANSWERED], peer->answered_unix_s);
        peer->is_missing = false;
        if (!slot->has_failed)
                return;
        slot->has_failed = false;
        if (!--peer->failed_slots)
                log_info("peers", "%s answers again", peer->url);
}

/* Caller holds p->lock. */
static void note_identity(struct peer *peer, bool is_self)
{
        if (is_self)
                peer->self_until_ns = monotonic_ns() + RETRY_NS;
        if (peer->is_self && !is_self)
                log_warn("peers",
                         "%s was this node, and is another one now: give the address of each node, since behind a "
                         "common one only the node that answers is asked",
                         peer->url);
        peer->is_self = is_self;
}

/*
 * The next store with a request to make now; SIZE_MAX: none, *until_ret is the time of the next one, INT64_MAX when no
 * scan waits. What failed is asked again whether scans wait or not. Caller holds p->lock.
 */
static size_t find_wanted_slot(struct peer *peer, int64_t *until_ret)
{
        const struct peers *p = peer->owner;
        const int64_t now = monotonic_ns();

        *until_ret = peer->is_missing ? peer->retry_ns : INT64_MAX;
        for (size_t i = 0; (!peer->is_missing || now >= peer->retry_ns) && i < p->store_count; i++) {
                const size_t store = (peer->next_slot + i) % p->store_count;
                const struct peer_slot *slot = &peer->slots[store];

                if (slot->has_failed ? now >= slot->retry_ns : slot->wanted > slot->done) {
                        peer->next_slot = store + 1;
                        return store;
                }
                if (slot->has_failed && slot->retry_ns < *until_ret)
                        *until_ret = slot->retry_ns;
        }
        return SIZE_MAX;
}

static void serve_slot(struct peer *peer, size_t store)
{
        struct peers *p = peer->owner;
        struct peer_slot *slot = &peer->slots[store];
        struct head_answer answer = { 0 };
        struct error err = { 0 };
        int64_t began_unix_s = wall_clock_ns() / SECOND_NS;
        enum status st;

        slot->begun++;
        pthread_mutex_unlock(&p->lock);
        st = request_head(peer, store, &answer, &err);
        pthread_mutex_lock(&p->lock);
        slot->done = slot->begun;
        if (!st)
                note_identity(peer, answer.is_self);
        if (st)
                note_peer_failure(peer, slot, answer.has_answered, &err);
        else
                note_peer_answer(peer, slot, began_unix_s);
        metric_set(&peer->metrics[PEER_UP], !peer->failed_slots);
        pthread_cond_broadcast(&p->answered);
}

static void *run_peer(void *context)
{
        struct peer *peer = context;
        struct peers *p = peer->owner;

        prctl(PR_SET_NAME, "peer");
        pthread_mutex_lock(&p->lock);
        while (!p->stopping) {
                int64_t until_ns;
                size_t store = find_wanted_slot(peer, &until_ns);

                if (store != SIZE_MAX)
                        serve_slot(peer, store);
                else if (until_ns < INT64_MAX)
                        condition_wait_until(&p->wanted, &p->lock, until_ns);
                else
                        pthread_cond_wait(&p->wanted, &p->lock);
        }
        pthread_mutex_unlock(&p->lock);
        return NULL;
}

/* ---- scans ---- */

static void add_missing_peer(struct missing_nodes *ret, const struct peer *peer, const struct peer_slot *slot)
{
        struct missing_node *m = &ret->items[ret->count++];

        snprintf(m->name, sizeof m->name, "%s", peer->url);
        m->since_unix_s = slot->answered_unix_s;
}

static void ask_peers(void *context, struct missing_nodes *ret)
{
        const struct peer_asker *asker = context;
        struct peers *p = asker->owner;
        int64_t until_ns = monotonic_ns() + p->timeout_ns;
        uint64_t tickets[LIMIT_PEERS] = { 0 };
        bool is_in_time = true;

        pthread_mutex_lock(&p->lock);
        for (size_t i = 0; p->tenants && i < p->count; i++) {
                struct peer_slot *slot = &p->items[i].slots[asker->store];

                tickets[i] = p->items[i].is_self && monotonic_ns() < p->items[i].self_until_ns ? slot->done
                                                                                               : slot->begun + 1;
                if (slot->wanted < tickets[i])
                        slot->wanted = tickets[i];
        }
        pthread_cond_broadcast(&p->wanted);
        for (size_t i = 0; p->tenants && i < p->count; i++) {
                const struct peer *peer = &p->items[i];
                const struct peer_slot *slot = &peer->slots[asker->store];

                while (is_in_time && !p->stopping && !peer->is_missing && !slot->has_failed && slot->done < tickets[i])
                        is_in_time = condition_wait_until(&p->answered, &p->lock, until_ns);
                if (slot->done < tickets[i] || slot->has_failed)
                        add_missing_peer(ret, peer, slot);
        }
        pthread_mutex_unlock(&p->lock);
}

void peers_report(struct peers *p, struct readiness *r)
{
        struct error why = { 0 };
        bool is_missing = false;

        if (!p)
                return;
        pthread_mutex_lock(&p->lock);
        for (size_t i = 0; !is_missing && i < p->count; i++) {
                const struct peer *peer = &p->items[i];
                char since[32] = "the start";

                is_missing = peer->failed_slots;
                if (is_missing && peer->answered_unix_s)
                        format_time_utc(peer->answered_unix_s * SECOND_NS, since, sizeof since);
                if (is_missing)
                        error_set(&why, ST_BUSY, "%.80s does not answer since %s: %.100s", peer->url, since,
                                  peer->failure.text);
        }
        pthread_mutex_unlock(&p->lock);
        readiness_report(r, READY_PEER_MISSING, is_missing ? &why : NULL);
}

/* ---- the owner ---- */

static enum status create_peer_client(const struct server_options *o, const char *url, const char *token,
                                      const atomic_bool *stopping, struct http_client **ret, struct error *err)
{
        const struct http_client_options options = { .size = sizeof options,
                                                     .base_url = url,
                                                     .ca_file = o->peer_ca,
                                                     .token = token,
                                                     .connect_timeout_ms = o->peer_timeout_ms,
                                                     .request_timeout_ms = o->peer_timeout_ms,
                                                     .attempts = 1,
                                                     .stop = stopping };

        if (token && http_client_exposes_token(url))
                log_warn("peers", "the token goes to %s unencrypted; use https", url);
        return http_client_create(&options, ret, err);
}

static enum status init_peer(struct peers *p, unsigned number, const struct server_options *o, const char *token,
                             struct error *err)
{
        struct peer *peer = &p->items[number];
        enum status st;

        peer->owner = p;
        peer->number = number;
        peer->url = o->peers[number];
        peer->slots = calloc(p->store_count, sizeof *peer->slots);
        st = peer->slots ? create_peer_client(o, peer->url, token, &p->stopping, &peer->client, err)
                         : error_no_memory(err);
        if (st)
                free(peer->slots);
        else
                register_peer_metrics(peer);
        return st;
}

enum status peers_create(const struct server_options *o, size_t store_count, struct peers **ret, struct error *err)
{
        struct peers *p = calloc(1, sizeof *p);
        _cleanup_free_ char *token = NULL;
        enum status st = ST_OK;

        if (!p)
                return error_no_memory(err);
        pthread_mutex_init(&p->lock, NULL);
        pthread_cond_init(&p->wanted, NULL);
        pthread_cond_init(&p->answered, NULL);
        p->store_count = store_count;
        p->timeout_ns = (int64_t)o->peer_timeout_ms * 1000000;
        p->items = calloc(o->peer_count, sizeof *p->items);
        p->askers = calloc(store_count, sizeof *p->askers);
        if (!p->items || !p->askers)
                st = error_no_memory(err);
        for (size_t i = 0; !st && i < store_count; i++)
                p->askers[i] = (struct peer_asker){ p, i };
        if (!st && o->peer_token_file)
                st = http_client_read_token(o->peer_token_file, &token, err);
        for (; !st && p->count < o->peer_count; p->count++)
                st = init_peer(p, (unsigned)p->count, o, token, err);
        if (st)
                peers_destroy(p);
        else
                *ret = p;
        return st;
}

void peers_set_store_options(struct peers *p, size_t store, struct profile_store_options *options)
{
        options->peer_count = (unsigned)p->count;
        options->ask_peers = ask_peers;
        options->ask_context = &p->askers[store];
}

enum status peers_start(struct peers *p, const struct tenants *tenants, struct error *err)
{
        pthread_mutex_lock(&p->lock);
        p->tenants = tenants;
        pthread_mutex_unlock(&p->lock);
        for (size_t i = 0; i < p->count; i++) {
                int failed = pthread_create(&p->items[i].thread, NULL, run_peer, &p->items[i]);

                if (failed)
                        return error_os(err, failed, "cannot start a thread for '%s'", p->items[i].url);
                p->items[i].thread_runs = true;
        }
        return ST_OK;
}

void peers_stop(struct peers *p)
{
        if (!p)
                return;
        pthread_mutex_lock(&p->lock);
        atomic_store(&p->stopping, true);
        pthread_cond_broadcast(&p->wanted);
        pthread_cond_broadcast(&p->answered);
        pthread_mutex_unlock(&p->lock);
        for (size_t i = 0; i < p->count; i++)
                if (p->items[i].thread_runs)
                        pthread_join(p->items[i].thread, NULL);
        p->tenants = NULL;
}

void peers_destroy(struct peers *p)
{
        if (!p)
                return;
        for (size_t i = 0; p->items && i < p->count; i++) {
                for (size_t k = 0; k < PEER_METRICS; k++)
                        metric_unregister(&p->items[i].metrics[k]);
                http_client_destroy(p->items[i].client);
                free(p->items[i].slots);
        }
        pthread_mutex_destroy(&p->lock);
        pthread_cond_destroy(&p->wanted);
        pthread_cond_destroy(&p->answered);
        free(p->items);
        free(p->askers);
        free(p);
}
