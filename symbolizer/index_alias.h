/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_INDEX_ALIAS_H
#define CAIRN_SYMBOLIZER_INDEX_ALIAS_H

/**
 * @file
 * Objects by other names than their build-id: the Go build-id, the hash of a
 * file's ends. Who looks up an id that has no symbols of its own gets those of
 * the object that the alias leads to.
 *
 * Threads: those of the index; one writer.
 */
#include "symbolizer/symbol_table.h"

/**
 * Let all of these lead to an object, whatever they led to before.
 * @param changed_ret for each alias, whether it led elsewhere or nowhere; may be NULL.
 */
enum status symbol_index_alias(struct symbol_index *index, const struct build_id *id, const struct build_id *aliases,
                               size_t count, bool *changed_ret, struct error *err) MUST_CHECK;

#endif
