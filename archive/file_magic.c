/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/file_magic.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

struct file_magic {
        size_t offset;
        const char *bytes;
        size_t n;
};

static bool has_magic_at_fd(int fd, const struct file_magic *magics, size_t count)
{
        char head[512];
        ssize_t n = pread(fd, head, sizeof head, 0);

        for (size_t i = 0; i < count; i++)
                if (n >= (ssize_t)(magics[i].offset + magics[i].n) &&
                    memcmp(head + magics[i].offset, magics[i].bytes, magics[i].n) == 0)
                        return true;
        return false;
}

bool compressed_magic_at_fd(int fd)
{
        static const struct file_magic magics[] = {
                { 0, "\x1f\x8b", 2 },
                { 0, "BZh", 3 },
                { 0,
                  "\xfd"
                  "7zXZ",
                  5 },
                { 0, "\x28\xb5\x2f\xfd", 4 },
                { 0, "\x5d\0\0", 3 },
        };

        return has_magic_at_fd(fd, magics, sizeof magics / sizeof *magics);
}

bool archive_magic_at_fd(int fd)
{
        static const struct file_magic magics[] = {
                { 0, "!<arch>\n", 8 }, { 0, "\xed\xab\xee\xdb", 4 }, { 0, "PK\3\4", 4 }, { 257, "ustar", 5 },
                { 0, "0707", 4 },
        };

        return has_magic_at_fd(fd, magics, sizeof magics / sizeof *magics) || compressed_magic_at_fd(fd);
}
