/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_SECTIONS_H
#define CAIRN_DEBUGINFO_STORE_SECTIONS_H

/**
 * @file
 * Where the sections of stored objects lie, as the worker that verified them
 * wrote it down (elf-image/section_list.h): an LMDB database beside the records,
 * changed in the transaction that changes the record
 * (docs/formats/debuginfo-store.md, "Sections").
 *
 * A list is of one content and names its SHA-256, so one that an older version
 * left behind is of nothing.
 *
 * Threads: those of the transaction.
 */
#include <lmdb.h>

#include "debuginfo-store/store.h"

struct section_notes {
        MDB_dbi dbi;
        bool is_open; /* a store of an older version that is read only has none */
};

struct section_note {
        const void *list; /* borrowed */
        size_t size;      /* 0: nothing is known, as of lists above LIMIT_SECTION_LIST_BYTES */
};

/** @return an LMDB code, as do those below. */
int sections_open(MDB_txn *txn, bool read_only, struct section_notes *ret);

/** In place of what was noted of that build-id and kind. */
int sections_put(const struct section_notes *d, MDB_txn *txn, const struct stored_object *object, const struct section_note *note);
int sections_remove(const struct section_notes *d, MDB_txn *txn, const struct object_name *name);

/** Of this very content. MDB_NOTFOUND when nothing is noted. @param ret borrowed until the transaction ends. */
int sections_get(const struct section_notes *d, MDB_txn *txn, const struct stored_object *object, struct section_note *ret);

#endif
