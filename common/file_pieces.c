/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"

enum status file_read_pieces(int fd, const char *name, enum status (*each)(void *context, const void *data, size_t n, struct error *err),
                             void *context, uint64_t *size_ret, struct error *err)
{
        _cleanup_free_ char *bytes = malloc(MiB(1));
        uint64_t at = 0;

        if (!bytes)
                return error_no_memory(err);
        for (;;) {
                ssize_t n = pread(fd, bytes, MiB(1), (off_t)at);
                enum status st;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_os(err, errno, "cannot read %s", name);
                if (n == 0)
                        break;
                st = each(context, bytes, (size_t)n, err);
                if (st)
                        return st;
                at += (uint64_t)n;
        }
        *size_ret = at;
        return ST_OK;
}
