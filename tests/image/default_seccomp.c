/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command under a system call filter like that of container runtimes for a pod with seccompProfile
 * RuntimeDefault and without capabilities: default_seccomp COMMAND ARGUMENT...
 *
 * Runtimes use a list of permitted calls. Of the other calls, those that our programs or their libraries might make
 * fail here with EPERM, like there: namespaces, mounts, BPF, perf events, other processes' memory, keyrings, io_uring.
 * clone3 fails with ENOSYS, since a filter cannot read its flags. Source: the default profiles of containerd and
 * Docker.
 */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

static const char *const refused_calls[] = {
        "add_key",
        "bpf",
        "fanotify_init",
        "fsconfig",
        "fsmount",
        "fsopen",
        "io_uring_enter",
        "io_uring_register",
        "io_uring_setup",
        "kcmp",
        "keyctl",
        "mount",
        "mount_setattr",
        "move_mount",
        "open_by_handle_at",
        "open_tree",
        "perf_event_open",
        "pivot_root",
        "process_madvise",
        "process_vm_readv",
        "process_vm_writev",
        "quotactl",
        "request_key",
        "setns",
        "syslog",
        "umount2",
        "unshare",
        "userfaultfd",
        "vmsplice",
};

static int refuse_calls(scmp_filter_ctx filter)
{
        static const unsigned long namespaces[] = { CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                                    CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET };

        for (size_t i = 0; i < sizeof refused_calls / sizeof *refused_calls; i++)
                if (seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), seccomp_syscall_resolve_name(refused_calls[i]), 0))
                        return -1;
        for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces; i++)
                if (seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                     SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces[i], namespaces[i])))
                        return -1;
        return seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

int main(int argc, char **argv)
{
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

        if (argc < 2 || !filter || refuse_calls(filter) || seccomp_load(filter)) {
                fputs("default_seccomp: cannot load the filter\n", stderr);
                return 1;
        }
        seccomp_release(filter);
        execvp(argv[1], argv + 1);
        perror(argv[1]);
        return 1;
}
