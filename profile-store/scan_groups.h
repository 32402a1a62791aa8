/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_GROUPS_H
#define CAIRN_PROFILE_STORE_SCAN_GROUPS_H

/**
 * @file
 * Sums by stack or time step and group. Samples are in one group when profile type, unit, period and the chosen labels
 * are equal. store_scan_sum() is faster when a single group suffices.
 *
 * Memory: texts are in the scan's arena; groups and sums count against LIMIT_SCAN_GROUPS, LIMIT_SCAN_GROUP_SUMS and the
 * memory of queries.
 * Threads: as profile-store/scan.h.
 */
#include "profile-formats/sample_count.h"
#include "profile-store/scan.h"

#define LIMIT_SCAN_GROUPS (1u << 20)
#define LIMIT_SCAN_GROUP_SUMS (1u << 24)

struct scan_group_by {
        const char *const *types; /* only samples of these types; type_count 0: all that the filter selects */
        size_t type_count;
        const char *const *labels; /* keys, as sent or in column spelling; ids as for struct label_matcher */
        size_t label_count;
        bool all_labels; /* instead of `labels`: every label of a sample */
        bool hidden;     /* with `all_labels`: also those of profile-formats/hidden_label.h */
        bool series;     /* also by the set of all labels: scan_group.series */
        /* Of sums by step: only samples with these stacks; NULL: all. Called by several threads, once per stack of a
         * row group. */
        bool (*selects_stack)(const void *context, const stack_id id);
        const void *stack_context;
        bool totals;       /* one sum per group instead of one per stack */
        bool times;        /* one sum per time (scan_group_sums_get_time()) instead of one per stack */
        uint32_t nth_time; /* with `times`: only one of so many distinct times, the same for all groups; 0: all */
        /* Sum by time step instead of stack; step_ns 0: by stack. Samples outside of the steps are ignored. */
        int64_t first_unix_ns, step_ns;
        size_t step_count;
};

struct scan_group_label {
        const char *name, *value; /* name in column spelling */
};

struct scan_group {
        const char *type, *unit;
        int64_t period;                        /* 0 unknown */
        const struct scan_group_label *labels; /* the requested ones in order, "" if missing; or all, sorted by name */
        uint32_t label_count;
        uint64_t series[2]; /* equal for equal sets of labels; 0 without series and all_labels */
};

struct scan_group_sum {
        uint32_t group;
        uint32_t item; /* index of the stack or time in `stacks`, or of the step; 0 for totals */
        int64_t value; /* saturates */
        uint64_t samples;
};

/* Groups are sorted by type, unit, period and labels, sums by group and item. */
struct scan_group_sums {
        struct scan_group *groups; /* owned */
        size_t group_count;
        struct scan_group_sum *items; /* owned */
        size_t count;
        struct stack_sums stacks; /* the distinct stacks by id, for store_scan_resolve(); unit and type are "" */
        struct memory_reservation memory; /* of all these */
};
void scan_group_sums_deinit(struct scan_group_sums *s); /* also fine on a zeroed one */

/** How values of each group become numbers of samples; owned by the caller. NULL: no memory. */
struct sample_count_rule *scan_group_sums_list_count_rules(const struct scan_group_sums *s);

/** The time in microseconds of an item, of sums by time. Items are sorted by time. */
int64_t scan_group_sums_get_time(const struct scan_group_sums *s, uint32_t item);

/** The series of the groups for which is_member is true, sorted; owned by the caller. */
struct scan_series_set {
        uint64_t (*items)[2];
        size_t count;
};
enum status scan_series_set_build(const struct scan_group_sums *s, bool (*is_member)(const char *type),
                                  struct scan_series_set *ret, struct error *err) MUST_CHECK;
bool scan_series_set_contains(const struct scan_series_set *set, const struct scan_group *g);

/** @return ST_TOO_BIG past a limit: group by fewer labels. */
enum status store_scan_sum_groups(struct store_scan *scan, const struct scan_filter *filter,
                                  const struct scan_group_by *by, struct scan_group_sums *ret,
                                  struct error *err) MUST_CHECK;

#endif
