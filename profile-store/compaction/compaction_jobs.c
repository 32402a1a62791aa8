/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/compaction/compaction_jobs.h"

#include <string.h>

#include "common/limits.h"

#define S_PER_DAY INT64_C(86400)
#define LATE_S 900 /* time after midnight before a day is closed */
#define GROUP_ROWS KiB(128)

/* Approximate memory of one row of a loaded row group. */
static uint64_t estimate_row_bytes(const struct tables *t, enum table table)
{
        switch (table) {
        case TABLE_SAMPLES:
                return 100 + 6 * t->columns.count;
        case TABLE_STACKS:
                return 500;
        default:
                return 300;
        }
}

static void describe_file(const struct tables *t, enum table table, const struct table_part *p,
                          const struct compaction_view *view, struct compaction_file *ret)
{
        uint64_t rows = p->rows < GROUP_ROWS ? p->rows : GROUP_ROWS;

        *ret = (struct compaction_file){ .bytes = p->bytes,
                                         .rows = p->rows,
                                         .memory = KiB(64) + rows * estimate_row_bytes(t, table),
                                         .added_s = p->added_s,
                                         .is_unmergeable =
                                                 view->is_unmergeable && view->is_unmergeable(view->context, p) };
}

static enum compaction_mode choose_mode(const struct compaction_partition *p, const struct compaction_view *view)
{
        if (view->is_full)
                return COMPACTION_FULL;
        return p->table != TABLE_LOCATIONS && view->now_s >= (p->day + 1) * S_PER_DAY + LATE_S ? COMPACTION_CLOSED
                                                                                               : COMPACTION_OPEN;
}

/* Find the merge that is due among parts [0, count) of one partition; ST_NOT_FOUND without one. */
static enum status plan_partition(const struct tables *t, const struct compaction_partition *partition,
                                  struct table_part *const *parts, size_t count, const struct compaction_view *view,
                                  struct compaction_job *ret, struct error *err)
{
        _cleanup_free_ struct compaction_file *files = calloc(count, sizeof *files);
        _cleanup_free_ size_t *chosen = calloc(count, sizeof *chosen);
        struct compaction_job job = { .partition = *partition };
        size_t n;

        if (!files || !chosen)
                return error_no_memory(err);
        for (size_t i = 0; i < count; i++)
                describe_file(t, partition->table, parts[i], view, &files[i]);
        n = compaction_plan(files, count, choose_mode(partition, view), view->now_s, view->rules, chosen);
        if (n == SIZE_MAX)
                return error_no_memory(err);
        if (!n)
                return ST_NOT_FOUND;
        job.parts = calloc(n, sizeof(void *));
        if (!job.parts)
                return error_no_memory(err);
        for (size_t i = 0; i < n; i++) {
                job.parts[job.part_count++] = parts[chosen[i]];
                job.bytes += parts[chosen[i]]->bytes;
        }
        *ret = job;
        return ST_OK;
}

/* Parts are sorted by name, so those of a day are contiguous. */
static size_t find_partition_end(const struct tables *t, enum table table, size_t first)
{
        size_t end = first + 1;

        while (end < t->part_count[table] &&
               (table == TABLE_LOCATIONS ||
                (t->parts[table][end]->has_day && t->parts[table][end]->day == t->parts[table][first]->day)))
                end++;
        return end;
}

enum status choose_compaction_job(const struct tables *t, const struct compaction_view *view,
                                  struct compaction_job *ret, uint64_t *files_due_ret, uint64_t *bytes_due_ret,
                                  struct error *err)
{
        struct compaction_job best = { 0 };

        *files_due_ret = *bytes_due_ret = 0;
        for (int table = 0; table < TABLE_COUNT; table++) {
                if (table == TABLE_HISTORY) /* merged by its own pass (history/) */
                        continue;
                for (size_t first = 0, end; first < t->part_count[table]; first = end) {
                        const struct table_part *p = t->parts[table][first];
                        const struct compaction_partition partition = { table, p->day };
                        struct compaction_job job = { 0 };
                        enum status st;

                        end = find_partition_end(t, table, first);
                        if (end - first < 2 || (table != TABLE_LOCATIONS && !p->has_day))
                                continue;
                        st = plan_partition(t, &partition, &t->parts[table][first], end - first, view, &job, err);
                        if (st == ST_NOT_FOUND)
                                continue;
                        if (st) {
                                compaction_job_deinit(&best);
                                return st;
                        }
                        *files_due_ret += job.part_count;
                        *bytes_due_ret += job.bytes;
                        if ((!best.part_count || job.bytes < best.bytes) &&
                            !(view->is_postponed && view->is_postponed(view->context, &partition))) {
                                compaction_job_deinit(&best);
                                best = job;
                        } else {
                                compaction_job_deinit(&job);
                        }
                }
        }
        *ret = best;
        return best.part_count ? ST_OK : ST_NOT_FOUND;
}

bool is_compaction_due(const struct tables *t, const struct compaction_view *view, const struct compaction_partition *p)
{
        for (size_t first = 0, end; first < t->part_count[p->table]; first = end) {
                struct compaction_job job = { 0 };
                enum status st;

                end = find_partition_end(t, p->table, first);
                if (p->table != TABLE_LOCATIONS &&
                    (!t->parts[p->table][first]->has_day || t->parts[p->table][first]->day != p->day))
                        continue;
                st = plan_partition(t, p, &t->parts[p->table][first], end - first, view, &job, NULL);
                compaction_job_deinit(&job);
                return st != ST_NOT_FOUND;
        }
        return false;
}

void compaction_job_deinit(struct compaction_job *job)
{
        free(job->parts);
        *job = (struct compaction_job){ 0 };
}

void describe_compaction_partition(const struct compaction_partition *p, char ret[static 48])
{
        char date[32];

        if (p->table == TABLE_LOCATIONS) {
                snprintf(ret, 48, "%s", table_name(p->table));
                return;
        }
        format_table_day(p->day, date);
        snprintf(ret, 48, "%s of %s", table_name(p->table), date);
}
