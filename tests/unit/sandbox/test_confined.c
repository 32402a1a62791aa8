/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests from inside what a confined worker can do. This program is its own worker. Each list of attempts runs as on
 * kernels with Landlock ABIs 0 (none) to LANDLOCK_ABI_NEWEST, and all must be denied on each.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/limits.h"
#include "sandbox/confine_internal.h"
#include "sandbox/landlock.h"
#include "sandbox/mount_namespace.h"
#include "sandbox/sanitizers.h"
#include "sandbox/worker.h"
#include "sandbox/worker_user.h"
#include "tests/support/suite.h"

#define DEADLY_COUNT 34
#define NEWER_CALL 600 /* the first system call number not covered by the lists here */

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif

static enum status run(const char *job, int abi, struct error *err)
{
        char number[12];
        const char *const args[] = { job, number, NULL };

        snprintf(number, sizeof number, "%d", abi);
        return worker_run(&(struct worker_job){ .args = args, .cpu_s = 20, .memory_bytes = MiB(256) }, err);
}

static void assert_succeeds_with_each_abi(const char *job)
{
        struct error err = { .text = "" };

        if (BUILT_WITH_SANITIZER)
                return; /* there with a less strict filter and without Landlock */
        for (int abi = 0; abi <= LANDLOCK_ABI_NEWEST; abi++)
                ck_assert_msg(run(job, abi, &err) == ST_OK, "Landlock ABI %d: %s", abi, err.text);
}

START_TEST(file_worker_is_isolated)
{
        assert_succeeds_with_each_abi("file");
}
END_TEST

START_TEST(worker_with_descriptors_is_isolated)
{
        assert_succeeds_with_each_abi("descriptors");
}
END_TEST

START_TEST(network_worker_cannot_access_processes_or_change_files)
{
        assert_succeeds_with_each_abi("network");
}
END_TEST

START_TEST(a_network_worker_resolves_names_and_reads_certificates)
{
        assert_succeeds_with_each_abi("network-use");
}
END_TEST

START_TEST(worker_with_files_writes_only_in_its_directory)
{
        char cache[] = "/tmp/cairn-cache-XXXXXX", other[] = "/var/tmp/cairn-other-XXXXXX";

        ck_assert(mkdtemp(cache) && mkdtemp(other) && !chmod(cache, 0777) && !chmod(other, 0777));
        setenv("CAIRN_TEST_CACHE", cache, 1);
        setenv("CAIRN_TEST_OTHER", other, 1);
        assert_succeeds_with_each_abi("cache");
        ck_assert(!rmdir(cache) && !rmdir(other));
}
END_TEST

START_TEST(suspicious_system_calls_kill_worker)
{
        struct error err = { .text = "" };
        char job[32];

        for (size_t i = 0; i < DEADLY_COUNT; i++) {
                snprintf(job, sizeof job, "file-deadly-%zu", i);
                ck_assert_int_eq(run(job, LANDLOCK_ABI_NEWEST, &err), ST_BAD_DATA);
                ck_assert_msg(strstr(err.text, "forbidden system call"), "%s: %s", job, err.text);
                snprintf(job, sizeof job, "network-deadly-%zu", i);
                if (i == 0)
                        continue; /* a socket */
                ck_assert_int_eq(run(job, LANDLOCK_ABI_NEWEST, &err), ST_BAD_DATA);
                ck_assert_msg(strstr(err.text, "forbidden system call"), "%s: %s", job, err.text);
        }
}
END_TEST

START_TEST(landlock_without_filter_denies_files)
{
        struct error err = { .text = "" };

        for (int abi = 0; abi <= LANDLOCK_ABI_NEWEST; abi++)
                ck_assert_msg(run("landlock", abi, &err) == ST_OK, "Landlock ABI %d: %s", abi, err.text);
}
END_TEST

START_TEST(worker_has_given_resource_limits)
{
        struct error err = { .text = "" };

        ck_assert_msg(run("limits", 0, &err) == ST_OK, "%s", err.text);
}
END_TEST

START_TEST(worker_of_root_changes_user)
{
        struct error err = { .text = "" };

        if (geteuid() != 0)
                return;
        if (worker_user_choose(NULL, &err) == ST_UNSUPPORTED)
                return; /* a user namespace without that uid */
        ck_assert_msg(run("user", WORKER_USER_DEFAULT, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(worker_user_uid(), WORKER_USER_DEFAULT);
        ck_assert_msg(worker_user_choose("61112", &err) == ST_OK, "%s", err.text);
        ck_assert_msg(run("user", 61112, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(worker_user_choose("0", &err), ST_USAGE);
        ck_assert_int_eq(worker_user_choose("root", &err), ST_USAGE);
        ck_assert_int_eq(worker_user_choose("no-such-account-here", &err), ST_USAGE);
}
END_TEST

START_TEST(unavailable_worker_user_is_an_error)
{
        struct error err = { .text = "" };
        int status = 0;
        pid_t pid = fork();

        if (pid == 0) { /* without CAP_SETUID */
                enum status chosen, ran;

                if (geteuid() != 0)
                        _exit(0);
                worker_user_drop_capabilities();
                chosen = worker_user_choose("61112", &err);
                ran = run("user", 61112, &err);
                _exit(chosen == ST_UNSUPPORTED && ran == ST_OS ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(worker_of_root_without_setuid_capability_runs)
{
        struct error err = { .text = "" };
        int status = 0;
        pid_t pid = fork();

        if (pid == 0) {
                if (geteuid() != 0)
                        _exit(0);
                worker_user_drop_capabilities();
                if (worker_user_choose(NULL, &err) != ST_UNSUPPORTED)
                        _exit(1);
                _exit(run("user", 0, &err) == ST_OK && worker_user_uid() == 0 ? 0 : 2);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
}
END_TEST

/* ---- in the worker ---- */

static int fail_worker(const char *text)
{
        fprintf(stderr, "%s\n", text);
        return worker_exit_code(ST_BAD_DATA);
}

struct attempt {
        const char *what;
        long number, args[6];
};

/* Check that a call is denied: by the filter, or for a file by the mechanism under test. */
static bool attempt_is_denied(const struct attempt *a, const char *who)
{
        long r = syscall(a->number, a->args[0], a->args[1], a->args[2], a->args[3], a->args[4], a->args[5]);

        if (r == -1 && errno == EPERM)
                return true;
        fprintf(stderr, "%s: %s gives %ld (%s)\n", who, a->what, r, strerror(errno));
        return false;
}

/* A process of the same user, started before the worker is confined; it ends with the worker. */
static pid_t start_victim(void)
{
        int pipe_fds[2];
        pid_t pid;
        char byte;

        if (pipe(pipe_fds))
                return -1;
        pid = fork();
        if (pid == 0) {
                close(pipe_fds[1]);
                (void)!read(pipe_fds[0], &byte, 1);
                _exit(0);
        }
        return pid;
}

/* Denied to both kinds of worker by the filter alone; most of it would succeed otherwise. */
static bool all_are_denied(const char *who, pid_t victim)
{
        static const char name[] = "/tmp/cairn-worker-was-here", file[] = "/etc/passwd";
        static const struct rlimit more = { RLIM_INFINITY, RLIM_INFINITY };
        static uint64_t zeros[32];
        static const struct f_owner_ex owner = { F_OWNER_PID, 1 };
        static int on = 1;
        const struct attempt attempts[] = {
                { "openat2", SYS_openat2, { AT_FDCWD, (long)file, (long)zeros, 24 } },
                { "open_by_handle_at", SYS_open_by_handle_at, { AT_FDCWD, (long)zeros, O_RDONLY } },
                { "name_to_handle_at", SYS_name_to_handle_at, { AT_FDCWD, (long)file, (long)zeros, (long)&on, 0 } },
                { "create", SYS_openat, { AT_FDCWD, (long)name, O_CREAT | O_WRONLY, 0600 } },
                { "create for reading", SYS_openat, { AT_FDCWD, (long)name, O_CREAT | O_RDONLY, 0600 } },
                { "truncate by opening", SYS_openat, { AT_FDCWD, (long)"/dev/null", O_TRUNC | O_RDONLY } },
                { "open to write", SYS_openat, { AT_FDCWD, (long)"/dev/null", O_WRONLY } },
                { "open to read and write", SYS_openat, { AT_FDCWD, (long)"/dev/null", O_RDWR } },
                { "open of no name", SYS_openat, { AT_FDCWD, (long)"/tmp", __O_TMPFILE | O_DIRECTORY | O_RDWR, 0600 } },
#ifdef SYS_open
                { "open to write by its old name", SYS_open, { (long)"/dev/null", O_RDWR } },
                { "creat", SYS_creat, { (long)name, 0600 } },
                { "mkdir", SYS_mkdir, { (long)name, 0700 } },
                { "symlink", SYS_symlink, { (long)"/etc", (long)name } },
                { "link", SYS_link, { (long)file, (long)name } },
                { "mknod", SYS_mknod, { (long)name, 0600 } },
                { "unlink", SYS_unlink, { (long)name } },
                { "rename", SYS_rename, { (long)name, (long)"/tmp/other" } },
                { "chmod", SYS_chmod, { (long)name, 0777 } },
                { "fork", SYS_fork, { 0 } },
                { "vfork", SYS_vfork, { 0 } },
                { "iopl", SYS_iopl, { 3 } },
#endif
                { "mkdirat", SYS_mkdirat, { AT_FDCWD, (long)name, 0700 } },
                { "symlinkat", SYS_symlinkat, { (long)"/etc", AT_FDCWD, (long)name } },
                { "linkat", SYS_linkat, { AT_FDCWD, (long)file, AT_FDCWD, (long)name, 0 } },
                { "mknodat", SYS_mknodat, { AT_FDCWD, (long)name, 0600, 0 } },
                { "unlinkat", SYS_unlinkat, { AT_FDCWD, (long)name, 0 } },
                { "renameat2", SYS_renameat2, { AT_FDCWD, (long)name, AT_FDCWD, (long)"/tmp/other", 0 } },
                { "fchmod", SYS_fchmod, { 2, 0777 } },
                { "fchmodat", SYS_fchmodat, { AT_FDCWD, (long)name, 0777 } },
                { "fchown", SYS_fchown, { 2, -1, -1 } },
                { "fchownat", SYS_fchownat, { AT_FDCWD, (long)name, 0, 0, 0 } },
                { "utimensat", SYS_utimensat, { AT_FDCWD, (long)name, 0, 0 } },
                { "setxattr", SYS_setxattr, { (long)name, (long)"user.x", (long)"", 0, 0 } },
                { "truncate", SYS_truncate, { (long)name, 0 } },
                { "chdir", SYS_chdir, { (long)"/" } },
                { "memfd_create", SYS_memfd_create, { (long)"x", 0 } },
                { "inotify_init1", SYS_inotify_init1, { 0 } },
                { "fanotify_init", SYS_fanotify_init, { 0, 0 } },
                { "bind", SYS_bind, { 3, (long)zeros, 16 } },
                { "listen", SYS_listen, { 3, 1 } },
                { "accept4", SYS_accept4, { 3, 0, 0, 0 } },
                { "socketpair of datagrams", SYS_socketpair, { AF_UNIX, SOCK_DGRAM, 0, (long)zeros } },
                { "socketpair of packets", SYS_socketpair, { AF_UNIX, SOCK_SEQPACKET, 0, (long)zeros } },
                { "io_uring_setup", SYS_io_uring_setup, { 8, (long)zeros } },
                { "io_uring_enter", SYS_io_uring_enter, { 3, 0, 0, 0, 0, 0 } },
                { "io_uring_register", SYS_io_uring_register, { 3, 0, 0, 0 } },
                { "io_setup", SYS_io_setup, { 1, (long)zeros } },
                { "clone of a process", SYS_clone, { SIGCHLD } },
                { "clone into a user namespace", SYS_clone, { CLONE_NEWUSER | SIGCHLD } },
                { "kill of another", SYS_kill, { victim, 0 } },
                { "kill of itself", SYS_kill, { getpid(), 0 } },
                { "kill of all", SYS_kill, { -1, 0 } },
                { "tkill", SYS_tkill, { victim, 0 } },
                { "tgkill of another", SYS_tgkill, { victim, victim, 0 } },
                { "tgkill of the parent", SYS_tgkill, { getppid(), getppid(), 0 } },
                { "tgkill of any group", SYS_tgkill, { -1, victim, 0 } },
                { "rt_sigqueueinfo", SYS_rt_sigqueueinfo, { victim, SIGCONT, (long)zeros } },
                { "rt_tgsigqueueinfo", SYS_rt_tgsigqueueinfo, { victim, victim, SIGCONT, (long)zeros } },
                { "pidfd_open", SYS_pidfd_open, { victim, 0 } },
                { "pidfd_send_signal", SYS_pidfd_send_signal, { 3, 0, 0, 0 } },
                { "pidfd_getfd", SYS_pidfd_getfd, { 3, 0, 0 } },
                { "ptrace", SYS_ptrace, { 16 /* PTRACE_ATTACH */, victim } },
                { "process_vm_readv", SYS_process_vm_readv, { victim } },
                { "process_madvise", SYS_process_madvise, { 3, 0, 0, 0, 0 } },
                { "process_mrelease", SYS_process_mrelease, { 3, 0 } },
                { "kcmp", SYS_kcmp, { victim, getpid(), 0, 0, 0 } },
                { "get_robust_list", SYS_get_robust_list, { victim, (long)zeros, (long)(zeros + 1) } },
                { "limits of another", SYS_prlimit64, { victim, RLIMIT_CORE, 0, (long)zeros } },
                { "more limits", SYS_prlimit64, { 0, RLIMIT_DATA, (long)&more, 0 } },
                { "setrlimit", SYS_setrlimit, { RLIMIT_DATA, (long)&more } },
                { "sched_getaffinity", SYS_sched_getaffinity, { victim, sizeof zeros, (long)zeros } },
                { "sched_setaffinity", SYS_sched_setaffinity, { victim, sizeof zeros, (long)zeros } },
                { "sched_setscheduler", SYS_sched_setscheduler, { victim, 0, (long)zeros } },
                { "sched_setparam", SYS_sched_setparam, { victim, (long)zeros } },
                { "sched_setattr", SYS_sched_setattr, { victim, (long)zeros, 0 } },
                { "setpriority", SYS_setpriority, { PRIO_PROCESS, victim, 19 } },
                { "ioprio_set", SYS_ioprio_set, { 1, victim, 0 } },
                { "migrate_pages", SYS_migrate_pages, { victim, 0, 0, 0 } },
                { "move_pages", SYS_move_pages, { victim, 0, 0, 0, 0, 0 } },
                { "setpgid", SYS_setpgid, { victim, 0 } },
                { "setsid", SYS_setsid, { 0 } },
                { "timer_create", SYS_timer_create, { CLOCK_MONOTONIC, 0, (long)zeros } },
                { "mq_open", SYS_mq_open, { (long)"cairn", O_CREAT | O_RDWR, 0600, 0 } },
                { "mq_notify", SYS_mq_notify, { 3, 0 } },
                { "F_SETOWN", SYS_fcntl, { 2, F_SETOWN, victim } },
                { "F_SETOWN_EX", SYS_fcntl, { 2, F_SETOWN_EX, (long)&owner } },
                { "F_SETSIG", SYS_fcntl, { 2, F_SETSIG, SIGKILL } },
                { "F_SETLEASE", SYS_fcntl, { 0, F_SETLEASE, F_RDLCK } },
                { "F_NOTIFY", SYS_fcntl, { 0, F_NOTIFY, DN_ACCESS } },
                { "F_SETPIPE_SZ", SYS_fcntl, { 2, F_SETPIPE_SZ, 1 << 20 } },
                { "F_ADD_SEALS", SYS_fcntl, { 2, F_ADD_SEALS, 0 } },
                { "F_SETLK", SYS_fcntl, { 2, F_SETLK, (long)zeros } },
                { "O_ASYNC", SYS_fcntl, { 2, F_SETFL, O_ASYNC } },
                { "FIOASYNC", SYS_ioctl, { 2, FIOASYNC, (long)&on } },
                { "FIOSETOWN", SYS_ioctl, { 2, 0x8901, (long)&victim } },
                { "SIOCSPGRP", SYS_ioctl, { 2, 0x8902, (long)&victim } },
                { "TIOCSTI", SYS_ioctl, { 2, TIOCSTI, (long)"x" } },
                { "TIOCSTI with more bits than the kernel looks at", SYS_ioctl, { 2, TIOCSTI | 1l << 32, (long)"x" } },
                { "TIOCLINUX", SYS_ioctl, { 2, TIOCLINUX, (long)zeros } },
                { "PR_SET_DUMPABLE", SYS_prctl, { PR_SET_DUMPABLE, 1 } },
                { "PR_SET_PTRACER", SYS_prctl, { PR_SET_PTRACER, -1 } },
                { "PR_SET_MM", SYS_prctl, { PR_SET_MM, 0, 0, 0, 0 } },
                { "PR_SCHED_CORE", SYS_prctl, { 62, 0, victim, 0, 0 } },
                { "setuid", SYS_setuid, { 0 } },
                { "setgid", SYS_setgid, { 0 } },
                { "setgroups", SYS_setgroups, { 0, 0 } },
                { "setresuid", SYS_setresuid, { 0, 0, 0 } },
                { "capset", SYS_capset, { (long)zeros, (long)zeros } },
                { "personality", SYS_personality, { 0xffffffff } },
                { "writable code",
                  SYS_mmap,
                  { 0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0 } },
                { "memory with code",
                  SYS_mmap,
                  { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0 } },
                { "memory made code", SYS_mprotect, { (long)zeros & -4096, 4096, PROT_READ | PROT_EXEC } },
                { "shmget", SYS_shmget, { 1, 4096, 0600 } },
                { "semget", SYS_semget, { 1, 1, 0600 } },
                { "msgget", SYS_msgget, { 1, 0600 } },
                { "syslog", SYS_syslog, { 3, 0, 0 } },
                { "sethostname", SYS_sethostname, { (long)"x", 1 } },
                { "settimeofday", SYS_settimeofday, { 0, 0 } },
                { "a call of the future", NEWER_CALL, { 0 } },
        };
        bool denied = true;

        for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
                denied &= attempt_is_denied(&attempts[i], who);
        return denied;
}

/* For a worker without network access. */
static bool files_and_sockets_are_denied(const char *who)
{
        const struct attempt attempts[] = {
                { "open", SYS_openat, { AT_FDCWD, (long)"/etc/passwd", O_RDONLY } },
#ifdef SYS_open
                { "open by its old name", SYS_open, { (long)"/etc/passwd", O_RDONLY } },
                { "readlink", SYS_readlink, { (long)"/proc/self/exe", 0, 0 } },
#endif
                { "getdents", SYS_getdents64, { 3, 0, 0 } },
                { "connect", SYS_connect, { 3, 0, 0 } },
                { "socketpair", SYS_socketpair, { AF_UNIX, SOCK_STREAM, 0, 0 } },
                { "sendmsg", SYS_sendmsg, { 3, 0, 0 } },
                { "sendto", SYS_sendto, { 3, 0, 0, 0, 0, 0 } },
                { "ioctl", SYS_ioctl, { 2, FIONREAD, 0 } },
                { "prctl", SYS_prctl, { PR_SET_NAME, (long)"x" } },
        };
        bool denied = true;

        for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
                denied &= attempt_is_denied(&attempts[i], who);
        return denied;
}

static bool sockets_are_denied(void)
{
        const struct {
                const char *what;
                int family, type, protocol;
        } sockets[] = {
                { "AF_UNIX stream", AF_UNIX, SOCK_STREAM, 0 },
                { "AF_UNIX datagram", AF_UNIX, SOCK_DGRAM, 0 },
                { "AF_UNIX packets", AF_UNIX, SOCK_SEQPACKET, 0 },
                { "AF_NETLINK", AF_NETLINK, SOCK_RAW, 0 },
                { "AF_PACKET", AF_PACKET, SOCK_RAW, 0 },
                { "AF_VSOCK", AF_VSOCK, SOCK_STREAM, 0 },
                { "AF_ALG", AF_ALG, SOCK_SEQPACKET, 0 },
                { "raw IPv4", AF_INET, SOCK_RAW, IPPROTO_ICMP },
                { "ping", AF_INET, SOCK_DGRAM, IPPROTO_ICMP },
                { "SCTP", AF_INET, SOCK_STREAM, IPPROTO_SCTP },
                { "raw IPv6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6 },
        };
        bool denied = true;

        for (size_t i = 0; i < sizeof sockets / sizeof *sockets; i++)
                if (socket(sockets[i].family, sockets[i].type | SOCK_CLOEXEC, sockets[i].protocol) >= 0 ||
                    (errno != EPERM &&
                     !(errno == EAFNOSUPPORT && (sockets[i].family == AF_UNIX || sockets[i].family == AF_NETLINK)))) {
                        fprintf(stderr, "network: socket %s: %s\n", sockets[i].what, strerror(errno));
                        denied = false;
                }
        return denied;
}

/* By Landlock, or because the files are not in the worker's file system. */
static bool secrets_are_denied(pid_t victim, bool has_file_rules)
{
        char memory[48], environment[48], directory[48];
        const char *const paths[] = {
                memory,  environment, directory, "/etc/passwd", "/proc/self/environ", "/proc/1/environ",
                "/root", "/tmp",      "/var/tmp"
        };
        bool denied = true;

        snprintf(memory, sizeof memory, "/proc/%d/mem", (int)victim);
        snprintf(environment, sizeof environment, "/proc/%d/environ", (int)victim);
        snprintf(directory, sizeof directory, "/proc/%d/fd/0", (int)victim);
        for (size_t i = 0; has_file_rules && i < sizeof paths / sizeof *paths; i++)
                if (open(paths[i], O_RDONLY | O_CLOEXEC) >= 0 || (errno != EACCES && errno != ENOENT)) {
                        fprintf(stderr, "network: opening '%s': %s\n", paths[i], strerror(errno));
                        denied = false;
                }
        return denied;
}

/*
 * Whether the machine has /etc/hosts, checked before the worker is confined: a root file system made by debootstrap has
 * none, and then "localhost" is resolved only if a DNS server does so.
 */
static bool hosts_file_exists;

/* These must still work. */
static int use_network(void)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG }, *found = NULL;
        int pair[2], fd = open(hosts_file_exists ? "/etc/hosts" : "/etc/nsswitch.conf", O_RDONLY | O_CLOEXEC), s;

        if (fd < 0 || close(fd))
                return fail_worker("the files that say how names are resolved cannot be read");
        if (hosts_file_exists) {
                if (getaddrinfo("localhost", "80", &hints, &found) || !found)
                        return fail_worker("names cannot be resolved");
                freeaddrinfo(found);
        }
        s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
        if (s < 0 || fcntl(s, F_SETFL, O_NONBLOCK) || socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0) < 0)
                return fail_worker("there are no Internet sockets");
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
                return fail_worker("there are no pairs of sockets");
        if (syscall(SYS_tgkill, getpid(), gettid(), 0))
                return fail_worker("it cannot signal itself");
        return 0;
}

/* A socket in the abstract namespace to which any process may connect. */
static bool listen_at(struct sockaddr_un *ret, socklen_t *size_ret)
{
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
        *size_ret = sizeof *ret;
        return fd >= 0 && bind(fd, (struct sockaddr *)ret, sizeof(sa_family_t)) == 0 && listen(fd, 1) == 0 &&
               getsockname(fd, (struct sockaddr *)ret, size_ret) == 0;
}

/* A stream socket of a pair stays connected to its peer. EPERM is Landlock's error. */
static bool pair_cannot_be_connected(const struct sockaddr_un *to, socklen_t size)
{
        static const struct sockaddr none = { .sa_family = AF_UNSPEC };
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) {
                close(pair[1]);
                connect(pair[0], &none, sizeof none);
                if (connect(pair[0], (const struct sockaddr *)to, size) < 0 && (errno == EISCONN || errno == EPERM))
                        return true;
        }
        fprintf(stderr, "network: a pair of sockets can be connected: %s\n", strerror(errno));
        return false;
}

static int attempt_all(const char *job, int abi)
{
        bool network = strncmp(job, "network", 7) == 0, denied;
        enum worker_needs needs = network                           ? WORKER_NEEDS_NETWORK
                                  : strcmp(job, "descriptors") == 0 ? WORKER_NEEDS_DESCRIPTORS
                                                                    : WORKER_NEEDS_NOTHING;
        bool has_file_rules = abi > 0 && landlock_version() > 0;
        pid_t victim = start_victim();
        struct sockaddr_un listening;
        socklen_t size;
        struct error err;

        if (!listen_at(&listening, &size))
                return fail_worker("cannot listen");

        if (network && !has_file_rules) { /* also where namespaces are permitted */
                int status = 0;
                pid_t pid = fork();

                if (pid == 0)
                        _exit(mount_namespace_enter(NULL) ? 0 : 1);
                waitpid(pid, &status, 0);
                has_file_rules = status == 0;
        }
        if (confine_with_landlock_abi(needs, abi, &err))
                return fail_worker(err.text);
        if (strcmp(job, "network-use") == 0)
                return use_network();
        denied = all_are_denied(job, victim);
        if (network)
                denied = sockets_are_denied() & secrets_are_denied(victim, has_file_rules) &
                         pair_cannot_be_connected(&listening, size) & denied;
        else
                denied &= files_and_sockets_are_denied(job);
        return denied ? 0 : worker_exit_code(ST_BAD_DATA);
}

static const long deadly[] = {
        SYS_socket,          SYS_acct,
        SYS_add_key,         SYS_bpf,
        SYS_chroot,          SYS_delete_module,
        SYS_execve,          SYS_execveat,
        SYS_finit_module,    SYS_fsconfig,
        SYS_fsmount,         SYS_fsopen,
        SYS_fspick,          SYS_init_module,
        SYS_kexec_file_load, SYS_kexec_load,
        SYS_keyctl,          SYS_mount,
        SYS_mount_setattr,   SYS_move_mount,
        SYS_open_tree,       SYS_perf_event_open,
        SYS_pivot_root,      SYS_process_vm_writev,
        SYS_quotactl,        SYS_quotactl_fd,
        SYS_reboot,          SYS_request_key,
        SYS_setns,           SYS_swapoff,
        SYS_swapon,          SYS_umount2,
        SYS_unshare,         SYS_userfaultfd,
};
_Static_assert(sizeof deadly / sizeof *deadly == DEADLY_COUNT, "each is tried");

/* Landlock alone, if the kernel supports it. */
static int restrict_by_landlock(int abi_max)
{
        int abi = landlock_version() < abi_max ? landlock_version() : abi_max;
        struct error err;

        if (landlock_restrict(WORKER_NEEDS_NOTHING, NULL, abi_max, &err))
                return fail_worker(err.text);
        if (!abi)
                return open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0
                               ? 0
                               : fail_worker("without Landlock a file is not opened");
        if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
                return fail_worker("a file was opened");
        if (mkdir("/tmp/cairn-worker-was-here", 0700) == 0 || errno != EACCES)
                return fail_worker("a directory was made");
        if (abi >= 6 && (kill(getppid(), 0) == 0 || errno != EPERM))
                return fail_worker("the parent can be killed");
        return 0;
}

static int show_limits(void)
{
        static const int which[] = { RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_CORE };
        struct rlimit l;

        for (size_t i = 0; i < sizeof which / sizeof *which; i++)
                if (getrlimit(which[i], &l) || l.rlim_max == RLIM_INFINITY)
                        return fail_worker("something has no limit");
        if (!BUILT_WITH_SANITIZER && (getrlimit(RLIMIT_DATA, &l) || l.rlim_max != MiB(256)))
                return fail_worker("memory has another limit");
        if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
                return fail_worker("there may be new privileges");
        return 0;
}

static int show_user(unsigned expected)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct caps[2];
        uid_t r, e, s;
        gid_t g;

        if (getresuid(&r, &e, &s) || r != expected || e != expected || s != expected)
                return fail_worker("another user");
        if (expected && (getresgid(&g, &g, &g) || g != expected || getgroups(0, NULL) != 0))
                return fail_worker("another group");
        if (syscall(SYS_capget, &header, caps) || caps[0].permitted || caps[1].permitted || caps[0].effective)
                return fail_worker("capabilities");
        if (prctl(PR_GET_PDEATHSIG, &r) || r != SIGKILL)
                return fail_worker("it would outlive its parent");
        return 0;
}

static bool use_cache(const char *directory)
{
        char from[64], to[64], below[64];
        int fd;

        snprintf(from, sizeof from, "%s/a", directory);
        snprintf(to, sizeof to, "%s/b", directory); /* in the same directory, since ABI 1 permits no other */
        snprintf(below, sizeof below, "%s/below", directory);
        fd = open(from, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        return fd >= 0 && write(fd, "x", 1) == 1 && fchmod(fd, 0400) == 0 && close(fd) == 0 &&
               mkdir(below, 0700) == 0 && utimensat(AT_FDCWD, from, NULL, 0) == 0 && rename(from, to) == 0 &&
               open(to, O_RDONLY | O_CLOEXEC) >= 0 && unlink(to) == 0 && rmdir(below) == 0;
}

/* Any user may create files in the other directory. */
static bool writes_elsewhere(const char *other)
{
        char path[64];

        snprintf(path, sizeof path, "%s/a", other);
        return open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0 || mkdir(path, 0700) == 0 ||
               open("/usr/cairn-worker-was-here", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0;
}

/* The worker of libdebuginfod: a cache to which it writes, and another directory that must not change. */
static int use_files(int abi)
{
        const char *cache = getenv("CAIRN_TEST_CACHE"), *other = getenv("CAIRN_TEST_OTHER");
        static const char *const readable[] = { "/etc/passwd", NULL };
        const struct worker_files files = { .writable = cache, .readable = readable };
        bool has_file_rules = abi > 0 && landlock_version() > 0, works, escapes, reads;
        struct error err;

        if (!has_file_rules) {
                int status = 0;
                pid_t pid = fork();

                if (pid == 0)
                        _exit(mount_namespace_enter(&files) ? 0 : 1);
                waitpid(pid, &status, 0);
                has_file_rules = status == 0;
        }
        if (confine_files_with_landlock_abi(&files, abi, &err))
                return fail_worker(err.text);
        works = use_cache(cache);
        escapes = writes_elsewhere(other);
        reads = open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0;
        if (!works)
                return fail_worker("the cache cannot be used");
        if (!reads)
                return fail_worker("a file that it may read cannot be read");
        return has_file_rules && escapes ? fail_worker("a file elsewhere was written") : 0;
}

static int work(const char *job, int abi)
{
        bool network = strncmp(job, "network", 7) == 0;
        const char *number = strstr(job, "-deadly-");
        struct error err;

        if (strcmp(job, "landlock") == 0)
                _exit(restrict_by_landlock(abi)); /* a leak sanitizer opens files at a normal exit */
        if (strcmp(job, "limits") == 0)
                return show_limits();
        if (strcmp(job, "user") == 0)
                return show_user((unsigned)abi);
        if (strcmp(job, "cache") == 0)
                return use_files(abi);
        if (!number)
                return attempt_all(job, abi);
        if (confine_with_landlock_abi(network ? WORKER_NEEDS_NETWORK : WORKER_NEEDS_NOTHING, abi, &err))
                return fail_worker(err.text);
        syscall(deadly[strtoul(number + strlen("-deadly-"), NULL, 10)], -1, 0, 0, 0, 0, 0);
        return fail_worker("it only failed");
}

int main(int argc, char **argv)
{
        const TTest *const tests[] = {
                file_worker_is_isolated,
                worker_with_descriptors_is_isolated,
                network_worker_cannot_access_processes_or_change_files,
                a_network_worker_resolves_names_and_reads_certificates,
                worker_with_files_writes_only_in_its_directory,
                suspicious_system_calls_kill_worker,
                landlock_without_filter_denies_files,
                worker_has_given_resource_limits,
                worker_of_root_changes_user,
                unavailable_worker_user_is_an_error,
                worker_of_root_without_setuid_capability_runs,
        };

        hosts_file_exists = access("/etc/hosts", F_OK) == 0;
        if (argc > 3 && strcmp(argv[1], "worker") == 0)
                return work(argv[2], (int)strtoul(argv[3], NULL, 10));
        return suite_run("confined", tests, sizeof tests / sizeof *tests);
}
