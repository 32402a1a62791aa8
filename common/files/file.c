/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Independent functions, from paths to mappings. Those with a protocol are the ones for durable files:
 * file_create_temporary() in the directory of the target, writes by the caller, then publish_as(): fdatasync() of the
 * file, rename(), or link() where the target must not exist, and fsync() of the directory. file_write_durable() does
 * all of it.
 *
 * Every fdatasync() and fsync() passes file_sync_timed(), whose durations are metrics; syncfs() is not measured.
 *
 * Order: paths, reading and writing, syncs, temporary and durable files, directories, mappings, reading in chunks,
 * copies.
 */
#include "common/files/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/metrics.h"

char *path_join(const char *dir, const char *name)
{
        char *ret;

        return asprintf(&ret, "%s/%s", dir, name) < 0 ? NULL : ret;
}

const char *path_base(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

void path_normalize(char *path)
{
        char *to = path;

        for (const char *part = path; *part;) {
                size_t n;

                part += strspn(part, "/");
                n = strcspn(part, "/");
                if (n == 2 && part[0] == '.' && part[1] == '.') {
                        while (to > path && *--to != '/')
                                ;
                } else if (n && !(n == 1 && part[0] == '.')) {
                        *to++ = '/';
                        memmove(to, part, n);
                        to += n;
                }
                part += n;
        }
        *to = 0;
}

bool is_path_outside_root(const char *path)
{
        size_t depth = 0;

        for (const char *part = path; *part;) {
                size_t n;

                part += strspn(part, "/");
                n = strcspn(part, "/");
                if (n == 2 && part[0] == '.' && part[1] == '.') {
                        if (depth-- == 0)
                                return true;
                } else if (n && !(n == 1 && part[0] == '.')) {
                        depth++;
                }
                part += n;
        }
        return false;
}

enum status file_read(const char *path, struct buf *ret, struct error *err)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0 && errno == ENOENT)
                return error_set(err, ST_NOT_FOUND, "cannot read '%s': no such file", path);
        if (fd < 0)
                return error_os(err, errno, "cannot open '%s'", path);
        for (;;) {
                size_t room = ret->max - ret->size;
                size_t want = room < KiB(64) ? room : KiB(64);
                char past_limit = 0;
                void *to = room ? buf_reserve(ret, want) : &past_limit;
                ssize_t n;

                if (!to)
                        return buf_status(ret, err, path);
                n = read(fd, to, room ? want : 1);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_os(err, errno, "cannot read '%s'", path);
                if (n == 0)
                        return ST_OK;
                if (!room)
                        return error_set(err, ST_TOO_BIG, "'%s' is larger than %zu bytes", path, ret->max);
                buf_commit(ret, (size_t)n);
        }
}

static enum status check_text_encoding(const char *path, const struct buf *text, struct error *err)
{
        const uint8_t *bytes = text->data;

        if (text->size >= 2 && ((bytes[0] == 0xff && bytes[1] == 0xfe) || (bytes[0] == 0xfe && bytes[1] == 0xff)))
                return error_set(err, ST_BAD_DATA, "'%s' is text in UTF-16: save it in UTF-8", path);
        if (text->size && memchr(bytes, 0, text->size))
                return error_set(err, ST_BAD_DATA,
                                 "'%s' contains zero bytes, as text in UTF-16 and binary data do: save it in UTF-8",
                                 path);
        return ST_OK;
}

enum status file_check_text(const char *path, const struct buf *text, struct error *err)
{
        enum status st = check_text_encoding(path, text, err);

        if (st || !text->size || text->data[text->size - 1] == '\n')
                return st;
        if (text->data[text->size - 1] == '\r')
                return error_set(err, ST_BAD_DATA, "the lines of '%s' end with CR only: end them with LF or CR LF",
                                 path);
        return error_set(err, ST_BAD_DATA,
                         "'%s' does not end with a line end: it may be cut off while it is being written", path);
}

/* UTF-8 has none, but editors write it. */
static void drop_byte_order_mark(struct buf *text)
{
        if (text->size >= 3 && memcmp(text->data, "\xef\xbb\xbf", 3) == 0) {
                text->size -= 3;
                memmove(text->data, text->data + 3, text->size);
        }
}

enum status file_read_lines(const char *path, struct buf *ret, struct error *err)
{
        enum status st = file_read(path, ret, err);

        if (!st)
                st = file_check_text(path, ret, err);
        if (!st)
                drop_byte_order_mark(ret);
        return st;
}

enum status file_read_first_line(const char *path, size_t max, char **ret, struct error *err)
{
        _cleanup_buf_ struct buf content;
        const char *line;
        size_t n;
        enum status st;

        buf_init(&content, max);
        st = file_read(path, &content, err);
        if (!st)
                st = check_text_encoding(path, &content, err);
        if (st)
                return st;
        drop_byte_order_mark(&content);
        line = buf_cstr(&content);
        if (!line)
                return buf_status(&content, err, path);
        line += strspn(line, " \t\r\n");
        n = strcspn(line, "\r\n");
        while (n && strchr(" \t", line[n - 1]))
                n--;
        if (!n)
                return error_set(err, ST_USAGE, "'%s' is empty", path);
        *ret = strndup(line, n);
        return *ret ? ST_OK : error_no_memory(err);
}

enum status file_write_all(int fd, const void *data, size_t n, const char *path, struct error *err)
{
        const char *from = data;

        while (n) {
                ssize_t done = write(fd, from, n);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done < 0)
                        return error_os(err, errno, "cannot write '%s'", path);
                from += done;
                n -= (size_t)done;
        }
        return ST_OK;
}

static char *parent_directory(const char *path)
{
        const char *slash = strrchr(path, '/');

        if (!slash)
                return strdup(".");
        return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

#define SYNC_DURATION(label) HISTOGRAM("cairn_fsync_duration_seconds", "Time of one fsync() or fdatasync().", label)
static struct histogram sync_durations[] = {
        [SYNC_QUEUE] = SYNC_DURATION("of=\"queue\""),
        [SYNC_FILE] = SYNC_DURATION("of=\"file\""),
        [SYNC_DIRECTORY] = SYNC_DURATION("of=\"directory\""),
};

int file_sync_timed(int fd, enum synced what)
{
        int64_t began_ns = monotonic_ns();
        int ret = what == SYNC_DIRECTORY ? fsync(fd) : fdatasync(fd), failed = errno;

        histogram_observe(&sync_durations[what], monotonic_ns() - began_ns);
        errno = failed;
        return ret;
}

void file_register_sync_metrics(void)
{
        for (size_t i = 0; i < sizeof sync_durations / sizeof *sync_durations; i++)
                metric_register(&sync_durations[i].metric);
}

enum status file_sync_parent(const char *path, struct error *err)
{
        _cleanup_free_ char *dir = parent_directory(path);
        _cleanup_close_ int fd = -1;

        if (!dir)
                return error_no_memory(err);
        fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || file_sync_timed(fd, SYNC_DIRECTORY) < 0)
                return error_os(err, errno, "cannot sync directory '%s'", dir);
        return ST_OK;
}

enum status file_sync_filesystem(const char *dir, struct error *err)
{
        _cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0 || syncfs(fd) < 0)
                return error_os(err, errno, "cannot sync the file system of '%s'", dir);
        return ST_OK;
}

enum status file_create_temporary(const char *path, char **tmp_ret, int *fd_ret, struct error *err)
{
        _cleanup_free_ char *dir = parent_directory(path);
        _cleanup_free_ char *tmp = NULL;
        int fd;

        if (!dir || asprintf(&tmp, "%s/.tmp-%s-XXXXXX", dir, path_base(path)) < 0) {
                tmp = NULL;
                return error_no_memory(err);
        }
        fd = mkostemp(tmp, O_CLOEXEC);
        if (fd < 0)
                return error_os(err, errno, "cannot create '%s'", tmp);
        (void)!fchmod(fd, 0644);
        *tmp_ret = steal_ptr(tmp);
        *fd_ret = fd;
        return ST_OK;
}

static enum status publish_as(int fd, const char *tmp, const char *path, bool replace, struct error *err)
{
        enum status st = ST_OK;

        if (file_sync_timed(fd, SYNC_FILE) < 0)
                st = error_os(err, errno, "cannot sync '%s'", tmp);
        else if (replace ? rename(tmp, path) < 0 : link(tmp, path) < 0)
                st = errno == EEXIST ? error_set(err, ST_BUSY, "'%s' exists already", path)
                                     : error_os(err, errno, "cannot rename '%s' to '%s'", path_base(tmp), path);
        close(fd);
        if (st || !replace)
                unlink(tmp);
        return st ? st : file_sync_parent(path, err);
}

enum status file_publish(int fd, const char *tmp, const char *path, struct error *err)
{
        return publish_as(fd, tmp, path, true, err);
}

enum status file_publish_new(int fd, const char *tmp, const char *path, struct error *err)
{
        return publish_as(fd, tmp, path, false, err);
}

enum status file_write_durable(const char *path, const void *data, size_t n, struct error *err)
{
        _cleanup_free_ char *tmp = NULL;
        int fd;
        enum status st = file_create_temporary(path, &tmp, &fd, err);

        if (st)
                return st;
        st = file_write_all(fd, data, n, tmp, err);
        if (st) {
                close(fd);
                unlink(tmp);
                return st;
        }
        return file_publish(fd, tmp, path, err);
}

enum status file_make_dirs(const char *path, struct error *err)
{
        _cleanup_free_ char *copy = strdup(path);

        if (!copy)
                return error_no_memory(err);
        for (char *p = copy + 1;; p++) {
                char c = *p;

                if (c != '/' && c != 0)
                        continue;
                *p = 0;
                if (mkdir(copy, 0755) == 0) {
                        enum status st = file_sync_parent(copy, err);

                        if (st) {
                                rmdir(copy); /* otherwise the next call would treat it as durable */
                                return st;
                        }
                } else if (errno != EEXIST) {
                        return error_os(err, errno, "cannot create directory '%s'", copy);
                }
                *p = c;
                if (c == 0)
                        return ST_OK;
        }
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        (void)st;
        (void)flag;
        (void)ftw;
        return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

enum status file_remove_tree(const char *path, struct error *err)
{
        if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) < 0 && errno != ENOENT)
                return error_os(err, errno, "cannot remove '%s'", path);
        return ST_OK;
}

enum status file_map_fd(int fd, size_t max, const char *name, struct file_map *ret, struct error *err)
{
        struct stat st;
        void *data = NULL;

        if (fstat(fd, &st) < 0)
                return error_os(err, errno, "cannot stat '%s'", name);
        if (!S_ISREG(st.st_mode))
                return error_set(err, ST_USAGE, "'%s' is not a regular file", name);
        if ((uint64_t)st.st_size > max)
                return error_set(err, ST_TOO_BIG, "'%s' is larger than %zu bytes", name, max);
        if (st.st_size) {
                data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
                if (data == MAP_FAILED)
                        return error_os(err, errno, "cannot map '%s'", name);
        }
        *ret = (struct file_map){ .data = data, .size = (size_t)st.st_size };
        return ST_OK;
}

enum status file_map_open(const char *path, size_t max, struct file_map *ret, struct error *err)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return errno == ENOENT ? error_set(err, ST_NOT_FOUND, "cannot open '%s': no such file", path)
                                       : error_os(err, errno, "cannot open '%s'", path);
        return file_map_fd(fd, max, path, ret, err);
}

void file_map_close(struct file_map *m)
{
        if (m->data)
                munmap((void *)m->data, m->size);
        *m = (struct file_map){ 0 };
}

enum status file_read_chunks(int fd, const char *name,
                             enum status (*each)(void *context, const void *data, size_t n, struct error *err),
                             void *context, uint64_t *size_ret, struct error *err)
{
        _cleanup_free_ char *bytes = malloc(MiB(1));
        uint64_t at = 0;

        assert(fd >= 0 && each);
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

static enum status append_copied_chunk(void *context, const void *data, size_t n, struct error *err)
{
        const int *fd = context;

        return file_write_all(*fd, data, n, "a copy", err);
}

enum status file_copy_new(const char *from, const char *to, uint64_t *bytes_ret, struct error *err)
{
        _cleanup_close_ int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), out = -1;

        if (in < 0)
                return errno == ENOENT ? error_set(err, ST_NOT_FOUND, "'%s' is gone", from)
                                       : error_os(err, errno, "cannot open '%s'", from);
        out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (out < 0)
                return error_os(err, errno, "cannot create '%s'", to);
        return file_read_chunks(in, from, append_copied_chunk, &out, bytes_ret, err);
}

enum status file_link_or_copy(const char *from, const char *to, uint64_t *copied_bytes_ret, struct error *err)
{
        if (link(from, to) == 0) {
                *copied_bytes_ret = UINT64_MAX;
                return ST_OK;
        }
        if (errno == EXDEV || errno == EPERM || errno == EMLINK || errno == EOPNOTSUPP)
                return file_copy_new(from, to, copied_bytes_ret, err);
        return errno == ENOENT ? error_set(err, ST_NOT_FOUND, "'%s' is gone", from)
                               : error_os(err, errno, "cannot link '%s' to '%s'", from, to);
}
