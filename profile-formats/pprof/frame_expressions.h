/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PPROF_FRAME_EXPRESSIONS_H
#define CAIRN_PROFILE_FORMATS_PPROF_FRAME_EXPRESSIONS_H

/**
 * @file
 * Which functions the fields drop_frames and keep_frames of a pprof file name: those whose whole name matches the
 * first expression and not the second. Names are compared without parameters, and those of C++ that a sender has not
 * simplified also without template arguments, as by go tool pprof.
 *
 * The expressions of allocators have some 70 alternatives in over 1 KiB, more than one expression of a query may have.
 * They are split at their outermost '|' into as few matchers as possible, of which one has to match.
 *
 * Threads: one at a time.
 * Source: google/pprof profile/prune.go (simplifyFunc, RemoveUninteresting), internal/symbolizer.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

struct frame_expressions;

/**
 * @param drop,keep    regular expressions; keep "": none.
 * @param input_bytes  of the file: bounds the steps of all matches.
 * @return ST_USAGE: an expression is invalid, or uses what common/text/regex_match.h lacks; ST_TOO_BIG: it has more
 * than LIMIT_FRAMES_PATTERN_BYTES; ST_NO_MEMORY.
 */
enum status frame_expressions_create(const char *drop, const char *keep, size_t input_bytes,
                                     struct frame_expressions **ret, struct error *err) MUST_CHECK;
void frame_expressions_destroy(struct frame_expressions *d); /* takes NULL */

/** @param is_plain  the sender gave no other linkage name, so the name may be of C++ and not simplified. */
bool frame_expressions_match(struct frame_expressions *d, const char *name, bool is_plain);

/** ST_TOO_BIG: the matches took too many steps, and the results of some are wrong. */
enum status frame_expressions_check(struct frame_expressions *d, struct error *err) MUST_CHECK;

#endif
