/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCES_FUNCTION_BOUNDARIES_H
#define CAIRN_SYMBOLIZER_SOURCES_FUNCTION_BOUNDARIES_H

/**
 * @file
 * Functions of a file without a symbol table: where they start and end, with names made of their start, as in
 * "fn@0x37a0 [xz]", so that addresses of one function have one name.
 *
 * A function is what one FDE covers (.eh_frame, .debug_frame), which compilers write for every function on x86-64 and
 * AArch64. Code without an FDE, such as hand-written assembly or that of another compiler, is divided on x86-64 at the
 * targets of direct calls, and at the start of a section. A part of a function that the compiler moved elsewhere
 * (".cold") has an FDE of its own, and so a name of its own.
 *
 * Source: LSB 5.0 Core, 10.6; Intel SDM volume 2A, CALL.
 */
#include "elf-image/elf_image.h"
#include "symbolizer/table/address_filter.h"
#include "symbolizer/table/code_map.h"
#include "symbolizer/table/symbol_table_builder.h"

struct boundary_input {
        const struct elf_image *img; /* the executable, with its content */
        const char *file_name;       /* without directory, for names; NULL: the DT_SONAME, else the build-id */
        const struct code_map *code;
        const struct address_filter *filter; /* NULL: all addresses */
};

/**
 * Name the functions that the table leaves open. One whose start has a name already is left out.
 * @param used_ret whether any address was named.
 * @return ST_OK also for a file of another processor, or with unreadable CFI; ST_NO_MEMORY.
 */
enum status fill_from_function_boundaries(const struct boundary_input *in, struct symbol_table_builder *b,
                                          bool *used_ret, struct error *err) MUST_CHECK;

/** Whether the name of a function is one that fill_from_function_boundaries() makes. */
bool is_boundary_name(const char *function);

#endif
