/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_FIND_FILES_H
#define CAIRN_UPLOADER_FIND_FILES_H

/**
 * @file
 * Walk what the user named: files, and directories with all below them.
 *
 * Inside a directory symbolic links to files are followed and links to
 * directories are not, so there are no loops. A path the user named is
 * followed always. /proc, /sys and their like are left out.
 */
#include <stdbool.h>

#include "common/error.h"

struct find_files_callbacks {
        /** A regular file that begins with the ELF magic. A failure ends the walk with it. */
        enum status (*file)(void *context, const char *path, struct error *err);
        /** A regular file that may be an archive, named or with the name of a package. */
        enum status (*archive)(void *context, const char *path, struct error *err);
        /** Something that cannot be read, or a named file that is neither; the walk goes on. */
        void (*problem)(void *context, const char *path, const struct error *why);
};

enum status find_files(const char *path, const struct find_files_callbacks *callbacks, void *context,
                       struct error *err) MUST_CHECK;

#endif
