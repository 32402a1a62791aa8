/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/check_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"

#define MS_NS INT64_C(1000000)
#define KILL_PATIENCE_MS 1000

/* Runs in the child. A finding is smaller than PIPE_BUF, so it is written as a whole. */
_Noreturn static void run_check_child(const struct doctor_check *check, const struct examined *all, int64_t seconds,
                                      int out)
{
        struct findings *f = calloc(1, sizeof *f);
        struct examined x = *all;

        setpgid(0, 0);
        signal(SIGPIPE, SIG_IGN);
        if (!f)
                _exit(1);
        x.budget_ms = (uint64_t)seconds * 1000;
        check->run(&x, f);
        for (size_t i = 0; i < f->count; i++)
                if (write(out, &f->items[i], sizeof f->items[i]) != (ssize_t)sizeof f->items[i])
                        _exit(1);
        _exit(0);
}

/* Reads findings until the end of the pipe; false at the timeout. */
static bool receive_findings(int in, int64_t until_ns, struct findings *ret)
{
        for (;;) {
                struct pollfd fd = { .fd = in, .events = POLLIN };
                int64_t left_ms = (until_ns - monotonic_ns() + MS_NS - 1) / MS_NS;
                struct finding one;
                ssize_t n;

                if (left_ms <= 0)
                        return false;
                if (poll(&fd, 1, left_ms < 60000 ? (int)left_ms : 60000) <= 0)
                        continue;
                n = read(in, &one, sizeof one);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n != (ssize_t)sizeof one)
                        return true;
                if (ret->count < FINDINGS_MAX)
                        ret->items[ret->count++] = one;
        }
}

/* A process in uninterruptible sleep (a hanging disk) cannot be killed and is not waited for: false. */
static bool reap_child(pid_t child, int *status_ret)
{
        int64_t until = monotonic_ns() + KILL_PATIENCE_MS * MS_NS;

        for (;;) {
                pid_t got = waitpid(child, status_ret, WNOHANG);

                if (got == child)
                        return true;
                if ((got < 0 && errno != EINTR) || monotonic_ns() >= until)
                        return false;
                poll(NULL, 0, 5);
        }
}

enum status run_doctor_check(const struct doctor_check *check, const struct examined *x, unsigned timeout_s,
                             struct findings *ret, uint64_t *took_ms_ret, struct error *err)
{
        int64_t began = monotonic_ns(), seconds = (int64_t)timeout_s * check->timeout_factor;
        int ends[2], status = 0;
        bool has_ended, is_reaped;
        pid_t child;

        *ret = (struct findings){ 0 };
        if (pipe2(ends, O_CLOEXEC) < 0)
                return error_os(err, errno, "cannot create a pipe");
        child = fork();
        if (child == 0)
                run_check_child(check, x, seconds, ends[1]);
        close(ends[1]);
        if (child < 0) {
                close(ends[0]);
                return error_os(err, errno, "cannot start a process");
        }
        setpgid(child, child); /* the child does so too: either may run first */
        has_ended = receive_findings(ends[0], began + seconds * 1000 * MS_NS, ret);
        close(ends[0]);
        if (!has_ended)
                kill(-child, SIGKILL);
        is_reaped = reap_child(child, &status);
        if (!has_ended)
                report_finding(ret, FINDING_ERROR, check->name, check->hang_fix, "no result within %llu s",
                               (unsigned long long)seconds);
        else if (is_reaped && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
                report_finding(ret, FINDING_ERROR, check->name, "report this, with the output of 'cairn --version'",
                               WIFSIGNALED(status) ? "the check was ended by signal %d" : "the check failed (%d)",
                               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        *took_ms_ret = (uint64_t)((monotonic_ns() - began) / MS_NS);
        return ST_OK;
}
