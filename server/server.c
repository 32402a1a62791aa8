/* SPDX-License-Identifier: Apache-2.0 */
#include "server/server.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/memory_budget.h"
#include "http/listen.h"
#include "server/audit.h"
#include "server/clock_watch.h"
#include "server/data_lock.h"
#include "server/scanned.h"
#include "server/server_internal.h"

#define DEFAULT_PORT 7700
#define DESCRIPTORS_MAX 65536
#define BACKGROUND_NICENESS 10 /* of pools whose clients can wait, beside ingest and /healthz */
#define MALLOC_MMAP_BYTES (256 << 10)
#define MALLOC_TRIM_BYTES (1 << 20)
#define MALLOC_ARENAS 8
#define FLUSH_BYTES (UINT64_C(64) << 20)
#define QUEUED_BYTES (UINT64_C(512) << 20)

/* ---- what the parts tell each other ---- */

static enum http_access authorize(void *context, const char *token, enum http_scope scope,
                                  char name_ret[static HTTP_TOKEN_NAME_SIZE])
{
        struct server *s = context;

        return doors_authorize(&s->doors, token, scope, name_ret);
}

static uint64_t admit(void *context, const struct http_request *req, uint64_t bytes, struct error *err)
{
        struct server *s = context;

        return admission_admit(s->doors.admission, req, bytes, err);
}

static void finished(void *context, const struct http_request *req)
{
        struct server *s = context;

        admission_finished(s->doors.admission, req);
}

/* The flush met objects that nobody has. */
static void samples_want(void *context, const struct build_id *ids, size_t count)
{
        struct server *s = context;

        _cleanup_free_ struct build_id *rest = NULL;

        pthread_mutex_lock(&s->federation_lock);
        if (s->scan && s->indexer && !atomic_load(&s->stopping))
                rest = calloc(count + 1, sizeof *rest);
        if (rest) {
                scanned_want(s, ids, count, rest, &count);
                ids = rest;
        }
        if (s->federation)
                federation_want(s->federation, ids, count, OBJECT_DEBUGINFO);
        pthread_mutex_unlock(&s->federation_lock);
}

static void indexing_wants(void *context, const struct build_id *id)
{
        samples_want(context, id, 1);
}

static void object_arrived(void *context, const struct stored_object *object)
{
        struct server *s = context;
        struct collector *collector = atomic_load(&s->collector);
        char hex[BUILD_ID_HEX_MAX];

        log_info("federation", "%s: %s of %llu bytes came from an upstream", build_id_hex(&object->build_id, hex),
                 object_kind_name(object->kind), (unsigned long long)object->size_bytes);
        if (s->indexer)
                indexer_add(s->indexer, &object->build_id, object->kind);
        if (collector)
                collector_arrived(collector, object->stored_bytes);
}

static void object_failed(void *context, const struct build_id *id, const struct error *why)
{
        char hex[BUILD_ID_HEX_MAX];

        (void)context;
        log_warn("federation", "%s: %s, asking again later", build_id_hex(id, hex), why->text);
}

static void upstream_changed(void *context, const struct upstream_status *u)
{
        (void)context;
        if (u->state == UPSTREAM_CLOSED)
                log_info("federation", "upstream %s answers again", u->url);
        else
                log_warn("federation", "upstream %s failed %u times in a row and is not asked for %llu s; the last: %s. If "
                         "'curl -I %s/metrics' fails from here too, take it out of --upstream or mend the network",
                         u->url, u->failures, (unsigned long long)u->retry_in_s, u->last_error, u->url);
}

static void object_indexed(void *context)
{
        struct server *s = context;
        struct collector *collector = atomic_load(&s->collector);

        if (collector)
                collector_indexed(collector);
}

static void symbols_superseded(void *context, const struct stored_object *symbols)
{
        struct server *s = context;
        struct collector *collector = atomic_load(&s->collector);

        if (collector)
                collector_superseded(collector, symbols);
}

/* ---- opening ---- */

/* So that a small budget flushes sooner, and the queue is full before its memory is refused. */
static uint64_t share_of_queue(uint64_t most, unsigned divisor)
{
        uint64_t share = memory_use_ceiling(MEMORY_QUEUE) / 8 * 7 / divisor;

        return share < most ? share : most;
}

static enum status open_profiles(struct server *s, const char *dir, struct error *err)
{
        const struct profile_store_options o = {
                .size = sizeof o,
                .read_only = s->options->read_only,
                .flush_interval_ms = s->options->flush_interval_ms,
                .flush_bytes = share_of_queue(FLUSH_BYTES, 4),
                .max_queued_bytes = share_of_queue(QUEUED_BYTES, 1),
                .symbols = s->symbols,
                .wanted = samples_want,
                .wanted_context = s,
        };

        enum status st = profile_store_open(dir, &o, &s->profiles, err);

        return st ? st : readiness_start(o.read_only ? NULL : s->options->dir, s->profiles, &s->readiness, err);
}

/* Tables alone are worth reading, a copy of them for example. */
static enum status missing_is_fine(const struct server *s, enum status st, const struct error *err)
{
        if (st != ST_NOT_FOUND || !s->options->read_only)
                return st;
        log_warn("serve", "%s; answering without it", err->text);
        return ST_OK;
}

static enum status open_stores(struct server *s, struct error *err)
{
        const char *dir = s->options->dir;
        bool read_only = s->options->read_only;
        _cleanup_free_ char *index = path_join(dir, "index");
        _cleanup_free_ char *objects = path_join(dir, "debuginfo"), *profiles = path_join(dir, "profiles");
        enum status st = ST_OK;

        s->scratch_dir = path_join(dir, "tmp");
        s->tables_dir = path_join(dir, "profiles/tables");
        s->symbol_texts = text_cache_create();
        if (!index || !objects || !profiles || !s->scratch_dir || !s->tables_dir || !s->symbol_texts)
                return error_no_memory(err);
        if (!read_only) {
                st = file_make_dirs(s->scratch_dir, err);
                if (!st)
                        st = data_lock(dir, &s->lock_fd, err);
        }
        if (!st)
                st = missing_is_fine(s, symbol_index_open(index, read_only, &s->symbols, err), err);
        if (st == ST_UNSUPPORTED && !read_only) {
                st = symbol_index_open_anew(index, &s->symbols, err);
                if (!st)
                        log_info("index", "has an older format, is made anew from the stored objects");
        }
        if (!st)
                st = missing_is_fine(s, debuginfo_store_open(objects, read_only, &s->objects, err), err);
        return st ? st : open_profiles(s, profiles, err);
}

static enum status start_pipeline(struct server *s, struct error *err)
{
        _cleanup_free_ char *queue = path_join(s->options->dir, "heal-queue");
        _cleanup_free_ char *needs = path_join(s->options->dir, "supplement-needs");
        struct indexer_options o = { .objects = s->objects, .symbols = s->symbols, .scratch_dir = s->scratch_dir,
                                     .needs_path = needs, .wanted = indexing_wants, .done = object_indexed, .superseded = symbols_superseded,
                                     .open_other = scanned_open, .has_other = scanned_has_debuginfo, .context = s };
        struct collector *collector;
        struct collector_options c = { .objects = s->objects, .symbols = s->symbols,
                                             .rules = s->options->retention, .rule_count = s->options->retention_count };
        enum status st = queue && needs ? healer_start(s->profiles, queue, &s->healer, err) : error_no_memory(err);

        o.healer = s->healer;
        if (!st)
                st = indexer_start(&o, &s->indexer, err);
        c.indexer = s->indexer;
        if (!st)
                st = collector_start(&c, &collector, err);
        if (!st)
                atomic_store(&s->collector, collector);
        return st;
}

static enum status start_federation(struct server *s, struct error *err)
{
        const struct federation_options o = { .size = sizeof o, .urls = s->options->upstreams,
                                              .headers = s->options->upstream_headers, .url_count = s->options->upstream_count, .arrived = object_arrived,
                                              .failed = object_failed, .upstream_changed = upstream_changed, .context = s };

        if (!o.url_count || s->options->read_only)
                return ST_OK;
        if (s->options->upstream_ca && access(s->options->upstream_ca, R_OK))
                return error_os(err, errno, "cannot read the certificates in '%s'", s->options->upstream_ca);
        fetch_set_authorities(s->options->upstream_ca);
        for (size_t i = 0; i < o.url_count; i++) {
                char url[FETCH_URL_TEXT];

                log_info("federation", "upstream %s", fetch_url_text(o.urls[i], url));
                if (o.headers && o.headers[i] && strncmp(o.urls[i], "http://", 7) == 0)
                        log_warn("federation", "upstream %s gets its secret header unencrypted", url);
        }
        return federation_start(s->objects, &o, &s->federation, err);
}

static enum status start_wishes(struct server *s, struct error *err)
{
        enum status st = s->federation || s->scan ? wishes_start(s->profiles, samples_want, s, &s->wishes, err) : ST_OK;

        return st || !s->scan ? st : scan_start(s->scan, err);
}

static enum status start_http(struct server *s, const struct listen_address *listen, struct error *err)
{
        const struct http_pool_options pools[POOL_COUNT] = {
                [POOL_QUERY] = { "query", 0, LIMIT_POOL_QUEUE, (unsigned)s->options->query_timeout_s, BACKGROUND_NICENESS },
                [POOL_STATUS] = { "status", 2, LIMIT_POOL_QUEUE, LIMIT_STATUS_S, 0 },
                [POOL_INGEST] = { "ingest", 0, LIMIT_POOL_QUEUE, LIMIT_INGEST_S, 0 },
                [POOL_UPLOAD] = { "upload", LIMIT_UPLOAD_THREADS, LIMIT_POOL_QUEUE, LIMIT_UPLOAD_S, BACKGROUND_NICENESS },
                [POOL_SYMBOLIZE] = { "symbolize", 0, LIMIT_POOL_QUEUE, LIMIT_SYMBOLIZE_S, BACKGROUND_NICENESS },
                [POOL_DEBUGINFOD] = { "debuginfod", LIMIT_DEBUGINFOD_THREADS, LIMIT_POOL_QUEUE, LIMIT_DEBUGINFOD_S, BACKGROUND_NICENESS },
                [POOL_ADMIN] = { "admin", LIMIT_ADMIN_THREADS, LIMIT_POOL_QUEUE, LIMIT_ADMIN_S, BACKGROUND_NICENESS },
        };
        const struct http_options o = { .pools = pools, .pool_count = POOL_COUNT,
                                        .size = sizeof o, .host = listen->host, .port = listen->port,
                                        .authorize = s->doors.tokens ? authorize : NULL, .tls = s->doors.tls,
                                        .check_host = !s->doors.tokens || s->options->allowed_host_count,
                                        .allowed_hosts = s->options->allowed_hosts,
                                        .allowed_host_count = s->options->allowed_host_count,
                                        .allowed_origins = s->options->cors_origins,
                                        .allowed_origin_count = s->options->cors_origin_count, .admit = admit, .finished = finished, .answered = audit_answered,
                                        .max_connections = (unsigned)s->options->max_connections,
                                        .max_per_address = (unsigned)s->options->max_per_address,
                                        .context = s };
        size_t count;
        enum status st = routes_join(s->options->read_only, &s->routes, &count, err);

        return st ? st : http_server_start(&o, s->routes, count, s, &s->http, err);
}

/* ---- running ---- */

/* Everything that waits is told first, so that nothing is waited for in vain. */
static void close_all(struct server *s)
{
        struct federation *federation;
        struct error err;

        atomic_store(&s->ready, false);
        atomic_store(&s->stopping, true);
        http_server_stop(s->http);
        scan_stop(s->scan);
        wishes_stop(s->wishes);
        pthread_mutex_lock(&s->federation_lock);
        federation = s->federation;
        s->federation = NULL;
        pthread_mutex_unlock(&s->federation_lock);
        if (federation)
                federation_stop(federation);
        collector_stop(s->collector);
        indexer_stop(s->indexer);
        collector_destroy(s->collector);
        scan_destroy(s->scan);
        healer_stop(s->healer);
        readiness_stop(s->readiness);
        if (s->profiles && !s->options->read_only && profile_store_flush(s->profiles, &err))
                log_error("serve", "%s; what is queued stays queued", err.text);
        if (s->profiles)
                profile_store_close(s->profiles);
        if (s->objects)
                debuginfo_store_close(s->objects);
        text_cache_destroy(s->symbol_texts);
        if (s->symbols)
                symbol_index_close(s->symbols);
        doors_close(&s->doors);
        free(s->routes);
        free(s->scratch_dir);
        free(s->tables_dir);
        if (s->lock_fd >= 0)
                close(s->lock_fd);
}

static enum status announce(struct server *s, const struct listen_address *listen, struct error *err)
{
        bool v6 = strchr(listen->host, ':') != NULL;
        unsigned number = http_server_port(s->http);
        char port[8];

        log_info("serve", "listening on %s://%s%s%s:%u, data in %s%s%s", s->doors.tls ? "https" : "http",
                 v6 ? "[" : "", listen->host, v6 ? "]" : "", number,
                 s->options->dir, s->options->read_only ? ", read-only" : "",
                 s->doors.tokens ? "" : ", no tokens");
        atomic_store(&s->ready, true);
        if (!s->options->port_file)
                return ST_OK;
        snprintf(port, sizeof port, "%u\n", number);
        return file_write_durable(s->options->port_file, port, strlen(port), err);
}

static enum status start(struct server *s, const struct listen_address *listen, struct error *err)
{
        enum status st = doors_open(&s->doors, s->options, listen, err);

        pthread_mutex_lock(&s->federation_lock); /* a flush that wants something at once waits for who gets it */
        if (!st)
                st = open_stores(s, err);
        if (!st)
                st = scanned_open_trees(s, err);
        if (!st && !s->options->read_only)
                st = start_pipeline(s, err);
        if (!st)
                st = start_federation(s, err);
        if (!st)
                st = start_wishes(s, err);
        pthread_mutex_unlock(&s->federation_lock);
        if (!st)
                st = start_http(s, listen, err);
        return st ? st : announce(s, listen, err);
}

/* The profile store works on its own and does not log; what it could not do is said here. */
static void tell_troubles(struct server *s, struct profile_store_stat *told)
{
        struct profile_store_stat now = *told;

        readiness_stat(s->readiness, &now);
        if (now.failed_flushes != told->failed_flushes)
                log_error("store", "cannot flush: %s; trying again, what is queued is safe", now.last_failure);
        if (now.damaged_lookups != told->damaged_lookups)
                log_error("index", "%llu lookups met damage in the symbol index; its addresses stay raw. Remove '%s/index' "
                          "while the service is stopped: it is made again from the stored objects",
                          (unsigned long long)(now.damaged_lookups - told->damaged_lookups), s->options->dir);
        *told = now;
}

/* Not by the handler of /readyz: the indexer's lock may wait for the disk. */
static void report_indexing(struct server *s)
{
        struct error why;

        if (s->indexer)
                readiness_report(s->readiness, READY_INDEX_FAILING, indexer_is_hindered(s->indexer, &why) ? &why : NULL);
}

/* Returns the signal that ends the service. */
static int wait_for_end(struct server *s, const sigset_t *signals)
{
        static const struct timespec moment = { .tv_sec = 1 };
        struct profile_store_stat told = { 0 };
        struct clock_watch clock = { 0 };

        for (;;) {
                clock_watch_look(&clock);
                if (s->scan)
                        scan_watch(s->scan);
                int got = sigtimedwait(signals, NULL, &moment);

                if (got == SIGHUP)
                        doors_reload(&s->doors);
                else if (got == SIGUSR1 && s->scan)
                        scan_again(s->scan);
                else if (got > 0 && got != SIGUSR1)
                        return got;
                tell_troubles(s, &told);
                report_indexing(s);
        }
}

/* Connections are bounded by descriptors; the usual soft limit is for programs that call select(). */
static void raise_descriptors(void)
{
        struct rlimit l;

        if (getrlimit(RLIMIT_NOFILE, &l))
                return;
        l.rlim_cur = l.rlim_max < DESCRIPTORS_MAX ? l.rlim_max : DESCRIPTORS_MAX;
        setrlimit(RLIMIT_NOFILE, &l);
}

/*
 * The budget bounds what is held; this has the allocator give back what is not: the default threshold of mmap() grows
 * with the blocks that are freed, and each thread's arena keeps its own free memory.
 */
static enum status limit_memory(const struct server_options *options, struct error *err)
{
        mallopt(M_MMAP_THRESHOLD, MALLOC_MMAP_BYTES);
        mallopt(M_TRIM_THRESHOLD, MALLOC_TRIM_BYTES);
        mallopt(M_ARENA_MAX, MALLOC_ARENAS);
        return memory_budget_set_limit(options->memory_bytes ? options->memory_bytes : memory_budget_default(), err);
}

enum status server_run(const struct server_options *options, struct error *err)
{
        struct server s = { .options = options, .lock_fd = -1, .federation_lock = PTHREAD_MUTEX_INITIALIZER,
                            .announced.lock = PTHREAD_MUTEX_INITIALIZER };
        struct listen_address listen;
        sigset_t signals;
        enum status st = listen_parse(options->listen, DEFAULT_PORT, &listen, err);

        if (!st)
                st = doors_check(options, &listen, err);
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
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* what it starts are its own workers */
        st = start(&s, &listen, err);
        if (!st)
                log_info("serve", "%s: stopping", strsignal(wait_for_end(&s, &signals)));
        close_all(&s);
        if (!st)
                log_info("serve", "stopped");
        return st;
}
