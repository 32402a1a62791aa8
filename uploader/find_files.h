/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_FIND_FILES_H
#define CAIRN_UPLOADER_FIND_FILES_H

/**
 * @file
 * Walk the files and directories that the user named, recursively.
 *
 * Inside a directory symbolic links to files are followed and links to directories are not, so there are no loops. A
 * link that the user named is always followed. Pseudo file systems such as /proc and /sys are skipped.
 */
#include <stdbool.h>

#include "common/error.h"

struct find_files_callbacks {
        /** A regular file that begins with the ELF magic. A failure ends the walk with it. */
        enum status (*file)(void *context, const char *path, struct error *err);
        /** A regular file with the magic of an archive, named by the user or with a package's file name extension. */
        enum status (*archive)(void *context, const char *path, struct error *err);
        /** An unreadable path, or a named file that is neither; the walk continues. */
        void (*problem)(void *context, const char *path, const struct error *why);
};

enum status find_files(const char *path, const struct find_files_callbacks *callbacks, void *context,
                       struct error *err) MUST_CHECK;

#endif
