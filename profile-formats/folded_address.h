/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_FOLDED_ADDRESS_H
#define CAIRN_PROFILE_FORMATS_FOLDED_ADDRESS_H

/** @file A frame of a folded stack that is an address (profile-formats/folded.h lists the forms). */
#include "profile-formats/profile.h"

struct folded_address {
        uint64_t address;
        const char *object; /* borrowed from the frame */
        size_t object_size; /* 0: not named */
        struct build_id build_id;
};

/** False for a name; ret is then untouched. */
bool folded_address_parse(const char *text, size_t n, struct folded_address *ret);

#endif
