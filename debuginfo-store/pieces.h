/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_PIECES_H
#define CAIRN_DEBUGINFO_STORE_PIECES_H

/**
 * @file
 * Parts of objects as upstreams gave them, sections and source files: a cache in DIR/pieces, at most
 * LIMIT_PIECES_BYTES, of which what was used longest ago goes first. Nothing of it can be verified, so none of it
 * becomes an object, or is read as anything but bytes.
 *
 * Threads: any.
 */
#include "debuginfo-store/store.h"

/** @param part as in struct fetch_question. @param fd_ret at the start of the file. @return ST_NOT_FOUND. */
enum status piece_open(struct debuginfo_store *store, const struct build_id *id, const char *part, int *fd_ret,
                       struct error *err) MUST_CHECK;
/** Keep the whole of fd. */
enum status piece_put(struct debuginfo_store *store, const struct build_id *id, const char *part, int fd,
                      struct error *err) MUST_CHECK;

#endif
