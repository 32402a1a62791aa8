/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>
#include <unistd.h>

#include "archive/members.h"
#include "common/limits.h"

static bool has_suffix(const char *name, const char *suffix)
{
        size_t n = strlen(name), s = strlen(suffix);

        return n > s && strcasecmp(name + n - s, suffix) == 0;
}

bool archive_name_is_package(const char *path)
{
        return has_suffix(path, ".deb") || has_suffix(path, ".ddeb") || has_suffix(path, ".udeb") || has_suffix(path, ".rpm");
}

bool archive_name(const char *path)
{
        static const char *const suffixes[] = { ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.zst", ".tar.bz2",
                                                ".tar.lzma", ".zip", ".cpio" };

        for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
                if (has_suffix(path, suffixes[i]))
                        return true;
        return archive_name_is_package(path);
}

bool archive_magic_at_fd(int fd)
{
        static const struct {
                size_t offset;
                const char *bytes;
                size_t n;
        } magics[] = {
                { 0, "!<arch>\n", 8 },      { 0, "\xed\xab\xee\xdb", 4 }, { 0, "PK\3\4", 4 },      { 257, "ustar", 5 },
                { 0, "0707", 4 },           { 0, "\x1f\x8b", 2 },         { 0, "BZh", 3 },         { 0, "\xfd" "7zXZ", 5 },
                { 0, "\x28\xb5\x2f\xfd", 4 }, { 0, "\x5d\0\0", 3 },
        };
        char head[512];
        ssize_t n = pread(fd, head, sizeof head, 0);

        for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
                if (n >= (ssize_t)(magics[i].offset + magics[i].n) &&
                    memcmp(head + magics[i].offset, magics[i].bytes, magics[i].n) == 0)
                        return true;
        return false;
}

bool archive_path_is_odd(const char *path)
{
        if (!*path || strlen(path) >= LIMIT_PATH_BYTES / 2)
                return true;
        for (const char *part = path; *part; part += strcspn(part, "/"), part += strspn(part, "/")) {
                size_t n = strcspn(part, "/");

                if (n > NAME_MAX || (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
                        return true;
        }
        return false;
}
