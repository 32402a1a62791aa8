/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/scan/stack_table.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash/hash_table.h"
#include "common/memory/huge_pages.h"

#define LEAST_SLOTS 1024 /* these, and half as many items, are not reserved: small queries need no budget */

void stack_table_init(struct stack_table *t)
{
        *t = (struct stack_table){ .memory.use = MEMORY_QUERIES };
}

void stack_table_deinit(struct stack_table *t)
{
        free(t->items);
        free(t->slots);
        memory_release(&t->memory);
        t->items = NULL;
        t->slots = NULL;
        t->count = t->capacity = t->slot_count = 0;
}

static uint32_t *find_stack_slot(const struct stack_table *t, const uint8_t id[16])
{
        size_t i = keyed_hash_id(id) & (t->slot_count - 1); /* ids are hashes of content that senders choose */

        while (t->slots[i] && memcmp(t->items[t->slots[i] - 1].id, id, sizeof(stack_id)) != 0)
                i = (i + 1) & (t->slot_count - 1);
        return &t->slots[i];
}

static enum status grow_slots(struct stack_table *t, struct error *err)
{
        size_t count = t->slot_count ? t->slot_count * 2 : LEAST_SLOTS;
        uint32_t *slots;
        enum status st = t->slot_count ? memory_reserve(&t->memory, count * sizeof *slots, err) : ST_OK;

        if (st)
                return st;
        slots = calloc_huge(count, sizeof *slots);
        if (!slots)
                return error_no_memory(err);
        if (t->slot_count > LEAST_SLOTS)
                memory_shrink(&t->memory, t->memory.bytes - t->slot_count * sizeof *slots);
        free(t->slots);
        t->slots = slots;
        t->slot_count = count;
        for (size_t i = 0; i < t->count; i++)
                *find_stack_slot(t, t->items[i].id) = (uint32_t)(i + 1);
        return ST_OK;
}

static enum status grow_items(struct stack_table *t, struct error *err)
{
        size_t capacity = t->capacity ? t->capacity * 2 : LEAST_SLOTS / 2;
        struct stack_total *items;
        enum status st;

        if (capacity > UINT32_MAX / 2)
                return error_set(err, ST_TOO_BIG, "more than %u distinct stacks; narrow the time range or the labels",
                                 UINT32_MAX / 2);
        st = t->capacity ? memory_reserve(&t->memory, (capacity - t->capacity) * sizeof *items, err) : ST_OK;
        if (st)
                return st;
        items = realloc(t->items, capacity * sizeof *items);
        if (!items)
                return error_no_memory(err);
        advise_huge_pages(items, capacity * sizeof *items);
        t->items = items;
        t->capacity = capacity;
        return ST_OK;
}

static void add_to_total(struct stack_total *to, __int128 value, uint64_t samples)
{
        unsigned __int128 sum =
                ((unsigned __int128)(uint64_t)to->value_high << 64 | to->value_low) + (unsigned __int128)value;

        to->value_high = (int64_t)(uint64_t)(sum >> 64);
        to->value_low = (uint64_t)sum;
        to->samples += samples;
}

enum status stack_table_add(struct stack_table *t, const uint8_t id[16], __int128 value, uint64_t samples,
                            struct error *err)
{
        uint32_t *slot;
        enum status st = ST_OK;

        if (2 * t->count >= t->slot_count)
                st = grow_slots(t, err);
        if (!st && t->count == t->capacity)
                st = grow_items(t, err);
        if (st)
                return st;
        slot = find_stack_slot(t, id);
        if (!*slot) {
                memcpy(t->items[t->count].id, id, sizeof(stack_id));
                t->items[t->count].samples = t->items[t->count].value_low = 0;
                t->items[t->count].value_high = 0;
                *slot = (uint32_t)++t->count;
        }
        add_to_total(&t->items[*slot - 1], value, samples);
        return ST_OK;
}

static __int128 get_total_value(const struct stack_total *t)
{
        return (__int128)((unsigned __int128)(uint64_t)t->value_high << 64 | t->value_low);
}

enum status stack_table_merge(struct stack_table *into, struct stack_table *from, struct work_meter *meter,
                              struct error *err)
{
        enum status st = ST_OK;

        if (!into->count) {
                struct stack_table before = *into;

                *into = *from;
                *from = before;
                return ST_OK;
        }
        for (size_t i = 0; !st && i < from->count; i++) {
                st = work_meter_add(meter, 8, err);
                if (!st)
                        st = stack_table_add(into, from->items[i].id, get_total_value(&from->items[i]),
                                             from->items[i].samples, err);
        }
        stack_table_deinit(from);
        return st;
}

static int compare_sum_ids(const void *a, const void *b, void *context)
{
        (void)context;
        return memcmp(((const struct stack_sum *)a)->id, ((const struct stack_sum *)b)->id, sizeof(stack_id));
}

void stack_sums_deinit(struct stack_sums *s)
{
        free(s->items);
        memory_release(&s->memory);
        s->items = NULL;
        s->count = 0;
}

/* Shrink the items to the sums, which stay reserved. */
static void hand_over_items(struct stack_table *t, struct stack_sum *sums, struct stack_sums *ret)
{
        size_t counted = t->capacity > LEAST_SLOTS / 2 ? t->count * sizeof *sums : 0;
        struct stack_sum *smaller = t->count ? realloc(sums, t->count * sizeof *sums) : sums;

        ret->items = smaller ? smaller : sums;
        ret->count = t->count;
        memory_shrink(&t->memory, counted);
        ret->memory = t->memory;
        t->memory.bytes = 0;
        t->items = NULL;
        stack_table_deinit(t);
}

enum status stack_table_finish(struct stack_table *t, struct work_meter *meter, struct stack_sums *ret,
                               struct error *err)
{
        struct stack_sum *sums = (struct stack_sum *)(void *)t->items;
        size_t count = t->count;
        enum status st;

        _Static_assert(sizeof(struct stack_sum) <= sizeof(struct stack_total), "sums are made in place");
        for (size_t i = 0; i < count; i++) {
                struct stack_total total = t->items[i];
                __int128 value = get_total_value(&total);
                struct stack_sum sum = { .samples = total.samples,
                                         .value = value > INT64_MAX   ? INT64_MAX
                                                  : value < INT64_MIN ? INT64_MIN
                                                                      : (int64_t)value };

                memcpy(sum.id, total.id, sizeof sum.id);
                memcpy(&sums[i], &sum, sizeof sum);
        }
        st = count ? work_meter_sort(meter, sums, count, sizeof *sums, compare_sum_ids, NULL, err) : ST_OK;
        if (st)
                return st;
        hand_over_items(t, sums, ret);
        return ST_OK;
}
