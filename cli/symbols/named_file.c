/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/symbols/named_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "archive/file_magic.h"
#include "common/cleanup.h"
#include "package-trees/package_inspect.h"
#include "sandbox/worker.h"

static enum status decompress_named_file(int packed, const char *path, int *fd_ret, struct error *err)
{
        static const char *const args[] = { "member", MEMBER_IS_CONTENT, NULL };
        _cleanup_close_ int out = memfd_create("decompressed", MFD_CLOEXEC);
        struct error why;
        enum status st;

        if (out < 0)
                return error_os(err, errno, "cannot create a memory file");
        st = worker_run(&(struct worker_job){ .args = args, .fds = (const int[]){ packed, out }, .fd_count = 2 }, &why);
        if (st)
                return error_set(err, st, "cannot decompress '%s': %s", path, why.text);
        *fd_ret = steal_fd(&out);
        return ST_OK;
}

enum status named_file_open(const char *path, int *fd_ret, struct error *err)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return error_os(err, errno, "cannot open '%s'", path);
        if (compressed_magic_at_fd(fd))
                return decompress_named_file(fd, path, fd_ret, err);
        *fd_ret = steal_fd(&fd);
        return ST_OK;
}

enum status named_file_search(const char *path, const struct debug_file_search *search, struct extract_inputs *ret,
                              struct error *err)
{
        int fd = -1;
        enum status st = named_file_open(path, &fd, err);

        return st ? st : extract_inputs_search_of(fd, path, search, ret, err);
}
