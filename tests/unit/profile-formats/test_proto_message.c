/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stddef.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/json/proto_json.h"
#include "profile-formats/proto/push.pb-c.h"
#include "profile-formats/proto/querier.pb-c.h"
#include "profile-formats/wire.h"
#include "tests/support/suite.h"

/* message Node { Node child = 1; }: the project's own schemas are not recursive. */
struct node {
        ProtobufCMessage base;
        struct node *child;
};

static const ProtobufCMessageDescriptor node_descriptor;
static const ProtobufCFieldDescriptor node_fields[] = {
        { .name = "child",
          .id = 1,
          .label = PROTOBUF_C_LABEL_NONE,
          .type = PROTOBUF_C_TYPE_MESSAGE,
          .offset = offsetof(struct node, child),
          .descriptor = &node_descriptor },
};
static const ProtobufCIntRange node_ranges[] = { { 1, 0 }, { 0, 1 } };
static const unsigned node_indices[] = { 0 };
static const ProtobufCMessageDescriptor node_descriptor = { .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
                                                            .name = "Node",
                                                            .sizeof_message = sizeof(struct node),
                                                            .n_fields = 1,
                                                            .fields = node_fields,
                                                            .fields_sorted_by_name = node_indices,
                                                            .n_field_ranges = 1,
                                                            .field_ranges = node_ranges };

static enum status decode_push(const struct buf *b, size_t max, enum status (*check)(const Push__PushRequest *),
                               struct error *err)
{
        _cleanup_arena_ struct arena memory;
        const void *message = NULL;
        enum status st;

        arena_init(&memory, max);
        st = proto_message_decode(&push__push_request__descriptor, b->data, b->size, &memory, "request", &message, err);
        ck_assert(!st == (message != NULL)); /* unchanged on failure */
        return st || !check ? st : check(message);
}

static enum status check_two_labels(const Push__PushRequest *request)
{
        ck_assert_uint_eq(request->n_series, 1);
        ck_assert_uint_eq(request->series[0]->n_labels, 2);
        ck_assert_uint_eq(request->series[0]->labels[1]->name.len, 3);
        ck_assert_mem_eq(request->series[0]->labels[1]->name.data, "a\0b", 3);
        return ST_OK;
}

START_TEST(message_round_trips)
{
        Push__LabelPair first = PUSH__LABEL_PAIR__INIT, second = PUSH__LABEL_PAIR__INIT;
        Push__LabelPair *labels[] = { &first, &second };
        Push__RawProfileSeries series = PUSH__RAW_PROFILE_SERIES__INIT, *all_series[] = { &series };
        Push__PushRequest request = PUSH__PUSH_REQUEST__INIT;
        _cleanup_buf_ struct buf b;

        first.name = proto_bytes("x", 1);
        second.name = proto_bytes("a\0b", 3);
        series.n_labels = 2;
        series.labels = labels;
        request.n_series = 1;
        request.series = all_series;
        buf_init(&b, KiB(1));
        proto_message_append(&b, &request.base);
        ck_assert_int_eq(buf_status(&b, NULL, "message"), ST_OK);
        ck_assert_int_eq(decode_push(&b, KiB(4), check_two_labels, NULL), ST_OK);
}
END_TEST

START_TEST(message_over_buffer_limit_fails_the_buffer)
{
        Push__LabelPair label = PUSH__LABEL_PAIR__INIT;
        _cleanup_buf_ struct buf b;

        label.name = proto_bytes("0123456789", 10);
        buf_init(&b, 8);
        proto_message_append(&b, &label.base);
        ck_assert_int_eq(buf_status(&b, NULL, "message"), ST_TOO_BIG);
        ck_assert_uint_eq(b.size, 0);
}
END_TEST

START_TEST(memory_is_limited)
{
        _cleanup_buf_ struct buf b;
        struct error err;

        buf_init(&b, MiB(1));
        for (unsigned i = 0; i < 10000; i++) /* two bytes each, more than a hundred when decoded */
                wire_end(&b, wire_begin(&b, 1));
        ck_assert_int_eq(decode_push(&b, KiB(256), NULL, &err), ST_TOO_BIG);
        ck_assert_int_eq(decode_push(&b, MiB(16), NULL, &err), ST_OK);
}
END_TEST

START_TEST(errors_name_the_offset)
{
        _cleanup_buf_ struct buf b;
        struct error err;

        buf_init(&b, KiB(1));
        buf_append(&b, "\x0a\x04\x0a\x02\x0a\x7f", 6); /* the label name extends past the request */
        ck_assert_int_eq(decode_push(&b, KiB(4), NULL, &err), ST_BAD_DATA);
        ck_assert_msg(strstr(err.text, "0x6"), "%s", err.text);
        buf_clear(&b);
        wire_put_varint(&b, 1, 7);
        ck_assert_int_eq(decode_push(&b, KiB(4), NULL, &err), ST_BAD_DATA);
        ck_assert_msg(strstr(err.text, "'series' with a wrong wire type"), "%s", err.text);
}
END_TEST

START_TEST(depth_is_limited)
{
        uint8_t nested[2 * (PROTO_DEPTH_MAX + 1)];

        for (size_t i = 0; i < sizeof nested; i += 2) {
                nested[i] = 1 << 3 | WIRE_BYTES;
                nested[i + 1] = (uint8_t)(sizeof nested - i - 2);
        }
        for (size_t levels = PROTO_DEPTH_MAX; levels <= PROTO_DEPTH_MAX + 1; levels++) {
                size_t n = 2 * (levels - 1); /* the outermost message has no tag */
                _cleanup_arena_ struct arena memory;
                const void *message;
                struct error err;
                enum status st;

                arena_init(&memory, KiB(64));
                st = proto_message_decode(&node_descriptor, nested + sizeof nested - n, n, &memory, "tree", &message,
                                          &err);
                ck_assert_int_eq(st, levels > PROTO_DEPTH_MAX ? ST_BAD_DATA : ST_OK);
                ck_assert_msg(!st || strstr(err.text, "nested more than"), "%s", err.text);
        }
}
END_TEST

START_TEST(depth_of_json_is_limited)
{
        for (unsigned levels = PROTO_DEPTH_MAX; levels <= PROTO_DEPTH_MAX + 1; levels++) {
                _cleanup_arena_ struct arena memory;
                _cleanup_buf_ struct buf b;
                const void *message;
                struct error err;

                buf_init(&b, KiB(4));
                for (unsigned i = 1; i < levels; i++)
                        buf_append_str(&b, "{\"child\":");
                for (unsigned i = 0; i < levels; i++)
                        buf_append_str(&b, i ? "}" : "{}");
                arena_init(&memory, KiB(64));
                ck_assert_int_eq(proto_json_decode(&node_descriptor, b.data, b.size, &memory, "tree", &message, &err),
                                 levels > PROTO_DEPTH_MAX ? ST_BAD_DATA : ST_OK);
        }
}
END_TEST

START_TEST(string_with_nul_or_invalid_utf8_is_refused)
{
        static const char *const texts[] = { "\x0a\x03"
                                             "a\0b",
                                             "\x0a\x03"
                                             "a\xff"
                                             "b",
                                             "\x0a\x03"
                                             "abc" };

        for (size_t i = 0; i < 3; i++) {
                _cleanup_arena_ struct arena memory;
                const void *message;
                struct error err;

                arena_init(&memory, KiB(64));
                ck_assert_int_eq(proto_message_decode(&querier__location__descriptor, texts[i], 5, &memory, "location",
                                                      &message, &err),
                                 i < 2 ? ST_BAD_DATA : ST_OK);
        }
}
END_TEST

TEST_SUITE("proto_message", message_round_trips, message_over_buffer_limit_fails_the_buffer, memory_is_limited,
           errors_name_the_offset, depth_is_limited, depth_of_json_is_limited,
           string_with_nul_or_invalid_utf8_is_refused)
