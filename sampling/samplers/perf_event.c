/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/samplers/perf_event.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <asm/perf_regs.h>
#endif

#include "common/files/file.h"
#include "common/files/open_files.h"
#include "common/limits.h"
#include "common/memory/buf.h"
#include "sampling/objects/text_line.h"
#include "sampling/samplers/perf_record.h"

#define RING_BYTES_MIN KiB(32)
#define OTHER_FILES 128 /* descriptors reserved for everything else */
#define WAKEUPS_HZ 50   /* maximum per CPU */

#if defined(__x86_64__)
#define USER_REGISTERS                                                                                                 \
        (UINT64_C(1) << PERF_REG_X86_CX | UINT64_C(1) << PERF_REG_X86_IP | UINT64_C(1) << PERF_REG_X86_FLAGS |         \
         UINT64_C(1) << PERF_REG_X86_R11)
#endif

static int open_perf_event(struct perf_event_attr *attr, pid_t tid, int cpu)
{
        return (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static struct perf_event_attr make_clock_attr(const struct perf_events *e, bool kernel)
{
        uint64_t frequency_hz = e->frequency_hz;
        struct perf_event_attr attr = {
                .type = PERF_TYPE_SOFTWARE,
                .size = sizeof attr,
                .config = PERF_COUNT_SW_TASK_CLOCK,
                .sample_period = 1000000000 / frequency_hz,
                .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN,
                .inherit = 1,
                .exclude_kernel = !kernel,
                .exclude_hv = !kernel,
                .mmap = 1,
                .mmap2 = 1,
                .comm = 1,
                .comm_exec = 1,
                .task = 1,
                .sample_id_all = 1,
                .use_clockid = 1,
                .clockid = CLOCK_MONOTONIC,
                .wakeup_events = (uint32_t)(frequency_hz > WAKEUPS_HZ ? frequency_hz / WAKEUPS_HZ : 1),
        };

        if (e->stacks) {
                attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
                attr.sample_regs_user = PERF_RECORD_ALL_REGISTERS;
                attr.sample_stack_user = PERF_EVENT_STACK_BYTES;
                attr.exclude_callchain_user = 1;
                return attr;
        }
#if defined(__x86_64__)
        if (kernel) {
                attr.sample_type |= PERF_SAMPLE_REGS_USER;
                attr.sample_regs_user = USER_REGISTERS;
        }
#endif
        return attr;
}

static uint64_t read_sysctl_number(const char *path, uint64_t otherwise)
{
        _cleanup_buf_ struct buf text = { 0 };
        struct text_line line;
        uint64_t v;

        buf_init(&text, KiB(4));
        if (file_read(path, &text, NULL) || !text.size)
                return otherwise;
        line = (struct text_line){ (const char *)text.data, (const char *)text.data + text.size };
        return text_number(&line, 10, &v) ? v : otherwise;
}

/* ---- rights ---- */

static enum status explain_refusal(int e, struct error *err)
{
        uint64_t paranoid = read_sysctl_number("/proc/sys/kernel/perf_event_paranoid", 0);

        if (e == ENOSYS)
                return error_os(err, e, "this kernel has no perf events (CONFIG_PERF_EVENTS)");
        if ((e == EACCES || e == EPERM) && paranoid > 2)
                return error_os(err, e,
                                "kernel.perf_event_paranoid is %llu: as root, set it to 2 "
                                "(sysctl kernel.perf_event_paranoid=2)",
                                (unsigned long long)paranoid);
        if (e == EACCES || e == EPERM)
                return error_os(err, e,
                                "cannot open a perf event: a seccomp profile or security module denies "
                                "perf_event_open; allow it");
        return error_os(err, e, "cannot open a perf event");
}

static enum status probe_perf_rights(struct perf_events *e, struct error *err)
{
        for (int kernel = 1; kernel >= 0; kernel--) {
                struct perf_event_attr attr = make_clock_attr(e, kernel);
                int fd = open_perf_event(&attr, 0, e->cpus[0].cpu);

                if (fd >= 0) {
                        close(fd);
                        e->kernel = kernel;
                        return ST_OK;
                }
                if ((errno != EACCES && errno != EPERM) || !kernel)
                        return explain_refusal(errno, err);
        }
        return ST_OK;
}

/* ---- buffers -------------------------------------------------------------------------- */

/* Map as much as kernel.perf_event_mlock_kb allows per CPU, less when this user has other buffers. */
static enum status map_perf_ring(struct perf_cpu *c, struct error *err)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = LIMIT_AGENT_PERF_RING_BYTES;
        uint64_t granted_kb = read_sysctl_number("/proc/sys/kernel/perf_event_mlock_kb", 516);

        while (bytes > RING_BYTES_MIN && bytes + page > granted_kb * 1024)
                bytes /= 2;
        for (;; bytes /= 2) {
                void *m = mmap(NULL, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);

                if (m != MAP_FAILED) {
                        c->mapping = m;
                        c->mapping_bytes = page + bytes;
                        return perf_ring_init(&c->ring, m, (uint8_t *)m + page, bytes) ? ST_OK : error_no_memory(err);
                }
                if (errno != EPERM || bytes <= RING_BYTES_MIN)
                        return error_os(err, errno,
                                        "cannot map a perf buffer of %zu bytes for CPU %d: end other "
                                        "profilers of this user or raise kernel.perf_event_mlock_kb",
                                        bytes, c->cpu);
        }
}

static enum status open_cpu_buffer(struct perf_events *e, int cpu, struct error *err)
{
        struct perf_event_attr attr = make_clock_attr(e, false);
        struct perf_cpu *c = &e->cpus[e->cpu_count];

        attr.config = PERF_COUNT_SW_DUMMY;
        attr.sample_period = 0;
        attr.sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
        attr.sample_regs_user = 0;
        attr.sample_stack_user = 0;
        attr.inherit = attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 0;
        *c = (struct perf_cpu){ .cpu = cpu, .fd = open_perf_event(&attr, 0, cpu) };
        if (c->fd < 0)
                return errno == ENODEV || errno == ENXIO || errno == EINVAL
                               ? ST_OK
                               : explain_refusal(errno, err); /* no such CPU */
        e->cpu_count++;
        return map_perf_ring(c, err);
}

static enum status open_cpu_buffers(struct perf_events *e, struct error *err)
{
        long cpus = sysconf(_SC_NPROCESSORS_CONF);
        uint64_t files;
        enum status st = ST_OK;

        e->cpus = calloc(cpus > 0 ? (size_t)cpus : 1, sizeof *e->cpus);
        if (!e->cpus)
                return error_no_memory(err);
        for (int cpu = 0; cpu < cpus && !st; cpu++)
                st = open_cpu_buffer(e, cpu, err);
        if (!st && !e->cpu_count)
                st = error_set(err, ST_OS, "no CPU has a perf event");
        if (!st)
                st = probe_perf_rights(e, err);
        if (st)
                return st;
        files = raise_open_files_limit(UINT64_MAX);
        if (!files)
                return error_os(err, errno, "cannot read the limit of open files");
        e->open_max = files < OTHER_FILES               ? 0
                      : files > LIMIT_AGENT_PERF_EVENTS ? LIMIT_AGENT_PERF_EVENTS
                                                        : files - OTHER_FILES;
        return ST_OK;
}

enum status perf_events_init(uint64_t frequency_hz, bool stacks, struct perf_events *ret, struct error *err)
{
        struct perf_events e = { .frequency_hz = frequency_hz, .stacks = stacks };
        enum status st = open_cpu_buffers(&e, err);

        if (st)
                perf_events_deinit(&e);
        else
                *ret = e;
        return st;
}

void perf_events_deinit(struct perf_events *e)
{
        for (size_t i = 0; i < e->cpu_count; i++) {
                perf_ring_deinit(&e->cpus[i].ring);
                if (e->cpus[i].mapping)
                        munmap(e->cpus[i].mapping, e->cpus[i].mapping_bytes);
                close(e->cpus[i].fd);
        }
        free(e->cpus);
        *e = (struct perf_events){ 0 };
}

/* ---- threads ----------------------------------------------------------------------------- */

static enum status open_thread_event(struct perf_events *e, pid_t tid, const struct perf_cpu *c, int *ret,
                                     struct error *err)
{
        struct perf_event_attr attr = make_clock_attr(e, e->kernel);
        int fd;

        if (e->open_count >= e->open_max)
                return error_set(err, ST_BUSY, "%zu perf events are open, which is the limit", e->open_count);
        fd = open_perf_event(&attr, tid, c->cpu);
        if (fd < 0 && errno == ESRCH)
                return error_set(err, ST_NOT_FOUND, "thread %d has exited", (int)tid);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE))
                return error_set(err, ST_BUSY, "cannot open more than %zu perf events", e->open_count);
        if (fd < 0)
                return error_os(err, errno, "cannot sample thread %d", (int)tid);
        if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, c->fd) < 0) {
                int os = errno;

                close(fd);
                return error_os(err, os, "cannot sample thread %d into the buffer of CPU %d", (int)tid, c->cpu);
        }
        e->open_count++;
        *ret = fd;
        return ST_OK;
}

enum status perf_events_open(struct perf_events *e, pid_t tid, int *fds_ret, struct error *err)
{
        for (size_t i = 0; i < e->cpu_count; i++) {
                enum status st = open_thread_event(e, tid, &e->cpus[i], &fds_ret[i], err);

                if (st) {
                        while (i-- > 0)
                                perf_events_close(e, fds_ret[i]);
                        return st;
                }
        }
        return ST_OK;
}

void perf_events_close(struct perf_events *e, int fd)
{
        assert(e->open_count);
        close(fd);
        e->open_count--;
}
