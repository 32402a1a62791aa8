/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SYMBOL_REASON_H
#define CAIRN_SYMBOLIZER_SYMBOL_REASON_H

/**
 * @file
 * The reasons why an address has no frames, in words: docs/reasons.md has the
 * same, and a test holds the two together.
 */
#include "symbolizer/lookup.h"

/** What the state means, one sentence without a full stop. */
const char *symbol_state_meaning(enum symbol_state s);

/** What an operator does about it, one sentence without a full stop. */
const char *symbol_state_next_step(enum symbol_state s);

/** Whether the state is a reason for having no frames: all are but resolved and sender. */
bool symbol_state_is_reason(enum symbol_state s);

/** Whether better debuginfo of the object would give frames, as far as the state tells. */
bool symbol_state_wants_debuginfo(enum symbol_state s);

/** The state of that name; false for any other text. */
bool symbol_state_parse(const char *name, enum symbol_state *ret);

#endif
