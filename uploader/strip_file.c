/* SPDX-License-Identifier: Apache-2.0 */
/* A file takes its place as its stripped self: whole, with all that belongs to it, or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <zlib.h>

#include "common/limits.h"
#include "uploader/split.h"
#include "uploader/strip.h"

#define XATTR_NAMES_MAX KiB(64)
#define XATTR_VALUE_MAX KiB(64)

/* Of what is sent: the split is the same each time. */
static enum status debug_crc(const struct elf_image *img, uint32_t *ret, struct error *err)
{
        struct split_range ranges[SPLIT_GO_RANGES_MAX];
        _cleanup_file_map_ struct file_map map = { 0 };
        _cleanup_close_ int fd = -1;
        uint64_t size;
        enum status st = split_temporary(&fd, err);

        if (!st)
                st = split_write(img, ranges, split_go_ranges(img, ranges), fd, &size, err);
        if (!st)
                st = file_map_fd(fd, LIMIT_OBJECT_BYTES, "split", &map, err);
        if (!st)
                *ret = (uint32_t)crc32_z(0, map.data, map.size);
        return st;
}

static enum status copy_attributes(int from, int to, const char *path, struct error *err)
{
        _cleanup_free_ char *names = malloc(XATTR_NAMES_MAX), *value = malloc(XATTR_VALUE_MAX);
        ssize_t n = names && value ? flistxattr(from, names, XATTR_NAMES_MAX) : -1;

        if (!names || !value)
                return error_no_memory(err);
        if (n < 0)
                return errno == ENOTSUP ? ST_OK : error_os(err, errno, "cannot read the attributes of '%s'", path);
        for (const char *name = names; name < names + n; name += strlen(name) + 1) {
                ssize_t size = fgetxattr(from, name, value, XATTR_VALUE_MAX);

                if (size < 0 || (fsetxattr(to, name, value, (size_t)size, 0) < 0 && strcmp(name, "security.selinux") != 0))
                        return error_os(err, errno, "cannot keep the attribute '%s' of '%s'", name, path);
        }
        return ST_OK;
}

/* The owner first: a change of owner takes set-user-id bits and capabilities away. */
static enum status copy_nature(int from, int to, const char *path, struct error *err)
{
        struct stat is;

        if (fstat(from, &is) < 0)
                return error_os(err, errno, "cannot look at '%s'", path);
        if ((is.st_uid != geteuid() || is.st_gid != getegid()) && fchown(to, is.st_uid, is.st_gid) < 0)
                return error_os(err, errno, "cannot keep the owner of '%s'", path);
        if (fchmod(to, is.st_mode & 07777) < 0)
                return error_os(err, errno, "cannot keep the permissions of '%s'", path);
        return copy_attributes(from, to, path, err);
}

static enum status write_stripped(const struct elf_image *img, int from, const char *path, int to, struct error *err)
{
        char name[NAME_MAX + 8];
        uint32_t crc = 0;
        enum status st = debug_crc(img, &crc, err);

        snprintf(name, sizeof name, "%.*s.debug", NAME_MAX, path_base(path));
        if (!st)
                st = strip_write(img, name, crc, to, err);
        return st ? st : copy_nature(from, to, path, err);
}

static enum status was_replaced(const char *link, struct error *err)
{
        return error_set(err, ST_NOT_FOUND, "'%s' was replaced while it was uploaded; it is not stripped", link);
}

/* A linker may have come meanwhile: the program is then its own. */
static bool is_unchanged(const char *path, const struct stat *was)
{
        struct stat is;

        return stat(path, &is) == 0 && is.st_dev == was->st_dev && is.st_ino == was->st_ino && is.st_size == was->st_size &&
               is.st_mtim.tv_sec == was->st_mtim.tv_sec && is.st_mtim.tv_nsec == was->st_mtim.tv_nsec;
}

enum status strip_file(const char *link, const struct build_id *id, bool *done_ret, struct error *err)
{
        _cleanup_free_ char *path = realpath(link, NULL), *tmp = NULL;
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_close_ int from = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        struct stat opened;
        int to = -1;
        enum status st;

        if (from < 0 || fstat(from, &opened) < 0)
                return error_os(err, errno, "cannot open '%s'", link);
        st = elf_image_from_fd(from, path, &img, err);
        if (st)
                return st;
        if (!build_id_equal(&img.build_id, id))
                return was_replaced(link, err);
        *done_ret = strip_is_useful(&img);
        if (!*done_ret)
                return ST_OK;
        st = file_create_temporary(path, &tmp, &to, err);
        if (st)
                return st;
        st = write_stripped(&img, from, path, to, err);
        if (!st && fdatasync(to) < 0) /* which takes long, so before the last look */
                st = error_os(err, errno, "cannot sync '%s'", tmp);
        if (!st && !is_unchanged(path, &opened))
                st = was_replaced(link, err);
        if (!st)
                return file_publish(to, tmp, path, err);
        close(to);
        unlink(tmp);
        return st;
}
