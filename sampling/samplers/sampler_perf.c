/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampler based on perf events only. Each CPU has a ring buffer with the records of all tracked processes that ran
 * there. The buffers are merged by time, because the state of a process (its name, its program) is changed by
 * records too, and processes migrate between CPUs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "sampling/samplers/perf_event.h"
#include "sampling/samplers/perf_record.h"
#include "sampling/samplers/perf_tasks.h"
#include "sampling/samplers/sample_counts.h"
#include "sampling/samplers/sampler_internal.h"
#include "sandbox/privileges.h"

struct perf_sampler {
        struct sampler base;
        struct perf_events events;
        struct perf_threads threads;
        struct perf_tasks tasks;
        struct sample_counts counts;
        struct sample_frames kernel_stack, user_stack; /* scratch */
        struct perf_record *next;                      /* owned; the next record of each buffer */
        bool *has_next;                                /* owned */
        uint32_t *tgids;                               /* owned */
        bool children;                                 /* children are sampled too */
        uint64_t stats[SAMPLER_STAT_COUNT];
        uint64_t lost_at_scan; /* STAT_LOST_RING_FULL at the last scan */
        int epoll, timer;
        struct stack_copy *copy; /* owned; scratch; NULL unless stacks are copied */
};

/* ---- records -------------------------------------------------------------------------- */

static bool is_sampled_process(const struct perf_sampler *s, uint32_t tgid)
{
        for (size_t i = 0; i < s->tasks.tgid_count; i++)
                if (s->tasks.tgids[i] == tgid)
                        return true;
        return s->children || s->tasks.tgid_count == 0;
}

/* Deliver the sample with a copy of its stack, which is walked with unwind tables. */
static enum sample_stat defer_perf_sample(struct perf_sampler *s, struct sample_key *key, const struct perf_record *r)
{
        struct stack_copy *copy = s->copy;
        struct unwind_regs regs;

        if (!sample_counts_add_stack(&s->counts, &s->kernel_stack, &key->kernel_stack))
                return STAT_LOST_STACKS_FULL;
        copy->regs = r->registers;
        arch_unwind_regs(&r->registers, &regs);
        copy->stack_start = regs.sp;
        copy->stack_bytes = r->stack_bytes < sizeof copy->stack ? (uint32_t)r->stack_bytes : sizeof copy->stack;
        if (copy->stack_bytes)
                memcpy(copy->stack, r->stack, copy->stack_bytes);
        s->stats[STAT_DEFERRED]++;
        s->base.on_deferred(s->base.ctx, key, &(struct sample_weight){ 0 }, copy);
        return STAT_SAMPLES;
}

static void count_perf_sample(struct perf_sampler *s, struct perf_task *task, const struct perf_record *r)
{
        bool with_stack = s->copy && r->has_registers && !task->kernel_thread;
        struct sample_count tick = { .count = 1 };
        struct sample_key *key = &tick.key;
        enum sample_stat result;

        perf_task_identify(task);
        perf_record_split_chain(r, &s->kernel_stack, &s->user_stack);
        key->process = task->id;
        perf_threads_get_name(&s->threads, r->tid, r->tgid, key->comm);
        if (task->kernel_thread)
                key->flags |= SAMPLE_KERNEL_THREAD;
        else if (s->kernel_stack.frame_count && r->in_syscall)
                key->flags |= SAMPLE_IN_SYSCALL;
        result = with_stack ? defer_perf_sample(s, key, r)
                            : sample_counts_add(&s->counts, &tick, &s->kernel_stack, &s->user_stack);
        s->stats[result]++;
        if (result != STAT_SAMPLES)
                return;
        s->stats[STAT_NO_USER_STACK] += !with_stack && !task->kernel_thread && !s->user_stack.frame_count;
        s->stats[STAT_TRUNCATED] += s->kernel_stack.frame_count + s->user_stack.frame_count >= SAMPLE_KERNEL_STACK_MAX;
        task->stale = task->stale || !task->sampled;
        task->sampled = true;
}

static void handle_perf_record(struct perf_sampler *s, const struct perf_record *r)
{
        struct perf_task *task = perf_tasks_handle_record(&s->tasks, r);

        perf_threads_handle_record(&s->threads, r);
        s->stats[STAT_LOST_RING_FULL] += r->lost;
        if (!task || !is_sampled_process(s, r->tgid))
                return;
        if (r->kind == PERF_RECORD_OF_SAMPLE)
                count_perf_sample(s, task, r);
        else if (r->kind == PERF_RECORD_OF_MAPPING)
                task->stale = true;
}

static enum perf_record_user get_record_user(const struct perf_sampler *s)
{
        return s->events.stacks   ? PERF_RECORD_USER_STACK
               : s->events.kernel ? PERF_RECORD_USER_SYSCALL
                                  : PERF_RECORD_USER_NOTHING;
}

/* Skip records that cannot be parsed: the ring knows where the next one begins. */
static void parse_next_record(struct perf_sampler *s, size_t i)
{
        const uint8_t *bytes;
        size_t n;

        do {
                s->has_next[i] = perf_ring_next(&s->events.cpus[i].ring, &bytes, &n);
                if (!s->has_next[i])
                        return;
                if (!perf_record_parse(bytes, n, get_record_user(s), &s->next[i], NULL))
                        return;
                s->stats[STAT_LOST_RING_FULL]++;
        } while (true);
}

static void read_perf_buffers(struct perf_sampler *s)
{
        size_t cpus = s->events.cpu_count;

        for (size_t i = 0; i < cpus; i++)
                perf_ring_begin(&s->events.cpus[i].ring);
        for (size_t i = 0; i < cpus; i++)
                parse_next_record(s, i);
        for (;;) {
                size_t first = cpus;

                for (size_t i = 0; i < cpus; i++)
                        if (s->has_next[i] && (first == cpus || s->next[i].time_ns < s->next[first].time_ns))
                                first = i;
                if (first == cpus)
                        break;
                handle_perf_record(s, &s->next[first]);
                parse_next_record(s, first);
        }
        for (size_t i = 0; i < cpus; i++) {
                struct perf_ring *ring = &s->events.cpus[i].ring;

                perf_ring_end(ring);
                s->stats[STAT_LOST_RING_FULL] += ring->broken;
                ring->broken = 0;
        }
}

/* Send notices of processes whose mappings must be read: they were sampled for the first time, or have new mappings. */
static void notify_stale_processes(struct perf_sampler *s)
{
        for (size_t i = 0; i < s->tasks.count; i++) {
                struct perf_task *task = &s->tasks.items[i];
                struct sample_notice notice = { .process = task->id };

                if (!task->sampled || !task->stale)
                        continue;
                task->stale = false;
                if (s->base.on_process)
                        s->base.on_process(s->base.ctx, &notice);
        }
}

/* ---- processes --------------------------------------------------------------------------- */

static enum status scan_for_processes(struct perf_sampler *s, struct error *err)
{
        enum status st = perf_tasks_scan(&s->tasks, err);
        bool lost;

        read_perf_buffers(s);
        lost = s->stats[STAT_LOST_RING_FULL] != s->lost_at_scan;
        s->lost_at_scan = s->stats[STAT_LOST_RING_FULL];
        if (!st)
                st = perf_tasks_open_new(&s->tasks, lost, err);
        s->stats[SAMPLER_STAT_REFUSED] = s->tasks.refused;
        return st;
}

static bool is_scan_due(struct perf_sampler *s)
{
        uint64_t times;

        return s->timer >= 0 && read(s->timer, &times, sizeof times) == sizeof times;
}

static void poll_perf_sampler(struct sampler *base)
{
        struct perf_sampler *s = (struct perf_sampler *)base;
        struct epoll_event ready[16];

        (void)epoll_wait(s->epoll, ready, 16, 0); /* all buffers are read anyway */
        if (is_scan_due(s))
                (void)scan_for_processes(s, NULL); /* failures are counted and retried */
        else
                read_perf_buffers(s);
        notify_stale_processes(s);
}

/* ---- the sampler -------------------------------------------------------------------------- */

static enum status add_to_epoll(struct perf_sampler *s, int fd, struct error *err)
{
        struct epoll_event event = { .events = EPOLLIN };

        return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? error_os(err, errno, "cannot wait for perf events")
                                                                  : ST_OK;
}

static enum status open_perf_epoll(struct perf_sampler *s, struct error *err)
{
        static const struct itimerspec each_second = { .it_interval.tv_sec = 1, .it_value.tv_sec = 1 };
        enum status st;

        s->epoll = epoll_create1(EPOLL_CLOEXEC);
        s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (s->epoll < 0 || s->timer < 0 || timerfd_settime(s->timer, 0, &each_second, NULL) < 0)
                return error_os(err, errno, "cannot make a timer");
        st = add_to_epoll(s, s->timer, err);
        for (size_t i = 0; i < s->events.cpu_count && !st; i++)
                st = add_to_epoll(s, s->events.cpus[i].fd, err);
        return st;
}

static void describe_coverage_gaps(struct perf_sampler *s)
{
        snprintf(s->base.gaps, sizeof s->base.gaps, "%s%sthreads that live for less than a tick",
                 s->tasks.all_users ? "" : "other users' processes, ",
                 s->events.kernel ? "" : "time in the kernel and kernel stacks, ");
}

static unsigned count_online_cpus(const struct perf_sampler *s)
{
        long n = sysconf(_SC_NPROCESSORS_ONLN);

        return n > 0 ? (unsigned)n : (unsigned)s->events.cpu_count;
}

static enum status start_perf_sampler(struct sampler *base, const struct sampler_options *o, struct error *err)
{
        struct perf_sampler *s = (struct perf_sampler *)base;
        bool stacks = o->copy_stacks && o->on_deferred;
        enum status st;

        s->epoll = s->timer = -1;
        st = perf_events_init(o->frequency_hz, stacks, &s->events, err);
        if (st)
                return st;
        s->base.copies_stacks = stacks;
        s->copy = stacks ? calloc(1, sizeof *s->copy) : NULL;
        if (stacks && !s->copy)
                return error_no_memory(err);
        perf_tasks_init(&s->tasks, &s->events, &s->threads);
        s->next = calloc(s->events.cpu_count, sizeof *s->next);
        s->has_next = calloc(s->events.cpu_count, sizeof *s->has_next);
        s->tgids = calloc(o->tgid_count + 1, sizeof *s->tgids);
        if (!s->next || !s->has_next || !s->tgids)
                return error_no_memory(err);
        for (size_t i = 0; i < o->tgid_count; i++)
                s->tgids[i] = o->tgids[i];
        s->children = o->children; /* they inherit the events */
        s->tasks.tgids = s->tgids;
        s->tasks.tgid_count = o->tgid_count;
        s->tasks.all_users =
                privileges_have(CAP_SYS_PTRACE) || privileges_have(CAP_PERFMON) || privileges_have(CAP_SYS_ADMIN);
        st = open_perf_epoll(s, err);
        /* The second scan finds processes that a process without events started during the first scan. */
        for (int i = 0; i < 2 && !st; i++)
                st = scan_for_processes(s, err);
        base->cpu_count = count_online_cpus(s);
        base->has_kernel = s->events.kernel;
        describe_coverage_gaps(s);
        return st;
}

static void destroy_perf_sampler(struct sampler *base)
{
        struct perf_sampler *s = (struct perf_sampler *)base;

        perf_tasks_deinit(&s->tasks);
        perf_threads_deinit(&s->threads);
        perf_events_deinit(&s->events);
        sample_counts_deinit(&s->counts);
        if (s->epoll >= 0)
                close(s->epoll);
        if (s->timer >= 0)
                close(s->timer);
        free(s->copy);
        free(s->next);
        free(s->has_next);
        free(s->tgids);
        free(s);
}

static int get_perf_sampler_fd(const struct sampler *base)
{
        return ((const struct perf_sampler *)base)->epoll;
}

static void stop_perf_sampler(struct sampler *base)
{
        struct perf_sampler *s = (struct perf_sampler *)base;

        perf_tasks_stop(&s->tasks);
        close(s->timer);
        s->timer = -1;
}

static enum status drain_perf_sampler(struct sampler *base, struct sample_batch *ret, struct error *err)
{
        struct perf_sampler *s = (struct perf_sampler *)base;

        (void)err;
        base->cpu_count = count_online_cpus(s);
        sample_counts_take(&s->counts, ret);
        return ST_OK;
}

static enum status read_perf_stats(struct sampler *base, uint64_t ret[static SAMPLER_STAT_COUNT], struct error *err)
{
        (void)err;
        memcpy(ret, ((struct perf_sampler *)base)->stats, sizeof((struct perf_sampler *)base)->stats);
        return ST_OK;
}

const struct sampler_ops perf_sampler_ops = {
        .name = "perf",
        .kind = SAMPLER_PERF,
        .size = sizeof(struct perf_sampler),
        .start = start_perf_sampler,
        .destroy = destroy_perf_sampler,
        .fd = get_perf_sampler_fd,
        .poll = poll_perf_sampler,
        .stop = stop_perf_sampler,
        .drain = drain_perf_sampler,
        .stats = read_perf_stats,
};
