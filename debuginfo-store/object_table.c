/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In memory are the names and puts of each file's rows, sorted, by which a commit finds the files to replace;
 * all other columns are read again when their file is replaced. Files have at most FILE_ROWS rows, so that a change of
 * one row rewrites little.
 *
 * Another writer's commit makes delta_commit() fail with ST_BUSY: the state is read again, and the files to replace are
 * chosen anew.
 *
 * Locks: `writing` serializes what changes the state, commits and following; it is held over requests to the store.
 * `lock` protects the list of files while it is changed or searched, never over a request, so that a search does not
 * wait for a store that is slow or away. With `writing` the list may be read without `lock`.
 *
 * In the file: the names in memory, the rows of a commit, commits, vacuum, opening.
 */
#include "debuginfo-store/object_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/limits.h"
#include "common/memory/arena.h"
#include "common/memory/array.h"
#include "common/metrics.h"
#include "common/text.h"
#include "debuginfo-store/object_rows.h"
#include "profile-store/delta/delta_log.h"

#define FILE_ROWS 4096 /* of a file, as long as no file has to be written with more */
#define FILE_PREFIX "part-"
#define FILE_SUFFIX ".parquet"
#define SMALL_FILES 8 /* so many are merged by the next commit */
#define COMMIT_TRIES 8
#define ROWS_BYTES MiB(512) /* texts of the rows of one commit */
#define RETENTION_S (24 * 3600)

static struct metric orphans = METRIC_COUNTER("cairn_object_table_orphans_total",
                                              "Files of the tables of objects that were removed since no version has "
                                              "them, as after a failed commit.",
                                              "");

struct table_name {
        struct object_name name;
        uint8_t hash[OBJECT_GENERATION_BYTES]; /* the first bytes of the content's */
        uint64_t put_id;
};

struct object_table_file {
        char *path;               /* as in the log; owned */
        struct table_name *names; /* sorted; owned */
        size_t count, capacity;
};

struct object_table {
        struct storage *storage; /* borrowed */
        struct delta_table *log; /* NULL until it could be opened */
        bool is_read_only;
        atomic_bool is_read;
        pthread_mutex_t writing, lock; /* in this order */
        struct object_table_file *files;
        size_t count;
        bool is_stale;    /* a commit's outcome was unknown */
        bool has_changed; /* by others, since object_table_follow() said so */
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

/* ---- the names in memory; with `writing` ---- */

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
        f->names[f->count] =
                (struct table_name){ .name = { row->object.build_id, row->object.kind }, .put_id = row->object.put_id };
        memcpy(f->names[f->count++].hash, row->object.sha256, OBJECT_GENERATION_BYTES);
        return ST_OK;
}

/* Files of the next state. */
struct file_list {
        struct object_table_file *items;
        size_t count, capacity;
};

/* Takes f, also on failure. */
static enum status append_object_file(struct file_list *l, struct object_table_file *f, struct error *err)
{
        if (!array_reserve(&l->items, &l->capacity, l->count)) {
                deinit_object_file(f);
                return error_no_memory(err);
        }
        sort_table_names(f);
        l->items[l->count++] = *f;
        return ST_OK;
}

static void deinit_file_list(struct file_list *l)
{
        for (size_t i = 0; i < l->count; i++)
                deinit_object_file(&l->items[i]);
        free(l->items);
}

static enum status load_object_file(struct object_table *t, const char *path, struct file_list *to, struct error *err)
{
        struct object_table_file f = { .path = strdup(path) };
        enum status st = f.path ? visit_object_file(t, path, append_table_name, &f, err) : error_no_memory(err);

        if (!st)
                return append_object_file(to, &f, err);
        deinit_object_file(&f);
        return st;
}

/* The files that are kept, and the added ones, which are taken, also on failure. */
static enum status replace_object_files(struct object_table *t, const bool *is_kept, struct file_list *added,
                                        struct error *err)
{
        struct object_table_file *files = calloc(t->count + added->count + 1, sizeof *files), *before = t->files;
        size_t before_count = t->count, count = 0;

        if (!files) {
                deinit_file_list(added);
                return error_no_memory(err);
        }
        for (size_t i = 0; i < before_count; i++)
                if (is_kept[i])
                        files[count++] = before[i];
        for (size_t i = 0; i < added->count; i++)
                files[count++] = added->items[i];
        free(added->items);
        pthread_mutex_lock(&t->lock);
        t->files = files;
        t->count = count;
        pthread_mutex_unlock(&t->lock);
        for (size_t i = 0; i < before_count; i++)
                if (!is_kept[i])
                        deinit_object_file(&before[i]);
        free(before);
        return ST_OK;
}

static bool is_in_object_snapshot(const struct delta_snapshot *s, const char *path)
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

/* Forget the files that the log removed, read those that it added. */
static enum status load_object_files(struct object_table *t, struct error *err)
{
        _cleanup_free_ bool *is_kept = calloc(t->count + 1, sizeof *is_kept);
        struct file_list added = { 0 };
        struct delta_snapshot *s;
        enum status st = is_kept ? delta_snapshot_acquire(t->log, &s, err) : error_no_memory(err);

        if (st)
                return st;
        for (size_t i = 0; i < t->count; i++) {
                is_kept[i] = is_in_object_snapshot(s, t->files[i].path);
                t->has_changed |= !is_kept[i];
        }
        for (size_t i = 0; !st && i < s->file_count; i++)
                if (!is_known_object_file(t, s->files[i]->path))
                        st = load_object_file(t, s->files[i]->path, &added, err);
        delta_snapshot_release(s);
        t->has_changed |= added.count > 0;
        if (!st)
                return replace_object_files(t, is_kept, &added, err);
        deinit_file_list(&added);
        return st;
}

static enum status open_object_log(struct object_table *t, struct error *err)
{
        static const struct delta_retention retention = { RETENTION_S, RETENTION_S };
        enum status st = delta_table_open(t->storage, OBJECT_TABLE_FOLDER, &t->log, err);

        if (st == ST_NOT_FOUND && !t->is_read_only) {
                st = delta_table_create(t->storage, OBJECT_TABLE_FOLDER, object_columns, OBJECT_COLUMN_COUNT, NULL, 0,
                                        &retention, err);
                if (!st || st == ST_BUSY)
                        st = delta_table_open(t->storage, OBJECT_TABLE_FOLDER, &t->log, err);
        }
        return st;
}

static enum status follow_object_log(struct object_table *t, struct error *err)
{
        enum status st = t->log ? delta_table_refresh(t->log, err) : open_object_log(t, err);

        if (!st)
                st = load_object_files(t, err);
        t->is_stale = st;
        if (!st)
                atomic_store(&t->is_read, true);
        return st;
}

enum status object_table_follow(struct object_table *t, bool *changed_ret, struct error *err)
{
        enum status st;

        pthread_mutex_lock(&t->writing);
        st = follow_object_log(t, err);
        if (!st && changed_ret) {
                *changed_ret = t->has_changed;
                t->has_changed = false;
        }
        pthread_mutex_unlock(&t->writing);
        return st;
}

bool object_table_find_put(struct object_table *t, const struct object_name *name, struct stored_object *ret)
{
        const struct table_name *found = NULL;

        pthread_mutex_lock(&t->lock);
        for (size_t i = 0; !found && i < t->count; i++)
                found = find_table_name(&t->files[i], name);
        if (found) {
                *ret = (struct stored_object){ .build_id = name->build_id,
                                               .kind = name->kind,
                                               .put_id = found->put_id };
                memcpy(ret->sha256, found->hash, sizeof found->hash);
        }
        pthread_mutex_unlock(&t->lock);
        return found;
}

bool object_table_is_read(const struct object_table *t)
{
        return atomic_load(&t->is_read);
}

struct path_list {
        char **items; /* all owned */
        size_t count;
};

static void deinit_path_list(struct path_list *l)
{
        for (size_t i = 0; i < l->count; i++)
                free(l->items[i]);
        free(l->items);
}

static enum status copy_object_paths(struct object_table *t, struct path_list *ret, struct error *err)
{
        bool failed;

        pthread_mutex_lock(&t->lock);
        ret->items = calloc(t->count + 1, sizeof *ret->items);
        failed = !ret->items;
        for (size_t i = 0; !failed && i < t->count; i++) {
                ret->items[i] = strdup(t->files[i].path);
                failed = !ret->items[i];
                ret->count += !failed;
        }
        pthread_mutex_unlock(&t->lock);
        return failed ? error_no_memory(err) : ST_OK;
}

/* Files that a commit removes meanwhile stay for a day. */
enum status object_table_visit(struct object_table *t, object_row_visit *visit, void *context, struct error *err)
{
        struct path_list paths = { 0 };
        enum status st = copy_object_paths(t, &paths, err);

        for (size_t i = 0; !st && i < paths.count; i++)
                st = visit_object_file(t, paths.items[i], visit, context, err);
        deinit_path_list(&paths);
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
            asprintf(&ret, FILE_PREFIX "%s" FILE_SUFFIX, hex_encode(id, sizeof id, hex)) < 0)
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

/* ---- commits; with `writing` ---- */

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
        _cleanup_free_ bool *is_kept = calloc(t->count + 1, sizeof *is_kept);
        struct file_list added = { 0 };
        enum status st = is_kept ? ST_OK : error_no_memory(err);

        for (size_t i = 0; !st && i < t->count; i++)
                is_kept[i] = !c->is_replaced[i];
        for (size_t i = 0; !st && i < c->add_count; i++) {
                struct object_table_file f = c->adds[i].file;

                c->adds[i].file = (struct object_table_file){ 0 };
                st = append_object_file(&added, &f, err);
        }
        if (!st)
                st = replace_object_files(t, is_kept, &added, err);
        else
                deinit_file_list(&added);
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

/* The files of a commit that is not in the log, and will not be. */
static void remove_unused_files(struct object_table *t, const struct table_commit *c)
{
        for (size_t i = 0; i < c->add_count; i++) {
                _cleanup_free_ char *key = c->adds[i].file.path ? make_object_table_key(c->adds[i].file.path) : NULL;

                if (key)
                        (void)!storage_remove(t->storage, key, NULL);
        }
}

/* A commit whose answer is lost may appear later, so its files stay until a vacuum finds that no version has them. */
static enum status send_prepared_commit(struct object_table *t, struct table_commit *c, struct error *err)
{
        enum status st = send_table_commit(t, c, err);
        struct error lost;

        if (!st)
                return adopt_commit(t, c, err);
        t->is_stale = true;
        if (st == ST_OS) {
                lost = *err;
                return check_lost_commit(t, c, &lost, err);
        }
        remove_unused_files(t, c);
        return st;
}

static enum status try_table_commit(struct object_table *t, const struct object_change *changes, size_t count,
                                    struct error *err)
{
        struct table_commit c = { .rows = { .changes = changes, .change_count = count } };
        enum status st = t->is_stale ? follow_object_log(t, err) : ST_OK;

        arena_init(&c.rows.texts, ROWS_BYTES);
        if (!st)
                st = collect_commit_rows(t, &c, err);
        if (!st) {
                st = write_commit_files(t, &c, err);
                if (st)
                        remove_unused_files(t, &c);
                else
                        st = send_prepared_commit(t, &c, err);
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
        pthread_mutex_lock(&t->writing);
        for (unsigned i = 0; st == ST_BUSY && i < COMMIT_TRIES; i++)
                st = try_table_commit(t, changes, count, err);
        pthread_mutex_unlock(&t->writing);
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

/* Files of commits that failed: neither the present state nor its removed files have them. */
struct orphan_files {
        struct object_table *table;
        const struct delta_snapshot *live, *removed;
        int64_t before_ms;
};

static bool is_object_file_name(const char *name)
{
        size_t n = strlen(name);

        return strncmp(name, FILE_PREFIX, strlen(FILE_PREFIX)) == 0 && !strchr(name, '/') && n > strlen(FILE_SUFFIX) &&
               strcmp(name + n - strlen(FILE_SUFFIX), FILE_SUFFIX) == 0;
}

static enum status remove_orphan_file(void *context, const char *key, const struct storage_info *info,
                                      struct error *err)
{
        const struct orphan_files *o = context;
        const char *name = key + strlen(OBJECT_TABLE_FOLDER "/");
        enum status st;

        if (info->modified_ms >= o->before_ms || !is_object_file_name(name) || is_in_object_snapshot(o->live, name) ||
            is_in_object_snapshot(o->removed, name))
                return ST_OK;
        st = storage_remove(o->table->storage, key, err);
        metric_add(&orphans, !st);
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status remove_orphan_files(struct object_table *t, int64_t before_ms, struct error *err)
{
        struct delta_snapshot *live = NULL, *removed = NULL;
        struct orphan_files o = { .table = t, .before_ms = before_ms };
        uint64_t unfinished = 0;
        enum status st = delta_snapshot_acquire(t->log, &live, err);

        if (!st)
                st = delta_removed_acquire(t->log, &removed, err);
        o.live = live;
        o.removed = removed;
        if (!st)
                st = storage_list(t->storage, OBJECT_TABLE_FOLDER "/", "", remove_orphan_file, &o, err);
        if (!st)
                st = storage_remove_unfinished(t->storage, OBJECT_TABLE_FOLDER "/", before_ms, &unfinished, err);
        delta_snapshot_release(live);
        delta_snapshot_release(removed);
        return st;
}

enum status object_table_vacuum(struct object_table *t, struct error *err)
{
        int64_t day_ms = INT64_C(1000) * RETENTION_S, before_ms;
        struct delta_log_cleanup unused = { 0 };
        enum status st = object_table_follow(t, NULL, err); /* whose answers tell the time */

        before_ms = storage_now_ms(t->storage) - day_ms;
        if (!st)
                st = remove_old_files(t, before_ms, err);
        if (!st)
                st = remove_orphan_files(t, before_ms, err);
        return st ? st : delta_table_clean_up_log(t->log, before_ms - before_ms % day_ms, &unused, err);
}

/* ---- opening ---- */

enum status object_table_open(struct storage *s, bool read_only, struct object_table **ret, struct error *err)
{
        struct object_table *t = calloc(1, sizeof *t);
        struct error own = { 0 };
        enum status st;

        err = err ? err : &own; /* which tells a refusal from an absence */
        if (!t)
                return error_no_memory(err);
        t->storage = s;
        t->is_read_only = read_only;
        metric_register(&orphans);
        pthread_mutex_init(&t->writing, NULL);
        pthread_mutex_init(&t->lock, NULL);
        st = follow_object_log(t, err);
        t->has_changed = false;
        if (st && (read_only || st != ST_OS || storage_refused(err))) {
                object_table_close(t);
                return st;
        }
        *ret = t;
        return ST_OK;
}

void object_table_close(struct object_table *t)
{
        if (!t)
                return;
        for (size_t i = 0; i < t->count; i++)
                deinit_object_file(&t->files[i]);
        free(t->files);
        if (t->log)
                delta_table_close(t->log);
        pthread_mutex_destroy(&t->writing);
        pthread_mutex_destroy(&t->lock);
        free(t);
}
