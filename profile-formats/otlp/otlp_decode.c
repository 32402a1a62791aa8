/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary is decoded first (otlp_dictionary.c), so an index in a sample is only checked against its table. Then
 * the request is read from the outside in: resource, scope, profile, sample. Each level copies the labels of the level
 * around it and sets its own attributes, so the inner one has precedence. Attributes may come after the messages that
 * they apply to, so each level above the samples is read twice.
 *
 * A Sample message becomes one sample per timestamp (add_sample_events()); one that is inconsistent is rejected alone,
 * a malformed one fails the request. The numbers of its fields differ between the versions of OTLP: sample_fields.
 *
 * Hostile input: attributes can make the work quadratic, so copies and insertions of labels are charged with
 * profile_count_work(). Consecutive samples with the same encoded attributes share their label set (last_...).
 *
 * Order: attributes, labels and events of a sample; profile, scope, resource; the request.
 */
#include "profile-formats/otlp/otlp.h"

#include <string.h>

#include "common/limits.h"
#include "profile-formats/number_map.h"
#include "profile-formats/otlp/otlp_dictionary.h"
#include "profile-formats/otlp/otlp_layout.h"
#include "profile-formats/otlp/otlp_service.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/sample_labels.h"

#define LABEL_COPY_WORK (sizeof(struct sample_labels) / 64)

struct otlp_decoder {
        struct otlp_dictionary dictionary;
        struct otlp_sample_fields sample_fields;
        struct profile *p;
        struct buf values, timestamps; /* of the current sample, uint64_t each */
        struct reader
                last_attributes; /* encoded attributes of the label set below; consecutive samples often share them */
        uint32_t last_first_label, last_label_count;
        uint32_t last_main_file; /* that the service was named by */
        bool last_valid, last_truncated, last_depends_on_stack;
        struct number_map types; /* by the strings and period that determine a type: its name is longer than they are */
        uint32_t type_numbers[LIMIT_PROFILE_TYPES];
};

/* Properties shared by the samples of one Profile message. */
struct otlp_context {
        struct sample_labels labels;
        uint32_t type;
        int64_t time_unix_ns, duration_ns;
        int64_t factor;           /* of the values */
        bool is_written_by_cairn; /* it has the attribute ATTRIBUTE_PROFILE_TYPE */
};

/* Times after the year 2262 are clamped. */
static inline int64_t clamp_otlp_time(uint64_t v)
{
        return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

/* Set the label of an attribute that has a key and a text. */
static enum status add_label_of_attribute(struct sample_labels *l, const struct otlp_attribute *a, struct error *err)
{
        return a->usable && a->key ? sample_labels_set(l, a->key, a->value, err) : ST_OK;
}

/*
 * Set labels from a field of attribute indices.
 * @param truncated  set by ATTRIBUTE_STACK_TRUNCATED, which then does not become a label; NULL: it does.
 */
static enum status add_indexed_attributes(struct otlp_decoder *d, struct wire_field *f, const struct reader *at,
                                          struct sample_labels *l, bool *truncated, struct error *err)
{
        uint64_t index;
        enum status st = ST_OK;

        while (!st && wire_next_number(f, WIRE_VARINT, &index)) {
                const struct otlp_attribute *a;

                st = profile_count_work(d->p, 1 + l->count / 8, err); /* the search, and labels moved by an insertion */
                if (!st)
                        st = otlp_dictionary_check_index(&d->dictionary, DICTIONARY_ATTRIBUTES, index, at, err);
                if (st || index == 0)
                        continue;
                a = &d->dictionary.attributes[index];
                if (truncated && a->key == d->dictionary.truncated_key)
                        *truncated = true;
                else
                        st = add_label_of_attribute(l, a, err);
        }
        if (!st && f->bytes.failed)
                st = reader_error(&f->bytes, err, "OTLP attribute indices");
        return st;
}

static enum status collect_numbers(struct wire_field *f, enum wire_type element, struct buf *numbers, struct error *err)
{
        uint64_t v;

        while (wire_next_number(f, element, &v))
                buf_append(numbers, &v, sizeof v);
        if (f->bytes.failed)
                return reader_error(&f->bytes, err, "OTLP sample");
        return buf_status(numbers, err, "OTLP sample");
}

static uint64_t get_collected_number(const struct buf *numbers, size_t i)
{
        uint64_t v;

        memcpy(&v, numbers->data + i * sizeof v, sizeof v);
        return v;
}

/* The label set of a sample: its own attributes have precedence over those of profile, scope and resource. */
static enum status read_sample_labels(struct otlp_decoder *d, const struct otlp_context *c,
                                      const struct reader *message, const struct reader *attributes,
                                      struct profile_sample *s, bool *truncated, struct error *err)
{
        struct sample_labels own;
        struct wire_field f = { .type = WIRE_BYTES, .bytes = *attributes };
        bool depends_on_stack = false;
        uint32_t main_file = 0;
        enum status st;

        *truncated = false;
        if (d->last_valid && d->last_depends_on_stack)
                main_file = find_main_file(d->p, s->stack);
        if (d->last_valid && (!d->last_depends_on_stack || d->last_main_file == main_file) &&
            d->last_attributes.size == attributes->size &&
            (attributes->size == 0 || memcmp(d->last_attributes.data, attributes->data, attributes->size) == 0)) {
                s->first_label = d->last_first_label;
                s->label_count = d->last_label_count;
                *truncated = d->last_truncated;
                return ST_OK;
        }
        own = c->labels;
        st = profile_count_work(d->p, LABEL_COPY_WORK, err);
        if (!st)
                st = add_indexed_attributes(d, &f, message, &own, truncated, err);
        if (!st && !c->is_written_by_cairn && own.count < LIMIT_LABELS_PER_SAMPLE && !has_service_name(d->p, &own)) {
                depends_on_stack = !has_program_name(d->p, &own);
                main_file = depends_on_stack ? find_main_file(d->p, s->stack) : 0;
                st = set_unknown_service(d->p, main_file, &own, err);
        }
        if (!st)
                st = profile_add_label_set(d->p, own.items, own.count, &s->first_label, err);
        if (st)
                return st;
        s->label_count = own.count;
        d->last_attributes = *attributes;
        d->last_first_label = s->first_label;
        d->last_label_count = s->label_count;
        d->last_truncated = *truncated;
        d->last_main_file = main_file;
        d->last_depends_on_stack = depends_on_stack;
        d->last_valid = true;
        return ST_OK;
}

#define TIME_TOO_LONG "the count of a sample multiplied by its period exceeds 64 bits"

static enum status add_sample_events(struct otlp_decoder *d, const struct otlp_context *c, struct profile_sample *s,
                                     struct error *err)
{
        size_t values = d->values.size / sizeof(uint64_t), times = d->timestamps.size / sizeof(uint64_t);
        enum status st = ST_OK;
        uint32_t number;

        if (values == 0 && times == 0) {
                profile_reject_sample(d->p, "a sample has neither values nor timestamps");
                return ST_OK;
        }
        if (values && times && values != times) {
                profile_reject_sample(d->p, "a sample has different numbers of values and timestamps");
                return ST_OK;
        }
        if (times == 0) {
                int64_t sum = 0;

                for (size_t i = 0; i < values; i++) {
                        if (__builtin_add_overflow(sum, (int64_t)get_collected_number(&d->values, i), &sum)) {
                                profile_reject_sample(d->p, "the sum of a sample's values exceeds 64 bits");
                                return ST_OK;
                        }
                }
                if (__builtin_mul_overflow(sum, c->factor, &s->value)) {
                        profile_reject_sample(d->p, TIME_TOO_LONG);
                        return ST_OK;
                }
                s->time_unix_ns = c->time_unix_ns;
                return s->value ? profile_add_sample(d->p, s, &number, err) : ST_OK;
        }
        for (size_t i = 0; !st && i < times; i++) {
                if (__builtin_mul_overflow(values ? (int64_t)get_collected_number(&d->values, i) : 1, c->factor,
                                           &s->value)) {
                        profile_reject_sample(d->p, TIME_TOO_LONG);
                        continue;
                }
                s->time_unix_ns = clamp_otlp_time(get_collected_number(&d->timestamps, i));
                if (s->value)
                        st = profile_add_sample(d->p, s, &number, err);
        }
        return st;
}

static enum status read_sample_link(struct otlp_decoder *d, const struct wire_field *f, const struct reader *message,
                                    struct profile_sample *s, struct error *err)
{
        const struct otlp_link *link;
        enum status st;

        if (f->type != WIRE_VARINT)
                return error_at(err, ST_BAD_DATA, message->base,
                                "OTLP samples of one request have both versions' types in field %u", f->number);
        st = otlp_dictionary_check_index(&d->dictionary, DICTIONARY_LINKS, f->value, message, err);
        if (st || !f->value)
                return st;
        link = &d->dictionary.links[f->value];
        memcpy(s->trace_id, link->trace_id, sizeof s->trace_id);
        memcpy(s->span_id, link->span_id, sizeof s->span_id);
        return ST_OK;
}

/* Decode a Sample message into the profile. */
static enum status read_otlp_sample(struct otlp_decoder *d, struct reader r, const struct otlp_context *c,
                                    struct error *err)
{
        struct otlp_dictionary *dict = &d->dictionary;
        struct profile_sample s = { .type = c->type, .duration_ns = c->duration_ns, .stack = dict->stacks[0] };
        const struct reader message = r;
        struct reader attributes;
        struct buf unpacked; /* attribute indices that are not in one packed run */
        struct wire_field f;
        bool truncated, first = true;
        uint64_t v;
        enum status st = ST_OK;

        reader_init(&attributes, NULL, 0);
        buf_init(&unpacked, KiB(64));
        buf_clear(&d->values);
        buf_clear(&d->timestamps);
        while (!st && wire_next(&r, &f)) {
                if (f.number == SAMPLE_STACK && f.type == WIRE_VARINT) {
                        st = otlp_dictionary_check_index(dict, DICTIONARY_STACKS, f.value, &message, err);
                        if (!st)
                                s.stack = dict->stacks[f.value];
                } else if (f.number == d->sample_fields.attributes && f.type == WIRE_BYTES && first) {
                        attributes = f.bytes;
                        first = false;
                } else if (f.number == d->sample_fields.attributes) {
                        if (unpacked.size == 0)
                                buf_append(&unpacked, attributes.data, attributes.size);
                        first = false;
                        while (wire_next_number(&f, WIRE_VARINT, &v))
                                buf_append_uleb128(&unpacked, v);
                        st = f.bytes.failed ? reader_error(&f.bytes, err, "OTLP sample")
                                            : buf_status(&unpacked, err, "attribute indices of an OTLP sample");
                        if (!st)
                                reader_init(&attributes, unpacked.data, unpacked.size);
                } else if (f.number == d->sample_fields.link) {
                        st = read_sample_link(d, &f, &message, &s, err);
                } else if (f.number == d->sample_fields.values) {
                        st = collect_numbers(&f, WIRE_VARINT, &d->values, err);
                } else if (f.number == SAMPLE_TIMESTAMPS) {
                        st = collect_numbers(&f, WIRE_FIXED64, &d->timestamps, err);
                }
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP sample");
        if (!st)
                st = read_sample_labels(d, c, &message, &attributes, &s, &truncated, err);
        if (!st && unpacked.size)
                d->last_valid = false; /* its bytes are freed below */
        if (!st && truncated)
                d->p->stacks.items[s.stack].truncated = true;
        if (!st)
                st = add_sample_events(d, c, &s, err);
        buf_deinit(&unpacked);
        return st;
}

/* Resource and InstrumentationScope have different numbers for the attributes field. */
static enum status add_otlp_key_values(struct otlp_decoder *d, struct reader r, uint32_t field, struct sample_labels *l,
                                       struct error *err)
{
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                struct otlp_attribute a;

                if (f.number != field || f.type != WIRE_BYTES)
                        continue;
                st = read_otlp_key_value(&d->dictionary, f.bytes, &a, err);
                if (!st)
                        st = add_label_of_attribute(l, &a, err);
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP resource or scope");
        return st;
}

/* ---- profile, scope, resource ------------------------------------------------------- */

struct otlp_value_type {
        uint32_t type, unit;
};

static enum status read_otlp_value_type(struct otlp_decoder *d, struct reader r, struct otlp_value_type *ret,
                                        struct error *err)
{
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.type != WIRE_VARINT)
                        continue;
                if (f.number == VALUE_TYPE_TYPE)
                        st = otlp_dictionary_string(&d->dictionary, f.value, &r, &ret->type, err);
                else if (f.number == VALUE_TYPE_UNIT)
                        st = otlp_dictionary_string(&d->dictionary, f.value, &r, &ret->unit, err);
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP value type");
        return st;
}

/* Remove the label that names the type, and return its value; 0 without one. */
static uint32_t remove_type_label(const struct profile *p, struct sample_labels *l)
{
        for (uint32_t i = 0; i < l->count; i++) {
                uint32_t value = l->items[i].value;

                if (strcmp(profile_text(p, l->items[i].key), ATTRIBUTE_PROFILE_TYPE) != 0)
                        continue;
                l->count--;
                memmove(&l->items[i], &l->items[i + 1], (l->count - i) * sizeof *l->items);
                return value;
        }
        return 0;
}

/* What determines a type. Without a name of its own, its name is made of the texts of the others. */
static struct number_key make_otlp_type_key(uint32_t name, const struct otlp_value_type *sample,
                                            const struct otlp_value_type *period_type, int64_t period)
{
        struct number_key key = { { sample->type, sample->unit, period_type->type, period_type->unit, (uint32_t)period,
                                    (uint32_t)((uint64_t)period >> 32) } };

        if (name) {
                key.parts[0] = name;
                key.parts[2] = key.parts[3] = PROFILE_NONE; /* no string has this number */
        }
        return key;
}

/*
 * Counts of the CPU's samples with their period are time, so that the profiles of all senders add up. Pyroscope does
 * the same.
 */
static bool counts_cpu_samples(const struct profile_type_parts *parts)
{
        return strcmp(parts->sample_type, "samples") == 0 && strcmp(parts->sample_unit, "count") == 0 &&
               strcmp(parts->period_type, "cpu") == 0 && strcmp(parts->period_unit, "nanoseconds") == 0 &&
               parts->period > 0;
}

static enum status add_otlp_type(struct otlp_decoder *d, const struct otlp_value_type *sample,
                                 const struct otlp_value_type *period_type, int64_t period, struct otlp_context *c,
                                 struct error *err)
{
        struct profile *p = d->p;
        struct profile_type named = { .id = remove_type_label(p, &c->labels), .unit = sample->unit, .period = period };
        const struct number_key key = make_otlp_type_key(named.id, sample, period_type, period);
        struct profile_type_parts parts = { .sample_type = profile_text(p, sample->type),
                                            .sample_unit = profile_text(p, sample->unit),
                                            .period_type = profile_text(p, period_type->type),
                                            .period_unit = profile_text(p, period_type->unit),
                                            .period = period };
        uint32_t number;
        bool fresh;
        enum status st = number_map_get(&d->types, &key, &number, &fresh, err);

        c->is_written_by_cairn = named.id != 0;
        c->factor = 1;
        if (!named.id && counts_cpu_samples(&parts)) {
                parts.sample_type = "cpu";
                parts.sample_unit = "nanoseconds";
                c->factor = period;
        }
        if (!st && number == LIMIT_PROFILE_TYPES)
                st = error_set(err, ST_TOO_BIG, "OTLP request has more than %d sample types", LIMIT_PROFILE_TYPES);
        if (!st && fresh)
                st = named.id ? profile_add_type(p, &named, &d->type_numbers[number], err)
                              : profile_type_add(p, &parts, &d->type_numbers[number], err);
        if (!st)
                c->type = d->type_numbers[number];
        return st;
}

static enum status read_otlp_profile(struct otlp_decoder *d, struct reader r, const struct sample_labels *outer,
                                     struct error *err)
{
        const struct reader message = r;
        struct otlp_context c = { .labels = *outer };
        struct otlp_value_type sample_type = { 0 }, period_type = { 0 };
        uint64_t duration = 0, start = 0;
        int64_t period = 0;
        bool samples = false;
        struct wire_field f;
        enum status st = profile_count_work(d->p, LABEL_COPY_WORK, err);

        while (!st && wire_next(&r, &f)) {
                switch (f.number) {
                case PROFILE_SAMPLE_TYPE:
                        if (f.type == WIRE_BYTES)
                                st = read_otlp_value_type(d, f.bytes, &sample_type, err);
                        break;
                case PROFILE_SAMPLES:
                        samples = true;
                        break;
                case PROFILE_TIME:
                        start = f.value;
                        break;
                case PROFILE_DURATION:
                        duration = f.value;
                        break;
                case PROFILE_PERIOD_TYPE:
                        if (f.type == WIRE_BYTES)
                                st = read_otlp_value_type(d, f.bytes, &period_type, err);
                        break;
                case PROFILE_PERIOD:
                        period = (int64_t)f.value;
                        break;
                case PROFILE_ATTRIBUTES:
                        st = add_indexed_attributes(d, &f, &message, &c.labels, NULL, err);
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
                return error_at(err, ST_BAD_DATA, message.base, OTLP_TOO_OLD); /* its stacks were in Profile */
        c.time_unix_ns = clamp_otlp_time(start);
        c.duration_ns = clamp_otlp_time(duration);
        st = add_otlp_type(d, &sample_type, &period_type, period, &c, err);
        if (st)
                return st;
        d->last_valid = false;
        r = message;
        while (!st && wire_next(&r, &f))
                if (f.number == PROFILE_SAMPLES && f.type == WIRE_BYTES)
                        st = read_otlp_sample(d, f.bytes, &c, err);
        return st;
}

/*
 * Two passes over ResourceProfiles and ScopeProfiles: the attributes may come after the profiles that they apply to.
 */
static enum status read_scope_profiles(struct otlp_decoder *d, struct reader r, const struct sample_labels *outer,
                                       struct error *err)
{
        const struct reader message = r;
        struct sample_labels l = *outer;
        struct wire_field f;
        enum status st = profile_count_work(d->p, LABEL_COPY_WORK, err);

        while (!st && wire_next(&r, &f))
                if (f.number == SCOPE_PROFILES_SCOPE && f.type == WIRE_BYTES)
                        st = add_otlp_key_values(d, f.bytes, SCOPE_ATTRIBUTES, &l, err);
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP scope profiles");
        r = message;
        while (!st && wire_next(&r, &f))
                if (f.number == SCOPE_PROFILES_PROFILES && f.type == WIRE_BYTES)
                        st = read_otlp_profile(d, f.bytes, &l, err);
        return st;
}

static enum status read_resource_profiles(struct otlp_decoder *d, struct reader r, struct error *err)
{
        const struct reader message = r;
        struct sample_labels l = { .count = 0 };
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f))
                if (f.number == RESOURCE_PROFILES_RESOURCE && f.type == WIRE_BYTES)
                        st = add_otlp_key_values(d, f.bytes, RESOURCE_ATTRIBUTES, &l, err);
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP resource profiles");
        r = message;
        while (!st && wire_next(&r, &f))
                if (f.number == RESOURCE_PROFILES_SCOPE_PROFILES && f.type == WIRE_BYTES)
                        st = read_scope_profiles(d, f.bytes, &l, err);
        return st;
}

/* @param fields  those of the request's samples, NULL: to be found. */
static enum status decode_otlp_request(const void *data, size_t n, uint64_t input_bytes,
                                       const struct otlp_sample_fields *fields, struct profile *ret, struct error *err)
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
        if (input_bytes)
                profile_limit_work(&p, input_bytes);
        buf_init(&d.values, sizeof(uint64_t) * LIMIT_SAMPLES);
        buf_init(&d.timestamps, sizeof(uint64_t) * LIMIT_SAMPLES);
        st = otlp_check_age(data, n, err);
        if (!st)
                st = otlp_dictionary_read(&d.dictionary, &p, data, n, err);
        if (!st && fields)
                d.sample_fields = *fields;
        else if (!st)
                st = otlp_find_layout(&d.dictionary, data, n, &d.sample_fields, err);
        reader_init(&request, data, n);
        while (!st && wire_next(&request, &f))
                if (f.number == REQUEST_RESOURCE_PROFILES && f.type == WIRE_BYTES)
                        st = read_resource_profiles(&d, f.bytes, err);
        otlp_dictionary_deinit(&d.dictionary);
        number_map_deinit(&d.types);
        p.max_work = 0; /* additions by the caller are not part of the input */
        buf_deinit(&d.values);
        buf_deinit(&d.timestamps);
        if (st) {
                profile_deinit(&p);
                return st;
        }
        *ret = p;
        return ST_OK;
}

enum status otlp_decode(const void *data, size_t n, struct profile *ret, struct error *err)
{
        return decode_otlp_request(data, n, n ? n : 1, NULL, ret, err);
}

enum status otlp_decode_within(const void *data, size_t n, uint64_t input_bytes, struct profile *ret, struct error *err)
{
        return decode_otlp_request(data, n, input_bytes, &otlp_current_fields, ret, err);
}
