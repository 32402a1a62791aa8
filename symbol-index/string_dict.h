/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_STRING_DICT_H
#define CAIRN_SYMBOL_INDEX_STRING_DICT_H

/**
 * @file
 * String dictionary: names of functions and paths of files, interned for all
 * objects. Maps text -> number and number -> text.
 *
 * Problem: successive builds of a program share almost all names, and names are most of a small index. Model: the new
 * texts of one call are sorted, numbered in that order and packed in pages (text_page.h), keyed by the last number of
 * the page; text_hash_index.h finds the pages that may contain a text. Texts are always compared, since hash collisions
 * can be crafted.
 *
 * Numbers begin at 1, only grow, and are never reused for another text; 0 is the empty text. Texts of an interrupted
 * load are kept.
 */
#include <lmdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/memory/buf.h"
#include "common/error.h"

struct symbol_index;
struct index_write;
struct text_page;
struct text_page_cache;
struct text_unpacker;

struct string_dict {
        MDB_dbi ids, pages;
        struct text_page_cache *cache; /* of committed pages */
};

/** Open both databases; returns LMDB's rc. The cache belongs to the caller. */
int string_dict_open(struct string_dict *s, MDB_txn *txn, bool create);

struct string_dict_item {
        const char *text; /* borrowed for the call */
        uint32_t size;    /* at most LIMIT_NAME_BYTES */
        uint32_t number;  /* result */
};

/** Assign numbers to all items. May renew w's transaction. */
enum status string_dict_intern(const struct string_dict *s, struct index_write *w, struct string_dict_item *items,
                               size_t count, struct error *err) MUST_CHECK;

/**
 * Store the text of a number (not 0) in out, which is cleared first. ST_BAD_DATA if it does not exist or its page is
 * damaged.
 * @param txn a read transaction, since its pages are cached.
 */
enum status string_dict_get(const struct string_dict *s, MDB_txn *txn, struct text_unpacker *unpacker, uint32_t number,
                            struct buf *out, struct error *err) MUST_CHECK;

/**
 * The unpacked page that contains a number (not 0), for reading many texts in ascending order. It is not added to the
 * cache.
 * @param ret owned, free(). ST_BAD_DATA as for string_dict_get().
 */
enum status string_dict_get_page(const struct string_dict *s, MDB_txn *txn, struct text_unpacker *unpacker,
                                 uint32_t number, struct text_page **ret, struct error *err) MUST_CHECK;

/** The greatest number in use; 0: none. */
enum status string_dict_last_number(const struct string_dict *s, MDB_txn *txn, uint32_t *ret,
                                    struct error *err) MUST_CHECK;

/** Bytes of the pages of both databases. */
size_t string_dict_count_bytes(const struct string_dict *s, MDB_txn *txn);

/** A check of the pages; all borrowed. Bit n of uses: a block refers to text n, up to the number last_used. */
struct string_dict_check {
        const struct string_dict *strings;
        MDB_txn *txn;
        struct text_unpacker *unpacker;
        const uint8_t *uses;
        uint32_t last_used;
};

/**
 * Check one page, and that each of its texts that a block refers to is found by its hash. Other texts may be those of a
 * load that was interrupted, or is under way, between its pages and its ids.
 * @param value of the page.
 * @return ST_BAD_DATA.
 */
enum status string_dict_verify_page(const struct string_dict_check *c, const MDB_val *key, const MDB_val *value,
                                    struct error *err) MUST_CHECK;

#endif
