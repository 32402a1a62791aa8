/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/data_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "common/cleanup.h"
#include "common/files/file.h"

enum status lock_data_dir(const char *dir, int *ret, struct error *err)
{
        _cleanup_free_ char *path = path_join(dir, "lock");
        _cleanup_close_ int fd = -1;

        if (!path)
                return error_no_memory(err);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0 && errno == EROFS) {
                error_set(err, ST_OS,
                          "'%s' is on a read-only file system: look for disk errors in the kernel's log and "
                          "remount it writable, or answer queries from it with --read-only",
                          dir);
                return ST_OS;
        }
        if (fd < 0)
                return error_os(err, errno, "cannot open '%s'", path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return error_set(err, ST_BUSY,
                                 "a running service uses '%s': query that service (--server), read alongside it "
                                 "(--read-only), or give another --data",
                                 dir);
        *ret = steal_fd(&fd);
        return ST_OK;
}
