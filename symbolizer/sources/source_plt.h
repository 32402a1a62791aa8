/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCES_SOURCE_PLT_H
#define CAIRN_SYMBOLIZER_SOURCES_SOURCE_PLT_H

/**
 * @file
 * Names for the stubs of the procedure linkage table: `name@plt`, spelled as
 * objdump spells them.
 *
 * A stub takes the name of the symbol whose address the loader writes into its
 * GOT slot; a lazy stub that pushes a relocation number, of that relocation. The
 * first entry, which calls the loader, has no name. A stub for an indirect
 * function of the object itself is `*ABS*+0xADDRESS@plt`, with the
 * address of its resolver.
 *
 * x86-64 and AArch64; sections .plt, .plt.sec, .plt.got and .iplt.
 * Source: psABI of x86-64 5.2, ELF for the Arm 64-bit architecture 10.1, and
 * the stubs that GNU ld, gold, lld and mold write.
 */
#include "elf-image/elf_image.h"
#include "symbolizer/table/symbol_table_builder.h"

/** @param used_ret whether any address was named. @return ST_NO_MEMORY. */
enum status fill_from_plt(const struct elf_image *img, struct symbol_table_builder *b, bool *used_ret,
                          struct error *err) MUST_CHECK;

#endif
