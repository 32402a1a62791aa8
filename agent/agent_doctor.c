/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A check is a function check_...(): it tries an operation or reads a setting and adds its items with add_item(), each
 * with a state, the finding and the fix. doctor_examine() calls the checks in the order of the output, from the kernel
 * to the privileges, samplers and workers, so that a cause comes before its effects. Checks are independent: each is
 * made even if another one failed.
 *
 * An item belongs to one sampler or to both (needed_by). doctor_can_profile() derives from the items whether a sampler
 * can run: FINDING_ERROR prevents it, FINDING_WARNING only makes profiles incomplete.
 *
 * Order: checks of the kernel and of privileges, doctor_examine(), the output as text and JSON, further checks
 * (declared at the top), the check of the service, which is not part of doctor_examine().
 */
#include "agent/agent_doctor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/doctor_runtimes.h"
#include "agent/uploads/worker_upload.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "common/files/distribution.h"
#include "common/files/file.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "http/http_client.h"
#include "sampling/processes/kernel.h"
#include "sampling/processes/process_read.h"
#include "sampling/samplers/tracepoint_check.h"
#include "sampling/samplers/sampler.h"
#include "sampling/unwinding/unwind_builder.h"
#include "sandbox/privileges.h"
#include "uploader/offer.h"

static void check_lockdown(struct doctor *d);
static void check_bpf_jit(struct doctor *d);
static void check_perf_buffers(struct doctor *d);
static void check_mapped_files(struct doctor *d);
static void check_unwind_tables(struct doctor *d, struct fork_server *workers);
static void check_upload_workers(struct doctor *d, struct fork_server *server);
static void check_cgroup_namespace(struct doctor *d);
static void check_spool_room(struct doctor *d, const char *dir, uint64_t bytes);
static void check_runtimes(struct doctor *d, const struct doctor_options *o);
static void check_distribution(struct doctor *d);
static void check_off_cpu(struct doctor *d);
static void check_latency(struct doctor *d);

PRINTF(6, 7)
static void add_item(struct doctor *d, const char *name, enum sampler_kind needed_by, enum finding_state state,
                     const char *fix, const char *fmt, ...)
{
        va_list args;

        assert(d->findings.count < FINDINGS_MAX);
        d->needed_by[d->findings.count] = needed_by;
        va_start(args, fmt);
        report_finding_arguments(&d->findings, state, name, fix, fmt, args);
        va_end(args);
}

static void check_kernel_version(struct doctor *d)
{
        struct utsname u;
        unsigned major = 0, minor = 0;

        if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
                snprintf(u.release, sizeof u.release, "unknown");
        add_item(d, "kernel", SAMPLER_BPF, major > 5 || (major == 5 && minor >= 15) ? FINDING_OK : FINDING_ERROR,
                 "run Linux 5.15 or later", "Linux %s on %s", u.release, u.machine);
}

static void check_btf(struct doctor *d)
{
        int e = access("/sys/kernel/btf/vmlinux", R_OK) < 0 ? errno : 0;

        add_item(d, "btf", SAMPLER_BPF, e ? FINDING_ERROR : FINDING_OK,
                 "run a kernel built with CONFIG_DEBUG_INFO_BTF=y, with /sys mounted, as distribution kernels are",
                 "/sys/kernel/btf/vmlinux: %s", e ? strerror(e) : "readable");
}

static void check_capabilities(struct doctor *d)
{
        bool admin = privileges_have(CAP_SYS_ADMIN);
        bool bpf = admin || privileges_have(CAP_BPF), perfmon = admin || privileges_have(CAP_PERFMON);
        bool ptrace = privileges_have(CAP_SYS_PTRACE);
        bool files = admin || privileges_have(CAP_CHECKPOINT_RESTORE);
        bool read = privileges_have(CAP_DAC_READ_SEARCH);

        add_item(d, "rights to sample", SAMPLER_BPF, bpf && perfmon ? FINDING_OK : FINDING_ERROR,
                 "run as root (sudo), or give the program CAP_BPF and CAP_PERFMON",
                 "CAP_BPF %s, CAP_PERFMON %s, CAP_SYS_ADMIN %s", bpf ? "yes" : "no", perfmon ? "yes" : "no",
                 admin ? "yes" : "no");
        add_item(d, "rights to read processes", SAMPLER_AUTO, ptrace && files && read ? FINDING_OK : FINDING_WARNING,
                 "run as root, or give CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE and CAP_DAC_READ_SEARCH: without them "
                 "other users' processes have no build-ids",
                 "CAP_SYS_PTRACE %s, CAP_CHECKPOINT_RESTORE %s, CAP_DAC_READ_SEARCH %s", ptrace ? "yes" : "no",
                 files ? "yes" : "no", read ? "yes" : "no");
}

/* The first line of a file, or "unknown". */
static void read_first_line(const char *path, char *ret, size_t size)
{
        _cleanup_buf_ struct buf b = { 0 };
        struct error err;

        buf_init(&b, KiB(4));
        if (file_read(path, &b, &err))
                snprintf(ret, size, "unknown");
        else
                snprintf(ret, size, "%.*s", (int)strcspn(buf_cstr(&b), "\n"), (const char *)b.data);
}

static void check_clock_event(struct doctor *d)
{
        struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                        .size = sizeof attr,
                                        .config = PERF_COUNT_SW_CPU_CLOCK,
                                        .sample_period = 1000000000 };
        int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
        int e = fd < 0 ? errno : 0;
        char paranoid[32];

        if (fd >= 0)
                close(fd);
        read_first_line("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof paranoid);
        add_item(d, "perf events", SAMPLER_BPF, e ? FINDING_ERROR : FINDING_OK,
                 "run as root or with CAP_PERFMON, or set kernel.perf_event_paranoid to -1; in a container, allow "
                 "perf_event_open in its seccomp profile",
                 "CPU clock of CPU 0: %s (kernel.perf_event_paranoid is %s)", e ? strerror(e) : "opens", paranoid);
}

static void check_memlock_limit(struct doctor *d)
{
        struct rlimit limit;
        struct utsname u;
        unsigned major = 0, minor = 0;
        bool counted;

        if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
                return;
        counted = major < 5 || (major == 5 && minor < 11); /* BPF memory is charged to the memory cgroup since 5.11 */
        add_item(d, "locked memory", SAMPLER_BPF,
                 counted && limit.rlim_cur != RLIM_INFINITY ? FINDING_WARNING : FINDING_OK,
                 "raise the limit: ulimit -l unlimited, or LimitMEMLOCK=infinity",
                 counted ? "the limit applies to BPF maps" : "the limit does not apply to BPF maps since Linux 5.11");
}

static void check_bpf_program(struct doctor *d)
{
        const struct sampler_options o = { .kind = SAMPLER_BPF, .frequency_hz = 1, .interval_s = 1 };
        struct sampler *s = NULL;
        struct error err = { 0 };

        if (sampler_create(&o, &s, &err))
                add_item(d, "BPF program", SAMPLER_BPF, FINDING_ERROR,
                         "fix the items above; with kernel lockdown or a container's seccomp profile in the way, "
                         "allow bpf()",
                         "%s", err.text);
        else
                add_item(d, "BPF program", SAMPLER_BPF, FINDING_OK, "", "loads and attaches to %u CPUs",
                         sampler_cpu_count(s));
        sampler_destroy(s);
}

static void check_perf_sampler(struct doctor *d)
{
        const struct sampler_options o = { .kind = SAMPLER_PERF, .frequency_hz = 1, .interval_s = 1 };
        struct sampler *s = NULL;
        struct error err = { 0 };

        if (sampler_create(&o, &s, &err))
                add_item(d, "perf sampler", SAMPLER_PERF, FINDING_ERROR,
                         "set kernel.perf_event_paranoid to 2 or less, "
                         "and allow perf_event_open in a container's seccomp profile",
                         "%s", err.text);
        else
                add_item(d, "perf sampler", SAMPLER_PERF, FINDING_OK, "", "works without BPF, except for %s",
                         sampler_coverage_gaps(s));
        sampler_destroy(s);
}

static void check_pid_namespace(struct doctor *d)
{
        bool host = process_in_host_pid_namespace();

        add_item(d, "pid namespace", SAMPLER_BPF, host ? FINDING_OK : FINDING_WARNING,
                 "run in the host's pid namespace (docker --pid=host, Kubernetes hostPID: true): else the mappings of "
                 "processes are not found",
                 host ? "the host's" : "not the host's");
}

static void check_kernel_symbols(struct doctor *d)
{
        struct kernel k;
        struct error err = { 0 };
        char hex[BUILD_ID_HEX_MAX];

        kernel_init(&k, &err);
        if (!k.has_symbols)
                add_item(d, "kernel symbols", SAMPLER_AUTO, FINDING_WARNING,
                         "give CAP_SYSLOG, or set kernel.kptr_restrict to 0 or 1: else kernel frames have no names",
                         "%s", err.text);
        else
                add_item(d, "kernel symbols", SAMPLER_AUTO, FINDING_OK, "", "%zu in /proc/kallsyms", k.symbols.count);
        add_item(d, "kernel build-id", SAMPLER_AUTO, k.build_id.size ? FINDING_OK : FINDING_WARNING,
                 "mount /sys: else vmlinux debuginfo cannot be found", "%s",
                 k.build_id.size ? build_id_hex(&k.build_id, hex) : "none in /sys/kernel/notes");
        add_item(d, "kernel shift", SAMPLER_AUTO, k.has_shift ? FINDING_OK : FINDING_WARNING,
                 "run as root with /proc/kcore: else kernel frames have names but no lines",
                 k.has_shift ? "0x%llx" : "unknown", (unsigned long long)k.shift);
        kernel_deinit(&k);
}

static void check_stack_depth(struct doctor *d)
{
        char depth[32];
        unsigned n;

        read_first_line("/proc/sys/kernel/perf_event_max_stack", depth, sizeof depth);
        add_item(d, "stack depth", SAMPLER_AUTO,
                 sscanf(depth, "%u", &n) == 1 && n < SAMPLE_KERNEL_STACK_MAX ? FINDING_WARNING : FINDING_OK,
                 "set kernel.perf_event_max_stack to 127: else deep stacks are cut",
                 "kernel.perf_event_max_stack is %s", depth);
}

void doctor_examine(struct doctor *d, const struct doctor_options *o)
{
        *d = (struct doctor){ 0 };
        check_kernel_version(d);
        check_btf(d);
        check_capabilities(d);
        check_lockdown(d);
        check_clock_event(d);
        check_memlock_limit(d);
        check_bpf_jit(d);
        check_bpf_program(d);
        if (o->off_cpu)
                check_off_cpu(d);
        if (o->latency)
                check_latency(d);
        check_unwind_tables(d, o->fork_server);
        if (o->uploads)
                check_upload_workers(d, o->upload_fork_server);
        if (o->reads_python || o->reads_v8 || o->reads_hotspot || o->reads_context)
                check_runtimes(d, o);
        check_perf_sampler(d);
        check_perf_buffers(d);
        check_pid_namespace(d);
        check_mapped_files(d);
        check_cgroup_namespace(d);
        check_kernel_symbols(d);
        check_stack_depth(d);
        if (o->uploads)
                check_distribution(d);
        if (o->spool)
                check_spool_room(d, o->spool, o->spool_bytes);
}

bool doctor_can_profile(const struct doctor *d, enum sampler_kind kind)
{
        if (kind == SAMPLER_AUTO)
                return doctor_can_profile(d, SAMPLER_BPF) || doctor_can_profile(d, SAMPLER_PERF);
        for (size_t i = 0; i < d->findings.count; i++)
                if (d->findings.items[i].state == FINDING_ERROR &&
                    (d->needed_by[i] == kind || d->needed_by[i] == SAMPLER_AUTO))
                        return false;
        return true;
}

/* The name of the sampler that would run; NULL when none can. */
static const char *choose_sampler_name(const struct doctor *d, enum sampler_kind kind)
{
        if (kind != SAMPLER_PERF && doctor_can_profile(d, SAMPLER_BPF))
                return "bpf";
        return kind != SAMPLER_BPF && doctor_can_profile(d, SAMPLER_PERF) ? "perf" : NULL;
}

static void write_doctor_text(const struct doctor *d, const char *chosen, struct buf *out)
{
        for (size_t i = 0; i < d->findings.count; i++)
                finding_put_text(&d->findings.items[i], d->findings.items[i].name, out);
        if (!chosen)
                buf_printf(out, "The agent cannot profile this machine.\n");
        else
                buf_printf(out, "The agent can profile this machine, by %s.\n",
                           strcmp(chosen, "bpf") == 0 ? "BPF" : "perf events alone (see 'perf sampler')");
}

static void write_doctor_json(const struct doctor *d, const char *chosen, struct buf *out)
{
        static const char *const needed_by[] = {
                [SAMPLER_AUTO] = "any", [SAMPLER_BPF] = "bpf", [SAMPLER_PERF] = "perf"
        };
        struct json_out j;

        json_out_init(&j, out);
        json_out_object(&j, NULL);
        json_out_bool(&j, "can_profile", chosen != NULL);
        json_out_str(&j, "sampler", chosen);
        json_out_array(&j, "items");
        for (size_t i = 0; i < d->findings.count; i++) {
                json_out_object(&j, NULL);
                json_out_str(&j, "sampler", needed_by[d->needed_by[i]]);
                finding_put_json(&d->findings.items[i], &j);
                json_out_object_end(&j);
        }
        json_out_array_end(&j);
        json_out_object_end(&j);
        buf_append_u8(out, '\n');
}

void doctor_write(const struct doctor *d, enum sampler_kind kind, bool json, struct buf *out)
{
        const char *chosen = choose_sampler_name(d, kind);

        if (json)
                write_doctor_json(d, chosen, out);
        else
                write_doctor_text(d, chosen, out);
}

#define HOST_CGROUP_NAMESPACE 0xeffffffbu /* PROC_CGROUP_INIT_INO, include/linux/proc_ns.h */
#define OPEN_FILES_FEW 4096

/* "none [integrity] confidentiality": confidentiality forbids reading kernel memory, also by BPF. */
static void check_lockdown(struct doctor *d)
{
        char line[80];
        const char *mode;

        read_first_line("/sys/kernel/security/lockdown", line, sizeof line);
        mode = strstr(line, "[confidentiality]") ? "confidentiality"
               : strstr(line, "[integrity]")     ? "integrity"
                                                 : "none";
        add_item(d, "lockdown", SAMPLER_BPF, strcmp(mode, "confidentiality") == 0 ? FINDING_ERROR : FINDING_OK,
                 "boot without lockdown=confidentiality; lockdown=integrity is fine", "kernel lockdown: %s", mode);
}

static void check_bpf_jit(struct doctor *d)
{
        char on[16];

        read_first_line("/proc/sys/net/core/bpf_jit_enable", on, sizeof on);
        add_item(d, "BPF compiler", SAMPLER_BPF, strcmp(on, "0") == 0 ? FINDING_WARNING : FINDING_OK,
                 "set net.core.bpf_jit_enable to 1: else each sample costs many times more",
                 "net.core.bpf_jit_enable is %s", on);
}

static void check_perf_buffers(struct doctor *d)
{
        char kb[32];
        unsigned n = 0;
        struct rlimit files = { 0 };

        read_first_line("/proc/sys/kernel/perf_event_mlock_kb", kb, sizeof kb);
        add_item(d, "perf buffers", SAMPLER_PERF, sscanf(kb, "%u", &n) == 1 && n < 516 ? FINDING_WARNING : FINDING_OK,
                 "set kernel.perf_event_mlock_kb to 516 or more: else buffers are small and samples may be lost",
                 "kernel.perf_event_mlock_kb is %s", kb);
        if (getrlimit(RLIMIT_NOFILE, &files) < 0)
                return;
        add_item(d, "open files", SAMPLER_PERF, files.rlim_max < OPEN_FILES_FEW ? FINDING_WARNING : FINDING_OK,
                 "raise the hard limit (ulimit -Hn, LimitNOFILE=): each sampled thread needs one descriptor per CPU",
                 "%" PRIu64 " at most", (uint64_t)files.rlim_max);
}

/* Open the first mapped file of this process as for any other process: the same right is required. */
static void check_mapped_files(struct doctor *d)
{
        _cleanup_close_ int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct error err = { .text = "no mapped file" };
        _cleanup_proc_maps_ struct proc_maps maps = { 0 };
        char name[64], found[120] = "";

        if (proc_fd >= 0 && !process_read_maps(proc_fd, &maps, &err)) {
                for (size_t i = 0; i < maps.count && !found[0]; i++) {
                        _cleanup_close_ int fd = -1;

                        if (!maps.items[i].inode)
                                continue;
                        snprintf(name, sizeof name, "map_files/%" PRIx64 "-%" PRIx64, maps.items[i].start,
                                 maps.items[i].end);
                        fd = openat(proc_fd, name, O_PATH | O_CLOEXEC);
                        snprintf(found, sizeof found, "%s", fd < 0 ? strerror(errno) : "ok");
                }
        }
        add_item(d, "mapped files", SAMPLER_AUTO, strcmp(found, "ok") == 0 ? FINDING_OK : FINDING_WARNING,
                 "give CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN: else programs that were removed or replaced, and "
                 "some in "
                 "containers, have no build-id",
                 "/proc/PID/map_files: %s", found[0] ? strcmp(found, "ok") == 0 ? "opens" : found : err.text);
}

#define WORKER_FIX                                                                                                     \
        "let the user of the workers (--worker-user, uid 61111) open /dev/null, and let it execute this program, set " \
        "a seccomp filter and call memfd_create: else "

/* Build the table of this program as that of any file: in a worker of the fork server. */
static void check_unwind_tables(struct doctor *d, struct fork_server *workers)
{
        _cleanup_close_ int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        struct error err = { 0 };
        enum status st = unwind_builder_try(workers, exe, &err);

        add_item(d, "unwind tables", SAMPLER_BPF, st ? FINDING_WARNING : FINDING_OK,
                 WORKER_FIX "only code with frame pointers has complete stacks", "%s",
                 st ? err.text : "a confined worker builds them");
}

static void check_upload_workers(struct doctor *d, struct fork_server *server)
{
        _cleanup_close_ int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        static const atomic_bool stop = false;
        const struct upload_workers workers = { .fork_server = server, .stop = &stop };
        struct inspected_file found;
        struct error err = { 0 };
        enum status st = upload_inspect_files(&workers, &exe, 1, &found, &err);

        if (!st && found.end != INSPECT_DONE)
                st = error_set(&err, ST_OS, "the worker has no descriptor for its answer");
        add_item(d, "upload worker", SAMPLER_AUTO, st ? FINDING_WARNING : FINDING_OK,
                 WORKER_FIX "no symbols of this host's programs are uploaded", "%s",
                 st ? err.text : "a confined worker reads the files to upload");
}

static void check_cgroup_namespace(struct doctor *d)
{
        struct stat st;
        bool host = stat("/proc/self/ns/cgroup", &st) == 0 && st.st_ino == HOST_CGROUP_NAMESPACE;
        bool readable = access("/proc/1/cgroup", R_OK) == 0;

        add_item(d, "cgroups", SAMPLER_AUTO, host && readable ? FINDING_OK : FINDING_WARNING,
                 readable ? "run in the host's cgroup namespace (docker --cgroupns=host): else cgroup paths are "
                            "relative to the agent's cgroup; containers, pods and units are still found"
                          : "mount /proc without hidepid, or run as root: else no container, pod or unit is found",
                 "%s",
                 !readable ? "/proc/1/cgroup cannot be read"
                 : host    ? "the host's namespace"
                           : "not the host's namespace");
}

static void check_spool_room(struct doctor *d, const char *dir, uint64_t bytes)
{
        _cleanup_free_ char *parent = strdup(dir);
        struct statvfs fs;
        const char *slash = parent ? strrchr(parent, '/') : NULL, *where = dir;

        if (access(dir, F_OK) < 0 && slash) { /* it will be created */
                parent[slash == parent ? 1 : slash - parent] = 0;
                where = parent;
        } else if (access(dir, F_OK) < 0) {
                where = ".";
        }
        if (access(where, W_OK | X_OK) < 0 || statvfs(where, &fs) < 0) {
                add_item(d, "spool", SAMPLER_AUTO, FINDING_ERROR, "name a directory that the agent may write to",
                         "'%.100s': %s", where, strerror(errno));
                return;
        }
        add_item(d, "spool", SAMPLER_AUTO, (uint64_t)fs.f_bavail * fs.f_frsize < bytes ? FINDING_WARNING : FINDING_OK,
                 "free disk space, or lower --spool-size: else batches are dropped when the disk is full",
                 "'%.100s': %" PRIu64 " MiB free for %" PRIu64, where, (uint64_t)fs.f_bavail * fs.f_frsize >> 20,
                 bytes >> 20);
}

/* An item for each process whose runtime is refused, and one for all others. */
static void check_runtimes(struct doctor *d, const struct doctor_options *o)
{
        const struct wanted_runtimes wanted = { o->reads_python, o->reads_v8, o->reads_hotspot, o->reads_context };
        struct found_runtimes found;
        struct error err;

        if (doctor_find_runtimes(o->fork_server, &wanted, &found, &err)) {
                add_item(d, "runtimes", SAMPLER_BPF, FINDING_WARNING, "", "%s", err.text);
                return;
        }
        for (size_t i = 0; i < found.refused_count && i < REFUSED_RUNTIMES_MAX; i++)
                add_item(d, "runtime", SAMPLER_BPF, FINDING_WARNING,
                         "see the table of runtimes in docs/quick-starts/agents.md: such frames are those of the "
                         "interpreter",
                         "process %u (%s): %s is not read: %s", found.refused[i].pid, found.refused[i].process,
                         found.refused[i].runtime, found.refused[i].reason);
        add_item(d, "runtimes", SAMPLER_BPF, FINDING_OK, "", "%s, %s",
                 COUNTED(found.read_count, "process is read", "processes are read"),
                 COUNTED(found.refused_count, "is refused", "are refused"));
        if (o->reads_context)
                add_item(d, "contexts", SAMPLER_AUTO, FINDING_OK, "", "%s an OpenTelemetry context, %s; labels of %s",
                         COUNTED(found.process_context_count, "process publishes", "processes publish"),
                         COUNTED(found.thread_context_count, "context of a thread", "contexts of threads"),
                         COUNTED(found.go_labels_count, "Go program are read", "Go programs are read"));
}

/* An error for both samplers: --off-cpu is refused rather than ignored. */
static void check_off_cpu(struct doctor *d)
{
        struct error err;
        enum status st = off_cpu_check_kernel(&err);

        add_item(d, "waits", SAMPLER_AUTO, st ? FINDING_ERROR : FINDING_OK,
                 "run a kernel built with CONFIG_TRACEPOINTS=y and BTF, as distribution kernels are, or leave out "
                 "--off-cpu",
                 "%s", st ? err.text : "the tracepoints of '--off-cpu' exist");
}

/* Likewise. */
static void check_latency(struct doctor *d)
{
        struct error err;
        enum status st = latency_check_kernel(&err);

        add_item(d, "latency", SAMPLER_AUTO, st ? FINDING_ERROR : FINDING_OK,
                 "run a kernel built with CONFIG_TRACEPOINTS=y and BTF, as distribution kernels are, or leave out "
                 "--latency",
                 "%s", st ? err.text : "the tracepoint of '--latency' exists");
}

/* Programs of a distribution are stripped: the agent uploads their exported functions only. */
static void check_distribution(struct doctor *d)
{
        add_item(d, "distribution", SAMPLER_AUTO, FINDING_OK, "",
                 "for all names of its programs, start the service with --upstream %s", get_distribution_debuginfod());
}

#define OFFER_TIMEOUT_S 10

/* Offer a fictitious file: this changes nothing and needs the same scope as an upload. */
static enum status offer_fictitious_file(const char *server, const char *ca_file, const char *token, struct error *err)
{
        const struct http_client_options http = { .size = sizeof http,
                                                  .base_url = server,
                                                  .ca_file = ca_file,
                                                  .token = token,
                                                  .user_agent = "cairn-agent/" CAIRN_VERSION,
                                                  .idle_timeout_s = OFFER_TIMEOUT_S };
        char nowhere[] = "nowhere";
        struct upload_item item = { .path = nowhere,
                                    .build_id = { .size = 20 },
                                    .kind = UPLOAD_DEBUGINFO,
                                    .quality = QUALITY_SYMTAB,
                                    .size_bytes = 1 };
        struct upload_list list = { .items = &item, .count = 1 };
        struct http_client *client = NULL;
        enum status st = http_client_create(&http, &client, err);

        if (!st)
                st = offer_files(client, &list, err);
        http_client_destroy(client);
        return st;
}

void doctor_check_service(struct doctor *d, const char *server, const char *ca_file, const char *token)
{
        struct error err = { 0 };
        enum status st = offer_fictitious_file(server, ca_file, token, &err);
        const char *fix =
                st == ST_USAGE
                        ? "give a token with the scope upload (--token-file), or --no-upload: else the service "
                          "gets no symbols from this host"
                        : "start the service, or correct --server: else samples are queued (on disk with --spool), "
                          "and no symbols are uploaded";

        add_item(d, "uploads", SAMPLER_AUTO, st ? FINDING_WARNING : FINDING_OK, fix, "%s",
                 st ? err.text : "the service accepts symbols from this host");
}
