/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_SPEEDSCOPE_H
#define CAIRN_PROFILE_FORMATS_SPEEDSCOPE_H

/**
 * @file
 * Speedscope's JSON: sampled and evented profiles over one list of frames.
 *
 * The type follows from the unit, as in Pyroscope: a time is process_cpu:cpu in nanoseconds, or wall:wall when the file
 * has several profiles; sizes are bytes of memory:samples, anything else counts of process_cpu:samples. The name of a
 * profile becomes the label profile_name.
 *
 * Threads: no shared state.
 * Source: jlfwong/speedscope src/lib/file-format-spec.ts.
 */
#include "profile-formats/profile.h"

/**
 * @param ret  initialised here; profile_deinit() it on success only.
 * @return ST_BAD_DATA: malformed, another schema, a frame outside of the list, events out of order or not nested;
 *         ST_TOO_BIG: a limit.
 */
enum status speedscope_decode(const void *data, size_t n, struct profile *ret, struct error *err) MUST_CHECK;

#endif
