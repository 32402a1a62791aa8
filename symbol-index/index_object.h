/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_INDEX_OBJECT_H
#define CAIRN_SYMBOL_INDEX_INDEX_OBJECT_H

/*
 * The record of one object in the `objects` database (docs/formats/index.md,
 * "Object record").
 */
#include <lmdb.h>

#include "common/build_id.h"
#include "symbol-index/lookup.h"
#include "symbol-index/symbol_index_internal.h"
#include "symbol-index/symbol_table.h"

struct index_object {
        enum symbol_object_state state;
        enum symbol_quality quality;
        uint32_t number; /* generation of the current symbols; 0: none */
        uint64_t range_count, function_count, file_count, chain_count;
        uint64_t block_bytes, string_bytes;
        int64_t indexed_unix_s, changed_unix_s;
        char reason[160];
        char partial[SYMBOL_PARTIAL_BYTES];
        struct symbol_inputs inputs; /* empty: unknown, as in records of versions 1 and 2 */
        uint32_t segment_count;
        const uint8_t *segments; /* encoded, borrowed from the transaction */
};

/** ST_OK with state OBJECT_ABSENT if there is no record. */
enum status index_object_get(struct symbol_index *index, MDB_txn *txn, const struct build_id *id,
                             struct index_object *ret, struct error *err) MUST_CHECK;

/** Like index_object_get(); an id without symbols is resolved as an alias (symbol-index/index_load.h). */
enum status index_object_find(struct symbol_index *index, MDB_txn *txn, const struct build_id *id,
                              struct index_object *ret, struct error *err) MUST_CHECK;

/** @param segments NULL: keep those of o->segments. */
enum status index_object_put(struct index_write *w, const struct build_id *id, const struct index_object *o,
                             const struct symbol_segment *segments, uint32_t segment_count,
                             struct error *err) MUST_CHECK;

/** False if only a debug file was indexed, whose segments have no bytes. */
bool index_object_has_bytes(const struct index_object *o);

/** True if a segment with bytes in the file contains the address. */
bool index_object_holds(const struct index_object *o, uint64_t address);

/** Address of a file offset; false if no segment contains it. */
bool index_object_translate(const struct index_object *o, uint64_t file_offset, uint64_t *address_ret);

/** Address of the first segment; 0 if there is none. */
uint64_t index_object_base(const struct index_object *o);
/** For a kernel, the lowest address of its segments in the upper half (_text); 0 for other objects. */
uint64_t index_object_kernel_base(const struct index_object *o);
#define KERNEL_ADDRESSES (UINT64_C(1) << 63) /* kernels are linked above it on all 64-bit processors */

#endif
