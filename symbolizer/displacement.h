/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_DISPLACEMENT_H
#define CAIRN_SYMBOLIZER_DISPLACEMENT_H

/**
 * @file
 * Displacement between an executable and its debug file. prelink moves a library
 * to other addresses and keeps its build-id; its debug file, and a minidebuginfo
 * inside it, keep the addresses of the linker. Symbol tables use the addresses
 * of the executable; those of other files are moved by the displacement.
 */
#include "symbolizer/code_map.h"
#include "symbolizer/symbol_table_builder.h"

/**
 * Address in the executable minus address in another file of the same object,
 * modulo 2^64: from the executable sections with equal name and size in both,
 * which must agree; without sections, from the first executable segment. 0 when
 * neither gives one.
 */
uint64_t find_displacement(const struct elf_image *runs, const struct elf_image *other);

/** Move the ranges of the builder and of the map; ranges that would wrap around are dropped. */
void displace_ranges(struct symbol_table_builder *b, struct code_map *code, uint64_t by);

#endif
