/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_INDEX_NEEDS_H
#define CAIRN_SERVER_INDEX_NEEDS_H

/**
 * @file
 * Whether a stored object has still to be read for the symbol index: then the
 * indexer queues it when it starts, and no collection may remove it
 * (debuginfo-store/gc.h).
 */
#include "debuginfo-store/store.h"
#include "symbolizer/lookup.h"

/** symbols is a struct symbol_index. True also when it cannot be found out. */
bool index_needs(void *symbols, const struct stored_object *stored);

#endif
