/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind-tables/rule_set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"

/* Compared byte by byte. */
_Static_assert(sizeof(struct unwind_rule) == 24, "struct unwind_rule has no padding");
_Static_assert(sizeof(struct unwind_row) == 4, "struct unwind_row has no padding");

static const struct unwind_rule FIXED[UNWIND_RULES_FIXED] = {
        [UNWIND_RULE_GAP] = { .cfa = UNWIND_CFA_NONE },
        [UNWIND_RULE_STOP] = { .cfa = UNWIND_CFA_STOP },
        [UNWIND_RULE_FRAME_POINTER] = { .cfa = UNWIND_CFA_REGISTER,
                                        .base = UNWIND_BASE_FP,
                                        .cfa_offset = 16,
                                        .fp = UNWIND_AT_CFA,
                                        .fp_offset = -16,
                                        .ra = UNWIND_AT_CFA,
                                        .ra_offset = -8,
                                        .flags = UNWIND_FLAG_CHAIN },
        [UNWIND_RULE_GO] = { .cfa = UNWIND_CFA_REGISTER,
                             .base = UNWIND_BASE_FP,
                             .cfa_offset = 16,
                             .fp = UNWIND_AT_CFA,
                             .fp_offset = -16,
                             .ra = UNWIND_AT_CFA,
                             .ra_offset = -8,
                             .flags = UNWIND_FLAG_CHAIN | UNWIND_FLAG_ANY_STACK },
        [UNWIND_RULE_FULL] = { .cfa = UNWIND_CFA_UNKNOWN, .reason = UNWIND_REASON_RULES_FULL },
};

static bool equal_rule(const void *context, uint32_t entry, const void *key, size_t size)
{
        const struct unwind_rules *rules = context;

        return memcmp(&rules->items[entry], key, size) == 0;
}

static bool find_rule(const struct unwind_rules *rules, uint32_t hash, const struct unwind_rule *rule, uint16_t *ret)
{
        uint32_t i;

        if (!hash_table_find(&rules->by_rule, hash, equal_rule, rules, rule, sizeof *rule, &i))
                return false;
        *ret = (uint16_t)i;
        return true;
}

bool unwind_rules_find(const struct unwind_rules *rules, const struct unwind_rule *rule, uint16_t *ret)
{
        return find_rule(rules, hash_table_hash(rule, sizeof *rule), rule, ret);
}

/* Neighbouring rows repeat a few rules: most are found here, without the keyed hash. */
static uint16_t *choose_recent_slot(struct unwind_rules *rules, const struct unwind_rule *rule)
{
        uint64_t words[sizeof *rule / sizeof(uint64_t)];

        memcpy(words, rule, sizeof words);
        words[0] = (words[0] ^ words[1] * 0x9e3779b97f4a7c15 ^ words[2] * 0xc2b2ae3d27d4eb4f) * 0x9e3779b97f4a7c15;
        return &rules->recent[words[0] >> 32 & (UNWIND_RULES_RECENT - 1)];
}

static enum status intern_rule(struct unwind_rules *rules, const struct unwind_rule *rule, uint16_t *ret)
{
        uint32_t hash = hash_table_hash(rule, sizeof *rule);
        enum status st;

        if (find_rule(rules, hash, rule, ret))
                return ST_OK;
        assert(rules->count == rules->by_rule.count);
        if (rules->count == UNWIND_RULES_MAX)
                return ST_TOO_BIG;
        if (!array_reserve(&rules->items, &rules->capacity, rules->count))
                return ST_NO_MEMORY;
        st = hash_table_reserve(&rules->by_rule, NULL);
        if (st)
                return st;
        hash_table_insert(&rules->by_rule, hash, (uint32_t)rules->count);
        *ret = (uint16_t)rules->count;
        rules->items[rules->count++] = *rule;
        return ST_OK;
}

enum status unwind_rules_intern(struct unwind_rules *rules, const struct unwind_rule *rule, uint16_t *ret)
{
        uint16_t *recent = choose_recent_slot(rules, rule);
        enum status st;

        if (rules->count && memcmp(&rules->items[*recent], rule, sizeof *rule) == 0) {
                *ret = *recent;
                return ST_OK;
        }
        st = intern_rule(rules, rule, ret);
        if (!st)
                *recent = *ret;
        return st;
}

enum status unwind_rules_init(struct unwind_rules *rules, struct error *err)
{
        struct unwind_rules made = { 0 };
        uint16_t index;

        for (size_t i = 0; i < UNWIND_RULES_FIXED; i++) {
                if (unwind_rules_intern(&made, &FIXED[i], &index)) {
                        unwind_rules_deinit(&made);
                        return error_no_memory(err);
                }
                assert(index == i);
        }
        *rules = made;
        return ST_OK;
}

void unwind_rules_deinit(struct unwind_rules *rules)
{
        free(rules->items);
        hash_table_deinit(&rules->by_rule);
        *rules = (struct unwind_rules){ 0 };
}

const char *unwind_reason_to_text(enum unwind_unknown_reason reason)
{
        static const char *const NAMES[UNWIND_REASON_COUNT] = {
                [UNWIND_REASON_NONE] = "none",
                [UNWIND_REASON_CFA_EXPRESSION] = "cfa-expression",
                [UNWIND_REASON_CFA_REGISTER] = "cfa-register",
                [UNWIND_REASON_FP] = "frame-pointer",
                [UNWIND_REASON_RA] = "return-address",
                [UNWIND_REASON_SP] = "stack-pointer",
                [UNWIND_REASON_OFFSET] = "offset",
                [UNWIND_REASON_MALFORMED] = "malformed",
                [UNWIND_REASON_RULES_FULL] = "rules-full",
        };

        return reason < UNWIND_REASON_COUNT ? NAMES[reason] : "?";
}
