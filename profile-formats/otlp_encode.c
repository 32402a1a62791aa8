/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/otlp.h"

#include <inttypes.h>
#include <string.h>

#include "profile-formats/otlp_encode_tables.h"
#include "profile-formats/otlp_fields.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/wire.h"

/* ---- samples ------------------------------------------------------------------------ */

struct ordered {
        const struct profile_sample *s;
};

/* Samples of one Profile message, then of one Sample message, stand together; times ascend. */
static int compare_identity(const struct profile_sample *a, const struct profile_sample *b)
{
        int c;

        if (a->stack != b->stack)
                return a->stack < b->stack ? -1 : 1;
        if (a->first_label != b->first_label)
                return a->first_label < b->first_label ? -1 : 1;
        if (a->label_count != b->label_count)
                return a->label_count < b->label_count ? -1 : 1;
        c = memcmp(a->trace_id, b->trace_id, sizeof a->trace_id);
        return c ? c : memcmp(a->span_id, b->span_id, sizeof a->span_id);
}

static int compare_samples(const void *x, const void *y)
{
        const struct profile_sample *a = ((const struct ordered *)x)->s, *b = ((const struct ordered *)y)->s;
        int c;

        if (a->type != b->type)
                return a->type < b->type ? -1 : 1;
        if (a->duration_ns != b->duration_ns)
                return a->duration_ns < b->duration_ns ? -1 : 1;
        c = compare_identity(a, b);
        if (c)
                return c;
        if (a->time_unix_ns != b->time_unix_ns)
                return a->time_unix_ns < b->time_unix_ns ? -1 : 1;
        return a < b ? -1 : a > b;
}

static bool is_common(const struct otlp_encoder *e, const struct profile_label *l)
{
        for (uint32_t i = 0; i < e->common_count; i++)
                if (e->common[i].key == l->key && e->common[i].value == l->value)
                        return true;
        return false;
}

/* Number of the sample's trace and span, 0 for none. */
static uint32_t link_of(struct otlp_encoder *e, const struct profile_sample *s)
{
        static const struct number_key none;
        struct number_key key;

        memcpy(key.parts, s->trace_id, 16);
        memcpy(key.parts + 4, s->span_id, 8);
        return memcmp(&key, &none, sizeof key) == 0 ? 0 : otlp_numbered(e, &e->links, key);
}

static void put_sample(struct otlp_encoder *e, const struct ordered *items, size_t count, bool timestamps)
{
        const struct profile_sample *s = items[0].s;
        size_t mark = wire_begin(e->out, PROFILE_SAMPLES), packed;

        wire_put_uint(e->out, SAMPLE_STACK, s->stack + 1);
        packed = wire_begin(e->out, SAMPLE_ATTRIBUTES);
        for (uint32_t i = 0; i < s->label_count; i++) {
                const struct profile_label *l = &e->p->labels.items[s->first_label + i];

                if (!is_common(e, l))
                        buf_append_uleb128(e->out, otlp_put_attribute(e, l->key, l->value));
        }
        if (e->p->stacks.items[s->stack].truncated)
                buf_append_uleb128(e->out, otlp_put_attribute(e, otlp_extra(e, EXTRA_TRUNCATED), otlp_extra(e, EXTRA_TRUE)));
        wire_end(e->out, packed);
        wire_put_uint(e->out, SAMPLE_LINK, link_of(e, s));
        packed = wire_begin(e->out, SAMPLE_VALUES);
        for (size_t i = 0; i < count; i++)
                buf_append_uleb128(e->out, (uint64_t)items[i].s->value);
        wire_end(e->out, packed);
        if (timestamps) {
                packed = wire_begin(e->out, SAMPLE_TIMESTAMPS);
                for (size_t i = 0; i < count; i++)
                        buf_append_u64(e->out, (uint64_t)items[i].s->time_unix_ns);
                wire_end(e->out, packed);
        }
        wire_end(e->out, mark);
}

static void put_value_type(struct otlp_encoder *e, uint32_t field, const char *id, enum profile_type_part type,
                           enum profile_type_part unit)
{
        size_t type_size, unit_size, mark = wire_begin(e->out, field);
        const char *type_text = profile_type_part(id, type, &type_size);
        const char *unit_text = profile_type_part(id, unit, &unit_size);

        wire_put_uint(e->out, VALUE_TYPE_TYPE, otlp_put_string(e, type_text, type_size));
        wire_put_uint(e->out, VALUE_TYPE_UNIT, otlp_put_string(e, unit_text, unit_size));
        wire_end(e->out, mark);
}

/* One Profile message: samples of one type and duration. */
static void put_profile(struct otlp_encoder *e, const struct ordered *items, size_t count)
{
        const struct profile_type *type = &e->p->types.items[items[0].s->type];
        const char *id = profile_text(e->p, type->id);
        int64_t first = items[0].s->time_unix_ns, last = first;
        size_t mark = wire_begin(e->out, SCOPE_PROFILES_PROFILES), packed;

        for (size_t i = 1; i < count; i++) {
                int64_t t = items[i].s->time_unix_ns;

                first = t < first ? t : first;
                last = t > last ? t : last;
        }
        put_value_type(e, PROFILE_SAMPLE_TYPE, id, TYPE_SAMPLE_TYPE, TYPE_SAMPLE_UNIT);
        wire_put_fixed64(e->out, PROFILE_TIME, (uint64_t)first);
        wire_put_uint(e->out, PROFILE_DURATION, (uint64_t)items[0].s->duration_ns);
        put_value_type(e, PROFILE_PERIOD_TYPE, id, TYPE_PERIOD_TYPE, TYPE_PERIOD_UNIT);
        wire_put_uint(e->out, PROFILE_PERIOD, (uint64_t)type->period);
        packed = wire_begin(e->out, PROFILE_ATTRIBUTES);
        buf_append_uleb128(e->out, otlp_put_attribute(e, otlp_extra(e, EXTRA_PROFILE_TYPE), type->id));
        wire_end(e->out, packed);
        for (size_t i = 0; i < count;) {
                size_t n = 1;

                /* Without timestamps a sample has one value. */
                while (first != last && i + n < count && compare_identity(items[i].s, items[i + n].s) == 0)
                        n++;
                put_sample(e, items + i, n, first != last);
                i += n;
        }
        wire_end(e->out, mark);
}

/* The labels of the first sample that all others have too, into common (room for all of them). */
static uint32_t common_labels(const struct profile *p, struct profile_label *common)
{
        const struct profile_sample *first = &p->samples.items[0], *last = first;
        uint32_t count = first->label_count;

        if (count)
                memcpy(common, p->labels.items + first->first_label, count * sizeof *common);
        for (uint32_t i = 1; count && i < p->samples.count; i++) {
                const struct profile_sample *s = &p->samples.items[i];
                uint32_t kept = 0;

                if (s->first_label == last->first_label && s->label_count == last->label_count)
                        continue;
                last = s;
                for (uint32_t c = 0; c < count; c++) {
                        for (uint32_t j = 0; j < s->label_count; j++) {
                                const struct profile_label *l = &p->labels.items[s->first_label + j];

                                if (l->key == common[c].key && l->value == common[c].value) {
                                        common[kept++] = common[c];
                                        break;
                                }
                        }
                }
                count = kept;
        }
        return count;
}

static void put_resource(struct otlp_encoder *e)
{
        size_t mark = wire_begin(e->out, RESOURCE_PROFILES_RESOURCE);

        for (uint32_t i = 0; i < e->common_count; i++) {
                size_t attribute_mark = wire_begin(e->out, RESOURCE_ATTRIBUTES), value;

                wire_put_str(e->out, KEY_VALUE_KEY, profile_text(e->p, e->common[i].key));
                value = wire_begin(e->out, KEY_VALUE_VALUE);
                wire_put_bytes(e->out, ANY_STRING, e->p->strings.items[e->common[i].value].text,
                               e->p->strings.items[e->common[i].value].size);
                wire_end(e->out, value);
                wire_end(e->out, attribute_mark);
        }
        wire_end(e->out, mark);
}

static void put_profiles(struct otlp_encoder *e, struct ordered *items, size_t count)
{
        size_t resource = wire_begin(e->out, REQUEST_RESOURCE_PROFILES), scope_profiles, scope;

        put_resource(e);
        scope_profiles = wire_begin(e->out, RESOURCE_PROFILES_SCOPE_PROFILES);
        scope = wire_begin(e->out, SCOPE_PROFILES_SCOPE);
        wire_put_str(e->out, SCOPE_NAME, "cairn");
        wire_put_str(e->out, SCOPE_VERSION, CAIRN_VERSION);
        wire_end(e->out, scope);
        for (size_t i = 0; i < count;) {
                size_t n = 1;

                while (i + n < count && items[i + n].s->type == items[i].s->type &&
                       items[i + n].s->duration_ns == items[i].s->duration_ns)
                        n++;
                put_profile(e, items + i, n);
                i += n;
        }
        wire_end(e->out, scope_profiles);
        wire_end(e->out, resource);
}

static enum status encode(struct otlp_encoder *e, struct ordered *items, struct profile_label *common)
{
        const struct profile *p = e->p;

        otlp_put_extras(e);
        for (uint32_t i = 0; i < p->samples.count; i++)
                items[i].s = &p->samples.items[i];
        qsort(items, p->samples.count, sizeof *items, compare_samples);
        e->common = common;
        e->common_count = common_labels(p, common);
        put_profiles(e, items, p->samples.count);
        otlp_put_dictionary(e);
        if (e->failed)
                return e->failed;
        return buf_status(e->out, e->err, "OTLP request");
}

enum status otlp_encode(const struct profile *p, struct buf *ret, struct error *err)
{
        struct otlp_encoder e = { .p = p, .out = ret, .err = err };
        _cleanup_free_ struct ordered *items = NULL;
        _cleanup_free_ struct profile_label *common = NULL;
        enum status st;

        if (p->samples.count == 0)
                return ST_OK; /* the empty request */
        items = calloc(p->samples.count, sizeof *items);
        common = calloc(p->samples.items[0].label_count + 1u, sizeof *common);
        if (!items || !common)
                return error_no_memory(err);
        string_list_init(&e.more, p, DICTIONARY_STRINGS);
        st = encode(&e, items, common);
        string_list_deinit(&e.more);
        number_map_deinit(&e.attributes);
        number_map_deinit(&e.functions);
        number_map_deinit(&e.links);
        return st;
}
