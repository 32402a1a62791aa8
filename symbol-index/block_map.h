/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_BLOCK_MAP_H
#define CAIRN_SYMBOL_INDEX_BLOCK_MAP_H

/**
 * @file
 * The map of an object: the addresses of its blocks, in pages of the `maps` database (docs/formats/index.md, "Map
 * page"). Blocks contain no absolute addresses, so objects can share them: a second build of a program costs its map
 * and the changed blocks.
 *
 * Threads: a builder belongs to one thread; pages are read by any number.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define MAP_KEY_BYTES 12
#define MAP_HEAD_BYTES 12
#define MAP_ENTRY_BYTES 8
#define MAP_CHECKSUM_BYTES 8
#define MAP_ENTRIES_MAX 249 /* two full pages fill an LMDB page */
#define MAP_PAGE_BYTES_MAX (MAP_HEAD_BYTES + MAP_ENTRIES_MAX * MAP_ENTRY_BYTES + MAP_CHECKSUM_BYTES)

/** The key: object number and last covered address, big-endian. */
struct map_key {
        uint8_t bytes[MAP_KEY_BYTES];
};
struct map_key map_key_make(uint32_t object, uint64_t last);
uint32_t map_key_object(const void *key);
uint64_t map_key_last(const void *key);

/** An open page; borrows its value. */
struct map_page {
        const uint8_t *entries;
        uint64_t base, last;
        uint32_t count;
};

/** Verify checksum and size. ST_BAD_DATA for data that no builder wrote. */
enum status map_page_open(struct map_page *p, const void *key, size_t key_size, const void *value, size_t size,
                          struct error *err) MUST_CHECK;
/** As above, without the checksum, which was verified earlier. */
enum status map_page_open_verified(struct map_page *p, const void *key, size_t key_size, const void *value, size_t size,
                                   struct error *err) MUST_CHECK;
uint64_t map_page_start(const struct map_page *p, uint32_t entry);
uint32_t map_page_block(const struct map_page *p, uint32_t entry);

/** The last entry at or after `from` that starts at or before address; p->count if there is none. */
uint32_t map_page_find(const struct map_page *p, uint32_t from, uint64_t address);

struct map_builder {
        uint8_t page[MAP_PAGE_BYTES_MAX];
        uint64_t base, last;
        uint32_t count;
};

/** Add the next block; false if the page is full or cannot span the gap before the block: finish it first. */
bool map_builder_add(struct map_builder *b, uint64_t start, uint64_t last, uint32_t block);

/** Finish the page in b->page; the builder is empty afterwards. Returns the page's size. */
size_t map_builder_finish(struct map_builder *b, uint32_t object, struct map_key *key_ret);

#endif
