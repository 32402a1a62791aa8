/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PPROF_PPROF_TYPE_NAMES_H
#define CAIRN_PROFILE_FORMATS_PPROF_PPROF_TYPE_NAMES_H

/**
 * @file
 * Names of sample types in a pprof file. Readers find and merge types by name, so each must have one of its own.
 *
 * A type has the name of its sample type ("delay"). Of several with one name each has that of its profile before it
 * ("block_delay", "mutex_delay"); if that does not suffice, also the unit, the period type and a number. CPU time and
 * samples, which readers look for by name ("cpu", "samples"), keep theirs.
 */
#include "common/memory/arena.h"
#include "profile-formats/profile.h"

/** @param ret  as many names as the profile has types; in the arena. */
enum status name_pprof_types(const struct profile *p, struct arena *a, const char ***ret, struct error *err) MUST_CHECK;

#endif
