/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/setup.h"

#include <sys/prctl.h>

#include "common/metrics.h"
#include "common/program/log.h"
#include "sandbox/landlock.h"
#include "sandbox/worker_user.h"

static struct metric landlock_abi =
        METRIC_GAUGE("cairn_sandbox_landlock_abi", "ABI of Landlock in this kernel; 0: none.", "");
static struct metric worker_uid = METRIC_GAUGE("cairn_worker_uid", "The uid that workers run as.", "");

enum status sandbox_setup(const char *subsystem, const char *user, struct error *err)
{
        struct error why;
        enum status st = worker_user_choose(user, &why);

        if (st && user) {
                if (err)
                        *err = why;
                return st;
        }
        if (st)
                log_warn(subsystem, "%s: workers run as uid 0 without capabilities; grant CAP_SETUID and CAP_SETGID",
                         why.text);
        if (landlock_version() == 0) {
                prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
                log_warn(subsystem, "this kernel has no Landlock, or a container forbids it: workers are confined by "
                                    "seccomp alone, "
                                    "and the upstream worker also by a mount namespace where that is allowed");
        }
        metric_set(&landlock_abi, landlock_version());
        metric_set(&worker_uid, worker_user_uid());
        return ST_OK;
}
