/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_SPLIT_H
#define CAIRN_UPLOADER_SPLIT_H

/**
 * @file
 * Split debuginfo: an ELF file without code and data, but with everything needed to symbolize, unwind and identify it.
 *
 * The result has the sections of the original in the same order, with the same names, addresses and sizes; those that a
 * symbolizer does not need are NOBITS. The PT_LOAD headers are the original's, so that file offsets of the original
 * still translate to addresses. Kept sections that are loaded stay at their offsets, unless that would make the file
 * much longer. Compressed sections stay compressed. The result equals that of objcopy --only-keep-debug plus the
 * sections listed in section 5 of docs/formats/upload.md.
 *
 * Contents are copied in slices and mapped pages are released, so memory use does not depend on the input's size.
 */
#include "uploader/split_go.h"

/** Whether this section's content is kept. (A NOBITS section has none.) */
bool split_keeps_section(const struct elf_image *img, const struct elf_section *s);

/** Whether the file has code to leave out. Files that are split already are sent unchanged. */
bool split_is_needed(const struct elf_image *img);

/**
 * Write the split file into fd, an empty file open for reading and writing.
 * @param ranges   ranges of loaded data to keep although their sections are left out (uploader/split_go.h), at most
 * SPLIT_GO_RANGES_MAX: these sections keep their size, and are zero outside of the ranges.
 * @param size_ret its size.
 * @return ST_UNSUPPORTED for a file without section headers, ST_BAD_DATA for a truncated one, ST_OS when writing fails.
 */
enum status split_write(const struct elf_image *img, const struct split_range *ranges, size_t range_count, int fd,
                        uint64_t *size_ret, struct error *err) MUST_CHECK;

/** Create an unlinked temporary file in $TMPDIR, /var/tmp or /tmp. */
enum status split_create_temporary(int *fd_ret, struct error *err) MUST_CHECK;

#endif
