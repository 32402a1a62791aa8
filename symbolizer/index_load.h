/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_INDEX_LOAD_H
#define CAIRN_SYMBOLIZER_INDEX_LOAD_H

/**
 * @file
 * Writing side of the index. One writer thread in one process.
 */
#include "symbolizer/symbol_table.h"

/**
 * Make a table the current symbols of its build-id, unless better ones are
 * there already (ST_OK, replaced_ret false): of a better quality, or as good and whole
 * where the table is partial. Durable when it returns.
 * Every load takes a new, greater generation.
 */
enum status symbol_index_load(struct symbol_index *index, const struct symbol_table *table, bool *replaced_ret,
                              uint64_t *generation_ret, struct error *err) MUST_CHECK;

/**
 * Record that an object is stored and waits, or that its indexing failed and why. Symbols in use are kept.
 * @param inputs what was read in vain; NULL: what is known of that stays.
 */
enum status symbol_index_mark(struct symbol_index *index, const struct build_id *id, enum symbol_object_state state,
                              const char *reason, const struct symbol_inputs *inputs, struct error *err) MUST_CHECK;

#endif
