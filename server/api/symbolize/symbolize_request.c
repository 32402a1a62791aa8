/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api/symbolize/symbolize_request.h"

#include <stdlib.h>

#include "common/json/json_scan.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "profile-formats/proto/symbolize.pb-c.h"
#include "profile-formats/proto_message.h"

#define REQUEST_MEMORY_BYTES MiB(512) /* decoded protobuf; LIMIT_SYMBOLIZE_KEYS unpacked addresses take 350 MB */

void symbolize_request_deinit(struct symbolize_request *r)
{
        free(r->objects);
        free(r->addresses);
        *r = (struct symbolize_request){ 0 };
}

/* Append an object without addresses. */
static enum status add_requested_object(struct symbolize_request *r, const struct build_id *id, bool file_offsets,
                                        struct error *err)
{
        if (r->object_count == LIMIT_SYMBOLIZE_OBJECTS)
                return error_set(err, ST_TOO_BIG, "more than %d objects; split them into several requests",
                                 LIMIT_SYMBOLIZE_OBJECTS);
        if (!array_reserve(&r->objects, &r->object_capacity, r->object_count))
                return error_no_memory(err);
        r->objects[r->object_count++] = (struct symbolize_object){ *id, file_offsets, r->address_count };
        return ST_OK;
}

static inline enum status push_address(struct symbolize_request *r, uint64_t address, struct error *err)
{
        if (r->address_count == LIMIT_SYMBOLIZE_KEYS)
                return error_set(err, ST_TOO_BIG, "more than %d addresses; split them into several requests",
                                 LIMIT_SYMBOLIZE_KEYS);
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
}; /* value plus one; 0: not a digit */

/* Read 1 to ADDRESS_DIGITS_MAX digits after leading zeros. @return their end; NULL: no digits, or too many */
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

static bool has_hex_prefix(const uint8_t *p)
{
        return p[0] == '0' && (p[1] | 0x20) == 'x';
}

static bool span_hex(const struct json_span *s, uint64_t *ret)
{
        const uint8_t *p = (const uint8_t *)s->text, *end = p + s->size;

        return read_hex(s->size > 2 && has_hex_prefix(p) ? p + 2 : p, end, ret) == end;
}

/* Fast path for addresses in the usual form, "0x..."; false, with nothing read, for other forms. */
static bool scan_plain(struct json_scan *s, uint64_t *ret)
{
        const uint8_t *p = s->at;

        if (s->end - p < 5 || *p != '"' || !has_hex_prefix(p + 1))
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

static enum status read_json_addresses(struct json_scan *s, struct symbolize_request *r, struct error *err)
{
        json_scan_array(s);
        while (json_scan_item(s)) {
                uint64_t address;
                enum status st;

                if (!scan_address(s, &address))
                        break;
                st = push_address(r, address, err);
                if (st)
                        return st;
        }
        return ST_OK;
}

static enum status read_json_object(struct json_scan *s, struct symbolize_request *r, struct error *err)
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
                        st = read_json_addresses(s, r, err);
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
        return add_requested_object(r, &id, file_offsets, err);
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
                        st = read_json_object(&s, ret, err);
        }
        if (!st)
                st = json_scan_end(&s, err);
        return !st && !has_objects ? error_set(err, ST_BAD_DATA, "the body has no array 'objects'") : st;
}

/* ---- protobuf */

static enum status read_proto_object(const Cairn__Symbolize__V1__SymbolizeRequest__Object *object,
                                     struct symbolize_request *r, struct error *err)
{
        struct build_id id;

        if (!build_id_from_bytes(&id, object->build_id.data, object->build_id.len))
                return error_set(err, ST_BAD_DATA, "object %zu has a build_id of %zu bytes", r->object_count,
                                 object->build_id.len);
        for (size_t i = 0; i < object->n_addresses; i++) {
                enum status st = push_address(r, object->addresses[i], err);

                if (st)
                        return st;
        }
        return add_requested_object(r, &id, object->file_offsets, err);
}

enum status symbolize_request_read_proto(const void *data, size_t n, struct symbolize_request *ret, struct error *err)
{
        const Cairn__Symbolize__V1__SymbolizeRequest *request;
        _cleanup_arena_ struct arena memory;
        const void *message;
        enum status st;

        arena_init_budget(&memory, REQUEST_MEMORY_BYTES, MEMORY_BODIES);
        st = proto_message_decode(&cairn__symbolize__v1__symbolize_request__descriptor, data, n, &memory, "protobuf",
                                  &message, err);
        if (st)
                return st;
        request = message;
        for (size_t i = 0; !st && i < request->n_objects; i++)
                st = read_proto_object(request->objects[i], ret, err);
        return st;
}
