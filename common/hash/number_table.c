/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hash/number_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 256u
#define MOST_SLOTS (1u << 30)

void number_table_deinit(struct number_table *t)
{
        free(t->slots);
        *t = (struct number_table){ 0 };
}

void number_table_clear(struct number_table *t)
{
        if (t->slots)
                memset(t->slots, 0, t->slot_count * sizeof *t->slots);
        t->count = 0;
}

static bool grow_number_table(struct number_table *t)
{
        struct number_table bigger = { .slot_count = t->slot_count ? 2 * t->slot_count : FIRST_SLOTS,
                                       .count = t->count };

        if (bigger.slot_count > MOST_SLOTS)
                return false;
        bigger.shift = 32 - (unsigned)__builtin_ctz(bigger.slot_count);
        bigger.slots = calloc(bigger.slot_count, sizeof *bigger.slots);
        if (!bigger.slots)
                return false;
        for (uint32_t i = 0; i < t->slot_count; i++)
                if (t->slots[i].key)
                        bigger.slots[number_table_slot(&bigger, t->slots[i].key)] = t->slots[i];
        free(t->slots);
        *t = bigger;
        return true;
}

bool number_table_add(struct number_table *t, uint32_t key, uint32_t value)
{
        assert(key);
        if (2 * t->count >= t->slot_count && !grow_number_table(t))
                return false;
        t->slots[number_table_slot(t, key)] = (struct number_slot){ key, value };
        t->count++;
        return true;
}
