/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/processes/process_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "sampling/processes/process_read.h"

int process_memory_open(const struct sample_process *id)
{
        _cleanup_close_ int proc_fd = process_open(id);

        return proc_fd < 0 ? -1 : openat(proc_fd, "mem", O_RDONLY | O_CLOEXEC);
}

bool process_memory_is_gone(const struct sample_process *id)
{
        _cleanup_close_ int proc_fd = process_open(id);

        return proc_fd < 0;
}

bool process_memory_read(void *fd, uint64_t addr, void *to, size_t n)
{
        size_t done = 0;

        while (done < n && addr + done <= INT64_MAX) {
                ssize_t got = pread(*(int *)fd, (char *)to + done, n - done, (off_t)(addr + done));

                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0) /* 0: the process has ended */
                        return false;
                done += (size_t)got;
        }
        return done == n;
}
