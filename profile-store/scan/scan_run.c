/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spreads row groups over threads. A file is opened by the thread that takes it; its row groups may then be taken by
 * any thread.
 */
#include <malloc.h>
#include <pthread.h>
#include <string.h>

#include "common/limits.h"
#include "profile-store/scan/scan_internal.h"
#include "profile-store/scan/scan_rows.h"
#include "profile-store/tables/part_fetch.h"

#define ROWS_PER_THREAD 200000   /* fewer are not worth a thread */
#define UNCOUNTED_BYTES KiB(256) /* cursor memory of a thread that is not reserved */
#define CHUNK_UNITS 1024         /* units of the work meter for opening a row group */

/* A samples part with row groups still to be read or being read. */
struct open_part {
        struct part_file file;
        uint32_t next_group, group_count, running;
        struct open_part *next;
};

struct scan_run {
        struct store_scan *scan;
        const struct row_filter *filter;
        const struct chunk_visitor *visitor;
        void *const *contexts; /* of the visitor, one per thread */

        pthread_mutex_t lock; /* protects the members below */
        pthread_cond_t changed;
        struct table_part **parts; /* those that may match */
        size_t part_count, next_part, next_batch;
        unsigned opening; /* threads that are opening a part */
        struct open_part *open;
};

/* ---- labels ---- */

bool scan_match_label(struct scan_thread *t, const struct label_matcher *m, const char *text, size_t n)
{
        bool is_equal, matches;

        switch (m->op) {
        case LABEL_EQUAL:
        case LABEL_NOT_EQUAL:
                is_equal = strlen(m->value) == n && memcmp(m->value, text, n) == 0;
                return is_equal == (m->op == LABEL_EQUAL);
        default:
                if (t->work)
                        lock_query_meter(t->work);
                matches = m->match(m->context, text, n);
                if (t->work)
                        unlock_query_meter(t->work);
                return matches == (m->op == LABEL_REGEX);
        }
}

/* ---- columns ---- */

static enum status reserve_cursor_memory(void *context, size_t n, struct error *err)
{
        struct scan_thread *t = context;
        size_t uncounted = n < t->uncounted ? n : t->uncounted;
        enum status st = memory_reserve(&t->memory, n - uncounted, err);

        if (!st)
                t->uncounted -= uncounted;
        return st;
}

enum status scan_open_column(struct scan_thread *t, enum scan_cursor which, const struct scan_column *column,
                             struct parquet_cursor **ret, struct error *err)
{
        enum status st;

        if (!t->cursors[which])
                t->cursors[which] = parquet_cursor_create(reserve_cursor_memory, t);
        if (!t->cursors[which])
                return error_no_memory(err);
        st = part_file_open_column(column->file, column->group, column->name, column->kind, t->cursors[which], err);
        if (st)
                return st;
        *ret = t->cursors[which];
        t->meter->bytes += parquet_cursor_chunk_bytes(*ret);
        return ST_OK;
}

enum status scan_open_chunk_column(const struct scan_chunk *chunk, enum scan_cursor which, const char *name,
                                   enum parquet_kind kind, struct parquet_cursor **ret, struct error *err)
{
        const struct scan_column column = { chunk->file, chunk->group, name, kind };

        return scan_open_column(chunk->thread, which, &column, ret, err);
}

void column_source_deinit(struct column_source *s)
{
        memory_release(&s->memory);
}

#define UNCOUNTED_COLUMN_BYTES KiB(64)

static size_t get_column_bytes(const struct parquet_column *c)
{
        size_t slot = (c->ints ? sizeof *c->ints : 0) + (c->codes ? sizeof *c->codes : 0) + (c->valid ? 1 : 0);
        size_t n = c->count * slot + c->dict_count * sizeof *c->dict;

        if (c->offsets)
                n += c->row_count * (sizeof *c->offsets + 1);
        for (size_t i = 0; i < c->page_count; i++)
                n += malloc_usable_size(c->pages[i]);
        return n;
}

/* Values and offsets are reserved before reading; pages afterwards, since their size is known only then. */
enum status scan_read_column(struct column_source *from, const char *column, enum parquet_kind kind,
                             struct parquet_column *ret, struct error *err)
{
        uint32_t node = parquet_schema_find(parquet_file_schema(from->file->file), column);
        size_t held = from->memory.bytes, n = 0;
        struct parquet_column c;
        enum status st = ST_OK;

        if (node && parquet_file_schema(from->file->file)->nodes[node].column != PARQUET_NO_COLUMN) {
                struct parquet_stats s;

                parquet_file_stats(from->file->file, from->group, node, &s);
                if (s.value_count <= LIMIT_PARQUET_CHUNK_VALUES) /* otherwise reading is refused */
                        n = s.value_count * sizeof *c.ints;
        }
        if (n > UNCOUNTED_COLUMN_BYTES)
                st = memory_reserve(&from->memory, n, err);
        if (!st)
                st = part_file_read_column(from->file, from->group, column, kind, &c, err);
        if (st)
                return st;
        n = get_column_bytes(&c);
        st = memory_resize(&from->memory, held + (n > UNCOUNTED_COLUMN_BYTES ? n : 0), err);
        if (st)
                parquet_column_deinit(&c);
        else
                *ret = c;
        return st;
}

enum status scan_visit_pieces(struct scan_thread *t, struct parquet_cursor *c, const struct row_ranges *rows,
                              visit_piece *visit, void *context, struct error *err)
{
        uint32_t at = 0;
        enum status st = work_meter_add(t->meter, CHUNK_UNITS, err);

        for (size_t i = 0; !st && i < rows->count; i++) {
                uint32_t end = rows->items[i].first + rows->items[i].count;

                st = parquet_cursor_skip(c, rows->items[i].first - at, err);
                for (at = rows->items[i].first; !st && at < end;) {
                        struct parquet_piece piece;

                        st = parquet_cursor_read(c, end - at, &piece, err);
                        if (!st)
                                st = visit(context, at, &piece, err);
                        if (!st)
                                st = work_meter_add(t->meter, piece.is_run ? 8 : 8 + piece.count, err);
                        at += piece.count;
                }
        }
        return st;
}

struct text_visit {
        struct scan_thread *thread;
        struct parquet_cursor *cursor;
        visit_text *visit;
        void *context;
        bool null_visited;
};

static enum status visit_code(struct text_visit *v, uint32_t code, struct error *err)
{
        uint32_t count;
        const struct parquet_bytes *dict = parquet_cursor_dict(v->cursor, &count);

        if (code == PARQUET_NULL_CODE) {
                if (v->null_visited)
                        return ST_OK;
                v->null_visited = true;
                return v->visit(v->context, "", 0, err);
        }
        if (v->thread->verdicts[code])
                return ST_OK;
        v->thread->verdicts[code] = 1;
        return v->visit(v->context, (const char *)dict[code].data, dict[code].size, err);
}

static enum status visit_text_piece(void *context, uint32_t row, const struct parquet_piece *piece, struct error *err)
{
        struct text_visit *v = context;
        uint32_t count, last;
        enum status st;

        (void)row;
        parquet_cursor_dict(v->cursor, &count);
        st = scan_reserve_verdicts(v->thread, count, err);
        if (!st)
                st = visit_code(v, last = piece->codes[0], err);
        for (uint32_t i = 1; !st && !piece->is_run && i < piece->count; i++) {
                if (piece->codes[i] != last)
                        st = visit_code(v, last = piece->codes[i], err);
        }
        return st;
}

enum status scan_visit_texts(const struct scan_chunk *chunk, const char *column, visit_text *visit, void *context,
                             struct error *err)
{
        struct scan_thread *t = chunk->thread;
        struct text_visit v = { .thread = t, .visit = visit, .context = context };
        enum status st = scan_open_chunk_column(chunk, CURSOR_KEY, column, PARQUET_STRING, &v.cursor, err);

        if (st)
                return st;
        scan_clear_verdicts(t);
        return scan_visit_pieces(t, v.cursor, chunk->rows, visit_text_piece, &v, err);
}

/* ---- tasks ---- */

enum task_kind { TASK_NONE, TASK_GROUP, TASK_BATCH };

struct scan_task {
        enum task_kind kind;
        struct open_part *part;
        uint32_t group;
        const struct batch *batch;
};

/* Caller holds run->lock. */
static bool take_open_group(struct scan_run *run, struct scan_task *ret)
{
        for (struct open_part *p = run->open; p; p = p->next) {
                if (p->next_group < p->group_count) {
                        p->running++;
                        *ret = (struct scan_task){ .kind = TASK_GROUP, .part = p, .group = p->next_group++ };
                        return true;
                }
        }
        return false;
}

/* Caller holds run->lock, which is released while the file is opened. */
static enum status open_next_part(struct scan_run *run, struct error *err)
{
        const struct table_part *part = run->parts[run->next_part++];
        struct open_part *p, **end;
        enum status st;

        run->opening++;
        pthread_mutex_unlock(&run->lock);
        p = calloc(1, sizeof *p);
        st = p ? part_file_open(part, &p->file, err) : error_no_memory(err);
        if (!st)
                p->group_count = part_file_count_groups(&p->file);
        pthread_mutex_lock(&run->lock);
        run->opening--;
        pthread_cond_broadcast(&run->changed);
        if (st || !p->group_count) {
                if (p)
                        part_file_close(&p->file);
                free(p);
                return st;
        }
        for (end = &run->open; *end;)
                end = &(*end)->next;
        *end = p;
        return ST_OK;
}

/* The file is closed after its last row group. */
static void finish_group(struct scan_run *run, struct open_part *p)
{
        struct open_part **at;
        bool done;

        pthread_mutex_lock(&run->lock);
        done = --p->running == 0 && p->next_group == p->group_count;
        for (at = &run->open; done && *at != p;)
                at = &(*at)->next;
        if (done)
                *at = p->next;
        pthread_mutex_unlock(&run->lock);
        if (!done)
                return;
        part_file_close(&p->file);
        free(p);
}

static enum status take_scan_task(struct scan_run *run, struct scan_task *ret, struct error *err)
{
        enum status st = ST_OK;

        *ret = (struct scan_task){ 0 };
        pthread_mutex_lock(&run->lock);
        while (!st && !take_open_group(run, ret)) {
                if (run->next_part < run->part_count) {
                        st = open_next_part(run, err);
                } else if (run->opening) {
                        pthread_cond_wait(&run->changed, &run->lock);
                } else {
                        if (run->next_batch < run->scan->head_count)
                                *ret = (struct scan_task){ .kind = TASK_BATCH,
                                                           .batch = run->scan->head[run->next_batch++] };
                        break;
                }
        }
        pthread_mutex_unlock(&run->lock);
        return st;
}

static enum status visit_selected_rows(struct scan_thread *t, const struct scan_chunk *chunk, struct error *err)
{
        const struct scan_run *run = t->run;
        enum status st = chunk->batch ? select_batch_samples(t, run->filter, chunk->batch, err)
                                      : select_group_rows(t, run->filter, chunk->file, chunk->group, err);

        if (st)
                return st;
        t->meter->rows += t->selected.rows;
        return t->selected.rows ? run->visitor->visit(t->context, chunk, err) : ST_OK;
}

static enum status run_task(struct scan_thread *t, const struct scan_task *task, struct error *err)
{
        struct scan_run *run = t->run;
        struct scan_chunk chunk = { .thread = t, .batch = task->batch, .group = task->group, .rows = &t->selected };
        enum status st = work_meter_check(t->meter, err);

        if (task->kind == TASK_GROUP)
                chunk.file = &task->part->file;
        if (!st &&
            !(chunk.file && run->visitor->can_skip && run->visitor->can_skip(t->context, chunk.file, chunk.group)))
                st = visit_selected_rows(t, &chunk, err);
        if (chunk.file)
                finish_group(run, task->part);
        return st;
}

/* ---- threads ---- */

static void scan_thread_init(struct scan_thread *t, struct work_meter *meter, enum memory_use use)
{
        *t = (struct scan_thread){ .meter = meter, .memory.use = use, .uncounted = UNCOUNTED_BYTES };
}

static void scan_thread_deinit(struct scan_thread *t)
{
        for (int i = 0; i < SCAN_CURSORS; i++)
                parquet_cursor_destroy(t->cursors[i]);
        row_ranges_deinit(&t->selected);
        row_ranges_deinit(&t->narrowed);
        free(t->verdicts);
        memory_release(&t->memory);
}

static enum status visit_chunks(void *context, struct work_thread *work, struct error *err)
{
        struct scan_run *run = context;
        struct scan_thread t;
        enum status st = ST_OK;

        scan_thread_init(&t, &work->meter, MEMORY_QUERIES);
        t.work = work;
        t.run = run;
        t.context = run->contexts[work->number];
        while (!st) {
                struct scan_task task;

                st = take_scan_task(run, &task, err);
                if (!st && task.kind == TASK_NONE)
                        break;
                if (!st)
                        st = run_task(&t, &task, err);
        }
        scan_thread_deinit(&t);
        return st;
}

static void close_open_parts(struct scan_run *run)
{
        while (run->open) {
                struct open_part *p = run->open;

                run->open = p->next;
                part_file_close(&p->file);
                free(p);
        }
}

static bool may_have_matching_rows(void *context, const struct part_file *f, uint32_t group)
{
        bool unused;

        return group_may_match(context, f, group, &unused);
}

/* From an object store: the columns of the filter, and those that most visitors read. */
static enum status fetch_matching_parts(struct scan_run *run, struct error *err)
{
        static const char *const usual[] = { "profile_type", "time", "stack_id", "value" };
        const size_t usual_count = sizeof usual / sizeof *usual, more = run->filter->filter->matcher_count;
        _cleanup_free_ const char **columns = calloc(usual_count + more, sizeof *columns);
        struct part_fetch what = { columns, usual_count + more, may_have_matching_rows,
                                   (void *)(uintptr_t)run->filter };

        if (!columns)
                return error_no_memory(err);
        memcpy(columns, usual, sizeof usual);
        for (size_t i = 0; i < more; i++)
                columns[usual_count + i] = run->filter->columns[i];
        return part_files_fetch(run->parts, run->part_count, &what, run->scan->meter, err);
}

static enum status visit_parts(struct scan_run *run, size_t context_count, struct error *err)
{
        const struct tables *t = run->scan->tables;
        uint64_t rows = 0;
        size_t useful;
        enum status st;

        run->parts = calloc(t->part_count[TABLE_SAMPLES] + 1, sizeof(struct table_part *));
        if (!run->parts)
                return error_no_memory(err);
        for (size_t i = 0; i < t->part_count[TABLE_SAMPLES]; i++) {
                struct table_part *part = t->parts[TABLE_SAMPLES][i];

                if (part_may_match(run->filter, part)) {
                        run->parts[run->part_count++] = part;
                        rows += part->rows;
                }
        }
        useful = (size_t)(rows / ROWS_PER_THREAD + 1);
        st = fetch_matching_parts(run, err);
        if (!st)
                st = share_work(run->scan->meter, useful < context_count ? useful : context_count, visit_chunks, run,
                                err);
        close_open_parts(run);
        free(run->parts);
        return st;
}

enum status scan_visit_chunks(struct store_scan *scan, const struct scan_filter *filter,
                              const struct chunk_visitor *visitor, void *const *contexts, size_t context_count,
                              struct error *err)
{
        _cleanup_(row_filter_deinit) struct row_filter r;
        struct scan_run run = { .scan = scan, .filter = &r, .visitor = visitor, .contexts = contexts };
        enum status st = row_filter_init(&r, filter, err);

        if (!st && scan->meter)
                st = work_meter_check(scan->meter, err);
        if (st)
                return st;
        pthread_mutex_init(&run.lock, NULL);
        pthread_cond_init(&run.changed, NULL);
        st = visit_parts(&run, context_count, err);
        pthread_cond_destroy(&run.changed);
        pthread_mutex_destroy(&run.lock);
        return st;
}

/* ---- one row group at a time ---- */

struct row_selector {
        struct row_filter filter;
        struct work_meter meter; /* without limits */
        struct scan_thread thread;
};

enum status row_selector_create(const struct scan_filter *filter, struct row_selector **ret, struct error *err)
{
        struct row_selector *s = calloc(1, sizeof *s);
        enum status st;

        if (!s)
                return error_no_memory(err);
        scan_thread_init(&s->thread, &s->meter, MEMORY_COMPACTION);
        st = row_filter_init(&s->filter, filter, err);
        if (st)
                row_selector_destroy(s);
        else
                *ret = s;
        return st;
}

void row_selector_destroy(struct row_selector *s)
{
        if (!s)
                return;
        row_filter_deinit(&s->filter);
        scan_thread_deinit(&s->thread);
        free(s);
}

enum status row_selector_mark(struct row_selector *s, const struct part_file *f, uint32_t group, uint8_t *rows,
                              struct error *err)
{
        const struct row_ranges *selected = &s->thread.selected;
        enum status st = select_group_rows(&s->thread, &s->filter, f, group, err);

        for (size_t i = 0; !st && i < selected->count; i++)
                memset(rows + selected->items[i].first, 1, selected->items[i].count);
        return st;
}
