/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_PROFILE_TEXT_H
#define CAIRN_TESTS_SUPPORT_PROFILE_TEXT_H

#include "profile-formats/profile.h"

/**
 * Every sample as one line with everything it refers to, the lines sorted: equal texts mean equal profiles, however
 * their tables are numbered. Owned.
 */
char *profile_to_text(const struct profile *p);

#endif
