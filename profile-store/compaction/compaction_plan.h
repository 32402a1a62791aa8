/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_COMPACTION_COMPACTION_PLAN_H
#define CAIRN_PROFILE_STORE_COMPACTION_COMPACTION_PLAN_H

/**
 * @file
 * Which files of one partition are merged next: size-tiered compaction.
 *
 * A file of at least small_bytes is final, except that a last small file (R = 1, not an open day) joins the smallest
 * final one. Of the others the files with the fewest rows are merged, as many as possible, when together they have at
 * least R times the rows of the largest of them. Each merge thus puts a row into a file at least R times as large, so a
 * row is rewritten at most log_R(rows of a final file / rows of a flush) times. R is
 *
 *     10    while the partition receives files
 *     2     once it received none for COMPACTION_IDLE_S
 *     9/8   for a day that is over, once it received none for COMPACTION_QUIET_S: one merge of all small files
 *     1     the same after COMPACTION_SETTLED_S, or when all is to be compacted: any two files
 *
 * A file dated in the future, by a clock that was wrong, says nothing about when the partition received files.
 *
 * Files that together become final ones (twice small_bytes) are merged whatever R is: those rows are not merged again.
 *
 * Threads: pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define COMPACTION_IDLE_S 300
#define COMPACTION_QUIET_S 600
#define COMPACTION_SETTLED_S 21600

struct compaction_file {
        uint64_t bytes, rows;
        uint64_t memory;     /* to merge it, estimated */
        int64_t added_s;     /* Unix time of the commit that added it */
        bool is_unmergeable; /* damaged, or too large for the memory: it is left alone */
};

struct compaction_rules {
        uint64_t small_bytes;  /* smaller files are merged */
        uint64_t output_bytes; /* a merge of more is split into files of about this size */
        uint64_t job_bytes;    /* input of one merge at most */
        size_t job_files;
        uint64_t job_memory;
};

extern const struct compaction_rules compaction_default_rules;

enum compaction_mode {
        COMPACTION_OPEN,   /* the partition may still receive files as part of normal operation */
        COMPACTION_CLOSED, /* a day that is over */
        COMPACTION_FULL,   /* merge all small files now */
};

/**
 * Choose the files of the next merge.
 * @param chosen  room for count indexes of files.
 * @return how many were chosen: 0 when nothing is due, else at least 2; SIZE_MAX without memory.
 */
size_t compaction_plan(const struct compaction_file *files, size_t count, enum compaction_mode mode, int64_t now_s,
                       const struct compaction_rules *rules, size_t *chosen);

/** The number of files that a merge of so many bytes writes. */
unsigned compaction_count_outputs(uint64_t bytes, const struct compaction_rules *rules);

#endif
