/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACTION_MINIDEBUGINFO_H
#define CAIRN_SYMBOLIZER_EXTRACTION_MINIDEBUGINFO_H

/**
 * @file
 * .gnu_debugdata: an ELF file packed with xz inside a stripped one, with the
 * functions that .dynsym lacks.
 * Source: GDB manual, "Debugging information in a special section".
 */
#include "common/memory/buf.h"
#include "elf-image/elf_image.h"

/**
 * Unpack img's .gnu_debugdata into bytes (at most LIMIT_MINIDEBUGINFO_BYTES) and view it.
 * @param ret borrows bytes; elf_image_close() it before bytes is freed.
 * @return ST_NOT_FOUND without one; ST_BAD_DATA; ST_TOO_BIG.
 */
enum status minidebuginfo_open(const struct elf_image *img, struct buf *bytes, struct elf_image *ret,
                               struct error *err) MUST_CHECK;

#endif
