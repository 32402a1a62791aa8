/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_SCANNED_H
#define CAIRN_SERVER_SCANNED_H

/**
 * @file
 * What scanned trees are to symbolization: their objects are not indexed for
 * being there, which may be a distribution, but when samples or a question have
 * addresses in them; and again when a walk finds better symbols.
 */
#include "server/server_internal.h"

/** Open the trees of the options, if there are any. */
enum status scanned_open_trees(struct server *s, struct error *err) MUST_CHECK;

/** Have those indexed that nothing is known of. @param rest_ret of count items takes those whose debuginfo is not there. */
void scanned_want(struct server *s, const struct build_id *ids, size_t count, struct build_id *rest_ret, size_t *rest_count_ret);

/** Somebody asks for addresses of it: the next one to ask gets names. */
void scanned_ask(struct server *s, const struct build_id *id);

/** For the indexer: an object of a tree, owned. ST_NOT_FOUND. */
enum status scanned_open(void *server, const struct build_id *id, enum object_kind kind, int *fd_ret, struct error *err) MUST_CHECK;

#endif
