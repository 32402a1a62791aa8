/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration is read by tables: each YAML mapping has an array of yaml_field with the key, a reader, and the
 * offset of the member that it fills. Readers nest as the document does, and come after those they use: groups of
 * targets, file discovery, HTTP settings, profiles, jobs, the whole file. A new key is one row in a table, and a
 * reader if none fits.
 *
 * A job starts with the usual pprof profiles of Go; pprof_config changes them by name or adds others. Checks that
 * involve several keys, and defaults that depend on them, are in the reader of the mapping or in finish_job().
 *
 * Ownership: an element is appended to its array before it is filled, so that scrape_config_deinit() also frees one
 * that was read in part.
 */
#include "scrape/scrape_config.h"

#include <stddef.h>
#include <string.h>

#include "common/config/yaml_fields.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "query/engine/unit_text.h"

#define DEFAULT_INTERVAL_MS 15000
#define DEFAULT_TIMEOUT_MS 10000
#define LEAST_INTERVAL_MS 100
#define LONGEST_INTERVAL_MS 86400000

/* ---- groups of targets ---- */

void target_groups_deinit(struct target_groups *g)
{
        for (size_t i = 0; i < g->count; i++) {
                yaml_free_texts(g->items[i].addresses, g->items[i].count);
                label_set_deinit(&g->items[i].labels);
        }
        free(g->items);
        *g = (struct target_groups){ 0 };
}

static enum status read_label_pair(const struct yaml_source *in, const yaml_node_t *name, const yaml_node_t *value,
                                   void *object)
{
        const char *key = yaml_read_scalar(in, name), *text = key ? yaml_read_scalar(in, value) : NULL;
        enum status st;

        if (!text)
                return ST_USAGE;
        if (!label_name_is_valid(key))
                return yaml_error(in, name, "'%.60s' is not the name of a label", PRINTABLE(key));
        if (!utf8_valid(text, strlen(text)))
                return yaml_error(in, value, "the value of '%.60s' is not UTF-8", key);
        st = label_set_put(object, key, text, in->err);
        return st ? yaml_locate_error(in, value, st) : ST_OK;
}

static enum status read_label_pairs(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        return yaml_read_pairs(in, value, LIMIT_RELABEL_LABELS, read_label_pair, object);
}

static enum status read_group_addresses(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        struct target_group *g = object;

        return yaml_read_texts(in, value, LIMIT_SCRAPE_TARGETS, &g->addresses, &g->count);
}

static const struct yaml_field group_fields[] = {
        { "targets", read_group_addresses, 0 },
        { "labels", read_label_pairs, offsetof(struct target_group, labels) },
        { 0 },
};

static enum status read_target_group(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        struct target_groups *g = object;
        struct target_group *group;
        enum status st;

        if (!array_reserve(&g->items, &g->capacity, g->count))
                return error_no_memory(in->err);
        group = &g->items[g->count++];
        *group = (struct target_group){ 0 };
        st = yaml_read_mapping(in, value, group_fields, group);
        g->address_count += group->count;
        if (!st && g->address_count > LIMIT_SCRAPE_TARGETS)
                st = yaml_error(in, value, "more than %d targets", LIMIT_SCRAPE_TARGETS);
        return st;
}

static enum status read_target_groups(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        return yaml_read_items(in, value, LIMIT_SCRAPE_TARGETS, read_target_group, object);
}

enum status target_file_read(const char *path, struct target_groups *ret, struct error *err)
{
        size_t before = ret->count;
        enum status st = yaml_file_read(path, LIMIT_SCRAPE_FILE_BYTES, read_target_groups, ret, err);

        for (size_t i = before; !st && i < ret->count; i++)
                st = label_set_put(&ret->items[i].labels, "__meta_filepath", path, err);
        return st;
}

/* ---- files ---- */

static enum status read_scrape_duration(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        const char *text = yaml_read_scalar(in, value);
        int64_t ns;

        if (!text)
                return ST_USAGE;
        if (duration_text_parse(text, &ns, NULL))
                return yaml_error(in, value, "a time as 15s or 1m30s is expected here");
        *(uint64_t *)object = (uint64_t)ns / 1000000; /* ms */
        return ST_OK;
}

/* A path, relative to the directory of the configuration file. */
static enum status read_config_path(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        char **to = object;
        const char *base = path_base(in->path);
        _cleanup_free_ char *dir = NULL;
        enum status st = yaml_read_text(in, value, to);
        char *joined;

        if (st || **to == '/' || base == in->path)
                return st;
        dir = strndup(in->path, (size_t)(base - in->path - 1));
        joined = dir ? path_join(*dir ? dir : "/", *to) : NULL;
        if (!joined)
                return error_no_memory(in->err);
        free(*to);
        *to = joined;
        return ST_OK;
}

struct text_list {
        char **items;
        size_t count, capacity;
};

struct file_discovery {
        struct text_list files;
        uint64_t refresh_ms;
};

static enum status read_file_pattern(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        struct text_list *l = object;
        char *path = NULL;
        enum status st = read_config_path(in, value, &path);

        if (!st && !array_reserve(&l->items, &l->capacity, l->count))
                st = error_no_memory(in->err);
        if (!st)
                l->items[l->count++] = steal_ptr(path);
        free(path);
        return st;
}

static enum status read_file_patterns(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        return yaml_read_items(in, value, LIMIT_SCRAPE_FILES, read_file_pattern, object);
}

/* Files are polled every second; Prometheus' refresh_interval is accepted and ignored. */
static const struct yaml_field file_discovery_fields[] = {
        { "files", read_file_patterns, offsetof(struct file_discovery, files) },
        { "refresh_interval", read_scrape_duration, offsetof(struct file_discovery, refresh_ms) },
        { 0 },
};

static enum status read_file_discovery(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        struct scrape_job *job = object;
        struct file_discovery d = { .files = { job->file_patterns, job->file_pattern_count, job->file_pattern_count } };
        enum status st = yaml_read_mapping(in, value, file_discovery_fields, &d);

        job->file_patterns = d.files.items;
        job->file_pattern_count = d.files.count;
        return st;
}

static enum status read_file_discoveries(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        return yaml_read_items(in, value, LIMIT_SCRAPE_FILES, read_file_discovery, object);
}

/* ---- requests ---- */

/* Text without line breaks, which would end an HTTP header. */
static enum status read_header_text(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        char **to = object;
        enum status st = yaml_read_text(in, value, to);

        if (!st && (!**to || strpbrk(*to, "\r\n")))
                return yaml_error(in, value, "a text of one line is expected here");
        return st;
}

static const struct yaml_field basic_auth_fields[] = {
        { "username", read_header_text, offsetof(struct scrape_http, username) },
        { "password", read_header_text, offsetof(struct scrape_http, password) },
        { "password_file", read_config_path, offsetof(struct scrape_http, password_file) },
        { 0 },
};

static enum status read_basic_auth(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        struct scrape_http *h = object;
        enum status st = yaml_read_mapping(in, value, basic_auth_fields, h);

        if (!st && !h->username)
                return yaml_error(in, value, "basic_auth needs a username");
        if (!st && h->password && h->password_file)
                return yaml_error(in, value, "either password or password_file, not both");
        return st;
}

static const struct yaml_field authorization_fields[] = {
        { "type", read_header_text, offsetof(struct scrape_http, auth_type) },
        { "credentials", read_header_text, offsetof(struct scrape_http, credentials) },
        { "credentials_file", read_config_path, offsetof(struct scrape_http, credentials_file) },
        { 0 },
};

static enum status read_authorization(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        struct scrape_http *h = object;
        enum status st = yaml_read_mapping(in, value, authorization_fields, h);

        if (!st && !h->credentials == !h->credentials_file)
                return yaml_error(in, value, "authorization needs one of credentials and credentials_file");
        return st;
}

static enum status refuse_insecure(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        bool insecure = false;
        enum status st = yaml_read_flag(in, value, &insecure);

        (void)object;
        if (!st && insecure)
                return yaml_error(in, value, "certificates are always verified: give ca_file instead");
        return st;
}

static const struct yaml_field tls_fields[] = {
        { "ca_file", read_config_path, offsetof(struct scrape_http, ca_file) },
        { "cert_file", read_config_path, offsetof(struct scrape_http, cert_file) },
        { "key_file", read_config_path, offsetof(struct scrape_http, key_file) },
        { "insecure_skip_verify", refuse_insecure, 0 },
        { 0 },
};

static enum status read_tls_config(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        struct scrape_http *h = object;
        enum status st = yaml_read_mapping(in, value, tls_fields, h);

        if (!st && !h->cert_file != !h->key_file)
                return yaml_error(in, value, "cert_file and key_file go together");
        return st;
}

/* "10MB", "4MiB": powers of 1024, as in Prometheus. 0 is the default. */
static enum status read_size(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        const char *text = yaml_read_scalar(in, value);
        char number[32];
        size_t n;
        uint64_t bytes;

        if (!text)
                return ST_USAGE;
        if (strcmp(text, "0") == 0)
                return ST_OK;
        n = strcspn(text, "iB");
        snprintf(number, sizeof number, "%.*s", n < sizeof number ? (int)n : 0, text);
        if ((text[n] && strcmp(text + n, "B") != 0 && strcmp(text + n, "iB") != 0) || !parse_bytes(number, &bytes))
                return yaml_error(in, value, "a size as 10MB is expected here");
        if (bytes > LIMIT_HTTP_BODY_BYTES)
                return yaml_error(in, value, "a body has at most %zu MiB", LIMIT_HTTP_BODY_BYTES >> 20);
        *(size_t *)object = (size_t)bytes;
        return ST_OK;
}

/* ---- profiles ---- */

static const struct {
        const char *name, *path;
        bool enabled, delta, cumulative;
} usual_profiles[] = {
        { "process_cpu", "/debug/pprof/profile", true, true, false },
        { "memory", "/debug/pprof/allocs", true, false, true },
        { "goroutine", "/debug/pprof/goroutine", true, false, false },
        { "block", "/debug/pprof/block", true, false, true },
        { "mutex", "/debug/pprof/mutex", true, false, true },
};
#define USUAL_COUNT (sizeof usual_profiles / sizeof *usual_profiles)

static enum status add_scrape_profile(struct scrape_job *job, const char *name, const char *path,
                                      struct scrape_profile **ret, struct error *err)
{
        struct scrape_profile *p;

        if (!array_reserve(&job->profiles, &job->profile_capacity, job->profile_count))
                return error_no_memory(err);
        p = &job->profiles[job->profile_count++];
        *p = (struct scrape_profile){ .name = strdup(name), .path = path ? strdup(path) : NULL };
        *ret = p;
        return p->name && (p->path || !path) ? ST_OK : error_no_memory(err);
}

static enum status add_usual_profiles(struct scrape_job *job, struct error *err)
{
        struct scrape_profile *p = NULL;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < USUAL_COUNT; i++) {
                st = add_scrape_profile(job, usual_profiles[i].name, usual_profiles[i].path, &p, err);
                if (st)
                        break;
                p->enabled = usual_profiles[i].enabled;
                p->delta = usual_profiles[i].delta;
                p->cumulative = usual_profiles[i].cumulative;
        }
        return st;
}

static enum status read_profile_path(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        char **to = object;
        enum status st = yaml_read_text(in, value, to);

        /* libcurl rejects other invalid URLs. */
        if (!st && (**to != '/' || strpbrk(*to, " \t\r\n#")))
                return yaml_error(in, value, "a path must begin with '/' and have no spaces and no '#'");
        return st;
}

static enum status ignore_value(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        (void)in, (void)value, (void)object;
        return ST_OK;
}

static const struct yaml_field profile_fields[] = {
        { "enabled", yaml_read_flag, offsetof(struct scrape_profile, enabled) },
        { "path", read_profile_path, offsetof(struct scrape_profile, path) },
        { "delta", yaml_read_flag, offsetof(struct scrape_profile, delta) },
        { "seconds", yaml_read_number, offsetof(struct scrape_profile, seconds) },
        { "cumulative", yaml_read_flag, offsetof(struct scrape_profile, cumulative) },
        { "keep_sample_type", ignore_value, 0 }, /* Parca: it stores one type of each profile, Cairn all */
        { 0 },
};

static enum status read_profile(const struct yaml_source *in, const yaml_node_t *name, const yaml_node_t *value,
                                void *object)
{
        struct scrape_job *job = object;
        struct scrape_profile *p = NULL;
        const char *text = yaml_read_scalar(in, name);
        enum status st = ST_OK;

        for (size_t i = 0; i < job->profile_count; i++)
                if (strcmp(job->profiles[i].name, text) == 0)
                        p = &job->profiles[i];
        if (!p) {
                if (!label_name_is_valid(text) || strlen(text) > 60)
                        return yaml_error(in, name, "'%.60s' is not the name of a profile", PRINTABLE(text));
                if (job->profile_count == LIMIT_SCRAPE_PROFILES)
                        return yaml_error(in, name, "more than %d profiles", LIMIT_SCRAPE_PROFILES);
                st = add_scrape_profile(job, text, NULL, &p, in->err);
                if (st)
                        return st;
                p->enabled = true;
        }
        st = yaml_read_mapping(in, value, profile_fields, p);
        if (!st && !p->path)
                return yaml_error(in, name, "profile '%s' needs a path", p->name);
        if (!st && p->seconds > LONGEST_INTERVAL_MS / 1000)
                return yaml_error(in, name, "profile '%s' takes longer than a day", p->name);
        if (!st && p->seconds)
                p->delta = true;
        if (!st && p->delta)
                p->cumulative = false; /* the target measured the delta itself */
        return st;
}

static enum status read_profiles(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        return yaml_read_pairs(in, value, LIMIT_SCRAPE_PROFILES, read_profile, object);
}

static const struct yaml_field profiling_fields[] = {
        { "pprof_prefix", read_profile_path, offsetof(struct scrape_job, prefix) },
        { "path_prefix", read_profile_path, offsetof(struct scrape_job, prefix) },
        { "pprof_config", read_profiles, 0 },
        { 0 },
};

static enum status read_profiling_config(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        return yaml_read_mapping(in, value, profiling_fields, object);
}

/* ---- jobs ---- */

static enum status read_scheme(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        char **to = object;
        enum status st = yaml_read_text(in, value, to);

        if (!st && strcmp(*to, "http") != 0 && strcmp(*to, "https") != 0)
                return yaml_error(in, value, "scheme must be http or https");
        return st;
}

static enum status read_interval(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        uint64_t *ms = object;
        enum status st = read_scrape_duration(in, value, ms);

        if (!st && (*ms < LEAST_INTERVAL_MS || *ms > LONGEST_INTERVAL_MS))
                return yaml_error(in, value, "a time from 100ms to 1d is expected here");
        return st;
}

#define JOB(member) offsetof(struct scrape_job, member)
#define WHOLE_JOB 0

static const struct yaml_field job_fields[] = {
        { "job_name", read_header_text, JOB(name) },
        { "scrape_interval", read_interval, JOB(interval_ms) },
        { "scrape_timeout", read_interval, JOB(timeout_ms) },
        { "scheme", read_scheme, JOB(scheme) },
        { "static_configs", read_target_groups, JOB(groups) },
        { "file_sd_configs", read_file_discoveries, WHOLE_JOB },
        { "relabel_configs", relabel_rules_read, JOB(rules) },
        { "profiling_config", read_profiling_config, WHOLE_JOB },
        { "basic_auth", read_basic_auth, JOB(http) },
        { "authorization", read_authorization, JOB(http) },
        { "bearer_token", read_header_text, JOB(http.credentials) },
        { "bearer_token_file", read_config_path, JOB(http.credentials_file) },
        { "tls_config", read_tls_config, JOB(http) },
        { "follow_redirects", yaml_read_flag, JOB(http.follow_redirects) },
        { "body_size_limit", read_size, JOB(http.body_max_bytes) },
        { 0 },
};

static enum status finish_job(const struct yaml_source *in, const yaml_node_t *at, const struct scrape_config *c,
                              struct scrape_job *job)
{
        const struct scrape_http *h = &job->http;
        size_t enabled = 0;

        if (!job->name)
                return yaml_error(in, at, "a job needs a job_name");
        for (const struct scrape_job *other = c->jobs; other < job; other++)
                if (strcmp(other->name, job->name) == 0)
                        return yaml_error(in, at, "there are two jobs '%.60s'", PRINTABLE(job->name));
        if (h->username && (h->credentials || h->credentials_file))
                return yaml_error(in, at, "job '%.60s' has basic_auth and a token", PRINTABLE(job->name));
        if (h->credentials && h->credentials_file)
                return yaml_error(in, at, "job '%.60s' has a token and a file for it", PRINTABLE(job->name));
        job->interval_ms = job->interval_ms ? job->interval_ms : c->interval_ms;
        if (!job->timeout_ms)
                job->timeout_ms = c->timeout_ms < job->interval_ms ? c->timeout_ms : job->interval_ms;
        if (job->timeout_ms > job->interval_ms)
                return yaml_error(in, at, "job '%.60s': scrape_timeout is longer than scrape_interval",
                                  PRINTABLE(job->name));
        for (size_t i = 0; i < job->profile_count; i++) {
                enabled += job->profiles[i].enabled;
                if (job->profiles[i].seconds * 1000 > job->interval_ms)
                        return yaml_error(in, at, "job '%.60s': profile '%s' takes longer than scrape_interval",
                                          PRINTABLE(job->name), job->profiles[i].name);
        }
        return enabled ? ST_OK : yaml_error(in, at, "job '%.60s' has no enabled profile", PRINTABLE(job->name));
}

uint64_t scrape_profile_seconds(const struct scrape_job *job, const struct scrape_profile *p)
{
        if (!p->delta)
                return 0;
        if (p->seconds)
                return p->seconds;
        return job->interval_ms < 2000 ? 1 : job->interval_ms / 1000 - 1;
}

static enum status read_scrape_job(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        struct scrape_config *c = object;
        struct scrape_job *job;
        enum status st;

        if (!array_reserve(&c->jobs, &c->job_capacity, c->job_count))
                return error_no_memory(in->err);
        job = &c->jobs[c->job_count++];
        *job = (struct scrape_job){ .http.body_max_bytes = LIMIT_HTTP_BODY_BYTES };
        st = add_usual_profiles(job, in->err);
        if (!st)
                st = yaml_read_mapping(in, value, job_fields, job);
        return st ? st : finish_job(in, value, c, job);
}

static enum status read_jobs(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        return yaml_read_items(in, value, LIMIT_SCRAPE_JOBS, read_scrape_job, object);
}

static const struct yaml_field global_fields[] = {
        { "scrape_interval", read_interval, offsetof(struct scrape_config, interval_ms) },
        { "scrape_timeout", read_interval, offsetof(struct scrape_config, timeout_ms) },
        { "external_labels", read_label_pairs, offsetof(struct scrape_config, external) },
        { 0 },
};

static enum status read_global(const struct yaml_source *in, const yaml_node_t *value, void *object)
{
        return yaml_read_mapping(in, value, global_fields, object);
}

static const struct yaml_field global_first[] = { { "global", read_global, 0 },
                                                  { "scrape_configs", ignore_value, 0 },
                                                  { 0 } };
static const struct yaml_field jobs_second[] = { { "global", ignore_value, 0 },
                                                 { "scrape_configs", read_jobs, 0 },
                                                 { 0 } };

/* Two passes: jobs depend on the global settings, which may follow them. */
static enum status read_whole_config(const struct yaml_source *in, const yaml_node_t *root, void *object)
{
        enum status st = yaml_read_mapping(in, root, global_first, object);

        return st ? st : yaml_read_mapping(in, root, jobs_second, object);
}

enum status scrape_config_read(const char *path, struct scrape_config *ret, struct error *err)
{
        struct scrape_config c = { .interval_ms = DEFAULT_INTERVAL_MS, .timeout_ms = DEFAULT_TIMEOUT_MS };
        enum status st;

        c.path = strdup(path);
        st = c.path ? yaml_file_read(path, LIMIT_CONFIG_BYTES, read_whole_config, &c, err) : error_no_memory(err);
        if (!st && !c.job_count)
                st = error_set(err, ST_USAGE, "%s: there is no job in scrape_configs", path);
        if (st) {
                scrape_config_deinit(&c);
                return st;
        }
        *ret = c;
        return ST_OK;
}

static void free_scrape_http(struct scrape_http *h)
{
        char *const texts[] = { h->username,         h->password, h->password_file, h->auth_type, h->credentials,
                                h->credentials_file, h->ca_file,  h->cert_file,     h->key_file };

        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
                free(texts[i]);
}

static void free_scrape_job(struct scrape_job *job)
{
        free(job->name);
        free(job->scheme);
        free(job->prefix);
        free_scrape_http(&job->http);
        for (size_t i = 0; i < job->profile_count; i++) {
                free(job->profiles[i].name);
                free(job->profiles[i].path);
        }
        free(job->profiles);
        target_groups_deinit(&job->groups);
        yaml_free_texts(job->file_patterns, job->file_pattern_count);
        relabel_rules_deinit(&job->rules);
}

void scrape_config_deinit(struct scrape_config *c)
{
        for (size_t i = 0; i < c->job_count; i++)
                free_scrape_job(&c->jobs[i]);
        free(c->jobs);
        label_set_deinit(&c->external);
        free(c->path);
        *c = (struct scrape_config){ 0 };
}
