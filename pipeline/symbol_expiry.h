/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_SYMBOL_EXPIRY_H
#define CAIRN_PIPELINE_SYMBOL_EXPIRY_H

/**
 * @file
 * Bounds the symbol index: the symbols of an object are removed when no file of it is stored, no sample refers to it,
 * and they were read longer ago than a limit.
 */
#include "debuginfo-store/debuginfo_store.h"
#include "profile-store/profile_store.h"
#include "symbol-index/lookup.h"

/** All pointers are borrowed. */
struct symbol_expiry {
        struct symbol_index *symbols;
        struct debuginfo_store *objects;
        struct profile_store *const *stores; /* whose samples are resolved with the index */
        size_t store_count;
        uint64_t keep_s;                /* after the symbols were read */
        bool (*proceed)(void *context); /* false ends it early, with ST_OK, as a stopping service needs; may be NULL */
        void *context;
};

/**
 * Remove the symbols of unused objects. When files of locations or records of objects cannot be read, it fails and
 * removes nothing more.
 * @param removed_ret objects whose symbols were removed, also on failure.
 */
enum status symbol_expiry_run(const struct symbol_expiry *e, int64_t now_unix_s, uint64_t *removed_ret,
                              struct error *err) MUST_CHECK;

#endif
