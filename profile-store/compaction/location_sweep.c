/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three phases, as in location_sweep_run(): begin_sweep() takes the snapshot and counts rows; mark_used_locations()
 * runs the passes; sweep_alone() rewrites files and commits. Only columns of ids are read: visit_part_location_ids()
 * calls a visitor for each id. A pass has three visitors: collect_pass_id() and note_row_use() for locations,
 * mark_used_id() for stacks between them. check_new_reference() serves the checks before the commit.
 *
 * A pass reads the stacks of the current tables, not of the snapshot: files that left the table cost nothing, and
 * merged files are read under their new names. `left` remembers those that some pass did not read, since they may be
 * restored.
 *
 * In the file: reading; mark; begin; references added during the sweep (invariants 2 and 3); sweep; schedule.
 * Locks: marking holds none, apart from that of the compaction while pace_sweep() waits between files. sweep_alone()
 * holds the lock of the compaction and resymbolize_lock; commit_merge() calls check_before_commit() with writer_lock
 * held.
 */
#include "profile-store/compaction/location_sweep.h"

#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/text/number_text.h"
#include "profile-store/compaction/merge_commit.h"
#include "profile-store/compaction/row_removal.h"
#include "profile-store/tables/part_read.h"

#define LEAST_PASS_IDS 1024
#define READ_SHARE 4 /* the id column takes at most about this fraction of a file of locations */
#define POSTPONED_S 60
#define POSTPONED_DOUBLINGS 6
#define NS_PER_S INT64_C(1000000000)

static struct metric sweeps =
        METRIC_COUNTER("cairn_location_sweeps_total", "Sweeps for locations that no stack refers to any more.", "");
static struct metric failures = METRIC_COUNTER("cairn_location_sweep_failures_total",
                                               "Location sweeps that failed or gave way; they are retried.", "");
static struct metric swept_rows = METRIC_COUNTER("cairn_location_sweep_removed_rows_total",
                                                 "Rows of locations that were removed as unused by any stack.", "");

void location_sweep_register_metrics(void)
{
        metric_register(&sweeps);
        metric_register(&failures);
        metric_register(&swept_rows);
}

/* A file of locations. */
struct swept_part {
        struct table_part *part;
        uint64_t rows;
        uint8_t *unused; /* one bit per row */
        uint64_t unused_rows;
        bool is_left; /* unreadable */
};

struct sweep {
        struct profile_store *s;
        const struct sweep_request *request;
        struct tables *tables;          /* reference; the snapshot being marked */
        struct tables *checked;         /* a newer snapshot whose stacks use no id of `removed`; NULL: none yet */
        const struct table_part **left; /* stacks of the snapshot that some pass did not read */
        size_t left_count, left_capacity;
        struct swept_part *parts;
        size_t part_count;
        uint64_t row_count;
        struct memory_reservation memory; /* of unused bits and `removed` */
        struct key_map ids;               /* ids of the current pass; value: whether used */
        uint64_t pass, pass_count;
        uint64_t *removed; /* ids; sorted before the commit */
        size_t removed_count, removed_capacity;
        bool has_more;
        struct swept_part *filtered; /* file being rewritten */
        struct merge_result merged;  /* all new files */
};

static void sweep_deinit(struct sweep *w)
{
        for (size_t i = 0; i < w->part_count; i++)
                free(w->parts[i].unused);
        free(w->parts);
        free(w->removed);
        free(w->left);
        key_map_deinit(&w->ids);
        merge_result_deinit(&w->merged);
        tables_unref(w->tables);
        tables_unref(w->checked);
        memory_release(&w->memory);
}

static struct tables *ref_tables_of_store(struct profile_store *s)
{
        struct tables *ret;

        pthread_mutex_lock(&s->lock);
        ret = tables_ref(s->tables);
        pthread_mutex_unlock(&s->lock);
        return ret;
}

/* ---- reading ---- */

typedef enum status visit_location_id(struct sweep *w, struct swept_part *from, uint64_t row, uint64_t id,
                                      struct error *err);

/* Visit the ids of a row group. row: the row in the file, or for lists the number of the element. */
static enum status visit_group_location_ids(struct sweep *w, const struct part_file *f, uint32_t group,
                                            struct swept_part *from, uint64_t first_row, visit_location_id *visit,
                                            struct error *err)
{
        const char *name = from ? "location_id" : "location_ids.list.element";
        uint32_t node = parquet_schema_find(parquet_file_schema(f->file), name);
        _cleanup_parquet_column_ struct parquet_column c = { 0 };
        _cleanup_memory_ struct memory_reservation memory = { .use = MEMORY_COMPACTION };
        enum status st = ST_OK;

        if (node && parquet_file_schema(f->file)->nodes[node].column != PARQUET_NO_COLUMN) {
                struct parquet_stats s;

                parquet_file_stats(f->file, group, node, &s);
                if (s.value_count <= LIMIT_PARQUET_CHUNK_VALUES) /* otherwise reading is refused */
                        st = memory_reserve(&memory, s.value_count * sizeof *c.ints, err);
        }
        if (!st)
                st = part_file_read_column(f, group, name, PARQUET_INT64, &c, err);
        for (uint64_t i = 0; !st && i < c.count; i++) {
                if (!c.valid || c.valid[i])
                        st = visit(w, from, first_row + i, (uint64_t)c.ints[i], err);
        }
        return st;
}

/* Visit all ids of a file of locations; with from == NULL, all references of a file of stacks. */
static enum status visit_part_location_ids(struct sweep *w, const struct table_part *part, struct swept_part *from,
                                           visit_location_id *visit, struct error *err)
{
        _cleanup_part_file_ struct part_file f;
        enum status st = part_file_open(part, &f, err);
        uint64_t row = 0;

        for (uint32_t g = 0; !st && g < part_file_count_groups(&f); g++) {
                st = visit_group_location_ids(w, &f, g, from, row, visit, err);
                row += parquet_file_group_rows(f.file, g);
        }
        return st;
}

/* Called between files: lets merges run and keeps to their pace. */
static enum status pace_sweep(struct sweep *w, uint64_t bytes, struct error *err)
{
        struct compaction *c = w->s->compaction;
        const struct row_removal pace = { .table = TABLE_STACKS, /* re-symbolizations do not end it */
                                          .proceed = w->request->proceed,
                                          .context = w->request->context };
        enum status st;

        if (w->request->pause && !w->request->pause(w->request->context))
                return error_set(err, ST_BUSY, "the sweep was interrupted by other work");
        st = compaction_begin_removal(c, w->request->proceed, w->request->context, err);
        if (st)
                return st;
        st = compaction_proceed(c, &pace, bytes, err);
        compaction_end_removal(c);
        return st;
}

/* ---- mark ---- */

static bool belongs_to_sweep_pass(const struct sweep *w, const struct hash128 *key)
{
        return w->pass_count == 1 || hash_bytes64(key->bytes, sizeof key->bytes) % w->pass_count == w->pass;
}

static enum status collect_pass_id(struct sweep *w, struct swept_part *from, uint64_t row, uint64_t id,
                                   struct error *err)
{
        const struct hash128 key = make_u64_key(id);

        (void)from;
        (void)row;
        return belongs_to_sweep_pass(w, &key) ? key_map_put(&w->ids, &key, false, NULL, NULL, err) : ST_OK;
}

static enum status mark_used_id(struct sweep *w, struct swept_part *from, uint64_t row, uint64_t id, struct error *err)
{
        const struct hash128 key = make_u64_key(id);
        uint64_t *is_used = belongs_to_sweep_pass(w, &key) ? key_map_find(&w->ids, &key) : NULL;

        (void)from;
        (void)row;
        (void)err;
        if (is_used)
                *is_used = true;
        return ST_OK;
}

/* ST_NOT_FOUND when the limit of this sweep is reached. */
static enum status append_removed_id(struct sweep *w, uint64_t id, struct error *err)
{
        uint64_t most = w->request->most_ids ? w->request->most_ids : SWEEP_MOST_IDS;

        if (w->removed_count == most ||
            (w->removed_count == w->removed_capacity &&
             memory_reserve(&w->memory, (w->removed_capacity + 16) * sizeof *w->removed, NULL))) {
                w->has_more = true;
                return ST_NOT_FOUND;
        }
        if (!array_reserve(&w->removed, &w->removed_capacity, w->removed_count))
                return error_no_memory(err);
        w->removed[w->removed_count++] = id;
        return ST_OK;
}

static enum status note_row_use(struct sweep *w, struct swept_part *from, uint64_t row, uint64_t id, struct error *err)
{
        const struct hash128 key = make_u64_key(id);
        const uint64_t *is_used;
        enum status st = ST_NOT_FOUND;

        if (!belongs_to_sweep_pass(w, &key))
                return ST_OK;
        if (row >= from->rows)
                return error_set(err, ST_BAD_DATA, "'%s' changed", from->part->path);
        is_used = key_map_find(&w->ids, &key); /* NULL only if the file changed since it was first read */
        if (is_used && !*is_used)
                st = append_removed_id(w, id, err);
        if (!st) {
                from->unused[row / 8] |= (uint8_t)(1u << row % 8);
                from->unused_rows++;
        }
        return st == ST_NOT_FOUND ? ST_OK : st;
}

/* A file of locations that cannot be read is kept. */
static enum status visit_swept_part(struct sweep *w, struct swept_part *p, visit_location_id *visit, struct error *err)
{
        struct error why = { 0 };
        enum status st;

        if (p->is_left)
                return ST_OK;
        st = visit_part_location_ids(w, p->part, p, visit, &why);
        if (part_is_unreadable(st, &why)) {
                p->is_left = true;
                return ST_OK;
        }
        if (st && err)
                *err = why;
        return st ? st : pace_sweep(w, p->part->bytes / READ_SHARE, err);
}

/* Record a file that retention or a merge removed from the table since the snapshot; it may be unlinked already. */
static enum status note_left_stacks(struct sweep *w, const struct table_part *stacks, struct error *err)
{
        const struct table_part *known = find_live_part(w->tables, TABLE_STACKS, stacks->name);

        for (size_t i = 0; known && i < w->left_count; i++) {
                if (w->left[i] == known)
                        return ST_OK;
        }
        if (known && !array_reserve(&w->left, &w->left_capacity, w->left_count))
                return error_no_memory(err);
        if (known)
                w->left[w->left_count++] = known;
        return ST_OK;
}

static bool has_left_table(struct sweep *w, const struct table_part *stacks)
{
        struct tables *now = ref_tables_of_store(w->s);
        bool ret = !find_live_part(now, TABLE_STACKS, stacks->name);

        tables_unref(now);
        return ret;
}

static enum status mark_references(struct sweep *w, const struct table_part *stacks, struct error *err)
{
        struct error why = { 0 };
        enum status st = visit_part_location_ids(w, stacks, NULL, mark_used_id, &why);

        if (part_is_unreadable(st, &why) && has_left_table(w, stacks))
                return note_left_stacks(w, stacks, err);
        if (st && err)
                *err = why;
        return st ? st : pace_sweep(w, stacks->bytes, err);
}

/* Reads the current files: merges may have replaced those of the snapshot. */
static enum status mark_all_references(struct sweep *w, struct error *err)
{
        struct tables *now = ref_tables_of_store(w->s);
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < w->tables->part_count[TABLE_STACKS]; i++) {
                const struct table_part *part = w->tables->parts[TABLE_STACKS][i];

                if (!find_live_part(now, TABLE_STACKS, part->name))
                        st = note_left_stacks(w, part, err);
        }
        for (size_t i = 0; !st && i < now->part_count[TABLE_STACKS]; i++)
                st = mark_references(w, now->parts[TABLE_STACKS][i], err);
        tables_unref(now);
        return st;
}

static enum status run_sweep_pass(struct sweep *w, struct error *err)
{
        enum status st = ST_OK;

        key_map_deinit(&w->ids);
        for (size_t i = 0; !st && i < w->part_count; i++)
                st = visit_swept_part(w, &w->parts[i], collect_pass_id, err);
        if (!st)
                st = mark_all_references(w, err);
        for (size_t i = 0; !st && i < w->part_count; i++)
                st = visit_swept_part(w, &w->parts[i], note_row_use, err);
        return st;
}

static void forget_marks(struct sweep *w)
{
        for (size_t i = 0; i < w->part_count; i++) {
                memset(w->parts[i].unused, 0, w->parts[i].rows / 8 + 1);
                w->parts[i].unused_rows = 0;
        }
        w->removed_count = 0;
        w->has_more = false;
}

static enum status mark_used_locations(struct sweep *w, struct error *err)
{
        uint64_t pass_ids = w->request->pass_ids ? w->request->pass_ids : SWEEP_PASS_IDS;
        enum status st;

        do {
                forget_marks(w);
                w->pass_count = w->row_count / pass_ids + 1;
                for (st = ST_OK, w->pass = 0; !st && w->pass < w->pass_count; w->pass++)
                        st = run_sweep_pass(w, err);
                pass_ids /= 2;
        } while (st == ST_NO_MEMORY && pass_ids >= LEAST_PASS_IDS);
        key_map_deinit(&w->ids);
        return st;
}

/* ---- begin ---- */

/* Counts the rows in the file itself; the log is not trusted. */
static enum status count_part_rows(struct swept_part *p, struct error *err)
{
        _cleanup_part_file_ struct part_file f;
        struct error why = { 0 };
        enum status st = part_file_open(p->part, &f, &why);

        for (uint32_t g = 0; !st && g < part_file_count_groups(&f); g++)
                p->rows += parquet_file_group_rows(f.file, g);
        p->is_left = part_is_unreadable(st, &why);
        if (st && !p->is_left && err)
                *err = why;
        return p->is_left ? ST_OK : st;
}

static enum status begin_sweep(struct sweep *w, struct error *err)
{
        size_t count;
        enum status st = ST_OK;

        w->tables = ref_tables_of_store(w->s);
        count = w->tables->part_count[TABLE_LOCATIONS];
        w->parts = calloc(count + 1, sizeof *w->parts);
        if (!w->parts)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < count; i++) {
                struct swept_part *p = &w->parts[w->part_count++];

                p->part = w->tables->parts[TABLE_LOCATIONS][i];
                st = count_part_rows(p, err);
                if (!st)
                        st = memory_reserve(&w->memory, p->rows / 8 + 1, err);
                if (!st && !(p->unused = calloc(p->rows / 8 + 1, 1)))
                        st = error_no_memory(err);
                w->row_count += p->rows;
        }
        return st;
}

/* ---- references added during the sweep ---- */

static int compare_location_ids(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

static enum status check_is_kept(struct sweep *w, uint64_t id, struct error *err)
{
        return bsearch(&id, w->removed, w->removed_count, sizeof id, compare_location_ids)
                       ? error_set(err, ST_BUSY, "a location to be removed is sampled again")
                       : ST_OK;
}

static enum status check_new_reference(struct sweep *w, struct swept_part *from, uint64_t row, uint64_t id,
                                       struct error *err)
{
        (void)from;
        (void)row;
        return check_is_kept(w, id, err);
}

/* Whether all passes, or the last check, have read the file. A file that had left the table may have been restored. */
static bool are_references_known(const struct sweep *w, const struct table_part *stacks)
{
        const struct table_part *known =
                find_live_part(w->checked ? w->checked : w->tables, TABLE_STACKS, stacks->name);

        for (size_t i = 0; !w->checked && i < w->left_count; i++) {
                if (w->left[i] == known)
                        return false;
        }
        return known;
}

static enum status check_new_stacks(struct sweep *w, const struct tables *now, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < now->part_count[TABLE_STACKS]; i++) {
                const struct table_part *part = now->parts[TABLE_STACKS][i];

                if (!are_references_known(w, part))
                        st = visit_part_location_ids(w, part, NULL, check_new_reference, err);
        }
        return st;
}

static enum status check_queued_batches(struct sweep *w, struct error *err)
{
        struct profile_store *s = w->s;
        struct batch **batches = NULL;
        size_t count = 0;
        enum status st;

        pthread_mutex_lock(&s->lock);
        st = head_copy_durable(s, &batches, &count, err);
        pthread_mutex_unlock(&s->lock);
        for (size_t i = 0; !st && i < count; i++) {
                for (uint32_t k = 0; !st && k < batches[i]->location_count; k++)
                        st = check_is_kept(w, batches[i]->locations[k].id, err);
        }
        batches_unref(batches, count);
        return st;
}

/* Caller holds the writer lock. */
static enum status check_before_commit(void *context, const struct tables *now, struct error *err)
{
        struct sweep *w = context;
        enum status st = check_new_stacks(w, now, err);

        return st ? st : check_queued_batches(w, err);
}

/* ---- sweep ---- */

static enum status select_unused_rows(void *context, const struct part_file *f, uint32_t group, uint8_t *rows,
                                      struct error *err)
{
        struct sweep *w = context;
        uint64_t first = 0, count = parquet_file_group_rows(f->file, group);

        for (uint32_t g = 0; g < group; g++)
                first += parquet_file_group_rows(f->file, g);
        if (first + count > w->filtered->rows)
                return error_set(err, ST_BAD_DATA, "'%s' changed", f->path);
        for (uint64_t i = 0; i < count; i++)
                rows[i] = w->filtered->unused[(first + i) / 8] >> (first + i) % 8 & 1;
        return ST_OK;
}

static bool may_proceed_with_sweep(void *context)
{
        const struct sweep *w = context;

        return !w->request->proceed || w->request->proceed(w->request->context);
}

static enum status append_merge_result(struct merge_result *to, struct merge_result *from, struct error *err)
{
        if (!array_reserve_many(&to->adds, &to->add_capacity, to->add_count, from->add_count))
                return error_no_memory(err);
        if (from->add_count)
                memcpy(to->adds + to->add_count, from->adds, from->add_count * sizeof *to->adds);
        to->add_count += from->add_count;
        to->rows_read += from->rows_read;
        to->rows_written += from->rows_written;
        to->bytes_read += from->bytes_read;
        to->bytes_written += from->bytes_written;
        from->add_count = 0;
        merge_result_deinit(from);
        return ST_OK;
}

static enum status write_used_rows(struct sweep *w, struct swept_part *p, struct error *err)
{
        struct row_removal removal = { .table = TABLE_LOCATIONS,
                                       .parts = &p->part,
                                       .part_count = 1,
                                       .select = select_unused_rows,
                                       .proceed = may_proceed_with_sweep,
                                       .context = w };
        struct merge_result merged = { 0 };
        enum status st;

        w->filtered = p;
        st = compaction_write_kept_rows(w->s->compaction, w->tables, &removal, &merged, err);
        if (!st && !merged.rows_read)
                p->is_left = true; /* became unreadable */
        if (!st)
                st = append_merge_result(&w->merged, &merged, err);
        if (st)
                merge_result_discard(&w->s->logs, TABLE_LOCATIONS, &merged);
        merge_result_deinit(&merged);
        return st;
}

static bool is_swept_part(const struct swept_part *p)
{
        return !p->is_left && p->unused_rows;
}

static void count_swept_part(const struct swept_part *p, struct expired_day *d)
{
        if (p->unused_rows == p->rows)
                d->files++;
        else
                d->rewritten++;
        d->rows += p->unused_rows;
        d->bytes += p->part->bytes;
}

/* Commit the new files; commit_merge() deletes them if that fails. */
static enum status commit_sweep(struct sweep *w, struct expired_day *removed, struct error *err)
{
        _cleanup_free_ struct table_part **parts = calloc(w->part_count + 1, sizeof *parts);
        struct replaced_parts replaced = {
                .table = TABLE_LOCATIONS, .parts = parts, .loses_rows = true, .check = check_before_commit, .context = w
        };
        struct tables *now;
        enum status st;

        if (!parts) {
                merge_result_discard(&w->s->logs, TABLE_LOCATIONS, &w->merged);
                return error_no_memory(err);
        }
        for (size_t i = 0; i < w->part_count; i++) {
                if (!is_swept_part(&w->parts[i]))
                        continue;
                parts[replaced.part_count++] = w->parts[i].part;
                count_swept_part(&w->parts[i], removed);
        }
        removed->bytes -= w->merged.bytes_written < removed->bytes ? w->merged.bytes_written : removed->bytes;
        qsort(w->removed, w->removed_count, sizeof *w->removed, compare_location_ids);
        now = ref_tables_of_store(w->s);
        st = check_new_stacks(w, now, err); /* checks most of them without the writer lock */
        w->checked = now;
        if (st) {
                merge_result_discard(&w->s->logs, TABLE_LOCATIONS, &w->merged);
                return st;
        }
        if (!replaced.part_count)
                return ST_OK;
        st = commit_merge(w->s, &replaced, &w->merged, err);
        return st == ST_NOT_FOUND ? error_set(err, ST_BUSY, "another commit changed the locations") : st;
}

/* Caller excludes merges and re-symbolizations. */
static enum status sweep_marked_parts(struct sweep *w, struct expired_day *removed, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < w->part_count; i++) {
                const struct swept_part *p = &w->parts[i];

                if (is_swept_part(p) && p->unused_rows < p->rows)
                        st = write_used_rows(w, &w->parts[i], err);
        }
        if (!st)
                return commit_sweep(w, removed, err);
        merge_result_discard(&w->s->logs, TABLE_LOCATIONS, &w->merged);
        return st;
}

static enum status sweep_alone(struct sweep *w, struct expired_day *removed, struct error *err)
{
        struct profile_store *s = w->s;
        enum status st = compaction_begin_removal(s->compaction, w->request->proceed, w->request->context, err);

        if (st)
                return st;
        if (!pthread_mutex_trylock(&s->resymbolize_lock)) {
                st = sweep_marked_parts(w, removed, err);
                pthread_mutex_unlock(&s->resymbolize_lock);
        } else {
                st = error_set(err, ST_BUSY, "locations are being re-symbolized");
        }
        compaction_end_removal(s->compaction);
        return st;
}

enum status location_sweep_run(struct profile_store *s, const struct sweep_request *request, struct sweep_result *ret,
                               struct error *err)
{
        struct sweep w = {
                .s = s, .request = request, .memory.use = MEMORY_COMPACTION, .ids.memory.use = MEMORY_COMPACTION
        };
        struct expired_day removed = { .table = TABLE_LOCATIONS, .reason = EXPIRY_UNUSED, .day = INT64_MAX };
        enum status st;

        st = begin_sweep(&w, err);
        if (!st)
                st = mark_used_locations(&w, err);
        if (!st && w.removed_count)
                st = sweep_alone(&w, &removed, err);
        if (!st)
                *ret = (struct sweep_result){ .removed = removed, .has_more = w.has_more };
        metric_add(&swept_rows, st ? 0 : (int64_t)removed.rows);
        sweep_deinit(&w);
        return st;
}

/* ---- schedule ---- */

static void schedule_next_sweep(struct profile_store *s, int64_t pause_s)
{
        atomic_store(&s->next_sweep_ns, monotonic_ns() + pause_s * NS_PER_S);
}

static void postpone_sweep(struct profile_store *s, const struct error *err)
{
        unsigned failed = atomic_fetch_add(&s->failed_sweeps, 1);

        atomic_store(&s->sweep_due, true);
        schedule_next_sweep(s, (int64_t)POSTPONED_S << (failed < POSTPONED_DOUBLINGS ? failed : POSTPONED_DOUBLINGS));
        metric_add(&failures, 1);
        log_info("store", "cannot sweep unused locations, retrying later: %s", err->text);
}

void location_sweep_run_if_due(struct profile_store *s, const struct sweep_request *request, bool is_forced,
                               struct expiry *removed)
{
        struct sweep_result result = { 0 };
        struct error err = { 0 };
        enum status st;

        if (!atomic_load(&s->sweep_due) || atomic_load(&s->stopping) ||
            (!is_forced && monotonic_ns() < atomic_load(&s->next_sweep_ns)))
                return;
        atomic_store(&s->sweep_due, false); /* reset first: a removal during the sweep makes it due again */
        st = location_sweep_run(s, request, &result, &err);
        if (st) {
                postpone_sweep(s, &err);
        } else {
                atomic_store(&s->failed_sweeps, 0);
                schedule_next_sweep(s, result.has_more ? POSTPONED_S : SWEEP_INTERVAL_S);
                if (result.has_more)
                        atomic_store(&s->sweep_due, true);
                if (result.removed.rows)
                        log_info("store", "removed %s of locations that no stack refers to",
                                 COUNTED(result.removed.rows, "row", "rows"));
                if (removed && result.removed.rows && expiry_add_day(removed, &result.removed, &err))
                        log_error("store", "cannot report removed locations: %s", err.text);
        }
        metric_add(&sweeps, 1); /* last: tests wait for this counter */
}
