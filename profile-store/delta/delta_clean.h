/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_DELTA_DELTA_CLEAN_H
#define CAIRN_PROFILE_STORE_DELTA_DELTA_CLEAN_H

/**
 * @file
 * Deletes old commits and checkpoints.
 * Source: delta-io PROTOCOL.md, "Metadata Cleanup".
 */
#include "profile-store/delta/delta_state.h"

/** See delta_table_clean_log(). @param s  the current state. */
enum status delta_clean_log(const char *log_dir, struct delta_state *s, int64_t before_ms,
                            struct delta_log_cleaning *ret, struct error *err) MUST_CHECK;

#endif
