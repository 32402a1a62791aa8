/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/samplers/tracepoint_check.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>

/* @param names  NULL after the last one. */
static enum status check_tracepoints(const char *const *names, const char *option, struct error *err)
{
        struct btf *types = btf__load_vmlinux_btf();
        enum status st = ST_OK;

        if (!types)
                return error_os(err, errno, "cannot read the types of the kernel");
        for (; !st && *names; names++) {
                char type[64];

                snprintf(type, sizeof type, "btf_trace_%s", *names);
                if (btf__find_by_name_kind(types, type, BTF_KIND_TYPEDEF) < 0)
                        st = error_set(err, ST_UNSUPPORTED, "the kernel lacks the tracepoint %s, which '%s' needs",
                                       *names, option);
        }
        btf__free(types);
        return st;
}

enum status off_cpu_check_kernel(struct error *err)
{
        static const char *const names[] = {
                "sched_switch",
                "sched_wakeup",
#if defined(__x86_64__)
                "irq_work_entry",
#else
                "ipi_entry",
#endif
                NULL,
        };

        return check_tracepoints(names, "--off-cpu", err);
}

enum status latency_check_kernel(struct error *err)
{
        static const char *const names[] = { "sched_switch", NULL };

        return check_tracepoints(names, "--latency", err);
}
