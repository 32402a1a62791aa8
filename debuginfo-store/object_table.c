/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In memory are the names and generations of each file's rows, sorted, by which a commit finds the files to replace;
 * all other columns are read again when their file is replaced. Files have at most FILE_ROWS rows, so that a change of
 * one row rewrites little.
 *
 * Another writer's commit makes delta_commit() fail with ST_BUSY: the state is read again, and the files to replace are
 * chosen anew.
 *
 * In the file: the names in memory, the rows of a commit, commits, vacuum, opening.
 */
#include "debuginfo-store/object_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/limits.h"
#include "common/memory/arena.h"
#include "common/memory/array.h"
#include "common/text.h"
#include "debuginfo-store/object_rows.h"
#include "profile-store/delta/delta_log.h"

#define FILE_ROWS 4096 /* of a file, as long as no file has to be written with more */
#define SMALL_FILES 8  /* so many are merged by the next commit */
#define COMMIT_TRIES 8
#define ROWS_BYTES MiB(512) /* texts of the rows of one commit */
#define RETENTION_S (24 * 3600)

struct table_name {
        struct object_name name;
        uint8_t generation[OBJECT_GENERATION_BYTES];
};

struct object_table_file {
        char *path;               /* as in the log; owned */
        struct table_name *names; /* sorted; owned */
        size_t count, capacity;
};

struct object_table {
        struct storage *storage; /* borrowed */
        pthread_mutex_t lock;
        struct delta_table *log;
        struct object_table_file *files;
        size_t count, capacity;
        bool is_stale; /* a commit's outcome was unknown */
};

static char *make_object_table_key(const char *path)
{
        return path_join(OBJECT_TABLE_FOLDER, path);
}

static enum status visit_object_file(struct object_table *t, const char *path, object_row_visit *visit, void *context,
                                     struct error *err)
{
        _cleanup_free_ char *key = make_object_table_key(path);

        return key ? object_rows_visit(t->storage, key, visit, context, err) : error_no_memory(err);
}

/* ---- the names in memory; with the lock ---- */

static void deinit_object_file(struct object_table_file *f)
{
        free(f->path);
        free(f->names);
}

static int compare_table_names(const void *a, const void *b)
{
        return object_name_compare(&((const struct table_name *)a)->name, &((const struct table_name *)b)->name);
}

static void sort_table_names(struct object_table_file *f)
{
        if (f->count)
                qsort(f->names, f->count, sizeof *f->names, compare_table_names);
}

static const struct table_name *find_table_name(const struct object_table_file *f, const struct object_name *name)
{
        const struct table_name key = { .name = *name };

        return f->count ? bsearch(&key, f->names, f->count, sizeof *f->names, compare_table_names) : NULL;
}

static enum status append_table_name(void *context, const struct object_row *row, struct error *err)
{
        struct object_table_file *f = context;

        if (!array_reserve(&f->names, &f->capacity, f->count))
                return error_no_memory(err);
        f->names[f->count].name = (struct object_name){ row->object.build_id, row->object.kind };
        memcpy(f->names[f->count++].generation, row->object.sha256, OBJECT_GENERATION_BYTES);
        return ST_OK;
}

static enum status append_object_file(struct object_table *t, struct object_table_file *f, struct error *err)
{
        if (!array_reserve(&t->files, &t->capacity, t->count)) {
                deinit_object_file(f);
                return error_no_memory(err);
        }
        sort_table_names(f);
        t->files[t->count++] = *f;
        return ST_OK;
}

static enum status load_object_file(struct object_table *t, const char *path, struct error *err)
{
        struct object_table_file f = { .path = strdup(path) };
        enum status st = f.path ? visit_object_file(t, path, append_table_name, &f, err) : error_no_memory(err);

        if (!st)
                return append_object_file(t, &f, err);
        deinit_object_file(&f);
        return st;
}

static bool is_live_object_file(const struct delta_snapshot *s, const char *path)
{
        for (size_t i = 0; i < s->file_count; i++)
                if (strcmp(s->files[i]->path, path) == 0)
                        return true;
        return false;
}

static bool is_known_object_file(const struct object_table *t, const char *path)
{
        for (size_t i = 0; i < t->count; i++)
                if (strcmp(t->files[i].path, path) == 0)
                        return true;
        return false;
}

/* Follow the log: forget the files that it removed, read those that it added. */
static enum status load_object_files(struct object_table *t, struct error *err)
{
        struct delta_snapshot *s;
        enum status st = delta_snapshot_acquire(t->log, &s, err);
        size_t kept = 0;

        if (st)
                return st;
        for (size_t i = 0; i < t->count; i++) {
                if (is_live_object_file(s, t->files[i].path))
                        t->files[kept++] = t->files[i];
                else
                        deinit_object_file(&t->files[i]);
        }
        t->count = kept;
        for (size_t i = 0; !st && i < s->file_count; i++)
                if (!is_known_object_file(t, s->files[i]->path))
                        st = load_object_file(t, s->files[i]->path, err);
        delta_snapshot_release(s);
        return st;
}

bool object_table_find_generation(struct object_table *t, const struct object_name *name,
                                  uint8_t ret[static OBJECT_GENERATION_BYTES])
{
        const struct table_name *found = NULL;

        pthread_mutex_lock(&t->lock);
        for (size_t i = 0; !found && i < t->count; i++)
                found = find_table_name(&t->files[i], name);
        if (found)
                memcpy(ret, found->generation, OBJECT_GENERATION_BYTES);
        pthread_mutex_unlock(&t->lock);
        return found;
}

enum status object_table_visit(struct object_table *t, object_row_visit *visit, void *context, struct error *err)
{
        enum status st = ST_OK;

        pthread_mutex_lock(&t->lock);
        for (size_t i = 0; !st && i < t->count; i++)
                st = visit_object_file(t, t->files[i].path, visit, context, err);
        pthread_mutex_unlock(&t->lock);
        return st;
}

/* ---- the rows of a commit ---- */

/* The rows that one commit writes. */
struct row_set {
        struct arena texts; /* links and sections of rows that were read */
        struct object_row *items;
        size_t count, capacity;
        const struct object_change *changes;
        size_t change_count;
        struct object_row *notes; /* of each change: those of the row that it replaces */
};

static void deinit_row_set(struct row_set *s)
{
        arena_deinit(&s->texts);
        free(s->items);
        free(s->notes);
}

static enum status append_commit_row(struct row_set *s, const struct object_row *row, struct error *err)
{
        if (!array_reserve(&s->items, &s->capacity, s->count))
                return error_no_memory(err);
        s->items[s->count++] = *row;
        return ST_OK;
}

static enum status keep_row_texts(struct row_set *s, struct object_row *row, struct error *err)
{
        const void *links = row->links, *sections = row->sections;

        row->links = links ? arena_strndup(&s->texts, links, row->links_size) : NULL;
        row->sections = sections ? arena_strndup(&s->texts, sections, row->sections_size) : NULL;
        return (links && !row->links) || (sections && !row->sections) ? arena_error(&s->texts, err, "rows of objects")
                                                                      : ST_OK;
}

static size_t find_change(const struct row_set *s, const struct stored_object *o)
{
        size_t i = 0;

        while (i < s->change_count && (s->changes[i].row.object.kind != o->kind ||
                                       !build_id_equal(&s->changes[i].row.object.build_id, &o->build_id)))
                i++;
        return i;
}

/* Rows that change are left out; their links and sections may be kept. */
static enum status keep_row(void *context, const struct object_row *row, struct error *err)
{
        struct row_set *s = context;
        struct object_row copy = *row;
        enum status st = keep_row_texts(s, &copy, err);
        size_t i;

        if (st)
                return st;
        i = find_change(s, &row->object);
        if (i == s->change_count)
                return append_commit_row(s, &copy, err);
        s->notes[i] = copy;
        return ST_OK;
}

static enum status append_changed_rows(struct row_set *s, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < s->change_count; i++) {
                struct object_row row = s->changes[i].row;

                if (s->changes[i].removes)
                        continue;
                if (s->changes[i].keeps_notes) {
                        row.links = s->notes[i].links;
                        row.links_size = s->notes[i].links_size;
                        row.sections = s->notes[i].sections;
                        row.sections_size = s->notes[i].sections_size;
                }
                st = append_commit_row(s, &row, err);
        }
        return st;
}

static int compare_rows(const void *a, const void *b)
{
        const struct stored_object *x = &((const struct object_row *)a)->object;
        const struct stored_object *y = &((const struct object_row *)b)->object;
        int c = build_id_compare(&x->build_id, &y->build_id);

        return c ? c : (int)x->kind - (int)y->kind;
}

/* A file that a commit adds. */
struct added_file {
        struct object_table_file file;
        struct buf stats; /* text, with its NUL */
        uint64_t bytes;
};

static char *make_object_file_path(void)
{
        uint8_t id[16];
        char hex[2 * sizeof id + 1], *ret;

        if (getrandom(id, sizeof id, 0) != sizeof id ||
            asprintf(&ret, "part-%s.parquet", hex_encode(id, sizeof id, hex)) < 0)
                return NULL;
        return ret;
}

static enum status write_object_file(struct object_table *t, const struct object_row *rows, size_t count,
                                     struct added_file *ret, struct error *err)
{
        _cleanup_free_ char *key = NULL;
        enum status st = ST_OK;

        *ret = (struct added_file){ .file.path = make_object_file_path() };
        buf_init(&ret->stats, LIMIT_DELTA_LINE_BYTES);
        key = ret->file.path ? make_object_table_key(ret->file.path) : NULL;
        if (!key)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < count; i++)
                st = append_table_name(&ret->file, &rows[i], err);
        return st ? st : object_rows_write(t->storage, key, rows, count, &ret->stats, &ret->bytes, err);
}

/* ---- commits; with the lock ---- */

/* A commit that is being made. */
struct table_commit {
        struct row_set rows;
        struct added_file *adds;
        size_t add_count;
        bool *is_replaced; /* of each file of the table */
};

static void deinit_table_commit(struct table_commit *c)
{
        for (size_t i = 0; i < c->add_count; i++) {
                deinit_object_file(&c->adds[i].file);
                buf_deinit(&c->adds[i].stats);
        }
        free(c->adds);
        free(c->is_replaced);
        deinit_row_set(&c->rows);
}

static bool has_changed_row(const struct object_table_file *f, const struct object_change *changes, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                const struct object_name name = { changes[i].row.object.build_id, changes[i].row.object.kind };

                if (find_table_name(f, &name))
                        return true;
        }
        return false;
}

/* Files with changed rows, and all small ones when there are many. */
static void choose_replaced_files(const struct object_table *t, struct table_commit *c)
{
        size_t small = 0;

        for (size_t i = 0; i < t->count; i++)
                small += t->files[i].count < FILE_ROWS / 2;
        for (size_t i = 0; i < t->count; i++)
                c->is_replaced[i] = (small >= SMALL_FILES && t->files[i].count < FILE_ROWS / 2) ||
                                    has_changed_row(&t->files[i], c->rows.changes, c->rows.change_count);
}

static enum status collect_commit_rows(struct object_table *t, struct table_commit *c, struct error *err)
{
        enum status st = ST_OK;

        c->is_replaced = calloc(t->count + 1, sizeof *c->is_replaced);
        c->rows.notes = calloc(c->rows.change_count + 1, sizeof *c->rows.notes);
        if (!c->is_replaced || !c->rows.notes)
                return error_no_memory(err);
        choose_replaced_files(t, c);
        for (size_t i = 0; !st && i < t->count; i++)
                if (c->is_replaced[i])
                        st = visit_object_file(t, t->files[i].path, keep_row, &c->rows, err);
        if (!st)
                st = append_changed_rows(&c->rows, err);
        if (!st && c->rows.count)
                qsort(c->rows.items, c->rows.count, sizeof *c->rows.items, compare_rows);
        return st;
}

static enum status write_commit_files(struct object_table *t, struct table_commit *c, struct error *err)
{
        size_t files = (c->rows.count + FILE_ROWS - 1) / FILE_ROWS;
        enum status st = ST_OK;

        c->adds = calloc(files + 1, sizeof *c->adds);
        if (!c->adds)
                return error_no_memory(err);
        for (size_t at = 0; !st && at < c->rows.count; at += FILE_ROWS) {
                size_t n = c->rows.count - at < FILE_ROWS ? c->rows.count - at : FILE_ROWS;

                st = write_object_file(t, c->rows.items + at, n, &c->adds[c->add_count++], err);
        }
        return st;
}

static enum status send_table_commit(struct object_table *t, const struct table_commit *c, struct error *err)
{
        _cleanup_free_ struct delta_add *adds = calloc(c->add_count + 1, sizeof *adds);
        _cleanup_free_ const char **removes = calloc(t->count + 1, sizeof *removes);
        struct delta_commit commit = { .size = sizeof commit, .operation = "WRITE" };

        if (!adds || !removes)
                return error_no_memory(err);
        for (size_t i = 0; i < c->add_count; i++)
                adds[commit.add_count++] = (struct delta_add){ .path = c->adds[i].file.path,
                                                               .size = c->adds[i].bytes,
                                                               .stats = (const char *)c->adds[i].stats.data };
        for (size_t i = 0; i < t->count; i++)
                if (c->is_replaced[i])
                        removes[commit.remove_count++] = t->files[i].path;
        if (!commit.add_count && !commit.remove_count)
                return ST_OK;
        commit.adds = adds;
        commit.removes = removes;
        return delta_commit(t->log, &commit, err);
}

/* The names of what was committed take the place of those of the replaced files. */
static enum status adopt_commit(struct object_table *t, struct table_commit *c, struct error *err)
{
        size_t kept = 0;

        for (size_t i = 0; i < t->count; i++) {
                if (c->is_replaced[i])
                        deinit_object_file(&t->files[i]);
                else
                        t->files[kept++] = t->files[i];
        }
        t->count = kept;
        for (size_t i = 0; i < c->add_count; i++) {
                struct object_table_file f = c->adds[i].file;
                enum status st;

                c->adds[i].file = (struct object_table_file){ 0 };
                st = append_object_file(t, &f, err);
                if (st) {
                        t->is_stale = true;
                        return st;
                }
        }
        return ST_OK;
}

static enum status follow_object_log(struct object_table *t, struct error *err)
{
        enum status st = delta_table_refresh(t->log, err);

        if (!st)
                st = load_object_files(t, err);
        t->is_stale = st;
        return st;
}

/* After a lost answer: whether the log has it. Its files have names that no other commit uses. */
static enum status check_lost_commit(struct object_table *t, const struct table_commit *c, const struct error *lost,
                                     struct error *err)
{
        enum status st = follow_object_log(t, err);

        if (st)
                return ST_OS;
        if (c->add_count && is_known_object_file(t, c->adds[0].file.path))
                return ST_OK;
        *err = *lost;
        return ST_OS;
}

static void remove_unused_files(struct object_table *t, const struct table_commit *c)
{
        for (size_t i = 0; i < c->add_count; i++) {
                _cleanup_free_ char *key = make_object_table_key(c->adds[i].file.path);

                if (key)
                        (void)!storage_remove(t->storage, key, NULL);
        }
}

static enum status try_table_commit(struct object_table *t, const struct object_change *changes, size_t count,
                                    struct error *err)
{
        struct table_commit c = { .rows = { .changes = changes, .change_count = count } };
        struct error lost;
        enum status st = t->is_stale ? follow_object_log(t, err) : ST_OK;

        arena_init(&c.rows.texts, ROWS_BYTES);
        if (!st)
                st = collect_commit_rows(t, &c, err);
        if (!st)
                st = write_commit_files(t, &c, err);
        if (!st) {
                st = send_table_commit(t, &c, err);
                if (!st)
                        st = adopt_commit(t, &c, err);
                else if (st == ST_OS) {
                        lost = *err;
                        t->is_stale = true;
                        st = check_lost_commit(t, &c, &lost, err);
                } else {
                        remove_unused_files(t, &c);
                        t->is_stale = true;
                }
        }
        deinit_table_commit(&c);
        return st;
}

enum status object_table_commit(struct object_table *t, const struct object_change *changes, size_t count,
                                struct error *err)
{
        struct error own = { 0 };
        enum status st = ST_BUSY;

        err = err ? err : &own;
        pthread_mutex_lock(&t->lock);
        for (unsigned i = 0; st == ST_BUSY && i < COMMIT_TRIES; i++)
                st = try_table_commit(t, changes, count, err);
        pthread_mutex_unlock(&t->lock);
        return st;
}

/* ---- vacuum ---- */

static enum status remove_old_files(struct object_table *t, int64_t before_ms, struct error *err)
{
        struct delta_snapshot *removed;
        enum status st = delta_removed_acquire(t->log, &removed, err);

        for (size_t i = 0; !st && i < removed->file_count; i++) {
                const struct delta_file *f = removed->files[i];
                _cleanup_free_ char *key = make_object_table_key(f->path);

                if (f->removed_ms >= before_ms)
                        continue;
                st = key ? storage_remove(t->storage, key, err) : error_no_memory(err);
                st = st == ST_NOT_FOUND ? ST_OK : st;
                if (!st)
                        delta_table_forget(t->log, f);
        }
        if (removed)
                delta_snapshot_release(removed);
        return st;
}

enum status object_table_vacuum(struct object_table *t, struct error *err)
{
        int64_t day_ms = INT64_C(1000) * RETENTION_S;
        int64_t before_ms = storage_now_ms(t->storage) - day_ms;
        struct delta_log_cleanup unused = { 0 };
        enum status st;

        pthread_mutex_lock(&t->lock);
        st = remove_old_files(t, before_ms, err);
        if (!st)
                st = delta_table_clean_up_log(t->log, before_ms - before_ms % day_ms, &unused, err);
        pthread_mutex_unlock(&t->lock);
        return st;
}

/* ---- opening ---- */

static enum status open_object_log(struct object_table *t, bool read_only, struct error *err)
{
        static const struct delta_retention retention = { RETENTION_S, RETENTION_S };
        enum status st = delta_table_open(t->storage, OBJECT_TABLE_FOLDER, &t->log, err);

        if (st != ST_NOT_FOUND || read_only)
                return st;
        st = delta_table_create(t->storage, OBJECT_TABLE_FOLDER, object_columns, OBJECT_COLUMN_COUNT, NULL, 0,
                                &retention, err);
        return st && st != ST_BUSY ? st : delta_table_open(t->storage, OBJECT_TABLE_FOLDER, &t->log, err);
}

enum status object_table_open(struct storage *s, bool read_only, struct object_table **ret, struct error *err)
{
        struct object_table *t = calloc(1, sizeof *t);
        enum status st;

        if (!t)
                return error_no_memory(err);
        t->storage = s;
        pthread_mutex_init(&t->lock, NULL);
        st = open_object_log(t, read_only, err);
        if (!st)
                st = load_object_files(t, err);
        if (st)
                object_table_close(t);
        else
                *ret = t;
        return st;
}

void object_table_close(struct object_table *t)
{
        if (!t)
                return;
        for (size_t i = 0; i < t->count; i++)
                deinit_object_file(&t->files[i]);
        free(t->files);
        delta_table_close(t->log);
        pthread_mutex_destroy(&t->lock);
        free(t);
}
