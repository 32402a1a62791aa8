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
#include "server/access/access.h"

static enum status check_scanned_trees(const struct server_options *o, size_t count, uint64_t cache_mib,
                                       struct error *err)
{
        if (count && o->read_only)
                return error_set(err, ST_USAGE,
                                 "--scan and --read-only exclude each other: scanning keeps an index in the directory");
        if (o->scan_interval_s > 366 * 86400 || cache_mib > (1u << 30))
                return error_set(err, ST_USAGE, "--scan-interval is at most a year, and --scan-cache at most 1024 TiB");
        return ST_OK;
}

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

#define AGE_MAX_S (366 * 86400)

/* An age from 1s to 366d. */
static enum status parse_age(const char *option, const char *text, uint64_t *seconds_ret, struct error *err)
{
        static const struct unit units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 }, { 0 } };
        uint64_t seconds;

        if (!parse_amount(text, units, true, &seconds) || seconds == 0 || seconds > AGE_MAX_S)
                return error_set(err, ST_USAGE, "--%s '%s' is not a number with s, m, h or d, from 1s to 366d, as 1h",
                                 option, text);
        *seconds_ret = seconds;
        return ST_OK;
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

/* An age such as 30d, or "any" for no limit: 0. */
static enum status parse_accepted_age(const char *option, const char *text, uint64_t *ret, struct error *err)
{
        static const struct unit units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 }, { 0 } };

        if (strcmp(text, "any") == 0) {
                *ret = 0;
                return ST_OK;
        }
        return parse_amount(text, units, true, ret)
                       ? ST_OK
                       : error_set(err, ST_USAGE, "--%s '%s' is neither a number with s, m, h or d, as 30d, nor 'any'",
                                   option, text);
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

static enum status make_serve_specs(struct serve_settings *s, struct error *err)
{
        const struct option_spec table[] = {
                OPTION_STRING("data", 0, "DIR", &s->server.dir, "data directory (default cairn-data)"),
                OPTION_STRING("listen", 0, "HOST:PORT", &s->server.listen,
                              "listen address (default 127.0.0.1:7700); port 0 selects a free one"),
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
                OPTION_UINT("scan-interval", 0, "SECONDS", &s->server.scan_interval_s,
                            "time between scans (default 300); 0: only on SIGUSR1"),
                OPTION_UINT("scan-cache", 0, "MIB", &s->scan_cache_mib,
                            "disk space for files extracted from packages (default 8192)"),
                OPTION_LIST("allow-host", 0, "NAME", &s->hosts,
                            "host name that clients use, besides addresses and localhost; repeatable"),
                OPTION_LIST("cors-origin", 0, "ORIGIN", &s->origins,
                            "allow pages of this origin to use the symbolication API; repeatable"),
                OPTION_STRING("token-file", 0, "FILE", &s->server.token_file,
                              "lines of TOKEN scope[,scope...] [rate=N] [bytes=N] [tenant=NAME]: read, ingest, upload, "
                              "history, admin"),
                OPTION_STRING("tenants", 0, "FILE", &s->server.tenant_file,
                              "lines of NAME [retain RULE | rate N | bytes N | debuginfo own]: tenants with samples of "
                              "their own"),
                OPTION_STRING("session-max-age", 0, "AGE", &s->session_max_age,
                              "a browser's sign-in expires after this time (default 12h)"),
                OPTION_LIST("trusted-proxy", 0, "ADDRESS[/BITS]", &s->proxies,
                            "trust X-Forwarded-For and X-Forwarded-Proto of this reverse proxy; repeatable"),
                OPTION_STRING("proxy-auth", 0, "HEADER", &s->server.proxy_auth,
                              "header in which trusted proxies name a user with read access, as X-Forwarded-User"),
                OPTION_STRING("tls-cert", 0, "FILE", &s->server.tls_cert,
                              "enable https: the certificate and its chain, PEM"),
                OPTION_STRING("tls-key", 0, "FILE", &s->server.tls_key, "private key of --tls-cert"),
                OPTION_UINT("max-connections", 0, "N", &s->server.max_connections,
                            "maximum number of connections (default 4096)"),
                OPTION_UINT("max-per-address", 0, "N", &s->server.max_per_address,
                            "maximum number of connections per address (default: half); raise it behind a proxy"),
                OPTION_UINT("rate", 0, "N", &s->server.address_rate,
                            "requests per second of an address without a valid token (default: no limit)"),
                OPTION_LIST("retain", 0, "RULE", &s->rules,
                            "retention rule of debuginfo, as label=nightly,age=30d or size=200G; repeatable, the first "
                            "match applies (default: keep all)"),
                OPTION_LIST("retain-samples", 0, "RULE", &s->samples,
                            "retention rule of samples, as age=30d, size=200G or '{env=\"dev\"},age=3d'; repeatable "
                            "(default: keep all)"),
                OPTION_STRING("memory", 0, "SIZE", &s->memory,
                              "memory budget, as 2G, at least 256M (default: half of the machine or cgroup)"),
                OPTION_STRING("query-memory", 0, "SIZE[,SIZE]", &s->query_memory,
                              "memory of one query, and of all together (default: 20% and 40% of --memory)"),
                OPTION_STRING("slow-query", 0, "SECONDS", &s->slow_query,
                              "log queries that take longer, as 0.5 (default 10); 0: none"),
                OPTION_FLAG("self-profile", 0, &s->server.self_profile,
                            "profile the service itself into its own tables, with service_name=\"cairn\""),
                OPTION_UINT("query-timeout", 0, "SECONDS", &s->server.query_timeout_s,
                            "time limit of a query (default 60)"),
                OPTION_STRING("max-upload", 0, "SIZE", &s->max_upload,
                              "size limit of an uploaded object, decompressed (default and maximum: 4G)"),
                OPTION_UINT("max-uploads", 0, "N", &s->server.max_uploads,
                            "concurrent uploads, of one client a quarter (default 256)"),
                OPTION_UINT("upload-threads", 0, "N", &s->server.upload_threads,
                            "uploads that are verified and compressed at the same time (default 8)"),
                OPTION_UINT("symbolize-timeout", 0, "SECONDS", &s->server.symbolize_timeout_s,
                            "time limit of a symbolize, symbolicate or why request (default 300)"),
                OPTION_UINT("debuginfod-threads", 0, "N", &s->server.debuginfod_threads,
                            "debuginfod requests that are answered from disk at the same time (default 16)"),
                OPTION_UINT("upstream-timeout", 0, "SECONDS", &s->server.upstream_timeout_s,
                            "time limit for fetching a file from an upstream (default 900)"),
                OPTION_UINT("upstream-rate", 0, "N", &s->server.upstream_rate,
                            "background requests per second to each upstream (default 10)"),
                OPTION_UINT("worker-cpu", 0, "SECONDS", &s->server.worker_cpu_s,
                            "CPU time limit of a worker that reads the symbols of an object (default 600)"),
                OPTION_FLAG("read-only", 0, &s->server.read_only,
                            "answer queries, change nothing in the data directory"),
                OPTION_UINT("flush-interval", 0, "SECONDS", &s->flush_interval_s,
                            "time between flushes of batches to the tables (default 10)"),
                OPTION_STRING("keep-removed", 0, "AGE", &s->keep_removed,
                              "keep files removed from tables this long, for readers of older versions (default 1h)"),
                OPTION_STRING("keep-symbols", 0, "AGE", &s->keep_symbols,
                              "keep indexed symbols of objects that are neither stored nor sampled any more this long "
                              "(default 365d); any: forever"),
                OPTION_STRING("worker-user", 0, "USER", &s->worker_user,
                              "user name or uid of workers when the service runs as root (default 61111)"),
                OPTION_STRING("max-age", 0, "AGE", &s->max_age, "reject older samples (default 30d); any: accept all"),
                OPTION_STRING("max-ahead", 0, "AGE", &s->max_ahead,
                              "reject samples further in the future (default 10m); any: accept all"),
                OPTION_STRING("share-size", 0, "SIZE", &s->share_size,
                              "disk space for profiles shared by a link (default 256M); 0: sharing is off"),
                OPTION_STRING("share-age", 0, "AGE", &s->share_age,
                              "remove shared profiles after this time (default 30d); any: never"),
                OPTION_STRING("accept-past", 0, "AGE", &s->max_age, "old name of --max-age"),
                OPTION_STRING("accept-future", 0, "AGE", &s->max_ahead, "old name of --max-ahead"),
                OPTION_STRING("port-file", 0, "FILE", &s->server.port_file,
                              "write the port to FILE once the service is ready"),
                OPTION_STRING("log-level", 0, "LEVEL", &s->level_name, "debug, info (default), warn or error"),
                OPTION_STRING("log-format", 0, "FORMAT", &s->format_name, "text (default), logfmt or json"),
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
                                                  .session_max_age_s = LIMIT_SESSION_S,
                                                  .max_uploads = LIMIT_UPLOADS,
                                                  .upload_threads = LIMIT_UPLOAD_THREADS,
                                                  .symbolize_timeout_s = LIMIT_SYMBOLIZE_S,
                                                  .debuginfod_threads = LIMIT_DEBUGINFOD_THREADS,
                                                  .upstream_timeout_s = LIMIT_UPSTREAM_S,
                                                  .upstream_rate = LIMIT_UPSTREAM_RATE,
                                                  .worker_cpu_s = LIMIT_WORKER_CPU_S },
                                      .configuration = { .section = "serve" },
                                      .max_upload = "4G",
                                      .share_size = "256M",
                                      .share_age = "30d",
                                      .level_name = "info",
                                      .format_name = "text",
                                      .slow_query = "10",
                                      .max_age = "30d",
                                      .max_ahead = "10m",
                                      .keep_removed = "1h",
                                      .keep_symbols = "365d",
                                      .scan_cache_mib = 8192 };
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

static enum status check_serve_numbers(struct serve_settings *s, struct error *err)
{
        const struct server_options *o = &s->server;
        const struct {
                const char *option;
                uint64_t value, most;
        } ranges[] = {
                { "max-uploads", o->max_uploads, LIMIT_UPLOADS_MOST },
                { "upload-threads", o->upload_threads, 256 },
                { "symbolize-timeout", o->symbolize_timeout_s, 86400 },
                { "debuginfod-threads", o->debuginfod_threads, 256 },
                { "upstream-timeout", o->upstream_timeout_s, 86400 },
                { "upstream-rate", o->upstream_rate, LIMIT_UPSTREAM_RATE_MOST },
                { "worker-cpu", o->worker_cpu_s, 86400 },
        };
        enum log_format format;
        enum log_level level;

        if (log_format_parse(s->format_name, &format))
                return error_set(err, ST_USAGE, "--log-format '%s' is not one of text, logfmt, json", s->format_name);
        if (log_level_parse(s->level_name, &level))
                return error_set(err, ST_USAGE, "--log-level '%s' is not one of debug, info, warn, error",
                                 s->level_name);
        if (o->max_connections > 60000 || o->max_per_address > 60000)
                return error_set(err, ST_USAGE, "--max-connections is at most 60000");
        if (o->self_profile && o->read_only)
                return error_set(err, ST_USAGE,
                                 "--self-profile and --read-only exclude each other: it writes to the tables");
        if (o->listen_otlp_grpc && o->read_only)
                return error_set(err, ST_USAGE,
                                 "--listen-otlp-grpc and --read-only exclude each other: nothing is ingested");
        if (o->address_rate > 1000000)
                return error_set(err, ST_USAGE, "--rate is at most a million requests per second");
        if (!o->query_timeout_s || o->query_timeout_s > 86400)
                return error_set(err, ST_USAGE, "--query-timeout takes 1 to 86400 seconds");
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
                if (!ranges[i].value || ranges[i].value > ranges[i].most)
                        return error_set(err, ST_USAGE, "--%s takes 1 to %" PRIu64, ranges[i].option, ranges[i].most);
        if (s->flush_interval_s > 86400)
                return error_set(err, ST_USAGE, "--flush-interval is at most a day");
        if (parse_slow_query(s->slow_query, &s->server.slow_query_ns, err))
                return ST_USAGE;
        s->server.flush_interval_ms = s->flush_interval_s * 1000;
        return check_scanned_trees(o, s->trees.count, s->scan_cache_mib, err);
}

static enum status parse_serve_sizes(struct serve_settings *s, struct error *err)
{
        struct server_options *o = &s->server;

        if (s->memory && !parse_bytes(s->memory, &o->memory_bytes))
                return error_set(err, ST_USAGE, "--memory '%s' is not a number of bytes with K, M, G or T", s->memory);
        if (!parse_bytes(s->max_upload, &o->max_upload_bytes) || !o->max_upload_bytes ||
            o->max_upload_bytes > LIMIT_OBJECT_BYTES)
                return error_set(err, ST_USAGE, "--max-upload '%s' is not a number of bytes with K, M or G, up to 4G",
                                 s->max_upload);
        if (strcmp(s->share_size, "0") != 0 && !parse_bytes(s->share_size, &o->share_bytes))
                return error_set(err, ST_USAGE, "--share-size '%s' is not a number of bytes with K, M, G or T",
                                 s->share_size);
        o->scan_cache_bytes = s->scan_cache_mib << 20;
        return s->query_memory ? parse_query_memory(s->query_memory, o, err) : ST_OK;
}

static enum status parse_serve_ages(struct serve_settings *s, struct error *err)
{
        struct server_options *o = &s->server;
        uint64_t keep_removed_s = 0;
        enum status st = parse_accepted_age("max-age", s->max_age, &o->max_age_s, err);

        if (!st)
                st = parse_accepted_age("max-ahead", s->max_ahead, &o->max_ahead_s, err);
        if (!st)
                st = parse_accepted_age("share-age", s->share_age, &o->share_age_s, err);
        if (!st)
                st = parse_age("keep-removed", s->keep_removed, &keep_removed_s, err);
        if (!st)
                st = parse_accepted_age("keep-symbols", s->keep_symbols, &o->keep_symbols_s, err);
        if (!st && s->session_max_age)
                st = parse_age("session-max-age", s->session_max_age, &o->session_max_age_s, err);
        o->removed_grace_ms = keep_removed_s * 1000;
        return st;
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
                st = check_serve_numbers(s, err);
        if (!st)
                st = parse_serve_sizes(s, err);
        if (!st)
                st = parse_serve_ages(s, err);
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

void serve_settings_apply_log(const struct serve_settings *s)
{
        enum log_format format;
        enum log_level level;

        if (!log_level_parse(s->level_name, &level))
                log_set_level(level);
        if (!log_format_parse(s->format_name, &format))
                log_set_format(format);
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
        struct option_list *lists[] = {
                &s->urls, &s->origins, &s->hosts, &s->rules, &s->trees, &s->samples, &s->proxies
        };

        upstream_list_deinit(&s->upstreams);
        sample_rules_deinit(&s->sample_rules);
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
                options_list_deinit(lists[i]);
        free(s->ranges);
        free(s->specs);
        free(s->environment_urls);
        configuration_deinit(&s->configuration);
}
