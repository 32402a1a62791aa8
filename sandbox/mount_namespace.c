/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/mount_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "sandbox/worker.h"

#define MOUNT_POINT "/tmp" /* of the new root until pivot_root */
#define FURTHER_MAX 32

/* Single files of /etc, which also holds secrets of other programs. */
const char *const network_worker_paths[] = {
        "/usr",
        "/lib",
        "/lib64",
        "/etc/ssl",
        "/etc/ca-certificates",
        "/etc/pki",
        "/etc/gnutls",
        "/etc/resolv.conf",
        "/etc/hosts",
        "/etc/host.conf",
        "/etc/nsswitch.conf",
        "/etc/gai.conf",
        "/etc/services",
        "/etc/protocols",
        "/etc/localtime",
        "/etc/ld.so.cache",
        "/dev/urandom",
        "/dev/null",
        "/proc/sys",
        "/sys/devices/system/cpu",
        NULL,
};

/* Create the parent directories of path, which is absolute, in root_fd. */
static bool make_parent_dirs(int root_fd, const char *path)
{
        char name[PATH_MAX];

        for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                snprintf(name, sizeof name, "%.*s", (int)(slash - path - 1), path + 1);
                if (mkdirat(root_fd, name, 0755) && errno != EEXIST)
                        return false;
        }
        return true;
}

/* In a mount namespace of a user namespace, existing mount flags cannot be cleared. */
static bool make_read_only(const char *mounted)
{
        struct statvfs s;

        return statvfs(mounted, &s) == 0 &&
               mount(NULL, mounted, NULL,
                     MS_BIND | MS_REMOUNT | MS_RDONLY |
                             (s.f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME | MS_RELATIME)),
                     NULL) == 0;
}

/* True also for a path that does not exist. @param source an open descriptor of the path, -1: it does not exist */
static bool bind_source(int root_fd, int source, const char *path, bool read_only)
{
        _cleanup_close_ int made = -1;
        char from[48], to[PATH_MAX];
        struct stat st;

        if (source < 0 || fstat(source, &st))
                return true;
        if (!make_parent_dirs(root_fd, path))
                return false;
        if (S_ISDIR(st.st_mode)) {
                if (mkdirat(root_fd, path + 1, 0755))
                        return false;
        } else {
                made = openat(root_fd, path + 1, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);
                if (made < 0)
                        return false;
        }
        snprintf(from, sizeof from, "/proc/self/fd/%d", source);
        snprintf(to, sizeof to, MOUNT_POINT "%s", path);
        return mount(from, to, NULL, MS_BIND | MS_REC, NULL) == 0 && (!read_only || make_read_only(to));
}

static bool write_proc_file(const char *path, const char *text)
{
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Files can only be created by users mapped in the namespace: only its own ids, unchanged. */
static bool map_ids(uid_t uid, gid_t gid)
{
        char uids[48], gids[48];

        snprintf(uids, sizeof uids, "%u %u 1\n", uid, uid);
        snprintf(gids, sizeof gids, "%u %u 1\n", gid, gid);
        return write_proc_file("/proc/self/uid_map", uids) && write_proc_file("/proc/self/setgroups", "deny") &&
               write_proc_file("/proc/self/gid_map", gids);
}

static bool bind_path(int root_fd, const char *path, bool read_only)
{
        _cleanup_close_ int source = open(path, O_PATH | O_CLOEXEC);

        return bind_source(root_fd, source, path, read_only);
}

/* The additional files, opened before the new root hides everything below MOUNT_POINT. */
struct further_files {
        const struct worker_files *files; /* may be NULL */
        int sources[FURTHER_MAX];         /* of files->readable; the last one of files->writable */
        size_t count;
};

static bool further_open(const struct worker_files *files, struct further_files *ret)
{
        ret->files = files;
        ret->count = 0;
        for (const char *const *path = files ? files->readable : NULL; path && *path; path++) {
                if (ret->count == FURTHER_MAX - 1)
                        return false;
                ret->sources[ret->count++] = open(*path, O_PATH | O_CLOEXEC);
        }
        if (files)
                ret->sources[ret->count++] = open(files->writable, O_PATH | O_CLOEXEC);
        return true;
}

static bool further_bind(int root_fd, const struct further_files *f)
{
        for (size_t i = 0; i < f->count; i++) {
                bool is_writable = i + 1 == f->count;

                if (!bind_source(root_fd, f->sources[i], is_writable ? f->files->writable : f->files->readable[i],
                                 !is_writable))
                        return false;
                if (f->sources[i] >= 0)
                        close(f->sources[i]);
        }
        return true;
}

bool mount_namespace_enter(const struct worker_files *files)
{
        _cleanup_close_ int root = -1;
        uid_t uid = geteuid();
        gid_t gid = getegid();
        struct further_files further;

        if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC) || !map_ids(uid, gid))
                return false;
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || !further_open(files, &further) ||
            mount("cairn", MOUNT_POINT, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m"))
                return false;
        root = open(MOUNT_POINT, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root < 0)
                return false;
        for (const char *const *path = network_worker_paths; *path; path++)
                if (!bind_path(root, *path, files != NULL))
                        return false;
        if (!further_bind(root, &further))
                return false;
        /* The old root is mounted over the new one; detach it. */
        return fchdir(root) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0 &&
               chdir("/") == 0;
}
