/* SPDX-License-Identifier: Apache-2.0 */
/* cairn store files: the files that the logs of the tables name, as text, JSON, or SQL for DuckDB. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/store.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/json_out.h"
#include "common/limits.h"
#include "profile-store/tables.h"

#define NS_PER_US 1000

static enum status find_table(const char *name, int *ret, struct error *err)
{
        for (int t = 0; t < TABLE_COUNT; t++)
                if (strcmp(name, table_name(t)) == 0) {
                        *ret = t;
                        return ST_OK;
                }
        return error_set(err, ST_USAGE, "--table '%.40s' is not one of samples, stacks, locations", name);
}

static void print_files_text(const struct tables *t, int table)
{
        for (size_t i = 0; i < t->part_count[table]; i++) {
                const struct table_part *p = t->parts[table][i];
                char oldest[40], newest[40];

                format_store_time(0, oldest);
                format_store_time(0, newest);
                if (table_part_has_times(p)) {
                        format_store_time(p->min_us * NS_PER_US, oldest);
                        format_store_time(p->max_us * NS_PER_US, newest);
                }
                printf("%-9s %12" PRIu64 " rows %12" PRIu64 " bytes  %20s %20s  %s\n", table_name(table), p->rows,
                       p->bytes, oldest, newest, p->name);
        }
}

static void append_files_json(struct json_out *j, const struct tables *t, int table)
{
        for (size_t i = 0; i < t->part_count[table]; i++) {
                const struct table_part *p = t->parts[table][i];

                json_out_object(j, NULL);
                json_out_str(j, "table", table_name(table));
                json_out_str(j, "path", p->path);
                json_out_uint(j, "rows", p->rows);
                json_out_uint(j, "bytes", p->bytes);
                if (table_part_has_times(p)) {
                        json_out_int(j, "oldest_unix_us", p->min_us);
                        json_out_int(j, "newest_unix_us", p->max_us);
                }
                json_out_object_end(j);
        }
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

/* A typed list, so that an empty one is a list of VARCHAR too. */
static void append_files_sql(struct buf *to, const struct tables *t, int table)
{
        buf_printf(to, "%s'%s': [", table ? ", " : "", table_name(table));
        for (size_t i = 0; i < t->part_count[table]; i++) {
                buf_append(to, i ? ",\n        " : "\n        ", i ? 10 : 9);
                append_sql_text(to, t->parts[table][i]->path);
        }
        buf_printf(to, "]::VARCHAR[]");
}

static enum status print_files(const struct store_command *c, const struct tables *t, int only, struct error *err)
{
        _cleanup_buf_ struct buf out;
        struct json_out j;
        enum status st;

        buf_init(&out, LIMIT_RESPONSE_BYTES);
        json_out_init(&j, &out);
        if (c->sql)
                buf_printf(&out, "SET VARIABLE cairn_files = {");
        else if (c->json)
                json_out_array(&j, NULL);
        for (int table = 0; table < TABLE_COUNT; table++) {
                if (only != TABLE_COUNT && table != only)
                        continue;
                if (c->sql)
                        append_files_sql(&out, t, table);
                else if (c->json)
                        append_files_json(&j, t, table);
                else
                        print_files_text(t, table);
        }
        if (c->sql)
                buf_printf(&out, "};\n");
        else if (c->json) {
                json_out_array_end(&j);
                buf_printf(&out, "\n");
        }
        st = buf_status(&out, err, "the list of files");
        if (!st && out.size)
                fwrite(out.data, 1, out.size, stdout);
        return st;
}

enum status store_files_command(const struct store_command *c, struct error *err)
{
        _cleanup_free_ char *dir = realpath(c->dir, NULL);
        struct table_logs logs = { 0 };
        struct tables *t = NULL;
        int only = TABLE_COUNT;
        enum status st = c->table ? find_table(c->table, &only, err) : ST_OK;

        if (st)
                return st;
        if (c->sql && (c->json || c->table))
                return error_set(err, ST_USAGE,
                                 "--sql lists all tables in one statement: leave out --json and --table");
        if (!dir)
                return errno == ENOENT ? error_set(err, ST_NOT_FOUND, "no store in '%s'; --data names it", c->data)
                                       : error_os(err, errno, "cannot open '%s'", c->dir);
        st = table_logs_open(dir, true, 0, &logs, err);
        if (!st)
                st = tables_load(&logs, false, NULL, &t, err);
        if (!st)
                st = print_files(c, t, only, err);
        tables_unref(t);
        table_logs_close(&logs);
        return st;
}
