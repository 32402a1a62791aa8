/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_STRINGS_H
#define CAIRN_SYMBOLIZER_STRINGS_H

/**
 * @file
 * Texts interned once for all objects, names of functions and paths of files:
 * text -> number and number -> text.
 *
 * Problem: successive builds of a program share almost all names, and names
 * are most of a small index. Model: the new texts of one call are sorted,
 * numbered in that order and packed in pages (text_page.h), keyed by the last
 * number of the page; text_ids.h leads from a text to the pages that may hold
 * it. A hash never decides: the texts are compared, since collisions happen
 * and can be made.
 *
 * Numbers begin at 1, only grow, and are never given to another text; 0 is the
 * empty text. A text left over from a load that did not finish stays.
 */
#include <lmdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

struct symbol_index;
struct index_write;
struct text_page_cache;
struct text_unpacker;

struct strings {
        MDB_dbi ids, pages;
        struct text_page_cache *cache; /* of committed pages */
};

/** Open both databases; rc as LMDB's. The cache is the caller's. */
int strings_open(struct strings *s, MDB_txn *txn, bool create);

struct strings_item {
        const char *text;  /* borrowed for the call */
        uint32_t size;     /* at most LIMIT_NAME_BYTES */
        uint32_t number;   /* filled */
};

/** Number all items. May renew w's transaction. */
enum status strings_intern(const struct strings *s, struct index_write *w, struct strings_item *items, size_t count,
                           struct error *err) MUST_CHECK;

/**
 * Append the text of a number (not 0) to out, cleared first. ST_BAD_DATA when it is not there or its page is damaged.
 * @param txn a read transaction, since pages that it sees are kept.
 */
enum status strings_get(const struct strings *s, MDB_txn *txn, struct text_unpacker *unpacker, uint32_t number,
                        struct buf *out, struct error *err) MUST_CHECK;

/** The greatest number in use, 0 none. */
enum status strings_last(const struct strings *s, MDB_txn *txn, uint32_t *ret, struct error *err) MUST_CHECK;

/** Bytes of the pages of both databases. */
size_t strings_bytes(const struct strings *s, MDB_txn *txn);

/** Check one page and each of its texts' way to it. @param value of the page. ST_BAD_DATA. */
enum status strings_verify_page(const struct strings *s, MDB_txn *txn, struct text_unpacker *unpacker, const MDB_val *key,
                                const MDB_val *value, struct error *err) MUST_CHECK;

#endif
