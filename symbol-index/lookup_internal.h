/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_LOOKUP_INTERNAL_H
#define CAIRN_SYMBOL_INDEX_LOOKUP_INTERNAL_H

#include <lmdb.h>

#include "common/arena.h"
#include "common/hash_table.h"
#include "symbol-index/index_internal.h"
#include "symbol-index/index_object.h"

struct text_entry {
        const char *text;     /* NULL: not loaded yet */
        const char *readable; /* functions only */
};

#define TEXTS_PER_PAGE 64

struct text_entry_page {
        uint64_t wanted; /* bit per entry: symbol_view_load_texts() is to load it */
        struct text_entry entries[TEXTS_PER_PAGE];
};

/* Texts by number: pages of entries, allocated at first use from the view's arena. */
struct text_table {
        struct text_entry_page **pages;
        uint32_t page_count;
        uint32_t last; /* greatest number of the dictionary; UINT32_MAX not read yet */
};

struct block;
struct block_rows;
struct lookup_tiles;

#define VERIFIED_SLOTS 8192 /* a power of two */

/* Elements are (low half of an address << 32 | key index); sorted by the upper half. tmp holds count more. */
void lookup_sort(uint64_t *elements, uint64_t *tmp, size_t count);

/* Room for count items of size in *array, whose capacity is doubled; false without memory. */
bool lookup_grow(void **array, size_t *capacity, size_t count, size_t size);

struct lookup_object {
        struct build_id id;
        struct index_object object;
        uint64_t kernel_base;    /* index_object_kernel_base() */
        enum symbol_state state; /* of keys that no block can answer; SYMBOL_RESOLVED: blocks can */
        bool damaged;
};

struct lookup_group {
        uint32_t object, high;
        uint32_t count, place; /* place: of its next element */
        uint32_t last;
        bool sorted;
};

/* Kept by a view between batches: objects do not change during its transaction. */
struct lookup_cache {
        struct lookup_object *objects;
        uint32_t object_count, object_capacity;
        struct hash_table by_id;     /* object numbers by build-id */
        struct lookup_group *groups; /* of one batch; their memory is kept */
        uint32_t group_count, group_capacity;
        struct hash_table by_group; /* group numbers by object and upper half of the address */
};

struct symbol_view {
        struct symbol_index *index;
        MDB_txn *txn;
        MDB_cursor *maps, *blocks;
        const void **verified;      /* values with verified checksums: constant during the transaction */
        struct block_rows *rows;    /* for blocks that are unpacked; made when first needed */
        struct lookup_tiles *tiles; /* the same, for large groups in no order */
        struct lookup_cache known;
        struct arena arena;
        struct buf scratch;
        struct text_table functions, files;
        struct text_unpacker *unpacker; /* made when first needed */
};

/* One answer, without the fields that are common to its group. */
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
        struct lookup_cache known; /* the view's, while the lookup runs */
        uint32_t *group_of;        /* of each element; not written while there is one group only */
        uint64_t *elements, *tmp;
        struct symbol_result common;   /* common fields of the current group's answers */
        struct lookup_answer *answers; /* answers stored in tiles */
        struct lookup_tiles *tiles;    /* of the view; NULL: answers are written directly */
};

void lookup_cache_deinit(struct lookup_cache *k);

/* Answer the keys of a group, whose elements are sorted. */
enum status lookup_walk(struct lookup *l, const struct lookup_group *g, const uint64_t *elements,
                        struct error *err) MUST_CHECK;

/* Begin a group: choose how its answers are stored and keep what they have in common. False without memory. */
bool lookup_answers_begin(struct lookup *l, const struct lookup_group *g) MUST_CHECK;

/* End it: all of its answers are in their places. */
void lookup_answers_end(struct lookup *l);

#endif
