/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling by perf events alone. Each CPU has a buffer with the records of all
 * followed processes that ran there. They are read in the order of their time
 * over all buffers, since what a process is (its name, its program) changes by
 * records too, and it moves between CPUs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "agent/perf_event.h"
#include "agent/perf_record.h"
#include "agent/perf_tasks.h"
#include "agent/perf_threads.h"
#include "agent/privileges.h"
#include "agent/sample_counts.h"
#include "agent/sampler_internal.h"

struct perf_sampler {
        struct sampler base;
        struct perf_events events;
        struct perf_threads threads;
        struct perf_tasks tasks;
        struct sample_counts counts;
        struct sample_walk kernel_stack, user_stack; /* scratch */
        struct perf_record *next;  /* owned; the next record of each buffer */
        bool *has_next;            /* owned */
        uint32_t *tgids;           /* owned */
        bool children;             /* of those are sampled too */
        uint64_t stats[SAMPLER_STAT_COUNT];
        uint64_t lost_at_list;     /* STAT_LOST_RING_FULL then */
        int epoll, timer;
        void (*on_process)(void *ctx, const struct sample_notice *notice);
        void (*on_late)(void *ctx, const struct sample_key *key, const struct sample_late *late);
        void *ctx;
        struct sample_late *late;  /* owned; scratch; NULL unless stacks are copied */
};

/* ---- records -------------------------------------------------------------------------- */

static bool is_wanted(const struct perf_sampler *s, uint32_t tgid)
{
        for (size_t i = 0; i < s->tasks.tgid_count; i++)
                if (s->tasks.tgids[i] == tgid)
                        return true;
        return s->children || s->tasks.tgid_count == 0;
}

/* Hand the sample over with its stack; its user half is walked by tables. */
static enum sample_stat hand_over(struct perf_sampler *s, struct sample_key *key, const struct perf_record *r)
{
        struct sample_late *late = s->late;
        struct unwind_regs regs;

        if (!sample_counts_stack(&s->counts, &s->kernel_stack, &key->kernel_stack))
                return STAT_LOST_STACKS_FULL;
        late->regs = r->registers;
        arch_unwind_regs(&r->registers, &regs);
        late->stack_start = regs.sp;
        late->stack_bytes = r->stack_bytes < sizeof late->stack ? (uint32_t)r->stack_bytes : sizeof late->stack;
        if (late->stack_bytes)
                memcpy(late->stack, r->stack, late->stack_bytes);
        s->stats[STAT_LATE]++;
        s->on_late(s->ctx, key, late);
        return STAT_SAMPLES;
}

static void count(struct perf_sampler *s, struct perf_task *task, const struct perf_record *r)
{
        bool with_stack = s->late && r->has_registers && !task->kernel_thread;
        struct sample_key key = { 0 };
        enum sample_stat result;

        perf_tasks_identify(task);
        perf_record_stacks(r, &s->kernel_stack, &s->user_stack);
        key.process = task->id;
        perf_threads_name(&s->threads, r->tid, r->tgid, key.comm);
        if (task->kernel_thread)
                key.flags |= SAMPLE_KERNEL_THREAD;
        else if (s->kernel_stack.frame_count && r->in_syscall)
                key.flags |= SAMPLE_IN_SYSCALL;
        result = with_stack ? hand_over(s, &key, r)
                            : sample_counts_add(&s->counts, &key, &s->kernel_stack, &s->user_stack);
        s->stats[result]++;
        if (result != STAT_SAMPLES)
                return;
        s->stats[STAT_NO_USER_STACK] += !with_stack && !task->kernel_thread && !s->user_stack.frame_count;
        s->stats[STAT_TRUNCATED] += s->kernel_stack.frame_count + s->user_stack.frame_count >= SAMPLE_KERNEL_STACK_MAX;
        task->stale = task->stale || !task->sampled;
        task->sampled = true;
}

static void learn(struct perf_sampler *s, const struct perf_record *r)
{
        struct perf_task *task = perf_tasks_record(&s->tasks, r);

        perf_threads_record(&s->threads, r);
        s->stats[STAT_LOST_RING_FULL] += r->lost;
        if (!task || !is_wanted(s, r->tgid))
                return;
        if (r->kind == PERF_RECORD_OF_SAMPLE)
                count(s, task, r);
        else if (r->kind == PERF_RECORD_OF_MAPPING)
                task->stale = true;
}

static enum perf_record_user record_user(const struct perf_sampler *s)
{
        return s->events.stacks ? PERF_RECORD_USER_STACK
               : s->events.kernel ? PERF_RECORD_USER_SYSCALL
                                  : PERF_RECORD_USER_NOTHING;
}

/* Pass what cannot be parsed: the ring knows where the next record begins. */
static void advance(struct perf_sampler *s, size_t i)
{
        const uint8_t *bytes;
        size_t n;

        do {
                s->has_next[i] = perf_ring_next(&s->events.cpus[i].ring, &bytes, &n);
                if (!s->has_next[i])
                        return;
                if (!perf_record_parse(bytes, n, record_user(s), &s->next[i], NULL))
                        return;
                s->stats[STAT_LOST_RING_FULL]++;
        } while (true);
}

static void read_buffers(struct perf_sampler *s)
{
        size_t cpus = s->events.cpu_count;

        for (size_t i = 0; i < cpus; i++)
                perf_ring_begin(&s->events.cpus[i].ring);
        for (size_t i = 0; i < cpus; i++)
                advance(s, i);
        for (;;) {
                size_t first = cpus;

                for (size_t i = 0; i < cpus; i++)
                        if (s->has_next[i] && (first == cpus || s->next[i].time_ns < s->next[first].time_ns))
                                first = i;
                if (first == cpus)
                        break;
                learn(s, &s->next[first]);
                advance(s, first);
        }
        for (size_t i = 0; i < cpus; i++) {
                struct perf_ring *ring = &s->events.cpus[i].ring;

                perf_ring_end(ring);
                s->stats[STAT_LOST_RING_FULL] += ring->broken;
                ring->broken = 0;
        }
}

/* Tell of processes whose mappings should be read: sampled first, or with new ones since. */
static void tell(struct perf_sampler *s)
{
        for (size_t i = 0; i < s->tasks.count; i++) {
                struct perf_task *task = &s->tasks.items[i];
                struct sample_notice notice = { .process = task->id };

                if (!task->sampled || !task->stale)
                        continue;
                task->stale = false;
                if (s->on_process)
                        s->on_process(s->ctx, &notice);
        }
}

/* ---- processes --------------------------------------------------------------------------- */

static enum status look_for_processes(struct perf_sampler *s, struct error *err)
{
        enum status st = perf_tasks_list(&s->tasks, err);
        bool lost;

        read_buffers(s);
        lost = s->stats[STAT_LOST_RING_FULL] != s->lost_at_list;
        s->lost_at_list = s->stats[STAT_LOST_RING_FULL];
        if (!st)
                st = perf_tasks_follow(&s->tasks, lost, err);
        s->stats[SAMPLER_STAT_REFUSED] = s->tasks.refused;
        return st;
}

static bool timer_is_due(struct perf_sampler *s)
{
        uint64_t times;

        return s->timer >= 0 && read(s->timer, &times, sizeof times) == sizeof times;
}

static void poll_perf(struct sampler *base)
{
        struct perf_sampler *s = (struct perf_sampler *)base;
        struct epoll_event ready[16];

        (void)epoll_wait(s->epoll, ready, 16, 0); /* what is ready is looked at anyway */
        if (timer_is_due(s))
                (void)look_for_processes(s, NULL); /* what failed is counted, and tried again */
        else
                read_buffers(s);
        tell(s);
}

/* ---- the sampler -------------------------------------------------------------------------- */

static enum status watch(struct perf_sampler *s, int fd, struct error *err)
{
        struct epoll_event event = { .events = EPOLLIN };

        return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? error_os(err, errno, "cannot wait for perf events")
                                                                  : ST_OK;
}

static enum status open_waiting(struct perf_sampler *s, struct error *err)
{
        static const struct itimerspec each_second = { .it_interval.tv_sec = 1, .it_value.tv_sec = 1 };
        enum status st;

        s->epoll = epoll_create1(EPOLL_CLOEXEC);
        s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (s->epoll < 0 || s->timer < 0 || timerfd_settime(s->timer, 0, &each_second, NULL) < 0)
                return error_os(err, errno, "cannot make a timer");
        st = watch(s, s->timer, err);
        for (size_t i = 0; i < s->events.cpu_count && !st; i++)
                st = watch(s, s->events.cpus[i].fd, err);
        return st;
}

static void describe(struct perf_sampler *s)
{
        snprintf(s->base.gaps, sizeof s->base.gaps, "%s%sthreads that live for less than a tick",
                 s->tasks.all_users ? "" : "other users' processes, ",
                 s->events.kernel ? "" : "time in the kernel and kernel stacks, ");
}

static enum status start(struct perf_sampler *s, const struct sampler_options *o, struct error *err)
{
        bool stacks = o->copy_stacks && o->on_late;
        enum status st = perf_events_init(o->frequency_hz, stacks, &s->events, err);

        if (st)
                return st;
        s->base.copies_stacks = stacks;
        s->late = stacks ? calloc(1, sizeof *s->late) : NULL;
        if (stacks && !s->late)
                return error_no_memory(err);
        perf_tasks_init(&s->tasks, &s->events, &s->threads);
        s->next = calloc(s->events.cpu_count, sizeof *s->next);
        s->has_next = calloc(s->events.cpu_count, sizeof *s->has_next);
        s->tgids = calloc(o->tgid_count + 1, sizeof *s->tgids);
        if (!s->next || !s->has_next || !s->tgids)
                return error_no_memory(err);
        for (size_t i = 0; i < o->tgid_count; i++)
                s->tgids[i] = o->tgids[i];
        s->children = o->children; /* they have inherited the events */
        s->tasks.tgids = s->tgids;
        s->tasks.tgid_count = o->tgid_count;
        s->tasks.all_users = privileges_have(CAP_SYS_PTRACE) || privileges_have(CAP_PERFMON) ||
                             privileges_have(CAP_SYS_ADMIN);
        st = open_waiting(s, err);
        /* The second look finds what was started by a process during the first, before it was open. */
        for (int i = 0; i < 2 && !st; i++)
                st = look_for_processes(s, err);
        return st;
}

static void destroy(struct sampler *base)
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
        free(s->late);
        free(s->next);
        free(s->has_next);
        free(s->tgids);
        free(s);
}

static int readable_fd(const struct sampler *base)
{
        return ((const struct perf_sampler *)base)->epoll;
}

static void stop(struct sampler *base)
{
        struct perf_sampler *s = (struct perf_sampler *)base;

        perf_tasks_stop(&s->tasks);
        close(s->timer);
        s->timer = -1;
}

static unsigned online_cpus(const struct perf_sampler *s)
{
        long n = sysconf(_SC_NPROCESSORS_ONLN);

        return n > 0 ? (unsigned)n : (unsigned)s->events.cpu_count;
}

static enum status drain(struct sampler *base, struct sample_batch *ret, struct error *err)
{
        struct perf_sampler *s = (struct perf_sampler *)base;

        (void)err;
        base->cpu_count = online_cpus(s);
        sample_counts_take(&s->counts, ret);
        return ST_OK;
}

static enum status stats(struct sampler *base, uint64_t ret[static SAMPLER_STAT_COUNT], struct error *err)
{
        (void)err;
        memcpy(ret, ((struct perf_sampler *)base)->stats, sizeof ((struct perf_sampler *)base)->stats);
        return ST_OK;
}

static const struct sampler_ops OPS = {
        .name = "perf",
        .kind = SAMPLER_PERF,
        .destroy = destroy,
        .fd = readable_fd,
        .poll = poll_perf,
        .stop = stop,
        .drain = drain,
        .stats = stats,
};

enum status sampler_create_perf(const struct sampler_options *o, struct sampler **ret, struct error *err)
{
        struct perf_sampler *s = calloc(1, sizeof *s);
        enum status st;

        if (!s)
                return error_no_memory(err);
        s->base.ops = &OPS;
        s->epoll = s->timer = -1;
        s->on_process = o->on_process;
        s->on_late = o->on_late;
        s->ctx = o->ctx;
        st = start(s, o, err);
        if (st) {
                destroy(&s->base);
                return st;
        }
        s->base.cpu_count = online_cpus(s);
        s->base.has_kernel = s->events.kernel;
        describe(s);
        *ret = &s->base;
        return ST_OK;
}
