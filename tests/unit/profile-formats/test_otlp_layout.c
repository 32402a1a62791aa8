/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of each version of OTLP profiles, written field by field: the value stored is the one sent, or none is. */
#include <check.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/otlp/otlp_json.h"
#include "profile-formats/otlp/otlp_layout.h"
#include "tests/support/suite.h"

#define TIME_NS UINT64_C(1700000000000000000)

static const struct otlp_sample_fields v1_9 = { .values = 2, .attributes = 3, .link = 4 };
static const struct otlp_sample_fields v1_10 = { .values = 4, .attributes = 2, .link = 3 };

/* A list ends at its first -1. */
struct sent_sample {
        int64_t values[4], attributes[4];
        uint64_t link;
        uint32_t times;
};

#define NONE                                                                                                           \
        {                                                                                                              \
                -1                                                                                                     \
        }

struct sent_request {
        const struct otlp_sample_fields *fields;
        bool is_unpacked;
        uint32_t attributes, links; /* entries of the tables after entry 0 */
        uint32_t attribute_of_mapping;
        struct sent_sample samples[3];
        uint32_t count;
};

static void put_list(struct buf *b, uint32_t field, const int64_t *items, bool is_unpacked)
{
        size_t mark;

        if (items[0] == -1)
                return;
        if (is_unpacked) {
                for (int i = 0; i < 4 && items[i] != -1; i++)
                        wire_put_varint(b, field, (uint64_t)items[i]);
                return;
        }
        mark = wire_begin(b, field);
        for (int i = 0; i < 4 && items[i] != -1; i++)
                buf_append_uleb128(b, (uint64_t)items[i]);
        wire_end(b, mark);
}

static void put_sample(struct buf *b, const struct sent_request *q, const struct sent_sample *s)
{
        size_t mark = wire_begin(b, PROFILE_SAMPLES), times;

        wire_put_varint(b, SAMPLE_STACK, 1);
        for (uint32_t number = 2; number <= 4; number++) {
                if (number == q->fields->values)
                        put_list(b, number, s->values, q->is_unpacked);
                else if (number == q->fields->attributes)
                        put_list(b, number, s->attributes, q->is_unpacked);
                else
                        wire_put_uint(b, number, s->link);
        }
        if (s->times) {
                times = wire_begin(b, SAMPLE_TIMESTAMPS);
                for (uint32_t i = 0; i < s->times; i++)
                        buf_append_u64(b, TIME_NS + i);
                wire_end(b, times);
        }
        wire_end(b, mark);
}

static void put_attribute(struct buf *b, uint32_t i)
{
        char text[] = { 'w', (char)('0' + i), 0 };
        size_t mark = wire_begin(b, DICTIONARY_ATTRIBUTES), value;

        wire_put_varint(b, ATTRIBUTE_KEY, 4);
        value = wire_begin(b, ATTRIBUTE_VALUE);
        wire_put_str(b, ANY_STRING, text);
        wire_end(b, value);
        wire_end(b, mark);
}

static void put_tables(struct buf *b, const struct sent_request *q)
{
        static const char *const strings[] = { "", "cpu", "nanoseconds", "leaf", "thread.name" };
        size_t d = wire_begin(b, REQUEST_DICTIONARY), mark, line;

        for (int i = 0; i < 5; i++)
                wire_put_bytes(b, DICTIONARY_STRINGS, strings[i], strlen(strings[i]));
        wire_put_bytes(b, DICTIONARY_ATTRIBUTES, NULL, 0);
        for (uint32_t i = 1; i <= q->attributes; i++)
                put_attribute(b, i);
        wire_put_bytes(b, DICTIONARY_MAPPINGS, NULL, 0);
        mark = wire_begin(b, DICTIONARY_MAPPINGS);
        if (q->attribute_of_mapping)
                wire_put_bytes(b, MAPPING_ATTRIBUTES, (char[]){ (char)q->attribute_of_mapping }, 1);
        wire_end(b, mark);
        wire_put_bytes(b, DICTIONARY_FUNCTIONS, NULL, 0);
        mark = wire_begin(b, DICTIONARY_FUNCTIONS);
        wire_put_varint(b, FUNCTION_NAME, 3);
        wire_end(b, mark);
        wire_put_bytes(b, DICTIONARY_LOCATIONS, NULL, 0);
        mark = wire_begin(b, DICTIONARY_LOCATIONS);
        wire_put_varint(b, LOCATION_MAPPING, 1);
        line = wire_begin(b, LOCATION_LINES);
        wire_put_varint(b, LINE_FUNCTION, 1);
        wire_end(b, line);
        wire_end(b, mark);
        wire_put_bytes(b, DICTIONARY_LINKS, NULL, 0);
        for (uint32_t i = 1; i <= q->links; i++) {
                const char id[16] = { (char)i };

                mark = wire_begin(b, DICTIONARY_LINKS);
                wire_put_bytes(b, LINK_TRACE_ID, id, 16);
                wire_put_bytes(b, LINK_SPAN_ID, id, 8);
                wire_end(b, mark);
        }
        wire_put_bytes(b, DICTIONARY_STACKS, NULL, 0);
        wire_put_bytes(b, DICTIONARY_STACKS, "\x0a\x01\x01", 3);
        wire_end(b, d);
}

static enum status decode_sent(const struct sent_request *q, struct profile *ret, struct error *err)
{
        _cleanup_buf_ struct buf b;
        size_t rp, sp, p, type;

        *err = (struct error){ 0 };
        buf_init(&b, MiB(1));
        rp = wire_begin(&b, REQUEST_RESOURCE_PROFILES);
        sp = wire_begin(&b, RESOURCE_PROFILES_SCOPE_PROFILES);
        p = wire_begin(&b, SCOPE_PROFILES_PROFILES);
        type = wire_begin(&b, PROFILE_SAMPLE_TYPE);
        wire_put_varint(&b, VALUE_TYPE_TYPE, 1);
        wire_put_varint(&b, VALUE_TYPE_UNIT, 2);
        wire_end(&b, type);
        wire_put_fixed64(&b, PROFILE_TIME, TIME_NS);
        for (uint32_t i = 0; i < q->count; i++)
                put_sample(&b, q, &q->samples[i]);
        wire_end(&b, p);
        wire_end(&b, sp);
        wire_end(&b, rp);
        put_tables(&b, q);
        return otlp_decode(b.data, b.size, ret, err);
}

static int64_t sum_values(const struct profile *p)
{
        int64_t sum = 0;

        for (uint32_t i = 0; i < p->samples.count; i++)
                sum += p->samples.items[i].value;
        return sum;
}

/* The only attribute that is sent, "" without it. */
static const char *label_of(const struct profile *p, uint32_t sample)
{
        const struct profile_sample *s = &p->samples.items[sample];
        const struct profile_label *labels = p->labels.items + s->first_label;

        for (uint32_t i = 0; i < s->label_count; i++)
                if (strcmp(profile_text(p, labels[i].key), "thread.name") == 0)
                        return profile_text(p, labels[i].value);
        return "";
}

struct expected {
        struct sent_request request;
        int64_t sum;
        const char *label; /* of the first sample */
        uint8_t link;
};

static void check_decoded(const struct expected *e, const char *what, size_t number)
{
        struct profile p;
        struct error err;

        ck_assert_msg(decode_sent(&e->request, &p, &err) == ST_OK, "%s %zu: %s", what, number, err.text);
        ck_assert_msg(sum_values(&p) == e->sum, "%s %zu: %jd instead of %jd", what, number, (intmax_t)sum_values(&p),
                      (intmax_t)e->sum);
        ck_assert_str_eq(label_of(&p, 0), e->label);
        ck_assert_uint_eq(p.samples.items[0].trace_id[0], e->link);
        profile_deinit(&p);
}

START_TEST(samples_of_1_9_have_their_values_and_labels)
{
        static const struct expected sent[] = {
                /* Attributes packed in field 3. */
                { { &v1_9, false, 8, 8, 0, { { { 5, -1 }, { 2, -1 }, 7, 0 } }, 1 }, 5, "w2", 7 },
                { { &v1_9, false, 8, 8, 0, { { { 5, -1 }, { 2, -1 }, 7, 1 } }, 1 }, 5, "w2", 7 },
                /* Values packed, and a number in field 4. */
                { { &v1_9, false, 8, 8, 0, { { { 5, -1 }, NONE, 7, 0 } }, 1 }, 5, "", 7 },
                { { &v1_9, false, 8, 8, 0, { { { 5, -1 }, NONE, 7, 1 } }, 1 }, 5, "", 7 },
                /* Outside the table of attributes. */
                { { &v1_9, false, 8, 8, 0, { { { 10000000, -1 }, NONE, 0, 0 } }, 1 }, 10000000, "", 0 },
                { { &v1_9, false, 8, 8, 0, { { { 9, -1 }, NONE, 0, 1 } }, 1 }, 9, "", 0 },
                { { &v1_9, false, 8, 8, 0, { { { -5, -1 }, NONE, 0, 0 } }, 1 }, -5, "", 0 },
                { { &v1_9, false, 0, 0, 0, { { { 1, -1 }, NONE, 0, 1 } }, 1 }, 1, "", 0 },
                { { &v1_9, false, 3, 0, 0, { { { 2, -1 }, NONE, 0, 1 }, { { 4, -1 }, NONE, 0, 1 } }, 2 }, 6, "", 0 },
                /* No sample has values in the fields of 1.10. */
                { { &v1_9, false, 8, 8, 0, { { { 5, -1 }, NONE, 0, 0 }, { { 0, -1 }, NONE, 0, 0 } }, 2 }, 5, "", 0 },
                /* An attribute twice. */
                { { &v1_9, false, 8, 8, 0, { { { 5, 5, -1 }, NONE, 0, 2 } }, 1 }, 10, "", 0 },
                /* Not packed, as async-profiler 4.3 and 4.4 write them. */
                { { &v1_9, true, 5, 0, 0, { { { 3, -1 }, { 2, -1 }, 0, 0 }, { { 1, -1 }, { 1, -1 }, 0, 0 } }, 2 },
                  4,
                  "w2",
                  0 },
                { { &v1_9, true, 0, 0, 0, { { { 3, -1 }, NONE, 0, 0 }, { { 18, -1 }, NONE, 0, 0 } }, 2 }, 21, "", 0 },
        };

        for (size_t i = 0; i < sizeof sent / sizeof *sent; i++)
                check_decoded(&sent[i], "1.9", i);
}
END_TEST

START_TEST(samples_of_1_10_have_their_values_and_labels)
{
        static const struct expected sent[] = {
                { { &v1_10, false, 8, 8, 0, { { { 5, -1 }, { 2, -1 }, 7, 0 } }, 1 }, 5, "w2", 7 },
                { { &v1_10, false, 8, 8, 0, { { { 5, -1 }, { 2, -1 }, 7, 1 } }, 1 }, 5, "w2", 7 },
                { { &v1_10, false, 8, 8, 0, { { { 5, -1 }, NONE, 0, 0 } }, 1 }, 5, "", 0 },
                /* Only the second sample has values. */
                { { &v1_10, false, 8, 8, 0, { { NONE, { 2, -1 }, 0, 3 }, { { 9, -1 }, NONE, 0, 0 } }, 2 },
                  12,
                  "w2",
                  0 },
                /* Timestamps without values: as many as attributes, then not. */
                { { &v1_10, false, 1, 0, 0, { { NONE, { 1, -1 }, 0, 1 } }, 1 }, 1, "w1", 0 },
                { { &v1_10, false, 2, 0, 2, { { NONE, { 1, -1 }, 0, 1 } }, 1 }, 1, "w1", 0 },
                { { &v1_10, false, 8, 8, 0, { { NONE, { 2, -1 }, 0, 3 } }, 1 }, 3, "w2", 0 },
                { { &v1_10, false, 2, 1, 0, { { NONE, { 1, -1 }, 1, 1 }, { NONE, { 2, -1 }, 0, 1 } }, 2 }, 2, "w1", 1 },
                /* The layouts agree. */
                { { &v1_10, false, 8, 8, 0, { { NONE, NONE, 0, 3 } }, 1 }, 3, "", 0 },
                /* Not packed, as async-profiler 4.5 and later write them. */
                { { &v1_10, true, 5, 0, 0, { { { 3, -1 }, { 2, -1 }, 0, 0 }, { { 1, -1 }, { 1, -1 }, 0, 0 } }, 2 },
                  4,
                  "w2",
                  0 },
                { { &v1_10, true, 0, 0, 0, { { { 3, -1 }, NONE, 0, 0 } }, 1 }, 3, "", 0 },
                { { &v1_10, true, 2, 2, 0, { { { 2, -1 }, { 1, -1 }, 2, 0 }, { { 7, -1 }, { 2, -1 }, 1, 0 } }, 2 },
                  9,
                  "w1",
                  2 },
        };

        for (size_t i = 0; i < sizeof sent / sizeof *sent; i++)
                check_decoded(&sent[i], "1.10", i);
}
END_TEST

START_TEST(samples_that_fit_both_layouts_are_refused)
{
        static const struct sent_request sent[] = {
                { &v1_9, false, 8, 8, 0, { { { 5, -1 }, NONE, 0, 1 } }, 1 },
                { &v1_9, false, 8, 0, 0, { { { 1, 2, -1 }, NONE, 0, 2 }, { { 3, -1 }, NONE, 0, 1 } }, 2 },
                { &v1_9, false, 1, 0, 1, { { { 1, -1 }, NONE, 0, 1 } }, 1 },
                { &v1_10, false, 8, 8, 0, { { NONE, { 2, -1 }, 0, 1 } }, 1 },
                /* The attribute is not used, but its number is the value. */
                { &v1_9, false, 1, 0, 0, { { { 1, -1 }, NONE, 0, 0 } }, 1 },
                { &v1_10, true, 2, 2, 0, { { { 2, -1 }, { 1, -1 }, 2, 0 }, { { 1, -1 }, { 2, -1 }, 1, 0 } }, 2 },
        };
        struct profile p;
        struct error err;

        for (size_t i = 0; i < sizeof sent / sizeof *sent; i++) {
                ck_assert_msg(decode_sent(&sent[i], &p, &err) == ST_BAD_DATA, "request %zu", i);
                ck_assert_ptr_nonnull(strstr(err.text, "update the sender to 1.10.0 or later"));
        }
}
END_TEST

START_TEST(the_first_version_of_a_field_is_not_mixed_with_another)
{
        struct sent_request q = { &v1_9, false, 8, 8, 0, { { { 5, -1 }, { 2, -1 }, 0, 0 } }, 1 };
        _cleanup_buf_ struct buf b;
        struct profile p;
        struct error err = { 0 };
        size_t rp, sp, profile;

        buf_init(&b, MiB(1));
        rp = wire_begin(&b, REQUEST_RESOURCE_PROFILES);
        sp = wire_begin(&b, RESOURCE_PROFILES_SCOPE_PROFILES);
        profile = wire_begin(&b, SCOPE_PROFILES_PROFILES);
        put_sample(&b, &q, &q.samples[0]);
        q.fields = &v1_10;
        put_sample(&b, &q, &q.samples[0]);
        wire_end(&b, profile);
        wire_end(&b, sp);
        wire_end(&b, rp);
        put_tables(&b, &q);
        ck_assert_int_eq(otlp_decode(b.data, b.size, &p, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "both versions"));
}
END_TEST

START_TEST(json_has_names_and_no_layout)
{
        static const char json[] =
                "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"timeUnixNano\":\"1700000000000000000\","
                "\"samples\":[{\"stackIndex\":1,\"attributeIndices\":[1],\"timestampsUnixNano\":["
                "\"1700000000000000000\"]}]"
                "}]}]}],\"dictionary\":{\"stringTable\":[\"\",\"thread.name\"],\"stackTable\":[{},{}],"
                "\"attributeTable\":"
                "[{},{\"keyStrindex\":1,\"value\":{\"stringValue\":\"w1\"}},{\"keyStrindex\":1}]}}";
        static const char old[] = "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"timeNanos\":\"17\","
                                  "\"sample\":[{\"value\":[1]}]}]}]}]}";
        _cleanup_profile_ struct profile p;
        struct error err = { 0 };

        ck_assert_msg(otlp_json_decode(json, sizeof json - 1, &p, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(sum_values(&p), 1);
        ck_assert_str_eq(label_of(&p, 0), "w1");
        {
                struct profile q;

                ck_assert_int_eq(otlp_json_decode(old, sizeof old - 1, &q, &err), ST_BAD_DATA);
                ck_assert_ptr_nonnull(strstr(err.text, "older than 1.8.0"));
        }
}
END_TEST

TEST_SUITE("otlp_layout", samples_of_1_9_have_their_values_and_labels, samples_of_1_10_have_their_values_and_labels,
           samples_that_fit_both_layouts_are_refused, the_first_version_of_a_field_is_not_mixed_with_another,
           json_has_names_and_no_layout)
