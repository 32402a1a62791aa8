/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/objects/open_in_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/cleanup.h"

int open_in_root(int root_fd, const char *path, int flags)
{
        struct open_how how = {
                .flags = (uint64_t)(flags | O_CLOEXEC |
                                    (flags & O_PATH ? 0 : O_NOCTTY)), /* O_PATH permits no other flags */
                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
        };

        return (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
}

int reopen_for_reading(int path_fd)
{
        char name[48];

        snprintf(name, sizeof name, "/proc/self/fd/%d", path_fd);
        return open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* O_NONBLOCK: also for leases */
}

int open_regular_in_root(int root_fd, const char *path, int flags)
{
        _cleanup_close_ int fd = open_in_root(root_fd, path, O_PATH | flags);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -1;
        if (!S_ISREG(st.st_mode)) {
                errno = EINVAL;
                return -1;
        }
        return reopen_for_reading(fd);
}

bool is_on_local_filesystem(int fd)
{
        static const uint32_t local[] = { EXT4_SUPER_MAGIC,      XFS_SUPER_MAGIC,  BTRFS_SUPER_MAGIC,
                                          TMPFS_MAGIC,           RAMFS_MAGIC,      SQUASHFS_MAGIC,
                                          EROFS_SUPER_MAGIC_V1,  F2FS_SUPER_MAGIC, ISOFS_SUPER_MAGIC,
                                          OVERLAYFS_SUPER_MAGIC, 0x2fc12fc1 /* ZFS */ };
        struct statfs s;

        if (fstatfs(fd, &s))
                return true; /* then nothing was accessed */
        for (size_t i = 0; i < sizeof local / sizeof *local; i++)
                if ((uint32_t)s.f_type == local[i])
                        return true;
        return false;
}
