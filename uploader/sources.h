/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_SOURCES_H
#define CAIRN_UPLOADER_SOURCES_H

/**
 * @file
 * Bundle of the source files that a file's line tables name (source-bundle/bundle.h).
 *
 * Debuginfo may name any path, including that of a secret, so only files whose resolved path is below a folder given by
 * the user are read.
 *
 * Threads: any.
 */
#include "elf-image/elf_image.h"

struct source_options {
        const char *const *roots; /* folders given by the user; none: no sources */
        size_t root_count;
        const char *const *maps; /* "OLD=NEW": replaces the prefix OLD of paths in the debuginfo with NEW */
        size_t map_count;
};

enum status source_options_check(const struct source_options *o, struct error *err) MUST_CHECK;

/**
 * Write the bundle of img into fd, an empty file.
 * @param found_ret number of files in the bundle; @param named_ret number of files that the line tables name.
 * @return ST_NOT_FOUND when none of the files is below a root.
 */
enum status sources_write(const struct elf_image *img, const struct source_options *o, int fd, uint64_t *size_ret,
                          size_t *found_ret, size_t *named_ret, struct error *err) MUST_CHECK;

#endif
