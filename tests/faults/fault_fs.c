/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/faults/fault_fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/faults/fault_fs_internal.h"

struct fault_fs fault = { .lock = PTHREAD_MUTEX_INITIALIZER, .log_fd = -1 };

/* ---- watched files ---- */

void fault_path(int dir_fd, const char *name, char ret[static PATH_ROOM])
{
        char link[64];
        ssize_t n;

        ret[0] = 0;
        if (name && name[0] == '/') {
                snprintf(ret, PATH_ROOM, "%s", name);
                return;
        }
        if (dir_fd == AT_FDCWD)
                snprintf(link, sizeof link, "/proc/self/cwd");
        else
                snprintf(link, sizeof link, "/proc/self/fd/%d", dir_fd);
        n = readlink(link, ret, PATH_MAX - 1);
        ret[n < 0 ? 0 : n] = 0;
        if (name && n > 0 && strcmp(name, ".") != 0)
                snprintf(ret + n, (size_t)(PATH_ROOM - n), "/%s", name);
}

bool fault_is_watched(const char *path)
{
        return fault.dir_size && strncmp(path, fault.dir, fault.dir_size) == 0 &&
               (path[fault.dir_size] == '/' || !path[fault.dir_size]);
}

bool fault_is_on(void)
{
        return (fault.mode != OFF || fault.log_fd >= 0) && (!fault.flag || access(fault.flag, F_OK) == 0);
}

bool fault_is_read_only(void)
{
        return fault.mode == READ_ONLY && fault_is_on();
}

void fault_where(const char *what, const char *path)
{
        snprintf(fault.where, sizeof fault.where, "%s of %s", what, path);
}

/* ---- a step ---- */

/* The flag file may restrict the fault to part of the tree. */
static bool is_affected(const char *path)
{
        char part[64] = "";
        int fd = fault.flag ? (int)syscall(SYS_openat, AT_FDCWD, fault.flag, O_RDONLY | O_CLOEXEC) : -1;

        if (fd >= 0) {
                ssize_t n = read(fd, part, sizeof part - 1);

                part[n < 0 ? 0 : n] = 0;
                close(fd);
        }
        return strstr(path, part);
}

bool fault_has_no_room(const char *path)
{
        return fault.mode == FULL && fault_is_on() && fault_is_watched(path) && is_affected(path);
}

void fault_wait(void)
{
        while (fault.mode == HANG && fault_is_on())
                usleep(20000);
}

bool fault_step(const char *what, const char *path, enum need need)
{
        fault.step++;
        if (fault.mode == BAD_SYNC && strcmp(what, "sync") == 0 && is_affected(path)) {
                fault_where(what, path);
                errno = EIO;
                return false;
        }
        if (fault.mode == READ_ONLY && strcmp(what, "sync") != 0) {
                fault_where(what, path);
                errno = EROFS;
                return false;
        }
        if (fault.mode == FULL && need == NEEDS_ROOM && fault.step >= fault.at && is_affected(path)) {
                fault_where(what, path);
                errno = ENOSPC;
                return false;
        }
        if (fault.step != fault.at || fault.mode == FULL ||
            (fault.mode == FAIL && fault.os_errno == EINTR && strcmp(what, "write") != 0))
                return true;
        fault_where(what, path);
        if (fault.mode == KILL)
                raise(SIGKILL);
        if (fault.mode != FAIL)
                return true;
        errno = fault.os_errno;
        return false;
}

static void write_log(const void *data, size_t n)
{
        for (const char *from = data; n;) {
                ssize_t done = syscall(SYS_write, fault.log_fd, from, n);

                if (done < 0)
                        abort();
                from += done;
                n -= (size_t)done;
        }
}

void fault_note(const struct fault_change *c)
{
        struct fault_log_header h = { .op = c->op,
                                      .synced = c->synced,
                                      .inode = c->inode,
                                      .offset = c->offset,
                                      .path_size = c->path ? (uint32_t)strlen(c->path) + 1 : 0,
                                      .other_size = c->other ? (uint32_t)strlen(c->other) + 1 : 0,
                                      .byte_count = c->byte_count };

        if (fault.log_fd < 0)
                return;
        write_log(&h, sizeof h);
        write_log(c->path, h.path_size);
        write_log(c->other, h.other_size);
        write_log(c->bytes, c->byte_count);
}

/* ---- modes ---- */

static void set_mode(enum mode mode, unsigned at, int os_errno)
{
        pthread_mutex_lock(&fault.lock);
        fault.mode = mode;
        fault.at = at;
        fault.os_errno = os_errno;
        fault.cut_short = false;
        if (mode != OFF) {
                fault.step = 0;
                fault.where[0] = 0;
        }
        pthread_mutex_unlock(&fault.lock);
}

void fault_fs_watch(const char *dir)
{
        snprintf(fault.dir, sizeof fault.dir, "%s", dir);
        fault.dir_size = strlen(fault.dir);
}

void fault_fs_off(void)
{
        set_mode(OFF, 0, 0);
}

void fault_fs_count(void)
{
        set_mode(COUNT, 0, 0);
}

void fault_fs_kill_at(unsigned at)
{
        set_mode(KILL, at, 0);
}

void fault_fs_fail_at(unsigned at, int os_errno)
{
        set_mode(FAIL, at, os_errno);
}

void fault_fs_full_at(unsigned at)
{
        set_mode(FULL, at, ENOSPC);
}

void fault_fs_record(int log_fd)
{
        pthread_mutex_lock(&fault.lock);
        fault.log_fd = log_fd;
        pthread_mutex_unlock(&fault.lock);
}

void fault_fs_mark(uint32_t number)
{
        pthread_mutex_lock(&fault.lock);
        fault_note(&(struct fault_change){ .op = FAULT_MARK, .offset = number });
        pthread_mutex_unlock(&fault.lock);
}

unsigned fault_fs_steps(void)
{
        return fault.step;
}

const char *fault_fs_where(void)
{
        return fault.where;
}

__attribute__((constructor)) static void obey_environment(void)
{
        static const struct {
                const char *variable;
                enum mode mode;
        } flags[] = {
                { "FAULT_FS_FULL", FULL },
                { "FAULT_FS_READ_ONLY", READ_ONLY },
                { "FAULT_FS_BAD_SYNC", BAD_SYNC },
                { "FAULT_FS_HANG", HANG },
        };
        const char *dir = getenv("FAULT_FS_DIR");

        for (size_t i = 0; dir && i < sizeof flags / sizeof *flags; i++) {
                fault.flag = getenv(flags[i].variable);
                if (!fault.flag)
                        continue;
                fault_fs_watch(dir);
                set_mode(flags[i].mode, 0, ENOSPC);
                return;
        }
}
