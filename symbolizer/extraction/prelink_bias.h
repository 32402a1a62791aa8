/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACTION_PRELINK_BIAS_H
#define CAIRN_SYMBOLIZER_EXTRACTION_PRELINK_BIAS_H

/**
 * @file
 * Prelink bias: address in an executable minus address in its debug file. prelink moves a library to other addresses
 * and keeps its build-id; its debug file, and a minidebuginfo inside it, keep the addresses of the linker. Symbol
 * tables use the addresses of the executable; the bias is added to those of other files.
 */
#include "symbolizer/table/code_map.h"
#include "symbolizer/table/symbol_table_builder.h"

/**
 * Address in the executable minus address in another file of the same object,
 * modulo 2^64: from the first executable sections with equal name and size in both,
 * which must agree; without sections, from the first executable segment. 0 when
 * neither gives one.
 */
uint64_t find_prelink_bias(const struct elf_image *runs, const struct elf_image *other);

/** Move the ranges of the builder and of the map, also by another bias; ranges that would wrap around are dropped. */
void add_prelink_bias(struct symbol_table_builder *b, struct code_map *code, uint64_t by);

#endif
