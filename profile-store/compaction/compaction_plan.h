/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_COMPACTION_COMPACTION_PLAN_H
#define CAIRN_PROFILE_STORE_COMPACTION_COMPACTION_PLAN_H

/**
 * @file
 * Which files of one partition are merged next.
 *
 * A file of at least small_bytes is final, except that a last small file (R = 1, not an open day) is merged into the
 * smallest final one. Of the other files a merge takes some with the fewest rows.
 *
 * While the partition receives files, a merge is due when there are more than COMPACTION_SMALL_FILES of them. Of all
 * prefixes of the files, sorted by rows, the one is merged whose output has the most rows relative to its largest
 * input, if that is 5/4 or more. Flushes of equal size are thus merged nine at a time, then eight, then seven, and so
 * on, and the outputs of these merges in the same way. A row is rewritten about w times, where C(8 + w, w) is the
 * number of flushes in a final file: 4 times for 500 flushes, 6 times for 3,000. In simulations that is within 3% of
 * the minimum for at most 8 files.
 *
 * Otherwise as many files as possible are merged, once together they have at least R times the rows of the largest of
 * them. R is
 *
 *     2     after COMPACTION_IDLE_S without new files
 *     9/8   for a closed day, after COMPACTION_QUIET_S without new files: one merge of all small files
 *     1     for a closed day after COMPACTION_SETTLED_S, or for a full compaction: any two files
 *
 * A file dated in the future (the clock was wrong) is ignored when the time of the last new file is determined.
 *
 * Files that together become final (twice small_bytes) are merged at once: their rows are not merged again.
 *
 * Threads: pure.
 * Source: Mathieu et al., "Bigtable Merge Compaction", 2014 (binomial compaction, which has that minimum).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define COMPACTION_SMALL_FILES 8 /* of a partition that receives files */
#define COMPACTION_IDLE_S 300
#define COMPACTION_QUIET_S 600
#define COMPACTION_SETTLED_S 21600

struct compaction_file {
        uint64_t bytes, rows;
        uint64_t memory;     /* estimated memory for merging it */
        int64_t added_s;     /* Unix time of the commit that added it */
        bool is_unmergeable; /* damaged, or too large for the memory: skipped */
};

struct compaction_rules {
        uint64_t small_bytes;  /* smaller files are merged */
        uint64_t output_bytes; /* larger outputs are split into files of about this size */
        uint64_t job_bytes;    /* maximum input of one merge */
        size_t job_files;
        uint64_t job_memory;
};

extern const struct compaction_rules compaction_default_rules;

enum compaction_mode {
        COMPACTION_OPEN,   /* the partition may still receive files as part of normal operation */
        COMPACTION_CLOSED, /* a day that has passed */
        COMPACTION_FULL,   /* merge all small files now */
};

/**
 * Choose the files of the next merge.
 * @param chosen  room for count indexes of files.
 * @return the number chosen: 0 when nothing is due, else at least 2; SIZE_MAX when memory runs out.
 */
size_t compaction_plan(const struct compaction_file *files, size_t count, enum compaction_mode mode, int64_t now_s,
                       const struct compaction_rules *rules, size_t *chosen);

/** Number of output files of a merge of this size. */
unsigned compaction_count_outputs(uint64_t bytes, const struct compaction_rules *rules);

#endif
