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
 * Source: gABI "Relocation"; psABI of x86-64 4.4, ELF for the Arm 64-bit architecture 5.7.
 */
#include "common/memory/buf.h"
#include "elf-image/elf_image.h"

/**
 * Copy a relocatable image, with addresses in its section headers and symbols,
 * and with the relocations of its .debug_ sections applied. References to an
 * undefined symbol become all ones, which is not a code address.
 * @param bytes empty; ret borrows it.
 * @param ret   of type ET_EXEC; elf_image_close() it before bytes is freed.
 * @return ST_UNSUPPORTED for 32-bit files, and for DWARF of machines other than x86-64 and AArch64 or with
 *         unexpected relocations; ST_BAD_DATA; ST_TOO_BIG.
 */
enum status relocatable_assign_addresses(const struct elf_image *img, struct buf *bytes, struct elf_image *ret,
                                         struct error *err) MUST_CHECK;

#endif
