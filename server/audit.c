/* SPDX-License-Identifier: Apache-2.0 */
#include "server/audit.h"

#include <stdatomic.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/metrics.h"

#define LINE_FORMAT "%u %s %.300s by %s from %s"

static struct metric unknown = METRIC_COUNTER("cairn_access_refused_total", "Requests refused for their token.", "code=\"401\"");
static struct metric denied = METRIC_COUNTER("cairn_access_refused_total", "Requests refused for their token.", "code=\"403\"");

/* Good enough to bound lines: two threads may disagree on the second for a moment. */
static bool may_log_refusal(void)
{
        static _Atomic int64_t second;
        static atomic_uint count;
        int64_t now = monotonic_ns() / 1000000000;

        if (atomic_exchange(&second, now) != now)
                atomic_store(&count, 0);
        return atomic_fetch_add(&count, 1) < AUDIT_REFUSALS_PER_S;
}

static void line(const struct http_request *req, unsigned code)
{
        const char *name = http_token_name(req);

        if (code < 400) /* what was changed is told in full */
                log_line_always(LOG_INFO, "audit", LINE_FORMAT, code, http_method(req), http_uri(req), *name ? name : "-", http_peer(req));
        else
                log_info("audit", LINE_FORMAT, code, http_method(req), http_uri(req), *name ? name : "-", http_peer(req));
}

void audit_answered(void *context, const struct http_request *req, unsigned code)
{
        const struct http_route *route = http_route(req);

        (void)context;
        if (code == 401 || code == 403) {
                metric_add(code == 401 ? &unknown : &denied, 1);
                if (may_log_refusal())
                        line(req, code);
        } else if (route && route->writes) {
                line(req, code);
        }
}
