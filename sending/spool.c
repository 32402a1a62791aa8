/* SPDX-License-Identifier: Apache-2.0 */
#include "sending/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text.h"
#include "sending/spool_directory.h"

#define BLOCK_BYTES 4096
#define NAME_DIGITS 20
#define SUFFIX ".batch"
#define TEMPORARY ".tmp-"
#define DAMAGED ".damaged"
#define LOCK "lock"

struct spool {
        char *dir;
        int dir_fd, lock_fd;
};

struct file_name {
        char text[48];
};

static struct file_name format_file_name(uint64_t number, const char *prefix, const char *more)
{
        struct file_name n;

        snprintf(n.text, sizeof n.text, "%s%0*" PRIu64 SUFFIX "%s", prefix, NAME_DIGITS, number, more);
        return n;
}

uint64_t spool_disk_bytes(size_t n)
{
        return ((uint64_t)n + SPOOL_FILE_HEADER_BYTES + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

const char *spool_dir(const struct spool *s)
{
        return s->dir;
}

void spool_found_deinit(struct spool_found *f)
{
        free(f->entries);
        *f = (struct spool_found){ 0 };
}

void spool_close(struct spool *s)
{
        if (!s)
                return;
        if (s->lock_fd >= 0)
                close(s->lock_fd);
        if (s->dir_fd >= 0)
                close(s->dir_fd);
        free(s->dir);
        free(s);
}

/* ---- opening ---- */

static enum status lock_spool(struct spool *s, struct error *err)
{
        struct stat st;

        if (fstat(s->dir_fd, &st) < 0)
                return error_os(err, errno, "cannot stat the spool '%s'", s->dir);
        if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
                return error_set(err, ST_USAGE,
                                 "the spool '%s' must belong to the agent's user and not be writable by others",
                                 s->dir);
        s->lock_fd = openat(s->dir_fd, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (s->lock_fd < 0)
                return error_os(err, errno, "cannot write to the spool '%s'", s->dir);
        if (flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0)
                return ST_OK;
        if (errno == EWOULDBLOCK)
                return error_set(err, ST_BUSY, "the spool '%s' is in use by another process; give this one its own",
                                 s->dir);
        return error_os(err, errno, "cannot lock the spool '%s'", s->dir);
}

static bool parse_file_name(const char *name, const char *suffix, uint64_t *ret)
{
        uint64_t v = 0;

        if (strlen(name) != NAME_DIGITS + strlen(suffix) || strcmp(name + NAME_DIGITS, suffix) != 0)
                return false;
        for (int i = 0; i < NAME_DIGITS; i++) {
                if (name[i] < '0' || name[i] > '9' || v > (INT64_MAX - 9) / 10)
                        return false;
                v = 10 * v + (uint64_t)(name[i] - '0');
        }
        *ret = v;
        return true;
}

static int compare_spool_numbers(const void *pa, const void *pb)
{
        const struct spool_entry *a = pa, *b = pb;

        return (a->number > b->number) - (a->number < b->number);
}

static enum status append_found_file(struct spool *s, const char *name, size_t *capacity, struct spool_found *f,
                                     bool *known_ret, struct error *err)
{
        struct stat st;
        uint64_t number;

        *known_ret = true;
        if (starts_with(name, TEMPORARY)) { /* left by a killed process */
                (void)unlinkat(s->dir_fd, name, 0);
                return ST_OK;
        }
        if (parse_file_name(name, SUFFIX DAMAGED, &number)) {
                f->damaged++;
                return ST_OK;
        }
        *known_ret = strcmp(name, LOCK) == 0;
        if (*known_ret || !parse_file_name(name, SUFFIX, &number))
                return ST_OK;
        if (f->last_number < number)
                f->last_number = number;
        if (fstatat(s->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
                return ST_OK;
        *known_ret = true;
        if (!array_reserve(&f->entries, capacity, f->count))
                return error_no_memory(err);
        f->entries[f->count++] = (struct spool_entry){
                .number = number,
                .disk_bytes = (uint64_t)(st.st_size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES,
        };
        return ST_OK;
}

static enum status list_spool_files(struct spool *s, void (*foreign)(void *, const char *), void *context,
                                    struct spool_found *f, struct error *err)
{
        int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        size_t capacity = 0;
        enum status st = ST_OK;
        struct dirent *e;

        if (!d) {
                int saved = errno;

                if (fd >= 0)
                        close(fd);
                return error_os(err, saved, "cannot list the spool '%s'", s->dir);
        }
        while (!st && (errno = 0, e = readdir(d))) {
                bool known = true;

                if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                        continue;
                st = append_found_file(s, e->d_name, &capacity, f, &known, err);
                if (!known)
                        foreign(context, e->d_name);
        }
        if (!st && errno)
                st = error_os(err, errno, "cannot list the spool '%s'", s->dir);
        closedir(d);
        if (f->count)
                qsort(f->entries, f->count, sizeof *f->entries, compare_spool_numbers);
        return st;
}

/* The first batch with an intact header decides: one spool is never written by two versions. */
static enum status check_spool_version(const struct spool *s, const struct spool_found *f, struct error *err)
{
        for (size_t i = 0; i < f->count; i++) {
                struct file_name name = format_file_name(f->entries[i].number, "", "");
                _cleanup_close_ int fd = openat(s->dir_fd, name.text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
                uint8_t head[SPOOL_FILE_HEADER_BYTES];

                if (fd < 0 || pread(fd, head, sizeof head, 0) != (ssize_t)sizeof head)
                        continue;
                switch (spool_file_judge_version(head)) {
                case SPOOL_VERSION_OTHER:
                        return error_set(err, ST_UNSUPPORTED,
                                         "the spool '%s' holds batches of another version of this program: let that "
                                         "version send them, or give this one another directory",
                                         s->dir);
                case SPOOL_VERSION_OWN:
                        return ST_OK;
                case SPOOL_VERSION_UNKNOWN:
                        break;
                }
        }
        return ST_OK;
}

enum status spool_open(const char *dir, void (*foreign)(void *, const char *), void *context, struct spool **ret,
                       struct spool_found *found_ret, struct error *err)
{
        struct spool_found found = { 0 };
        struct spool *s = calloc(1, sizeof *s);
        enum status st;

        if (!s)
                return error_no_memory(err);
        s->dir_fd = s->lock_fd = -1;
        s->dir = strdup(dir);
        st = s->dir ? spool_directory_open(dir, &s->dir_fd, err) : error_no_memory(err);
        if (!st)
                st = lock_spool(s, err);
        if (!st)
                st = list_spool_files(s, foreign, context, &found, err);
        if (!st)
                st = check_spool_version(s, &found, err);
        if (st) {
                spool_found_deinit(&found);
                spool_close(s);
                return st;
        }
        *ret = s;
        *found_ret = found;
        return ST_OK;
}

/* ---- batches ---- */

static enum status write_batch_file(int fd, const uint8_t *header, const struct spool_batch *b, const char *name,
                                    struct error *err)
{
        enum status st = file_write_all(fd, header, SPOOL_FILE_HEADER_BYTES, name, err);

        return st ? st : file_write_all(fd, b->payload, b->payload_size, name, err);
}

enum status spool_write(struct spool *s, const struct spool_batch *b, struct error *err)
{
        struct file_name tmp = format_file_name(b->number, TEMPORARY, ""), name = format_file_name(b->number, "", "");
        uint8_t header[SPOOL_FILE_HEADER_BYTES];
        _cleanup_close_ int fd =
                openat(s->dir_fd, tmp.text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        enum status st;

        if (fd < 0)
                return error_os(err, errno, "cannot create '%s/%s'", s->dir, name.text);
        spool_file_write_header(b, header);
        st = write_batch_file(fd, header, b, name.text, err);
        if (!st && renameat(s->dir_fd, tmp.text, s->dir_fd, name.text) < 0)
                st = error_os(err, errno, "cannot rename '%s/%s'", s->dir, tmp.text);
        if (st)
                (void)unlinkat(s->dir_fd, tmp.text, 0);
        return st;
}

enum status spool_sync(struct spool *s, const uint64_t *numbers, size_t count, struct error *err)
{
        for (size_t i = 0; i < count; i++) {
                struct file_name name = format_file_name(numbers[i], "", "");
                _cleanup_close_ int fd = openat(s->dir_fd, name.text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

                if (fd < 0 && errno == ENOENT)
                        continue;
                if (fd < 0 || fdatasync(fd) < 0)
                        return error_os(err, errno, "cannot sync '%s/%s'", s->dir, name.text);
        }
        return fsync(s->dir_fd) < 0 ? error_os(err, errno, "cannot sync the spool '%s'", s->dir) : ST_OK;
}

enum status spool_read(struct spool *s, uint64_t number, struct buf *file, struct spool_batch *ret, struct error *err)
{
        struct file_name name = format_file_name(number, "", "");
        _cleanup_free_ char *path = path_join(s->dir, name.text);
        _cleanup_close_ int fd = openat(s->dir_fd, name.text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        struct stat st;

        if (!path)
                return error_no_memory(err);
        if (fd < 0 && errno == ENOENT)
                return error_set(err, ST_NOT_FOUND, "cannot read '%s': no such file", path);
        if (fd < 0 || fstat(fd, &st) < 0)
                return error_os(err, errno, "cannot read '%s'", path);
        if (st.st_size > (off_t)(LIMIT_AGENT_QUEUE_BYTES + SPOOL_FILE_HEADER_BYTES))
                return error_set(err, ST_BAD_DATA, "cannot read '%s': it is larger than any batch", path);
        while (file->size < (size_t)st.st_size) {
                size_t left = (size_t)st.st_size - file->size;
                void *to = buf_reserve(file, left);
                ssize_t n = to ? read(fd, to, left) : -1;

                if (!to)
                        return buf_status(file, err, path);
                if (n < 0 && errno != EINTR)
                        return error_os(err, errno, "cannot read '%s'", path);
                if (n == 0)
                        break;
                buf_commit(file, n > 0 ? (size_t)n : 0);
        }
        return spool_file_parse(file->data, file->size, number, path, ret, err);
}

enum status spool_remove(struct spool *s, uint64_t number, struct error *err)
{
        struct file_name name = format_file_name(number, "", "");

        if (unlinkat(s->dir_fd, name.text, 0) < 0 && errno != ENOENT)
                return error_os(err, errno, "cannot remove '%s/%s'", s->dir, name.text);
        return ST_OK;
}

enum status spool_set_aside(struct spool *s, uint64_t number, struct error *err)
{
        struct file_name from = format_file_name(number, "", ""), to = format_file_name(number, "", DAMAGED);

        if (renameat(s->dir_fd, from.text, s->dir_fd, to.text) < 0 && errno != ENOENT)
                return error_os(err, errno, "cannot rename '%s/%s'", s->dir, from.text);
        return ST_OK;
}
