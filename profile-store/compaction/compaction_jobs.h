/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_COMPACTION_COMPACTION_JOBS_H
#define CAIRN_PROFILE_STORE_COMPACTION_COMPACTION_JOBS_H

/**
 * @file
 * Applies the plan to the partitions of a snapshot: each day of samples and stacks, and all locations.
 *
 * Threads: pure.
 */
#include "profile-store/compaction/compaction_plan.h"
#include "profile-store/tables/tables.h"

struct compaction_partition {
        enum table table;
        int64_t day; /* 0 for locations */
};

/* Input of the plan besides the snapshot. */
struct compaction_view {
        const struct compaction_rules *rules;
        bool is_full; /* COMPACTION_FULL for all partitions */
        int64_t now_s;
        bool (*is_postponed)(const void *context, const struct compaction_partition *p); /* NULL: none */
        bool (*is_unmergeable)(const void *context, const struct table_part *part);      /* NULL: none */
        const void *context;
};

/* One merge. */
struct compaction_job {
        struct compaction_partition partition;
        struct table_part **parts; /* the array is owned, the parts are of the snapshot */
        size_t part_count;
        uint64_t bytes;
};

/**
 * Choose the smallest merge that is due, so that small files do not wait for large ones.
 * @param files_due_ret, bytes_due_ret  of all merges that are due, including postponed ones.
 * @return ST_OK; ST_NOT_FOUND when none is due; ST_NO_MEMORY.
 */
enum status choose_compaction_job(const struct tables *t, const struct compaction_view *view,
                                  struct compaction_job *ret, uint64_t *files_due_ret, uint64_t *bytes_due_ret,
                                  struct error *err) MUST_CHECK;
void compaction_job_deinit(struct compaction_job *job);

/** Whether a merge of the partition is due, postponed or not. Also true when memory runs out. */
bool is_compaction_due(const struct tables *t, const struct compaction_view *view,
                       const struct compaction_partition *p);

/** "samples of 2026-01-31" or "locations". */
void describe_compaction_partition(const struct compaction_partition *p, char ret[static 48]);

#endif
