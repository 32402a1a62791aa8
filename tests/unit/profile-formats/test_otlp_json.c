/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/json/json_scan.h"
#include "profile-formats/json/json_wire.h"
#include "profile-formats/otlp/otlp_json.h"
#include "tests/support/profile_text.h"
#include "tests/support/suite.h"

/* ---- decoding JSON strings */

static void check_text(const char *json, const char *want, size_t n)
{
        _cleanup_buf_ struct buf b;
        struct json_span span;
        struct json_scan s;

        buf_init(&b, 100);
        json_scan_init(&s, json, strlen(json));
        ck_assert_msg(json_scan_str(&s, &span), "%s", json);
        json_span_unescape(&span, &b);
        ck_assert_msg(b.size == n && memcmp(b.data ? b.data : (const uint8_t *)"", want, n) == 0, "%s", json);
}

START_TEST(escapes_are_decoded)
{
        check_text("\"\"", "", 0);
        check_text("\"plain\"", "plain", 5);
        check_text("\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"", "a\"\\/\b\f\n\r\tz", 10);
        check_text("\"\\u0000\\u007F\\u00e9\\u20AC\"", "\0\x7f\xc3\xa9\xe2\x82\xac", 7);
        check_text("\"\\ud83d\\ude00!\"", "\xf0\x9f\x98\x80!", 5);
}
END_TEST

START_TEST(lone_surrogate_becomes_replacement_character)
{
        check_text("\"\\ud83d\"", "\xef\xbf\xbd", 3);
        check_text("\"\\ude00x\"", "\xef\xbf\xbdx", 4);
        check_text("\"\\ud83d\\u0041\"",
                   "\xef\xbf\xbd"
                   "A",
                   4);
        check_text("\"\\ud83d\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80", 7);
}
END_TEST

/* ---- messages */

static const struct json_wire_field inner[] = { { "n", 1, JSON_WIRE_INTEGER, false, NULL }, { 0 } };
static const struct json_wire_field outer[] = {
        { "int", 1, JSON_WIRE_INTEGER, false, NULL },
        { "ints", 2, JSON_WIRE_INTEGER, true, NULL },
        { "times", 3, JSON_WIRE_FIXED64, true, NULL },
        { "real", 4, JSON_WIRE_DOUBLE, false, NULL },
        { "truth", 5, JSON_WIRE_BOOL, false, NULL },
        { "text", 6, JSON_WIRE_TEXT, false, NULL },
        { "id", 7, JSON_WIRE_HEX, false, NULL },
        { "in", 8, JSON_WIRE_MESSAGE, true, inner },
        { "data", 9, JSON_WIRE_BASE64, false, NULL },
        { "uint", 10, JSON_WIRE_UNSIGNED, false, NULL },
        { 0 },
};

static enum status convert(const char *json, struct buf *to, struct error *err)
{
        struct json_scan s;

        buf_init(to, 1000);
        json_scan_init(&s, json, strlen(json));
        json_wire_append(&s, outer, to);
        return json_scan_end(&s, err);
}

static void check_wire(const char *json, const char *want, size_t n)
{
        _cleanup_buf_ struct buf b;
        struct error err;

        ck_assert_msg(convert(json, &b, &err) == ST_OK, "%s: %s", json, err.text);
        ck_assert_msg(b.size == n && memcmp(b.data ? b.data : (const uint8_t *)"", want, n) == 0, "%s", json);
}
#define WIRE(json, bytes) check_wire(json, bytes, sizeof(bytes) - 1)

START_TEST(numbers_may_be_quoted_and_signed)
{
        WIRE("{\"int\": 300}", "\x08\xac\x02");
        WIRE("{\"int\": \"300\"}", "\x08\xac\x02");
        WIRE("{\"int\": -1}", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
        WIRE("{\"int\": \"-9223372036854775808\"}", "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01");
        WIRE("{\"uint\": \"18446744073709551615\"}", "\x50\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
        WIRE("{\"uint\": -0}", "\x50\0");
        WIRE("{\"int\": 3e2}", "\x08\xac\x02");
        WIRE("{\"int\": \"300.0\"}", "\x08\xac\x02");
        WIRE("{\"times\": [1.7e18, \"1.79812345678901234E+18\", 18446744073709551615.0, 0.00e-9, 1e19]}",
             "\x1a\x28\0\0\x2a\x36\xfe\x9c\x97\x17\x74\xdf\x34\xd0\xc1\x37\xf4\x18"
             "\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\xe8\x89\x04\x23\xc7\x8a");
        WIRE("{\"int\": -9.223372036854775808e18}", "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01");
        WIRE("{\"int\": -1.0}", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
        WIRE("{\"ints\": [1, \"2\", 300]}", "\x12\x04\x01\x02\xac\x02");
        WIRE("{\"times\": [\"1\"]}", "\x1a\x08\1\0\0\0\0\0\0\0");
        WIRE("{\"real\": 0}", "\x21\0\0\0\0\0\0\0\0");
        WIRE("{\"real\": \"-1.5e0\"}", "\x21\0\0\0\0\0\0\xf8\xbf");
        WIRE("{\"real\": \"-Infinity\"}", "\x21\0\0\0\0\0\0\xf0\xff");
}
END_TEST

START_TEST(remaining_types_are_decoded)
{
        WIRE("{\"truth\": true, \"text\": \"a\\u0062\", \"id\": \"00FFa0\"}", "\x28\x01\x32\x02"
                                                                              "ab\x3a\x03\0\xff\xa0");
        WIRE("{\"in\": [{\"n\": 1}, {}, null, {\"n\": null}]}", "\x42\x02\x08\x01\x42\0\x42\0\x42\0");
        WIRE("{\"ints\": null, \"in\": null, \"int\": null}", "");
        WIRE("null", "");
        WIRE("{\"Int\": 1, \"unknown\": {\"int\": [1, {\"x\": \"]\"}]}}", "");
}
END_TEST

START_TEST(bytes_are_base64_of_either_alphabet)
{
        WIRE("{\"data\": \"\"}", "\x4a\0");
        WIRE("{\"data\": \"+/8=\"}", "\x4a\x02\xfb\xff");
        WIRE("{\"data\": \"-_8\"}", "\x4a\x02\xfb\xff");
        WIRE("{\"data\": \"+\\/8\\u003d\"}", "\x4a\x02\xfb\xff");
        WIRE("{\"data\": \"YWI=\"}", "\x4a\x02\x61\x62");
        WIRE("{\"data\": \"YWJj\"}", "\x4a\x03\x61\x62\x63");
}
END_TEST

static void refused(const char *json, const char *why)
{
        _cleanup_buf_ struct buf b;
        struct error err = { 0 };

        ck_assert_msg(convert(json, &b, &err) == ST_BAD_DATA, "%s", json);
        ck_assert_msg(strstr(err.text, why) != NULL, "%s: %s", json, err.text);
}

START_TEST(malformed_json_is_refused_with_offset)
{
        refused("[]", "byte 0: expected an object");
        refused("{\"int\": 1.5}", "byte 8: expected a whole number of 64 bits");
        refused("{\"int\": \"\"}", "expected a whole number of 64 bits");
        refused("{\"int\": \"12 \"}", "expected a whole number of 64 bits");
        refused("{\"int\": \"18446744073709551616\"}", "expected a whole number of 64 bits");
        refused("{\"int\": 1.7000000000000000001e18}", "expected a whole number of 64 bits");
        refused("{\"int\": -9.223372036854775809e18}", "expected a whole number of 64 bits");
        refused("{\"int\": 9.3e18}", "byte 8: expected a number that fits the field");
        refused("{\"times\": [18446744073709551616.0]}", "expected a whole number of 64 bits");
        refused("{\"int\": 5e-1}", "expected a whole number of 64 bits");
        refused("{\"int\": 1e30}", "expected a whole number of 64 bits");
        refused("{\"int\": \"05\"}", "expected a whole number of 64 bits");
        refused("{\"int\": \"-00\"}", "expected a whole number of 64 bits");
        refused("{\"int\": \"5.\"}", "expected a whole number of 64 bits");
        refused("{\"int\": \".5e1\"}", "expected a whole number of 64 bits");
        refused("{\"int\": \"+5\"}", "expected a whole number of 64 bits");
        refused("{\"int\": \"9223372036854775808\"}", "byte 8: expected a number that fits the field");
        refused("{\"ints\": [1, 9223372036854775808]}", "byte 13: expected a number that fits the field");
        refused("{\"uint\": -1}", "byte 9: expected a number that fits the field");
        refused("{\"times\": [\"-1\"]}", "expected a number that fits the field");
        refused("{\"int\": true}", "byte 8: expected a number");
        refused("{\"int\":", "byte 7: expected a number");
        refused("{\"int\": -", "expected");
        refused("{\"ints\": 1}", "expected an array");
        refused("{\"ints\": [1,]}", "expected a number");
        refused("{\"real\": \"0x10\"}", "expected a number");
        refused("{\"real\": \"nan\"}", "expected a number");
        refused("{\"real\": \"1e\"}", "expected a number");
        refused("{\"id\": \"0\"}", "expected bytes as hexadecimal digits");
        refused("{\"id\": \"0g\"}", "expected bytes as hexadecimal digits");
        refused("{\"data\": \"Y\"}", "expected bytes in base64");
        refused("{\"data\": \"YW=\"}", "expected bytes in base64");
        refused("{\"data\": \"YW==YWJj\"}", "expected bytes in base64");
        refused("{\"data\": \"Y===\"}", "expected bytes in base64");
        refused("{\"data\": \"YW I\"}", "expected bytes in base64");
        refused("{\"text\": 5}", "expected text in quotes");
        refused("{\"truth\": 1}", "expected true or false");
        refused("{\"in\": [1]}", "expected an object");
        refused("{} {}", "expected the end");
}
END_TEST

START_TEST(json_over_the_limit_is_refused)
{
        _cleanup_buf_ struct buf b;
        struct json_scan s;

        buf_init(&b, 4);
        json_scan_init(&s, "{\"text\": \"longer\"}", 18);
        json_wire_append(&s, outer, &b);
        ck_assert_int_eq(buf_status(&b, NULL, "x"), ST_TOO_BIG);
}
END_TEST

/* ---- OTLP */

START_TEST(responses_have_specified_names)
{
        _cleanup_buf_ struct buf b;

        buf_init(&b, 1000);
        otlp_json_put_response(&b, 0, NULL);
        ck_assert_str_eq(buf_cstr(&b), "{}");
        buf_clear(&b);
        otlp_json_put_response(&b, 3, "why");
        ck_assert_str_eq(buf_cstr(&b), "{\"partialSuccess\":{\"rejectedProfiles\":\"3\",\"errorMessage\":\"why\"}}");
        buf_clear(&b);
        otlp_json_put_status(&b, 3, "no");
        ck_assert_str_eq(buf_cstr(&b), "{\"code\":3,\"message\":\"no\"}");
}
END_TEST

START_TEST(values_of_every_type_become_labels)
{
        static const char json[] =
                "{\"resourceProfiles\":[{\"resource\":{\"attributes\":["
                "{\"key\":\"zero\",\"value\":{\"doubleValue\":0}},{\"key\":\"inf\",\"value\":{\"doubleValue\":"
                "\"Infinity\"}},"
                "{\"key\":\"int\",\"value\":{\"intValue\":-5}},{\"key\":\"no\",\"value\":{\"boolValue\":false}},"
                "{\"key\":\"\\u00e9\",\"value\":{\"stringValue\":\"\\ud83d\\ude00\"}},"
                "{\"key\":\"list\",\"value\":{\"arrayValue\":{\"values\":[{\"intValue\":1}]}}}]},"
                "\"scopeProfiles\":[{\"profiles\":[{\"timeUnixNano\":\"7\",\"samples\":[{\"values\":[\"4\"]}]}]}]}],"
                "\"dictionary\":{\"stackTable\":[{}],\"stringTable\":[\"\"]}}";
        _cleanup_free_ char *text = NULL;
        _cleanup_profile_ struct profile p;
        struct error err;

        ck_assert_msg(otlp_json_decode(json, sizeof json - 1, &p, &err) == ST_OK, "%s", err.text);
        text = profile_to_text(&p);
        ck_assert_msg(strstr(text, " t=7 d=0 v=4 ") &&
                              strstr(text, "{inf=inf} {int=-5} {no=false} {service.name=unknown_service} {zero=0} "
                                           "{é=\xf0\x9f\x98\x80}"),
                      "%s", text);
}
END_TEST

TEST_SUITE("otlp json", escapes_are_decoded, lone_surrogate_becomes_replacement_character,
           numbers_may_be_quoted_and_signed, remaining_types_are_decoded, bytes_are_base64_of_either_alphabet,
           malformed_json_is_refused_with_offset, json_over_the_limit_is_refused, responses_have_specified_names,
           values_of_every_type_become_labels)
