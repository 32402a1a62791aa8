/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/samplers/tracepoint_check.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>

/* Without CONFIG_SCHED_INFO the structure is empty. */
static bool has_run_delay(const struct btf *types)
{
        int id = btf__find_by_name_kind(types, "sched_info", BTF_KIND_STRUCT);

        return id > 0 && btf_vlen(btf__type_by_id(types, (unsigned)id)) > 0;
}

/* @param names  NULL after the last one. */
static enum status check_tracepoints(const struct btf *types, const char *const *names, const char *option,
                                     struct error *err)
{
        enum status st = ST_OK;

        for (; !st && *names; names++) {
                char type[64];

                snprintf(type, sizeof type, "btf_trace_%s", *names);
                if (btf__find_by_name_kind(types, type, BTF_KIND_TYPEDEF) < 0)
                        st = error_set(err, ST_UNSUPPORTED, "the kernel lacks the tracepoint %s, which '%s' needs",
                                       *names, option);
        }
        return st;
}

static enum status load_kernel_types(struct btf **ret, struct error *err)
{
        *ret = btf__load_vmlinux_btf();
        return *ret ? ST_OK : error_os(err, errno, "cannot read the types of the kernel");
}

enum status off_cpu_check_kernel(struct error *err)
{
        static const char *const names[] = {
                "sched_switch",
#if defined(__x86_64__)
                "irq_work_entry",
#else
                "ipi_entry",
#endif
                NULL,
        };

        struct btf *types;
        enum status st = load_kernel_types(&types, err);

        if (st)
                return st;
        st = check_tracepoints(types, names, "--off-cpu", err);
        if (!st && !has_run_delay(types))
                st = error_set(err, ST_UNSUPPORTED,
                               "the kernel was built without CONFIG_SCHED_INFO, which '--off-cpu' needs");
        btf__free(types);
        return st;
}

enum status latency_check_kernel(struct error *err)
{
        static const char *const names[] = { "sched_switch", NULL };

        struct btf *types;
        enum status st = load_kernel_types(&types, err);

        if (st)
                return st;
        st = check_tracepoints(types, names, "--latency", err);
        btf__free(types);
        return st;
}
