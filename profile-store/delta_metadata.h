/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_DELTA_METADATA_H
#define CAIRN_PROFILE_STORE_DELTA_METADATA_H

/**
 * @file
 * What a table's metaData action says, and how it may change.
 */
#include "profile-store/delta_actions.h"

/**
 * Append the line of a metaData action that is as metadata is, with another schema.
 *
 * @return ST_OK; ST_USAGE when the schema drops or changes a column or adds one that is not nullable.
 */
enum status delta_metadata_append(struct buf *out, struct json_object *metadata, const char *schema_json,
                                  struct error *err) MUST_CHECK;

/** Whether the keys of a file's partition values are the table's partition columns, in any order. */
bool delta_metadata_partitions_fit(struct json_object *metadata, const struct delta_add *add);

#endif
