/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_OPERATIONS_GATE_COSTS_H
#define CAIRN_QUERY_OPERATIONS_GATE_COSTS_H

/**
 * @file
 * The costs that the operation gate compares: of each function in each cluster of both sides. A cluster is a host (a
 * value of the label `cluster`), or if there are few, the same on both sides, a part of the time of one.
 *
 * Threads: those of the query.
 */
#include "profile-formats/number_map.h"
#include "query/engine/function_matching.h"
#include "query/engine/loaded_sides.h"

#define GATE_NO_PARTNER UINT32_MAX

/* The cost of a frame as the innermost one in a cluster. */
struct gate_cell {
        uint32_t name; /* set when functions are matched: index of the name in the frame table */
        uint32_t frame, cluster;
        int64_t value;
};

struct gate_side {
        struct query_selection selection; /* clipped to its samples; borrows the selector */
        double *sums;                     /* of clusters; owned */
        uint32_t *partners;               /* the cluster of the same host on the other side; GATE_NO_PARTNER. Owned */
        size_t count, capacity, partner_capacity;
        int64_t total;
        struct counted_samples samples;
        bool is_average;
};

struct gate_costs {
        struct query_call *q;
        struct frame_table frames;
        struct frame_filter filter;
        struct type_plan plan;
        struct frame_marks marks;
        struct label_list cluster;
        int64_t part_ns;   /* minimum; 0: hosts are not divided */
        bool has_parts;    /* clusters are parts of hosts */
        double seconds[2]; /* of a cluster */
        struct number_map cell_numbers[2];
        struct gate_cell *cells[2]; /* by side; owned */
        size_t cell_count[2], cell_capacity[2];
        struct gate_side sides[2];
        struct label_groups hosts;       /* of both sides */
        struct number_map host_clusters; /* of the side before: (host, part) */
        uint32_t *cluster_of_number;     /* of host_clusters; owned */
        size_t cluster_capacity, pair_count;
        char type[256], unit[32];
        struct memory_reservation memory;
};

/**
 * Load the costs of the sides before and after.
 * @param c  with q, plan, filter, cluster, hosts and part_ns; free with gate_costs_deinit(), also after a failure.
 */
enum status gate_costs_load(struct gate_costs *c, const struct query_selection *const selections[2]) MUST_CHECK;
void gate_costs_deinit(struct gate_costs *c);

#endif
