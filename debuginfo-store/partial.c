/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/partial.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/hash/sha256.h"
#include "common/limits.h"
#include "common/stable_clock.h"
#include "debuginfo-store/debuginfo_store_internal.h"

static char *format_partial_path(const struct debuginfo_store *store, const struct object_claim *claim)
{
        char id[BUILD_ID_HEX_MAX], hash[SHA256_HEX_MAX], *ret;

        if (asprintf(&ret, "%s/partial/%s-%s-%s", store->dir, build_id_hex(&claim->build_id, id),
                     object_kind_name(claim->kind), sha256_hex(claim->sha256, hash)) < 0)
                return NULL;
        return ret;
}

enum status partial_find_size(const struct debuginfo_store *store, const struct object_claim *claim, uint64_t *ret,
                              struct error *err)
{
        _cleanup_free_ char *path = format_partial_path(store, claim);
        struct stat st;

        *ret = 0;
        if (!path)
                return error_no_memory(err);
        if (stat(path, &st) == 0)
                *ret = (uint64_t)st.st_size;
        else if (errno != ENOENT)
                return error_os(err, errno, "cannot stat '%s'", path);
        return ST_OK;
}

/* Open and lock the file. ST_NOT_FOUND if the previous holder of the lock unlinked it. */
static enum status open_partial_locked(const char *path, int *ret, struct stat *st, struct error *err)
{
        _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd < 0)
                return error_os(err, errno, "cannot open '%s'", path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return error_set(err, ST_BUSY, "another connection is uploading this object; try again later");
        if (fstat(fd, st) < 0)
                return error_os(err, errno, "cannot stat '%s'", path);
        if (st->st_nlink == 0)
                return error_set(err, ST_NOT_FOUND, "'%s' was removed", path);
        *ret = steal_fd(&fd);
        return ST_OK;
}

enum status partial_open(struct debuginfo_store *store, const struct object_claim *claim, int *fd_ret, char **path_ret,
                         uint64_t *size_ret, struct error *err)
{
        _cleanup_free_ char *path = format_partial_path(store, claim);
        struct stat info;
        enum status st;
        int fd = -1;

        if (!path)
                return error_no_memory(err);
        partial_expire(store, stable_unix_s());
        do {
                st = open_partial_locked(path, &fd, &info, err);
        } while (st == ST_NOT_FOUND);
        if (st == ST_BUSY && active_upload_take_over(&store->active_uploads, path, &fd))
                st = fstat(fd, &info) < 0 ? error_os(err, errno, "cannot stat '%s'", path) : ST_OK;
        if (st)
                return st;
        *fd_ret = fd;
        *path_ret = steal_ptr(path);
        *size_ret = (uint64_t)info.st_size;
        return ST_OK;
}

struct oldest {
        char name[NAME_MAX + 1];
        int64_t at_unix_s;
};

/* Remove a file unless a connection holds its lock or has unlinked it: the name may then belong to a new file. */
static void remove_idle_partial(int dir, const char *name)
{
        _cleanup_close_ int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        struct stat st;

        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink)
                unlinkat(dir, name, 0);
}

/* Remove expired files. @return the size of the others; oldest is set to the oldest of them. */
static uint64_t expire_and_measure(DIR *d, int64_t now_unix_s, struct oldest *oldest)
{
        struct dirent *e;
        uint64_t bytes = 0;

        oldest->name[0] = 0;
        rewinddir(d);
        while ((e = readdir(d))) {
                struct stat st;

                if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                if (now_unix_s - st.st_mtime > LIMIT_PARTIAL_S) {
                        remove_idle_partial(dirfd(d), e->d_name);
                        continue;
                }
                bytes += (uint64_t)st.st_blocks * 512;
                if (!oldest->name[0] || st.st_mtime < oldest->at_unix_s) {
                        snprintf(oldest->name, sizeof oldest->name, "%s", e->d_name);
                        oldest->at_unix_s = st.st_mtime;
                }
        }
        return bytes;
}

void partial_expire(const struct debuginfo_store *store, int64_t now_unix_s)
{
        _cleanup_free_ char *path = NULL;
        _cleanup_closedir_ DIR *d = NULL;
        struct oldest oldest;
        uint64_t before = UINT64_MAX, bytes;

        if (asprintf(&path, "%s/partial", store->dir) < 0) {
                path = NULL;
                return;
        }
        d = opendir(path);
        /* Ends if the oldest file is locked by a connection. */
        while (d && (bytes = expire_and_measure(d, now_unix_s, &oldest)) > LIMIT_PARTIAL_BYTES && bytes < before &&
               oldest.name[0]) {
                remove_idle_partial(dirfd(d), oldest.name);
                before = bytes;
        }
}
