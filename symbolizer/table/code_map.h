/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_TABLE_CODE_MAP_H
#define CAIRN_SYMBOLIZER_TABLE_CODE_MAP_H

/**
 * @file
 * The address ranges of an object that hold code. Anything that DWARF or
 * symbols name outside of them is data, or was discarded by the linker.
 */
#include <stddef.h>
#include <stdint.h>

#include "elf-image/elf_image.h"

struct code_region {
        uint64_t start, end;
};
struct code_map {
        struct code_region *regions; /* owned; sorted, disjoint, not adjacent */
        size_t count;
};

/**
 * From executable sections, else from executable segments. @param ret free with code_map_deinit(); empty when the file
 * has neither.
 */
enum status code_map_from_image(const struct elf_image *img, struct code_map *ret, struct error *err) MUST_CHECK;
void code_map_deinit(struct code_map *m);

/**
 * Fill an empty map, for a file that does not say where code is, such as one of debug sections alone: all addresses
 * except 0, where linkers leave discarded functions.
 */
void code_map_cover_all(struct code_map *m);

/** The region that holds address, or NULL. */
const struct code_region *code_map_find(const struct code_map *m, uint64_t address);

#endif
