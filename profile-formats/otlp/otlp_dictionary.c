/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_dictionary_read() at the end has the passes: count the entries of all pieces of the dictionary, record the
 * place of each (struct otlp_entry), check that entry 0 is the zero value, then convert table by table in the order of
 * their references: attributes, mappings, functions, locations, links, stacks. An entry thus refers only to entries
 * that are already converted, and a check of the index suffices.
 *
 * Strings are not converted in a pass: a string is added to the profile when it is first referred to, so that unused
 * ones cost nothing. Mappings, locations and stacks become entries of the profile at once, and the arrays of these
 * names hold their numbers; functions and links are kept here until a line or a sample refers to them.
 *
 * Order: access to entries and strings, attributes, the other tables, the passes. All arrays are in the arena
 * `scratch`.
 */
#include "profile-formats/otlp/otlp_dictionary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/frame_type.h"
#include "profile-formats/return_address.h"
#include "profile-formats/sample_labels.h"

static const struct {
        const char *name;
        uint32_t limit;
} tables[DICTIONARY_TABLES] = {
        [DICTIONARY_MAPPINGS] = { "mapping", LIMIT_LOCATIONS },
        [DICTIONARY_LOCATIONS] = { "location", LIMIT_LOCATIONS },
        [DICTIONARY_FUNCTIONS] = { "function", LIMIT_LOCATIONS },
        [DICTIONARY_LINKS] = { "link", LIMIT_SAMPLES },
        [DICTIONARY_STRINGS] = { "string", LIMIT_STRINGS },
        [DICTIONARY_ATTRIBUTES] = { "attribute", LIMIT_STRINGS },
        [DICTIONARY_STACKS] = { "stack", LIMIT_SAMPLES },
};

static void *alloc_otlp_table(struct otlp_dictionary *d, size_t count, size_t size, struct error *err)
{
        void *ret = arena_alloc_array(&d->scratch, count, size);

        if (!ret)
                error_set(err, ST_TOO_BIG, "OTLP dictionary needs more than %zu bytes of memory", d->scratch.max);
        return ret;
}

struct reader otlp_dictionary_entry(const struct otlp_dictionary *d, unsigned table, uint32_t i)
{
        const struct otlp_entry *e = &d->tables[table][i];
        struct reader r;

        reader_init(&r, d->start + e->offset, e->size);
        r.base = e->offset;
        return r;
}

enum status otlp_dictionary_check_index(const struct otlp_dictionary *d, unsigned table, uint64_t index,
                                        const struct reader *at, struct error *err)
{
        if (index == 0 || index < d->counts[table])
                return ST_OK;
        return error_at(err, ST_BAD_DATA, at->base, "OTLP %s index %" PRId64 " is outside the table of %u entries",
                        tables[table].name, (int64_t)index, d->counts[table]);
}

enum status otlp_dictionary_string(struct otlp_dictionary *d, uint64_t index, const struct reader *at, uint32_t *ret,
                                   struct error *err)
{
        enum status st = otlp_dictionary_check_index(d, DICTIONARY_STRINGS, index, at, err);

        if (st)
                return st;
        if (index == 0) {
                *ret = 0;
                return ST_OK;
        }
        if (!d->strings[index]) {
                const struct reader text = otlp_dictionary_entry(d, DICTIONARY_STRINGS, (uint32_t)index);
                uint32_t number;

                st = profile_add_string(d->p, (const char *)text.data,
                                        utf8_truncate(text.data, text.size, LIMIT_NAME_BYTES), &number, err);
                if (st)
                        return st;
                d->strings[index] = number + 1;
        }
        *ret = d->strings[index] - 1;
        return ST_OK;
}

static const char *get_otlp_text(const struct otlp_dictionary *d, uint32_t string)
{
        return profile_text(d->p, string);
}

/* ---- attributes ----------------------------------------------------------------------- */

static size_t format_double(double v, char *out, size_t n)
{
        int len = 0;

        for (int precision = 15; precision <= 17; precision++) {
                len = snprintf(out, n, "%.*g", precision, v);
                if (strtod(out, NULL) == v)
                        break;
        }
        return (size_t)len;
}

/* Arrays, maps and bytes cannot be labels. They are skipped without entering them, so their depth needs no limit. */
static enum status read_any_value(struct otlp_dictionary *d, struct reader r, struct otlp_attribute *ret,
                                  struct error *err)
{
        const uint8_t *text = NULL;
        uint64_t index = 0; /* of the text in the string table */
        bool is_set = false;
        char number[40];
        size_t n = 0;
        struct wire_field f;
        enum status st;

        while (wire_next(&r, &f)) {
                struct reader indexed;
                double v;

                if (f.number == ANY_STRING && f.type == WIRE_BYTES) {
                        text = f.bytes.data;
                        n = f.bytes.size;
                } else if (f.number == ANY_BOOL && f.type == WIRE_VARINT) {
                        text = (const uint8_t *)(f.value ? "true" : "false");
                        n = strlen((const char *)text);
                } else if (f.number == ANY_INT && f.type == WIRE_VARINT) {
                        n = (size_t)snprintf(number, sizeof number, "%" PRId64, (int64_t)f.value);
                        text = (const uint8_t *)number;
                } else if (f.number == ANY_DOUBLE && f.type == WIRE_FIXED64) {
                        memcpy(&v, &f.value, sizeof v);
                        n = format_double(v, number, sizeof number);
                        text = (const uint8_t *)number;
                } else if (f.number == ANY_STRINDEX && f.type == WIRE_VARINT) {
                        st = otlp_dictionary_check_index(d, DICTIONARY_STRINGS, f.value, &r, err);
                        if (st)
                                return st;
                        reader_init(&indexed, "", 0);
                        if (f.value)
                                indexed = otlp_dictionary_entry(d, DICTIONARY_STRINGS, (uint32_t)f.value);
                        text = indexed.data;
                        n = indexed.size;
                        index = f.value;
                } else if (f.number >= ANY_ARRAY && f.number <= ANY_BYTES) {
                        text = NULL;
                } else {
                        continue;
                }
                if (f.number != ANY_STRINDEX)
                        index = 0;
                is_set = true; /* the last member of a oneof counts */
        }
        if (r.failed)
                return reader_error(&r, err, "OTLP attribute value");
        if (is_set)
                ret->usable = text != NULL;
        if (!text)
                return ST_OK;
        if (index && n <= LIMIT_LABEL_BYTES) /* added once, however many attributes refer to it */
                return otlp_dictionary_string(d, index, &r, &ret->value, err);
        return profile_add_string(d->p, (const char *)text, utf8_truncate(text, n, LIMIT_LABEL_BYTES), &ret->value,
                                  err);
}

enum status read_otlp_key_value(struct otlp_dictionary *d, struct reader r, struct otlp_attribute *ret,
                                struct error *err)
{
        struct otlp_attribute a = { 0 };
        uint32_t key = 0, indexed_key = 0;
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.number == KEY_VALUE_KEY && f.type == WIRE_BYTES)
                        st = profile_add_string(d->p, (const char *)f.bytes.data,
                                                utf8_truncate(f.bytes.data, f.bytes.size, LIMIT_LABEL_BYTES), &key,
                                                err);
                else if (f.number == KEY_VALUE_KEY_STRINDEX && f.type == WIRE_VARINT)
                        st = otlp_dictionary_string(d, f.value, &r, &indexed_key, err);
                else if (f.number == KEY_VALUE_VALUE && f.type == WIRE_BYTES)
                        st = read_any_value(d, f.bytes, &a, err);
        }
        if (st)
                return st;
        if (r.failed)
                return reader_error(&r, err, "OTLP attribute");
        a.key = key ? key : indexed_key;
        *ret = a;
        return ST_OK;
}

static enum status read_otlp_attribute(struct otlp_dictionary *d, uint32_t i, struct error *err)
{
        struct otlp_attribute *a = &d->attributes[i];
        struct reader r = otlp_dictionary_entry(d, DICTIONARY_ATTRIBUTES, i);
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.number == ATTRIBUTE_KEY && f.type == WIRE_VARINT)
                        st = otlp_dictionary_string(d, f.value, &r, &a->key, err);
                else if (f.number == ATTRIBUTE_VALUE && f.type == WIRE_BYTES)
                        st = read_any_value(d, f.bytes, a, err);
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP attribute");
        if (!st && strcmp(profile_text(d->p, a->key), ATTRIBUTE_STACK_TRUNCATED) == 0)
                d->truncated_key = a->key;
        return st;
}

/* ---- mappings, functions, locations, stacks, links ------------------------------------ */

static void choose_build_id(struct build_id *id, int *rank, const char *key, const struct profile_string *value)
{
        static const char *const keys[] = { ATTRIBUTE_BUILD_ID_GNU, ATTRIBUTE_BUILD_ID_GO, ATTRIBUTE_BUILD_ID_HTLHASH,
                                            ATTRIBUTE_BUILD_ID_PROFILING };

        for (int i = 0; i < 4 && i < *rank; i++) {
                struct build_id found;

                if (strcmp(key, keys[i]) != 0)
                        continue;
                if ((i == 1 ? build_id_from_go(&found, value->text, value->size)
                            : build_id_from_hex(&found, value->text, value->size)) &&
                    !build_id_is_placeholder(&found)) {
                        *id = found;
                        *rank = i;
                }
        }
}

static enum status read_otlp_mapping(struct otlp_dictionary *d, uint32_t i, struct error *err)
{
        struct address_mapping *range = &d->mapping_ranges[i];
        struct reader r = otlp_dictionary_entry(d, DICTIONARY_MAPPINGS, i);
        struct profile_mapping m = { 0 };
        struct wire_field f;
        enum status st = ST_OK;
        int rank = 4;

        while (!st && wire_next(&r, &f)) {
                uint64_t index;

                if (f.number == MAPPING_START && f.type == WIRE_VARINT)
                        range->memory_start = f.value;
                else if (f.number == MAPPING_LIMIT && f.type == WIRE_VARINT)
                        range->memory_limit = f.value;
                else if (f.number == MAPPING_FILE_OFFSET && f.type == WIRE_VARINT)
                        range->file_offset = f.value;
                else if (f.number == MAPPING_FILENAME && f.type == WIRE_VARINT)
                        st = otlp_dictionary_string(d, f.value, &r, &m.file, err);
                else if (f.number == MAPPING_ATTRIBUTES)
                        while (!st && wire_next_number(&f, WIRE_VARINT, &index)) {
                                st = otlp_dictionary_check_index(d, DICTIONARY_ATTRIBUTES, index, &r, err);
                                if (!st && index && d->attributes[index].usable)
                                        choose_build_id(&m.build_id, &rank, get_otlp_text(d, d->attributes[index].key),
                                                        &d->p->strings.items[d->attributes[index].value]);
                        }
                if (!st && f.bytes.failed)
                        st = reader_error(&f.bytes, err, "OTLP mapping");
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP mapping");
        if (st)
                return st;
        range->file = profile_text(d->p, m.file);
        return profile_add_mapping(d->p, &m, &d->mappings[i], err);
}

static enum status read_otlp_function(struct otlp_dictionary *d, uint32_t i, struct error *err)
{
        struct otlp_function *fn = &d->function_items[i];
        struct reader r = otlp_dictionary_entry(d, DICTIONARY_FUNCTIONS, i);
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.type != WIRE_VARINT)
                        continue;
                if (f.number == FUNCTION_NAME)
                        st = otlp_dictionary_string(d, f.value, &r, &fn->name, err);
                else if (f.number == FUNCTION_SYSTEM_NAME)
                        st = otlp_dictionary_string(d, f.value, &r, &fn->system_name, err);
                else if (f.number == FUNCTION_FILENAME)
                        st = otlp_dictionary_string(d, f.value, &r, &fn->file, err);
                else if (f.number == FUNCTION_START_LINE)
                        fn->start_line = (int64_t)f.value > 0 ? (int64_t)f.value : 0;
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP function");
        if (fn->name == 0)
                fn->name = fn->system_name;
        if (fn->name == fn->system_name)
                fn->system_name = 0;
        return st;
}

static enum status read_otlp_line(struct otlp_dictionary *d, struct reader r, struct profile_location *l,
                                  struct error *err)
{
        struct profile_line line = { 0 };
        struct wire_field f;
        uint32_t number;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.number == LINE_FUNCTION && f.type == WIRE_VARINT) {
                        st = otlp_dictionary_check_index(d, DICTIONARY_FUNCTIONS, f.value, &r, err);
                        if (!st && f.value) {
                                line.function = d->function_items[f.value].name;
                                line.linkage_name = d->function_items[f.value].system_name;
                                line.file = d->function_items[f.value].file;
                                line.start_line = d->function_items[f.value].start_line;
                        }
                } else if (f.number == LINE_LINE && f.type == WIRE_VARINT) {
                        line.line = (int64_t)f.value > 0 ? (int64_t)f.value : 0;
                }
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP line");
        if (!st && ++l->line_count > LIMIT_LINES_PER_LOCATION)
                st = error_at(err, ST_TOO_BIG, r.base, "OTLP location has more than %d lines",
                              LIMIT_LINES_PER_LOCATION);
        if (!st)
                st = profile_add_line(d->p, &line, &number, err);
        return st;
}

static enum status read_otlp_location(struct otlp_dictionary *d, uint32_t i, struct error *err)
{
        struct reader r = otlp_dictionary_entry(d, DICTIONARY_LOCATIONS, i);
        struct profile_location l = { .mapping = PROFILE_NONE, .first_line = d->p->lines.count };
        const char *kind = NULL;
        const struct address_mapping nowhere = { .file = "" }, *range = &nowhere;
        struct wire_field f;
        bool is_kernel = false;
        uint64_t index;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.number == LOCATION_MAPPING && f.type == WIRE_VARINT) {
                        st = otlp_dictionary_check_index(d, DICTIONARY_MAPPINGS, f.value, &r, err);
                        if (!st && f.value) {
                                l.mapping = d->mappings[f.value];
                                range = &d->mapping_ranges[f.value];
                        }
                } else if (f.number == LOCATION_ADDRESS && f.type == WIRE_VARINT) {
                        l.address = f.value;
                } else if (f.number == LOCATION_LINES && f.type == WIRE_BYTES) {
                        st = read_otlp_line(d, f.bytes, &l, err);
                } else if (f.number == LOCATION_ATTRIBUTES) {
                        while (!st && wire_next_number(&f, WIRE_VARINT, &index)) {
                                const char *key;

                                st = otlp_dictionary_check_index(d, DICTIONARY_ATTRIBUTES, index, &r, err);
                                if (st || !index || !d->attributes[index].usable)
                                        continue;
                                key = get_otlp_text(d, d->attributes[index].key);
                                if (strcmp(key, ATTRIBUTE_ADDRESS_KIND) == 0)
                                        kind = get_otlp_text(d, d->attributes[index].value);
                                else if (strcmp(key, ATTRIBUTE_FRAME_TYPE) == 0)
                                        l.frame_type = parse_frame_type(get_otlp_text(d, d->attributes[index].value));
                        }
                        if (!st && f.bytes.failed)
                                st = reader_error(&f.bytes, err, "OTLP location");
                }
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP location");
        if (st)
                return st;
        if (kind && strcmp(kind, "file_offset") == 0)
                l.kind = ADDRESS_FILE_OFFSET;
        else if (kind && strcmp(kind, "none") == 0)
                l.kind = ADDRESS_NONE;
        else if (kind && strcmp(kind, "object") == 0)
                l.kind = ADDRESS_OBJECT;
        else if (l.address == 0 && (l.line_count || l.mapping == PROFILE_NONE))
                l.kind = ADDRESS_NONE;
        else
                l.kind = normalize_sender_address(ADDRESS_SOURCE_OTLP, range, l.address, &l.address, &is_kernel);
        if (!kind && is_kernel)
                l.frame_type = PROFILE_FRAME_KERNEL;
        return profile_add_location(d->p, &l, &d->locations[i], err);
}

static enum status add_unknown_location(struct otlp_dictionary *d, uint32_t *ret, struct error *err)
{
        const struct profile_location unknown = { .mapping = PROFILE_NONE, .kind = ADDRESS_NONE };
        enum status st;

        if (!d->unknown_location) {
                st = profile_add_location(d->p, &unknown, ret, err);
                if (st)
                        return st;
                d->unknown_location = *ret + 1;
        }
        *ret = d->unknown_location - 1;
        return ST_OK;
}

static enum status read_otlp_stack(struct otlp_dictionary *d, uint32_t i, struct error *err)
{
        struct reader r = otlp_dictionary_entry(d, DICTIONARY_STACKS, i);
        uint32_t frames[LIMIT_STACK_FRAMES + 1]; /* one more, so that profile_add_stack() detects truncation */
        uint32_t count = 0;
        struct wire_field f;
        uint64_t index;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.number != STACK_LOCATIONS)
                        continue;
                while (!st && wire_next_number(&f, WIRE_VARINT, &index)) {
                        uint32_t location;

                        st = otlp_dictionary_check_index(d, DICTIONARY_LOCATIONS, index, &r, err);
                        if (st)
                                break;
                        location = d->locations[index];
                        if (index == 0)
                                st = add_unknown_location(d, &location, err);
                        if (!st && count <= LIMIT_STACK_FRAMES)
                                frames[count++] = location;
                }
                if (!st && f.bytes.failed)
                        st = reader_error(&f.bytes, err, "OTLP stack");
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP stack");
        if (!st)
                st = profile_add_stack(d->p, frames, count, &d->stacks[i], err);
        return st;
}

static enum status read_otlp_link(struct otlp_dictionary *d, uint32_t i, struct error *err)
{
        struct reader r = otlp_dictionary_entry(d, DICTIONARY_LINKS, i);
        struct wire_field f;

        while (wire_next(&r, &f)) {
                if (f.number == LINK_TRACE_ID && f.type == WIRE_BYTES && f.bytes.size == sizeof d->links[i].trace_id)
                        memcpy(d->links[i].trace_id, f.bytes.data, f.bytes.size);
                else if (f.number == LINK_SPAN_ID && f.type == WIRE_BYTES && f.bytes.size == sizeof d->links[i].span_id)
                        memcpy(d->links[i].span_id, f.bytes.data, f.bytes.size);
                else if ((f.number == LINK_TRACE_ID || f.number == LINK_SPAN_ID) &&
                         (f.type != WIRE_BYTES || f.bytes.size))
                        return error_at(err, ST_BAD_DATA, r.base, "OTLP link has a trace or span id of %zu bytes",
                                        f.bytes.size);
        }
        return r.failed ? reader_error(&r, err, "OTLP link") : ST_OK;
}

/* ---- the tables ------------------------------------------------------------------- */

static bool has_only_zero_bytes(const struct reader *r)
{
        for (size_t i = 0; i < r->size; i++)
                if (r->data[i])
                        return false;
        return true;
}

/* Whether a field of a table's entry is a message that has only fields with value zero. */
static bool is_zero_message(unsigned table, const struct wire_field *field)
{
        struct reader r = field->bytes;
        struct wire_field f;

        if (!(table == DICTIONARY_LOCATIONS && field->number == LOCATION_LINES) &&
            !(table == DICTIONARY_ATTRIBUTES && field->number == ATTRIBUTE_VALUE))
                return false;

        while (wire_next(&r, &f))
                if (f.value || (f.type == WIRE_BYTES && !has_only_zero_bytes(&f.bytes)))
                        return false;
        return !r.failed;
}

/*
 * Entry 0 has to be the zero value; fields may be present with value zero. An attribute without a value is zero, too,
 * and so is a location's line without a function: async-profiler writes both.
 */
static enum status check_entry_zero(const struct otlp_dictionary *d, unsigned table, struct error *err)
{
        struct reader r;
        struct wire_field f;
        bool zero = true;

        if (d->counts[table] == 0)
                return ST_OK;
        r = otlp_dictionary_entry(d, table, 0);
        if (table == DICTIONARY_STRINGS) {
                zero = r.size == 0;
        } else {
                while (zero && wire_next(&r, &f)) {
                        if (table == DICTIONARY_ATTRIBUTES && f.number == ATTRIBUTE_KEY)
                                continue;
                        zero = f.value == 0 &&
                               (f.type != WIRE_BYTES || has_only_zero_bytes(&f.bytes) || is_zero_message(table, &f));
                }
                if (r.failed)
                        return reader_error(&r, err, "OTLP dictionary entry");
        }
        if (zero)
                return ST_OK;
        return error_at(err, ST_BAD_DATA, r.base,
                        "OTLP %s table has content in entry 0, which must be empty since index 0 means not set",
                        tables[table].name);
}

static enum status collect_otlp_entries(struct otlp_dictionary *d, const void *data, size_t n, bool store,
                                        struct error *err)
{
        struct reader request;
        struct wire_field part, entry;

        memset(d->counts, 0, sizeof d->counts);
        reader_init(&request, data, n);
        while (wire_next(&request, &part)) {
                if (part.number != REQUEST_DICTIONARY || part.type != WIRE_BYTES)
                        continue;
                while (wire_next(&part.bytes, &entry)) {
                        if (entry.number >= DICTIONARY_TABLES || entry.type != WIRE_BYTES)
                                continue;
                        if (store)
                                d->tables[entry.number][d->counts[entry.number]] =
                                        (struct otlp_entry){ (uint32_t)(entry.bytes.data - d->start),
                                                             (uint32_t)entry.bytes.size };
                        if (++d->counts[entry.number] > tables[entry.number].limit)
                                return error_set(err, ST_TOO_BIG, "OTLP %s table has more than %u entries",
                                                 tables[entry.number].name, tables[entry.number].limit);
                }
                if (part.bytes.failed)
                        return reader_error(&part.bytes, err, "OTLP dictionary");
        }
        return request.failed ? reader_error(&request, err, "OTLP request") : ST_OK;
}

enum status otlp_dictionary_read(struct otlp_dictionary *d, struct profile *p, const void *data, size_t n,
                                 struct error *err)
{
        enum status st;

        *d = (struct otlp_dictionary){ .p = p, .start = data, .truncated_key = PROFILE_NONE };
        arena_init_budget(&d->scratch, LIMIT_PROFILE_MEMORY_BYTES, MEMORY_INGEST);
        if (n > UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "OTLP request has %zu bytes, more than %u", n, UINT32_MAX);
        st = collect_otlp_entries(d, data, n, false, err);
        for (unsigned t = 1; !st && t < DICTIONARY_TABLES; t++) {
                d->tables[t] = alloc_otlp_table(d, d->counts[t], sizeof *d->tables[t], err);
                if (!d->tables[t])
                        return ST_TOO_BIG;
        }
        if (!st)
                st = collect_otlp_entries(d, data, n, true, err);
        for (unsigned t = 1; !st && t < DICTIONARY_TABLES; t++)
                st = check_entry_zero(d, t, err);
        if (st)
                return st;

        /* One more than counted: index 0 is valid in an empty table too. */
        d->strings = alloc_otlp_table(d, d->counts[DICTIONARY_STRINGS] + 1u, sizeof *d->strings, err);
        d->attributes = alloc_otlp_table(d, d->counts[DICTIONARY_ATTRIBUTES] + 1u, sizeof *d->attributes, err);
        d->mappings = alloc_otlp_table(d, d->counts[DICTIONARY_MAPPINGS] + 1u, sizeof *d->mappings, err);
        d->mapping_ranges = alloc_otlp_table(d, d->counts[DICTIONARY_MAPPINGS] + 1u, sizeof *d->mapping_ranges, err);
        d->function_items = alloc_otlp_table(d, d->counts[DICTIONARY_FUNCTIONS] + 1u, sizeof *d->function_items, err);
        d->locations = alloc_otlp_table(d, d->counts[DICTIONARY_LOCATIONS] + 1u, sizeof *d->locations, err);
        d->stacks = alloc_otlp_table(d, d->counts[DICTIONARY_STACKS] + 1u, sizeof *d->stacks, err);
        d->links = alloc_otlp_table(d, d->counts[DICTIONARY_LINKS] + 1u, sizeof *d->links, err);
        if (!d->strings || !d->attributes || !d->mappings || !d->mapping_ranges || !d->function_items ||
            !d->locations || !d->stacks || !d->links)
                return ST_TOO_BIG;

        /* In the order of their references. */
        for (uint32_t i = 1; !st && i < d->counts[DICTIONARY_ATTRIBUTES]; i++)
                st = read_otlp_attribute(d, i, err);
        for (uint32_t i = 1; !st && i < d->counts[DICTIONARY_MAPPINGS]; i++)
                st = read_otlp_mapping(d, i, err);
        for (uint32_t i = 1; !st && i < d->counts[DICTIONARY_FUNCTIONS]; i++)
                st = read_otlp_function(d, i, err);
        for (uint32_t i = 1; !st && i < d->counts[DICTIONARY_LOCATIONS]; i++)
                st = read_otlp_location(d, i, err);
        for (uint32_t i = 1; !st && i < d->counts[DICTIONARY_LINKS]; i++)
                st = read_otlp_link(d, i, err);
        if (!st)
                st = profile_add_stack(p, NULL, 0, &d->stacks[0], err);
        for (uint32_t i = 1; !st && i < d->counts[DICTIONARY_STACKS]; i++)
                st = read_otlp_stack(d, i, err);
        return st;
}

void otlp_dictionary_deinit(struct otlp_dictionary *d)
{
        arena_deinit(&d->scratch);
}
