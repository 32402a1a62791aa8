/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_DEBUGINFO_LIST_H
#define CAIRN_SERVER_DEBUGINFO_LIST_H

/**
 * @file
 * What is stored of objects and what is missing, as JSON: for the HTTP API
 * and for `cairn debuginfo`, which also works without a service.
 */
#include "common/buf.h"
#include "debuginfo-store/store.h"
#include "profile-store/store.h"
#include "symbolizer/lookup.h"

/** {"objects": [{"build_id", "kind", "quality", "size", ..., "index": {"state", ...}}]}, in build-id order. */
enum status debuginfo_list_json(struct debuginfo_store *objects, struct symbol_index *symbols, struct buf *ret,
                                struct error *err) MUST_CHECK;

/** {"missing": [{"build_id", "mapping", "state", "locations", "samples"}]}, those that would resolve most first. */
enum status debuginfo_missing_json(struct profile_store *profiles, int64_t from_unix_ns, int64_t to_unix_ns, struct buf *ret,
                                   struct error *err) MUST_CHECK;

#endif
