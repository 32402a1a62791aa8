/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_RESYMBOLIZE_REPORT_H
#define CAIRN_PIPELINE_RESYMBOLIZE_REPORT_H

/**
 * @file
 * Re-symbolization on request. Samples with an unresolved location are counted by reason before and after it; the
 * counts are in the report and in the metric cairn_unresolved_samples.
 *
 * Threads: any.
 */
#include "common/memory/buf.h"
#include "profile-store/store.h"

/**
 * Append the report, a JSON object (docs/formats/resymbolize.md).
 *
 * If the samples cannot be counted within the memory limit of a scan, the report has the error instead.
 */
enum status resymbolize_and_report(struct profile_store *store, const struct resymbolize_request *request,
                                   struct buf *out, struct error *err) MUST_CHECK;

#endif
