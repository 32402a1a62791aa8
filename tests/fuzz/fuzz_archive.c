/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as an archive: it is refused, or every member can be read to its end, in order. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "archive/file_magic.h"
#include "archive/members.h"

#define STOP_CALLS_MAX 2000 /* maximum number of calls of stop_reading(): a decompression bomb has as many blocks */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct walked {
        uint32_t members;
        unsigned stop_calls, sum;
};

static enum status read_member(void *context, struct archive_member *m, struct error *err)
{
        struct walked *w = context;
        uint64_t offset, end = 0;
        const void *block;
        size_t n;
        enum status st = ST_OK;

        if (m->ordinal != w->members++ || m->path[0] == '/' || (m->path[0] == '.' && m->path[1] == '/'))
                abort();
        w->sum += archive_path_is_odd(m->path) + archive_name(m->path);
        if (m->ordinal % 3 == 2) /* skipped by the reader */
                return ST_OK;
        while (!(st = archive_member_read(m, &block, &n, &offset, err))) {
                if (offset < end && n)
                        abort();
                end = offset + n;
                for (size_t i = 0; i < n; i += 512)
                        w->sum += ((const uint8_t *)block)[i];
        }
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static bool stop_reading(void *context)
{
        struct walked *w = context;

        return ++w->stop_calls > STOP_CALLS_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct walked w = { 0 };
        const struct archive_visitor visitor = {
                .member = read_member, .stopped = stop_reading, .context = &w, .nested_max = size & 3
        };
        int fd = memfd_create("archive", MFD_CLOEXEC);
        struct error err = { 0 };
        enum status st;

        if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
                abort();
        (void)archive_magic_at_fd(fd);
        st = archive_walk(fd, "fuzz", &visitor, &err);
        if (st && !err.text[0])
                abort();
        close(fd);
        return 0;
}
