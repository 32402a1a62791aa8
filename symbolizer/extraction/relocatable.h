/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACTION_RELOCATABLE_H
#define CAIRN_SYMBOLIZER_EXTRACTION_RELOCATABLE_H

/**
 * @file
 * Relocatable files (ET_REL: kernel modules, .o): assigns addresses to their
 * sections, so that readers of linked files can read them.
 *
 * Addresses depend on the section headers alone, so that a module and its debug
 * file agree: `.text` is at 0, the other executable sections follow in file
 * order, each at its alignment, then all other allocated ones. An address below
 * the size of .text is therefore an offset in .text.
 *
 * Source: gABI "Relocation"; psABI of x86-64 4.4, ELF for the Arm 64-bit architecture 5.7, and those of the other
 * machines; RISC-V ELF psABI 8.4.
 */
#include "common/memory/buf.h"
#include "elf-image/elf_image.h"

/**
 * The addresses of the sections of a relocatable file.
 * @param ret  owned, free(); by number of the section, 0 for one that is not allocated.
 * @return ST_BAD_DATA, ST_NO_MEMORY.
 */
enum status relocatable_place_sections(const struct elf_image *img, uint64_t **ret, struct error *err) MUST_CHECK;

/**
 * Copy a relocatable image, with addresses in its section headers and symbols, and with the relocations of its DWARF
 * applied. These have a bias, so that addresses without a relocation, of discarded functions, are not code. References
 * to an undefined symbol become all ones; in lists of address pairs, they and those to a discarded function become 1.
 *
 * If a relocation is unknown or damaged, the copy has no DWARF, only the symbols.
 * @param bytes          empty; ret borrows it.
 * @param ret            of type ET_EXEC; elf_image_close() it before bytes is freed.
 * @param dwarf_bias_ret address in the DWARF of the copy minus that in its section headers and symbols; 0 without
 *                       relocations
 * @param dropped_ret    why the copy has no DWARF; code ST_OK when it has it.
 * @return ST_UNSUPPORTED, ST_BAD_DATA; ST_TOO_BIG.
 */
enum status relocatable_assign_addresses(const struct elf_image *img, struct buf *bytes, struct elf_image *ret,
                                         uint64_t *dwarf_bias_ret, struct error *dropped_ret,
                                         struct error *err) MUST_CHECK;

#endif
