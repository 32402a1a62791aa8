/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report.h"

#include <inttypes.h>

#include "agent/mount_probe.h"
#include "agent/sample_end.h"
#include "common/file.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/metrics.h"

#define USER_STACK_END(number, name)                                                                              \
        [STAT_ENDS + number] = METRIC_COUNTER("cairn_agent_user_stacks_ended_total",                              \
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
        [STAT_EXCLUDED] = METRIC_COUNTER("cairn_agent_samples_excluded_total", "Ticks of processes that are left out.", ""),
        [STAT_LATE] = METRIC_COUNTER("cairn_agent_samples_late_total", "Samples whose stack the agent walked.", ""),
        [STAT_LATE_FULL] = METRIC_COUNTER("cairn_agent_samples_late_full_total",
                                          "Samples of processes not known in time, and no room for their stack.", ""),
        [STAT_NOTICES_LOST] = METRIC_COUNTER("cairn_agent_process_notices_lost_total",
                                             "New processes that were not told of in time.", ""),
        SAMPLE_ENDS(USER_STACK_END)
        [SAMPLER_STAT_REFUSED] = METRIC_COUNTER("cairn_agent_processes_refused_total",
                                                "Processes that the kernel did not let be sampled.", ""),
};
static struct metric kinds[] = {
        METRIC_GAUGE("cairn_agent_sampler", "1 for the sampler that runs.", "kind=\"bpf\""),
        METRIC_GAUGE("cairn_agent_sampler", "1 for the sampler that runs.", "kind=\"perf\""),
};
static struct metric stacks = METRIC_COUNTER("cairn_agent_user_stacks_total", "User stacks, once an interval.", "");
static struct metric ends[] = {
        METRIC_COUNTER("cairn_agent_user_stacks_cut_total", "User stacks that ended early.", "reason=\"not_code\""),
        METRIC_COUNTER("cairn_agent_user_stacks_cut_total", "User stacks that ended early.", "reason=\"exited\""),
};
static struct metric frames[] = {
        METRIC_COUNTER("cairn_agent_frames_unidentified_total", "Frames without an object and address.",
                       "reason=\"jit\""),
        METRIC_COUNTER("cairn_agent_frames_unidentified_total", "Frames without an object and address.",
                       "reason=\"no_build_id\""),
        METRIC_COUNTER("cairn_agent_frames_unidentified_total", "Frames without an object and address.",
                       "reason=\"kernel_name_only\""),
};
#define DROPPED(reason) \
        METRIC_COUNTER("cairn_agent_batches_dropped_total", "Batches that nobody got.", "reason=\"" reason "\"")

static struct metric dropped[DROP_COUNT] = {
        [DROP_MEMORY_FULL] = DROPPED("memory_full"),
        [DROP_SPOOL_FULL] = DROPPED("spool_full"),
        [DROP_TOO_OLD] = DROPPED("too_old"),
        [DROP_DAMAGED] = DROPPED("damaged"),
        [DROP_REFUSED] = DROPPED("refused"),
        [DROP_TOO_BIG] = DROPPED("too_big"),
};
static struct metric sent = METRIC_COUNTER("cairn_agent_batches_sent_total", "Batches that the service took.", "");
static struct metric split =
        METRIC_COUNTER("cairn_agent_batches_split_total", "Batches cut in two because the service takes less at a time.", "");
static struct metric rejected = METRIC_COUNTER("cairn_agent_samples_rejected_total",
                                               "Samples that the service rejected of batches that it took.", "");
static struct metric retries = METRIC_COUNTER("cairn_agent_retries_total", "Sendings that failed for a while.", "");
static struct metric queued = METRIC_GAUGE("cairn_agent_queued_bytes", "Packed batches that wait in memory.", "");
static struct metric waiting[] = {
        METRIC_GAUGE("cairn_agent_batches_waiting", "Batches that wait for the service.", "where=\"memory\""),
        METRIC_GAUGE("cairn_agent_batches_waiting", "Batches that wait for the service.", "where=\"spool\""),
};
static struct metric spool_bytes = METRIC_GAUGE("cairn_agent_spool_bytes", "What waits in the spool, in whole blocks.", "");
static struct metric spool_failures[] = {
        METRIC_COUNTER("cairn_agent_spool_failures_total", "Writes to the spool that failed.", "reason=\"disk_full\""),
        METRIC_COUNTER("cairn_agent_spool_failures_total", "Writes to the spool that failed.", "reason=\"other\""),
};
#define UPLOADS(result) \
        METRIC_COUNTER("cairn_agent_uploads_total", "Build-ids by what became of their symbols.", "result=\"" result "\"")

static struct metric uploads[] = {
        UPLOADS("sent"),   UPLOADS("there"),   UPLOADS("refused"),
        UPLOADS("failed"), UPLOADS("too_big"), UPLOADS("no_symbols"),
};
static struct metric upload_asked =
        METRIC_COUNTER("cairn_agent_upload_questions_total", "Build-ids that the service was asked about.", "");
static struct metric upload_bytes = METRIC_COUNTER("cairn_agent_upload_bytes_total", "Symbols sent, packed.", "");
static struct metric upload_waiting =
        METRIC_GAUGE("cairn_agent_uploads_waiting", "Build-ids whose files are being looked at or sent.", "");
static struct metric unreadable =
        METRIC_COUNTER("cairn_agent_processes_unreadable_total", "Processes that ended before they were read.", "");
static struct metric excluded =
        METRIC_COUNTER("cairn_agent_processes_excluded_total", "Processes that are left out.", "");
static struct metric jit_left_out = METRIC_COUNTER("cairn_agent_jit_names_left_out_total",
                                                   "Names of code made at run time that found no room or made no sense.", "");
static struct metric jit_bytes = METRIC_GAUGE("cairn_agent_jit_bytes", "Memory of names of code made at run time.", "");
static struct metric tables = METRIC_GAUGE("cairn_agent_unwind_tables", "Unwind tables in the kernel.", "");
static struct metric no_tables[] = {
        METRIC_COUNTER("cairn_agent_unwind_tables_missing_total", "Files walked by frame pointers.", "reason=\"no_cfi\""),
        METRIC_COUNTER("cairn_agent_unwind_tables_missing_total", "Files walked by frame pointers.", "reason=\"no_room\""),
        METRIC_COUNTER("cairn_agent_unwind_tables_missing_total", "Files walked by frame pointers.", "reason=\"owner_full\""),
};
static struct metric rules = METRIC_GAUGE("cairn_agent_unwind_rules", "Rules of unwind tables in the kernel; 65536 fit.", "");
static struct metric no_rules[] = {
        METRIC_COUNTER("cairn_agent_unwind_rules_refused_total", "Rules of unwind tables that found no room.",
                       "reason=\"no_room\""),
        METRIC_COUNTER("cairn_agent_unwind_rules_refused_total", "Rules of unwind tables that found no room.",
                       "reason=\"owner_full\""),
};
static struct metric evicted =
        METRIC_COUNTER("cairn_agent_unwind_tables_evicted_total", "Unused tables that made room for others.", "");
static struct metric unmapped[] = {
        METRIC_COUNTER("cairn_agent_processes_unmapped_total", "Processes whose mappings found no room in the kernel.",
                       "reason=\"no_room\""),
        METRIC_COUNTER("cairn_agent_processes_unmapped_total", "Processes whose mappings found no room in the kernel.",
                       "reason=\"owner_full\""),
};
static struct metric shift = METRIC_GAUGE("cairn_agent_kernel_shift_known",
                                          "1 when kernel frames carry link-time addresses, 0 when only names.", "");

static struct metric probe_timeouts =
        METRIC_COUNTER("cairn_agent_mount_timeouts_total", "Mounts found not to answer.", "");
static struct metric probe_skipped =
        METRIC_COUNTER("cairn_agent_mount_files_skipped_total", "Accesses not made to files of mounts that do not answer.", "");
static struct metric probe_stuck =
        METRIC_GAUGE("cairn_agent_mount_probes_stuck", "Processes left behind on mounts that do not answer; 8 at most.", "");

static void set(struct metric *m, uint64_t v)
{
        metric_set(m, (int64_t)v);
}

static void update_sender(const struct sender_stats *s)
{
        const struct outbox_stats *o = &s->outbox;

        for (size_t i = 0; i < DROP_COUNT; i++)
                set(&dropped[i], o->dropped[i]);
        set(&sent, s->sent);
        set(&split, s->split);
        set(&rejected, s->rejected_samples);
        set(&retries, s->retried);
        set(&queued, o->queued_bytes);
        set(&waiting[0], o->queued - o->spooled);
        set(&waiting[1], o->spooled);
        set(&spool_bytes, o->spool_bytes);
        set(&spool_failures[0], o->spool_disk_full);
        set(&spool_failures[1], o->spool_failed);
}

static void update_uploads(const struct uploads_stats *u)
{
        const uint64_t results[] = { u->sent, u->there, u->refused, u->failed, u->too_big, u->no_symbols };

        for (size_t i = 0; i < sizeof results / sizeof *results; i++)
                set(&uploads[i], results[i]);
        set(&upload_asked, u->asked);
        set(&upload_bytes, u->sent_bytes);
        set(&upload_waiting, u->waiting);
}

static void update_mounts(void)
{
        struct mount_probe_stats stats;

        mount_probe_get_stats(&stats);
        set(&probe_timeouts, stats.timeouts);
        set(&probe_skipped, stats.skipped);
        set(&probe_stuck, stats.stuck);
}

void report_update(const struct report *r)
{
        update_mounts();
        for (size_t i = 0; i < SAMPLER_STAT_COUNT; i++)
                set(&sampler[i], r->sampler[i]);
        set(&sampler[STAT_EXCLUDED], r->sampler[STAT_EXCLUDED] + r->build.excluded_samples);
        set(&excluded, r->excluded_processes);
        set(&jit_left_out, r->jit_left_out);
        set(&jit_bytes, r->jit_bytes);
        set(&kinds[0], r->sampler_kind == SAMPLER_BPF);
        set(&kinds[1], r->sampler_kind == SAMPLER_PERF);
        set(&stacks, r->build.stacks);
        set(&ends[0], r->build.no_code_frames);
        set(&ends[1], r->build.exited);
        set(&frames[0], r->build.jit_frames);
        set(&frames[1], r->build.no_build_id);
        set(&frames[2], r->build.kernel_name_only);
        update_sender(&r->sender);
        update_uploads(&r->uploads);
        set(&unreadable, r->unreadable_processes);
        set(&tables, r->unwinder.tables_ready);
        set(&no_tables[0], r->unwinder.tables_none);
        set(&no_tables[1], r->unwinder.tables_refused);
        set(&no_tables[2], r->unwinder.tables_over_quota);
        set(&evicted, r->unwinder.tables_evicted);
        set(&rules, r->unwinder.rules);
        set(&no_rules[0], r->unwinder.rules_refused);
        set(&no_rules[1], r->unwinder.rules_over_quota);
        set(&unmapped[0], r->unwinder.processes_refused);
        set(&unmapped[1], r->unwinder.processes_over_quota);
        set(&shift, r->kernel_shift_known);
}

enum status report_write(const char *path, struct error *err)
{
        _cleanup_buf_ struct buf text = { 0 };
        enum status st;

        buf_init(&text, MiB(1));
        metrics_write(&text);
        st = buf_status(&text, err, "metrics");
        return st ? st : file_write_durable(path, text.data, text.size, err);
}

void report_log(bool with_sender)
{
        int64_t lost = metric_get(&sampler[STAT_LOST_COUNTS_FULL]) + metric_get(&sampler[STAT_LOST_STACKS_FULL]) +
                       metric_get(&sampler[STAT_LOST_RING_FULL]);
        int64_t lost_batches = 0;

        log_info("agent", "%" PRId64 " samples, %" PRId64 " lost; %" PRId64 " user stacks, %" PRId64 " cut early",
                 metric_get(&sampler[STAT_SAMPLES]), lost, metric_get(&stacks), metric_get(&ends[0]));
        if (!with_sender)
                return;
        for (size_t i = 0; i < DROP_COUNT; i++)
                lost_batches += metric_get(&dropped[i]);
        log_info("agent", "batches: %" PRId64 " sent, %" PRId64 " dropped, %" PRId64 " in the spool", metric_get(&sent),
                 lost_batches, metric_get(&waiting[1]));
}
