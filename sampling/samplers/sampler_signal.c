/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampler of its own process, without privileges or perf events: the seccomp filters of systemd and container runtimes
 * forbid perf_event_open(). Each thread has a timer on its own CPU clock, which sends SIGPROF to that thread; a timer
 * of the process would charge the main thread on kernels before 6.4. The handler copies registers and stack into a
 * slot; sampler_poll() delivers the slots as deferred samples.
 *
 * Source: timer_create(2), clock_getcpuclockid(3), process_vm_readv(2), signal-safety(7).
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "sampling/processes/process_read.h"
#include "sampling/samplers/sampler_internal.h"

#define SECOND_NS INT64_C(1000000000)
#define POLL_INTERVAL_NS (SECOND_NS / 20) /* threads with a shorter life may be missed */
#define SLOTS_MIN 64                      /* samples between two polls */
#define STACK_PAGE_BYTES 4096
#define STACK_PIECES (STACK_COPY_MAX_BYTES / STACK_PAGE_BYTES + 1)
#define TICKS_MAX 100 /* counted per signal: later ticks of a delayed signal did not belong to this stack */
#define NO_TIMER ((timer_t)-1)

enum slot_state { SLOT_FREE, SLOT_TAKEN, SLOT_FULL };

struct signal_slot {
        atomic_int state; /* enum slot_state */
        uint32_t ticks;   /* expirations of the timer that this sample stands for */
        char comm[SAMPLE_COMM_SIZE];
        struct stack_copy copy;
};

struct thread_timer {
        pid_t tid;
        timer_t timer; /* NO_TIMER: the thread has ended, or the limit of pending signals is reached */
        bool is_alive; /* seen by the scan that is running */
};

struct signal_sampler {
        struct sampler base;
        struct sample_process process; /* the own process */
        pid_t pid;
        int64_t period_ns;
        struct signal_slot *slots; /* owned */
        size_t slot_count;
        atomic_size_t next_slot; /* where the next handler looks first */
        atomic_uint_fast64_t lost;
        struct thread_timer *timers; /* owned */
        size_t timer_count, timer_capacity;
        DIR *threads; /* owned; /proc/self/task */
        int timer;    /* timerfd of the polls */
        bool has_scanned;
        uint64_t samples, refused;
};

/* The sampler of the signal handlers; NULL: handlers do nothing. */
static _Atomic(struct signal_sampler *) active_sampler;
static atomic_uint running_handlers;

/* ---- the handler: async-signal-safe calls only ---- */

static struct signal_slot *claim_sample_slot(struct signal_sampler *s)
{
        size_t first = atomic_fetch_add_explicit(&s->next_slot, 1, memory_order_relaxed);

        for (size_t i = 0; i < s->slot_count; i++) {
                struct signal_slot *slot = &s->slots[(first + i) % s->slot_count];
                int free_state = SLOT_FREE;

                if (atomic_compare_exchange_strong_explicit(&slot->state, &free_state, SLOT_TAKEN, memory_order_acquire,
                                                            memory_order_relaxed))
                        return slot;
        }
        return NULL;
}

#if defined(__x86_64__)
static void read_signal_registers(const ucontext_t *from, struct arch_regs *to)
{
        const greg_t *r = from->uc_mcontext.gregs;

        *to = (struct arch_regs){ .r15 = (uint64_t)r[REG_R15],
                                  .r14 = (uint64_t)r[REG_R14],
                                  .r13 = (uint64_t)r[REG_R13],
                                  .r12 = (uint64_t)r[REG_R12],
                                  .rbp = (uint64_t)r[REG_RBP],
                                  .rbx = (uint64_t)r[REG_RBX],
                                  .r11 = (uint64_t)r[REG_R11],
                                  .r10 = (uint64_t)r[REG_R10],
                                  .r9 = (uint64_t)r[REG_R9],
                                  .r8 = (uint64_t)r[REG_R8],
                                  .rax = (uint64_t)r[REG_RAX],
                                  .rcx = (uint64_t)r[REG_RCX],
                                  .rdx = (uint64_t)r[REG_RDX],
                                  .rsi = (uint64_t)r[REG_RSI],
                                  .rdi = (uint64_t)r[REG_RDI],
                                  .system_call = UINT64_MAX,
                                  .rip = (uint64_t)r[REG_RIP],
                                  .cs = ARCH_CS_64,
                                  .eflags = (uint64_t)r[REG_EFL],
                                  .rsp = (uint64_t)r[REG_RSP] };
}

/* "syscall" */
static const uint8_t system_call_code[] = { 0x0f, 0x05 };
#else
static void read_signal_registers(const ucontext_t *from, struct arch_regs *to)
{
        *to = (struct arch_regs){ .sp = from->uc_mcontext.sp,
                                  .pc = from->uc_mcontext.pc,
                                  .pstate = from->uc_mcontext.pstate,
                                  .system_call = -1 };
        for (size_t i = 0; i < sizeof to->x / sizeof *to->x; i++)
                to->x[i] = from->uc_mcontext.regs[i];
}

/* "svc #0" */
static const uint8_t system_call_code[] = { 0x01, 0x00, 0x00, 0xd4 };
#endif

/* process_vm_readv() with one piece per page stops at the first page that is not mapped, and cannot fault. */
static void copy_own_stack(pid_t pid, struct stack_copy *to)
{
        struct iovec here = { to->stack, sizeof to->stack }, pieces[STACK_PIECES];
        uint64_t at = to->stack_start, end = at + sizeof to->stack;
        size_t count = 0;
        ssize_t n;

        while (at < end && count < STACK_PIECES) {
                uint64_t page_end = (at | (STACK_PAGE_BYTES - 1)) + 1, stop = page_end < end ? page_end : end;

                pieces[count++] = (struct iovec){ (void *)(uintptr_t)at, stop - at };
                at = stop;
        }
        n = process_vm_readv(pid, &here, 1, pieces, count, 0);
        to->stack_bytes = n > 0 ? (uint32_t)n : 0;
}

static void take_signal_sample(struct signal_sampler *s, int overrun, const ucontext_t *context)
{
        uint32_t ticks = overrun <= 0 ? 1 : overrun < TICKS_MAX ? (uint32_t)overrun + 1 : TICKS_MAX;
        struct signal_slot *slot = claim_sample_slot(s);
        struct unwind_regs regs;

        if (!slot) {
                atomic_fetch_add_explicit(&s->lost, ticks, memory_order_relaxed);
                return;
        }
        slot->ticks = ticks;
        memset(slot->comm, 0, sizeof slot->comm);
        (void)prctl(PR_GET_NAME, slot->comm);
        read_signal_registers(context, &slot->copy.regs);
        arch_unwind_regs(&slot->copy.regs, &regs);
        slot->copy.stack_start = regs.sp - STACK_COPY_RED_ZONE_BYTES;
        copy_own_stack(s->pid, &slot->copy);
        atomic_store_explicit(&slot->state, SLOT_FULL, memory_order_release);
}

static void handle_profile_signal(int number, siginfo_t *info, void *context)
{
        int saved_errno = errno;
        struct signal_sampler *s;

        (void)number;
        atomic_fetch_add(&running_handlers, 1);
        s = atomic_load(&active_sampler);
        if (s && info->si_code == SI_TIMER)
                take_signal_sample(s, info->si_overrun, context);
        atomic_fetch_sub(&running_handlers, 1);
        errno = saved_errno;
}

/* ---- timers of threads ---- */

/* CPU clock of a thread, as pthread_getcpuclockid() encodes it. */
static clockid_t thread_cpu_clock(pid_t tid)
{
        return (clockid_t)(~(unsigned)tid << 3 | 6);
}

/*
 * The first tick comes at a random time of the first period, so that threads with a shorter life are counted in
 * proportion. A thread that started after the last scan is charged from its start.
 */
static timer_t start_thread_timer(struct signal_sampler *s, pid_t tid)
{
        struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
        int64_t first_ns = 1 + random() % s->period_ns;
        const struct itimerspec ticks = {
                .it_interval = { s->period_ns / SECOND_NS, s->period_ns % SECOND_NS },
                .it_value = { first_ns / SECOND_NS, first_ns % SECOND_NS },
        };
        timer_t timer;

        event._sigev_un._tid = tid;
        if (timer_create(thread_cpu_clock(tid), &event, &timer)) {
                s->refused += errno != EINVAL; /* EINVAL: the thread has ended */
                return NO_TIMER;
        }
        if (!timer_settime(timer, s->has_scanned ? TIMER_ABSTIME : 0, &ticks, NULL))
                return timer;
        (void)timer_delete(timer);
        return NO_TIMER;
}

/* Threads in /proc are in the order of their start, like the timers: a search begins after the last thread found. */
static void note_thread(struct signal_sampler *s, pid_t tid, size_t *at)
{
        for (size_t i = 0; i < s->timer_count; i++) {
                size_t candidate = (*at + i) % s->timer_count;

                if (s->timers[candidate].tid != tid)
                        continue;
                s->timers[candidate].is_alive = true;
                *at = candidate + 1;
                return;
        }
        if (s->timer_count == LIMIT_SIGNAL_THREADS || !array_reserve(&s->timers, &s->timer_capacity, s->timer_count)) {
                s->refused++;
                return;
        }
        s->timers[s->timer_count] = (struct thread_timer){ tid, start_thread_timer(s, tid), true };
        s->timer_count++;
}

static void stop_thread_timer(const struct thread_timer *t)
{
        if (t->timer != NO_TIMER)
                (void)timer_delete(t->timer);
}

static void scan_own_threads(struct signal_sampler *s)
{
        struct dirent *entry;
        size_t at = 0, kept = 0;

        for (size_t i = 0; i < s->timer_count; i++)
                s->timers[i].is_alive = false;
        rewinddir(s->threads);
        while ((entry = readdir(s->threads)))
                if (entry->d_name[0] != '.')
                        note_thread(s, (pid_t)strtol(entry->d_name, NULL, 10), &at);
        for (size_t i = 0; i < s->timer_count; i++) {
                if (s->timers[i].is_alive)
                        s->timers[kept++] = s->timers[i];
                else
                        stop_thread_timer(&s->timers[i]);
        }
        s->timer_count = kept;
        s->has_scanned = true;
}

/* ---- the sampler ---- */

/* A thread that was interrupted in the kernel is at the instruction after its system call. */
static bool is_after_system_call(const struct signal_sampler *s, const struct stack_copy *copy)
{
        uint8_t code[sizeof system_call_code];
        struct iovec here = { code, sizeof code }, there = { NULL, sizeof code };
        struct unwind_regs regs;

        arch_unwind_regs(&copy->regs, &regs);
        there.iov_base = (void *)(uintptr_t)(regs.pc - sizeof code);
        return process_vm_readv(s->pid, &here, 1, &there, 1, 0) == sizeof code &&
               memcmp(code, system_call_code, sizeof code) == 0;
}

static void deliver_slot(struct signal_sampler *s, const struct signal_slot *slot)
{
        struct sample_key key = { .process = s->process };

        memcpy(key.comm, slot->comm, sizeof key.comm);
        if (is_after_system_call(s, &slot->copy))
                key.flags |= SAMPLE_IN_SYSCALL;
        for (uint32_t i = 0; i < slot->ticks; i++)
                s->base.on_deferred(s->base.ctx, &key, &(struct sample_weight){ 0 }, &slot->copy);
        s->samples += slot->ticks;
}

static void deliver_full_slots(struct signal_sampler *s)
{
        for (size_t i = 0; i < s->slot_count; i++) {
                struct signal_slot *slot = &s->slots[i];

                if (atomic_load_explicit(&slot->state, memory_order_acquire) != SLOT_FULL)
                        continue;
                deliver_slot(s, slot);
                atomic_store_explicit(&slot->state, SLOT_FREE, memory_order_release);
        }
}

static void poll_signal_sampler(struct sampler *base)
{
        struct signal_sampler *s = (struct signal_sampler *)base;
        uint64_t times;

        if (s->timer >= 0 && read(s->timer, &times, sizeof times) == sizeof times)
                scan_own_threads(s);
        deliver_full_slots(s);
}

/* Some seccomp filters forbid process_vm_readv(), even on the calling process. */
static enum status check_own_memory(const struct signal_sampler *s, struct error *err)
{
        uint8_t byte = 0, copy;
        struct iovec here = { &copy, 1 }, there = { &byte, 1 };

        return process_vm_readv(s->pid, &here, 1, &there, 1, 0) == 1
                       ? ST_OK
                       : error_os(err, errno, "cannot copy stacks: process_vm_readv() is refused");
}

static enum status open_poll_timer(struct signal_sampler *s, struct error *err)
{
        static const struct itimerspec each = { .it_interval.tv_nsec = POLL_INTERVAL_NS,
                                                .it_value.tv_nsec = POLL_INTERVAL_NS };

        s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        s->threads = opendir("/proc/self/task");
        if (s->timer < 0 || timerfd_settime(s->timer, 0, &each, NULL) < 0)
                return error_os(err, errno, "cannot make a timer");
        return s->threads ? ST_OK : error_os(err, errno, "cannot read '/proc/self/task'");
}

/* SA_RESTART: the kernel restarts interrupted system calls where it can; poll() and sleeps return early. */
static enum status install_profile_handler(struct signal_sampler *s, struct error *err)
{
        struct sigaction action = { .sa_sigaction = handle_profile_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
        struct signal_sampler *none = NULL;

        if (!atomic_compare_exchange_strong(&active_sampler, &none, s))
                return error_set(err, ST_BUSY, "this process already samples itself");
        sigemptyset(&action.sa_mask);
        return sigaction(SIGPROF, &action, NULL) ? error_os(err, errno, "cannot handle SIGPROF") : ST_OK;
}

static enum status start_signal_sampler(struct sampler *base, const struct sampler_options *o, struct error *err)
{
        struct signal_sampler *s = (struct signal_sampler *)base;
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        enum status st;

        s->timer = -1;
        s->pid = getpid();
        assert(o->copy_stacks && o->on_deferred && o->tgid_count == 1 && o->tgids[0] == (uint32_t)s->pid);
        base->cpu_count = cpus > 0 ? (unsigned)cpus : 1;
        base->copies_stacks = true;
        snprintf(base->gaps, sizeof base->gaps,
                 "other processes, kernel stacks, threads that live for less than 50 ms");
        s->period_ns = SECOND_NS / (int64_t)o->frequency_hz;
        s->slot_count = base->cpu_count * 4 > SLOTS_MIN ? base->cpu_count * 4 : SLOTS_MIN;
        s->slots = calloc(s->slot_count, sizeof *s->slots);
        if (!s->slots)
                return error_no_memory(err);
        if (!process_find_pid((uint32_t)s->pid, &s->process))
                return error_set(err, ST_OS, "cannot read '/proc/self/stat'");
        st = check_own_memory(s, err);
        if (!st)
                st = open_poll_timer(s, err);
        if (!st)
                st = install_profile_handler(s, err);
        if (!st)
                scan_own_threads(s);
        return st;
}

static void stop_signal_sampler(struct sampler *base)
{
        struct signal_sampler *s = (struct signal_sampler *)base;

        for (size_t i = 0; i < s->timer_count; i++)
                stop_thread_timer(&s->timers[i]);
        s->timer_count = 0;
        if (s->timer >= 0)
                close(s->timer);
        s->timer = -1;
}

static void destroy_signal_sampler(struct sampler *base)
{
        struct signal_sampler *s = (struct signal_sampler *)base, *expected = s;

        stop_signal_sampler(base);
        if (atomic_compare_exchange_strong(&active_sampler, &expected, NULL)) {
                signal(SIGPROF, SIG_IGN); /* discards pending signals */
                while (atomic_load(&running_handlers))
                        sched_yield();
        }
        if (s->threads)
                closedir(s->threads);
        free(s->timers);
        free(s->slots);
        free(s);
}

static int get_signal_sampler_fd(const struct sampler *base)
{
        return ((const struct signal_sampler *)base)->timer;
}

/* No counts: all samples are delivered as deferred samples. */
static enum status drain_signal_sampler(struct sampler *base, struct sample_batch *ret, struct error *err)
{
        (void)base;
        (void)err;
        *ret = (struct sample_batch){ 0 };
        return ST_OK;
}

static enum status read_signal_stats(struct sampler *base, uint64_t ret[static SAMPLER_STAT_COUNT], struct error *err)
{
        struct signal_sampler *s = (struct signal_sampler *)base;

        (void)err;
        memset(ret, 0, SAMPLER_STAT_COUNT * sizeof *ret);
        ret[STAT_SAMPLES] = ret[STAT_DEFERRED] = s->samples;
        ret[STAT_LOST_RING_FULL] = atomic_load(&s->lost);
        ret[SAMPLER_STAT_REFUSED] = s->refused;
        return ST_OK;
}

const struct sampler_ops signal_sampler_ops = {
        .name = "signal",
        .kind = SAMPLER_SIGNAL,
        .size = sizeof(struct signal_sampler),
        .start = start_signal_sampler,
        .destroy = destroy_signal_sampler,
        .fd = get_signal_sampler_fd,
        .poll = poll_signal_sampler,
        .stop = stop_signal_sampler,
        .drain = drain_signal_sampler,
        .stats = read_signal_stats,
};
