/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/profile_type.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "common/memory/buf.h"
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

/* The unit of values as multiples of that of the period, as a fraction; false if they have different dimensions. */
static bool compare_units(const char *id, int64_t *unit_ret, int64_t *period_unit_ret)
{
        size_t n, m;
        const char *unit = profile_type_part(id, TYPE_SAMPLE_UNIT, &n),
                   *period_unit = profile_type_part(id, TYPE_PERIOD_UNIT, &m);

        *unit_ret = profile_type_get_time_unit(id, TYPE_SAMPLE_UNIT);
        *period_unit_ret = profile_type_get_time_unit(id, TYPE_PERIOD_UNIT);
        if (*unit_ret && *period_unit_ret)
                return true;
        *unit_ret = *period_unit_ret = 1;
        return n && n == m && memcmp(unit, period_unit, n) == 0;
}

struct sample_count_rule profile_type_get_count_rule(const char *id, int64_t period)
{
        int64_t unit, period_unit;
        size_t n;
        const char *unit_name = profile_type_part(id, TYPE_SAMPLE_UNIT, &n);
        struct profile_unit known;
        bool counts = profile_type_has_part(id, TYPE_SAMPLE_UNIT, "count") &&
                      (profile_type_has_part(id, TYPE_SAMPLE_TYPE, "samples") ||
                       profile_type_has_part(id, TYPE_SAMPLE_TYPE, "sample"));

        /* An allocation is sampled once at most, however many periods of bytes it has. */
        if (profile_type_is_gauge(id) || (profile_unit_find(unit_name, n, &known) && !known.is_time))
                return (struct sample_count_rule){ 0 };
        if (counts)
                return (struct sample_count_rule){ .interval = 1, .unit = 1 };
        if (period <= 0 || !compare_units(id, &unit, &period_unit))
                return (struct sample_count_rule){ 0 };
        return (struct sample_count_rule){ .interval = (__int128)period * period_unit, .unit = unit };
}

bool count_samples_by_rule(const struct sample_count_rule *rule, int64_t value, uint64_t stacks, uint64_t *ret)
{
        __int128 samples;

        if (!rule->interval)
                return false;
        samples = ((__int128)value * rule->unit + rule->interval / 2) / rule->interval;
        if (samples < (__int128)stacks)
                samples = stacks;
        *ret = samples > UINT64_MAX ? UINT64_MAX : (uint64_t)samples;
        return true;
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

enum status profile_type_add(struct profile *p, const struct profile_type_parts *parts, uint32_t *ret,
                             struct error *err)
{
        const char *period_type = parts->period_type ? parts->period_type : "", *name = parts->name;
        struct profile_type t = { .period = parts->period };
        _cleanup_buf_ struct buf id;
        enum status st;

        if (!name || !*name)
                name = guess_profile_name(parts->sample_type, parts->sample_unit, period_type);
        buf_init(&id, LIMIT_LABEL_BYTES);
        append_type_part(&id, name, false);
        append_type_part(&id, parts->sample_type, false);
        append_type_part(&id, parts->sample_unit, false);
        append_type_part(&id, period_type, false);
        append_type_part(&id, parts->period_unit ? parts->period_unit : "", true);
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

uint64_t profile_count_samples(const struct profile *p, bool *are_stacks_ret)
{
        struct {
                int64_t sum; /* saturates */
                uint64_t stacks;
        } types[LIMIT_PROFILE_TYPES] = { 0 };
        uint64_t most = 0, most_stacks = 0;

        assert(p->types.count <= LIMIT_PROFILE_TYPES);
        for (uint32_t i = 0; i < p->samples.count; i++) {
                const struct profile_sample *s = &p->samples.items[i];

                types[s->type].stacks++;
                if (__builtin_add_overflow(types[s->type].sum, s->value, &types[s->type].sum))
                        types[s->type].sum = s->value < 0 ? INT64_MIN : INT64_MAX;
        }
        for (uint32_t i = 0; i < p->types.count; i++) {
                const struct profile_type *t = &p->types.items[i];
                struct sample_count_rule rule = profile_type_get_count_rule(profile_text(p, t->id), t->period);
                uint64_t samples;

                if (count_samples_by_rule(&rule, types[i].sum, types[i].stacks, &samples) && samples > most)
                        most = samples;
                if (types[i].stacks > most_stacks)
                        most_stacks = types[i].stacks;
        }
        *are_stacks_ret = !most && most_stacks;
        return most ? most : most_stacks;
}
