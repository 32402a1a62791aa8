/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_DELTA_DELTA_ENCODE_H
#define CAIRN_PROFILE_STORE_DELTA_DELTA_ENCODE_H

/**
 * @file
 * The JSON lines of a commit.
 * Source: delta-io PROTOCOL.md, "Actions".
 */
#include "profile-store/delta/delta_state.h"

/** Version 0 of a new table: protocol and metaData. */
enum status delta_encode_create(struct buf *out, const struct parquet_field *fields, size_t field_count,
                                const char *const *partition_columns, size_t partition_count,
                                const struct delta_retention *retention, struct error *err) MUST_CHECK;

/** Whether the table's properties equal those of r. */
bool delta_retention_is_set(const struct delta_state *s, const struct delta_retention *r);

/** How long commits stay in the log by its properties, which other programs may set; 0: they do not say. */
int64_t delta_get_commit_lifetime_ms(const struct delta_state *s);

/** The commit c on top of s. ST_USAGE for an invalid path or schema. */
enum status delta_encode_commit(struct buf *out, const struct delta_state *s, const struct delta_commit *c,
                                struct error *err) MUST_CHECK;

#endif
