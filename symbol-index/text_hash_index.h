/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_TEXT_HASH_INDEX_H
#define CAIRN_SYMBOL_INDEX_TEXT_HASH_INDEX_H

/**
 * @file
 * Hash index of the string dictionary: the `text_ids` database (docs/formats/index.md, "Chunk of text ids").
 *
 * Problem: an entry of hash and number in a tree costs 12 bytes, as much as the name itself. Model: the hash is short,
 * and the number only identifies a group of 256; entries are sorted by hash and packed as differences, about 2.5 bytes
 * each, in chunks of a few hundred. A group has one or two pages of texts, which are searched.
 *
 * Threads: as for the transaction.
 */
#include <lmdb.h>
#include <stdint.h>

#include "common/error.h"

struct index_write;

#define TEXT_HASH_BITS 24
#define TEXT_GROUP_BITS 8     /* numbers per group: 256 */
#define TEXT_CHUNK_BYTES 2016 /* two such values fill a page of 4096 bytes */
#define TEXT_CHUNK_ENTRIES 8192
#define TEXT_SAME_HASH_MAX 255 /* entries; further texts are not entered, so a later load numbers them again */

struct text_hash_entry {
        uint32_t hash; /* TEXT_HASH_BITS of the hash */
        uint32_t group;
};

/** Hash of a text, as in entries. */
uint32_t hash_dict_text(const char *text, uint32_t size);

/** An unpacked chunk: entries with hashes in [first, last]. */
struct text_hash_chunk {
        uint32_t first, last; /* last is the key */
        uint32_t count;
        struct text_hash_entry ids[TEXT_CHUNK_ENTRIES];
};

/** @param last the chunk's key. ST_BAD_DATA for data that text_hash_index_add() did not write. */
enum status text_hash_chunk_open(struct text_hash_chunk *c, uint32_t last, const void *value, size_t size,
                                 struct error *err) MUST_CHECK;

/** The chunk that covers a hash; an empty one covering all hashes if the database is empty. */
enum status text_hash_index_find_chunk(MDB_txn *txn, MDB_dbi dbi, uint32_t hash, struct text_hash_chunk *ret,
                                       struct error *err) MUST_CHECK;

/** Add entries, which are sorted by hash. May renew w's transaction. */
enum status text_hash_index_add(struct index_write *w, MDB_dbi dbi, const struct text_hash_entry *ids, size_t count,
                                struct error *err) MUST_CHECK;

#endif
