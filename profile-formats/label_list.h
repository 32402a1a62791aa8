/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_LABEL_LIST_H
#define CAIRN_PROFILE_FORMATS_LABEL_LIST_H

/** @file The labels of one sample while a decoder gathers them: keys unique, a later value replaces an earlier one.
 */
#include "common/limits.h"
#include "profile-formats/profile.h"

struct label_list {
        struct profile_label items[LIMIT_LABELS_PER_SAMPLE];
        uint32_t count;
};

/** ST_TOO_BIG past LIMIT_LABELS_PER_SAMPLE. */
enum status label_list_set(struct label_list *l, uint32_t key, uint32_t value, struct error *err) MUST_CHECK;

/** As label_list_set() for texts, which are added to the profile and cut at LIMIT_LABEL_BYTES. */
enum status label_list_set_text(struct label_list *l, struct profile *p, const char *key, const char *value,
                                size_t n, struct error *err) MUST_CHECK;

/** The greatest n up to max that does not split a UTF-8 sequence of text. */
size_t text_cut(const void *text, size_t n, size_t max);

#endif
