/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_LINKS_H
#define CAIRN_DEBUGINFO_STORE_LINKS_H

/**
 * @file
 * Links between objects: aliases and required companions. Two LMDB databases in the environment of the records, changed
 * in the same transaction as the record (docs/formats/debuginfo-store.md, "Links").
 *
 * An alias resolves to the first object that had it; aliases found in the content take precedence over claimed ones.
 * When that object is removed, the alias resolves to the next object that has it.
 *
 * Threads: those of the transaction.
 */
#include <lmdb.h>

#include "common/memory/buf.h"
#include "debuginfo-store/debuginfo_store.h"

struct object_alias {
        struct build_id id;
        bool is_claimed; /* claimed by the uploader; otherwise found in the file */
};

struct object_links {
        struct object_alias aliases[OBJECT_ALIASES_MAX];
        size_t alias_count;
        const struct object_name *companions; /* borrowed */
        uint32_t companion_count;
};

struct link_databases {
        MDB_dbi links, aliases;
};

/** Append the links as they are stored: in the databases, and in the table of objects (object_table.h). */
void links_encode(struct buf *b, const struct object_links *l);

/**
 * The reverse, of untrusted bytes.
 * @param companions_ret  owned; ret borrows them.
 * @return ST_BAD_DATA; ST_NO_MEMORY.
 */
enum status links_decode(const void *data, size_t n, struct object_links *ret, struct object_name **companions_ret,
                         struct error *err) MUST_CHECK;

/** @return an LMDB code, like all functions below. */
int links_open(MDB_txn *txn, bool read_only, struct link_databases *ret);

/** Replace the links of an object. */
int links_put(const struct link_databases *d, MDB_txn *txn, const struct object_name *name,
              const struct object_links *links);
int links_remove(const struct link_databases *d, MDB_txn *txn, const struct object_name *name);

/** MDB_NOTFOUND if no object has the alias. */
int links_resolve(const struct link_databases *d, MDB_txn *txn, const struct build_id *alias, struct build_id *ret);

/** The aliases of one object, including those that resolve to another one. */
int links_list_aliases(const struct link_databases *d, MDB_txn *txn, const struct object_name *name,
                       struct build_id ret[static OBJECT_ALIASES_MAX], size_t *count_ret);

/** The companions of one object; MDB_NOTFOUND if its links were not recorded. @param ret owned. */
int links_get_companions(const struct link_databases *d, MDB_txn *txn, const struct object_name *name,
                         struct object_name **ret, size_t *count_ret);

/** The companions of all objects, unsorted and with duplicates. @param ret owned. @return also ENOMEM. */
int links_list_companions(const struct link_databases *d, MDB_txn *txn, struct object_name **ret, size_t *count_ret);

#endif
