/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FEDERATION_UPSTREAM_FILTER_H
#define CAIRN_DEBUGINFO_STORE_FEDERATION_UPSTREAM_FILTER_H

/**
 * @file
 * The filter of build-ids that an upstream publishes (debuginfo-store/build_id_filter.h), if it is a Cairn service. It
 * is requested after UPSTREAM_FILTER_MISSES answers that something is missing, and again when it is a minute old and
 * needed: an object that the upstream got meanwhile is missing for that long, which is less than the negative cache's
 * time.
 *
 * Threads: any.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"

#define UPSTREAM_FILTER_RESOURCE "buildid-filter"
#define UPSTREAM_FILTER_MISSES 16

struct upstream_filter;

enum status upstream_filter_create(struct upstream_filter **ret, struct error *err) MUST_CHECK;
void upstream_filter_destroy(struct upstream_filter *f); /* takes NULL */

/** Count an answer that something is missing. */
void upstream_filter_note_missing(struct upstream_filter *f);

/** Whether the caller has to request the filter now. If so, no other thread has to, until upstream_filter_set(). */
bool upstream_filter_begin_fetch(struct upstream_filter *f);
/**
 * Report the result of the request.
 * @param st ST_OK: fd is the file, borrowed. ST_NOT_FOUND: the upstream has no filter. Others: it did not answer, and
 * an old filter stays for a while.
 */
void upstream_filter_set(struct upstream_filter *f, enum status st, int fd);

/** Whether the upstream lacks the build-id: it has published a filter that does not contain it. */
bool upstream_filter_excludes(struct upstream_filter *f, const struct build_id *id);

#endif
