/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_LIBDW_FILE_H
#define CAIRN_TESTS_SUPPORT_LIBDW_FILE_H

/**
 * @file
 * A libdw handle on the DWARF of an image.
 *
 * libdw decompresses only zlib sections, decompresses all of them, and writes into the image. If a section is
 * compressed, the sections needed for symbols are therefore decompressed into an ELF file in memory.
 */
#include <elfutils/libdw.h>
#include <libelf.h>

#include "elf-image/elf_image.h"

struct libdw_file {
        Elf *elf;
        Dwarf *dwarf;
        uint8_t *unpacked;           /* owned; NULL if libdw reads the image directly */
        const uint8_t *line_section; /* decompressed .debug_line; NULL if absent */
        size_t line_section_size;
        bool big_endian;
};

/** @param ret img must stay open until libdw_file_close(). @return ST_NOT_FOUND without DWARF. */
enum status libdw_file_open(const struct elf_image *img, struct libdw_file *ret, struct error *err) MUST_CHECK;
void libdw_file_close(struct libdw_file *f);

#endif
