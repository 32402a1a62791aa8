/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_OPERATIONS_GATE_RULES_H
#define CAIRN_QUERY_OPERATIONS_GATE_RULES_H

/** @file The rules of the operation gate, and what became of them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/limits.h"

enum rule_subject { RULE_TOTAL, RULE_ANY_FUNCTION, RULE_FUNCTION };
enum rule_state { RULE_PASSED, RULE_FAILED, RULE_UNKNOWN };

struct gate_rule {
        char *text;    /* owned */
        char *subject; /* owned */
        enum rule_subject kind;
        double threshold; /* of the relative change, as 0.05 */
        enum rule_state state;
        double change;           /* of the total, or the greatest one that the rule is about; NAN: none */
        double smallest_effect;  /* that would have been found; NAN: not known */
        uint64_t function_count; /* of the name that it has */
        bool is_share_only;      /* the share of such a function rose by `change`, but not its cost */
};

/**
 * Parse rules that are separated by commas.
 * @param ret  room for LIMIT_GATE_RULES, zeroed; free with gate_rules_deinit(), also after a failure.
 * @return ST_USAGE for a malformed rule or too many; ST_NO_MEMORY.
 */
enum status gate_rules_parse(const char *text, struct gate_rule *ret, size_t *count_ret, struct error *err) MUST_CHECK;
void gate_rules_deinit(struct gate_rule *rules);

#endif
