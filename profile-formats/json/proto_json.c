/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading: transcode_object() walks the JSON text and the descriptor together and appends each member in the binary
 * form to one buf, nested messages included; proto_message_decode() then decodes that. No value is stored in between,
 * and all checks of the binary form apply. Failures are kept by the json_scan and the buf; every loop tests them.
 * Writing: put_json_message() walks the fields of the descriptor and reads the generated struct at their offsets. The
 * quantifier of a field is the count of a repeated one or the case of a oneof; optional fields, where it is a flag, do
 * not occur here.
 *
 * Each direction has one switch over the type of a field: transcode_field() and put_json_scalar(). json_wire.c has the
 * parts of reading that other formats share.
 *
 * Order: names of members, reading, writing.
 */
#include "profile-formats/json/proto_json.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/json/json_out.h"
#include "profile-formats/json/json_wire.h"
#include "profile-formats/wire.h"

#define NAME_BYTES 64 /* of a field, in either spelling */

/* profile_typeID becomes profileTypeID. */
static const char *make_camel_name(const char *name, char ret[static NAME_BYTES])
{
        size_t n = 0;
        bool raise = false;

        assert(strlen(name) < NAME_BYTES);
        for (; *name; name++) {
                if (*name == '_') {
                        raise = true;
                        continue;
                }
                ret[n++] = raise && *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name;
                raise = false;
        }
        ret[n] = 0;
        return ret;
}

/* ---- reading: JSON to the binary form -------------------------------------------------------- */

static void transcode_object(struct json_scan *s, const ProtobufCMessageDescriptor *type, unsigned depth,
                             struct buf *to);

/* Whether a number of 64 bits, which is read as signed when it has a sign, fits into the type. */
static bool is_integer_in_range(ProtobufCType type, uint64_t v, bool is_negative)
{
        switch (type) {
        case PROTOBUF_C_TYPE_INT32:
        case PROTOBUF_C_TYPE_SINT32:
        case PROTOBUF_C_TYPE_SFIXED32:
                return is_negative ? (int64_t)v >= INT32_MIN : v <= INT32_MAX;
        case PROTOBUF_C_TYPE_UINT32:
        case PROTOBUF_C_TYPE_FIXED32:
                return !is_negative && v <= UINT32_MAX;
        case PROTOBUF_C_TYPE_UINT64:
        case PROTOBUF_C_TYPE_FIXED64:
                return !is_negative;
        default:
                return is_negative || v <= INT64_MAX;
        }
}

/* False, with the failure in s, when the value is not an integer of the type. */
static bool scan_integer_of_type(struct json_scan *s, ProtobufCType type, uint64_t *ret, bool *is_negative_ret)
{
        const uint8_t *begin;

        json_scan_peek(s); /* skips blanks */
        begin = s->at;
        if (!json_wire_scan_integer(s, ret, is_negative_ret))
                return false;
        return is_integer_in_range(type, *ret, *is_negative_ret) ||
               json_scan_fail(s, begin, "a number that fits the field");
}

static void transcode_enum(struct json_scan *s, const ProtobufCFieldDescriptor *f, struct buf *to)
{
        const ProtobufCEnumDescriptor *names = f->descriptor;
        struct json_span span;
        bool is_negative;
        uint64_t v;

        if (json_scan_peek(s) != '"') {
                if (scan_integer_of_type(s, PROTOBUF_C_TYPE_INT32, &v, &is_negative))
                        wire_put_varint(to, f->id, v);
                return;
        }
        if (!json_scan_str(s, &span))
                return;
        for (unsigned i = 0; i < names->n_values; i++) {
                if (json_span_is(&span, names->values[i].name)) {
                        wire_put_varint(to, f->id, (uint64_t)(int64_t)names->values[i].value);
                        return;
                }
        }
        json_scan_fail(s, (const uint8_t *)span.text, "a name of the enum");
}

static void put_fixed32_field(uint32_t number, uint32_t value, struct buf *to)
{
        buf_append_uleb128(to, (uint64_t)number << 3 | WIRE_FIXED32);
        buf_append_u32(to, value);
}

static void transcode_integer(struct json_scan *s, const ProtobufCFieldDescriptor *f, struct buf *to)
{
        bool is_negative;
        uint64_t v;

        if (!scan_integer_of_type(s, f->type, &v, &is_negative))
                return;
        switch (f->type) {
        case PROTOBUF_C_TYPE_SINT32:
        case PROTOBUF_C_TYPE_SINT64:
                wire_put_varint(to, f->id, v << 1 ^ (is_negative ? UINT64_MAX : 0));
                break;
        case PROTOBUF_C_TYPE_FIXED32:
        case PROTOBUF_C_TYPE_SFIXED32:
                put_fixed32_field(f->id, (uint32_t)v, to);
                break;
        case PROTOBUF_C_TYPE_FIXED64:
        case PROTOBUF_C_TYPE_SFIXED64:
                buf_append_uleb128(to, (uint64_t)f->id << 3 | WIRE_FIXED64);
                buf_append_u64(to, v);
                break;
        default:
                wire_put_varint(to, f->id, v);
        }
}

static void transcode_float(struct json_scan *s, const ProtobufCFieldDescriptor *f, struct buf *to)
{
        double v;
        float narrow;
        uint32_t bits;

        if (!json_wire_scan_double(s, &v))
                return;
        if (f->type == PROTOBUF_C_TYPE_DOUBLE) {
                wire_put_double(to, f->id, v);
                return;
        }
        narrow = (float)v;
        memcpy(&bits, &narrow, sizeof bits);
        put_fixed32_field(f->id, bits, to);
}

/* A singular value, or an element of a repeated field. */
static void transcode_field(struct json_scan *s, const ProtobufCFieldDescriptor *f, unsigned depth, struct buf *to)
{
        bool truth;
        size_t mark;

        switch (f->type) {
        case PROTOBUF_C_TYPE_MESSAGE:
                mark = wire_begin(to, f->id);
                transcode_object(s, f->descriptor, depth + 1, to);
                wire_end(to, mark);
                break;
        case PROTOBUF_C_TYPE_STRING:
                json_wire_put_text(s, f->id, to);
                break;
        case PROTOBUF_C_TYPE_BYTES:
                json_wire_put_base64(s, f->id, to);
                break;
        case PROTOBUF_C_TYPE_BOOL:
                if (json_scan_bool(s, &truth))
                        wire_put_varint(to, f->id, truth);
                break;
        case PROTOBUF_C_TYPE_ENUM:
                transcode_enum(s, f, to);
                break;
        case PROTOBUF_C_TYPE_FLOAT:
        case PROTOBUF_C_TYPE_DOUBLE:
                transcode_float(s, f, to);
                break;
        default:
                transcode_integer(s, f, to);
        }
}

static const ProtobufCFieldDescriptor *find_json_field(const ProtobufCMessageDescriptor *type,
                                                       const struct json_span *key)
{
        char camel[NAME_BYTES];

        for (unsigned i = 0; i < type->n_fields; i++)
                if (json_span_is(key, type->fields[i].name) ||
                    json_span_is(key, make_camel_name(type->fields[i].name, camel)))
                        return &type->fields[i];
        return NULL;
}

static void transcode_object(struct json_scan *s, const ProtobufCMessageDescriptor *type, unsigned depth,
                             struct buf *to)
{
        struct json_span key;

        if (depth > PROTO_DEPTH_MAX) {
                json_scan_fail(s, s->at, "fewer nested messages");
                return;
        }
        if (!json_scan_object(s))
                return;
        while (json_scan_key(s, &key) && !to->failed) {
                const ProtobufCFieldDescriptor *f = find_json_field(type, &key);

                if (!f) {
                        json_scan_skip(s);
                        continue;
                }
                if (json_wire_skip_null(s))
                        continue;
                if (f->label != PROTOBUF_C_LABEL_REPEATED) {
                        transcode_field(s, f, depth, to);
                        continue;
                }
                if (!json_scan_array(s))
                        return;
                while (json_scan_item(s) && !to->failed)
                        transcode_field(s, f, depth, to);
        }
}

enum status proto_json_decode(const ProtobufCMessageDescriptor *type, const void *data, size_t n, struct arena *memory,
                              const char *what, const void **ret, struct error *err)
{
        _cleanup_buf_ struct buf binary;
        struct json_scan s;
        enum status st;

        if (memory->memory.use == MEMORY_BASE)
                buf_init(&binary, memory->max);
        else
                buf_init_budget(&binary, memory->max, memory->memory.use);
        json_scan_init(&s, data, n);
        transcode_object(&s, type, 1, &binary);
        st = buf_status(&binary, err, what);
        if (!st)
                st = json_scan_end(&s, err);
        if (st)
                return error_prefix(err, st, "%s", what);
        return proto_message_decode(type, binary.data ? binary.data : (const uint8_t *)"", binary.size, memory, what,
                                    ret, err);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_json_message(struct json_out *j, const char *key, const ProtobufCMessage *message);

static void put_base64_text(struct json_out *j, const char *key, const ProtobufCBinaryData *bytes)
{
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        char *to;
        size_t n = (bytes->len + 2) / 3 * 4;

        json_out_str(j, key, "");
        if (!n || j->buf->failed)
                return;
        j->buf->size--; /* the closing quote */
        to = buf_reserve(j->buf, n + 1);
        if (!to)
                return;
        for (size_t i = 0; i < bytes->len; i += 3, to += 4) {
                size_t left = bytes->len - i;
                unsigned bits = (unsigned)bytes->data[i] << 16 | (left > 1 ? (unsigned)bytes->data[i + 1] << 8 : 0) |
                                (left > 2 ? bytes->data[i + 2] : 0);

                to[0] = digits[bits >> 18];
                to[1] = digits[bits >> 12 & 63];
                to[2] = left > 1 ? digits[bits >> 6 & 63] : '=';
                to[3] = left > 2 ? digits[bits & 63] : '=';
        }
        *to = '"';
        buf_commit(j->buf, n + 1);
}

static void put_double_value(struct json_out *j, const char *key, double v)
{
        if (isnan(v))
                json_out_str(j, key, "NaN");
        else if (isinf(v))
                json_out_str(j, key, v > 0 ? "Infinity" : "-Infinity");
        else
                json_out_double(j, key, v);
}

static void put_quoted_integer(struct json_out *j, const char *key, uint64_t v, bool is_signed)
{
        char text[24];

        if (is_signed)
                snprintf(text, sizeof text, "%lld", (long long)v);
        else
                snprintf(text, sizeof text, "%llu", (unsigned long long)v);
        json_out_str(j, key, text);
}

static void put_enum_value(struct json_out *j, const char *key, const ProtobufCEnumDescriptor *type, int v)
{
        const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(type, v);

        if (value)
                json_out_str(j, key, value->name);
        else
                json_out_int(j, key, v);
}

/* The size of a value in the generated struct. */
static size_t get_value_size(ProtobufCType type)
{
        switch (type) {
        case PROTOBUF_C_TYPE_INT64:
        case PROTOBUF_C_TYPE_SINT64:
        case PROTOBUF_C_TYPE_SFIXED64:
        case PROTOBUF_C_TYPE_UINT64:
        case PROTOBUF_C_TYPE_FIXED64:
        case PROTOBUF_C_TYPE_DOUBLE:
                return 8;
        case PROTOBUF_C_TYPE_BOOL:
                return sizeof(protobuf_c_boolean);
        case PROTOBUF_C_TYPE_STRING:
        case PROTOBUF_C_TYPE_MESSAGE:
                return sizeof(void *);
        case PROTOBUF_C_TYPE_BYTES:
                return sizeof(ProtobufCBinaryData);
        default:
                return 4;
        }
}

static void put_json_scalar(struct json_out *j, const char *key, const ProtobufCFieldDescriptor *f, const void *at)
{
        switch (f->type) {
        case PROTOBUF_C_TYPE_INT32:
        case PROTOBUF_C_TYPE_SINT32:
        case PROTOBUF_C_TYPE_SFIXED32:
                json_out_int(j, key, *(const int32_t *)at);
                break;
        case PROTOBUF_C_TYPE_UINT32:
        case PROTOBUF_C_TYPE_FIXED32:
                json_out_uint(j, key, *(const uint32_t *)at);
                break;
        case PROTOBUF_C_TYPE_INT64:
        case PROTOBUF_C_TYPE_SINT64:
        case PROTOBUF_C_TYPE_SFIXED64:
                put_quoted_integer(j, key, *(const uint64_t *)at, true);
                break;
        case PROTOBUF_C_TYPE_UINT64:
        case PROTOBUF_C_TYPE_FIXED64:
                put_quoted_integer(j, key, *(const uint64_t *)at, false);
                break;
        case PROTOBUF_C_TYPE_FLOAT:
                put_double_value(j, key, (double)*(const float *)at);
                break;
        case PROTOBUF_C_TYPE_DOUBLE:
                put_double_value(j, key, *(const double *)at);
                break;
        case PROTOBUF_C_TYPE_BOOL:
                json_out_bool(j, key, *(const protobuf_c_boolean *)at);
                break;
        case PROTOBUF_C_TYPE_ENUM:
                put_enum_value(j, key, f->descriptor, *(const int *)at);
                break;
        case PROTOBUF_C_TYPE_STRING: {
                const char *text = *(const char *const *)at;

                json_out_str(j, key, text ? text : "");
                break;
        }
        case PROTOBUF_C_TYPE_BYTES:
                put_base64_text(j, key, at);
                break;
        case PROTOBUF_C_TYPE_MESSAGE:
                put_json_message(j, key, *(const ProtobufCMessage *const *)at);
                break;
        }
}

/* Whether a singular field is to be written: proto3 leaves out defaults, except for a member of a oneof that is set. */
static bool is_field_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *f, const void *at)
{
        static const uint8_t zero[sizeof(double)];
        const void *quantifier = (const char *)message + f->quantifier_offset;

        if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
                return *(const uint32_t *)quantifier == f->id;
        switch (f->type) {
        case PROTOBUF_C_TYPE_MESSAGE:
                return *(const ProtobufCMessage *const *)at != NULL;
        case PROTOBUF_C_TYPE_STRING: {
                const char *text = *(const char *const *)at;

                return text && *text;
        }
        case PROTOBUF_C_TYPE_BYTES:
                return ((const ProtobufCBinaryData *)at)->len > 0;
        default:
                return memcmp(at, zero, get_value_size(f->type)) != 0;
        }
}

static void put_json_field(struct json_out *j, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *f)
{
        const void *at = (const char *)message + f->offset;
        char name[NAME_BYTES];
        const char *items;
        size_t count;

        make_camel_name(f->name, name);
        assert(f->label == PROTOBUF_C_LABEL_REPEATED || f->label == PROTOBUF_C_LABEL_NONE); /* proto3 */
        if (f->label != PROTOBUF_C_LABEL_REPEATED) {
                if (is_field_set(message, f, at))
                        put_json_scalar(j, name, f, at);
                return;
        }
        count = *(const size_t *)(const void *)((const char *)message + f->quantifier_offset);
        items = *(const char *const *)at;
        if (!count)
                return;
        json_out_array(j, name);
        for (size_t i = 0; i < count && !j->buf->failed; i++)
                put_json_scalar(j, NULL, f, items + i * get_value_size(f->type));
        json_out_array_end(j);
}

static void put_json_message(struct json_out *j, const char *key, const ProtobufCMessage *message)
{
        json_out_object(j, key);
        for (unsigned i = 0; i < message->descriptor->n_fields; i++)
                put_json_field(j, message, &message->descriptor->fields[i]);
        json_out_object_end(j);
}

void proto_json_append(struct buf *b, const ProtobufCMessage *message)
{
        struct json_out j;

        assert(message->descriptor->magic == PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC);
        json_out_init(&j, b);
        put_json_message(&j, NULL, message);
}
