/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of the agent, as static objects. agent_metrics_update() sets all of them from the counters of the other
 * parts, by the thread that samples; readers of /metrics see them at any time.
 *
 * Order: the metrics, setting them, the file, the lines of the log, the server.
 */
#include "agent/agent_metrics.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/files/output_file.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/program/metrics_write.h"
#include "common/text/number_text.h"
#include "http/http_server.h"
#include "http/listen.h"
#include "sampling/objects/mount_probe.h"
#include "sampling/samplers/sample_end.h"

#define USER_STACK_END(number, name)                                                                                   \
        [STAT_ENDS + number] = METRIC_COUNTER("cairn_agent_user_stacks_ended_total",                                   \
                                              "Samples by where their user stack ends.", "end=\"" name "\""),

static struct metric sampler[SAMPLER_STAT_COUNT] = {
        [STAT_SAMPLES] = METRIC_COUNTER("cairn_agent_samples_total", "Samples counted.", ""),
        [STAT_LOST_COUNTS_FULL] =
                METRIC_COUNTER("cairn_agent_samples_lost_total", "Samples lost.", "reason=\"counts_full\""),
        [STAT_LOST_STACKS_FULL] =
                METRIC_COUNTER("cairn_agent_samples_lost_total", "Samples lost.", "reason=\"stacks_full\""),
        [STAT_LOST_RING_FULL] =
                METRIC_COUNTER("cairn_agent_samples_lost_total", "Samples lost.", "reason=\"ring_full\""),
        [STAT_NO_USER_STACK] = METRIC_COUNTER("cairn_agent_user_stacks_missing_total",
                                              "Samples of user threads without a user stack.", ""),
        [STAT_TRUNCATED] = METRIC_COUNTER("cairn_agent_stacks_truncated_total", "Stacks cut at their depth limit.", ""),
        [STAT_EXCLUDED] = METRIC_COUNTER("cairn_agent_samples_excluded_total", "Ticks of excluded processes.", ""),
        [STAT_PYTHON_UNREADABLE] = METRIC_COUNTER("cairn_agent_python_stacks_cut_total",
                                                  "Samples whose Python frames the kernel could not read.", ""),
        [STAT_OFF_CPU] = METRIC_COUNTER("cairn_agent_off_cpu_samples_total", "Waits of threads that were sampled.", ""),
        [STAT_OFF_CPU_NO_USER] =
                METRIC_COUNTER("cairn_agent_off_cpu_user_stacks_missing_total",
                               "Sampled waits without a user stack: the thread ran on before it was read.", ""),
        [STAT_OFF_CPU_UNTRACKED] = METRIC_COUNTER("cairn_agent_off_cpu_waits_untracked_total",
                                                  "Waits that were not measured: too many threads wait.", ""),
        [STAT_DEFERRED] =
                METRIC_COUNTER("cairn_agent_samples_late_total", "Samples whose user stack the agent walked.", ""),
        [STAT_DEFERRED_FULL] = METRIC_COUNTER("cairn_agent_samples_late_full_total",
                                              "Samples of unknown processes without space for a stack copy.", ""),
        [STAT_NOTICES_LOST] = METRIC_COUNTER("cairn_agent_process_notices_lost_total", "Process notices lost.", ""),
        SAMPLE_ENDS(USER_STACK_END)[SAMPLER_STAT_REFUSED] = METRIC_COUNTER(
                "cairn_agent_processes_refused_total", "Processes that the kernel refused to sample.", ""),
};
#define SAMPLER_KIND(kind) METRIC_GAUGE("cairn_agent_sampler", "1 for the sampler that runs.", "kind=\"" kind "\"")

static struct metric kinds[] = { SAMPLER_KIND("bpf"), SAMPLER_KIND("perf") };
static struct metric stacks =
        METRIC_COUNTER("cairn_agent_user_stacks_total", "User stacks, each counted once per interval.", "");
#define STACKS_CUT(reason)                                                                                             \
        METRIC_COUNTER("cairn_agent_user_stacks_cut_total", "User stacks that ended early.", "reason=\"" reason "\"")

static struct metric ends[] = { STACKS_CUT("not_code"), STACKS_CUT("exited") };
#define FRAMES_UNIDENTIFIED(reason)                                                                                    \
        METRIC_COUNTER("cairn_agent_frames_unidentified_total", "Frames without an object and address.",               \
                       "reason=\"" reason "\"")

static struct metric frames[] = { FRAMES_UNIDENTIFIED("jit"), FRAMES_UNIDENTIFIED("no_build_id"),
                                  FRAMES_UNIDENTIFIED("kernel_name_only") };
#define DROPPED(reason) METRIC_COUNTER("cairn_agent_batches_dropped_total", "Batches dropped.", "reason=\"" reason "\"")

static struct metric dropped[DROP_COUNT] = {
        [DROP_MEMORY_FULL] = DROPPED("memory_full"), [DROP_SPOOL_FULL] = DROPPED("spool_full"),
        [DROP_TOO_OLD] = DROPPED("too_old"),         [DROP_DAMAGED] = DROPPED("damaged"),
        [DROP_REFUSED] = DROPPED("refused"),         [DROP_TOO_BIG] = DROPPED("too_big"),
};
static struct metric sent = METRIC_COUNTER("cairn_agent_batches_sent_total", "Batches accepted by the service.", "");
static struct metric split =
        METRIC_COUNTER("cairn_agent_batches_split_total", "Batches split because of the service's size limit.", "");
static struct metric rejected =
        METRIC_COUNTER("cairn_agent_samples_rejected_total", "Samples rejected in accepted batches.", "");
static struct metric not_queued =
        METRIC_COUNTER("cairn_agent_samples_lost_total", "Samples lost.", "reason=\"not_queued\"");
static struct metric retries =
        METRIC_COUNTER("cairn_agent_retries_total", "Failed attempts to send, to be retried.", "");
static struct metric queued = METRIC_GAUGE("cairn_agent_queued_bytes", "Compressed batches in memory.", "");
#define BATCHES_WAITING(where)                                                                                         \
        METRIC_GAUGE("cairn_agent_batches_waiting", "Batches not acknowledged yet.", "where=\"" where "\"")

static struct metric waiting[] = { BATCHES_WAITING("memory"), BATCHES_WAITING("spool") };
static struct metric spool_bytes = METRIC_GAUGE("cairn_agent_spool_bytes", "Disk space of the spool.", "");
#define SPOOL_FAILURES(reason)                                                                                         \
        METRIC_COUNTER("cairn_agent_spool_failures_total", "Writes to the spool that failed.", "reason=\"" reason "\"")

static struct metric spool_failures[] = { SPOOL_FAILURES("disk_full"), SPOOL_FAILURES("other") };
#define UPLOADS(result)                                                                                                \
        METRIC_COUNTER("cairn_agent_uploads_total", "Build-ids by outcome of the upload.", "result=\"" result "\"")

static struct metric uploads[] = {
        UPLOADS("sent"),    UPLOADS("there"),      UPLOADS("refused"),   UPLOADS("failed"),
        UPLOADS("too_big"), UPLOADS("no_symbols"), UPLOADS("no_worker"),
};
static struct metric upload_offered =
        METRIC_COUNTER("cairn_agent_upload_questions_total", "Build-ids offered to the service.", "");
static struct metric upload_bytes = METRIC_COUNTER("cairn_agent_upload_bytes_total", "Symbols sent, compressed.", "");
static struct metric upload_waiting =
        METRIC_GAUGE("cairn_agent_uploads_waiting", "Build-ids whose files are being inspected or sent.", "");
static struct metric unreadable =
        METRIC_COUNTER("cairn_agent_processes_unreadable_total", "Processes that exited before they were read.", "");
static struct metric excluded = METRIC_COUNTER("cairn_agent_processes_excluded_total", "Excluded processes.", "");
static struct metric jit_dropped = METRIC_COUNTER("cairn_agent_jit_names_left_out_total",
                                                  "Names of generated code that were malformed or past a limit.", "");
static struct metric jit_bytes = METRIC_GAUGE("cairn_agent_jit_bytes", "Memory of names of generated code.", "");
static struct metric tables = METRIC_GAUGE("cairn_agent_unwind_tables", "Unwind tables in the kernel.", "");
#define TABLES_MISSING(reason)                                                                                         \
        METRIC_COUNTER("cairn_agent_unwind_tables_missing_total", "Files walked by frame pointers.",                   \
                       "reason=\"" reason "\"")

static struct metric no_tables[] = { TABLES_MISSING("no_cfi"), TABLES_MISSING("no_room"), TABLES_MISSING("owner_full"),
                                     TABLES_MISSING("no_worker"), TABLES_MISSING("worker_failed") };
static struct metric rules =
        METRIC_GAUGE("cairn_agent_unwind_rules", "Rules of unwind tables in the kernel, at most 65536.", "");
#define RULES_REFUSED(reason)                                                                                          \
        METRIC_COUNTER("cairn_agent_unwind_rules_refused_total", "Rules of unwind tables without space.",              \
                       "reason=\"" reason "\"")

static struct metric no_rules[] = { RULES_REFUSED("no_room"), RULES_REFUSED("owner_full") };
static struct metric evicted = METRIC_COUNTER("cairn_agent_unwind_tables_evicted_total", "Unused tables evicted.", "");
#define UNMAPPED(reason)                                                                                               \
        METRIC_COUNTER("cairn_agent_processes_unmapped_total",                                                         \
                       "Processes without space for their mappings in the kernel.", "reason=\"" reason "\"")

static struct metric unmapped[] = { UNMAPPED("no_room"), UNMAPPED("owner_full"), UNMAPPED("too_many") };
static struct metric shift = METRIC_GAUGE("cairn_agent_kernel_shift_known",
                                          "1 when kernel frames carry link-time addresses, 0 when only names.", "");

#define PYTHON_FRAMES(result)                                                                                          \
        METRIC_COUNTER("cairn_agent_python_frames_total", "Python frames, each counted once per stack and interval.",  \
                       "result=\"" result "\"")
#define PYTHON_PROCESSES(result)                                                                                       \
        METRIC_COUNTER("cairn_agent_python_processes_total", "Processes with a Python interpreter.",                   \
                       "result=\"" result "\"")

#define RUNTIME_REFUSALS(runtime, reason)                                                                              \
        METRIC_COUNTER("cairn_agent_runtimes_refused_total", "Processes whose runtime is not read, by reason.",        \
                       "runtime=\"" runtime "\",reason=\"" reason "\"")

static struct metric python_frames[PYTHON_FRAME_STATES] = {
        [PYTHON_FRAME_FOUND] = PYTHON_FRAMES("named"), [PYTHON_FRAME_INCOMPLETE] = PYTHON_FRAMES("incomplete"),
        [PYTHON_FRAME_FREED] = PYTHON_FRAMES("freed"), [PYTHON_FRAME_UNREADABLE] = PYTHON_FRAMES("unreadable"),
        [PYTHON_FRAME_LIMIT] = PYTHON_FRAMES("limit"), [PYTHON_FRAME_GONE] = PYTHON_FRAMES("exited"),
};
static struct metric python_processes[] = { PYTHON_PROCESSES("read"), PYTHON_PROCESSES("refused") };
static struct metric python_refusals[REFUSAL_COUNT] = {
        [REFUSAL_VERSION] = RUNTIME_REFUSALS("python", "version"),
        [REFUSAL_BUILD] = RUNTIME_REFUSALS("python", "build"),
        [REFUSAL_SYMBOLS] = RUNTIME_REFUSALS("python", "symbols"),
        [REFUSAL_RIGHTS] = RUNTIME_REFUSALS("python", "rights"),
        [REFUSAL_MEMORY] = RUNTIME_REFUSALS("python", "memory"),
        [REFUSAL_THREADS] = RUNTIME_REFUSALS("python", "threads"),
        [REFUSAL_PROCESSOR] = RUNTIME_REFUSALS("python", "processor"),
        [REFUSAL_LIMIT] = RUNTIME_REFUSALS("python", "limit"),
};
static struct metric python_bytes =
        METRIC_GAUGE("cairn_agent_python_bytes", "Memory of names and line tables of Python code.", "");
#define NODE_FRAMES(result)                                                                                            \
        METRIC_COUNTER("cairn_agent_node_frames_total",                                                                \
                       "JavaScript frames, each counted once per stack and interval.", "result=\"" result "\"")
#define NODE_PROCESSES(result)                                                                                         \
        METRIC_COUNTER("cairn_agent_node_processes_total", "Processes with V8.", "result=\"" result "\"")

static struct metric node_frames[V8_FRAME_STATES] = {
        [V8_FRAME_FOUND] = NODE_FRAMES("named"),
        [V8_FRAME_UNREADABLE] = NODE_FRAMES("unreadable"),
        [V8_FRAME_GONE] = NODE_FRAMES("exited"),
};
static struct metric node_processes[] = { NODE_PROCESSES("read"), NODE_PROCESSES("refused") };
static struct metric node_refusals[REFUSAL_COUNT] = {
        [REFUSAL_BUILD] = RUNTIME_REFUSALS("node", "build"),
        [REFUSAL_RIGHTS] = RUNTIME_REFUSALS("node", "rights"),
};
static struct metric node_bytes =
        METRIC_GAUGE("cairn_agent_node_bytes", "Memory of names and lines of JavaScript code.", "");
#define JAVA_FRAMES(result)                                                                                            \
        METRIC_COUNTER("cairn_agent_java_frames_total", "Java frames, each counted once per stack and interval.",      \
                       "result=\"" result "\"")
#define JAVA_PROCESSES(result)                                                                                         \
        METRIC_COUNTER("cairn_agent_java_processes_total", "Processes with HotSpot.", "result=\"" result "\"")

static struct metric java_frames[HOTSPOT_FRAME_STATES] = {
        [HOTSPOT_FRAME_FOUND] = JAVA_FRAMES("named"), [HOTSPOT_FRAME_FREED] = JAVA_FRAMES("freed"),
        [HOTSPOT_FRAME_LIMIT] = JAVA_FRAMES("limit"), [HOTSPOT_FRAME_UNREADABLE] = JAVA_FRAMES("unreadable"),
        [HOTSPOT_FRAME_GONE] = JAVA_FRAMES("exited"),
};
static struct metric java_processes[] = { JAVA_PROCESSES("read"), JAVA_PROCESSES("refused") };
static const enum runtime_refusal_reason java_refusal_reasons[] = {
        REFUSAL_VERSION, REFUSAL_BUILD, REFUSAL_RIGHTS, REFUSAL_MEMORY, REFUSAL_PROCESSOR, REFUSAL_LIMIT,
};
static struct metric java_refusals[] = {
        RUNTIME_REFUSALS("java", "version"), RUNTIME_REFUSALS("java", "build"),     RUNTIME_REFUSALS("java", "rights"),
        RUNTIME_REFUSALS("java", "memory"),  RUNTIME_REFUSALS("java", "processor"), RUNTIME_REFUSALS("java", "limit"),
};
static struct metric java_bytes = METRIC_GAUGE("cairn_agent_java_bytes", "Memory of names and lines of Java code.", "");
#define CONTEXT_PROCESSES(of)                                                                                          \
        METRIC_COUNTER("cairn_agent_context_processes_total", "Processes whose contexts or labels of Go are read.",    \
                       "of=\"" of "\"")
static struct metric context_processes[] = { CONTEXT_PROCESSES("process"), CONTEXT_PROCESSES("threads"),
                                             CONTEXT_PROCESSES("goroutines") };
#define CONTEXT_REFUSALS(reason)                                                                                       \
        METRIC_COUNTER("cairn_agent_contexts_refused_total", "Processes whose contexts or labels of Go are not read.", \
                       "reason=\"" reason "\"")
static const enum runtime_refusal_reason context_refusal_reasons[] = {
        REFUSAL_VERSION, REFUSAL_SYMBOLS, REFUSAL_RIGHTS, REFUSAL_MEMORY, REFUSAL_LIMIT,
};
static struct metric context_refusals[] = {
        CONTEXT_REFUSALS("version"), CONTEXT_REFUSALS("symbols"), CONTEXT_REFUSALS("rights"),
        CONTEXT_REFUSALS("memory"),  CONTEXT_REFUSALS("limit"),
};
static struct metric context_samples =
        METRIC_COUNTER("cairn_agent_context_samples_total", "Samples with the context of their thread.", "");
static struct metric context_labels_left = METRIC_COUNTER(
        "cairn_agent_context_labels_left_total", "Labels of contexts left out, because a profile had too many.", "");
static struct metric context_bytes = METRIC_GAUGE("cairn_agent_context_bytes", "Memory of contexts of processes.", "");
static struct metric relabel_dropped =
        METRIC_COUNTER("cairn_agent_samples_relabel_dropped_total", "Ticks dropped by relabel rules.", "");
static struct metric relabel_failures = METRIC_COUNTER("cairn_agent_relabel_failures_total",
                                                       "Label sets sent without relabelling, because of a limit.", "");
#define POD_REQUESTS(result)                                                                                           \
        METRIC_COUNTER("cairn_agent_kubernetes_requests_total", "Requests for the pods of this node.",                 \
                       "result=\"" result "\"")

static struct metric pod_lists[] = { POD_REQUESTS("ok"), POD_REQUESTS("failed") };
static struct metric pods_known =
        METRIC_GAUGE("cairn_agent_kubernetes_pods", "Pods of this node in the last list.", "");
static struct metric pod_misses = METRIC_COUNTER("cairn_agent_kubernetes_misses_total",
                                                 "Sampled containers and pods missing from the last list.", "");
static struct metric probe_timeouts =
        METRIC_COUNTER("cairn_agent_mount_timeouts_total", "Files that did not respond within 3 s.", "");
static struct metric probe_skipped = METRIC_COUNTER("cairn_agent_mount_files_skipped_total",
                                                    "Accesses skipped to unresponsive files and mounts.", "");
static struct metric probe_stuck =
        METRIC_GAUGE("cairn_agent_mount_probes_stuck", "Probe processes stuck on unresponsive mounts, at most 8.", "");

static void set_metric(struct metric *m, uint64_t v)
{
        metric_set(m, (int64_t)v);
}

static void update_sender(const struct sender_stats *s)
{
        const struct outbox_stats *o = &s->outbox;

        for (size_t i = 0; i < DROP_COUNT; i++)
                set_metric(&dropped[i], o->dropped[i]);
        set_metric(&sent, s->sent);
        set_metric(&split, s->split);
        set_metric(&rejected, s->rejected_samples);
        set_metric(&not_queued, s->lost_samples);
        set_metric(&retries, s->retried);
        set_metric(&queued, o->queued_bytes);
        set_metric(&waiting[0], o->queued - o->spooled);
        set_metric(&waiting[1], o->spooled);
        set_metric(&spool_bytes, o->spool_bytes);
        set_metric(&spool_failures[0], o->spool_disk_full);
        set_metric(&spool_failures[1], o->spool_failed);
}

static void update_uploads(const struct uploads_stats *u)
{
        const uint64_t results[] = {
                u->sent, u->there, u->refused, u->failed, u->too_big, u->no_symbols, u->no_worker
        };

        for (size_t i = 0; i < sizeof results / sizeof *results; i++)
                set_metric(&uploads[i], results[i]);
        set_metric(&upload_offered, u->offered);
        set_metric(&upload_bytes, u->sent_bytes);
        set_metric(&upload_waiting, u->waiting);
}

static void update_python(const struct agent_counters *r)
{
        uint64_t refused = 0;

        for (size_t i = 0; i < PYTHON_FRAME_STATES; i++)
                set_metric(&python_frames[i], r->build.python_frames[i]);
        for (size_t i = REFUSAL_NONE + 1; i < REFUSAL_COUNT; i++) {
                set_metric(&python_refusals[i], r->python_refused[i]);
                refused += r->python_refused[i];
        }
        set_metric(&python_processes[0], r->python_read);
        set_metric(&python_processes[1], refused);
}

static void update_node(const struct agent_counters *r)
{
        for (size_t i = 0; i < V8_FRAME_STATES; i++)
                set_metric(&node_frames[i], r->build.v8_frames[i]);
        set_metric(&node_refusals[REFUSAL_BUILD], r->v8_refused[REFUSAL_BUILD]);
        set_metric(&node_refusals[REFUSAL_RIGHTS], r->v8_refused[REFUSAL_RIGHTS]);
        set_metric(&node_processes[0], r->v8_read);
        set_metric(&node_processes[1], r->v8_refused[REFUSAL_BUILD] + r->v8_refused[REFUSAL_RIGHTS]);
}

static void update_java(const struct agent_counters *r)
{
        uint64_t refused = 0;

        for (size_t i = 0; i < HOTSPOT_FRAME_STATES; i++)
                set_metric(&java_frames[i], r->build.hotspot_frames[i]);
        for (size_t i = 0; i < sizeof java_refusals / sizeof *java_refusals; i++) {
                set_metric(&java_refusals[i], r->hotspot_refused[java_refusal_reasons[i]]);
                refused += r->hotspot_refused[java_refusal_reasons[i]];
        }
        set_metric(&java_processes[0], r->hotspot_read);
        set_metric(&java_processes[1], refused);
        set_metric(&java_bytes, r->hotspot_bytes);
}

static void update_contexts(const struct agent_counters *r)
{
        for (size_t i = 0; i < sizeof context_refusals / sizeof *context_refusals; i++)
                set_metric(&context_refusals[i], r->contexts_refused[context_refusal_reasons[i]]);
        set_metric(&context_processes[0], r->process_contexts_read);
        set_metric(&context_processes[1], r->thread_contexts_read);
        set_metric(&context_processes[2], r->go_labels_read);
        set_metric(&context_samples, r->build.context_samples);
        set_metric(&context_labels_left, r->build.context_labels_left);
        set_metric(&context_bytes, r->context_bytes);
}

static void update_mounts(void)
{
        struct mount_probe_stats stats;

        mount_probe_get_stats(&stats);
        set_metric(&probe_timeouts, stats.timeouts);
        set_metric(&probe_skipped, stats.skipped);
        set_metric(&probe_stuck, stats.stuck);
}

void agent_metrics_update(const struct agent_counters *r)
{
        update_mounts();
        for (size_t i = 0; i < SAMPLER_STAT_COUNT; i++)
                set_metric(&sampler[i], r->sampler[i]);
        set_metric(&sampler[STAT_EXCLUDED], r->sampler[STAT_EXCLUDED] + r->build.excluded_samples);
        set_metric(&excluded, r->excluded_processes);
        set_metric(&jit_dropped, r->jit_dropped);
        set_metric(&jit_bytes, r->jit_bytes);
        set_metric(&kinds[0], r->sampler_kind == SAMPLER_BPF);
        set_metric(&kinds[1], r->sampler_kind == SAMPLER_PERF);
        set_metric(&stacks, r->build.stacks);
        set_metric(&ends[0], r->build.no_code_frames);
        set_metric(&ends[1], r->build.exited);
        set_metric(&frames[0], r->build.jit_frames);
        set_metric(&frames[1], r->build.no_build_id);
        set_metric(&frames[2], r->build.kernel_name_only);
        update_python(r);
        set_metric(&python_bytes, r->python_bytes);
        update_node(r);
        set_metric(&node_bytes, r->v8_bytes);
        update_java(r);
        update_contexts(r);
        set_metric(&relabel_dropped, r->build.relabel_dropped_samples);
        set_metric(&relabel_failures, r->build.relabel_failures);
        set_metric(&pod_lists[0], r->pods.lists);
        set_metric(&pod_lists[1], r->pods.failures);
        set_metric(&pods_known, r->pods.pods);
        set_metric(&pod_misses, r->pods.misses);
        update_sender(&r->sender);
        update_uploads(&r->uploads);
        set_metric(&unreadable, r->unreadable_processes);
        set_metric(&tables, r->unwinder.tables_ready);
        set_metric(&no_tables[0], r->unwinder.tables_none);
        set_metric(&no_tables[1], r->unwinder.tables_refused);
        set_metric(&no_tables[2], r->unwinder.tables_over_quota);
        set_metric(&no_tables[3], r->unwinder.tables_no_worker);
        set_metric(&no_tables[4], r->unwinder.tables_failed);
        set_metric(&evicted, r->unwinder.tables_evicted);
        set_metric(&rules, r->unwinder.rules);
        set_metric(&no_rules[0], r->unwinder.rules_refused);
        set_metric(&no_rules[1], r->unwinder.rules_over_quota);
        set_metric(&unmapped[0], r->unwinder.processes_refused);
        set_metric(&unmapped[2], r->too_many_mappings);
        set_metric(&unmapped[1], r->unwinder.processes_over_quota);
        set_metric(&shift, r->kernel_shift_known);
}

enum status agent_metrics_write(const char *path, struct error *err)
{
        _cleanup_buf_ struct buf text = { 0 };
        enum status st;

        buf_init(&text, MiB(1));
        metrics_write(&text);
        st = buf_status(&text, err, "metrics");
        return st ? st : output_file_write(path, OUTPUT_OF_SERVICE, text.data, text.size, err);
}

void agent_metrics_log(bool with_sender)
{
        int64_t lost = metric_get(&sampler[STAT_LOST_COUNTS_FULL]) + metric_get(&sampler[STAT_LOST_STACKS_FULL]) +
                       metric_get(&sampler[STAT_LOST_RING_FULL]) + metric_get(&not_queued);
        int64_t lost_batches = 0;

        log_info("agent", "%s, %" PRId64 " lost; %s, %" PRId64 " cut early",
                 COUNTED(metric_get(&sampler[STAT_SAMPLES]), "sample", "samples"), lost,
                 COUNTED(metric_get(&stacks), "user stack", "user stacks"), metric_get(&ends[0]));
        if (!with_sender)
                return;
        for (size_t i = 0; i < DROP_COUNT; i++)
                lost_batches += metric_get(&dropped[i]);
        log_info("agent",
                 "batches: %" PRId64 " sent, %" PRId64 " dropped, %" PRId64 " not sent, %" PRId64 " in the spool",
                 metric_get(&sent), lost_batches, metric_get(&waiting[0]), metric_get(&waiting[1]));
}

#define DEFAULT_PORT 7701
#define MISSED_INTERVALS 3

struct metrics_server {
        struct http_server *http;
        uint64_t interval_s;
        _Atomic int64_t well_until_ns; /* monotonic */
};

static void on_health(struct http_request *req)
{
        struct metrics_server *s = http_context(req);

        if (monotonic_ns() < atomic_load(&s->well_until_ns))
                http_respond(req, 200, "text/plain; charset=utf-8", "ok\n", 3);
        else
                http_fail_code(req, 503, "stuck", "no samples were drained for %d intervals; see the agent's log",
                               MISSED_INTERVALS);
}

static void on_metrics(struct http_request *req)
{
        struct buf text;

        buf_init(&text, MiB(1));
        metrics_write(&text);
        http_respond_buf(req, 200, "text/plain; version=0.0.4; charset=utf-8", &text);
}

static const struct http_route routes[] = {
        { .method = "GET", .path = "/metrics", .handle = on_metrics },
        { .method = "GET", .path = "/healthz", .handle = on_health },
};

enum status metrics_server_start(const char *address, uint64_t interval_s, struct metrics_server **ret,
                                 struct error *err)
{
        struct metrics_server *s = calloc(1, sizeof *s);
        struct http_options options = { .size = sizeof options, .threads = 1, .max_connections = 64 };
        struct listen_address listen;
        enum status st;

        if (!s)
                return error_no_memory(err);
        s->interval_s = interval_s;
        metrics_server_note_drain(s);
        st = parse_listen_address(address, DEFAULT_PORT, &listen, err);
        if (!st) {
                options.host = listen.host;
                options.port = listen.port;
                st = http_server_start(&options, routes, sizeof routes / sizeof *routes, s, &s->http, err);
        }
        if (st) {
                free(s);
                return st;
        }
        log_info("agent", "metrics at http://%s:%u/metrics", listen.host, http_server_port(s->http));
        *ret = s;
        return ST_OK;
}

void metrics_server_stop(struct metrics_server *s)
{
        if (!s)
                return;
        http_server_stop(s->http);
        free(s);
}

void metrics_server_note_drain(struct metrics_server *s)
{
        if (s)
                atomic_store(&s->well_until_ns,
                             monotonic_ns() + (int64_t)(MISSED_INTERVALS * s->interval_s) * INT64_C(1000000000));
}
