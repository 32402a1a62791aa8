/* SPDX-License-Identifier: Apache-2.0 */
#include "sending/spool_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"

#define LINKS_MAX 40 /* as the kernel */
#define MODE_OF_PARENT 0755
#define MODE_OF_SPOOL 0700

struct path_walk {
        const char *dir; /* for messages */
        int fd;          /* the directory reached */
        unsigned links;
        char left[2 * PATH_MAX]; /* of the path */
};

static int reopen_directory(int fd)
{
        return openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static enum status create_component(const struct path_walk *w, const char *name, mode_t mode, struct error *err)
{
        _cleanup_close_ int parent = -1;

        if (mkdirat(w->fd, name, mode) < 0 && errno != EEXIST)
                return error_os(err, errno, "cannot create the spool '%s'", w->dir);
        parent = reopen_directory(w->fd);
        if (parent < 0 || file_sync_timed(parent, SYNC_DIRECTORY) < 0)
                return error_os(err, errno, "cannot sync the parent of the spool '%s'", w->dir);
        return ST_OK;
}

/* Put the target of the link in front of the rest of the path. */
static enum status follow_link(struct path_walk *w, int link_fd, const struct stat *link, struct error *err)
{
        char path[sizeof w->left];
        size_t rest;
        ssize_t n;

        if (link->st_uid != 0 && link->st_uid != geteuid())
                return error_set(err, ST_USAGE,
                                 "the spool '%s' leads through a symbolic link of the user %u, which could be changed",
                                 w->dir, (unsigned)link->st_uid);
        n = readlinkat(link_fd, "", path, PATH_MAX);
        if (n < 0)
                return error_os(err, errno, "cannot open the spool '%s'", w->dir);
        rest = strlen(w->left) + 1;
        if (++w->links > LINKS_MAX || (size_t)n + 1 + rest > sizeof path)
                return error_os(err, ELOOP, "cannot open the spool '%s'", w->dir);
        path[n] = '/';
        memcpy(path + n + 1, w->left, rest);
        memcpy(w->left, path, (size_t)n + 1 + rest);
        if (path[0] != '/')
                return ST_OK;
        close(w->fd);
        w->fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return w->fd < 0 ? error_os(err, errno, "cannot open the spool '%s'", w->dir) : ST_OK;
}

static enum status enter_component(struct path_walk *w, const char *name, bool is_last, struct error *err)
{
        _cleanup_close_ int fd = openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct stat s;
        enum status st;

        if (fd < 0 && errno == ENOENT) {
                st = create_component(w, name, is_last ? MODE_OF_SPOOL : MODE_OF_PARENT, err);
                if (st)
                        return st;
                fd = openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        }
        if (fd < 0 || fstat(fd, &s) < 0)
                return error_os(err, errno, "cannot open the spool '%s'", w->dir);
        if (S_ISLNK(s.st_mode))
                return follow_link(w, fd, &s, err);
        if (!S_ISDIR(s.st_mode))
                return error_os(err, ENOTDIR, "cannot open the spool '%s'", w->dir);
        close(w->fd);
        w->fd = steal_fd(&fd);
        return ST_OK;
}

static enum status walk_path(struct path_walk *w, struct error *err)
{
        enum status st = ST_OK;

        while (!st) {
                char name[NAME_MAX + 1];
                size_t skip = strspn(w->left, "/"), n = strcspn(w->left + skip, "/"), past;

                if (!n)
                        return ST_OK;
                if (n > NAME_MAX)
                        return error_os(err, ENAMETOOLONG, "cannot open the spool '%s'", w->dir);
                memcpy(name, w->left + skip, n);
                name[n] = 0;
                past = skip + n + strspn(w->left + skip + n, "/");
                memmove(w->left, w->left + past, strlen(w->left + past) + 1);
                st = enter_component(w, name, !w->left[0], err);
        }
        return st;
}

enum status spool_directory_open(const char *dir, int *fd_ret, struct error *err)
{
        struct path_walk w = { .dir = dir };
        enum status st;

        if (strlen(dir) >= PATH_MAX)
                return error_os(err, ENAMETOOLONG, "cannot open the spool '%s'", dir);
        snprintf(w.left, sizeof w.left, "%s", dir);
        w.fd = open(dir[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (w.fd < 0)
                return error_os(err, errno, "cannot open the spool '%s'", dir);
        st = walk_path(&w, err);
        if (!st) {
                *fd_ret = reopen_directory(w.fd);
                if (*fd_ret < 0)
                        st = error_os(err, errno, "cannot open the spool '%s'", dir);
        }
        if (w.fd >= 0)
                close(w.fd);
        return st;
}
