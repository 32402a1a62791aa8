/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_API_DEBUGINFO_SOURCE_TEXT_H
#define CAIRN_SERVER_API_DEBUGINFO_SOURCE_TEXT_H

/** @file Texts of stored source files, for answers of queries. Private to server/. */
#include "common/build_id.h"
#include "common/memory/buf.h"
#include "server/core/server_internal.h"

/** Fetches from upstreams for one query; belongs to its thread. */
struct query_fetches {
        struct debuginfo_space *space;
        struct http_request *req;
        unsigned count; /* source files requested from upstreams */
};

/**
 * The client of requests to upstreams for the query. It waits until the query's deadline, at most half a minute.
 */
struct federation_client query_fetches_make_client(const struct query_fetches *f);

/**
 * Append a source file of an object, from its source bundle, the cache of fetched parts, or, with may_fetch, a scanned
 * tree or an upstream. Callback for struct query_sources.read; the context is a struct query_fetches.
 */
enum status read_source_text(void *fetches, const struct build_id *id, const char *path, bool may_fetch,
                             struct buf *ret, struct error *err) MUST_CHECK;

#endif
