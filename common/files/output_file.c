/* SPDX-License-Identifier: Apache-2.0 */
#include "common/files/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"

#define TEMPORARY_NAME_CHARS 200 /* of the file's own name in that of its temporary file */

/* The descriptor that /dev/stdout, /dev/stderr, /dev/fd/N or /proc/self/fd/N stands for; -1: none. */
static int parse_descriptor_path(const char *path)
{
        static const char *const directories[] = { "/dev/fd/", "/proc/self/fd/" };

        if (strcmp(path, "/dev/stdout") == 0)
                return STDOUT_FILENO;
        if (strcmp(path, "/dev/stderr") == 0)
                return STDERR_FILENO;
        for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
                const char *number = path + strlen(directories[i]);
                size_t digits;

                if (strncmp(path, directories[i], strlen(directories[i])) != 0)
                        continue;
                digits = strspn(number, "0123456789");
                if (digits && digits < 8 && !number[digits])
                        return (int)strtol(number, NULL, 10);
        }
        return -1;
}

static enum status check_output_type(const char *path, const struct stat *s, struct error *err)
{
        if (S_ISDIR(s->st_mode))
                return error_set(err, ST_USAGE, "cannot write '%s': it is a directory", path);
        if (S_ISSOCK(s->st_mode))
                return error_set(err, ST_USAGE, "cannot write '%s': it is a socket", path);
        if (S_ISBLK(s->st_mode))
                return error_set(err, ST_USAGE, "cannot write '%s': it is a block device", path);
        return ST_OK;
}

/*
 * Open a temporary file beside the path, for the mode that the umask leaves of all rights. Its name is as that of
 * file_create_temporary(), which always gives everyone the right to read.
 */
static int create_beside(const char *path, char **tmp_ret)
{
        _cleanup_free_ char *tmp = NULL;
        unsigned long long number;
        int fd;

        if (getrandom(&number, sizeof number, 0) != sizeof number)
                return -1;
        if (asprintf(&tmp, "%.*s.tmp-%.*s-%016llx", (int)(path_base(path) - path), path, TEMPORARY_NAME_CHARS,
                     path_base(path), number) < 0) {
                tmp = NULL;
                errno = ENOMEM;
                return -1;
        }
        fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd >= 0)
                *tmp_ret = steal_ptr(tmp);
        return fd;
}

/* Whether a renamed file would not be seen under the mount, or under another name of the old one. */
static bool is_tied_to_path(const char *path, const struct stat *s)
{
        struct statx x;

        return s->st_nlink != 1 || (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &x) == 0 &&
                                    (x.stx_attributes & STATX_ATTR_MOUNT_ROOT));
}

/* Open a temporary file that can take the place of the regular file; false: the file is to be written in place. */
static bool open_replacement(const char *path, const struct stat *was, struct output_file *f)
{
        struct stat is;

        if (is_tied_to_path(path, was))
                return false;
        f->fd = create_beside(path, &f->tmp);
        if (f->fd < 0)
                return false;
        if (fstat(f->fd, &is) == 0 &&
            ((is.st_uid == was->st_uid && is.st_gid == was->st_gid) || fchown(f->fd, was->st_uid, was->st_gid) == 0) &&
            fchmod(f->fd, was->st_mode & 0777) == 0)
                return true;
        close(f->fd);
        unlink(f->tmp);
        f->fd = -1;
        free(f->tmp);
        f->tmp = NULL;
        return false;
}

static enum status open_regular_output(const char *path, const struct stat *s, struct output_file *f, struct error *err)
{
        f->is_regular = true;
        if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0 && errno != ETXTBSY)
                return error_os(err, errno, "cannot write '%s'", path);
        if (open_replacement(path, s, f))
                return ST_OK;
        f->fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
        return f->fd < 0 ? error_os(err, errno, "cannot write '%s'", path) : ST_OK;
}

static enum status open_new_output(const char *path, enum output_kind kind, struct output_file *f, struct error *err)
{
        f->is_regular = f->is_new = true;
        f->fd = create_beside(path, &f->tmp);
        if (f->fd < 0)
                return error_os(err, errno, "cannot create '%s'", path);
        if (kind == OUTPUT_OF_SERVICE)
                (void)!fchmod(f->fd, 0644);
        return ST_OK;
}

/*
 * Open a device or FIFO, or create the target of a dangling link. The kernel follows the link, so that its protection
 * of links in sticky directories applies.
 */
static enum status open_through_path(const char *path, int flags, struct output_file *f, struct error *err)
{
        f->fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC | flags, 0666);
        if (f->fd < 0 && errno == ENXIO && (flags & O_NONBLOCK))
                return error_set(err, ST_OS, "cannot write '%s': no process reads it", path);
        return f->fd < 0 ? error_os(err, errno, "cannot write '%s'", path) : ST_OK;
}

/* The path without links of an open file, owned; NULL: errno. */
static char *read_descriptor_path(int fd)
{
        char link[32], path[PATH_MAX];
        ssize_t n;

        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof path - 1);
        if (n < 0)
                return NULL;
        path[n] = 0;
        return strdup(path);
}

static enum status create_link_target(const char *link, enum output_kind kind, struct output_file *f, struct error *err)
{
        enum status st = open_through_path(link, O_CREAT | O_NONBLOCK, f, err);

        f->is_regular = f->is_new = true;
        if (st)
                return st;
        f->path = read_descriptor_path(f->fd);
        if (!f->path)
                return error_os(err, errno, "cannot resolve '%s'", link);
        if (kind == OUTPUT_OF_SERVICE)
                (void)!fchmod(f->fd, 0644);
        return ST_OK;
}

/* What the path leads to: *ret has mode 0 if it does not exist. */
static enum status stat_output(const char *path, struct stat *ret, bool *is_link_ret, char **resolved_ret,
                               struct error *err)
{
        _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC); /* by the kernel's rules for links */
        int failed = fd < 0 ? errno : 0;
        struct stat link;

        *is_link_ret = lstat(path, &link) == 0 && S_ISLNK(link.st_mode);
        *ret = (struct stat){ 0 };
        if (fd < 0 && failed != ENOENT)
                return error_os(err, failed, "cannot write '%s'", path);
        if (fd >= 0 && fstat(fd, ret) < 0)
                return error_os(err, errno, "cannot write '%s'", path);
        *resolved_ret = fd >= 0 && *is_link_ret ? read_descriptor_path(fd) : strdup(path);
        return *resolved_ret ? check_output_type(path, ret, err) : error_os(err, errno, "cannot resolve '%s'", path);
}

static enum status open_output(const char *path, enum output_kind kind, struct output_file *f, struct error *err)
{
        int standard = parse_descriptor_path(path);
        bool is_link;
        struct stat s;
        enum status st;

        if (standard >= 0) {
                f->fd = fcntl(standard, F_DUPFD_CLOEXEC, 0);
                return f->fd < 0 ? error_os(err, errno, "cannot write '%s'", path) : ST_OK;
        }
        st = stat_output(path, &s, &is_link, &f->path, err);
        if (st)
                return st;
        if (S_ISREG(s.st_mode))
                return open_regular_output(f->path, &s, f, err);
        if (s.st_mode)
                return open_through_path(path, kind == OUTPUT_OF_SERVICE ? O_NONBLOCK : 0, f, err);
        if (!is_link)
                return open_new_output(f->path, kind, f, err);
        free(f->path);
        f->path = NULL;
        return create_link_target(path, kind, f, err);
}

enum status output_file_open(const char *path, enum output_kind kind, struct output_file *ret, struct error *err)
{
        struct output_file f = { .fd = -1 };
        enum status st = open_output(path, kind, &f, err);

        if (st)
                output_file_discard(&f);
        else
                *ret = f;
        return st;
}

/* End the file after the bytes written in place. */
static enum status end_in_place(const struct output_file *f, struct error *err)
{
        off_t end = lseek(f->fd, 0, SEEK_CUR);

        if (end < 0 || ftruncate(f->fd, end) < 0 || file_sync_timed(f->fd, SYNC_FILE) < 0)
                return error_os(err, errno, "cannot write '%s'", f->path);
        return f->is_new ? file_sync_parent(f->path, err) : ST_OK;
}

enum status output_file_publish(struct output_file *f, struct error *err)
{
        enum status st = ST_OK;

        if (f->tmp) {
                st = file_publish(f->fd, f->tmp, f->path, err);
        } else {
                if (f->is_regular)
                        st = end_in_place(f, err);
                if (close(f->fd) < 0 && !st)
                        st = error_os(err, errno, "cannot write '%s'", f->path ? f->path : "standard output");
        }
        free(f->path);
        free(f->tmp);
        *f = (struct output_file){ .fd = -1 };
        return st;
}

void output_file_discard(struct output_file *f)
{
        if (f->fd >= 0)
                close(f->fd);
        if (f->fd >= 0 && (f->tmp || f->is_new))
                unlink(f->tmp ? f->tmp : f->path);
        free(f->path);
        free(f->tmp);
        *f = (struct output_file){ .fd = -1 };
}

enum status output_file_write(const char *path, enum output_kind kind, const void *data, size_t n, struct error *err)
{
        struct output_file f;
        enum status st = output_file_open(path, kind, &f, err);

        if (st)
                return st;
        st = file_write_all(f.fd, data, n, path, err);
        if (!st)
                return output_file_publish(&f, err);
        output_file_discard(&f);
        return st;
}

enum status output_file_check(const char *path, struct error *err)
{
        _cleanup_free_ char *resolved = NULL;
        struct output_file f;
        bool is_link;
        struct stat s;
        enum status st;

        if (parse_descriptor_path(path) < 0) {
                st = stat_output(path, &s, &is_link, &resolved, err);
                if (st)
                        return st;
                if (s.st_mode && !S_ISREG(s.st_mode))
                        return access(path, W_OK) < 0 ? error_os(err, errno, "cannot write '%s'", path) : ST_OK;
        }
        st = output_file_open(path, OUTPUT_OF_COMMAND, &f, err);
        if (!st)
                output_file_discard(&f);
        return st;
}

enum status output_file_open_in_place(const char *path, int *fd_ret, struct error *err)
{
        _cleanup_free_ char *resolved = NULL;
        struct output_file f = { .fd = -1 };
        int standard = parse_descriptor_path(path);
        bool is_link;
        struct stat s;
        enum status st;

        if (standard >= 0) {
                *fd_ret = fcntl(standard, F_DUPFD_CLOEXEC, 0);
                return *fd_ret < 0 ? error_os(err, errno, "cannot write '%s'", path) : ST_OK;
        }
        st = stat_output(path, &s, &is_link, &resolved, err);
        if (!st)
                st = open_through_path(path, O_CREAT | O_TRUNC | O_NONBLOCK, &f, err);
        if (st)
                return st;
        if (fcntl(f.fd, F_SETFL, O_WRONLY) < 0) { /* not to wait was meant for opening only */
                close(f.fd);
                return error_os(err, errno, "cannot write '%s'", path);
        }
        *fd_ret = f.fd;
        return ST_OK;
}
