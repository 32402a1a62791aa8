/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translates between the Delta logs and the objects of the store. tables_load() turns the snapshots of the logs
 * into one struct tables; both lists are sorted by name, so parts that an older snapshot has are found by a merge of
 * the lists, and shared. What a part caches (counts, rows of locations) thus lives as long as a snapshot has the
 * file. tables_commit() turns a struct table_change into a commit of one log.
 *
 * `flushed` and the label columns come from the log of samples: its transaction version and its schema.
 *
 * In the file: names and days; open and close of the logs; parts; reading the logs; snapshots; commits.
 * No lock: calls with struct table_logs are serialized by the caller (writer_lock, or s->lock of a reader);
 * references are atomic.
 */
#include "profile-store/tables/tables.h"

#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "profile-store/tables/location_cache.h"

#define APP_ID_BYTES (sizeof QUEUE_APP_ID + NODE_ID_SIZE)
#define S_PER_DAY 86400

/* Of transactions of function_history: the version of a table whose commits it covers. */
static const char *const coverage_ids[TABLE_COUNT] = {
        [TABLE_SAMPLES] = "cairn-history-samples",
        [TABLE_LOCATIONS] = "cairn-history-locations",
};

/* ---- names ------------------------------------------------------------------------------ */

char *make_table_key(enum table t, const char *name)
{
        return path_join(table_name(t), name);
}

void format_table_day(int64_t day, char ret[static 32])
{
        time_t seconds = (time_t)(day * S_PER_DAY);
        struct tm tm;

        gmtime_r(&seconds, &tm);
        strftime(ret, 32, "%Y-%m-%d", &tm);
}

static bool parse_day(const char *text, int64_t *ret)
{
        struct tm tm = { 0 };
        const char *end = strptime(text, "%Y-%m-%d", &tm);

        if (!end || *end)
                return false;
        *ret = timegm(&tm) / S_PER_DAY;
        return true;
}

char *make_day_path(int64_t day, const char *name)
{
        char text[32], *ret;

        format_table_day(day, text);
        return asprintf(&ret, "date=%s/%s", text, name) < 0 ? NULL : ret;
}

/* The logs are read in this order at the opening; later as in read_logs(). */
static const enum table reading_order[TABLE_COUNT] = { TABLE_HISTORY, TABLE_SAMPLES, TABLE_STACKS, TABLE_LOCATIONS };

/* ---- open ------------------------------------------------------------------------------- */

/* Commits older than the grace period are useless: files of those versions have been unlinked. */
static struct delta_retention get_log_retention(int64_t grace_ms)
{
        int64_t s = (grace_ms + 999) / 1000;

        return (struct delta_retention){ .removed_s = s, .log_s = s };
}

static enum status create_delta_table(struct storage *s, enum table t, const struct delta_retention *retention,
                                      struct error *err)
{
        static const char *const date[] = { "date" };
        _cleanup_arena_ struct arena a;
        const struct parquet_field *fields;
        size_t count;
        enum status st;

        arena_init(&a, MiB(1));
        st = make_table_fields(&a, t, NULL, true, &fields, &count, err);
        return st ? st
                  : delta_table_create(s, table_name(t), fields, count, date, t == TABLE_LOCATIONS ? 0 : 1, retention,
                                       err);
}

/* The application id of the positions of a node's queue. */
static const char *format_app_id(const char *node, char ret[static APP_ID_BYTES])
{
        snprintf(ret, APP_ID_BYTES, "%s%s%s", QUEUE_APP_ID, *node ? "/" : "", node);
        return ret;
}

uint64_t tables_get_flushed(struct table_logs *l, const char *node)
{
        char app_id[APP_ID_BYTES];
        int64_t flushed = delta_table_get_txn_version(l->logs[TABLE_SAMPLES], format_app_id(node, app_id));

        return flushed > 0 ? (uint64_t)flushed : 0;
}

enum status table_logs_open(struct storage *storage, const char *node, bool read_only, int64_t grace_ms,
                            struct table_logs *ret, struct error *err)
{
        struct table_logs l = {
                .storage = storage, .grace_ms = grace_ms, .opened_ms = storage_now_ms(storage), .read_only = read_only
        };
        const struct delta_retention retention = get_log_retention(grace_ms);
        enum status st = ST_OK;

        for (int i = 0; !st && i < TABLE_COUNT; i++) {
                const enum table t = reading_order[i];

                st = delta_table_open(storage, table_name(t), &l.logs[t], err);
                if (!st && read_only)
                        delta_table_begin_follow(l.logs[t]);
                if (st == ST_NOT_FOUND && read_only && t == TABLE_HISTORY)
                        st = ST_OK;
                if (st == ST_NOT_FOUND && !read_only) {
                        st = create_delta_table(storage, t, &retention, err);
                        if (!st || st == ST_BUSY) /* another node created it */
                                st = delta_table_open(storage, table_name(t), &l.logs[t], err);
                }
        }
        snprintf(l.node, sizeof l.node, "%s", node);
        if (st)
                table_logs_close(&l);
        else
                *ret = l;
        return st;
}

enum status table_logs_set_retention(struct table_logs *l, struct error *err)
{
        const struct delta_retention retention = get_log_retention(l->grace_ms);
        enum status st = ST_OK;

        for (int t = 0; !st && t < TABLE_COUNT; t++)
                st = delta_table_set_retention(l->logs[t], &retention, err);
        return st;
}

void table_logs_close(struct table_logs *l)
{
        for (int t = 0; t < TABLE_COUNT; t++) {
                if (l->logs[t])
                        delta_table_close(l->logs[t]);
        }
        *l = (struct table_logs){ 0 };
}

/* ---- snapshots ---------------------------------------------------------------------------- */

static void table_part_unref(struct table_part *p)
{
        if (!p || atomic_fetch_sub(&p->references, 1) != 1)
                return;
        free(p->path);
        free(p->min_build_id);
        free(p->max_build_id);
        location_cache_drop(atomic_load(&p->locations));
        free(p);
}

static enum status create_table_part(const struct table_logs *l, enum table t, const struct delta_file *f,
                                     struct table_part **ret, struct error *err)
{
        struct table_part *p = calloc(1, sizeof *p);
        int64_t unused;
        enum status st = ST_OK;

        if (!p)
                return error_no_memory(err);
        atomic_init(&p->references, 1);
        atomic_init(&p->unresolved, -1);
        p->bytes = f->size;
        p->added_s = f->modified_ms / 1000;
        p->storage = l->storage;
        if (asprintf(&p->path, "%s/%s/%s", storage_root(l->storage), table_name(t), f->path) < 0) {
                p->path = NULL;
                st = error_no_memory(err);
        } else {
                p->key = p->path + strlen(storage_root(l->storage)) + 1;
                p->name = p->path + strlen(storage_root(l->storage)) + strlen(table_name(t)) + 2;
        }
        if (t == TABLE_HISTORY && !delta_file_get_int_range(f, "source_version", &p->source_version, &unused))
                p->source_version = -1;
        if (!delta_file_get_int_range(f, t == TABLE_HISTORY ? "hour" : "time", &p->min_us, &p->max_us)) {
                p->min_us = INT64_MIN;
                p->max_us = INT64_MAX;
        }
        if (t == TABLE_HISTORY && p->max_us != INT64_MAX)
                p->max_us -= p->max_us % 1000000; /* hours are exact, bounds of the log are rounded */
        if (!delta_file_get_row_count(f, &p->rows))
                p->rows = 0;
        if (!st && t == TABLE_LOCATIONS)
                st = delta_file_get_text_range(f, "build_id", &p->min_build_id, &p->max_build_id, err);
        for (size_t i = 0; !st && i < f->partition_count; i++) {
                if (strcmp(f->partitions[i].key, "date") == 0 && f->partitions[i].value)
                        p->has_day = parse_day(f->partitions[i].value, &p->day);
        }
        if (st)
                table_part_unref(p);
        else
                *ret = p;
        return st;
}

bool table_part_may_have_build_id(const struct table_part *p, const struct build_id *id)
{
        char hex[BUILD_ID_HEX_MAX];

        if (!p->min_build_id)
                return true;
        build_id_hex(id, hex);
        return strcmp(p->min_build_id, hex) <= 0 && strcmp(hex, p->max_build_id) <= 0;
}

/* Merge two lists sorted by name; unchanged parts are shared. */
static enum status load_table_parts(struct tables *to, const struct table_logs *l, enum table t,
                                    const struct delta_snapshot *snapshot, const struct tables *before,
                                    struct error *err)
{
        size_t old = 0, old_count = before ? before->part_count[t] : 0;

        to->parts[t] = calloc(snapshot->file_count + 1, sizeof *to->parts[t]);
        if (!to->parts[t])
                return error_no_memory(err);
        for (size_t i = 0; i < snapshot->file_count; i++) {
                const struct delta_file *f = snapshot->files[i];
                struct table_part **part = &to->parts[t][to->part_count[t]];

                while (old < old_count && strcmp(before->parts[t][old]->name, f->path) < 0)
                        old++;
                if (old < old_count && strcmp(before->parts[t][old]->name, f->path) == 0) {
                        *part = before->parts[t][old];
                        atomic_fetch_add(&(*part)->references, 1);
                } else {
                        enum status st = create_table_part(l, t, f, part, err);

                        if (st)
                                return st;
                }
                to->part_count[t]++;
        }
        return ST_OK;
}

/* ---- reading the logs ---- */

#define STACKS_AND_LOCATIONS (1U << TABLE_STACKS | 1U << TABLE_LOCATIONS)
#define REFERRING_TABLES (1U << TABLE_SAMPLES | STACKS_AND_LOCATIONS) /* read to their ends after each change */

/* Of a reader; stores of earlier releases lack it. */
static enum status find_history_log(struct table_logs *l, struct error *err)
{
        enum status st = delta_table_open(l->storage, table_name(TABLE_HISTORY), &l->logs[TABLE_HISTORY], err);

        if (!st) {
                delta_table_begin_follow(l->logs[TABLE_HISTORY]);
                l->behind |= REFERRING_TABLES;
        }
        return st == ST_NOT_FOUND ? ST_OK : st;
}

/* Ask for the next commit of each of these tables. @param changed_ret  those that may have further ones. */
static enum status read_next_commits(struct table_logs *l, unsigned asked, unsigned *changed_ret, struct error *err)
{
        struct delta_reading readings[TABLE_COUNT];
        enum table tables[TABLE_COUNT];
        size_t count = 0;
        unsigned changed = 0, ended = 0;
        enum status st;

        for (int i = 0; i < TABLE_COUNT; i++) {
                if (!(asked >> reading_order[i] & 1))
                        continue;
                tables[count] = reading_order[i];
                readings[count++] =
                        (struct delta_reading){ .table = l->logs[reading_order[i]], .may_be_replaced = l->read_only };
        }
        st = delta_tables_read_next(readings, count, err);
        for (size_t i = 0; i < count; i++) {
                changed |= (unsigned)readings[i].has_changed << tables[i];
                ended |= (unsigned)(!readings[i].has_changed && !readings[i].status) << tables[i];
                l->was_replaced[tables[i]] |= readings[i].is_replaced;
        }
        l->behind = (l->behind & ~ended) | changed | (changed ? REFERRING_TABLES : 0);
        *changed_ret = changed;
        return st;
}

/*
 * The files of stacks or locations that were removed meanwhile may be of samples that are removed, too. After a failure
 * samples may have commits whose stacks were not read.
 */
static enum status read_logs_in_order(struct table_logs *l, struct error *err)
{
        bool must_repeat = true;
        enum status st = ST_OK;

        l->behind |= REFERRING_TABLES;
        while (!st && must_repeat) {
                must_repeat = false;
                for (int i = 0; !st && i < TABLE_COUNT; i++) {
                        const enum table t = reading_order[i];
                        bool has_removed = false;

                        if (l->logs[t])
                                st = delta_table_catch_up(l->logs[t], &has_removed, err);
                        must_repeat |= has_removed && STACKS_AND_LOCATIONS >> t & 1;
                }
        }
        if (!st)
                l->behind = 0;
        return st;
}

/*
 * Usually one commit at most is new in each table, and the second round finds no further one. After that, a table with
 * more commits is read to its end before the others are asked again.
 */
static enum status read_logs_to_end(struct table_logs *l, struct error *err)
{
        unsigned changed = 0;
        enum status st = ST_OK;

        for (unsigned round = 0; !st && l->behind && round < DELTA_ROUNDS_MAX; round++)
                st = read_next_commits(l, round > 1 && changed ? changed : l->behind, &changed, err);
        return !st && l->behind ? read_logs_in_order(l, err) : st;
}

static enum status read_logs(struct table_logs *l, bool refresh, struct error *err)
{
        enum status st = ST_OK;

        if (!l->logs[TABLE_HISTORY])
                st = find_history_log(l, err);
        else if (refresh)
                l->behind |= 1U << TABLE_HISTORY;
        if (refresh)
                l->behind |= REFERRING_TABLES;
        return st ? st : read_logs_to_end(l, err);
}

static enum status load_table_snapshot(struct tables *to, struct table_logs *l, enum table t,
                                       const struct tables *before, struct error *err)
{
        struct delta_snapshot *snapshot;
        enum status st = ST_OK;

        if (!l->logs[t])
                return ST_OK;
        st = delta_snapshot_acquire(l->logs[t], &snapshot, err);
        if (st)
                return st;
        to->versions[t] = (int64_t)snapshot->version;
        *(t == TABLE_SAMPLES ? &to->removal : &to->settled[t]) =
                delta_table_get_txn_version(l->logs[t], REMOVAL_APP_ID);
        st = load_table_parts(to, l, t, snapshot, l->was_replaced[t] ? NULL : before, err);
        for (int of = 0; t == TABLE_HISTORY && of < TABLE_COUNT; of++)
                if (coverage_ids[of])
                        to->covered[of] = delta_table_get_txn_version(l->logs[t], coverage_ids[of]);
        if (!st && t == TABLE_SAMPLES) {
                to->flushed = tables_get_flushed(l, l->node);
                st = label_columns_parse(snapshot->schema_json, &to->columns, err);
        }
        delta_snapshot_release(snapshot);
        return st;
}

struct tables *tables_create_empty(void)
{
        struct tables *t = calloc(1, sizeof *t);

        if (!t)
                return NULL;
        atomic_init(&t->references, 1);
        for (int i = 0; i < TABLE_COUNT; i++)
                t->covered[i] = -1;
        return t;
}

enum status tables_load(struct table_logs *l, bool refresh, struct tables *before, struct tables **ret,
                        struct error *err)
{
        struct tables *t = tables_create_empty();
        enum status st = t ? read_logs(l, refresh, err) : error_no_memory(err);

        for (int i = 0; !st && i < TABLE_COUNT; i++)
                st = load_table_snapshot(t, l, i, before, err);
        if (st) {
                tables_unref(t);
                return st;
        }
        for (int i = 0; i < TABLE_COUNT; i++) {
                l->replacements += l->was_replaced[i];
                l->was_replaced[i] = false;
        }
        t->replacements = l->replacements;
        *ret = t;
        return ST_OK;
}

struct tables *tables_ref(struct tables *t)
{
        atomic_fetch_add(&t->references, 1);
        return t;
}

void tables_unref(struct tables *t)
{
        if (!t || atomic_fetch_sub(&t->references, 1) != 1)
                return;
        for (int i = 0; i < TABLE_COUNT; i++) {
                for (size_t k = 0; k < t->part_count[i]; k++)
                        table_part_unref(t->parts[i][k]);
                free(t->parts[i]);
        }
        label_columns_deinit(&t->columns);
        free(t);
}

/* ---- commit -------------------------------------------------------------------------------- */

void table_add_deinit(struct table_add *a)
{
        free(a->name);
        free(a->written.stats);
        *a = (struct table_add){ 0 };
}

/* Temporary memory of a commit. */
struct commit_lists {
        struct delta_add *adds;
        struct delta_partition *partitions;
        char (*days)[32];
        const char **removes;
        struct arena arena;
};

static void commit_lists_deinit(struct commit_lists *c)
{
        free(c->adds);
        free(c->partitions);
        free(c->days);
        free(c->removes);
        arena_deinit(&c->arena);
}

/* Tables older than the column get it with the first part that has it. */
static enum status add_start_lines_column(struct delta_table *log, struct arena *a, struct delta_commit *c,
                                          struct error *err)
{
        struct delta_snapshot *snapshot;
        bool is_there;
        enum status st = delta_snapshot_acquire(log, &snapshot, err);

        if (st)
                return st;
        is_there = schema_has_column(snapshot->schema_json, START_LINES_COLUMN);
        delta_snapshot_release(snapshot);
        return is_there ? ST_OK : make_table_fields(a, TABLE_LOCATIONS, NULL, true, &c->fields, &c->field_count, err);
}

static int compare_name_to_part(const void *name, const void *part)
{
        return strcmp(name, (*(struct table_part *const *)part)->name);
}

struct table_part *find_live_part(const struct tables *t, enum table table, const char *name)
{
        struct table_part *const *found = t->part_count[table] ? bsearch(name, t->parts[table], t->part_count[table],
                                                                         sizeof(void *), compare_name_to_part)
                                                               : NULL;

        return found ? *found : NULL;
}

bool are_live_parts(const struct tables *t, enum table table, struct table_part *const *parts, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                if (!find_live_part(t, table, parts[i]->name))
                        return false;
        }
        return true;
}

/* Commits of other writers do not conflict with one that only adds files: it takes the next free version. */
static enum status commit_after_others(struct delta_table *log, const struct delta_commit *c, struct error *err)
{
        enum status st = delta_commit(log, c, err);

        for (int i = 1; st == ST_BUSY && !c->remove_count && !c->is_exact && i < COMMIT_ATTEMPTS; i++) {
                st = delta_table_refresh(log, err);
                if (!st)
                        st = delta_commit(log, c, err);
        }
        return st;
}

static enum status allocate_commit_lists(const struct table_change *change, struct commit_lists *ret, struct error *err)
{
        *ret = (struct commit_lists){
                .adds = calloc(change->add_count + 1, sizeof *ret->adds),
                .partitions = calloc(change->add_count + 1, sizeof *ret->partitions),
                .days = calloc(change->add_count + 1, sizeof *ret->days),
                .removes = calloc(change->remove_count + 1, sizeof *ret->removes),
        };
        arena_init(&ret->arena, MiB(16));
        return ret->adds && ret->partitions && ret->days && ret->removes ? ST_OK : error_no_memory(err);
}

static enum status make_commit_lists(struct table_logs *l, const struct table_change *change,
                                     struct commit_lists *lists, struct delta_commit *c, struct error *err)
{
        for (size_t i = 0; i < change->add_count; i++) {
                const struct table_add *a = &change->adds[i];

                if (a->has_day)
                        format_table_day(a->day, lists->days[i]);
                lists->partitions[i] = (struct delta_partition){ .key = "date", .value = lists->days[i] };
                lists->adds[i] = (struct delta_add){ .path = a->name,
                                                     .size = a->written.bytes,
                                                     .stats = a->written.stats,
                                                     .partitions = &lists->partitions[i],
                                                     .partition_count = a->has_day };
        }
        for (size_t i = 0; i < change->remove_count; i++)
                lists->removes[i] = change->removes[i]->name;
        if (change->columns) {
                enum status st = make_table_fields(&lists->arena, change->table, change->columns, true, &c->fields,
                                                   &c->field_count, err);

                if (st)
                        return st;
        }
        return change->table == TABLE_LOCATIONS && change->add_count
                       ? add_start_lines_column(l->logs[TABLE_LOCATIONS], &lists->arena, c, err)
                       : ST_OK;
}

/* @param lists, app_id  what the commit borrows */
static enum status make_delta_commit(struct table_logs *l, const struct table_change *change,
                                     struct commit_lists *lists, char app_id[static APP_ID_BYTES],
                                     struct delta_commit *ret, struct error *err)
{
        struct delta_commit c = { .size = sizeof c,
                                  .operation = change->rearranges      ? "OPTIMIZE"
                                               : !change->remove_count ? "WRITE"
                                               : change->add_count     ? "UPDATE"
                                                                       : "DELETE",
                                  .rearranges = change->rearranges,
                                  .adds = lists->adds,
                                  .add_count = change->add_count,
                                  .removes = lists->removes,
                                  .remove_count = change->remove_count,
                                  .is_exact = change->base,
                                  .after_version = change->base ? change->base->versions[change->table] : 0,
                                  .batch_ids = change->batch_ids,
                                  .batch_id_count = change->batch_id_count,
                                  .included = change->included,
                                  .included_count = change->included_count };
        enum status st = make_commit_lists(l, change, lists, &c, err);

        if (st)
                return st;
        if (change->flushed) {
                c.app_id = format_app_id(l->node, app_id);
                c.txn_version = (int64_t)change->flushed;
        } else if (change->mark) {
                c.app_id = change->mark;
                c.txn_version = change->mark_version;
        }
        if (change->covers) {
                c.app_id = coverage_ids[change->covers->table];
                c.txn_version = (int64_t)change->covers->version;
        }
        if (change->build_ids)
                c.parameter = (struct delta_parameter){ TABLE_BUILD_IDS, change->build_ids };
        *ret = c;
        return ST_OK;
}

/* Whether the commit may bring samples of other nodes to this one: as a part of it, or before it. */
static bool may_follow_others(const struct table_logs *l, const struct table_change *change)
{
        return *l->node && change->table == TABLE_SAMPLES && (change->included_count || !change->base);
}

enum status tables_commit(struct table_logs *l, const struct table_change *change, struct error *err)
{
        _cleanup_(commit_lists_deinit) struct commit_lists lists = { 0 };
        char app_id[APP_ID_BYTES];
        struct delta_commit c;
        enum status st = allocate_commit_lists(change, &lists, err);

        if (!st)
                st = make_delta_commit(l, change, &lists, app_id, &c, err);
        if (may_follow_others(l, change))
                l->behind |= STACKS_AND_LOCATIONS;
        return st ? st : commit_after_others(l->logs[change->table], &c, err);
}

enum status tables_write_commit(struct table_logs *l, const struct table_change *change, struct buf *ret,
                                struct error *err)
{
        _cleanup_(commit_lists_deinit) struct commit_lists lists = { 0 };
        char app_id[APP_ID_BYTES];
        struct delta_commit c;
        enum status st = allocate_commit_lists(change, &lists, err);

        if (!st)
                st = make_delta_commit(l, change, &lists, app_id, &c, err);
        return st ? st : delta_commit_write(l->logs[change->table], &c, ret, err);
}

enum status tables_take_batch_ids(struct table_logs *l, struct hash128 **ret, size_t *count_ret, struct error *err)
{
        return delta_table_take_batch_ids(l->logs[TABLE_SAMPLES], ret, count_ret, err);
}

void tables_return_batch_ids(struct table_logs *l)
{
        delta_table_return_batch_ids(l->logs[TABLE_SAMPLES]);
}
