/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_SAMPLE_LABELS_H
#define CAIRN_PROFILE_FORMATS_SAMPLE_LABELS_H

/** @file The label set of one sample under construction: keys are unique, a later value replaces an earlier one. */
#include "common/limits.h"
#include "profile-formats/profile.h"

struct sample_labels {
        struct profile_label items[LIMIT_LABELS_PER_SAMPLE]; /* sorted by key */
        uint32_t count;
};

/** ST_TOO_BIG past LIMIT_LABELS_PER_SAMPLE. */
enum status sample_labels_set(struct sample_labels *l, uint32_t key, uint32_t value, struct error *err) MUST_CHECK;

bool sample_labels_has(const struct sample_labels *l, uint32_t key) MUST_CHECK;

/** As sample_labels_set() for texts, which are added to the profile, truncated to LIMIT_LABEL_BYTES. */
enum status sample_labels_set_text(struct sample_labels *l, struct profile *p, const char *key, const char *value,
                                   size_t n, struct error *err) MUST_CHECK;

/** The greatest n up to max that does not split a UTF-8 sequence of text. */
size_t utf8_truncate(const void *text, size_t n, size_t max);

#endif
