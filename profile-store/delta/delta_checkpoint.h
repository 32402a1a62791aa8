/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_DELTA_DELTA_CHECKPOINT_H
#define CAIRN_PROFILE_STORE_DELTA_DELTA_CHECKPOINT_H

/**
 * @file
 * A table's whole state as one Parquet file, _delta_log/VERSION.checkpoint.parquet.
 * Source: delta-io PROTOCOL.md, "Checkpoints" and "Checkpoint Schema" (classic, one part).
 */
#include "profile-store/delta/delta_place.h"
#include "profile-store/delta/delta_state.h"

/** Write and publish the checkpoint of s, and record it in _last_checkpoint. */
enum status delta_checkpoint_write(const struct delta_place *p, const struct delta_state *s,
                                   struct error *err) MUST_CHECK;

/** Version of the checkpoint named by _last_checkpoint; -1 without one. */
int64_t delta_checkpoint_read_hint(const struct delta_place *p);

/** Read a checkpoint's actions. ST_BAD_DATA, ST_UNSUPPORTED, ... when it is unusable. */
enum status delta_checkpoint_read(const struct delta_place *p, int64_t version, struct delta_actions *ret,
                                  struct error *err) MUST_CHECK;

#endif
