/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows are read first, then the store is listed. A service may replace an object in between: a row whose object is
 * absent is a problem only if the newest version of the table still has that row.
 */
#include "debuginfo-store/object_verification.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "debuginfo-store/object_rows.h"
#include "profile-store/delta/delta_log.h"

struct verified_row {
        char *key; /* owned */
        struct object_name name;
        uint64_t bytes;
        bool is_present;
};

struct object_check {
        struct storage *storage;
        object_problem_report *report;
        void *context;
        struct object_verify_result *result;
        struct verified_row *rows; /* sorted by key while the store is listed */
        size_t count, capacity;
};

static void report_object_problem(struct object_check *c, const char *file, const char *problem)
{
        c->result->problems++;
        c->report(c->context, file, problem);
}

/* Failures of this process or of the way to the store end the check. */
static bool is_failure_of_file(enum status st)
{
        return st == ST_BAD_DATA || st == ST_NOT_FOUND || st == ST_TOO_BIG || st == ST_UNSUPPORTED;
}

/* ---- rows ---- */

static enum status append_verified_row(void *context, const struct object_row *row, struct error *err)
{
        struct object_check *c = context;
        struct verified_row r = { .key = object_format_key(&row->object),
                                  .name = { row->object.build_id, row->object.kind },
                                  .bytes = row->object.stored_bytes };

        if (!r.key || !array_reserve(&c->rows, &c->capacity, c->count)) {
                free(r.key);
                return error_no_memory(err);
        }
        c->rows[c->count++] = r;
        c->result->rows++;
        c->result->bytes += r.bytes;
        return ST_OK;
}

static enum status read_verified_file(struct object_check *c, const struct delta_file *f, struct error *err)
{
        _cleanup_free_ char *key = path_join(OBJECT_TABLE_FOLDER, f->path);
        size_t before = c->count;
        uint64_t rows = 0;
        char problem[80];
        enum status st = key ? object_rows_visit(c->storage, key, append_verified_row, c, err) : error_no_memory(err);

        c->result->files++;
        if (st && is_failure_of_file(st)) {
                report_object_problem(c, key, err->text);
                return ST_OK;
        }
        if (!st && delta_file_get_row_count(f, &rows) && rows != c->count - before) {
                snprintf(problem, sizeof problem, "it has %zu rows, the log says %llu", c->count - before,
                         (unsigned long long)rows);
                report_object_problem(c, key, problem);
        }
        return st;
}

static int compare_verified_names(const void *a, const void *b)
{
        return object_name_compare(&((const struct verified_row *)a)->name, &((const struct verified_row *)b)->name);
}

static void report_repeated_names(struct object_check *c)
{
        if (c->count)
                qsort(c->rows, c->count, sizeof *c->rows, compare_verified_names);
        for (size_t i = 1; i < c->count; i++)
                if (compare_verified_names(&c->rows[i - 1], &c->rows[i]) == 0)
                        report_object_problem(c, c->rows[i].key, "the table has two rows of its name");
}

static enum status read_verified_rows(struct object_check *c, struct delta_table *log, struct error *err)
{
        struct delta_snapshot *s;
        enum status st = delta_snapshot_acquire(log, &s, err);

        if (st)
                return st;
        for (size_t i = 0; !st && i < s->file_count; i++)
                st = read_verified_file(c, s->files[i], err);
        delta_snapshot_release(s);
        if (!st)
                report_repeated_names(c);
        return st;
}

/* ---- objects ---- */

static int compare_verified_keys(const void *a, const void *b)
{
        return strcmp(((const struct verified_row *)a)->key, ((const struct verified_row *)b)->key);
}

static enum status match_listed_object(void *context, const char *key, const struct storage_info *info,
                                       struct error *err)
{
        struct object_check *c = context;
        union {
                const char *text;
                char *key;
        } name = { .text = key };
        const struct verified_row wanted = { .key = name.key };
        struct verified_row *row =
                c->count ? bsearch(&wanted, c->rows, c->count, sizeof wanted, compare_verified_keys) : NULL;
        struct stored_object parsed;
        char problem[96];

        (void)err;
        if (!row) {
                bool is_ours = object_parse_key(key, &parsed);

                c->result->unnamed += is_ours;
                c->result->unnamed_bytes += is_ours ? info->size : 0;
                return ST_OK;
        }
        row->is_present = true;
        if (info->size == row->bytes)
                return ST_OK;
        snprintf(problem, sizeof problem, "it has %llu bytes, its row says %llu", (unsigned long long)info->size,
                 (unsigned long long)row->bytes);
        report_object_problem(c, key, problem);
        return ST_OK;
}

/* Lists may lack new objects, so each is asked for by name. */
static enum status report_absent_objects(struct object_check *c, struct object_table *now, struct error *err)
{
        for (size_t i = 0; i < c->count; i++) {
                const struct verified_row *row = &c->rows[i];
                _cleanup_free_ char *live = NULL;
                struct stored_object put;
                struct storage_info info;
                enum status st = row->is_present ? ST_OK : storage_stat(c->storage, row->key, &info, err);

                if (!st)
                        continue;
                if (st != ST_NOT_FOUND)
                        return st;
                if (!object_table_find_put(now, &row->name, &put))
                        continue;
                live = object_format_key(&put);
                if (!live)
                        return error_no_memory(err);
                if (strcmp(live, row->key) == 0)
                        report_object_problem(c, row->key, "the object does not exist, but has a row");
        }
        return ST_OK;
}

static enum status verify_listed_objects(struct object_check *c, struct error *err)
{
        struct object_table *now = NULL;
        enum status st;

        if (c->count)
                qsort(c->rows, c->count, sizeof *c->rows, compare_verified_keys);
        st = storage_list(c->storage, "objects/", "", match_listed_object, c, err);
        if (!st)
                st = storage_list(c->storage, "symbols/", "", match_listed_object, c, err);
        if (!st)
                st = object_table_open(c->storage, true, &now, err);
        if (st && is_failure_of_file(st) && c->result->problems) /* a damaged file, which was reported */
                return ST_OK;
        if (!st)
                st = report_absent_objects(c, now, err);
        object_table_close(now);
        return st;
}

enum status verify_object_table(struct storage *s, object_problem_report *report, void *context,
                                struct object_verify_result *ret, struct error *err)
{
        struct object_check c = { .storage = s, .report = report, .context = context, .result = ret };
        struct delta_table *log;
        enum status st = delta_table_open(s, OBJECT_TABLE_FOLDER, &log, err);

        if (st)
                return st == ST_NOT_FOUND ? ST_OK : st;
        st = read_verified_rows(&c, log, err);
        delta_table_close(log);
        if (!st)
                st = verify_listed_objects(&c, err);
        for (size_t i = 0; i < c.count; i++)
                free(c.rows[i].key);
        free(c.rows);
        return st;
}
