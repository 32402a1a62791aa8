/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCES_GO_TABLES_H
#define CAIRN_SYMBOLIZER_SOURCES_GO_TABLES_H

/**
 * @file
 * Location of a Go program's pclntab, and the values that it leaves to the
 * runtime's moduledata: the start of the text and the base of the inline trees.
 *
 * The table is found by section name (.gopclntab; in position-independent
 * programs .data.rel.ro.gopclntab), by the symbol runtime.pclntab, and in a file
 * with other marks of a Go program by a scan of all data for its magic number.
 *
 * The layout of moduledata changes between versions of Go without a version
 * field (1.27), so no word is trusted for its position: each is tried as the
 * base of the inline trees, and the one with which the trees are consistent is
 * used.
 * Source: Go, src/runtime/symtab.go, type moduledata.
 */
#include "symbolizer/sources/go_pclntab.h"

struct go_tables {
        struct go_pclntab pclntab;
        uint8_t *owned;                       /* a relocated copy of it, or NULL */
        uint64_t module_address, module_size; /* of the moduledata words that were read; 0: none */
};

/** @param ret free with go_tables_deinit(), before img. @return ST_NOT_FOUND when img is not a Go program; ST_BAD_DATA.
 */
enum status go_tables_find(const struct elf_image *img, struct go_tables *ret, struct error *err) MUST_CHECK;
void go_tables_deinit(struct go_tables *t);

#endif
