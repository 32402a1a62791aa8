/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/commands/command.h"
#include "common/cleanup.h"
#include "common/configuration.h"
#include "common/limits.h"
#include "common/log.h"
#include "http/trusted_proxy.h"
#include "query/sample_rules.h"
#include "sandbox/fork_server.h"
#include "sandbox/setup.h"
#include "server/server.h"
#include "server/upstream_list.h"

static const struct usage usage = {
        .synopsis = "cairn serve [--data DIR] [--listen HOST:PORT] [OPTION]...",
        .about =
                "Runs the service: accepts profiles and debuginfo, stores them in one directory, and answers queries.\n"
                "SIGINT and SIGTERM stop it; no acknowledged data is lost.",
        .examples = "  cairn serve --data /var/lib/cairn\n"
                    "  cairn serve --data /var/lib/cairn --listen 0.0.0.0:7700 --token-file /etc/cairn/tokens \\\n"
                    "      --tls-cert /etc/cairn/cert.pem --tls-key /etc/cairn/key.pem\n"
                    "  cairn serve --upstream https://debuginfod.debian.net\n"
                    "  cairn serve --scan /srv/packages --scan /usr/lib/debug",
};

static enum status check_scanned_trees(const struct server_options *o, size_t count, uint64_t cache_mib,
                                       struct error *err)
{
        if (count && o->read_only)
                return error_set(err, ST_USAGE,
                                 "--scan and --read-only exclude each other: scanning keeps an index in the directory");
        if (o->scan_interval_s > 366 * 86400 || cache_mib > (1u << 30))
                return error_set(err, ST_USAGE, "the scan's interval is at most a year, and its cache 1024 TiB");
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
                       : error_set(err, ST_USAGE, "--%s '%s' is not a number with s, m, h or d, as 30d, nor any",
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

int command_serve(int argc, char **argv)
{
        struct server_options o = { .dir = "cairn-data",
                                    .listen = "127.0.0.1:7700",
                                    .scan_interval_s = 300,
                                    .query_timeout_s = LIMIT_QUERY_S,
                                    .session_max_age_s = LIMIT_SESSION_S };
        const char *share_size = "256M", *share_age = "30d";
        const char *level_name = "info", *upstreams_path = NULL, *memory = NULL, *query_memory = NULL,
                   *worker_user = NULL;
        const char *max_age = "30d", *max_ahead = "10m", *keep_removed = "1h", *session_max_age = NULL;
        const char *env = getenv("DEBUGINFOD_URLS");
        _cleanup_free_ char *words = strdup(env ? env : "");
        struct upstream_list upstreams = { 0 };
        struct option_list urls = { 0 }, origins = { 0 }, hosts = { 0 }, rules = { 0 }, trees = { 0 }, samples = { 0 };
        struct option_list proxies = { 0 };
        _cleanup_free_ struct address_range *ranges = NULL;
        struct retention_rule retention[RETENTION_RULES_MAX];
        _cleanup_sample_rules_ struct sample_rules sample_rules = { 0 };
        uint64_t flush_interval_s = 0, keep_removed_s = 0, scan_cache_mib = 8192;
        enum log_level level = LOG_INFO;
        _cleanup_configuration_ struct configuration configuration = { .section = "serve" };
        struct error err;
        enum status st;
        const struct option_spec specs[] = {
                OPTION_STRING("data", 0, "DIR", &o.dir, "data directory (cairn-data)"),
                OPTION_STRING("listen", 0, "HOST:PORT", &o.listen,
                              "where to listen (127.0.0.1:7700); port 0 takes a free one"),
                OPTION_STRING("listen-otlp-grpc", 0, "HOST:PORT", &o.listen_otlp_grpc,
                              "also take OTLP profiles over gRPC, for example on 127.0.0.1:4317"),
                OPTION_LIST("upstream", 0, "URL", &urls,
                            "debuginfod server to fetch missing debuginfo from; repeatable; DEBUGINFOD_URLS adds more"),
                OPTION_STRING("upstreams", 0, "FILE", &upstreams_path,
                              "more upstreams with credentials, lines of URL [token=TOKEN | header=NAME:VALUE]"),
                OPTION_STRING("upstream-ca", 0, "FILE", &o.upstream_ca,
                              "CA certificates for upstreams, PEM (the system's)"),
                OPTION_LIST("scan", 0, "DIR", &trees,
                            "serve the packages and ELF files of a directory tree too; repeatable"),
                OPTION_UINT("scan-interval", 0, "SECONDS", &o.scan_interval_s,
                            "time between scans (300); 0: on SIGUSR1"),
                OPTION_UINT("scan-cache", 0, "MIB", &scan_cache_mib,
                            "disk space for files extracted from packages (8192)"),
                OPTION_LIST("allow-host", 0, "NAME", &hosts,
                            "host name that clients use, besides addresses and localhost; repeatable"),
                OPTION_LIST("cors-origin", 0, "ORIGIN", &origins,
                            "let pages of this origin read symbolication answers; repeatable"),
                OPTION_STRING("token-file", 0, "FILE", &o.token_file,
                              "lines of TOKEN scope[,scope...] [rate=N] [bytes=N] [tenant=NAME]: read, ingest, upload, "
                              "history, admin"),
                OPTION_STRING("tenants", 0, "FILE", &o.tenant_file,
                              "lines of NAME [retain RULE | rate N | bytes N]: tenants with samples of their own"),
                OPTION_STRING("session-max-age", 0, "AGE", &session_max_age,
                              "browsers that signed in with a token do so again after this long (12h)"),
                OPTION_LIST("trusted-proxy", 0, "ADDRESS[/BITS]", &proxies,
                            "believe X-Forwarded-For and X-Forwarded-Proto of this reverse proxy; repeatable"),
                OPTION_STRING("proxy-auth", 0, "HEADER", &o.proxy_auth,
                              "trusted proxies name in it who may read the pages, as X-Forwarded-User"),
                OPTION_STRING("tls-cert", 0, "FILE", &o.tls_cert, "enable https: the certificate and its chain, PEM"),
                OPTION_STRING("tls-key", 0, "FILE", &o.tls_key, "private key of --tls-cert"),
                OPTION_UINT("max-connections", 0, "N", &o.max_connections, "simultaneous connections (4096)"),
                OPTION_UINT("max-per-address", 0, "N", &o.max_per_address,
                            "connections per address (half); raise it behind a proxy"),
                OPTION_UINT("rate", 0, "N", &o.address_rate,
                            "requests per second and address without a known token (no limit)"),
                OPTION_LIST("retain", 0, "RULE", &rules,
                            "how long debuginfo is kept, as label=nightly,age=30d or size=200G; the first matching "
                            "counts"),
                OPTION_LIST("retain-samples", 0, "RULE", &samples,
                            "how long samples are kept, as age=30d, size=200G or '{env=\"dev\"},age=3d' (forever); "
                            "repeatable"),
                OPTION_STRING("memory", 0, "SIZE", &memory,
                              "memory budget, as 2G (half of the machine's or the cgroup's); at least 256M"),
                OPTION_STRING("query-memory", 0, "SIZE[,SIZE]", &query_memory,
                              "memory of one query, and of all together (20%, 40% of --memory)"),
                OPTION_UINT("query-timeout", 0, "SECONDS", &o.query_timeout_s, "stop a query after this long (60)"),
                OPTION_FLAG("read-only", 0, &o.read_only, "answer queries over a directory, change nothing"),
                OPTION_UINT("flush-interval", 0, "SECONDS", &flush_interval_s, "write parts this often (10)"),
                OPTION_STRING("keep-removed", 0, "AGE", &keep_removed,
                              "keep files that were removed from the tables for readers of older versions (1h)"),
                OPTION_STRING("worker-user", 0, "USER", &worker_user,
                              "name or uid that a service of root runs workers as (61111)"),
                OPTION_STRING("max-age", 0, "AGE", &max_age, "reject older samples (30d); any: accept all"),
                OPTION_STRING("max-ahead", 0, "AGE", &max_ahead,
                              "reject samples further in the future (10m); any: accept all"),
                OPTION_STRING("share-size", 0, "SIZE", &share_size,
                              "disk space of profiles shared by a link (256M); 0: sharing is off"),
                OPTION_STRING("share-age", 0, "AGE", &share_age, "remove shared profiles after this (30d); any: never"),
                OPTION_STRING("accept-past", 0, "AGE", &max_age, "older name of --max-age"),
                OPTION_STRING("accept-future", 0, "AGE", &max_ahead, "older name of --max-ahead"),
                OPTION_STRING("port-file", 0, "FILE", &o.port_file, "write the port to FILE once the service is ready"),
                OPTION_STRING("log-level", 0, "LEVEL", &level_name, "debug, info, warn or error (info)"),
                OPTIONS_OF_CONFIGURATION(&configuration),
                OPTION_END,
        };

        st = configuration_parse(&configuration, &usage, specs, &argc, &argv, &err);
        if (!st && argc > 0)
                st = error_set(&err, ST_USAGE, "unexpected argument '%s'", argv[0]);
        if (!st && log_level_parse(level_name, &level))
                st = error_set(&err, ST_USAGE, "log level '%s' is none of debug, info, warn, error", level_name);
        if (!st && (o.max_connections > 60000 || o.max_per_address > 60000))
                st = error_set(&err, ST_USAGE, "--max-connections is at most 60000");
        if (!st && memory && !parse_bytes(memory, &o.memory_bytes))
                st = error_set(&err, ST_USAGE, "--memory '%s' is not a number of bytes with K, M, G or T", memory);
        if (!st && query_memory)
                st = parse_query_memory(query_memory, &o, &err);
        if (!st)
                st = parse_accepted_age("max-age", max_age, &o.max_age_s, &err);
        if (!st)
                st = parse_accepted_age("max-ahead", max_ahead, &o.max_ahead_s, &err);
        if (!st)
                st = parse_accepted_age("share-age", share_age, &o.share_age_s, &err);
        if (!st && strcmp(share_size, "0") != 0 && !parse_bytes(share_size, &o.share_bytes))
                st = error_set(&err, ST_USAGE, "--share-size '%s' is not a number of bytes with K, M, G or T",
                               share_size);
        if (!st)
                st = parse_age("keep-removed", keep_removed, &keep_removed_s, &err);
        if (!st && session_max_age)
                st = parse_age("session-max-age", session_max_age, &o.session_max_age_s, &err);
        if (!st)
                st = parse_trusted_proxies(&proxies, &ranges, &err);
        if (!st && o.listen_otlp_grpc && o.read_only)
                st = error_set(&err, ST_USAGE,
                               "--listen-otlp-grpc and --read-only exclude each other: nothing is ingested");
        if (!st && o.address_rate > 1000000)
                st = error_set(&err, ST_USAGE, "--rate is at most a million requests a second");
        if (!st && (!o.query_timeout_s || o.query_timeout_s > 86400))
                st = error_set(&err, ST_USAGE, "--query-timeout takes 1 to 86400 seconds");
        if (!st && (flush_interval_s > 86400))
                st = error_set(&err, ST_USAGE, "the flush interval is at most a day");
        if (!st)
                st = collect_upstreams(&upstreams, &urls, upstreams_path, words, &err);
        if (!st)
                st = check_scanned_trees(&o, trees.count, scan_cache_mib, &err);
        for (size_t i = 0; i < samples.count && !st; i++)
                st = sample_rules_add(&sample_rules, samples.items[i], &err);
        o.sample_limits = sample_rules.limits;
        o.sample_rules = samples.items;
        o.sample_rule_count = samples.count;
        if (!st)
                st = retention_rules_parse(rules.items, rules.count, retention, &err);
        if (!st && !configuration_report(&configuration, specs)) {
                log_set_level(level);
                o.upstreams = (const char *const *)upstreams.urls;
                o.upstream_headers = (const char *const *)upstreams.headers;
                o.upstream_count = upstreams.count;
                o.allowed_hosts = hosts.items;
                o.allowed_host_count = hosts.count;
                o.cors_origins = origins.items;
                o.cors_origin_count = origins.count;
                o.trusted_proxies = ranges;
                o.trusted_proxy_count = proxies.count;
                o.scan_dirs = trees.items;
                o.scan_dir_count = trees.count;
                o.scan_cache_bytes = scan_cache_mib << 20;
                o.retention = retention;
                o.retention_count = rules.count;
                o.removed_grace_ms = keep_removed_s * 1000;
                o.flush_interval_ms = flush_interval_s * 1000;
                st = sandbox_setup("serve", worker_user, &err);
                if (!st && trees.count)
                        st = fork_server_create(NULL, command_worker, &o.nursery, &err);
                if (!st)
                        st = server_run(&o, &err);
                fork_server_destroy(o.nursery);
        }
        upstream_list_deinit(&upstreams);
        options_list_deinit(&urls);
        options_list_deinit(&hosts);
        options_list_deinit(&origins);
        options_list_deinit(&rules);
        options_list_deinit(&trees);
        options_list_deinit(&samples);
        options_list_deinit(&proxies);
        return st ? command_fail("serve", st, &err) : EXIT_DONE;
}
