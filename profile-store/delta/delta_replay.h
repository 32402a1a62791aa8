/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_DELTA_DELTA_REPLAY_H
#define CAIRN_PROFILE_STORE_DELTA_DELTA_REPLAY_H

/**
 * @file
 * Replays the files of a log to a state.
 * Source: delta-io PROTOCOL.md, "Delta Log Entries" and "Checkpoints".
 */
#include "profile-store/delta/delta_place.h"
#include "profile-store/delta/delta_state.h"

/** Apply the commit after s, or a later one. ST_NOT_FOUND when the file does not exist. */
enum status delta_replay_commit(const struct delta_place *p, int64_t version, struct delta_state *s,
                                struct error *err) MUST_CHECK;

/** The same, with the text of the commit in memory. @param info  of its file */
enum status delta_replay_commit_text(const struct delta_place *p, int64_t version, const struct buf *text,
                                     const struct storage_info *info, struct delta_state *s,
                                     struct error *err) MUST_CHECK;

/** Read the state at a checkpoint. @param s  empty. */
enum status delta_replay_checkpoint(const struct delta_place *p, int64_t version, struct delta_state *s,
                                    struct error *err) MUST_CHECK;

/** Apply the commits after s up to a version. ST_BAD_DATA when one is missing. */
enum status delta_replay_until(const struct delta_place *p, int64_t version, struct delta_state *s,
                               struct error *err) MUST_CHECK;

enum delta_gap {
        DELTA_GAP_NONE,
        DELTA_GAP_FOUND,  /* there are later commits: log cleaning deleted the one that follows */
        DELTA_GAP_LOST,   /* there are none: the log has lost its last commits */
        DELTA_GAP_UNKNOWN /* the storage does not answer */
};
/** After the commit that follows a version was not found: whether it was deleted. @param err  why that is unknown */
enum delta_gap delta_replay_find_gap(const struct delta_place *p, int64_t version, struct error *err);
/** The same after that of the version was not found either. */
enum delta_gap delta_replay_find_later(const struct delta_place *p, int64_t version, struct error *err);

/**
 * Read the newest state: the newest readable checkpoint and the commits after it, else all commits. Checkpoints are
 * redundant with the commits that still exist, so a damaged one is skipped.
 * @param s  empty.
 */
enum status delta_replay_log(const struct delta_place *p, struct delta_state *s, struct error *err) MUST_CHECK;

#endif
