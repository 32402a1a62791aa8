/* SPDX-License-Identifier: Apache-2.0 */
/* The files that an operator writes: configuration, tokens, tenants, certificates. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/doctor/doctor_checks.h"
#include "cli/shared/programs.h"
#include "common/cleanup.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "http/tls.h"
#include "server/access/tenant_config.h"
#include "server/access/tokens.h"

#define DAY_S 86400
#define CERTIFICATE_DAYS 21 /* left when a renewal is due; most ACME clients renew at 30 */

/* ---- configuration ---- */

/* @param args  run the program that reads the section. */
static void report_config_reader(const char *section, const char *const *args, const struct examined *x,
                                 struct findings *f)
{
        struct program_output said;
        struct error err;
        const char *text;
        int code = 0;

        buf_init(&said.out, KiB(16));
        buf_init(&said.errors, KiB(16));
        if (run_sibling_program(args, &said, &code, &err)) {
                report_finding(f, FINDING_ERROR, section, "install all programs in the same version", "%s", err.text);
        } else if (code && !said.errors.size) {
                report_finding(f, FINDING_ERROR, section, "install all programs in the same version",
                               "'%s' ended with status %d and without a message", args[0], code);
        } else {
                text = buf_cstr(code ? &said.errors : &said.out);
                report_finding(f,
                               code                     ? FINDING_ERROR
                               : x->is_config_forbidden ? FINDING_SKIPPED
                                                        : FINDING_OK,
                               section, "correct it; 'cairn config show' prints each option and where it is set",
                               "%.*s", text ? (int)strcspn(text, "\n") : 0, text ? text : "");
        }
        buf_deinit(&said.out);
        buf_deinit(&said.errors);
}

static void check_config_reader(const struct config_reader *r, const struct examined *x, struct findings *f)
{
        char program[PATH_MAX];
        const char *args[6] = { program };
        size_t n = 1;
        struct error err;

        if (find_sibling_program(r->program, program, &err)) {
                report_finding(f, FINDING_SKIPPED, r->section, "", "%s", err.text);
                return;
        }
        if (r->command)
                args[n++] = r->command;
        args[n++] = "--check-config";
        if (x->config_path) {
                args[n++] = "--config";
                args[n++] = x->config_path;
        }
        report_config_reader(r->section, args, x, f);
}

void check_configuration(const struct examined *x, struct findings *f)
{
        for (size_t i = 0; i < CONFIG_READER_COUNT; i++)
                check_config_reader(&config_readers[i], x, f);
}

/* ---- files with secrets ---- */

/* Whether this user may not read the file; the service's user may. */
static bool is_forbidden(const char *path)
{
        return access(path, R_OK) < 0 && errno == EACCES;
}

static void report_unreadable(struct findings *f, const char *name, const char *path)
{
        report_finding(f, FINDING_SKIPPED, name, "", "'%s' is not readable as this user: run this as root", path);
}

/* A file with secrets must not be readable or writable by other users. */
static void check_file_mode(const char *name, const char *path, struct findings *f)
{
        struct stat info;

        if (stat(path, &info) == 0 && info.st_mode & (S_IROTH | S_IWOTH | S_IWGRP))
                report_finding(f, FINDING_WARNING, name, "chmod 0640, with the group that the service reads it with",
                               "'%s' has the mode %04o: others than the service may %s it", path,
                               (unsigned)info.st_mode & 07777, info.st_mode & (S_IWOTH | S_IWGRP) ? "change" : "read");
}

static void check_token_file(const char *path, const struct tenant_configs *tenants, struct findings *f)
{
        struct tokens *tokens = NULL;
        struct error err;
        unsigned line;
        enum status st;

        if (is_forbidden(path)) {
                report_unreadable(f, "token file", path);
                return;
        }
        st = tokens_load(path, tenants, &tokens, &err);
        report_finding(f, st ? FINDING_ERROR : FINDING_OK, "token file",
                       "correct that line: the service keeps its previous tokens, and does not start with this file",
                       st ? "%s" : "'%s' is valid", st ? err.text : path);
        if (!st && tokens_count_unbound(tokens, &line))
                report_finding(f, FINDING_WARNING, "token file", "write tenant=NAME, or tenant=* for an operator",
                               "'%s' line %u: a token without tenant= acts for the whole service", path, line);
        tokens_destroy(tokens);
        check_file_mode("token file", path, f);
}

static struct tenant_configs *check_tenant_file(const char *path, struct findings *f)
{
        struct tenant_configs *tenants = NULL;
        struct error err;
        enum status st;

        if (is_forbidden(path)) {
                report_unreadable(f, "tenants file", path);
                return NULL;
        }
        st = tenant_configs_load(path, &tenants, &err);
        report_finding(f, st ? FINDING_ERROR : FINDING_OK, "tenants file",
                       "correct that line: the service does not start with this file", st ? "%s" : "'%s' is valid",
                       st ? err.text : path);
        return tenants;
}

void check_secret_files(const struct examined *x, struct findings *f)
{
        const struct server_options *o;
        struct tenant_configs *tenants = NULL;

        if (!x->settings)
                return; /* the configuration's finding gives the reason */
        o = &x->settings->server;
        if (o->tenant_file)
                tenants = check_tenant_file(o->tenant_file, f);
        if (o->token_file)
                check_token_file(o->token_file, tenants, f);
        else
                report_finding(f, FINDING_OK, "token file", "", "none: the service listens on loopback only");
        tenant_configs_destroy(tenants);
        if (o->tls_key)
                check_file_mode("TLS key", o->tls_key, f);
}

/* ---- certificates ---- */

static void report_expiry(int64_t end_s, const char *path, struct findings *f)
{
        int64_t left_s = end_s - (int64_t)time(NULL);
        time_t end = (time_t)end_s;
        struct tm tm;
        char text[24];

        gmtime_r(&end, &tm);
        strftime(text, sizeof text, "%Y-%m-%d %H:%M", &tm);
        report_finding(f,
                       left_s <= 0                                  ? FINDING_ERROR
                       : left_s < CERTIFICATE_DAYS * INT64_C(86400) ? FINDING_WARNING
                                                                    : FINDING_OK,
                       "certificate", "renew it, and reload the service (systemctl reload cairn, or SIGHUP)",
                       left_s <= 0 ? "'%s' expired at %s UTC, %s ago: clients reject it"
                                   : "'%s' is valid until %s UTC, %s more",
                       path, text, COUNTED((left_s < 0 ? -left_s : left_s) / DAY_S, "day", "days"));
}

void check_certificates(const struct examined *x, struct findings *f)
{
        const struct server_options *o;
        struct tls *tls = NULL;
        struct error err;

        if (!x->settings)
                return;
        o = &x->settings->server;
        if (o->upstream_ca && is_forbidden(o->upstream_ca))
                report_unreadable(f, "upstream CA", o->upstream_ca);
        else if (o->upstream_ca)
                report_finding(f, access(o->upstream_ca, R_OK) ? FINDING_ERROR : FINDING_OK, "upstream CA",
                               "name a PEM file that the service can read: it does not start without it", "'%s': %s",
                               o->upstream_ca, access(o->upstream_ca, R_OK) ? strerror(errno) : "readable");
        if (!o->tls_cert || !o->tls_key) {
                report_finding(f, FINDING_OK, "certificate", "", "none: the service speaks http");
                return;
        }
        if (is_forbidden(o->tls_key) || is_forbidden(o->tls_cert)) {
                report_unreadable(f, "certificate", is_forbidden(o->tls_cert) ? o->tls_cert : o->tls_key);
                return;
        }
        if (tls_load(o->tls_cert, o->tls_key, &tls, &err))
                report_finding(f, FINDING_ERROR, "certificate",
                               "give --tls-cert and --tls-key a matching pair in PEM, the key without a password", "%s",
                               err.text);
        else
                report_expiry(tls_get_expiry(tls), o->tls_cert, f);
        tls_destroy(tls);
}
