/* SPDX-License-Identifier: Apache-2.0 */
/* cairn doctor: checks of a machine, its files and a running service, each with a fix. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/command.h"
#include "cli/doctor/check_process.h"
#include "cli/shared/serve_settings.h"
#include "cli/shared/service.h"
#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "http/listen.h"

#define DEFAULT_TIMEOUT_S 10
#define TIMEOUT_MOST_S 600
#define PACKAGE_DATA "/var/lib/cairn" /* of the package's systemd unit */

static const struct usage usage = {
        .synopsis = "cairn doctor [--data DIR] [--server URL] [--config FILE] [--json] [AREA]...",
        .about = "Check what the service and the agent need, and print a fix for each problem. Areas (default: all):\n"
                 "configuration, certificates, data, host, service, store, upstreams, agent. Each check may take "
                 "--timeout\n"
                 "seconds; that of the service twice as long, the agent's four times, that of the object store three\n"
                 "times, and that of all upstreams together six times. An invalid configuration is an error in every\n"
                 "area. Nothing is changed; the sync check writes a temporary file without a name in the data\n"
                 "directory, and that of the object store writes and removes keys in its folder probe/.\n"
                 "Exit status: 0 nothing to fix, 1 warnings, 2 errors, 64 usage error.",
        .examples = "  cairn doctor\n"
                    "  cairn doctor --data /srv/cairn --server https://cairn.example --token-file ./token\n"
                    "  cairn doctor --json host agent",
};

static const struct doctor_check checks[] = {
        { "configuration", "configuration", check_configuration, "check the disk that the programs are on", 1 },
        { "configuration", "secret files", check_secret_files, "check the disk that the files are on", 1 },
        { "certificates", "certificates", check_certificates, "check the disk that the files are on", 1 },
        { "data", "disk space", check_disk_space, "the disk hangs: check it and the kernel's log", 1 },
        { "data", "sync latency", check_sync_latency, "the disk hangs or is overloaded: check it (iostat -x 1)", 1 },
        { "data", "databases", check_database_maps, "the disk hangs: check it and the kernel's log", 1 },
        { "host", "limits", check_host_limits, "", 1 },
        { "host", "clock", check_clock, "", 1 },
        { "host", "workers", check_confinement, "", 1 },
        { "service", "service", check_running_service, "the service hangs: see its log and 'cairn status'", 2 },
        { "store", "object store", check_object_store, "the object store does not answer: check the network", 3 },
        { "upstreams", "upstreams", check_upstreams, "fix the network, or remove upstreams that do not respond", 6 },
        { "agent", "cairn-agent", check_agent, "run 'cairn-agent --doctor' to see which check hangs", 4 },
};
#define CHECK_COUNT (sizeof checks / sizeof *checks)

/* Exit status, as of monitoring plug-ins. */
enum { DOCTOR_FINE = 0, DOCTOR_WARNINGS = 1, DOCTOR_ERRORS = 2 };

struct doctor_options {
        const char *config_path, *data;
        struct service_options service;
        uint64_t timeout_s;
        bool json;
};

struct doctor_output {
        bool json;
        struct json_out j;
        struct buf text;
        unsigned counts[FINDING_STATE_COUNT];
};

/* ---- output ---- */

static void print_doctor_text(struct doctor_output *out)
{
        fwrite(out->text.data, 1, out->text.size, stdout);
        fflush(stdout);
        buf_clear(&out->text);
}

static void put_findings(struct doctor_output *out, const struct doctor_check *check, const struct findings *all,
                         uint64_t took_ms)
{
        for (size_t i = 0; i < all->count; i++) {
                const struct finding *f = &all->items[i];
                char label[64];

                out->counts[f->state]++;
                if (out->json) {
                        json_out_object(&out->j, NULL);
                        json_out_str(&out->j, "area", check->area);
                        finding_put_json(f, &out->j);
                        json_out_uint(&out->j, "check_ms", took_ms);
                        json_out_object_end(&out->j);
                        continue;
                }
                snprintf(label, sizeof label, "%s: %s", check->area, f->name);
                finding_put_text(f, label, &out->text);
                print_doctor_text(out);
        }
}

static const char *name_result(const struct doctor_output *out)
{
        return finding_state_name(out->counts[FINDING_ERROR]     ? FINDING_ERROR
                                  : out->counts[FINDING_WARNING] ? FINDING_WARNING
                                                                 : FINDING_OK);
}

static void print_doctor_end(struct doctor_output *out)
{
        if (!out->json) {
                printf("%s, %s, %u fine, %u not checked\n", COUNTED(out->counts[FINDING_ERROR], "error", "errors"),
                       COUNTED(out->counts[FINDING_WARNING], "warning", "warnings"), out->counts[FINDING_OK],
                       out->counts[FINDING_SKIPPED]);
                return;
        }
        json_out_array_end(&out->j);
        json_out_str(&out->j, "result", name_result(out));
        for (unsigned i = 0; i < FINDING_STATE_COUNT; i++)
                json_out_uint(&out->j, finding_state_name(i), out->counts[i]);
        json_out_object_end(&out->j);
        buf_append_u8(&out->text, '\n');
        print_doctor_text(out);
}

/* ---- inputs of the checks ---- */

/* The directory of --data, else the configured one, else that of the package's systemd unit. */
static const char *choose_data_directory(const struct doctor_options *o, const struct serve_settings *s)
{
        if (o->data)
                return o->data;
        if (s && serve_settings_has(s, "data"))
                return s->server.dir;
        return access(PACKAGE_DATA, F_OK) == 0 ? PACKAGE_DATA : NULL;
}

/* The URL of the service, from its configured listen address. */
static void make_server_url(const struct serve_settings *s, char *ret, size_t size)
{
        struct listen_address a;
        const char *host = a.host;

        if (!s || parse_listen_address(s->server.listen, SERVER_DEFAULT_PORT, &a, NULL) || !a.port) {
                snprintf(ret, size, "%s", DEFAULT_SERVER);
                return;
        }
        if (!*host || strcmp(host, "0.0.0.0") == 0)
                host = "127.0.0.1";
        else if (strcmp(host, "::") == 0)
                host = "::1";
        snprintf(ret, size, "%s://%s%s%s:%u", s->server.tls_cert ? "https" : "http", strchr(host, ':') ? "[" : "", host,
                 strchr(host, ':') ? "]" : "", a.port);
}

static enum status parse_service_settings(const char *config_path, struct serve_settings *s, struct error *err)
{
        char name[] = "serve", option[] = "--config";
        char *words[] = { name, option, (char *)config_path, NULL }, **argv = words;
        int argc = config_path ? 3 : 1;

        words[argc] = NULL;
        return serve_settings_parse(s, &usage, &argc, &argv, err);
}

static bool is_area_wanted(const char *area, char **names, int count)
{
        for (int i = 0; i < count; i++)
                if (strcmp(names[i], area) == 0)
                        return true;
        return count == 0;
}

static enum status check_area_names(char **names, int count, struct error *err)
{
        for (int i = 0; i < count; i++) {
                size_t c = 0;

                while (c < CHECK_COUNT && strcmp(checks[c].area, names[i]) != 0)
                        c++;
                if (c == CHECK_COUNT)
                        return error_set(err, ST_USAGE,
                                         "'%s' is not one of configuration, certificates, data, host, service, "
                                         "store, upstreams, agent",
                                         PRINTABLE(names[i]));
        }
        return ST_OK;
}

/* The checks of all areas depend on the settings of the service: without them a passed check means nothing. */
static void report_missing_settings(const struct examined *x, struct findings *f)
{
        if (x->settings_failure)
                report_finding(f, FINDING_ERROR, "serve",
                               "correct it; 'cairn config show' prints each option and where it is set", "%s",
                               x->settings_failure);
        else if (!x->settings)
                report_finding(f, FINDING_SKIPPED, "serve", "",
                               "'" CONFIGURATION_FILE "' is not readable as this user: run this as root");
}

static enum status run_checks(const struct doctor_options *o, const struct examined *x, char **areas, int area_count,
                              struct doctor_output *out, struct error *err)
{
        _cleanup_free_ struct findings *found = calloc(1, sizeof *found);
        enum status st = found ? ST_OK : error_no_memory(err);

        if (!st && !is_area_wanted(checks[0].area, areas, area_count)) {
                report_missing_settings(x, found);
                put_findings(out, &checks[0], found, 0);
        }
        for (size_t i = 0; i < CHECK_COUNT && !st; i++) {
                uint64_t took_ms = 0;

                if (!is_area_wanted(checks[i].area, areas, area_count))
                        continue;
                fflush(stdout);
                st = run_doctor_check(&checks[i], x, (unsigned)o->timeout_s, found, &took_ms, err);
                if (!st)
                        put_findings(out, &checks[i], found, took_ms);
        }
        return st;
}

static enum status examine_areas(const struct doctor_options *o, char **areas, int area_count, int *code_ret,
                                 struct error *err)
{
        struct serve_settings settings;
        char url[300];
        struct error failure;
        enum status parsed = parse_service_settings(o->config_path, &settings, &failure), st;
        bool is_forbidden = !parsed && settings.configuration.is_unreadable;
        struct doctor_output out = { .json = o->json };
        struct examined x = { .settings = parsed || is_forbidden ? NULL : &settings,
                              .settings_failure = parsed ? failure.text : NULL,
                              .is_config_forbidden = is_forbidden,
                              .config_path = o->config_path,
                              .token_file = o->service.token_file,
                              .ca_file = o->service.ca_file,
                              .server = o->service.server };

        make_server_url(x.settings, url, sizeof url);
        x.server = x.server ? x.server : url;
        x.data = choose_data_directory(o, x.settings);
        x.expects_service = o->service.server || x.data || (x.settings && serve_settings_has(x.settings, "listen"));
        buf_init(&out.text, MiB(1));
        json_out_init(&out.j, &out.text);
        if (o->json) {
                json_out_object(&out.j, NULL);
                json_out_array(&out.j, "checks");
        }
        st = run_checks(o, &x, areas, area_count, &out, err);
        if (!st)
                print_doctor_end(&out);
        *code_ret = out.counts[FINDING_ERROR]     ? DOCTOR_ERRORS
                    : out.counts[FINDING_WARNING] ? DOCTOR_WARNINGS
                                                  : DOCTOR_FINE;
        buf_deinit(&out.text);
        serve_settings_deinit(&settings);
        return st;
}

int command_doctor(int argc, char **argv)
{
        struct doctor_options o = { .timeout_s = DEFAULT_TIMEOUT_S };
        const struct option_spec specs[] = {
                OPTION_STRING("data", 0, "DIR", &o.data,
                              "data directory of the service (default: the configured one, else " PACKAGE_DATA ")"),
                OPTION_STRING("server", 0, "URL", &o.service.server,
                              "URL of the service (default: its configured listen address)"),
                SERVICE_OPTIONS(&o.service),
                OPTION_STRING("config", 0, "FILE", &o.config_path,
                              "configuration file (default " CONFIGURATION_FILE ", if it exists)"),
                OPTION_UINT("timeout", 0, "SECONDS", &o.timeout_s, "time limit of each check (default 10)"),
                OPTION_FLAG("json", 0, &o.json, "print JSON"),
                OPTION_END,
        };
        struct error err;
        int code = DOCTOR_FINE;
        enum status st = options_parse(&usage, specs, &argc, &argv, &err);

        if (!st && (!o.timeout_s || o.timeout_s > TIMEOUT_MOST_S))
                st = error_set(&err, ST_USAGE, "--timeout takes 1 to %d seconds", TIMEOUT_MOST_S);
        if (!st)
                st = check_area_names(argv, argc, &err);
        if (!st)
                st = examine_areas(&o, argv, argc, &code, &err);
        return st ? command_fail("doctor", st, &err) : code;
}
