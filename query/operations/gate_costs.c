/* SPDX-License-Identifier: Apache-2.0 */
/* In the file: clusters and cells; loading hosts and parts; the entry point. */
#include "query/operations/gate_costs.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/array.h"

#define MIN_HOSTS 8 /* with fewer on a side, hosts are divided into parts */
#define MAX_PARTS 24

/* ---- clusters and cells ---- */

static void clear_gate_costs(struct gate_costs *c)
{
        number_map_deinit(&c->host_clusters);
        c->host_clusters = (struct number_map){ 0 };
        c->pair_count = 0;
        for (unsigned side = 0; side < 2; side++) {
                number_map_deinit(&c->cell_numbers[side]);
                c->cell_numbers[side] = (struct number_map){ 0 };
                c->cell_count[side] = 0;
                c->sides[side].count = 0;
                c->sides[side].total = 0;
                c->sides[side].samples = (struct counted_samples){ 0 };
        }
}

void gate_costs_deinit(struct gate_costs *c)
{
        clear_gate_costs(c);
        for (unsigned side = 0; side < 2; side++) {
                free(c->cells[side]);
                free(c->sides[side].sums);
                free(c->sides[side].partners);
        }
        free(c->cluster_of_number);
        label_groups_deinit(&c->hosts);
        frame_marks_deinit(&c->marks);
        label_list_deinit(&c->cluster);
        type_plan_deinit(&c->plan);
        frame_filter_deinit(&c->filter);
        frame_table_deinit(&c->frames);
        memory_release(&c->memory);
}

static enum status add_gate_cell(struct gate_costs *c, unsigned side, uint32_t frame, uint32_t cluster, int64_t value)
{
        const struct number_key key = { { frame, cluster } };
        uint32_t number;
        bool fresh = false;
        enum status st = number_map_get(&c->cell_numbers[side], &key, &number, &fresh, c->q->err);

        if (!st && fresh) {
                st = array_charge_growth(&c->memory, c->cell_capacity[side], c->cell_count[side],
                                         sizeof *c->cells[side] + NUMBER_MAP_KEY_BYTES, c->q->err);
                if (!st && !array_reserve(&c->cells[side], &c->cell_capacity[side], c->cell_count[side]))
                        st = error_no_memory(c->q->err);
                if (!st)
                        c->cells[side][c->cell_count[side]++] =
                                (struct gate_cell){ .frame = frame, .cluster = cluster };
        }
        if (!st)
                add_saturating(&c->cells[side][number].value, value);
        return st;
}

static enum status reserve_clusters(struct gate_costs *c, struct gate_side *s, size_t more)
{
        if (more > LIMIT_GATE_CLUSTERS - s->count)
                return error_set(c->q->err, ST_TOO_BIG, "more than %u values of %s; choose another label with cluster",
                                 (unsigned)LIMIT_GATE_CLUSTERS, c->cluster.names[0]);
        if (!array_reserve_many(&s->sums, &s->capacity, s->count, more) ||
            !array_reserve_many(&s->partners, &s->partner_capacity, s->count, more))
                return error_no_memory(c->q->err);
        if (more)
                memset(s->sums + s->count, 0, more * sizeof *s->sums);
        for (size_t i = 0; i < more; i++)
                s->partners[s->count + i] = GATE_NO_PARTNER;
        return ST_OK;
}

/* Remember the cluster of a host and part of the side before; of the side after, find its partner. */
static enum status pair_gate_cluster(struct gate_costs *c, unsigned side, uint32_t part,
                                     const struct label_group *group, uint32_t cluster)
{
        struct scan_group_label values[LIMIT_GROUP_LABELS] = { 0 };
        struct number_key key = { { 0, part } };
        uint32_t host = 0, number = 0;
        bool fresh = false;
        enum status st;

        for (size_t i = 0; i < c->cluster.count; i++)
                values[i].value = group->values[i];
        st = label_groups_find_or_add(&c->hosts, values, &host, c->q->err);
        key.parts[0] = host;
        if (st || side) {
                if (!st && number_map_find(&c->host_clusters, &key, &number)) {
                        c->sides[0].partners[c->cluster_of_number[number]] = cluster;
                        c->sides[1].partners[cluster] = c->cluster_of_number[number];
                        c->pair_count++;
                }
                return st;
        }
        st = number_map_get(&c->host_clusters, &key, &number, &fresh, c->q->err);
        if (!st && !array_reserve(&c->cluster_of_number, &c->cluster_capacity, number))
                st = error_no_memory(c->q->err);
        if (!st)
                c->cluster_of_number[number] = cluster;
        return st;
}

/* Add the clusters of a loaded part of a side. */
static enum status add_gate_clusters(struct gate_costs *c, unsigned side, uint32_t part, const struct merged_profile *m,
                                     const struct label_groups *groups)
{
        struct gate_side *s = &c->sides[side];
        const uint32_t first = (uint32_t)s->count;
        enum status st = reserve_clusters(c, s, groups->count);

        for (uint32_t i = 0; !st && i < groups->count; i++)
                st = pair_gate_cluster(c, side, part, &groups->items[i], first + i);
        for (size_t i = 0; !st && i < m->count; i++) {
                const struct merged_entry *e = &m->entries[i];
                uint32_t frame;

                st = work_meter_add(c->q->meter, 16, c->q->err);
                s->sums[first + e->group] += (double)e->value;
                if (!st && merged_profile_find_leaf(m, e->stack, &frame))
                        st = add_gate_cell(c, side, frame, first + e->group, e->value);
        }
        if (st)
                return st;
        s->count += groups->count;
        add_saturating(&s->total, m->total);
        sample_count_add(&s->samples, m->samples);
        s->is_average = s->is_average || m->is_average;
        if (*m->type) {
                memcpy(c->type, m->type, sizeof c->type);
                memcpy(c->unit, m->unit, sizeof c->unit);
        }
        return function_matching_mark(&c->frames, m, side, &c->marks, c->q->err);
}

/* ---- loading hosts and parts ---- */

static enum status load_gate_part(struct gate_costs *c, unsigned side, uint32_t part, int64_t from_ns, int64_t to_ns)
{
        struct query_selection selection = c->sides[side].selection;
        _cleanup_merged_profile_ struct merged_profile m = { 0 };
        _cleanup_(label_groups_deinit) struct label_groups groups;
        const struct merged_profile_request request = {
                .plan = &c->plan, .filter = &c->filter, .frames = &c->frames, .groups = &groups
        };
        enum status st;

        selection.from_unix_ns = from_ns;
        selection.to_unix_ns = to_ns;
        label_groups_init(&groups, &c->cluster, c->q->meter);
        st = merged_profile_load(c->q->scan, &selection, &request, &m, c->q->err);
        return st ? st : add_gate_clusters(c, side, part, &m, &groups);
}

/* Load a side as equal parts of its time. */
static enum status load_gate_side(struct gate_costs *c, unsigned side, int64_t parts)
{
        struct gate_side *s = &c->sides[side];
        const int64_t from = s->selection.from_unix_ns, length = s->selection.to_unix_ns - from;
        enum status st = ST_OK;

        for (int64_t i = 0; !st && i < parts; i++)
                st = load_gate_part(c, side, (uint32_t)i, from + length / parts * i,
                                    i + 1 == parts ? from + length : from + length / parts * (i + 1));
        c->seconds[side] = (double)(length / parts) / 1e9;
        return st;
}

static int64_t count_gate_parts(const struct gate_costs *c, unsigned side)
{
        const struct query_selection *s = &c->sides[side].selection;
        int64_t parts = (s->to_unix_ns - s->from_unix_ns) / c->part_ns;

        return parts < 1 ? 1 : parts > MAX_PARTS ? MAX_PARTS : parts;
}

/*
 * Whether to divide hosts into parts. Parts of one host have in common what is special about it: that cancels out if
 * the hosts are the same on both sides; if they are not, only hosts are independent of each other. With one host on a
 * side there is nothing but its parts.
 */
static bool should_divide_hosts(const struct gate_costs *c)
{
        const size_t before = c->sides[0].count, after = c->sides[1].count;

        return c->part_ns && (before < MIN_HOSTS || after < MIN_HOSTS) &&
               (count_gate_parts(c, 0) > 1 || count_gate_parts(c, 1) > 1) &&
               (before < 2 || after < 2 || (c->pair_count == before && c->pair_count == after));
}

/* The hosts of both sides; if they are few, parts of them. */
static enum status load_gate_sides(struct gate_costs *c)
{
        enum status st = ST_OK;

        for (unsigned side = 0; !st && side < 2; side++)
                st = load_gate_side(c, side, 1);
        if (st || !should_divide_hosts(c))
                return st;
        c->has_parts = true;
        clear_gate_costs(c);
        for (unsigned side = 0; !st && side < 2; side++)
                st = load_gate_side(c, side, count_gate_parts(c, side));
        return st;
}

/* Samples may cover a part of the range only, as after a deployment: the rest is not a cost of 0. */
static enum status clip_gate_side(struct gate_costs *c, struct gate_side *s)
{
        const struct scan_filter filter = query_selection_make_filter(&s->selection, NULL);
        struct scan_span span;
        enum status st = store_scan_find_span(c->q->scan, &filter, &span, c->q->err);

        if (st || span.is_empty)
                return st;
        if (span.first_unix_ns > s->selection.from_unix_ns)
                s->selection.from_unix_ns = span.first_unix_ns;
        if (span.end_unix_ns < s->selection.to_unix_ns && span.end_unix_ns > s->selection.from_unix_ns)
                s->selection.to_unix_ns = span.end_unix_ns + 1;
        return ST_OK;
}

enum status gate_costs_load(struct gate_costs *c, const struct query_selection *const selections[2])
{
        enum status st = ST_OK;

        for (unsigned side = 0; !st && side < 2; side++) {
                c->sides[side].selection = *selections[side];
                st = clip_gate_side(c, &c->sides[side]);
        }
        return st ? st : load_gate_sides(c);
}
