/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/commands/command.h"
#include "cli/shared/serve_settings.h"
#include "common/cleanup.h"
#include "common/program/log.h"
#include "common/program/service_notify.h"
#include "sandbox/fork_server.h"
#include "sandbox/setup.h"
#include "server/core/server.h"

static const struct usage usage = {
        .synopsis = "cairn serve [--data DIR] [--listen HOST:PORT] [OPTION]...",
        .about = "Run the service: accept profiles and debuginfo, store them in one directory, and answer queries.\n"
                 "SIGINT and SIGTERM stop it; no acknowledged data is lost.",
        .examples = "  cairn serve --data /var/lib/cairn\n"
                    "  cairn serve --data /var/lib/cairn --listen 0.0.0.0:7700 --token-file /etc/cairn/tokens \\\n"
                    "      --tls-cert /etc/cairn/cert.pem --tls-key /etc/cairn/key.pem\n"
                    "  cairn serve --upstream https://debuginfod.debian.net\n"
                    "  cairn serve --scan /srv/packages --scan /usr/lib/debug",
};

/* ---- reload ---- */

/* Options that can change while the service runs: by server_reload(), those of the log in this file. */
static const char *const reloadable[] = { "token-file",  "tls-cert",   "tls-key",          "tenants",    "rate",
                                          "retain",      "max-age",    "retain-samples",   "upstream",   "upstreams",
                                          "max-ahead",   "log-level",  "log-format",       "slow-query", "max-upload",
                                          "max-uploads", "worker-cpu", "upstream-timeout", NULL };

struct reload_source {
        const struct serve_settings *running; /* the settings at start */
        struct serve_settings *current;       /* of the last reload, owned; or running */
        int argc;
        char **argv;                   /* as they were given */
        struct option_change *changed; /* owned */
};

static void free_reloaded_settings(struct reload_source *r)
{
        if (r->current == r->running)
                return;
        serve_settings_deinit(r->current);
        free(r->current);
}

static enum status parse_settings_again(const struct reload_source *r, struct serve_settings *ret, struct error *err)
{
        _cleanup_free_ char **words = calloc((size_t)r->argc + 1, sizeof *words);
        char **argv = words;
        int argc = r->argc;
        enum status st;

        if (!words)
                return error_no_memory(err);
        memcpy(words, r->argv, (size_t)argc * sizeof *words);
        st = serve_settings_parse(ret, &usage, &argc, &argv, err);
        return st ? st : serve_settings_check_reread(r->current, ret, err);
}

static enum status reread_settings(void *context, struct server_reread *ret, struct error *err)
{
        struct reload_source *r = context;
        struct serve_settings *fresh = calloc(1, sizeof *fresh);
        struct option_change *changed = calloc(SERVE_OPTIONS_MAX, sizeof *changed);
        enum status st = fresh && changed ? parse_settings_again(r, fresh, err) : error_no_memory(err);

        if (st) {
                if (fresh)
                        serve_settings_deinit(fresh);
                free(fresh);
                free(changed);
                return st;
        }
        ret->changed_count = configuration_list_changes(
                &(struct parsed_again){ r->running->specs, r->current->specs, fresh->specs, reloadable }, changed);
        free_reloaded_settings(r);
        free(r->changed);
        r->current = fresh;
        r->changed = changed;
        ret->changed = changed;
        ret->options = &fresh->server;
        serve_settings_apply_log(fresh);
        return ST_OK;
}

/* ---- the service ---- */

static enum status run_service(struct serve_settings *s, int argc, char **argv, struct error *err)
{
        struct reload_source reload = { .running = s, .current = s, .argc = argc, .argv = argv };
        enum status st;

        service_notify_init();
        s->server.reread = reread_settings;
        s->server.reread_context = &reload;

        serve_settings_apply_log(s);
        if (s->configuration.is_unreadable)
                log_warn("serve", CONFIGURATION_FILE ": this user may not read it, ignoring");
        st = sandbox_setup("serve", s->worker_user, err);
        if (!st && s->server.scan_dir_count)
                st = fork_server_create(NULL, command_worker, &s->server.fork_server, err);
        if (!st)
                st = server_run(&s->server, err);
        fork_server_destroy(s->server.fork_server);
        free_reloaded_settings(&reload);
        free(reload.changed);
        return st;
}

int command_serve(int argc, char **argv)
{
        _cleanup_free_ char **given = calloc((size_t)argc + 1, sizeof *given); /* parsing reorders argv */
        int given_count = argc;
        struct serve_settings s = { 0 };
        struct error err;
        enum status st = given ? ST_OK : error_no_memory(&err);

        if (given)
                memcpy(given, argv, (size_t)argc * sizeof *given);
        if (!st)
                st = serve_settings_parse(&s, &usage, &argc, &argv, &err);
        if (!st && !configuration_report(&s.configuration, s.specs))
                st = run_service(&s, given_count, given, &err);
        serve_settings_deinit(&s);
        return st ? command_fail("serve", st, &err) : EXIT_DONE;
}
