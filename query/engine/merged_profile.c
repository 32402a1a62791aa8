/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A selection is loaded in three steps: the scan sums values by stack, or by group and stack; sums become entries,
 * converted to the type of the answer; resolve_entries() gives the stacks locations and frames, and drops those that
 * the filter rejects.
 *
 * Two ways for the first step. load_stack_sums() is the fast one, for one type without conversion, labels or
 * averages; it may find that the samples have several periods, and the other way is then taken. load_group_sums()
 * sums by label values, by period, and by series where conversion or averages need it; convert_entries() replaces
 * groups of the scan by those of the labels. Sums of gauges become averages over the snapshots of their series
 * (gauge_average.h).
 *
 * In the file: frames and filter; samples; one group; several groups; averages; the entry points; sort by group.
 * Stacks are borrowed from the scan.
 */
#include "query/engine/merged_profile.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/search.h"
#include "common/text/number_text.h"
#include "profile-formats/profile_type.h"
#include "query/engine/unit_text.h"

void merged_profile_deinit(struct merged_profile *m)
{
        free(m->entries);
        free(m->kept_ids);
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

static int compare_merged_ids(const void *x, const void *y)
{
        return memcmp(x, y, sizeof(stack_id));
}

static enum status keep_stack_ids(struct merged_profile *m, const struct stack_sums *stacks, struct error *err)
{
        enum status st = memory_reserve(&m->memory, m->count * sizeof *m->kept_ids, err);

        if (st)
                return st;
        m->kept_ids = calloc(m->count + 1, sizeof *m->kept_ids);
        if (!m->kept_ids)
                return error_no_memory(err);
        for (size_t i = 0; i < m->count; i++)
                memcpy(m->kept_ids[m->kept_count++], stacks->items[m->entries[i].stack].id, sizeof *m->kept_ids);
        qsort(m->kept_ids, m->kept_count, sizeof *m->kept_ids, compare_merged_ids);
        return ST_OK;
}

bool merged_profile_find_leaf(const struct merged_profile *m, uint32_t stack, uint32_t *ret)
{
        for (size_t j = m->stacks->first[stack]; j < m->stacks->first[stack + 1]; j++) {
                uint32_t location = m->stacks->indexes[j];

                if (m->locations.end[location] > m->locations.first[location]) {
                        *ret = m->locations.frames[m->locations.end[location] - 1];
                        return true;
                }
        }
        return false;
}

bool merged_profile_keeps_stack(const void *m, const stack_id id)
{
        const struct merged_profile *kept = m;

        return bsearch(id, kept->kept_ids, kept->kept_count, sizeof *kept->kept_ids, compare_merged_ids);
}

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

                add_magnitude(&m->magnitude, e->value);
                add_saturating(&m->selected_total, e->value);
                if (kept && !kept[e->stack])
                        continue;
                add_saturating(&m->total, e->value);
                sample_count_add(&m->samples, e->samples);
                m->entries[count++] = *e;
        }
        m->count = count;
        return q->wants_ids ? keep_stack_ids(m, stacks, err) : ST_OK;
}

/* ---- samples ---- */

void put_counted_samples(struct json_out *j, const char *key, const char *are_key, struct counted_samples samples)
{
        json_out_uint(j, key, sample_count_round(samples));
        if (samples.are_stacks)
                json_out_str(j, are_key, "stacks");
}

void merged_profile_put_samples(const struct merged_profile *m, bool is_after, struct json_out *j)
{
        put_counted_samples(j, is_after ? "samples_after" : "samples", is_after ? "samples_after_are" : "samples_are",
                            m->samples);
        if (m->is_average)
                json_out_uint(j, is_after ? "snapshots_after" : "snapshots", m->snapshots);
}

void merged_profile_put_total(const struct merged_profile *m, struct buf *ret)
{
        char value[40];

        buf_append_str(ret, format_value(m->total, m->unit, value, sizeof value));
        if (m->total != m->selected_total)
                buf_printf(ret, " of %s", format_value(m->selected_total, m->unit, value, sizeof value));
        if (m->is_average)
                buf_printf(ret, ", the average of %s", COUNTED(m->snapshots, "snapshot", "snapshots"));
        else if (m->samples.are_stacks)
                buf_printf(ret, " in %s", COUNTED(sample_count_round(m->samples), "stack", "stacks"));
        else
                buf_printf(ret, " in %s", COUNTED(sample_count_round(m->samples), "sample", "samples"));
}

/* ---- one group ---- */

/* *again_ret: nothing was loaded, since the samples have several periods and are to be summed by these. */
static enum status load_stack_sums(struct store_scan *scan, const struct scan_filter *filter,
                                   const struct merged_profile_request *q, struct merged_profile *m, bool *again_ret,
                                   struct error *err)
{
        struct sample_count_rule rule = { 0 };
        struct stack_sums sums = { 0 };
        uint32_t group;
        enum status st = label_groups_find_or_add(q->groups, NULL, &group, err);

        if (!st)
                st = store_scan_sum(scan, filter, &sums, err);
        if (!st && sums.several_periods) {
                stack_sums_deinit(&sums);
                *again_ret = true;
                return ST_OK;
        }
        if (!st)
                st = allocate_entries(m, sums.count, err);
        if (!st)
                rule = profile_type_get_count_rule(sums.type, sums.period);
        for (size_t i = 0; !st && i < sums.count; i++) {
                const struct stack_sum *s = &sums.items[i];

                m->entries[m->count++] = (struct merged_entry){ (uint32_t)i, group, s->value,
                                                                compute_sample_count(&rule, s->value, s->samples) };
        }
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
        _cleanup_free_ struct sample_count_rule *rules = NULL;
        enum status st = store_scan_sum_groups(scan, filter, by, &m->groups, err);

        if (!st)
                st = allocate_entries(m, m->groups.count, err);
        if (st)
                return st;
        rules = scan_group_sums_list_count_rules(&m->groups);
        if (!rules)
                return error_no_memory(err);
        for (size_t i = 0; i < m->groups.count; i++) {
                const struct scan_group_sum *s = &m->groups.items[i];

                m->entries[m->count++] =
                        (struct merged_entry){ s->item, s->group, s->value,
                                               compute_sample_count(&rules[s->group], s->value, s->samples) };
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

/* ---- averages of gauges ---- */

/* The snapshots of the gauges among the types of a load. */
struct gauge_list {
        struct gauge_snapshots *items; /* owned */
        size_t count;
        const char **labels; /* of the request, and those that identify series; owned */
        size_t label_count;
};

static void gauge_list_deinit(struct gauge_list *l)
{
        for (size_t i = 0; i < l->count; i++)
                gauge_snapshots_deinit(&l->items[i]);
        free(l->items);
        free(l->labels);
}

/* Load the snapshots, and let the scan group by series. @param by  its labels are replaced. */
static enum status gauge_list_load(struct store_scan *scan, const struct query_selection *s, struct scan_group_by *by,
                                   struct gauge_list *ret, struct error *err)
{
        size_t count = by->label_count;
        enum status st = ST_OK;

        ret->items = calloc(by->type_count + 1, sizeof *ret->items);
        if (!ret->items)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < by->type_count; i++)
                if (profile_type_is_gauge(by->types[i])) {
                        st = gauge_snapshots_load(scan, s, by->types[i], &ret->items[ret->count], err);
                        ret->count += !st;
                }
        for (size_t i = 0; i < ret->count; i++)
                count += ret->items[i].label_count;
        if (st || !ret->count || by->all_labels)
                return st;
        ret->labels = calloc(count + 1, sizeof *ret->labels);
        if (!ret->labels)
                return error_no_memory(err);
        for (size_t i = 0; i < by->label_count; i++)
                ret->labels[ret->label_count++] = by->labels[i];
        for (size_t i = 0; i < ret->count; i++)
                for (size_t k = 0; k < ret->items[i].label_count; k++)
                        ret->labels[ret->label_count++] = ret->items[i].labels[k];
        by->labels = ret->labels;
        by->label_count = ret->label_count;
        return ST_OK;
}

/* The average of one series of a gauge. */
struct series_average {
        uint64_t series;
        struct gauge_average average;
};

static int compare_series_averages(const void *x, const void *y)
{
        const struct series_average *a = x, *b = y;

        return a->series < b->series ? -1 : a->series > b->series;
}

/* Replace sums by averages. The entries of a series are in order of the requested labels, then of stacks. */
static enum status average_entries(struct merged_profile *m, const struct gauge_snapshots *g, struct error *err)
{
        const struct scan_group_sums *groups = &m->groups;
        _cleanup_free_ struct series_average *series = calloc(groups->group_count + 1, sizeof *series);
        _cleanup_free_ struct series_average **of_group = calloc(groups->group_count + 1, sizeof(*of_group));
        size_t count = 0;

        if (!series || !of_group)
                return error_no_memory(err);
        for (size_t i = 0; i < groups->group_count; i++)
                if (strcmp(groups->groups[i].type, g->type) == 0)
                        series[count++].series = gauge_snapshots_find_series(g, &groups->groups[i]);
        qsort(series, count, sizeof *series, compare_series_averages);
        for (size_t i = 0; i < count; i++)
                series[i].average.snapshots = gauge_snapshots_count(g, series[i].series, INT64_MIN, INT64_MAX);
        for (size_t i = 0; i < groups->group_count; i++) {
                const struct series_average key = { .series = gauge_snapshots_find_series(g, &groups->groups[i]) };
                size_t at;

                if (strcmp(groups->groups[i].type, g->type) != 0)
                        continue;
                at = find_lower_bound(k, 0, count, series[k].series < key.series);
                of_group[i] = &series[at];
                if (of_group[i]->series != key.series)
                        of_group[i] = NULL;
        }
        for (size_t i = 0; i < m->count; i++)
                if (of_group[m->entries[i].group])
                        m->entries[i].value =
                                gauge_average_add(&of_group[m->entries[i].group]->average, m->entries[i].value);
        return ST_OK;
}

/* Sum by group, and average the gauges. */
static enum status load_averaged_entries(struct store_scan *scan, const struct query_selection *s,
                                         const struct scan_filter *filter, const struct scan_group_by *by,
                                         struct merged_profile *m, struct error *err)
{
        _cleanup_(gauge_list_deinit) struct gauge_list gauges = { 0 };
        struct scan_group_by by_series = *by;
        enum status st = gauge_list_load(scan, s, &by_series, &gauges, err);

        if (!st)
                st = load_entries(scan, filter, &by_series, m, err);
        for (size_t i = 0; !st && i < gauges.count; i++) {
                st = average_entries(m, &gauges.items[i], err);
                m->snapshots += gauges.items[i].count;
                m->is_average = true;
        }
        for (size_t i = 0; !st && i < m->groups.group_count && !by->all_labels; i++)
                m->groups.groups[i].label_count = (uint32_t)by->label_count; /* the others are of series */
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
        enum status st = load_averaged_entries(scan, m->selection, filter, &by, m, err);

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
        const bool one_type = q->plan->type_count <= 1 && !q->plan->converts;
        bool by_group =
                !one_type || q->groups->labels->count || (q->plan->type && profile_type_is_gauge(q->plan->type));
        const struct scan_filter filter = query_selection_make_filter(s, one_type ? q->plan->type : NULL);
        enum status st = by_group ? ST_OK : load_stack_sums(scan, &filter, q, &m, &by_group, err);

        if (!st && by_group)
                st = load_group_sums(scan, &filter, q, &m, err);
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
        enum status st = load_averaged_entries(scan, s, &filter, by, &m, err);

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
