/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_RELABEL_RELABEL_H
#define CAIRN_RELABEL_RELABEL_H

/**
 * @file
 * Relabelling rules, as in relabel_configs of Prometheus: each changes the labels of a target (`cairn scrape`)
 * or of a sample (the agent), or drops it.
 *
 * Regular expressions match the whole text and have the syntax of common/text/regex_match.h.
 *
 * Threads: one at a time for one rule.
 * Source: Prometheus 3, "Configuration", relabel_config; Go, regexp.Regexp.Expand for replacements.
 */
#include <stdint.h>

#include "common/text/regex_match.h"
#include "relabel/label_set.h"

enum relabel_action {
        RELABEL_REPLACE,
        RELABEL_KEEP,
        RELABEL_DROP,
        RELABEL_KEEP_EQUAL,
        RELABEL_DROP_EQUAL,
        RELABEL_HASH_MOD,
        RELABEL_LABEL_MAP,
        RELABEL_LABEL_DROP,
        RELABEL_LABEL_KEEP,
        RELABEL_LOWERCASE,
        RELABEL_UPPERCASE,
};

struct relabel_rule {
        enum relabel_action action;
        char **sources; /* owned: names of labels */
        size_t source_count;
        char *separator;    /* owned; NULL: ";" */
        char *pattern;      /* owned; NULL: "(.*)" */
        char *replacement;  /* owned; NULL: "$1" */
        char *target_label; /* owned; NULL: none */
        uint64_t modulus;
        struct regex_match *regex; /* owned; compiled by relabel_rule_finish() */
};

void relabel_rule_deinit(struct relabel_rule *r);

/** Parse "replace", "keep", ...; ST_USAGE when unknown. */
enum status relabel_action_parse(const char *name, enum relabel_action *ret);

/** Fill in defaults, compile the pattern and check that the fields that the action requires are set. */
enum status relabel_rule_finish(struct relabel_rule *r, struct error *err) MUST_CHECK;

/**
 * Apply rules in order.
 * @param keep_ret  false: the target or sample is dropped; the labels are as before the rule that dropped it.
 * @return ST_OK; ST_TOO_BIG: a label is too long, or there are too many; ST_NO_MEMORY.
 */
enum status relabel_apply(const struct relabel_rule *rules, size_t count, struct label_set *l, bool *keep_ret,
                          struct error *err) MUST_CHECK;

#endif
