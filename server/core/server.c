/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_run() is the life of the service, in the main thread. Start: options and memory limits, blocked signals,
 * access control, data directory lock, debuginfo spaces, tenants with their profile stores (which refer to the
 * spaces), threads of the spaces, HTTP, gRPC, ready. Then wait_for_end_signal() runs about once a second: watchdog,
 * clock, heap, progress of --scan, reload, and log lines for failures of parts that do not log themselves.
 * close_server() sets the stop flags first and ends HTTP and gRPC before the stores; tenants are closed before the
 * spaces, since their last flush looks up symbols.
 *
 * Handlers are in server/api; this file has the callbacks of each HTTP request: identify, authorize, admit, choose the
 * tenant, finish, audit. They run in HTTP threads; nothing here holds a lock.
 *
 * Order: clock steps, callbacks, opening of the parts, HTTP, running and closing, signals and limits, server_run().
 */
#include "profile-store/tables/table_storage.h"
#include "server/core/server.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/compress/content_coding.h"
#include "common/files/data_format.h"
#include "common/files/file.h"
#include "common/files/output_file.h"
#include "common/memory/memory_budget.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/program/service_notify.h"
#include "common/stable_clock.h"
#include "common/text/number_text.h"
#include "debuginfo-store/federation/fetch.h"
#include "http/http_server.h"
#include "http/listen.h"
#include "sandbox/worker.h"
#include "server/access/audit.h"
#include "server/access/identify.h"
#include "server/core/data_lock.h"
#include "server/core/grpc_listener.h"
#include "server/core/heap_trim.h"
#include "server/core/ingest.h"
#include "server/core/query_work.h"
#include "server/core/receive_upload.h"
#include "server/core/reload.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/core/share_store.h"
#include "server/core/start_signals.h"
#include "storage/s3/s3_storage.h"

/* ---- wall clock steps ---- */

struct clock_watch {
        uint64_t steps; /* already logged */
};

static struct metric steps =
        METRIC_COUNTER("cairn_clock_steps_total", "Steps of the wall clock by a minute or more.", "");
static struct metric held = METRIC_GAUGE(
        "cairn_clock_held_seconds", "Seconds of a forward step of the wall clock that do not count as age yet.", "");

static void log_clock_steps(struct clock_watch *w)
{
        int64_t held_s, left_s;
        uint64_t count;
        bool is_held = stable_clock_is_held(&held_s, &left_s, &count);

        metric_register(&steps);
        metric_set(&held, held_s);
        if (count == w->steps)
                return;
        metric_add(&steps, (int64_t)(count - w->steps));
        w->steps = count;
        if (is_held)
                log_warn("clock",
                         "the wall clock stepped forward by %" PRId64
                         " s; deletion by age ignores the step for %" PRId64
                         " s more, in case it is wrong: check the time synchronization, or restart to accept the step",
                         held_s, left_s);
        else
                log_warn("clock", "the wall clock was set; check the time synchronization");
}

#define DESCRIPTORS_MAX 65536
#define BACKGROUND_NICENESS 10 /* of thread pools other than ingest and status */
#define MALLOC_MMAP_BYTES (256 << 10)
#define MALLOC_TRIM_BYTES (1 << 20)
/* With this much memory, 3% of it may stay with the allocator: else short queries map and clear the same blocks again.
 */
#define MALLOC_LARGE_LIMIT_BYTES GiB(2)
#define MALLOC_LARGE_MMAP_BYTES (4 << 20)
#define MALLOC_LARGE_TRIM_BYTES (8 << 20)
#define MALLOC_ARENAS 8

/* ---- callbacks between the parts ---- */

static void audit_http_request(void *context, const struct http_request *req, unsigned code)
{
        const struct http_route *route = http_route(req);

        (void)context;
        audit_request(&(struct audited_request){ .code = code,
                                                 .method = http_method(req),
                                                 .target = http_uri(req),
                                                 .token_name = http_token_name(req),
                                                 .peer = http_peer(req),
                                                 .writes = route && route->writes,
                                                 .is_open = route && route->scope == SCOPE_NONE });
}

static void identify_request(void *context, struct http_request *req)
{
        struct server *s = context;

        access_identify(&s->access_control, req);
}

static enum http_access authorize_request(void *context, const struct http_request *req, enum http_scope scope,
                                          char name_ret[static HTTP_TOKEN_NAME_SIZE])
{
        struct server *s = context;

        return access_authorize(&s->access_control, http_sender(req), scope, name_ret);
}

static uint64_t admit_request(void *context, const struct http_request *req, uint64_t bytes, struct error *err)
{
        struct server *s = context;

        return admission_admit(s->access_control.admission, http_sender(req), bytes, err);
}

/* Whether tenants get different answers to the same request. */
static bool does_answer_vary(const struct server *s, enum http_tenancy tenancy)
{
        return tenancy == TENANCY_OWN ? tenants_count(s->tenants) > 1
                                      : tenancy == TENANCY_SPACE && debuginfo_spaces_count(s->spaces) > 1;
}

static void select_http_tenant(void *context, struct http_request *req)
{
        struct server *s = context;
        struct tokens *tokens = s->access_control.tokens;
        char token_tenant[TENANT_NAME_SIZE];
        struct tenant_request r = { .header = http_count_headers(req, TENANT_HEADER) > 1
                                                      ? ""
                                                      : http_header(req, TENANT_HEADER),
                                    .token_tenant = tokens ? token_tenant : NULL,
                                    .tenancy = http_route(req)->tenancy };
        struct tenant *tenant;
        char retry_after[24];
        struct error err;
        unsigned refused;
        uint64_t wait_s;

        if (tokens && !access_get_tenant(&s->access_control, http_sender(req), http_route(req)->scope, token_tenant)) {
                http_fail_code(req, 401, "bad_token", "the token file changed: the token no longer has the scope");
                return;
        }
        refused = tenants_choose(s->tenants, &r, &tenant, &err);
        if (refused) {
                http_fail_code(req, refused, "tenant", "%s", err.text);
                return;
        }
        wait_s = tenants_admit(s->tenants, tenant, http_route(req)->scope, http_admitted_bytes(req), &err);
        if (!wait_s) {
                http_set_tenant(req, tenant, tenant->lane);
                http_set_body_group(req, get_body_group(s->tenants, tenant, http_route(req)->scope));
                if (http_route(req)->cacheable && does_answer_vary(s, r.tenancy))
                        http_set_header(req, "Vary", "Authorization, " TENANT_HEADER);
                return;
        }
        snprintf(retry_after, sizeof retry_after, "%" PRIu64, wait_s);
        http_set_header(req, "Retry-After", retry_after);
        http_fail_code(req, 429, "rate", "%s", err.text);
}

static void finish_request(void *context, const struct http_request *req)
{
        const struct request_sender *sender = http_sender(req);
        struct server *s = context;

        if (sender)
                admission_finished(s->access_control.admission, sender, http_admitted_bytes(req),
                                   http_received_bytes(req));
        if (http_tenant(req))
                tenants_finish(s->tenants, http_tenant(req), http_route(req)->scope, http_admitted_bytes(req),
                               http_received_bytes(req));
}

static void expire_shares(void *context)
{
        struct server *s = context;

        tenants_expire_shares(s->tenants);
}

/* ---- opening ---- */

static enum status start_readiness(struct server *s, struct error *err)
{
        struct profile_store *const *stores = tenants_get_stores(s->tenants);
        struct readiness_store watched[1 + LIMIT_TENANTS];
        size_t count = tenants_count(s->tenants);

        for (size_t i = 0; i < count; i++)
                watched[i] = (struct readiness_store){ tenants_get_name(s->tenants, i), stores[i],
                                                       s->options->roles & ROLE_GATEWAY };
        return readiness_start(s->options->read_only ? NULL : s->options->dir, watched, count, &s->readiness, err);
}

static enum status open_tenants(struct server *s, struct error *err)
{
        struct tenants_options o = { .server = s->options, .configs = s->access_control.tenants, .spaces = s->spaces };
        enum status st = ST_OK;

        if (s->options->peer_count && s->options->roles & ROLE_QUERY)
                st = peers_create(s->options, 1 + (o.configs ? o.configs->count : 0), &s->peers, err);
        if (!st && s->options->peer_count && s->options->roles & ROLE_INGEST)
                st = commit_hander_create(s->options, o.configs, tenants_get_drain_flag(), &s->hander, err);
        if (!st && s->options->roles & ROLE_GATEWAY)
                st = forwarder_create(s->options, o.configs, tenants_get_drain_flag(), &s->forwarder, err);
        o.peers = s->peers;
        o.hander = s->hander;
        o.forwarder = s->forwarder;
        if (!st)
                st = tenants_open(&o, &s->tenants, err);
        if (!st && s->peers)
                st = peers_start(s->peers, s->tenants, err);
        return st ? st : start_readiness(s, err);
}

static enum status open_spaces(struct server *s, struct error *err)
{
        const struct debuginfo_spaces_options o = { .server = s->options,
                                                    .configs = s->access_control.tenants,
                                                    .scratch_dir = s->scratch_dir,
                                                    .stopping = &s->stopping,
                                                    .hourly = expire_shares,
                                                    .context = s };

        return debuginfo_spaces_open(&o, &s->spaces, err);
}

static enum status open_stores(struct server *s, struct error *err)
{
        const char *dir = s->options->dir;
        enum status st;

        s3_storage_set_stop(tenants_get_drain_flag());
        s->scratch_dir = path_join(dir, "tmp");
        if (!s->scratch_dir)
                return error_no_memory(err);
        st = data_format_check(dir, err);
        if (st)
                return st;
        if (!s->options->read_only || s->options->store) { /* a replica has a directory of its own */
                st = file_make_dirs(s->scratch_dir, err);
                if (!st)
                        st = lock_data_dir(dir, &s->lock_fd, err);
                if (!st)
                        st = data_format_write(dir, err);
        }
        if (!st)
                st = open_spaces(s, err);
        return st ? st : open_tenants(s, err);
}

/* The value of an option; 0: its default. */
static unsigned choose_limit(uint64_t chosen, unsigned usual)
{
        return chosen ? (unsigned)chosen : usual;
}

void apply_server_limits(const struct server_options *o)
{
        set_upload_limits(o->max_upload_bytes, o->max_uploads);
        fetch_set_time_limit(o->upstream_timeout_s);
        set_table_cache_limit(o->table_cache_bytes);
        set_debuginfo_cache_limit(o->table_cache_bytes);
        set_debuginfo_upload_threads(choose_limit(o->upload_threads, LIMIT_UPLOAD_THREADS));
        worker_set_cpu_limit(o->worker_cpu_s);
}

/* A node has the pools of its roles. */
static void leave_out_pools(const struct server *s, struct http_pool_options pools[static POOL_COUNT], size_t routes)
{
        for (unsigned pool = 0; pool < POOL_COUNT; pool++)
                pools[pool].is_unused =
                        pool != POOL_STATUS && !(s->options->listen_otlp_grpc && is_grpc_pool(pool, s->options->roles));
        for (size_t i = 0; i < routes; i++)
                pools[s->routes[i].pool].is_unused = false;
}

static enum status start_http(struct server *s, const struct listen_address *listen, struct error *err)
{
        const struct server_options *c = s->options;
        struct http_pool_options pools[POOL_COUNT] = {
                [POOL_QUERY] = { "query", 0, LIMIT_POOL_QUEUE, (unsigned)c->query_timeout_s, BACKGROUND_NICENESS, 0,
                                 false },
                [POOL_STATUS] = { "status", 2, LIMIT_POOL_QUEUE, LIMIT_STATUS_S, 0, 0, false },
                [POOL_INGEST] = { "ingest", 0, LIMIT_POOL_QUEUE, LIMIT_INGEST_S, 0, LIMIT_POOL_SPARE_THREADS, false },
                [POOL_UPLOAD] = { "upload",
                                  choose_limit(c->upload_threads, LIMIT_UPLOAD_THREADS) +
                                          (c->store ? LIMIT_WAITING_UPLOADS : 0),
                                  LIMIT_POOL_QUEUE, LIMIT_UPLOAD_S, BACKGROUND_NICENESS, 0, false },
                [POOL_SYMBOLIZE] = { "symbolize", 0, LIMIT_POOL_QUEUE,
                                     choose_limit(c->symbolize_timeout_s, LIMIT_SYMBOLIZE_S), BACKGROUND_NICENESS, 0,
                                     false },
                [POOL_DEBUGINFOD] = { "debuginfod", choose_limit(c->debuginfod_threads, LIMIT_DEBUGINFOD_THREADS),
                                      LIMIT_POOL_QUEUE, LIMIT_DEBUGINFOD_S, BACKGROUND_NICENESS, 0, false },
                [POOL_ADMIN] = { "admin", LIMIT_ADMIN_THREADS, LIMIT_POOL_QUEUE, LIMIT_ADMIN_S, BACKGROUND_NICENESS, 0,
                                 false },
        };
        const struct http_options o = { .pools = pools,
                                        .pool_count = POOL_COUNT,
                                        .lanes = (unsigned)tenants_count(s->tenants),
                                        .size = sizeof o,
                                        .host = listen->host,
                                        .port = listen->port,
                                        .identify = identify_request,
                                        .authorize = s->access_control.tokens ? authorize_request : NULL,
                                        .tls = s->access_control.tls,
                                        .check_host = !s->access_control.tokens || s->options->allowed_host_count,
                                        .allowed_hosts = s->options->allowed_hosts,
                                        .allowed_host_count = s->options->allowed_host_count,
                                        .allowed_origins = s->options->cors_origins,
                                        .allowed_origin_count = s->options->cors_origin_count,
                                        .trusted_proxies = s->options->trusted_proxies,
                                        .trusted_proxy_count = s->options->trusted_proxy_count,
                                        .admit = admit_request,
                                        .choose_tenant = select_http_tenant,
                                        .decode_body = content_coding_decode,
                                        .finished = finish_request,
                                        .answered = audit_http_request,
                                        .max_connections = (unsigned)s->options->max_connections,
                                        .max_per_address = (unsigned)s->options->max_per_address,
                                        .context = s };
        size_t count;
        enum status st = routes_join(c->read_only, c->roles, &s->routes, &count, err);

        if (!st)
                leave_out_pools(s, pools, count);
        return st ? st : http_server_start(&o, s->routes, count, s, &s->http, err);
}

/* ---- running ---- */

/* Sets all stop flags first, so that no part waits for a part that has stopped. */
static void close_server(struct server *s)
{
        service_notify_stopping();
        atomic_store(&s->ready, false);
        atomic_store(&s->stopping, true);
        tenants_begin_drain(s->tenants);
        grpc_server_stop(s->grpc); /* before s->http, whose threads handle its calls */
        http_server_stop(s->http);
        self_profile_stop(s->self_profile);
        debuginfo_spaces_stop(s->spaces);
        readiness_stop(s->readiness);
        peers_stop(s->peers);
        tenants_close(s->tenants);
        peers_destroy(s->peers);
        commit_hander_destroy(s->hander);
        forwarder_destroy(s->forwarder);
        debuginfo_spaces_close(s->spaces);
        access_close(&s->access_control);
        free(s->routes);
        free(s->grpc_methods);
        free(s->scratch_dir);
        if (s->lock_fd >= 0)
                close(s->lock_fd);
}

/* Register histograms before their first observation, so that their rates include it. */
static void register_histograms(void)
{
        register_ingest_duration();
        register_upload_duration();
        metric_register(&symbolize_duration.metric);
        file_register_sync_metrics();
}

static enum status announce_ready(struct server *s, const struct listen_address *listen, struct error *err)
{
        bool v6 = strchr(listen->host, ':') != NULL;
        unsigned number = http_server_port(s->http);
        char roles[NODE_ROLES_TEXT], port[8];

        if (s->options->roles != ROLE_ALL)
                log_info("serve", "this node has the roles %s", node_roles_write(s->options->roles, roles));
        log_info("serve", "listening on %s://%s%s%s:%u, data in %s%s%s", s->access_control.tls ? "https" : "http",
                 v6 ? "[" : "", listen->host, v6 ? "]" : "", number, s->options->dir,
                 s->options->read_only ? ", read-only" : "", s->access_control.tokens ? "" : ", no tokens");
        reload_register_metrics();
        node_roles_publish(s->options->roles);
        register_histograms();
        atomic_store(&s->ready, true);
        service_notify_ready();
        if (!s->options->port_file)
                return ST_OK;
        snprintf(port, sizeof port, "%u\n", number);
        return output_file_write(s->options->port_file, OUTPUT_OF_SERVICE, port, strlen(port), err);
}

/* A failure is logged: the service runs without its profile. */
static void start_self_profile(struct server *s)
{
        struct error err;

        if (self_profile_start(s->tenants, &s->self_profile, &err))
                log_warn("self-profile", "%s; serving without --self-profile", err.text);
        else
                log_info("self-profile", "sampling this service into its tables, as service_name=\"%s\"",
                         SELF_PROFILE_SERVICE);
}

static enum status start_server(struct server *s, const struct listeners *listen, struct error *err)
{
        bool is_loopback = listen->http.is_loopback && listen->grpc.is_loopback;
        enum status st = access_open(&s->access_control, s->options, is_loopback, err);

        apply_server_limits(s->options);
        if (!st)
                st = open_stores(s, err);
        if (!st)
                st = debuginfo_spaces_start(s->spaces, tenants_get_stores(s->tenants), err);
        if (!st)
                st = start_http(s, &listen->http, err);
        if (!st && s->options->listen_otlp_grpc)
                st = start_grpc_listener(s, &listen->grpc, err);
        if (!st && s->options->self_profile)
                start_self_profile(s);
        return st ? st : announce_ready(s, &listen->http, err);
}

/* Counters of failures, as of the last log lines. */
struct logged_failures {
        uint64_t flushes[1 + LIMIT_TENANTS], damaged_lookups;
};

static void log_flush_failure(const char *tenant, const struct profile_store_stat *now)
{
        log_error("store", "%s%s%scannot flush: %s; retrying, queued batches are safe", tenant ? "tenant " : "",
                  tenant ? tenant : "", tenant ? ": " : "", now->last_failure);
}

/* Log failures of the profile stores, which do not log themselves. */
static void log_store_failures(struct server *s, struct logged_failures *logged)
{
        size_t count = tenants_count(s->tenants);
        _cleanup_free_ struct profile_store_stat *now = calloc(count, sizeof *now);

        if (!now)
                return;
        readiness_get_store_stats(s->readiness, now);
        for (size_t i = 0; i < count; i++) {
                if (now[i].failed_flushes > logged->flushes[i]) {
                        log_flush_failure(tenants_get_name(s->tenants, i), &now[i]);
                        logged->flushes[i] = now[i].failed_flushes;
                }
        }
        if (now[0].damaged_lookups <= logged->damaged_lookups) /* a counter of the process: equal in all stores */
                return;
        log_error("index",
                  "%s damage in the symbol index; their addresses stay unresolved. Stop the service and remove "
                  "'%s/index'%s: the index is rebuilt from the stored objects",
                  COUNTED((now[0].damaged_lookups - logged->damaged_lookups), "lookup found", "lookups found"),
                  s->options->dir,
                  debuginfo_spaces_count(s->spaces) > 1
                          ? ", or the one below tenants/NAME that 'cairn index verify --tenant NAME' reports"
                          : "");
        logged->damaged_lookups = now[0].damaged_lookups;
}

/* Called periodically, not by the handler of /readyz, because the indexer's lock may wait for the disk. */
static void report_indexing(struct server *s)
{
        struct error why;

        readiness_report(s->readiness, READY_INDEX_FAILING,
                         debuginfo_spaces_are_blocked(s->spaces, &why) ? &why : NULL);
}

/* Otherwise the thread of garbage collection does it, which a node has with its index. */
static void expire_shares_without_gc(struct server *s, int64_t *next_ns)
{
        if (s->options->read_only || s->options->roles & ROLE_SYMBOLIZE || !(s->options->roles & ROLE_QUERY))
                return;
        if (monotonic_ns() < *next_ns)
                return;
        *next_ns = monotonic_ns() + INT64_C(3600000000000);
        expire_shares(s);
}

/* Returns the signal that ends the service. */
static int wait_for_end_signal(struct server *s, const sigset_t *signals)
{
        int watchdog_ms = service_notify_interval_ms(), ms = watchdog_ms < 0 || watchdog_ms > 1000 ? 1000 : watchdog_ms;
        const struct timespec moment = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
        struct logged_failures logged = { 0 };
        struct package_scan *scan = debuginfo_spaces_get_scan(s->spaces);
        struct clock_watch clock = { 0 };
        struct heap_trim heap = { 0 };
        int64_t next_expiry_ns = 0;

        for (;;) {
                service_notify_alive();
                log_clock_steps(&clock);
                heap_trim_check(&heap);
                expire_shares_without_gc(s, &next_expiry_ns);
                if (scan)
                        package_scan_check_progress(scan);
                int got = sigtimedwait(signals, NULL, &moment);

                if (got == SIGHUP)
                        server_reload(s);
                else if (got == SIGUSR1 && scan)
                        package_scan_request_run(scan);
                else if (got > 0 && got != SIGUSR1)
                        return got;
                log_store_failures(s, &logged);
                report_indexing(s);
                peers_report(s->peers, s->readiness);
        }
}

/* /readyz answers 503, so that a proxy sends new requests elsewhere. A second signal ends the time. */
static void wait_for_proxies(struct server *s, const sigset_t *signals)
{
        int64_t until_ns = monotonic_ns() + (int64_t)s->options->shutdown_delay_s * 1000000000;
        int64_t left_ns;

        atomic_store(&s->ready, false);
        while ((left_ns = until_ns - monotonic_ns()) > 0) {
                const struct timespec moment = { .tv_sec = left_ns > 1000000000,
                                                 .tv_nsec = left_ns > 1000000000 ? 0 : left_ns };
                int got = sigtimedwait(signals, NULL, &moment);

                service_notify_alive();
                if (got == SIGTERM || got == SIGINT)
                        return;
        }
}

/* Descriptors limit the number of connections. The usual soft limit of 1024 exists for programs that use select(). */
static void raise_descriptors(void)
{
        struct rlimit l;

        if (getrlimit(RLIMIT_NOFILE, &l))
                return;
        l.rlim_cur = l.rlim_max < DESCRIPTORS_MAX ? l.rlim_max : DESCRIPTORS_MAX;
        setrlimit(RLIMIT_NOFILE, &l);
}

/*
 * The budget limits memory in use. The malloc options make the allocator return freed memory: by default the mmap()
 * threshold grows with freed blocks, and each thread's arena keeps its free memory.
 */
static enum status limit_memory(const struct server_options *options, struct error *err)
{
        size_t limit = options->memory_bytes ? options->memory_bytes : memory_budget_default();
        bool is_large = limit >= MALLOC_LARGE_LIMIT_BYTES;
        enum status st;

        mallopt(M_MMAP_THRESHOLD, is_large ? MALLOC_LARGE_MMAP_BYTES : MALLOC_MMAP_BYTES);
        mallopt(M_TRIM_THRESHOLD, is_large ? MALLOC_LARGE_TRIM_BYTES : MALLOC_TRIM_BYTES);
        mallopt(M_ARENA_MAX, MALLOC_ARENAS);
        st = memory_budget_set_limit(limit, err);
        return st ? st : memory_set_query_limits(options->query_memory_bytes, options->all_query_memory_bytes, err);
}

enum status server_run(const struct server_options *options, struct error *err)
{
        struct server s = { .options = options, .reloaded = options, .lock_fd = -1 };
        struct start_signals starting;
        struct listeners listen;
        sigset_t signals;
        int got;
        enum status st = access_check_options(options, &listen, err);

        if (!st)
                st = limit_memory(options, err);
        if (st)
                return st;
        /* Blocked before any thread exists, so that all threads leave them to sigwait(). */
        sigemptyset(&signals);
        sigaddset(&signals, SIGHUP);
        sigaddset(&signals, SIGUSR1);
        sigaddset(&signals, SIGINT);
        sigaddset(&signals, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &signals, NULL);
        signal(SIGPIPE, SIG_IGN);
        raise_descriptors();
        query_work_set_slow(options->slow_query_ns);
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* the service starts only its own workers */
        st = start_signals_begin(&starting, err);
        if (st)
                return st;
        st = start_server(&s, &listen, err);
        got = start_signals_end(&starting);
        if (!st) {
                log_info("serve", "%s: stopping", strsignal(got ? got : wait_for_end_signal(&s, &signals)));
                wait_for_proxies(&s, &signals);
        }
        close_server(&s);
        if (!st)
                log_info("serve", "stopped");
        return st;
}
