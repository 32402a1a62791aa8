/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_MISSING_NODES_H
#define CAIRN_QUERY_ENGINE_MISSING_NODES_H

/** @file How an answer says that it may lack samples of other nodes (profile-store/peer_heads.h). */
#include "common/memory/buf.h"
#include "profile-store/peer_heads.h"

/** Append to a note: "samples of http://b:7700 since 2026-01-31 10:00:00 UTC may be missing". Nothing if none is
 * missing. */
void put_missing_nodes_note(const struct missing_nodes *missing, struct buf *note);

/** Insert the member `missing_nodes` into an answer that is a JSON object; other answers stay as they are. */
void insert_missing_nodes_member(const struct missing_nodes *missing, struct buf *answer);

#endif
