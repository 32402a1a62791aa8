/* SPDX-License-Identifier: Apache-2.0 */
#include "query/merged_profile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void merged_profile_deinit(struct merged_profile *m)
{
        free(m->entries);
        memory_release(&m->memory);
        scan_group_sums_deinit(&m->groups);
        location_frames_deinit(&m->locations);
        *m = (struct merged_profile){ 0 };
}

#define UNCOUNTED_ENTRIES 1024 /* up to this many, memory is not charged to the budget */

static enum status allocate_entries(struct merged_profile *m, size_t count, struct error *err)
{
        enum status st = ST_OK;

        m->memory.use = MEMORY_QUERIES;
        if (count > UNCOUNTED_ENTRIES)
                st = memory_reserve(&m->memory, count * sizeof *m->entries, err);
        if (st)
                return st;
        m->entries = calloc(count + 1, sizeof *m->entries);
        return m->entries ? ST_OK : error_no_memory(err);
}

/* ---- frames ---- */

/* Resolve and filter the stacks, and sum the entries that are kept. */
static enum status resolve_entries(struct store_scan *scan, const struct stack_sums *stacks,
                                   const struct merged_profile_request *q, struct merged_profile *m, struct error *err)
{
        _cleanup_free_ uint8_t *kept = NULL;
        size_t count = 0;
        enum status st = store_scan_resolve(scan, stacks, &m->stacks, err);

        if (!st)
                st = location_frames_build(q->frames, m->stacks, &m->locations, err);
        if (!st && frame_filter_is_set(q->filter))
                st = frame_filter_apply(q->filter, q->frames, m->stacks, &m->locations, &kept, err);
        if (st)
                return st;
        for (size_t i = 0; i < m->count; i++) {
                const struct merged_entry *e = &m->entries[i];

                add_wrapping(&m->selected_total, e->value);
                if (kept && !kept[e->stack])
                        continue;
                add_wrapping(&m->total, e->value);
                m->samples += e->samples;
                m->entries[count++] = *e;
        }
        m->count = count;
        return ST_OK;
}

/* ---- one group ---- */

static enum status load_stack_sums(struct store_scan *scan, const struct scan_filter *filter,
                                   const struct merged_profile_request *q, struct merged_profile *m, struct error *err)
{
        struct stack_sums sums = { 0 };
        uint32_t group;
        enum status st = label_groups_find_or_add(q->groups, NULL, &group, err);

        if (!st)
                st = store_scan_sum(scan, filter, &sums, err);
        if (!st)
                st = allocate_entries(m, sums.count, err);
        for (size_t i = 0; !st && i < sums.count; i++)
                m->entries[m->count++] =
                        (struct merged_entry){ (uint32_t)i, group, sums.items[i].value, sums.items[i].samples };
        if (!st) {
                memcpy(m->type, sums.type, sizeof m->type);
                memcpy(m->unit, sums.unit, sizeof m->unit);
                st = resolve_entries(scan, &sums, q, m, err);
        }
        stack_sums_deinit(&sums);
        return st;
}

/* ---- several groups, or converted types ---- */

static enum status load_entries(struct store_scan *scan, const struct scan_filter *filter,
                                const struct scan_group_by *by, struct merged_profile *m, struct error *err)
{
        enum status st = store_scan_sum_groups(scan, filter, by, &m->groups, err);

        if (st)
                return st;
        st = allocate_entries(m, m->groups.count, err);
        if (st)
                return st;
        for (size_t i = 0; i < m->groups.count; i++) {
                const struct scan_group_sum *s = &m->groups.items[i];

                m->entries[m->count++] = (struct merged_entry){ s->item, s->group, s->value, s->samples };
        }
        free(steal_ptr(m->groups.items));
        return ST_OK;
}

/* Convert values, and replace groups of the scan by label groups. */
static enum status convert_entries(const struct merged_profile_request *q, struct merged_profile *m, struct error *err)
{
        struct scan_series_set with_time = { 0 };
        size_t count = 0;
        enum status st = scan_series_set_build(&m->groups, is_cpu_time_type, &with_time, err);

        for (size_t i = 0; !st && i < m->count; i++) {
                struct merged_entry e = m->entries[i];
                const struct scan_group *g = &m->groups.groups[e.group];

                if (!type_plan_convert(q->plan, g, &with_time, &e.value))
                        continue;
                st = label_groups_find_or_add(q->groups, g->labels, &e.group, err);
                m->entries[count++] = e;
        }
        m->count = count;
        free(with_time.items);
        return st;
}

static enum status load_group_sums(struct store_scan *scan, const struct scan_filter *filter,
                                   const struct merged_profile_request *q, struct merged_profile *m, struct error *err)
{
        const struct label_list *labels = q->groups->labels;
        const struct scan_group_by by = { .types = q->plan->types,
                                          .type_count = q->plan->type_count,
                                          .labels = labels->names,
                                          .label_count = labels->count,
                                          .series = q->plan->by_series };
        enum status st = load_entries(scan, filter, &by, m, err);

        if (!st)
                st = convert_entries(q, m, err);
        if (!st && m->count) {
                snprintf(m->type, sizeof m->type, "%s", q->plan->type);
                type_plan_copy_unit(q->plan, m->unit, sizeof m->unit);
        }
        return st ? st : resolve_entries(scan, &m->groups.stacks, q, m, err);
}

enum status merged_profile_load(struct store_scan *scan, const struct query_selection *s,
                                const struct merged_profile_request *q, struct merged_profile *ret, struct error *err)
{
        struct merged_profile m = { .meter = q->frames->meter, .selection = s };
        const bool one_group = q->plan->type_count <= 1 && !q->plan->converts && !q->groups->labels->count;
        const struct scan_filter filter = query_selection_make_filter(s, one_group ? q->plan->type : NULL);
        enum status st =
                one_group ? load_stack_sums(scan, &filter, q, &m, err) : load_group_sums(scan, &filter, q, &m, err);

        if (st) {
                merged_profile_deinit(&m);
                return st;
        }
        scan_group_sums_deinit(&m.groups);
        for (size_t i = 0; i < m.count; i++)
                label_groups_add_value(q->groups, m.entries[i].group, q->side, m.entries[i].value,
                                       m.entries[i].samples);
        *ret = m;
        return ST_OK;
}

enum status merged_profile_load_groups(struct store_scan *scan, const struct query_selection *s,
                                       const struct scan_group_by *by, const struct merged_profile_request *q,
                                       struct merged_profile *ret, struct error *err)
{
        const struct scan_filter filter = query_selection_make_filter(s, NULL);
        struct merged_profile m = { .meter = q->frames->meter, .selection = s };
        enum status st = load_entries(scan, &filter, by, &m, err);

        if (!st)
                st = resolve_entries(scan, &m.groups.stacks, q, &m, err);
        if (st)
                merged_profile_deinit(&m);
        else
                *ret = m;
        return st;
}

enum status merged_profile_sort_by_group(struct merged_profile *m, const struct label_groups *groups,
                                         size_t **first_ret, struct error *err)
{
        _cleanup_memory_ struct memory_reservation memory = {
                .use = MEMORY_QUERIES
        }; /* entries exist twice while they are sorted */
        enum status st = m->memory.bytes ? memory_reserve(&memory, m->memory.bytes, err) : ST_OK;
        struct merged_entry *sorted;
        size_t *first;

        if (st)
                return st;
        first = calloc(groups->shown_count + (size_t)2, sizeof *first);
        sorted = calloc(m->count + 1, sizeof *sorted);
        if (!first || !sorted) {
                free(first);
                free(sorted);
                return error_no_memory(err);
        }
        for (size_t i = 0; i < m->count; i++)
                first[groups->shown_as[m->entries[i].group] + 2]++;
        for (uint32_t i = 1; i <= groups->shown_count; i++)
                first[i + 1] += first[i];
        for (size_t i = 0; i < m->count; i++)
                sorted[first[groups->shown_as[m->entries[i].group] + 1]++] = m->entries[i];
        assert(first[groups->shown_count] == m->count);
        free(m->entries);
        m->entries = sorted;
        *first_ret = first;
        return ST_OK;
}
