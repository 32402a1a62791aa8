/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCAN_TREE_H
#define CAIRN_SCAN_TREE_H

/**
 * @file
 * The directory trees that are scanned, and the only way to open something
 * below them: a path that leaves its tree, by ".." or by a symbolic link, is
 * not found (openat2 with RESOLVE_BENEATH).
 *
 * Threads: any number of readers.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "common/error.h"

struct scan_trees {
        char **roots; /* owned; absolute, without links */
        size_t count;
};

/** ST_NOT_FOUND when one of them is no directory. */
enum status scan_trees_init(struct scan_trees *t, const char *const *dirs, size_t count, struct error *err) MUST_CHECK;
void scan_trees_deinit(struct scan_trees *t);

/** Is the path below one of the trees, as it is written? */
bool scan_trees_hold(const struct scan_trees *t, const char *path);

enum scan_links {
        SCAN_LINKS_NONE,
        SCAN_LINKS_NONE_AT_ONCE, /* and nothing that has to wait for a disk or a network file system */
        SCAN_LINKS_INSIDE,       /* symbolic links that stay inside of the tree are followed */
};

/**
 * Open a regular file by its absolute path. ST_NOT_FOUND when it is not below a tree, or none; ST_BUSY when it takes
 * waiting for folders, and always where the kernel cannot tell (before 5.12).
 */
enum status scan_trees_open(const struct scan_trees *t, const char *path, enum scan_links links, int *fd_ret,
                            struct stat *info_ret, struct error *err) MUST_CHECK;

/**
 * Tell each regular file of a tree that is not empty. Links are not followed.
 * @param file a status other than ST_OK ends the walk with it.
 * @param problem told of what cannot be read; the walk goes on.
 */
struct scan_walk {
        enum status (*file)(void *context, const char *path, const struct stat *info, struct error *err);
        void (*problem)(void *context, const char *path, const struct error *why);
        void (*folder)(void *context, const char *path); /* told before what is in it is looked at; may be NULL */
        void *context;
};
enum status scan_tree_walk(const char *root, const struct scan_walk *walk, struct error *err) MUST_CHECK;

#endif
