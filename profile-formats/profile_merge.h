/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PROFILE_MERGE_H
#define CAIRN_PROFILE_FORMATS_PROFILE_MERGE_H

/**
 * @file
 * One profile out of several, for requests that carry many.
 *
 * Threads: one for each destination.
 */
#include "profile-formats/profile.h"

/**
 * Append all samples of a profile, and what they refer to, to another one; the count of rejected samples too.
 * @return ST_OK; ST_TOO_BIG when together they pass a limit, to then holds a part of from; ST_NO_MEMORY.
 */
enum status profile_merge(struct profile *to, const struct profile *from, struct error *err) MUST_CHECK;

#endif
