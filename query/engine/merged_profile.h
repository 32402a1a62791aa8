/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_MERGED_PROFILE_H
#define CAIRN_QUERY_ENGINE_MERGED_PROFILE_H

/** @file A selection summed by stack and group, resolved and filtered: the input of every view. Private to query/. */
#include "query/engine/frame_filter.h"
#include "query/engine/gauge_average.h"
#include "query/engine/label_groups.h"
#include "query/engine/location_frames.h"
#include "query/engine/request.h"
#include "query/engine/type_plan.h"

struct merged_entry {
        uint32_t stack; /* index in `stacks` */
        uint32_t group; /* index in the label groups, or in `groups` */
        int64_t value;
        struct counted_samples samples;
};

struct merged_profile {
        struct work_meter *meter;                /* of the frame table; NULL: unlimited */
        const struct query_selection *selection; /* borrowed */
        char type[256], unit[32];                /* "" when nothing was selected */
        struct merged_entry *entries;            /* owned; without dropped stacks */
        size_t count;
        struct memory_reservation memory; /* of entries */
        struct scan_group_sums groups;    /* set by merged_profile_load_groups() only */
        const struct scan_stacks *stacks; /* borrowed from the scan */
        stack_id *kept_ids;               /* of the entries, sorted; if requested. Owned */
        size_t kept_count;
        struct location_frames locations; /* without hidden frames */
        int64_t total;                    /* sum of the entries */
        value_magnitude magnitude;        /* before the filter */
        struct counted_samples samples;
        bool is_average;        /* values are averages of snapshots (query/engine/gauge_average.h), of a gauge */
        uint64_t snapshots;     /* of an average: of all its series */
        int64_t selected_total; /* total before the filter */
};

/** Options and destinations of a load; all borrowed. */
struct merged_profile_request {
        const struct type_plan *plan;
        const struct frame_filter *filter;
        struct frame_table *frames;
        struct label_groups *groups; /* entries refer to its groups and are added to their totals */
        unsigned side;               /* index of the totals */
        bool wants_ids;              /* kept_ids are wanted */
};

enum status merged_profile_load(struct store_scan *scan, const struct query_selection *s,
                                const struct merged_profile_request *request, struct merged_profile *ret,
                                struct error *err) MUST_CHECK;

/** Load without conversion: entries refer to the groups of `by`, kept in ret->groups; type and unit are "". */
enum status merged_profile_load_groups(struct store_scan *scan, const struct query_selection *s,
                                       const struct scan_group_by *by, const struct merged_profile_request *request,
                                       struct merged_profile *ret, struct error *err) MUST_CHECK;

/**
 * Sort the entries by the position at which their group is shown.
 * @param first_ret  shown_count + 1 positions: group i has entries[first[i] .. first[i+1]); owned by the caller.
 */
enum status merged_profile_sort_by_group(struct merged_profile *m, const struct label_groups *groups,
                                         size_t **first_ret, struct error *err) MUST_CHECK;

/** Find the innermost frame of a stack. @return false: all its frames are hidden. */
bool merged_profile_find_leaf(const struct merged_profile *m, uint32_t stack, uint32_t *ret);

/** Whether a stack is among kept_ids; for struct scan_group_by. @param m  struct merged_profile. */
bool merged_profile_keeps_stack(const void *m, const stack_id id);

/** Write the number of samples, and the second member if they are stacks. */
void put_counted_samples(struct json_out *j, const char *key, const char *are_key, struct counted_samples samples);
/** Write the member "samples", and those that say what samples and values are unless they were counted and summed. */
void merged_profile_put_samples(const struct merged_profile *m, bool is_after, struct json_out *j);

/** Append "VALUE in N samples", or as an average "VALUE, the average of N snapshots". */
void merged_profile_put_total(const struct merged_profile *m, struct buf *ret);

void merged_profile_deinit(struct merged_profile *m); /* also fine on a zeroed one */
#define _cleanup_merged_profile_ _cleanup_(merged_profile_deinit)

#endif
