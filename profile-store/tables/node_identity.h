/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_TABLES_NODE_IDENTITY_H
#define CAIRN_PROFILE_STORE_TABLES_NODE_IDENTITY_H

/**
 * @file
 * The identity of a node among those that write the same tables: DIR/node is one line of 16 random hexadecimal digits.
 * It belongs to the queue of the directory: the log of samples has the position of each node's queue up to which its
 * batches are in the tables. A directory with tables of its own has none.
 */
#include "profile-store/tables/tables.h"

#define NODE_IDENTITY_FILE "node"

/** The identity of a directory, "" without one. ST_BAD_DATA for a damaged file. */
enum status node_identity_read(const char *dir, char ret[static NODE_ID_SIZE], struct error *err) MUST_CHECK;

/** The same, made durably unless there is one. The directory's queue must be locked. */
enum status node_identity_make(const char *dir, char ret[static NODE_ID_SIZE], struct error *err) MUST_CHECK;

/** Make a new one in its place, for a directory without a queue; ret stays on failure. The queue must be locked. */
enum status node_identity_replace(const char *dir, char ret[static NODE_ID_SIZE], struct error *err) MUST_CHECK;

#endif
