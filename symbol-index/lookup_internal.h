/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_LOOKUP_INTERNAL_H
#define CAIRN_SYMBOL_INDEX_LOOKUP_INTERNAL_H

#include <lmdb.h>

#include "common/hash/hash_table.h"
#include "common/memory/arena.h"
#include "symbol-index/index_object.h"
#include "symbol-index/symbol_index_internal.h"

struct text_entry {
        const char *text;     /* NULL: not loaded yet */
        const char *readable; /* functions only */
};

#define TEXTS_PER_PAGE 64

struct text_entry_page {
        uint64_t wanted; /* one bit per entry: to be loaded by symbol_view_load_texts() */
        struct text_entry entries[TEXTS_PER_PAGE];
};

/* Texts by number: pages of entries, allocated at first use from the view's arena. */
struct text_table {
        struct text_entry_page **pages;
        uint32_t page_count;
        uint32_t last; /* greatest number in the dictionary; UINT32_MAX: not read yet */
};

struct block;
struct block_rows;
struct lookup_tiles;

#define VERIFIED_SLOTS 8192 /* a power of two */

/*
 * Elements are (low half of an address << 32 | key index); sorted by the upper half. tmp has room for count elements.
 */
void lookup_sort(uint64_t *elements, uint64_t *tmp, size_t count);

/* Make room for count items of `size` bytes in *array, whose capacity is doubled; false when out of memory. */
bool lookup_grow(void **array, size_t *capacity, size_t count, size_t size);

struct lookup_object {
        struct build_id id;
        struct index_object object;
        uint64_t kernel_base;    /* index_object_kernel_base() */
        enum symbol_state state; /* of keys that blocks cannot answer; SYMBOL_RESOLVED: look up in blocks */
        bool damaged;
};

struct lookup_group {
        uint32_t object, high;
        uint32_t count, place; /* place: position of its next element */
        uint32_t last;
        bool sorted;
};

/* Kept by a view between batches: objects do not change during its transaction. */
struct lookup_cache {
        struct lookup_object *objects;
        uint32_t object_count, object_capacity;
        struct hash_table by_id;     /* object numbers by build-id */
        struct lookup_group *groups; /* of one batch; the memory is kept */
        uint32_t group_count, group_capacity;
        struct hash_table by_group; /* group numbers by object and upper half of the address */
};

struct symbol_view {
        struct symbol_index *index;
        MDB_txn *txn;
        MDB_cursor *maps, *blocks;
        const void **verified;      /* values with verified checksums: constant during the transaction */
        struct block_rows *rows;    /* for unpacked blocks; allocated when first needed */
        struct lookup_tiles *tiles; /* likewise, for large unordered groups */
        struct lookup_cache known;
        struct arena arena;
        struct buf scratch;
        struct text_table functions, files;
        struct text_unpacker *unpacker; /* allocated when first needed */
};

/* One answer, without the fields common to its group. */
struct lookup_answer {
        uint64_t element;
        uint32_t first_frame;
        uint16_t frame_count;
        uint16_t state;
};

/* One thread's part of a batch: all of it, or a slice of its keys. */
struct lookup {
        struct symbol_view *view;
        const struct symbol_key *keys;
        size_t count, element_count, damaged_count;
        struct symbol_result *results;
        struct symbol_frame *frames;
        size_t frame_count, frame_capacity;
        struct lookup_cache known; /* that of the view, while the lookup runs */
        uint32_t *group_of;        /* group of each element; not written while there is only one group */
        uint64_t *elements, *tmp;
        struct symbol_result common;   /* fields shared by all results of the current group */
        struct lookup_answer *answers; /* answers in tiles */
        struct lookup_tiles *tiles;    /* of the view; NULL: results are written directly */
};

void lookup_cache_deinit(struct lookup_cache *c);

/* Answer the keys of a group, whose elements are sorted. */
enum status lookup_walk(struct lookup *l, const struct lookup_group *g, const uint64_t *elements,
                        struct error *err) MUST_CHECK;

/* Begin a group: choose how its answers are stored, and set the common fields. False when out of memory. */
bool lookup_answers_begin(struct lookup *l, const struct lookup_group *g) MUST_CHECK;

/* End the group: all of its results are in place. */
void lookup_answers_end(struct lookup *l);

#endif
