/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/faults/fault_loop.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/files/file.h"
#include "tests/faults/fault_fs.h"
#include "tests/faults/power_cut.h"

#define STEPS_MAX 5000

/* The quarantine of freed memory would grow through thousands of states and be copied for each child. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
        return "quarantine_size_mb=8";
}

static uint32_t *acknowledged; /* shared with child processes that are killed */
static char dir[64];
static char about[2400], before[1200]; /* state for messages of failed assertions; state before the power cut */

void acknowledge_step(unsigned number)
{
        *acknowledged |= UINT32_C(1) << number;
        fault_fs_mark(number);
}

bool is_acknowledged(unsigned number)
{
        return *acknowledged >> number & 1;
}

enum status run_remaining_steps(const unsigned *order, unsigned count,
                                enum status (*take)(unsigned number, struct error *err), struct error *err)
{
        enum status st = ST_OK;

        for (unsigned i = 0; !st && i < count; i++) {
                unsigned number = order ? order[i] : i;

                if (is_acknowledged(number))
                        continue;
                st = take(number, err);
                if (!st)
                        acknowledge_step(number);
        }
        return st;
}

/* On tmpfs if possible: thousands of states are created. */
static const char *get_tmp_dir(void)
{
        return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

static void begin_state(void)
{
        if (!acknowledged)
                acknowledged =
                        mmap(NULL, sizeof *acknowledged, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(acknowledged, MAP_FAILED);
        *acknowledged = 0;
        snprintf(dir, sizeof dir, "%s/cairn-faults-XXXXXX", get_tmp_dir());
        ck_assert_ptr_nonnull(mkdtemp(dir));
        fault_fs_watch(dir);
}

static void end_state(void)
{
        fault_fs_record(-1);
        fault_fs_off();
        ck_assert_int_eq(file_remove_tree(dir, NULL), ST_OK);
}

static void describe_state(const char *what, unsigned at, const char *where)
{
        snprintf(about, sizeof about, "%s %u %s%s%s", what, at, where, before[0] ? ", before it: " : "", before);
}

const char *fault_about(void)
{
        return about;
}

static enum status open_and_resume(const struct scenario *s, struct error *err)
{
        enum status st = s->open(dir, err);

        return st ? st : s->resume(err);
}

static void must_complete(const struct scenario *s, const char *after)
{
        struct error err = { 0 };
        enum status st = open_and_resume(s, &err);

        s->close();
        ck_assert_msg(st == ST_OK, "%s: %s", after, err.text);
        ck_assert_msg(*acknowledged == s->all, "%s: %x of %x", after, *acknowledged, s->all);
}

/* Returns whether the process was killed. */
static bool run_killed(const struct scenario *s, unsigned at)
{
        struct error err = { 0 };
        int status;
        pid_t child = fork();

        ck_assert_int_ge(child, 0);
        if (!child) {
                fault_fs_kill_at(at);
                if (open_and_resume(s, &err))
                        fprintf(stderr, "# %s\n", err.text);
                s->close();
                fault_fs_off();
                _exit(*acknowledged == s->all ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
                              (WIFEXITED(status) && !WEXITSTATUS(status)),
                      "status %x with a kill at step %u", (unsigned)status, at);
        return WIFSIGNALED(status);
}

void fault_loop_kills(const struct scenario *s)
{
        bool killed = true;

        for (unsigned at = 1; killed; at++) {
                char after[64];

                ck_assert_uint_lt(at, STEPS_MAX);
                snprintf(after, sizeof after, "killed at step %u", at);
                begin_state();
                killed = run_killed(s, at);
                describe_state("kill", at, "");
                s->check(dir, *acknowledged);
                must_complete(s, after);
                if (at % 4 == 0)
                        s->check(dir, s->all);
                end_state();
        }
}

/* Resumes after a failure: immediately, or after the restart that the failure requires. */
static void recover_from_failure(const struct scenario *s, bool opened, const char *after)
{
        struct error err = { 0 };
        enum status st = opened ? s->resume(&err) : ST_OS;

        s->close();
        if (opened && st)
                ck_assert_msg(strstr(err.text, "restart"), "%s it still fails: %s", after, err.text);
        if (st)
                must_complete(s, after);
        ck_assert_uint_eq(*acknowledged, s->all);
}

/* Returns whether the fault was injected. */
static bool run_failing(const struct scenario *s, int os_errno, unsigned at, bool stays)
{
        struct error err = { 0 };
        enum status st;
        bool opened, happened;
        char after[700];

        if (stays)
                fault_fs_full_at(at);
        else
                fault_fs_fail_at(at, os_errno);
        st = s->open(dir, &err);
        opened = !st;
        if (!st)
                st = s->resume(&err);
        happened = fault_fs_where()[0];
        snprintf(after, sizeof after, "after %s at step %u, %s (%s)", strerrorname_np(os_errno), at, fault_fs_where(),
                 st ? err.text : "nothing failed");
        describe_state("error", at, after);
        if (st) {
                ck_assert_msg(os_errno != EINTR, "%s", after);
                /* LMDB treats a short write as a full disk. */
                ck_assert_msg(strstr(err.text, strerror(os_errno)) || strstr(err.text, strerror(ENOSPC)) ||
                                      strstr(err.text, "disk is full"),
                              "%s: not said", after);
                ck_assert_msg(strchr(err.text, '/'), "%s: no file is named", after);
                if (stays)
                        ck_assert_msg(strstr(err.text, "make room"), "%s: nothing is advised", after);
        }
        fault_fs_off();
        recover_from_failure(s, opened, after);
        return happened;
}

/* The number of steps without faults. Some steps have no fault: very small writes cannot be short. */
static unsigned count_steps(const struct scenario *s)
{
        unsigned ret;

        begin_state();
        fault_fs_count();
        must_complete(s, "undisturbed");
        ret = fault_fs_steps();
        fault_fs_off();
        end_state();
        ck_assert_uint_lt(ret, STEPS_MAX);
        return ret;
}

static void run_each_failure(const struct scenario *s, int os_errno, bool stays)
{
        unsigned steps = count_steps(s);

        for (unsigned at = 1; at <= steps; at++) {
                bool happened;

                begin_state();
                happened = run_failing(s, os_errno, at, stays);
                if (happened)
                        s->check(dir, s->all);
                end_state();
        }
}

void fault_loop_errors(const struct scenario *s)
{
        run_each_failure(s, EIO, false);
}

void fault_loop_full_disk(const struct scenario *s)
{
        run_each_failure(s, ENOSPC, true);
}

/* Steps that cannot be interrupted have no fault, so the loop ends by the step count. */
void fault_loop_interrupts(const struct scenario *s)
{
        unsigned steps = 1;

        for (unsigned at = 1; at <= steps; at++) {
                begin_state();
                (void)run_failing(s, EINTR, at, false);
                steps = fault_fs_steps();
                if (at % 8 == 0)
                        s->check(dir, s->all);
                end_state();
        }
}

/* ---- power cuts ---- */

static void check_cut(const struct scenario *s, struct power_cut *p, const struct cut *cut)
{
        char to[64];
        uint32_t marks;

        snprintf(to, sizeof to, "%s/cairn-cut-XXXXXX", get_tmp_dir());
        ck_assert_ptr_nonnull(mkdtemp(to));
        if (power_cut_make(p, cut, to, &marks)) {
                describe_state("cut", (unsigned)cut->changes, power_cut_describe(p, cut));
                s->check(to, marks);
        }
        ck_assert_int_eq(file_remove_tree(to, NULL), ST_OK);
}

static int start_log(void)
{
        int fd = memfd_create("log", 0);

        ck_assert_int_ge(fd, 0);
        fault_fs_record(fd);
        return fd;
}

void fault_loop_power_cuts(const struct scenario *s)
{
        struct power_cut *p;
        int log;

        begin_state();
        log = start_log();
        must_complete(s, "undisturbed");
        p = power_cut_read(log, dir);
        end_state();
        for (size_t n = 0; n <= power_cut_changes(p); n++) {
                check_cut(s, p, &(struct cut){ n, CUT_SYNCED, 0 });
                check_cut(s, p, &(struct cut){ n, n % 2 ? CUT_NAMES : CUT_BYTES, 0 });
                check_cut(s, p, &(struct cut){ n, n % 2 ? CUT_SCATTERED : CUT_JOURNAL, n });
                check_cut(s, p, &(struct cut){ n, n % 2 ? CUT_JOURNAL : CUT_SCATTERED, n + 1000 });
        }
        power_cut_free(p);
        close(log);
}

static void check_some_cuts(const struct scenario *s, int log, size_t first, unsigned at)
{
        struct power_cut *p = power_cut_read(log, dir);
        size_t count = power_cut_changes(p);

        for (unsigned i = 0; i < 4 && count > first; i++) {
                size_t n = first + (at * 2654435761u + i * 40503u) % (count - first + 1);

                check_cut(s, p, &(struct cut){ n, i % 2 ? CUT_SYNCED : CUT_NAMES + i % 4, at * 8 + i });
        }
        power_cut_free(p);
}

static size_t count_logged_changes(int log)
{
        struct power_cut *p = power_cut_read(log, dir);
        size_t ret = power_cut_changes(p);

        power_cut_free(p);
        return ret;
}

void fault_loop_late_power_cuts(const struct scenario *s)
{
        unsigned steps = count_steps(s);

        for (unsigned kill = 0; kill <= 1; kill++) {
                for (unsigned at = 1; at <= steps; at += 7) {
                        size_t first = 0;
                        int log;

                        begin_state();
                        log = start_log();
                        if (kill) {
                                (void)run_killed(s, at);
                                describe_state("kill", at, "");
                                first = count_logged_changes(log);
                                must_complete(s, "killed before");
                        } else {
                                (void)run_failing(s, EIO, at, false);
                        }
                        fault_fs_record(-1);
                        snprintf(before, sizeof before, "%.1199s", about);
                        check_some_cuts(s, log, first, at);
                        before[0] = 0;
                        close(log);
                        end_state();
                }
        }
}
