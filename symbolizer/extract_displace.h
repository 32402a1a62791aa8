/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACT_DISPLACE_H
#define CAIRN_SYMBOLIZER_EXTRACT_DISPLACE_H

/**
 * @file
 * Files that were moved after they were linked. prelink gives a library other
 * addresses and keeps its build-id; its debug file, and a minidebuginfo in it,
 * still have those of the linker. Answers are in the addresses of the file that
 * runs, so what the others say is moved.
 */
#include "symbolizer/extract_internal.h"
#include "symbolizer/symbol_table_builder.h"

/**
 * How much greater (modulo 2^64) the addresses of the file that runs are than
 * those of another file about it: by the executable sections that have one name
 * and size in both, which all have to agree; without sections, by the first
 * executable segment. 0 when they say nothing.
 */
uint64_t extract_displacement(const struct elf_image *runs, const struct elf_image *other);

/** Move the ranges that are in the builder and the map. What would wrap around is dropped. */
void extract_displace(struct symbol_table_builder *b, struct code_map *code, uint64_t by);

#endif
