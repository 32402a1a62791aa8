/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter is an allow list of system calls; all others fail with EPERM, and those that only an exploit makes kill
 * the worker. Landlock may be missing or old, so the filter does not rely on it:
 *
 *  1. No allowed call reaches another process. Calls with a process argument are restricted to the worker's own pid,
 *     fcntl() and ioctl() to commands that send no signal (F_SETOWN, F_SETSIG, F_NOTIFY, F_SETLEASE and O_ASYNC do).
 *  2. A worker without a network opens nothing. One with a network opens files for reading only, and has only Internet
 *     sockets and connected pairs of stream sockets: a pair cannot be connected to anything else.
 *  3. A worker with files (worker_confine_with_files()) may also call those that change files; Landlock or the mount
 *     namespace restricts which files.
 *  4. An argument of type int is compared by its lower half, as the kernel does.
 */
#include "sandbox/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <seccomp.h>

#include "sandbox/sanitizers.h"

static const int allowed[] = {
        SCMP_SYS(brk),
        SCMP_SYS(clock_gettime),
        SCMP_SYS(clock_getres),
        SCMP_SYS(clock_nanosleep),
        SCMP_SYS(close),
        SCMP_SYS(exit),
        SCMP_SYS(exit_group),
        SCMP_SYS(fdatasync),
        SCMP_SYS(fstat),
        SCMP_SYS(fsync),
        SCMP_SYS(ftruncate),
        SCMP_SYS(futex),
        SCMP_SYS(getpid),
        SCMP_SYS(getrandom),
        SCMP_SYS(getrusage),
        SCMP_SYS(gettid),
        SCMP_SYS(gettimeofday),
        SCMP_SYS(lseek),
        SCMP_SYS(madvise),
        SCMP_SYS(membarrier),
        SCMP_SYS(mremap),
        SCMP_SYS(munmap),
        SCMP_SYS(newfstatat),
        SCMP_SYS(pread64),
        SCMP_SYS(pwrite64),
        SCMP_SYS(read),
        SCMP_SYS(readv),
        SCMP_SYS(restart_syscall),
        SCMP_SYS(rseq),
        SCMP_SYS(rt_sigaction),
        SCMP_SYS(rt_sigprocmask),
        SCMP_SYS(rt_sigreturn),
        SCMP_SYS(sched_yield),
        SCMP_SYS(set_robust_list),
        SCMP_SYS(sigaltstack),
        SCMP_SYS(sysinfo),
        SCMP_SYS(write),
        SCMP_SYS(writev),
};

/* Additional calls of libcurl, GnuTLS and glibc's resolver. */
static const int allowed_with_network[] = {
        SCMP_SYS(access),     SCMP_SYS(connect),       SCMP_SYS(dup),        SCMP_SYS(dup2),
        SCMP_SYS(dup3),       SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl),  SCMP_SYS(epoll_pwait),
        SCMP_SYS(epoll_wait), SCMP_SYS(eventfd2),      SCMP_SYS(faccessat),  SCMP_SYS(faccessat2),
        SCMP_SYS(getcwd),     SCMP_SYS(getdents64),    SCMP_SYS(getegid),    SCMP_SYS(geteuid),
        SCMP_SYS(getgid),     SCMP_SYS(getpeername),   SCMP_SYS(getppid),    SCMP_SYS(getsockname),
        SCMP_SYS(getsockopt), SCMP_SYS(getuid),        SCMP_SYS(lstat),      SCMP_SYS(nanosleep),
        SCMP_SYS(pipe),       SCMP_SYS(pipe2),         SCMP_SYS(poll),       SCMP_SYS(ppoll),
        SCMP_SYS(pselect6),   SCMP_SYS(readlink),      SCMP_SYS(readlinkat), SCMP_SYS(recvfrom),
        SCMP_SYS(recvmmsg),   SCMP_SYS(recvmsg),       SCMP_SYS(select),     SCMP_SYS(sendmmsg),
        SCMP_SYS(sendmsg),    SCMP_SYS(sendto),        SCMP_SYS(setsockopt), SCMP_SYS(shutdown),
        SCMP_SYS(stat),       SCMP_SYS(statfs),        SCMP_SYS(statx),      SCMP_SYS(uname),
};

/* Additional calls of libdebuginfod for its cache. */
static const int allowed_with_files[] = {
        SCMP_SYS(chdir),  SCMP_SYS(fchdir),   SCMP_SYS(fchmod),    SCMP_SYS(mkdir), SCMP_SYS(mkdirat),
        SCMP_SYS(rename), SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(rmdir), SCMP_SYS(umask),
        SCMP_SYS(unlink), SCMP_SYS(unlinkat), SCMP_SYS(utimensat),
};

/* Calls that no job needs but an exploit tries: they kill the worker. */
static const int deadly[] = {
        SCMP_SYS(acct),
        SCMP_SYS(add_key),
        SCMP_SYS(bpf),
        SCMP_SYS(chroot),
        SCMP_SYS(delete_module),
        SCMP_SYS(execve),
        SCMP_SYS(execveat),
        SCMP_SYS(finit_module),
        SCMP_SYS(fsconfig),
        SCMP_SYS(fsmount),
        SCMP_SYS(fsopen),
        SCMP_SYS(fspick),
        SCMP_SYS(init_module),
        SCMP_SYS(kexec_file_load),
        SCMP_SYS(kexec_load),
        SCMP_SYS(keyctl),
        SCMP_SYS(mount),
        SCMP_SYS(mount_setattr),
        SCMP_SYS(move_mount),
        SCMP_SYS(open_tree),
        SCMP_SYS(perf_event_open),
        SCMP_SYS(pivot_root),
        SCMP_SYS(process_vm_writev),
        SCMP_SYS(quotactl),
        SCMP_SYS(quotactl_fd),
        SCMP_SYS(reboot),
        SCMP_SYS(request_key),
        SCMP_SYS(setns),
        SCMP_SYS(swapoff),
        SCMP_SYS(swapon),
        SCMP_SYS(umount2),
        SCMP_SYS(unshare),
        SCMP_SYS(userfaultfd),
};

/* ---- argument rules ---------------------------------------------------------- */

#define INT_BITS UINT32_MAX /* the bits of an int argument that the kernel uses */
#define CONDITIONS_MAX 4
#define CLONE_NOT_IN_THREADS                                                                                           \
        (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |   \
         CLONE_PARENT | CLONE_PTRACE | CLONE_UNTRACED | CLONE_VFORK)
#define ANY_WAY_TO_CHANGE_A_FILE (O_ACCMODE | O_CREAT | O_TRUNC | O_ASYNC)
#define SOCKET_TYPE 0xfu

/* Allow the call if (argument & mask) == value for each condition. */
struct guard {
        int call;
        unsigned count;
        struct {
                unsigned argument;
                uint64_t mask, value;
        } conditions[CONDITIONS_MAX];
};

static const struct guard guards[] = {
        { SCMP_SYS(mmap), 1, { { 2, PROT_EXEC, 0 } } },
        { SCMP_SYS(mprotect), 1, { { 2, PROT_EXEC, 0 } } },
        /* Threads, not processes. */
        { SCMP_SYS(clone), 1, { { 0, CLONE_THREAD | CLONE_NOT_IN_THREADS, CLONE_THREAD } } },
        /* Reading its own limits: threads read the size of their stack. */
        { SCMP_SYS(prlimit64), 2, { { 0, INT_BITS, 0 }, { 2, UINT64_MAX, 0 } } },
        { SCMP_SYS(sched_getaffinity), 1, { { 0, INT_BITS, 0 } } },
        { SCMP_SYS(fcntl), 1, { { 1, INT_BITS, F_GETFD } } },
        { SCMP_SYS(fcntl), 1, { { 1, INT_BITS, F_SETFD } } },
        { SCMP_SYS(fcntl), 1, { { 1, INT_BITS, F_GETFL } } },
        { SCMP_SYS(fcntl), 1, { { 1, INT_BITS, F_DUPFD_CLOEXEC } } },
        { SCMP_SYS(fcntl), 2, { { 1, INT_BITS, F_SETFL }, { 2, O_ASYNC, 0 } } },
};

static const struct guard guards_with_network[] = {
        /* Shared libraries, for the resolver. */
        { SCMP_SYS(mmap), 2, { { 2, PROT_EXEC | PROT_WRITE, PROT_EXEC }, { 3, MAP_ANONYMOUS | MAP_SHARED, 0 } } },
        { SCMP_SYS(openat), 1, { { 2, ANY_WAY_TO_CHANGE_A_FILE, 0 } } },
        { SCMP_SYS(open), 1, { { 1, ANY_WAY_TO_CHANGE_A_FILE, 0 } } },
        { SCMP_SYS(socket), 3, { { 0, INT_BITS, AF_INET }, { 1, SOCKET_TYPE, SOCK_STREAM }, { 2, INT_BITS, 0 } } },
        { SCMP_SYS(socket),
          3,
          { { 0, INT_BITS, AF_INET }, { 1, SOCKET_TYPE, SOCK_STREAM }, { 2, INT_BITS, IPPROTO_TCP } } },
        { SCMP_SYS(socket), 3, { { 0, INT_BITS, AF_INET }, { 1, SOCKET_TYPE, SOCK_DGRAM }, { 2, INT_BITS, 0 } } },
        { SCMP_SYS(socket),
          3,
          { { 0, INT_BITS, AF_INET }, { 1, SOCKET_TYPE, SOCK_DGRAM }, { 2, INT_BITS, IPPROTO_UDP } } },
        { SCMP_SYS(socket), 3, { { 0, INT_BITS, AF_INET6 }, { 1, SOCKET_TYPE, SOCK_STREAM }, { 2, INT_BITS, 0 } } },
        { SCMP_SYS(socket),
          3,
          { { 0, INT_BITS, AF_INET6 }, { 1, SOCKET_TYPE, SOCK_STREAM }, { 2, INT_BITS, IPPROTO_TCP } } },
        { SCMP_SYS(socket), 3, { { 0, INT_BITS, AF_INET6 }, { 1, SOCKET_TYPE, SOCK_DGRAM }, { 2, INT_BITS, 0 } } },
        { SCMP_SYS(socket),
          3,
          { { 0, INT_BITS, AF_INET6 }, { 1, SOCKET_TYPE, SOCK_DGRAM }, { 2, INT_BITS, IPPROTO_UDP } } },
        { SCMP_SYS(socketpair), 2, { { 0, INT_BITS, AF_UNIX }, { 1, SOCKET_TYPE, SOCK_STREAM } } },
        { SCMP_SYS(ioctl), 1, { { 1, INT_BITS, FIONBIO } } },
        { SCMP_SYS(ioctl), 1, { { 1, INT_BITS, FIONREAD } } },
        { SCMP_SYS(prctl), 1, { { 0, INT_BITS, PR_SET_NAME } } },
};

static const struct guard guards_with_files[] = {
        { SCMP_SYS(openat), 1, { { 2, O_ASYNC, 0 } } },
        { SCMP_SYS(open), 1, { { 1, O_ASYNC, 0 } } },
};

static int add_guard(scmp_filter_ctx filter, const struct guard *g)
{
        struct scmp_arg_cmp compared[CONDITIONS_MAX];

        for (unsigned i = 0; i < g->count; i++)
                compared[i] = SCMP_CMP64(g->conditions[i].argument, SCMP_CMP_MASKED_EQ, g->conditions[i].mask,
                                         g->conditions[i].value & g->conditions[i].mask);
        return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, g->call, g->count, compared);
}

static int add_guards(scmp_filter_ctx filter, const struct guard *list, size_t count)
{
        int r = 0;

        for (size_t i = 0; !r && i < count; i++)
                r = add_guard(filter, &list[i]);
        return r;
}

static int add_calls(scmp_filter_ctx filter, uint32_t action, const int *list, size_t count)
{
        int r = 0;

        for (size_t i = 0; !r && i < count; i++)
                r = seccomp_rule_add(filter, action, list[i], 0);
        return r;
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* abort() signals its own thread. The pid is that of this process: the filter is installed after the last fork. */
static int allow_own_signals(scmp_filter_ctx filter)
{
        const struct guard own = { SCMP_SYS(tgkill), 1, { { 0, INT_BITS, (uint32_t)getpid() } } };

        return add_guard(filter, &own);
}

static int fill_allowed(scmp_filter_ctx filter)
{
        int r = add_guards(filter, guards, COUNT(guards));

        if (!r)
                r = allow_own_signals(filter);
        if (!r) /* the flags are in memory, which seccomp cannot read; on ENOSYS libc falls back to clone */
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
        return r ? r : add_calls(filter, SCMP_ACT_ALLOW, allowed, COUNT(allowed));
}

static int fill_network(scmp_filter_ctx filter)
{
        int r = add_guards(filter, guards_with_network, COUNT(guards_with_network));

        if (!r) /* the error of a kernel without such sockets: no name service daemon, and all interfaces are tried */
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                                     SCMP_A0(SCMP_CMP_MASKED_EQ, INT_BITS, AF_UNIX));
        if (!r)
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                                     SCMP_A0(SCMP_CMP_MASKED_EQ, INT_BITS, AF_NETLINK));
        return r ? r : add_calls(filter, SCMP_ACT_ALLOW, allowed_with_network, COUNT(allowed_with_network));
}

static int fill_files(scmp_filter_ctx filter)
{
        int r = add_guards(filter, guards_with_files, COUNT(guards_with_files));

        return r ? r : add_calls(filter, SCMP_ACT_ALLOW, allowed_with_files, COUNT(allowed_with_files));
}

/* ---- the filter ------------------------------------------------------------------ */

static int fill_filter(scmp_filter_ctx filter, enum worker_needs needs, bool with_files)
{
        int r = add_calls(filter, SCMP_ACT_KILL_PROCESS, deadly, COUNT(deadly));

        if (!r && needs != WORKER_NEEDS_NETWORK)
                r = seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, SCMP_SYS(socket), 0);
        if (BUILT_WITH_SANITIZER)
                return r;
        if (!r)
                r = fill_allowed(filter);
        if (!r && needs == WORKER_NEEDS_DESCRIPTORS)
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(recvmsg), 0);
        if (!r && needs == WORKER_NEEDS_NETWORK)
                r = fill_network(filter);
        if (!r && with_files)
                r = fill_files(filter);
        return r;
}

enum status seccomp_restrict(enum worker_needs needs, bool with_files, struct error *err)
{
        scmp_filter_ctx filter = seccomp_init(BUILT_WITH_SANITIZER ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EPERM));
        int r;

        if (!filter)
                return error_no_memory(err);
        r = fill_filter(filter, needs, with_files);
        if (!r)
                r = seccomp_load(filter); /* sets no_new_privs */
        seccomp_release(filter);
        if (r)
                return error_os(err, -r, "cannot confine the worker");
        return ST_OK;
}
