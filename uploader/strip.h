/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_STRIP_H
#define CAIRN_UPLOADER_STRIP_H

/**
 * @file
 * Taking out of a program what its debug file has: symbols that nothing loads,
 * and DWARF. What is loaded stays byte for byte where it is; a .gnu_debuglink
 * names the debug file.
 *
 * Threads: any, on different files.
 * Source: System V gABI, chapter 4; GDB manual, "Separate Debug Files".
 */
#include "elf-image/elf_image.h"

/** Is there anything to take out? */
bool strip_is_useful(const struct elf_image *img);

/**
 * Write the stripped file into fd, an empty file.
 * @param debug_name of the debug file, without a directory. @param debug_crc its CRC-32.
 * @return ST_UNSUPPORTED for what has no section headers, more sections than their number fits a plain header, or is no program.
 */
enum status strip_write(const struct elf_image *img, const char *debug_name, uint32_t debug_crc, int fd, struct error *err) MUST_CHECK;

/**
 * Replace a file by its stripped self, atomically, with its owner, permissions and extended attributes; a symbolic link
 * stays one. The debug file is FILE.debug, the split that is sent of it.
 * @param done_ret false: there was nothing to take out.
 */
enum status strip_file(const char *path, const struct build_id *id, bool *done_ret, struct error *err) MUST_CHECK;

#endif
