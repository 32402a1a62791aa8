/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_LOOKUP_INTERNAL_H
#define CAIRN_SYMBOLIZER_LOOKUP_INTERNAL_H

#include <lmdb.h>

#include "common/arena.h"
#include "common/hash_table.h"
#include "symbolizer/index_internal.h"
#include "symbolizer/index_object.h"

/* Texts by number: pages of entries, made when first touched; memory is the view's arena. */
struct text_entry {
        const char *text;     /* NULL: not fetched yet */
        const char *readable; /* functions only */
};

struct text_table {
        struct text_entry **pages;
        uint32_t page_count;
        uint32_t last;        /* greatest number of the dictionary; UINT32_MAX not asked yet */
};

struct block;
struct block_rows;
struct lookup_answer;
struct lookup_tiles;

#define VERIFIED_SLOTS 8192 /* a power of two */

/* Elements are (low half of an address << 32 | key index); sorted by the upper half. tmp holds count more. */
void lookup_sort(uint64_t *elements, uint64_t *tmp, size_t count);

/* Room for count items of size in *array, whose capacity is doubled; false without memory. */
bool lookup_grow(void **array, size_t *capacity, size_t count, size_t size);

struct lookup_object {
        struct build_id id;
        struct index_object object;
        enum symbol_state state; /* of keys that no block can answer; SYMBOL_RESOLVED: blocks can */
        bool damaged;
};

struct lookup_group {
        uint32_t object, high;
        uint32_t count, place;   /* place: of its next element */
        uint32_t last;
        bool sorted;
};

/* What a view keeps from batch to batch: objects stay as they are while its transaction lasts. */
struct lookup_known {
        struct lookup_object *objects;
        uint32_t object_count, object_capacity;
        struct hash_table by_id; /* object numbers by build-id */
        struct lookup_group *groups; /* of one batch; their memory is kept */
        uint32_t group_count, group_capacity;
        struct hash_table by_group; /* group numbers by object and upper half of the address */
};

struct symbol_view {
        struct symbol_index *index;
        MDB_txn *txn;
        MDB_cursor *maps, *blocks;
        const void **verified;   /* values with right checksums: they stay as they are while the transaction lasts */
        struct block_rows *rows; /* for blocks that are unpacked; made when first needed */
        struct lookup_tiles *tiles; /* the same, for large groups in no order */
        struct lookup_known known;
        struct arena arena;
        struct buf scratch;
        struct text_table functions, files;
        struct text_unpacker *unpacker; /* made when first needed */
};

/* One thread's part of a batch: all of it, or a slice of its keys. */
struct lookup {
        struct symbol_view *view;
        const struct symbol_key *keys;
        size_t count, element_count, damaged_count;
        struct symbol_result *results;
        struct symbol_frame *frames;
        size_t frame_count, frame_capacity;
        struct lookup_known known; /* the view's, while the lookup runs */
        uint32_t *group_of;      /* of each element; not written while there is one group only */
        uint64_t *elements, *tmp;
        struct symbol_result common; /* what the answers of the group that is walked have in common */
        struct lookup_answer *answers; /* those that wait in tiles */
        struct lookup_tiles *tiles;  /* of the view; NULL: answers go to their places at once */
};

struct lookup lookup_slice(struct symbol_view *view, const struct symbol_key *keys, size_t first, size_t count,
                           struct symbol_batch *batch);

void lookup_known_deinit(struct lookup_known *k);

/* Answer the keys of a lookup. */
enum status lookup_run(struct lookup *l, struct error *err) MUST_CHECK;

/* Answer a group's keys, whose elements are sorted. */
enum status lookup_walk(struct lookup *l, const struct lookup_group *g, const uint64_t *elements,
                        struct error *err) MUST_CHECK;

/* Keys of one block, ascending. */
struct lookup_keys {
        const struct index_object *object;
        const uint64_t *elements;
        uint32_t count;
        uint64_t shift;          /* lower half of an address + shift = offset into the block */
};

/* Answer keys from rows that are unpacked; false without memory. */
bool lookup_rows(struct lookup *l, const struct block_rows *rows, const struct lookup_keys *k) MUST_CHECK;

/*
 * Answer keys by going to the row of each. *done tells how many are answered: not all when the block is damaged.
 * False without memory.
 */
bool lookup_seeks(struct lookup *l, const struct block *block, const struct lookup_keys *k, uint32_t *done) MUST_CHECK;

/* The same with the chains of the block's frames unpacked. */
bool lookup_chains(struct lookup *l, const struct block *block, const struct block_rows *rows,
                   const struct lookup_keys *k, uint32_t *done) MUST_CHECK;

/* Why an address that no range of the object covers has none. */
enum symbol_state lookup_gap_state(const struct index_object *o, uint64_t address);

#define LOOKUP_SLICE_LEAST 4096 /* keys that are worth a thread */

/* Answer a batch, whose results have room, with several threads. */
enum status lookup_parallel(struct symbol_view *view, const struct symbol_key *keys, unsigned threads,
                            struct symbol_batch *batch, struct error *err) MUST_CHECK;

#endif
