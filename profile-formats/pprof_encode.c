/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/pprof.h"

#include <string.h>

#include "common/compress.h"
#include "common/limits.h"
#include "profile-formats/number_map.h"
#include "profile-formats/pprof_fields.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/string_list.h"
#include "profile-formats/wire.h"

/* Where a mapping whose addresses are file offsets pretends to be loaded. */
#define FILE_START (UINT64_C(1) << 46)

/*
 * Ids are positions plus one. A mapping of the profile becomes one mapping
 * that starts at 0 for object addresses, and another one for file offsets when
 * there are any. Strings share their numbers with the profile's.
 */
struct encoder {
        const struct profile *p;
        struct buf *out;
        struct error *err;
        enum status failed;
        struct number_map mappings;  /* (mapping, kind) */
        struct number_map functions; /* (name, linkage name, file) */
        struct string_list more;     /* strings that the profile does not have */
};

static uint64_t id_of(struct encoder *e, struct number_map *m, struct number_key key)
{
        uint32_t number = 0;

        if (!e->failed)
                e->failed = number_map_get(m, &key, &number, NULL, e->err);
        return number + UINT64_C(1);
}

static uint32_t string(struct encoder *e, const char *text, size_t n)
{
        uint32_t number = 0;

        if (!e->failed)
                e->failed = string_list_get(&e->more, text, n, &number, e->err);
        return number;
}

static void put_value_type(struct encoder *e, uint32_t field, const char *id, enum profile_type_part type,
                           enum profile_type_part unit)
{
        size_t type_size, unit_size, mark = wire_begin(e->out, field);
        const char *type_text = profile_type_part(id, type, &type_size);
        const char *unit_text = profile_type_part(id, unit, &unit_size);

        wire_put_uint(e->out, PPROF_VALUE_TYPE_TYPE, string(e, type_text, type_size));
        wire_put_uint(e->out, PPROF_VALUE_TYPE_UNIT, string(e, unit_text, unit_size));
        wire_end(e->out, mark);
}

static void put_locations(struct encoder *e)
{
        const struct profile *p = e->p;

        for (uint32_t i = 0; i < p->locations.count; i++) {
                const struct profile_location *l = &p->locations.items[i];
                bool offset = l->kind == ADDRESS_FILE_OFFSET;
                size_t mark = wire_begin(e->out, PPROF_LOCATION);

                wire_put_uint(e->out, PPROF_ID, i + UINT64_C(1));
                if (l->mapping != PROFILE_NONE)
                        wire_put_uint(e->out, PPROF_LOCATION_MAPPING_ID,
                                      id_of(e, &e->mappings, (struct number_key){ { l->mapping, offset } }));
                wire_put_uint(e->out, PPROF_LOCATION_ADDRESS, offset ? l->address + FILE_START : l->address);
                for (uint32_t j = 0; j < l->line_count; j++) {
                        const struct profile_line *line = &p->lines.items[l->first_line + j];
                        size_t line_mark = wire_begin(e->out, PPROF_LOCATION_LINE);

                        wire_put_uint(
                                e->out, PPROF_LINE_FUNCTION_ID,
                                id_of(e, &e->functions,
                                      (struct number_key){ { line->function, line->linkage_name, line->file } }));
                        wire_put_uint(e->out, PPROF_LINE_LINE, (uint64_t)line->line);
                        wire_end(e->out, line_mark);
                }
                wire_end(e->out, mark);
        }
}

static void put_mappings(struct encoder *e)
{
        char hex[BUILD_ID_HEX_MAX];

        for (uint32_t i = 0; i < e->mappings.count; i++) {
                const struct profile_mapping *m = &e->p->mappings.items[e->mappings.keys[i].parts[0]];
                size_t mark = wire_begin(e->out, PPROF_MAPPING);

                wire_put_uint(e->out, PPROF_ID, i + UINT64_C(1));
                if (e->mappings.keys[i].parts[1]) {
                        wire_put_uint(e->out, PPROF_MAPPING_START, FILE_START);
                        wire_put_uint(e->out, PPROF_MAPPING_LIMIT, 2 * FILE_START);
                }
                wire_put_uint(e->out, PPROF_MAPPING_FILENAME, m->file);
                if (m->build_id.size) {
                        const char *text = build_id_hex(&m->build_id, hex);

                        wire_put_uint(e->out, PPROF_MAPPING_BUILD_ID, string(e, text, strlen(text)));
                }
                /* Readers do not look for symbols themselves: they would not find better ones. */
                wire_put_uint(e->out, PPROF_MAPPING_HAS_FUNCTIONS, 1);
                wire_put_uint(e->out, PPROF_MAPPING_HAS_FILENAMES, 1);
                wire_put_uint(e->out, PPROF_MAPPING_HAS_LINE_NUMBERS, 1);
                wire_put_uint(e->out, PPROF_MAPPING_HAS_INLINE_FRAMES, 1);
                wire_end(e->out, mark);
        }
}

static void put_functions(struct encoder *e)
{
        for (uint32_t i = 0; i < e->functions.count; i++) {
                const uint32_t *parts = e->functions.keys[i].parts;
                size_t mark = wire_begin(e->out, PPROF_FUNCTION);

                wire_put_uint(e->out, PPROF_ID, i + UINT64_C(1));
                wire_put_uint(e->out, PPROF_FUNCTION_NAME, parts[0]);
                wire_put_uint(e->out, PPROF_FUNCTION_SYSTEM_NAME, parts[1] ? parts[1] : parts[0]);
                wire_put_uint(e->out, PPROF_FUNCTION_FILENAME, parts[2]);
                wire_end(e->out, mark);
        }
}

/* ---- samples: one per stack and labels, with a value for every type ----------------------- */

static int compare_samples(const void *x, const void *y)
{
        const struct profile_sample *a = *(const struct profile_sample *const *)x;
        const struct profile_sample *b = *(const struct profile_sample *const *)y;

        if (a->stack != b->stack)
                return a->stack < b->stack ? -1 : 1;
        if (a->first_label != b->first_label)
                return a->first_label < b->first_label ? -1 : 1;
        return a->label_count < b->label_count ? -1 : a->label_count > b->label_count;
}

static void put_sample(struct encoder *e, const struct profile_sample *s, const int64_t *values)
{
        const struct profile *p = e->p;
        const struct profile_stack *stack = &p->stacks.items[s->stack];
        size_t mark = wire_begin(e->out, PPROF_SAMPLE), packed;

        packed = wire_begin(e->out, PPROF_SAMPLE_LOCATION_ID);
        for (uint32_t i = 0; i < stack->location_count; i++)
                buf_append_uleb128(e->out, p->stack_locations.items[stack->first_location + i] + UINT64_C(1));
        wire_end(e->out, packed);
        packed = wire_begin(e->out, PPROF_SAMPLE_VALUE);
        for (uint32_t i = 0; i < p->types.count; i++)
                buf_append_uleb128(e->out, (uint64_t)values[i]);
        wire_end(e->out, packed);
        for (uint32_t i = 0; i < s->label_count; i++) {
                const struct profile_label *l = &p->labels.items[s->first_label + i];
                size_t label = wire_begin(e->out, PPROF_SAMPLE_LABEL);

                wire_put_uint(e->out, PPROF_LABEL_KEY, l->key);
                wire_put_uint(e->out, PPROF_LABEL_STR, l->value);
                wire_end(e->out, label);
        }
        wire_end(e->out, mark);
}

static void put_samples(struct encoder *e, const struct profile_sample **order, int64_t *values)
{
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
        qsort(order, p->samples.count, sizeof *order, compare_samples);
        for (uint32_t i = 0; i < p->samples.count;) {
                uint32_t start = i;

                memset(values, 0, p->types.count * sizeof *values);
                for (; i < p->samples.count && compare_samples(&order[start], &order[i]) == 0; i++)
                        values[order[i]->type] =
                                (int64_t)((uint64_t)values[order[i]->type] + (uint64_t)order[i]->value);
                put_sample(e, order[start], values);
        }
        wire_put_uint(e->out, PPROF_TIME_NANOS, (uint64_t)first);
        wire_put_uint(e->out, PPROF_DURATION_NANOS, (uint64_t)last - (uint64_t)first);
}

static enum status encode(struct encoder *e)
{
        const struct profile *p = e->p;
        _cleanup_free_ const struct profile_sample **order = calloc(p->samples.count + 1u, sizeof *order);
        _cleanup_free_ int64_t *values = calloc(p->types.count + 1u, sizeof *values);

        if (!order || !values)
                return error_no_memory(e->err);
        for (uint32_t i = 0; i < p->types.count; i++)
                put_value_type(e, PPROF_SAMPLE_TYPE, profile_text(p, p->types.items[i].id), TYPE_SAMPLE_TYPE,
                               TYPE_SAMPLE_UNIT);
        if (p->types.count) {
                put_value_type(e, PPROF_PERIOD_TYPE, profile_text(p, p->types.items[0].id), TYPE_PERIOD_TYPE,
                               TYPE_PERIOD_UNIT);
                wire_put_uint(e->out, PPROF_PERIOD, (uint64_t)p->types.items[0].period);
        }
        put_samples(e, order, values);
        put_locations(e);
        put_mappings(e);
        put_functions(e);
        for (uint32_t i = 0; i < p->strings.count; i++)
                wire_put_bytes(e->out, PPROF_STRING_TABLE, p->strings.items[i].text, p->strings.items[i].size);
        buf_append(e->out, e->more.fields.data, e->more.fields.size);
        if (e->failed)
                return e->failed;
        return buf_status(e->out, e->err, "pprof file");
}

enum status pprof_encode(const struct profile *p, struct buf *ret, struct error *err)
{
        _cleanup_buf_ struct buf plain;
        struct encoder e = { .p = p, .out = &plain, .err = err };
        enum status st;

        buf_init(&plain, LIMIT_RESPONSE_BYTES);
        string_list_init(&e.more, p, PPROF_STRING_TABLE);
        st = encode(&e);
        string_list_deinit(&e.more);
        number_map_deinit(&e.mappings);
        number_map_deinit(&e.functions);
        return st ? st : gzip_pack(plain.data, plain.size, 6, ret, err);
}
