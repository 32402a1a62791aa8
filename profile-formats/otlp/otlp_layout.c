/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/otlp/otlp_layout.h"

const struct otlp_sample_fields otlp_current_fields = { .values = SAMPLE_VALUES,
                                                        .attributes = SAMPLE_ATTRIBUTES,
                                                        .link = SAMPLE_LINK };
static const struct otlp_sample_fields old_fields = { .values = 2, .attributes = 3, .link = 4 }; /* 1.8.0 and 1.9.0 */

/* ---- nested messages of a request -------------------------------------------------------- */

#define LEVEL_PROFILE 3
#define LEVEL_SAMPLE 4

struct message_cursor {
        struct reader levels[LEVEL_SAMPLE];
        unsigned depth, at;
};

static struct message_cursor open_request(const void *data, size_t n, unsigned depth)
{
        struct message_cursor c = { .depth = depth };

        reader_init(&c.levels[0], data, n);
        return c;
}

/* The next message at the cursor's depth. Malformed messages end early here; they are reported when they are decoded.
 */
static bool next_nested_message(struct message_cursor *c, struct reader *ret)
{
        static const uint32_t path[LEVEL_SAMPLE] = { REQUEST_RESOURCE_PROFILES, RESOURCE_PROFILES_SCOPE_PROFILES,
                                                     SCOPE_PROFILES_PROFILES, PROFILE_SAMPLES };
        struct wire_field f;

        for (;;) {
                if (!wire_next(&c->levels[c->at], &f)) {
                        if (c->at == 0)
                                return false;
                        c->at--;
                } else if (f.number == path[c->at] && f.type == WIRE_BYTES) {
                        if (c->at + 1 == c->depth) {
                                *ret = f.bytes;
                                return true;
                        }
                        c->levels[++c->at] = f.bytes;
                }
        }
}

/* ---- before 1.8.0 -------------------------------------------------------------------------- */

/* Until 1.7.0 the fields 3 to 6 were location_indices, time_nanos, duration_nanos and period_type. */
static bool is_field_of_old_profile(const struct wire_field *f)
{
        switch (f->number) {
        case PROFILE_TIME:
                return f->type != WIRE_FIXED64;
        case PROFILE_DURATION:
        case PROFILE_PERIOD:
                return f->type != WIRE_VARINT;
        case PROFILE_PERIOD_TYPE:
                return f->type != WIRE_BYTES;
        }
        return false;
}

enum status otlp_check_age(const void *data, size_t n, struct error *err)
{
        struct message_cursor c = open_request(data, n, LEVEL_PROFILE);
        struct reader profile;
        struct wire_field f;

        while (next_nested_message(&c, &profile))
                while (wire_next(&profile, &f))
                        if (is_field_of_old_profile(&f))
                                return error_at(err, ST_BAD_DATA, profile.base, OTLP_TOO_OLD);
        return ST_OK;
}

/* ---- 1.8.0 and 1.9.0, or later --------------------------------------------------------------- */

/* What reading all samples in one layout has shown. */
struct layout_evidence {
        const struct otlp_sample_fields *fields;
        bool fits;                     /* no index outside its table, no single field twice */
        bool has_packed, has_unpacked; /* repeated fields */
        bool has_all_used;             /* nothing in the tables of attributes and links is unused */
        bool is_valid;                 /* the samples keep the rules of the specification */
        uint32_t *attributes, *links;  /* by index: the last sample that refers to it, 0: none */
};

static bool refers_outside(const struct otlp_dictionary *d, unsigned table, uint64_t index)
{
        return index && index >= d->counts[table];
}

static void note_packing(struct layout_evidence *e, const struct wire_field *f)
{
        e->has_packed |= f->type == WIRE_BYTES;
        e->has_unpacked |= f->type == WIRE_VARINT;
}

static void read_attributes_as(struct layout_evidence *e, const struct otlp_dictionary *d, struct wire_field *f,
                               uint32_t sample)
{
        uint64_t index;

        note_packing(e, f);
        while (wire_next_number(f, WIRE_VARINT, &index)) {
                if (refers_outside(d, DICTIONARY_ATTRIBUTES, index)) {
                        e->fits = false;
                        continue;
                }
                if (index && e->attributes[index] == sample)
                        e->is_valid = false;
                e->attributes[index] = sample;
        }
}

static void read_sample_as(struct layout_evidence *e, const struct otlp_dictionary *d, struct reader r, uint32_t sample)
{
        uint64_t values = 0, times = 0, v;
        bool has_link = false;
        struct wire_field f;

        while (wire_next(&r, &f)) {
                if (f.number == e->fields->values) {
                        note_packing(e, &f);
                        while (wire_next_number(&f, WIRE_VARINT, &v))
                                values++;
                } else if (f.number == SAMPLE_TIMESTAMPS) {
                        while (wire_next_number(&f, WIRE_FIXED64, &v))
                                times++;
                } else if (f.number == e->fields->attributes) {
                        read_attributes_as(e, d, &f, sample);
                } else if (f.number == e->fields->link) {
                        if (has_link || refers_outside(d, DICTIONARY_LINKS, f.value))
                                e->fits = false;
                        else
                                e->links[f.value] = sample;
                        has_link = true;
                }
        }
        if (values + times == 0 || (values && times && values != times))
                e->is_valid = false;
}

/* Mark the attributes that a mapping, location or profile refers to. */
static void mark_used_attributes(uint32_t *used, const struct otlp_dictionary *d, struct reader r, uint32_t field)
{
        struct wire_field f;
        uint64_t index;

        while (wire_next(&r, &f))
                while (f.number == field && wire_next_number(&f, WIRE_VARINT, &index))
                        if (!refers_outside(d, DICTIONARY_ATTRIBUTES, index))
                                used[index] = 1;
}

static void mark_attributes_of_others(uint32_t *used, const struct otlp_dictionary *d, const void *data, size_t n)
{
        struct message_cursor c = open_request(data, n, LEVEL_PROFILE);
        struct reader profile;

        for (uint32_t i = 1; i < d->counts[DICTIONARY_MAPPINGS]; i++)
                mark_used_attributes(used, d, otlp_dictionary_entry(d, DICTIONARY_MAPPINGS, i), MAPPING_ATTRIBUTES);
        for (uint32_t i = 1; i < d->counts[DICTIONARY_LOCATIONS]; i++)
                mark_used_attributes(used, d, otlp_dictionary_entry(d, DICTIONARY_LOCATIONS, i), LOCATION_ATTRIBUTES);
        while (next_nested_message(&c, &profile))
                mark_used_attributes(used, d, profile, PROFILE_ATTRIBUTES);
}

static bool uses_all_entries(const struct layout_evidence *e, const struct otlp_dictionary *d, const uint32_t *others)
{
        for (uint32_t i = 1; i < d->counts[DICTIONARY_ATTRIBUTES]; i++)
                if (!e->attributes[i] && !others[i])
                        return false;
        for (uint32_t i = 1; i < d->counts[DICTIONARY_LINKS]; i++)
                if (!e->links[i])
                        return false;
        return true;
}

/* The layout that the evidence is for; NULL: either is possible. */
static const struct otlp_sample_fields *choose_layout(const struct layout_evidence *current,
                                                      const struct layout_evidence *old)
{
        bool is_current_mixed = current->has_packed && current->has_unpacked;
        bool is_old_mixed = old->has_packed && old->has_unpacked;

        if (current->fits != old->fits)
                return current->fits ? current->fields : old->fields;
        if (!current->fits)
                return current->fields; /* its index outside a table is reported */
        if (is_current_mixed != is_old_mixed)
                return is_old_mixed ? current->fields : old->fields;
        if (current->has_all_used == old->has_all_used && current->is_valid == old->is_valid)
                return NULL;
        if (current->has_all_used >= old->has_all_used && current->is_valid >= old->is_valid)
                return current->fields;
        if (current->has_all_used <= old->has_all_used && current->is_valid <= old->is_valid)
                return old->fields;
        return NULL; /* contradictory */
}

/* A packed run in field 3 or 4 decides; NULL without one. *ret: whether a sample has a field that the layouts differ
 * in. */
static const struct otlp_sample_fields *find_packed_field(const void *data, size_t n, bool *differ_ret)
{
        struct message_cursor c = open_request(data, n, LEVEL_SAMPLE);
        struct reader sample;
        struct wire_field f;

        *differ_ret = false;
        while (next_nested_message(&c, &sample)) {
                while (wire_next(&sample, &f)) {
                        if (f.number == otlp_current_fields.values && f.type == WIRE_BYTES)
                                return &otlp_current_fields;
                        if (f.number == old_fields.attributes && f.type == WIRE_BYTES)
                                return &old_fields;
                        *differ_ret |= f.number >= 2 && f.number <= 4;
                }
        }
        return NULL;
}

static bool init_layout_evidence(struct layout_evidence *e, struct otlp_dictionary *d)
{
        e->fits = e->is_valid = true;
        e->attributes = arena_alloc_array(&d->scratch, d->counts[DICTIONARY_ATTRIBUTES] + 1u, sizeof *e->attributes);
        e->links = arena_alloc_array(&d->scratch, d->counts[DICTIONARY_LINKS] + 1u, sizeof *e->links);
        return e->attributes && e->links;
}

enum status otlp_find_layout(struct otlp_dictionary *d, const void *data, size_t n, struct otlp_sample_fields *ret,
                             struct error *err)
{
        struct message_cursor c = open_request(data, n, LEVEL_SAMPLE);
        struct layout_evidence current = { .fields = &otlp_current_fields }, old = { .fields = &old_fields };
        const struct otlp_sample_fields *found;
        struct reader sample;
        uint32_t number = 1, *others;
        bool differ;

        found = find_packed_field(data, n, &differ);
        if (!found && !differ)
                found = &otlp_current_fields;
        if (found) {
                *ret = *found;
                return ST_OK;
        }
        others = arena_alloc_array(&d->scratch, d->counts[DICTIONARY_ATTRIBUTES] + 1u, sizeof *others);
        if (!others || !init_layout_evidence(&current, d) || !init_layout_evidence(&old, d))
                return error_set(err, ST_TOO_BIG, "OTLP dictionary needs more than %zu bytes of memory",
                                 d->scratch.max);
        for (; next_nested_message(&c, &sample); number++) {
                read_sample_as(&current, d, sample, number);
                read_sample_as(&old, d, sample, number);
        }
        mark_attributes_of_others(others, d, data, n);
        current.has_all_used = uses_all_entries(&current, d, others);
        old.has_all_used = uses_all_entries(&old, d, others);
        found = choose_layout(&current, &old);
        if (!found)
                return error_set(err, ST_BAD_DATA,
                                 "OTLP samples fit 1.9 and 1.10: update the sender to 1.10.0 or later and send values");
        *ret = *found;
        return ST_OK;
}
