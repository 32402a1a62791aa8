/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of an OTLP dictionary that make up stacks: mappings, functions, locations, stacks; and links. */
#include <string.h>

#include "common/limits.h"
#include "profile-formats/otlp_dictionary.h"
#include "profile-formats/return_address.h"

static void take_build_id(struct build_id *id, int *rank, const char *key, const char *value)
{
        static const char *const keys[] = { ATTRIBUTE_BUILD_ID_GNU, ATTRIBUTE_BUILD_ID_GO,
                                            ATTRIBUTE_BUILD_ID_HTLHASH, ATTRIBUTE_BUILD_ID_PROFILING };

        for (int i = 0; i < 4 && i < *rank; i++) {
                struct build_id found;

                if (strcmp(key, keys[i]) != 0)
                        continue;
                if (i == 1 ? build_id_from_go(&found, value, strlen(value))
                           : build_id_from_hex(&found, value, strlen(value))) {
                        *id = found;
                        *rank = i;
                }
        }
}

enum status otlp_read_mapping(struct otlp_dictionary *d, uint32_t i, struct error *err)
{
        struct address_mapping *range = &d->mapping_ranges[i];
        struct reader r = otlp_entry_reader(d, DICTIONARY_MAPPINGS, i);
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
                        st = otlp_string(d, f.value, &r, &m.file, err);
                else if (f.number == MAPPING_ATTRIBUTES)
                        while (!st && wire_next_number(&f, WIRE_VARINT, &index)) {
                                st = otlp_check_index(d, DICTIONARY_ATTRIBUTES, index, &r, err);
                                if (!st && index && d->attributes[index].usable)
                                        take_build_id(&m.build_id, &rank, otlp_text(d, d->attributes[index].key),
                                                      otlp_text(d, d->attributes[index].value));
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

enum status otlp_read_function(struct otlp_dictionary *d, uint32_t i, struct error *err)
{
        struct otlp_function *fn = &d->function_items[i];
        struct reader r = otlp_entry_reader(d, DICTIONARY_FUNCTIONS, i);
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.type != WIRE_VARINT)
                        continue;
                if (f.number == FUNCTION_NAME)
                        st = otlp_string(d, f.value, &r, &fn->name, err);
                else if (f.number == FUNCTION_SYSTEM_NAME)
                        st = otlp_string(d, f.value, &r, &fn->system_name, err);
                else if (f.number == FUNCTION_FILENAME)
                        st = otlp_string(d, f.value, &r, &fn->file, err);
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP function");
        if (fn->name == 0)
                fn->name = fn->system_name;
        if (fn->name == fn->system_name)
                fn->system_name = 0;
        return st;
}

static enum status read_line(struct otlp_dictionary *d, struct reader r, struct profile_location *l,
                             struct error *err)
{
        struct profile_line line = { 0 };
        struct wire_field f;
        uint32_t number;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.number == LINE_FUNCTION && f.type == WIRE_VARINT) {
                        st = otlp_check_index(d, DICTIONARY_FUNCTIONS, f.value, &r, err);
                        if (!st && f.value) {
                                line.function = d->function_items[f.value].name;
                                line.linkage_name = d->function_items[f.value].system_name;
                                line.file = d->function_items[f.value].file;
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

enum status otlp_read_location(struct otlp_dictionary *d, uint32_t i, struct error *err)
{
        struct reader r = otlp_entry_reader(d, DICTIONARY_LOCATIONS, i);
        struct profile_location l = { .mapping = PROFILE_NONE, .first_line = d->p->lines.count };
        const char *kind = NULL;
        const struct address_mapping nowhere = { .file = "" }, *range = &nowhere;
        struct wire_field f;
        bool kernel_frame = false;
        uint64_t index;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.number == LOCATION_MAPPING && f.type == WIRE_VARINT) {
                        st = otlp_check_index(d, DICTIONARY_MAPPINGS, f.value, &r, err);
                        if (!st && f.value) {
                                l.mapping = d->mappings[f.value];
                                range = &d->mapping_ranges[f.value];
                        }
                } else if (f.number == LOCATION_ADDRESS && f.type == WIRE_VARINT) {
                        l.address = f.value;
                } else if (f.number == LOCATION_LINES && f.type == WIRE_BYTES) {
                        st = read_line(d, f.bytes, &l, err);
                } else if (f.number == LOCATION_ATTRIBUTES) {
                        while (!st && wire_next_number(&f, WIRE_VARINT, &index)) {
                                const char *key;

                                st = otlp_check_index(d, DICTIONARY_ATTRIBUTES, index, &r, err);
                                if (st || !index || !d->attributes[index].usable)
                                        continue;
                                key = otlp_text(d, d->attributes[index].key);
                                if (strcmp(key, ATTRIBUTE_ADDRESS_KIND) == 0)
                                        kind = otlp_text(d, d->attributes[index].value);
                                else if (strcmp(key, ATTRIBUTE_FRAME_TYPE) == 0)
                                        kernel_frame =
                                                strcmp(otlp_text(d, d->attributes[index].value), "kernel") == 0;
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
                l.kind = profile_object_address(ADDRESS_SOURCE_OTLP, range, l.address, &l.address, &l.is_kernel);
        l.is_kernel = kernel_frame || (!kind && l.is_kernel);
        return profile_add_location(d->p, &l, &d->locations[i], err);
}

static enum status unknown_location(struct otlp_dictionary *d, uint32_t *ret, struct error *err)
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

enum status otlp_read_stack(struct otlp_dictionary *d, uint32_t i, struct error *err)
{
        struct reader r = otlp_entry_reader(d, DICTIONARY_STACKS, i);
        uint32_t frames[LIMIT_STACK_FRAMES + 1]; /* one more, so that profile_add_stack() sees that it cuts */
        uint32_t count = 0;
        struct wire_field f;
        uint64_t index;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.number != STACK_LOCATIONS)
                        continue;
                while (!st && wire_next_number(&f, WIRE_VARINT, &index)) {
                        uint32_t location;

                        st = otlp_check_index(d, DICTIONARY_LOCATIONS, index, &r, err);
                        if (st)
                                break;
                        location = d->locations[index];
                        if (index == 0)
                                st = unknown_location(d, &location, err);
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

enum status otlp_read_link(struct otlp_dictionary *d, uint32_t i, struct error *err)
{
        struct reader r = otlp_entry_reader(d, DICTIONARY_LINKS, i);
        struct wire_field f;

        while (wire_next(&r, &f)) {
                if (f.number == LINK_TRACE_ID && f.type == WIRE_BYTES &&
                    f.bytes.size == sizeof d->links[i].trace_id)
                        memcpy(d->links[i].trace_id, f.bytes.data, f.bytes.size);
                else if (f.number == LINK_SPAN_ID && f.type == WIRE_BYTES &&
                         f.bytes.size == sizeof d->links[i].span_id)
                        memcpy(d->links[i].span_id, f.bytes.data, f.bytes.size);
                else if ((f.number == LINK_TRACE_ID || f.number == LINK_SPAN_ID) &&
                         (f.type != WIRE_BYTES || f.bytes.size))
                        return error_at(err, ST_BAD_DATA, r.base, "OTLP link has a trace or span id of %zu bytes",
                                        f.bytes.size);
        }
        return r.failed ? reader_error(&r, err, "OTLP link") : ST_OK;
}
