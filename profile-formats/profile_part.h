/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PROFILE_PART_H
#define CAIRN_PROFILE_FORMATS_PROFILE_PART_H

/**
 * @file
 * Some samples of a profile as a profile of their own, for senders whose
 * receiver takes less at a time. Threads: no shared state.
 */
#include "profile-formats/profile.h"

/**
 * Copy samples [first, first + count) with what they refer to and no more.
 * @param ret initialised here; profile_deinit() it on success only.
 */
enum status profile_part(const struct profile *p, uint32_t first, uint32_t count, struct profile *ret,
                         struct error *err) MUST_CHECK;

#endif
