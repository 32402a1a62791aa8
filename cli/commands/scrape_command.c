/* SPDX-License-Identifier: Apache-2.0 */
/* cairn scrape: fetch profiles of programs that offer them over HTTP, and send them to the service. */
#include <inttypes.h>
#include <string.h>

#include "cli/commands/command.h"
#include "cli/shared/service.h"
#include "common/files/open_files.h"
#include "common/files/tenant_name.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "common/program/shutdown_signals.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "scrape/scrape_status.h"

#define DEFAULT_CONCURRENCY 256
#define DEFAULT_MEMORY_BYTES GiB(1)
#define DEFAULT_SCRAPE_SPOOL_BYTES MiB(512)
#define FILES_PER_REQUEST 8 /* of libcurl: parallel connection attempts, name lookups, its own pipes */
#define OTHER_FILES 128
#define SCRAPE_FLUSH_MS 10000 /* time to send queued batches when the command ends */

static const struct usage usage = {
        .synopsis = "cairn scrape [--server URL] [--lease NAME] [--spool DIR] [--metrics-listen ADDRESS] CONFIG\n"
                    "       cairn scrape --check [--json] CONFIG\n"
                    "       cairn scrape --once [--json] CONFIG",
        .about = "Fetch profiles at intervals from programs that serve them over HTTP, as Go's net/http/pprof does,\n"
                 "and send them to the service. CONFIG is YAML like Prometheus' scrape_configs.",
        .examples = "  cairn scrape --check scrape.yaml\n"
                    "  cairn scrape --server http://cairn:7700 --spool /var/lib/cairn-scrape scrape.yaml",
};

struct scrape_command {
        struct service_options service;
        const char *config, *spool, *lease, *metrics_listen;
        unsigned log_level, log_format;
        uint64_t concurrency, spool_bytes, memory_bytes;
        bool check, once, json;
};

static enum status check_scrape_options(struct scrape_command *c, int argc, char **argv, struct error *err)
{
        if (!argc)
                return error_set(err, ST_USAGE, "no CONFIG is given");
        if (argc > 1)
                return error_set(err, ST_USAGE, "expected one CONFIG: unexpected argument '%.60s'", argv[1]);
        if (c->json && !c->check && !c->once)
                return error_set(err, ST_USAGE, "--json needs --check or --once");
        if (c->lease && c->once)
                return error_set(err, ST_USAGE, "--once scrapes without a lease: leave out --lease");
        if (c->lease && !tenant_name_is_valid(c->lease))
                return error_set(err, ST_USAGE, "--lease '%.40s' is not 1 to %d of a-z, 0-9, '-' and '_'", c->lease,
                                 TENANT_NAME_SIZE - 1);
        c->config = argv[0];
        log_set_level((enum log_level)c->log_level);
        log_set_format((enum log_format)c->log_format);
        if (c->service.tenant && !tenant_name_is_valid(c->service.tenant))
                return error_set(err, ST_USAGE, "--tenant '%.40s' is not a tenant's name", c->service.tenant);
        return memory_budget_set_limit(c->memory_bytes, err);
}

/* ---- --check ---- */

static void print_target(const struct scrape_target *t)
{
        _cleanup_buf_ struct buf line;

        buf_init(&line, MiB(1));
        utf8_append_escaped(&line, t->base_url);
        for (size_t i = 0; i < t->labels.count; i++) {
                buf_append_u8(&line, ' ');
                utf8_append_escaped(&line, t->labels.items[i].name);
                buf_append_u8(&line, '=');
                utf8_append_escaped(&line, t->labels.items[i].value);
        }
        printf("  %s\n", buf_cstr(&line));
}

static void print_job(const struct scrape_job *job, const struct target_list *targets)
{
        size_t count = 0;

        for (size_t i = 0; i < targets->count; i++)
                count += targets->items[i].job == job;
        printf("job '%s': %zu target%s, every %.15g s\n", PRINTABLE(job->name), count, count == 1 ? "" : "s",
               (double)job->interval_ms / 1000);
        for (size_t i = 0; i < job->profile_count; i++) {
                const struct scrape_profile *p = &job->profiles[i];
                uint64_t seconds = scrape_profile_seconds(job, p);

                if (!p->enabled)
                        continue;
                printf("  profile %s at %s%s", p->name, job->prefix ? job->prefix : "", p->path);
                if (seconds)
                        printf(" for %" PRIu64 " s", seconds);
                printf("%s\n", p->cumulative ? ", differences of totals" : "");
        }
        for (size_t i = 0; i < targets->count; i++)
                if (targets->items[i].job == job)
                        print_target(&targets->items[i]);
}

static void write_targets_json(const struct target_list *targets, struct buf *to)
{
        struct json_out j;

        json_out_init(&j, to);
        json_out_array(&j, NULL);
        for (size_t i = 0; i < targets->count; i++) {
                const struct scrape_target *t = &targets->items[i];

                json_out_object(&j, NULL);
                json_out_str(&j, "job", t->job->name);
                json_out_object(&j, "labels");
                for (size_t k = 0; k < t->labels.count; k++)
                        json_out_str(&j, t->labels.items[k].name, t->labels.items[k].value);
                json_out_object_end(&j);
                json_out_array(&j, "urls");
                for (size_t k = 0; k < t->job->profile_count; k++) {
                        _cleanup_free_ char *url = scrape_target_url(t, &t->job->profiles[k]);

                        if (t->job->profiles[k].enabled)
                                json_out_str(&j, NULL, url);
                }
                json_out_array_end(&j);
                json_out_object_end(&j);
        }
        json_out_array_end(&j);
        buf_append_u8(to, '\n');
}

/* Credentials over http can be read in transit. */
static void warn_of_exposed_secrets(const struct target_list *targets)
{
        for (size_t i = 0; i < targets->count; i++) {
                const struct scrape_http *h = &targets->items[i].job->http;

                if ((h->username || h->credentials || h->credentials_file) &&
                    http_client_exposes_token(targets->items[i].base_url))
                        log_warn("scrape", "job '%s': credentials go to %s unencrypted; use https",
                                 PRINTABLE(targets->items[i].job->name), targets->items[i].base_url);
        }
}

static enum status check_targets(const struct scrape_command *c, const struct scrape_config *config,
                                 struct discovery *d, struct error *err)
{
        _cleanup_target_list_ struct target_list targets = { 0 };
        struct discovery_counts counts;
        _cleanup_buf_ struct buf json;
        bool changed;
        enum status st = discovery_refresh(d, &changed, err);

        buf_init(&json, LIMIT_RESPONSE_BYTES);
        if (!st)
                st = discovery_list_targets(d, &targets, err);
        if (st)
                return st;
        discovery_get_counts(d, &counts);
        warn_of_exposed_secrets(&targets);
        if (c->json) {
                write_targets_json(&targets, &json);
                fwrite(json.data, 1, json.size, stdout);
        } else {
                for (size_t i = 0; i < config->job_count; i++)
                        print_job(&config->jobs[i], &targets);
                printf("%zu target%s, %zu dropped by relabelling\n", targets.count, targets.count == 1 ? "" : "s",
                       counts.dropped);
        }
        if (counts.failed_files || counts.invalid)
                return error_set(err, ST_USAGE, "%.200s", counts.error);
        return buf_status(&json, err, "targets");
}

static enum status run_scrape_check(const struct scrape_command *c, const struct scrape_config *config,
                                    struct error *err)
{
        struct discovery *d = NULL;
        enum status st = discovery_create(config, &d, err);

        if (!st)
                st = check_targets(c, config, d, err);
        discovery_destroy(d);
        return st;
}

/* ---- scraping ---- */

static enum status create_scrape_sender(const struct scrape_command *c, struct sender **ret, struct error *err)
{
        struct sender_options o = { .server = c->service.server ? c->service.server : DEFAULT_SERVER,
                                    .tenant = c->service.tenant,
                                    .ca_file = c->service.ca_file,
                                    .user_agent = "cairn-scrape/" CAIRN_VERSION,
                                    .spool = c->spool,
                                    .spool_bytes = c->spool_bytes };
        _cleanup_free_ char *token = NULL;
        enum status st = c->service.token_file ? http_client_read_token(c->service.token_file, &token, err) : ST_OK;

        o.token = token;
        if (token && http_client_exposes_token(o.server))
                log_warn("scrape", "the token goes to %s unencrypted; use https", o.server);
        return st ? st : sender_create(&o, ret, err);
}

/* NULL without --lease. */
static enum status start_lease(const struct scrape_command *c, struct scraper *s, struct scrape_lease **ret,
                               struct error *err)
{
        struct scrape_lease_options o = { .server = c->service.server ? c->service.server : DEFAULT_SERVER,
                                          .tenant = c->service.tenant,
                                          .ca_file = c->service.ca_file,
                                          .name = c->lease,
                                          .scraper = s };
        _cleanup_free_ char *token = NULL;
        enum status st = ST_OK;

        if (!c->lease)
                return ST_OK;
        if (c->service.token_file)
                st = http_client_read_token(c->service.token_file, &token, err);
        o.token = token;
        return st ? st : scrape_lease_start(&o, ret, err);
}

/* Scrapes beyond the limit of open files would fail one by one, each with its own error. */
static void prepare_open_files(const struct scrape_command *c)
{
        uint64_t wanted = FILES_PER_REQUEST * c->concurrency + OTHER_FILES, most = raise_open_files_limit(wanted);

        if (most < wanted)
                log_warn("scrape",
                         "%" PRIu64 " concurrent requests may need %" PRIu64 " open files, more than the %" PRIu64
                         " allowed; raise the hard limit (ulimit -Hn, LimitNOFILE=) or lower --concurrency",
                         c->concurrency, wanted, most);
}

/* With a spool, batches that the service does not accept now are sent by the next run. */
static enum status flush_scrape_sender(const struct scrape_command *c, struct scraper *s, struct sender *sender,
                                       struct error *err)
{
        uint64_t batches = 0, samples = scraper_count_lost(s);
        struct sender_stats stats;
        enum status st = sender_flush(sender, SCRAPE_FLUSH_MS, err);

        sender_get_stats(sender, &stats);
        for (size_t i = 0; i < DROP_COUNT; i++)
                batches += stats.outbox.dropped[i];
        if (st == ST_BUSY && stats.outbox.spooled == stats.outbox.queued) {
                log_info("scrape", "%s in the spool '%s' for the next run",
                         COUNTED(stats.outbox.spooled, "batch stays", "batches stay"), c->spool);
                st = ST_OK;
        }
        if (!st && (batches || samples))
                st = error_set(err, ST_BAD_DATA, "%s and %s; see the log", COUNTED(batches, "batch", "batches"),
                               COUNTED(samples, "further sample were lost", "further samples were lost"));
        return st;
}

static enum status print_scrape_results(struct scraper *s, bool json, struct error *err)
{
        _cleanup_buf_ struct buf text;

        buf_init(&text, LIMIT_RESPONSE_BYTES);
        if (json)
                scrape_status_write_json(s, NULL, &text);
        else
                scrape_status_write_table(s, &text);
        fwrite(text.data, 1, text.size, stdout);
        return buf_status(&text, err, "the results");
}

static void count_report(void *context, const struct scrape_report *r)
{
        (void)r;
        ++*(size_t *)context;
}

static enum status judge_single_scrape(struct scraper *s, struct error *err)
{
        size_t down = scraper_count_down(s), all = 0;

        scraper_visit(s, count_report, &all);
        if (!all)
                return error_set(err, ST_NOT_FOUND, "there are no targets");
        return down ? error_set(err, ST_BUSY, "%zu of %s not be scraped", down,
                                COUNTED(all, "profile could", "profiles could"))
                    : ST_OK;
}

static enum status run_scraper_until_signal(const struct scrape_command *c, struct scraper *s, struct sender *sender,
                                            int signals, struct error *err)
{
        struct scrape_listener *listener = NULL;
        struct scrape_lease *lease = NULL;
        struct error flush_error;
        enum status st = start_lease(c, s, &lease, err);
        enum status flushed;

        if (!st && c->metrics_listen)
                st = scrape_listener_start(c->metrics_listen, s, lease, &listener, err);
        if (!st)
                st = scraper_run(s, signals, err);
        scraper_stop(s);
        if (lease)
                scrape_lease_stop(lease);
        flushed = flush_scrape_sender(c, s, sender, &flush_error); /* also what a failed run has scraped */
        scrape_listener_stop(listener);
        scrape_lease_destroy(lease);
        if (!st && c->once)
                st = print_scrape_results(s, c->json, err);
        if (st && flushed)
                log_error("scrape", "%s", flush_error.text);
        if (st)
                return st;
        if (flushed) {
                *err = flush_error;
                return flushed;
        }
        return c->once ? judge_single_scrape(s, err) : ST_OK;
}

static enum status run_scraping(const struct scrape_command *c, const struct scrape_config *config, struct error *err)
{
        struct scraper_options o = {
                .config = config, .concurrency = (unsigned)c->concurrency, .needs_lease = c->lease, .once = c->once
        };
        _cleanup_close_ int signals = -1;
        struct scraper *s = NULL;
        enum status st = shutdown_signals_open(&signals, err);

        prepare_open_files(c);
        if (!st)
                st = create_scrape_sender(c, &o.sender, err);
        if (!st)
                st = scraper_create(&o, &s, err);
        if (!st)
                st = run_scraper_until_signal(c, s, o.sender, signals, err);
        scraper_destroy(s);
        sender_destroy(o.sender);
        return st;
}

int command_scrape(int argc, char **argv)
{
        struct scrape_command c = { .concurrency = DEFAULT_CONCURRENCY,
                                    .memory_bytes = DEFAULT_MEMORY_BYTES,
                                    .spool_bytes = DEFAULT_SCRAPE_SPOOL_BYTES,
                                    .log_level = LOG_INFO };
        const struct option_spec specs[] = {
                OPTION_STRING("server", 0, "URL", &c.service.server,
                              "send to this server (default " DEFAULT_SERVER ")"),
                SERVICE_OPTIONS(&c.service),
                TENANT_OPTION(&c.service),
                OPTION_FLAG("check", 0, &c.check,
                            "check CONFIG and the files that it names, print the targets, and exit"),
                OPTION_FLAG("once", 0, &c.once,
                            "scrape each profile once, cumulative ones twice, print the results, and exit"),
                OPTION_FLAG("json", 0, &c.json, "with --check and --once: print JSON"),
                OPTION_RANGE("concurrency", 0, "N", &c.concurrency, 1, LIMIT_SCRAPE_THREADS,
                             "concurrent requests, 1 to 1024 (default 256)"),
                OPTION_SIZE("memory", 0, "SIZE", &c.memory_bytes, 1, 0, "memory for profiles, as 512M (default 1G)"),
                OPTION_STRING("lease", 0, "NAME", &c.lease,
                              "of several scrapers with this NAME, one scrapes (default: each does)"),
                OPTION_STRING("spool", 0, "DIR", &c.spool, "store unacknowledged batches in DIR (default: in memory)"),
                OPTION_SIZE("spool-size", 0, "SIZE", &c.spool_bytes, 1, 0, "size limit of the spool (default 512M)"),
                OPTION_STRING("metrics-listen", 0, "ADDRESS", &c.metrics_listen,
                              "serve /metrics, /targets and /healthz at HOST:PORT (default: off)"),
                OPTION_CHOICE("log-level", 0, "LEVEL", &c.log_level, log_level_names,
                              "debug, info (default), warn or error"),
                OPTION_CHOICE("log-format", 0, "FORMAT", &c.log_format, log_format_names,
                              "text (default), logfmt or json"),
                OPTION_END,
        };
        _cleanup_scrape_config_ struct scrape_config config = { 0 };
        struct error err = { 0 };
        enum status st = options_parse(&usage, specs, &argc, &argv, &err);

        if (!st)
                st = check_scrape_options(&c, argc, argv, &err);
        if (!st)
                st = scrape_config_read(c.config, &config, &err);
        if (!st)
                st = c.check ? run_scrape_check(&c, &config, &err) : run_scraping(&c, &config, &err);
        return st ? command_fail("scrape", st, &err) : EXIT_DONE;
}
