/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FETCH_H
#define CAIRN_DEBUGINFO_STORE_FETCH_H

/**
 * @file
 * One object from one upstream: libdebuginfod in a worker process
 * (`cairn worker fetch URL BUILD-ID KIND SECONDS`, descriptor 3 takes the file,
 * 4 the answer), with a private cache that goes with the worker, so that
 * neither its cache nor its idea of a miss outlives the call.
 */
#include <stdatomic.h>

#include "debuginfo-store/store.h"

/**
 * @param out empty file; holds the object after ST_OK.
 * @return ST_NOT_FOUND when the upstream definitely has none; ST_BUSY for
 *         every transient failure, with the reason.
 */
enum status fetch_object(const char *url, const struct build_id *id, enum object_kind kind, uint64_t timeout_s,
                         int out, const atomic_bool *cancel, struct error *err) MUST_CHECK;

/** The worker's side. */
enum status fetch_worker(const char *url, const char *build_id_hex, const char *kind, const char *seconds, int out,
                         int answer, struct error *err) MUST_CHECK;

#endif
