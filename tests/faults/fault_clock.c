/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wall clock that can be changed for one program (LD_PRELOAD): time(), gettimeofday() and
 * clock_gettime(CLOCK_REALTIME*) are ahead of the kernel's clock by the number of seconds (decimal) in the file
 * FAULT_CLOCK. The file is read at each call; without it the difference is 0. Timestamps of files are unchanged.
 *
 * FAULT_MONOTONIC, such as "query 25", makes the monotonic clock of each thread with that name 25 s later at each
 * reading: work of such a thread that checks a time limit exceeds it, however fast the machine is.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *ret);
time_t time(time_t *ret);
int gettimeofday(struct timeval *restrict ret, void *restrict zone);

static time_t read_offset_s(void)
{
        const char *path = getenv("FAULT_CLOCK");
        char text[32] = "";
        long fd = path ? syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;

        if (fd < 0)
                return 0;
        if (syscall(SYS_read, fd, text, sizeof text - 1) < 0)
                text[0] = 0;
        syscall(SYS_close, fd);
        return (time_t)strtoll(text, NULL, 10);
}

static time_t advance_monotonic_s(void)
{
        static _Thread_local long long ahead;
        const char *setting = getenv("FAULT_MONOTONIC");
        char thread[17] = "", name[17] = "";
        long long seconds;

        if (!setting || sscanf(setting, "%16s %lld", name, &seconds) != 2 || prctl(PR_GET_NAME, thread) ||
            strcmp(thread, name) != 0)
                return 0;
        ahead += seconds;
        return (time_t)(ahead - seconds);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ret)
{
        int rc = (int)syscall(SYS_clock_gettime, id, ret);

        if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
                ret->tv_sec += read_offset_s();
        if (rc == 0 && id == CLOCK_MONOTONIC)
                ret->tv_sec += advance_monotonic_s();
        return rc;
}

__attribute__((visibility("default"))) time_t time(time_t *ret)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        if (ret)
                *ret = now.tv_sec;
        return now.tv_sec;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
        struct timespec now;

        (void)zone;
        clock_gettime(CLOCK_REALTIME, &now);
        *ret = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
        return 0;
}
