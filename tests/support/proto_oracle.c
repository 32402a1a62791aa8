/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/proto_oracle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/compress/compress.h"
#include "common/limits.h"
#include "profile-formats/frame_type.h"
#include "profile-formats/hidden_label.h"
#include "profile-formats/number_map.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/otlp/otlp_fields.h"
#include "profile-formats/otlp/otlp_service.h"
#include "profile-formats/pprof/frame_expressions.h"
#include "profile-formats/pprof/pprof.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/proto/otlp_profiles.pb-c.h"
#include "profile-formats/proto/pprof.pb-c.h"
#include "profile-formats/proto_message.h"
#include "profile-formats/return_address.h"
#include "profile-formats/sample_labels.h"
#include "profile-formats/wire.h"
#include "tests/support/profile_text.h"

static enum status fail_bad(struct error *err, const char *what)
{
        return error_set(err, ST_BAD_DATA, "oracle: %s", what);
}

static enum status add_oracle_string(struct profile *p, const ProtobufCBinaryData *s, size_t max, uint32_t *ret,
                                     struct error *err)
{
        return profile_add_string(p, (const char *)s->data, utf8_truncate(s->data, s->len, max), ret, err);
}

/* ---- OTLP ------------------------------------------------------------------------------------ */

struct otlp_oracle {
        struct profile *p;
        const Otlp__ProfilesDictionary *d;
        uint32_t *strings, *mappings, *locations, *stacks;
        struct {
                uint32_t key, value;
                bool usable;
        } * attributes;
        struct error *err;
        uint32_t unknown_location;
};

static bool is_index(int32_t i, size_t count)
{
        return i == 0 || (i > 0 && (size_t)i < count);
}

static enum status get_oracle_string(struct otlp_oracle *o, int32_t i, uint32_t *ret)
{
        if (!is_index(i, o->d->n_string_table))
                return fail_bad(o->err, "string index");
        *ret = i ? o->strings[i] : 0;
        return ST_OK;
}

static enum status read_oracle_value(struct otlp_oracle *o, const Otlp__AnyValue *v, uint32_t *ret, bool *usable)
{
        static const ProtobufCBinaryData empty;
        const ProtobufCBinaryData *text = NULL;
        ProtobufCBinaryData made;
        char number[40];

        *usable = false;
        if (!v)
                return ST_OK;
        switch (v->value_case) {
        case OTLP__ANY_VALUE__VALUE_STRING_VALUE:
                text = &v->string_value;
                break;
        case OTLP__ANY_VALUE__VALUE_BOOL_VALUE:
                made = v->bool_value ? proto_bytes("true", 4) : proto_bytes("false", 5);
                text = &made;
                break;
        case OTLP__ANY_VALUE__VALUE_INT_VALUE:
                made = proto_bytes(number, (size_t)snprintf(number, sizeof number, "%" PRId64, v->int_value));
                text = &made;
                break;
        case OTLP__ANY_VALUE__VALUE_DOUBLE_VALUE:
                for (int precision = 15; precision <= 17; precision++) {
                        made = proto_bytes(number,
                                           (size_t)snprintf(number, sizeof number, "%.*g", precision, v->double_value));
                        if (strtod(number, NULL) == v->double_value)
                                break;
                }
                text = &made;
                break;
        case OTLP__ANY_VALUE__VALUE_STRING_VALUE_STRINDEX:
                if (!is_index(v->string_value_strindex, o->d->n_string_table))
                        return fail_bad(o->err, "string index of a value");
                text = v->string_value_strindex ? &o->d->string_table[v->string_value_strindex] : &empty;
                break;
        default:
                return ST_OK;
        }
        *usable = true;
        return add_oracle_string(o->p, text, LIMIT_LABEL_BYTES, ret, o->err);
}

static enum status add_oracle_key_values(struct otlp_oracle *o, Otlp__KeyValue *const *items, size_t count,
                                         struct sample_labels *labels)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < count; i++) {
                uint32_t key = 0, value = 0;
                bool usable = false;

                st = get_oracle_string(o, items[i]->key_strindex, &key);
                if (!st && items[i]->key.len)
                        st = add_oracle_string(o->p, &items[i]->key, LIMIT_LABEL_BYTES, &key, o->err);
                if (!st)
                        st = read_oracle_value(o, items[i]->value, &value, &usable);
                if (!st && usable && key)
                        st = sample_labels_set(labels, key, value, o->err);
        }
        return st;
}

static enum status read_oracle_strings_and_attributes(struct otlp_oracle *o)
{
        enum status st = ST_OK;

        for (size_t i = 1; !st && i < o->d->n_string_table; i++)
                st = add_oracle_string(o->p, &o->d->string_table[i], LIMIT_NAME_BYTES, &o->strings[i], o->err);
        for (size_t i = 1; !st && i < o->d->n_attribute_table; i++) {
                st = get_oracle_string(o, o->d->attribute_table[i]->key_strindex, &o->attributes[i].key);
                if (!st)
                        st = read_oracle_value(o, o->d->attribute_table[i]->value, &o->attributes[i].value,
                                               &o->attributes[i].usable);
        }
        return st;
}

static enum status read_oracle_mapping(struct otlp_oracle *o, size_t number)
{
        static const char *const keys[] = { ATTRIBUTE_BUILD_ID_GNU, ATTRIBUTE_BUILD_ID_GO, ATTRIBUTE_BUILD_ID_HTLHASH,
                                            ATTRIBUTE_BUILD_ID_PROFILING };
        const Otlp__Mapping *from = o->d->mapping_table[number];
        struct profile_mapping m = { 0 };
        enum status st = get_oracle_string(o, from->filename_strindex, &m.file);

        for (size_t i = 0; !st && i < from->n_attribute_indices; i++)
                if (!is_index(from->attribute_indices[i], o->d->n_attribute_table))
                        st = fail_bad(o->err, "attribute index of a mapping");
        for (size_t k = 4; !st && k-- > 0;) { /* the first of equally ranked keys wins */
                struct build_id found = { 0 };

                for (size_t i = from->n_attribute_indices; i-- > 0;) {
                        int32_t a = from->attribute_indices[i];
                        const char *text;
                        struct build_id id;

                        if (!a || !o->attributes[a].usable ||
                            strcmp(profile_text(o->p, o->attributes[a].key), keys[k]) != 0)
                                continue;
                        text = profile_text(o->p, o->attributes[a].value);
                        if (k == 1 ? build_id_from_go(&id, text, strlen(text))
                                   : build_id_from_hex(&id, text, strlen(text)))
                                found = id;
                }
                if (found.size)
                        m.build_id = found;
        }
        return st ? st : profile_add_mapping(o->p, &m, &o->mappings[number], o->err);
}

static enum status read_oracle_line(struct otlp_oracle *o, const Otlp__Line *from, struct profile_line *ret)
{
        const Otlp__Function *fn;
        enum status st;

        *ret = (struct profile_line){ .line = from->line > 0 ? from->line : 0 };
        if (!is_index(from->function_index, o->d->n_function_table))
                return fail_bad(o->err, "function index");
        if (!from->function_index)
                return ST_OK;
        fn = o->d->function_table[from->function_index];
        ret->start_line = fn->start_line > 0 ? fn->start_line : 0;
        st = get_oracle_string(o, fn->name_strindex, &ret->function);
        if (!st)
                st = get_oracle_string(o, fn->system_name_strindex, &ret->linkage_name);
        if (!st)
                st = get_oracle_string(o, fn->filename_strindex, &ret->file);
        if (!ret->function)
                ret->function = ret->linkage_name;
        if (ret->function == ret->linkage_name)
                ret->linkage_name = 0;
        return st;
}

static enum status read_oracle_location(struct otlp_oracle *o, size_t number)
{
        const Otlp__Location *from = o->d->location_table[number];
        struct address_mapping range = { .file = "" };
        struct profile_location l = { .mapping = PROFILE_NONE,
                                      .first_line = o->p->lines.count,
                                      .line_count = (uint32_t)from->n_lines,
                                      .address = from->address };
        const char *kind = "";
        bool is_kernel = false;
        uint32_t unused;
        enum status st = ST_OK;

        if (!is_index(from->mapping_index, o->d->n_mapping_table))
                return fail_bad(o->err, "mapping index");
        if (from->mapping_index) {
                const Otlp__Mapping *m = o->d->mapping_table[from->mapping_index];

                l.mapping = o->mappings[from->mapping_index];
                range = (struct address_mapping){ m->memory_start, m->memory_limit, m->file_offset,
                                                  profile_text(o->p, o->p->mappings.items[l.mapping].file) };
        }
        if (from->n_lines > LIMIT_LINES_PER_LOCATION)
                return error_set(o->err, ST_TOO_BIG, "lines");
        for (size_t i = 0; !st && i < from->n_lines; i++) {
                struct profile_line line;

                st = read_oracle_line(o, from->lines[i], &line);
                if (!st)
                        st = profile_add_line(o->p, &line, &unused, o->err);
        }
        for (size_t i = 0; !st && i < from->n_attribute_indices; i++) {
                int32_t a = from->attribute_indices[i];

                if (!is_index(a, o->d->n_attribute_table))
                        return fail_bad(o->err, "attribute index of a location");
                if (!a || !o->attributes[a].usable)
                        continue;
                if (strcmp(profile_text(o->p, o->attributes[a].key), ATTRIBUTE_ADDRESS_KIND) == 0)
                        kind = profile_text(o->p, o->attributes[a].value);
                if (strcmp(profile_text(o->p, o->attributes[a].key), ATTRIBUTE_FRAME_TYPE) == 0)
                        l.frame_type = parse_frame_type(profile_text(o->p, o->attributes[a].value));
        }
        if (st)
                return st;
        if (strcmp(kind, "file_offset") == 0)
                l.kind = ADDRESS_FILE_OFFSET;
        else if (strcmp(kind, "none") == 0 ||
                 (strcmp(kind, "object") != 0 && l.address == 0 && (l.line_count || l.mapping == PROFILE_NONE)))
                l.kind = ADDRESS_NONE;
        else if (strcmp(kind, "object") != 0)
                l.kind = normalize_sender_address(ADDRESS_SOURCE_OTLP, &range, l.address, &l.address, &is_kernel);
        if (!*kind && is_kernel)
                l.frame_type = PROFILE_FRAME_KERNEL;
        return profile_add_location(o->p, &l, &o->locations[number], o->err);
}

static enum status read_oracle_stack(struct otlp_oracle *o, size_t number)
{
        static const struct profile_location unknown = { .mapping = PROFILE_NONE, .kind = ADDRESS_NONE };
        const Otlp__Stack *from = o->d->stack_table[number];
        uint32_t frames[LIMIT_STACK_FRAMES + 1], count = 0;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < from->n_location_indices; i++) {
                int32_t l = from->location_indices[i];

                if (!is_index(l, o->d->n_location_table))
                        return fail_bad(o->err, "location index");
                if (!l && o->unknown_location == PROFILE_NONE)
                        st = profile_add_location(o->p, &unknown, &o->unknown_location, o->err);
                if (count <= LIMIT_STACK_FRAMES)
                        frames[count++] = l ? o->locations[l] : o->unknown_location;
        }
        return st ? st : profile_add_stack(o->p, frames, count, &o->stacks[number], o->err);
}

static bool check_oracle_link(const Otlp__Link *l)
{
        return (l->trace_id.len == 16 || !l->trace_id.len) && (l->span_id.len == 8 || !l->span_id.len);
}

static enum status read_oracle_dictionary(struct otlp_oracle *o)
{
        const struct profile_line none = { 0 };
        struct profile_line line = none;
        enum status st = read_oracle_strings_and_attributes(o);

        for (size_t i = 1; !st && i < o->d->n_mapping_table; i++)
                st = read_oracle_mapping(o, i);
        for (size_t i = 1; !st && i < o->d->n_function_table; i++)
                st = read_oracle_line(o, &(Otlp__Line){ .function_index = (int32_t)i }, &line);
        for (size_t i = 1; !st && i < o->d->n_location_table; i++)
                st = read_oracle_location(o, i);
        for (size_t i = 1; !st && i < o->d->n_link_table; i++)
                if (!check_oracle_link(o->d->link_table[i]))
                        st = fail_bad(o->err, "link");
        if (!st)
                st = profile_add_stack(o->p, NULL, 0, &o->stacks[0], o->err);
        for (size_t i = 1; !st && i < o->d->n_stack_table; i++)
                st = read_oracle_stack(o, i);
        return st;
}

static enum status add_oracle_events(struct otlp_oracle *o, const Otlp__Sample *from, struct profile_sample *s,
                                     int64_t time_ns, int64_t factor)
{
        size_t values = from->n_values, times = from->n_timestamps_unix_nano;
        int64_t sum = 0;
        uint32_t unused;
        enum status st = ST_OK;

        if ((!values && !times) || (values && times && values != times)) {
                profile_reject_sample(o->p, "oracle");
                return ST_OK;
        }
        for (size_t i = 0; !times && i < values; i++)
                if (__builtin_add_overflow(sum, from->values[i], &sum)) {
                        profile_reject_sample(o->p, "oracle");
                        return ST_OK;
                }
        if (!times) {
                if (__builtin_mul_overflow(sum, factor, &s->value)) {
                        profile_reject_sample(o->p, "oracle");
                        return ST_OK;
                }
                s->time_unix_ns = time_ns;
                return profile_add_sample(o->p, s, &unused, o->err);
        }
        for (size_t i = 0; !st && i < times; i++) {
                uint64_t t = from->timestamps_unix_nano[i];

                if (__builtin_mul_overflow(values ? from->values[i] : 1, factor, &s->value)) {
                        profile_reject_sample(o->p, "oracle");
                        continue;
                }
                s->time_unix_ns = t > INT64_MAX ? INT64_MAX : (int64_t)t;
                st = profile_add_sample(o->p, s, &unused, o->err);
        }
        return st;
}

static enum status add_oracle_indices(struct otlp_oracle *o, const int32_t *indices, size_t count, bool *truncated,
                                      struct sample_labels *labels)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < count; i++) {
                int32_t a = indices[i];

                if (!is_index(a, o->d->n_attribute_table))
                        return fail_bad(o->err, "attribute index");
                if (!a)
                        continue;
                if (truncated && strcmp(profile_text(o->p, o->attributes[a].key), ATTRIBUTE_STACK_TRUNCATED) == 0)
                        *truncated = true;
                else if (o->attributes[a].usable && o->attributes[a].key)
                        st = sample_labels_set(labels, o->attributes[a].key, o->attributes[a].value, o->err);
        }
        return st;
}

/* @param factor  of the values, 0: 1 and a profile of Cairn, which names its services itself. */
static enum status read_oracle_sample(struct otlp_oracle *o, const Otlp__Sample *from,
                                      const struct sample_labels *outer, struct profile_sample s, int64_t time_ns,
                                      int64_t factor)
{
        struct sample_labels labels = *outer;
        bool truncated = false;
        enum status st;

        if (!is_index(from->stack_index, o->d->n_stack_table))
                return fail_bad(o->err, "stack index");
        s.stack = o->stacks[from->stack_index];
        if (!is_index(from->link_index, o->d->n_link_table))
                return fail_bad(o->err, "link index");
        if (from->link_index) {
                const Otlp__Link *l = o->d->link_table[from->link_index];

                if (l->trace_id.len)
                        memcpy(s.trace_id, l->trace_id.data, sizeof s.trace_id);
                if (l->span_id.len)
                        memcpy(s.span_id, l->span_id.data, sizeof s.span_id);
        }
        st = add_oracle_indices(o, from->attribute_indices, from->n_attribute_indices, &truncated, &labels);
        if (!st && factor && labels.count < LIMIT_LABELS_PER_SAMPLE && !has_service_name(o->p, &labels))
                st = set_unknown_service(o->p, find_main_file(o->p, s.stack), &labels, o->err);
        if (!st)
                st = profile_add_label_set(o->p, labels.items, labels.count, &s.first_label, o->err);
        s.label_count = labels.count;
        if (!st && truncated)
                o->p->stacks.items[s.stack].truncated = true;
        return st ? st : add_oracle_events(o, from, &s, time_ns, factor ? factor : 1);
}

static enum status read_oracle_type(struct otlp_oracle *o, const Otlp__ValueType *from, uint32_t *type, uint32_t *unit)
{
        enum status st;

        *type = *unit = 0;
        if (!from)
                return ST_OK;
        st = get_oracle_string(o, from->type_strindex, type);
        return st ? st : get_oracle_string(o, from->unit_strindex, unit);
}

static enum status read_oracle_profile(struct otlp_oracle *o, const Otlp__Profile *from,
                                       const struct sample_labels *outer)
{
        struct profile_sample s = { .duration_ns = from->duration_nano > INT64_MAX ? INT64_MAX
                                                                                   : (int64_t)from->duration_nano };
        int64_t time_ns = from->time_unix_nano > INT64_MAX ? INT64_MAX : (int64_t)from->time_unix_nano;
        struct sample_labels labels = *outer;
        uint32_t type = 0, unit = 0, period_type = 0, period_unit = 0, named = 0;
        const char *type_text, *unit_text;
        int64_t factor = 1;
        struct profile *p = o->p;
        enum status st = read_oracle_type(o, from->sample_type, &type, &unit);

        if (!st)
                st = read_oracle_type(o, from->period_type, &period_type, &period_unit);
        if (!st)
                st = add_oracle_indices(o, from->attribute_indices, from->n_attribute_indices, NULL, &labels);
        if (st || !from->n_samples)
                return st;
        if (!o->d->n_stack_table)
                return fail_bad(o->err, "samples without a stack table");
        for (uint32_t i = 0; i < labels.count && !named; i++)
                if (strcmp(profile_text(p, labels.items[i].key), ATTRIBUTE_PROFILE_TYPE) == 0) {
                        named = labels.items[i].value;
                        labels.items[i] = labels.items[--labels.count];
                        break;
                }
        type_text = profile_text(p, type);
        unit_text = profile_text(p, unit);
        if (named)
                factor = 0;
        else if (strcmp(type_text, "samples") == 0 && strcmp(unit_text, "count") == 0 && from->period > 0 &&
                 strcmp(profile_text(p, period_type), "cpu") == 0 &&
                 strcmp(profile_text(p, period_unit), "nanoseconds") == 0) {
                factor = from->period;
                type_text = "cpu";
                unit_text = "nanoseconds";
        }
        if (named)
                st = profile_add_type(p, &(struct profile_type){ named, unit, from->period }, &s.type, o->err);
        else
                st = profile_type_add(p,
                                      &(struct profile_type_parts){ .sample_type = type_text,
                                                                    .sample_unit = unit_text,
                                                                    .period_type = profile_text(p, period_type),
                                                                    .period_unit = profile_text(p, period_unit),
                                                                    .period = from->period },
                                      &s.type, o->err);
        for (size_t i = 0; !st && i < from->n_samples; i++)
                st = read_oracle_sample(o, from->samples[i], &labels, s, time_ns, factor);
        return st;
}

static enum status read_oracle_request(struct otlp_oracle *o, const Otlp__ExportProfilesServiceRequest *request)
{
        enum status st = read_oracle_dictionary(o);

        for (size_t r = 0; !st && r < request->n_resource_profiles; r++) {
                const Otlp__ResourceProfiles *resource = request->resource_profiles[r];
                struct sample_labels outer = { .count = 0 };

                if (resource->resource)
                        st = add_oracle_key_values(o, resource->resource->attributes, resource->resource->n_attributes,
                                                   &outer);
                for (size_t i = 0; !st && i < resource->n_scope_profiles; i++) {
                        const Otlp__ScopeProfiles *scope = resource->scope_profiles[i];
                        struct sample_labels labels = outer;

                        if (scope->scope)
                                st = add_oracle_key_values(o, scope->scope->attributes, scope->scope->n_attributes,
                                                           &labels);
                        for (size_t k = 0; !st && k < scope->n_profiles; k++)
                                st = read_oracle_profile(o, scope->profiles[k], &labels);
                }
        }
        return st;
}

static enum status convert_otlp(const Otlp__ExportProfilesServiceRequest *request, struct arena *memory,
                                struct profile *ret, struct error *err)
{
        static const Otlp__ProfilesDictionary nothing = OTLP__PROFILES_DICTIONARY__INIT;
        const Otlp__ProfilesDictionary *d = request->dictionary ? request->dictionary : &nothing;
        struct profile p;
        struct otlp_oracle o = {
                .p = &p,
                .d = d,
                .strings = arena_alloc_array(memory, d->n_string_table + 1, sizeof *o.strings),
                .mappings = arena_alloc_array(memory, d->n_mapping_table + 1, sizeof *o.mappings),
                .locations = arena_alloc_array(memory, d->n_location_table + 1, sizeof *o.locations),
                .stacks = arena_alloc_array(memory, d->n_stack_table + 1, sizeof *o.stacks),
                .attributes = arena_alloc_array(memory, d->n_attribute_table + 1, sizeof *o.attributes),
                .err = err,
                .unknown_location = PROFILE_NONE,
        };
        enum status st;

        if (!o.strings || !o.mappings || !o.locations || !o.stacks || !o.attributes)
                return error_set(err, ST_TOO_BIG, "oracle");
        if (d->n_string_table && d->string_table[0].len)
                return fail_bad(err, "string 0");
        st = profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, err);
        if (st)
                return st;
        st = read_oracle_request(&o, request);
        if (st)
                profile_deinit(&p);
        else
                *ret = p;
        return st;
}

enum status oracle_decode_otlp(const void *data, size_t n, struct arena *memory, struct profile *ret, struct error *err)
{
        const void *message;
        enum status st = proto_message_decode(&otlp__export_profiles_service_request__descriptor, data, n, memory,
                                              "oracle", &message, err);

        return st ? st : convert_otlp(message, memory, ret, err);
}

/* ---- pprof ----------------------------------------------------------------------------------- */

struct pprof_oracle {
        struct profile *p;
        const Pprof__Profile *file;
        uint32_t *strings, *mappings, *locations;
        bool *dropped;         /* by function: drop_frames names it */
        uint8_t *cut;          /* by location: 1: its outermost lines are kept, 2: no line is */
        uint32_t default_type; /* string */
        struct number_map mapping_ids, location_ids, function_ids;
        struct error *err;
};

static enum status get_pprof_oracle_string(struct pprof_oracle *o, int64_t i, uint32_t *ret)
{
        if (i && (uint64_t)i >= o->file->n_string_table)
                return fail_bad(o->err, "string index");
        *ret = i ? o->strings[i] : 0;
        return ST_OK;
}

static enum status add_oracle_id(struct pprof_oracle *o, struct number_map *ids, uint64_t id)
{
        uint32_t number;
        bool fresh;
        enum status st = number_map_get(ids, &(struct number_key){ { (uint32_t)id, (uint32_t)(id >> 32) } }, &number,
                                        &fresh, o->err);

        return st ? st : id && fresh ? ST_OK : fail_bad(o->err, "id 0 or twice");
}

static enum status find_oracle_id(struct pprof_oracle *o, const struct number_map *ids, uint64_t id, uint32_t *ret)
{
        return number_map_find(ids, &(struct number_key){ { (uint32_t)id, (uint32_t)(id >> 32) } }, ret)
                       ? ST_OK
                       : fail_bad(o->err, "unknown id");
}

static enum status read_pprof_oracle_mapping(struct pprof_oracle *o, size_t i)
{
        const Pprof__Mapping *from = o->file->mapping[i];
        struct profile_mapping m = { 0 };
        uint32_t id = 0;
        enum status st = add_oracle_id(o, &o->mapping_ids, from->id);

        if (!st)
                st = get_pprof_oracle_string(o, from->filename, &m.file);
        if (!st)
                st = get_pprof_oracle_string(o, from->build_id, &id);
        if (st)
                return st;
        if (o->p->strings.items[id].size &&
            !build_id_from_hex(&m.build_id, profile_text(o->p, id), o->p->strings.items[id].size) &&
            !build_id_from_go(&m.build_id, profile_text(o->p, id), o->p->strings.items[id].size))
                m.build_id.size = 0;
        if (from->memory_limit > from->memory_start) {
                m.file_offset = from->file_offset;
                m.size = from->memory_limit - from->memory_start;
        }
        return profile_add_mapping(o->p, &m, &o->mappings[i], o->err);
}

static enum status read_pprof_oracle_line(struct pprof_oracle *o, uint64_t function_id, int64_t number,
                                          struct profile_line *ret)
{
        const Pprof__Function *fn;
        uint32_t at;
        enum status st;

        *ret = (struct profile_line){ .line = number > 0 ? number : 0 };
        if (!function_id)
                return ST_OK;
        st = find_oracle_id(o, &o->function_ids, function_id, &at);
        if (st)
                return st;
        fn = o->file->function[at];
        ret->start_line = fn->start_line > 0 ? fn->start_line : 0;
        st = get_pprof_oracle_string(o, fn->name, &ret->function);
        if (!st)
                st = get_pprof_oracle_string(o, fn->system_name, &ret->linkage_name);
        if (!st)
                st = get_pprof_oracle_string(o, fn->filename, &ret->file);
        if (!ret->function)
                ret->function = ret->linkage_name;
        if (ret->function == ret->linkage_name)
                ret->linkage_name = 0;
        return st;
}

/* Only the decision on a name is the decoder's: what follows from it is done as pprof does it, from the root. */
static enum status find_oracle_dropped_functions(struct pprof_oracle *o, size_t input_bytes)
{
        struct frame_expressions *d = NULL;
        uint32_t drop = 0, keep = 0;
        enum status st = get_pprof_oracle_string(o, o->file->drop_frames, &drop);

        if (!st)
                st = get_pprof_oracle_string(o, o->file->keep_frames, &keep);
        if (st || !drop)
                return st;
        st = frame_expressions_create(profile_text(o->p, drop), profile_text(o->p, keep), input_bytes, &d, NULL);
        for (size_t i = 0; !st && i < o->file->n_function; i++) {
                const Pprof__Function *fn = o->file->function[i];
                uint32_t name = 0, system_name = 0;

                st = get_pprof_oracle_string(o, fn->name, &name);
                if (!st)
                        st = get_pprof_oracle_string(o, fn->system_name, &system_name);
                if (!st)
                        o->dropped[i] = frame_expressions_match(d, profile_text(o->p, name ? name : system_name),
                                                                !name || name == system_name);
        }
        if (st || frame_expressions_check(d, NULL))
                memset(o->dropped, 0, o->file->n_function * sizeof *o->dropped);
        frame_expressions_destroy(d);
        return ST_OK;
}

static void cut_oracle_location(struct pprof_oracle *o, size_t i, struct profile_location *l)
{
        const Pprof__Location *from = o->file->location[i];
        uint32_t dropped = (uint32_t)from->n_line, at;

        for (; dropped; dropped--) {
                uint64_t function = from->line[dropped - 1]->function_id;

                if (function && !find_oracle_id(o, &o->function_ids, function, &at) && o->dropped[at])
                        break;
        }
        if (!dropped)
                return;
        o->cut[i] = dropped == from->n_line ? 2 : 1;
        if (o->cut[i] == 1) {
                l->first_line += dropped;
                l->line_count -= dropped;
        }
}

static enum status read_pprof_oracle_location(struct pprof_oracle *o, size_t i)
{
        const Pprof__Location *from = o->file->location[i];
        struct address_mapping range = { .file = "" };
        struct profile_location l = { .mapping = PROFILE_NONE,
                                      .first_line = o->p->lines.count,
                                      .line_count = (uint32_t)from->n_line,
                                      .address = from->address };
        bool is_kernel = false;
        uint32_t at;
        enum status st = add_oracle_id(o, &o->location_ids, from->id);

        /* an unknown mapping is the same as none */
        if (!st && find_oracle_id(o, &o->mapping_ids, from->mapping_id, &at) == ST_OK) {
                l.mapping = o->mappings[at];
                range = (struct address_mapping){ o->file->mapping[at]->memory_start,
                                                  o->file->mapping[at]->memory_limit, o->file->mapping[at]->file_offset,
                                                  profile_text(o->p, o->p->mappings.items[l.mapping].file) };
        }
        if (!st && from->n_line > LIMIT_LINES_PER_LOCATION)
                return error_set(o->err, ST_TOO_BIG, "lines");
        for (size_t k = 0; !st && k < from->n_line; k++) {
                struct profile_line line;

                st = read_pprof_oracle_line(o, from->line[k]->function_id, from->line[k]->line, &line);
                if (!st)
                        st = profile_add_line(o->p, &line, &at, o->err);
        }
        if (st)
                return st;
        cut_oracle_location(o, i, &l);
        if (l.address == 0 && (l.line_count || l.mapping == PROFILE_NONE))
                l.kind = ADDRESS_NONE;
        else
                l.kind = normalize_sender_address(ADDRESS_SOURCE_PPROF, &range, l.address, &l.address, &is_kernel);
        l.frame_type = is_kernel ? PROFILE_FRAME_KERNEL : PROFILE_FRAME_UNKNOWN;
        return profile_add_location(o->p, &l, &o->locations[i], o->err);
}

/* A label without a text. */
static enum status add_pprof_oracle_number(struct pprof_oracle *o, uint32_t key, uint32_t unit, int64_t number,
                                           struct sample_labels *labels)
{
        char *name = NULL, *value = NULL;
        enum status st;

        if (asprintf(&name, NUMBER_LABEL_PREFIX "%s", profile_text(o->p, key)) < 0 ||
            asprintf(&value, "%" PRId64 "%s%s", number, unit ? " " : "", profile_text(o->p, unit)) < 0)
                abort();
        st = sample_labels_set_text(labels, o->p, name, value, strlen(value), o->err);
        free(name);
        free(value);
        return st;
}

static enum status read_pprof_oracle_labels(struct pprof_oracle *o, const Pprof__Sample *from,
                                            struct sample_labels *labels)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < from->n_label; i++) {
                const Pprof__Label *l = from->label[i];
                uint32_t key = 0, str = 0, unit = 0;

                st = get_pprof_oracle_string(o, l->key, &key);
                if (!st)
                        st = get_pprof_oracle_string(o, l->str, &str);
                if (!st && !str)
                        st = get_pprof_oracle_string(o, l->num_unit, &unit);
                if (st || !key || (!str && !l->num && !l->num_unit))
                        continue;
                if (!str)
                        st = add_pprof_oracle_number(o, key, unit, l->num, labels);
                else if (o->p->strings.items[str].size <= LIMIT_LABEL_BYTES)
                        st = sample_labels_set(labels, key, str, o->err);
                else
                        st = sample_labels_set_text(labels, o->p, profile_text(o->p, key), profile_text(o->p, str),
                                                    o->p->strings.items[str].size, o->err);
        }
        return st;
}

/* The first location of a sample that is kept, with known ids: the dropped one that is nearest to the root. */
static size_t find_oracle_leaf(struct pprof_oracle *o, const Pprof__Sample *from)
{
        bool above = false;
        uint32_t at = 0;

        for (size_t i = from->n_location_id; i-- > 0;) {
                if (find_oracle_id(o, &o->location_ids, from->location_id[i], &at) || !o->cut[at])
                        above = true;
                else if (above)
                        return o->cut[at] == 2 ? i + 1 : i;
        }
        return 0;
}

static enum status read_pprof_oracle_sample(struct pprof_oracle *o, const Pprof__Sample *from, const uint32_t *types)
{
        struct profile_sample s = { .time_unix_ns = o->file->time_nanos, .duration_ns = o->file->duration_nanos };
        uint32_t frames[LIMIT_STACK_FRAMES + 1], count = 0, at;
        struct sample_labels labels = { .count = 0 };
        size_t leaf;
        enum status st = ST_OK;

        leaf = find_oracle_leaf(o, from);
        for (size_t i = 0; !st && i < from->n_location_id; i++) {
                st = find_oracle_id(o, &o->location_ids, from->location_id[i], &at);
                if (!st && i >= leaf && count <= LIMIT_STACK_FRAMES)
                        frames[count++] = o->locations[at];
        }
        if (!st)
                st = read_pprof_oracle_labels(o, from, &labels);
        if (!st && o->default_type && labels.count < LIMIT_LABELS_PER_SAMPLE)
                st = sample_labels_set_text(&labels, o->p, DEFAULT_TYPE_LABEL, profile_text(o->p, o->default_type),
                                            o->p->strings.items[o->default_type].size, o->err);
        if (!st && from->n_value != o->file->n_sample_type)
                st = fail_bad(o->err, "values");
        if (!st)
                st = profile_add_stack(o->p, frames, count, &s.stack, o->err);
        if (!st)
                st = profile_add_label_set(o->p, labels.items, labels.count, &s.first_label, o->err);
        s.label_count = labels.count;
        for (size_t i = 0; !st && i < from->n_value; i++) {
                s.value = from->value[i];
                s.type = types[i];
                if (s.value)
                        st = profile_add_sample(o->p, &s, &at, o->err);
        }
        return st;
}

static enum status read_pprof_oracle_types(struct pprof_oracle *o, uint32_t *types)
{
        const Pprof__Profile *f = o->file;
        uint32_t type = 0, unit = 0, period_type = 0, period_unit = 0;
        enum status st = ST_OK;

        st = get_pprof_oracle_string(o, f->default_sample_type, &o->default_type);
        if (st)
                return st;
        if (f->n_sample_type > LIMIT_PROFILE_TYPES)
                return error_set(o->err, ST_TOO_BIG, "types");
        if (f->n_sample && !f->n_sample_type)
                return fail_bad(o->err, "no sample type");
        if (f->period_type)
                st = get_pprof_oracle_string(o, f->period_type->type, &period_type);
        if (!st && f->period_type)
                st = get_pprof_oracle_string(o, f->period_type->unit, &period_unit);
        for (size_t i = 0; !st && i < f->n_sample_type; i++) {
                st = get_pprof_oracle_string(o, f->sample_type[i]->type, &type);
                if (!st)
                        st = get_pprof_oracle_string(o, f->sample_type[i]->unit, &unit);
                if (!st)
                        st = profile_type_add(
                                o->p,
                                &(struct profile_type_parts){ .sample_type = profile_text(o->p, type),
                                                              .sample_unit = profile_text(o->p, unit),
                                                              .period_type = profile_text(o->p, period_type),
                                                              .period_unit = profile_text(o->p, period_unit),
                                                              .period = f->period },
                                &types[i], o->err);
        }
        return st;
}

static enum status read_pprof_oracle_file(struct pprof_oracle *o, size_t input_bytes)
{
        const Pprof__Profile *f = o->file;
        uint32_t types[LIMIT_PROFILE_TYPES];
        struct profile_line line;
        enum status st = ST_OK;

        for (size_t i = 1; !st && i < f->n_string_table; i++)
                st = add_oracle_string(o->p, &f->string_table[i], LIMIT_NAME_BYTES, &o->strings[i], o->err);
        if (!st)
                st = read_pprof_oracle_types(o, types);
        for (size_t i = 0; !st && i < f->n_mapping; i++)
                st = read_pprof_oracle_mapping(o, i);
        for (size_t i = 0; !st && i < f->n_function; i++)
                st = add_oracle_id(o, &o->function_ids, f->function[i]->id);
        for (size_t i = 0; !st && i < f->n_function; i++)
                st = read_pprof_oracle_line(o, f->function[i]->id, 0, &line);
        if (!st)
                st = find_oracle_dropped_functions(o, input_bytes);
        for (size_t i = 0; !st && i < f->n_location; i++)
                st = read_pprof_oracle_location(o, i);
        for (size_t i = 0; !st && i < f->n_sample; i++)
                st = read_pprof_oracle_sample(o, f->sample[i], types);
        return st;
}

static enum status convert_pprof(const Pprof__Profile *file, size_t n, struct arena *memory, struct profile *ret,
                                 struct error *err)
{
        struct profile p;
        struct pprof_oracle o = {
                .p = &p,
                .file = file,
                .strings = arena_alloc_array(memory, file->n_string_table + 1, sizeof *o.strings),
                .mappings = arena_alloc_array(memory, file->n_mapping + 1, sizeof *o.mappings),
                .locations = arena_alloc_array(memory, file->n_location + 1, sizeof *o.locations),
                .dropped = arena_alloc_array(memory, file->n_function + 1, sizeof *o.dropped),
                .cut = arena_alloc_array(memory, file->n_location + 1, sizeof *o.cut),
                .err = err,
        };
        enum status st;

        if (!o.strings || !o.mappings || !o.locations || !o.dropped || !o.cut)
                return error_set(err, ST_TOO_BIG, "oracle");
        if ((n && !file->n_string_table) || (file->n_string_table && file->string_table[0].len))
                return fail_bad(err, "string table");
        st = profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, err);
        if (st)
                return st;
        st = read_pprof_oracle_file(&o, n);
        number_map_deinit(&o.mapping_ids);
        number_map_deinit(&o.location_ids);
        number_map_deinit(&o.function_ids);
        if (st)
                profile_deinit(&p);
        else
                *ret = p;
        return st;
}

enum status oracle_decode_pprof(const void *data, size_t n, struct arena *memory, struct profile *ret,
                                struct error *err)
{
        const void *message;
        enum status st = proto_message_decode(&pprof__profile__descriptor, data, n, memory, "oracle", &message, err);

        return st ? st : convert_pprof(message, n, memory, ret, err);
}

/* ---- comparison ------------------------------------------------------------------------------ */

#define ORACLE_MEMORY_BYTES GiB(1)

typedef enum status decode_fn(const void *data, size_t n, struct profile *ret, struct error *err);
typedef enum status oracle_fn(const void *data, size_t n, struct arena *memory, struct profile *ret, struct error *err);

static enum status decode_current_otlp(const void *data, size_t n, struct profile *ret, struct error *err)
{
        return otlp_decode_within(data, n, n ? n : 1, ret, err);
}

static enum status decode_unpacked_pprof(const void *data, size_t n, struct profile *ret, struct error *err)
{
        return pprof_decode(data, n, NULL, ret, err);
}

/* Nine consecutive bytes with the high bit set: possibly a varint of ten bytes or more. */
static bool has_long_varint(const uint8_t *data, size_t n)
{
        size_t run = 0;

        for (size_t i = 0; i < n; i++) {
                run = data[i] & 0x80 ? run + 1 : 0;
                if (run == 9)
                        return true;
        }
        return false;
}

/* Whether a non-repeated message field occurs twice. protobuf-c loses numbers of the first when it merges them. */
static bool has_merged_message(const ProtobufCMessageDescriptor *type, struct reader r)
{
        const ProtobufCFieldDescriptor *seen[64] = { NULL };
        struct wire_field f;

        while (wire_next(&r, &f)) {
                const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(type, f.number);

                if (!field || field->type != PROTOBUF_C_TYPE_MESSAGE || f.type != WIRE_BYTES)
                        continue;
                if (has_merged_message(field->descriptor, f.bytes) ||
                    (field->label != PROTOBUF_C_LABEL_REPEATED && seen[field->id % 64]))
                        return true;
                seen[field->id % 64] = field;
        }
        return false;
}

static char *compare_content(const struct profile *p, const struct profile *expected)
{
        char *text = profile_to_text(p), *expected_text = profile_to_text(expected), *ret = NULL;

        if ((strcmp(text, expected_text) != 0 || p->rejected_samples != expected->rejected_samples) &&
            asprintf(&ret, "content differs; decoder:\n%s\noracle:\n%s", text, expected_text) < 0)
                abort();
        free(text);
        free(expected_text);
        return ret;
}

static char *describe_difference(const char *what, const struct error *err)
{
        char *ret;

        if (asprintf(&ret, "%s: %s", what, err->text) < 0)
                abort();
        return ret;
}

/*
 * The oracle accepts input that the decoder refuses: then the decoder must accept the same message in canonical
 * encoding.
 */
static char *compare_canonical(const void *data, size_t n, const ProtobufCMessageDescriptor *type, decode_fn *decode,
                               const struct profile *expected)
{
        _cleanup_arena_ struct arena memory;
        _cleanup_buf_ struct buf canonical;
        const void *message;
        struct profile p;
        struct error err;
        char *ret;

        arena_init(&memory, ORACLE_MEMORY_BYTES);
        buf_init(&canonical, MiB(256));
        if (proto_message_decode(type, data, n, &memory, "oracle", &message, NULL))
                abort();
        proto_message_append(&canonical, message);
        if (decode(canonical.data, canonical.size, &p, &err))
                return strstr(err.text, "entry 0") ? NULL : describe_difference("only the oracle accepts", &err);
        ret = compare_content(&p, expected);
        profile_deinit(&p);
        return ret;
}

/* @param unread_messages the decoder skips some nested messages */
static char *compare_decoders(const void *data, size_t n, const ProtobufCMessageDescriptor *type, decode_fn *decode,
                              oracle_fn *oracle, bool unread_messages)
{
        _cleanup_arena_ struct arena memory;
        struct reader input;
        struct error err = { 0 }, oracle_err = { 0 };
        struct profile p, expected;
        enum status st, oracle_st;
        char *ret = NULL;

        arena_init(&memory, ORACLE_MEMORY_BYTES);
        st = decode(data, n, &p, &err);
        oracle_st = oracle(data, n, &memory, &expected, &oracle_err);
        reader_init(&input, data, n);
        if (has_merged_message(type, input))
                ret = oracle_st ? NULL : compare_canonical(data, n, type, decode, &expected);
        else if (!st && !oracle_st)
                ret = compare_content(&p, &expected);
        else if (!st && oracle_st == ST_BAD_DATA && !strstr(oracle_err.text, "wrong wire type") &&
                 !(unread_messages && strstr(oracle_err.text, "malformed")) && !has_long_varint(data, n))
                ret = describe_difference("only the decoder accepts", &oracle_err);
        else if (!oracle_st && st == ST_BAD_DATA && !strstr(err.text, "entry 0"))
                ret = compare_canonical(data, n, type, decode, &expected);
        if (!st)
                profile_deinit(&p);
        if (!oracle_st)
                profile_deinit(&expected);
        return ret;
}

char *oracle_compare_otlp(const void *data, size_t n)
{
        return compare_decoders(data, n, &otlp__export_profiles_service_request__descriptor, decode_current_otlp,
                                oracle_decode_otlp, true);
}

char *oracle_compare_pprof(const void *data, size_t n)
{
        if (gzip_detect(data, n))
                return NULL;
        return compare_decoders(data, n, &pprof__profile__descriptor, decode_unpacked_pprof, oracle_decode_pprof,
                                false);
}
