/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_STRING_LIST_H
#define CAIRN_PROFILE_FORMATS_STRING_LIST_H

/** @file The string table of an encoder: the profile's strings under their own numbers, and further ones after
 * them. */
#include "profile-formats/number_map.h"
#include "profile-formats/profile.h"
#include "profile-formats/wire.h"

struct string_list {
        const struct profile *p; /* borrowed */
        uint32_t field;          /* of a string table's entry */
        struct number_map seen;  /* further strings, by hash */
        struct buf fields;       /* the further entries, as they follow the profile's */
};

void string_list_init(struct string_list *l, const struct profile *p, uint32_t field);
void string_list_deinit(struct string_list *l);

/** The number of a text, which is added when it is new. */
enum status string_list_get(struct string_list *l, const char *text, size_t n, uint32_t *ret,
                            struct error *err) MUST_CHECK;

#endif
