/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SHARED_SERVE_SETTINGS_H
#define CAIRN_CLI_SHARED_SERVE_SETTINGS_H

/**
 * @file
 * The options of the service, from the command line, the environment and the configuration file, checked: for `cairn
 * serve`, for its reload, and for `cairn doctor`.
 *
 * Threads: one at a time.
 */
#include "common/config/configuration.h"
#include "query/engine/sample_rules.h"
#include "server/core/upstream_list.h"
#include "server/server_options.h"

#define SERVE_OPTIONS_MAX 96

/** Must not be moved: server and the configuration point into it. */
struct serve_settings {
        struct server_options server; /* options of the service; borrows from this struct */
        const char *worker_user;
        struct configuration configuration;
        struct option_spec *specs; /* owned; the options, with targets in this struct */
        /* private */
        const char *slow_query, *upstreams_path, *query_memory, *role;
        unsigned log_level, log_format, ack;
        uint64_t flush_interval_s, ack_interval_s, keep_removed_s, lease_s, scan_cache_mib, table_cache_bytes;
        struct option_list urls, origins, hosts, rules, trees, samples, proxies, peers, forwards;
        struct upstream_list upstreams;
        struct address_range *ranges;
        struct retention_rule retention[RETENTION_RULES_MAX];
        struct sample_rules sample_rules;
        char *environment_urls; /* a copy of DEBUGINFOD_URLS */
};

/**
 * Parse and check all options. Reads the configuration file and the file of --upstreams.
 * @param usage  for --help.
 * @param ret    serve_settings_deinit() also on failure, and also when it is zeroed.
 * @return as configuration_parse(), upstream_list_read() and access_check_options(); ST_USAGE for an invalid value.
 */
enum status serve_settings_parse(struct serve_settings *ret, const struct usage *usage, int *argc, char ***argv,
                                 struct error *err) MUST_CHECK;

/** configuration_check_reread(), and the same for the file of --upstreams. */
enum status serve_settings_check_reread(const struct serve_settings *before, const struct serve_settings *fresh,
                                        struct error *err) MUST_CHECK;

/** Apply --log-level and --log-format. */
void serve_settings_apply_log(const struct serve_settings *s);

/** Whether an option is set: on the command line, in the environment or in the file. */
bool serve_settings_has(const struct serve_settings *s, const char *option);

void serve_settings_deinit(struct serve_settings *s);

#endif
