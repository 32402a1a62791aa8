/* SPDX-License-Identifier: Apache-2.0 */
/* This machine: limits, clock, and the confinement of the service's workers. */
#include <errno.h>
#include <inttypes.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/doctor/doctor_checks.h"
#include "common/clock.h"
#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "sandbox/landlock.h"
#include "sandbox/sanitizers.h"
#include "sandbox/worker.h"

#define CONNECTIONS_NORMAL 4096        /* --max-connections */
#define EARLIEST_S INT64_C(1767225600) /* 2026-01-01: a clock before it was never set */

/* ---- limits ---- */

void check_host_limits(const struct examined *x, struct findings *f)
{
        uint64_t connections = x->settings && x->settings->server.max_connections ? x->settings->server.max_connections
                                                                                  : CONNECTIONS_NORMAL;
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
                report_finding(
                        f, limit.rlim_max < 2 * connections ? FINDING_WARNING : FINDING_OK, "file descriptors",
                        "set LimitNOFILE=65536 in the unit, or ulimit -Hn 65536 where the service is started: else it "
                        "refuses connections before --max-connections",
                        "the hard limit is %" PRIu64 "; %" PRIu64 " connections need twice as many",
                        (uint64_t)limit.rlim_max, connections);
        if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
                report_finding(
                        f, FINDING_WARNING, "address space",
                        "set ulimit -v unlimited: databases are mapped as a whole (CAIRN_INDEX_MAP_MIB and similar "
                        "variables reduce their size)",
                        "limited to %" PRIu64 " MiB", (uint64_t)limit.rlim_cur >> 20);
        else
                report_finding(f, FINDING_OK, "address space", "", "not limited");
        report_finding(f, memory_budget_default() < MiB(256) ? FINDING_ERROR : FINDING_OK, "memory",
                       "give the machine or the cgroup 512 MiB or more: the service needs a budget of 256 MiB",
                       "the default of --memory is %" PRIu64 " MiB on this machine", memory_budget_default() >> 20);
}

/* ---- clock ---- */

void check_clock(const struct examined *x, struct findings *f)
{
        struct timex t = { 0 };
        int state = adjtimex(&t);
        int64_t now_s = wall_clock_ns() / 1000000000;

        (void)x;
        if (now_s < EARLIEST_S) {
                report_finding(f, FINDING_ERROR, "clock", "set it, and run chrony or systemd-timesyncd",
                               "it shows a time before 2026: samples are stored and found by their times");
                return;
        }
        if (state < 0) {
                report_finding(f, FINDING_SKIPPED, "clock", "", "adjtimex: %s", strerror(errno));
                return;
        }
        if (state == TIME_ERROR || t.status & STA_UNSYNC)
                report_finding(f, FINDING_WARNING, "clock",
                               "run chrony or systemd-timesyncd on this machine, or on the host of this container",
                               "the kernel reports that it is not synchronized");
        else
                report_finding(f, FINDING_OK, "clock", "", "synchronized, to %ld ms or better", t.maxerror / 1000);
}

/* ---- workers ---- */

static bool has_seccomp_action(uint32_t action)
{
        return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

/* In a child process, since a namespace cannot be left again. */
static bool can_enter_user_namespace(int *errno_ret)
{
        int status = -1;
        pid_t child = fork();

        if (child == 0)
                _exit(unshare(CLONE_NEWUSER | CLONE_NEWNS) ? errno & 0x7f : 0);
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
                *errno_ret = child < 0 ? errno : EINVAL;
                return false;
        }
        *errno_ret = WEXITSTATUS(status);
        return *errno_ret == 0;
}

static bool can_confine(struct error *err)
{
        int ends[2], status = -1;
        pid_t child;
        ssize_t n;

        *err = (struct error){ .text = "the process did not end" };
        if (pipe(ends) < 0 || (child = fork()) < 0) {
                error_os(err, errno, "cannot start a process");
                return false;
        }
        if (child == 0) {
                struct error why = { 0 };
                enum status st;

                prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                st = worker_confine(WORKER_NEEDS_NOTHING, &why);
                _exit(st && write(ends[1], why.text, sizeof why.text) ? 1 : 0);
        }
        close(ends[1]);
        n = read(ends[0], err->text, sizeof err->text - 1);
        err->text[n > 0 ? n : 0] = 0;
        close(ends[0]);
        if (waitpid(child, &status, 0) != child)
                return false;
        if (!err->text[0])
                snprintf(err->text, sizeof err->text, "it ended with status 0x%x", (unsigned)status);
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void check_worker_features(struct findings *f)
{
        int abi = landlock_version(), namespace_error = 0;
        bool has_namespaces = can_enter_user_namespace(&namespace_error);
        struct utsname u = { .release = "unknown" };

        (void)uname(&u);
        if (abi)
                report_finding(f, FINDING_OK, "Landlock", "", "ABI %d of Linux %s", abi, u.release);
        else
                report_finding(
                        f, FINDING_WARNING, "Landlock",
                        "run Linux 5.13 or later with landlock in the kernel's lsm= list: without it workers are "
                        "confined by seccomp alone",
                        "not in Linux %s", u.release);
        if (has_seccomp_action(SECCOMP_RET_KILL_PROCESS))
                report_finding(f, FINDING_OK, "seccomp", "", "filters can end a process");
        else
                report_finding(f, FINDING_ERROR, "seccomp",
                               "run Linux 4.14 or later with CONFIG_SECCOMP_FILTER: no debuginfo is read without it",
                               "no filters that end a process: %s", strerror(errno));
        report_finding(
                f, has_namespaces || abi ? FINDING_OK : FINDING_WARNING, "user namespaces",
                "allow them (kernel.unprivileged_userns_clone, user.max_user_namespaces): workers that fetch from "
                "upstreams use one where there is no Landlock",
                "%s%s", has_namespaces ? "allowed" : strerror(namespace_error),
                !has_namespaces && abi ? "; not needed with Landlock" : "");
}

void check_confinement(const struct examined *x, struct findings *f)
{
        struct error err;

        (void)x;
        check_worker_features(f);
        if (can_confine(&err))
                report_finding(f, FINDING_OK, "confined worker", "", "a process can confine itself%s",
                               BUILT_WITH_SANITIZER ? ", as far as a sanitizer lets it" : "");
        else
                report_finding(
                        f, FINDING_ERROR, "confined worker",
                        "let a container's seccomp profile allow seccomp() and landlock_*(): no debuginfo is read "
                        "without confinement",
                        "%s", err.text);
}
