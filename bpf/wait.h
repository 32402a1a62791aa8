/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_WAIT_H
#define CAIRN_BPF_WAIT_H

/**
 * @file
 * Why a thread waited, derived from the system call it was in: a reason for each number of a system call. Numbers that
 * are not listed are WAIT_OTHER. Shared by the program and the agent.
 *
 * Source: arch/x86/entry/syscalls/syscall_64.tbl; include/uapi/asm-generic/unistd.h.
 */

enum wait_reason {
        WAIT_NONE, /* of samples of CPU time */
        WAIT_OTHER,
        WAIT_RUN_QUEUE,   /* runnable, without a CPU */
        WAIT_FUTEX,       /* a lock or a condition of user space */
        WAIT_DISK,        /* block I/O and file systems */
        WAIT_NETWORK,     /* a socket */
        WAIT_UNIX_SOCKET, /* a socket of this host */
        WAIT_PIPE,
        WAIT_TERMINAL, /* a character device */
        WAIT_EVENT,    /* an eventfd or another file without a file system */
        WAIT_POLL,     /* several files */
        WAIT_SLEEP,
        WAIT_PAGE_FAULT, /* in no system call */
        WAIT_SIGNAL,
        WAIT_CHILD,     /* a process that changes its state */
        WAIT_FILE_LOCK, /* of flock() or fcntl() */
        WAIT_IPC,       /* System V semaphores, message queues */
        WAIT_IO_URING,
        WAIT_STOPPED, /* by a signal or a debugger */
        WAIT_REASON_COUNT,
        WAIT_BY_FILE = 255, /* in the table: the file that is the first argument tells */
};

#define WAIT_SYSTEM_CALLS 512 /* numbers in the table */

#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#define WAIT_CALLS(X)                                                                                                  \
        X(0, WAIT_BY_FILE)    /* read */                                                                               \
        X(1, WAIT_BY_FILE)    /* write */                                                                              \
        X(7, WAIT_POLL)       /* poll */                                                                               \
        X(16, WAIT_BY_FILE)   /* ioctl */                                                                              \
        X(17, WAIT_BY_FILE)   /* pread64 */                                                                            \
        X(18, WAIT_BY_FILE)   /* pwrite64 */                                                                           \
        X(19, WAIT_BY_FILE)   /* readv */                                                                              \
        X(20, WAIT_BY_FILE)   /* writev */                                                                             \
        X(23, WAIT_POLL)      /* select */                                                                             \
        X(26, WAIT_DISK)      /* msync */                                                                              \
        X(34, WAIT_SIGNAL)    /* pause */                                                                              \
        X(35, WAIT_SLEEP)     /* nanosleep */                                                                          \
        X(42, WAIT_BY_FILE)   /* connect */                                                                            \
        X(43, WAIT_BY_FILE)   /* accept */                                                                             \
        X(44, WAIT_BY_FILE)   /* sendto */                                                                             \
        X(45, WAIT_BY_FILE)   /* recvfrom */                                                                           \
        X(46, WAIT_BY_FILE)   /* sendmsg */                                                                            \
        X(47, WAIT_BY_FILE)   /* recvmsg */                                                                            \
        X(61, WAIT_CHILD)     /* wait4 */                                                                              \
        X(65, WAIT_IPC)       /* semop */                                                                              \
        X(69, WAIT_IPC)       /* msgsnd */                                                                             \
        X(70, WAIT_IPC)       /* msgrcv */                                                                             \
        X(72, WAIT_FILE_LOCK) /* fcntl */                                                                              \
        X(73, WAIT_FILE_LOCK) /* flock */                                                                              \
        X(74, WAIT_DISK)      /* fsync */                                                                              \
        X(75, WAIT_DISK)      /* fdatasync */                                                                          \
        X(128, WAIT_SIGNAL)   /* rt_sigtimedwait */                                                                    \
        X(130, WAIT_SIGNAL)   /* rt_sigsuspend */                                                                      \
        X(162, WAIT_DISK)     /* sync */                                                                               \
        X(202, WAIT_FUTEX)    /* futex */                                                                              \
        X(208, WAIT_DISK)     /* io_getevents */                                                                       \
        X(220, WAIT_IPC)      /* semtimedop */                                                                         \
        X(230, WAIT_SLEEP)    /* clock_nanosleep */                                                                    \
        X(232, WAIT_POLL)     /* epoll_wait */                                                                         \
        X(242, WAIT_IPC)      /* mq_timedsend */                                                                       \
        X(243, WAIT_IPC)      /* mq_timedreceive */                                                                    \
        X(247, WAIT_CHILD)    /* waitid */                                                                             \
        X(270, WAIT_POLL)     /* pselect6 */                                                                           \
        X(271, WAIT_POLL)     /* ppoll */                                                                              \
        X(277, WAIT_DISK)     /* sync_file_range */                                                                    \
        X(281, WAIT_POLL)     /* epoll_pwait */                                                                        \
        X(288, WAIT_BY_FILE)  /* accept4 */                                                                            \
        X(295, WAIT_BY_FILE)  /* preadv */                                                                             \
        X(296, WAIT_BY_FILE)  /* pwritev */                                                                            \
        X(299, WAIT_BY_FILE)  /* recvmmsg */                                                                           \
        X(306, WAIT_DISK)     /* syncfs */                                                                             \
        X(307, WAIT_BY_FILE)  /* sendmmsg */                                                                           \
        X(327, WAIT_BY_FILE)  /* preadv2 */                                                                            \
        X(328, WAIT_BY_FILE)  /* pwritev2 */                                                                           \
        X(333, WAIT_DISK)     /* io_pgetevents */
#elif defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
#define WAIT_CALLS(X)                                                                                                  \
        X(4, WAIT_DISK)       /* io_getevents */                                                                       \
        X(22, WAIT_POLL)      /* epoll_pwait */                                                                        \
        X(25, WAIT_FILE_LOCK) /* fcntl */                                                                              \
        X(29, WAIT_BY_FILE)   /* ioctl */                                                                              \
        X(32, WAIT_FILE_LOCK) /* flock */                                                                              \
        X(63, WAIT_BY_FILE)   /* read */                                                                               \
        X(64, WAIT_BY_FILE)   /* write */                                                                              \
        X(65, WAIT_BY_FILE)   /* readv */                                                                              \
        X(66, WAIT_BY_FILE)   /* writev */                                                                             \
        X(67, WAIT_BY_FILE)   /* pread64 */                                                                            \
        X(68, WAIT_BY_FILE)   /* pwrite64 */                                                                           \
        X(69, WAIT_BY_FILE)   /* preadv */                                                                             \
        X(70, WAIT_BY_FILE)   /* pwritev */                                                                            \
        X(72, WAIT_POLL)      /* pselect6 */                                                                           \
        X(73, WAIT_POLL)      /* ppoll */                                                                              \
        X(81, WAIT_DISK)      /* sync */                                                                               \
        X(82, WAIT_DISK)      /* fsync */                                                                              \
        X(83, WAIT_DISK)      /* fdatasync */                                                                          \
        X(84, WAIT_DISK)      /* sync_file_range */                                                                    \
        X(95, WAIT_CHILD)     /* waitid */                                                                             \
        X(98, WAIT_FUTEX)     /* futex */                                                                              \
        X(101, WAIT_SLEEP)    /* nanosleep */                                                                          \
        X(115, WAIT_SLEEP)    /* clock_nanosleep */                                                                    \
        X(133, WAIT_SIGNAL)   /* rt_sigsuspend */                                                                      \
        X(137, WAIT_SIGNAL)   /* rt_sigtimedwait */                                                                    \
        X(182, WAIT_IPC)      /* mq_timedsend */                                                                       \
        X(183, WAIT_IPC)      /* mq_timedreceive */                                                                    \
        X(188, WAIT_IPC)      /* msgrcv */                                                                             \
        X(189, WAIT_IPC)      /* msgsnd */                                                                             \
        X(192, WAIT_IPC)      /* semtimedop */                                                                         \
        X(193, WAIT_IPC)      /* semop */                                                                              \
        X(202, WAIT_BY_FILE)  /* accept */                                                                             \
        X(203, WAIT_BY_FILE)  /* connect */                                                                            \
        X(206, WAIT_BY_FILE)  /* sendto */                                                                             \
        X(207, WAIT_BY_FILE)  /* recvfrom */                                                                           \
        X(211, WAIT_BY_FILE)  /* sendmsg */                                                                            \
        X(212, WAIT_BY_FILE)  /* recvmsg */                                                                            \
        X(227, WAIT_DISK)     /* msync */                                                                              \
        X(242, WAIT_BY_FILE)  /* accept4 */                                                                            \
        X(243, WAIT_BY_FILE)  /* recvmmsg */                                                                           \
        X(260, WAIT_CHILD)    /* wait4 */                                                                              \
        X(267, WAIT_DISK)     /* syncfs */                                                                             \
        X(269, WAIT_BY_FILE)  /* sendmmsg */                                                                           \
        X(286, WAIT_BY_FILE)  /* preadv2 */                                                                            \
        X(287, WAIT_BY_FILE)  /* pwritev2 */                                                                           \
        X(292, WAIT_DISK)     /* io_pgetevents */
#else
#error "unsupported processor"
#endif

/* Calls with the same number on all processors. */
#define WAIT_CALLS_GENERIC(X)                                                                                          \
        X(426, WAIT_IO_URING) /* io_uring_enter */                                                                     \
        X(441, WAIT_POLL)     /* epoll_pwait2 */                                                                       \
        X(449, WAIT_FUTEX)    /* futex_waitv */                                                                        \
        X(455, WAIT_FUTEX)    /* futex_wait */

#define WAIT_CALL_FUTEX_WAITV 449 /* its first argument is a list, not the address of a futex */

#endif
