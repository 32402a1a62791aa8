/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_STACK_TABLE_H
#define CAIRN_PROFILE_STORE_SCAN_STACK_TABLE_H

/**
 * @file
 * Totals by stack id. Sums are exact in 128 bits, so the order of additions does not matter; results saturate at 64
 * bits.
 *
 * Memory: 40 bytes per stack, up to twice that while growing, and 11 to 21 bytes of slots; reserved from the budget for
 * queries. Threads: one at a time.
 */
#include "common/memory/memory_budget.h"
#include "profile-store/scan.h"

struct stack_total {
        stack_id id;
        uint64_t samples;
        int64_t value_high; /* the sum in two's complement: high and low 64 bits */
        uint64_t value_low;
};

/* The tag tells nearly all unequal ids apart without reading their items, which are far from each other. */
struct stack_slot {
        uint32_t item; /* 1 + index of the item; 0: free */
        uint32_t tag;  /* bits of the id's hash that do not select the slot */
};

/* Initialize with stack_table_init(). */
struct stack_table {
        struct stack_total *items;
        size_t count, capacity;
        struct stack_slot *slots;
        size_t slot_count;
        struct memory_reservation memory;
};

void stack_table_init(struct stack_table *t);
void stack_table_deinit(struct stack_table *t);

/*
 * With millions of stacks the slot of an id and its item are two cache misses. Start to read the slot of an id that
 * will be added about STACK_TABLE_AHEAD additions later; halfway, its item.
 */
#define STACK_TABLE_AHEAD 16
void stack_table_prefetch_slot(const struct stack_table *t, const uint8_t id[16]);
void stack_table_prefetch_item(const struct stack_table *t, const uint8_t id[16]);

enum status stack_table_add(struct stack_table *t, const uint8_t id[16], __int128 value, uint64_t samples,
                            struct error *err) MUST_CHECK;

/** Add all totals of another table, which is emptied. @param meter  NULL: unlimited. */
enum status stack_table_merge(struct stack_table *into, struct stack_table *from, struct work_meter *meter,
                              struct error *err) MUST_CHECK;

/**
 * Move the totals, sorted by id, to ret in the memory of the table, which is empty afterwards.
 * @param ret  items, count and memory are set.
 */
enum status stack_table_finish(struct stack_table *t, struct work_meter *meter, struct stack_sums *ret,
                               struct error *err) MUST_CHECK;

#endif
