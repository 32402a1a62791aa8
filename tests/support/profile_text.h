/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_PROFILE_TEXT_H
#define CAIRN_TESTS_SUPPORT_PROFILE_TEXT_H

#include "profile-formats/profile.h"

/**
 * Formats each sample with everything it refers to as one line, and sorts the lines: equal texts mean equal profiles,
 * independent of the numbering of their tables. Owned.
 */
char *profile_to_text(const struct profile *p);

#endif
