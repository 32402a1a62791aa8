/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_SYMBOLICATE_START_H
#define CAIRN_SERVER_SYMBOLICATE_START_H

/**
 * @file
 * Where the functions of addresses begin. The index has ranges with chains of
 * frames, not functions: a function is where the outermost frame stays the
 * same. The start is looked for with steps that double, then by halves, for
 * all addresses of a batch at a time: some 30 lookups each, no text.
 *
 * The start found is that of the part (hot or cold) that holds the address.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "symbolizer/lookup.h"

/**
 * @param keys, batch a lookup's input and outcome.
 * @param ret of each key the start of its function; the address itself where it is not resolved.
 */
enum status function_starts(struct symbol_view *view, const struct symbol_key *keys, const struct symbol_batch *batch,
                            uint64_t *ret, struct error *err) MUST_CHECK;

#endif
