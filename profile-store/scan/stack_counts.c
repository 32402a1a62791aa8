/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/scan/stack_counts.h"

#include <stdlib.h>
#include <string.h>

#include "profile-formats/profile_type.h"
#include "profile-store/scan/scan_internal.h"

void stack_counts_deinit(struct stack_counts *c)
{
        scan_group_sums_deinit(&c->sums);
        free(c->samples);
        free(c->values);
        memory_release(&c->memory);
        *c = (struct stack_counts){ 0 };
}

#define NOT_COUNTED INT64_MIN /* least, as values may be negative */

/* Keep the greater number, and any number rather than one of stacks. */
static void keep_most(struct counted_samples *most, struct counted_samples count)
{
        if (most->are_stacks != count.are_stacks && most->whole != NOT_COUNTED) {
                if (most->are_stacks)
                        *most = count;
                return;
        }
        if (sample_count_compare(count, *most) > 0)
                *most = count;
}

/* The end of the sums whose groups have the type of sum `first`. */
static size_t find_end_of_type(const struct scan_group_sums *s, size_t first)
{
        const char *type = s->groups[s->items[first].group].type;
        size_t end = first + 1;

        while (end < s->count && strcmp(s->groups[s->items[end].group].type, type) == 0)
                end++;
        return end;
}

/* Add up the groups of each type, and keep the type with most samples. of_type: NOT_COUNTED, by stack. */
static enum status count_by_type(const struct scan_group_sums *s, const struct sample_count_rule *rules,
                                 struct counted_samples *of_type, struct counted_samples *most,
                                 struct work_meter *meter, struct error *err)
{
        enum status st = ST_OK;

        for (size_t first = 0, end; !st && first < s->count; first = end) {
                end = find_end_of_type(s, first);
                st = work_meter_add(meter, end - first, err);
                for (size_t i = first; i < end; i++) {
                        const struct scan_group_sum *sum = &s->items[i];
                        struct counted_samples *to = &of_type[sum->item],
                                               count = compute_sample_count(&rules[sum->group], sum->value,
                                                                            sum->samples);

                        if (to->whole == NOT_COUNTED)
                                *to = count;
                        else
                                sample_count_add(to, count);
                }
                for (size_t i = first; i < end; i++) { /* a stack has a sum for each group */
                        struct counted_samples *count = &of_type[s->items[i].item];

                        if (count->whole != NOT_COUNTED)
                                keep_most(&most[s->items[i].item], *count);
                        count->whole = NOT_COUNTED;
                }
        }
        return st;
}

enum status scan_group_sums_count_stacks(const struct scan_group_sums *s, const struct sample_count_rule *rules,
                                         struct work_meter *meter, struct counted_samples *ret, struct error *err)
{
        _cleanup_free_ struct counted_samples *of_type = calloc(s->stacks.count + 1, sizeof *of_type);

        if (!of_type)
                return error_no_memory(err);
        for (size_t i = 0; i < s->stacks.count; i++) /* each has a sum */
                ret[i].whole = of_type[i].whole = NOT_COUNTED;
        return count_by_type(s, rules, of_type, ret, meter, err);
}

/* Values of gauges are those of snapshots, whose sum means nothing. */
static void sum_values(struct stack_counts *c)
{
        const struct scan_group_sums *s = &c->sums;
        bool has_one_unit = true;

        for (size_t i = 0; i < s->count; i++) {
                int64_t *value = &c->values[s->items[i].item];

                if (__builtin_add_overflow(*value, s->items[i].value, value))
                        *value = s->items[i].value < 0 ? INT64_MIN : INT64_MAX;
        }
        for (size_t i = 0; i < s->group_count; i++)
                has_one_unit = has_one_unit && strcmp(s->groups[i].unit, s->groups[0].unit) == 0 &&
                               !profile_type_is_gauge(s->groups[i].type);
        if (s->group_count && has_one_unit && strlen(s->groups[0].unit) < sizeof c->unit)
                memcpy(c->unit, s->groups[0].unit, strlen(s->groups[0].unit) + 1);
}

enum status stack_counts_load(struct store_scan *scan, const struct scan_filter *filter, const struct scan_names *types,
                              struct stack_counts *ret, struct error *err)
{
        const struct scan_group_by by = { .types = types ? types->items : NULL,
                                          .type_count = types ? types->count : 0 };
        _cleanup_stack_counts_ struct stack_counts c = { .memory.use = MEMORY_QUERIES };
        _cleanup_free_ struct sample_count_rule *rules = NULL;
        enum status st = store_scan_sum_groups(scan, filter, &by, &c.sums, err);
        size_t n = c.sums.stacks.count + 1;

        if (!st)
                st = memory_reserve(&c.memory, n * (2 * sizeof *c.samples + sizeof *c.values), err);
        if (st)
                return st;
        rules = scan_group_sums_list_count_rules(&c.sums);
        c.samples = calloc(n, sizeof *c.samples);
        c.values = calloc(n, sizeof *c.values);
        if (!rules || !c.samples || !c.values)
                return error_no_memory(err);
        st = scan_group_sums_count_stacks(&c.sums, rules, scan->meter, c.samples, err);
        if (st)
                return st;
        sum_values(&c);
        *ret = c;
        c = (struct stack_counts){ 0 };
        return ST_OK;
}
