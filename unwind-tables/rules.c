/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind-tables/rules.h"

#include <string.h>
#include <xxhash.h>

/* Compared byte by byte. */
_Static_assert(sizeof(struct unwind_rule) == 24, "struct unwind_rule has no padding");
_Static_assert(sizeof(struct unwind_row) == 4, "struct unwind_row has no padding");

static const struct unwind_rule FIXED[UNWIND_RULES_FIXED] = {
        [UNWIND_RULE_GAP] = { .cfa = UNWIND_CFA_NONE },
        [UNWIND_RULE_STOP] = { .cfa = UNWIND_CFA_STOP },
        [UNWIND_RULE_FRAME_POINTER] = { .cfa = UNWIND_CFA_REGISTER, .base = UNWIND_BASE_FP, .cfa_offset = 16,
                                        .fp = UNWIND_AT_CFA, .fp_offset = -16, .ra = UNWIND_AT_CFA, .ra_offset = -8,
                                        .flags = UNWIND_FLAG_CHAIN },
        [UNWIND_RULE_GO] = { .cfa = UNWIND_CFA_REGISTER, .base = UNWIND_BASE_FP, .cfa_offset = 16, .fp = UNWIND_AT_CFA,
                             .fp_offset = -16, .ra = UNWIND_AT_CFA, .ra_offset = -8,
                             .flags = UNWIND_FLAG_CHAIN | UNWIND_FLAG_ANY_STACK },
        [UNWIND_RULE_FULL] = { .cfa = UNWIND_CFA_UNKNOWN, .why = UNWIND_WHY_RULES_FULL },
};

static size_t slot_of(const struct unwind_rules *rules, const struct unwind_rule *rule)
{
        size_t i = XXH3_64bits(rule, sizeof *rule) & (rules->slot_count - 1);

        while (rules->slots[i] && memcmp(&rules->items[rules->slots[i] - 1], rule, sizeof *rule) != 0)
                i = (i + 1) & (rules->slot_count - 1);
        return i;
}

/* Slots stay at most half full. */
static enum status grow(struct unwind_rules *rules)
{
        size_t capacity = rules->capacity ? rules->capacity * 2 : 256;
        struct unwind_rule *items = realloc(rules->items, capacity * sizeof *items);
        uint32_t *slots;

        if (!items)
                return ST_NO_MEMORY;
        rules->items = items;
        slots = calloc(capacity * 2, sizeof *slots);
        if (!slots)
                return ST_NO_MEMORY;
        free(rules->slots);
        rules->slots = slots;
        rules->slot_count = capacity * 2;
        rules->capacity = capacity;
        for (size_t i = 0; i < rules->count; i++)
                slots[slot_of(rules, &items[i])] = (uint32_t)i + 1;
        return ST_OK;
}

bool unwind_rules_find(const struct unwind_rules *rules, const struct unwind_rule *rule, uint16_t *ret)
{
        size_t slot = slot_of(rules, rule);

        if (rules->slots[slot])
                *ret = (uint16_t)(rules->slots[slot] - 1);
        return rules->slots[slot] != 0;
}

enum status unwind_rules_intern(struct unwind_rules *rules, const struct unwind_rule *rule, uint16_t *ret)
{
        size_t slot = slot_of(rules, rule);

        if (!rules->slots[slot]) {
                if (rules->count == UNWIND_RULES_MAX)
                        return ST_TOO_BIG;
                if (rules->count == rules->capacity) {
                        if (grow(rules))
                                return ST_NO_MEMORY;
                        slot = slot_of(rules, rule);
                }
                rules->items[rules->count++] = *rule;
                rules->slots[slot] = (uint32_t)rules->count;
        }
        *ret = (uint16_t)(rules->slots[slot] - 1);
        return ST_OK;
}

enum status unwind_rules_init(struct unwind_rules *rules, struct error *err)
{
        struct unwind_rules made = { 0 };
        uint16_t index;

        if (grow(&made)) {
                unwind_rules_deinit(&made);
                return error_no_memory(err);
        }
        for (size_t i = 0; i < UNWIND_RULES_FIXED; i++) {
                enum status st = unwind_rules_intern(&made, &FIXED[i], &index);

                (void)st; /* an empty array of 256 has room for these */
        }
        *rules = made;
        return ST_OK;
}

void unwind_rules_deinit(struct unwind_rules *rules)
{
        free(rules->items);
        free(rules->slots);
        *rules = (struct unwind_rules){ 0 };
}

const char *unwind_why_name(enum unwind_why why)
{
        static const char *const NAMES[UNWIND_WHY_COUNT] = {
                [UNWIND_WHY_NONE] = "none",
                [UNWIND_WHY_CFA_EXPRESSION] = "cfa-expression",
                [UNWIND_WHY_CFA_REGISTER] = "cfa-register",
                [UNWIND_WHY_FP] = "frame-pointer",
                [UNWIND_WHY_RA] = "return-address",
                [UNWIND_WHY_SP] = "stack-pointer",
                [UNWIND_WHY_OFFSET] = "offset",
                [UNWIND_WHY_MALFORMED] = "malformed",
                [UNWIND_WHY_RULES_FULL] = "rules-full",
        };

        return why < UNWIND_WHY_COUNT ? NAMES[why] : "?";
}
