/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_PART_CACHE_H
#define CAIRN_DEBUGINFO_STORE_PART_CACHE_H

/**
 * @file
 * LRU cache of sections and source files fetched from upstreams, in DIR/pieces, at most LIMIT_PIECES_BYTES. They cannot
 * be verified, so they are served as opaque bytes, never parsed or stored as objects.
 *
 * Threads: any.
 */
#include "debuginfo-store/debuginfo_store.h"

/** @param part as for federation_fetch_part(). @param fd_ret at the start of the file. @return ST_NOT_FOUND. */
enum status part_cache_open(struct debuginfo_store *store, const struct build_id *id, const char *part, int *fd_ret,
                            struct error *err) MUST_CHECK;
/** Insert the whole content of fd. */
enum status part_cache_insert(struct debuginfo_store *store, const struct build_id *id, const char *part, int fd,
                              struct error *err) MUST_CHECK;

#endif
