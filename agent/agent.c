/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread: agent_run() opens the destination, a sender or a file, then the uploads, then the recorder
 * (start_agent()); run_drain_loop() takes a profile from the recorder in each interval, hands it to the sender and
 * offers its objects to the uploads; stop_agent() drains once more and waits for the sender. Signals arrive by a
 * signalfd that the loop polls: SIGHUP reads the token again, others end the loop. The recorder, the sender and the
 * uploads have threads of their own.
 */
#include "agent/agent.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/agent_metrics.h"
#include "agent/uploads/uploads.h"
#include "common/clock.h"
#include "common/files/distribution.h"
#include "common/files/file.h"
#include "common/files/output_file.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/program/service_notify.h"
#include "common/program/shutdown_signals.h"
#include "common/text/number_text.h"
#include "profile-formats/otlp/otlp.h"
#include "sampling/objects/mount_probe.h"
#include "sampling/recorder.h"
#include "sandbox/privileges.h"
#include "sending/sender.h"

#define SECOND_NS INT64_C(1000000000)
#define FLUSH_DEADLINE_MS 15000
#define FLUSH_SLICE_MS 200
#define FIRST_UPLOAD_INTERVALS 3
#define POLL_MOST_MS 60000
#define NAMES_NS (RECORDER_NAMES_MS * (SECOND_NS / 1000))

struct agent {
        const struct agent_options *o;
        struct recorder recorder;
        struct sender *sender;
        struct uploads *uploads; /* NULL: nothing is uploaded */
        struct uploads_stats upload_stats;
        struct metrics_server *metrics;
        struct pod_cache *pods; /* NULL: no labels of Kubernetes */
        int signals, output;
};

static enum status open_destination(struct agent *r, struct error *err)
{
        const struct sender_options o = { .server = r->o->server,
                                          .token = r->o->token,
                                          .tenant = r->o->tenant,
                                          .ca_file = r->o->ca_file,
                                          .spool = r->o->spool,
                                          .spool_bytes = r->o->spool_bytes };

        if (!r->o->output)
                return sender_create(&o, &r->sender, err);
        return output_file_open_in_place(r->o->output, &r->output, err); /* once unprivileged it could not be renamed */
}

static enum status open_uploads(struct agent *r, struct error *err)
{
        const struct uploads_options o = { .server = r->o->server,
                                           .token = r->o->token,
                                           .tenant = r->o->tenant,
                                           .ca_file = r->o->ca_file,
                                           .bytes_per_s = r->o->upload_rate,
                                           .max_bytes = r->o->upload_max_bytes,
                                           .temporary = r->o->spool,
                                           .fork_server = r->o->upload_fork_server,
                                           .first_wait_ms = FIRST_UPLOAD_INTERVALS * 1000 * r->o->interval_s };

        return r->o->output || !r->o->upload ? ST_OK : uploads_create(&o, &r->uploads, err);
}

static void log_sampler(const struct agent *r, const char *kept)
{
        const char *why = sampler_fallback_reason(r->recorder.sampler),
                   *gaps = sampler_coverage_gaps(r->recorder.sampler);

        log_info("agent", "sampling %u CPUs at %" PRIu64 " Hz by %s; keeps %s", sampler_cpu_count(r->recorder.sampler),
                 r->o->frequency_hz, sampler_name(r->recorder.sampler), kept[0] ? kept : "no capability");
        if (why[0])
                log_warn("agent", "using perf events instead of BPF: %s", why);
        if (gaps[0])
                log_warn("agent", "not covered: %s", gaps);
}

/* An object_observer: a service finds no symbols for such a file. */
static void log_missing_build_id(void *ctx, const struct object *object, int proc_fd,
                                 const struct proc_mapping *mapping, int *fd)
{
        (void)ctx;
        (void)proc_fd;
        (void)fd;
        if (object->build_id.size)
                return;
        if (object->has_placeholder_id)
                log_info("agent", "'%s' gets no names: " BUILD_ID_PLACEHOLDER_TEXT, mapping->path);
        else
                log_info("agent", "'%s' gets no names: it has no build-id; link it with --build-id", mapping->path);
}

static enum status start_agent(struct agent *r, struct error *err)
{
        const struct recorder_options o = {
                .sampler = r->o->sampler,
                .frequency_hz = r->o->frequency_hz,
                .interval_s = r->o->interval_s,
                .pids = r->o->pids,
                .pid_count = r->o->pid_count,
                .labels = r->o->labels,
                .reads_python = r->o->reads_python,
                .reads_v8 = r->o->reads_v8,
                .reads_hotspot = r->o->reads_hotspot,
                .reads_context = !r->o->omits_context,
                .omits_files = r->o->omits_files,
                .omits_container_names = r->o->omits_container_names,
                .off_cpu_ns = r->o->off_cpu_ns,
                .latency = r->o->latency,
                .filter = r->o->filter,
                .rules = r->o->rules,
                .fork_server = r->o->fork_server,
                .on_object = log_missing_build_id,
        };
        char kept[256];
        enum status st = shutdown_signals_open(&r->signals, err);

        if (!st)
                st = recorder_start(&r->recorder, &o, err);
        if (!st && r->recorder.kernel_gap[0])
                log_warn("agent", "%s, ignoring", r->recorder.kernel_gap);
        if (!st && r->o->output)
                st = open_destination(r, err);
        if (!st)
                st = privileges_drop(sampler_get_kind(r->recorder.sampler) == SAMPLER_BPF, kept, sizeof kept, err);
        mount_probe_end();        /* a probe child forked earlier has all privileges */
        if (!st && !r->o->output) /* its thread starts unprivileged too */
                st = open_destination(r, err);
        if (!st && r->o->pods.source != POD_SOURCE_NONE)
                st = pod_cache_create(&r->o->pods, &r->pods, err);
        if (!st && r->pods)
                recorder_use_pods(&r->recorder, r->pods);
        if (!st)
                st = open_uploads(r, err);
        if (!st && r->o->metrics_listen)
                st = metrics_server_start(r->o->metrics_listen, r->o->interval_s, &r->metrics, err);
        if (!st)
                log_sampler(r, kept);
        if (!st && r->uploads)
                log_info("agent", "for all names of this distribution's programs, start the service with --upstream %s",
                         get_distribution_debuginfod());
        return st;
}

static enum status deliver_profile(struct agent *r, const struct profile *p, struct error *err)
{
        _cleanup_buf_ struct buf body = { 0 };
        enum status st;

        if (!r->o->output)
                return sender_put_profile(r->sender, p, err);
        buf_init(&body, LIMIT_HTTP_BODY_BYTES);
        st = otlp_encode(p, &body, err);
        return st ? st : file_write_all(r->output, body.data, body.size, r->o->output, err);
}

static enum status drain_recorder(struct agent *r, struct error *err)
{
        struct profile p;
        enum status st = recorder_take_profile(&r->recorder, &p, err);

        if (st)
                return st;
        if (p.samples.count || r->o->output)
                st = deliver_profile(r, &p, err);
        if (r->uploads)
                uploads_add_profile(r->uploads, &p, &r->recorder.processes);
        profile_deinit(&p);
        return st;
}

static void update_metrics(struct agent *r)
{
        struct recorder *recorder = &r->recorder;
        struct agent_counters counters = { .build = recorder->build_stats,
                                           .unreadable_processes = recorder->processes.unreadable,
                                           .too_many_mappings = recorder->processes.too_many_mappings,
                                           .jit_dropped = recorder->processes.jit_dropped,
                                           .jit_bytes = recorder->processes.jit_budget.used,
                                           .python_read = recorder->processes.python_read,
                                           .python_bytes = recorder->processes.python_bytes,
                                           .v8_read = recorder->processes.v8_read,
                                           .v8_bytes = recorder->processes.v8_bytes,
                                           .hotspot_read = recorder->processes.hotspot_read,
                                           .hotspot_bytes = recorder->processes.hotspot_bytes,
                                           .process_contexts_read = recorder->processes.process_contexts_read,
                                           .thread_contexts_read = recorder->processes.thread_contexts_read,
                                           .go_labels_read = recorder->processes.go_labels_read,
                                           .context_bytes = recorder->processes.context_bytes,
                                           .excluded_processes = recorder->processes.excluded,
                                           .unwinder = recorder->unwinder.stats,
                                           .kernel_shift_known = recorder->kernel.has_shift,
                                           .sampler_kind = sampler_get_kind(recorder->sampler) };
        struct error err;

        memcpy(counters.hotspot_refused, recorder->processes.hotspot_refused, sizeof counters.hotspot_refused);
        memcpy(counters.contexts_refused, recorder->processes.contexts_refused, sizeof counters.contexts_refused);
        memcpy(counters.v8_refused, recorder->processes.v8_refused, sizeof counters.v8_refused);
        memcpy(counters.python_refused, recorder->processes.python_refused, sizeof counters.python_refused);
        if (recorder_get_stats(recorder, counters.sampler, &err))
                log_warn("agent", "%s, ignoring", err.text);
        if (r->sender)
                sender_get_stats(r->sender, &counters.sender);
        if (r->uploads)
                uploads_get_stats(r->uploads, &r->upload_stats);
        counters.uploads = r->upload_stats;
        if (r->pods)
                pod_cache_get_stats(r->pods, &counters.pods);
        agent_metrics_update(&counters);
        if (r->o->metrics_file && agent_metrics_write(r->o->metrics_file, &err))
                log_warn("agent", "%s, ignoring", err.text);
}

/* ---- reload ---- */

static struct metric failed_reloads = METRIC_COUNTER(
        "cairn_agent_reload_failures_total", "Failed reloads at SIGHUP; the previous settings stay in use.", "");

static enum status apply_token(struct agent *r, const char *token, struct error *err)
{
        enum status st = r->sender ? sender_set_token(r->sender, token, err) : ST_OK;

        return st || !r->uploads ? st : uploads_set_token(r->uploads, token, err);
}

static void reload_agent(struct agent *r)
{
        struct agent_reread fresh = { 0 };
        struct error err = { 0 };
        enum status st;

        service_notify_reloading();
        st = r->o->reread(r->o->reread_context, &fresh, &err);
        if (!st)
                st = apply_token(r, fresh.token, &err);
        if (st) {
                log_error("agent", "reload: %s; the previous settings stay in use", err.text);
                metric_add(&failed_reloads, 1);
        }
        for (size_t i = 0; !st && i < fresh.changed_count; i++) {
                if (fresh.changed[i].needs_restart)
                        log_warn("agent", "reload: --%s was changed and takes effect at the next start",
                                 fresh.changed[i].name);
                else
                        log_info("agent", "reload: --%s was changed and is applied", fresh.changed[i].name);
        }
        if (!st)
                log_info("agent", "reload: done");
        free(fresh.token);
        service_notify_ready();
}

/* Whether the signal ends the agent. */
static bool handle_signal(struct agent *r)
{
        struct signalfd_siginfo signal;

        if (read(r->signals, &signal, sizeof signal) <= 0)
                return false;
        if (signal.ssi_signo != SIGHUP || r->o->output || !r->o->reread)
                return true;
        reload_agent(r);
        return false;
}

/* The poll timeout: until the next drain, but short enough for the watchdog. */
static int choose_poll_ms(int64_t left_ms)
{
        int most = service_notify_interval_ms();

        if (most < 0 || most > POLL_MOST_MS)
                most = POLL_MOST_MS;
        return left_ms < 0 ? 0 : left_ms < most ? (int)left_ms : most;
}

/* Run until a signal or the end of the duration: new processes are handled at once, the recorder is drained every
   interval. */
static enum status run_drain_loop(struct agent *r, struct error *err)
{
        int64_t start = r->recorder.from_ns, interval = (int64_t)r->o->interval_s * SECOND_NS;
        int64_t end = r->o->duration_s ? start + (int64_t)r->o->duration_s * SECOND_NS : INT64_MAX;
        int64_t next = start + interval, name_at = start + NAMES_NS;

        for (;;) {
                int64_t now = monotonic_ns(), until = next < end ? next : end;
                struct pollfd fds[1 + RECORDER_FDS] = { { .fd = r->signals, .events = POLLIN } };
                int64_t left_ms = ((name_at < until ? name_at : until) - now + 999999) / 1000000;

                recorder_get_fds(&r->recorder, fds + 1);
                /* Poll even when the next drain is due already: a signal may be pending. */
                if (poll(fds, 1 + RECORDER_FDS, choose_poll_ms(left_ms)) < 0 && errno != EINTR)
                        return error_os(err, errno, "cannot wait for events");
                service_notify_alive();
                if (fds[0].revents && handle_signal(r))
                        return ST_OK;
                recorder_poll(&r->recorder, fds + 1);
                now = monotonic_ns();
                if (name_at == INT64_MAX && (fds[1].revents || fds[2].revents)) /* it may be a new process */
                        name_at = now + NAMES_NS;
                if (now >= end)
                        return ST_OK;
                if (now >= name_at && now < next) {
                        name_at = recorder_name_code(&r->recorder) ? now + NAMES_NS : INT64_MAX;
                }
                if (now >= next) {
                        struct error drain_error;

                        if (drain_recorder(r, &drain_error))
                                log_error("agent", "%s: this interval is lost", drain_error.text);
                        else
                                metrics_server_note_drain(r->metrics);
                        update_metrics(r);
                        while (next <= now)
                                next += interval;
                }
        }
}

/* Wait for the service until a second signal, or until it fails while the spool holds every batch. */
static enum status flush_sender(struct agent *r, struct error *err)
{
        int64_t until = monotonic_ns() + FLUSH_DEADLINE_MS * INT64_C(1000000);
        struct signalfd_siginfo signal;
        struct sender_stats stats;
        bool all_spooled;
        enum status st;

        do {
                st = sender_flush(r->sender, FLUSH_SLICE_MS, err);
                sender_get_stats(r->sender, &stats);
                all_spooled = stats.outbox.spooled == stats.outbox.queued;
        } while (st == ST_BUSY && !(all_spooled && stats.failing) && monotonic_ns() < until &&
                 read(r->signals, &signal, sizeof signal) < 0);
        if (st != ST_BUSY || !all_spooled)
                return st;
        log_info("agent", "%s in the spool '%s' for the next run",
                 COUNTED(stats.outbox.spooled, "batch stays", "batches stay"), r->o->spool);
        return ST_OK;
}

static enum status stop_agent(struct agent *r, struct error *err)
{
        enum status st;

        recorder_stop(&r->recorder);
        if (r->uploads)
                uploads_get_stats(r->uploads, &r->upload_stats);
        uploads_destroy(r->uploads); /* unsent files are found again by the next run */
        r->uploads = NULL;
        st = drain_recorder(r, err);
        if (!st && r->sender)
                st = flush_sender(r, err);
        update_metrics(r);
        agent_metrics_log(r->sender != NULL);
        return st;
}

enum status agent_run(const struct agent_options *o, struct error *err)
{
        struct agent r = { .o = o, .signals = -1, .output = -1 };
        enum status st = start_agent(&r, err);

        metric_register(&failed_reloads);
        if (!st) {
                service_notify_ready();
                st = run_drain_loop(&r, err);
        }
        service_notify_stopping();
        if (!st)
                st = stop_agent(&r, err);
        uploads_destroy(r.uploads);
        recorder_deinit(&r.recorder);
        pod_cache_destroy(r.pods);
        mount_probe_end();
        sender_destroy(r.sender);
        metrics_server_stop(r.metrics);
        if (r.signals >= 0)
                close(r.signals);
        if (r.output >= 0 && close(r.output) < 0 && !st)
                st = error_os(err, errno, "cannot write '%s'", o->output);
        return st;
}
