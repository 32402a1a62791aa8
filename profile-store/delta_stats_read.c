/* SPDX-License-Identifier: Apache-2.0 */
#include <json-c/json.h>
#include <string.h>

#include "profile-store/delta_actions.h"

static struct json_object *parse_stats(const struct delta_file *f)
{
        return f->stats ? delta_json_parse(f->stats, strlen(f->stats)) : NULL;
}

static struct json_object *bound_of(struct json_object *stats, const char *which, const char *column)
{
        return json_object_object_get(json_object_object_get(stats, which), column);
}

/* "2026-11-20T22:14:15.123Z" to microseconds; a maximum may lie anywhere in its last digit's span. */
static bool parse_timestamp(const char *s, bool is_max, int64_t *ret)
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

static bool int_bound(struct json_object *v, bool is_max, int64_t *ret)
{
        if (json_object_is_type(v, json_type_string))
                return parse_timestamp(json_object_get_string(v), is_max, ret);
        if (!json_object_is_type(v, json_type_int))
                return false;
        *ret = json_object_get_int64(v);
        return true;
}

bool delta_file_int_range(const struct delta_file *f, const char *column, int64_t *min_ret, int64_t *max_ret)
{
        struct json_object *stats = parse_stats(f);
        int64_t min, max;
        bool ok = int_bound(bound_of(stats, "minValues", column), false, &min) &&
                  int_bound(bound_of(stats, "maxValues", column), true, &max);

        json_object_put(stats);
        if (ok) {
                *min_ret = min;
                *max_ret = max;
        }
        return ok;
}

bool delta_file_rows(const struct delta_file *f, uint64_t *ret)
{
        struct json_object *stats = parse_stats(f);
        struct json_object *rows = json_object_object_get(stats, "numRecords");
        bool ok = json_object_is_type(rows, json_type_int) && json_object_get_int64(rows) >= 0;

        if (ok)
                *ret = (uint64_t)json_object_get_int64(rows);
        json_object_put(stats);
        return ok;
}
