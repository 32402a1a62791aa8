/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two parts. The child process is forked before the sampler starts and waits at the pipe `go`, so that its program is
 * sampled from the start; the pipe `failure` is closed by a successful exec and has errno after a failed one.
 *
 * The recording is one thread in a loop over poll(): signals (signalfd), the descriptors of the recorder, and a pidfd
 * per process. run_record_step() waits at most until the end of the interval and returns whether the recording ended;
 * after each interval the samples are taken from the recorder and added to `sum`. Without a child, unwind tables of
 * running processes are built first (prepare_recording()), and what was sampled and counted until then is subtracted.
 *
 * Signals are blocked and read from the signalfd; one that was sent to this process alone is passed on to the child.
 *
 * Order: the child, creation, the steps of the loop, preparation, the loop, counts, waiting for the child's end.
 */
#include "cli/commands/record_run.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/limits.h"
#include "common/program/shutdown_signals.h"
#include "common/text/number_text.h"
#include "profile-formats/profile_sum.h"
#include "sampling/processes/process_read.h"
#include "sampling/recorder.h"

/* ---- the command that is recorded ---- */

/*
 * Fork a process that has the name which execve() will give it, from its start: samples of its work in the kernel are
 * of the command's service, not of one named after this program.
 */
static pid_t fork_named_process(const char *path)
{
        char own[16] = "";
        pid_t pid;

        (void)prctl(PR_GET_NAME, own);
        (void)prctl(PR_SET_NAME, basename(path));
        pid = fork();
        if (pid != 0)
                (void)prctl(PR_SET_NAME, own);
        return pid;
}

/* Waits for record_child_go(); exits if the parent has ended. */
static _Noreturn void run_record_child(char **argv, int go, int failure)
{
        char turn;
        ssize_t n;

        do
                n = read(go, &turn, 1);
        while (n < 0 && errno == EINTR);
        if (n == 1) {
                execvp(argv[0], argv);
                n = errno;
                (void)!write(failure, &(int){ (int)n }, sizeof(int));
        }
        _exit(EXIT_NO_COMMAND);
}

enum status record_child_start(struct record_child *c, char **argv, struct error *err)
{
        _cleanup_close_ int go_read = -1, go_write = -1, failure_read = -1, failure_write = -1;
        int pipes[4];

        if (pipe2(pipes, O_CLOEXEC) < 0)
                return error_os(err, errno, "cannot create a pipe");
        go_read = pipes[0];
        go_write = pipes[1];
        if (pipe2(pipes + 2, O_CLOEXEC) < 0)
                return error_os(err, errno, "cannot create a pipe");
        failure_read = pipes[2];
        failure_write = pipes[3];
        *c = (struct record_child){ .name = argv[0], .pidfd = -1, .go = -1, .failure = -1 };
        c->pid = fork_named_process(argv[0]);
        if (c->pid < 0)
                return error_os(err, errno, "cannot start a process");
        if (c->pid == 0) {
                close(go_write);
                run_record_child(argv, go_read, failure_write);
        }
        c->go = steal_fd(&go_write);
        c->failure = steal_fd(&failure_read);
        c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
        return c->pidfd < 0 ? error_os(err, errno, "cannot watch process %d", (int)c->pid) : ST_OK;
}

enum status record_child_go(struct record_child *c, struct error *err)
{
        int reason = 0;
        ssize_t n;

        assert(c->pid > 0 && c->go >= 0 && !c->ended);
        if (write(c->go, "", 1) != 1)
                return error_os(err, errno, "cannot start '%s'", c->name);
        cleanup_close(&c->go);
        c->go = -1;
        do
                n = read(c->failure, &reason, sizeof reason); /* closed by a successful exec */
        while (n < 0 && errno == EINTR);
        if (n != sizeof reason)
                return ST_OK;
        (void)waitpid(c->pid, &c->status, 0);
        c->ended = true;
        c->exec_errno = reason;
        error_os(err, reason, "cannot run '%s'", c->name);
        return reason == ENOENT ? ST_NOT_FOUND : ST_OS;
}

/* Check whether the child has ended, without waiting. */
static bool record_child_has_ended(struct record_child *c)
{
        if (c->pid && !c->ended)
                c->ended = waitpid(c->pid, &c->status, WNOHANG) == c->pid;
        return c->ended;
}

int record_child_exit_code(const struct record_child *c)
{
        if (c->exec_errno)
                return c->exec_errno == ENOENT ? EXIT_NO_COMMAND : EXIT_NOT_RUNNABLE;
        return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

void record_child_deinit(struct record_child *c)
{
        if (!c->pid)
                return;
        if (c->go >= 0 && !c->ended) {
                close(c->go);
                (void)waitpid(c->pid, &c->status, 0);
        }
        cleanup_close(&c->failure);
        cleanup_close(&c->pidfd);
        *c = (struct record_child){ 0 };
}

/* ---- sampling ---- */

#define SECOND_NS INT64_C(1000000000)
#define INTERVAL_MAX_S 10
#define PROGRESS_MS 1000 /* at least once a second */
/* Names of interpreted functions are read when samples are taken, from processes that run. */
#define TAKE_INTERVAL_NS (SECOND_NS / 4)

struct recording {
        const struct record_target *target;
        struct recorder recorder;
        struct profile_sum sum;
        struct record_counts counts;
        uint64_t before[SAMPLER_STAT_COUNT]; /* samples of the preparation */
        struct profile_build_stats built_before;
        struct pollfd *fds; /* owned: the signalfd, the recorder's, a pidfd per process */
        size_t left;        /* running processes */
        int signals;
        int64_t from_ns;
        bool full;
        bool other_numbers; /* the process is in a PID namespace */
};

enum { FD_SIGNALS, FD_RECORDER, FD_PROCESSES = FD_RECORDER + RECORDER_FDS };

/* The recording ends with the last of its processes. */
static enum status watch_processes(struct recording *r, struct error *err)
{
        const struct record_target *t = r->target;

        r->fds = calloc(FD_PROCESSES + t->pid_count, sizeof *r->fds);
        if (!r->fds)
                return error_no_memory(err);
        for (size_t i = 0; i < t->pid_count; i++)
                r->fds[FD_PROCESSES + i].fd = -1;
        for (size_t i = 0; i < t->pid_count; i++) {
                int fd = (int)syscall(SYS_pidfd_open, (pid_t)t->pids[i], 0);

                if (fd < 0 && errno == ESRCH)
                        return error_set(err, ST_NOT_FOUND, "no such process: %" PRIu32, t->pids[i]);
                if (fd < 0 && errno == EINVAL)
                        return error_set(err, ST_NOT_FOUND, "%" PRIu32 " is a thread: name its process", t->pids[i]);
                if (fd < 0)
                        return error_os(err, errno, "cannot watch process %" PRIu32, t->pids[i]);
                r->fds[FD_PROCESSES + i] = (struct pollfd){ .fd = fd, .events = POLLIN };
        }
        r->left = t->pid_count;
        return ST_OK;
}

static enum status start_sampler(struct recording *r, struct error *err)
{
        const struct record_target *t = r->target;
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        uint64_t interval_s = LIMIT_AGENT_DEFERRED / 2 / (t->frequency_hz * (cpus > 0 ? (uint64_t)cpus : 1));
        struct recorder_options o = { .sampler = t->sampler,
                                      .frequency_hz = t->frequency_hz,
                                      .pids = t->pids,
                                      .pid_count = t->pid_count,
                                      .children = true,
                                      .copy_stacks = true,
                                      .reads_python = true,
                                      .reads_v8 = true,
                                      .reads_hotspot = true,
                                      .reads_context = true,
                                      .latency = t->latency,
                                      .on_object = held_files_observe,
                                      .on_object_ctx = t->held };
        enum status st;

        /* The BPF program uses PIDs of the initial namespace. */
        r->other_numbers = o.sampler == SAMPLER_AUTO && !process_in_host_pid_namespace();
        if (r->other_numbers && t->latency)
                return error_set(err, ST_UNSUPPORTED, "option '--latency' needs the pid namespace of the host");
        if (r->other_numbers)
                o.sampler = SAMPLER_PERF;
        /* With all CPUs busy, half of the buffer for copied stacks fills in one interval. */
        o.interval_s = interval_s < 1 ? 1 : interval_s > INTERVAL_MAX_S ? INTERVAL_MAX_S : interval_s;
        st = watch_processes(r, err);
        if (!st)
                st = shutdown_signals_open(&r->signals, err);
        if (!st)
                st = profile_sum_init(&r->sum, LIMIT_RECORD_PROFILE_BYTES, err);
        return st ? st : recorder_start(&r->recorder, &o, err);
}

enum status record_begin(const struct record_target *t, struct recording **ret, struct error *err)
{
        struct recording *r = calloc(1, sizeof *r);
        enum status st;

        assert(t->frequency_hz > 0 && t->held && (!t->child || t->pid_count == 1));
        if (!r)
                return error_no_memory(err);
        r->target = t;
        r->signals = -1;
        st = start_sampler(r, err);
        if (st)
                record_destroy(r);
        else
                *ret = r;
        return st;
}

void record_destroy(struct recording *r)
{
        if (!r)
                return;
        recorder_deinit(&r->recorder);
        profile_sum_deinit(&r->sum);
        for (size_t i = 0; r->fds && i < r->target->pid_count; i++)
                cleanup_close(&r->fds[FD_PROCESSES + i].fd);
        free(r->fds);
        cleanup_close(&r->signals);
        free(r);
}

/* ---- until the end ------------------------------------------------------------------------- */

static enum status add_interval_samples(struct recording *r, struct error *err)
{
        _cleanup_profile_ struct profile p = { 0 };
        uint32_t added;
        enum status st = recorder_take_profile(&r->recorder, &p, err);

        if (st)
                return st;
        st = r->full ? ST_TOO_BIG : profile_sum_add(&r->sum, &p, &added, err);
        if (st != ST_TOO_BIG)
                return st;
        for (uint32_t i = r->full ? 0 : added; i < p.samples.count; i++)
                r->counts.dropped += (uint64_t)p.samples.items[i].value * r->target->frequency_hz / SECOND_NS;
        r->full = true;
        return ST_OK;
}

/* A signal sent to this process alone is passed on to the command. False: none arrived. */
static bool read_end_signal(struct recording *r)
{
        struct record_child *child = r->target->child;
        struct signalfd_siginfo signal;

        if (read(r->signals, &signal, sizeof signal) != sizeof signal)
                return false;
        if (child && !child->ended && signal.ssi_code <= 0)
                (void)kill(child->pid, (int)signal.ssi_signo);
        return true;
}

static void read_process_ends(struct recording *r)
{
        for (size_t i = 0; i < r->target->pid_count; i++) {
                struct pollfd *fd = &r->fds[FD_PROCESSES + i];

                if (fd->fd < 0 || !fd->revents)
                        continue;
                close(fd->fd);
                fd->fd = -1;
                r->left--;
        }
        if (r->target->child)
                (void)record_child_has_ended(r->target->child);
}

/* Wait for one interval at most. @return true at the end of the recording. */
static bool run_record_step(struct recording *r, int64_t until_ns, int64_t end_ns)
{
        int64_t left_ms = (until_ns - monotonic_ns() + 999999) / 1000000;

        r->fds[FD_SIGNALS] = (struct pollfd){ .fd = r->signals, .events = POLLIN };
        recorder_get_fds(&r->recorder, r->fds + FD_RECORDER);
        if (r->target->progress && left_ms > PROGRESS_MS)
                left_ms = PROGRESS_MS;
        if (poll(r->fds, FD_PROCESSES + r->target->pid_count,
                 left_ms < 0       ? 0
                 : left_ms > 60000 ? 60000
                                   : (int)left_ms) < 0)
                return false;
        recorder_poll(&r->recorder, r->fds + FD_RECORDER);
        read_process_ends(r);
        if (r->fds[FD_SIGNALS].revents && read_end_signal(r))
                r->counts.end = RECORD_SIGNAL;
        else if (r->target->pid_count && !r->left)
                r->counts.end = RECORD_ENDED;
        else if (monotonic_ns() >= end_ns)
                r->counts.end = RECORD_TIME;
        else
                return false;
        return true;
}

/* ---- before the clock starts ---- */

#define PREPARE_SLICE_MS 100

static void show_record_progress(const struct recording *r, bool is_preparing, int64_t since_ns)
{
        if (r->target->progress)
                r->target->progress(r->target, is_preparing, (uint64_t)((monotonic_ns() - since_ns) / SECOND_NS));
}

static bool has_end_signal(const struct recording *r)
{
        struct pollfd signal = { .fd = r->signals, .events = POLLIN };

        return poll(&signal, 1, 0) > 0;
}

/* Take what is ready now, or within a time slice. */
static void poll_recorder(struct recording *r, int wait_ms)
{
        struct pollfd fds[RECORDER_FDS];

        recorder_get_fds(&r->recorder, fds);
        if (poll(fds, RECORDER_FDS, wait_ms) > 0)
                recorder_poll(&r->recorder, fds);
}

/* Every running process: new ones are handled as they are sampled. */
static void prepare_all_processes(struct recording *r, int64_t until_ns)
{
        _cleanup_closedir_ DIR *proc = opendir("/proc");
        const struct dirent *e;
        uint64_t pid;

        while (proc && (e = readdir(proc)) && monotonic_ns() < until_ns && !has_end_signal(r)) {
                if (!parse_uint(e->d_name, &pid) || pid > INT32_MAX)
                        continue;
                recorder_prepare_process(&r->recorder, (uint32_t)pid);
                poll_recorder(r, 0);
        }
}

/*
 * Build the unwind tables of the processes that run already: else the first seconds of a busy host lack the callers of
 * most samples, which may be all of a short recording. What the sampler counts meanwhile is discarded.
 */
static enum status prepare_recording(struct recording *r, struct error *err)
{
        const struct record_target *t = r->target;
        int64_t start = monotonic_ns(), until = start + RECORD_PREPARE_S * SECOND_NS;
        struct profile ignored;
        enum status st;

        show_record_progress(r, true, start);
        for (size_t i = 0; i < t->pid_count; i++)
                recorder_prepare_process(&r->recorder, t->pids[i]);
        if (!t->pid_count)
                prepare_all_processes(r, until);
        while (recorder_is_building(&r->recorder) && monotonic_ns() < until && !has_end_signal(r)) {
                poll_recorder(r, PREPARE_SLICE_MS);
                show_record_progress(r, true, start);
        }
        st = recorder_take_profile(&r->recorder, &ignored, err);
        if (st)
                return st;
        profile_deinit(&ignored);
        r->built_before = r->recorder.build_stats;
        return recorder_get_stats(&r->recorder, r->before, err);
}

static enum status run_sampling_loop(struct recording *r, struct error *err)
{
        int64_t start = monotonic_ns(), next = start + TAKE_INTERVAL_NS;
        int64_t end = r->target->duration_s ? start + (int64_t)r->target->duration_s * SECOND_NS : INT64_MAX;
        enum status st = ST_OK;

        r->from_ns = start;
        show_record_progress(r, false, start);
        while (!st && !r->full && !run_record_step(r, next < end ? next : end, end)) {
                show_record_progress(r, false, start);
                if (monotonic_ns() < next)
                        continue;
                st = add_interval_samples(r, err);
                while (next <= monotonic_ns())
                        next += TAKE_INTERVAL_NS;
        }
        if (r->full)
                r->counts.end = RECORD_FULL;
        r->counts.duration_ns = (uint64_t)(monotonic_ns() - r->from_ns);
        recorder_stop(&r->recorder);
        return st ? st : add_interval_samples(r, err);
}

static enum status fill_record_counts(struct recording *r, struct error *err)
{
        struct recorder *recorder = &r->recorder;
        struct record_counts *c = &r->counts;

        enum status st = recorder_get_stats(recorder, c->sampler, err);

        for (size_t i = 0; i < SAMPLER_STAT_COUNT; i++)
                c->sampler[i] -= r->before[i];
        c->stacks = recorder->build_stats.stacks - r->built_before.stacks;
        c->cut_no_code = recorder->build_stats.no_code_frames - r->built_before.no_code_frames;
        c->exited = recorder->build_stats.exited - r->built_before.exited;
        c->unreadable = recorder->processes.unreadable;
        c->unmapped = recorder->unwinder.stats.processes_refused + recorder->unwinder.stats.processes_over_quota;
        c->unwind_full = recorder->unwinder.stats.tables_refused + recorder->unwinder.stats.tables_over_quota;
        c->cpu_count = sampler_cpu_count(recorder->sampler);
        snprintf(c->name, sizeof c->name, "%s", sampler_name(recorder->sampler));
        snprintf(c->gaps, sizeof c->gaps, "%s", sampler_coverage_gaps(recorder->sampler));
        snprintf(c->why, sizeof c->why, "%s",
                 r->other_numbers ? "this is not the host's pid namespace"
                                  : sampler_fallback_reason(recorder->sampler));
        snprintf(c->kernel_gap, sizeof c->kernel_gap, "%s", recorder->kernel_gap);
        return st;
}

enum status record_run(struct recording *r, struct profile *ret, struct record_counts *counts_ret, struct error *err)
{
        enum status st = r->target->child ? record_child_go(r->target->child, err) : prepare_recording(r, err);

        if (!st)
                st = run_sampling_loop(r, err);
        if (!st)
                st = fill_record_counts(r, err);
        if (st)
                return st;
        recorder_deinit(&r->recorder); /* stop sampling before symbols are resolved */
        *counts_ret = r->counts;
        *ret = r->sum.profile;
        r->sum.profile = (struct profile){ 0 };
        return ST_OK;
}

void record_await_child(struct recording *r, int signal)
{
        struct record_child *child = r->target->child;

        if (signal && !record_child_has_ended(child))
                (void)kill(child->pid, signal);
        while (!record_child_has_ended(child)) {
                struct pollfd fds[] = { { .fd = r->signals, .events = POLLIN },
                                        { .fd = child->pidfd, .events = POLLIN } };

                if (poll(fds, 2, -1) > 0 && fds[0].revents)
                        (void)read_end_signal(r);
        }
}
