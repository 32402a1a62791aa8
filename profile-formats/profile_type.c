/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/profile_type.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "common/limits.h"
#include "common/text.h"

const char *profile_type_part(const char *id, enum profile_type_part part, size_t *n_ret)
{
        assert(part <= TYPE_PERIOD_UNIT);
        for (unsigned i = 0; i < (unsigned)part; i++) {
                id = strchr(id, ':');
                if (!id) {
                        *n_ret = 0;
                        return "";
                }
                id++;
        }
        *n_ret = part == TYPE_PERIOD_UNIT ? strlen(id) : strcspn(id, ":");
        return id;
}

enum status profile_type_check(const char *id, struct error *err)
{
        size_t colons = 0;

        for (const char *p = id; *p; p++)
                colons += *p == ':';
        return colons == TYPE_PERIOD_UNIT ? ST_OK
                                          : error_set(err, ST_USAGE,
                                                      "profile type '%.100s' is not of the form "
                                                      "NAME:SAMPLE_TYPE:SAMPLE_UNIT:PERIOD_TYPE:PERIOD_UNIT",
                                                      id);
}

bool profile_type_has_part(const char *id, enum profile_type_part part, const char *text)
{
        size_t n;
        const char *have = profile_type_part(id, part, &n);

        return n == strlen(text) && memcmp(have, text, n) == 0;
}

const struct profile_type_key *profile_type_find_key(const char *name)
{
        static const struct profile_type_key keys[] = {
                { "__profile_type__", true, TYPE_NAME },        { "__name__", false, TYPE_NAME },
                { "__type__", false, TYPE_SAMPLE_TYPE },        { "__unit__", false, TYPE_SAMPLE_UNIT },
                { "__period_type__", false, TYPE_PERIOD_TYPE }, { "__period_unit__", false, TYPE_PERIOD_UNIT },
        };

        for (size_t i = 0; name[0] == '_' && i < sizeof keys / sizeof *keys; i++)
                if (strcmp(keys[i].name, name) == 0)
                        return &keys[i];
        return NULL;
}

bool profile_unit_find(const char *name, size_t n, struct profile_unit *ret)
{
        static const struct {
                const char *name;
                struct profile_unit unit;
        } units[] = {
                { "nanosecond", { 1, true } },
                { "byte", { 1, false } },
                { "microsecond", { 1000, true } },
                { "millisecond", { 1000000, true } },
                { "second", { 1000000000, true } },
                { "ns", { 1, true } },
                { "us", { 1000, true } },
                { "\u00b5s", { 1000, true } },
                { "\u03bcs", { 1000, true } },
                { "ms", { 1000000, true } },
                { "s", { 1000000000, true } },
                { "sec", { 1000000000, true } },
                { "b", { 1, false } },
                { "kb", { 1 << 10, false } },
                { "kilobyte", { 1 << 10, false } },
                { "mb", { 1 << 20, false } },
                { "megabyte", { 1 << 20, false } },
                { "gb", { 1 << 30, false } },
                { "gigabyte", { 1 << 30, false } },
        };

        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
                size_t size = strlen(units[i].name);
                bool is_plural = size > 1 && n == size + 1 && (name[size] == 's' || name[size] == 'S');

                if ((n == size || is_plural) && strncasecmp(name, units[i].name, size) == 0) {
                        *ret = units[i].unit;
                        return true;
                }
        }
        return false;
}

int64_t profile_type_get_time_unit(const char *id, enum profile_type_part part)
{
        struct profile_unit unit;
        size_t n;
        const char *name = profile_type_part(id, part, &n);

        return profile_unit_find(name, n, &unit) && unit.is_time ? unit.factor : 0;
}

bool profile_type_is_gauge(const char *id)
{
        /* Of Go, Java (async-profiler's live objects), .NET; objects and space: heap profiles of V8 and tcmalloc. */
        static const char *const gauges[] = { "goroutine", "goroutines", "goroutineleak", "threadcreate", "threads",
                                              "live",      "objects",    "space",         "inuse" };
        size_t n, word;
        const char *type = profile_type_part(id, TYPE_SAMPLE_TYPE, &n);

        if (starts_with(type, "heap-")) { /* Datadog's libraries: heap-space, heap-live-size */
                type += strlen("heap-");
                n -= strlen("heap-");
        }
        for (size_t i = 0; i < sizeof gauges / sizeof *gauges; i++)
                if (n == strlen(gauges[i]) && memcmp(type, gauges[i], n) == 0)
                        return true;
        word = starts_with(type, "inuse") ? strlen("inuse") : starts_with(type, "live") ? strlen("live") : 0;
        return word && (type[word] == '_' || type[word] == '-');
}

static const char *guess_profile_name(const char *sample_type, const char *sample_unit, const char *period_type)
{
        static const char *const usual[][2] = {
                { "cpu", "process_cpu" },     { "samples", "process_cpu" },
                { "alloc_space", "memory" },  { "alloc_objects", "memory" },
                { "inuse_space", "memory" },  { "inuse_objects", "memory" },
                { "goroutine", "goroutine" }, { "goroutines", "goroutine" },
                { "contentions", "block" },   { "delay", "block" },
                { "wall", "wall" },           { "off_cpu", "off_cpu" },
        };

        if (strcmp(period_type, "cpu") == 0)
                return "process_cpu";
        if (strcmp(sample_type, "events") == 0 && strcmp(sample_unit, "nanoseconds") == 0)
                return "off_cpu"; /* of the OpenTelemetry eBPF profiler */
        for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
                if (strcmp(sample_type, usual[i][0]) == 0)
                        return usual[i][1];
        return sample_type;
}

static void append_type_part(struct buf *b, const char *part, bool last)
{
        for (; *part; part++)
                buf_append_u8(b, *part == ':' ? '_' : (uint8_t)*part);
        if (!last)
                buf_append_u8(b, ':');
}

bool profile_type_split(char *id, struct profile_type_parts *ret)
{
        char *parts[TYPE_PERIOD_UNIT + 1] = { id };

        for (unsigned i = 1; i <= TYPE_PERIOD_UNIT; i++) {
                char *colon = strchr(parts[i - 1], ':');

                if (!colon)
                        return false;
                *colon = 0;
                parts[i] = colon + 1;
        }
        *ret = (struct profile_type_parts){ .name = parts[TYPE_NAME],
                                            .sample_type = parts[TYPE_SAMPLE_TYPE],
                                            .sample_unit = parts[TYPE_SAMPLE_UNIT],
                                            .period_type = parts[TYPE_PERIOD_TYPE],
                                            .period_unit = parts[TYPE_PERIOD_UNIT] };
        return !strchr(parts[TYPE_PERIOD_UNIT], ':');
}

void profile_type_compose(const struct profile_type_parts *parts, struct buf *ret)
{
        const char *period_type = parts->period_type ? parts->period_type : "", *name = parts->name;

        if (!name || !*name)
                name = guess_profile_name(parts->sample_type, parts->sample_unit, period_type);
        append_type_part(ret, name, false);
        append_type_part(ret, parts->sample_type, false);
        append_type_part(ret, parts->sample_unit, false);
        append_type_part(ret, period_type, false);
        append_type_part(ret, parts->period_unit ? parts->period_unit : "", true);
}

enum status profile_type_add(struct profile *p, const struct profile_type_parts *parts, uint32_t *ret,
                             struct error *err)
{
        struct profile_type t = { .period = parts->period };
        _cleanup_buf_ struct buf id;
        enum status st;

        buf_init(&id, LIMIT_LABEL_BYTES);
        profile_type_compose(parts, &id);
        st = buf_status(&id, err, "profile type");
        if (!st)
                st = profile_count_work(p, id.size, err);
        if (!st)
                st = profile_add_string(p, (const char *)id.data, id.size, &t.id, err);
        if (!st)
                st = profile_add_string(p, parts->sample_unit, strlen(parts->sample_unit), &t.unit, err);
        if (!st)
                st = profile_add_type(p, &t, ret, err);
        return st;
}

enum status profile_type_add_id(struct profile *p, const char *id, int64_t period, uint32_t *ret, struct error *err)
{
        struct profile_type t = { .period = period };
        const char *unit;
        size_t n;
        enum status st = profile_add_string(p, id, strlen(id), &t.id, err);

        unit = profile_type_part(id, TYPE_SAMPLE_UNIT, &n);
        if (!st)
                st = profile_add_string(p, unit, n, &t.unit, err);
        return st ? st : profile_add_type(p, &t, ret, err);
}
