/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_ARCHIVE_FILE_MAGIC_H
#define CAIRN_ARCHIVE_FILE_MAGIC_H

/**
 * @file
 * The formats of archive/members.h by the first bytes of a file. They are read at offset 0; the file position stays.
 */
#include <stdbool.h>

/** Whether the file starts with the magic of a supported format. */
bool archive_magic_at_fd(int fd);

/** Whether the file starts with the magic of a compressed stream: gzip, bzip2, xz, lzma or zstd. */
bool compressed_magic_at_fd(int fd);

#endif
