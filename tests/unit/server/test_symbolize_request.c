/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>

#include "common/json/json_scan.h"
#include "common/limits.h"
#include "profile-formats/wire.h"
#include "server/api/symbolize/symbolicate_request.h"
#include "server/api/symbolize/symbolize_request.h"
#include "tests/support/suite.h"

static enum status read_json(const char *text, struct symbolize_request *ret, struct error *err)
{
        *ret = (struct symbolize_request){ 0 };
        return symbolize_request_read_json(text, strlen(text), ret, err);
}

/* Check that it is refused with this text, which contains the offset. */
static void check_refused(const char *text, const char *why)
{
        struct symbolize_request r;
        struct error err = { 0 };

        ck_assert_msg(read_json(text, &r, &err) == ST_BAD_DATA, "%s is taken", text);
        ck_assert_msg(strstr(err.text, why) != NULL, "%s: '%s', want '%s'", text, err.text, why);
        symbolize_request_deinit(&r);
}

START_TEST(members_come_in_any_order_and_unknown_ones_are_skipped)
{
        struct symbolize_request r;

        ck_assert_int_eq(
                read_json(" { \"x\": [1, -2.5e3, {\"y\": [null, true, \"\\u00e9\\\"\"]}, []], \"objects\" : [\n"
                          "{\"addresses\":[\"0x10\", \"Ff\",\"0\"],\"build_id\":\"aBcd\",\"z\":{}},"
                          "{\"file_offsets\":true,\"build_id\":\"00\",\"addresses\":[]},"
                          "{\"build_id\":\"abcd\",\"addresses\":[\"0xffffffffffffffff\"]}] } ",
                          &r, NULL),
                ST_OK);
        ck_assert_uint_eq(r.object_count, 3);
        ck_assert_uint_eq(r.address_count, 4);
        ck_assert_uint_eq(r.objects[0].end, 3);
        ck_assert_uint_eq(r.objects[1].end, 3);
        ck_assert_uint_eq(r.objects[2].end, 4);
        ck_assert(!r.objects[0].file_offsets && r.objects[1].file_offsets && !r.objects[2].file_offsets);
        ck_assert_uint_eq(r.addresses[1], 0xff);
        ck_assert_uint_eq(r.addresses[3], UINT64_MAX);
        ck_assert(build_id_equal(&r.objects[0].id, &r.objects[2].id));
        symbolize_request_deinit(&r);
}
END_TEST

START_TEST(malformed_request_is_refused_with_offset)
{
        check_refused("", "byte 0: expected an object");
        check_refused("[]", "byte 0: expected an object");
        check_refused("{}", "no array 'objects'");
        check_refused("{\"objects\":[]} x", "byte 15: expected the end");
        check_refused("{\"objects\":[],}", "expected text in quotes");
        check_refused("{\"objects\":{}}", "byte 11: expected an array");
        check_refused("{\"objects\":[],\"objects\":[]}", "'objects' once");
        check_refused("{\"objects\":[{\"build_id\":\"ab\"}]}", "expected an object with build_id");
        check_refused("{\"objects\":[{\"addresses\":[\"1\"]}]}", "expected an object with build_id");
        check_refused("{\"objects\":[{\"build_id\":\"abc\",\"addresses\":[]}]}", "byte 25: expected a build-id");
        check_refused("{\"objects\":[{\"build_id\":\"ab\",\"addresses\":[1]}]}", "byte 42: expected text in quotes");
        check_refused("{\"objects\":[{\"build_id\":\"ab\",\"addresses\":[\"g\"]}]}",
                      "byte 43: expected a hexadecimal address");
        check_refused("{\"objects\":[{\"build_id\":\"ab\",\"addresses\":[\"\"]}]}", "expected a hexadecimal address");
        check_refused("{\"objects\":[{\"build_id\":\"ab\",\"addresses\":[\"0x\"]}]}", "expected a hexadecimal address");
        check_refused("{\"objects\":[{\"build_id\":\"ab\",\"addresses\":[\"10000000000000000\"]}]}",
                      "expected a hexadecimal address");
        check_refused("{\"objects\":[{\"build_id\":\"ab\",\"addresses\":[\"1\" \"2\"]}]}", "expected ',' or ']'");
        check_refused("{\"objects\":[{\"file_offsets\":1,", "byte 28: expected true or false");
        check_refused("{\"objects\":[{\"file_offsets\":tru", "byte 28: expected true or false");
        check_refused("{\"x\":\"\\q\",\"objects\":[]}", "expected an escape");
        check_refused("{\"x\":01e,\"objects\":[]}", "expected");
        check_refused("{\"x\":nul,\"objects\":[]}", "expected a value");
}
END_TEST

START_TEST(truncated_requests_are_refused)
{
        static const char whole[] =
                "{\"a\":[{\"b\":-1.5e-3}],\"objects\":[{\"build_id\":\"abcd\",\"addresses\":[\"0x1\",\"2\"]}]}";

        for (size_t n = 0; n < sizeof whole - 1; n++) {
                _cleanup_free_ char *copy = malloc(n + 1);
                struct symbolize_request r = { 0 };

                memcpy(copy, whole, n);
                ck_assert_int_eq(symbolize_request_read_json(copy, n, &r, NULL), ST_BAD_DATA);
                symbolize_request_deinit(&r);
        }
}
END_TEST

START_TEST(deep_values_are_refused)
{
        _cleanup_buf_ struct buf b;
        struct symbolize_request r = { 0 };
        struct error err;

        buf_init(&b, MiB(1));
        buf_append_str(&b, "{\"x\":");
        for (unsigned i = 0; i < 100000; i++)
                buf_append_str(&b, "[");
        ck_assert_int_eq(symbolize_request_read_json(b.data, b.size, &r, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "fewer nested values"));
        symbolize_request_deinit(&r);
}
END_TEST

static void put_object(struct buf *b, const char *id, size_t id_size, const uint64_t *addresses, size_t count,
                       bool packed)
{
        size_t object = wire_begin(b, 1), column;

        if (!packed)
                for (size_t i = 0; i < count; i++)
                        wire_put_varint(b, 2, addresses[i]);
        wire_put_bytes(b, 1, id, id_size);
        wire_put_varint(b, 99, 5);
        if (packed) {
                column = wire_begin(b, 2);
                for (size_t i = 0; i < count; i++)
                        buf_append_uleb128(b, addresses[i]);
                wire_end(b, column);
                wire_put_varint(b, 3, 1);
        }
        wire_end(b, object);
}

START_TEST(protobuf_requests_are_equivalent)
{
        static const uint64_t some[] = { 0, 0x1234, UINT64_MAX };
        struct symbolize_request r = { 0 };
        _cleanup_buf_ struct buf b;
        struct error err;

        buf_init(&b, KiB(4));
        put_object(&b, "\xab\xcd", 2, some, 3, true);
        put_object(&b, "\x01", 1, some, 2, false);
        ck_assert_int_eq(symbolize_request_read_proto(b.data, b.size, &r, NULL), ST_OK);
        ck_assert_uint_eq(r.object_count, 2);
        ck_assert_uint_eq(r.objects[0].end, 3);
        ck_assert_uint_eq(r.objects[1].end, 5);
        ck_assert(r.objects[0].file_offsets && !r.objects[1].file_offsets);
        ck_assert_uint_eq(r.addresses[2], UINT64_MAX);
        ck_assert_uint_eq(r.addresses[4], 0x1234);
        ck_assert_uint_eq(r.objects[0].id.bytes[1], 0xcd);
        symbolize_request_deinit(&r);
        for (size_t n = 1; n < b.size; n++) {
                _cleanup_free_ uint8_t *copy = malloc(n);
                enum status st;

                memcpy(copy, b.data, n);
                st = symbolize_request_read_proto(copy, n, &r, &err);
                ck_assert(st == ST_BAD_DATA || (st == ST_OK && r.object_count == 1)); /* cut between two objects */
                symbolize_request_deinit(&r);
        }
        buf_clear(&b);
        put_object(&b, "", 0, some, 3, true);
        ck_assert_int_eq(symbolize_request_read_proto(b.data, b.size, &r, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "build_id of 0 bytes"));
        symbolize_request_deinit(&r);
}
END_TEST

START_TEST(too_many_addresses_are_too_big)
{
        struct symbolize_request r = { 0 };
        _cleanup_buf_ struct buf b;
        size_t object, column;
        struct error err;

        buf_init(&b, MiB(16));
        object = wire_begin(&b, 1);
        wire_put_bytes(&b, 1, "x", 1);
        column = wire_begin(&b, 2);
        for (size_t i = 0; i < LIMIT_SYMBOLIZE_KEYS + 1; i++)
                buf_append_u8(&b, 1);
        wire_end(&b, column);
        wire_end(&b, object);
        ck_assert_int_eq(symbolize_request_read_proto(b.data, b.size, &r, &err), ST_TOO_BIG);
        symbolize_request_deinit(&r);
}
END_TEST

START_TEST(numbers_are_parsed_exactly)
{
        static const struct {
                const char *text;
                bool fits;
                int64_t value;
        } cases[] = {
                { "0", true, 0 },
                { "-1", true, -1 },
                { "9223372036854775807", true, INT64_MAX },
                { "9223372036854775808", false, 0 },
                { "99999999999999999999", false, 0 },
                { "1.0", false, 0 },
                { "1e3", false, 0 },
                { "01", false, 0 },
                { "-", false, 0 },
                { "", false, 0 },
                { "\"1\"", false, 0 },
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct json_scan s;
                int64_t v = 7;

                json_scan_init(&s, cases[i].text, strlen(cases[i].text));
                ck_assert_msg(json_scan_int(&s, &v) == cases[i].fits, "%s", cases[i].text);
                ck_assert_int_eq(v, cases[i].fits ? cases[i].value : 7);
        }
}
END_TEST

START_TEST(a_debug_id_is_the_build_id_with_swapped_fields)
{
        static const uint8_t wanted[16] = { 0xc5, 0x61, 0xf3, 0xaa, 0x72, 0x32, 0xf2, 0xbd,
                                            0x6a, 0xc6, 0xd5, 0x6b, 0xd4, 0x75, 0xf1, 0xc1 };
        uint8_t guid[16];

        ck_assert(debug_id_parse("AAF361C53272BDF26AC6D56BD475F1C10", 33, guid));
        ck_assert_mem_eq(guid, wanted, 16);
        ck_assert(debug_id_parse("aaf361c53272bdf26ac6d56bd475f1c1ffffffff", 40, guid));
        ck_assert_mem_eq(guid, wanted, 16);
        ck_assert(!debug_id_parse("AAF361C53272BDF26AC6D56BD475F1C1", 32, guid));
        ck_assert(!debug_id_parse("AAF361C53272BDF26AC6D56BD475F1C1000000000", 41, guid));
        ck_assert(!debug_id_parse("AAF361C53272BDF26AC6D56BD475F1CG0", 33, guid));
}
END_TEST

START_TEST(frames_of_later_jobs_count_from_their_own_modules)
{
        static const char text[] =
                "{\"jobs\":[{\"memoryMap\":[[\"a\",\"x\"]],\"stacks\":[[[0,5]]]},"
                "{\"stacks\":[[],[[1,6],[-1,-1]]],\"version\":5,\"memoryMap\":[[\"b\",\"y\"],[\"c\",\"z\"]]}]}";
        struct symbolicate_request r;

        ck_assert_int_eq(symbolicate_request_read(text, sizeof text - 1, &r, NULL), ST_OK);
        ck_assert_uint_eq(r.job_count, 2);
        ck_assert_uint_eq(r.frames[0].module, 0);
        ck_assert_uint_eq(r.frames[1].module, 2);
        ck_assert_str_eq(r.modules[2].name, "c");
        ck_assert_uint_eq(r.frames[2].module, UINT32_MAX);
        ck_assert_uint_eq(r.stack_ends[1], 1);
        ck_assert_uint_eq(r.jobs[1].stacks_end, 3);
        symbolicate_request_deinit(&r);
        for (size_t n = 0; n < sizeof text - 1; n++) {
                _cleanup_free_ char *copy = malloc(n + 1);

                memcpy(copy, text, n);
                ck_assert_int_eq(symbolicate_request_read(copy, n, &r, NULL), ST_BAD_DATA);
                symbolicate_request_deinit(&r);
        }
}
END_TEST

TEST_SUITE("symbolize_request", a_debug_id_is_the_build_id_with_swapped_fields,
           frames_of_later_jobs_count_from_their_own_modules, members_come_in_any_order_and_unknown_ones_are_skipped,
           malformed_request_is_refused_with_offset, truncated_requests_are_refused, deep_values_are_refused,
           protobuf_requests_are_equivalent, too_many_addresses_are_too_big, numbers_are_parsed_exactly)
