/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_OBJECT_RETENTION_H
#define CAIRN_DEBUGINFO_STORE_OBJECT_RETENTION_H

/**
 * @file
 * Retention rules: how long objects are kept.
 *
 * A rule is text of comma-separated parts. Selectors are tag=GLOB, token=GLOB, source=upload|upstream and
 * kind=debuginfo|executable (all given ones must match; none selects all objects). Bounds are age=TIME since they were
 * stored, unused=TIME since their last use, and size=BYTES on disk for all selected objects together; or "keep", for no
 * bound. TIME is a number with s, m, h, d, w or y; BYTES is a number with an optional K, M, G or T (powers of 1024).
 *
 * The first rule that selects an object applies to it; an object that no rule selects is kept.
 *
 * Threads: any.
 */
#include "debuginfo-store/debuginfo_store.h"

#define RETENTION_RULES_MAX 64

struct retention_rule {
        char tag[OBJECT_TAG_SIZE], token[OBJECT_TAG_SIZE]; /* glob(7) patterns; "": any */
        const char *source, *kind;                         /* static names; NULL: any */
        uint64_t age_s, unused_s;                          /* 0: no bound, also for size_bytes */
        uint64_t size_bytes;
};

enum status retention_rule_parse(const char *text, struct retention_rule *ret, struct error *err) MUST_CHECK;

bool retention_rules_are_equal(const struct retention_rule *a, const struct retention_rule *b);

/** Parse all rules; ST_USAGE if there are more than RETENTION_RULES_MAX. */
enum status retention_rules_parse(const char *const *texts, size_t count,
                                  struct retention_rule ret[static RETENTION_RULES_MAX], struct error *err) MUST_CHECK;

/** Index of the rule that applies to the object; count if none does. */
size_t retention_find_rule(const struct retention_rule *rules, size_t count, const struct stored_object *object);

#endif
