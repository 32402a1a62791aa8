/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of OTLP: keys and values as text. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/label_list.h"
#include "profile-formats/otlp_dictionary.h"

static size_t double_text(double v, char *out, size_t n)
{
        int len = 0;

        for (int precision = 15; precision <= 17; precision++) {
                len = snprintf(out, n, "%.*g", precision, v);
                if (strtod(out, NULL) == v)
                        break;
        }
        return (size_t)len;
}

/* Arrays and maps are skipped, not descended into: they are no labels, and their nesting costs nothing. */
static enum status any_value(struct otlp_dictionary *d, struct reader r, struct otlp_attribute *ret,
                             struct error *err)
{
        const uint8_t *text = NULL;
        char number[40];
        size_t n = 0;
        struct wire_field f;
        enum status st;

        while (wire_next(&r, &f)) {
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
                        n = double_text(v, number, sizeof number);
                        text = (const uint8_t *)number;
                } else if (f.number == ANY_STRINDEX && f.type == WIRE_VARINT) {
                        st = otlp_check_index(d, DICTIONARY_STRINGS, f.value, &r, err);
                        if (st)
                                return st;
                        text = f.value ? d->tables[DICTIONARY_STRINGS][f.value].data : (const uint8_t *)"";
                        n = f.value ? d->tables[DICTIONARY_STRINGS][f.value].size : 0;
                }
        }
        if (r.failed)
                return reader_error(&r, err, "OTLP attribute value");
        if (!text)
                return ST_OK;
        ret->usable = true;
        return profile_add_string(d->p, (const char *)text, text_cut(text, n, LIMIT_LABEL_BYTES), &ret->value, err);
}

enum status otlp_key_value(struct otlp_dictionary *d, struct reader r, struct otlp_attribute *ret,
                           struct error *err)
{
        struct otlp_attribute a = { 0 };
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.number == KEY_VALUE_KEY && f.type == WIRE_BYTES && f.bytes.size)
                        st = profile_add_string(d->p, (const char *)f.bytes.data,
                                                text_cut(f.bytes.data, f.bytes.size, LIMIT_LABEL_BYTES), &a.key,
                                                err);
                else if (f.number == KEY_VALUE_KEY_STRINDEX && f.type == WIRE_VARINT && f.value)
                        st = otlp_string(d, f.value, &r, &a.key, err);
                else if (f.number == KEY_VALUE_VALUE && f.type == WIRE_BYTES)
                        st = any_value(d, f.bytes, &a, err);
        }
        if (st)
                return st;
        if (r.failed)
                return reader_error(&r, err, "OTLP attribute");
        *ret = a;
        return ST_OK;
}

enum status otlp_read_attribute(struct otlp_dictionary *d, uint32_t i, struct error *err)
{
        struct otlp_attribute *a = &d->attributes[i];
        struct reader r = otlp_entry_reader(d, DICTIONARY_ATTRIBUTES, i);
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                if (f.number == ATTRIBUTE_KEY && f.type == WIRE_VARINT)
                        st = otlp_string(d, f.value, &r, &a->key, err);
                else if (f.number == ATTRIBUTE_VALUE && f.type == WIRE_BYTES)
                        st = any_value(d, f.bytes, a, err);
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP attribute");
        if (!st && strcmp(profile_text(d->p, a->key), ATTRIBUTE_STACK_TRUNCATED) == 0)
                d->truncated_key = a->key;
        return st;
}
