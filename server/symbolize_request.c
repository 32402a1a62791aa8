/* SPDX-License-Identifier: Apache-2.0 */
#include "server/symbolize_request.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/json_scan.h"
#include "common/limits.h"
#include "profile-formats/wire.h"

enum { REQUEST_OBJECTS = 1, OBJECT_BUILD_ID = 1, OBJECT_ADDRESSES = 2, OBJECT_FILE_OFFSETS = 3 };

void symbolize_request_deinit(struct symbolize_request *r)
{
        free(r->objects);
        free(r->addresses);
        *r = (struct symbolize_request){ 0 };
}

/* Append an object without addresses. */
static enum status add_object(struct symbolize_request *r, const struct build_id *id, bool file_offsets, struct error *err)
{
        if (r->object_count == LIMIT_SYMBOLIZE_OBJECTS)
                return error_set(err, ST_TOO_BIG, "more than %d objects; ask in several requests", LIMIT_SYMBOLIZE_OBJECTS);
        if (!array_reserve(&r->objects, &r->object_capacity, r->object_count))
                return error_no_memory(err);
        r->objects[r->object_count++] = (struct symbolize_object){ *id, file_offsets, r->address_count };
        return ST_OK;
}

static inline enum status push(struct symbolize_request *r, uint64_t address, struct error *err)
{
        if (r->address_count == LIMIT_SYMBOLIZE_KEYS)
                return error_set(err, ST_TOO_BIG, "more than %d addresses; ask in several requests", LIMIT_SYMBOLIZE_KEYS);
        if (!array_reserve(&r->addresses, &r->address_capacity, r->address_count))
                return error_no_memory(err);
        r->addresses[r->address_count++] = address;
        return ST_OK;
}

/* ---- JSON */

#define ADDRESS_DIGITS_MAX 16

static const int8_t hex_value[256] = {
        ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
        ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
        ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
}; /* plus one: 0 is no digit */

/* Digits from p, at least one and no more than an address has; where they end, NULL where there are none or too many. */
static const uint8_t *read_hex(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
        const uint8_t *begin = p;
        uint64_t v = 0;

        while (end - p > 1 && *p == '0' && hex_value[p[1]])
                p++, begin++;
        for (; p < end && hex_value[*p]; p++)
                v = v << 4 | (uint64_t)(hex_value[*p] - 1);
        if (p == begin || p - begin > ADDRESS_DIGITS_MAX)
                return NULL;
        *ret = v;
        return p;
}

static bool is_prefix(const uint8_t *p)
{
        return p[0] == '0' && (p[1] | 0x20) == 'x';
}

static bool span_hex(const struct json_span *s, uint64_t *ret)
{
        const uint8_t *p = (const uint8_t *)s->text, *end = p + s->size;

        return read_hex(s->size > 2 && is_prefix(p) ? p + 2 : p, end, ret) == end;
}

/* An address as nearly everyone writes it, in one pass; false and nothing read where it is written otherwise. */
static bool scan_plain(struct json_scan *s, uint64_t *ret)
{
        const uint8_t *p = s->at;

        if (s->end - p < 5 || *p != '"' || !is_prefix(p + 1))
                return false;
        p = read_hex(p + 3, s->end, ret);
        if (!p || p == s->end || *p != '"')
                return false;
        s->at = p + 1;
        return true;
}

static bool scan_address(struct json_scan *s, uint64_t *ret)
{
        struct json_span text;

        return scan_plain(s, ret) ||
               (json_scan_str(s, &text) &&
                (span_hex(&text, ret) || json_scan_fail(s, (const uint8_t *)text.text, "a hexadecimal address")));
}

static enum status read_addresses(struct json_scan *s, struct symbolize_request *r, struct error *err)
{
        json_scan_array(s);
        while (json_scan_item(s)) {
                uint64_t address;
                enum status st;

                if (!scan_address(s, &address))
                        break;
                st = push(r, address, err);
                if (st)
                        return st;
        }
        return ST_OK;
}

static enum status read_object(struct json_scan *s, struct symbolize_request *r, struct error *err)
{
        const uint8_t *begin = s->at;
        struct build_id id = { 0 };
        bool has_addresses = false, file_offsets = false;
        struct json_span key, hex;
        enum status st = ST_OK;

        json_scan_object(s);
        while (!st && json_scan_key(s, &key)) {
                if (json_span_is(&key, "build_id")) {
                        if (json_scan_str(s, &hex) && !build_id_from_hex(&id, hex.text, hex.size))
                                json_scan_fail(s, (const uint8_t *)hex.text, "a build-id in hexadecimal digits");
                } else if (json_span_is(&key, "addresses")) {
                        if (has_addresses)
                                json_scan_fail(s, s->at, "'addresses' once");
                        has_addresses = true;
                        st = read_addresses(s, r, err);
                } else if (json_span_is(&key, "file_offsets")) {
                        json_scan_bool(s, &file_offsets);
                } else {
                        json_scan_skip(s);
                }
        }
        if (!st && !s->failed && (!id.size || !has_addresses))
                json_scan_fail(s, begin, "an object with build_id as text and addresses as an array");
        if (st || s->failed)
                return st;
        return add_object(r, &id, file_offsets, err);
}

enum status symbolize_request_read_json(const void *data, size_t n, struct symbolize_request *ret, struct error *err)
{
        bool has_objects = false;
        enum status st = ST_OK;
        struct json_span key;
        struct json_scan s;

        json_scan_init(&s, data, n);
        json_scan_object(&s);
        while (!st && json_scan_key(&s, &key)) {
                if (!json_span_is(&key, "objects")) {
                        json_scan_skip(&s);
                        continue;
                }
                if (has_objects)
                        json_scan_fail(&s, s.at, "'objects' once");
                has_objects = true;
                json_scan_array(&s);
                while (!st && json_scan_item(&s))
                        st = read_object(&s, ret, err);
        }
        if (!st)
                st = json_scan_end(&s, err);
        return !st && !has_objects ? error_set(err, ST_BAD_DATA, "the body has no array 'objects'") : st;
}

/* ---- protobuf */

static enum status read_proto_object(struct wire_field *object, struct symbolize_request *r, struct error *err)
{
        struct build_id id = { 0 };
        bool file_offsets = false;
        struct wire_field f;
        enum status st = ST_OK;

        while (wire_next(&object->bytes, &f)) {
                if (f.number == OBJECT_BUILD_ID && f.type == WIRE_BYTES) {
                        if (!build_id_from_bytes(&id, f.bytes.data, f.bytes.size))
                                return error_set(err, ST_BAD_DATA, "a build_id of %zu bytes at byte %zu", f.bytes.size,
                                                 (size_t)f.bytes.base);
                } else if (f.number == OBJECT_ADDRESSES) {
                        uint64_t address;

                        while (wire_next_number(&f, WIRE_VARINT, &address)) {
                                st = push(r, address, err);
                                if (st)
                                        return st;
                        }
                        if (f.bytes.failed)
                                return reader_error(&f.bytes, err, "protobuf: addresses");
                } else if (f.number == OBJECT_FILE_OFFSETS && f.type == WIRE_VARINT) {
                        file_offsets = f.value != 0;
                }
        }
        if (object->bytes.failed)
                return reader_error(&object->bytes, err, "protobuf: an object");
        if (!id.size)
                return error_set(err, ST_BAD_DATA, "the object at byte %zu has no build_id", (size_t)object->bytes.base);
        return add_object(r, &id, file_offsets, err);
}

enum status symbolize_request_read_proto(const void *data, size_t n, struct symbolize_request *ret, struct error *err)
{
        struct wire_field f;
        struct reader r;

        reader_init(&r, data, n);
        while (wire_next(&r, &f)) {
                enum status st;

                if (f.number != REQUEST_OBJECTS)
                        continue;
                if (f.type != WIRE_BYTES)
                        return error_set(err, ST_BAD_DATA, "protobuf: objects has a wrong wire type before byte %zu", r.pos);
                st = read_proto_object(&f, ret, err);
                if (st)
                        return st;
        }
        return r.failed ? reader_error(&r, err, "protobuf") : ST_OK;
}
