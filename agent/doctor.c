/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/doctor_internal.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/kernel.h"
#include "agent/privileges.h"
#include "agent/process_read.h"
#include "agent/sampler.h"
#include "common/file.h"
#include "common/json_out.h"
#include "common/limits.h"

void doctor_add(struct doctor *d, const char *name, enum sampler_kind needed_by, enum doctor_state state,
                const char *mend, const char *fmt, ...)
{
        struct doctor_item *item = &d->items[d->count++];
        va_list args;

        assert(d->count <= DOCTOR_ITEMS_MAX);
        item->name = name;
        item->needed_by = needed_by;
        item->state = state;
        item->mend = state == DOCTOR_OK ? "" : mend;
        va_start(args, fmt);
        vsnprintf(item->found, sizeof item->found, fmt, args);
        va_end(args);
}

static void kernel_version(struct doctor *d)
{
        struct utsname u;
        unsigned major = 0, minor = 0;

        if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
                snprintf(u.release, sizeof u.release, "unknown");
        doctor_add(d, "kernel", SAMPLER_BPF, major > 5 || (major == 5 && minor >= 15) ? DOCTOR_OK : DOCTOR_FAIL,
            "run Linux 5.15 or later", "Linux %s on %s", u.release, u.machine);
}

static void btf(struct doctor *d)
{
        int e = access("/sys/kernel/btf/vmlinux", R_OK) < 0 ? errno : 0;

        doctor_add(d, "btf", SAMPLER_BPF, e ? DOCTOR_FAIL : DOCTOR_OK,
            "run a kernel built with CONFIG_DEBUG_INFO_BTF=y, with /sys mounted, as every distribution's is",
            "/sys/kernel/btf/vmlinux: %s", e ? strerror(e) : "readable");
}

static void capabilities(struct doctor *d)
{
        bool admin = privileges_have(CAP_SYS_ADMIN);
        bool bpf = admin || privileges_have(CAP_BPF), perfmon = admin || privileges_have(CAP_PERFMON);
        bool ptrace = privileges_have(CAP_SYS_PTRACE);
        bool files = admin || privileges_have(CAP_CHECKPOINT_RESTORE);
        bool read = privileges_have(CAP_DAC_READ_SEARCH);

        doctor_add(d, "rights to sample", SAMPLER_BPF, bpf && perfmon ? DOCTOR_OK : DOCTOR_FAIL,
            "run as root (sudo), or give the program CAP_BPF and CAP_PERFMON",
            "CAP_BPF %s, CAP_PERFMON %s, CAP_SYS_ADMIN %s", bpf ? "yes" : "no", perfmon ? "yes" : "no",
            admin ? "yes" : "no");
        doctor_add(d, "rights to read processes", SAMPLER_AUTO, ptrace && files && read ? DOCTOR_OK : DOCTOR_LESS,
            "run as root, or give CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE and CAP_DAC_READ_SEARCH: without them "
            "other users' processes have no build-ids",
            "CAP_SYS_PTRACE %s, CAP_CHECKPOINT_RESTORE %s, CAP_DAC_READ_SEARCH %s", ptrace ? "yes" : "no",
            files ? "yes" : "no", read ? "yes" : "no");
}

void doctor_first_line(const char *path, char *ret, size_t size)
{
        _cleanup_buf_ struct buf b = { 0 };
        struct error err;

        buf_init(&b, KiB(4));
        if (file_read(path, &b, &err))
                snprintf(ret, size, "unknown");
        else
                snprintf(ret, size, "%.*s", (int)strcspn(buf_cstr(&b), "\n"), (const char *)b.data);
}

static void clock_event(struct doctor *d)
{
        struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof attr,
                                        .config = PERF_COUNT_SW_CPU_CLOCK, .sample_period = 1000000000 };
        int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
        int e = fd < 0 ? errno : 0;
        char paranoid[32];

        if (fd >= 0)
                close(fd);
        doctor_first_line("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof paranoid);
        doctor_add(d, "perf events", SAMPLER_BPF, e ? DOCTOR_FAIL : DOCTOR_OK,
            "run as root or with CAP_PERFMON, or set kernel.perf_event_paranoid to -1; in a container, allow "
            "perf_event_open in its seccomp profile",
            "CPU clock of CPU 0: %s (kernel.perf_event_paranoid is %s)", e ? strerror(e) : "opens", paranoid);
}

static void memlock(struct doctor *d)
{
        struct rlimit limit;
        struct utsname u;
        unsigned major = 0, minor = 0;
        bool counted;

        if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
                return;
        counted = major < 5 || (major == 5 && minor < 11); /* BPF memory has its own accounting since 5.11 */
        doctor_add(d, "locked memory", SAMPLER_BPF, counted && limit.rlim_cur != RLIM_INFINITY ? DOCTOR_LESS : DOCTOR_OK,
            "raise the limit: ulimit -l unlimited, or LimitMEMLOCK=infinity",
            counted ? "the limit counts BPF maps" : "the limit does not count for BPF maps since Linux 5.11");
}

static void bpf_program(struct doctor *d)
{
        const struct sampler_options o = { .kind = SAMPLER_BPF, .frequency_hz = 1, .interval_s = 1 };
        struct sampler *s = NULL;
        struct error err = { 0 };

        if (sampler_create(&o, &s, &err))
                doctor_add(d, "BPF program", SAMPLER_BPF, DOCTOR_FAIL,
                    "mend the items above; with kernel lockdown or a container's seccomp profile in the way, allow bpf()",
                    "%s", err.text);
        else
                doctor_add(d, "BPF program", SAMPLER_BPF, DOCTOR_OK, "", "loads and attaches to %u CPUs", sampler_cpu_count(s));
        sampler_destroy(s);
}

static void perf_sampler(struct doctor *d)
{
        const struct sampler_options o = { .kind = SAMPLER_PERF, .frequency_hz = 1, .interval_s = 1 };
        struct sampler *s = NULL;
        struct error err = { 0 };

        if (sampler_create(&o, &s, &err))
                doctor_add(d, "perf sampler", SAMPLER_PERF, DOCTOR_FAIL, "it needs kernel.perf_event_paranoid of 2 or less, "
                    "and perf_event_open allowed in a container's seccomp profile", "%s", err.text);
        else
                doctor_add(d, "perf sampler", SAMPLER_PERF, DOCTOR_OK, "", "works without BPF, but for %s", sampler_gaps(s));
        sampler_destroy(s);
}

static void pid_namespace(struct doctor *d)
{
        bool host = process_numbers_are_the_hosts();

        doctor_add(d, "pid namespace", SAMPLER_BPF, host ? DOCTOR_OK : DOCTOR_LESS,
            "run in the host's pid namespace (docker --pid=host, Kubernetes hostPID: true): else the mappings of "
            "processes are not found",
            host ? "the host's" : "not the host's");
}

static void kernel_symbols(struct doctor *d)
{
        struct kernel k;
        struct error err = { 0 };
        char hex[BUILD_ID_HEX_MAX];

        kernel_init(&k, &err);
        if (!k.has_symbols)
                doctor_add(d, "kernel symbols", SAMPLER_AUTO, DOCTOR_LESS,
                    "give CAP_SYSLOG, or set kernel.kptr_restrict to 0 or 1: else kernel frames have no names", "%s",
                    err.text);
        else
                doctor_add(d, "kernel symbols", SAMPLER_AUTO, DOCTOR_OK, "", "%zu in /proc/kallsyms", k.symbols.count);
        doctor_add(d, "kernel build-id", SAMPLER_AUTO, k.build_id.size ? DOCTOR_OK : DOCTOR_LESS,
            "mount /sys: else vmlinux debuginfo cannot be found", "%s",
            k.build_id.size ? build_id_hex(&k.build_id, hex) : "none in /sys/kernel/notes");
        doctor_add(d, "kernel shift", SAMPLER_AUTO, k.has_shift ? DOCTOR_OK : DOCTOR_LESS,
            "run as root with /proc/kcore: else kernel frames have names but no lines",
            k.has_shift ? "0x%llx" : "unknown", (unsigned long long)k.shift);
        kernel_deinit(&k);
}

static void stack_depth(struct doctor *d)
{
        char depth[32];
        unsigned n;

        doctor_first_line("/proc/sys/kernel/perf_event_max_stack", depth, sizeof depth);
        doctor_add(d, "stack depth", SAMPLER_AUTO, sscanf(depth, "%u", &n) == 1 && n < SAMPLE_KERNEL_STACK_MAX ? DOCTOR_LESS : DOCTOR_OK,
            "set kernel.perf_event_max_stack to 127: else deep stacks are cut",
            "kernel.perf_event_max_stack is %s", depth);
}

void doctor_examine(struct doctor *d, const char *spool, uint64_t spool_bytes)
{
        *d = (struct doctor){ 0 };
        kernel_version(d);
        btf(d);
        capabilities(d);
        doctor_lockdown(d);
        clock_event(d);
        memlock(d);
        doctor_jit(d);
        bpf_program(d);
        doctor_unwind_tables(d);
        perf_sampler(d);
        doctor_perf_buffers(d);
        pid_namespace(d);
        doctor_mapped_files(d);
        doctor_cgroups(d);
        kernel_symbols(d);
        stack_depth(d);
        if (spool)
                doctor_spool(d, spool, spool_bytes);
}

bool doctor_can_profile(const struct doctor *d, enum sampler_kind kind)
{
        if (kind == SAMPLER_AUTO)
                return doctor_can_profile(d, SAMPLER_BPF) || doctor_can_profile(d, SAMPLER_PERF);
        for (size_t i = 0; i < d->count; i++)
                if (d->items[i].state == DOCTOR_FAIL &&
                    (d->items[i].needed_by == kind || d->items[i].needed_by == SAMPLER_AUTO))
                        return false;
        return true;
}

/* The sampler that would run; NULL when none can. */
static const char *choice(const struct doctor *d, enum sampler_kind kind)
{
        if (kind != SAMPLER_PERF && doctor_can_profile(d, SAMPLER_BPF))
                return "bpf";
        return kind != SAMPLER_BPF && doctor_can_profile(d, SAMPLER_PERF) ? "perf" : NULL;
}

static const char *const STATES[] = { [DOCTOR_OK] = "ok", [DOCTOR_LESS] = "less", [DOCTOR_FAIL] = "fail" };

static void write_text(const struct doctor *d, const char *chosen, struct buf *out)
{
        for (size_t i = 0; i < d->count; i++) {
                const struct doctor_item *item = &d->items[i];

                buf_printf(out, "%-4s  %-25s %s\n", STATES[item->state], item->name, item->found);
                if (item->mend[0])
                        buf_printf(out, "%-31s mend: %s\n", "", item->mend);
        }
        if (!chosen)
                buf_printf(out, "The agent cannot profile here.\n");
        else
                buf_printf(out, "The agent can profile here, by %s.\n",
                           strcmp(chosen, "bpf") == 0 ? "BPF" : "perf events alone (see 'perf sampler')");
}

static void write_json(const struct doctor *d, const char *chosen, struct buf *out)
{
        static const char *const needed_by[] = { [SAMPLER_AUTO] = "any", [SAMPLER_BPF] = "bpf", [SAMPLER_PERF] = "perf" };
        struct json_out j;

        json_out_init(&j, out);
        json_out_object(&j, NULL);
        json_out_bool(&j, "can_profile", chosen != NULL);
        json_out_str(&j, "sampler", chosen);
        json_out_array(&j, "items");
        for (size_t i = 0; i < d->count; i++) {
                json_out_object(&j, NULL);
                json_out_str(&j, "name", d->items[i].name);
                json_out_str(&j, "state", STATES[d->items[i].state]);
                json_out_str(&j, "sampler", needed_by[d->items[i].needed_by]);
                json_out_str(&j, "found", d->items[i].found);
                json_out_str(&j, "mend", d->items[i].mend);
                json_out_object_end(&j);
        }
        json_out_array_end(&j);
        json_out_object_end(&j);
        buf_append_u8(out, '\n');
}

void doctor_write(const struct doctor *d, enum sampler_kind kind, bool json, struct buf *out)
{
        const char *chosen = choice(d, kind);

        if (json)
                write_json(d, chosen, out);
        else
                write_text(d, chosen, out);
}
