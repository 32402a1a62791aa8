/* SPDX-License-Identifier: Apache-2.0 */
#include "package-trees/package_tree.h"

#include <fcntl.h>
#include <fts.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

#include "common/cleanup.h"

void package_trees_deinit(struct package_trees *t)
{
        for (size_t i = 0; i < t->count; i++)
                free(t->roots[i]);
        free(t->roots);
        *t = (struct package_trees){ 0 };
}

enum status package_trees_init(struct package_trees *t, const char *const *dirs, size_t count, struct error *err)
{
        enum status st = ST_OK;

        *t = (struct package_trees){ .roots = calloc(count + 1, sizeof *t->roots) };
        if (!t->roots)
                return error_no_memory(err);
        for (size_t i = 0; i < count && !st; i++) {
                char *root = realpath(dirs[i], NULL);
                struct stat info;

                if (!root) {
                        st = error_os(err, errno, "cannot scan '%s'", dirs[i]);
                        break;
                }
                t->roots[t->count++] = root;
                if (stat(root, &info) < 0 || !S_ISDIR(info.st_mode))
                        st = error_set(err, ST_USAGE, "cannot scan '%s': not a directory", dirs[i]);
        }
        if (st)
                package_trees_deinit(t);
        return st;
}

/* The path relative to the root; NULL if it is not below it. */
static const char *path_below_root(const char *root, const char *path)
{
        size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

        return strncmp(path, root, n) == 0 && path[n] == '/' && path[n + 1] ? path + n + 1 : NULL;
}

bool package_trees_contain(const struct package_trees *t, const char *path)
{
        for (size_t i = 0; i < t->count; i++)
                if (path_below_root(t->roots[i], path))
                        return true;
        return false;
}

static int open_below_root(const char *root, const char *path, enum package_links links)
{
        uint64_t cached = links == PACKAGE_LINKS_NONE_AT_ONCE ? RESOLVE_CACHED : 0;
        struct open_how how = {
                .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                .resolve = cached | RESOLVE_BENEATH |
                           (links == PACKAGE_LINKS_INSIDE ? RESOLVE_NO_MAGICLINKS : RESOLVE_NO_SYMLINKS),
        };
        struct open_how how_dir = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = cached };
        _cleanup_close_ int dir = (int)syscall(SYS_openat2, AT_FDCWD, root, &how_dir, sizeof how_dir);

        return dir < 0 ? -1 : (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

enum status package_trees_open(const struct package_trees *t, const char *path, enum package_links links, int *fd_ret,
                               struct stat *info_ret, struct error *err)
{
        for (size_t i = 0; i < t->count; i++) {
                const char *rest = path_below_root(t->roots[i], path);
                _cleanup_close_ int fd = rest ? open_below_root(t->roots[i], rest, links) : -1;
                struct stat info;

                if (fd < 0 && rest && links == PACKAGE_LINKS_NONE_AT_ONCE && (errno == EAGAIN || errno == EINVAL))
                        return error_set(err, ST_BUSY, "a folder of '%s' is not cached by the kernel", path);
                if (fd < 0 && rest && errno != ENOENT && errno != ENOTDIR && errno != EXDEV && errno != ELOOP)
                        return error_os(err, errno, "cannot open '%s'", path);
                if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
                        continue;
                *fd_ret = steal_fd(&fd);
                *info_ret = info;
                return ST_OK;
        }
        return error_set(err, ST_NOT_FOUND, "'%s' is not a file in the scanned trees", path);
}

static enum status handle_walk_entry(const struct package_walk *walk, const FTSENT *e, struct error *err)
{
        struct error why;

        switch (e->fts_info) {
        case FTS_F:
                return e->fts_statp->st_size > 0 ? walk->file(walk->context, e->fts_path, e->fts_statp, err) : ST_OK;
        case FTS_D:
                if (walk->folder)
                        walk->folder(walk->context, e->fts_path);
                return ST_OK;
        case FTS_DNR:
        case FTS_ERR:
        case FTS_NS:
                if (e->fts_errno == ENOENT) /* deleted during the walk */
                        return ST_OK;
                error_os(&why, e->fts_errno, "cannot read '%s'", e->fts_path);
                walk->problem(walk->context, e->fts_path, &why);
                return ST_OK;
        default:
                return ST_OK;
        }
}

enum status package_tree_walk(const char *root, const struct package_walk *walk, struct error *err)
{
        char *paths[] = { (char *)(uintptr_t)root, NULL };
        FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
        enum status st = ST_OK;
        FTSENT *e;

        if (!fts)
                return error_os(err, errno, "cannot walk '%s'", root);
        while (!st && (errno = 0, e = fts_read(fts)))
                st = handle_walk_entry(walk, e, err);
        if (!st && errno)
                st = error_os(err, errno, "cannot walk '%s'", root);
        fts_close(fts);
        return st;
}
