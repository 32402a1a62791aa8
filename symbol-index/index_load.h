/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_INDEX_LOAD_H
#define CAIRN_SYMBOL_INDEX_INDEX_LOAD_H

/**
 * @file
 * Writer of the index: one thread in one process.
 */
#include "symbol-index/lookup.h"
#include "symbol-index/symbol_table.h"

/**
 * Make a table the current symbols of its build-id, unless the index has better ones (ST_OK, replaced_ret false): of
 * better quality, or of equal quality and complete while the table is partial. Durable when it returns. Every load gets
 * a new, greater generation.
 */
enum status symbol_index_load(struct symbol_index *index, const struct symbol_table *table, bool *replaced_ret,
                              uint64_t *generation_ret, struct error *err) MUST_CHECK;

/**
 * Record that an object is pending, or that its indexing failed. Current symbols are kept.
 * @param inputs the files that were read; NULL: unchanged.
 */
enum status symbol_index_set_state(struct symbol_index *index, const struct build_id *id,
                                   enum symbol_object_state state, const char *reason,
                                   const struct symbol_inputs *inputs, struct error *err) MUST_CHECK;

/*
 * Aliases: additional ids of an object (the Go build-id, the hash of both ends of the file). Looking up an id without
 * symbols follows its alias.
 */

/**
 * Let all aliases refer to an object, replacing previous targets.
 * @param changed_ret for each alias, whether its target changed; may be NULL.
 */
enum status symbol_index_add_aliases(struct symbol_index *index, const struct build_id *id,
                                     const struct build_id *aliases, size_t count, bool *changed_ret,
                                     struct error *err) MUST_CHECK;

#endif
