/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_STRING_LIST_H
#define CAIRN_PROFILE_FORMATS_STRING_LIST_H

/** @file String table of an encoder: the strings of a profile with their numbers, followed by further strings. */
#include "profile-formats/number_map.h"
#include "profile-formats/profile.h"
#include "profile-formats/wire.h"

struct string_list {
        const struct profile *p; /* borrowed */
        uint32_t field;          /* number of the string table's field */
        struct number_map seen;  /* further strings, by hash */
        struct buf fields;       /* encoded further entries */
};

void string_list_init(struct string_list *l, const struct profile *p, uint32_t field);
void string_list_deinit(struct string_list *l);

/** Find or assign the number of a text. */
enum status string_list_get(struct string_list *l, const char *text, size_t n, uint32_t *ret,
                            struct error *err) MUST_CHECK;

#endif
