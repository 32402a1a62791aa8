/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/samplers/cpu_interrupt.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BUFFER_PAGES 2 /* the header, and one page of records */

static size_t get_buffer_bytes(void)
{
        return BUFFER_PAGES * (size_t)sysconf(_SC_PAGESIZE);
}

enum status cpu_interrupt_open(int cpu, int map_fd, struct cpu_interrupt *ret, struct error *err)
{
        struct perf_event_attr attr = {
                .type = PERF_TYPE_SOFTWARE,
                .size = sizeof attr,
                .config = PERF_COUNT_SW_BPF_OUTPUT,
                .sample_type = PERF_SAMPLE_RAW,
                .sample_period = 1,
                .wakeup_events = 1,
        };
        struct cpu_interrupt i = { .event = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1,
                                                         PERF_FLAG_FD_CLOEXEC) };
        uint32_t key = (uint32_t)cpu;
        int e;

        if (i.event < 0 && (errno == ENODEV || errno == ENXIO))
                return error_set(err, ST_NOT_FOUND, "CPU %d is offline", cpu);
        if (i.event < 0)
                return error_os(err, errno, "cannot open an output event of CPU %d", cpu);
        /* Read-only: the kernel overwrites the oldest records. */
        i.mapping = mmap(NULL, get_buffer_bytes(), PROT_READ, MAP_SHARED, i.event, 0);
        if (i.mapping == MAP_FAILED) {
                e = errno;
                close(i.event);
                return error_os(err, e, "cannot map the output event of CPU %d", cpu);
        }
        if (bpf_map_update_elem(map_fd, &key, &i.event, BPF_ANY) < 0 || ioctl(i.event, PERF_EVENT_IOC_ENABLE, 0) < 0) {
                e = errno;
                cpu_interrupt_close(&i);
                return error_os(err, e, "cannot use the output event of CPU %d", cpu);
        }
        *ret = i;
        return ST_OK;
}

void cpu_interrupt_close(struct cpu_interrupt *i)
{
        if (i->event < 0)
                return;
        munmap(i->mapping, get_buffer_bytes());
        close(i->event);
        *i = (struct cpu_interrupt){ .event = -1 };
}
