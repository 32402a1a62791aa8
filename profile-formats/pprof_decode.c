/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/pprof.h"

#include <inttypes.h>
#include <string.h>

#include "common/compress.h"
#include "common/limits.h"
#include "profile-formats/label_list.h"
#include "profile-formats/pprof_tables.h"
#include "profile-formats/profile_type.h"

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

static enum status read_label(struct pprof_decoder *d, struct reader r, struct label_list *labels, struct error *err)
{
        const struct reader message = r;
        uint32_t key = 0, str = 0;
        char number[24];
        int64_t num = 0;
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.type != WIRE_VARINT)
                        continue;
                if (f.number == PPROF_LABEL_KEY)
                        st = pprof_string(d, f.value, &message, &key, err);
                else if (f.number == PPROF_LABEL_STR)
                        st = pprof_string(d, f.value, &message, &str, err);
                else if (f.number == PPROF_LABEL_NUM)
                        num = (int64_t)f.value;
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "pprof label");
        if (st || key == 0)
                return st;
        if (str && d->p->strings.items[str].size <= LIMIT_LABEL_BYTES)
                return label_list_set(labels, key, str, err);
        if (str)
                return label_list_set_text(labels, d->p, profile_text(d->p, key), profile_text(d->p, str),
                                           d->p->strings.items[str].size, err);
        return label_list_set_text(labels, d->p, profile_text(d->p, key), number,
                                   (size_t)snprintf(number, sizeof number, "%" PRId64, num), err);
}

static enum status read_sample(struct pprof_decoder *d, struct reader r, struct error *err)
{
        uint32_t frames[LIMIT_STACK_FRAMES + 1]; /* one more, so that profile_add_stack() sees that it cuts */
        const struct reader message = r;
        struct profile_sample s = { .time_unix_ns = d->time_unix_ns, .duration_ns = d->duration_ns };
        struct label_list labels = { .count = 0 };
        uint32_t count = 0, at;
        struct wire_field f;
        uint64_t v;
        enum status st = ST_OK;

        buf_clear(&d->values);
        while (!st && wire_next(&r, &f)) {
                switch (f.number) {
                case PPROF_SAMPLE_LOCATION_ID:
                        while (!st && wire_next_number(&f, WIRE_VARINT, &v)) {
                                st = pprof_find_id(&d->location_ids, v, "location", &message, &at, err);
                                if (!st && count <= LIMIT_STACK_FRAMES)
                                        frames[count++] = d->locations[at];
                        }
                        break;
                case PPROF_SAMPLE_VALUE:
                        while (wire_next_number(&f, WIRE_VARINT, &v))
                                buf_append(&d->values, &v, sizeof v);
                        break;
                case PPROF_SAMPLE_LABEL:
                        if (f.type == WIRE_BYTES)
                                st = read_label(d, f.bytes, &labels, err);
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
        if (!st)
                st = profile_add_stack(d->p, frames, count, &s.stack, err);
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

static enum status walk_parts(struct pprof_decoder *d, const void *data, size_t n, bool store, struct error *err)
{
        struct reader r;
        struct wire_field f;

        memset(d->counts, 0, sizeof d->counts);
        reader_init(&r, data, n);
        while (wire_next(&r, &f)) {
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

static enum status read_head(struct pprof_decoder *d, const void *data, size_t n, const char *name, struct error *err)
{
        struct profile *p = d->p;
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
                else if (f.number == PPROF_PERIOD_TYPE && f.type == WIRE_BYTES)
                        st = pprof_read_value_type(d, f.bytes, &d->period_type, err);
        }
        if (!st && d->counts[PPROF_SAMPLE] && d->counts[PPROF_SAMPLE_TYPE] == 0)
                st = error_set(err, ST_BAD_DATA, "pprof file has samples, but no sample type");
        for (uint32_t i = 0; !st && i < d->counts[PPROF_SAMPLE_TYPE]; i++) {
                struct pprof_value_type t = { 0 };

                st = pprof_read_value_type(d, pprof_part_reader(d, PPROF_SAMPLE_TYPE, i), &t, err);
                if (!st)
                        st = profile_type_add(p, name, profile_text(p, t.type), profile_text(p, t.unit),
                                              profile_text(p, d->period_type.type),
                                              profile_text(p, d->period_type.unit), d->period, &d->types[i], err);
        }
        return st;
}

static void *table(struct pprof_decoder *d, uint32_t part, size_t size)
{
        return arena_alloc_array(&d->scratch, d->counts[part] + 1u, size);
}

static enum status decode(struct pprof_decoder *d, const void *data, size_t n, const char *name, struct error *err)
{
        enum status st = walk_parts(d, data, n, false, err);

        if (st)
                return st;
        if (n && d->counts[PPROF_STRING_TABLE] == 0)
                return error_set(err, ST_BAD_DATA, "not a pprof file: it has no string table");
        for (uint32_t part = 1; part <= PPROF_STRING_TABLE; part++)
                d->parts[part] = table(d, part, sizeof *d->parts[part]);
        d->strings = table(d, PPROF_STRING_TABLE, sizeof *d->strings);
        d->mappings = table(d, PPROF_MAPPING, sizeof *d->mappings);
        d->ranges = table(d, PPROF_MAPPING, sizeof *d->ranges);
        d->functions = table(d, PPROF_FUNCTION, sizeof *d->functions);
        d->locations = table(d, PPROF_LOCATION, sizeof *d->locations);
        for (uint32_t part = 1; part <= PPROF_STRING_TABLE; part++)
                if (!d->parts[part])
                        return error_set(err, ST_TOO_BIG, "pprof file has too many %s", part_names[part]);
        if (!d->strings || !d->mappings || !d->ranges || !d->functions || !d->locations)
                return error_set(err, ST_TOO_BIG, "pprof file needs more than %zu bytes of memory", d->scratch.max);
        st = walk_parts(d, data, n, true, err);
        if (!st && d->counts[PPROF_STRING_TABLE] && d->parts[PPROF_STRING_TABLE][0].size)
                st = error_set(err, ST_BAD_DATA, "pprof string 0 is not empty");
        if (!st)
                st = read_head(d, data, n, name, err);
        for (uint32_t i = 0; !st && i < d->counts[PPROF_MAPPING]; i++)
                st = pprof_read_mapping(d, i, err);
        for (uint32_t i = 0; !st && i < d->counts[PPROF_FUNCTION]; i++)
                st = pprof_read_function(d, i, err);
        for (uint32_t i = 0; !st && i < d->counts[PPROF_LOCATION]; i++)
                st = pprof_read_location(d, i, err);
        for (uint32_t i = 0; !st && i < d->counts[PPROF_SAMPLE]; i++)
                st = read_sample(d, pprof_part_reader(d, PPROF_SAMPLE, i), err);
        return st;
}

enum status pprof_decode(const void *data, size_t n, const char *name, struct profile *ret, struct error *err)
{
        _cleanup_buf_ struct buf unpacked;
        struct pprof_decoder d = { 0 };
        struct profile p;
        enum status st;

        buf_init(&unpacked, LIMIT_HTTP_BODY_BYTES);
        if (gzip_detect(data, n)) {
                st = gzip_unpack(data, n, &unpacked, err);
                if (st)
                        return error_prefix(err, st, "pprof file");
                data = unpacked.data;
                n = unpacked.size;
        }
        if (n > UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "pprof file is larger than 4 GiB");
        st = profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, err);
        if (st)
                return st;
        d.p = &p;
        d.start = data;
        arena_init_budget(&d.scratch, LIMIT_PROFILE_MEMORY_BYTES, MEMORY_INGEST);
        buf_init(&d.values, sizeof(uint64_t) * LIMIT_PROFILE_TYPES);
        st = decode(&d, data, n, name, err);
        arena_deinit(&d.scratch);
        buf_deinit(&d.values);
        number_map_deinit(&d.mapping_ids);
        number_map_deinit(&d.location_ids);
        number_map_deinit(&d.function_ids);
        if (st) {
                profile_deinit(&p);
                return st;
        }
        *ret = p;
        return ST_OK;
}
