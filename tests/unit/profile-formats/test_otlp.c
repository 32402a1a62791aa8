/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <inttypes.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/otlp/otlp_fields.h"
#include "profile-formats/wire.h"
#include "tests/support/profile_text.h"
#include "tests/support/suite.h"

static uint32_t str(struct profile *p, const char *text)
{
        uint32_t ret;

        ck_assert_int_eq(profile_add_string(p, text, strlen(text), &ret, NULL), ST_OK);
        return ret;
}

/* A profile with one of everything. */
static void make_profile(struct profile *p)
{
        struct profile_mapping app = { .file = 0 }, unknown = { 0 };
        struct profile_label service[2], other[3];
        struct profile_location l = { 0 };
        struct profile_sample s = { 0 };
        struct profile_type type;
        uint32_t map, nameless, types[2], stacks[3], first, n;
        uint32_t leaf, inlined, kernel, interpreted, raw;

        ck_assert_int_eq(profile_init(p, MiB(16), NULL), ST_OK);
        ck_assert(build_id_from_hex(&app.build_id, "0123456789abcdef0123456789abcdef01234567", 40));
        app.file = str(p, "/usr/bin/app");
        ck_assert_int_eq(profile_add_mapping(p, &app, &map, NULL), ST_OK);
        ck_assert_int_eq(profile_add_mapping(p, &unknown, &nameless, NULL), ST_OK);

        l = (struct profile_location){ .mapping = map, .frame_type = PROFILE_FRAME_NATIVE, .address = 0x401234 };
        ck_assert_int_eq(profile_add_location(p, &l, &leaf, NULL), ST_OK);
        l = (struct profile_location){
                .mapping = map, .kind = ADDRESS_FILE_OFFSET, .address = 0x2000, .line_count = 2
        };
        l.first_line = p->lines.count;
        ck_assert_int_eq(
                profile_add_line(p, &(struct profile_line){ str(p, "inner"), 0, str(p, "a.h"), 7, 5 }, &n, NULL), 0);
        ck_assert_int_eq(profile_add_line(p,
                                          &(struct profile_line){ str(p, "outer(int)"), str(p, "_Z5outeri"),
                                                                  str(p, "a.cc"), 70, 60 },
                                          &n, NULL),
                         0);
        ck_assert_int_eq(profile_add_location(p, &l, &inlined, NULL), ST_OK);
        l = (struct profile_location){ .mapping = nameless,
                                       .address = 0xffffffff81000010,
                                       .frame_type = PROFILE_FRAME_KERNEL,
                                       .first_line = p->lines.count,
                                       .line_count = 1 };
        ck_assert_int_eq(profile_add_line(p, &(struct profile_line){ str(p, "do_syscall_64"), 0, 0, 0, 0 }, &n, NULL),
                         0);
        ck_assert_int_eq(profile_add_location(p, &l, &kernel, NULL), ST_OK);
        l = (struct profile_location){
                .mapping = PROFILE_NONE, .kind = ADDRESS_NONE, .first_line = p->lines.count, .line_count = 1
        };
        ck_assert_int_eq(profile_add_line(p,
                                          &(struct profile_line){ str(p, "main.py:run"), 0, str(p, "main.py"), 3, 0 },
                                          &n, NULL),
                         0);
        ck_assert_int_eq(profile_add_location(p, &l, &interpreted, NULL), ST_OK);
        l = (struct profile_location){ .mapping = PROFILE_NONE, .address = 0x7f0000001000 };
        ck_assert_int_eq(profile_add_location(p, &l, &raw, NULL), ST_OK);

        ck_assert_int_eq(profile_add_stack(p, (uint32_t[]){ leaf, inlined }, 2, &stacks[0], NULL), ST_OK);
        ck_assert_int_eq(profile_add_stack(p, (uint32_t[]){ kernel, raw, interpreted }, 3, &stacks[1], NULL), ST_OK);
        ck_assert_int_eq(profile_add_stack(p, NULL, 0, &stacks[2], NULL), ST_OK);
        p->stacks.items[stacks[0]].truncated = true;

        type = (struct profile_type){ str(p, "process_cpu:cpu:nanoseconds:cpu:nanoseconds"), str(p, "nanoseconds"),
                                      52631578 };
        ck_assert_int_eq(profile_add_type(p, &type, &types[0], NULL), ST_OK);
        type = (struct profile_type){ str(p, "my own:thing:bytes::"), str(p, "bytes"), 0 };
        ck_assert_int_eq(profile_add_type(p, &type, &types[1], NULL), ST_OK);

        service[0] = (struct profile_label){ str(p, "service.name"), str(p, "api") };
        service[1] = (struct profile_label){ str(p, "comm"), str(p, "worker 1") };
        other[0] = service[0];
        other[1] = (struct profile_label){ str(p, "thread.id"), str(p, "17") };
        other[2] = (struct profile_label){ str(p, "empty"), 0 };

        s = (struct profile_sample){ .stack = stacks[0],
                                     .type = types[0],
                                     .time_unix_ns = 1700000000000000001,
                                     .duration_ns = 10000000000,
                                     .value = 5 };
        ck_assert_int_eq(profile_add_label_set(p, service, 2, &first, NULL), ST_OK);
        s.first_label = first;
        s.label_count = 2;
        ck_assert_int_eq(profile_add_sample(p, &s, &n, NULL), ST_OK);
        s.time_unix_ns += 1000;
        s.value = -3;
        ck_assert_int_eq(profile_add_sample(p, &s, &n, NULL), ST_OK);
        s.stack = stacks[1];
        memset(s.trace_id, 0xa5, sizeof s.trace_id);
        memset(s.span_id, 0x5a, sizeof s.span_id);
        ck_assert_int_eq(profile_add_sample(p, &s, &n, NULL), ST_OK);
        ck_assert_int_eq(profile_add_label_set(p, other, 3, &first, NULL), ST_OK);
        s = (struct profile_sample){
                .stack = stacks[2], .type = types[1], .value = 9, .first_label = first, .label_count = 3
        };
        ck_assert_int_eq(profile_add_sample(p, &s, &n, NULL), ST_OK);
}

START_TEST(profile_round_trips)
{
        _cleanup_profile_ struct profile p, q;
        _cleanup_buf_ struct buf wire;
        _cleanup_free_ char *before = NULL, *after = NULL;
        struct error err = { 0 };

        make_profile(&p);
        buf_init(&wire, MiB(1));
        ck_assert_int_eq(otlp_encode(&p, &wire, &err), ST_OK);
        ck_assert_msg(otlp_decode(wire.data, wire.size, &q, &err) == ST_OK, "%s", err.text);
        before = profile_to_text(&p);
        after = profile_to_text(&q);
        ck_assert_str_eq(before, after);
        ck_assert(strstr(before, "outer(int)|_Z5outeri|a.cc:70"));
        ck_assert(strstr(after, "[0n 0x401234"));
        ck_assert(strstr(after, "[0k 0xffffffff81000010"));
}
END_TEST

START_TEST(profile_without_samples_round_trips)
{
        _cleanup_profile_ struct profile p, q;
        _cleanup_buf_ struct buf wire;

        ck_assert_int_eq(profile_init(&p, MiB(1), NULL), ST_OK);
        buf_init(&wire, MiB(1));
        ck_assert_int_eq(otlp_encode(&p, &wire, NULL), ST_OK);
        ck_assert_uint_eq(wire.size, 0);
        ck_assert_int_eq(otlp_decode("", 0, &q, NULL), ST_OK);
        ck_assert_uint_eq(q.samples.count, 0);
}
END_TEST

/* ---- requests written field by field, with one error ---------------------------------- */

struct request {
        const char *strings[8]; /* after the empty entry 0 */
        uint64_t stack_index, location_in_stack, mapping_in_location, function_in_line, attribute_in_sample, link;
        uint64_t name_in_function;
        bool no_stack_table, old_time, full_entry_0;
        int64_t value, period;
        const char *resource[3][2], *file; /* attributes; of the mapping */
        int values, timestamps;
};

static const struct request good_request = {
        .strings = { "samples", "count", "cpu", "nanoseconds", "work", "host.name", "h1" },
        .stack_index = 1,
        .location_in_stack = 1,
        .mapping_in_location = 1,
        .function_in_line = 1,
        .attribute_in_sample = 1,
        .link = 1,
        .name_in_function = 5,
        .value = 3,
        .values = 1,
};

static void put_request(struct buf *b, const struct request *q)
{
        size_t r = wire_begin(b, REQUEST_RESOURCE_PROFILES), sp, p, s, d, e, v;

        e = wire_begin(b, RESOURCE_PROFILES_RESOURCE);
        for (int i = 0; i < 3 && q->resource[i][0]; i++) {
                s = wire_begin(b, RESOURCE_ATTRIBUTES);
                wire_put_str(b, KEY_VALUE_KEY, q->resource[i][0]);
                v = wire_begin(b, KEY_VALUE_VALUE);
                wire_put_str(b, ANY_STRING, q->resource[i][1]);
                wire_end(b, v);
                wire_end(b, s);
        }
        wire_end(b, e);
        sp = wire_begin(b, RESOURCE_PROFILES_SCOPE_PROFILES);
        p = wire_begin(b, SCOPE_PROFILES_PROFILES);
        e = wire_begin(b, PROFILE_SAMPLE_TYPE);
        wire_put_varint(b, VALUE_TYPE_TYPE, 1);
        wire_put_varint(b, VALUE_TYPE_UNIT, 2);
        wire_end(b, e);
        e = wire_begin(b, PROFILE_PERIOD_TYPE);
        wire_put_varint(b, VALUE_TYPE_TYPE, 3);
        wire_put_varint(b, VALUE_TYPE_UNIT, 4);
        wire_end(b, e);
        if (q->old_time)
                wire_put_bytes(b, 3, "\x01\x02", 2); /* location_indices */
        else
                wire_put_fixed64(b, PROFILE_TIME, 1700000000000000000);
        wire_put_uint(b, PROFILE_PERIOD, (uint64_t)q->period);
        s = wire_begin(b, PROFILE_SAMPLES);
        wire_put_varint(b, SAMPLE_STACK, q->stack_index);
        wire_put_varint(b, SAMPLE_ATTRIBUTES, q->attribute_in_sample); /* not packed */
        wire_put_varint(b, SAMPLE_LINK, q->link);
        v = wire_begin(b, SAMPLE_VALUES);
        for (int i = 0; i < q->values; i++)
                buf_append_uleb128(b, (uint64_t)q->value);
        wire_end(b, v);
        for (int i = 0; i < q->timestamps; i++)
                wire_put_fixed64(b, SAMPLE_TIMESTAMPS, 1700000000000000000 + (uint64_t)i);
        wire_end(b, s);
        wire_end(b, p);
        wire_end(b, sp);
        wire_end(b, r);

        d = wire_begin(b, REQUEST_DICTIONARY);
        wire_put_bytes(b, DICTIONARY_STRINGS, NULL, 0);
        for (int i = 0; i < 8 && q->strings[i]; i++)
                wire_put_str(b, DICTIONARY_STRINGS, q->strings[i]);
        if (q->file)
                wire_put_str(b, DICTIONARY_STRINGS, q->file);
        wire_put_bytes(b, DICTIONARY_MAPPINGS, NULL, 0);
        e = wire_begin(b, DICTIONARY_MAPPINGS);
        if (q->file)
                wire_put_varint(b, MAPPING_FILENAME, 8);
        wire_end(b, e);
        wire_put_bytes(b, DICTIONARY_FUNCTIONS, NULL, 0);
        e = wire_begin(b, DICTIONARY_FUNCTIONS);
        wire_put_varint(b, FUNCTION_NAME, q->name_in_function);
        wire_end(b, e);
        if (q->full_entry_0) {
                e = wire_begin(b, DICTIONARY_LOCATIONS);
                wire_put_varint(b, LOCATION_ADDRESS, 1);
                wire_end(b, e);
        } else {
                wire_put_bytes(b, DICTIONARY_LOCATIONS, "\x10\x00", 2); /* address 0, written explicitly */
        }
        e = wire_begin(b, DICTIONARY_LOCATIONS);
        wire_put_varint(b, LOCATION_MAPPING, q->mapping_in_location);
        wire_put_varint(b, LOCATION_ADDRESS, 0x1234);
        v = wire_begin(b, LOCATION_LINES);
        wire_put_varint(b, LINE_FUNCTION, q->function_in_line);
        wire_end(b, v);
        wire_end(b, e);
        wire_put_bytes(b, DICTIONARY_LINKS, NULL, 0);
        e = wire_begin(b, DICTIONARY_LINKS);
        wire_put_bytes(b, LINK_TRACE_ID, "0123456789abcdef", 16);
        wire_put_bytes(b, LINK_SPAN_ID, "01234567", 8);
        wire_end(b, e);
        wire_put_bytes(b, DICTIONARY_ATTRIBUTES, NULL, 0);
        e = wire_begin(b, DICTIONARY_ATTRIBUTES);
        wire_put_varint(b, ATTRIBUTE_KEY, 6);
        v = wire_begin(b, ATTRIBUTE_VALUE);
        wire_put_str(b, ANY_STRING, "h1");
        wire_end(b, v);
        wire_end(b, e);
        if (!q->no_stack_table) {
                wire_put_bytes(b, DICTIONARY_STACKS, NULL, 0);
                e = wire_begin(b, DICTIONARY_STACKS);
                wire_put_varint(b, STACK_LOCATIONS, q->location_in_stack);
                wire_end(b, e);
        }
        wire_end(b, d);
}

static enum status decode_request(const struct request *q, struct profile *ret, struct error *err)
{
        _cleanup_buf_ struct buf b;

        *err = (struct error){ 0 };
        buf_init(&b, MiB(1));
        put_request(&b, q);
        return otlp_decode(b.data, b.size, ret, err);
}

static const char *text_of_label(const struct profile *p, const struct profile_sample *s, const char *key)
{
        for (uint32_t i = 0; i < s->label_count; i++)
                if (strcmp(profile_text(p, p->labels.items[s->first_label + i].key), key) == 0)
                        return profile_text(p, p->labels.items[s->first_label + i].value);
        return NULL;
}

START_TEST(a_plain_request_decodes)
{
        _cleanup_profile_ struct profile p;
        struct error err;
        const struct profile_sample *s;

        ck_assert_msg(decode_request(&good_request, &p, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(p.samples.count, 1);
        s = &p.samples.items[0];
        ck_assert_int_eq(s->value, 3);
        ck_assert_int_eq(s->time_unix_ns, 1700000000000000000);
        ck_assert_mem_eq(s->trace_id, "0123456789abcdef", 16);
        ck_assert_uint_eq(s->label_count, 2);
        ck_assert_str_eq(text_of_label(&p, s, "host.name"), "h1");
        ck_assert_str_eq(text_of_label(&p, s, "service.name"), "unknown_service");
        ck_assert_str_eq(profile_text(&p, p.types.items[s->type].id), "process_cpu:samples:count:cpu:nanoseconds");
        ck_assert_uint_eq(p.stacks.items[s->stack].location_count, 1);
        ck_assert_uint_eq(p.locations.items[0].address, 0x1234);
        ck_assert_int_eq(p.locations.items[0].kind, ADDRESS_OBJECT);
}
END_TEST

START_TEST(every_index_outside_its_table_is_refused)
{
        static const uint64_t bad[] = { 2, 100, INT32_MAX, (uint64_t)-1, (uint64_t)INT32_MIN, UINT64_C(1) << 32 };
        struct error err;

        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                struct request q[6];

                for (int j = 0; j < 6; j++)
                        q[j] = good_request;
                q[0].stack_index = q[1].location_in_stack = q[2].mapping_in_location = q[3].function_in_line =
                        q[4].attribute_in_sample = q[5].link = bad[i];
                for (int j = 0; j < 6; j++) {
                        struct profile p;

                        ck_assert_msg(decode_request(&q[j], &p, &err) == ST_BAD_DATA, "case %d of %" PRIu64, j, bad[i]);
                        ck_assert_ptr_nonnull(strstr(err.text, "index"));
                }
        }
        {
                struct request q = good_request;
                struct profile p;

                q.name_in_function = 8;
                ck_assert_int_eq(decode_request(&q, &p, &err), ST_BAD_DATA);
                ck_assert_str_eq(err.text, "OTLP string index 8 is outside the table of 8 entries");
        }
}
END_TEST

START_TEST(senders_before_1_8_are_reported)
{
        struct request no_stacks = good_request, old_time = good_request;
        struct profile p;
        struct error err;

        no_stacks.no_stack_table = true;
        no_stacks.stack_index = 0;
        old_time.old_time = old_time.full_entry_0 = true; /* the version is the reason, not the entry */
        ck_assert_int_eq(decode_request(&no_stacks, &p, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "older than 1.8.0"));
        ck_assert_int_eq(decode_request(&old_time, &p, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "older than 1.8.0"));
}
END_TEST

START_TEST(content_in_entry_0_is_refused)
{
        struct request q = good_request;
        struct profile p;
        struct error err;

        q.full_entry_0 = true;
        ck_assert_int_eq(decode_request(&q, &p, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "entry 0"));
}
END_TEST

START_TEST(values_and_timestamps_are_combined_as_specified)
{
        struct request q = good_request;
        struct error err;
        struct profile p;

        q.values = 3; /* no timestamps: summed */
        ck_assert_int_eq(decode_request(&q, &p, &err), ST_OK);
        ck_assert_uint_eq(p.samples.count, 1);
        ck_assert_int_eq(p.samples.items[0].value, 9);
        profile_deinit(&p);

        q.values = 0;
        q.timestamps = 4; /* each timestamp counts one */
        ck_assert_int_eq(decode_request(&q, &p, &err), ST_OK);
        ck_assert_uint_eq(p.samples.count, 4);
        ck_assert_int_eq(p.samples.items[3].value, 1);
        ck_assert_int_eq(p.samples.items[3].time_unix_ns, 1700000000000000003);
        profile_deinit(&p);

        q.values = 4;
        ck_assert_int_eq(decode_request(&q, &p, &err), ST_OK);
        ck_assert_uint_eq(p.samples.count, 4);
        ck_assert_int_eq(p.samples.items[2].value, 3);
        profile_deinit(&p);

        q.values = 3; /* unequal: only this sample is rejected */
        ck_assert_int_eq(decode_request(&q, &p, &err), ST_OK);
        ck_assert_uint_eq(p.samples.count, 0);
        ck_assert_uint_eq(p.rejected_samples, 1);
        ck_assert_ptr_nonnull(strstr(p.rejected_reason, "different number"));
        profile_deinit(&p);

        q.values = q.timestamps = 0;
        ck_assert_int_eq(decode_request(&q, &p, &err), ST_OK);
        ck_assert_uint_eq(p.rejected_samples, 1);
        profile_deinit(&p);

        q.value = 0; /* no sample was taken, as in pprof */
        for (q.timestamps = 0; q.timestamps <= 4; q.timestamps += 4) {
                q.values = 4;
                ck_assert_int_eq(decode_request(&q, &p, &err), ST_OK);
                ck_assert_uint_eq(p.samples.count + p.rejected_samples, 0);
                profile_deinit(&p);
        }
}
END_TEST

START_TEST(a_sample_without_a_service_gets_that_of_its_program)
{
        static const struct {
                const char *resource[3][2], *file, *service;
        } cases[] = {
                { { { "process.executable.name", "shop" }, { "process.executable.path", "/bin/x" } },
                  "/bin/y",
                  "unknown_service:shop" },
                { { { "process.executable.path", "/opt/shop/bin/shopd" } }, "/bin/y", "unknown_service:shopd" },
                { { { "process.executable.name", "" }, { "service.name", "" } },
                  "/usr/bin/python3.11",
                  "unknown_service:python3.11" },
                { { { NULL } }, "/lib/x86_64-linux-gnu/libc.so.6", "unknown_service" },
                { { { NULL } }, "[vdso]", "unknown_service" },
                { { { NULL } }, NULL, "unknown_service" },
                { { { "service.name", "api" }, { "process.executable.name", "shop" } }, "/bin/y", "api" },
                { { { "service_name", "api" }, { "process.executable.name", "shop" } }, "/bin/y", NULL },
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct request q = good_request;
                struct profile p;
                struct error err;
                const char *service;

                memcpy(q.resource, cases[i].resource, sizeof q.resource);
                q.file = cases[i].file;
                ck_assert_msg(decode_request(&q, &p, &err) == ST_OK, "case %zu: %s", i, err.text);
                service = text_of_label(&p, &p.samples.items[0], "service.name");
                if (cases[i].service)
                        ck_assert_str_eq(service, cases[i].service);
                else
                        ck_assert_ptr_null(service);
                profile_deinit(&p);
        }
}
END_TEST

START_TEST(counts_of_cpu_samples_become_time_by_their_period)
{
        struct request q = good_request;
        struct profile p;
        struct error err;

        q.period = 50000000;
        q.values = 2;
        ck_assert_msg(decode_request(&q, &p, &err) == ST_OK, "%s", err.text);
        ck_assert_str_eq(profile_text(&p, p.types.items[0].id), "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
        ck_assert_str_eq(profile_text(&p, p.types.items[0].unit), "nanoseconds");
        ck_assert_int_eq(p.types.items[0].period, 50000000);
        ck_assert_int_eq(p.samples.items[0].value, 2 * 3 * 50000000);
        profile_deinit(&p);

        q.values = 0;
        q.timestamps = 3;
        ck_assert_msg(decode_request(&q, &p, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(p.samples.count, 3);
        ck_assert_int_eq(p.samples.items[2].value, 50000000);
        profile_deinit(&p);

        q.values = 3;
        q.value = INT64_MAX / 2;
        ck_assert_msg(decode_request(&q, &p, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(p.samples.count, 0);
        ck_assert_uint_eq(p.rejected_samples, 3);
        ck_assert_ptr_nonnull(strstr(p.rejected_reason, "period exceeds 64 bits"));
        profile_deinit(&p);

        q.value = 3;
        q.strings[2] = "events"; /* another period type */
        ck_assert_msg(decode_request(&q, &p, &err) == ST_OK, "%s", err.text);
        ck_assert_str_eq(profile_text(&p, p.types.items[0].id), "process_cpu:samples:count:events:nanoseconds");
        ck_assert_int_eq(p.samples.items[0].value, 3);
        profile_deinit(&p);
}
END_TEST

START_TEST(truncated_request_fails_or_decodes)
{
        _cleanup_buf_ struct buf b;

        buf_init(&b, MiB(1));
        put_request(&b, &good_request);
        for (size_t n = 0; n < b.size; n++) {
                _cleanup_free_ uint8_t *copy = malloc(n + 1); /* so that AddressSanitizer detects overreads */
                struct profile p;

                memcpy(copy, b.data, n);
                if (otlp_decode(copy, n, &p, NULL) == ST_OK)
                        profile_deinit(&p);
        }
}
END_TEST

START_TEST(nested_values_need_no_memory)
{
        _cleanup_buf_ struct buf value, b;
        struct profile p;
        size_t d, e;

        buf_init(&value, MiB(8));
        for (int i = 0; i < 2000; i++) { /* AnyValue{array{AnyValue{array{... */
                _cleanup_buf_ struct buf outer;

                buf_init(&outer, MiB(8));
                wire_put_bytes(&outer, 5, value.data, value.size);
                buf_clear(&value);
                wire_put_bytes(&value, 1, outer.data, outer.size);
        }
        buf_init(&b, MiB(8));
        d = wire_begin(&b, REQUEST_DICTIONARY);
        wire_put_bytes(&b, DICTIONARY_ATTRIBUTES, NULL, 0);
        e = wire_begin(&b, DICTIONARY_ATTRIBUTES);
        wire_put_bytes(&b, ATTRIBUTE_VALUE, value.data, value.size);
        wire_end(&b, e);
        wire_end(&b, d);
        ck_assert_int_eq(otlp_decode(b.data, b.size, &p, NULL), ST_OK);
        profile_deinit(&p);
}
END_TEST

START_TEST(responses_match_specification)
{
        _cleanup_buf_ struct buf b;

        buf_init(&b, 1024);
        otlp_put_response(&b, 0, NULL);
        ck_assert_uint_eq(b.size, 0);
        otlp_put_response(&b, 2, "why");
        ck_assert_uint_eq(b.size, 9);
        ck_assert_mem_eq(b.data, "\x0a\x07\x08\x02\x12\x03why", 9);
        buf_clear(&b);
        otlp_put_status(&b, 3, "no");
        ck_assert_mem_eq(b.data, "\x08\x03\x12\x02no", 6);
}
END_TEST

TEST_SUITE("otlp", profile_round_trips, profile_without_samples_round_trips, a_plain_request_decodes,
           every_index_outside_its_table_is_refused, senders_before_1_8_are_reported, content_in_entry_0_is_refused,
           values_and_timestamps_are_combined_as_specified, a_sample_without_a_service_gets_that_of_its_program,
           counts_of_cpu_samples_become_time_by_their_period, truncated_request_fails_or_decodes,
           nested_values_need_no_memory, responses_match_specification)
