/* SPDX-License-Identifier: Apache-2.0 */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/json/json_out.h"
#include "profile-store/delta/delta_actions.h"
#include "profile-store/delta/delta_log.h"

/* ---- write ---- */

/* Milliseconds, the precision of Delta's statistics; rounded down, or up for a maximum. */
static void append_stats_timestamp(struct json_out *j, const char *key, int64_t us, bool up)
{
        int64_t ms = us / 1000;
        int64_t rest = us % 1000;
        time_t seconds;
        struct tm tm;
        char date[64], text[80];

        if (rest < 0)
                ms--, rest += 1000;
        ms += up && rest;
        seconds = ms / 1000 - (ms % 1000 < 0);
        if (!gmtime_r(&seconds, &tm) || tm.tm_year < -1900 || tm.tm_year > 9999 - 1900)
                return;
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
        snprintf(text, sizeof text, "%s.%03dZ", date, (int)(ms - (int64_t)seconds * 1000));
        json_out_str(j, key, text);
}

static void append_column_bound(struct json_out *j, const struct parquet_node *n,
                                const struct parquet_column_summary *s, bool is_max)
{
        switch (n->kind) {
        case PARQUET_INT32:
        case PARQUET_INT64:
                json_out_int(j, n->name, is_max ? s->max_int : s->min_int);
                break;
        case PARQUET_TIMESTAMP:
                append_stats_timestamp(j, n->name, is_max ? s->max_int : s->min_int, is_max);
                break;
        case PARQUET_DOUBLE:
                json_out_double(j, n->name, is_max ? s->max_double : s->min_double);
                break;
        case PARQUET_STRING:
                json_out_strn(j, n->name, (const char *)(is_max ? s->max_bytes : s->min_bytes),
                              is_max ? s->max_size : s->min_size);
                break;
        default:
                break;
        }
}

static bool is_stats_column(const struct delta_stats_columns *c, const char *name, size_t *prefixed)
{
        for (size_t i = 0; i < c->count; i++) {
                if (strcmp(c->names[i], name) == 0)
                        return true;
        }
        return c->prefix && strncmp(name, c->prefix, strlen(c->prefix)) == 0 && ++*prefixed <= c->prefix_count;
}

/* Find the next flat column with statistics after node; false without one. @param prefixed  0 at first. */
static bool next_stats_column(const struct parquet_schema *schema, const struct delta_stats_columns *columns,
                              uint32_t *node, size_t *prefixed)
{
        for (uint32_t i = *node ? schema->nodes[*node].end : 1; i < schema->node_count; i = schema->nodes[i].end) {
                if (schema->nodes[i].column != PARQUET_NO_COLUMN &&
                    is_stats_column(columns, schema->nodes[i].name, prefixed)) {
                        *node = i;
                        return true;
                }
        }
        return false;
}

static void append_column_bounds(struct json_out *j, const char *key, const struct parquet_writer *w,
                                 const struct delta_stats_columns *columns, bool is_max)
{
        const struct parquet_schema *schema = parquet_writer_schema(w);
        size_t prefixed = 0;

        json_out_object(j, key);
        for (uint32_t i = 0; next_stats_column(schema, columns, &i, &prefixed);) {
                struct parquet_column_summary s;

                parquet_writer_summary(w, i, &s);
                if (s.has_min_max)
                        append_column_bound(j, &schema->nodes[i], &s, is_max);
        }
        json_out_object_end(j);
}

enum status delta_stats_append(const struct parquet_writer *w, const struct delta_stats_columns *columns,
                               struct buf *out)
{
        const struct parquet_schema *schema = parquet_writer_schema(w);
        size_t prefixed = 0;
        struct json_out j;

        json_out_init(&j, out);
        json_out_object(&j, NULL);
        json_out_uint(&j, "numRecords", parquet_writer_rows(w));
        append_column_bounds(&j, "minValues", w, columns, false);
        append_column_bounds(&j, "maxValues", w, columns, true);
        json_out_object(&j, "nullCount");
        for (uint32_t i = 0; next_stats_column(schema, columns, &i, &prefixed);) {
                struct parquet_column_summary s;

                parquet_writer_summary(w, i, &s);
                json_out_uint(&j, schema->nodes[i].name, s.null_count);
        }
        json_out_object_end(&j);
        json_out_object_end(&j);
        return buf_status(out, NULL, "statistics");
}

/* ---- read ---- */

static struct json_object *parse_file_stats(const struct delta_file *f)
{
        return f->stats ? delta_json_parse(f->stats, strlen(f->stats)) : NULL;
}

static struct json_object *find_bound(struct json_object *stats, const char *which, const char *column)
{
        return json_object_object_get(json_object_object_get(stats, which), column);
}

/* Parse "2026-11-20T22:14:15.123Z" to microseconds; a maximum is rounded up to the end of its last digit. */
static bool parse_stats_timestamp(const char *s, bool is_max, int64_t *ret)
{
        struct tm tm = { 0 };
        int64_t fraction = 0, unit = 1000000;
        int end = 0;

        if (sscanf(s, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
                   &tm.tm_sec, &end) != 6)
                return false;
        s += end;
        if (*s == '.') {
                for (s++; *s >= '0' && *s <= '9'; s++) {
                        if (unit == 1)
                                continue;
                        fraction = fraction * 10 + (*s - '0');
                        unit /= 10;
                }
        }
        if (strcmp(s, "Z") != 0 && strcmp(s, "+00:00") != 0)
                return false;
        tm.tm_year -= 1900;
        tm.tm_mon--;
        *ret = (int64_t)timegm(&tm) * 1000000 + fraction * unit + (is_max ? unit - 1 : 0);
        return true;
}

static bool parse_int_bound(struct json_object *v, bool is_max, int64_t *ret)
{
        if (json_object_is_type(v, json_type_string))
                return parse_stats_timestamp(json_object_get_string(v), is_max, ret);
        if (!json_object_is_type(v, json_type_int))
                return false;
        *ret = json_object_get_int64(v);
        return true;
}

bool delta_file_get_int_range(const struct delta_file *f, const char *column, int64_t *min_ret, int64_t *max_ret)
{
        struct json_object *stats = parse_file_stats(f);
        int64_t min, max;
        bool ok = parse_int_bound(find_bound(stats, "minValues", column), false, &min) &&
                  parse_int_bound(find_bound(stats, "maxValues", column), true, &max);

        json_object_put(stats);
        if (ok) {
                *min_ret = min;
                *max_ret = max;
        }
        return ok;
}

/* Whether the statistics show that no row has a value. */
static bool is_all_null(struct json_object *stats, const char *column)
{
        struct json_object *rows = json_object_object_get(stats, "numRecords"),
                           *nulls = find_bound(stats, "nullCount", column);

        return json_object_is_type(rows, json_type_int) && json_object_is_type(nulls, json_type_int) &&
               json_object_get_int64(rows) == json_object_get_int64(nulls);
}

static enum status copy_text_bounds(const char *min, const char *max, char **min_ret, char **max_ret, struct error *err)
{
        *min_ret = strdup(min);
        *max_ret = strdup(max);
        if (*min_ret && *max_ret)
                return ST_OK;
        free(steal_ptr(*min_ret));
        free(steal_ptr(*max_ret));
        return error_no_memory(err);
}

enum status delta_file_get_text_range(const struct delta_file *f, const char *column, char **min_ret, char **max_ret,
                                      struct error *err)
{
        struct json_object *stats = parse_file_stats(f);
        struct json_object *min = find_bound(stats, "minValues", column), *max = find_bound(stats, "maxValues", column);
        enum status st = ST_OK;

        *min_ret = *max_ret = NULL;
        if (json_object_is_type(min, json_type_string) && json_object_is_type(max, json_type_string))
                st = copy_text_bounds(json_object_get_string(min), json_object_get_string(max), min_ret, max_ret, err);
        else if (is_all_null(stats, column))
                st = copy_text_bounds("", "", min_ret, max_ret, err);
        json_object_put(stats);
        return st;
}

bool delta_file_get_row_count(const struct delta_file *f, uint64_t *ret)
{
        struct json_object *stats = parse_file_stats(f);
        struct json_object *rows = json_object_object_get(stats, "numRecords");
        bool ok = json_object_is_type(rows, json_type_int) && json_object_get_int64(rows) >= 0;

        if (ok)
                *ret = (uint64_t)json_object_get_int64(rows);
        json_object_put(stats);
        return ok;
}

/* ---- parsed statistics of a file ---- */

struct delta_stats {
        struct json_object *object;
};

struct delta_stats *delta_stats_parse(const struct delta_file *f)
{
        struct delta_stats *s = calloc(1, sizeof *s);

        if (s)
                s->object = parse_file_stats(f);
        if (s && !s->object) {
                free(s);
                return NULL;
        }
        return s;
}

void delta_stats_free(struct delta_stats *s)
{
        if (!s)
                return;
        json_object_put(s->object);
        free(s);
}

bool delta_stats_has_rows(const struct delta_stats *s)
{
        return json_object_is_type(json_object_object_get(s->object, "numRecords"), json_type_int);
}

void delta_stats_get_column(const struct delta_stats *s, const char *column, struct delta_column_stats *ret)
{
        struct json_object *min = find_bound(s->object, "minValues", column),
                           *max = find_bound(s->object, "maxValues", column),
                           *nulls = find_bound(s->object, "nullCount", column);

        *ret = (struct delta_column_stats){ 0 };
        ret->has_int_range = parse_int_bound(min, false, &ret->min_int) && parse_int_bound(max, true, &ret->max_int);
        if (json_object_is_type(nulls, json_type_int) && json_object_get_int64(nulls) >= 0) {
                ret->has_null_count = true;
                ret->null_count = (uint64_t)json_object_get_int64(nulls);
        }
        if (json_object_is_type(min, json_type_string)) {
                ret->min_text = json_object_get_string(min);
                ret->min_size = (size_t)json_object_get_string_len(min);
        }
        if (json_object_is_type(max, json_type_string)) {
                ret->max_text = json_object_get_string(max);
                ret->max_size = (size_t)json_object_get_string_len(max);
        }
}
