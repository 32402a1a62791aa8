/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PROFILE_COPY_H
#define CAIRN_PROFILE_FORMATS_PROFILE_COPY_H

/**
 * @file
 * Copying samples between profiles: a range into a new profile, for receivers with a limit per request, and whole
 * profiles into one, for requests that carry several.
 *
 * Threads: one per destination.
 */
#include "profile-formats/profile.h"

/**
 * Copy samples [first, first + count) and the entries that they refer to.
 * @param ret initialised here; profile_deinit() it on success only.
 */
enum status profile_copy_samples(const struct profile *p, uint32_t first, uint32_t count, struct profile *ret,
                                 struct error *err) MUST_CHECK;

/**
 * Append all samples of a profile, the entries that they refer to, and the count of rejected samples.
 * @return ST_OK; ST_TOO_BIG when together they pass a limit, and `to` then holds a part of `from`; ST_NO_MEMORY.
 */
enum status profile_merge(struct profile *to, const struct profile *from, struct error *err) MUST_CHECK;

#endif
