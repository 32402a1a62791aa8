/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_STACK_COUNTS_H
#define CAIRN_PROFILE_STORE_SCAN_STACK_COUNTS_H

/**
 * @file
 * How many samples were taken of each stack, of samples of any types and units.
 *
 * Several types of one profile may count the same samples, such as a number and the CPU time: of a stack, those of the
 * type with most are counted. Stacks as sent are counted only where no type tells.
 *
 * Memory: 40 bytes per stack and those of the sums, from the budget for queries. Threads: the caller's.
 */
#include "profile-formats/sample_count.h"
#include "profile-store/scan_groups.h"

struct stack_counts {
        struct scan_group_sums sums;     /* by type, unit and period */
        struct counted_samples *samples; /* by stack of sums.stacks; owned */
        int64_t *values;                 /* by stack, likewise; of all types: meaningful if they have one unit */
        char unit[32];                   /* of values; "" when nothing matched, units differ or a type is a gauge */
        struct memory_reservation memory;
};

void stack_counts_deinit(struct stack_counts *c); /* also fine on a zeroed one */
#define _cleanup_stack_counts_ _cleanup_(stack_counts_deinit)

/**
 * Count the samples of each stack of sums by stack.
 * @param ret  room for one per stack; undefined after a failure.
 */
enum status scan_group_sums_count_stacks(const struct scan_group_sums *s, const struct sample_count_rule *rules,
                                         struct work_meter *meter, struct counted_samples *ret,
                                         struct error *err) MUST_CHECK;

/** @param types  only samples of these; NULL: all that the filter selects. */
enum status stack_counts_load(struct store_scan *scan, const struct scan_filter *filter, const struct scan_names *types,
                              struct stack_counts *ret, struct error *err) MUST_CHECK;

#endif
