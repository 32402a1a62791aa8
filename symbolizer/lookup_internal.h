/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_LOOKUP_INTERNAL_H
#define CAIRN_SYMBOLIZER_LOOKUP_INTERNAL_H

#include <lmdb.h>

#include "common/arena.h"
#include "symbolizer/index_internal.h"

/* Texts by number: pages of entries, made when first touched; memory is the view's arena. */
struct text_entry {
        const char *text;     /* NULL: not fetched yet */
        const char *readable; /* functions only */
};

struct text_table {
        const struct strings *strings;
        struct text_entry **pages;
        uint32_t page_count;
        uint32_t last;        /* greatest number of the dictionary; UINT32_MAX not asked yet */
};

struct symbol_view {
        struct symbol_index *index;
        MDB_txn *txn;
        MDB_cursor *ranges;
        struct arena arena;
        struct buf scratch;
        struct text_table functions, files;
};

/* Elements are (low half of an address << 32 | key index); sorted by the upper half. tmp holds count more. */
void lookup_sort(uint64_t *elements, uint64_t *tmp, size_t count);

#endif
