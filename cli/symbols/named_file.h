/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SYMBOLS_NAMED_FILE_H
#define CAIRN_CLI_SYMBOLS_NAMED_FILE_H

/**
 * @file
 * ELF files named by the user, possibly compressed as a whole, such as the kernel modules of many distributions
 * (.ko.xz). A confined worker decompresses such a file.
 *
 * Threads: any.
 */
#include "symbolizer/extraction/debug_file_search.h"

/**
 * Open a file; of a compressed one its content, a file in memory.
 * @param fd_ret owned.
 * @return ST_OS when it cannot be opened; ST_BAD_DATA for a damaged stream and for an archive; ST_TOO_BIG.
 */
enum status named_file_open(const char *path, int *fd_ret, struct error *err) MUST_CHECK;

/** named_file_open() and extract_inputs_search(). */
enum status named_file_search(const char *path, const struct debug_file_search *search, struct extract_inputs *ret,
                              struct error *err) MUST_CHECK;

#endif
