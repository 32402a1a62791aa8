/* SPDX-License-Identifier: Apache-2.0 */
#include "common/threads/time_slice.h"

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* struct sched_attr of sched_setattr(2), first published version; the C library of Debian 12 does not declare it. */
struct sched_attributes {
        uint32_t size;
        uint32_t policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns;
        uint64_t deadline_ns;
        uint64_t period_ns;
};

void shorten_time_slice(void)
{
        struct sched_attributes s;

        if (syscall(SYS_sched_getattr, 0, &s, sizeof s, 0) || (s.policy != SCHED_OTHER && s.policy != SCHED_BATCH))
                return;
        s.runtime_ns = SHORT_TIME_SLICE_NS;
        (void)syscall(SYS_sched_setattr, 0, &s, 0);
}
