/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks and types of Pyroscope's /ingest: tries, trees, speedscope, lines, and type names. */
#include <check.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "profile-formats/folded.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/perf_script.h"
#include "profile-formats/pyroscope_type.h"
#include "profile-formats/speedscope.h"
#include "profile-formats/stack_trie.h"
#include "tests/support/suite.h"

static void read_corpus(const char *path, struct buf *b)
{
        buf_init(b, MiB(1));
        ck_assert_int_eq(file_read(path, b, NULL), ST_OK);
}

/* The samples of each type as folded text; freed with the profile. */
static void check_folded(struct profile *p, const char *want)
{
        _cleanup_buf_ struct buf text;

        buf_init(&text, MiB(1));
        ck_assert_int_eq(folded_encode(p, NULL, NULL, &text, NULL), ST_OK);
        ck_assert_str_eq(buf_cstr(&text), want);
}

START_TEST(trie_and_tree_nodes_become_stacks)
{
        static const char *const paths[] = { "tests/corpus/stack_trie/good/trie", "tests/corpus/stack_trie/good/tree" };

        for (int kind = STACK_TRIE; kind <= STACK_TREE; kind++) {
                _cleanup_profile_ struct profile p;
                _cleanup_buf_ struct buf b;

                read_corpus(paths[kind], &b);
                ck_assert_int_eq(stack_trie_decode(b.data, b.size, (enum stack_trie_kind)kind, "a:b:c::", &p, NULL),
                                 ST_OK);
                check_folded(&p, "main;work 3\nmain;work;leaf 12\nmain;idle 300\n");
                for (size_t cut = 1; cut < b.size; cut++) {
                        struct profile q;

                        ck_assert_int_eq(
                                stack_trie_decode(b.data, cut, (enum stack_trie_kind)kind, "a:b:c::", &q, NULL),
                                ST_BAD_DATA);
                }
        }
}
END_TEST

START_TEST(names_of_objects_do_not_divide_folded_stacks)
{
        static const char text[] =
                "x 7 1.5: 9 cpu-clock:\n\t1145 [unknown] (/a;b/c;d\ne)\n\t1146 [unknown] ([heap])\n\n";
        _cleanup_profile_ struct profile p;

        ck_assert_int_eq(perf_script_decode(text, sizeof text - 1, 0, &p, NULL), ST_OK);
        check_folded(&p, "0x1145 [heap];0x1145 [c:d e] 9\n");
}
END_TEST

/* Nested nodes without text. */
static enum status decode_deep_trie(size_t depth)
{
        _cleanup_buf_ struct buf b;
        struct profile p;
        enum status st;

        buf_init(&b, MiB(1));
        for (size_t i = 0; i < depth; i++)
                buf_append(&b, "\0\0\1", 3);
        buf_append(&b, "\1a\1\0", 4);
        st = stack_trie_decode(b.data, b.size, STACK_TRIE, "a:b:c::", &p, NULL);
        if (!st)
                profile_deinit(&p);
        return st;
}

START_TEST(trie_depth_is_limited_and_long_frames_are_shared)
{
        _cleanup_profile_ struct profile p;
        _cleanup_buf_ struct buf b;

        ck_assert_int_eq(decode_deep_trie(LIMIT_TRIE_DEPTH - 1), ST_OK);
        ck_assert_int_eq(decode_deep_trie(LIMIT_TRIE_DEPTH), ST_TOO_BIG);

        buf_init(&b, MiB(8)); /* a frame of 1,000,000 bytes, and 400 stacks that contain it */
        buf_append_uleb128(&b, 1000000);
        memset(buf_reserve(&b, 1000000), 'a', 1000000);
        buf_commit(&b, 1000000);
        buf_append_u8(&b, 0);
        buf_append_uleb128(&b, 400);
        for (int i = 0; i < 400; i++)
                buf_append(&b, "\0\1\0", 3);
        ck_assert_int_eq(stack_trie_decode(b.data, b.size, STACK_TRIE, "a:b:c::", &p, NULL), ST_OK);
        ck_assert_uint_lt(p.work, 64 * b.size);
}
END_TEST

static void check_sample(const struct profile *p, uint32_t i, const char *type, int64_t value)
{
        ck_assert_uint_lt(i, p->samples.count);
        ck_assert_str_eq(profile_text(p, p->types.items[p->samples.items[i].type].id), type);
        ck_assert_int_eq(p->samples.items[i].value, value);
}

START_TEST(speedscope_weights_become_nanoseconds)
{
        _cleanup_profile_ struct profile p;
        _cleanup_buf_ struct buf b;

        read_corpus("tests/corpus/speedscope/good/sampled.json", &b);
        ck_assert_int_eq(speedscope_decode(b.data, b.size, &p, NULL), ST_OK);
        check_folded(&p, "main;work 750000000\nmain;idle 1000000000\n");
        check_sample(&p, 0, "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 250000000);
        ck_assert_int_eq(p.lines.items[0].line, 3);
        ck_assert_str_eq(profile_text(&p, p.lines.items[0].file), "/app/main.py");
        ck_assert_str_eq(profile_text(&p, p.labels.items[p.samples.items[0].first_label].value), "thread 1");
}
END_TEST

START_TEST(speedscope_events_are_attributed_to_open_frames)
{
        static const char wall[] = "wall:wall:nanoseconds:wall:nanoseconds";
        _cleanup_profile_ struct profile p;
        _cleanup_buf_ struct buf b;

        read_corpus("tests/corpus/speedscope/good/evented-and-bytes.json", &b);
        ck_assert_int_eq(speedscope_decode(b.data, b.size, &p, NULL), ST_OK);
        ck_assert_uint_eq(p.samples.count, 4);
        check_folded(&p, "main 7000000\nmain;work 3000000\n");
        check_sample(&p, 0, wall, 2000000);
        check_sample(&p, 2, wall, 5000000);
        check_sample(&p, 3, "memory:samples:bytes::", 4096);
}
END_TEST

static void check_refused(const char *name, const char *why)
{
        char path[200];
        _cleanup_buf_ struct buf b;
        struct error err = { 0 };
        struct profile p;

        snprintf(path, sizeof path, "tests/corpus/speedscope/bad/%s.json", name);
        read_corpus(path, &b);
        ck_assert_msg(speedscope_decode(b.data, b.size, &p, &err) == ST_BAD_DATA, "%s", name);
        ck_assert_msg(strstr(err.text, why) != NULL, "%s: %s", name, err.text);
}

START_TEST(malformed_speedscope_is_refused)
{
        check_refused("frame-past-list", "outside of the 3 shared frames");
        check_refused("few-weights", "no weight");
        check_refused("closes-another", "not the innermost");
        check_refused("schema", "not a speedscope file");
        check_refused("negative-weight", "negative");
}
END_TEST

START_TEST(speedscope_units_have_any_spelling)
{
        static const struct {
                const char *unit, *type;
                int64_t value; /* of a weight of 3 */
        } cases[] = { { "ms", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 3000000 },
                      { "Seconds", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 3000000000 },
                      { "kilobytes", "memory:samples:bytes::", 3072 },
                      { "bytes", "memory:samples:bytes::", 3 },
                      { "requests", "process_cpu:samples:count::", 3 } };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                _cleanup_profile_ struct profile p;
                char text[400];
                int n = snprintf(text, sizeof text,
                                 "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
                                 "\"shared\":{\"frames\":[{\"name\":\"a\"}]},\"profiles\":[{\"type\":\"sampled\","
                                 "\"name\":\"p\",\"unit\":\"%s\",\"samples\":[[0]],\"weights\":[3]}]}",
                                 cases[i].unit);

                ck_assert_int_eq(speedscope_decode(text, (size_t)n, &p, NULL), ST_OK);
                check_sample(&p, 0, cases[i].type, cases[i].value);
        }
}
END_TEST

START_TEST(speedscope_weights_are_rounded_by_their_sum)
{
        static const char text[] =
                "{\"$schema\":\"https://www.speedscope.app/"
                "file-format-schema.json\",\"shared\":{\"frames\":[{\"name\":\"a\"}]},"
                "\"profiles\":[{\"type\":\"sampled\",\"name\":\"p\",\"unit\":\"none\",\"samples\":[[0],[0],[],[0],[0]],"
                "\"weights\":[0.4,0.4,7.3,2.2,0]}]}";
        _cleanup_profile_ struct profile p;

        ck_assert_int_eq(speedscope_decode(text, sizeof text - 1, &p, NULL), ST_OK);
        check_folded(&p, "a 3\n");
}
END_TEST

START_TEST(folded_counts_are_numbers_of_any_form)
{
        static const struct {
                const char *text, *folded;
        } texts[] = {
                { "main;a 1.5\nmain;a 1.5\n", "main;a 3\n" },
                { "main;a 0.4\nmain;a 0.4\nmain;a 2.2\n", "main;a 3\n" },
                { "main;a 1e6\n", "main;a 1000000\n" },
                { "main;a -5\n", "main;a -5\n" },
                { "main;a 9223372036854775807\nmain;a 5\n", "main;a 9223372036854775807\n" }, /* the sum saturates */
                { "\xef\xbb\xbfmain;a 5\r\n  \t\r\nmain;a 5\n", "main;a 10\n" },
                { "main;a 5 7\nmain;b 9\n", "main;a 5 7\nmain;b 9\n" },
                { "main;a     5\nmain;a \t10\n", "main;a 15\n" },
        };
        static const char *const refused[] = { "main;a 9223372036854775808\n", "main;a 1e30\n", "main;a nan\n",
                                               "main;a 0x5\n", "main;a -\n" };
        struct profile p;

        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                ck_assert_int_eq(folded_decode(texts[i].text, strlen(texts[i].text), NULL, &p, NULL), ST_OK);
                check_folded(&p, texts[i].folded);
                ck_assert_str_eq(p.note, "");
                profile_deinit(&p);
        }
        for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
                ck_assert_int_eq(folded_decode(refused[i], strlen(refused[i]), NULL, &p, NULL), ST_BAD_DATA);
        ck_assert_int_eq(folded_decode("main;a 5 7\nmain;b 0 1\n", 22, NULL, &p, NULL), ST_OK);
        ck_assert_ptr_nonnull(strstr(p.note, "difffolded.pl"));
        profile_deinit(&p);
}
END_TEST

START_TEST(lines_of_comments_are_no_stacks)
{
        static const char text[] = "# of 3\n#\r\n#!/bin/sh\n#x;y\n#priv;a 5\n#priv 6\n";
        _cleanup_profile_ struct profile p;

        ck_assert_int_eq(folded_decode(text, sizeof text - 1, NULL, &p, NULL), ST_OK);
        check_folded(&p, "#priv;a 5\n#priv 6\n");
}
END_TEST

START_TEST(lines_may_all_end_in_carriage_returns)
{
        static const char text[] = "main;a 5\rmain;b 6\r", mixed[] = "main;a\rb 5\n";
        struct profile p;

        ck_assert_int_eq(folded_decode(text, sizeof text - 1, NULL, &p, NULL), ST_OK);
        check_folded(&p, "main;a 5\nmain;b 6\n");
        profile_deinit(&p);
        ck_assert_int_eq(folded_decode(mixed, sizeof mixed - 1, NULL, &p, NULL), ST_OK);
        ck_assert_uint_eq(p.samples.count, 1);
        profile_deinit(&p);
}
END_TEST

START_TEST(lines_without_counts_count_one)
{
        _cleanup_profile_ struct profile p;

        ck_assert_int_eq(folded_decode_lines("a;b\na;c 2\r\n\na;b\n", 16, NULL, &p, NULL), ST_OK);
        check_folded(&p, "a;b 2\na;c 2 1\n");
}
END_TEST

static enum status add_plain_type(struct profile *p, const char *sample_type, const char *unit, uint32_t *ret)
{
        return profile_type_add(p, &(struct profile_type_parts){ .sample_type = sample_type, .sample_unit = unit }, ret,
                                NULL);
}

/* The type name for sample types given as "sample_type:unit" strings, ended by NULL. */
static void check_name(const char *config, const char *want, const char *const *types)
{
        _cleanup_profile_ struct profile p;
        struct json_value parsed;
        uint32_t type;

        ck_assert_int_eq(profile_init(&p, MiB(1), NULL), ST_OK);
        for (; *types; types += 2)
                ck_assert_int_eq(add_plain_type(&p, types[0], types[1], &type), ST_OK);
        if (config)
                ck_assert_int_eq(json_value_parse(config, strlen(config), &parsed, NULL), ST_OK);
        ck_assert_int_eq(pyroscope_name_types(&p, config ? &parsed : NULL, NULL), ST_OK);
        for (uint32_t i = 0; i < p.types.count; i++) {
                const char *id = profile_text(&p, p.types.items[i].id);

                ck_assert_msg(strncmp(id, want, strlen(want)) == 0 && id[strlen(want)] == ':', "%s is not %s", id,
                              want);
        }
}
#define NAME(config, want, ...) check_name(config, want, (const char *const[]){ __VA_ARGS__, NULL })

START_TEST(types_are_named_as_in_pyroscope)
{
        static const char mutex[] = "{\"contentions\":{\"display-name\":\"mutex_count\",\"units\":\"lock_samples\"},"
                                    "\"delay\":{\"display-name\":\"mutex_duration\"}}";
        static const char block[] = "{\"contentions\":{\"display-name\":\"block_count\"},"
                                    "\"delay\":{\"display-name\":\"block_duration\"}}";

        NAME(NULL, "process_cpu", "samples", "count", "cpu", "nanoseconds");
        NAME(NULL, "wall", "sample", "count", "wall", "nanoseconds");
        NAME(NULL, "wall", "samples", "count", "cpu", "nanoseconds", "wall", "nanoseconds");
        NAME(NULL, "memory", "objects", "count", "space", "bytes");
        NAME(NULL, "memory", "alloc_objects", "count", "inuse_space", "bytes");
        NAME(NULL, "goroutines", "goroutine", "count");
        NAME(NULL, "mutex", "contentions", "count", "delay", "nanoseconds");
        NAME(mutex, "mutex", "contentions", "count", "delay", "nanoseconds");
        NAME(block, "block", "contentions", "count", "delay", "nanoseconds");
        NAME("{\"goroutineleak\":{\"display-name\":\"goroutine_leak\"}}", "goroutine_leak", "goroutineleak", "count");
        NAME("{}", "odd", "odd", "count");
        NAME(NULL, "odd", "odd", "count");
}
END_TEST

/* A profile with a value of each of two types. */
static struct profile make_heap_profile(int64_t allocated, int64_t in_use)
{
        const int64_t values[] = { allocated, in_use };
        static const char *const names[] = { "alloc_space", "inuse_space" };
        struct profile p;
        uint32_t number;

        ck_assert_int_eq(profile_init(&p, MiB(1), NULL), ST_OK);
        for (int i = 0; i < 2; i++) {
                struct profile_sample s = { .value = values[i], .time_unix_ns = 7 };

                ck_assert_int_eq(add_plain_type(&p, names[i], "bytes", &s.type), ST_OK);
                ck_assert_int_eq(profile_add_stack(&p, NULL, 0, &s.stack, NULL), ST_OK);
                ck_assert_int_eq(profile_add_sample(&p, &s, &number, NULL), ST_OK);
        }
        return p;
}

START_TEST(only_cumulative_values_of_previous_profile_are_subtracted)
{
        static const char config[] = "{\"inuse_space\":{\"cumulative\":true}}";
        _cleanup_profile_ struct profile p = make_heap_profile(10, 20), before = make_heap_profile(4, 5);
        _cleanup_profile_ struct profile q = make_heap_profile(10, 20), before_q = make_heap_profile(4, 5);
        struct json_value parsed;

        ck_assert_int_eq(pyroscope_subtract_previous(&p, &before, NULL, NULL), ST_OK);
        ck_assert_uint_eq(p.samples.count, 2);
        ck_assert_int_eq(p.samples.items[0].value, 6);
        ck_assert_int_eq(p.samples.items[1].value, 20);
        ck_assert_int_eq(json_value_parse(config, sizeof config - 1, &parsed, NULL), ST_OK);
        ck_assert_int_eq(pyroscope_subtract_previous(&q, &before_q, &parsed, NULL), ST_OK);
        ck_assert_int_eq(q.samples.items[0].value, 10);
        ck_assert_int_eq(q.samples.items[1].value, 15);
}
END_TEST

/* The first type has no remaining sample, so that types in the result have other numbers. */
START_TEST(profile_without_previous_one_is_unchanged)
{
        _cleanup_profile_ struct profile p = make_heap_profile(1, 2), before = make_heap_profile(1, 1);

        p.samples.items[0] = p.samples.items[1];
        p.samples.count = 1;
        p.first_shown_type = 2;
        profile_reject_sample(&p, "too old");
        ck_assert_int_eq(pyroscope_subtract_previous(&p, &before, NULL, NULL), ST_OK);
        ck_assert_uint_eq(p.rejected_samples, 1);
        ck_assert_str_eq(p.rejected_reason, "too old");
        ck_assert_uint_eq(p.first_shown_type, 1);
        ck_assert_ptr_nonnull(strstr(profile_text(&p, p.types.items[0].id), ":inuse_space:"));
}
END_TEST

START_TEST(type_of_stacks_is_derived_from_suffix_or_unit)
{
        struct pyroscope_stack_type t;
        size_t n;

        ck_assert(pyroscope_find_suffix_type("shop.eu.cpu", &t, &n));
        ck_assert_str_eq(t.timed_id, "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
        ck_assert_uint_eq(n, 7);
        ck_assert(pyroscope_find_suffix_type("shop.alloc_space", &t, &n));
        ck_assert_str_eq(t.id, "memory:alloc_space:bytes::");
        ck_assert(!pyroscope_find_suffix_type("shop.eu", &t, &n));
        ck_assert(!pyroscope_find_suffix_type("cpu", &t, &n));
        ck_assert(!pyroscope_find_suffix_type(".cpu", &t, &n));
        ck_assert(pyroscope_find_unit_type("lock_nanoseconds", &t));
        ck_assert_str_eq(t.id, "mutex:delay:nanoseconds::");
        ck_assert(!pyroscope_find_unit_type("parsecs", &t));
}
END_TEST

TEST_SUITE("pyroscope_formats", names_of_objects_do_not_divide_folded_stacks, trie_and_tree_nodes_become_stacks,
           trie_depth_is_limited_and_long_frames_are_shared, speedscope_weights_become_nanoseconds,
           speedscope_events_are_attributed_to_open_frames, malformed_speedscope_is_refused,
           lines_without_counts_count_one, speedscope_weights_are_rounded_by_their_sum,
           speedscope_units_have_any_spelling, folded_counts_are_numbers_of_any_form, lines_of_comments_are_no_stacks,
           lines_may_all_end_in_carriage_returns, types_are_named_as_in_pyroscope,
           only_cumulative_values_of_previous_profile_are_subtracted, profile_without_previous_one_is_unchanged,
           type_of_stacks_is_derived_from_suffix_or_unit)
