/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_RESYMBOLIZE_REPORT_H
#define CAIRN_PIPELINE_RESYMBOLIZE_REPORT_H

/**
 * @file
 * A re-symbolization by request, with the samples that have an unresolved
 * location counted by reason before and after it: in the report, and as the
 * metric cairn_unresolved_samples.
 *
 * Threads: any.
 */
#include "common/buf.h"
#include "profile-store/store.h"

/**
 * Append the report, a JSON object (docs/formats/resymbolize.md).
 *
 * When the samples cannot be counted within the memory of a scan, the report says why instead.
 */
enum status resymbolize_and_report(struct profile_store *store, const struct resymbolize_request *request,
                                   struct buf *out, struct error *err) MUST_CHECK;

#endif
