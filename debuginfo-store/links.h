/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_LINKS_H
#define CAIRN_DEBUGINFO_STORE_LINKS_H

/**
 * @file
 * What leads from one object to others: its aliases, and the companions that
 * it needs. Two LMDB databases beside the records, changed in the transaction
 * that changes the record (docs/formats/debuginfo-store.md, "Links").
 *
 * An alias leads to the object that took it first, and one that was found in
 * the content goes before one that was only claimed; when the object goes, the
 * next one that has the alias is led to.
 *
 * Threads: those of the transaction.
 */
#include <lmdb.h>

#include "debuginfo-store/store.h"

struct object_alias {
        struct build_id id;
        bool is_claimed; /* by the uploader; else found in the file */
};

struct object_links {
        struct object_alias aliases[OBJECT_ALIASES_MAX];
        size_t alias_count;
        const struct object_name *needs; /* borrowed */
        uint32_t need_count;
};

struct link_databases {
        MDB_dbi links, aliases;
        bool are_open; /* a store of an older version that is read only has none */
};

/** @return an LMDB code, as do those below unless they say otherwise. */
int links_open(MDB_txn *txn, bool read_only, struct link_databases *ret);

/** In place of what the object had. */
int links_put(const struct link_databases *d, MDB_txn *txn, const struct object_name *name, const struct object_links *links);
int links_remove(const struct link_databases *d, MDB_txn *txn, const struct object_name *name);

/** MDB_NOTFOUND when nobody has the alias. */
int links_resolve(const struct link_databases *d, MDB_txn *txn, const struct build_id *alias, struct build_id *ret);

/** The aliases of one object, whether they lead to it or not. */
int links_aliases(const struct link_databases *d, MDB_txn *txn, const struct object_name *name,
                  struct build_id ret[static OBJECT_ALIASES_MAX], size_t *count_ret);

/** All needs of all objects, in no order, also more than once. @param ret owned. ENOMEM is its only code of the system's. */
int links_needs(const struct link_databases *d, MDB_txn *txn, struct object_name **ret, size_t *count_ret);

#endif
