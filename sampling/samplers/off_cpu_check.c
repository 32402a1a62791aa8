/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/samplers/off_cpu_check.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>

enum status off_cpu_check_kernel(struct error *err)
{
        static const char *const tracepoints[] = {
                "sched_switch",
                "sched_wakeup",
#if defined(__x86_64__)
                "irq_work_entry",
#else
                "ipi_entry",
#endif
        };
        struct btf *types = btf__load_vmlinux_btf();
        enum status st = ST_OK;

        if (!types)
                return error_os(err, errno, "cannot read the types of the kernel");
        for (size_t i = 0; !st && i < sizeof tracepoints / sizeof *tracepoints; i++) {
                char name[64];

                snprintf(name, sizeof name, "btf_trace_%s", tracepoints[i]);
                if (btf__find_by_name_kind(types, name, BTF_KIND_TYPEDEF) < 0)
                        st = error_set(err, ST_UNSUPPORTED,
                                       "the kernel lacks the tracepoint %s, which '--off-cpu' needs", tracepoints[i]);
        }
        btf__free(types);
        return st;
}
