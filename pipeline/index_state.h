/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_INDEX_STATE_H
#define CAIRN_PIPELINE_INDEX_STATE_H

/**
 * @file
 * Whether a stored object is not indexed yet: then the indexer queues it at its start, and garbage collection keeps it
 * (debuginfo-store/gc.h).
 */
#include "debuginfo-store/debuginfo_store.h"
#include "symbol-index/lookup.h"

/** @param symbols a struct symbol_index; NULL: it cannot be read.  @return true also when the state cannot be read. */
bool index_state_is_pending(void *symbols, const struct stored_object *stored);

/**
 * Whether debuginfo of a known quality was indexed without any symbol: the process ended before it recorded quality
 * none. The indexer reads the file again and records it.
 */
bool index_state_is_empty(struct symbol_index *symbols, const struct stored_object *stored);

#endif
