/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "common/build_id.h"
#include "common/bytes.h"
#include "common/config/options.h"
#include "common/files/file.h"
#include "common/files/open_files.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/memory/arena.h"
#include "common/memory/array.h"
#include "common/memory/buf.h"
#include "common/metrics.h"
#include "common/program/metrics_write.h"
#include "common/reader.h"
#include "common/search.h"
#include "common/text/base64.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "common/threads/deadline.h"
#include "tests/support/suite.h"

START_TEST(reader_does_not_move_past_the_end)
{
        struct reader r;
        uint32_t v = 7;
        struct error err;

        reader_init(&r, "abc", 3);
        ck_assert(!reader_u32(&r, &v));
        ck_assert_uint_eq(v, 7);
        ck_assert_uint_eq(reader_left(&r), 3);
        ck_assert_int_eq(reader_error(&r, &err, "CIE"), ST_BAD_DATA);
        ck_assert_str_eq(err.text, "CIE is cut off or malformed at 0x0");
}
END_TEST

START_TEST(uleb128_over_64_bits_fails)
{
        static const uint8_t wide[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02 };
        static const uint8_t top[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01 };
        struct reader r;
        uint64_t v = 0;

        reader_init(&r, wide, sizeof wide);
        ck_assert(!reader_uleb128(&r, &v));
        reader_init(&r, top, sizeof top);
        ck_assert(reader_uleb128(&r, &v));
        ck_assert_uint_eq(v, UINT64_MAX);
}
END_TEST

START_TEST(leb128_round_trips)
{
        static const int64_t values[] = { 0, 1, -1, 63, 64, -64, -65, 127, 128, INT32_MAX, INT64_MAX, INT64_MIN };
        _cleanup_buf_ struct buf b;
        struct reader r;

        buf_init(&b, 4096);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
                buf_append_sleb128(&b, values[i]);
                buf_append_uleb128(&b, (uint64_t)values[i]);
        }
        reader_init(&r, b.data, b.size);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
                int64_t s;
                uint64_t u;

                ck_assert(reader_sleb128(&r, &s) && reader_uleb128(&r, &u));
                ck_assert_int_eq(s, values[i]);
                ck_assert_uint_eq(u, (uint64_t)values[i]);
        }
        ck_assert_uint_eq(reader_left(&r), 0);
}
END_TEST

START_TEST(buf_over_its_maximum_keeps_its_content)
{
        _cleanup_buf_ struct buf b;
        struct error err;

        buf_init(&b, 4);
        ck_assert_int_eq(buf_append(&b, "abc", 3), ST_OK);
        ck_assert_int_eq(buf_append(&b, "de", 2), ST_TOO_BIG);
        ck_assert_int_eq(buf_append(&b, "f", 1), ST_TOO_BIG);
        ck_assert_mem_eq(b.data, "abc", 3);
        ck_assert_int_eq(buf_status(&b, &err, "answer"), ST_TOO_BIG);
        ck_assert_str_eq(err.text, "answer is larger than 4 bytes");
}
END_TEST

START_TEST(arena_takes_over_blocks_of_another)
{
        _cleanup_arena_ struct arena a, b;
        char *one, *two;

        arena_init_budget(&a, KiB(100), MEMORY_QUERIES);
        arena_init_budget(&b, KiB(200), MEMORY_QUERIES);
        one = arena_strndup(&a, "one", 3);
        two = arena_strndup(&b, "two", 3);
        ck_assert_ptr_nonnull(arena_alloc(&b, KiB(90)));
        ck_assert(arena_absorb(&a, &b));
        ck_assert_uint_gt(a.used, KiB(90));
        ck_assert_uint_eq(a.memory.bytes, memory_use_held(MEMORY_QUERIES));
        ck_assert_uint_eq(b.used, 0);
        arena_deinit(&b);
        ck_assert_str_eq(one, "one");
        ck_assert_str_eq(two, "two");
        ck_assert_ptr_nonnull(arena_alloc(&b, KiB(20)));
        ck_assert(!arena_absorb(&a, &b)); /* 100 KiB would be exceeded */
        ck_assert_uint_gt(b.used, KiB(19));
        ck_assert_ptr_null(arena_alloc(&a, KiB(20)));
        arena_deinit(&a);
        arena_deinit(&b);
        ck_assert_uint_eq(memory_use_held(MEMORY_QUERIES), 0);
}
END_TEST

/* An array that doubles needs no more memory than its last two sizes. */
START_TEST(arena_frees_outgrown_large_arrays)
{
        _cleanup_arena_ struct arena a;
        size_t n = KiB(1);
        void *array;

        arena_init_budget(&a, MiB(3) + KiB(100), MEMORY_QUERIES);
        array = arena_alloc(&a, n);
        for (; n < MiB(2); n *= 2) {
                void *bigger = arena_alloc(&a, 2 * n);

                ck_assert_ptr_nonnull(bigger);
                memset(bigger, 1, 2 * n);
                arena_discard(&a, array, n);
                array = bigger;
        }
        ck_assert_uint_lt(a.memory.bytes, MiB(2) + KiB(100));
        ck_assert_uint_lt(a.used, MiB(2) + KiB(100));
        ck_assert_uint_eq(a.memory.bytes, memory_use_held(MEMORY_QUERIES));
        arena_discard(&a, NULL, 0);
        arena_discard(&a, array, n);
        ck_assert_uint_lt(a.memory.bytes, KiB(100));
        ck_assert_ptr_nonnull(arena_alloc(&a, KiB(1)));
        arena_deinit(&a);
        ck_assert_uint_eq(memory_use_held(MEMORY_QUERIES), 0);
}
END_TEST

START_TEST(arena_refuses_past_its_maximum)
{
        _cleanup_arena_ struct arena a;

        arena_init(&a, 1024);
        ck_assert_ptr_nonnull(arena_alloc(&a, 1000));
        ck_assert_ptr_null(arena_alloc(&a, 100));
        ck_assert_ptr_null(arena_alloc_array(&a, SIZE_MAX / 2, 4));
}
END_TEST

START_TEST(build_id_hex_round_trips_and_folds_case)
{
        struct build_id id;
        char hex[BUILD_ID_HEX_MAX];

        ck_assert(build_id_from_hex(&id, "00AbfF", 6));
        ck_assert_str_eq(build_id_hex(&id, hex), "00abff");
        ck_assert(!build_id_from_hex(&id, "abc", 3));
        ck_assert(!build_id_from_hex(&id, "zz", 2));
        ck_assert(!build_id_from_hex(&id, "", 0));
}
END_TEST

START_TEST(json_text_is_escaped_and_always_utf8)
{
        _cleanup_buf_ struct buf b;
        struct json_out j;

        buf_init(&b, 4096);
        json_out_init(&j, &b);
        json_out_object(&j, NULL);
        json_out_str(&j, "a", "x\"\n\xff");
        json_out_str(&j, "\x7f ~", "plain \\ \xc3\xa9 \xc2\x85 \xe2\x80\xae end");
        json_out_array(&j, "b");
        json_out_int(&j, NULL, -1);
        json_out_int(&j, NULL, INT64_MIN);
        json_out_int(&j, NULL, INT64_MAX);
        json_out_uint(&j, NULL, 0);
        json_out_uint(&j, NULL, UINT64_MAX);
        json_out_array_end(&j);
        json_out_str(&j, "c", NULL);
        json_out_object_end(&j);
        ck_assert_str_eq(buf_cstr(&b),
                         "{\"a\":\"x\\\"\\n\xef\xbf\xbd\",\"\\u007f ~\":\"plain \\\\ \xc3\xa9 \\u0085 \\u202e end\","
                         "\"b\":[-1,-9223372036854775808,9223372036854775807,0,18446744073709551615],\"c\":null}");
}
END_TEST

START_TEST(plain_text_ends_at_first_byte_that_an_output_escapes)
{
        for (unsigned c = 0; c < 256; c++) {
                bool is_plain = c >= ' ' && c < 0x7f && c != '"' && c != '\\';

                for (size_t at = 0; at < 20; at++) { /* in each place of a word, and after the last whole word */
                        char text[20];

                        memset(text, '~', sizeof text);
                        memset(text, ' ', at);
                        text[at] = (char)c;
                        ck_assert_uint_eq(utf8_count_plain(text, sizeof text), is_plain ? sizeof text : at);
                        ck_assert_uint_eq(utf8_count_plain(text, at), at);
                }
        }
}
END_TEST

START_TEST(tabs_of_source_lines_become_blanks)
{
        static const char line[] = "\th\303\251\t^=\033x\t";
        _cleanup_buf_ struct buf b;

        buf_init(&b, 100);
        utf8_append_source_line(&b, line, sizeof line - 1);
        ck_assert_str_eq(buf_cstr(&b), "        h\303\251      ^=\\x1bx    ");
}
END_TEST

START_TEST(utf8_refuses_overlong_forms_and_surrogates)
{
        ck_assert(utf8_valid("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\xaa\xa8", 12));
        ck_assert(!utf8_valid("\xc0\xaf", 2));
        ck_assert(!utf8_valid("\xed\xa0\x80", 3));
        ck_assert(!utf8_valid("\xe2\x82", 2));
}
END_TEST

START_TEST(file_limit_is_exact)
{
        char path[] = "/tmp/cairn-test-XXXXXX";
        int fd = mkstemp(path);
        _cleanup_buf_ struct buf b;
        struct error err;

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, "12345", 5), 5);
        close(fd);
        buf_init(&b, 5);
        ck_assert_int_eq(file_read(path, &b, &err), ST_OK);
        ck_assert_uint_eq(b.size, 5);
        buf_deinit(&b);
        buf_init(&b, 4);
        ck_assert_int_eq(file_read(path, &b, &err), ST_TOO_BIG);
        unlink(path);
}
END_TEST

START_TEST(options_are_removed_from_arguments)
{
        char *args[] = { "x", "one", "--n=0x10", "-j", "two", "--l", "a", "--l=b", "--", "--n", NULL };
        char **argv = args;
        int argc = 10;
        uint64_t n = 0;
        bool j = false;
        struct option_list l = { 0 };
        const struct usage usage = { .synopsis = "x", .about = "y" };
        const struct option_spec specs[] = {
                OPTION_UINT("n", 0, "N", &n, ""),
                OPTION_FLAG("json", 'j', &j, ""),
                OPTION_LIST("l", 0, "L", &l, ""),
                OPTION_END,
        };
        struct error err;

        ck_assert_int_eq(options_parse(&usage, specs, &argc, &argv, &err), ST_OK);
        ck_assert_int_eq(argc, 3);
        ck_assert_str_eq(argv[0], "one");
        ck_assert_str_eq(argv[2], "--n");
        ck_assert_uint_eq(n, 16);
        ck_assert(j);
        ck_assert_uint_eq(l.count, 2);
        options_list_deinit(&l);
}
END_TEST

START_TEST(option_values_are_typed_and_limited)
{
        static const char *const colors[] = { "red", "green", NULL };
        uint64_t count = 5, size = 0, age = 0;
        unsigned color = 0;
        const struct option_spec specs[] = {
                OPTION_RANGE("count", 0, "N", &count, 1, 9, ""),
                OPTION_SIZE("size", 0, "SIZE", &size, MiB(1), 0, ""),
                OPTION_AGE("age", 0, "AGE", &age, 0, 0, ""),
                OPTION_AGE("least-age", 0, "AGE", &age, 60, 86400, ""),
                OPTION_CHOICE("color", 0, "COLOR", &color, colors, ""),
        };
        static const struct {
                unsigned spec;
                const char *value, *message;
        } refused[] = {
                { 0, "0", "option '--count' takes a number, from 1 to 9, not '0'" },
                { 0, "10", "option '--count' takes a number, from 1 to 9, not '10'" },
                { 1, "512K", "option '--size' takes a size as 256M, at least 1M, not '512K'" },
                { 1, "1Q", "option '--size' takes a size as 256M, at least 1M, not '1Q'" },
                { 2, "30", "option '--age' takes an age as 30d, or 'any', not '30'" },
                { 3, "any", "option '--least-age' takes an age as 30d, from 1m to 1d, not 'any'" },
                { 4, "blue", "option '--color' takes red or green, not 'blue'" },
        };
        struct error err;

        for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
                ck_assert_int_eq(options_set_value(&specs[refused[i].spec], refused[i].value, &err), ST_USAGE);
                ck_assert_str_eq(err.text, refused[i].message);
        }
        ck_assert_uint_eq(count, 5);
        ck_assert_int_eq(options_set_value(&specs[1], "2G", &err), ST_OK);
        ck_assert_uint_eq(size, GiB(2));
        ck_assert_int_eq(options_set_value(&specs[2], "2w", &err), ST_OK);
        ck_assert_uint_eq(age, 14 * 86400);
        ck_assert_int_eq(options_set_value(&specs[2], "any", &err), ST_OK);
        ck_assert_uint_eq(age, 0);
        ck_assert_int_eq(options_set_value(&specs[4], "green", &err), ST_OK);
        ck_assert_uint_eq(color, 1);
}
END_TEST

START_TEST(numbers_are_written_as_they_are_read)
{
        static const uint64_t numbers[] = {
                1, 59, 60, 90, 3600, 86400, 604800, 31536000, 1023, 1024, MiB(3), GiB(5000)
        };
        char text[NUMBER_TEXT_SIZE];
        uint64_t n;

        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
                ck_assert(parse_age(format_age(numbers[i], text), &n));
                ck_assert_uint_eq(n, numbers[i]);
                ck_assert(parse_bytes(format_bytes(numbers[i], text), &n));
                ck_assert_uint_eq(n, numbers[i]);
        }
        ck_assert_str_eq(format_age(5400, text), "90m");
        ck_assert_str_eq(format_bytes(MiB(1536), text), "1536M");
        ck_assert_str_eq(format_bytes(0, text), "0");
        ck_assert_str_eq(COUNTED(1, "batch", "batches"), "1 batch");
        ck_assert_str_eq(COUNTED(0, "batch", "batches"), "0 batches");
}
END_TEST

static const struct usage verb_pages[] = { { .synopsis = "x one", .about = "y" },
                                           { .synopsis = "x two", .about = "y" },
                                           { .about = "z" } };
static const struct option_verb verb_items[] = {
        { "one", "number", "the first", &verb_pages[0] },
        { "two", "json", "the second", &verb_pages[1] },
        { "two more", "json number", NULL, &verb_pages[1] },
};
static const struct option_verbs some_verbs = {
        .command = "x", .usage = &verb_pages[2], .items = verb_items, .count = 3
};

/* The verb's name, followed by the remaining arguments; or the error text. */
static void parse_verb(const char *line, const struct option_verbs *verbs, char ret[static 256])
{
        char text[128], *args[16] = { "x" }, *rest, **argv = args;
        uint64_t n = 0;
        bool j = false;
        const struct option_spec specs[] = { OPTION_UINT("number", 'n', "N", &n, ""), OPTION_FLAG("json", 0, &j, ""),
                                             OPTION_END };
        const struct option_verb *verb;
        struct error err;
        int argc = 1;

        snprintf(text, sizeof text, "%s", line);
        for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
                args[argc++] = word;
        if (options_parse_verb(verbs, specs, &argc, &argv, &verb, &err)) {
                ck_assert_int_eq(err.code, ST_USAGE);
                snprintf(ret, 256, "%s", err.text);
                return;
        }
        snprintf(ret, 256, "%s:", verb->name);
        for (int i = 0; i < argc; i++)
                snprintf(ret + strlen(ret), 256 - strlen(ret), " %s", argv[i]);
}

START_TEST(verbs_are_found_and_refuse_options_of_others)
{
        static const struct {
                const char *line, *want;
        } cases[] = {
                { "one", "one:" },
                { "one -n 3 a b", "one: a b" },
                { "--number=3 one", "one:" },
                { "two a --json", "two: a" },
                { "two --json more a", "two more: a" },
                { "two more -n 1", "two more:" },
                { "one --json", "option '--json' does not apply to 'x one' (try --help)" },
                { "two -n 1", "option '--number' does not apply to 'x two' (try --help)" },
                { "three", "unknown command 'three': expected one or two" },
                { "more", "unknown command 'more': expected one or two" },
                { "--json", "expected one or two (try --help)" },
                { "one --nope", "unknown option '--nope' (try --help)" },
        };
        const struct option_verb with_default[] = { verb_items[0], { "", "json", NULL, &verb_pages[2] } };
        const struct option_verbs default_verbs = {
                .command = "x", .usage = &verb_pages[2], .items = with_default, .count = 2
        };
        char got[256];

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                parse_verb(cases[i].line, &some_verbs, got);
                ck_assert_str_eq(got, cases[i].want);
        }
        parse_verb("a b --json", &default_verbs, got);
        ck_assert_str_eq(got, ": a b");
        parse_verb("one a", &default_verbs, got);
        ck_assert_str_eq(got, "one: a");
        parse_verb("a -n 1", &default_verbs, got);
        ck_assert_str_eq(got, "option '--number' does not apply to 'x' (try --help)");
}
END_TEST

START_TEST(unknown_option_is_usage_error)
{
        char *args[] = { "x", "--nope", NULL };
        char **argv = args;
        int argc = 2;
        const struct usage usage = { .synopsis = "x", .about = "y" };
        const struct option_spec specs[] = { OPTION_END };
        struct error err;

        ck_assert_int_eq(options_parse(&usage, specs, &argc, &argv, &err), ST_USAGE);
        ck_assert_ptr_nonnull(strstr(err.text, "--nope"));
}
END_TEST

START_TEST(metrics_of_one_family_share_a_header)
{
        static struct metric a = METRIC_COUNTER("cairn_test_total", "T.", "kind=\"a\"");
        static struct metric b = METRIC_COUNTER("cairn_test_total", "T.", "kind=\"b\"");
        _cleanup_buf_ struct buf out;
        const char *text;

        metric_add(&a, 2);
        metric_register(&b);
        buf_init(&out, 65536);
        metrics_write(&out);
        text = buf_cstr(&out);
        ck_assert_ptr_nonnull(strstr(text, "# TYPE cairn_test_total counter\n"));
        ck_assert_ptr_nonnull(strstr(text, "cairn_test_total{kind=\"a\"} 2\n"));
        ck_assert_ptr_nonnull(strstr(text, "cairn_test_total{kind=\"b\"} 0\n"));
        ck_assert_ptr_null(strstr(strstr(text, "# TYPE cairn_test_total") + 1, "# TYPE cairn_test_total"));
}
END_TEST

START_TEST(histogram_counts_are_cumulative)
{
        static struct histogram h = HISTOGRAM("cairn_test_duration_seconds", "T.", "kind=\"a\"");
        static struct histogram bare = HISTOGRAM("cairn_bare_duration_seconds", "T.", "");
        _cleanup_buf_ struct buf out;
        const char *text;

        histogram_observe(&h, 500000); /* bounds are inclusive */
        histogram_observe(&h, 500001);
        histogram_observe(&h, 3000000000);
        histogram_observe(&h, 301000000000);
        histogram_observe(&h, -7); /* counts as 0 */
        metric_register(&bare.metric);
        buf_init(&out, 65536);
        metrics_write(&out);
        text = buf_cstr(&out);
        ck_assert_ptr_nonnull(strstr(text, "# TYPE cairn_test_duration_seconds histogram\n"
                                           "cairn_test_duration_seconds_bucket{kind=\"a\",le=\"0.0005\"} 2\n"
                                           "cairn_test_duration_seconds_bucket{kind=\"a\",le=\"0.001\"} 3\n"));
        ck_assert_ptr_nonnull(strstr(text, "_bucket{kind=\"a\",le=\"2.5\"} 3\n"));
        ck_assert_ptr_nonnull(strstr(text, "_bucket{kind=\"a\",le=\"5\"} 4\n"));
        ck_assert_ptr_nonnull(strstr(text, "_bucket{kind=\"a\",le=\"300\"} 4\n"
                                           "cairn_test_duration_seconds_bucket{kind=\"a\",le=\"+Inf\"} 5\n"
                                           "cairn_test_duration_seconds_sum{kind=\"a\"} 304.001000001\n"
                                           "cairn_test_duration_seconds_count{kind=\"a\"} 5\n"));
        ck_assert_ptr_nonnull(strstr(text, "cairn_bare_duration_seconds_bucket{le=\"+Inf\"} 0\n"
                                           "cairn_bare_duration_seconds_sum 0.000000000\n"
                                           "cairn_bare_duration_seconds_count 0\n"));
}
END_TEST

static void find_histogram(void *context, struct metric *m)
{
        *(bool *)context |= strcmp(m->type, "histogram") == 0;
}

START_TEST(visitor_gets_single_values)
{
        static struct histogram h = HISTOGRAM("cairn_unvisited_duration_seconds", "T.", "");
        bool found = false;

        histogram_observe(&h, 1);
        metrics_visit(find_histogram, &found);
        ck_assert(!found);
}
END_TEST

START_TEST(removed_metric_is_not_written_and_labels_are_escaped)
{
        _cleanup_buf_ struct buf label, before, after;
        struct metric m = METRIC_GAUGE("cairn_going", "G.", NULL);

        buf_init(&label, 256);
        metric_label(&label, "url", "http://h/\"a\\b\nc");
        m.labels = buf_cstr(&label);
        metric_set(&m, 3);
        buf_init(&before, 65536);
        metrics_write(&before);
        ck_assert_ptr_nonnull(strstr(buf_cstr(&before), "cairn_going{url=\"http://h/\\\"a\\\\b c\"} 3\n"));
        metric_unregister(&m);
        metric_unregister(&m); /* it has been removed */
        buf_init(&after, 65536);
        metrics_write(&after);
        ck_assert_ptr_null(strstr(buf_cstr(&after), "cairn_going"));
}
END_TEST

START_TEST(deadline_ends_by_time_or_cancellation)
{
        atomic_bool cancelled = false;
        struct deadline never = { .expires_ns = INT64_MAX, .cancelled = &cancelled };
        const struct deadline past = { .expires_ns = monotonic_ns() - 1, .timeout_s = 30 };
        struct error err;

        ck_assert(!deadline_expired(NULL));
        ck_assert_int_eq(deadline_check(NULL, &err), ST_OK);
        ck_assert_int_eq(deadline_check(&never, &err), ST_OK);
        atomic_store(&cancelled, true);
        ck_assert_int_eq(deadline_check(&never, &err), ST_TIMEOUT);
        ck_assert_str_eq(err.text, "cancelled: the client closed its connection");
        ck_assert(deadline_expired(&past));
        ck_assert_int_eq(deadline_check(&past, &err), ST_TIMEOUT);
        ck_assert_str_eq(err.text, "stopped after the time limit of 30 s");
}
END_TEST

START_TEST(array_grows_by_half_and_refuses_an_overflow)
{
        uint32_t *items = NULL;
        size_t capacity = 0;

        for (size_t i = 0; i < 1000; i++) {
                ck_assert(array_reserve(&items, &capacity, i));
                items[i] = (uint32_t)i;
        }
        ck_assert_uint_ge(capacity, 1000);
        ck_assert_uint_lt(capacity, 2000);
        ck_assert(array_reserve_many(&items, &capacity, 1000, 5000));
        ck_assert_uint_ge(capacity, 6000);
        for (size_t i = 0; i < 1000; i++)
                ck_assert_uint_eq(items[i], i);
        ck_assert(!array_reserve_many(&items, &capacity, 1000, SIZE_MAX - 10));
        ck_assert(!array_reserve_many(&items, &capacity, 0, SIZE_MAX / 2));
        ck_assert_uint_eq(items[999], 999);
        free(items);
}
END_TEST

START_TEST(lower_bound_is_the_first_item_not_before_the_key)
{
        static const unsigned keys[] = { 2, 4, 4, 8 };

        ck_assert_uint_eq(find_lower_bound(i, 0, 0, keys[i] < 4), 0);
        ck_assert_uint_eq(find_lower_bound(i, 0, 4, keys[i] < 1), 0);
        ck_assert_uint_eq(find_lower_bound(i, 0, 4, keys[i] < 4), 1);
        ck_assert_uint_eq(find_lower_bound(i, 0, 4, keys[i] <= 4), 3);
        ck_assert_uint_eq(find_lower_bound(i, 2, 4, keys[i] < 4), 2);
        ck_assert_uint_eq(find_lower_bound(i, 0, 4, keys[i] < 9), 4);
}
END_TEST

START_TEST(loads_use_the_given_byte_order)
{
        uint8_t bytes[9] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };

        ck_assert_uint_eq(load_le16(bytes + 1), 0x0201);
        ck_assert_uint_eq(load_le32(bytes + 1), 0x04030201);
        ck_assert(load_le64(bytes + 1) == 0x0807060504030201);
        ck_assert_uint_eq(load_be32(bytes + 1), 0x01020304);
        ck_assert(load_be64(bytes + 1) == 0x0102030405060708);
        store_le32(bytes + 1, 0x11223344);
        ck_assert_uint_eq(bytes[1], 0x44);
        store_be32(bytes + 1, 0x11223344);
        ck_assert_uint_eq(bytes[1], 0x11);
        store_le64(bytes + 1, 1);
        ck_assert_uint_eq(bytes[1], 1);
        store_be64(bytes + 1, 1);
        ck_assert_uint_eq(bytes[8], 1);
}
END_TEST

START_TEST(hex_digits_of_either_case_are_decoded)
{
        static const uint8_t bytes[] = { 0x00, 0x9a, 0xff };
        uint8_t decoded[3];
        char text[7];

        ck_assert_str_eq(hex_encode(bytes, sizeof bytes, text), "009aff");
        ck_assert(hex_decode("009AfF", sizeof decoded, decoded));
        ck_assert_mem_eq(decoded, bytes, sizeof bytes);
        ck_assert(!hex_decode("00", 2, decoded)); /* stops at the NUL */
        ck_assert(!hex_decode("0g", 1, decoded));
        for (int c = -128; c < 128; c++)
                ck_assert_int_eq(hex_digit_value((char)c) >= 0, c > 0 && strchr("0123456789abcdefABCDEF", c) != NULL);
}
END_TEST

/* RFC 4648, 10 */
START_TEST(base64_round_trips)
{
        static const char *const texts[][2] = { { "", "" },        { "f", "Zg==" },          { "fo", "Zm8=" },
                                                { "foo", "Zm9v" }, { "foobar", "Zm9vYmFy" }, { "\xfb\xff", "+/8=" } };

        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                _cleanup_buf_ struct buf encoded, decoded;

                buf_init(&encoded, 100);
                buf_init(&decoded, 100);
                base64_encode_append(&encoded, (const uint8_t *)texts[i][0], strlen(texts[i][0]));
                ck_assert_str_eq(buf_cstr(&encoded), texts[i][1]);
                ck_assert(base64_decode_append(&decoded, texts[i][1], strlen(texts[i][1])));
                ck_assert_str_eq(buf_cstr(&decoded), texts[i][0]);
        }
}
END_TEST

START_TEST(prefixes_and_suffixes_may_be_longer_than_the_text)
{
        ck_assert(starts_with("abc", "ab") && starts_with("abc", "abc") && starts_with("", ""));
        ck_assert(!starts_with("ab", "abc") && !starts_with("abc", "b"));
        ck_assert(ends_with("abc", "bc") && ends_with("abc", "abc") && ends_with("", ""));
        ck_assert(!ends_with("bc", "abc") && !ends_with("abc", "b"));
}
END_TEST

START_TEST(first_line_is_read_without_surrounding_blanks)
{
        static const char *const texts[][2] = { { "a b", "a b" },
                                                { "  a b \t\r\nsecond\n", "a b" },
                                                { "\n\na\n", "a" },
                                                { "", NULL },
                                                { " \n\t", NULL },
                                                { "\xef\xbb\xbf"
                                                  "a\r\n",
                                                  "a" } };
        char path[64];

        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                _cleanup_close_ int fd = memfd_create("line", 0);
                _cleanup_free_ char *line = NULL;

                ck_assert_int_eq(file_write_all(fd, texts[i][0], strlen(texts[i][0]), "line", NULL), ST_OK);
                snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
                ck_assert_int_eq(file_read_first_line(path, 32, &line, NULL), texts[i][1] ? ST_OK : ST_USAGE);
                if (texts[i][1])
                        ck_assert_str_eq(line, texts[i][1]);
        }
}
END_TEST

static enum status read_lines_of(const char *text, size_t size, struct buf *ret, struct error *err)
{
        _cleanup_close_ int fd = memfd_create("lines", 0);
        _cleanup_free_ char *line = NULL;
        char path[64];
        enum status st;

        ck_assert_int_eq(file_write_all(fd, text, size, "lines", NULL), ST_OK);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        buf_init(ret, 64);
        st = file_read_lines(path, ret, err);
        if (!st)
                ck_assert_int_eq(file_read_first_line(path, 64, &line, err), ST_OK);
        return st;
}

START_TEST(texts_that_are_not_utf8_in_lines_are_refused_with_the_reason)
{
        static const struct {
                const char *text;
                size_t size;
                const char *why;
        } cases[] = { { "\xff\xfe"
                        "a\0\n\0",
                        6, "' is text in UTF-16: save it in UTF-8" },
                      { "\xfe\xff\0a\0\n", 6, "' is text in UTF-16: save it in UTF-8" },
                      { "\0a\0\n", 4, "' contains zero bytes" },
                      { "a\rb\r", 4, "' end with CR only: end them with LF or CR LF" },
                      { "a\nb", 3, "' does not end with a line end" } };
        struct error err;
        struct buf text;

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                ck_assert_int_eq(read_lines_of(cases[i].text, cases[i].size, &text, &err), ST_BAD_DATA);
                ck_assert_msg(strstr(err.text, cases[i].why) != NULL, "%zu: %s", i, err.text);
                buf_deinit(&text);
        }
        ck_assert_int_eq(read_lines_of("\xef\xbb\xbf"
                                       "a\r\n",
                                       6, &text, &err),
                         ST_OK);
        ck_assert_uint_eq(text.size, 3);
        ck_assert_mem_eq(text.data, "a\r\n", 3);
        buf_deinit(&text);
}
END_TEST

START_TEST(the_limit_of_open_files_is_raised_as_far_as_allowed)
{
        const struct rlimit few = { 200, 300 };
        struct rlimit now;

        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
        ck_assert_uint_eq(raise_open_files_limit(100), 200); /* never lowered */
        ck_assert_uint_eq(raise_open_files_limit(250), 250);
        ck_assert_uint_eq(raise_open_files_limit(UINT64_MAX), 300);
        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &now), 0);
        ck_assert_uint_eq(now.rlim_cur, 300);
        ck_assert_uint_eq(now.rlim_max, 300);
}
END_TEST

TEST_SUITE("common", first_line_is_read_without_surrounding_blanks,
           texts_that_are_not_utf8_in_lines_are_refused_with_the_reason,
           the_limit_of_open_files_is_raised_as_far_as_allowed, array_grows_by_half_and_refuses_an_overflow,
           lower_bound_is_the_first_item_not_before_the_key, loads_use_the_given_byte_order,
           hex_digits_of_either_case_are_decoded, base64_round_trips, prefixes_and_suffixes_may_be_longer_than_the_text,
           reader_does_not_move_past_the_end, uleb128_over_64_bits_fails, leb128_round_trips,
           buf_over_its_maximum_keeps_its_content, arena_frees_outgrown_large_arrays, arena_refuses_past_its_maximum,
           arena_takes_over_blocks_of_another, build_id_hex_round_trips_and_folds_case,
           json_text_is_escaped_and_always_utf8, plain_text_ends_at_first_byte_that_an_output_escapes,
           tabs_of_source_lines_become_blanks, utf8_refuses_overlong_forms_and_surrogates, file_limit_is_exact,
           options_are_removed_from_arguments, option_values_are_typed_and_limited,
           numbers_are_written_as_they_are_read, unknown_option_is_usage_error,
           verbs_are_found_and_refuse_options_of_others, metrics_of_one_family_share_a_header,
           histogram_counts_are_cumulative, visitor_gets_single_values,
           removed_metric_is_not_written_and_labels_are_escaped, deadline_ends_by_time_or_cancellation)
