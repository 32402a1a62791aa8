/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_COMMANDS_RECORD_REPORT_H
#define CAIRN_CLI_COMMANDS_RECORD_REPORT_H

/**
 * @file
 * Report the quality of a recording: lost samples, truncated stacks and unresolved frames, each with its reason and the
 * next step.
 */
#include "cli/commands/record_run.h"
#include "cli/symbols/profile_symbols.h"
#include "debuginfod-client/debuginfo_fetcher.h"

/** Report what was recorded, and how stacks ended. */
void record_report_samples(const struct record_counts *c, const struct record_target *t, const struct profile *p);

/**
 * Report how many frames are resolved.
 * @param fetcher  NULL: debuginfod was not used.
 */
void record_report_frames(const struct profile *p, const struct profile_symbols *symbols,
                          const struct debuginfo_fetcher *fetcher);

#endif
