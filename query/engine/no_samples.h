/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_NO_SAMPLES_H
#define CAIRN_QUERY_ENGINE_NO_SAMPLES_H

/** @file Why a selection has no samples, and what would have. Private to query/. */
#include "query/engine/query_call.h"

/**
 * Add the reason to the note of an answer without samples: nothing is stored, the time range, the type, or a matcher of
 * the selector, with values that its label has. Scans again, so call it for an empty selection only.
 * @param type  requested; NULL: any
 */
enum status note_no_samples(struct query_call *q, const struct query_selection *s, const char *type) MUST_CHECK;

/** note_no_samples() if the selection has none, of any type. */
enum status note_empty_selection(struct query_call *q, const struct query_selection *s) MUST_CHECK;

#endif
