/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ROUTES_SOURCE_TEXT_H
#define CAIRN_SERVER_ROUTES_SOURCE_TEXT_H

/** @file Texts of stored source files, for answers of queries. Private to server/. */
#include "common/build_id.h"
#include "common/buf.h"
#include "server/server_internal.h"

/** What one query may fetch; belongs to its thread. */
struct query_fetches {
        struct debuginfo_space *space;
        struct http_request *req;
        unsigned count; /* files that upstreams were asked for */
};

/**
 * The client in whose name upstreams are asked; it waits until the query's deadline, half a minute at most.
 */
struct federation_client query_fetches_make_client(const struct query_fetches *f);

/**
 * Append a file of the object's source bundle, or one that upstreams sent before, or with may_fetch of a scanned tree
 * or of an upstream: struct query_sources.read, the context is a struct query_fetches.
 */
enum status read_source_text(void *fetches, const struct build_id *id, const char *path, bool may_fetch,
                             struct buf *ret, struct error *err) MUST_CHECK;

#endif
