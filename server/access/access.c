/* SPDX-License-Identifier: Apache-2.0 */
#include "server/access/access.h"

#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>

#include "common/metrics.h"
#include "common/program/log.h"
#include "common/text/number_text.h"
#include "http/tls.h"

#define OTLP_GRPC_PORT 4317

static struct metric expires = METRIC_GAUGE("cairn_tls_certificate_expires_timestamp_seconds",
                                            "Expiry of the certificate, in seconds since 1970.", "");
/* A name of letters, digits and '-' that the service does not use otherwise. */
static bool is_user_header(const char *name)
{
        static const char *const others[] = { "Authorization",   "Cookie",           "Host", "Origin", "Content-Type",
                                              "X-Forwarded-For", "X-Forwarded-Proto" };

        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
                if (strcasecmp(name, others[i]) == 0)
                        return false;
        return *name && !name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-")];
}

static enum status check_access_options(const struct server_options *o, struct error *err)
{
        if (!o->tls_cert != !o->tls_key)
                return error_set(err, ST_USAGE, "--tls-cert FILE and --tls-key FILE go together");
        if (o->proxy_auth && (!o->trusted_proxy_count || !o->token_file))
                return error_set(err, ST_USAGE,
                                 "--proxy-auth needs --trusted-proxy, to reject the header from other senders, and "
                                 "--token-file, for requests that bypass the proxy");
        if (o->proxy_auth && !is_user_header(o->proxy_auth))
                return error_set(err, ST_USAGE,
                                 "--proxy-auth '%.60s' is not a header that can name a user, such as "
                                 "X-Forwarded-User",
                                 o->proxy_auth);
        return ST_OK;
}

static enum status check_listener(const struct server_options *o, const char *text, uint16_t default_port,
                                  struct listen_address *ret, struct error *err)
{
        struct listen_address l;
        enum status st = parse_listen_address(text, default_port, &l, err);

        if (st)
                return st;
        if (!l.is_loopback && !o->token_file)
                return error_set(err, ST_USAGE,
                                 "refusing to listen on %s without tokens: any client that reaches it could read and "
                                 "write; give --token-file FILE, or listen on 127.0.0.1",
                                 l.host);
        *ret = l;
        return ST_OK;
}

enum status access_check_options(const struct server_options *o, struct listeners *ret, struct error *err)
{
        struct listeners l = { .grpc = { .is_loopback = true } };
        enum status st = check_access_options(o, err);

        if (!st)
                st = check_listener(o, o->listen, SERVER_DEFAULT_PORT, &l.http, err);
        if (!st && o->listen_otlp_grpc)
                st = check_listener(o, o->listen_otlp_grpc, OTLP_GRPC_PORT, &l.grpc, err);
        if (!st)
                *ret = l;
        return st;
}

static void log_certificate(struct access_control *control, const char *path)
{
        time_t end = (time_t)tls_get_expiry(control->tls);
        struct tm tm;
        char text[24];

        gmtime_r(&end, &tm);
        strftime(text, sizeof text, "%Y-%m-%d %H:%M", &tm);
        metric_set(&expires, end);
        if (end < time(NULL))
                log_warn("serve",
                         "the certificate in '%s' expired at %s UTC: clients reject it; renew it and send SIGHUP", path,
                         text);
        else
                log_info("serve", "certificate from '%s', valid until %s UTC", path, text);
}

static void warn_of_unbound_tokens(struct access_control *control, const char *path)
{
        unsigned line;
        size_t count = tokens_count_unbound(control->tokens, &line);

        if (count)
                log_warn("serve",
                         "'%s' line %u: %zu token%s without tenant= act%s for the whole service, and as the default "
                         "tenant " TENANT_DEFAULT "; write tenant=NAME, or tenant=* for an operator",
                         path, line, count, count == 1 ? "" : "s", count == 1 ? "s" : "");
}

enum status access_open(struct access_control *control, const struct server_options *o, bool is_loopback,
                        struct error *err)
{
        enum status st = ST_OK;

        control->options = o;
        if (o->tenant_file)
                st = tenant_configs_load(o->tenant_file, &control->tenants, err);
        if (!st && o->token_file)
                st = tokens_load(o->token_file, control->tenants, &control->tokens, err);
        if (!st && o->tls_cert)
                st = tls_load(o->tls_cert, o->tls_key, &control->tls, err);
        if (!st)
                st = admission_create(control->tokens, o->address_rate, &control->admission, err);
        if (!st)
                st = sessions_create(o->session_max_age_s, &control->sessions, err);
        if (!st)
                st = rate_limit_create(&control->sign_ins, err);
        if (!st && getrandom(control->csrf_key, sizeof control->csrf_key, 0) != sizeof control->csrf_key)
                st = error_set(err, ST_OS, "cannot get random bytes from the kernel");
        if (st)
                return st;
        if (control->tokens)
                warn_of_unbound_tokens(control, o->token_file);
        if (control->tls)
                log_certificate(control, o->tls_cert);
        else if (control->tokens && !is_loopback)
                log_warn("serve",
                         "tokens and data cross the network unencrypted; give --tls-cert and --tls-key, or listen on "
                         "127.0.0.1 behind a proxy that speaks https");
        return ST_OK;
}

enum status access_reload_tokens(struct access_control *control, const char *path, struct error *err)
{
        size_t count;
        enum status st = tokens_reload(control->tokens, path, &count, err);

        if (st)
                return st;
        log_info("serve", "%s from '%s'", COUNTED(count, "token", "tokens"), path);
        warn_of_unbound_tokens(control, path);
        sessions_end_revoked(control->sessions, control->tokens);
        return ST_OK;
}

enum status access_reload_certificate(struct access_control *control, const char *cert_path, const char *key_path,
                                      struct error *err)
{
        enum status st = tls_reload(control->tls, cert_path, key_path, err);

        if (!st)
                log_certificate(control, cert_path);
        return st;
}

void access_close(struct access_control *control)
{
        admission_destroy(control->admission);
        sessions_destroy(control->sessions);
        rate_limit_destroy(control->sign_ins);
        tokens_destroy(control->tokens);
        tenant_configs_destroy(control->tenants);
        tls_destroy(control->tls);
}
