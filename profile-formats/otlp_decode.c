/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/otlp.h"

#include <string.h>

#include "common/limits.h"
#include "profile-formats/otlp_samples.h"
#include "profile-formats/profile_type.h"

/* Resource and InstrumentationScope differ in the number of their attributes field. */
static enum status add_key_values(struct otlp_decoder *d, struct reader r, uint32_t field, struct label_list *l,
                                  struct error *err)
{
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                struct otlp_attribute a;

                if (f.number != field || f.type != WIRE_BYTES)
                        continue;
                st = otlp_key_value(&d->dictionary, f.bytes, &a, err);
                if (!st)
                        st = otlp_add_attribute(l, &a, err);
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP resource or scope");
        return st;
}

/* ---- profile, scope, resource ------------------------------------------------------- */

struct value_type {
        uint32_t type, unit;
};

static enum status read_value_type(struct otlp_decoder *d, struct reader r, struct value_type *ret, struct error *err)
{
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.type != WIRE_VARINT)
                        continue;
                if (f.number == VALUE_TYPE_TYPE)
                        st = otlp_string(&d->dictionary, f.value, &r, &ret->type, err);
                else if (f.number == VALUE_TYPE_UNIT)
                        st = otlp_string(&d->dictionary, f.value, &r, &ret->unit, err);
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP value type");
        return st;
}

/* Take the attribute that names the type out of the labels; 0 when it is not there. */
static uint32_t take_type_label(const struct profile *p, struct label_list *l)
{
        for (uint32_t i = 0; i < l->count; i++) {
                uint32_t value = l->items[i].value;

                if (strcmp(profile_text(p, l->items[i].key), ATTRIBUTE_PROFILE_TYPE) != 0)
                        continue;
                l->items[i] = l->items[--l->count];
                return value;
        }
        return 0;
}

static enum status add_type(struct otlp_decoder *d, const struct value_type *sample,
                            const struct value_type *period_type, int64_t period, struct otlp_context *c,
                            struct error *err)
{
        struct profile *p = d->p;
        struct profile_type named = { .id = take_type_label(p, &c->labels),
                                      .unit = sample->unit,
                                      .period = period };

        if (named.id)
                return profile_add_type(p, &named, &c->type, err);
        return profile_type_add(p, NULL, profile_text(p, sample->type), profile_text(p, sample->unit),
                                profile_text(p, period_type->type), profile_text(p, period_type->unit), period,
                                &c->type, err);
}

static enum status read_profile(struct otlp_decoder *d, struct reader r, const struct label_list *outer,
                                struct error *err)
{
        const struct reader message = r;
        struct otlp_context c = { .labels = *outer };
        struct value_type sample_type = { 0 }, period_type = { 0 };
        uint64_t duration = 0, start = 0;
        int64_t period = 0;
        bool samples = false;
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                switch (f.number) {
                case PROFILE_SAMPLE_TYPE:
                        if (f.type == WIRE_BYTES)
                                st = read_value_type(d, f.bytes, &sample_type, err);
                        break;
                case PROFILE_SAMPLES:
                        samples = true;
                        break;
                case PROFILE_TIME:
                        if (f.type != WIRE_FIXED64)
                                st = error_at(err, ST_BAD_DATA, message.base,
                                              "OTLP profile has no time in field 3: %s", otlp_too_old);
                        start = f.value;
                        break;
                case PROFILE_DURATION:
                        duration = f.value;
                        break;
                case PROFILE_PERIOD_TYPE:
                        if (f.type == WIRE_BYTES)
                                st = read_value_type(d, f.bytes, &period_type, err);
                        break;
                case PROFILE_PERIOD:
                        period = (int64_t)f.value;
                        break;
                case PROFILE_ATTRIBUTES:
                        st = otlp_add_indexed(d, &f, &message, &c.labels, NULL, err);
                        break;
                }
        }
        if (st)
                return st;
        if (r.failed)
                return reader_error(&r, err, "OTLP profile");
        if (!samples)
                return ST_OK;
        if (d->dictionary.counts[DICTIONARY_STACKS] == 0)
                return error_at(err, ST_BAD_DATA, message.base,
                                "OTLP profile has samples, but the dictionary has no stack table: %s", otlp_too_old);
        c.time_unix_ns = otlp_clamp_time(start);
        c.duration_ns = otlp_clamp_time(duration);
        st = add_type(d, &sample_type, &period_type, period, &c, err);
        if (st)
                return st;
        d->last_valid = false;
        r = message;
        while (!st && wire_next(&r, &f))
                if (f.number == PROFILE_SAMPLES && f.type == WIRE_BYTES)
                        st = otlp_read_sample(d, f.bytes, &c, err);
        return st;
}

/*
 * A wrapper (ResourceProfiles, ScopeProfiles) may hold its attributes after what they describe, so it is walked
 * twice.
 */
static enum status read_scope_profiles(struct otlp_decoder *d, struct reader r, const struct label_list *outer,
                                       struct error *err)
{
        const struct reader message = r;
        struct label_list l = *outer;
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f))
                if (f.number == SCOPE_PROFILES_SCOPE && f.type == WIRE_BYTES)
                        st = add_key_values(d, f.bytes, SCOPE_ATTRIBUTES, &l, err);
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP scope profiles");
        r = message;
        while (!st && wire_next(&r, &f))
                if (f.number == SCOPE_PROFILES_PROFILES && f.type == WIRE_BYTES)
                        st = read_profile(d, f.bytes, &l, err);
        return st;
}

static enum status read_resource_profiles(struct otlp_decoder *d, struct reader r, struct error *err)
{
        const struct reader message = r;
        struct label_list l = { .count = 0 };
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f))
                if (f.number == RESOURCE_PROFILES_RESOURCE && f.type == WIRE_BYTES)
                        st = add_key_values(d, f.bytes, RESOURCE_ATTRIBUTES, &l, err);
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP resource profiles");
        r = message;
        while (!st && wire_next(&r, &f))
                if (f.number == RESOURCE_PROFILES_SCOPE_PROFILES && f.type == WIRE_BYTES)
                        st = read_scope_profiles(d, f.bytes, &l, err);
        return st;
}

enum status otlp_decode(const void *data, size_t n, struct profile *ret, struct error *err)
{
        struct otlp_decoder d = { 0 };
        struct profile p;
        struct reader request;
        struct wire_field f;
        enum status st;

        if (n > UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "OTLP request is larger than 4 GiB");
        st = profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, err);
        if (st)
                return st;
        d.p = &p;
        buf_init(&d.values, sizeof(uint64_t) * LIMIT_SAMPLES);
        buf_init(&d.timestamps, sizeof(uint64_t) * LIMIT_SAMPLES);
        st = otlp_dictionary_read(&d.dictionary, &p, data, n, err);
        reader_init(&request, data, n);
        while (!st && wire_next(&request, &f))
                if (f.number == REQUEST_RESOURCE_PROFILES && f.type == WIRE_BYTES)
                        st = read_resource_profiles(&d, f.bytes, err);
        otlp_dictionary_deinit(&d.dictionary);
        buf_deinit(&d.values);
        buf_deinit(&d.timestamps);
        if (st) {
                profile_deinit(&p);
                return st;
        }
        *ret = p;
        return ST_OK;
}
