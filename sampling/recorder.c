/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/recorder.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "sampling/processes/process_hotspot.h"
#include "sampling/processes/process_python.h"
#include "sampling/processes/process_read.h"
#include "sampling/samplers/sample_frame.h"

#define SECOND_NS INT64_C(1000000000)
#define TABLES_WAIT_MAX_NS (2 * SECOND_NS)
#define SETTLE_SLICE_MS 50

enum { FD_SAMPLER, FD_UNWINDER };

static void handle_process_notice(void *ctx, const struct sample_notice *notice)
{
        process_table_handle_notice(&((struct recorder *)ctx)->processes, notice);
}

static void exclude_from_sampler(void *ctx, const struct sample_process *id)
{
        sampler_exclude(((struct recorder *)ctx)->sampler, id);
}

static void add_deferred_sample(void *ctx, const struct sample_key *key, const struct sample_weight *weight,
                                const struct stack_copy *copy)
{
        struct recorder *r = ctx;

        deferred_samples_add(&r->deferred, &r->processes, key, weight, copy);
}

/* A reused pid is another process and is excluded, unless children are sampled too. */
static enum status find_selected_processes(struct recorder *r, const struct recorder_options *o, struct error *err)
{
        if (!o->pid_count || o->children || !process_in_host_pid_namespace())
                return ST_OK;
        r->lives = calloc(o->pid_count, sizeof *r->lives);
        if (!r->lives)
                return error_no_memory(err);
        for (size_t i = 0; i < o->pid_count; i++)
                r->processes.life_count += process_find_pid(o->pids[i], &r->lives[r->processes.life_count]);
        r->processes.lives = r->lives;
        return ST_OK;
}

enum status recorder_start(struct recorder *r, const struct recorder_options *o, struct error *err)
{
        struct sampler_options sampler = {
                .kind = o->sampler,
                .frequency_hz = o->frequency_hz,
                .interval_s = o->interval_s,
                .tgids = o->pids,
                .tgid_count = o->pid_count,
                .children = o->children,
                .copy_stacks = o->copy_stacks,
                .excludes = process_filter_is_active(&o->filter),
                .off_cpu_ns = o->off_cpu_ns,
                .latency = o->latency,
                .on_process = handle_process_notice,
                .on_deferred = add_deferred_sample,
                .ctx = r,
        };
        struct error kernel_gap = { 0 };
        enum status st;

        *r = (struct recorder){ .options = *o };
        process_table_init(&r->processes);
        r->processes.objects.observer = o->on_object;
        r->processes.objects.observer_ctx = o->on_object_ctx;
        if (sampler.excludes)
                r->processes.filter = &r->options.filter;
        r->processes.on_excluded = exclude_from_sampler;
        r->processes.ctx = r;
        r->processes.reads_python = o->reads_python;
        r->processes.reads_v8 = o->reads_v8;
        r->processes.reads_hotspot = o->reads_hotspot;
        r->processes.reads_context = o->reads_context;
        st = labels_init(&r->labels, &r->options.labels, err);
        if (!st && !o->omits_container_names) {
                st = container_cache_init(&r->containers, err);
                r->processes.containers = &r->containers;
        }
        if (!st)
                st = find_selected_processes(r, o, err);
        if (st)
                return st;
        sampler.excludes = sampler.excludes || r->processes.life_count;
        kernel_init(&r->kernel, &kernel_gap);
        st = sampler_create(&sampler, &r->sampler, err);
        if (!st && (sampler_unwind_maps(r->sampler) || sampler_copies_stacks(r->sampler))) {
                st = unwinder_init(&r->unwinder, sampler_unwind_maps(r->sampler), o->fork_server,
                                   LIMIT_AGENT_UNWIND_BYTES, err);
                if (!st)
                        r->processes.unwinder = &r->unwinder;
        }
        if (!st && sampler_unwind_maps(r->sampler)) { /* it samples with BPF */
                struct error reason;

                if (kernel_use_bpf(&r->kernel, &reason))
                        log_debug("agent", "%s: BPF programs have no source lines", reason.text);
        }
        if (!st && sampler_has_kernel(r->sampler))
                snprintf(r->kernel_gap, sizeof r->kernel_gap, "%s", kernel_gap.text);
        r->from_ns = monotonic_ns();
        r->from_unix_ns = wall_clock_ns();
        return st;
}

void recorder_deinit(struct recorder *r)
{
        deferred_samples_deinit(&r->deferred);
        process_table_deinit(&r->processes);
        container_cache_deinit(&r->containers);
        unwinder_deinit(&r->unwinder);
        sampler_destroy(r->sampler);
        kernel_deinit(&r->kernel);
        free(r->lives);
        *r = (struct recorder){ 0 };
}

void recorder_prepare_process(struct recorder *r, uint32_t pid)
{
        struct sample_process id;

        if (r->processes.unwinder && process_find_pid(pid, &id))
                process_table_prepare(&r->processes, &id);
}

bool recorder_is_building(const struct recorder *r)
{
        return r->processes.unwinder && r->unwinder.tables_waiting;
}

void recorder_use_pods(struct recorder *r, struct pod_cache *pods)
{
        r->pods = pods;
        r->labels.node_name = pod_cache_get_node(pods);
}

/* Names are kept by the caches of the process. */
static void name_stack(struct process_table *t, struct process *p, const uint64_t *words, uint32_t count)
{
        struct hotspot_location places[LIMIT_HOTSPOT_INLINED];
        struct python_location place;
        struct sample_frame f;
        uint32_t n, places_count;

        for (uint32_t i = 0; (n = sample_frame_unpack(words + i, count - i, &f)); i += n) {
                if (f.kind == SAMPLE_FRAME_CPYTHON)
                        (void)process_python_locate(t, p, f.address, f.detail, &place);
                else if (f.kind == SAMPLE_FRAME_HOTSPOT)
                        (void)process_hotspot_locate(t, p, f.address, f.detail, places, &places_count);
        }
}

bool recorder_name_code(struct recorder *r)
{
        const struct sample_batch *b;

        sampler_poll(r->sampler);
        b = sampler_peek(r->sampler);
        if (!b || !process_table_has_fleeting_names(&r->processes))
                return false;
        process_table_begin_names(&r->processes);
        for (; r->named_count < b->count_count; r->named_count++) {
                const struct sample_key *key = &b->counts[r->named_count].key;
                const struct sample_stack *stack = key->user_stack ? &b->stacks[key->user_stack - 1] : NULL;
                struct process *p = stack ? process_table_get(&r->processes, &key->process, key->comm) : NULL;

                if (p && (p->python.state == PYTHON_IS_READ || p->hotspot.state == HOTSPOT_IS_READ))
                        name_stack(&r->processes, p, b->frames + stack->first_frame, stack->frame_count);
        }
        return true;
}

void recorder_stop(struct recorder *r)
{
        sampler_stop(r->sampler);
}

void recorder_get_fds(const struct recorder *r, struct pollfd ret[static RECORDER_FDS])
{
        ret[FD_SAMPLER] = (struct pollfd){ .fd = sampler_fd(r->sampler), .events = POLLIN };
        ret[FD_UNWINDER] =
                (struct pollfd){ .fd = r->processes.unwinder ? unwinder_fd(&r->unwinder) : -1, .events = POLLIN };
}

/* Load completed unwind tables, and walk the samples that wait for them. */
static void take_built_tables(struct recorder *r)
{
        if (!unwinder_poll(&r->unwinder))
                return;
        process_table_update_waiting(&r->processes);
        deferred_samples_retry(&r->deferred, &r->processes);
}

void recorder_poll(struct recorder *r, const struct pollfd fds[static RECORDER_FDS])
{
        if (fds[FD_SAMPLER].revents)
                sampler_poll(r->sampler);
        if (fds[FD_UNWINDER].revents)
                take_built_tables(r);
}

/* Wait for the tables that are being built, since deferred samples need them. The drain was a grace period, so
   released space can be reused. */
static void wait_for_tables(struct recorder *r)
{
        int64_t until = monotonic_ns() + TABLES_WAIT_MAX_NS;

        unwinder_reclaim(&r->unwinder);
        while (r->unwinder.tables_waiting && monotonic_ns() < until) {
                struct pollfd fd = { .fd = unwinder_fd(&r->unwinder), .events = POLLIN };

                if (poll(&fd, 1, SETTLE_SLICE_MS) > 0)
                        take_built_tables(r);
                sampler_poll(r->sampler); /* else perf event buffers may overflow */
        }
}

enum status recorder_take_profile(struct recorder *r, struct profile *ret, struct error *err)
{
        _cleanup_sample_batch_ struct sample_batch batch = { 0 };
        int64_t now_ns = monotonic_ns(), now_unix_ns = wall_clock_ns();
        const struct profile_context c = {
                .processes = &r->processes,
                .kernel = &r->kernel,
                .labels = &r->labels,
                .pods = r->pods,
                .rules = r->options.rules,
                .omits_files = r->options.omits_files,
                .period_ns = SECOND_NS / (int64_t)r->options.frequency_hz,
                .time_unix_ns = r->from_unix_ns,
                .duration_ns = now_ns - r->from_ns,
        };
        size_t deferred_count;
        enum status st;

        sampler_poll(r->sampler);
        st = sampler_drain(r->sampler, &batch, err);
        if (st)
                return st;
        r->named_count = 0;
        deferred_count = r->deferred.count;
        if (r->processes.unwinder)
                wait_for_tables(r);
        st = deferred_samples_take(&r->deferred, deferred_count, &r->processes, &batch, err);
        if (st)
                return st;
        r->from_ns = now_ns;
        r->from_unix_ns = now_unix_ns;
        kernel_begin_drain(&r->kernel);
        st = profile_build(&c, &batch, ret, &r->build_stats, err);
        if (!st)
                log_debug("agent", "%zu keys, %zu stacks, %u locations, %zu processes known", batch.count_count,
                          batch.stack_count, ret->locations.count, r->processes.count);
        return st;
}

enum status recorder_get_stats(struct recorder *r, uint64_t ret[static SAMPLER_STAT_COUNT], struct error *err)
{
        enum status st = sampler_get_stats(r->sampler, ret, err);

        if (st)
                return st;
        for (size_t i = 0; i < SAMPLE_END_COUNT; i++)
                ret[STAT_ENDS + i] += r->deferred.ends[i];
        ret[STAT_LOST_RING_FULL] += r->deferred.lost;
        return ST_OK;
}
