/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_DELTA_DELTA_REPLAY_H
#define CAIRN_PROFILE_STORE_DELTA_DELTA_REPLAY_H

/**
 * @file
 * The files of a log, and the state that they give.
 * Source: delta-io PROTOCOL.md, "Delta Log Entries" and "Checkpoints".
 */
#include "profile-store/delta/delta_state.h"

#define DELTA_COMMIT_SUFFIX ".json"
#define DELTA_CHECKPOINT_SUFFIX ".checkpoint.parquet"
#define DELTA_VERSION_DIGITS 20

/** The version that a log file's name begins with, and what follows; -1 for another name. */
int64_t delta_parse_version(const char *name, const char **suffix_ret);

/** LOG_DIR/VERSION and suffix; owned, NULL without memory. */
char *delta_make_log_path(const char *log_dir, int64_t version, const char *suffix);

/** Apply the commit that follows s, or a later one. ST_NOT_FOUND when the file does not exist. */
enum status delta_replay_commit(const char *log_dir, int64_t version, struct delta_state *s,
                                struct error *err) MUST_CHECK;

/** The state at a checkpoint. @param s  empty. */
enum status delta_replay_checkpoint(const char *log_dir, int64_t version, struct delta_state *s,
                                    struct error *err) MUST_CHECK;

/** Apply the commits after s up to a version. ST_BAD_DATA when one is missing. */
enum status delta_replay_until(const char *log_dir, int64_t version, struct delta_state *s,
                               struct error *err) MUST_CHECK;

/** Whether the log, in which the commit after a version was not found, has later ones: log cleaning deleted it. */
bool delta_replay_has_gap_after(const char *log_dir, int64_t version);

/**
 * The newest state: of the newest readable checkpoint and the commits after it, else of all commits. Checkpoints are
 * redundant to the commits that are there, so a damaged one is passed over.
 * @param s  empty.
 */
enum status delta_replay_log(const char *log_dir, struct delta_state *s, struct error *err) MUST_CHECK;

#endif
