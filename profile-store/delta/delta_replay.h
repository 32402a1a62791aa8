/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_DELTA_DELTA_REPLAY_H
#define CAIRN_PROFILE_STORE_DELTA_DELTA_REPLAY_H

/**
 * @file
 * Replays the files of a log to a state.
 * Source: delta-io PROTOCOL.md, "Delta Log Entries" and "Checkpoints".
 */
#include "profile-store/delta/delta_state.h"

#define DELTA_COMMIT_SUFFIX ".json"
#define DELTA_CHECKPOINT_SUFFIX ".checkpoint.parquet"
#define DELTA_VERSION_DIGITS 20

/** The version at the start of a log file's name, and the text after it; -1 for other names. */
int64_t delta_parse_version(const char *name, const char **suffix_ret);

/** LOG_DIR/VERSION and suffix; owned, NULL without memory. */
char *delta_make_log_path(const char *log_dir, int64_t version, const char *suffix);

/** Apply the commit after s, or a later one. ST_NOT_FOUND when the file does not exist. */
enum status delta_replay_commit(const char *log_dir, int64_t version, struct delta_state *s,
                                struct error *err) MUST_CHECK;

/** Read the state at a checkpoint. @param s  empty. */
enum status delta_replay_checkpoint(const char *log_dir, int64_t version, struct delta_state *s,
                                    struct error *err) MUST_CHECK;

/** Apply the commits after s up to a version. ST_BAD_DATA when one is missing. */
enum status delta_replay_until(const char *log_dir, int64_t version, struct delta_state *s,
                               struct error *err) MUST_CHECK;

/** Whether the log has commits after the missing one that follows a version, which log cleaning then deleted. */
bool delta_replay_has_gap_after(const char *log_dir, int64_t version);

/**
 * Read the newest state: the newest readable checkpoint and the commits after it, else all commits. Checkpoints are
 * redundant with the commits that still exist, so a damaged one is skipped.
 * @param s  empty.
 */
enum status delta_replay_log(const char *log_dir, struct delta_state *s, struct error *err) MUST_CHECK;

#endif
