/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_PARTIAL_H
#define CAIRN_DEBUGINFO_STORE_PARTIAL_H

/**
 * @file
 * What has arrived of uploads that can be resumed: DIR/partial/ID-KIND-HASH,
 * the unpacked bytes so far. Nothing of it is synced or promised: when it is
 * complete it is hashed and verified like any other upload, so what a power
 * cut did to it is found then.
 *
 * A file is locked while a connection adds to it. Files that nobody added to
 * for LIMIT_PARTIAL_S go, and the oldest when all together have more than
 * LIMIT_PARTIAL_BYTES.
 *
 * Threads: any.
 */
#include "debuginfo-store/store.h"

/** How much of the claimed content is here: 0 when nothing. */
enum status partial_size(const struct debuginfo_store *store, const struct object_claim *claim, uint64_t *ret,
                         struct error *err) MUST_CHECK;

/**
 * Open or create it, at its end.
 * @param path_ret owned; unlink it once it is stored, or wrong.
 * @return ST_BUSY when another connection adds to it, and did so in the last LIMIT_PARTIAL_IDLE_S; ST_OS.
 */
enum status partial_open(struct debuginfo_store *store, const struct object_claim *claim, int *fd_ret,
                         char **path_ret, uint64_t *size_ret, struct error *err) MUST_CHECK;

/** Remove what is too old or too much. */
void partial_expire(const struct debuginfo_store *store, int64_t now_unix_s);

#endif
