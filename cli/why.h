/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_WHY_H
#define CAIRN_CLI_WHY_H

/**
 * @file
 * Printing a report of docs/formats/why.md. All its texts come from strangers:
 * control characters never reach the terminal.
 */
#include <stdbool.h>

#include "common/buf.h"

/**
 * Print a report on stdout.
 * @param json as JSON, as it is but for control characters; else as text.
 * @param unresolved_ret how many of its addresses have no frames.
 * @return ST_BAD_DATA when it is no report.
 */
enum status why_print(struct buf *report, bool json, size_t *unresolved_ret, struct error *err) MUST_CHECK;

#endif
