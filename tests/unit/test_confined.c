/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker can do once its doors are shut: it tries, from inside. This program is its own worker. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/options.h"
#include "sandbox/landlock.h"
#include "sandbox/sanitizers.h"
#include "sandbox/worker.h"
#include "tests/support/suite.h"

#define DEADLY_COUNT 17

static enum status run(const char *job, struct error *err)
{
        const char *const args[] = { job, NULL };

        return worker_run(&(struct worker_job){ .args = args, .cpu_s = 20, .memory_bytes = MiB(256) }, err);
}

static void assert_fails(const char *job, enum status st, const char *text)
{
        struct error err = { .text = "" };

        ck_assert_int_eq(run(job, &err), st);
        ck_assert_msg(strstr(err.text, text), "%s: %s", job, err.text);
}

START_TEST(a_confined_worker_reaches_nothing_outside)
{
        struct error err = { .text = "" };

        if (BUILT_WITH_SANITIZER)
                return; /* a looser filter there */
        ck_assert_msg(run("attempts", &err) == ST_OK, "%s", err.text);
}
END_TEST

START_TEST(a_confined_worker_that_tries_what_only_intruders_do_is_killed)
{
        char job[24];

        for (size_t i = 0; i < DEADLY_COUNT; i++) {
                snprintf(job, sizeof job, "deadly-%zu", i);
                assert_fails(job, ST_BAD_DATA, "forbidden system call");
        }
}
END_TEST

START_TEST(without_the_filter_landlock_still_opens_nothing)
{
        struct error err = { .text = "" };

        ck_assert_msg(run("landlock", &err) == ST_OK, "%s", err.text);
}
END_TEST

START_TEST(a_worker_with_network_reads_certificates_and_no_secrets)
{
        struct error err = { .text = "" };

        if (BUILT_WITH_SANITIZER)
                return; /* no Landlock there */
        ck_assert_msg(run("network-files", &err) == ST_OK, "%s", err.text);
}
END_TEST

START_TEST(a_worker_has_no_more_limits_than_it_was_given)
{
        struct error err = { .text = "" };

        ck_assert_msg(run("limits", &err) == ST_OK, "%s", err.text);
}
END_TEST

/* ---- in the worker ---- */

static int give_up(enum status st, const char *text)
{
        fprintf(stderr, "%s\n", text);
        return worker_exit_code(st);
}

/* Each fails as a call that is not on the list does, and has no effect. */
static int attempt_all(void)
{
        static const char name[] = "/tmp/cairn-worker-was-here";
        static const struct rlimit more = { RLIM_INFINITY, RLIM_INFINITY };
        const struct {
                const char *what;
                long number, args[6];
        } attempts[] = {
                { "open", SYS_openat, { AT_FDCWD, (long)"/etc/passwd", O_RDONLY } },
                { "open by its old name", SYS_open, { (long)"/etc/passwd", O_RDONLY } },
                { "openat2", SYS_openat2, { AT_FDCWD, (long)"/etc/passwd", 0, 0 } },
                { "open_by_handle_at", SYS_open_by_handle_at, { AT_FDCWD, 0, O_RDONLY } },
                { "create", SYS_openat, { AT_FDCWD, (long)name, O_CREAT | O_WRONLY, 0600 } },
                { "mkdir", SYS_mkdir, { (long)name, 0700 } },
                { "symlink", SYS_symlink, { (long)"/etc", (long)name } },
                { "link", SYS_link, { (long)"/etc/passwd", (long)name } },
                { "mknod", SYS_mknod, { (long)name, 0600 } },
                { "unlink", SYS_unlink, { (long)name } },
                { "rename", SYS_rename, { (long)name, (long)"/tmp/other" } },
                { "chmod", SYS_chmod, { (long)name, 0777 } },
                { "truncate", SYS_truncate, { (long)name, 0 } },
                { "getdents", SYS_getdents64, { 3, 0, 0 } },
                { "readlink", SYS_readlink, { (long)"/proc/self/exe", 0, 0 } },
                { "chdir", SYS_chdir, { (long)"/" } },
                { "memfd_create", SYS_memfd_create, { (long)"x", 0 } },
                { "connect", SYS_connect, { 3, 0, 0 } },
                { "socketpair", SYS_socketpair, { AF_UNIX, SOCK_STREAM, 0, 0 } },
                { "sendmsg", SYS_sendmsg, { 3, 0, 0 } },
                { "io_uring_setup", SYS_io_uring_setup, { 8, 0 } },
                { "fork", SYS_fork, { 0 } },
                { "vfork", SYS_vfork, { 0 } },
                { "clone of a process", SYS_clone, { SIGCHLD } },
                { "kill of the parent", SYS_kill, { getppid(), 0 } },
                { "kill of all", SYS_kill, { -1, 0 } },
                { "ptrace", SYS_ptrace, { 16 /* PTRACE_ATTACH */, getppid() } },
                { "process_vm_readv", SYS_process_vm_readv, { getppid() } },
                { "pidfd_open", SYS_pidfd_open, { getppid(), 0 } },
                { "prctl", SYS_prctl, { PR_SET_DUMPABLE, 1 } },
                { "more limits", SYS_prlimit64, { 0, RLIMIT_DATA, (long)&more, 0 } },
                { "setrlimit", SYS_setrlimit, { RLIMIT_DATA, (long)&more } },
                { "setuid", SYS_setuid, { 0 } },
                { "memory with code", SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0 } },
                { "memory made code", SYS_mprotect, { (long)name & -4096, 4096, PROT_READ | PROT_EXEC } },
                { "shmget", SYS_shmget, { 1, 4096, 0600 } },
                { "ioctl", SYS_ioctl, { 2, 0x5412 /* TIOCSTI */, 0 } },
        };
        char text[120];

        for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
                const long *a = attempts[i].args;
                long r = syscall(attempts[i].number, a[0], a[1], a[2], a[3], a[4], a[5]);

                if (r != -1 || errno != EPERM) {
                        snprintf(text, sizeof text, "%s gives %ld (%s)", attempts[i].what, r, strerror(errno));
                        return give_up(ST_BAD_DATA, text);
                }
        }
        return 0;
}

static const long deadly[] = { SYS_socket, SYS_execve, SYS_execveat, SYS_bpf, SYS_unshare, SYS_setns, SYS_mount, SYS_umount2,
                               SYS_pivot_root, SYS_keyctl, SYS_perf_event_open, SYS_process_vm_writev, SYS_userfaultfd,
                               SYS_init_module, SYS_finit_module, SYS_kexec_load, SYS_reboot };
_Static_assert(sizeof deadly / sizeof *deadly == DEADLY_COUNT, "each is tried");

/* Landlock alone, where the kernel has it. */
static int under_landlock(void)
{
        struct error err;

        if (landlock_restrict(WORKER_NEEDS_NOTHING, &err))
                return give_up(ST_OS, err.text);
        if (!landlock_version())
                return 0;
        if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
                return give_up(ST_BAD_DATA, "a file was opened");
        if (mkdir("/tmp/cairn-worker-was-here", 0700) == 0 || errno != EACCES)
                return give_up(ST_BAD_DATA, "a directory was made");
        if (landlock_version() >= 6 && (kill(getppid(), 0) == 0 || errno != EPERM))
                return give_up(ST_BAD_DATA, "the parent can be killed");
        return 0;
}

static int read_as_with_network(void)
{
        char scratch[] = "/tmp/cairn-worker-XXXXXX";
        int fd;

        if (landlock_version() && (open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES))
                return give_up(ST_BAD_DATA, "a file beside the certificates was read");
        if (landlock_version() && (open("/proc/self/environ", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES))
                return give_up(ST_BAD_DATA, "the environment was read");
        if (landlock_version() && (mkdir("/var/tmp/cairn-worker-was-here", 0700) == 0 || errno != EACCES))
                return give_up(ST_BAD_DATA, "something was written beside /tmp");
        fd = open("/etc/hosts", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return give_up(ST_OS, "names cannot be looked up");
        close(fd);
        if (!mkdtemp(scratch) || rmdir(scratch))
                return give_up(ST_OS, "it has no scratch directory");
        return 0;
}

static int show_limits(void)
{
        static const int which[] = { RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_CORE };
        struct rlimit l;

        for (size_t i = 0; i < sizeof which / sizeof *which; i++)
                if (getrlimit(which[i], &l) || l.rlim_max == RLIM_INFINITY)
                        return give_up(ST_BAD_DATA, "something has no limit");
        if (!BUILT_WITH_SANITIZER && (getrlimit(RLIMIT_DATA, &l) || l.rlim_max != MiB(256)))
                return give_up(ST_BAD_DATA, "memory has another limit");
        if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
                return give_up(ST_BAD_DATA, "there may be new privileges");
        return 0;
}

static int work(const char *job)
{
        bool network = strcmp(job, "network-files") == 0;
        struct error err;

        if (strcmp(job, "landlock") == 0)
                _exit(under_landlock()); /* a leak sanitizer opens files at an orderly exit */
        if (strcmp(job, "limits") == 0)
                return show_limits();
        if (worker_confine(network ? WORKER_NEEDS_NETWORK : WORKER_NEEDS_NOTHING, &err))
                return give_up(ST_OS, err.text);
        if (network)
                return read_as_with_network();
        if (strcmp(job, "attempts") == 0)
                return attempt_all();
        syscall(deadly[strtoul(job + strlen("deadly-"), NULL, 10)], -1, 0, 0, 0, 0, 0);
        return give_up(ST_OS, "it only failed");
}

int main(int argc, char **argv)
{
        const TTest *const tests[] = {
                a_confined_worker_reaches_nothing_outside,
                a_confined_worker_that_tries_what_only_intruders_do_is_killed,
                without_the_filter_landlock_still_opens_nothing,
                a_worker_with_network_reads_certificates_and_no_secrets,
                a_worker_has_no_more_limits_than_it_was_given,
        };

        if (argc > 2 && strcmp(argv[1], "worker") == 0)
                return work(argv[2]);
        return suite_run("confined", tests, sizeof tests / sizeof *tests);
}
