/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/recorder.h"

#include <stdlib.h>

#include "agent/process_read.h"
#include "common/clock.h"
#include "common/limits.h"
#include "common/log.h"

#define SECOND_NS INT64_C(1000000000)
#define TABLES_WAIT_MAX_NS (2 * SECOND_NS)
#define SETTLE_SLICE_MS 50

enum { FD_SAMPLER, FD_UNWINDER };

static void on_process(void *ctx, const struct sample_notice *notice)
{
        process_table_notice(&((struct recorder *)ctx)->processes, notice);
}

static void on_excluded(void *ctx, const struct sample_process *id)
{
        sampler_exclude(((struct recorder *)ctx)->sampler, id);
}

static void on_late(void *ctx, const struct sample_key *key, const struct sample_late *late)
{
        struct recorder *r = ctx;

        late_samples_add(&r->late, &r->processes, key, late);
}

/* A number that comes again is somebody else's, unless those whom they start are followed too. */
static enum status remember_lives(struct recorder *r, const struct recorder_options *o, struct error *err)
{
        if (!o->pid_count || o->children || !process_numbers_are_the_hosts())
                return ST_OK;
        r->lives = calloc(o->pid_count, sizeof *r->lives);
        if (!r->lives)
                return error_no_memory(err);
        for (size_t i = 0; i < o->pid_count; i++)
                r->processes.life_count += process_find(o->pids[i], &r->lives[r->processes.life_count]);
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
                .excludes = selection_is_active(&o->selection),
                .on_process = on_process,
                .on_late = on_late,
                .ctx = r,
        };
        struct error kernel_error = { 0 };
        enum status st;

        *r = (struct recorder){ .options = *o };
        process_table_init(&r->processes);
        r->processes.objects.observer = o->on_object;
        r->processes.objects.observer_ctx = o->on_object_ctx;
        if (sampler.excludes)
                r->processes.selection = &r->options.selection;
        r->processes.on_excluded = on_excluded;
        r->processes.ctx = r;
        st = labels_init(&r->labels, &r->options.labels, err);
        if (!st)
                st = remember_lives(r, o, err);
        if (st)
                return st;
        sampler.excludes = sampler.excludes || r->processes.life_count;
        kernel_init(&r->kernel, &kernel_error);
        st = sampler_create(&sampler, &r->sampler, err);
        if (!st && (sampler_unwind_maps(r->sampler) || sampler_copies_stacks(r->sampler))) {
                st = unwinder_init(&r->unwinder, sampler_unwind_maps(r->sampler), o->nursery, LIMIT_AGENT_UNWIND_BYTES, err);
                if (!st)
                        r->processes.unwinder = &r->unwinder;
        }
        if (!st && sampler_has_kernel(r->sampler))
                snprintf(r->kernel_gap, sizeof r->kernel_gap, "%s", kernel_error.text);
        r->from_ns = monotonic_ns();
        r->from_unix_ns = wall_clock_ns();
        return st;
}

void recorder_deinit(struct recorder *r)
{
        late_samples_deinit(&r->late);
        process_table_deinit(&r->processes);
        unwinder_deinit(&r->unwinder);
        sampler_destroy(r->sampler);
        kernel_deinit(&r->kernel);
        free(r->lives);
        *r = (struct recorder){ 0 };
}

void recorder_stop(struct recorder *r)
{
        sampler_stop(r->sampler);
}

void recorder_fds(const struct recorder *r, struct pollfd ret[static RECORDER_FDS])
{
        ret[FD_SAMPLER] = (struct pollfd){ .fd = sampler_fd(r->sampler), .events = POLLIN };
        ret[FD_UNWINDER] = (struct pollfd){ .fd = r->processes.unwinder ? unwinder_fd(&r->unwinder) : -1,
                                            .events = POLLIN };
}

/* More unwind tables are there. */
static void take_tables(struct recorder *r)
{
        if (!unwinder_poll(&r->unwinder))
                return;
        process_table_unwind_again(&r->processes);
        late_samples_retry(&r->late, &r->processes);
}

void recorder_poll(struct recorder *r, const struct pollfd fds[static RECORDER_FDS])
{
        if (fds[FD_SAMPLER].revents)
                sampler_poll(r->sampler);
        if (fds[FD_UNWINDER].revents)
                take_tables(r);
}

/* Programs that ran before the drain have ended. Late samples need the tables that are being made. */
static void settle(struct recorder *r)
{
        int64_t until = monotonic_ns() + TABLES_WAIT_MAX_NS;

        unwinder_settle(&r->unwinder);
        while (r->unwinder.tables_waiting && monotonic_ns() < until) {
                struct pollfd fd = { .fd = unwinder_fd(&r->unwinder), .events = POLLIN };

                if (poll(&fd, 1, SETTLE_SLICE_MS) > 0)
                        take_tables(r);
                sampler_poll(r->sampler); /* buffers of perf events do not hold out */
        }
}

enum status recorder_take(struct recorder *r, struct profile *ret, struct error *err)
{
        _cleanup_sample_batch_ struct sample_batch batch = { 0 };
        int64_t now_ns = monotonic_ns(), now_unix_ns = wall_clock_ns();
        const struct profile_context c = {
                .processes = &r->processes,
                .kernel = &r->kernel,
                .labels = &r->labels,
                .period_ns = SECOND_NS / (int64_t)r->options.frequency_hz,
                .time_unix_ns = r->from_unix_ns,
                .duration_ns = now_ns - r->from_ns,
        };
        size_t late_count;
        enum status st;

        sampler_poll(r->sampler);
        st = sampler_drain(r->sampler, &batch, err);
        if (st)
                return st;
        late_count = r->late.count;
        if (r->processes.unwinder)
                settle(r);
        st = late_samples_take(&r->late, late_count, &r->processes, &batch, err);
        if (st)
                return st;
        r->from_ns = now_ns;
        r->from_unix_ns = now_unix_ns;
        kernel_refresh(&r->kernel);
        st = profile_build(&c, &batch, ret, &r->build_stats, err);
        if (!st)
                log_debug("agent", "%zu keys, %zu stacks, %u locations, %zu processes known", batch.count_count,
                          batch.stack_count, ret->locations.count, r->processes.count);
        return st;
}

enum status recorder_stats(struct recorder *r, uint64_t ret[static SAMPLER_STAT_COUNT], struct error *err)
{
        enum status st = sampler_stats(r->sampler, ret, err);

        if (st)
                return st;
        for (size_t i = 0; i < SAMPLE_END_COUNT; i++)
                ret[STAT_ENDS + i] += r->late.ends[i];
        ret[STAT_LOST_RING_FULL] += r->late.lost;
        return ST_OK;
}
