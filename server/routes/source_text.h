/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ROUTES_SOURCE_TEXT_H
#define CAIRN_SERVER_ROUTES_SOURCE_TEXT_H

/** @file Texts of stored source files, for answers of queries. Private to server/. */
#include "common/build_id.h"
#include "common/buf.h"

/**
 * Append a file of the object's source bundle; struct query_sources.read, the context is the struct server.
 * @return ST_NOT_FOUND without a bundle that has it; ST_TOO_BIG past the max of ret.
 */
enum status read_source_text(void *server, const struct build_id *id, const char *path, struct buf *ret,
                             struct error *err) MUST_CHECK;

#endif
