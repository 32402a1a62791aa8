/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that interpose those of the C library. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/faults/fault_fs_internal.h"

#define OURS __attribute__((visibility("default")))

static bool is_past_end(int fd, off_t end)
{
        struct stat st = { 0 };

        return fstat(fd, &st) < 0 || end > st.st_size;
}

static uint64_t get_inode(int fd, bool *is_dir)
{
        struct stat st = { 0 };

        if (fstat(fd, &st) < 0)
                abort();
        if (is_dir)
                *is_dir = S_ISDIR(st.st_mode);
        return st.st_ino;
}

static int open_watched(int dir_fd, const char *name, int flags, mode_t mode)
{
        bool makes = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE, dsync = flags & O_DSYNC, was_there;
        char path[PATH_ROOM];
        struct stat st;
        int fd;

        if (!fault_is_on() ||
            (!makes && !dsync && !(flags & O_TRUNC) && !((flags & O_ACCMODE) != O_RDONLY && fault_is_read_only())))
                return (int)syscall(SYS_openat, dir_fd, name, flags, mode);
        fault_path(dir_fd, name, path);
        if (!fault_is_watched(path))
                return (int)syscall(SYS_openat, dir_fd, name, flags, mode);
        if (fault_is_read_only()) {
                errno = EROFS;
                return -1;
        }
        pthread_mutex_lock(&fault.lock);
        was_there = (flags & O_TMPFILE) != O_TMPFILE && fstatat(dir_fd, name, &st, 0) == 0;
        if ((makes || (flags & O_TRUNC)) && !was_there && !fault_step("creation", path, NEEDS_ROOM)) {
                pthread_mutex_unlock(&fault.lock);
                return -1;
        }
        fd = (int)syscall(SYS_openat, dir_fd, name, flags & ~O_DSYNC, mode);
        if (fd >= 0) {
                if (fd < FDS_MAX)
                        fault.dsync[fd] = dsync;
                if (makes && !was_there)
                        fault_note(&(struct fault_change){ .op = FAULT_CREATE,
                                                           .inode = get_inode(fd, NULL),
                                                           .path = (flags & O_TMPFILE) == O_TMPFILE ? NULL : path });
                else if (flags & O_TRUNC)
                        fault_note(&(struct fault_change){ .op = FAULT_TRUNCATE, .inode = get_inode(fd, NULL) });
        }
        pthread_mutex_unlock(&fault.lock);
        return fd;
}

OURS int open(const char *name, int flags, ...)
{
        va_list args;
        mode_t mode;

        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
        return open_watched(AT_FDCWD, name, flags, mode);
}

OURS int openat(int dir_fd, const char *name, int flags, ...)
{
        va_list args;
        mode_t mode;

        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
        return open_watched(dir_fd, name, flags, mode);
}

OURS int mkostemp(char *name, int flags)
{
        static unsigned number;
        size_t n = strlen(name);

        for (unsigned tries = 0; tries < 10000; tries++) {
                int fd;

                snprintf(name + n - 6, 7, "%06x",
                         ((unsigned)getpid() * 4093 + __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED)) & 0xffffff);
                fd = open_watched(AT_FDCWD, name, O_RDWR | O_CREAT | O_EXCL | flags, 0600);
                if (fd >= 0 || errno != EEXIST)
                        return fd;
        }
        return -1;
}

struct piece {
        const void *bytes;
        size_t n;
        off_t at; /* -1: at the current file offset */
};

static ssize_t write_bytes(int fd, const struct piece *p, size_t n)
{
        return p->at < 0 ? syscall(SYS_write, fd, p->bytes, n) : syscall(SYS_pwrite64, fd, p->bytes, n, p->at);
}

/* Locked. The two steps of a write: before it and half-way through it. */
static ssize_t write_watched(int fd, const struct piece *p, const char *path)
{
        bool is_append = fcntl(fd, F_GETFL) & O_APPEND;
        off_t at = p->at >= 0 ? p->at : lseek(fd, 0, is_append ? SEEK_END : SEEK_CUR);
        size_t n = p->n, half = n / 2 / 4096 * 4096; /* copies whole pages */
        enum need need;
        ssize_t done;

        if (fault.cut_short) {
                fault.cut_short = false;
                fault_where("write", path);
                errno = fault.os_errno;
                return -1;
        }
        need = is_past_end(fd, at + (off_t)n) ? NEEDS_ROOM : NEEDS_NONE;
        if (!fault_step("write", path, need))
                return -1;
        fault.step++;
        /* LMDB treats a short write as a full disk. Writes to files are not interrupted by signals. */
        if (fault.step == fault.at && half && fault.mode > COUNT && (fault.mode != FULL || need == NEEDS_ROOM) &&
            (fault.os_errno != EINTR || !strstr(path, "/data.mdb"))) {
                n = half;
                fault_where("short write", path);
                fault.cut_short = fault.mode == FAIL && fault.os_errno != EINTR;
        }
        done = write_bytes(fd, p, n);
        if (done > 0)
                fault_note(&(struct fault_change){ .op = FAULT_WRITE,
                                                   .synced = fd < FDS_MAX && fault.dsync[fd] && n == p->n,
                                                   .inode = get_inode(fd, NULL),
                                                   .offset = (uint64_t)at,
                                                   .bytes = p->bytes,
                                                   .byte_count = (size_t)done });
        if (fault.step == fault.at && fault.mode == KILL)
                raise(SIGKILL);
        return done;
}

static ssize_t write_piece(int fd, const struct piece *p)
{
        char path[PATH_ROOM];
        ssize_t done;

        if (fd == fault.log_fd || !fault_is_on())
                return write_bytes(fd, p, p->n);
        fault_path(fd, NULL, path);
        if (!fault_is_watched(path))
                return write_bytes(fd, p, p->n);
        pthread_mutex_lock(&fault.lock);
        done = write_watched(fd, p, path);
        pthread_mutex_unlock(&fault.lock);
        return done;
}

OURS ssize_t write(int fd, const void *bytes, size_t n)
{
        return write_piece(fd, &(struct piece){ bytes, n, -1 });
}

OURS ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
        return write_piece(fd, &(struct piece){ bytes, n, at });
}

OURS ssize_t pwrite64(int fd, const void *bytes, size_t n, off_t at)
{
        return write_piece(fd, &(struct piece){ bytes, n, at });
}

/* All buffers in one write. */
OURS ssize_t writev(int fd, const struct iovec *v, int count)
{
        size_t n = 0, at = 0;
        char *all;
        ssize_t done;

        if (!fault_is_on())
                return syscall(SYS_writev, fd, v, count);
        for (int i = 0; i < count; i++)
                n += v[i].iov_len;
        all = malloc(n + 1);
        if (!all)
                return -1;
        for (int i = 0; i < count; at += v[i++].iov_len)
                memcpy(all + at, v[i].iov_base, v[i].iov_len);
        done = write(fd, all, n);
        free(all);
        return done;
}

/* Both names: which one is called depends on _FILE_OFFSET_BITS. */
static int stat_file_system(const char *name, const char *path, struct statvfs *ret)
{
        int (*original)(const char *, struct statvfs *) =
                (int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, name);
        int rc;

        if (fault_is_watched(path))
                fault_wait();
        rc = original(path, ret);
        if (!rc && fault_has_no_room(path))
                ret->f_bfree = ret->f_bavail = 0;
        return rc;
}

OURS int statvfs(const char *path, struct statvfs *ret)
{
        return stat_file_system("statvfs", path, ret);
}

OURS int statvfs64(const char *path, struct statvfs64 *ret)
{
        return stat_file_system("statvfs64", path, (struct statvfs *)ret); /* the same layout on 64-bit machines */
}

OURS int ftruncate(int fd, off_t size)
{
        char path[PATH_ROOM];
        int rc = -1;

        fault_path(fd, NULL, path);
        if (!fault_is_on() || !fault_is_watched(path))
                return (int)syscall(SYS_ftruncate, fd, size);
        pthread_mutex_lock(&fault.lock);
        if (fault_step("truncation", path, NEEDS_NONE))
                rc = (int)syscall(SYS_ftruncate, fd, size);
        if (!rc)
                fault_note(&(struct fault_change){
                        .op = FAULT_TRUNCATE, .inode = get_inode(fd, NULL), .offset = (uint64_t)size });
        pthread_mutex_unlock(&fault.lock);
        return rc;
}

static int sync_fd(int fd, bool all)
{
        char path[PATH_ROOM];
        bool is_dir, ok;
        uint64_t inode;

        fault_path(fd, NULL, path);
        if (!fault_is_on() || !fault_is_watched(path))
                return 0;
        pthread_mutex_lock(&fault.lock);
        ok = fault_step("sync", path, NEEDS_NONE);
        inode = get_inode(fd, &is_dir);
        if (ok)
                fault_note(&(struct fault_change){ .op = all      ? FAULT_SYNC_ALL
                                                         : is_dir ? FAULT_SYNC_DIR
                                                                  : FAULT_SYNC,
                                                   .inode = inode,
                                                   .path = path });
        else if (!all && !is_dir)
                fault_note(&(struct fault_change){ .op = FAULT_SYNC_LOST, .inode = inode });
        pthread_mutex_unlock(&fault.lock);
        return ok ? 0 : -1;
}

static bool syncs_are_watched(void)
{
        return fault.dir_size && (!fault.flag || fault.mode == BAD_SYNC);
}

OURS int fsync(int fd)
{
        return syncs_are_watched() ? sync_fd(fd, false) : (int)syscall(SYS_fsync, fd);
}

OURS int fdatasync(int fd)
{
        return syncs_are_watched() ? sync_fd(fd, false) : (int)syscall(SYS_fdatasync, fd);
}

OURS int syncfs(int fd)
{
        return syncs_are_watched() ? sync_fd(fd, true) : (int)syscall(SYS_syncfs, fd);
}

/* A call that changes one name or two. */
static int change_name(const char *what, const struct fault_change *c, enum need need, long (*call)(void *), void *args)
{
        int rc = -1;

        if (!fault_is_on() || !fault_is_watched(c->path))
                return (int)call(args);
        pthread_mutex_lock(&fault.lock);
        if (fault_step(what, c->path, need))
                rc = (int)call(args);
        if (!rc)
                fault_note(c);
        pthread_mutex_unlock(&fault.lock);
        return rc;
}

struct names {
        int dir_fd, other_fd, flags;
        const char *name, *other;
        mode_t mode;
};

static long call_rename(void *a)
{
        const struct names *n = a;

        return syscall(SYS_renameat, n->dir_fd, n->name, n->other_fd, n->other);
}

static long call_link(void *a)
{
        const struct names *n = a;

        return syscall(SYS_linkat, n->dir_fd, n->name, n->other_fd, n->other, 0);
}

static long call_unlink(void *a)
{
        const struct names *n = a;

        return syscall(SYS_unlinkat, n->dir_fd, n->name, n->flags);
}

static long call_mkdir(void *a)
{
        const struct names *n = a;

        return syscall(SYS_mkdirat, n->dir_fd, n->name, n->mode);
}

static int change_names(const char *what, enum fault_op op, struct names n, enum need need, long (*call)(void *))
{
        char path[PATH_ROOM], other[PATH_ROOM];
        struct fault_change c = { .op = op, .path = path };

        fault_path(n.dir_fd, n.name, path);
        if (n.other) {
                fault_path(n.other_fd, n.other, other);
                c.other = other;
        }
        return change_name(what, &c, need, call, &n);
}

OURS int renameat(int dir_fd, const char *name, int other_fd, const char *other)
{
        return change_names("rename", FAULT_RENAME,
                            (struct names){ .dir_fd = dir_fd, .name = name, .other_fd = other_fd, .other = other },
                            NEEDS_ROOM, call_rename);
}

OURS int rename(const char *name, const char *other)
{
        return renameat(AT_FDCWD, name, AT_FDCWD, other);
}

OURS int link(const char *name, const char *other)
{
        return change_names("link", FAULT_LINK,
                            (struct names){ .dir_fd = AT_FDCWD, .name = name, .other_fd = AT_FDCWD, .other = other },
                            NEEDS_ROOM, call_link);
}

OURS int unlinkat(int dir_fd, const char *name, int flags)
{
        return change_names("removal", FAULT_UNLINK, (struct names){ .dir_fd = dir_fd, .name = name, .flags = flags },
                            NEEDS_NONE, call_unlink);
}

OURS int unlink(const char *name)
{
        return unlinkat(AT_FDCWD, name, 0);
}

OURS int rmdir(const char *name)
{
        return unlinkat(AT_FDCWD, name, AT_REMOVEDIR);
}

OURS int remove(const char *name)
{
        struct stat st;

        if (lstat(name, &st) < 0)
                return -1;
        return unlinkat(AT_FDCWD, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
}

OURS int mkdirat(int dir_fd, const char *name, mode_t mode)
{
        struct stat st;

        if (fstatat(dir_fd, name, &st, 0) == 0) { /* read-only: changes nothing */
                errno = EEXIST;
                return -1;
        }
        return change_names("mkdir", FAULT_MKDIR, (struct names){ .dir_fd = dir_fd, .name = name, .mode = mode },
                            NEEDS_ROOM, call_mkdir);
}

OURS int mkdir(const char *name, mode_t mode)
{
        return mkdirat(AT_FDCWD, name, mode);
}
