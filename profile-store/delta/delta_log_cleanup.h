/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_DELTA_DELTA_LOG_CLEANUP_H
#define CAIRN_PROFILE_STORE_DELTA_DELTA_LOG_CLEANUP_H

/**
 * @file
 * Deletes old commits and checkpoints.
 * Source: delta-io PROTOCOL.md, "Metadata Cleanup".
 */
#include "profile-store/delta/delta_place.h"
#include "profile-store/delta/delta_state.h"

/** See delta_table_clean_up_log(). @param s  the current state. */
enum status delta_log_clean_up(const struct delta_place *p, struct delta_state *s, int64_t before_ms,
                               struct delta_log_cleanup *ret, struct error *err) MUST_CHECK;

#endif
