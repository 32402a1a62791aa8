/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_INDEX_EXPIRY_H
#define CAIRN_SYMBOL_INDEX_INDEX_EXPIRY_H

/**
 * @file
 * Removes the symbols of objects that are no longer used, so that the index does not grow with each build.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/build_id.h"
#include "symbol-index/lookup.h"

struct index_expiry_options {
        int64_t indexed_before_unix_s; /* only objects that were read, or failed, before this time */
        /* Whether an object is in use under this id, which may be an alias of its build-id. Called without a lock. */
        bool (*is_used)(void *context, const struct build_id *id);
        bool (*proceed)(void *context); /* false ends the removal after a transaction, with ST_OK; NULL: to the end */
        void *context;
};

/**
 * Remove the records, symbols and aliases of unused objects, some objects per transaction; loads proceed in between.
 * Blocks that other objects share are kept, and so are the texts of names and paths. An object that is read again
 * meanwhile is kept. Later lookups of a removed build-id answer that it has no debuginfo.
 * @param removed_ret objects removed, also when it fails later.
 * @return ST_OK; ST_USAGE for an index opened read-only; ST_OS; ST_NO_MEMORY.
 */
enum status symbol_index_remove_unused(struct symbol_index *index, const struct index_expiry_options *options,
                                       uint64_t *removed_ret, struct error *err) MUST_CHECK;

#endif
