/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCE_GO_H
#define CAIRN_SYMBOLIZER_SOURCE_GO_H

/**
 * @file
 * Functions, lines and inlined calls of a Go program from its pclntab, which
 * stripping leaves in place.
 */
#include "symbolizer/extract_internal.h"
#include "symbolizer/source_fill.h"

/**
 * Fill b from img's pclntab. One that cannot be read is as good as none.
 * @param used_ret whether any address got its answer from it.
 * @return ST_OK also when img is no Go program; ST_NO_MEMORY.
 */
enum status source_go_fill(const struct elf_image *img, const struct code_map *code, struct symbol_table_builder *b,
                           bool *used_ret, struct error *err) MUST_CHECK;

#endif
