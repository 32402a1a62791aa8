/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/otlp_encode_tables.h"

#include <string.h>

#include "profile-formats/otlp_fields.h"
#include "profile-formats/wire.h"

static const char *const extra_texts[EXTRA_COUNT] = {
        [EXTRA_BUILD_ID] = ATTRIBUTE_BUILD_ID_GNU,
        [EXTRA_FRAME_TYPE] = ATTRIBUTE_FRAME_TYPE,
        [EXTRA_KERNEL] = "kernel",
        [EXTRA_ADDRESS_KIND] = ATTRIBUTE_ADDRESS_KIND,
        [EXTRA_OBJECT] = "object",
        [EXTRA_FILE_OFFSET] = "file_offset",
        [EXTRA_NONE] = "none",
        [EXTRA_PROFILE_TYPE] = ATTRIBUTE_PROFILE_TYPE,
        [EXTRA_TRUNCATED] = ATTRIBUTE_STACK_TRUNCATED,
        [EXTRA_TRUE] = "true",
};

uint32_t otlp_numbered(struct otlp_encoder *e, struct number_map *m, struct number_key key)
{
        uint32_t number = 0;

        if (e->failed)
                return 0;
        e->failed = number_map_get(m, &key, &number, NULL, e->err);
        return e->failed ? 0 : number + 1;
}

uint32_t otlp_put_attribute(struct otlp_encoder *e, uint32_t key, uint32_t value)
{
        return otlp_numbered(e, &e->attributes, (struct number_key){ { key, value } });
}

uint32_t otlp_put_string(struct otlp_encoder *e, const char *text, size_t n)
{
        uint32_t number = 0;

        if (!e->failed)
                e->failed = string_list_get(&e->more, text, n, &number, e->err);
        return number;
}

void otlp_put_extras(struct otlp_encoder *e)
{
        for (unsigned i = 0; i < EXTRA_COUNT; i++)
                e->extras[i] = otlp_put_string(e, extra_texts[i], strlen(extra_texts[i]));
}

static void put_empty(struct buf *b, uint32_t table)
{
        wire_put_bytes(b, table, NULL, 0);
}

static void put_mappings(struct otlp_encoder *e)
{
        char hex[BUILD_ID_HEX_MAX];

        put_empty(e->out, DICTIONARY_MAPPINGS);
        for (uint32_t i = 0; i < e->p->mappings.count; i++) {
                const struct profile_mapping *m = &e->p->mappings.items[i];
                size_t mark = wire_begin(e->out, DICTIONARY_MAPPINGS);

                wire_put_uint(e->out, MAPPING_FILENAME, m->file);
                if (m->build_id.size) {
                        const char *text = build_id_hex(&m->build_id, hex);
                        uint32_t value = otlp_put_string(e, text, strlen(text));

                        wire_put_varint(e->out, MAPPING_ATTRIBUTES, otlp_put_attribute(e, otlp_extra(e, EXTRA_BUILD_ID), value));
                }
                wire_end(e->out, mark);
        }
}

static void put_locations(struct otlp_encoder *e)
{
        const struct profile *p = e->p;

        put_empty(e->out, DICTIONARY_LOCATIONS);
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
                                wire_put_uint(e->out, LINE_FUNCTION,
                                              otlp_numbered(e, &e->functions,
                                                       (struct number_key){ { line->function, line->linkage_name,
                                                                              line->file } }));
                        wire_put_uint(e->out, LINE_LINE, (uint64_t)line->line);
                        wire_end(e->out, line_mark);
                }
                if (l->is_kernel)
                        wire_put_varint(e->out, LOCATION_ATTRIBUTES,
                                        otlp_put_attribute(e, otlp_extra(e, EXTRA_FRAME_TYPE), otlp_extra(e, EXTRA_KERNEL)));
                wire_put_varint(e->out, LOCATION_ATTRIBUTES,
                                otlp_put_attribute(e, otlp_extra(e, EXTRA_ADDRESS_KIND),
                                          otlp_extra(e, l->kind == ADDRESS_FILE_OFFSET ? EXTRA_FILE_OFFSET
                                                   : l->kind == ADDRESS_NONE      ? EXTRA_NONE
                                                                                  : EXTRA_OBJECT)));
                wire_end(e->out, mark);
        }
}

static void put_functions(struct otlp_encoder *e)
{
        put_empty(e->out, DICTIONARY_FUNCTIONS);
        for (uint32_t i = 0; i < e->functions.count; i++) {
                const uint32_t *parts = e->functions.keys[i].parts;
                size_t mark = wire_begin(e->out, DICTIONARY_FUNCTIONS);

                wire_put_uint(e->out, FUNCTION_NAME, parts[0]);
                wire_put_uint(e->out, FUNCTION_SYSTEM_NAME, parts[1]);
                wire_put_uint(e->out, FUNCTION_FILENAME, parts[2]);
                wire_end(e->out, mark);
        }
}

static void put_links(struct otlp_encoder *e)
{
        put_empty(e->out, DICTIONARY_LINKS);
        for (uint32_t i = 0; i < e->links.count; i++) {
                const uint32_t *parts = e->links.keys[i].parts; /* as link_of() put them */
                size_t mark = wire_begin(e->out, DICTIONARY_LINKS);

                wire_put_bytes(e->out, LINK_TRACE_ID, parts, 16);
                wire_put_bytes(e->out, LINK_SPAN_ID, parts + 4, 8);
                wire_end(e->out, mark);
        }
}

static void put_stacks(struct otlp_encoder *e)
{
        put_empty(e->out, DICTIONARY_STACKS);
        for (uint32_t i = 0; i < e->p->stacks.count; i++) {
                const struct profile_stack *s = &e->p->stacks.items[i];
                size_t mark = wire_begin(e->out, DICTIONARY_STACKS);

                if (s->location_count) {
                        size_t packed = wire_begin(e->out, STACK_LOCATIONS);

                        for (uint32_t j = 0; j < s->location_count; j++)
                                buf_append_uleb128(e->out, e->p->stack_locations.items[s->first_location + j] +
                                                                   UINT64_C(1));
                        wire_end(e->out, packed);
                }
                wire_end(e->out, mark);
        }
}

static void put_strings_and_attributes(struct otlp_encoder *e)
{
        for (uint32_t i = 0; i < e->p->strings.count; i++)
                wire_put_bytes(e->out, DICTIONARY_STRINGS, e->p->strings.items[i].text,
                               e->p->strings.items[i].size);
        buf_append(e->out, e->more.fields.data, e->more.fields.size);
        put_empty(e->out, DICTIONARY_ATTRIBUTES);
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

void otlp_put_dictionary(struct otlp_encoder *e)
{
        size_t dictionary = wire_begin(e->out, REQUEST_DICTIONARY);

        put_mappings(e);
        put_locations(e);
        put_functions(e);
        put_links(e);
        put_stacks(e);
        put_strings_and_attributes(e);
        wire_end(e->out, dictionary);
}
