/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/sample_count.h"

#include <assert.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/profile_type.h"

/*
 * Fractions are cut off at 2^-63 of a sample. What is closer to a half than this counts as a half, so that the order
 * in which up to 2^32 counts were summed does not matter.
 */
#define FRACTION_BITS 63
#define HALF ((UINT64_C(1) << (FRACTION_BITS - 1)) - (UINT64_C(1) << 32))

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

struct counted_samples compute_sample_count(const struct sample_count_rule *rule, int64_t value, uint64_t stacks)
{
        __int128 interval = rule->interval, whole, rest;
        struct counted_samples count = { 0 };

        if (!interval) {
                count.whole = stacks > INT64_MAX ? INT64_MAX : (int64_t)stacks;
                count.are_stacks = 1;
                return count;
        }
        whole = (__int128)value * rule->unit / interval;
        rest = (__int128)value * rule->unit % interval;
        if (rest < 0) {
                whole--;
                rest += interval;
        }
        count.whole = whole > INT64_MAX ? INT64_MAX : whole < INT64_MIN ? INT64_MIN : (int64_t)whole;
        if (rest) {
                for (; interval >> FRACTION_BITS; interval >>= 1)
                        rest >>= 1;
                if (rest == interval) /* they were almost equal */
                        rest--;
                count.fraction = (uint64_t)(((unsigned __int128)rest << FRACTION_BITS) / (uint64_t)interval);
        }
        if (!count.whole && !count.fraction)
                count.fraction = 1;
        return count;
}

void sample_count_add(struct counted_samples *sum, struct counted_samples count)
{
        uint64_t fraction = (uint64_t)sum->fraction + count.fraction;

        if (__builtin_add_overflow(sum->whole, count.whole, &sum->whole) ||
            __builtin_add_overflow(sum->whole, (int64_t)(fraction >> FRACTION_BITS), &sum->whole))
                sum->whole = count.whole < 0 ? INT64_MIN : INT64_MAX;
        sum->fraction = fraction & (UINT64_MAX >> (64 - FRACTION_BITS));
        sum->are_stacks |= count.are_stacks;
}

int sample_count_compare(struct counted_samples a, struct counted_samples b)
{
        if (a.whole != b.whole)
                return a.whole > b.whole ? 1 : -1;
        return (a.fraction > b.fraction) - (a.fraction < b.fraction);
}

uint64_t sample_count_round(struct counted_samples count)
{
        if (!count.whole && !count.fraction)
                return 0;
        if (count.whole < 0 || (!count.whole && count.fraction < HALF))
                return 1;
        return (uint64_t)count.whole + (count.fraction >= HALF);
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

                if (!types[i].stacks)
                        continue;
                samples = sample_count_round(compute_sample_count(&rule, types[i].sum, types[i].stacks));
                if (rule.interval && samples > most)
                        most = samples;
                if (types[i].stacks > most_stacks)
                        most_stacks = types[i].stacks;
        }
        *are_stacks_ret = !most && most_stacks;
        return most ? most : most_stacks;
}
