/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_SAMPLE_RULES_H
#define CAIRN_QUERY_ENGINE_SAMPLE_RULES_H

/**
 * @file
 * Retention rules of samples as users write them:
 *
 *     age=30d,size=200G      of all samples (sample_limits_parse())
 *     {env="dev"},age=3d     of those matched by a selector (query/engine/selector.h); up to LABEL_RULES_MAX rules
 *
 * The selector must have braces, and must not match all samples.
 *
 * Threads: one at a time.
 */
#include "common/memory/buf.h"
#include "profile-store/profile_store.h"
#include "query/engine/selector.h"

/** Zeroed initially; must not be moved, since limits points into it. */
struct sample_rules {
        struct sample_limits limits; /* its rules point into this struct */
        struct label_rule rules[LABEL_RULES_MAX];
        struct selector selectors[LABEL_RULES_MAX];
        struct buf text; /* the rules as added, one per line */
};

/** Add a rule. @return ST_OK; ST_USAGE: r is unchanged; ST_NO_MEMORY. */
enum status sample_rules_add(struct sample_rules *r, const char *text, struct error *err) MUST_CHECK;
/** Add the rules of `from`, in order. Errors as sample_rules_add(). */
enum status sample_rules_copy(struct sample_rules *to, const struct sample_rules *from, struct error *err) MUST_CHECK;
/** Whether both have the same texts in the same order. */
bool sample_rules_are_equal(const struct sample_rules *a, const struct sample_rules *b);
void sample_rules_deinit(struct sample_rules *r);
#define _cleanup_sample_rules_ _cleanup_(sample_rules_deinit)

#endif
