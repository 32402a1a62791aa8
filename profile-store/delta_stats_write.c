/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/json_out.h"
#include "profile-store/delta_log.h"

/* Milliseconds, as Delta's statistics have; rounded down, or up for a maximum. */
static void append_timestamp(struct json_out *j, const char *key, int64_t us, bool up)
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

static void append_bound(struct json_out *j, const struct parquet_node *n, const struct parquet_column_summary *s,
                         bool is_max)
{
        switch (n->kind) {
        case PARQUET_INT32:
        case PARQUET_INT64:
                json_out_int(j, n->name, is_max ? s->max_int : s->min_int);
                break;
        case PARQUET_TIMESTAMP:
                append_timestamp(j, n->name, is_max ? s->max_int : s->min_int, is_max);
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

static void append_bounds(struct json_out *j, const char *key, const struct parquet_writer *w, bool is_max)
{
        const struct parquet_schema *schema = parquet_writer_schema(w);

        json_out_object(j, key);
        for (uint32_t i = 1; i < schema->node_count; i = schema->nodes[i].end) {
                struct parquet_column_summary s;

                if (schema->nodes[i].column == PARQUET_NO_COLUMN)
                        continue;
                parquet_writer_summary(w, i, &s);
                if (s.has_min_max)
                        append_bound(j, &schema->nodes[i], &s, is_max);
        }
        json_out_object_end(j);
}

enum status delta_stats_append(const struct parquet_writer *w, struct buf *out)
{
        const struct parquet_schema *schema = parquet_writer_schema(w);
        struct json_out j;

        json_out_init(&j, out);
        json_out_object(&j, NULL);
        json_out_uint(&j, "numRecords", parquet_writer_rows(w));
        append_bounds(&j, "minValues", w, false);
        append_bounds(&j, "maxValues", w, true);
        json_out_object(&j, "nullCount");
        for (uint32_t i = 1; i < schema->node_count; i = schema->nodes[i].end) {
                struct parquet_column_summary s;

                if (schema->nodes[i].column == PARQUET_NO_COLUMN)
                        continue;
                parquet_writer_summary(w, i, &s);
                json_out_uint(&j, schema->nodes[i].name, s.null_count);
        }
        json_out_object_end(&j);
        json_out_object_end(&j);
        return buf_status(out, NULL, "statistics");
}
