/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_SCRAPE_CONFIG_H
#define CAIRN_SCRAPE_SCRAPE_CONFIG_H

/**
 * @file
 * The configuration of `cairn scrape`, YAML: the subset of Prometheus' scrape_configs that applies to profiles, and
 * Parca's profiling_config for the profiles to fetch. Unknown and duplicate keys are errors with the line.
 *
 * Relative paths start at the directory of the configuration file.
 *
 * Threads: any number of readers, but only one at a time uses the relabel rules.
 * Source: Prometheus 3, "Configuration"; Parca 0.20, pkg/config.
 */
#include <stdbool.h>
#include <stdint.h>

#include "relabel/relabel_rules.h"
#include "relabel/label_set.h"

/** Targets that share labels: an entry of static_configs, or of a file of file_sd_configs. */
struct target_group {
        char **addresses; /* owned */
        size_t count;
        struct label_set labels;
};

struct target_groups {
        struct target_group *items; /* owned */
        size_t count, capacity;
        size_t address_count; /* of all groups */
};

void target_groups_deinit(struct target_groups *g);
#define _cleanup_target_groups_ _cleanup_(target_groups_deinit)

/** One profile of each target of a job. */
struct scrape_profile {
        char *name; /* owned: first part of the type ids, "process_cpu" */
        char *path; /* owned: "/debug/pprof/profile", after the job's prefix; may have a query */
        bool enabled;
        bool delta;       /* the target measures for `seconds`, sent in the query */
        uint64_t seconds; /* 0: chosen from the interval */
        bool cumulative;  /* totals since the start of the target: deltas between scrapes are sent */
};

/** HTTP settings of a job. Secrets in files are read for each request. */
struct scrape_http {
        char *username, *password, *password_file;        /* of basic authentication */
        char *auth_type, *credentials, *credentials_file; /* auth_type NULL: "Bearer" */
        char *ca_file, *cert_file, *key_file;             /* PEM */
        bool follow_redirects;
        size_t body_max_bytes;
};

struct scrape_job {
        char *name; /* owned; the label "job" */
        char *scheme, *prefix;
        uint64_t interval_ms, timeout_ms;
        struct scrape_http http;
        struct scrape_profile *profiles; /* owned */
        size_t profile_count, profile_capacity;
        struct target_groups groups;
        char **file_patterns; /* owned: absolute, or relative to the working directory */
        size_t file_pattern_count;
        struct relabel_rules rules;
};

struct scrape_config {
        char *path;
        uint64_t interval_ms, timeout_ms; /* defaults of jobs */
        struct label_set external;        /* external_labels: added to targets that lack them */
        struct scrape_job *jobs;          /* owned */
        size_t job_count, job_capacity;
};

/** @return ST_OK; ST_NOT_FOUND without the file; ST_USAGE with "PATH:LINE: what is wrong"; ST_TOO_BIG, ST_OS. */
enum status scrape_config_read(const char *path, struct scrape_config *ret, struct error *err) MUST_CHECK;
void scrape_config_deinit(struct scrape_config *c);
#define _cleanup_scrape_config_ _cleanup_(scrape_config_deinit)

/**
 * Read a file of targets: a list of groups, [{"targets": ["HOST:PORT"], "labels": {"K": "V"}}], in JSON or YAML.
 * Groups are appended; their label __meta_filepath is the path.
 * @return as scrape_config_read().
 */
enum status target_file_read(const char *path, struct target_groups *ret, struct error *err) MUST_CHECK;

/** The seconds that the target measures for, 0 for a profile that is returned at once. */
uint64_t scrape_profile_seconds(const struct scrape_job *job, const struct scrape_profile *p);

#endif
