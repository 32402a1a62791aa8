/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/unpacked_input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/compress.h"
#include "common/file.h"
#include "common/limits.h"

bool path_is_standard(const char *path)
{
        return !path || strcmp(path, "-") == 0;
}

static enum status read_input(const char *path, struct buf *ret, struct error *err)
{
        if (!path_is_standard(path))
                return file_read(path, ret, err);
        for (;;) {
                void *room = buf_reserve(ret, KiB(64));
                ssize_t n = room ? read(STDIN_FILENO, room, KiB(64)) : 0;

                if (!room)
                        return buf_status(ret, err, "standard input");
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_os(err, errno, "cannot read standard input");
                if (n == 0)
                        return ST_OK;
                buf_commit(ret, (size_t)n);
        }
}

enum status unpacked_input_read(const char *path, struct buf *ret, struct error *err)
{
        _cleanup_buf_ struct buf raw;
        enum status st;

        buf_init(&raw, GiB(1));
        st = read_input(path, &raw, err);
        if (st)
                return st;
        if (gzip_detect(raw.data, raw.size))
                return gzip_unpack(raw.data, raw.size, ret, err);
        if (zstd_detect(raw.data, raw.size))
                return zstd_unpack(raw.data, raw.size, ret, err);
        buf_append(ret, raw.data, raw.size);
        return buf_status(ret, err, path_is_standard(path) ? "standard input" : path);
}
