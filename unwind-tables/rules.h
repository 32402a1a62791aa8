/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UNWIND_TABLES_RULES_H
#define CAIRN_UNWIND_TABLES_RULES_H

/**
 * @file
 * The array of distinct rules that unwind tables share.
 *
 * Indexes stay valid: rules are added, never moved or removed. It begins with
 * the UNWIND_RULES_FIXED rules of row.h.
 * Threads: one at a time adds; readers of rules that were there before need the
 * same lock, since the array may move.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "unwind-tables/row.h"

struct unwind_rules {
        struct unwind_rule *items; /* owned */
        size_t count;
        size_t capacity;
        uint32_t *slots; /* open addressing: index + 1, 0 free */
        size_t slot_count;
};

enum status unwind_rules_init(struct unwind_rules *rules, struct error *err) MUST_CHECK;
/** Also fine on a zeroed array. */
void unwind_rules_deinit(struct unwind_rules *rules);
#define _cleanup_unwind_rules_ _cleanup_(unwind_rules_deinit)

/** The index of a rule; false when it is not there. */
bool unwind_rules_find(const struct unwind_rules *rules, const struct unwind_rule *rule, uint16_t *ret);

/** The index of a rule, added when it is new. ST_TOO_BIG when the array has UNWIND_RULES_MAX rules already. */
enum status unwind_rules_intern(struct unwind_rules *rules, const struct unwind_rule *rule, uint16_t *ret) MUST_CHECK;

/** "cannot be said because of": a short stable name, as in cairn-agent unwind-table. */
const char *unwind_why_name(enum unwind_why why);

#endif
