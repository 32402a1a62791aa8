/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_STRIP_H
#define CAIRN_UPLOADER_STRIP_H

/**
 * @file
 * Strip a program: removes the symbol table and DWARF, which its debug file has. Loaded content stays at its offset,
 * byte for byte; a .gnu_debuglink names the debug file.
 *
 * Threads: any, on different files.
 * Source: System V gABI, chapter 4; GDB manual, "Separate Debug Files".
 */
#include "elf-image/elf_image.h"

/**
 * Write the stripped file into fd, an empty file.
 * @param debug_name file name of the debug file, without a directory. @param debug_crc its CRC-32.
 * @return ST_UNSUPPORTED for a file that has no section headers, or too many for a plain ELF header, or is not a
 * program, or has program headers of an unknown size.
 */
enum status strip_write(const struct elf_image *img, const char *debug_name, uint32_t debug_crc, int fd,
                        struct error *err) MUST_CHECK;

/**
 * Replace a file by its stripped form, atomically, keeping owner, permissions and extended attributes; a symbolic link
 * is followed and kept. The debug file is FILE.debug, the split file that was uploaded.
 * @param done_ret false: there was nothing to remove.
 */
enum status strip_file(const char *path, const struct build_id *id, bool *done_ret, struct error *err) MUST_CHECK;

#endif
