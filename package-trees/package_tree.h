/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PACKAGE_TREES_PACKAGE_TREE_H
#define CAIRN_PACKAGE_TREES_PACKAGE_TREE_H

/**
 * @file
 * The scanned directory trees. Files below them are opened with openat2(RESOLVE_BENEATH): a path that leaves its tree
 * by ".." or a symbolic link is not found.
 *
 * Threads: any number of readers.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "common/error.h"

struct package_trees {
        char **roots; /* owned; absolute, without symbolic links */
        size_t count;
};

/** ST_OS or ST_USAGE if one of them is not a directory. */
enum status package_trees_init(struct package_trees *t, const char *const *dirs, size_t count,
                               struct error *err) MUST_CHECK;
void package_trees_deinit(struct package_trees *t);

/** Whether the path is lexically below one of the trees. */
bool package_trees_contain(const struct package_trees *t, const char *path);

enum package_links {
        PACKAGE_LINKS_NONE,
        PACKAGE_LINKS_NONE_AT_ONCE, /* and do not wait for a disk or network file system */
        PACKAGE_LINKS_INSIDE,       /* follow symbolic links that stay inside the tree */
};

/**
 * Open a regular file by its absolute path. ST_NOT_FOUND if it is not a regular file below a tree; ST_BUSY if a folder
 * is not in the kernel's cache, and always on kernels before 5.12.
 */
enum status package_trees_open(const struct package_trees *t, const char *path, enum package_links links, int *fd_ret,
                               struct stat *info_ret, struct error *err) MUST_CHECK;

/**
 * Calls file for each non-empty regular file of a tree. Symbolic links are not followed.
 * @param file a status other than ST_OK ends the walk and is its result.
 * @param problem called for each unreadable path; the walk continues.
 */
struct package_walk {
        enum status (*file)(void *context, const char *path, const struct stat *info, struct error *err);
        void (*problem)(void *context, const char *path, const struct error *why);
        void (*folder)(void *context, const char *path); /* called before the folder is read; may be NULL */
        void *context;
};
enum status package_tree_walk(const char *root, const struct package_walk *walk, struct error *err) MUST_CHECK;

#endif
