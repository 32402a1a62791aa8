/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCE_GO_FIND_H
#define CAIRN_SYMBOLIZER_SOURCE_GO_FIND_H

/**
 * @file
 * Where a Go program keeps its pclntab, and what the table leaves to the
 * runtime's moduledata: the start of the text and the base of the inline trees.
 *
 * The table is looked for by section name (.gopclntab, of position-independent
 * programs .data.rel.ro.gopclntab), by the symbol runtime.pclntab, and in a
 * file that says it is a Go program, by its magic number in all data.
 *
 * moduledata's words move between versions of Go without a sign (1.27), so no
 * word is believed for its place alone: each is tried as the base of the inline
 * trees, and it is the one with which the trees make sense.
 * Source: Go, src/runtime/symtab.go, type moduledata.
 */
#include "symbolizer/source_gopclntab.h"

struct go_tables {
        struct go_pclntab pclntab;
        uint8_t *owned; /* a relocated copy of it, or NULL */
        uint64_t module_address, module_size; /* of the words of moduledata that were read; 0: none were */
};

/** @param ret free with go_tables_deinit(), before img. @return ST_NOT_FOUND when img is no Go program; ST_BAD_DATA. */
enum status go_tables_find(const struct elf_image *img, struct go_tables *ret, struct error *err) MUST_CHECK;
void go_tables_deinit(struct go_tables *t);

#endif
