/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_INDEX_OBJECT_H
#define CAIRN_SYMBOLIZER_INDEX_OBJECT_H

/*
 * The record of one object in the `objects` database (docs/formats/index.md,
 * "Object record").
 */
#include <lmdb.h>

#include "common/build_id.h"
#include "symbolizer/index_internal.h"
#include "symbolizer/symbol_table.h"

struct index_object {
        enum symbol_object_state state;
        enum symbol_quality quality;
        uint32_t number;             /* of the symbols in use: the generation; 0 none */
        uint64_t range_count, function_count, file_count, chain_count;
        uint64_t block_bytes, string_bytes;
        int64_t indexed_unix_s, changed_unix_s;
        char reason[160];
        char partial[SYMBOL_PARTIAL_BYTES];
        struct symbol_inputs inputs; /* none: not known, as of versions 1 and 2 */
        bool is_of_version_1;        /* whose records do not say what is missing */
        uint32_t segment_count;
        const uint8_t *segments;     /* encoded, borrowed from the transaction */
};

/** ST_OK with state OBJECT_ABSENT when there is no record. */
enum status index_object_get(struct symbol_index *index, MDB_txn *txn, const struct build_id *id,
                             struct index_object *ret, struct error *err) MUST_CHECK;

/** The same for who looks symbols up: an id without any may be an alias (symbolizer/index_alias.h). */
enum status index_object_find(struct symbol_index *index, MDB_txn *txn, const struct build_id *id,
                              struct index_object *ret, struct error *err) MUST_CHECK;

/** @param segments NULL to keep those of o->segments. */
enum status index_object_put(struct index_write *w, const struct build_id *id, const struct index_object *o,
                             const struct symbol_segment *segments, uint32_t segment_count,
                             struct error *err) MUST_CHECK;

/** Is it known what is loaded from the file? A debug file alone has segments without bytes. */
bool index_object_has_bytes(const struct index_object *o);

/** Does a segment that is loaded from the file hold the address? */
bool index_object_holds(const struct index_object *o, uint64_t address);

/** Address of a file offset; false when no segment holds it. */
bool index_object_translate(const struct index_object *o, uint64_t file_offset, uint64_t *address_ret);

/** Address of the first segment, 0 without any. */
uint64_t index_object_base(const struct index_object *o);

#endif
