/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main() runs a worker, the command unwind-table, or the agent; for the latter the command line is parsed with the
 * configuration file, and then --version, --doctor, --check-config or --print-config is done, or agent_run() is
 * called.
 *
 * Order: the checks of options, workers and their fork servers, --doctor, the agent, the table of options and parsing,
 * reload, main().
 *
 * Secrets: the fork servers are forked before the token is read, since workers must not inherit it (run_doctor() and
 * run_agent() keep this order).
 *
 * Reload: the original arguments are parsed again into a new struct command_line. Only the options in `reloadable`
 * take effect; the others are only reported as changed. The specs point into the struct command_line that they were
 * made for, so it is never moved and lives as long as its specs are compared.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/agent_doctor.h"
#include "agent/uploads/worker_upload.h"
#include "common/cleanup.h"
#include "common/config/configuration.h"
#include "common/config/options.h"
#include "common/files/tenant_name.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "common/program/service_notify.h"
#include "common/program/standard_output.h"
#include "common/text/number_text.h"
#include "debuginfod-client/debuginfod_worker.h"
#include "http/http_client.h"
#include "sampling/unwinding/unwind_builder.h"
#include "sampling/unwinding/unwind_table_command.h"
#include "sandbox/privileges.h"
#include "sandbox/setup.h"

#define DEFAULT_SERVER "http://127.0.0.1:7700"
#define DEFAULT_SPOOL_BYTES MiB(512)
#define LEAST_SPOOL_BYTES MiB(1)
#define INTERVAL_MOST_S 600
#define OPTIONS_MAX 64
#define DEFAULT_UPLOAD_RATE MiB(1)
#define OFF_CPU_THRESHOLD_NS 10000000
#define DEFAULT_UPLOAD_MAX MiB(512)

static const struct usage USAGE = {
        .synopsis = "cairn-agent [--server URL] [--duration SECONDS] [--frequency HZ] [--label K=V]... [--pid PID]...\n"
                    "       cairn-agent --output FILE [--duration SECONDS]\n"
                    "       cairn-agent --doctor [--json] [--sampler auto|bpf|perf]\n"
                    "       cairn-agent unwind-table FILE [--json]",
        .about = "Samples what every CPU of this host is doing, kernel and user stacks, and sends the stacks to a\n"
                 "Cairn service as (build-id, address) pairs. As root, or with CAP_BPF and CAP_PERFMON, it samples\n"
                 "with BPF; without those rights it samples this user's processes by perf events.",
        .examples = "  cairn-agent --server http://cairn:7700 --label env=prod\n"
                    "  cairn-agent --duration 10 --output profile.otlp\n"
                    "  cairn-agent --doctor",
};

/* Must not be moved: the configuration and the specs point into it. */
struct command_line {
        struct agent_options run;
        const char *token_file, *sampler, *worker_user, *kubernetes, *relabel_config, *runtimes;
        struct relabel_rules rules; /* relabel_config */
        unsigned log_level, log_format;
        struct option_list pids;
        uint64_t off_cpu_us;
        bool off_cpu, no_upload, doctor, json, once, version;
        struct configuration configuration;
        struct option_spec *specs;
};

static enum status check_command_line(struct command_line *c, int argc, char **argv, struct error *err)
{
        struct agent_options *o = &c->run;
        enum status st;

        o->upload = !c->no_upload;
        if (argc)
                return error_set(err, ST_USAGE, "unexpected argument '%s' (try --help)", argv[0]);
        if (c->sampler && sampler_kind_parse(c->sampler, &o->sampler))
                return error_set(err, ST_USAGE, "option '--sampler' takes auto, bpf or perf, not '%s'", c->sampler);
        o->reads_python = !c->runtimes || strcmp(c->runtimes, "all") == 0 || strcmp(c->runtimes, "python") == 0;
        o->reads_v8 = !c->runtimes || strcmp(c->runtimes, "all") == 0 || strcmp(c->runtimes, "node") == 0;
        o->reads_hotspot = !c->runtimes || strcmp(c->runtimes, "all") == 0 || strcmp(c->runtimes, "java") == 0;
        if (!o->reads_python && !o->reads_v8 && !o->reads_hotspot && strcmp(c->runtimes, "none") != 0)
                return error_set(err, ST_USAGE,
                                 "option '--runtimes' takes python, node, java, all or none, not '%.40s'", c->runtimes);
        if (c->off_cpu && o->sampler == SAMPLER_PERF)
                return error_set(err, ST_USAGE, "option '--off-cpu' needs BPF: not '--sampler perf'");
        if (o->latency && o->sampler == SAMPLER_PERF)
                return error_set(err, ST_USAGE, "option '--latency' needs BPF: not '--sampler perf'");
        if (c->off_cpu_us && !c->off_cpu)
                return error_set(err, ST_USAGE, "option '--off-cpu-threshold' needs '--off-cpu'");
        o->off_cpu_ns = !c->off_cpu ? 0 : c->off_cpu_us ? c->off_cpu_us * 1000 : OFF_CPU_THRESHOLD_NS;
        if (c->kubernetes && pod_source_parse(c->kubernetes, &o->pods.source))
                return error_set(err, ST_USAGE, "option '--kubernetes' takes api or kubelet, not '%s'", c->kubernetes);
        if (!c->kubernetes && (o->pods.url || o->pods.node || o->pods.token_file || o->pods.ca_file))
                return error_set(err, ST_USAGE, "options '--kubernetes-...' need '--kubernetes api' or 'kubelet'");
        if (c->once && !o->output)
                return error_set(err, ST_USAGE, "option '--once' needs '--output FILE'");
        if (o->output) { /* one request covers one interval: the whole run */
                o->duration_s = o->duration_s ? o->duration_s : o->interval_s;
                if (o->duration_s > INTERVAL_MOST_S)
                        return error_set(err, ST_USAGE,
                                         "with '--output', option '--duration' takes 1 to %d, not %" PRIu64,
                                         INTERVAL_MOST_S, o->duration_s);
                o->interval_s = o->duration_s;
        }
        if (o->spool && o->output)
                return error_set(err, ST_USAGE, "option '--spool' has no effect with '--output'");
        st = label_options_check(&o->labels, err);
        if (!st && c->relabel_config)
                st = relabel_file_read(c->relabel_config, &c->rules, err);
        o->rules = &c->rules;
        for (size_t i = 0; i < o->labels.own.count && !st; i++) {
                const char *equals = strchr(o->labels.own.items[i], '=');

                if (!equals || equals == o->labels.own.items[i] || !equals[1] ||
                    strlen(o->labels.own.items[i]) > LIMIT_LABEL_BYTES)
                        st = error_set(err, ST_USAGE, "option '--label' takes KEY=VALUE, not '%.100s'",
                                       o->labels.own.items[i]);
        }
        return st;
}

static enum status parse_pid_options(struct command_line *c, uint32_t **ret, struct error *err)
{
        uint32_t *pids = calloc(c->pids.count ? c->pids.count : 1, sizeof *pids);

        if (!pids)
                return error_no_memory(err);
        *ret = pids; /* also on failure; freed by the caller */
        for (size_t i = 0; i < c->pids.count; i++) {
                uint64_t pid;

                if (!parse_uint(c->pids.items[i], &pid) || pid == 0 || pid > INT32_MAX)
                        return error_set(err, ST_USAGE, "option '--pid' takes a process id, not '%s'",
                                         c->pids.items[i]);
                pids[i] = (uint32_t)pid;
        }
        c->run.pids = pids;
        c->run.pid_count = c->pids.count;
        return ST_OK;
}

/* argv: "worker", NAME, arguments. */
static int run_worker_command(int argc, char **argv)
{
        if (argc > 1 && strcmp(argv[1], "unwind") == 0)
                return worker_unwind();
        if (argc > 1 && strcmp(argv[1], "inspect") == 0)
                return worker_inspect();
        if (argc > 1 && strcmp(argv[1], "debuginfod") == 0)
                return debuginfod_worker(argc - 1, argv + 1);
        if (argc > 1 && strcmp(argv[1], "split") == 0)
                return worker_split();
        if (argc > 1 && strcmp(argv[1], "symbols") == 0)
                return worker_extract_symbols(argc > 2 ? argv[2] : NULL);
        fprintf(stderr, "cairn-agent: no such worker\n");
        return EXIT_USAGE;
}

/* The processes that fork workers: they are forked before the token is read, which workers must not inherit. */
static enum status start_fork_servers(struct command_line *c, struct error *err)
{
        enum status st = sandbox_setup("agent", c->worker_user, err);

        if (!st)
                st = fork_server_create(privileges_drop_all, run_worker_command, &c->run.fork_server, err);
        if (!st && c->run.upload && !c->run.output)
                st = fork_server_create(upload_workers_prepare, run_worker_command, &c->run.upload_fork_server, err);
        return st;
}

static void end_fork_servers(struct command_line *c)
{
        fork_server_destroy(c->run.upload_fork_server);
        fork_server_destroy(c->run.fork_server);
}

static enum status examine_host(const struct command_line *c, struct doctor *d, struct error *err)
{
        const struct agent_options *o = &c->run;
        const struct doctor_options options = { .fork_server = o->fork_server,
                                                .upload_fork_server = o->upload_fork_server,
                                                .uploads = o->upload && !o->output,
                                                .reads_python = o->reads_python,
                                                .reads_v8 = o->reads_v8,
                                                .reads_hotspot = o->reads_hotspot,
                                                .reads_context = !o->omits_context,
                                                .off_cpu = o->off_cpu_ns > 0,
                                                .latency = o->latency,
                                                .spool = o->spool,
                                                .spool_bytes = o->spool_bytes };
        _cleanup_free_ char *token = NULL;
        enum status st = c->token_file ? http_client_read_token(c->token_file, &token, err) : ST_OK;

        if (st)
                return st;
        doctor_examine(d, &options);
        if (o->server && o->upload)
                doctor_check_service(d, o->server, o->ca_file, token);
        return ST_OK;
}

static enum status run_doctor(struct command_line *c, int *code_ret, struct error *err)
{
        _cleanup_buf_ struct buf out;
        struct doctor d;
        enum status st = start_fork_servers(c, err);

        buf_init(&out, MiB(1));
        if (!st)
                st = examine_host(c, &d, err);
        end_fork_servers(c);
        if (st)
                return st;
        doctor_write(&d, c->run.sampler, c->json, &out);
        fwrite(out.data, 1, out.size, stdout);
        *code_ret = doctor_can_profile(&d, c->run.sampler) ? EXIT_DONE : EXIT_FAILED;
        return ST_OK;
}

static enum status run_agent(struct command_line *c, struct error *err)
{
        _cleanup_free_ uint32_t *pids = NULL;
        _cleanup_free_ char *token = NULL;
        enum status st = parse_pid_options(c, &pids, err);

        if (!st && c->run.tenant && !tenant_name_is_valid(c->run.tenant))
                st = error_set(err, ST_USAGE, "--tenant '%.40s' is not a tenant's name", c->run.tenant);
        if (!st)
                st = start_fork_servers(c, err);
        if (!st && c->token_file)
                st = http_client_read_token(c->token_file, &token, err);
        c->run.token = token;
        if (c->configuration.is_unreadable)
                log_warn("agent", CONFIGURATION_FILE ": this user may not read it, ignoring");
        if (token && http_client_exposes_token(c->run.server))
                log_warn("agent", "the token goes to %s unencrypted; use https", c->run.server);
        if (!st)
                st = agent_run(&c->run, err);
        end_fork_servers(c);
        return st;
}

static void command_line_deinit(struct command_line *c)
{
        struct option_list *lists[] = { &c->pids,
                                        &c->run.labels.own,
                                        &c->run.labels.keep,
                                        &c->run.labels.drop,
                                        &c->run.filter.exclude_process,
                                        &c->run.filter.only_process,
                                        &c->run.filter.exclude_cgroup,
                                        &c->run.filter.only_cgroup };

        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
                options_list_deinit(lists[i]);
        relabel_rules_deinit(&c->rules);
        free(c->specs);
        configuration_deinit(&c->configuration);
}

static enum status make_agent_specs(struct command_line *c, struct error *err)
{
        const struct option_spec table[] = {
                OPTION_STRING("server", 's', "URL", &c->run.server, "the service, default " DEFAULT_SERVER),
                OPTION_STRING("token-file", 0, "FILE", &c->token_file, "file whose first line is the bearer token"),
                OPTION_STRING("tenant", 0, "NAME", &c->run.tenant, "tenant of the service (the token's)"),
                OPTION_STRING("ca", 0, "FILE", &c->run.ca_file,
                              "PEM file of trusted CA certificates, default: the system's"),
                OPTION_RANGE("frequency", 'F', "HZ", &c->run.frequency_hz, 1, 1000,
                             "samples per second on each CPU, default 19"),
                OPTION_RANGE("interval", 0, "SECONDS", &c->run.interval_s, 1, INTERVAL_MOST_S,
                             "time between two requests, default 10"),
                OPTION_RANGE("duration", 'd', "SECONDS", &c->run.duration_s, 0, 1000000000,
                             "stop after this time; default: on a signal"),
                OPTION_STRING("spool", 0, "DIR", &c->run.spool,
                              "store unacknowledged batches here; default: in memory"),
                OPTION_SIZE("spool-size", 0, "SIZE", &c->run.spool_bytes, LEAST_SPOOL_BYTES, 0,
                            "size limit of the spool, default 512M"),
                OPTION_FLAG("no-upload", 0, &c->no_upload, "do not upload symbols that the service lacks"),
                OPTION_SIZE("upload-rate", 0, "SIZE", &c->run.upload_rate, 0, 0,
                            "rate limit of symbol uploads per second, default 1M; 0: none"),
                OPTION_SIZE("upload-max-size", 0, "SIZE", &c->run.upload_max_bytes, 1, LIMIT_OBJECT_BYTES,
                            "size limit of a symbol file, uncompressed, default 512M"),
                OPTION_STRING("sampler", 0, "KIND", &c->sampler, "bpf, perf, or auto (default): bpf, else perf"),
                OPTION_STRING("runtimes", 0, "LIST", &c->runtimes,
                              "name frames of these runtimes: python, node, java, all (default), or none"),
                OPTION_FLAG("no-request-context", 0, &c->run.omits_context,
                            "leave out the OpenTelemetry contexts of processes and threads, and labels of Go"),
                OPTION_FLAG("no-container-names", 0, &c->run.omits_container_names,
                            "leave out names, images and compose services of containers"),
                OPTION_FLAG("off-cpu", 0, &c->off_cpu, "also sample the time that threads wait, with the reason"),
                OPTION_RANGE("off-cpu-threshold", 0, "US", &c->off_cpu_us, 100, 10000000,
                             "waits from this time on are always sampled, default 10000 microseconds"),
                OPTION_FLAG("latency", 0, &c->run.latency,
                            "also measure latency: CPU time over the running threads of its process"),
                OPTION_FLAG("no-source-paths", 0, &c->run.omits_files,
                            "leave out the source file paths of frames of runtimes"),
                OPTION_LIST("pid", 'p', "PID", &c->pids, "sample this process only"),
                OPTION_LIST("exclude-process", 0, "NAME", &c->run.filter.exclude_process,
                            "exclude processes with this name; a shell pattern"),
                OPTION_LIST("only-process", 0, "NAME", &c->run.filter.only_process, "exclude all others"),
                OPTION_LIST("exclude-cgroup", 0, "PATTERN", &c->run.filter.exclude_cgroup,
                            "exclude processes whose cgroup path, or an element of it, matches"),
                OPTION_LIST("only-cgroup", 0, "PATTERN", &c->run.filter.only_cgroup, "exclude all others"),
                OPTION_LIST("label", 'l', "KEY=VALUE", &c->run.labels.own, "add this label to every sample"),
                OPTION_LIST("keep-label", 0, "KEY", &c->run.labels.keep,
                            "keep only the agent's labels that match; a shell pattern"),
                OPTION_LIST("drop-label", 0, "KEY", &c->run.labels.drop, "drop the agent's labels that match"),
                OPTION_STRING("relabel-config", 0, "FILE", &c->relabel_config,
                              "YAML file of relabel rules for the labels of samples"),
                OPTION_STRING("kubernetes", 0, "SOURCE", &c->kubernetes,
                              "add labels of pods, listed by: api (API server) or kubelet; default: off"),
                OPTION_STRING("kubernetes-node", 0, "NAME", &c->run.pods.node,
                              "this node's name, default: the host's name"),
                OPTION_STRING("kubernetes-url", 0, "URL", &c->run.pods.url,
                              "API server or kubelet, default: as in a pod, or http://127.0.0.1:10255"),
                OPTION_STRING("kubernetes-token-file", 0, "FILE", &c->run.pods.token_file,
                              "its bearer token, default: the service account's"),
                OPTION_STRING("kubernetes-ca", 0, "FILE", &c->run.pods.ca_file,
                              "its CA certificates, default: the service account's, else the system's"),
                OPTION_STRING("service-name", 0, "NAME", &c->run.labels.service_name,
                              "label service.name, default: the pod's app, or the executable's name"),
                OPTION_FLAG("pid-label", 0, &c->run.labels.with_pid, "add the label process.pid to every sample"),
                OPTION_FLAG("stack-end-label", 0, &c->run.labels.with_stack_end,
                            "add the label cairn.stack.end to every sample"),
                OPTION_STRING("worker-user", 0, "USER", &c->worker_user,
                              "user name or uid of workers when the agent is root, default 61111"),
                OPTION_STRING("output", 'o', "FILE", &c->run.output,
                              "write one OTLP request with the whole run to FILE, send nothing"),
                OPTION_FLAG("once", 0, &c->once, "one interval only; --output implies it"),
                OPTION_STRING("metrics-file", 0, "FILE", &c->run.metrics_file,
                              "write counters as Prometheus text after each interval"),
                OPTION_STRING("metrics-listen", 0, "ADDRESS", &c->run.metrics_listen,
                              "serve /metrics and /healthz at HOST:PORT; default: off"),
                OPTION_FLAG("doctor", 0, &c->doctor, "check what kernel and privileges allow, and exit"),
                OPTION_FLAG("json", 0, &c->json, "with --doctor: print JSON"),
                OPTION_CHOICE("log-level", 0, "LEVEL", &c->log_level, log_level_names,
                              "debug, info (default), warn or error"),
                OPTION_CHOICE("log-format", 0, "FORMAT", &c->log_format, log_format_names,
                              "text (default), logfmt or json"),
                OPTIONS_OF_CONFIGURATION(&c->configuration),
                OPTION_FLAG("version", 'V', &c->version, "print the version"),
                OPTION_END,
        };

        _Static_assert(sizeof table / sizeof *table <= OPTIONS_MAX, "OPTIONS_MAX");
        c->specs = malloc(sizeof table);
        if (!c->specs)
                return error_no_memory(err);
        memcpy(c->specs, table, sizeof table);
        return ST_OK;
}

/* @param c  command_line_deinit() also on failure. */
static enum status parse_command_line(struct command_line *c, int argc, char **argv, struct error *err)
{
        enum status st;

        *c = (struct command_line){ .log_level = LOG_INFO,
                                    .run = { .frequency_hz = 19,
                                             .interval_s = 10,
                                             .spool_bytes = DEFAULT_SPOOL_BYTES,
                                             .upload_rate = DEFAULT_UPLOAD_RATE,
                                             .upload_max_bytes = DEFAULT_UPLOAD_MAX },
                                    .configuration = { .section = "agent" } };
        st = make_agent_specs(c, err);
        if (!st)
                st = configuration_parse(&c->configuration, &USAGE, c->specs, &argc, &argv, err);
        return st ? st : check_command_line(c, argc, argv, err);
}

/* ---- reload ---- */

struct reload_source {
        struct command_line *running; /* at start */
        struct command_line *current; /* at the last reload; owned unless it equals running */
        int argc;
        char **argv; /* in their original order */
        struct option_change changed[OPTIONS_MAX];
};

static void free_reloaded(struct reload_source *r)
{
        if (r->current == r->running)
                return;
        command_line_deinit(r->current);
        free(r->current);
}

static enum status parse_again(struct reload_source *r, struct command_line *fresh, char **token_ret, struct error *err)
{
        _cleanup_free_ char **words = calloc((size_t)r->argc + 1, sizeof *words);
        enum status st;

        if (!words)
                return error_no_memory(err);
        memcpy(words, r->argv, (size_t)r->argc * sizeof *words);
        st = parse_command_line(fresh, r->argc, words, err);
        if (!st)
                st = configuration_check_reread(&r->current->configuration, &fresh->configuration, err);
        fresh->run.server = fresh->run.server ? fresh->run.server : DEFAULT_SERVER;
        return st || !fresh->token_file ? st : http_client_read_token(fresh->token_file, token_ret, err);
}

static enum status reread_command_line(void *context, struct agent_reread *ret, struct error *err)
{
        static const char *const reloadable[] = { "token-file", "log-level", "log-format", NULL };
        struct reload_source *r = context;
        struct command_line *fresh = calloc(1, sizeof *fresh);
        enum status st = fresh ? parse_again(r, fresh, &ret->token, err) : error_no_memory(err);

        if (st) {
                if (fresh)
                        command_line_deinit(fresh);
                free(fresh);
                return st;
        }
        ret->changed_count = configuration_list_changes(
                &(struct parsed_again){ r->running->specs, r->current->specs, fresh->specs, reloadable }, r->changed);
        ret->changed = r->changed;
        log_set_level((enum log_level)fresh->log_level);
        log_set_format((enum log_format)fresh->log_format);
        free_reloaded(r);
        r->current = fresh;
        return ST_OK;
}

static enum status run_reloadable_agent(struct command_line *c, int argc, char **argv, struct error *err)
{
        struct reload_source reload = { .running = c, .current = c, .argc = argc, .argv = argv };
        enum status st;

        c->run.reread = reread_command_line;
        c->run.reread_context = &reload;
        st = run_agent(c, err);
        free_reloaded(&reload);
        return st;
}

int main(int argc, char **argv)
{
        if (argc > 1 && strcmp(argv[1], "worker") == 0)
                return run_worker_command(argc - 1, argv + 1);
        check_standard_output_at_exit("cairn-agent");
        if (argc > 1 && strcmp(argv[1], "unwind-table") == 0)
                return run_unwind_table_command(argc - 1, argv + 1);

        _cleanup_free_ char **given = calloc((size_t)argc + 1, sizeof *given); /* parsing reorders argv */
        struct command_line c = { 0 };
        struct error err = { 0 };
        enum status st = given ? ST_OK : error_no_memory(&err);
        int code = EXIT_DONE;

        if (given)
                memcpy(given, argv, (size_t)argc * sizeof *given);
        service_notify_init();
        if (!st)
                st = parse_command_line(&c, argc, argv, &err);
        if (!st) {
                log_set_level((enum log_level)c.log_level);
                log_set_format((enum log_format)c.log_format);
        }
        if (!st && c.version) {
                puts("cairn-agent " CAIRN_VERSION);
        } else if (!st && c.doctor) {
                st = run_doctor(&c, &code, &err);
        } else if (!st && !configuration_report(&c.configuration, c.specs)) {
                c.run.server = c.run.server ? c.run.server : DEFAULT_SERVER;
                st = run_reloadable_agent(&c, argc, given, &err);
        }
        if (st)
                log_failure("cairn-agent", "agent", err.text);
        command_line_deinit(&c);
        return st ? exit_code_from_status(st) : code;
}
