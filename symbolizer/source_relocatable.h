/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCE_RELOCATABLE_H
#define CAIRN_SYMBOLIZER_SOURCE_RELOCATABLE_H

/**
 * @file
 * Relocatable files (ET_REL: kernel modules, .o): gives their sections
 * addresses, so that everything that reads linked files reads them too.
 *
 * The addresses follow from the section headers alone, so that a module and its
 * debug file agree: `.text` is at 0, the other executable sections follow in the
 * file's order, each at its alignment, then all other allocated ones. An address
 * below the size of .text is therefore an offset in .text.
 *
 * Source: gABI "Relocation"; psABI of x86-64 4.4, ELF for the Arm 64-bit architecture 5.7.
 */
#include "common/buf.h"
#include "elf-image/elf_image.h"

/**
 * Copy a relocatable image, with addresses in its section headers and symbols,
 * and with the relocations of its .debug_ sections applied. What refers to an
 * undefined symbol becomes all ones, which is no code.
 * @param bytes empty; ret borrows it.
 * @param ret   of type ET_EXEC; elf_image_close() it before bytes go.
 * @return ST_UNSUPPORTED for 32-bit files, and for DWARF of machines other than x86-64 and AArch64 or with
 *         relocations that it should not have; ST_BAD_DATA; ST_TOO_BIG.
 */
enum status relocatable_place(const struct elf_image *img, struct buf *bytes, struct elf_image *ret,
                              struct error *err) MUST_CHECK;

#endif
