/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_SOURCES_H
#define CAIRN_UPLOADER_SOURCES_H

/**
 * @file
 * The source files that a file's line tables name, as a bundle
 * (source-bundle/bundle.h).
 *
 * Debuginfo may name any path, also that of a secret: only files below the
 * folders that the user gave are read, whatever links lead there.
 *
 * Threads: any.
 */
#include "elf-image/elf_image.h"

struct source_options {
        const char *const *roots; /* folders, as the user wrote them; none: no sources */
        size_t root_count;
        const char *const *maps;  /* "OLD=NEW": a path that begins with OLD in the debuginfo is at NEW here */
        size_t map_count;
};

enum status source_options_check(const struct source_options *o, struct error *err) MUST_CHECK;

/**
 * Write the bundle of img into fd, an empty file.
 * @param found_ret how many files are in it; @param named_ret how many the line tables name.
 * @return ST_NOT_FOUND when none of the files is below a root.
 */
enum status sources_write(const struct elf_image *img, const struct source_options *o, int fd, uint64_t *size_ret,
                          size_t *found_ret, size_t *named_ret, struct error *err) MUST_CHECK;

#endif
