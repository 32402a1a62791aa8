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

/** The same of those whose build-ids begin with these n bytes; or are shorter, when the last ones are zeros that they were filled up with. */
void scanned_ask_alike(struct server *s, const uint8_t *start, size_t n);

/** For the indexer: an object of a tree, owned. ST_NOT_FOUND. */
enum status scanned_open(void *server, const struct build_id *id, enum object_kind kind, int *fd_ret, struct error *err) MUST_CHECK;

/** For the indexer: may there be debuginfo of it in a tree? */
bool scanned_has_debuginfo(void *server, const struct build_id *id);

#endif
