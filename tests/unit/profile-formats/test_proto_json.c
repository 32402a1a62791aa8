/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <math.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "profile-formats/json/proto_json.h"
#include "profile-formats/proto/connect_upload.pb-c.h"
#include "profile-formats/proto/push.pb-c.h"
#include "profile-formats/proto/querier.pb-c.h"
#include "tests/support/suite.h"

static struct arena memory;

static enum status decode_json(const ProtobufCMessageDescriptor *type, const char *text, const void **ret,
                               struct error *err)
{
        arena_deinit(&memory);
        arena_init(&memory, KiB(64));
        return proto_json_decode(type, text, strlen(text), &memory, "request", ret, err);
}

static const Querier__SelectMergeStacktracesRequest *decode_stacktraces(const char *text)
{
        const void *message = NULL;
        struct error err = { .text = "" };

        ck_assert_msg(!decode_json(&querier__select_merge_stacktraces_request__descriptor, text, &message, &err),
                      "%s: %s", text, err.text);
        return message;
}

static void expect_written(const ProtobufCMessage *message, const char *text)
{
        _cleanup_buf_ struct buf b;

        buf_init(&b, KiB(4));
        proto_json_append(&b, message);
        ck_assert_int_eq(buf_status(&b, NULL, "message"), ST_OK);
        ck_assert_str_eq(buf_cstr(&b), text);
}

START_TEST(both_member_spellings_and_quoted_integers_are_accepted)
{
        static const char *const same[] = {
                "{\"profileTypeID\":\"a:b\",\"start\":\"-5\",\"end\":7,\"maxNodes\":9,\"format\":\"PROFILE_FORMAT_"
                "TREE\"}",
                " { \"profile_typeID\" : \"a\\u003ab\", \"start\":-5 ,\"end\":\"7\",\"max_nodes\":\"9\",\"format\":2 "
                "} ",
                "{\"profileTypeID\":\"a:b\",\"unknown\":{\"x\":[1,null]},\"labelSelector\":null,\"start\":-5,\"end\":7,"
                "\"maxNodes\":9,\"format\":2}",
        };

        for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
                const Querier__SelectMergeStacktracesRequest *r = decode_stacktraces(same[i]);

                ck_assert_str_eq(r->profile_typeid, "a:b");
                ck_assert_str_eq(r->label_selector, "");
                ck_assert_int_eq(r->start, -5);
                ck_assert_int_eq(r->end, 7);
                ck_assert_int_eq(r->max_nodes, 9);
                ck_assert_int_eq(r->format, QUERIER__PROFILE_FORMAT__PROFILE_FORMAT_TREE);
        }
}
END_TEST

START_TEST(repeated_messages_and_strings_are_decoded)
{
        const Querier__SelectMergeStacktracesRequest *r = decode_stacktraces(
                "{\"stackTraceSelector\":{\"callSite\":[{\"name\":\"main\"},{},{\"name\":\"a;b\"}],"
                "\"goPgo\":{\"keepLocations\":4294967295,\"aggregateCallees\":true}},\"spanSelector\":[\"1\",\"\"]}");

        ck_assert_uint_eq(r->stack_trace_selector->n_call_site, 3);
        ck_assert_str_eq(r->stack_trace_selector->call_site[0]->name, "main");
        ck_assert_str_eq(r->stack_trace_selector->call_site[1]->name, "");
        ck_assert_str_eq(r->stack_trace_selector->call_site[2]->name, "a;b");
        ck_assert_uint_eq(r->stack_trace_selector->go_pgo->keep_locations, UINT32_MAX);
        ck_assert(r->stack_trace_selector->go_pgo->aggregate_callees);
        ck_assert_uint_eq(r->n_span_selector, 2);
        ck_assert_str_eq(r->span_selector[1], "");
}
END_TEST

START_TEST(values_of_wrong_type_are_refused)
{
        static const char *const bad[] = {
                "",
                "[]",
                "null",
                "{\"start\":1.5}",
                "{\"start\":9223372036854775808}",
                "{\"start\":\"-9223372036854775809\"}",
                "{\"start\":\"x\"}",
                "{\"start\":true}",
                "{\"start\":[1]}",
                "{\"format\":\"PROFILE_FORMAT_X\"}",
                "{\"format\":2147483648}",
                "{\"format\":-2147483649}",
                "{\"format\":18446744073709551615}",
                "{\"labelSelector\":1}",
                "{\"labelSelector\":\"a\\u0000b\"}",
                "{\"labelSelector\":\"\xff\"}",
                "{\"spanSelector\":\"a\"}",
                "{\"spanSelector\":[null]}",
                "{\"stackTraceSelector\":[]}",
                "{\"stackTraceSelector\":{\"goPgo\":{\"keepLocations\":-1}}}",
                "{\"stackTraceSelector\":{\"goPgo\":{\"keepLocations\":4294967296}}}",
                "{\"start\":1",
                "{\"start\":1} x",
        };
        const void *message = NULL;
        struct error err;

        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                ck_assert_msg(decode_json(&querier__select_merge_stacktraces_request__descriptor, bad[i], &message,
                                          &err) == ST_BAD_DATA,
                              "%s", bad[i]);
                ck_assert_ptr_null(message); /* unchanged on failure */
        }
}
END_TEST

START_TEST(bytes_are_base64_of_either_alphabet)
{
        static const char *const same[] = { "\"+/8A\"", "\"-_8A\"", "\"+\\/8A\"" };
        static const char *const bad[] = {
                "\"A\"", "\"AAAAA\"", "\"AA=\"", "\"AAA==\"", "\"=\"", "\"A*==\"", "\"A=A=\""
        };
        static const struct {
                const char *text;
                size_t size;
        } sizes[] = { { "\"\"", 0 }, { "\"AA\"", 1 }, { "\"AA==\"", 1 }, { "\"AAA\"", 2 }, { "\"AAA=\"", 2 } };
        const Push__RawSample *sample;
        const void *message;
        struct error err;
        char text[64];

        for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
                snprintf(text, sizeof text, "{\"rawProfile\":%s}", same[i]);
                ck_assert_int_eq(decode_json(&push__raw_sample__descriptor, text, &message, &err), ST_OK);
                sample = message;
                ck_assert_uint_eq(sample->raw_profile.len, 3);
                ck_assert_mem_eq(sample->raw_profile.data, "\xfb\xff\0", 3);
                expect_written(&sample->base, "{\"rawProfile\":\"+/8A\"}");
        }
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                snprintf(text, sizeof text, "{\"rawProfile\":%s}", sizes[i].text);
                ck_assert_int_eq(decode_json(&push__raw_sample__descriptor, text, &message, &err), ST_OK);
                sample = message;
                ck_assert_uint_eq(sample->raw_profile.len, sizes[i].size);
        }
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                snprintf(text, sizeof text, "{\"rawProfile\":%s}", bad[i]);
                ck_assert_msg(decode_json(&push__raw_sample__descriptor, text, &message, &err) == ST_BAD_DATA, "%s",
                              text);
        }
}
END_TEST

START_TEST(numbers_are_encoded_as_proto_json)
{
        int64_t values[] = { 0, -1, INT64_MIN };
        Querier__Level level = QUERIER__LEVEL__INIT;
        Querier__Point point = QUERIER__POINT__INIT;
        Querier__QueryImpact impact = QUERIER__QUERY_IMPACT__INIT;
        Querier__GoPGO go = QUERIER__GO_PGO__INIT;
        Querier__SelectMergeStacktracesRequest request = QUERIER__SELECT_MERGE_STACKTRACES_REQUEST__INIT;

        expect_written(&level.base, "{}");
        level.n_values = 3;
        level.values = values;
        expect_written(&level.base, "{\"values\":[\"0\",\"-1\",\"-9223372036854775808\"]}");
        point.value = 0.1;
        point.timestamp = 5;
        expect_written(&point.base, "{\"value\":0.1,\"timestamp\":\"5\"}");
        point.timestamp = 0;
        point.value = -INFINITY;
        expect_written(&point.base, "{\"value\":\"-Infinity\"}");
        point.value = NAN;
        expect_written(&point.base, "{\"value\":\"NaN\"}");
        impact.total_queried_series = UINT64_MAX;
        expect_written(&impact.base, "{\"totalQueriedSeries\":\"18446744073709551615\"}");
        go.keep_locations = UINT32_MAX;
        go.aggregate_callees = true;
        expect_written(&go.base, "{\"keepLocations\":4294967295,\"aggregateCallees\":true}");
        request.format = QUERIER__PROFILE_FORMAT__PROFILE_FORMAT_PPROF;
        expect_written(&request.base, "{\"format\":\"PROFILE_FORMAT_PPROF\"}");
        request.format = (Querier__ProfileFormat)77;
        expect_written(&request.base, "{\"format\":77}");
}
END_TEST

START_TEST(strings_and_messages_are_encoded_nested)
{
        Querier__LabelPair pair = QUERIER__LABEL_PAIR__INIT, empty = QUERIER__LABEL_PAIR__INIT,
                           *pairs[] = { &pair, &empty };
        Querier__Labels labels = QUERIER__LABELS__INIT, *sets[] = { &labels };
        Querier__SeriesResponse response = QUERIER__SERIES_RESPONSE__INIT;
        char *names[] = { (char *)"", (char *)"\"\\\n" };
        Querier__NamesResponse list = QUERIER__NAMES_RESPONSE__INIT;

        pair.name = (char *)"a";
        pair.value = (char *)"\xff";
        labels.n_labels = 2;
        labels.labels = pairs;
        response.n_labels_set = 1;
        response.labels_set = sets;
        expect_written(&response.base,
                       "{\"labelsSet\":[{\"labels\":[{\"name\":\"a\",\"value\":\"\xef\xbf\xbd\"},{}]}]}");
        list.n_names = 2;
        list.names = names;
        expect_written(&list.base, "{\"names\":[\"\",\"\\\"\\\\\\n\"]}");
}
END_TEST

START_TEST(message_memory_is_limited_and_charged)
{
        _cleanup_buf_ struct buf text;
        const void *message;
        struct error err;
        size_t before = memory_use_held(MEMORY_BODIES);

        buf_init(&text, MiB(1));
        buf_append_str(&text, "{\"spanSelector\":[\"\"");
        for (int i = 0; i < 20000; i++)
                buf_append_str(&text, ",\"\"");
        buf_append_str(&text, "]}");
        arena_deinit(&memory);
        arena_init(&memory, KiB(100));
        ck_assert_int_eq(proto_json_decode(&querier__select_merge_stacktraces_request__descriptor, text.data, text.size,
                                           &memory, "request", &message, &err),
                         ST_TOO_BIG);
        arena_deinit(&memory);
        arena_init_budget(&memory, MiB(8), MEMORY_BODIES);
        ck_assert_int_eq(proto_json_decode(&querier__select_merge_stacktraces_request__descriptor, text.data, text.size,
                                           &memory, "request", &message, &err),
                         ST_OK);
        ck_assert_uint_ge(memory_use_held(MEMORY_BODIES), before + 20000 * sizeof(char *));
        arena_deinit(&memory);
        ck_assert_uint_eq(memory_use_held(MEMORY_BODIES), before);
}
END_TEST

static void set_up(void)
{
        arena_init(&memory, 0);
}

static void tear_down(void)
{
        arena_deinit(&memory);
}

TEST_SUITE_WITH_FIXTURE("ProtoJSON", both_member_spellings_and_quoted_integers_are_accepted,
                        repeated_messages_and_strings_are_decoded, values_of_wrong_type_are_refused,
                        bytes_are_base64_of_either_alphabet, numbers_are_encoded_as_proto_json,
                        strings_and_messages_are_encoded_nested, message_memory_is_limited_and_charged)
