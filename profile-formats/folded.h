/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_FOLDED_H
#define CAIRN_PROFILE_FORMATS_FOLDED_H

/**
 * @file
 * Folded stacks: one line per stack, frames from the root to the leaf joined by ';', a space, a number.
 *
 * A frame that ends in "_[k]" is a kernel frame; the mark is taken off. Frames have names only (ADDRESS_NONE).
 * Empty lines and lines that begin with '#' are skipped.
 *
 * Threads: no shared state.
 * Source: Brendan Gregg's FlameGraph, stackcollapse-*.pl.
 */
#include "profile-formats/profile.h"

/**
 * @param type_id  the samples' type, five parts; NULL: "samples:samples:count::".
 * @return ST_BAD_DATA with the line's number when a line has no count.
 */
enum status folded_decode(const void *data, size_t n, const char *type_id, struct profile *ret,
                          struct error *err) MUST_CHECK;

#endif
