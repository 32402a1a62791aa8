/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_SAMPLE_RULES_H
#define CAIRN_QUERY_SAMPLE_RULES_H

/**
 * @file
 * Retention rules of samples as users write them:
 *
 *     age=30d,size=200G      of all samples (sample_limits_parse())
 *     {env="dev"},age=3d     of those that a selector (query/selector.h) selects; up to LABEL_RULES_MAX
 *
 * A selector has braces here, and selects less than everything.
 *
 * Threads: one at a time.
 */
#include "common/buf.h"
#include "profile-store/store.h"
#include "query/selector.h"

/** Zeroed at first; not to be moved, since limits points into it. */
struct sample_rules {
        struct sample_limits limits; /* with rules */
        struct label_rule rules[LABEL_RULES_MAX];
        struct selector selectors[LABEL_RULES_MAX];
        struct buf text; /* the rules as they were added, a line each */
};

/** Add a rule. @return ST_OK; ST_USAGE, and r is unchanged; ST_NO_MEMORY. */
enum status sample_rules_add(struct sample_rules *r, const char *text, struct error *err) MUST_CHECK;
/** Add the rules of another one, in their order. As sample_rules_add(). */
enum status sample_rules_copy(struct sample_rules *to, const struct sample_rules *from, struct error *err) MUST_CHECK;
/** Whether both were made of the same texts in the same order. */
bool sample_rules_are_equal(const struct sample_rules *a, const struct sample_rules *b);
void sample_rules_deinit(struct sample_rules *r);
#define _cleanup_sample_rules_ _cleanup_(sample_rules_deinit)

#endif
