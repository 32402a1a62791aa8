/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/pprof_tables.h"

#include <inttypes.h>

#include "common/limits.h"
#include "profile-formats/label_list.h"

struct reader pprof_part_reader(const struct pprof_decoder *d, uint32_t part, uint32_t i)
{
        struct reader r;

        reader_init(&r, d->parts[part][i].data, d->parts[part][i].size);
        r.base = (uint64_t)(r.data - d->start);
        return r;
}

enum status pprof_string(struct pprof_decoder *d, uint64_t index, const struct reader *at, uint32_t *ret,
                         struct error *err)
{
        const struct pprof_part *s;
        uint32_t number;
        enum status st;

        if (index == 0) {
                *ret = 0;
                return ST_OK;
        }
        if (index >= d->counts[PPROF_STRING_TABLE])
                return error_at(err, ST_BAD_DATA, at->base,
                                "pprof string index %" PRId64 " is outside the table of %u", (int64_t)index,
                                d->counts[PPROF_STRING_TABLE]);
        if (!d->strings[index]) {
                s = &d->parts[PPROF_STRING_TABLE][index];
                st = profile_add_string(d->p, (const char *)s->data, text_cut(s->data, s->size, LIMIT_NAME_BYTES),
                                        &number, err);
                if (st)
                        return st;
                d->strings[index] = number + 1;
        }
        *ret = d->strings[index] - 1;
        return ST_OK;
}

static struct number_key id_key(uint64_t id)
{
        return (struct number_key){ { (uint32_t)id, (uint32_t)(id >> 32) } };
}

enum status pprof_find_id(const struct number_map *ids, uint64_t id, const char *what, const struct reader *at,
                          uint32_t *ret, struct error *err)
{
        struct number_key key = id_key(id);

        if (!number_map_find(ids, &key, ret))
                return error_at(err, ST_BAD_DATA, at->base,
                                "pprof file refers to %s %" PRIu64 ", which it does not have", what, id);
        return ST_OK;
}

/* Give entry i of a table its id. */
static enum status take_id(struct number_map *ids, uint64_t id, uint32_t i, const char *what,
                           const struct reader *at, struct error *err)
{
        struct number_key key = id_key(id);
        uint32_t number;
        bool fresh;
        enum status st;

        if (id == 0)
                return error_at(err, ST_BAD_DATA, at->base, "pprof %s %u has no id", what, i);
        st = number_map_get(ids, &key, &number, &fresh, err);
        if (!st && !fresh)
                st = error_at(err, ST_BAD_DATA, at->base, "pprof file has %s %" PRIu64 " twice", what, id);
        return st;
}

enum status pprof_read_value_type(struct pprof_decoder *d, struct reader r, struct pprof_value_type *ret,
                                  struct error *err)
{
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.type != WIRE_VARINT)
                        continue;
                if (f.number == PPROF_VALUE_TYPE_TYPE)
                        st = pprof_string(d, f.value, &r, &ret->type, err);
                else if (f.number == PPROF_VALUE_TYPE_UNIT)
                        st = pprof_string(d, f.value, &r, &ret->unit, err);
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "pprof value type");
        return st;
}

enum status pprof_read_mapping(struct pprof_decoder *d, uint32_t i, struct error *err)
{
        struct reader r = pprof_part_reader(d, PPROF_MAPPING, i);
        const struct reader message = r;
        struct address_mapping *range = &d->ranges[i];
        struct profile_mapping m = { 0 };
        uint32_t build_id = 0;
        uint64_t id = 0;
        struct wire_field f;
        const struct profile_string *text;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.type != WIRE_VARINT)
                        continue;
                switch (f.number) {
                case PPROF_ID:
                        id = f.value;
                        break;
                case PPROF_MAPPING_START:
                        range->memory_start = f.value;
                        break;
                case PPROF_MAPPING_LIMIT:
                        range->memory_limit = f.value;
                        break;
                case PPROF_MAPPING_FILE_OFFSET:
                        range->file_offset = f.value;
                        break;
                case PPROF_MAPPING_FILENAME:
                        st = pprof_string(d, f.value, &message, &m.file, err);
                        break;
                case PPROF_MAPPING_BUILD_ID:
                        st = pprof_string(d, f.value, &message, &build_id, err);
                        break;
                }
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "pprof mapping");
        if (!st)
                st = take_id(&d->mapping_ids, id, i, "mapping", &message, err);
        if (st)
                return st;
        text = &d->p->strings.items[build_id];
        if (text->size && !build_id_from_hex(&m.build_id, text->text, text->size) &&
            !build_id_from_go(&m.build_id, text->text, text->size))
                m.build_id.size = 0;
        range->file = profile_text(d->p, m.file);
        if (range->memory_limit > range->memory_start) {
                m.file_offset = range->file_offset;
                m.size = range->memory_limit - range->memory_start;
        }
        return profile_add_mapping(d->p, &m, &d->mappings[i], err);
}

enum status pprof_read_function(struct pprof_decoder *d, uint32_t i, struct error *err)
{
        struct reader r = pprof_part_reader(d, PPROF_FUNCTION, i);
        const struct reader message = r;
        struct pprof_function *fn = &d->functions[i];
        struct wire_field f;
        uint64_t id = 0;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.type != WIRE_VARINT)
                        continue;
                if (f.number == PPROF_ID)
                        id = f.value;
                else if (f.number == PPROF_FUNCTION_NAME)
                        st = pprof_string(d, f.value, &message, &fn->name, err);
                else if (f.number == PPROF_FUNCTION_SYSTEM_NAME)
                        st = pprof_string(d, f.value, &message, &fn->linkage_name, err);
                else if (f.number == PPROF_FUNCTION_FILENAME)
                        st = pprof_string(d, f.value, &message, &fn->file, err);
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "pprof function");
        if (fn->name == 0)
                fn->name = fn->linkage_name;
        if (fn->name == fn->linkage_name)
                fn->linkage_name = 0;
        return st ? st : take_id(&d->function_ids, id, i, "function", &message, err);
}

static enum status read_line(struct pprof_decoder *d, struct reader r, struct profile_location *l, struct error *err)
{
        const struct reader message = r;
        struct profile_line line = { 0 };
        struct wire_field f;
        uint32_t at;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.number == PPROF_LINE_FUNCTION_ID && f.type == WIRE_VARINT && f.value) {
                        st = pprof_find_id(&d->function_ids, f.value, "function", &message, &at, err);
                        if (!st) {
                                line.function = d->functions[at].name;
                                line.linkage_name = d->functions[at].linkage_name;
                                line.file = d->functions[at].file;
                        }
                } else if (f.number == PPROF_LINE_LINE && f.type == WIRE_VARINT) {
                        line.line = (int64_t)f.value > 0 ? (int64_t)f.value : 0;
                }
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "pprof line");
        if (!st && ++l->line_count > LIMIT_LINES_PER_LOCATION)
                st = error_at(err, ST_TOO_BIG, message.base, "pprof location has more than %d lines",
                              LIMIT_LINES_PER_LOCATION);
        return st ? st : profile_add_line(d->p, &line, &at, err);
}

enum status pprof_read_location(struct pprof_decoder *d, uint32_t i, struct error *err)
{
        const struct address_mapping nowhere = { .file = "" }, *range = &nowhere;
        struct reader r = pprof_part_reader(d, PPROF_LOCATION, i);
        const struct reader message = r;
        struct profile_location l = { .mapping = PROFILE_NONE, .first_line = d->p->lines.count };
        struct wire_field f;
        uint64_t id = 0;
        uint32_t at;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.number == PPROF_LOCATION_LINE && f.type == WIRE_BYTES) {
                        st = read_line(d, f.bytes, &l, err);
                } else if (f.type != WIRE_VARINT) {
                        continue;
                } else if (f.number == PPROF_ID) {
                        id = f.value;
                } else if (f.number == PPROF_LOCATION_ADDRESS) {
                        l.address = f.value;
                } else if (f.number == PPROF_LOCATION_MAPPING_ID && f.value) {
                        st = pprof_find_id(&d->mapping_ids, f.value, "mapping", &message, &at, err);
                        if (!st) {
                                l.mapping = d->mappings[at];
                                range = &d->ranges[at];
                        }
                }
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "pprof location");
        if (!st)
                st = take_id(&d->location_ids, id, i, "location", &message, err);
        if (st)
                return st;
        if (l.address == 0 && (l.line_count || l.mapping == PROFILE_NONE))
                l.kind = ADDRESS_NONE;
        else
                l.kind = profile_object_address(ADDRESS_SOURCE_PPROF, range, l.address, &l.address, &l.is_kernel);
        return profile_add_location(d->p, &l, &d->locations[i], err);
}
