/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/record_run.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/process_read.h"
#include "agent/recorder.h"
#include "common/clock.h"
#include "common/end_signals.h"
#include "common/limits.h"
#include "profile-formats/profile_sum.h"

#define SECOND_NS INT64_C(1000000000)
#define INTERVAL_MAX_S 10

struct recording {
        const struct record_target *target;
        struct recorder recorder;
        struct profile_sum sum;
        struct record_counts counts;
        struct pollfd *fds; /* owned: signals, the recorder's, a pidfd for each process */
        size_t left;        /* processes that run */
        int signals;
        int64_t from_ns, interval_ns;
        bool full;
        bool other_numbers; /* of processes, than the host's */
};

enum { FD_SIGNALS, FD_RECORDER, FD_PROCESSES = FD_RECORDER + RECORDER_FDS };

/* A process that ends ends the recording when it was the last one. */
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
                        return error_set(err, ST_NOT_FOUND, "there is no process %" PRIu32, t->pids[i]);
                if (fd < 0 && errno == EINVAL)
                        return error_set(err, ST_NOT_FOUND, "%" PRIu32 " is a thread: name its process", t->pids[i]);
                if (fd < 0)
                        return error_os(err, errno, "cannot watch process %" PRIu32, t->pids[i]);
                r->fds[FD_PROCESSES + i] = (struct pollfd){ .fd = fd, .events = POLLIN };
        }
        r->left = t->pid_count;
        return ST_OK;
}

static enum status start(struct recording *r, struct error *err)
{
        const struct record_target *t = r->target;
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        uint64_t interval_s = LIMIT_AGENT_LATE / 2 / (t->frequency_hz * (cpus > 0 ? (uint64_t)cpus : 1));
        struct recorder_options o = { .sampler = t->sampler, .frequency_hz = t->frequency_hz, .pids = t->pids,
                                      .pid_count = t->pid_count, .children = true, .copy_stacks = true, .on_object = held_files_observe,
                                      .on_object_ctx = t->held };
        enum status st;

        /* The BPF program knows processes by numbers that mean others here. */
        r->other_numbers = o.sampler == SAMPLER_AUTO && !process_numbers_are_the_hosts();
        if (r->other_numbers)
                o.sampler = SAMPLER_PERF;
        /* All CPUs at work fill half of the room for copied stacks. */
        o.interval_s = interval_s < 1 ? 1 : interval_s > INTERVAL_MAX_S ? INTERVAL_MAX_S : interval_s;
        r->interval_ns = (int64_t)o.interval_s * SECOND_NS;
        st = watch_processes(r, err);
        if (!st)
                st = end_signals_open(&r->signals, err);
        if (!st)
                st = profile_sum_init(&r->sum, LIMIT_RECORD_PROFILE_BYTES, err);
        return st ? st : recorder_start(&r->recorder, &o, err);
}

enum status record_begin(const struct record_target *t, struct recording **ret, struct error *err)
{
        struct recording *r = calloc(1, sizeof *r);
        enum status st;

        if (!r)
                return error_no_memory(err);
        r->target = t;
        r->signals = -1;
        st = start(r, err);
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

static enum status add_interval(struct recording *r, struct error *err)
{
        _cleanup_profile_ struct profile p = { 0 };
        uint32_t added;
        enum status st = recorder_take(&r->recorder, &p, err);

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

/* One that came to us alone is meant for the command too. False: none came. */
static bool take_signal(struct recording *r)
{
        struct record_child *child = r->target->child;
        struct signalfd_siginfo signal;

        if (read(r->signals, &signal, sizeof signal) != sizeof signal)
                return false;
        if (child && !child->ended && signal.ssi_code <= 0)
                (void)kill(child->pid, (int)signal.ssi_signo);
        return true;
}

static void take_ends(struct recording *r)
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

/* Wait a little; true when it is over. */
static bool step(struct recording *r, int64_t until_ns, int64_t end_ns)
{
        int64_t left_ms = (until_ns - monotonic_ns() + 999999) / 1000000;

        r->fds[FD_SIGNALS] = (struct pollfd){ .fd = r->signals, .events = POLLIN };
        recorder_fds(&r->recorder, r->fds + FD_RECORDER);
        if (poll(r->fds, FD_PROCESSES + r->target->pid_count, left_ms < 0 ? 0 : left_ms > 60000 ? 60000 : (int)left_ms) < 0)
                return false;
        recorder_poll(&r->recorder, r->fds + FD_RECORDER);
        take_ends(r);
        if (r->fds[FD_SIGNALS].revents && take_signal(r))
                r->counts.end = RECORD_SIGNAL;
        else if (r->target->pid_count && !r->left)
                r->counts.end = RECORD_ENDED;
        else if (monotonic_ns() >= end_ns)
                r->counts.end = RECORD_TIME;
        else
                return false;
        return true;
}

static enum status sample(struct recording *r, struct error *err)
{
        int64_t start = monotonic_ns(), next = start + r->interval_ns;
        int64_t end = r->target->duration_s ? start + (int64_t)r->target->duration_s * SECOND_NS : INT64_MAX;
        enum status st = ST_OK;

        r->from_ns = start;
        while (!st && !r->full && !step(r, next < end ? next : end, end)) {
                if (monotonic_ns() < next)
                        continue;
                st = add_interval(r, err);
                while (next <= monotonic_ns())
                        next += r->interval_ns;
        }
        if (r->full)
                r->counts.end = RECORD_FULL;
        r->counts.duration_ns = (uint64_t)(monotonic_ns() - r->from_ns);
        recorder_stop(&r->recorder);
        return st ? st : add_interval(r, err);
}

static enum status fill_counts(struct recording *r, struct error *err)
{
        struct recorder *recorder = &r->recorder;
        struct record_counts *c = &r->counts;

        c->stacks = recorder->build_stats.stacks;
        c->cut_no_code = recorder->build_stats.no_code_frames;
        c->exited = recorder->build_stats.exited;
        c->unreadable = recorder->processes.unreadable;
        c->unmapped = recorder->unwinder.stats.processes_refused + recorder->unwinder.stats.processes_over_quota;
        c->unwind_full = recorder->unwinder.stats.tables_refused + recorder->unwinder.stats.tables_over_quota;
        c->cpu_count = sampler_cpu_count(recorder->sampler);
        snprintf(c->name, sizeof c->name, "%s", sampler_name(recorder->sampler));
        snprintf(c->gaps, sizeof c->gaps, "%s", sampler_gaps(recorder->sampler));
        snprintf(c->why, sizeof c->why, "%s",
                 r->other_numbers ? "this is not the host's pid namespace" : sampler_why(recorder->sampler));
        snprintf(c->kernel_gap, sizeof c->kernel_gap, "%s", recorder->kernel_gap);
        return recorder_stats(recorder, c->sampler, err);
}

enum status record_run(struct recording *r, struct profile *ret, struct record_counts *counts_ret, struct error *err)
{
        enum status st = r->target->child ? record_child_go(r->target->child, err) : ST_OK;

        if (!st)
                st = sample(r, err);
        if (!st)
                st = fill_counts(r, err);
        if (st)
                return st;
        recorder_deinit(&r->recorder); /* nothing runs in the kernel while symbols are looked for */
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
                struct pollfd fds[] = { { .fd = r->signals, .events = POLLIN }, { .fd = child->pidfd, .events = POLLIN } };

                if (poll(fds, 2, -1) > 0 && fds[0].revents)
                        (void)take_signal(r);
        }
}
