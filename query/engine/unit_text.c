/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/unit_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "profile-formats/profile_type.h"

/* ---- parse ---- */

#define NS_PER_S INT64_C(1000000000)

static const struct {
        const char *name;
        int64_t ns;
} units[] = {
        { "ms", NS_PER_S / 1000 }, { "s", NS_PER_S },         { "m", 60 * NS_PER_S },
        { "h", 3600 * NS_PER_S },  { "d", 86400 * NS_PER_S }, { "w", 7 * 86400 * NS_PER_S },
};

/* Parse digits at *at; false if there are none or they exceed 64 bits. */
static bool parse_unsigned(const char **at, int64_t *ret)
{
        const char *p = *at;
        int64_t v = 0;

        for (; *p >= '0' && *p <= '9'; p++)
                if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p - '0', &v))
                        return false;
        if (p == *at)
                return false;
        *at = p;
        *ret = v;
        return true;
}

/* A number without a unit is one of seconds if it is alone: who writes 1h30 means minutes. */
static bool parse_duration(const char *at, int64_t *ret)
{
        const char *first = at;
        int64_t sum = 0, n;

        if (*at == 0)
                return false;
        while (*at) {
                size_t unit = 0, letters, count = sizeof units / sizeof *units;
                const char *number = at;

                if (!parse_unsigned(&at, &n))
                        return false;
                letters = strspn(at, "abcdefghijklmnopqrstuvwxyz");
                while (unit < count &&
                       (strlen(units[unit].name) != letters || strncmp(at, units[unit].name, letters) != 0))
                        unit++;
                if (letters == 0 && *at == 0 && number == first)
                        unit = 1; /* seconds */
                else if (unit == count)
                        return false;
                if (__builtin_mul_overflow(n, units[unit].ns, &n) || __builtin_add_overflow(sum, n, &sum))
                        return false;
                at += letters;
        }
        *ret = sum;
        return true;
}

/* The likely unit of a last number that lacks one: m in now-1h30. "" if it lacks none. */
static const char *find_missing_unit(const char *text)
{
        size_t n = strlen(text), letters = 0;

        while (n && text[n - 1] >= '0' && text[n - 1] <= '9')
                n--;
        while (text[n] && letters < n && text[n - 1 - letters] >= 'a' && text[n - 1 - letters] <= 'z')
                letters++;
        for (size_t i = 1; i < sizeof units / sizeof *units; i++)
                if (letters == strlen(units[i].name) && strncmp(text + n - letters, units[i].name, letters) == 0)
                        return units[i - 1].name;
        return "";
}

static bool parse_two_digits(const char **at, char before, int max, int *ret)
{
        const char *p = *at;

        if (before && *p++ != before)
                return false;
        if (p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9')
                return false;
        *ret = (p[0] - '0') * 10 + (p[1] - '0');
        *at = p + 2;
        return *ret <= max;
}

/* [.fraction](Z|+hh:mm|-hh:mm) after the seconds. */
static bool parse_fraction_and_zone(const char *at, int64_t *fraction_ret, int64_t *zone_s_ret)
{
        int hours, minutes;

        if (*at == '.') {
                int64_t scale = NS_PER_S / 10;

                at++;
                if (*at < '0' || *at > '9')
                        return false;
                for (; *at >= '0' && *at <= '9'; at++, scale /= 10)
                        *fraction_ret += (*at - '0') * scale;
        }
        if (strcmp(at, "Z") == 0 || strcmp(at, "z") == 0 || *at == 0)
                return true;
        if (*at == '+' || *at == '-') {
                int sign = *at++ == '+' ? 1 : -1;

                if (!parse_two_digits(&at, 0, 23, &hours) || !parse_two_digits(&at, ':', 59, &minutes) || *at)
                        return false;
                *zone_s_ret = sign * (hours * 3600 + minutes * 60);
                return true;
        }
        return false;
}

static bool parse_rfc3339(const char *at, int64_t *ret)
{
        struct tm tm = { 0 }, day = { 0 };
        int century, year;
        int64_t fraction = 0, zone = 0, ns;
        time_t t;

        if (!parse_two_digits(&at, 0, 99, &century) || !parse_two_digits(&at, 0, 99, &year) ||
            !parse_two_digits(&at, '-', 12, &tm.tm_mon) || !parse_two_digits(&at, '-', 31, &tm.tm_mday) ||
            tm.tm_mon < 1 || tm.tm_mday < 1)
                return false;
        tm.tm_year = century * 100 + year - 1900;
        tm.tm_mon--;
        day = tm;
        if (timegm(&day) == -1 || day.tm_mday != tm.tm_mday) /* normalized: 30 February is 2 March */
                return false;
        if (*at == 'T' || *at == 't' || *at == ' ') {
                at++;
                if (!parse_two_digits(&at, 0, 23, &tm.tm_hour) || !parse_two_digits(&at, ':', 59, &tm.tm_min))
                        return false;
                if (*at == ':' && !parse_two_digits(&at, ':', 60, &tm.tm_sec))
                        return false;
                if (!parse_fraction_and_zone(at, &fraction, &zone))
                        return false;
        } else if (*at) {
                return false;
        }
        t = timegm(&tm);
        if (__builtin_mul_overflow((int64_t)t - zone, NS_PER_S, &ns))
                return false;
        *ret = ns + fraction;
        return true;
}

static bool parse_epoch(const char *at, int64_t *ret)
{
        int64_t n;

        if (!parse_unsigned(&at, &n) || *at)
                return false;
        /* Seconds up to the year 5138, then milliseconds up to the same year, then microseconds, then nanoseconds. */
        if (n < INT64_C(100000000000))
                return !__builtin_mul_overflow(n, NS_PER_S, ret);
        if (n < INT64_C(100000000000000))
                return !__builtin_mul_overflow(n, 1000000, ret);
        if (n < INT64_C(100000000000000000))
                return !__builtin_mul_overflow(n, 1000, ret);
        *ret = n;
        return true;
}

enum status time_text_parse(const char *text, int64_t now_unix_ns, int64_t *ret, struct error *err)
{
        const char *at = strncmp(text, "now", 3) == 0 ? text + 3 : text, *unit;
        int64_t v = 0;

        if (at != text && *at == 0) {
                *ret = now_unix_ns;
                return ST_OK;
        }
        if (*at == '-' || (at != text && *at == '+')) {
                if (parse_duration(at + 1, &v) && !__builtin_add_overflow(now_unix_ns, *at == '-' ? -v : v, ret))
                        return ST_OK;
        } else if (at == text && (parse_epoch(text, &v) || parse_rfc3339(text, &v))) {
                *ret = v;
                return ST_OK;
        }
        unit = find_missing_unit(text);
        if (*unit && (at != text || *at == '-'))
                return error_set(err, ST_USAGE, "'%.60s' is not a time: the last number has no unit; use %.60s%s", text,
                                 text, unit);
        return error_set(err, ST_USAGE, "'%.60s' is not a time: use now-1h, 2026-01-31T12:00:00Z or Unix seconds",
                         text);
}

enum status duration_text_parse(const char *text, int64_t *ret_ns, struct error *err)
{
        const char *unit = find_missing_unit(text);
        int64_t v;

        if (*unit)
                return error_set(err, ST_USAGE, "'%.60s' is not a duration: the last number has no unit; use %.60s%s",
                                 text, text, unit);
        if (!parse_duration(text, &v) || v <= 0)
                return error_set(err, ST_USAGE, "'%.60s' is not a duration: use 15s, 1m or 1h30m", text);
        *ret_ns = v;
        return ST_OK;
}

/* ---- format ---- */

struct scale {
        double at_least;
        const char *unit;
};

static void format_scaled(double v, const struct scale *scales, size_t count, char *out, size_t size)
{
        size_t i = 0;

        while (i + 1 < count && fabs(v) < scales[i].at_least)
                i++;
        snprintf(out, size, "%.*f %s", fabs(v / scales[i].at_least) < 9.995 ? 2 : 1, v / scales[i].at_least,
                 scales[i].unit);
}

static void format_grouped(int64_t value, char *out, size_t size)
{
        char digits[24];
        int n = snprintf(digits, sizeof digits, "%lld", (long long)value), start = digits[0] == '-';
        size_t o = 0;

        for (int i = 0; i < n && o + 2 < size; i++) {
                if (i > start && (n - i) % 3 == 0)
                        out[o++] = ',';
                out[o++] = digits[i];
        }
        out[o] = 0;
}

double get_unit_ns(const char *unit)
{
        struct profile_unit known;

        return profile_unit_find(unit, strlen(unit), &known) && known.is_time ? (double)known.factor : 0;
}

const char *format_value(int64_t value, const char *unit, char *out, size_t size)
{
        struct profile_unit known;
        static const struct scale time[] = { { 3600e9, "h" }, { 60e9, "min" }, { 1e9, "s" },
                                             { 1e6, "ms" },   { 1e3, "us" },   { 1, "ns" } };
        static const struct scale bytes[] = {
                { 1ull << 40, "TiB" }, { 1 << 30, "GiB" }, { 1 << 20, "MiB" }, { 1 << 10, "KiB" }, { 1, "B" }
        };

        if (value == 0)
                snprintf(out, size, "0");
        else if (!profile_unit_find(unit, strlen(unit), &known))
                format_grouped(value, out, size);
        else if (known.is_time)
                format_scaled((double)value * (double)known.factor, time, 6, out, size);
        else
                format_scaled((double)value * (double)known.factor, bytes, 5, out, size);
        return out;
}

double compute_percent(int64_t value, int64_t total)
{
        return total && value ? 100.0 * (double)value / (double)total : 0; /* no -0 of a negative total */
}

double compute_share_change(const int64_t values[2], const int64_t totals[2])
{
        return compute_percent(values[1], totals[1]) - compute_percent(values[0], totals[0]);
}

const char *format_change(const int64_t values[2], const char *unit, char *out, size_t size)
{
        *out = '+';
        format_value((int64_t)((uint64_t)values[1] - (uint64_t)values[0]), unit, out + (values[1] > values[0]),
                     size - 1);
        return out;
}

const char *format_share_change(const int64_t values[2], const int64_t totals[2], char *out, size_t size)
{
        double points = compute_share_change(values, totals);

        if (!totals[0] || !totals[1])
                snprintf(out, size, "-");
        else if (fabs(points) < 0.005)
                snprintf(out, size, "0");
        else
                snprintf(out, size, "%+.2f pp", points);
        return out;
}

const char *format_time_utc(int64_t unix_ns, char *out, size_t size)
{
        time_t s = (time_t)(unix_ns / 1000000000);
        struct tm tm;

        if (!gmtime_r(&s, &tm) || !strftime(out, size, "%Y-%m-%d %H:%M:%S", &tm))
                snprintf(out, size, "%lld", (long long)unix_ns);
        return out;
}
