/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_HISTORY_TYPE_H
#define CAIRN_QUERY_ENGINE_HISTORY_TYPE_H

/**
 * @file
 * The profile type of a query that reads the history of functions: that of other operations; when no samples are left,
 * the type with CPU time, or that of the row with the most samples.
 *
 * Threads: as the call's scan.
 */
#include "query/engine/query_call.h"

#define HISTORY_TYPE_SIZE 256

/** @param ret  a full id; "": nothing is selected. */
enum status history_choose_type(struct query_call *q, char ret[static HISTORY_TYPE_SIZE]) MUST_CHECK;

#endif
