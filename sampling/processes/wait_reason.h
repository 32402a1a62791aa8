/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_WAIT_REASON_H
#define CAIRN_SAMPLING_PROCESSES_WAIT_REASON_H

/**
 * @file
 * Public names of the reasons to wait: values of the label cairn.wait.reason.
 */
#include "bpf/wait.h"

/** "" for WAIT_NONE and for a value out of range. */
static inline const char *wait_reason_name(unsigned reason)
{
        static const char *const names[WAIT_REASON_COUNT] = {
                [WAIT_NONE] = "",
                [WAIT_OTHER] = "other",
                [WAIT_RUN_QUEUE] = "run_queue",
                [WAIT_FUTEX] = "futex",
                [WAIT_DISK] = "disk",
                [WAIT_NETWORK] = "network",
                [WAIT_UNIX_SOCKET] = "unix_socket",
                [WAIT_PIPE] = "pipe",
                [WAIT_TERMINAL] = "terminal",
                [WAIT_EVENT] = "event",
                [WAIT_POLL] = "poll",
                [WAIT_SLEEP] = "sleep",
                [WAIT_PAGE_FAULT] = "page_fault",
                [WAIT_SIGNAL] = "signal",
                [WAIT_CHILD] = "child",
                [WAIT_FILE_LOCK] = "file_lock",
                [WAIT_IPC] = "ipc",
                [WAIT_IO_URING] = "io_uring",
                [WAIT_STOPPED] = "stopped",
        };

        return reason < WAIT_REASON_COUNT ? names[reason] : "";
}

#endif
