/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACT_INTERNAL_H
#define CAIRN_SYMBOLIZER_EXTRACT_INTERNAL_H

/**
 * @file
 * What the parts of the extraction share: where code is, and intervals that
 * are painted over each other.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf-image/elf_image.h"

/** Where an object has code. Everything else that DWARF or symbols name was dropped by the linker, or is data. */
struct code_region {
        uint64_t start, end;
};
struct code_map {
        struct code_region *regions; /* owned, sorted, apart */
        size_t count;
};

/** From executable sections, else from executable segments. @param ret free with code_map_deinit(). */
enum status code_map_from_image(const struct elf_image *img, struct code_map *ret, struct error *err) MUST_CHECK;
void code_map_deinit(struct code_map *m);

/** The region that holds address, or NULL. */
const struct code_region *code_map_find(const struct code_map *m, uint64_t address);

/** Addresses that belong to an item, unless an interval with a greater level, or the same and a greater item, covers them. */
struct interval {
        uint64_t start, end;
        uint32_t item;
        uint32_t level;
};
struct interval_list {
        struct interval *items; /* owned */
        size_t count, capacity;
};
void interval_list_deinit(struct interval_list *l);
bool interval_list_add(struct interval_list *l, struct interval i);

/**
 * Paint all intervals and hand out what is seen, in ascending order and
 * without overlap. Sorts the list.
 * @return false without memory.
 */
bool interval_list_paint(struct interval_list *l, void (*seen)(void *context, uint64_t start, uint64_t end, uint32_t item),
                         void *context);

#endif
