/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shared/serve_settings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "common/text/number_text.h"
#include "http/trusted_proxy.h"
#include "profile-store/tables/table_storage.h"
#include "server/access/access.h"
#include "server/core/node_roles.h"

#define YEAR_S (366 * 86400)
#define GATEWAY_INTERVAL_MS 1000 /* queries lack what a gateway has not forwarded */

/* Order: --upstream, --upstreams, DEBUGINFOD_URLS. */
static enum status collect_upstreams(struct upstream_list *l, const struct option_list *urls, const char *path,
                                     char *words, struct error *err)
{
        enum status st = words ? ST_OK : error_no_memory(err);

        for (size_t i = 0; i < urls->count && !st; i++)
                st = upstream_list_add(l, urls->items[i], err);
        if (!st && path)
                st = upstream_list_read(l, path, err);
        return st ? st : upstream_list_add_urls(l, words, err);
}

/* @param ret owned, one for each */
static enum status parse_trusted_proxies(const struct option_list *list, struct address_range **ret, struct error *err)
{
        _cleanup_free_ struct address_range *ranges = calloc(list->count + 1, sizeof *ranges);
        enum status st = ranges ? ST_OK : error_no_memory(err);

        for (size_t i = 0; i < list->count && !st; i++)
                st = address_range_parse(list->items[i], &ranges[i], err);
        if (st == ST_USAGE)
                error_prefix(err, st, "--trusted-proxy");
        if (!st)
                *ret = steal_ptr(ranges);
        return st;
}

/* "PER" or "PER,ALL", as 256M,1G. */
static enum status parse_query_memory(const char *text, struct server_options *o, struct error *err)
{
        _cleanup_free_ char *one = strdup(text);
        char *comma = one ? strchr(one, ',') : NULL;

        if (!one)
                return error_no_memory(err);
        if (comma)
                *comma = 0;
        if (parse_bytes(one, &o->query_memory_bytes) && (!comma || parse_bytes(comma + 1, &o->all_query_memory_bytes)))
                return ST_OK;
        return error_set(err, ST_USAGE, "--query-memory '%s' is not SIZE or SIZE,SIZE with K, M, G or T, as 256M,1G",
                         text);
}

/* ---- the options ---- */

enum { ACK_DISK, ACK_STORE };
static const char *const ack_names[] = { [ACK_DISK] = "disk", [ACK_STORE] = "store", NULL };

static enum status make_serve_specs(struct serve_settings *s, struct error *err)
{
        const struct option_spec table[] = {
                OPTION_STRING("data", 0, "DIR", &s->server.dir, "data directory (default cairn-data)"),
                OPTION_STRING("listen", 0, "HOST:PORT", &s->server.listen,
                              "listen address (default 127.0.0.1:7700); port 0 selects a free one"),
                OPTION_STRING("role", 0, "ROLE[,ROLE]...", &s->role,
                              "of several nodes on one object store: do only this, as ingest, query, symbolize, "
                              "debuginfod, maintain (default: all); gateway: forward batches to such nodes"),
                OPTION_STRING("store", 0, "URL", &s->server.store,
                              "keep tables and debuginfo of a new directory in an object store, s3://BUCKET/PREFIX"),
                OPTION_SIZE("store-cache", 0, "SIZE", &s->table_cache_bytes, MiB(64), 0,
                            "disk space for parts of tables and of debuginfo in an object store (default 8G each)"),
                OPTION_LIST("peer", 0, "URL", &s->peers,
                            "another node on the same object store: queries have its samples before it flushes them, "
                            "and one node commits for all; repeatable"),
                OPTION_LIST("forward", 0, "URL", &s->forwards,
                            "of a gateway: a node with the role ingest, or a proxy before several; repeatable, the "
                            "next one is used after a failure"),
                OPTION_STRING("peer-token-file", 0, "FILE", &s->server.peer_token_file,
                              "token of the scope node to send to peers and to --forward"),
                OPTION_STRING("peer-ca", 0, "FILE", &s->server.peer_ca,
                              "CA certificates for peers and --forward, PEM (default: the system's)"),
                OPTION_RANGE("peer-timeout", 0, "MS", &s->server.peer_timeout_ms, 1, 60000,
                             "time that a query waits for peers; its answer says which did not answer (default 1000)"),
                OPTION_STRING("listen-otlp-grpc", 0, "HOST:PORT", &s->server.listen_otlp_grpc,
                              "also accept OTLP profiles over gRPC, as on 127.0.0.1:4317"),
                OPTION_LIST("upstream", 0, "URL", &s->urls,
                            "debuginfod server to fetch missing debuginfo from, besides DEBUGINFOD_URLS; repeatable"),
                OPTION_STRING("upstreams", 0, "FILE", &s->upstreams_path,
                              "more upstreams with credentials, lines of URL [token=TOKEN | header=NAME:VALUE]"),
                OPTION_STRING("upstream-ca", 0, "FILE", &s->server.upstream_ca,
                              "CA certificates for upstreams, PEM (default: the system's)"),
                OPTION_LIST("scan", 0, "DIR", &s->trees,
                            "also serve the packages and ELF files of this directory tree; repeatable"),
                OPTION_RANGE("scan-interval", 0, "SECONDS", &s->server.scan_interval_s, 0, YEAR_S,
                             "time between scans (default 300); 0: only on SIGUSR1"),
                OPTION_RANGE("scan-cache", 0, "MIB", &s->scan_cache_mib, 0, 1 << 30,
                             "disk space for files extracted from packages (default 8192)"),
                OPTION_LIST("allow-host", 0, "NAME", &s->hosts,
                            "host name that clients use, besides addresses and localhost; repeatable"),
                OPTION_LIST("cors-origin", 0, "ORIGIN", &s->origins,
                            "allow pages of this origin to use the symbolication API; repeatable"),
                OPTION_STRING("token-file", 0, "FILE", &s->server.token_file,
                              "lines of TOKEN scope[,scope...] [rate=N] [bytes=N] [tenant=NAME]: read, ingest, upload, "
                              "history, node, admin"),
                OPTION_STRING("tenants", 0, "FILE", &s->server.tenant_file,
                              "lines of NAME [retain RULE | rate N | bytes N | debuginfo own]: tenants with samples of "
                              "their own"),
                OPTION_AGE("session-max-age", 0, "AGE", &s->server.session_max_age_s, 1, YEAR_S,
                           "a browser's sign-in expires after this time (default 12h)"),
                OPTION_LIST("trusted-proxy", 0, "ADDRESS[/BITS]", &s->proxies,
                            "trust X-Forwarded-For and X-Forwarded-Proto of this reverse proxy; repeatable"),
                OPTION_STRING("proxy-auth", 0, "HEADER", &s->server.proxy_auth,
                              "header in which trusted proxies name a user with read access, as X-Forwarded-User"),
                OPTION_STRING("tls-cert", 0, "FILE", &s->server.tls_cert,
                              "enable https: the certificate and its chain, PEM"),
                OPTION_STRING("tls-key", 0, "FILE", &s->server.tls_key, "private key of --tls-cert"),
                OPTION_RANGE("max-connections", 0, "N", &s->server.max_connections, 0, 60000,
                             "maximum number of connections (default 4096)"),
                OPTION_RANGE("max-per-address", 0, "N", &s->server.max_per_address, 0, 60000,
                             "maximum number of connections per address (default: half); raise it behind a proxy"),
                OPTION_RANGE("rate", 0, "N", &s->server.address_rate, 0, 1000000,
                             "requests per second of an address without a valid token (default: no limit)"),
                OPTION_LIST("retain", 0, "RULE", &s->rules,
                            "retention rule of debuginfo, as tag=nightly,age=30d or size=200G; repeatable, the first "
                            "match applies (default: keep all)"),
                OPTION_LIST("retain-samples", 0, "RULE", &s->samples,
                            "retention rule of samples, as age=30d, size=200G or '{env=\"dev\"},age=3d'; repeatable "
                            "(default: keep all)"),
                OPTION_SIZE("memory", 0, "SIZE", &s->server.memory_bytes, 1, 0,
                            "memory budget, as 2G, at least 256M (default: half of the machine or cgroup)"),
                OPTION_STRING("query-memory", 0, "SIZE[,SIZE]", &s->query_memory,
                              "memory of one query, and of all together (default: 20% and 40% of --memory)"),
                OPTION_STRING("slow-query", 0, "SECONDS", &s->slow_query,
                              "log queries that take longer, as 0.5 (default 10); 0: none"),
                OPTION_STRING("recording-rules", 0, "FILE", &s->server.recording_rules,
                              "rules that make metrics of selections, of the default tenant; JSON"),
                OPTION_FLAG("self-profile", 0, &s->server.self_profile,
                            "profile the service itself into its own tables, with service_name=\"cairn\""),
                OPTION_RANGE("query-timeout", 0, "SECONDS", &s->server.query_timeout_s, 1, 86400,
                             "time limit of a query (default 60)"),
                OPTION_SIZE("max-upload", 0, "SIZE", &s->server.max_upload_bytes, 1, LIMIT_OBJECT_BYTES,
                            "size limit of an uploaded object, decompressed (default and maximum: 4G)"),
                OPTION_RANGE("max-uploads", 0, "N", &s->server.max_uploads, 1, LIMIT_UPLOADS_MOST,
                             "concurrent uploads, of one client a quarter (default 256)"),
                OPTION_RANGE("upload-threads", 0, "N", &s->server.upload_threads, 1, 256,
                             "uploads that are verified and compressed at the same time (default 8)"),
                OPTION_RANGE("symbolize-timeout", 0, "SECONDS", &s->server.symbolize_timeout_s, 1, 86400,
                             "time limit of a symbolize, symbolicate or why request (default 300)"),
                OPTION_RANGE("debuginfod-threads", 0, "N", &s->server.debuginfod_threads, 1, 256,
                             "debuginfod requests that are answered from disk at the same time (default 16)"),
                OPTION_RANGE("upstream-timeout", 0, "SECONDS", &s->server.upstream_timeout_s, 1, 86400,
                             "time limit for fetching a file from an upstream (default 900)"),
                OPTION_RANGE("upstream-rate", 0, "N", &s->server.upstream_rate, 1, LIMIT_UPSTREAM_RATE_MOST,
                             "background requests per second to each upstream (default 10)"),
                OPTION_RANGE("worker-cpu", 0, "SECONDS", &s->server.worker_cpu_s, 1, 86400,
                             "CPU time limit of a worker that reads the symbols of an object (default 600)"),
                OPTION_FLAG("read-only", 0, &s->server.read_only,
                            "answer queries, change nothing in the data directory"),
                OPTION_RANGE("flush-interval", 0, "SECONDS", &s->flush_interval_s, 0, 86400,
                             "time between flushes of batches to the tables (default 10), of a gateway to --forward "
                             "(default 1)"),
                OPTION_CHOICE("ack", 0, "WHERE", &s->ack, ack_names,
                              "acknowledge batches that are on the local disk (default), or only in the object store: "
                              "disk, store"),
                OPTION_RANGE("ack-interval", 0, "SECONDS", &s->ack_interval_s, 1, 5,
                             "with --ack=store, longest time for which batches wait for a common commit (default 2)"),
                OPTION_AGE("keep-removed", 0, "AGE", &s->keep_removed_s, 1, YEAR_S,
                           "keep files removed from tables this long, for readers of older versions (default 1h)"),
                OPTION_RANGE("shutdown-delay", 0, "SECONDS", &s->server.shutdown_delay_s, 0, 3600,
                             "on SIGTERM go on serving this long with /readyz 503, so that a proxy sends new requests "
                             "elsewhere (default 0)"),
                OPTION_RANGE("drain-timeout", 0, "SECONDS", &s->server.drain_timeout_s, 1, 86400,
                             "time limit of the flush at the end (default 45); what it does not write stays queued"),
                OPTION_RANGE("lease-time", 0, "SECONDS", &s->lease_s, 1, 3600,
                             "of nodes on one object store: another one takes over the maintenance of the tables when "
                             "the one that does it was silent this long (default 60)"),
                OPTION_AGE("keep-symbols", 0, "AGE", &s->server.keep_symbols_s, 0, 0,
                           "keep indexed symbols of objects that are neither stored nor sampled any more this long "
                           "(default 365d); any: forever"),
                OPTION_STRING("worker-user", 0, "USER", &s->worker_user,
                              "user name or uid of workers when the service runs as root (default 61111)"),
                OPTION_AGE("max-age", 0, "AGE", &s->server.max_age_s, 0, 0,
                           "reject older samples (default 30d); any: accept all"),
                OPTION_AGE("max-ahead", 0, "AGE", &s->server.max_ahead_s, 0, 0,
                           "reject samples further in the future (default 10m); any: accept all"),
                OPTION_SIZE("share-size", 0, "SIZE", &s->server.share_bytes, 0, 0,
                            "disk space for profiles shared by a link (default 256M); 0: sharing is off"),
                OPTION_AGE("share-age", 0, "AGE", &s->server.share_age_s, 0, 0,
                           "remove shared profiles after this time (default 30d); any: never"),
                OPTION_STRING("port-file", 0, "FILE", &s->server.port_file,
                              "write the port to FILE once the service is ready"),
                OPTION_CHOICE("log-level", 0, "LEVEL", &s->log_level, log_level_names,
                              "debug, info (default), warn or error"),
                OPTION_CHOICE("log-format", 0, "FORMAT", &s->log_format, log_format_names,
                              "text (default), logfmt or json"),
                OPTIONS_OF_CONFIGURATION(&s->configuration),
                OPTION_END,
        };

        _Static_assert(sizeof table / sizeof *table <= SERVE_OPTIONS_MAX, "SERVE_OPTIONS_MAX");
        s->specs = malloc(sizeof table);
        if (!s->specs)
                return error_no_memory(err);
        memcpy(s->specs, table, sizeof table);
        return ST_OK;
}

static void set_serve_defaults(struct serve_settings *s)
{
        *s = (struct serve_settings){ .server = { .dir = "cairn-data",
                                                  .listen = "127.0.0.1:7700",
                                                  .scan_interval_s = 300,
                                                  .query_timeout_s = LIMIT_QUERY_S,
                                                  .peer_timeout_ms = 1000,
                                                  .drain_timeout_s = 45,
                                                  .session_max_age_s = LIMIT_SESSION_S,
                                                  .max_uploads = LIMIT_UPLOADS,
                                                  .upload_threads = LIMIT_UPLOAD_THREADS,
                                                  .symbolize_timeout_s = LIMIT_SYMBOLIZE_S,
                                                  .debuginfod_threads = LIMIT_DEBUGINFOD_THREADS,
                                                  .upstream_timeout_s = LIMIT_UPSTREAM_S,
                                                  .upstream_rate = LIMIT_UPSTREAM_RATE,
                                                  .worker_cpu_s = LIMIT_WORKER_CPU_S,
                                                  .max_upload_bytes = LIMIT_OBJECT_BYTES,
                                                  .share_bytes = MiB(256),
                                                  .share_age_s = 30 * 86400,
                                                  .max_age_s = 30 * 86400,
                                                  .max_ahead_s = 600,
                                                  .keep_symbols_s = 365 * 86400 },
                                      .configuration = { .section = "serve" },
                                      .log_level = LOG_INFO,
                                      .log_format = LOG_TEXT,
                                      .slow_query = "10",
                                      .keep_removed_s = 3600,
                                      .scan_cache_mib = 8192,
                                      .table_cache_bytes = TABLE_CACHE_BYTES };
}

/* ---- checks ---- */

/* A decimal number of seconds, up to a day. */
static enum status parse_slow_query(const char *text, uint64_t *ret, struct error *err)
{
        char *end;
        double seconds = strtod(text, &end);

        if (end == text || *end || strspn(text, "0123456789.") != strlen(text) || !(seconds <= 86400))
                return error_set(err, ST_USAGE, "--slow-query takes seconds, 0 to 86400, not '%.40s'", text);
        *ret = (uint64_t)(seconds * 1e9);
        return ST_OK;
}

/* Options for what the node does not do. */
static enum status check_role_options(const struct serve_settings *s, struct error *err)
{
        const struct server_options *o = &s->server;
        const struct {
                const char *option;
                bool is_given;
                unsigned roles; /* one of them is needed */
        } needs[] = {
                { "self-profile", o->self_profile, ROLE_INGEST },
                { "ack=store", s->ack == ACK_STORE, ROLE_INGEST },
                { "scan", s->trees.count, ROLE_DEBUGINFOD },
                { "recording-rules", o->recording_rules, ROLE_QUERY },
                { "listen-otlp-grpc", o->listen_otlp_grpc, ROLE_INGEST | ROLE_QUERY | ROLE_DEBUGINFOD | ROLE_GATEWAY },
        };
        char text[NODE_ROLES_TEXT];

        for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
                if (needs[i].is_given && !(o->roles & needs[i].roles))
                        return error_set(err, ST_USAGE, "--%s needs the role %s, which --role %s does not have",
                                         needs[i].option, node_roles_write(needs[i].roles, text), s->role);
        return ST_OK;
}

static enum status check_forward_options(const struct serve_settings *s, struct error *err)
{
        const bool is_gateway = s->server.roles & ROLE_GATEWAY;

        if (is_gateway && !s->forwards.count)
                return error_set(err, ST_USAGE, "--role gateway needs --forward, the nodes that take its batches");
        if (!is_gateway && s->forwards.count)
                return error_set(err, ST_USAGE, "--forward is for --role gateway: other nodes write to the tables");
        if (is_gateway && s->server.store)
                return error_set(err, ST_USAGE, "--store and --role gateway exclude each other: it has no tables");
        if (s->forwards.count > LIMIT_PEERS)
                return error_set(err, ST_USAGE, "--forward is given %zu times, more than %d", s->forwards.count,
                                 LIMIT_PEERS);
        return ST_OK;
}

/* A read-only service writes nothing, so it has none of the roles that do. */
static enum status choose_roles(struct serve_settings *s, struct error *err)
{
        const unsigned writing = ROLE_INGEST | ROLE_MAINTAIN | ROLE_GATEWAY;
        char text[NODE_ROLES_TEXT];

        s->server.roles = s->server.read_only ? ROLE_ALL & ~writing : ROLE_ALL;
        if (s->role && node_roles_parse(s->role, &s->server.roles, err))
                return ST_USAGE;
        if (check_forward_options(s, err))
                return ST_USAGE;
        if (!s->role)
                return ST_OK;
        if (s->server.read_only && s->server.roles & writing)
                return error_set(err, ST_USAGE, "--read-only and the role %s exclude each other: it writes",
                                 node_roles_write(s->server.roles & writing, text));
        return check_role_options(s, err);
}

static enum status check_serve_options(struct serve_settings *s, struct error *err)
{
        const struct server_options *o = &s->server;
        if (o->self_profile && o->read_only)
                return error_set(err, ST_USAGE,
                                 "--self-profile and --read-only exclude each other: it writes to the tables");
        if (o->listen_otlp_grpc && o->read_only)
                return error_set(err, ST_USAGE,
                                 "--listen-otlp-grpc and --read-only exclude each other: nothing is ingested");
        if (s->peers.count && o->read_only)
                return error_set(err, ST_USAGE,
                                 "--peer and --read-only exclude each other: a replica answers from the tables");
        if (s->peers.count > LIMIT_PEERS)
                return error_set(err, ST_USAGE, "--peer is given %zu times, more than %d", s->peers.count, LIMIT_PEERS);
        if (parse_slow_query(s->slow_query, &s->server.slow_query_ns, err))
                return ST_USAGE;
        if (s->ack == ACK_STORE && o->read_only)
                return error_set(err, ST_USAGE, "--ack and --read-only exclude each other: nothing is ingested");
        if (choose_roles(s, err))
                return ST_USAGE;
        if (o->read_only && s->trees.count)
                return error_set(err, ST_USAGE,
                                 "--scan and --read-only exclude each other: scanning keeps an index in the directory");
        return s->query_memory ? parse_query_memory(s->query_memory, &s->server, err) : ST_OK;
}

static enum status parse_serve_rules(struct serve_settings *s, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; i < s->samples.count && !st; i++)
                st = sample_rules_add(&s->sample_rules, s->samples.items[i], err);
        return st ? st : retention_rules_parse(s->rules.items, s->rules.count, s->retention, err);
}

static void fill_server_options(struct serve_settings *s)
{
        struct server_options *o = &s->server;

        o->peers = s->peers.items;
        o->peer_count = s->peers.count;
        o->forwards = s->forwards.items;
        o->forward_count = s->forwards.count;
        o->upstreams = (const char *const *)s->upstreams.urls;
        o->upstream_headers = (const char *const *)s->upstreams.headers;
        o->upstream_count = s->upstreams.count;
        o->allowed_hosts = s->hosts.items;
        o->allowed_host_count = s->hosts.count;
        o->cors_origins = s->origins.items;
        o->cors_origin_count = s->origins.count;
        o->trusted_proxies = s->ranges;
        o->trusted_proxy_count = s->proxies.count;
        o->scan_dirs = s->trees.items;
        o->scan_dir_count = s->trees.count;
        o->retention = s->retention;
        o->retention_count = s->rules.count;
        o->sample_limits = s->sample_rules.limits;
        o->sample_rules = s->samples.items;
        o->sample_rule_count = s->samples.count;
        o->scan_cache_bytes = s->scan_cache_mib << 20;
        o->table_cache_bytes = s->table_cache_bytes;
        o->flush_interval_ms = s->flush_interval_s * 1000;
        if (!o->flush_interval_ms && o->roles & ROLE_GATEWAY)
                o->flush_interval_ms = GATEWAY_INTERVAL_MS;
        o->acks_in_store = s->ack == ACK_STORE;
        o->commit_interval_ms = s->ack_interval_s * 1000;
        o->removed_grace_ms = s->keep_removed_s * 1000;
        o->lease_ms = s->lease_s * 1000;
}

enum status serve_settings_parse(struct serve_settings *s, const struct usage *usage, int *argc, char ***argv,
                                 struct error *err)
{
        const char *urls = getenv("DEBUGINFOD_URLS");
        struct listeners listen; /* parsed again when the service starts */
        enum status st;

        set_serve_defaults(s);
        st = make_serve_specs(s, err);
        if (!st)
                st = configuration_parse(&s->configuration, usage, s->specs, argc, argv, err);
        if (!st && *argc > 0)
                st = error_set(err, ST_USAGE, "unexpected argument '%s'", (*argv)[0]);
        if (!st)
                st = check_serve_options(s, err);
        if (!st)
                st = parse_trusted_proxies(&s->proxies, &s->ranges, err);
        s->environment_urls = strdup(urls ? urls : "");
        if (!st)
                st = collect_upstreams(&s->upstreams, &s->urls, s->upstreams_path, s->environment_urls, err);
        if (!st)
                st = parse_serve_rules(s, err);
        if (st)
                return st;
        fill_server_options(s);
        return access_check_options(&s->server, &listen, err);
}

enum status serve_settings_check_reread(const struct serve_settings *before, const struct serve_settings *fresh,
                                        struct error *err)
{
        enum status st = configuration_check_reread(&before->configuration, &fresh->configuration, err);

        if (!st && fresh->upstreams.is_file_empty && !before->upstreams.is_file_empty)
                st = error_set(err, ST_BAD_DATA,
                               "'%s' is empty: it may be about to be written (a comment in it means: none)",
                               fresh->upstreams_path);
        return st;
}

void serve_settings_apply_log(const struct serve_settings *s)
{
        log_set_level((enum log_level)s->log_level);
        log_set_format((enum log_format)s->log_format);
}

bool serve_settings_has(const struct serve_settings *s, const char *option)
{
        for (size_t i = 0; s->specs[i].kind != OPTION_KIND_END; i++)
                if (strcmp(s->specs[i].name, option) == 0)
                        return configuration_has(&s->configuration, i);
        return false;
}

void serve_settings_deinit(struct serve_settings *s)
{
        struct option_list *lists[] = { &s->urls,    &s->origins, &s->hosts, &s->rules,   &s->trees,
                                        &s->samples, &s->proxies, &s->peers, &s->forwards };

        upstream_list_deinit(&s->upstreams);
        sample_rules_deinit(&s->sample_rules);
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
                options_list_deinit(lists[i]);
        free(s->ranges);
        free(s->specs);
        free(s->environment_urls);
        configuration_deinit(&s->configuration);
}
