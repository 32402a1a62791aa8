/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

int open_beneath(int root_fd, const char *path, int flags)
{
        struct open_how how = {
                .flags = (uint64_t)(flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY)), /* no other goes with O_PATH */
                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
        };

        return (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
}
