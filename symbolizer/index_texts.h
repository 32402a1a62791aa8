/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_INDEX_TEXTS_H
#define CAIRN_SYMBOLIZER_INDEX_TEXTS_H

/* Numbers of the texts of a symbol table, as far as ranges need them. */
#include "symbolizer/index_internal.h"
#include "symbolizer/symbol_table.h"

struct index_texts {
        uint32_t *functions;  /* number of each function of the table; 0 when no range needs it */
        uint32_t *files;      /* number of each frame's file */
        uint64_t function_count, file_count; /* that are needed and have a name */
};

/** Number them. @param ret zeroed; to deinit also on failure. */
enum status index_texts_number(struct index_write *w, const struct symbol_table *table, struct index_texts *ret,
                               struct error *err) MUST_CHECK;
void index_texts_deinit(struct index_texts *t);

#endif
