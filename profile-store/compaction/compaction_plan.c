/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/compaction/compaction_plan.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "common/limits.h"

const struct compaction_rules compaction_default_rules = {
        .small_bytes = MiB(64),
        .output_bytes = MiB(160),
        .job_bytes = MiB(512),
        .job_files = 64,
        .job_memory = MiB(256),
};

/* Ratios of output to largest input, in eighths. */
enum { RATIO_NONE = 0, RATIO_ANY = 8, RATIO_CLOSED = 9, RATIO_CROWDED = 10, RATIO_IDLE = 16 };

struct planned_file {
        uint64_t rows, bytes;
        size_t index;
};

static int compare_planned_files(const void *a, const void *b)
{
        const struct planned_file *x = a, *y = b;

        if (x->rows != y->rows)
                return x->rows < y->rows ? -1 : 1;
        return (x->index > y->index) - (x->index < y->index);
}

/* A file without a row count in the log is estimated from its size. */
static uint64_t count_planned_rows(const struct compaction_file *f)
{
        return f->rows ? f->rows : 1 + f->bytes / 64;
}

/* Seconds since a file was last added to the partition. */
static int64_t measure_quiet(const struct compaction_file *files, size_t count, int64_t now_s)
{
        int64_t last = 0;

        for (size_t i = 0; i < count; i++)
                if (files[i].added_s > last && files[i].added_s - now_s < COMPACTION_IDLE_S)
                        last = files[i].added_s;
        return now_s - last;
}

static unsigned choose_ratio(enum compaction_mode mode, int64_t quiet_s)
{
        if (mode == COMPACTION_FULL || (mode == COMPACTION_CLOSED && quiet_s >= COMPACTION_SETTLED_S))
                return RATIO_ANY;
        if (mode == COMPACTION_CLOSED && quiet_s >= COMPACTION_QUIET_S)
                return RATIO_CLOSED;
        return quiet_s >= COMPACTION_IDLE_S ? RATIO_IDLE : RATIO_NONE;
}

/* Length of the prefix of the files, sorted by rows, that is worth a merge; 0 if none is. */
static size_t choose_prefix(const struct compaction_file *files, const struct planned_file *small, size_t count,
                            unsigned ratio, const struct compaction_rules *rules)
{
        uint64_t bytes = 0, rows = 0, memory = 0;
        size_t longest = 0, best = 0;
        double most = RATIO_CROWDED / 8.0;

        for (size_t i = 0; i < count && i < rules->job_files; i++) {
                memory += files[small[i].index].memory;
                bytes += small[i].bytes;
                rows += small[i].rows;
                if (bytes > rules->job_bytes || (i >= 2 && memory > rules->job_memory))
                        break;
                if (i == 0)
                        continue;
                if ((ratio && rows * 8 >= small[i].rows * ratio) || bytes >= 2 * rules->small_bytes)
                        longest = i + 1;
                if ((double)rows >= most * (double)small[i].rows) {
                        most = (double)rows / (double)small[i].rows;
                        best = i + 1;
                }
        }
        return longest || count <= COMPACTION_SMALL_FILES ? longest : best;
}

/* The smallest final file that a single small file can be merged into; SIZE_MAX without one. */
static size_t find_smallest_final(const struct compaction_file *files, size_t count, const struct planned_file *single,
                                  const struct compaction_rules *rules)
{
        size_t best = SIZE_MAX;

        for (size_t i = 0; i < count; i++) {
                if (i == single->index || files[i].is_unmergeable ||
                    files[i].bytes + single->bytes > rules->job_bytes ||
                    files[i].memory + files[single->index].memory > rules->job_memory)
                        continue;
                if (best == SIZE_MAX || files[i].bytes < files[best].bytes)
                        best = i;
        }
        return best;
}

size_t compaction_plan(const struct compaction_file *files, size_t count, enum compaction_mode mode, int64_t now_s,
                       const struct compaction_rules *rules, size_t *chosen)
{
        _cleanup_free_ struct planned_file *small = NULL;
        size_t small_count = 0, n;
        unsigned ratio;

        if (count < 2)
                return 0;
        small = calloc(count, sizeof *small);
        if (!small)
                return SIZE_MAX;
        for (size_t i = 0; i < count; i++) {
                if (files[i].bytes < rules->small_bytes && !files[i].is_unmergeable)
                        small[small_count++] =
                                (struct planned_file){ count_planned_rows(&files[i]), files[i].bytes, i };
        }
        qsort(small, small_count, sizeof *small, compare_planned_files);
        ratio = choose_ratio(mode, measure_quiet(files, count, now_s));
        n = choose_prefix(files, small, small_count, ratio, rules);
        for (size_t i = 0; i < n; i++)
                chosen[i] = small[i].index;
        if (!n && small_count == 1 && ratio == RATIO_ANY && mode != COMPACTION_OPEN) {
                size_t other = find_smallest_final(files, count, &small[0], rules);

                if (other != SIZE_MAX) {
                        chosen[0] = small[0].index;
                        chosen[1] = other;
                        n = 2;
                }
        }
        return n;
}

unsigned compaction_count_outputs(uint64_t bytes, const struct compaction_rules *rules)
{
        uint64_t n = (bytes + rules->output_bytes / 2) / rules->output_bytes;

        return n ? (unsigned)n : 1;
}
