/* SPDX-License-Identifier: Apache-2.0 */
/* The work of decoders is proportional to their input (profile-formats/profile.h). */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/folded.h"
#include "profile-formats/input/push.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/otlp/otlp_fields.h"
#include "profile-formats/perf_script.h"
#include "profile-formats/pprof/pprof.h"
#include "profile-formats/pprof/pprof_fields.h"
#include "profile-formats/speedscope.h"
#include "profile-formats/stack_trie.h"
#include "profile-formats/wire.h"
#include "tests/support/profile_walk.h"
#include "tests/support/suite.h"

static struct buf input;

static void set_up(void)
{
        buf_init(&input, MiB(64));
}

static void tear_down(void)
{
        buf_deinit(&input);
}

/* Decoded within the limit on work; returns the work per byte. */
static double check_decoded(enum status st, struct profile *p, const struct error *err)
{
        double work;

        ck_assert_msg(st == ST_OK, "%s", err->text);
        profile_walk_decoded(p, input.size);
        work = (double)p->work / (double)input.size;
        profile_deinit(p);
        return work;
}

static void check_refused(enum status st, const struct error *err)
{
        ck_assert_int_eq(st, ST_TOO_BIG);
        ck_assert_ptr_nonnull(strstr(err->text, "more than 64 steps per byte"));
}

/* ---- trie and tree ---- */

static void append_node(const char *text, uint64_t value, uint64_t children)
{
        buf_append_uleb128(&input, strlen(text));
        buf_append_str(&input, text);
        buf_append_uleb128(&input, value);
        buf_append_uleb128(&input, children);
}

static void append_nested_nodes(const char *text, unsigned count)
{
        append_node("", 0, 1);
        for (unsigned i = 1; i <= count; i++)
                append_node(text, 1, i < count);
}

static enum status decode_trie(enum stack_trie_kind kind, struct profile *p, struct error *err)
{
        return stack_trie_decode(input.data, input.size, kind, "a:b:c::", p, err);
}

START_TEST(nested_nodes_whose_stacks_exceed_the_input_are_refused)
{
        static const struct {
                enum stack_trie_kind kind;
                const char *text;
                unsigned count;
        } tries[] = { { STACK_TRIE, "a;", 16000 }, { STACK_TREE, "a", 16000 }, { STACK_TRIE, "a", 22900 } };
        struct profile p;
        struct error err;

        for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
                buf_clear(&input);
                append_nested_nodes(tries[i].text, tries[i].count);
                check_refused(decode_trie(tries[i].kind, &p, &err), &err);
        }
}
END_TEST

static void check_recursion(enum stack_trie_kind kind, const char *text)
{
        struct error err;
        struct profile p;

        append_nested_nodes(text, 2000);
        ck_assert_int_eq(decode_trie(kind, &p, &err), ST_OK);
        ck_assert_uint_eq(p.samples.count, 2000);
        for (uint32_t i = 0; i < p.samples.count; i++)
                ck_assert_uint_eq(p.stacks.items[p.samples.items[i].stack].location_count, i + 1);
        check_decoded(ST_OK, &p, &err);
}

START_TEST(recursion_with_a_value_at_each_level_is_accepted)
{
        check_recursion(STACK_TRIE, "recurse (fib.py);");
        buf_clear(&input);
        check_recursion(STACK_TREE, "recurse (fib.py)");
}
END_TEST

START_TEST(many_leaves_below_a_deep_stack_are_accepted)
{
        struct error err;
        struct profile p;
        char name[40];

        append_node("", 0, 1);
        for (unsigned i = 1; i < 1000; i++)
                append_node("org/example/Service.handle;", 0, 1);
        append_node("org/example/Service.handle;", 0, 1000);
        for (unsigned i = 0; i < 1000; i++) {
                snprintf(name, sizeof name, "org/example/Service.method%u", i);
                append_node(name, 1, 0);
        }
        ck_assert_msg(check_decoded(decode_trie(STACK_TRIE, &p, &err), &p, &err) > 10, "stacks are counted");
}
END_TEST

START_TEST(frames_of_a_trie_may_be_split_between_nodes)
{
        struct error err;
        struct profile p;
        const struct profile_stack *s;

        append_node("ma", 0, 2);
        append_node("in;a", 3, 2);
        append_node("b;c", 5, 0);
        append_node(";d", 7, 0);
        append_node("p", 11, 0);
        ck_assert_int_eq(decode_trie(STACK_TRIE, &p, &err), ST_OK);
        ck_assert_uint_eq(p.samples.count, 4);
        for (uint32_t i = 0; i < 4; i++) {
                static const char *const expected[4][3] = {
                        { "main", "a" }, { "main", "ab", "c" }, { "main", "a", "d" }, { "map" }
                };
                static const int64_t values[4] = { 3, 5, 7, 11 };
                uint32_t count = 0;

                s = &p.stacks.items[p.samples.items[i].stack];
                ck_assert_int_eq(p.samples.items[i].value, values[i]);
                while (count < 3 && expected[i][count])
                        count++;
                ck_assert_uint_eq(s->location_count, count);
                for (uint32_t k = 0; k < count; k++) {
                        uint32_t location = p.stack_locations.items[s->first_location + count - 1 - k];
                        uint32_t line = p.locations.items[location].first_line;

                        ck_assert_str_eq(profile_text(&p, p.lines.items[line].function), expected[i][k]);
                }
        }
        profile_deinit(&p);
}
END_TEST

/* ---- text formats ---- */

START_TEST(frames_above_the_longest_stack_cost_no_work)
{
        struct error err;
        struct profile p;

        for (unsigned i = 0; i < 100000; i++)
                buf_append_str(&input, "a;");
        buf_append_str(&input, "a 1\n");
        ck_assert_int_eq(folded_decode(input.data, input.size, NULL, &p, &err), ST_OK);
        ck_assert(p.stacks.items[0].truncated);
        ck_assert_uint_eq(p.stacks.items[0].location_count, LIMIT_STACK_FRAMES);
        ck_assert_uint_lt(p.work, 5 * LIMIT_STACK_FRAMES);
        profile_deinit(&p);
}
END_TEST

/* As traces of a recursive program are written. */
START_TEST(events_of_a_deep_stack_are_accepted)
{
        struct error err;
        struct profile p;

        buf_append_str(&input, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":"
                               "{\"frames\":[{\"name\":\"f\"}]},\"profiles\":[{\"type\":\"evented\",\"name\":\"n\","
                               "\"unit\":\"none\",\"startValue\":0,\"endValue\":9,\"events\":[");
        for (unsigned i = 0; i < 6000; i++)
                buf_printf(&input, "%s{\"type\":\"O\",\"frame\":0,\"at\":%u}", i ? "," : "", i);
        for (unsigned i = 0; i < 6000; i++)
                buf_append_str(&input, ",{\"type\":\"C\",\"frame\":0,\"at\":6000}");
        buf_append_str(&input, "]}]}");
        ck_assert_int_eq(speedscope_decode(input.data, input.size, &p, &err), ST_OK);
        ck_assert_uint_eq(p.samples.count, 6000);
        check_decoded(ST_OK, &p, &err);
}
END_TEST

/* One file each, or all of one. */
static void append_mmaps(unsigned count, bool distinct_files)
{
        for (unsigned i = 0; i < count; i++) {
                buf_printf(&input, "a 1 1.000000: PERF_RECORD_MMAP2 1/1: [0x%" PRIx64 "(0x1000) @ 0 00:00 1 1]: r-xp ",
                           UINT64_C(0x7f0000000000) + 0x1000 * (uint64_t)i);
                buf_printf(&input, "/lib/l%u.so\n", distinct_files ? i : 0);
        }
}

static void append_perf_frames(unsigned count, const char *file)
{
        buf_append_str(&input, "a 1 1.000000: 1 cycles:\n");
        for (unsigned i = 0; i < count; i++)
                buf_printf(&input, "\t7f00000%05x f (%s)\n", i % 0x1000, file);
        buf_append_u8(&input, '\n');
}

START_TEST(mappings_of_other_files_are_not_searched)
{
        struct error err;
        struct profile p;

        append_mmaps(20000, true);
        append_perf_frames(20000, "/lib/l0.so");
        ck_assert(check_decoded(perf_script_decode(input.data, input.size, 0, &p, &err), &p, &err) < 8);
}
END_TEST

START_TEST(a_file_with_many_mappings_and_frames_is_refused)
{
        struct error err;
        struct profile p;

        append_mmaps(20000, false);
        append_perf_frames(40000, "/lib/l0.so"); /* found in the earliest mapping */
        check_refused(perf_script_decode(input.data, input.size, 0, &p, &err), &err);
}
END_TEST

/* ---- OTLP: entries refer to texts ---- */

static char long_text[2000];

static void fill_long_text(void)
{
        memset(long_text, 'x', sizeof long_text);
}

static size_t begin_dictionary(void)
{
        size_t mark = wire_begin(&input, REQUEST_DICTIONARY);

        fill_long_text();
        wire_put_bytes(&input, DICTIONARY_STACKS, "", 0);
        wire_put_bytes(&input, DICTIONARY_STRINGS, "", 0);
        wire_put_bytes(&input, DICTIONARY_STRINGS, long_text, sizeof long_text);
        return mark;
}

START_TEST(text_of_many_attributes_is_read_once)
{
        struct error err;
        struct profile p;
        size_t mark = begin_dictionary();

        wire_put_bytes(&input, DICTIONARY_ATTRIBUTES, "", 0);
        for (unsigned i = 0; i < 20000; i++) {
                size_t attribute = wire_begin(&input, DICTIONARY_ATTRIBUTES), value;

                wire_put_varint(&input, ATTRIBUTE_KEY, 1);
                value = wire_begin(&input, ATTRIBUTE_VALUE);
                wire_put_varint(&input, ANY_STRINDEX, 1);
                wire_end(&input, value);
                wire_end(&input, attribute);
        }
        wire_end(&input, mark);
        ck_assert(check_decoded(otlp_decode(input.data, input.size, &p, &err), &p, &err) < 3);
}
END_TEST

static void append_otlp_profile(unsigned sample_type)
{
        size_t profile = wire_begin(&input, SCOPE_PROFILES_PROFILES), part;

        part = wire_begin(&input, PROFILE_SAMPLE_TYPE);
        wire_put_varint(&input, VALUE_TYPE_TYPE, sample_type);
        wire_end(&input, part);
        part = wire_begin(&input, PROFILE_SAMPLES);
        wire_put_bytes(&input, SAMPLE_VALUES, "\1", 1);
        wire_end(&input, part);
        wire_end(&input, profile);
}

START_TEST(name_of_the_type_of_many_profiles_is_made_once)
{
        struct error err;
        struct profile p;
        size_t mark = begin_dictionary(), resource, scope;

        wire_end(&input, mark);
        resource = wire_begin(&input, REQUEST_RESOURCE_PROFILES);
        scope = wire_begin(&input, RESOURCE_PROFILES_SCOPE_PROFILES);
        for (unsigned i = 0; i < 5000; i++)
                append_otlp_profile(1);
        wire_end(&input, scope);
        wire_end(&input, resource);
        ck_assert_int_eq(otlp_decode(input.data, input.size, &p, &err), ST_OK);
        ck_assert_uint_eq(p.samples.count, 5000);
        ck_assert_uint_eq(p.types.count, 1);
        ck_assert(check_decoded(ST_OK, &p, &err) < 16);
}
END_TEST

/* ---- pprof: labels refer to texts, and labels of a series are added to all samples ---- */

static void append_pprof_sample(int64_t number, uint32_t key)
{
        size_t sample = wire_begin(&input, PPROF_SAMPLE), label;

        wire_put_varint(&input, PPROF_SAMPLE_VALUE, 1);
        label = wire_begin(&input, PPROF_SAMPLE_LABEL);
        wire_put_varint(&input, PPROF_LABEL_KEY, key);
        wire_put_varint(&input, PPROF_LABEL_NUM, (uint64_t)number);
        wire_end(&input, label);
        wire_end(&input, sample);
}

static void append_pprof_file(unsigned sample_count, const char *key, size_t key_size)
{
        wire_put_bytes(&input, PPROF_STRING_TABLE, "", 0);
        wire_put_bytes(&input, PPROF_STRING_TABLE, key, key_size);
        wire_put_bytes(&input, PPROF_SAMPLE_TYPE, "", 0);
        for (unsigned i = 0; i < sample_count; i++)
                append_pprof_sample((int64_t)i + 1, 1);
}

START_TEST(text_of_a_key_of_many_labels_is_read_once)
{
        struct error err;
        struct profile p;

        fill_long_text();
        append_pprof_file(5000, long_text, sizeof long_text);
        ck_assert(check_decoded(pprof_decode(input.data, input.size, NULL, &p, &err), &p, &err) < 8);
}
END_TEST

START_TEST(labels_of_a_series_are_added_in_one_pass)
{
        size_t series = wire_begin(&input, 1), part, file;
        char text[16];
        struct error err;
        struct profile p;

        for (unsigned i = 0; i < 100; i++) {
                snprintf(text, sizeof text, "key%u", i);
                part = wire_begin(&input, 1);
                wire_put_str(&input, 1, text);
                wire_put_str(&input, 2, "value");
                wire_end(&input, part);
        }
        part = wire_begin(&input, 2);
        file = wire_begin(&input, 1);
        append_pprof_file(2000, "id", 2);
        wire_end(&input, file);
        wire_end(&input, part);
        wire_end(&input, series);
        ck_assert_int_eq(push_decode(input.data, input.size, false, NULL, &p, &err), ST_OK);
        ck_assert_uint_eq(p.samples.count, 2000);
        ck_assert_uint_eq(p.samples.items[1999].label_count, 101);
        ck_assert(check_decoded(ST_OK, &p, &err) < 40);
}
END_TEST

START_TEST(thousands_of_empty_files_are_refused)
{
        size_t series = wire_begin(&input, 1);
        struct error err;
        struct profile p;

        for (unsigned i = 0; i < 20000; i++)
                wire_put_bytes(&input, 2, "\x0a\x02\x32\x00", 4);
        wire_end(&input, series);
        check_refused(push_decode(input.data, input.size, false, NULL, &p, &err), &err);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("decode_work", nested_nodes_whose_stacks_exceed_the_input_are_refused,
                        recursion_with_a_value_at_each_level_is_accepted, many_leaves_below_a_deep_stack_are_accepted,
                        frames_of_a_trie_may_be_split_between_nodes, frames_above_the_longest_stack_cost_no_work,
                        events_of_a_deep_stack_are_accepted, mappings_of_other_files_are_not_searched,
                        a_file_with_many_mappings_and_frames_is_refused, text_of_many_attributes_is_read_once,
                        name_of_the_type_of_many_profiles_is_made_once, text_of_a_key_of_many_labels_is_read_once,
                        labels_of_a_series_are_added_in_one_pass, thousands_of_empty_files_are_refused)
