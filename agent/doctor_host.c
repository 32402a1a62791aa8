/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/doctor_internal.h"
#include "agent/object_cache.h"
#include "agent/process_read.h"
#include "agent/unwind_builder.h"

#define HOST_CGROUP_NAMESPACE 0xeffffffbu /* PROC_CGROUP_INIT_INO, include/linux/proc_ns.h */
#define WORKER_WAIT_MS 20000
#define OPEN_FILES_FEW 4096

/* "none [integrity] confidentiality": the last one forbids reading the kernel's memory, by BPF too. */
void doctor_lockdown(struct doctor *d)
{
        char line[80];
        const char *mode;

        doctor_first_line("/sys/kernel/security/lockdown", line, sizeof line);
        mode = strstr(line, "[confidentiality]") ? "confidentiality" : strstr(line, "[integrity]") ? "integrity" : "none";
        doctor_add(d, "lockdown", SAMPLER_BPF, strcmp(mode, "confidentiality") == 0 ? DOCTOR_FAIL : DOCTOR_OK,
                   "boot without lockdown=confidentiality; lockdown=integrity is no hindrance", "kernel lockdown: %s", mode);
}

void doctor_jit(struct doctor *d)
{
        char on[16];

        doctor_first_line("/proc/sys/net/core/bpf_jit_enable", on, sizeof on);
        doctor_add(d, "BPF compiler", SAMPLER_BPF, strcmp(on, "0") == 0 ? DOCTOR_LESS : DOCTOR_OK,
                   "set net.core.bpf_jit_enable to 1: else each sample costs many times as much",
                   "net.core.bpf_jit_enable is %s", on);
}

void doctor_perf_buffers(struct doctor *d)
{
        char kb[32];
        unsigned n = 0;
        struct rlimit files = { 0 };

        doctor_first_line("/proc/sys/kernel/perf_event_mlock_kb", kb, sizeof kb);
        doctor_add(d, "perf buffers", SAMPLER_PERF, sscanf(kb, "%u", &n) == 1 && n < 516 ? DOCTOR_LESS : DOCTOR_OK,
                   "set kernel.perf_event_mlock_kb to 516 or more: else buffers are small and samples may get lost",
                   "kernel.perf_event_mlock_kb is %s", kb);
        if (getrlimit(RLIMIT_NOFILE, &files) < 0)
                return;
        doctor_add(d, "open files", SAMPLER_PERF, files.rlim_max < OPEN_FILES_FEW ? DOCTOR_LESS : DOCTOR_OK,
                   "raise the hard limit (ulimit -Hn, LimitNOFILE=): each thread takes one file for each CPU",
                   "%" PRIu64 " at most", (uint64_t)files.rlim_max);
}

/* The first file that this very process has mapped, opened as for any other one: the right to that is asked for even here. */
void doctor_mapped_files(struct doctor *d)
{
        _cleanup_close_ int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct error err = { .text = "no file is mapped there" };
        _cleanup_proc_maps_ struct proc_maps maps = { 0 };
        char name[64], found[120] = "";

        if (proc_fd >= 0 && !process_read_maps(proc_fd, &maps, &err)) {
                for (size_t i = 0; i < maps.count && !found[0]; i++) {
                        _cleanup_close_ int fd = -1;

                        if (!maps.items[i].inode)
                                continue;
                        snprintf(name, sizeof name, "map_files/%" PRIx64 "-%" PRIx64, maps.items[i].start, maps.items[i].end);
                        fd = openat(proc_fd, name, O_PATH | O_CLOEXEC);
                        snprintf(found, sizeof found, "%s", fd < 0 ? strerror(errno) : "ok");
                }
        }
        doctor_add(d, "mapped files", SAMPLER_AUTO, strcmp(found, "ok") == 0 ? DOCTOR_OK : DOCTOR_LESS,
                   "give CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN: else programs that were removed or replaced, and some in "
                   "containers, have no build-id",
                   "/proc/PID/map_files: %s", found[0] ? strcmp(found, "ok") == 0 ? "opens" : found : err.text);
}

/* By the same worker as any file's: of this very program. */
void doctor_unwind_tables(struct doctor *d)
{
        struct unwind_builder *builder = NULL;
        struct unwind_built built = { .fd = -1 };
        struct error err = { .text = "the worker made none" };

        if (!unwind_builder_create(NULL, &builder, &err)) {
                int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
                struct pollfd fd = { .fd = unwind_builder_fd(builder), .events = POLLIN };

                if (exe >= 0 && unwind_builder_put(builder, 1, exe) && poll(&fd, 1, WORKER_WAIT_MS) > 0)
                        (void)unwind_builder_take(builder, &built);
        }
        unwind_builder_destroy(builder);
        doctor_add(d, "unwind tables", SAMPLER_BPF, built.fd >= 0 ? DOCTOR_OK : DOCTOR_LESS,
                   "the program must be able to start itself (/proc/self/exe) with a seccomp filter, and memfd_create must be "
                   "allowed: else only code with frame pointers has whole stacks",
                   "%s", built.fd >= 0 ? "a confined worker makes them" : err.text);
        if (built.fd >= 0)
                close(built.fd);
}

void doctor_cgroups(struct doctor *d)
{
        struct stat st;
        bool host = stat("/proc/self/ns/cgroup", &st) == 0 && st.st_ino == HOST_CGROUP_NAMESPACE;
        bool readable = access("/proc/1/cgroup", R_OK) == 0;

        doctor_add(d, "cgroups", SAMPLER_AUTO, host && readable ? DOCTOR_OK : DOCTOR_LESS,
                   readable ? "run in the host's cgroup namespace (docker --cgroupns=host): else paths of cgroups begin "
                              "where the agent's own lies; containers, pods and units are found all the same"
                            : "mount /proc without hidepid, or run as root: else no container, pod or unit is found",
                   "%s", !readable ? "/proc/1/cgroup cannot be read" : host ? "the host's namespace" : "not the host's namespace");
}

void doctor_spool(struct doctor *d, const char *dir, uint64_t bytes)
{
        _cleanup_free_ char *parent = strdup(dir);
        struct statvfs fs;
        const char *slash = parent ? strrchr(parent, '/') : NULL, *where = dir;

        if (access(dir, F_OK) < 0 && slash) { /* it will be made */
                parent[slash == parent ? 1 : slash - parent] = 0;
                where = parent;
        } else if (access(dir, F_OK) < 0) {
                where = ".";
        }
        if (access(where, W_OK | X_OK) < 0 || statvfs(where, &fs) < 0) {
                doctor_add(d, "spool", SAMPLER_AUTO, DOCTOR_FAIL, "name a directory that the agent may write to", "'%.100s': %s",
                           where, strerror(errno));
                return;
        }
        doctor_add(d, "spool", SAMPLER_AUTO, (uint64_t)fs.f_bavail * fs.f_frsize < bytes ? DOCTOR_LESS : DOCTOR_OK,
                   "make room, or lower --spool-size: else batches are dropped when the disk is full",
                   "'%.100s': %" PRIu64 " MiB free for %" PRIu64, where, (uint64_t)fs.f_bavail * fs.f_frsize >> 20, bytes >> 20);
}
