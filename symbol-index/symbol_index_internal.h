/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_SYMBOL_INDEX_INTERNAL_H
#define CAIRN_SYMBOL_INDEX_SYMBOL_INDEX_INTERNAL_H

/*
 * The open index, shared by readers and the writer (docs/formats/index.md). LMDB calls return rc; index_set_error()
 * converts it.
 */
#include <lmdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "symbol-index/lookup.h"
#include "symbol-index/string_dict.h"

#define INDEX_FORMAT 1

struct symbol_index {
        MDB_env *env;
        MDB_dbi aliases;
        MDB_dbi meta, objects, maps, blocks, block_ids, block_users, garbage;
        struct string_dict texts; /* names of functions and paths of files */
        struct name_cache *names;
        struct anchor_filter *anchors; /* of the writer; created when first used */
        bool read_only;
        bool start_over;            /* empty the index if it has an older format */
        size_t map_bytes;           /* LMDB refuses to write more */
        int lock_fd;                /* flock()ed by the only writing process; -1 if read-only */
        pthread_mutex_t write_lock; /* serializes loads and marks */
        size_t block_bytes;         /* BLOCK_BYTES, except in measurements */
        size_t write_bytes;         /* INDEX_WRITE_BYTES, except in tests */
        char *dir;
        struct block_rows *_Atomic spare_rows; /* of an ended view, for the next one; NULL: none */
};

/** Convert an LMDB result; rc 0 is ST_OK. The message begins with `what`. */
enum status index_set_error(struct error *err, const struct symbol_index *index, int rc, const char *what);

/* ---- writing: consecutive transactions, none larger than INDEX_WRITE_BYTES */

#define INDEX_WRITE_BYTES MiB(32)

struct index_write {
        struct symbol_index *index;
        MDB_txn *txn; /* NULL if none is open */
        size_t bytes; /* written since it began */
};

enum status index_write_begin(struct index_write *w, struct symbol_index *index, struct error *err) MUST_CHECK;
enum status index_write_commit(struct index_write *w, struct error *err) MUST_CHECK;
void index_write_abort(struct index_write *w);

/** True if the transaction is large enough: commit it and begin a new one. */
bool index_write_is_full(const struct index_write *w);
enum status index_write_renew(struct index_write *w, struct error *err) MUST_CHECK;

struct index_record {
        const void *key;
        size_t key_size;
        const void *value;
        size_t value_size;
};
/** mdb_put() that counts bytes. flags as for mdb_put(). */
enum status index_write_put(struct index_write *w, MDB_dbi dbi, const struct index_record *record, unsigned flags,
                            struct error *err) MUST_CHECK;

/* ---- garbage: numbers of objects whose maps are to be deleted */

enum status index_garbage_add(struct index_write *w, uint32_t object, struct error *err) MUST_CHECK;
enum status index_garbage_remove(struct index_write *w, uint32_t object, struct error *err) MUST_CHECK;

/**
 * Delete the maps of all garbage and unreferenced blocks, one slice per transaction. After a crash the next call
 * continues.
 */
enum status index_garbage_sweep(struct symbol_index *index, struct error *err) MUST_CHECK;

#endif
