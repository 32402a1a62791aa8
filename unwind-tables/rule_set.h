/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UNWIND_TABLES_RULE_SET_H
#define CAIRN_UNWIND_TABLES_RULE_SET_H

/**
 * @file
 * Interned array of the rules that unwind tables share.
 *
 * Indexes are stable: rules are added, never moved or removed. The first
 * UNWIND_RULES_FIXED ones are those of unwind_row.h.
 *
 * Threads: one writer; readers need its lock, since the array may be
 * reallocated.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "common/hash/hash_table.h"
#include "unwind-tables/unwind_row.h"

#define UNWIND_RULES_RECENT 128 /* a power of two */

struct unwind_rules {
        struct unwind_rule *items; /* owned */
        size_t count;
        size_t capacity;
        struct hash_table by_rule;
        uint16_t recent[UNWIND_RULES_RECENT]; /* direct-mapped cache of indexes that were interned last */
};

enum status unwind_rules_init(struct unwind_rules *rules, struct error *err) MUST_CHECK;
/** A zeroed array is allowed. */
void unwind_rules_deinit(struct unwind_rules *rules);
#define _cleanup_unwind_rules_ _cleanup_(unwind_rules_deinit)

/** The index of a rule; false when it is absent. */
bool unwind_rules_find(const struct unwind_rules *rules, const struct unwind_rule *rule, uint16_t *ret);

/** The index of a rule, added if new. ST_TOO_BIG at UNWIND_RULES_MAX rules. */
enum status unwind_rules_intern(struct unwind_rules *rules, const struct unwind_rule *rule, uint16_t *ret) MUST_CHECK;

/** A short stable name, printed by cairn-agent unwind-table. */
const char *unwind_reason_to_text(enum unwind_unknown_reason reason);

#endif
