/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/worker_health.h"

#include "common/program/log.h"
#include "sandbox/worker.h"

bool worker_health_note(struct worker_health *h, enum status st, const struct error *err)
{
        bool failed = st && err->reason == WORKER_NOT_STARTED;

        if (failed && !h->failing)
                log_warn("agent", "%s: %s; 'cairn-agent --doctor' checks it", h->missing, err->text);
        else if (!st && h->failing)
                log_info("agent", "workers can be started again, after: %s", h->missing);
        if (failed || !st)
                h->failing = failed;
        return failed;
}
