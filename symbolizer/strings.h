/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_STRINGS_H
#define CAIRN_SYMBOLIZER_STRINGS_H

/**
 * @file
 * Texts interned once for all objects: text -> number and number -> text.
 * There are two such dictionaries in the index, functions and files.
 *
 * Problem: successive builds of a program share almost all names, and names
 * are most of a small index. Model: the new texts of one load are sorted,
 * numbered in that order and front-coded in pages (docs/formats/index.md,
 * "String page"), keyed by the last number of the page; a second database maps
 * a text's 32-bit hash to its number, 8 bytes an entry. A hash never decides:
 * the texts are compared, since collisions happen and can be made.
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

#define STRINGS_PAGE_BYTES 2016

struct strings {
        MDB_dbi ids, pages;
};

/** Open both databases, named PREFIX_ids and PREFIX_pages; rc as LMDB's. */
int strings_open(struct strings *s, MDB_txn *txn, const char *prefix, bool create);

struct strings_item {
        const char *text;  /* borrowed for the call */
        uint32_t size;     /* at most LIMIT_NAME_BYTES */
        uint32_t number;   /* filled */
};

/** Number all items. May renew w's transaction between items. */
enum status strings_intern(const struct strings *s, struct index_write *w, struct strings_item *items, size_t count,
                           struct error *err) MUST_CHECK;

/** Append the text of a number (not 0) to out, cleared first. ST_BAD_DATA when it is not there or its page is damaged. */
enum status strings_get(const struct strings *s, MDB_txn *txn, uint32_t number, struct buf *out,
                        struct error *err) MUST_CHECK;

/** The greatest number in use, 0 none. */
enum status strings_last(const struct strings *s, MDB_txn *txn, uint32_t *ret, struct error *err) MUST_CHECK;

/**
 * Bytes of both databases: the pages of the texts, and 12 bytes an entry of the
 * other one (LMDB does not tell the pages of a tree of duplicates).
 */
size_t strings_bytes(const struct strings *s, MDB_txn *txn);

#endif
