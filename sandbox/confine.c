/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock first, then the system calls a worker keeps. Without a network it is a list of what is
 * allowed; a worker with a network also needs files (certificates, a cache), so
 * there it is a list of what is forbidden.
 */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <seccomp.h>

#include "sandbox/landlock.h"
#include "sandbox/sanitizers.h"
#include "sandbox/worker.h"

static const int allowed[] = {
        SCMP_SYS(brk),            SCMP_SYS(clock_gettime),   SCMP_SYS(clock_getres),   SCMP_SYS(clock_nanosleep),
        SCMP_SYS(close),          SCMP_SYS(exit),            SCMP_SYS(exit_group),     SCMP_SYS(fcntl),
        SCMP_SYS(fdatasync),      SCMP_SYS(fstat),           SCMP_SYS(fsync),          SCMP_SYS(ftruncate),
        SCMP_SYS(futex),          SCMP_SYS(getpid),          SCMP_SYS(getrandom),      SCMP_SYS(getrusage),
        SCMP_SYS(gettid),         SCMP_SYS(gettimeofday),    SCMP_SYS(lseek),          SCMP_SYS(madvise),
        SCMP_SYS(membarrier),     SCMP_SYS(mremap),          SCMP_SYS(munmap),         SCMP_SYS(newfstatat),
        SCMP_SYS(pread64),        SCMP_SYS(pwrite64),        SCMP_SYS(read),           SCMP_SYS(readv),
        SCMP_SYS(restart_syscall), SCMP_SYS(rseq),           SCMP_SYS(rt_sigaction),   SCMP_SYS(rt_sigprocmask),
        SCMP_SYS(rt_sigreturn),   SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_yield),  SCMP_SYS(set_robust_list),
        SCMP_SYS(sigaltstack),    SCMP_SYS(sysinfo),         SCMP_SYS(tgkill),         SCMP_SYS(write),
        SCMP_SYS(writev),
};

/* What a job never needs, and an intruder tries: better the whole worker ends. */
static const int deadly[] = {
        SCMP_SYS(bpf),         SCMP_SYS(execve),        SCMP_SYS(execveat),         SCMP_SYS(init_module),
        SCMP_SYS(finit_module), SCMP_SYS(kexec_load),   SCMP_SYS(keyctl),           SCMP_SYS(mount),
        SCMP_SYS(perf_event_open), SCMP_SYS(pivot_root), SCMP_SYS(process_vm_writev), SCMP_SYS(reboot),
        SCMP_SYS(setns),       SCMP_SYS(umount2),       SCMP_SYS(unshare),          SCMP_SYS(userfaultfd),
};

/* Parts that need a look at an argument. */
static int allow_guarded(scmp_filter_ctx filter)
{
        int r;

        r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
        if (!r)
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                                     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
        /* A thread, not a process. The flags of clone3 cannot be seen; ENOSYS makes libc take clone. */
        if (!r)
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                     SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
        if (!r)
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
        /* Its own limits, to read them; threads look at their stack's. */
        if (!r)
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2, SCMP_A0(SCMP_CMP_MASKED_EQ, UINT64_MAX, 0),
                                     SCMP_A2(SCMP_CMP_MASKED_EQ, UINT64_MAX, 0));
        return r;
}

static int fill_allowed(scmp_filter_ctx filter)
{
        int r = allow_guarded(filter);

        for (size_t i = 0; !r && i < sizeof allowed / sizeof *allowed; i++)
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
        return r;
}

static int fill_deadly(scmp_filter_ctx filter)
{
        int r = 0;

        for (size_t i = 0; !r && i < sizeof deadly / sizeof *deadly; i++)
                r = seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, deadly[i], 0);
        return r;
}

enum status worker_confine(enum worker_needs needs, struct error *err)
{
        bool list_allowed = needs != WORKER_NEEDS_NETWORK && !BUILT_WITH_SANITIZER;
        scmp_filter_ctx filter = seccomp_init(list_allowed ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_ALLOW);
        enum status st;
        int r;

        if (!filter)
                return error_no_memory(err);
        st = BUILT_WITH_SANITIZER ? ST_OK : landlock_restrict(needs, err);
        if (st) {
                seccomp_release(filter);
                return st;
        }
        r = fill_deadly(filter);
        if (!r && list_allowed)
                r = fill_allowed(filter);
        if (!r && list_allowed && needs == WORKER_NEEDS_DESCRIPTORS)
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(recvmsg), 0);
        if (!r && needs != WORKER_NEEDS_NETWORK)
                r = seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, SCMP_SYS(socket), 0);
        if (!r)
                r = seccomp_load(filter); /* sets no_new_privs */
        seccomp_release(filter);
        if (r)
                return error_os(err, -r, "cannot confine the worker");
        return ST_OK;
}
