/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_API_DEBUGINFO_DEBUGINFO_LIST_H
#define CAIRN_SERVER_API_DEBUGINFO_DEBUGINFO_LIST_H

/**
 * @file
 * Stored objects as JSON: for the HTTP API and for `cairn debuginfo list`, which also works without a service.
 */
#include "common/memory/buf.h"
#include "debuginfo-store/debuginfo_store.h"
#include "symbol-index/lookup.h"

/** {"objects": [{"build_id", "kind", "quality", "size", ..., "index": {"state", ...}}]}, in build-id order. */
enum status write_debuginfo_list(struct debuginfo_store *objects, struct symbol_index *symbols, struct buf *ret,
                                 struct error *err) MUST_CHECK;

/** The objects of one build-id, in the same format. ST_NOT_FOUND when nothing is stored under it. */
enum status write_debuginfo_object(struct debuginfo_store *objects, struct symbol_index *symbols,
                                   const struct build_id *id, struct buf *ret, struct error *err) MUST_CHECK;

#endif
