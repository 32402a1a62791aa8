/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_RESYMBOLIZE_REPORT_H
#define CAIRN_PIPELINE_RESYMBOLIZE_REPORT_H

/**
 * @file
 * Re-symbolization on request. Samples with an unresolved location are counted by reason before and after it.
 *
 * Threads: any.
 */
#include "common/memory/buf.h"
#include "pipeline/unresolved_counts.h"
#include "profile-store/profile_store.h"

/**
 * Append the report, a JSON object (docs/formats/resymbolize.md).
 *
 * @param counts  set unless it is a dry run, or requested if the samples could not be counted; NULL is allowed.
 * If the samples cannot be counted within the memory limit of a scan, the report has the error instead.
 */
enum status resymbolize_and_report(struct profile_store *store, const struct resymbolize_request *request,
                                   struct unresolved_counts *counts, struct buf *out, struct error *err) MUST_CHECK;

#endif
