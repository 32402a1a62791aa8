/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/late.h"
#include "agent/privileges.h"
#include "agent/profile_build.h"
#include "agent/report.h"
#include "agent/sender.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/limits.h"
#include "common/log.h"
#include "profile-formats/otlp.h"

#define SECOND_NS INT64_C(1000000000)
#define FLUSH_DEADLINE_MS 15000
#define FLUSH_SLICE_MS 200
#define TABLES_WAIT_MAX_NS (2 * SECOND_NS)

struct run {
        const struct run_options *o;
        char host_name[256];
        struct process_table processes;
        struct kernel kernel;
        struct sampler *sampler;
        struct unwinder unwinder;
        struct sender *sender;
        int signals, output;
        int64_t interval_from_ns, interval_from_unix_ns; /* monotonic, wall clock */
        struct profile_build_stats build_stats;
        struct late_samples late;
};

static void on_process(void *ctx, const struct sample_notice *notice)
{
        process_table_notice(&((struct run *)ctx)->processes, notice);
}

static void on_late(void *ctx, const struct sample_late *late)
{
        struct run *r = ctx;

        late_samples_add(&r->late, &r->processes, late);
}

/* More unwind tables are there. */
static void take_tables(struct run *r)
{
        if (!unwinder_poll(&r->unwinder))
                return;
        process_table_unwind_again(&r->processes);
        late_samples_retry(&r->late, &r->processes);
}

static enum status open_signals(struct run *r, struct error *err)
{
        sigset_t set;

        signal(SIGPIPE, SIG_IGN);
        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGHUP);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return error_os(err, errno, "cannot block signals");
        r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return r->signals < 0 ? error_os(err, errno, "cannot wait for signals") : ST_OK;
}

static enum status open_target(struct run *r, struct error *err)
{
        const struct sender_options o = { .server = r->o->server, .token = r->o->token };

        if (!r->o->output)
                return sender_create(&o, &r->sender, err);
        r->output = open(r->o->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        return r->output < 0 ? error_os(err, errno, "cannot write '%s'", r->o->output) : ST_OK;
}

static void log_start(const struct run *r, const char *kept)
{
        const char *why = sampler_why(r->sampler), *gaps = sampler_gaps(r->sampler);

        log_info("agent", "sampling %u CPUs at %" PRIu64 " Hz by %s; keeps %s", sampler_cpu_count(r->sampler),
                 r->o->frequency_hz, sampler_name(r->sampler), kept[0] ? kept : "no capability");
        if (why[0])
                log_warn("agent", "perf events serve in place of BPF: %s", why);
        if (gaps[0])
                log_warn("agent", "not covered: %s", gaps);
}

static enum status set_up(struct run *r, struct error *err)
{
        struct sampler_options o = {
                .kind = r->o->sampler,
                .frequency_hz = r->o->frequency_hz,
                .interval_s = r->o->interval_s,
                .tgids = r->o->pids,
                .tgid_count = r->o->pid_count,
                .on_process = on_process,
                .on_late = on_late,
                .ctx = r,
        };
        struct error kernel_error = { 0 };
        char kept[256];
        enum status st;

        if (gethostname(r->host_name, sizeof r->host_name - 1) < 0)
                return error_os(err, errno, "cannot read the host's name");
        process_table_init(&r->processes);
        kernel_init(&r->kernel, &kernel_error);
        st = open_signals(r, err);
        if (!st)
                st = sampler_create(&o, &r->sampler, err);
        if (!st && sampler_unwind_maps(r->sampler)) {
                st = unwinder_init(&r->unwinder, sampler_unwind_maps(r->sampler), LIMIT_AGENT_UNWIND_BYTES, err);
                if (!st)
                        r->processes.unwinder = &r->unwinder;
        }
        if (!st && kernel_error.text[0] && sampler_has_kernel(r->sampler))
                log_warn("agent", "%s, ignoring", kernel_error.text);
        r->interval_from_ns = monotonic_ns();
        r->interval_from_unix_ns = wall_clock_ns();
        if (!st && r->o->output)
                st = open_target(r, err);
        if (!st)
                st = privileges_drop(sampler_kind(r->sampler) == SAMPLER_BPF ? CAP_BPF : CAP_PERFMON, kept, sizeof kept,
                                     err);
        if (!st && !r->o->output) /* its thread starts without the rights too */
                st = open_target(r, err);
        if (!st)
                log_start(r, kept);
        return st;
}

static enum status deliver(struct run *r, const struct profile *p, struct error *err)
{
        _cleanup_buf_ struct buf body = { 0 };
        enum status st;

        buf_init(&body, LIMIT_HTTP_BODY_BYTES);
        st = otlp_encode(p, &body, err);
        if (st)
                return st;
        if (r->o->output)
                return file_write_all(r->output, body.data, body.size, r->o->output, err);
        return sender_put(r->sender, body.data, body.size, err);
}

/* Programs that ran before the drain have ended. Late samples need the tables that are being made. */
static void settle(struct run *r)
{
        int64_t until = monotonic_ns() + TABLES_WAIT_MAX_NS;

        unwinder_settle(&r->unwinder);
        while (r->unwinder.tables_waiting && monotonic_ns() < until) {
                struct pollfd fd = { .fd = unwinder_fd(&r->unwinder), .events = POLLIN };

                if (poll(&fd, 1, 100) > 0)
                        take_tables(r);
        }
}

static enum status drain(struct run *r, struct error *err)
{
        _cleanup_sample_batch_ struct sample_batch batch = { 0 };
        int64_t now_ns = monotonic_ns(), now_unix_ns = wall_clock_ns();
        const struct profile_context c = {
                .processes = &r->processes,
                .kernel = &r->kernel,
                .host_name = r->host_name,
                .service_name = r->o->service_name,
                .labels = &r->o->labels,
                .pid_label = r->o->pid_label,
                .period_ns = SECOND_NS / (int64_t)r->o->frequency_hz,
                .time_unix_ns = r->interval_from_unix_ns,
                .duration_ns = now_ns - r->interval_from_ns,
        };
        struct profile p;
        enum status st;

        sampler_poll(r->sampler);
        st = sampler_drain(r->sampler, &batch, err);
        if (st)
                return st;
        if (r->processes.unwinder)
                settle(r);
        st = late_samples_take(&r->late, &r->processes, &batch, err);
        if (st)
                return st;
        r->interval_from_ns = now_ns;
        r->interval_from_unix_ns = now_unix_ns;
        kernel_refresh(&r->kernel);
        st = profile_build(&c, &batch, &p, &r->build_stats, err);
        if (st)
                return st;
        if (p.samples.count || r->o->output)
                st = deliver(r, &p, err);
        log_debug("agent", "%zu keys, %zu stacks, %u locations, %zu processes known", batch.count_count,
                  batch.stack_count, p.locations.count, r->processes.count);
        profile_deinit(&p);
        return st;
}

static void report(struct run *r)
{
        struct report report = { .build = r->build_stats, .unreadable_processes = r->processes.unreadable,
                                 .unwinder = r->unwinder.stats,
                                 .kernel_shift_known = r->kernel.has_shift,
                                 .sampler_kind = sampler_kind(r->sampler) };
        struct error err;

        if (sampler_stats(r->sampler, report.sampler, &err))
                log_warn("agent", "%s, ignoring", err.text);
        if (r->sender)
                sender_stats(r->sender, &report.sender);
        for (size_t i = 0; i < SAMPLE_END_COUNT; i++)
                report.sampler[STAT_ENDS + i] += r->late.ends[i];
        report.sampler[SAMPLER_STAT_LOST_RING] += r->late.lost;
        report_update(&report);
        if (r->o->metrics_file && report_write(r->o->metrics_file, &err))
                log_warn("agent", "%s, ignoring", err.text);
}

/* Until a signal or the end: new processes at once, a drain each interval. */
static enum status loop(struct run *r, struct error *err)
{
        int64_t start = r->interval_from_ns, interval = (int64_t)r->o->interval_s * SECOND_NS;
        int64_t end = r->o->duration_s ? start + (int64_t)r->o->duration_s * SECOND_NS : INT64_MAX;
        int64_t next = start + interval;
        struct unwinder *unwinder = r->processes.unwinder;

        for (;;) {
                int64_t now = monotonic_ns(), until = next < end ? next : end;
                struct pollfd fds[] = { { .fd = r->signals, .events = POLLIN },
                                        { .fd = sampler_fd(r->sampler), .events = POLLIN },
                                        { .fd = unwinder ? unwinder_fd(unwinder) : -1, .events = POLLIN } };
                int64_t left_ms = (until - now + 999999) / 1000000;

                if (now < until && poll(fds, 3, (int)(left_ms < 60000 ? left_ms : 60000)) < 0 && errno != EINTR)
                        return error_os(err, errno, "cannot wait");
                if (fds[0].revents) {
                        struct signalfd_siginfo signal;

                        if (read(r->signals, &signal, sizeof signal) > 0)
                                return ST_OK;
                }
                if (fds[1].revents)
                        sampler_poll(r->sampler);
                if (fds[2].revents)
                        take_tables(r);
                now = monotonic_ns();
                if (now >= end)
                        return ST_OK;
                if (now >= next) {
                        struct error drain_error;

                        if (drain(r, &drain_error))
                                log_error("agent", "%s: this interval is lost", drain_error.text);
                        report(r);
                        while (next <= now)
                                next += interval;
                }
        }
}

/* A second signal ends the wait for a service that does not answer. */
static enum status flush(struct run *r, struct error *err)
{
        int64_t until = monotonic_ns() + FLUSH_DEADLINE_MS * INT64_C(1000000);
        struct signalfd_siginfo signal;
        enum status st;

        do
                st = sender_flush(r->sender, FLUSH_SLICE_MS, err);
        while (st == ST_BUSY && monotonic_ns() < until && read(r->signals, &signal, sizeof signal) < 0);
        return st;
}

static enum status finish(struct run *r, struct error *err)
{
        enum status st;

        sampler_stop(r->sampler);
        st = drain(r, err);
        if (!st && r->sender)
                st = flush(r, err);
        report(r);
        report_log(r->sender != NULL);
        return st;
}

enum status agent_run(const struct run_options *o, struct error *err)
{
        struct run r = { .o = o, .signals = -1, .output = -1 };
        enum status st = set_up(&r, err);

        if (!st)
                st = loop(&r, err);
        if (!st)
                st = finish(&r, err);
        late_samples_deinit(&r.late);
        process_table_deinit(&r.processes);
        unwinder_deinit(&r.unwinder);
        sampler_destroy(r.sampler);
        sender_destroy(r.sender);
        kernel_deinit(&r.kernel);
        if (r.signals >= 0)
                close(r.signals);
        if (r.output >= 0 && close(r.output) < 0 && !st)
                st = error_os(err, errno, "cannot write '%s'", o->output);
        return st;
}
