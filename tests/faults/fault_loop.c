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

#include "common/file.h"
#include "tests/faults/fault_fs.h"
#include "tests/faults/power_cut.h"

#define STEPS_MAX 5000

/* What is freed would be kept until the end of thousands of states, and be copied for each child. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
        return "quarantine_size_mb=8";
}

static uint32_t *promised; /* shared with the children that are killed */
static char dir[64];
static char about[2400], before[1200]; /* what a failed assertion is about; what came before the cut */

void promise(unsigned number)
{
        *promised |= UINT32_C(1) << number;
        fault_fs_mark(number);
}

bool is_promised(unsigned number)
{
        return *promised >> number & 1;
}

enum status take_open_steps(const unsigned *order, unsigned count,
                            enum status (*take)(unsigned number, struct error *err), struct error *err)
{
        enum status st = ST_OK;

        for (unsigned i = 0; !st && i < count; i++) {
                unsigned number = order ? order[i] : i;

                if (is_promised(number))
                        continue;
                st = take(number, err);
                if (!st)
                        promise(number);
        }
        return st;
}

/* In memory if possible: thousands of states are made. */
static const char *place(void)
{
        return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

static void begin(void)
{
        if (!promised)
                promised = mmap(NULL, sizeof *promised, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(promised, MAP_FAILED);
        *promised = 0;
        snprintf(dir, sizeof dir, "%s/cairn-faults-XXXXXX", place());
        ck_assert_ptr_nonnull(mkdtemp(dir));
        fault_fs_watch(dir);
}

static void end(void)
{
        fault_fs_record(-1);
        fault_fs_off();
        ck_assert_int_eq(file_remove_tree(dir, NULL), ST_OK);
}

static void tell(const char *what, unsigned at, const char *where)
{
        snprintf(about, sizeof about, "%s %u %s%s%s", what, at, where, before[0] ? ", before it: " : "", before);
}

const char *fault_about(void)
{
        return about;
}

static enum status open_and_go_on(const struct scenario *s, struct error *err)
{
        enum status st = s->open(dir, err);

        return st ? st : s->go_on(err);
}

static void must_end_well(const struct scenario *s, const char *after)
{
        struct error err = { 0 };
        enum status st = open_and_go_on(s, &err);

        s->close();
        ck_assert_msg(st == ST_OK, "%s: %s", after, err.text);
        ck_assert_msg(*promised == s->all, "%s: %x of %x", after, *promised, s->all);
}

/* Returns whether it was killed. */
static bool run_killed(const struct scenario *s, unsigned at)
{
        struct error err = { 0 };
        int status;
        pid_t child = fork();

        ck_assert_int_ge(child, 0);
        if (!child) {
                fault_fs_kill_at(at);
                if (open_and_go_on(s, &err))
                        fprintf(stderr, "# %s\n", err.text);
                s->close();
                fault_fs_off();
                _exit(*promised == s->all ? 0 : 1);
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
                begin();
                killed = run_killed(s, at);
                tell("kill", at, "");
                s->check(dir, *promised);
                must_end_well(s, after);
                if (at % 4 == 0)
                        s->check(dir, s->all);
                end();
        }
}

/* Goes on after a failure: at once, or after the restart that the failure asks for. */
static void recover(const struct scenario *s, bool opened, const char *after)
{
        struct error err = { 0 };
        enum status st = opened ? s->go_on(&err) : ST_OS;

        s->close();
        if (opened && st)
                ck_assert_msg(strstr(err.text, "restart"), "%s it still fails: %s", after, err.text);
        if (st)
                must_end_well(s, after);
        ck_assert_uint_eq(*promised, s->all);
}

/* Returns whether the fault happened. */
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
                st = s->go_on(&err);
        happened = fault_fs_where()[0];
        snprintf(after, sizeof after, "after %s at step %u, %s (%s)", strerrorname_np(os_errno), at, fault_fs_where(),
                 st ? err.text : "nothing failed");
        tell("error", at, after);
        if (st) {
                ck_assert_msg(os_errno != EINTR, "%s", after);
                /* LMDB takes a short write for a full disk, or for this. */
                ck_assert_msg(strstr(err.text, strerror(os_errno)) || strstr(err.text, strerror(ENOSPC)) ||
                                      strstr(err.text, "disk is full"),
                              "%s: not said", after);
                ck_assert_msg(strchr(err.text, '/'), "%s: no file is named", after);
                if (stays)
                        ck_assert_msg(strstr(err.text, "make room"), "%s: nothing is advised", after);
        }
        fault_fs_off();
        recover(s, opened, after);
        return happened;
}

/* How many steps it has when nothing fails. Some have no fault: what is too small cannot be written by half. */
static unsigned count_steps(const struct scenario *s)
{
        unsigned ret;

        begin();
        fault_fs_count();
        must_end_well(s, "undisturbed");
        ret = fault_fs_steps();
        fault_fs_off();
        end();
        ck_assert_uint_lt(ret, STEPS_MAX);
        return ret;
}

static void each_failure(const struct scenario *s, int os_errno, bool stays)
{
        unsigned steps = count_steps(s);

        for (unsigned at = 1; at <= steps; at++) {
                bool happened;

                begin();
                happened = run_failing(s, os_errno, at, stays);
                if (happened)
                        s->check(dir, s->all);
                end();
        }
}

void fault_loop_errors(const struct scenario *s)
{
        each_failure(s, EIO, false);
}

void fault_loop_full_disk(const struct scenario *s)
{
        each_failure(s, ENOSPC, true);
}

/* Steps where nothing can be interrupted have no fault, so the end is told by the count. */
void fault_loop_interrupts(const struct scenario *s)
{
        unsigned steps = 1;

        for (unsigned at = 1; at <= steps; at++) {
                begin();
                (void)run_failing(s, EINTR, at, false);
                steps = fault_fs_steps();
                if (at % 8 == 0)
                        s->check(dir, s->all);
                end();
        }
}

/* ---- power cuts ---- */

static void check_cut(const struct scenario *s, struct power_cut *p, const struct cut *cut)
{
        char to[64];
        uint32_t marks;

        snprintf(to, sizeof to, "%s/cairn-cut-XXXXXX", place());
        ck_assert_ptr_nonnull(mkdtemp(to));
        if (power_cut_make(p, cut, to, &marks)) {
                tell("cut", (unsigned)cut->changes, power_cut_describe(p, cut));
                s->check(to, marks);
        }
        ck_assert_int_eq(file_remove_tree(to, NULL), ST_OK);
}

static int log_file(void)
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

        begin();
        log = log_file();
        must_end_well(s, "undisturbed");
        p = power_cut_read(log, dir);
        end();
        for (size_t n = 0; n <= power_cut_changes(p); n++) {
                check_cut(s, p, &(struct cut){ n, CUT_SYNCED, 0 });
                check_cut(s, p, &(struct cut){ n, n % 2 ? CUT_NAMES : CUT_BYTES, 0 });
                check_cut(s, p, &(struct cut){ n, n % 2 ? CUT_SCATTERED : CUT_JOURNAL, n });
                check_cut(s, p, &(struct cut){ n, n % 2 ? CUT_JOURNAL : CUT_SCATTERED, n + 1000 });
        }
        power_cut_free(p);
        close(log);
}

static void cut_sometimes(const struct scenario *s, int log, size_t first, unsigned at)
{
        struct power_cut *p = power_cut_read(log, dir);
        size_t count = power_cut_changes(p);

        for (unsigned i = 0; i < 4 && count > first; i++) {
                size_t n = first + (at * 2654435761u + i * 40503u) % (count - first + 1);

                check_cut(s, p, &(struct cut){ n, i % 2 ? CUT_SYNCED : CUT_NAMES + i % 4, at * 8 + i });
        }
        power_cut_free(p);
}

static size_t log_changes(int log)
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

                        begin();
                        log = log_file();
                        if (kill) {
                                (void)run_killed(s, at);
                                tell("kill", at, "");
                                first = log_changes(log);
                                must_end_well(s, "killed before");
                        } else {
                                (void)run_failing(s, EIO, at, false);
                        }
                        fault_fs_record(-1);
                        snprintf(before, sizeof before, "%.1199s", about);
                        cut_sometimes(s, log, first, at);
                        before[0] = 0;
                        close(log);
                        end();
                }
        }
}
