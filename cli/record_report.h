/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_RECORD_REPORT_H
#define CAIRN_CLI_RECORD_REPORT_H

/**
 * @file
 * How good a recording is, in a few lines: what was lost, which stacks were cut and which frames have no names, each with
 * its reason and the next step.
 */
#include "cli/debug_fetcher.h"
#include "cli/profile_symbols.h"
#include "cli/record_run.h"

/** What was recorded, and how stacks ended. */
void record_report_samples(const struct record_counts *c, const struct record_target *t, const struct profile *p);

/** How many frames have names. @param fetcher  NULL: nobody was asked. */
void record_report_frames(const struct profile *p, const struct profile_symbols *symbols,
                          const struct debug_fetcher *fetcher);

#endif
