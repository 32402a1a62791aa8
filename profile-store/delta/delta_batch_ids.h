/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_DELTA_DELTA_BATCH_IDS_H
#define CAIRN_PROFILE_STORE_DELTA_DELTA_BATCH_IDS_H

/**
 * @file
 * Ids of the batches of commits, beyond the commits themselves: FOLDER/_batch_ids/VERSION.ids has those of the commits
 * after the previous checkpoint up to that of VERSION.
 *
 * A writer puts it before the checkpoint, and commits are deleted only below a checkpoint. So the id of every batch
 * that was committed in the last LIMIT_BATCH_ID_AGE_S is in such an object, or in a commit after the newest checkpoint.
 * Objects of several writers may overlap. Readers of Delta tables ignore folders that begin with an underscore.
 */
#include "profile-store/delta/delta_place.h"
#include "profile-store/delta/delta_state.h"

/** Put the ids that s has, unless there are none. Call before the checkpoint of s is written. */
enum status delta_batch_ids_write(const struct delta_place *p, const struct delta_state *s,
                                  struct error *err) MUST_CHECK;

/**
 * Append the ids of all objects that are young enough to *ids, an array of array_reserve(), also on failure.
 * ST_BAD_DATA for a damaged object.
 */
enum status delta_batch_ids_read(const struct delta_place *p, struct hash128 **ids, size_t *count, size_t *capacity,
                                 struct error *err) MUST_CHECK;

/** Remove the objects that are too old. */
enum status delta_batch_ids_expire(const struct delta_place *p, struct error *err) MUST_CHECK;

#endif
