/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/reload.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/metrics.h"
#include "common/program/log.h"
#include "common/program/service_notify.h"
#include "common/text/number_text.h"
#include "server/access/tenant_config.h"
#include "server/core/query_work.h"
#include "server/core/server_internal.h"

/* Parts that are reloaded, and can fail, independently. */
enum part { CONFIGURATION, TOKENS, TLS, TENANTS, UPSTREAMS, PART_COUNT };

#define FAILURES(file)                                                                                                 \
        METRIC_COUNTER("cairn_reload_failures_total", "Failed reloads at SIGHUP; the previous file stays in use.",     \
                       "file=\"" file "\"")
static struct metric failures[PART_COUNT] = {
        [CONFIGURATION] = FAILURES("configuration"),
        [TOKENS] = FAILURES("tokens"),
        [TLS] = FAILURES("tls"),
        [TENANTS] = FAILURES("tenants"),
        [UPSTREAMS] = FAILURES("upstreams"),
};
static const char *const part_names[PART_COUNT] = { "configuration", "tokens", "tls", "tenants", "upstreams" };
static struct metric waiting = METRIC_GAUGE("cairn_reload_restart_options",
                                            "Options that were changed in the configuration and need a restart.", "");

struct reload {
        struct server *s;
        struct server_reread fresh;
        bool has_failed[PART_COUNT];
        bool needs_restart[PART_COUNT]; /* the part was enabled or disabled */
        bool has_applied_limits;        /* the service's own sample limits and rules, which tenants_reload() sets */
        unsigned failed_count, restart_count;
};

void reload_register_metrics(void)
{
        for (size_t i = 0; i < PART_COUNT; i++)
                metric_register(&failures[i]);
        metric_register(&waiting);
}

static void fail_part(struct reload *r, enum part part, const struct error *err)
{
        metric_add(&failures[part], 1);
        log_error("serve", "reload: %s; the previous settings stay in use", err->text);
        r->failed_count++;
        r->has_failed[part] = true;
}

/* Whether the part is enabled before and after the reload. A change of that needs a restart. */
static bool is_reloadable(struct reload *r, enum part part, bool was_there, bool is_there)
{
        r->needs_restart[part] = was_there != is_there;
        return was_there && is_there;
}

static void reread_configuration(struct reload *r)
{
        const struct server_options *o = r->s->options;
        struct error err = { 0 };

        r->fresh = (struct server_reread){ .options = r->s->reloaded };
        if (o->reread && o->reread(o->reread_context, &r->fresh, &err))
                fail_part(r, CONFIGURATION, &err);
        r->s->reloaded = r->fresh.options;
}

static void reload_access(struct reload *r)
{
        const struct server_options *o = r->fresh.options;
        struct access_control *access = &r->s->access_control;
        struct error err = { 0 };

        if (is_reloadable(r, TOKENS, access->tokens, o->token_file) &&
            access_reload_tokens(access, o->token_file, &err))
                fail_part(r, TOKENS, &err);
        if (is_reloadable(r, TLS, access->tls, o->tls_cert && o->tls_key) &&
            access_reload_certificate(access, o->tls_cert, o->tls_key, &err))
                fail_part(r, TLS, &err);
        admission_set_address_rate(access->admission, o->address_rate);
        query_work_set_slow(o->slow_query_ns);
        apply_server_limits(o);
}

static void reload_tenants(struct reload *r)
{
        const struct server_options *o = r->fresh.options;
        bool is_there = is_reloadable(r, TENANTS, r->s->access_control.tenants, o->tenant_file);
        struct tenants_reload left = { 0 };
        struct tenant_configs *configs = NULL;
        struct error err = { 0 };
        enum status st;

        if (r->needs_restart[TENANTS])
                return;
        st = is_there ? tenant_configs_load(o->tenant_file, &configs, &err) : ST_OK;
        if (!st)
                st = tenants_reload(r->s->tenants, o, configs, &left, &err);
        r->has_applied_limits = !st;
        if (st)
                fail_part(r, TENANTS, &err);
        else if (left.added || left.removed)
                log_warn("serve",
                         "reload: %s added to '%s' and %u removed from it, which takes effect at the next start; the "
                         "limits and rules of the other tenants are applied",
                         COUNTED(left.added, "tenant was", "tenants were"), o->tenant_file, left.removed);
        if (!st && left.moved)
                log_warn("serve",
                         "reload: the setting debuginfo of %s changed in '%s', which takes effect at the next start",
                         COUNTED(left.moved, "tenant was", "tenants was"), o->tenant_file);
        r->needs_restart[TENANTS] = left.added || left.removed || left.moved;
}

static void reload_retention(struct reload *r)
{
        debuginfo_spaces_set_retention(r->s->spaces, r->fresh.options);
}

static void reload_upstreams(struct reload *r)
{
        const struct server_options *o = r->fresh.options;
        bool are_there = debuginfo_spaces_have_upstreams(r->s->spaces);
        struct error err = { 0 };

        if (r->s->options->read_only)
                return;
        /* When all upstreams are removed, the federation keeps running without any. */
        r->needs_restart[UPSTREAMS] = !are_there && o->upstream_count;
        if (are_there && debuginfo_spaces_set_upstreams(r->s->spaces, o, &err))
                fail_part(r, UPSTREAMS, &err);
}

/* ---- the report ---- */

static enum part find_part(const char *option)
{
        static const struct {
                const char *option;
                enum part part;
        } parts[] = { { "token-file", TOKENS }, { "tls-cert", TLS },       { "tls-key", TLS },
                      { "tenants", TENANTS },   { "upstream", UPSTREAMS }, { "upstreams", UPSTREAMS } };

        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
                if (strcmp(parts[i].option, option) == 0)
                        return parts[i].part;
        return PART_COUNT;
}

/* These limits are defaults of each tenant, so they are applied together with the tenants or not at all. */
static bool is_limit_of_samples(const char *option)
{
        return strcmp(option, "retain-samples") == 0 || strcmp(option, "max-age") == 0 ||
               strcmp(option, "max-ahead") == 0;
}

static void report_changed_option(struct reload *r, const struct option_change *c)
{
        enum part part = find_part(c->name);

        if (part != PART_COUNT && r->has_failed[part]) {
                log_warn("serve", "reload: --%s was changed and is not applied", c->name);
        } else if (is_limit_of_samples(c->name) && !r->has_applied_limits) {
                log_warn("serve", "reload: --%s was changed and is not applied, as --tenants is not", c->name);
        } else if (part != PART_COUNT && r->needs_restart[part]) {
                return; /* report_waiting_parts() */
        } else if (c->needs_restart) {
                log_warn("serve", "reload: --%s was changed and takes effect at the next start", c->name);
                r->restart_count++;
        } else {
                log_info("serve", "reload: --%s was changed and is applied", c->name);
        }
}

/* Repeated at each reload until the restart. */
static void report_waiting_parts(struct reload *r)
{
        static const char *const options[PART_COUNT] = {
                [TOKENS] = "token-file", [TLS] = "tls-cert", [TENANTS] = "tenants", [UPSTREAMS] = "upstream"
        };

        for (size_t i = 0; i < PART_COUNT; i++) {
                if (!r->needs_restart[i] || r->has_failed[i])
                        continue;
                log_warn("serve", "reload: the new value of --%s takes effect at the next start", options[i]);
                r->restart_count++;
        }
}

/* /readyz is public, so it only names the parts: an error message may quote the file, including a secret. */
static void report_failed_parts(const struct reload *r)
{
        char names[80];
        size_t used = 0;
        struct error err;

        for (size_t i = 0; i < PART_COUNT; i++)
                if (r->has_failed[i])
                        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                                 part_names[i]);
        assert(used && used < sizeof names);
        error_set(&err, ST_BAD_DATA, "%s could not be reloaded, and the log names file and line", names);
        readiness_report(r->s->readiness, READY_RELOAD_FAILING, &err);
}

void server_reload(struct server *s)
{
        struct reload r = { .s = s };

        service_notify_reloading();
        reread_configuration(&r);
        reload_access(&r);
        reload_tenants(&r);
        reload_retention(&r);
        reload_upstreams(&r);
        for (size_t i = 0; i < r.fresh.changed_count; i++)
                report_changed_option(&r, &r.fresh.changed[i]);
        report_waiting_parts(&r);
        if (!r.has_failed[CONFIGURATION])
                metric_set(&waiting, r.restart_count);
        if (r.failed_count) {
                report_failed_parts(&r);
                log_error("serve", "reload: %u of the parts failed", r.failed_count);
        } else {
                readiness_report(s->readiness, READY_RELOAD_FAILING, NULL);
                log_info("serve", "reload: done, %s for a restart",
                         COUNTED(r.restart_count, "option waits", "options wait"));
        }
        service_notify_ready();
}
