/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_RETENTION_H
#define CAIRN_DEBUGINFO_STORE_RETENTION_H

/**
 * @file
 * How long objects are kept, as rules.
 *
 * A rule is text of comma-separated parts. It selects objects by label=GLOB,
 * token=GLOB, source=upload|upstream, kind=debuginfo|executable (all of those
 * given must fit; none given selects all), and bounds them: age=TIME since
 * they were stored, unused=TIME since their last use, size=BYTES on disk for
 * all that it selects together; or "keep", for no bound. TIME is a number with
 * s, m, h, d, w or y; BYTES one with K, M, G or T (powers of 1024) or nothing.
 *
 * The first rule that selects an object is the one that counts for it; an
 * object that no rule selects is kept.
 *
 * Threads: any.
 */
#include "debuginfo-store/store.h"

#define RETENTION_RULES_MAX 64

struct retention_rule {
        char label[OBJECT_LABEL_SIZE], token[OBJECT_LABEL_SIZE]; /* glob(7) patterns; "" any */
        const char *source, *kind;                               /* static names; NULL any */
        uint64_t age_s, unused_s;                                /* 0: no bound, as with size */
        uint64_t size_bytes;
};

enum status retention_rule_parse(const char *text, struct retention_rule *ret, struct error *err) MUST_CHECK;

/** All of them; ST_USAGE when they are more than RETENTION_RULES_MAX. */
enum status retention_rules_parse(const char *const *texts, size_t count, struct retention_rule ret[static RETENTION_RULES_MAX],
                                  struct error *err) MUST_CHECK;

/** The number of the rule that counts for the object; count when none does. */
size_t retention_rule_of(const struct retention_rule *rules, size_t count, const struct stored_object *object);

#endif
