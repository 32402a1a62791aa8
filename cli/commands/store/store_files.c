/* SPDX-License-Identifier: Apache-2.0 */
/* cairn store files: the files that the logs of the tables name, as text, JSON, or SQL for DuckDB; of a directory, or
   those that a service lists. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/store/store_command.h"
#include "common/cleanup.h"
#include "common/json/json_out.h"
#include "common/json/json_value.h"
#include "common/limits.h"
#include "common/memory/arena.h"
#include "common/memory/array.h"
#include "common/memory/buf.h"
#include "common/text/utf8.h"
#include "profile-store/tables/table_storage.h"
#include "profile-store/tables/tables.h"

#define NS_PER_US 1000

static enum status find_table(const char *name, int *ret, struct error *err)
{
        for (int t = 0; t < TABLE_COUNT; t++)
                if (strcmp(name, table_name(t)) == 0) {
                        *ret = t;
                        return ST_OK;
                }
        return error_set(err, ST_USAGE, "--table '%.40s' is not one of samples, stacks, locations, function_history",
                         name);
}

/* One file of a table. */
struct store_file {
        int table;
        const char *path; /* absolute, or its URL */
        const char *name; /* below the table's folder */
        uint64_t rows, bytes;
        int64_t min_us, max_us;
        bool has_rows, has_times;
};

struct file_list {
        struct store_file *items; /* by table, in the order of the log; owned */
        size_t count, capacity;
        struct arena texts;
};

static void file_list_deinit(struct file_list *l)
{
        free(l->items);
        arena_deinit(&l->texts);
}

static enum status add_file(struct file_list *l, const struct store_file *f, struct error *err)
{
        if (!array_reserve(&l->items, &l->capacity, l->count))
                return error_no_memory(err);
        l->items[l->count++] = *f;
        return ST_OK;
}

/* ---- output ---- */

static void print_file_text(const struct store_file *f)
{
        char oldest[40], newest[40];

        printf("%-16s ", table_name(f->table));
        if (f->has_rows)
                printf("%12" PRIu64 " rows ", f->rows);
        printf("%12" PRIu64 " bytes  ", f->bytes);
        if (f->has_rows) {
                format_store_time(f->has_times ? f->min_us * NS_PER_US : 0, oldest);
                format_store_time(f->has_times ? f->max_us * NS_PER_US : 0, newest);
                printf("%20s %20s  ", oldest, newest);
        }
        printf("%s\n", PRINTABLE(f->name));
}

static void append_file_json(struct json_out *j, const struct store_file *f)
{
        json_out_object(j, NULL);
        json_out_str(j, "table", table_name(f->table));
        json_out_str(j, "path", f->path);
        if (f->has_rows)
                json_out_uint(j, "rows", f->rows);
        json_out_uint(j, "bytes", f->bytes);
        if (f->has_times) {
                json_out_int(j, "oldest_unix_us", f->min_us);
                json_out_int(j, "newest_unix_us", f->max_us);
        }
        json_out_object_end(j);
}

static void append_sql_text(struct buf *to, const char *text)
{
        buf_append(to, "'", 1);
        for (; *text; text++) {
                if (*text == '\'')
                        buf_append(to, "'", 1);
                buf_append(to, text, 1);
        }
        buf_append(to, "'", 1);
}

/* A typed list for each table, so that an empty one is a list of VARCHAR too. */
static void append_files_sql(struct buf *to, const struct file_list *l)
{
        size_t i = 0;

        buf_append_str(to, "SET VARIABLE cairn_files = {");
        for (int table = 0; table < TABLE_COUNT; table++) {
                bool comma = false;

                buf_printf(to, "%s'%s': [", table ? ", " : "", table_name(table));
                for (; i < l->count && l->items[i].table == table; i++) {
                        buf_append_str(to, comma ? ",\n        " : "\n        ");
                        append_sql_text(to, l->items[i].path);
                        comma = true;
                }
                buf_append_str(to, "]::VARCHAR[]");
        }
        buf_append_str(to, "};\n");
}

static void append_files_json(struct buf *to, const struct file_list *l)
{
        struct json_out j;

        json_out_init(&j, to);
        json_out_array(&j, NULL);
        for (size_t i = 0; i < l->count; i++)
                append_file_json(&j, &l->items[i]);
        json_out_array_end(&j);
        buf_append_u8(to, '\n');
}

static enum status print_files(const struct store_command *c, const struct file_list *l, struct error *err)
{
        _cleanup_buf_ struct buf out;
        enum status st;

        buf_init(&out, LIMIT_RESPONSE_BYTES);
        if (c->sql)
                append_files_sql(&out, l);
        else if (c->json)
                append_files_json(&out, l);
        else
                for (size_t i = 0; i < l->count; i++)
                        print_file_text(&l->items[i]);
        st = buf_status(&out, err, "the list of files");
        if (!st && out.size)
                fwrite(out.data, 1, out.size, stdout);
        return st;
}

/* ---- from a directory ---- */

static enum status add_table_parts(struct file_list *l, const struct tables *t, int table, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < t->part_count[table]; i++) {
                const struct table_part *p = t->parts[table][i];
                const struct store_file f = { .table = table,
                                              .path = p->path,
                                              .name = p->name,
                                              .rows = p->rows,
                                              .bytes = p->bytes,
                                              .min_us = p->min_us,
                                              .max_us = p->max_us,
                                              .has_rows = true,
                                              .has_times = table_part_has_times(p) };

                st = add_file(l, &f, err);
        }
        return st;
}

/* @param only  TABLE_COUNT: all tables. */
static enum status list_directory_files(const struct store_command *c, int only, struct file_list *l, struct error *err)
{
        _cleanup_free_ char *dir = realpath(c->dir, NULL);
        _cleanup_storage_ struct storage *storage = NULL;
        struct table_logs logs = { 0 };
        struct tables *t = NULL;
        enum status st;

        if (!dir)
                return errno == ENOENT ? error_set(err, ST_NOT_FOUND, "no store in '%s'; --data names it", c->data)
                                       : error_os(err, errno, "cannot open '%s'", c->dir);
        st = open_table_storage(dir, &storage, err);
        if (!st)
                st = table_logs_open(storage, "", true, 0, &logs, err);
        if (!st)
                st = tables_load(&logs, false, NULL, &t, err);
        for (int table = 0; !st && table < TABLE_COUNT; table++)
                if (only == TABLE_COUNT || only == table)
                        st = add_table_parts(l, t, table, err);
        if (!st)
                st = print_files(c, l, err); /* while the parts own their texts */
        tables_unref(t);
        table_logs_close(&logs);
        return st;
}

/* ---- from a service ---- */

/* The path of a file as the service names it, below its address. */
static const char *make_file_url(const struct store_command *c, const char *path, struct arena *texts)
{
        const char *base = c->service.server ? c->service.server : DEFAULT_SERVER;
        size_t n = strlen(base), size;
        char *url;

        while (n && base[n - 1] == '/')
                n--;
        size = n + strlen(path) + 1;
        url = arena_alloc(texts, size);
        if (url)
                snprintf(url, size, "%.*s%s", (int)n, base, path);
        return url;
}

static enum status add_listed_file(const struct store_command *c, int table, const struct json_value *file,
                                   struct file_list *l, struct error *err)
{
        struct store_file f = { .table = table, .bytes = json_value_uint(file, "size", 0) };
        char path[LIMIT_PATH_BYTES], prefix[32];
        size_t n = (size_t)snprintf(prefix, sizeof prefix, "/store/%s/", table_name(table));

        if (!json_value_text(file, "path", path, sizeof path) || strncmp(path, prefix, n) != 0)
                return error_set(err, ST_BAD_DATA, "the service's list of files has one without a path");
        f.path = make_file_url(c, path, &l->texts);
        f.name = arena_strndup(&l->texts, path + n, strlen(path + n));
        return f.path && f.name ? add_file(l, &f, err) : error_no_memory(err);
}

static enum status add_listed_table(const struct store_command *c, int table, const struct json_value *listed,
                                    struct file_list *l, struct error *err)
{
        struct json_value files, file;
        struct json_scan items;
        enum status st = ST_OK;

        if (!json_value_member(listed, "files", &files) || !json_value_open_array(&files, &items))
                return error_set(err, ST_BAD_DATA, "the service's list of files has a table without files");
        while (!st && json_value_next(&items, &file))
                st = add_listed_file(c, table, &file, l, err);
        return st;
}

/* docs/openapi.yaml, listTables */
static enum status list_service_files(const struct store_command *c, int only, struct file_list *l, struct error *err)
{
        struct json_value root, tables, listed;
        _cleanup_buf_ struct buf body;
        struct json_scan items;
        char path[32], name[32];
        enum status st;

        buf_init(&body, LIMIT_RESPONSE_BYTES);
        snprintf(path, sizeof path, "/store/%s%s", only == TABLE_COUNT ? "" : table_name(only),
                 only == TABLE_COUNT ? "" : "/");
        st = store_request(c, path, &body, err);
        if (st)
                return st;
        if (json_value_parse(body.data, body.size, &root, NULL) || !json_value_member(&root, "tables", &tables))
                return error_set(err, ST_BAD_DATA, "unexpected response of %s; is the server a Cairn service?", path);
        for (int table = 0; !st && table < TABLE_COUNT; table++) {
                if (!json_value_open_array(&tables, &items))
                        break;
                while (!st && json_value_next(&items, &listed))
                        if (json_value_text(&listed, "table", name, sizeof name) &&
                            strcmp(name, table_name(table)) == 0)
                                st = add_listed_table(c, table, &listed, l, err);
        }
        return st ? st : print_files(c, l, err);
}

/* ---- the verb ---- */

enum status store_files_command(const struct store_command *c, const char *argument, struct error *err)
{
        _cleanup_(file_list_deinit) struct file_list l = { 0 };
        int only = TABLE_COUNT;
        enum status st = c->table ? find_table(c->table, &only, err) : ST_OK;

        (void)argument;
        arena_init(&l.texts, LIMIT_RESPONSE_BYTES);
        if (st)
                return st;
        if (c->sql && (c->json || c->table))
                return error_set(err, ST_USAGE,
                                 "--sql lists all tables in one statement: leave out --json and --table");
        return c->at_service ? list_service_files(c, only, &l, err) : list_directory_files(c, only, &l, err);
}
