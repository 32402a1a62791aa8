/* SPDX-License-Identifier: Apache-2.0 */
#include "query/value_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct scale {
        double at_least;
        const char *unit;
};

static void scaled(double v, const struct scale *scales, size_t count, char *out, size_t size)
{
        size_t i = 0;

        while (i + 1 < count && fabs(v) < scales[i].at_least)
                i++;
        snprintf(out, size, "%.*f %s", fabs(v / scales[i].at_least) < 9.995 ? 2 : 1, v / scales[i].at_least,
                 scales[i].unit);
}

static void grouped(int64_t value, char *out, size_t size)
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

const char *value_text(int64_t value, const char *unit, char *out, size_t size)
{
        static const struct scale time[] = { { 3600e9, "h" }, { 60e9, "min" }, { 1e9, "s" },
                                             { 1e6, "ms" },   { 1e3, "us" },   { 1, "ns" } };
        static const struct scale bytes[] = {
                { 1ull << 40, "TiB" }, { 1 << 30, "GiB" }, { 1 << 20, "MiB" }, { 1 << 10, "KiB" }, { 1, "B" }
        };

        if (value == 0)
                snprintf(out, size, "0");
        else if (strcmp(unit, "nanoseconds") == 0)
                scaled((double)value, time, 6, out, size);
        else if (strcmp(unit, "bytes") == 0)
                scaled((double)value, bytes, 5, out, size);
        else
                grouped(value, out, size);
        return out;
}

const char *time_utc_text(int64_t unix_ns, char *out, size_t size)
{
        time_t s = (time_t)(unix_ns / 1000000000);
        struct tm tm;

        if (!gmtime_r(&s, &tm) || !strftime(out, size, "%Y-%m-%d %H:%M:%S", &tm))
                snprintf(out, size, "%lld", (long long)unix_ns);
        return out;
}
