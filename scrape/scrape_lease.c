/* SPDX-License-Identifier: Apache-2.0 */
#include "scrape/scrape_lease.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json/json_node.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/threads/condition.h"
#include "http/service_thread.h"

#define DEFAULT_LEASE_MS 60000 /* until the first answer */
#define LEASE_MOST_MS 86400000 /* of an answer */
#define RENEWALS 3             /* in the time of a lease; another scraper looks as often */
#define CONFIRMATIONS 12       /* likewise; after a failure it asks as often, too */
#define REQUEST_MS 10000

static struct metric failures =
        METRIC_COUNTER("cairn_scrape_lease_failures_total", "Requests about the lease that had no answer.", "");

struct scrape_lease {
        struct scrape_lease_options o;
        struct service_thread service; /* its lock protects `state` */
        struct scrape_lease_state state;
        /* of the thread */
        uint64_t epoch; /* 0: not held */
        uint64_t terms; /* in which this scraper had the lease; epochs may begin anew when their objects are removed */
        uint64_t lease_ms;
        int64_t renewed_ns; /* monotonic, before the request */
        bool is_expired;    /* the last answer was that nobody renews it */
        bool has_failed;
};

/* ---- one request ---- */

struct lease_answer {
        bool is_held, is_expired;
        bool is_away; /* 503: the service, or a proxy before it, says that it or its tables are away */
        uint64_t epoch, lease_ms;
        char holder[96];
};

static enum status parse_lease_answer(const struct http_client_response *r, struct lease_answer *ret, struct error *err)
{
        const struct json_node *root;
        struct arena arena;
        const char *holder;

        arena_init(&arena, KiB(64));
        root = json_node_parse(r->body.data, r->body.size, &arena);
        if (root) {
                holder = json_node_text(root, "holder");
                *ret = (struct lease_answer){ .is_held = json_node_flag(root, "held"),
                                              .is_expired = json_node_flag(root, "expired"),
                                              .epoch = json_node_uint(root, "epoch"),
                                              .lease_ms = json_node_uint(root, "lease_ms") };
                snprintf(ret->holder, sizeof ret->holder, "%s", holder ? holder : "");
        }
        arena_deinit(&arena);
        if (!root || !ret->lease_ms || ret->lease_ms > LEASE_MOST_MS || ret->is_held != (ret->epoch != 0))
                return error_set(err, ST_BAD_DATA, "the response is not about a lease; check --server");
        return ST_OK;
}

static enum status ask_for_lease(struct scrape_lease *l, const char *action, struct lease_answer *ret,
                                 struct error *err)
{
        char path[256];
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        const struct http_client_request request = { .method = "POST", .path = path, .no_redirects = true };
        enum status st;

        snprintf(path, sizeof path, "/api/v1/scrape/lease?name=%s&holder=%s&epoch=%" PRIu64 "&action=%s", l->o.name,
                 l->state.self, l->epoch, action);
        st = http_client_send(l->service.client, &request, &response, err);
        *ret = (struct lease_answer){ .is_away = response.code == 503 };
        if (response.code == 404)
                return error_set(err, st, "the service has no leases for scrapers: it is of an earlier release");
        return st ? st : parse_lease_answer(&response, ret, err);
}

/* ---- the holder, and others ---- */

static int64_t get_lease_ns(const struct scrape_lease *l)
{
        return (int64_t)l->lease_ms * 1000000;
}

static void publish_lease_state(struct scrape_lease *l, const char *holder, const char *error)
{
        pthread_mutex_lock(&l->service.lock);
        l->state.is_held = l->epoch;
        snprintf(l->state.holder, sizeof l->state.holder, "%s", l->epoch ? l->state.self : holder);
        snprintf(l->state.error, sizeof l->state.error, "%s", error);
        pthread_mutex_unlock(&l->service.lock);
}

static void note_lease_failure(struct scrape_lease *l, const struct lease_answer *a, int64_t began_ns,
                               const struct error *err)
{
        metric_add(&failures, 1);
        if (!l->has_failed)
                log_warn("scrape", "lease '%s': %s; asking again", l->o.name, err->text);
        l->has_failed = true;
        l->is_expired = false;
        if (l->epoch && a->is_away)
                scraper_permit(l->o.scraper, l->terms, began_ns + get_lease_ns(l));
        publish_lease_state(l, "", err->text);
}

static void note_loss(struct scrape_lease *l, const struct lease_answer *a)
{
        log_warn("scrape",
                 "lease '%s': %s has it, so this scraper stops, and discards what it scraped since the last answer",
                 l->o.name, *a->holder ? a->holder : "another scraper");
        l->epoch = 0;
        scraper_revoke(l->o.scraper);
}

/* @param began_ns  before the request. */
static void note_held(struct scrape_lease *l, const struct lease_answer *a, bool is_renewal, int64_t began_ns)
{
        if (!l->epoch) {
                log_info("scrape", "lease '%s': this scraper has it (epoch %" PRIu64 ") and scrapes", l->o.name,
                         a->epoch);
                l->terms++;
                is_renewal = true;
        }
        l->epoch = a->epoch;
        if (is_renewal)
                l->renewed_ns = began_ns;
        scraper_permit(l->o.scraper, l->terms, l->renewed_ns + get_lease_ns(l));
        scraper_confirm(l->o.scraper, began_ns);
}

static void note_lease_answer(struct scrape_lease *l, const struct lease_answer *a, bool is_renewal, int64_t began_ns)
{
        bool is_lost = l->epoch && l->epoch != a->epoch; /* without the lease, the answer has no epoch */

        if (l->has_failed)
                log_info("scrape", "lease '%s': the service answers again", l->o.name);
        l->has_failed = false;
        l->lease_ms = a->lease_ms;
        /* What delayed this answer may have delayed the holder's renewal. */
        l->is_expired = a->is_expired && monotonic_ns() - began_ns < get_lease_ns(l) / RENEWALS;
        if (is_lost)
                note_loss(l, a);
        if (a->is_held)
                note_held(l, a, is_renewal, began_ns);
        else if (!is_lost && strcmp(l->state.holder, a->holder) != 0)
                log_info("scrape", "lease '%s': %s has it, this scraper waits", l->o.name,
                         *a->holder ? a->holder : "another scraper");
        publish_lease_state(l, a->holder, "");
}

/* @return when to ask the next time. */
static int64_t ask_once(struct scrape_lease *l)
{
        int64_t began_ns = monotonic_ns(), period_ns = get_lease_ns(l) / RENEWALS;
        bool is_renewal = l->epoch ? began_ns - l->renewed_ns >= period_ns : l->is_expired;
        struct lease_answer a;
        struct error err = { 0 };

        if (ask_for_lease(l, is_renewal ? "renew" : "check", &a, &err)) {
                if (!atomic_load(&l->service.stop))
                        note_lease_failure(l, &a, began_ns, &err);
        } else {
                note_lease_answer(l, &a, is_renewal, began_ns);
        }
        return began_ns + get_lease_ns(l) / (l->epoch || l->has_failed ? CONFIRMATIONS : RENEWALS);
}

static void *run_scrape_lease(void *arg)
{
        struct scrape_lease *l = arg;

        while (!atomic_load(&l->service.stop)) {
                int64_t next_ns = ask_once(l);

                pthread_mutex_lock(&l->service.lock);
                while (!atomic_load(&l->service.stop) &&
                       condition_wait_until(&l->service.changed, &l->service.lock, next_ns))
                        ;
                pthread_mutex_unlock(&l->service.lock);
        }
        return NULL;
}

/* ---- start and stop ---- */

/* HOSTNAME-RANDOM, with the characters that the service accepts. */
static enum status name_scraper(char *ret, size_t size, struct error *err)
{
        char host[65] = "";
        uint64_t random;

        if (getrandom(&random, sizeof random, 0) != sizeof random)
                return error_os(err, errno, "cannot get random bytes");
        if (gethostname(host, sizeof host - 1))
                snprintf(host, sizeof host, "unknown");
        for (char *p = host; *p; p++)
                if (!(*p >= 'a' && *p <= 'z') && !(*p >= 'A' && *p <= 'Z') && !(*p >= '0' && *p <= '9') && *p != '.')
                        *p = '-';
        snprintf(ret, size, "%s-%016" PRIx64, host, random);
        return ST_OK;
}

enum status scrape_lease_start(const struct scrape_lease_options *o, struct scrape_lease **ret, struct error *err)
{
        struct scrape_lease *l = calloc(1, sizeof *l);
        struct http_client_options client = { .size = sizeof client,
                                              .base_url = o->server,
                                              .ca_file = o->ca_file,
                                              .token = o->token,
                                              .tenant = o->tenant,
                                              .user_agent = "cairn-scrape/" CAIRN_VERSION,
                                              .request_timeout_ms = REQUEST_MS,
                                              .attempts = 1 };
        enum status st;

        if (!l)
                return error_no_memory(err);
        metric_register(&failures);
        l->o = *o;
        l->lease_ms = DEFAULT_LEASE_MS;
        l->state.name = o->name;
        st = name_scraper(l->state.self, sizeof l->state.self, err);
        if (!st)
                st = service_thread_init(&l->service, &client, err);
        if (!st)
                st = service_thread_start(&l->service, "lease", run_scrape_lease, l, err);
        if (st) {
                if (l->service.client)
                        service_thread_deinit(&l->service);
                free(l);
                return st;
        }
        *ret = l;
        return ST_OK;
}

void scrape_lease_stop(struct scrape_lease *l)
{
        int64_t began_ns;
        struct lease_answer a;
        struct error err;

        if (!service_thread_stop(&l->service) || !l->epoch)
                return;
        atomic_store(&l->service.stop, false); /* which would end this request */
        began_ns = monotonic_ns();
        if (ask_for_lease(l, "end", &a, &err))
                log_warn("scrape", "lease '%s': %s; what is not confirmed is discarded", l->o.name, err.text);
        else if (a.is_held)
                scraper_confirm(l->o.scraper, began_ns);
        scraper_revoke(l->o.scraper);
        l->epoch = 0;
        publish_lease_state(l, "", "");
}

void scrape_lease_destroy(struct scrape_lease *l)
{
        if (!l)
                return;
        if (service_thread_stop(&l->service))
                service_thread_deinit(&l->service);
        free(l);
}

void scrape_lease_get_state(struct scrape_lease *l, struct scrape_lease_state *ret)
{
        pthread_mutex_lock(&l->service.lock);
        *ret = l->state;
        pthread_mutex_unlock(&l->service.lock);
}
