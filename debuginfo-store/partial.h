/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_PARTIAL_H
#define CAIRN_DEBUGINFO_STORE_PARTIAL_H

/**
 * @file
 * Files of resumable uploads: DIR/partial/ID-KIND-HASH holds the uncompressed bytes so far. They are not synced: a
 * complete file is hashed and verified like any other upload, which detects damage by a power failure.
 *
 * A connection locks the file that it appends to. Files unchanged for LIMIT_PARTIAL_S are removed, and the oldest ones
 * while all files exceed LIMIT_PARTIAL_BYTES.
 *
 * Threads: any.
 */
#include "debuginfo-store/debuginfo_store.h"

/** Number of bytes received of the claimed content. */
enum status partial_find_size(const struct debuginfo_store *store, const struct object_claim *claim, uint64_t *ret,
                              struct error *err) MUST_CHECK;

/**
 * Open or create the file for appending.
 * @param path_ret owned; unlink the file once it is stored or refused.
 * @return ST_BUSY if another connection appended to it in the last LIMIT_PARTIAL_IDLE_S; ST_OS.
 */
enum status partial_open(struct debuginfo_store *store, const struct object_claim *claim, int *fd_ret, char **path_ret,
                         uint64_t *size_ret, struct error *err) MUST_CHECK;

/** Remove files beyond the age and size limits. */
void partial_expire(const struct debuginfo_store *store, int64_t now_unix_s);

#endif
