/* SPDX-License-Identifier: Apache-2.0 */
#include "server/access/audit.h"

#include <stdatomic.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/metrics.h"
#include "common/program/log.h"

#define LINE_FORMAT "%u %s %.300s by %s from %s"

static struct metric unknown =
        METRIC_COUNTER("cairn_access_refused_total", "Requests refused for their token.", "code=\"401\"");
static struct metric denied =
        METRIC_COUNTER("cairn_access_refused_total", "Requests refused for their token.", "code=\"403\"");

/* Approximate: two threads may briefly disagree on the current second. */
static bool may_log_refusal(void)
{
        static _Atomic int64_t second;
        static atomic_uint count;
        int64_t now = monotonic_ns() / 1000000000;

        if (atomic_exchange(&second, now) != now)
                atomic_store(&count, 0);
        return atomic_fetch_add(&count, 1) < AUDIT_REFUSALS_PER_S;
}

static void append_audit_line(const struct audited_request *r)
{
        const char *name = r->token_name[0] ? r->token_name : "-";
        const struct log_field items[] = {
                { "code", NULL, r->code }, { "method", r->method, 0 }, { "target", r->target, 0 },
                { "token", name, 0 },      { "peer", r->peer, 0 },
        };
        const struct log_fields fields = { items, sizeof items / sizeof *items };

        if (r->code < 400) /* modifications are logged completely */
                log_with_fields_always(LOG_INFO, "audit", &fields, LINE_FORMAT, r->code, r->method, r->target, name,
                                       r->peer);
        else
                log_with_fields(LOG_INFO, "audit", &fields, LINE_FORMAT, r->code, r->method, r->target, name, r->peer);
}

void audit_request(const struct audited_request *r)
{
        bool is_refused = r->code == 401 || r->code == 403;

        if (is_refused)
                metric_add(r->code == 401 ? &unknown : &denied, 1);
        if (is_refused || (r->writes && r->is_open && r->code >= 400)) {
                if (may_log_refusal())
                        append_audit_line(r);
        } else if (r->writes) {
                append_audit_line(r);
        }
}
