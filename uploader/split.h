/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_SPLIT_H
#define CAIRN_UPLOADER_SPLIT_H

/**
 * @file
 * Split debuginfo: an ELF file without its code and data, with everything that
 * names, unwinds or identifies it.
 *
 * The result has the sections of the original in the same order, with the same
 * names, addresses and sizes; those without use to a symbolizer are NOBITS. The
 * PT_LOAD headers are the original's, so that file offsets of the original
 * still translate to addresses. Packed sections stay packed. It is what
 * objcopy --only-keep-debug makes, plus the sections that section 5 of
 * docs/formats/upload.md lists.
 *
 * Contents go from file to file in slices and mapped pages are given back, so
 * the size of the input costs no memory.
 */
#include "uploader/split_go.h"

/** Are this section's bytes kept? (A NOBITS section has none.) */
bool split_keeps_section(const struct elf_image *img, const struct elf_section *s);

/** Does the file hold code to be left out? Files that are split already are sent as they are. */
bool split_is_needed(const struct elf_image *img);

/**
 * Write the split file into fd, an empty file open for reading and writing.
 * @param ranges   what to keep of loaded data that is left out otherwise (uploader/split_go.h), at most SPLIT_GO_RANGES_MAX:
 *                 the sections that it is in are of their size then, and zeros but for it.
 * @param size_ret its size.
 * @return ST_UNSUPPORTED for a file without section headers, ST_BAD_DATA for a
 *         cut-off one, ST_OS when writing fails.
 */
enum status split_write(const struct elf_image *img, const struct split_range *ranges, size_t range_count, int fd,
                        uint64_t *size_ret, struct error *err) MUST_CHECK;

/** An unlinked temporary file in $TMPDIR or /var/tmp or /tmp. */
enum status split_temporary(int *fd_ret, struct error *err) MUST_CHECK;

#endif
