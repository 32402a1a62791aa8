/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples are sorted so that those of one Profile message, and within it those of one Sample message, are adjacent
 * (compare_otlp_samples()), and are written first. The dictionary is written last, because functions, links,
 * attributes and further strings get their numbers when something refers to them (number_otlp_...()); mappings,
 * locations and stacks have those of the profile. Within the dictionary, too, a table comes after all tables that add
 * entries to it.
 *
 * Failures: a map or list that fails sets `failed` and later calls do nothing, a buf keeps its own failure; both are
 * tested once at the end, so the functions that write return no status.
 *
 * Order: strings and numbers, the tables of the dictionary, samples and profiles, the request.
 */
#include "profile-formats/otlp/otlp.h"

#include <inttypes.h>
#include <string.h>

#include "profile-formats/frame_type.h"
#include "profile-formats/number_map.h"
#include "profile-formats/otlp/otlp_fields.h"
#include "profile-formats/profile.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/string_list.h"
#include "profile-formats/wire.h"

/*
 * Every table of the output starts with an empty entry 0, so entry i of the profile is entry i + 1 of the output.
 * Strings keep their numbers, since entry 0 of the profile's table is the empty string; further strings follow.
 */
enum extra_string {
        EXTRA_BUILD_ID,
        EXTRA_FRAME_TYPE,
        EXTRA_ADDRESS_KIND,
        EXTRA_OBJECT,
        EXTRA_FILE_OFFSET,
        EXTRA_NONE,
        EXTRA_PROFILE_TYPE,
        EXTRA_TRUNCATED,
        EXTRA_TRUE,
        EXTRA_COUNT,
};

struct otlp_encoder {
        const struct profile *p;
        struct buf *out;
        struct error *err;
        enum status failed; /* first failure of a map; a buf keeps its failure itself */
        struct number_map attributes, functions, links;
        struct string_list more; /* the string table */
        uint32_t extras[EXTRA_COUNT];
        uint32_t frame_types[PROFILE_FRAME_TYPES]; /* number of the attribute; 0: none yet */
        const struct profile_label *common;        /* labels that every sample has */
        uint32_t common_count;
};

static inline uint32_t get_extra_string(const struct otlp_encoder *e, enum extra_string s)
{
        return e->extras[s];
}

static const char *const extra_texts[EXTRA_COUNT] = {
        [EXTRA_BUILD_ID] = ATTRIBUTE_BUILD_ID_GNU,
        [EXTRA_FRAME_TYPE] = ATTRIBUTE_FRAME_TYPE,
        [EXTRA_ADDRESS_KIND] = ATTRIBUTE_ADDRESS_KIND,
        [EXTRA_OBJECT] = "object",
        [EXTRA_FILE_OFFSET] = "file_offset",
        [EXTRA_NONE] = "none",
        [EXTRA_PROFILE_TYPE] = ATTRIBUTE_PROFILE_TYPE,
        [EXTRA_TRUNCATED] = ATTRIBUTE_STACK_TRUNCATED,
        [EXTRA_TRUE] = "true",
};

/* The entry's number in a table of the output, where 0 is the empty entry. */
static uint32_t number_otlp_entry(struct otlp_encoder *e, struct number_map *m, struct number_key key)
{
        uint32_t number = 0;

        if (e->failed)
                return 0;
        e->failed = number_map_get(m, &key, &number, NULL, e->err);
        return e->failed ? 0 : number + 1;
}

static uint32_t number_otlp_attribute(struct otlp_encoder *e, uint32_t key, uint32_t value)
{
        return number_otlp_entry(e, &e->attributes, (struct number_key){ { key, value } });
}

static uint32_t number_otlp_string(struct otlp_encoder *e, const char *text, size_t n)
{
        uint32_t number = 0;

        if (!e->failed)
                e->failed = string_list_get(&e->more, text, n, &number, e->err);
        return number;
}

/* Number the extra strings. Called before other strings are numbered. */
static void number_extra_strings(struct otlp_encoder *e)
{
        for (unsigned i = 0; i < EXTRA_COUNT; i++)
                e->extras[i] = number_otlp_string(e, extra_texts[i], strlen(extra_texts[i]));
}

static uint32_t number_frame_type(struct otlp_encoder *e, enum profile_frame_type type)
{
        const char *name = frame_type_name(type);

        if (!e->frame_types[type])
                e->frame_types[type] = number_otlp_attribute(e, get_extra_string(e, EXTRA_FRAME_TYPE),
                                                             number_otlp_string(e, name, strlen(name)));
        return e->frame_types[type];
}

static void put_empty_entry(struct buf *b, uint32_t table)
{
        wire_put_bytes(b, table, NULL, 0);
}

static void put_otlp_mappings(struct otlp_encoder *e)
{
        char hex[BUILD_ID_HEX_MAX];

        put_empty_entry(e->out, DICTIONARY_MAPPINGS);
        for (uint32_t i = 0; i < e->p->mappings.count; i++) {
                const struct profile_mapping *m = &e->p->mappings.items[i];
                size_t mark = wire_begin(e->out, DICTIONARY_MAPPINGS);

                wire_put_uint(e->out, MAPPING_FILENAME, m->file);
                if (m->build_id.size) {
                        const char *text = build_id_hex(&m->build_id, hex);
                        uint32_t value = number_otlp_string(e, text, strlen(text));

                        wire_put_varint(e->out, MAPPING_ATTRIBUTES,
                                        number_otlp_attribute(e, get_extra_string(e, EXTRA_BUILD_ID), value));
                }
                wire_end(e->out, mark);
        }
}

static void put_otlp_locations(struct otlp_encoder *e)
{
        const struct profile *p = e->p;

        put_empty_entry(e->out, DICTIONARY_LOCATIONS);
        for (uint32_t i = 0; i < p->locations.count; i++) {
                const struct profile_location *l = &p->locations.items[i];
                size_t mark = wire_begin(e->out, DICTIONARY_LOCATIONS);

                if (l->mapping != PROFILE_NONE)
                        wire_put_uint(e->out, LOCATION_MAPPING, l->mapping + 1);
                wire_put_uint(e->out, LOCATION_ADDRESS, l->address);
                for (uint32_t j = 0; j < l->line_count; j++) {
                        const struct profile_line *line = &p->lines.items[l->first_line + j];
                        size_t line_mark = wire_begin(e->out, LOCATION_LINES);

                        if (line->function || line->linkage_name || line->file)
                                wire_put_uint(
                                        e->out, LINE_FUNCTION,
                                        number_otlp_entry(e, &e->functions,
                                                          (struct number_key){
                                                                  { line->function, line->linkage_name, line->file,
                                                                    (uint32_t)line->start_line,
                                                                    (uint32_t)((uint64_t)line->start_line >> 32) } }));
                        wire_put_uint(e->out, LINE_LINE, (uint64_t)line->line);
                        wire_end(e->out, line_mark);
                }
                if (l->frame_type != PROFILE_FRAME_UNKNOWN)
                        wire_put_varint(e->out, LOCATION_ATTRIBUTES, number_frame_type(e, l->frame_type));
                wire_put_varint(
                        e->out, LOCATION_ATTRIBUTES,
                        number_otlp_attribute(e, get_extra_string(e, EXTRA_ADDRESS_KIND),
                                              get_extra_string(e, l->kind == ADDRESS_FILE_OFFSET ? EXTRA_FILE_OFFSET
                                                                  : l->kind == ADDRESS_NONE      ? EXTRA_NONE
                                                                                                 : EXTRA_OBJECT)));
                wire_end(e->out, mark);
        }
}

static void put_otlp_functions(struct otlp_encoder *e)
{
        put_empty_entry(e->out, DICTIONARY_FUNCTIONS);
        for (uint32_t i = 0; i < e->functions.count; i++) {
                const uint32_t *parts = e->functions.keys[i].parts;
                size_t mark = wire_begin(e->out, DICTIONARY_FUNCTIONS);

                wire_put_uint(e->out, FUNCTION_NAME, parts[0]);
                wire_put_uint(e->out, FUNCTION_SYSTEM_NAME, parts[1]);
                wire_put_uint(e->out, FUNCTION_FILENAME, parts[2]);
                wire_put_uint(e->out, FUNCTION_START_LINE, parts[3] | (uint64_t)parts[4] << 32);
                wire_end(e->out, mark);
        }
}

static void put_otlp_links(struct otlp_encoder *e)
{
        put_empty_entry(e->out, DICTIONARY_LINKS);
        for (uint32_t i = 0; i < e->links.count; i++) {
                const uint32_t *parts = e->links.keys[i].parts; /* as number_otlp_link() packs them */
                size_t mark = wire_begin(e->out, DICTIONARY_LINKS);

                wire_put_bytes(e->out, LINK_TRACE_ID, parts, 16);
                wire_put_bytes(e->out, LINK_SPAN_ID, parts + 4, 8);
                wire_end(e->out, mark);
        }
}

static void put_otlp_stacks(struct otlp_encoder *e)
{
        put_empty_entry(e->out, DICTIONARY_STACKS);
        for (uint32_t i = 0; i < e->p->stacks.count; i++) {
                const struct profile_stack *s = &e->p->stacks.items[i];
                size_t mark = wire_begin(e->out, DICTIONARY_STACKS);

                if (s->location_count) {
                        size_t packed = wire_begin(e->out, STACK_LOCATIONS);

                        for (uint32_t j = 0; j < s->location_count; j++)
                                buf_append_uleb128(e->out,
                                                   e->p->stack_locations.items[s->first_location + j] + UINT64_C(1));
                        wire_end(e->out, packed);
                }
                wire_end(e->out, mark);
        }
}

static void put_strings_and_attributes(struct otlp_encoder *e)
{
        for (uint32_t i = 0; i < e->p->strings.count; i++)
                wire_put_bytes(e->out, DICTIONARY_STRINGS, e->p->strings.items[i].text, e->p->strings.items[i].size);
        buf_append(e->out, e->more.fields.data, e->more.fields.size);
        put_empty_entry(e->out, DICTIONARY_ATTRIBUTES);
        for (uint32_t i = 0; i < e->attributes.count; i++) {
                const uint32_t *parts = e->attributes.keys[i].parts;
                size_t mark = wire_begin(e->out, DICTIONARY_ATTRIBUTES), value;

                wire_put_uint(e->out, ATTRIBUTE_KEY, parts[0]);
                value = wire_begin(e->out, ATTRIBUTE_VALUE);
                wire_put_varint(e->out, ANY_STRINDEX, parts[1]);
                wire_end(e->out, value);
                wire_end(e->out, mark);
        }
}

/* Called last: functions, links, attributes and strings are those numbered by then. */
static void put_otlp_dictionary(struct otlp_encoder *e)
{
        size_t dictionary = wire_begin(e->out, REQUEST_DICTIONARY);

        put_otlp_mappings(e);
        put_otlp_locations(e);
        put_otlp_functions(e);
        put_otlp_links(e);
        put_otlp_stacks(e);
        put_strings_and_attributes(e);
        wire_end(e->out, dictionary);
}

/* ---- samples ------------------------------------------------------------------------ */

struct ordered_sample {
        const struct profile_sample *s;
};

/* Sort order: samples of one Profile message are adjacent, within them those of one Sample message, by time. */
static int compare_sample_identity(const struct profile_sample *a, const struct profile_sample *b)
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

static int compare_otlp_samples(const void *x, const void *y)
{
        const struct profile_sample *a = ((const struct ordered_sample *)x)->s,
                                    *b = ((const struct ordered_sample *)y)->s;
        int c;

        if (a->type != b->type)
                return a->type < b->type ? -1 : 1;
        if (a->duration_ns != b->duration_ns)
                return a->duration_ns < b->duration_ns ? -1 : 1;
        c = compare_sample_identity(a, b);
        if (c)
                return c;
        if (a->time_unix_ns != b->time_unix_ns)
                return a->time_unix_ns < b->time_unix_ns ? -1 : 1;
        return a < b ? -1 : a > b;
}

static bool is_common_label(const struct otlp_encoder *e, const struct profile_label *l)
{
        for (uint32_t i = 0; i < e->common_count; i++)
                if (e->common[i].key == l->key && e->common[i].value == l->value)
                        return true;
        return false;
}

/* Number of the link with the sample's trace and span, 0 without one. */
static uint32_t number_otlp_link(struct otlp_encoder *e, const struct profile_sample *s)
{
        static const struct number_key none;
        struct number_key key;

        memcpy(key.parts, s->trace_id, 16);
        memcpy(key.parts + 4, s->span_id, 8);
        return memcmp(&key, &none, sizeof key) == 0 ? 0 : number_otlp_entry(e, &e->links, key);
}

static void put_otlp_sample(struct otlp_encoder *e, const struct ordered_sample *items, size_t count, bool timestamps)
{
        const struct profile_sample *s = items[0].s;
        size_t mark = wire_begin(e->out, PROFILE_SAMPLES), packed;

        wire_put_uint(e->out, SAMPLE_STACK, s->stack + 1);
        packed = wire_begin(e->out, SAMPLE_ATTRIBUTES);
        for (uint32_t i = 0; i < s->label_count; i++) {
                const struct profile_label *l = &e->p->labels.items[s->first_label + i];

                if (!is_common_label(e, l))
                        buf_append_uleb128(e->out, number_otlp_attribute(e, l->key, l->value));
        }
        if (e->p->stacks.items[s->stack].truncated)
                buf_append_uleb128(e->out, number_otlp_attribute(e, get_extra_string(e, EXTRA_TRUNCATED),
                                                                 get_extra_string(e, EXTRA_TRUE)));
        wire_end(e->out, packed);
        wire_put_uint(e->out, SAMPLE_LINK, number_otlp_link(e, s));
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

static void put_otlp_value_type(struct otlp_encoder *e, uint32_t field, const char *id, enum profile_type_part type,
                                enum profile_type_part unit)
{
        size_t type_size, unit_size, mark = wire_begin(e->out, field);
        const char *type_text = profile_type_part(id, type, &type_size);
        const char *unit_text = profile_type_part(id, unit, &unit_size);

        wire_put_uint(e->out, VALUE_TYPE_TYPE, number_otlp_string(e, type_text, type_size));
        wire_put_uint(e->out, VALUE_TYPE_UNIT, number_otlp_string(e, unit_text, unit_size));
        wire_end(e->out, mark);
}

/* One Profile message: samples of one type and duration. */
static void put_otlp_profile(struct otlp_encoder *e, const struct ordered_sample *items, size_t count)
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
        put_otlp_value_type(e, PROFILE_SAMPLE_TYPE, id, TYPE_SAMPLE_TYPE, TYPE_SAMPLE_UNIT);
        wire_put_fixed64(e->out, PROFILE_TIME, (uint64_t)first);
        wire_put_uint(e->out, PROFILE_DURATION, (uint64_t)items[0].s->duration_ns);
        put_otlp_value_type(e, PROFILE_PERIOD_TYPE, id, TYPE_PERIOD_TYPE, TYPE_PERIOD_UNIT);
        wire_put_uint(e->out, PROFILE_PERIOD, (uint64_t)type->period);
        packed = wire_begin(e->out, PROFILE_ATTRIBUTES);
        buf_append_uleb128(e->out, number_otlp_attribute(e, get_extra_string(e, EXTRA_PROFILE_TYPE), type->id));
        wire_end(e->out, packed);
        for (size_t i = 0; i < count;) {
                size_t n = 1;

                /* A Sample message without timestamps holds one value. */
                while (first != last && i + n < count && compare_sample_identity(items[i].s, items[i + n].s) == 0)
                        n++;
                put_otlp_sample(e, items + i, n, first != last);
                i += n;
        }
        wire_end(e->out, mark);
}

/* Find the labels that all samples share. common has room for those of the first sample. */
static uint32_t find_common_labels(const struct profile *p, struct profile_label *common)
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

static void put_otlp_resource(struct otlp_encoder *e)
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

static void put_otlp_profiles(struct otlp_encoder *e, struct ordered_sample *items, size_t count)
{
        size_t resource = wire_begin(e->out, REQUEST_RESOURCE_PROFILES), scope_profiles, scope;

        put_otlp_resource(e);
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
                put_otlp_profile(e, items + i, n);
                i += n;
        }
        wire_end(e->out, scope_profiles);
        wire_end(e->out, resource);
}

static enum status encode_otlp(struct otlp_encoder *e, struct ordered_sample *items, struct profile_label *common)
{
        const struct profile *p = e->p;

        number_extra_strings(e);
        for (uint32_t i = 0; i < p->samples.count; i++)
                items[i].s = &p->samples.items[i];
        qsort(items, p->samples.count, sizeof *items, compare_otlp_samples);
        e->common = common;
        e->common_count = find_common_labels(p, common);
        put_otlp_profiles(e, items, p->samples.count);
        put_otlp_dictionary(e);
        if (e->failed)
                return e->failed;
        return buf_status(e->out, e->err, "OTLP request");
}

enum status otlp_encode(const struct profile *p, struct buf *ret, struct error *err)
{
        struct otlp_encoder e = { .p = p, .out = ret, .err = err };
        _cleanup_free_ struct ordered_sample *items = NULL;
        _cleanup_free_ struct profile_label *common = NULL;
        enum status st;

        if (p->samples.count == 0)
                return ST_OK; /* the empty request */
        items = calloc(p->samples.count, sizeof *items);
        common = calloc(p->samples.items[0].label_count + 1u, sizeof *common);
        if (!items || !common)
                return error_no_memory(err);
        string_list_init(&e.more, p, DICTIONARY_STRINGS);
        st = encode_otlp(&e, items, common);
        string_list_deinit(&e.more);
        number_map_deinit(&e.attributes);
        number_map_deinit(&e.functions);
        number_map_deinit(&e.links);
        return st;
}
