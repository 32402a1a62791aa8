/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries are written in the order in which numbers become known, which protobuf permits: types, samples, locations,
 * then the tables that locations have numbered on first use (mappings, functions), and last the strings: the other
 * tables add to them (`more`). encode_pprof() has the sequence. The samples of one stack and label set become one
 * sample with a value for each type, so they are sorted first; the main program's mapping gets number 1 before any
 * location is written.
 *
 * In the file: numbers; types; locations; the main mapping; mappings, functions and strings; samples; the entry
 * points. A failure of a number_...() function is kept in `failed` and checked once at the end: numbers are then
 * meaningless, and the output is not used.
 */
#include "profile-formats/pprof/pprof.h"

#include <assert.h>
#include <string.h>

#include "common/compress/compress.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/text.h"
#include "profile-formats/hidden_label.h"
#include "profile-formats/number_map.h"
#include "profile-formats/pprof/pprof_fields.h"
#include "profile-formats/pprof/pprof_type_names.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/proto/pprof.pb-c.h"
#include "profile-formats/proto_message.h"
#include "profile-formats/string_list.h"

/* Load address of mappings whose addresses are file offsets. */
#define FILE_START (UINT64_C(1) << 46)

/* Room for the entries of one sample or location. */
struct pprof_entries {
        uint64_t location_ids[LIMIT_STACK_FRAMES];
        Pprof__Label labels[LIMIT_LABELS_PER_SAMPLE], *label_list[LIMIT_LABELS_PER_SAMPLE];
        Pprof__Line lines[LIMIT_LINES_PER_LOCATION], *line_list[LIMIT_LINES_PER_LOCATION];
};

/*
 * Ids are positions plus one. A mapping of the profile becomes a mapping that starts at 0 for object addresses, and
 * another one at FILE_START for file offsets where there are any. Strings keep the numbers of the profile.
 */
struct pprof_encoder {
        const struct profile *p;
        struct buf *out;
        struct error *err;
        enum status failed;
        struct number_map mappings;  /* (mapping, kind) */
        bool *symbolized;            /* of each of these, whether one of its locations has lines; owned */
        struct number_map functions; /* (name, linkage name, file, start line) */
        struct string_list more;     /* the string table */
        struct arena scratch;
        const char **type_names; /* in scratch */
        struct pprof_entries *entries;
};

static uint64_t number_pprof_entry(struct pprof_encoder *e, struct number_map *m, struct number_key key)
{
        uint32_t number = 0;

        if (!e->failed)
                e->failed = number_map_get(m, &key, &number, NULL, e->err);
        return number + UINT64_C(1);
}

static uint32_t number_pprof_string(struct pprof_encoder *e, const char *text, size_t n)
{
        uint32_t number = 0;

        if (!e->failed)
                e->failed = string_list_get(&e->more, text, n, &number, e->err);
        return number;
}

/*
 * A message is the concatenation of its fields, so the file is written as many partial Profile messages, each with a
 * few entries: the output is the only copy of the whole in memory.
 */
static void append_to_file(struct pprof_encoder *e, const Pprof__Profile *part)
{
        proto_message_append(e->out, &part->base);
}

static uint32_t number_type_part(struct pprof_encoder *e, const char *id, enum profile_type_part part)
{
        size_t n;
        const char *text = profile_type_part(id, part, &n);

        return number_pprof_string(e, text, n);
}

/* Whether pprof_decode() composes the id from the name of the sample type and the period type. */
static bool is_type_id_evident(struct pprof_encoder *e, const char *id, const char *name, const char *period_id)
{
        char *own = arena_strndup(&e->scratch, id, strlen(id));
        char *of_period = arena_strndup(&e->scratch, period_id, strlen(period_id));
        struct profile_type_parts parts, period_parts;
        _cleanup_buf_ struct buf found = { 0 };

        if (!own || !of_period) {
                e->failed = arena_error(&e->scratch, e->err, "sample types");
                return true;
        }
        if (!profile_type_split(own, &parts) || !profile_type_split(of_period, &period_parts))
                return true;
        parts.name = NULL;
        parts.sample_type = name;
        parts.period_type = period_parts.period_type;
        parts.period_unit = period_parts.period_unit;
        buf_init(&found, SIZE_MAX);
        profile_type_compose(&parts, &found);
        return !found.failed && strcmp(buf_cstr(&found), id) == 0;
}

static void put_type_comment(struct pprof_encoder *e, const char *name, const char *id)
{
        Pprof__Profile part = PPROF__PROFILE__INIT;
        _cleanup_buf_ struct buf text;
        int64_t number;

        buf_init(&text, SIZE_MAX);
        buf_append_str(&text, TYPE_COMMENT_PREFIX);
        buf_append_str(&text, name);
        buf_append_str(&text, TYPE_COMMENT_SEPARATOR);
        buf_append_str(&text, id);
        if (!e->failed)
                e->failed = buf_status(&text, e->err, "comment");
        if (e->failed)
                return;
        number = number_pprof_string(e, (const char *)text.data, text.size);
        part.n_comment = 1;
        part.comment = &number;
        append_to_file(e, &part);
}

static void put_pprof_types(struct pprof_encoder *e)
{
        const struct profile *p = e->p;

        for (uint32_t i = 0; i < p->types.count; i++) {
                Pprof__ValueType type = PPROF__VALUE_TYPE__INIT, *entries[] = { &type };
                Pprof__Profile part = PPROF__PROFILE__INIT;

                type.type = number_pprof_string(e, e->type_names[i], strlen(e->type_names[i]));
                type.unit = number_type_part(e, profile_text(p, p->types.items[i].id), TYPE_SAMPLE_UNIT);
                part.n_sample_type = 1;
                part.sample_type = entries;
                append_to_file(e, &part);
        }
        if (p->types.count) {
                const uint32_t first = p->first_shown_type ? p->first_shown_type - 1 : 0;
                const char *period_id = profile_text(p, p->types.items[first].id), *name = e->type_names[first];
                Pprof__ValueType type = PPROF__VALUE_TYPE__INIT;
                Pprof__Profile part = PPROF__PROFILE__INIT;

                type.type = number_type_part(e, period_id, TYPE_PERIOD_TYPE);
                type.unit = number_type_part(e, period_id, TYPE_PERIOD_UNIT);
                part.period_type = &type;
                part.period = p->types.items[first].period;
                if (p->first_shown_type)
                        part.default_sample_type = number_pprof_string(e, name, strlen(name));
                append_to_file(e, &part);
                for (uint32_t i = 0; i < p->types.count; i++) {
                        const char *id = profile_text(p, p->types.items[i].id);

                        if (!is_type_id_evident(e, id, e->type_names[i], period_id))
                                put_type_comment(e, e->type_names[i], id);
                }
        }
}

static void put_pprof_location(struct pprof_encoder *e, uint32_t number)
{
        const struct profile_location *l = &e->p->locations.items[number];
        bool offset = l->kind == ADDRESS_FILE_OFFSET;
        Pprof__Location location = PPROF__LOCATION__INIT, *entries[] = { &location };
        Pprof__Profile part = PPROF__PROFILE__INIT;

        assert(l->line_count <= LIMIT_LINES_PER_LOCATION);
        location.id = number + UINT64_C(1);
        if (l->mapping != PROFILE_NONE) {
                location.mapping_id =
                        number_pprof_entry(e, &e->mappings, (struct number_key){ { l->mapping, offset } });
                e->symbolized[location.mapping_id - 1] |= l->line_count > 0;
        }
        location.address = offset ? l->address + FILE_START : l->address;
        location.n_line = l->line_count;
        location.line = e->entries->line_list;
        for (uint32_t i = 0; i < l->line_count; i++) {
                const struct profile_line *line = &e->p->lines.items[l->first_line + i];

                pprof__line__init(&e->entries->lines[i]);
                e->entries->lines[i].function_id =
                        number_pprof_entry(e, &e->functions,
                                           (struct number_key){ { line->function, line->linkage_name, line->file,
                                                                  (uint32_t)line->start_line,
                                                                  (uint32_t)((uint64_t)line->start_line >> 32) } });
                e->entries->lines[i].line = line->line;
        }
        part.n_location = 1;
        part.location = entries;
        append_to_file(e, &part);
}

static bool is_program_file(const char *path)
{
        const char *name = path_base(path);

        return *name && *name != '[' && !strstr(name, ".so") && !starts_with(name, "ld-") &&
               strcmp(name, "linux-vdso") != 0;
}

/* The location nearest to the root of a stack that is in a program, rather than in a library or the kernel. */
static const struct profile_location *find_program_location(const struct profile *p, const struct profile_stack *stack)
{
        for (uint32_t i = stack->location_count; i-- > 0;) {
                const struct profile_location *l =
                        &p->locations.items[p->stack_locations.items[stack->first_location + i]];

                if (l->mapping != PROFILE_NONE && l->frame_type != PROFILE_FRAME_KERNEL &&
                    is_program_file(profile_text(p, p->mappings.items[l->mapping].file)))
                        return l;
        }
        return NULL;
}

/* Readers assume that the first mapping is the main program: make it the one with most samples. */
static void number_main_mapping(struct pprof_encoder *e)
{
        const struct profile *p = e->p;
        _cleanup_free_ uint32_t *samples = calloc(p->mappings.count + 1u, sizeof *samples);
        const struct profile_location *best = NULL;

        for (uint32_t i = 0; samples && i < p->samples.count; i++) {
                const struct profile_location *l =
                        find_program_location(p, &p->stacks.items[p->samples.items[i].stack]);

                if (!l)
                        continue;
                samples[l->mapping]++;
                if (!best || samples[l->mapping] > samples[best->mapping])
                        best = l;
        }
        if (best)
                number_pprof_entry(e, &e->mappings,
                                   (struct number_key){ { best->mapping, best->kind == ADDRESS_FILE_OFFSET } });
}

static void put_pprof_mappings(struct pprof_encoder *e)
{
        char hex[BUILD_ID_HEX_MAX];

        for (uint32_t i = 0; i < e->mappings.count; i++) {
                const struct profile_mapping *m = &e->p->mappings.items[e->mappings.keys[i].parts[0]];
                Pprof__Mapping mapping = PPROF__MAPPING__INIT, *entries[] = { &mapping };
                Pprof__Profile part = PPROF__PROFILE__INIT;

                mapping.id = i + UINT64_C(1);
                if (e->mappings.keys[i].parts[1]) {
                        mapping.memory_start = FILE_START;
                        mapping.memory_limit = 2 * FILE_START;
                }
                mapping.filename = m->file;
                if (m->build_id.size) {
                        const char *text = build_id_hex(&m->build_id, hex);

                        mapping.build_id = number_pprof_string(e, text, strlen(text));
                }
                /* Readers symbolize only mappings without these flags. */
                mapping.has_functions = mapping.has_inline_frames = e->symbolized[i];
                mapping.has_filenames = mapping.has_line_numbers = mapping.has_functions;
                part.n_mapping = 1;
                part.mapping = entries;
                append_to_file(e, &part);
        }
}

static void put_pprof_functions(struct pprof_encoder *e)
{
        for (uint32_t i = 0; i < e->functions.count; i++) {
                const uint32_t *parts = e->functions.keys[i].parts;
                Pprof__Function function = PPROF__FUNCTION__INIT, *entries[] = { &function };
                Pprof__Profile part = PPROF__PROFILE__INIT;

                function.id = i + UINT64_C(1);
                function.name = parts[0];
                function.system_name = parts[1] ? parts[1] : parts[0];
                function.filename = parts[2];
                function.start_line = (int64_t)(parts[3] | (uint64_t)parts[4] << 32);
                part.n_function = 1;
                part.function = entries;
                append_to_file(e, &part);
        }
}

static void put_pprof_strings(struct pprof_encoder *e)
{
        const struct profile *p = e->p;

        for (uint32_t i = 0; i < p->strings.count; i++) {
                ProtobufCBinaryData text = proto_bytes(p->strings.items[i].text, p->strings.items[i].size);
                Pprof__Profile part = PPROF__PROFILE__INIT;

                part.n_string_table = 1;
                part.string_table = &text;
                append_to_file(e, &part);
        }
        buf_append(e->out, e->more.fields.data, e->more.fields.size);
}

/* ---- samples: one per stack and labels, with a value for every type ----------------------- */

static int compare_pprof_samples(const void *x, const void *y)
{
        const struct profile_sample *a = *(const struct profile_sample *const *)x;
        const struct profile_sample *b = *(const struct profile_sample *const *)y;

        if (a->stack != b->stack)
                return a->stack < b->stack ? -1 : 1;
        if (a->first_label != b->first_label)
                return a->first_label < b->first_label ? -1 : 1;
        return a->label_count < b->label_count ? -1 : a->label_count > b->label_count;
}

static void fill_pprof_label(struct pprof_encoder *e, const struct profile_label *l, Pprof__Label *ret)
{
        struct number_label number;

        pprof__label__init(ret);
        if (number_label_parse(profile_text(e->p, l->key), profile_text(e->p, l->value), &number)) {
                ret->key = number_pprof_string(e, number.key, strlen(number.key));
                ret->num = number.number;
                ret->num_unit = number_pprof_string(e, number.unit, strlen(number.unit));
        } else {
                ret->key = l->key;
                ret->str = l->value;
        }
}

static void put_pprof_sample(struct pprof_encoder *e, const struct profile_sample *s, int64_t *values)
{
        const struct profile *p = e->p;
        const struct profile_stack *stack = &p->stacks.items[s->stack];
        struct pprof_entries *entries = e->entries;
        Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples[] = { &sample };
        Pprof__Profile part = PPROF__PROFILE__INIT;

        assert(stack->location_count <= LIMIT_STACK_FRAMES && s->label_count <= LIMIT_LABELS_PER_SAMPLE);
        sample.n_location_id = stack->location_count;
        sample.location_id = entries->location_ids;
        for (uint32_t i = 0; i < stack->location_count; i++)
                entries->location_ids[i] = p->stack_locations.items[stack->first_location + i] + UINT64_C(1);
        sample.n_value = p->types.count;
        sample.value = values;
        sample.label = entries->label_list;
        for (uint32_t i = 0; i < s->label_count; i++) {
                const struct profile_label *l = &p->labels.items[s->first_label + i];

                if (strcmp(profile_text(p, l->key), DEFAULT_TYPE_LABEL) != 0)
                        fill_pprof_label(e, l, &entries->labels[sample.n_label++]);
        }
        part.n_sample = 1;
        part.sample = samples;
        append_to_file(e, &part);
}

static void put_pprof_samples(struct pprof_encoder *e, const struct profile_sample **order, int64_t *values)
{
        Pprof__Profile times = PPROF__PROFILE__INIT;
        const struct profile *p = e->p;
        int64_t first = 0, last = 0;

        for (uint32_t i = 0; i < p->samples.count; i++) {
                const struct profile_sample *s = order[i] = &p->samples.items[i];
                int64_t end;

                if (__builtin_add_overflow(s->time_unix_ns, s->duration_ns, &end))
                        end = s->time_unix_ns;
                first = i == 0 || s->time_unix_ns < first ? s->time_unix_ns : first;
                last = i == 0 || end > last ? end : last;
        }
        qsort(order, p->samples.count, sizeof *order, compare_pprof_samples);
        for (uint32_t i = 0; i < p->samples.count;) {
                uint32_t start = i;

                memset(values, 0, p->types.count * sizeof *values);
                for (; i < p->samples.count && compare_pprof_samples(&order[start], &order[i]) == 0; i++)
                        values[order[i]->type] =
                                (int64_t)((uint64_t)values[order[i]->type] + (uint64_t)order[i]->value);
                put_pprof_sample(e, order[start], values);
        }
        times.time_nanos = first;
        times.duration_nanos = (int64_t)((uint64_t)last - (uint64_t)first);
        append_to_file(e, &times);
}

static enum status encode_pprof(struct pprof_encoder *e)
{
        const struct profile *p = e->p;
        _cleanup_free_ const struct profile_sample **order = calloc(p->samples.count + 1u, sizeof *order);
        _cleanup_free_ int64_t *values = calloc(p->types.count + 1u, sizeof *values);
        _cleanup_free_ struct pprof_entries *entries = calloc(1, sizeof *entries);

        e->symbolized = calloc(2 * (size_t)p->mappings.count + 1, sizeof *e->symbolized);
        if (!order || !values || !entries || !e->symbolized)
                return error_no_memory(e->err);
        e->entries = entries;
        for (size_t i = 0; i < LIMIT_LINES_PER_LOCATION; i++)
                entries->line_list[i] = &entries->lines[i];
        for (size_t i = 0; i < LIMIT_LABELS_PER_SAMPLE; i++)
                entries->label_list[i] = &entries->labels[i];
        e->failed = name_pprof_types(p, &e->scratch, &e->type_names, e->err);
        if (e->failed)
                return e->failed;
        put_pprof_types(e);
        put_pprof_samples(e, order, values);
        number_main_mapping(e);
        for (uint32_t i = 0; i < p->locations.count; i++)
                put_pprof_location(e, i);
        put_pprof_mappings(e);
        put_pprof_functions(e);
        put_pprof_strings(e);
        if (e->failed)
                return e->failed;
        return buf_status(e->out, e->err, "pprof file");
}

enum status pprof_encode_plain(const struct profile *p, struct buf *ret, struct error *err)
{
        struct pprof_encoder e = { .p = p, .out = ret, .err = err };
        enum status st;

        string_list_init(&e.more, p, PPROF_STRING_TABLE);
        arena_init(&e.scratch, LIMIT_PROFILE_MEMORY_BYTES);
        st = encode_pprof(&e);
        string_list_deinit(&e.more);
        arena_deinit(&e.scratch);
        number_map_deinit(&e.mappings);
        number_map_deinit(&e.functions);
        free(e.symbolized);
        return st;
}

enum status pprof_encode(const struct profile *p, struct buf *ret, struct error *err)
{
        _cleanup_buf_ struct buf plain;
        enum status st;

        buf_init(&plain, LIMIT_RESPONSE_BYTES);
        st = pprof_encode_plain(p, &plain, err);
        return st ? st : gzip_compress(plain.data, plain.size, 6, ret, err);
}
