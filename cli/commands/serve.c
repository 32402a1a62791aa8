/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/command.h"
#include "cli/serve_settings.h"
#include "sandbox/fork_server.h"
#include "sandbox/setup.h"

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

static enum status run_service(struct serve_settings *s, struct error *err)
{
        enum status st;

        log_set_level(s->log_level);
        st = sandbox_setup("serve", s->worker_user, err);
        if (!st && s->server.scan_dir_count)
                st = fork_server_create(NULL, command_worker, &s->server.nursery, err);
        if (!st)
                st = server_run(&s->server, err);
        fork_server_destroy(s->server.nursery);
        return st;
}

int command_serve(int argc, char **argv)
{
        struct serve_settings s;
        struct error err;
        enum status st = serve_settings_parse(&s, &usage, &argc, &argv, &err);

        if (!st && !configuration_report(&s.configuration, s.specs))
                st = run_service(&s, &err);
        serve_settings_deinit(&s);
        return st ? command_fail("serve", st, &err) : EXIT_DONE;
}
