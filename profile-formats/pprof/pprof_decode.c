/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protobuf fields may come in any order, so a file is decoded in two steps: collect_pprof_parts() runs twice over the
 * top-level fields, first to count the entries of each table, then to note where each is (struct pprof_part). The
 * entries are then decoded table by table, those that others refer to first: header and sample types, mappings,
 * functions, locations, samples; decode_pprof() has the sequence. A string becomes one of the profile on its first
 * use only.
 *
 * drop_frames acts in three places: mark_dropped_functions() once per function, prune_location() removes the
 * innermost lines of a location, prune_frames() removes locations while a stack is read.
 *
 * In the file: strings and ids; the tables; labels and samples; the top-level fields; the entry points, which unpack
 * gzip and choose the memory budget. Tables of the decoder are in its scratch arena, results in that of the profile.
 */
#include "profile-formats/pprof/pprof.h"

#include <inttypes.h>
#include <string.h>

#include "common/compress/compress.h"
#include "common/limits.h"
#include "profile-formats/hidden_label.h"
#include "profile-formats/number_map.h"
#include "profile-formats/pprof/frame_expressions.h"
#include "profile-formats/pprof/pprof_fields.h"
#include "profile-formats/profile.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/return_address.h"
#include "profile-formats/sample_labels.h"
#include "profile-formats/wire.h"

struct pprof_part {
        const uint8_t *data;
        uint32_t size;
};

struct pprof_function {
        uint32_t name, linkage_name, file;
        int64_t start_line; /* 0 unknown */
        bool is_plain;      /* the sender gave one name only */
        bool is_dropped;    /* by drop_frames */
};

/*
 * What is left of a location whose innermost lines, up to the last dropped one, are removed. In a stack the locations
 * beneath such a one are removed, if a location without dropped lines is above it.
 */
enum pprof_pruning { PRUNED_NONE, PRUNED_PART, PRUNED_ALL };

struct pprof_value_type {
        uint32_t type, unit;
};

/*
 * Tables may come in any order and after the samples, so the entries are collected first. Ids are arbitrary: each table
 * has a map from id to position.
 */
struct pprof_decoder {
        struct profile *p;
        struct arena scratch;
        const uint8_t *start;
        struct pprof_part *parts[PPROF_STRING_TABLE + 1];
        uint32_t counts[PPROF_STRING_TABLE + 1];
        uint32_t *strings;     /* of the profile, plus one; 0: not yet added */
        uint32_t *label_texts; /* the same, truncated to LIMIT_LABEL_BYTES */
        uint32_t *number_keys; /* the same, as the name of a numeric label */
        struct number_map mapping_ids, location_ids, function_ids;
        struct address_mapping *ranges;
        uint32_t *mappings, *locations;
        uint8_t *pruned; /* enum pprof_pruning by location */
        struct pprof_function *functions;
        uint32_t drop_frames, keep_frames; /* strings, 0: none */
        uint32_t types[LIMIT_PROFILE_TYPES];
        uint32_t default_type; /* string: sample type that readers show first; 0: none */
        uint32_t default_type_label;
        struct pprof_value_type period_type;
        uint32_t type_comments[LIMIT_PROFILE_TYPES]; /* strings that begin with TYPE_COMMENT_PREFIX */
        uint32_t type_comment_count;
        int64_t period, time_unix_ns, duration_ns;
        struct buf values;
        bool has_object_addresses;
};

/* The bytes of an entry, with their place in the file. */
static struct reader open_pprof_part(const struct pprof_decoder *d, uint32_t part, uint32_t i)
{
        struct reader r;

        reader_init(&r, d->parts[part][i].data, d->parts[part][i].size);
        r.base = (uint64_t)(r.data - d->start);
        return r;
}

/* The profile's string for a string index. */
static enum status read_pprof_string(struct pprof_decoder *d, uint64_t index, const struct reader *at, uint32_t *ret,
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
                return error_at(err, ST_BAD_DATA, at->base, "pprof string index %" PRId64 " is outside the table of %u",
                                (int64_t)index, d->counts[PPROF_STRING_TABLE]);
        if (!d->strings[index]) {
                s = &d->parts[PPROF_STRING_TABLE][index];
                st = profile_add_string(d->p, (const char *)s->data, utf8_truncate(s->data, s->size, LIMIT_NAME_BYTES),
                                        &number, err);
                if (st)
                        return st;
                d->strings[index] = number + 1;
        }
        *ret = d->strings[index] - 1;
        return ST_OK;
}

/* As read_pprof_string(), truncated to the size of a label. The result is kept: a reference is smaller than the text.
 */
static enum status read_label_text(struct pprof_decoder *d, uint64_t index, const struct reader *at, uint32_t *ret,
                                   struct error *err)
{
        uint32_t whole, number;
        const struct profile_string *s;
        enum status st = read_pprof_string(d, index, at, &whole, err);

        if (st)
                return st;
        s = &d->p->strings.items[whole];
        if (s->size > LIMIT_LABEL_BYTES && !d->label_texts[index]) {
                st = profile_add_string(d->p, s->text, utf8_truncate(s->text, s->size, LIMIT_LABEL_BYTES), &number,
                                        err);
                if (st)
                        return st;
                d->label_texts[index] = number + 1;
        }
        *ret = index && d->label_texts[index] ? d->label_texts[index] - 1 : whole;
        return ST_OK;
}

/* The name of the numeric label of a key (hidden_label.h); *ret 0: the key is empty. */
static enum status read_number_key(struct pprof_decoder *d, uint64_t index, const struct reader *at, uint32_t *ret,
                                   struct error *err)
{
        char name[sizeof NUMBER_LABEL_PREFIX + LIMIT_LABEL_BYTES];
        uint32_t key;
        enum status st = read_label_text(d, index, at, &key, err);

        if (!st && key && !d->number_keys[index]) {
                int n = snprintf(name, sizeof name, NUMBER_LABEL_PREFIX "%s", profile_text(d->p, key));

                st = profile_add_string(d->p, name, utf8_truncate(name, (size_t)n, LIMIT_LABEL_BYTES),
                                        &d->number_keys[index], err);
        }
        if (!st)
                *ret = key ? d->number_keys[index] : 0;
        return st;
}

static struct number_key make_id_key(uint64_t id)
{
        return (struct number_key){ { (uint32_t)id, (uint32_t)(id >> 32) } };
}

/* Find the position of the entry with an id; ST_BAD_DATA without one. */
static enum status find_pprof_id(const struct number_map *ids, uint64_t id, const char *what, const struct reader *at,
                                 uint32_t *ret, struct error *err)
{
        struct number_key key = make_id_key(id);

        if (!number_map_find(ids, &key, ret))
                return error_at(err, ST_BAD_DATA, at->base, "pprof file refers to unknown %s %" PRIu64, what, id);
        return ST_OK;
}

/* Register the id of entry i. */
static enum status register_pprof_id(struct number_map *ids, uint64_t id, uint32_t i, const char *what,
                                     const struct reader *at, struct error *err)
{
        struct number_key key = make_id_key(id);
        uint32_t number;
        bool fresh;
        enum status st;

        if (id == 0)
                return error_at(err, ST_BAD_DATA, at->base, "pprof %s %u has no id", what, i);
        st = number_map_get(ids, &key, &number, &fresh, err);
        if (!st && !fresh)
                st = error_at(err, ST_BAD_DATA, at->base,
                              "pprof file has two %ss with id %" PRIu64 "; it may be several concatenated profiles",
                              what, id);
        return st;
}

static enum status read_pprof_value_type(struct pprof_decoder *d, struct reader r, struct pprof_value_type *ret,
                                         struct error *err)
{
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.type != WIRE_VARINT)
                        continue;
                if (f.number == PPROF_VALUE_TYPE_TYPE)
                        st = read_pprof_string(d, f.value, &r, &ret->type, err);
                else if (f.number == PPROF_VALUE_TYPE_UNIT)
                        st = read_pprof_string(d, f.value, &r, &ret->unit, err);
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "pprof value type");
        return st;
}

/* Read entry i. Mappings and functions have to be read before locations, which refer to them. */
static enum status read_pprof_mapping(struct pprof_decoder *d, uint32_t i, struct error *err)
{
        struct reader r = open_pprof_part(d, PPROF_MAPPING, i);
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
                        st = read_pprof_string(d, f.value, &message, &m.file, err);
                        break;
                case PPROF_MAPPING_BUILD_ID:
                        st = read_pprof_string(d, f.value, &message, &build_id, err);
                        break;
                }
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "pprof mapping");
        if (!st)
                st = register_pprof_id(&d->mapping_ids, id, i, "mapping", &message, err);
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

static enum status read_pprof_function(struct pprof_decoder *d, uint32_t i, struct error *err)
{
        struct reader r = open_pprof_part(d, PPROF_FUNCTION, i);
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
                        st = read_pprof_string(d, f.value, &message, &fn->name, err);
                else if (f.number == PPROF_FUNCTION_SYSTEM_NAME)
                        st = read_pprof_string(d, f.value, &message, &fn->linkage_name, err);
                else if (f.number == PPROF_FUNCTION_FILENAME)
                        st = read_pprof_string(d, f.value, &message, &fn->file, err);
                else if (f.number == PPROF_FUNCTION_START_LINE)
                        fn->start_line = (int64_t)f.value > 0 ? (int64_t)f.value : 0;
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "pprof function");
        if (fn->name == 0)
                fn->name = fn->linkage_name;
        if (fn->name == fn->linkage_name) {
                fn->linkage_name = 0;
                fn->is_plain = true;
        }
        return st ? st : register_pprof_id(&d->function_ids, id, i, "function", &message, err);
}

/*
 * Mark the functions that drop_frames names. Without the expressions a file is complete, only less clear, so it is not
 * refused if they cannot be used.
 */
static enum status mark_dropped_functions(struct pprof_decoder *d, size_t input_bytes, struct error *err)
{
        struct profile *p = d->p;
        struct frame_expressions *dropped = NULL;
        struct error why = { 0 };
        enum status st;

        if (!d->drop_frames)
                return ST_OK;
        st = frame_expressions_create(profile_text(p, d->drop_frames), profile_text(p, d->keep_frames), input_bytes,
                                      &dropped, &why);
        for (uint32_t i = 0; !st && i < d->counts[PPROF_FUNCTION]; i++) {
                struct pprof_function *fn = &d->functions[i];

                fn->is_dropped = frame_expressions_match(dropped, profile_text(p, fn->name), fn->is_plain);
        }
        if (!st)
                st = frame_expressions_check(dropped, &why);
        frame_expressions_destroy(dropped);
        for (uint32_t i = 0; st && i < d->counts[PPROF_FUNCTION]; i++)
                d->functions[i].is_dropped = false;
        if (st == ST_NO_MEMORY)
                return error_no_memory(err);
        if (st)
                snprintf(p->note, sizeof p->note, "drop_frames and keep_frames are ignored: %.190s", why.text);
        return ST_OK;
}

/* @param dropped_ret  set to the number of lines so far if the line's function is dropped. */
static enum status read_pprof_line(struct pprof_decoder *d, struct reader r, struct profile_location *l,
                                   uint32_t *dropped_ret, struct error *err)
{
        const struct reader message = r;
        struct profile_line line = { 0 };
        struct wire_field f;
        bool is_dropped = false;
        uint32_t at;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.number == PPROF_LINE_FUNCTION_ID && f.type == WIRE_VARINT && f.value) {
                        st = find_pprof_id(&d->function_ids, f.value, "function", &message, &at, err);
                        if (!st) {
                                line.function = d->functions[at].name;
                                line.linkage_name = d->functions[at].linkage_name;
                                line.file = d->functions[at].file;
                                line.start_line = d->functions[at].start_line;
                                is_dropped = d->functions[at].is_dropped;
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
        if (is_dropped)
                *dropped_ret = l->line_count;
        return st ? st : profile_add_line(d->p, &line, &at, err);
}

/* Object addresses need not be in the range of their mapping, which has process addresses. */
static void normalize_pprof_address(const struct pprof_decoder *d, struct address_mapping range,
                                    struct profile_location *l)
{
        const bool has_address = l->address || (!l->line_count && l->mapping != PROFILE_NONE);
        bool is_kernel;

        if (d->has_object_addresses)
                range.memory_start = range.memory_limit = 0;
        l->kind = normalize_sender_address(ADDRESS_SOURCE_PPROF, &range, l->address, &l->address, &is_kernel);
        if (!has_address) {
                l->address = 0;
                l->kind = ADDRESS_NONE;
        }
        l->frame_type = is_kernel ? PROFILE_FRAME_KERNEL : PROFILE_FRAME_UNKNOWN;
}

/*
 * Files without mappings may nevertheless have mapping ids in their locations. Readers take such an id for an unknown
 * mapping, as they do 0: names and lines do not depend on it.
 */
static bool find_pprof_mapping(const struct pprof_decoder *d, uint64_t id, uint32_t *ret)
{
        const struct number_key key = make_id_key(id);

        return id && number_map_find(&d->mapping_ids, &key, ret);
}

/* Remove the innermost lines of location i, unless these are all. */
static void prune_location(struct pprof_decoder *d, uint32_t i, uint32_t dropped_lines, struct profile_location *l)
{
        if (!dropped_lines)
                return;
        d->pruned[i] = dropped_lines == l->line_count ? PRUNED_ALL : PRUNED_PART;
        if (d->pruned[i] == PRUNED_ALL)
                return;
        l->first_line += dropped_lines;
        l->line_count -= dropped_lines;
}

static enum status read_pprof_location(struct pprof_decoder *d, uint32_t i, struct error *err)
{
        const struct address_mapping nowhere = { .file = "" }, *range = &nowhere;
        struct reader r = open_pprof_part(d, PPROF_LOCATION, i);
        const struct reader message = r;
        struct profile_location l = { .mapping = PROFILE_NONE, .first_line = d->p->lines.count };
        struct wire_field f;
        uint64_t id = 0, mapping_id = 0;
        uint32_t at, dropped_lines = 0;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.number == PPROF_LOCATION_LINE && f.type == WIRE_BYTES) {
                        st = read_pprof_line(d, f.bytes, &l, &dropped_lines, err);
                } else if (f.type != WIRE_VARINT) {
                        continue;
                } else if (f.number == PPROF_ID) {
                        id = f.value;
                } else if (f.number == PPROF_LOCATION_ADDRESS) {
                        l.address = f.value;
                } else if (f.number == PPROF_LOCATION_MAPPING_ID) {
                        mapping_id = f.value;
                }
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "pprof location");
        if (!st)
                st = register_pprof_id(&d->location_ids, id, i, "location", &message, err);
        if (st)
                return st;
        prune_location(d, i, dropped_lines, &l);
        if (find_pprof_mapping(d, mapping_id, &at)) {
                l.mapping = d->mappings[at];
                range = &d->ranges[at];
        }
        normalize_pprof_address(d, *range, &l);
        return profile_add_location(d->p, &l, &d->locations[i], err);
}

static const char *const part_names[PPROF_STRING_TABLE + 1] = {
        [PPROF_SAMPLE_TYPE] = "sample types", [PPROF_SAMPLE] = "samples",     [PPROF_MAPPING] = "mappings",
        [PPROF_LOCATION] = "locations",       [PPROF_FUNCTION] = "functions", [PPROF_STRING_TABLE] = "strings",
};

static const uint32_t part_limits[PPROF_STRING_TABLE + 1] = {
        [PPROF_SAMPLE_TYPE] = LIMIT_PROFILE_TYPES, [PPROF_SAMPLE] = LIMIT_SAMPLES,
        [PPROF_MAPPING] = LIMIT_LOCATIONS,         [PPROF_LOCATION] = LIMIT_LOCATIONS,
        [PPROF_FUNCTION] = LIMIT_LOCATIONS,        [PPROF_STRING_TABLE] = LIMIT_STRINGS,
};

/* ---- samples --------------------------------------------------------------------------- */

struct pprof_label {
        uint64_t key, str, unit; /* string indices */
        int64_t number;
};

/* Add a label without text. */
static enum status add_pprof_number(struct pprof_decoder *d, const struct pprof_label *l, const struct reader *at,
                                    struct sample_labels *labels, struct error *err)
{
        char text[LIMIT_LABEL_BYTES + 32];
        uint32_t key = 0, unit = 0, value;
        int n;
        enum status st = read_number_key(d, l->key, at, &key, err);

        if (!st)
                st = read_label_text(d, l->unit, at, &unit, err);
        if (st || !key || (!l->number && !l->unit)) /* the same as no label, as in Go */
                return st;
        n = snprintf(text, sizeof text, "%" PRId64 "%s%s", l->number, unit ? " " : "", profile_text(d->p, unit));
        st = profile_add_string(d->p, text, utf8_truncate(text, (size_t)n, LIMIT_LABEL_BYTES), &value, err);
        return st ? st : sample_labels_set(labels, key, value, err);
}

static enum status read_pprof_label(struct pprof_decoder *d, struct reader r, struct sample_labels *labels,
                                    struct error *err)
{
        const struct reader message = r;
        struct pprof_label l = { 0 };
        uint32_t key = 0, str = 0;
        struct wire_field f;
        enum status st;

        while (wire_next(&r, &f)) {
                if (f.type != WIRE_VARINT)
                        continue;
                if (f.number == PPROF_LABEL_KEY)
                        l.key = f.value;
                else if (f.number == PPROF_LABEL_STR)
                        l.str = f.value;
                else if (f.number == PPROF_LABEL_NUM)
                        l.number = (int64_t)f.value;
                else if (f.number == PPROF_LABEL_NUM_UNIT)
                        l.unit = f.value;
        }
        if (r.failed)
                return reader_error(&r, err, "pprof label");
        st = read_label_text(d, l.str, &message, &str, err);
        if (st || !str)
                return st ? st : add_pprof_number(d, &l, &message, labels, err);
        st = read_label_text(d, l.key, &message, &key, err);
        return st || !key ? st : sample_labels_set(labels, key, str, err);
}

struct pprof_frames {
        uint32_t items[LIMIT_STACK_FRAMES + 1]; /* one more, so that profile_add_stack() detects truncation */
        uint32_t count;
        uint32_t last; /* location of the file, if `pruned` */
        enum pprof_pruning pruned;
};

/* Before a location is added: remove all so far if they are beneath a pruned one. */
static void prune_frames(const struct pprof_decoder *d, uint32_t location, struct pprof_frames *f)
{
        const enum pprof_pruning pruned = d->pruned[location];

        if (f->pruned && !pruned) {
                f->count = 0;
                if (f->pruned == PRUNED_PART)
                        f->items[f->count++] = d->locations[f->last];
        }
        f->last = location;
        f->pruned = pruned;
}

static enum status read_pprof_sample(struct pprof_decoder *d, struct reader r, struct error *err)
{
        struct pprof_frames frames;
        const struct reader message = r;
        struct profile_sample s = { .time_unix_ns = d->time_unix_ns, .duration_ns = d->duration_ns };
        struct sample_labels labels = { .count = 0 };
        uint32_t at;
        struct wire_field f;
        uint64_t v;
        enum status st = ST_OK;

        frames.count = 0;
        frames.pruned = PRUNED_NONE;
        buf_clear(&d->values);
        while (!st && wire_next(&r, &f)) {
                switch (f.number) {
                case PPROF_SAMPLE_LOCATION_ID:
                        while (!st && wire_next_number(&f, WIRE_VARINT, &v)) {
                                st = find_pprof_id(&d->location_ids, v, "location", &message, &at, err);
                                if (!st && d->drop_frames)
                                        prune_frames(d, at, &frames);
                                if (!st && frames.count <= LIMIT_STACK_FRAMES)
                                        frames.items[frames.count++] = d->locations[at];
                        }
                        break;
                case PPROF_SAMPLE_VALUE:
                        while (wire_next_number(&f, WIRE_VARINT, &v))
                                buf_append(&d->values, &v, sizeof v);
                        break;
                case PPROF_SAMPLE_LABEL:
                        if (f.type == WIRE_BYTES)
                                st = read_pprof_label(d, f.bytes, &labels, err);
                        continue;
                default:
                        continue;
                }
                if (!st && f.bytes.failed)
                        st = reader_error(&f.bytes, err, "pprof sample");
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "pprof sample");
        if (!st && (d->values.failed || d->values.size / sizeof v != d->counts[PPROF_SAMPLE_TYPE]))
                st = error_at(err, ST_BAD_DATA, message.base,
                              "pprof sample has another number of values than the file's %u sample types",
                              d->counts[PPROF_SAMPLE_TYPE]);
        if (!st && d->default_type && labels.count < LIMIT_LABELS_PER_SAMPLE)
                st = sample_labels_set(&labels, d->default_type_label, d->default_type, err);
        if (!st)
                st = profile_add_stack(d->p, frames.items, frames.count, &s.stack, err);
        if (!st)
                st = profile_add_label_set(d->p, labels.items, labels.count, &s.first_label, err);
        s.label_count = labels.count;
        for (uint32_t i = 0; !st && i < d->counts[PPROF_SAMPLE_TYPE]; i++) {
                memcpy(&s.value, d->values.data + i * sizeof s.value, sizeof s.value);
                s.type = d->types[i];
                if (s.value)
                        st = profile_add_sample(d->p, &s, &at, err);
        }
        return st;
}

/* ---- the file --------------------------------------------------------------------------- */

/*
 * The bytes of several profiles one after the other are one message, whose indices are those of the last profile and
 * whose tables are those of all: with ids of their own nothing else would tell. The fields from the time to the period
 * are in a profile once.
 */
static enum status report_concatenated_profiles(struct error *err)
{
        return error_set(err, ST_BAD_DATA,
                         "the pprof file seems to be several concatenated profiles; send each as a file of its own");
}

static enum status collect_pprof_parts(struct pprof_decoder *d, const void *data, size_t n, bool store,
                                       struct error *err)
{
        bool seen[PPROF_PERIOD + 1] = { false };
        struct reader r;
        struct wire_field f;

        memset(d->counts, 0, sizeof d->counts);
        reader_init(&r, data, n);
        while (wire_next(&r, &f)) {
                if (f.number >= PPROF_TIME_NANOS && f.number <= PPROF_PERIOD) {
                        if (seen[f.number])
                                return report_concatenated_profiles(err);
                        seen[f.number] = true;
                }
                if (f.number > PPROF_STRING_TABLE || f.type != WIRE_BYTES)
                        continue;
                if (store)
                        d->parts[f.number][d->counts[f.number]] =
                                (struct pprof_part){ f.bytes.data, (uint32_t)f.bytes.size };
                if (++d->counts[f.number] > part_limits[f.number])
                        return error_set(err, ST_TOO_BIG, "pprof file has more than %u %s", part_limits[f.number],
                                         part_names[f.number]);
        }
        return r.failed ? reader_error(&r, err, "pprof file") : ST_OK;
}

/* Keep the comments that state types. Comments outside of the string table are ignored. */
static enum status read_pprof_comments(struct pprof_decoder *d, struct wire_field f, struct error *err)
{
        const size_t n = strlen(TYPE_COMMENT_PREFIX);
        uint64_t index;
        enum status st = ST_OK;

        while (!st && d->type_comment_count < LIMIT_PROFILE_TYPES && wire_next_number(&f, WIRE_VARINT, &index)) {
                const struct pprof_part *texts = d->parts[PPROF_STRING_TABLE];

                if (!index || index >= d->counts[PPROF_STRING_TABLE] || texts[index].size < n ||
                    memcmp(texts[index].data, TYPE_COMMENT_PREFIX, n) != 0)
                        continue;
                st = read_pprof_string(d, index, &f.bytes, &d->type_comments[d->type_comment_count++], err);
        }
        return st;
}

/*
 * Find the parts of the type that a comment states for a name. The unit is that of the file, which tools may convert,
 * and the file's period is one of its period type only.
 * @param parts  of the type by its name; they are replaced.
 * @return false: no comment states it.
 */
static bool find_stated_type(struct pprof_decoder *d, struct profile_type_parts *parts)
{
        const size_t prefix = strlen(TYPE_COMMENT_PREFIX), n = strlen(parts->sample_type);
        const size_t separator = strlen(TYPE_COMMENT_SEPARATOR);

        for (uint32_t i = 0; i < d->type_comment_count; i++) {
                const struct profile_string *s = &d->p->strings.items[d->type_comments[i]];
                struct profile_type_parts stated;
                char *id;

                if (s->size < prefix + n + separator || s->size - prefix - n - separator > LIMIT_LABEL_BYTES ||
                    memcmp(s->text + prefix, parts->sample_type, n) != 0 ||
                    memcmp(s->text + prefix + n, TYPE_COMMENT_SEPARATOR, separator) != 0)
                        continue;
                id = arena_strndup(&d->scratch, s->text + prefix + n + separator, s->size - prefix - n - separator);
                if (!id || !profile_type_split(id, &stated))
                        continue;
                stated.sample_unit = parts->sample_unit;
                if (strcmp(stated.period_type, parts->period_type) == 0 &&
                    strcmp(stated.period_unit, parts->period_unit) == 0)
                        stated.period = parts->period;
                *parts = stated;
                return true;
        }
        return false;
}

static enum status read_pprof_type(struct pprof_decoder *d, uint32_t i, const char *name, struct error *err)
{
        struct profile *p = d->p;
        struct profile_type_parts parts = { .name = name, .period = d->period };
        struct pprof_value_type t = { 0 };
        enum status st = read_pprof_value_type(d, open_pprof_part(d, PPROF_SAMPLE_TYPE, i), &t, err);

        if (st)
                return st;
        parts.sample_type = profile_text(p, t.type);
        parts.sample_unit = profile_text(p, t.unit);
        parts.period_type = profile_text(p, d->period_type.type);
        parts.period_unit = profile_text(p, d->period_type.unit);
        if (!name && find_stated_type(d, &parts))
                p->states_types = true;
        st = profile_type_add(p, &parts, &d->types[i], err);
        if (!st && d->default_type && t.type == d->default_type)
                p->first_shown_type = d->types[i] + 1;
        return st;
}

static enum status read_pprof_header(struct pprof_decoder *d, const void *data, size_t n, const char *name,
                                     struct error *err)
{
        struct profile *p = d->p;
        uint64_t default_type = 0, drop_frames = 0, keep_frames = 0;
        struct reader r;
        struct wire_field f;
        enum status st = ST_OK;

        reader_init(&r, data, n);
        while (!st && wire_next(&r, &f)) {
                if (f.number == PPROF_TIME_NANOS && f.type == WIRE_VARINT)
                        d->time_unix_ns = (int64_t)f.value;
                else if (f.number == PPROF_DURATION_NANOS && f.type == WIRE_VARINT)
                        d->duration_ns = (int64_t)f.value;
                else if (f.number == PPROF_PERIOD && f.type == WIRE_VARINT)
                        d->period = (int64_t)f.value;
                else if (f.number == PPROF_DEFAULT_SAMPLE_TYPE && f.type == WIRE_VARINT)
                        default_type = f.value;
                else if (f.number == PPROF_DROP_FRAMES && f.type == WIRE_VARINT)
                        drop_frames = f.value;
                else if (f.number == PPROF_KEEP_FRAMES && f.type == WIRE_VARINT)
                        keep_frames = f.value;
                else if (f.number == PPROF_PERIOD_TYPE && f.type == WIRE_BYTES)
                        st = read_pprof_value_type(d, f.bytes, &d->period_type, err);
                else if (f.number == PPROF_COMMENT)
                        st = read_pprof_comments(d, f, err);
        }
        if (!st)
                st = read_pprof_string(d, drop_frames, &r, &d->drop_frames, err);
        if (!st)
                st = read_pprof_string(d, keep_frames, &r, &d->keep_frames, err);
        if (!st)
                st = read_label_text(d, default_type, &r, &d->default_type, err);
        if (!st && d->default_type)
                st = profile_add_string(p, DEFAULT_TYPE_LABEL, strlen(DEFAULT_TYPE_LABEL), &d->default_type_label, err);
        if (!st && d->counts[PPROF_SAMPLE] && d->counts[PPROF_SAMPLE_TYPE] == 0)
                st = error_set(err, ST_BAD_DATA, "pprof file has samples, but no sample type");
        for (uint32_t i = 0; !st && i < d->counts[PPROF_SAMPLE_TYPE]; i++)
                st = read_pprof_type(d, i, name, err);
        return st;
}

static void *alloc_pprof_table(struct pprof_decoder *d, uint32_t part, size_t size)
{
        return arena_alloc_array(&d->scratch, d->counts[part] + 1u, size);
}

static enum status decode_pprof(struct pprof_decoder *d, const void *data, size_t n, const char *name,
                                struct error *err)
{
        enum status st = collect_pprof_parts(d, data, n, false, err);

        if (st)
                return st;
        if (n && d->counts[PPROF_STRING_TABLE] == 0)
                return error_set(err, ST_BAD_DATA, "not a pprof file: it has no string table");
        for (uint32_t part = 1; part <= PPROF_STRING_TABLE; part++)
                d->parts[part] = alloc_pprof_table(d, part, sizeof *d->parts[part]);
        d->strings = alloc_pprof_table(d, PPROF_STRING_TABLE, sizeof *d->strings);
        d->label_texts = alloc_pprof_table(d, PPROF_STRING_TABLE, sizeof *d->label_texts);
        d->number_keys = alloc_pprof_table(d, PPROF_STRING_TABLE, sizeof *d->number_keys);
        d->mappings = alloc_pprof_table(d, PPROF_MAPPING, sizeof *d->mappings);
        d->ranges = alloc_pprof_table(d, PPROF_MAPPING, sizeof *d->ranges);
        d->functions = alloc_pprof_table(d, PPROF_FUNCTION, sizeof *d->functions);
        d->locations = alloc_pprof_table(d, PPROF_LOCATION, sizeof *d->locations);
        d->pruned = alloc_pprof_table(d, PPROF_LOCATION, sizeof *d->pruned);
        for (uint32_t part = 1; part <= PPROF_STRING_TABLE; part++)
                if (!d->parts[part])
                        return error_set(err, ST_TOO_BIG, "pprof file has too many %s", part_names[part]);
        if (!d->strings || !d->label_texts || !d->number_keys || !d->mappings || !d->ranges || !d->functions ||
            !d->locations || !d->pruned)
                return error_set(err, ST_TOO_BIG, "pprof file needs more than %zu bytes of memory", d->scratch.max);
        st = collect_pprof_parts(d, data, n, true, err);
        if (!st && d->counts[PPROF_STRING_TABLE] && d->parts[PPROF_STRING_TABLE][0].size)
                st = error_set(err, ST_BAD_DATA, "pprof string 0 is not empty");
        if (!st)
                st = read_pprof_header(d, data, n, name, err);
        for (uint32_t i = 0; !st && i < d->counts[PPROF_MAPPING]; i++)
                st = read_pprof_mapping(d, i, err);
        for (uint32_t i = 0; !st && i < d->counts[PPROF_FUNCTION]; i++)
                st = read_pprof_function(d, i, err);
        if (!st)
                st = mark_dropped_functions(d, n, err);
        for (uint32_t i = 0; !st && i < d->counts[PPROF_LOCATION]; i++)
                st = read_pprof_location(d, i, err);
        for (uint32_t i = 0; !st && i < d->counts[PPROF_SAMPLE]; i++)
                st = read_pprof_sample(d, open_pprof_part(d, PPROF_SAMPLE, i), err);
        return st;
}

struct pprof_source {
        const void *data;
        size_t n;
        const char *name;
        struct pprof_files *files;
        enum memory_use use;
};

static enum status decode_pprof_source(const struct pprof_source *source, struct profile *ret, struct error *err)
{
        const void *data = source->data;
        size_t n = source->n;
        _cleanup_buf_ struct buf unpacked;
        struct pprof_decoder d = { 0 };
        struct profile p;
        enum status st;

        buf_init_budget(&unpacked, source->files->unpacked_left, source->use);
        if (gzip_detect(data, n)) {
                st = gzip_decompress(data, n, &unpacked, err);
                if (st)
                        return error_prefix(err, st, "pprof file");
                data = unpacked.data;
                n = unpacked.size;
                source->files->unpacked_left -= n;
                if (gzip_detect(data, n))
                        return error_set(err, ST_BAD_DATA,
                                         "pprof file is compressed twice with gzip; turn off the compression of "
                                         "responses at the target or its proxy");
        }
        if (n > UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "pprof file is larger than 4 GiB");
        st = profile_init_budget(&p, LIMIT_PROFILE_MEMORY_BYTES, source->use, err);
        if (st)
                return st;
        profile_limit_work(&p, n);
        d.p = &p;
        d.start = data;
        d.has_object_addresses = source->files->has_object_addresses;
        arena_init_budget(&d.scratch, LIMIT_PROFILE_MEMORY_BYTES, source->use);
        buf_init(&d.values, sizeof(uint64_t) * LIMIT_PROFILE_TYPES);
        st = decode_pprof(&d, data, n, source->name, err);
        arena_deinit(&d.scratch);
        buf_deinit(&d.values);
        number_map_deinit(&d.mapping_ids);
        number_map_deinit(&d.location_ids);
        number_map_deinit(&d.function_ids);
        p.max_work = 0; /* additions by the caller are not part of the input */
        if (st) {
                profile_deinit(&p);
                return st;
        }
        *ret = p;
        return ST_OK;
}

enum status pprof_decode_one_of(const void *data, size_t n, const char *name, struct pprof_files *files,
                                struct profile *ret, struct error *err)
{
        const struct pprof_source source = { data, n, name, files, MEMORY_INGEST };

        return decode_pprof_source(&source, ret, err);
}

enum status pprof_decode(const void *data, size_t n, const char *name, struct profile *ret, struct error *err)
{
        struct pprof_files files = { .unpacked_left = LIMIT_HTTP_BODY_BYTES };

        return pprof_decode_one_of(data, n, name, &files, ret, err);
}

enum status pprof_decode_for_query(const void *data, size_t n, struct profile *ret, struct error *err)
{
        struct pprof_files files = { .unpacked_left = LIMIT_HTTP_BODY_BYTES };
        const struct pprof_source source = { data, n, NULL, &files, MEMORY_QUERIES };

        return decode_pprof_source(&source, ret, err);
}
