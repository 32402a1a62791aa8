/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCES_SOURCE_PLT_H
#define CAIRN_SYMBOLIZER_SOURCES_SOURCE_PLT_H

/**
 * @file
 * Names for the stubs of the procedure linkage table: `name@plt`, spelled as
 * objdump spells them.
 *
 * A stub takes the name of the symbol whose address the loader writes into its
 * GOT slot; a lazy stub that pushes a relocation number, of that relocation. A
 * stub for an indirect function of the object itself takes that of its symbol,
 * and without one is `*ABS*+0xADDRESS@plt`, with the address of its resolver.
 * The rest is `_PROCEDURE_LINKAGE_TABLE_`, as the gABI calls the start of the
 * table: the first entry, which calls the loader, and stubs of unknown form.
 *
 * Names of stubs: x86-64 and AArch64. Sections that begin with .plt, and .iplt.
 * Source: gABI, "Procedure Linkage Table"; psABI of x86-64 5.2, ELF for the Arm
 * 64-bit architecture 10.1, and the stubs that GNU ld, gold, lld and mold write.
 */
#include "elf-image/elf_image.h"
#include "symbolizer/table/symbol_table_builder.h"

#define PLT_REST_NAME "_PROCEDURE_LINKAGE_TABLE_"

bool is_plt_section(const struct elf_section *section);

/**
 * @param other     the debug file of img, or the executable of a debug file: its symbols, too, name indirect
 *                  functions. NULL: none.
 * @param used_ret  whether any stub was named.
 * @return ST_OK; ST_NO_MEMORY.
 */
enum status fill_from_plt(const struct elf_image *img, const struct elf_image *other, struct symbol_table_builder *b,
                          bool *used_ret, struct error *err) MUST_CHECK;

#endif
