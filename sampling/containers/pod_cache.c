/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/containers/pod_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hash/id_table.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "common/threads/condition.h"
#include "http/service_thread.h"

#define MS_NS INT64_C(1000000)
#define REFRESH_MS 30000
#define EARLY_LIST_MS 5000 /* minimum time between two lists while a container is missing */
#define FIRST_PAUSE_MS 1000
#define LONGEST_PAUSE_MS 60000
#define CONNECT_TIMEOUT_MS 5000
#define REQUEST_TIMEOUT_MS 20000
#define MISSED_LISTS_MAX 3 /* lists without a container, after which it no longer triggers a request */
#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"
#define KUBELET_URL "http://127.0.0.1:10255"

struct pod_cache {
        struct service_thread service; /* its lock protects the members from list on */
        char *url, *node, *token_file, *path;
        struct pod_list list;
        uint32_t generation;    /* of the list; 0: none yet */
        struct id_table misses; /* negative cache: container ids and UIDs, by the first generation without them */
        bool list_requested;    /* request a list before the next one is due */
        struct pod_cache_stats stats;
        uint64_t pause_ms; /* after a failure; 0: none */
};

enum status pod_source_parse(const char *name, enum pod_source *ret)
{
        if (strcmp(name, "api") == 0)
                *ret = POD_SOURCE_API;
        else if (strcmp(name, "kubelet") == 0)
                *ret = POD_SOURCE_KUBELET;
        else
                return ST_USAGE;
        return ST_OK;
}

/* ---- requests ---- */

static enum status request_pods(struct pod_cache *c, struct pod_list *ret, struct error *err)
{
        const struct http_client_request request = {
                .method = "GET", .path = c->path, .max_response = LIMIT_KUBERNETES_LIST_BYTES, .no_redirects = true
        };
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        _cleanup_free_ char *token = NULL;
        enum status st = c->token_file ? http_client_read_token(c->token_file, &token, err) : ST_OK;

        if (!st)
                st = http_client_set_token(c->service.client, token, err);
        if (!st)
                st = http_client_send(c->service.client, &request, &response, err);
        if (st)
                return st;
        st = pod_list_parse(response.body.data, response.body.size, ret, err);
        return st ? error_prefix(err, st, "%s%s", c->url, c->path) : ST_OK;
}

/* Caller holds the lock. */
static void use_pod_list(struct pod_cache *c, struct pod_list *fresh)
{
        struct pod_list old = c->list;

        if (fresh->left_out && fresh->left_out != c->stats.left_out)
                log_warn("kubernetes", "%zu pods past a limit are left out", fresh->left_out);
        if (c->pause_ms || !c->generation)
                log_info("kubernetes", "%zu pods on node %s", fresh->count, c->node);
        c->list = *fresh;
        c->generation++;
        c->list_requested = false;
        c->pause_ms = 0;
        c->stats.lists++;
        c->stats.pods = c->list.count;
        c->stats.left_out = c->list.left_out;
        pod_list_deinit(&old);
}

static void note_request_failure(struct pod_cache *c, const struct error *err)
{
        if (!c->pause_ms)
                log_warn("kubernetes", "cannot list pods: %s; %s", PRINTABLE(err->text),
                         c->generation ? "the last list stays in use" : "samples have no pod labels until it succeeds");
        c->stats.failures++;
        c->pause_ms = !c->pause_ms                         ? FIRST_PAUSE_MS
                      : c->pause_ms < LONGEST_PAUSE_MS / 2 ? 2 * c->pause_ms
                                                           : LONGEST_PAUSE_MS;
}

/* Random jitter: between three quarters of the time and all of it, so that agents do not send requests in step. */
static int64_t choose_wait_ns(uint64_t ms)
{
        uint64_t random = 0;

        if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
                random = 0;
        return (int64_t)(ms - random % (ms / 4)) * MS_NS;
}

/* Wait until the next list is due, or until the stop flag is set. Caller holds the lock. */
static void wait_for_turn(struct pod_cache *c)
{
        int64_t now = monotonic_ns(), early = now + EARLY_LIST_MS * MS_NS;
        int64_t due = now + choose_wait_ns(c->pause_ms ? c->pause_ms : REFRESH_MS);

        while (!atomic_load(&c->service.stop)) {
                int64_t until = c->list_requested && !c->pause_ms && early < due ? early : due;

                if (monotonic_ns() >= until)
                        return;
                (void)condition_wait_until(&c->service.changed, &c->service.lock, until);
        }
}

static void *run_pod_cache(void *arg)
{
        struct pod_cache *c = arg;

        pthread_mutex_lock(&c->service.lock);
        while (!atomic_load(&c->service.stop)) {
                struct pod_list fresh = { 0 };
                struct error err = { 0 };
                enum status st;

                pthread_mutex_unlock(&c->service.lock);
                st = request_pods(c, &fresh, &err);
                pthread_mutex_lock(&c->service.lock);
                if (atomic_load(&c->service.stop))
                        pod_list_deinit(&fresh);
                else if (st)
                        note_request_failure(c, &err);
                else
                        use_pod_list(c, &fresh);
                wait_for_turn(c);
        }
        pthread_mutex_unlock(&c->service.lock);
        return NULL;
}

/* ---- settings ---- */

static enum status choose_pods_url(struct pod_cache *c, const struct pod_cache_options *o, struct error *err)
{
        const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
        bool is_v6 = host && strchr(host, ':');

        if (o->url || o->source == POD_SOURCE_KUBELET) {
                c->url = strdup(o->url ? o->url : KUBELET_URL);
                return c->url ? ST_OK : error_no_memory(err);
        }
        if (!host || !*host)
                return error_set(err, ST_USAGE,
                                 "option '--kubernetes api' needs '--kubernetes-url' outside of a pod: "
                                 "KUBERNETES_SERVICE_HOST is not set");
        if (asprintf(&c->url, "https://%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port ? port : "443") < 0) {
                c->url = NULL;
                return error_no_memory(err);
        }
        return ST_OK;
}

static enum status choose_pods_path(struct pod_cache *c, enum pod_source source, struct error *err)
{
        _cleanup_buf_ struct buf path;

        buf_init(&path, KiB(4));
        if (source == POD_SOURCE_KUBELET) {
                buf_append_str(&path, "/pods");
        } else { /* resourceVersion=0: from the API server's cache */
                buf_append_str(&path, "/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3D");
                http_client_escape(&path, c->node);
        }
        c->path = buf_cstr(&path) ? strdup(buf_cstr(&path)) : NULL;
        return c->path ? ST_OK : error_no_memory(err);
}

static enum status choose_node(struct pod_cache *c, const char *given, struct error *err)
{
        char name[256] = "";

        if (!given && gethostname(name, sizeof name - 1) < 0)
                return error_os(err, errno, "cannot read the host's name");
        c->node = strdup(given ? given : name);
        return c->node ? ST_OK : error_no_memory(err);
}

static enum status choose_token_file(struct pod_cache *c, const char *given, struct error *err)
{
        bool has_own = starts_with(c->url, "https://") && access(SERVICE_ACCOUNT "token", F_OK) == 0;

        if (!given && !has_own)
                return ST_OK;
        c->token_file = strdup(given ? given : SERVICE_ACCOUNT "token");
        if (given && http_client_exposes_token(c->url))
                log_warn("kubernetes", "the token goes to %s unencrypted; use https", c->url);
        return c->token_file ? ST_OK : error_no_memory(err);
}

static void free_pod_cache(struct pod_cache *c)
{
        pod_list_deinit(&c->list);
        id_table_deinit(&c->misses);
        free(c->url);
        free(c->node);
        free(c->token_file);
        free(c->path);
        free(c);
}

enum status pod_cache_create(const struct pod_cache_options *o, struct pod_cache **ret, struct error *err)
{
        struct pod_cache *c = calloc(1, sizeof *c);
        struct http_client_options http = {
                .size = sizeof http,
                .ca_file = o->ca_file,
                .user_agent = "cairn-agent/" CAIRN_VERSION,
                .connect_timeout_ms = CONNECT_TIMEOUT_MS,
                .request_timeout_ms = REQUEST_TIMEOUT_MS,
                .attempts = 1,
        };
        enum status st;

        if (!c)
                return error_no_memory(err);
        st = choose_pods_url(c, o, err);
        if (!st)
                st = choose_node(c, o->node, err);
        if (!st)
                st = choose_pods_path(c, o->source, err);
        if (!st)
                st = choose_token_file(c, o->token_file, err);
        if (!http.ca_file && access(SERVICE_ACCOUNT "ca.crt", F_OK) == 0)
                http.ca_file = SERVICE_ACCOUNT "ca.crt";
        http.base_url = c->url;
        if (!st)
                st = service_thread_init(&c->service, &http, err);
        if (st) {
                free_pod_cache(c);
                return st;
        }
        st = service_thread_start(&c->service, "cairn-pods", run_pod_cache, c, err);
        if (st) {
                pod_cache_destroy(c);
                return st;
        }
        *ret = c;
        return ST_OK;
}

void pod_cache_destroy(struct pod_cache *c)
{
        if (!c)
                return;
        if (!service_thread_stop(&c->service)) /* the thread uses c until the disk of its files responds */
                return;
        service_thread_deinit(&c->service);
        free_pod_cache(c);
}

const char *pod_cache_get_node(const struct pod_cache *c)
{
        return c->node;
}

/* ---- lookups ---- */

/* Caller holds the lock. */
static void note_missing_pod(struct pod_cache *c, const char *id)
{
        uint32_t first;

        if (!c->generation)
                return;
        if (c->misses.count >= LIMIT_KUBERNETES_MISSES)
                id_table_deinit(&c->misses);
        if (!id_table_find(&c->misses, id, strlen(id), &first)) {
                first = c->generation;
                if (!id_table_put(&c->misses, id, strlen(id), first))
                        return;
                c->stats.misses++;
        }
        if (c->generation - first < MISSED_LISTS_MAX && !c->list_requested) {
                c->list_requested = true;
                pthread_cond_broadcast(&c->service.changed);
        }
}

void pod_cache_find(struct pod_cache *c, const char *container_id, const char *uid, struct pod_match *match)
{
        struct pod_match found;

        if (!*container_id && !*uid)
                return;
        pthread_mutex_lock(&c->service.lock);
        found = pod_list_find(&c->list, container_id, uid);
        if (found.pod)
                pod_acquire(found.pod);
        /* Without a pod UID, the container is not managed by Kubernetes. */
        if (*uid && (!found.pod || (*container_id && !*found.container)))
                note_missing_pod(c, *container_id ? container_id : uid);
        pthread_mutex_unlock(&c->service.lock);
        if (!found.pod)
                return;
        /* The container was in an earlier list, so it has ended: keep its labels. */
        if (match->pod && *match->container && !*found.container) {
                pod_release(found.pod);
                return;
        }
        pod_release(match->pod);
        *match = found;
}

void pod_cache_get_stats(struct pod_cache *c, struct pod_cache_stats *ret)
{
        pthread_mutex_lock(&c->service.lock);
        *ret = c->stats;
        pthread_mutex_unlock(&c->service.lock);
}
