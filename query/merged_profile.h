/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_MERGED_PROFILE_H
#define CAIRN_QUERY_MERGED_PROFILE_H

/** @file A selection summed by stack and group, resolved and filtered: the input of every view. Private to query/. */
#include "query/frame_filter.h"
#include "query/location_frames.h"
#include "query/label_groups.h"
#include "query/request.h"
#include "query/type_plan.h"

struct merged_entry {
        uint32_t stack; /* of stacks */
        uint32_t group; /* of the label groups, or of `groups` */
        int64_t value;
        uint64_t samples;
};

struct merged_profile {
        struct work_meter *meter;                /* of the frame table; NULL: unlimited */
        const struct query_selection *selection; /* borrowed */
        char type[256], unit[32];                /* "" when nothing was selected */
        struct merged_entry *entries;            /* owned; without those that the filter dropped */
        size_t count;
        struct memory_reservation memory; /* of entries */
        struct scan_group_sums groups;    /* only of merged_profile_load_groups() */
        const struct scan_stacks *stacks; /* of the scan */
        struct location_frames locations; /* without hidden frames */
        int64_t total;                    /* of the entries */
        uint64_t samples;
        int64_t selected_total; /* before the filter */
};

/** What is loaded and how; all borrowed. */
struct merge_request {
        const struct type_plan *plan;
        const struct frame_filter *filter;
        struct frame_table *frames;
        struct label_groups *groups; /* entries are in its groups, whose totals are those of the entries */
        unsigned side;               /* of the totals */
};

enum status merged_profile_load(struct store_scan *scan, const struct query_selection *s,
                                const struct merge_request *request, struct merged_profile *ret,
                                struct error *err) MUST_CHECK;

/** Without conversion: entries are in the groups of `by`, which are kept in ret->groups; type and unit are "". */
enum status merged_profile_load_groups(struct store_scan *scan, const struct query_selection *s,
                                       const struct scan_group_by *by, const struct merge_request *request,
                                       struct merged_profile *ret, struct error *err) MUST_CHECK;

/**
 * Sort the entries by the place at which their group is shown.
 * @param first_ret  shown_count + 1 positions: group i has entries[first[i] .. first[i+1]); owned by the caller.
 */
enum status merged_profile_sort_by_group(struct merged_profile *m, const struct label_groups *groups,
                                         size_t **first_ret, struct error *err) MUST_CHECK;

void merged_profile_deinit(struct merged_profile *m); /* also fine on a zeroed one */
#define _cleanup_merged_profile_ _cleanup_(merged_profile_deinit)

#endif
