/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_API_DEBUGINFO_GC_ANSWER_H
#define CAIRN_SERVER_API_DEBUGINFO_GC_ANSWER_H

/**
 * @file
 * Garbage collection of the debuginfo store with a report as JSON: for the HTTP API and for `cairn debuginfo gc`, which
 * also works without a service.
 */
#include "common/memory/buf.h"
#include "debuginfo-store/gc.h"

/**
 * Collect garbage and write a report: r_ret has the totals, also after a failure, and ret the JSON
 * {"dry_run": ..., "removed": [{"build_id", "kind", "name", "tag", "stored_bytes", "reason"}], "removed_bytes",
 *  "objects", "bytes", "pinned", "needed", "strays", "stray_bytes"}.
 * @param options  its callback `removed` must be NULL.
 */
enum status run_gc_with_report(struct debuginfo_store *objects, const struct gc_options *options,
                               struct gc_result *r_ret, struct buf *ret, struct error *err) MUST_CHECK;

#endif
