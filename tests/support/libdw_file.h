/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_LIBDW_FILE_H
#define CAIRN_TESTS_SUPPORT_LIBDW_FILE_H

/**
 * @file
 * A libdw handle on the DWARF of an image.
 *
 * libdw would unpack compressed sections itself, but only zlib ones, all of
 * them, and by writing into the image; so when any is compressed the ones that
 * symbols need are unpacked into an ELF file in memory.
 */
#include <elfutils/libdw.h>
#include <libelf.h>

#include "elf-image/elf_image.h"

struct libdw_file {
        Elf *elf;
        Dwarf *dwarf;
        uint8_t *unpacked;           /* owned; NULL when libdw reads the image itself */
        const uint8_t *line_section; /* .debug_line, unpacked; NULL without one */
        size_t line_section_size;
        bool big_endian;
};

/** @param ret keep img open until libdw_file_close(). @return ST_NOT_FOUND without DWARF. */
enum status libdw_file_open(const struct elf_image *img, struct libdw_file *ret, struct error *err) MUST_CHECK;
void libdw_file_close(struct libdw_file *f);

#endif
