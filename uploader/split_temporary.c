/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>

#include "uploader/split.h"

enum status split_create_temporary(int *fd_ret, struct error *err)
{
        const char *dirs[] = { getenv("TMPDIR"), "/var/tmp", "/tmp" };
        int saved = ENOENT;

        for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
                _cleanup_free_ char *name = NULL;
                int fd;

                if (!dirs[i] || !*dirs[i])
                        continue;
                name = path_join(dirs[i], "cairn-split-XXXXXX");
                if (!name)
                        return error_no_memory(err);
                fd = mkostemp(name, O_CLOEXEC);
                if (fd >= 0) {
                        unlink(name);
                        *fd_ret = fd;
                        return ST_OK;
                }
                saved = errno;
        }
        return error_os(err, saved, "cannot create a temporary file in $TMPDIR, /var/tmp or /tmp");
}
