/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/run.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/metrics_server.h"
#include "agent/mount_probe.h"
#include "agent/privileges.h"
#include "agent/recorder.h"
#include "agent/report.h"
#include "agent/sender.h"
#include "agent/uploads.h"
#include "common/clock.h"
#include "common/end_signals.h"
#include "common/file.h"
#include "common/limits.h"
#include "common/log.h"
#include "profile-formats/otlp.h"

#define SECOND_NS INT64_C(1000000000)
#define FLUSH_DEADLINE_MS 15000
#define FLUSH_SLICE_MS 200
#define FIRST_UPLOAD_INTERVALS 3

struct run {
        const struct run_options *o;
        struct recorder recorder;
        struct sender *sender;
        struct uploads *uploads; /* NULL: nothing is uploaded */
        struct uploads_stats upload_stats;
        struct metrics_server *metrics;
        int signals, output;
};

static enum status open_target(struct run *r, struct error *err)
{
        const struct sender_options o = { .server = r->o->server, .token = r->o->token, .ca_file = r->o->ca_file,
                                          .spool = r->o->spool, .spool_bytes = r->o->spool_bytes };

        if (!r->o->output)
                return sender_create(&o, &r->sender, err);
        r->output = open(r->o->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        return r->output < 0 ? error_os(err, errno, "cannot write '%s'", r->o->output) : ST_OK;
}

static enum status open_uploads(struct run *r, struct error *err)
{
        const struct uploads_options o = { .server = r->o->server, .token = r->o->token, .ca_file = r->o->ca_file,
                                           .bytes_per_s = r->o->upload_rate, .max_bytes = r->o->upload_max_bytes,
                                           .temporary = r->o->spool, .nursery = r->o->upload_nursery,
                                           .first_wait_ms = FIRST_UPLOAD_INTERVALS * 1000 * r->o->interval_s };

        return r->o->output || !r->o->upload ? ST_OK : uploads_create(&o, &r->uploads, err);
}

static void log_start(const struct run *r, const char *kept)
{
        const char *why = sampler_why(r->recorder.sampler), *gaps = sampler_gaps(r->recorder.sampler);

        log_info("agent", "sampling %u CPUs at %" PRIu64 " Hz by %s; keeps %s", sampler_cpu_count(r->recorder.sampler),
                 r->o->frequency_hz, sampler_name(r->recorder.sampler), kept[0] ? kept : "no capability");
        if (why[0])
                log_warn("agent", "perf events serve in place of BPF: %s", why);
        if (gaps[0])
                log_warn("agent", "not covered: %s", gaps);
}

static enum status set_up(struct run *r, struct error *err)
{
        const struct recorder_options o = {
                .sampler = r->o->sampler,
                .frequency_hz = r->o->frequency_hz,
                .interval_s = r->o->interval_s,
                .pids = r->o->pids,
                .pid_count = r->o->pid_count,
                .labels = r->o->labels,
                .selection = r->o->selection,
                .nursery = r->o->nursery,
        };
        char kept[256];
        enum status st = end_signals_open(&r->signals, err);

        if (!st)
                st = recorder_start(&r->recorder, &o, err);
        if (!st && r->recorder.kernel_gap[0])
                log_warn("agent", "%s, ignoring", r->recorder.kernel_gap);
        if (!st && r->o->output)
                st = open_target(r, err);
        if (!st)
                st = privileges_drop(sampler_kind(r->recorder.sampler) == SAMPLER_BPF, kept, sizeof kept, err);
        mount_probe_end(); /* one that began before has all rights */
        if (!st && !r->o->output) /* its thread starts without the rights too */
                st = open_target(r, err);
        if (!st)
                st = open_uploads(r, err);
        if (!st && r->o->metrics_listen)
                st = metrics_server_start(r->o->metrics_listen, r->o->interval_s, &r->metrics, err);
        if (!st)
                log_start(r, kept);
        return st;
}

static enum status deliver(struct run *r, const struct profile *p, struct error *err)
{
        _cleanup_buf_ struct buf body = { 0 };
        enum status st;

        if (!r->o->output)
                return sender_put_profile(r->sender, p, err);
        buf_init(&body, LIMIT_HTTP_BODY_BYTES);
        st = otlp_encode(p, &body, err);
        return st ? st : file_write_all(r->output, body.data, body.size, r->o->output, err);
}

static enum status drain(struct run *r, struct error *err)
{
        struct profile p;
        enum status st = recorder_take(&r->recorder, &p, err);

        if (st)
                return st;
        if (p.samples.count || r->o->output)
                st = deliver(r, &p, err);
        if (r->uploads)
                uploads_meet(r->uploads, &p, &r->recorder.processes);
        profile_deinit(&p);
        return st;
}

static void report(struct run *r)
{
        struct recorder *recorder = &r->recorder;
        struct report report = { .build = recorder->build_stats,
                                 .unreadable_processes = recorder->processes.unreadable,
                                 .jit_left_out = recorder->processes.jit_left_out,
                                 .jit_bytes = recorder->processes.jit_budget.used,
                                 .excluded_processes = recorder->processes.excluded,
                                 .unwinder = recorder->unwinder.stats,
                                 .kernel_shift_known = recorder->kernel.has_shift,
                                 .sampler_kind = sampler_kind(recorder->sampler) };
        struct error err;

        if (recorder_stats(recorder, report.sampler, &err))
                log_warn("agent", "%s, ignoring", err.text);
        if (r->sender)
                sender_stats(r->sender, &report.sender);
        if (r->uploads)
                uploads_stats(r->uploads, &r->upload_stats);
        report.uploads = r->upload_stats;
        report_update(&report);
        if (r->o->metrics_file && report_write(r->o->metrics_file, &err))
                log_warn("agent", "%s, ignoring", err.text);
}

/* Until a signal or the end: new processes at once, a drain each interval. */
static enum status loop(struct run *r, struct error *err)
{
        int64_t start = r->recorder.from_ns, interval = (int64_t)r->o->interval_s * SECOND_NS;
        int64_t end = r->o->duration_s ? start + (int64_t)r->o->duration_s * SECOND_NS : INT64_MAX;
        int64_t next = start + interval;

        for (;;) {
                int64_t now = monotonic_ns(), until = next < end ? next : end;
                struct pollfd fds[1 + RECORDER_FDS] = { { .fd = r->signals, .events = POLLIN } };
                int64_t left_ms = (until - now + 999999) / 1000000;

                recorder_fds(&r->recorder, fds + 1);
                /* Also when a drain took so long that the next one is due: a signal may wait. */
                if (poll(fds, 1 + RECORDER_FDS, left_ms < 0 ? 0 : left_ms < 60000 ? (int)left_ms : 60000) < 0 && errno != EINTR)
                        return error_os(err, errno, "cannot wait");
                if (fds[0].revents) {
                        struct signalfd_siginfo signal;

                        if (read(r->signals, &signal, sizeof signal) > 0)
                                return ST_OK;
                }
                recorder_poll(&r->recorder, fds + 1);
                now = monotonic_ns();
                if (now >= end)
                        return ST_OK;
                if (now >= next) {
                        struct error drain_error;

                        if (drain(r, &drain_error))
                                log_error("agent", "%s: this interval is lost", drain_error.text);
                        else
                                metrics_server_drained(r->metrics);
                        report(r);
                        while (next <= now)
                                next += interval;
                }
        }
}

/* A second signal ends the wait for a service that does not answer, and so does a failure when nothing gets lost. */
static enum status flush(struct run *r, struct error *err)
{
        int64_t until = monotonic_ns() + FLUSH_DEADLINE_MS * INT64_C(1000000);
        struct signalfd_siginfo signal;
        struct sender_stats stats;
        bool all_spooled;
        enum status st;

        do {
                st = sender_flush(r->sender, FLUSH_SLICE_MS, err);
                sender_stats(r->sender, &stats);
                all_spooled = stats.outbox.spooled == stats.outbox.queued;
        } while (st == ST_BUSY && !(all_spooled && stats.failing) && monotonic_ns() < until &&
                 read(r->signals, &signal, sizeof signal) < 0);
        if (st != ST_BUSY || !all_spooled)
                return st;
        log_info("agent", "%" PRIu64 " batches stay in the spool '%s' for the next run", stats.outbox.spooled, r->o->spool);
        return ST_OK;
}

static enum status finish(struct run *r, struct error *err)
{
        enum status st;

        recorder_stop(&r->recorder);
        if (r->uploads)
                uploads_stats(r->uploads, &r->upload_stats);
        uploads_destroy(r->uploads); /* what is missing is met again by the next run */
        r->uploads = NULL;
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
        uploads_destroy(r.uploads);
        recorder_deinit(&r.recorder);
        mount_probe_end();
        sender_destroy(r.sender);
        metrics_server_stop(r.metrics);
        if (r.signals >= 0)
                close(r.signals);
        if (r.output >= 0 && close(r.output) < 0 && !st)
                st = error_os(err, errno, "cannot write '%s'", o->output);
        return st;
}
