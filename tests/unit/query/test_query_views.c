/* SPDX-License-Identifier: Apache-2.0 */
/* Grouping, frame filters, conversion of types, and views of functions: docs/formats/query-api.md */
#include <check.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "common/text/regex_match.h"
#include "profile-formats/hidden_label.h"
#include "profile-formats/pprof/pprof.h"
#include "profile-formats/profile_type.h"
#include "query/query.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define S INT64_C(1000000000)
#define MS INT64_C(1000000)
#define NOW (INT64_C(1700000000) * S)
#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define MICROSECONDS "process_cpu:cpu:microseconds:cpu:microseconds"
#define COUNT "process_cpu:samples:count:cpu:nanoseconds"
#define BARE_COUNT "process_cpu:samples:count::"
#define MEMORY "memory:inuse_space:bytes:space:bytes"

/* ---- a store ---- */

static char dir[TEMPORARY_DIR_BYTES];
static struct profile_store *store;
static uint8_t batches;

static void set_up(void)
{
        const struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        struct error err;

        temporary_dir_create(dir, "views");
        batches = 0;
        ck_assert_msg(profile_store_open(dir, &options, &store, &err) == ST_OK, "%s", err.text);
}

static void tear_down(void)
{
        profile_store_close(store);
        temporary_dir_remove(dir);
}

/* A manually built profile, one sample at a time. */
struct sample {
        const char *type;
        int64_t period, value;
        const char *stack;  /* "leaf;caller;main"; "function@file:line" sets a place */
        const char *labels; /* "host=a;service=x" */
        int64_t time_unix_ns;
        uint8_t trace, span; /* every byte of the ids; 0 none */
};

static uint32_t add_text(struct profile *p, const char *text, size_t n)
{
        uint32_t ret;

        ck_assert_int_eq(profile_add_string(p, text, n, &ret, NULL), ST_OK);
        return ret;
}

static uint32_t add_stack(struct profile *p, const char *text)
{
        uint32_t locations[32], count = 0, ret;

        for (const char *at = text; *at;) {
                size_t n = strcspn(at, ";"), name = strcspn(at, "@;"), file = 0;
                struct profile_line line = { .function = add_text(p, at, name) };
                struct profile_location l = { .mapping = PROFILE_NONE, .line_count = 1, .kind = ADDRESS_NONE };

                if (name < n) {
                        file = strcspn(at + name + 1, ":");
                        line.file = add_text(p, at + name + 1, file);
                        for (const char *digit = at + name + 1 + file + 1; *digit >= '0' && *digit <= '9'; digit++)
                                line.line = 10 * line.line + *digit - '0';
                        line.start_line = 7;
                }
                ck_assert_int_eq(profile_add_line(p, &line, &l.first_line, NULL), ST_OK);
                ck_assert_int_eq(profile_add_location(p, &l, &locations[count++], NULL), ST_OK);
                at += n + (at[n] == ';');
        }
        ck_assert_int_eq(profile_add_stack(p, locations, count, &ret, NULL), ST_OK);
        return ret;
}

static void append_samples(const struct sample *samples, size_t count)
{
        struct hash128 batch = { { ++batches } };
        _cleanup_profile_ struct profile p;
        struct error err;
        bool duplicate;

        ck_assert_int_eq(profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, NULL), ST_OK);
        for (size_t i = 0; i < count; i++) {
                const struct sample *from = &samples[i];
                struct profile_sample s = { .value = from->value,
                                            .time_unix_ns = from->time_unix_ns ? from->time_unix_ns : NOW - 60 * S };
                struct profile_label labels[8];
                uint32_t n = 0, number;

                ck_assert_int_eq(profile_type_add_id(&p, from->type, from->period, &s.type, NULL), ST_OK);
                for (const char *at = from->labels; at && *at;) {
                        size_t size = strcspn(at, ";"), key = strcspn(at, "=");

                        labels[n].key = add_text(&p, at, key);
                        labels[n++].value = add_text(&p, at + key + 1, size - key - 1);
                        at += size + (at[size] == ';');
                }
                s.label_count = n;
                ck_assert_int_eq(profile_add_label_set(&p, labels, n, &s.first_label, NULL), ST_OK);
                memset(s.trace_id, from->trace, sizeof s.trace_id);
                memset(s.span_id, from->span, sizeof s.span_id);
                s.stack = add_stack(&p, from->stack);
                ck_assert_int_eq(profile_add_sample(&p, &s, &number, NULL), ST_OK);
        }
        ck_assert_msg(profile_store_append(store, &p, batch, &duplicate, &err) == ST_OK, "%s", err.text);
}
#define APPEND(...)                                                                                                    \
        append_samples((const struct sample[]){ __VA_ARGS__ },                                                         \
                       sizeof((const struct sample[]){ __VA_ARGS__ }) / sizeof(struct sample))

/* ---- queries ---- */

struct pairs {
        const char *items[12];
};

static const char *pair_value(void *context, const char *name)
{
        const struct pairs *p = context;

        for (int i = 0; i < 12 && p->items[i]; i++)
                if (strncmp(p->items[i], name, strlen(name)) == 0 && p->items[i][strlen(name)] == '=')
                        return p->items[i] + strlen(name) + 1;
        return NULL;
}

static struct query_answer answer;
static const struct query_sources *sources;

static char *run_query(const char *operation, struct pairs p, enum status want)
{
        struct query_input in = { .param = pair_value, .param_context = &p, .now_unix_ns = NOW, .sources = sources };
        struct buf b;
        struct error err = { 0 };
        enum status st;

        buf_init(&b, MiB(4));
        st = query_run(store, operation, &in, &b, &answer, &err);
        ck_assert_msg(st == want, "%s: %s", operation, err.text);
        if (st) {
                buf_clear(&b);
                buf_append_str(&b, err.text);
        }
        ck_assert_ptr_nonnull(buf_cstr(&b));
        return (char *)b.data;
}
#define ASK(name, operation, ...)                                                                                      \
        _cleanup_free_ char *name = run_query(operation, (struct pairs){ { __VA_ARGS__ } }, ST_OK)
#define REFUSED(name, operation, ...)                                                                                  \
        _cleanup_free_ char *name = run_query(operation, (struct pairs){ { __VA_ARGS__ } }, ST_USAGE)

#define EXPECT(text, part) ck_assert_msg(strstr(text, part) != NULL, "%s is not in %s", part, text)
#define EXPECT_NOT(text, part) ck_assert_msg(strstr(text, part) == NULL, "%s is in %s", part, text)

/* The lines of folded stacks, sorted. */
static int compare_lines(const void *x, const void *y)
{
        return strcmp(*(char *const *)x, *(char *const *)y);
}

static void expect_folded(char *text, const char *want)
{
        char *lines[32], joined[1024] = "", *rest;
        size_t count = 0;

        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
                lines[count++] = line;
        qsort(lines, count, sizeof *lines, compare_lines);
        for (size_t i = 0; i < count; i++)
                snprintf(joined + strlen(joined), sizeof joined - strlen(joined), "%s%s", i ? ", " : "", lines[i]);
        ck_assert_str_eq(joined, want);
}

/* Run a check on samples in the head, and again on those in parts. */
static void check_head_and_parts(void (*check)(void))
{
        check();
        ck_assert_int_eq(profile_store_flush(store, NULL), ST_OK);
        check();
}

/* ---- types ---- */

static void check_mixed_types(void)
{
        ASK(folded, "folded", NULL);
        ASK(json, "top", "by=host");
        ASK(of_one, "folded", "selector={host=\"agent\"}");
        ASK(asked, "folded", "type=process_cpu:samples");
        ASK(series, "series", "step=1h");

        expect_folded(folded, "main;a 1000000000, main;b 30000000, main;c 40000000");
        EXPECT(json, "\"type\":\"" CPU "\"");
        EXPECT(json, "\"converted_types\":[\"" COUNT "\"]");
        EXPECT(json, "{\"type\":\"" MEMORY "\",\"reason\":\"other_type\"}");
        EXPECT(json, "{\"type\":\"" COUNT "\",\"reason\":\"no_period\",\"samples\":1}");
        EXPECT(json, "{\"type\":\"" COUNT "\",\"reason\":\"has_cpu_time\",\"samples\":1}");
        EXPECT(json, "{\"labels\":{\"host\":\"otel\"},\"total\":30000000,\"samples\":3,");
        EXPECT_NOT(json, "\"host\":\"none\"");
        expect_folded(of_one, "main;a 1000000000");
        expect_folded(asked, "main;b 3, main;c 4, main;d 5");
        EXPECT(series, "\"converted_types\"");
        EXPECT(series, ",1070000000,107]");
        {
                ASK(again, "top", "format=text");

                ck_assert_str_eq(answer.note, "not included: samples of type " MEMORY
                                              "; 1 sample without a period of type " COUNT "; choose one with type");
                EXPECT(again, "1.07 s in 107 samples");
        }
        {
                ASK(go, "top", "selector={host=\"go\"}");

                EXPECT(go, "\"total\":40000000,");
                EXPECT_NOT(go, "converted_types");
                ck_assert_str_eq(answer.note, ""); /* its counts are of the same samples */
        }
}

START_TEST(counts_with_a_period_add_to_cpu_time_and_omissions_are_reported)
{
        set_up();
        APPEND({ .type = CPU, .period = 10 * MS, .value = S, .stack = "a;main", .labels = "host=agent" });
        APPEND({ .type = COUNT, .period = 10 * MS, .value = 3, .stack = "b;main", .labels = "host=otel" });
        APPEND({ .type = COUNT, .period = 10 * MS, .value = 4, .stack = "c;main", .labels = "host=go" },
               { .type = CPU, .period = 10 * MS, .value = 40 * MS, .stack = "c;main", .labels = "host=go" });
        APPEND({ .type = COUNT, .value = 5, .stack = "d;main", .labels = "host=none" });
        APPEND({ .type = MEMORY, .value = 4096, .stack = "e;main", .labels = "host=agent" });
        check_head_and_parts(check_mixed_types);
        tear_down();
}
END_TEST

/* Any sender may have a type that sorts before CPU time. */
START_TEST(cpu_time_has_precedence_over_unknown_units)
{
        set_up();
        APPEND({ .type = CPU, .value = 7, .stack = "a;main" },
               { .type = "process_cpu:cpu:bananas:cpu:bananas", .value = 5, .stack = "b;main" },
               { .type = "process_cpu:samples:bananas::", .value = 3, .stack = "c;main" });
        {
                ASK(all, "folded", NULL);
                ASK(cpu, "folded", "type=process_cpu:cpu");
                ASK(trend, "trend", "function=.*", "type=process_cpu:cpu");
                ASK(samples, "trend", "function=.*", "type=process_cpu:samples");

                expect_folded(all, "main;a 7");
                expect_folded(cpu, "main;a 7");
                EXPECT(trend, "\"type\":\"" CPU "\"");
                EXPECT(trend, "\"function\":\"a\"");
                EXPECT(samples, "\"function\":\"c\"");
        }
        tear_down();
}
END_TEST

#define CPU_US "process_cpu:cpu:microseconds:cpu:microseconds"

static void check_lists_of_several_types(void)
{
        ASK(hosts, "values", "name=host", "type=process_cpu:cpu");
        ASK(uploads, "uploads", "type=process_cpu:cpu");
        ASK(one, "values", "name=host", "type=" CPU_US);

        ck_assert_str_eq(hosts, "[\"agent\",\"node\"]");
        EXPECT(uploads, "\"samples\":300,");
        ck_assert_str_eq(one, "[\"node\"]");
}

static void check_types_of_trends(void)
{
        ASK(all, "trend", "function=main");
        ASK(partial, "trend", "function=main", "type=process_cpu:cpu");
        ASK(whole, "trend", "function=main", "type=" CPU_US);
        ASK(gauge, "trend", "function=main", "type=" MEMORY);

        EXPECT(all, "\"type\":\"" CPU "\",\"unit\":\"nanoseconds\",");
        EXPECT(all, "\"self\":0,\"total\":3000000000,\"samples\":300,"); /* 1 s of one host, 2 s of the other */
        EXPECT(all, "\"left_out_types\":[{\"type\":\"" MEMORY "\",");
        EXPECT(all, ",{\"type\":\"" COUNT "\",\"reason\":\"other_type\"}]");
        EXPECT(partial, "\"total\":3000000000,\"samples\":300,");
        EXPECT(whole, "\"type\":\"" CPU_US "\",\"unit\":\"microseconds\",");
        EXPECT(whole, "\"total\":2000000,\"samples\":200,");
        EXPECT(gauge, "\"series\":[]");
        ck_assert_str_eq(answer.note, "no history: values of type " MEMORY
                                      " are averaged, not added up; choose another one with type, or see their series");
        {
                ASK(noted, "trend", "function=main");

                ck_assert_str_eq(answer.note, "not included: samples of type " MEMORY "; samples of type " COUNT
                                              "; choose one with type");
        }
        {
                ASK(none, "trend", "function=main", "selector={host=\"nowhere\"}");

                EXPECT(answer.note, "matches host=\"nowhere\"");
        }
}

START_TEST(cpu_time_of_any_unit_is_of_one_type_in_trends_and_lists)
{
        set_up();
        APPEND({ .type = CPU, .period = 10 * MS, .value = S, .stack = "a;main", .labels = "host=agent" });
        APPEND({ .type = CPU_US, .period = 10000, .value = 2000000, .stack = "b;main", .labels = "host=node" });
        APPEND({ .type = COUNT, .period = 10 * MS, .value = 3, .stack = "c;main", .labels = "host=otel" });
        APPEND({ .type = MEMORY, .value = 5, .stack = "d;main", .labels = "host=go" });
        check_lists_of_several_types();
        check_head_and_parts(check_types_of_trends);
        check_lists_of_several_types();
        tear_down();
}
END_TEST

/* A partial type name that matches several types: like a query without type, restricted to these. */
static void check_partial_types(void)
{
        ASK(folded, "folded", "type=process_cpu");
        ASK(json, "top", "type=process_cpu");

        ck_assert_str_eq(answer.note, "not included: samples of type " BARE_COUNT "; choose one with type");
        expect_folded(folded, "main;a 1000000000, main;b 30000000");
        EXPECT(json, "\"type\":\"" CPU "\"");
        EXPECT(json, "\"converted_types\":[\"" COUNT "\"]");
        EXPECT(json, "\"left_out_types\":[{\"type\":\"" BARE_COUNT "\",\"reason\":\"other_type\"}]");
        EXPECT_NOT(json, "inuse_space"); /* not part of the request */
        {
                ASK(counts, "top", "type=process_cpu:samples");

                EXPECT(counts, "\"type\":\"" BARE_COUNT "\"");
                EXPECT(counts, "\"total\":5,");
                EXPECT(counts, "\"left_out_types\":[{\"type\":\"" COUNT "\",\"reason\":\"other_type\"}]");
                ck_assert_str_eq(answer.note, "not included: samples of type " COUNT "; choose one with type");
        }
        {
                ASK(one, "top", "type=" COUNT);

                EXPECT(one, "\"total\":3,");
                EXPECT_NOT(one, "left_out_types");
                ck_assert_str_eq(answer.note, "");
        }
        {
                ASK(hosts, "values", "name=host", "type=process_cpu:samples");

                ck_assert_str_eq(hosts, "[\"none\"]");
                EXPECT(answer.note, "not included: samples of type " COUNT);
        }
        {
                ASK(uploads, "uploads", "type=process_cpu:samples");

                EXPECT(uploads, "\"samples\":5,");
                EXPECT(answer.note, "not included: samples of type " COUNT);
        }
        {
                REFUSED(several, "top", "type=memory");

                EXPECT(several, "type 'memory' matches several: memory:alloc_space:bytes:space:bytes, " MEMORY);
        }
        {
                REFUSED(wrong, "top", "type=memory:inuse_space:bytes:space:byte");

                EXPECT(wrong,
                       "matches none of those in this range; there are: memory:alloc_space:bytes:space:bytes, " MEMORY
                       ", " CPU " and 2 more");
        }
}

START_TEST(partial_type_name_is_summed_by_the_same_rules)
{
        set_up();
        APPEND({ .type = CPU, .period = 10 * MS, .value = S, .stack = "a;main", .labels = "host=agent" });
        APPEND({ .type = COUNT, .period = 10 * MS, .value = 3, .stack = "b;main", .labels = "host=otel" });
        APPEND({ .type = BARE_COUNT, .value = 5, .stack = "d;main", .labels = "host=none" });
        APPEND({ .type = MEMORY, .value = 4096, .stack = "e;main", .labels = "host=agent" },
               { .type = "memory:alloc_space:bytes:space:bytes", .value = 1, .stack = "e;main" });
        check_head_and_parts(check_partial_types);
        tear_down();
}
END_TEST

START_TEST(a_diff_converts_the_types_of_both_sides)
{
        set_up();
        APPEND({ .type = CPU, .period = 10 * MS, .value = 20 * MS, .stack = "a;main", .labels = "v=1" });
        APPEND({ .type = COUNT, .period = 10 * MS, .value = 3, .stack = "a;main", .labels = "v=2" });
        {
                ASK(rows, "diff", "base_selector={v=\"1\"}", "selector={v=\"2\"}", "format=rows");

                EXPECT(rows, "\"flat\":20000000,\"cumulative\":20000000,\"flat_after\":30000000,");
        }
        tear_down();
}
END_TEST

/* ---- groups ---- */

static void append_groups(void)
{
        APPEND({ .type = CPU, .value = 6, .stack = "a;main", .labels = "host=h1;service.name=x" },
               { .type = CPU, .value = 5, .stack = "b;main", .labels = "host=h2;service.name=x" },
               { .type = CPU, .value = 3, .stack = "a;main", .labels = "host=h3;service.name=y" },
               { .type = CPU, .value = 1, .stack = "a;main", .labels = "service.name=y" });
}

static void check_groups(void)
{
        ASK(top, "top", "by=service.name,host", "groups=2");
        ASK(csv, "top", "by=service.name", "format=csv");
        ASK(rows, "top", "by=host", "format=rows", "limit=1");
        ASK(folded, "folded", "by=service.name,host");
        ASK(series, "series", "by=service_name", "step=1h");
        ASK(series_csv, "series", "by=service_name", "step=2h", "from=now-1h", "format=csv");
        ASK(tree, "flame", "by=service.name");
        ASK(text, "top", "by=service.name", "format=text");

        EXPECT(top, "\"groups\":[{\"labels\":{\"service.name\":\"x\",\"host\":\"h1\"},\"total\":6,\"samples\":1,");
        EXPECT(top, "{\"labels\":{\"service.name\":\"x\",\"host\":\"h2\"},\"total\":5,");
        EXPECT(top, "{\"labels\":null,\"total\":4,\"samples\":2,");
        ck_assert_str_eq(csv, "service.name,function,file,line,object,kind,flat,cumulative\r\n"
                              "x,a,,0,,native,6,6\r\nx,b,,0,,native,5,5\r\nx,main,,0,,native,0,11\r\n"
                              "y,a,,0,,native,4,4\r\ny,main,,0,,native,0,4\r\n");
        EXPECT(rows, "[{\"labels\":{\"host\":\"h1\"},\"function\":\"a\",");
        EXPECT(rows, "{\"labels\":{\"host\":\"\"},\"function\":\"a\",");
        expect_folded(folded, "service.name=x;host=h1;main;a 6, service.name=x;host=h2;main;b 5, "
                              "service.name=y;host=;main;a 1, service.name=y;host=h3;main;a 3");
        EXPECT(series, "\"groups\":[{\"labels\":{\"service_name\":\"x\"},\"total\":11,\"samples\":2,\"points\":[[");
        EXPECT(series, ",4,2]");
        EXPECT(series_csv, "time_ms,service_name,value,samples\r\n");
        EXPECT(series_csv, ",x,11,2\r\n");
        EXPECT(tree, "\"by\":[\"service.name\"]");
        EXPECT(tree, "[\"service.name=x\",\"\",\"\",5,\"\"]");
        EXPECT(text, "\nservice.name=\"y\"\n");
        EXPECT(text, "     4.00 ns 100.00%      4.00 ns 100.00%  a\n");
}

START_TEST(groups_are_summed_separately_and_smallest_merged)
{
        set_up();
        append_groups();
        check_head_and_parts(check_groups);
        {
                REFUSED(empty, "top", "by=a,,b");
                REFUSED(csv, "flame", "format=csv");
                REFUSED(lines, "lines", "by=a", "function=x");

                EXPECT(empty, "list of 1 to 8 label names");
                EXPECT(csv, "the formats of flame are json, text and html; csv is a format of tables");
        }
        tear_down();
}
END_TEST

START_TEST(csv_fields_are_quoted)
{
        set_up();
        APPEND({ .type = CPU, .value = 6, .stack = "operator(a, \"b\")\x1b;main" });
        {
                ASK(csv, "top", "format=csv", "limit=1");

                ck_assert_str_eq(csv, "function,file,line,object,kind,flat,cumulative\r\n"
                                      "\"operator(a, \"\"b\"\")\\x1b\",,0,,native,6,6\r\n");
        }
        tear_down();
}
END_TEST

/* ---- filters by frame ---- */

START_TEST(search_matches_any_part_of_a_text)
{
        static const struct {
                const char *pattern, *text;
                bool match;
        } cases[] = {
                { "b", "abc", true },      { "^b", "abc", false },
                { "^a", "abc", true },     { "c$", "abc", true },
                { "b$", "abc", false },    { "", "", true },
                { "", "x", true },         { "x+y", "axxyb", true },
                { "(?i)BC", "abc", true }, { "^$", "a", false },
                { "a|zz", "yyzz", true },  { "bd", "abcbd", true },
                { "^abc$", "abc", true },  { "\xc3\xa9", "caf\xc3\xa9s", true },
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct regex_match *m;

                ck_assert_int_eq(regex_match_create_search(cases[i].pattern, NULL, &m, NULL), ST_OK);
                ck_assert_msg(regex_match_text(m, cases[i].text, strlen(cases[i].text)) == cases[i].match, "%s in %s",
                              cases[i].pattern, cases[i].text);
                regex_match_destroy(m);
        }
}
END_TEST

static void append_calls(void)
{
        APPEND({ .type = CPU, .value = 8, .stack = "alloc@mem.c:3;parse@json.c:10;main@main.c:1" },
               { .type = CPU, .value = 4, .stack = "alloc@mem.c:3;run@main.c:20;main@main.c:1" },
               { .type = CPU, .value = 2, .stack = "parse@json.c:11;parse@json.c:12;main@main.c:1" },
               { .type = CPU, .value = 1, .stack = "main@main.c:1" });
}

START_TEST(sums_that_do_not_fit_are_the_largest_number_and_noted)
{
        static const char note[] = "sums beyond 9223372036854775807 are shown as this number";

        set_up();
        APPEND({ .type = CPU, .value = INT64_MAX - 10, .stack = "a;main", .labels = "host=h1" },
               { .type = CPU, .value = INT64_MAX / 2, .stack = "b;main", .labels = "host=h1" },
               { .type = CPU, .value = 6, .stack = "c;main", .labels = "host=h2" });
        {
                ASK(top, "top", "from=now-1h");

                EXPECT(top, "\"total\":9223372036854775807,");
                EXPECT(top, "\"cumulative\":9223372036854775807");
                ck_assert_str_eq(answer.note, note);
        }
        {
                ASK(folded, "folded", "from=now-1h");

                expect_folded(folded, "main;a 9223372036854775797, main;b 4611686018427387903, main;c 6");
                ck_assert_str_eq(answer.note, note);
        }
        {
                ASK(flame, "flame", "from=now-1h");

                EXPECT(flame, ",9223372036854775797,9223372036854775797,0]");
                ck_assert_ptr_null(strstr(flame, ",-4")); /* the callees of main have more than its total */
        }
        {
                ASK(series, "series", "from=now-1h", "step=1h");

                EXPECT(series, ",9223372036854775807,");
                ck_assert_str_eq(answer.note, note);
        }
        {
                ASK(small, "top", "from=now-1h", "selector={host=\"h2\"}");

                EXPECT(small, "\"total\":6,");
                ck_assert_str_eq(answer.note, "");
        }
        tear_down();
}
END_TEST

static size_t count_parts(const char *text, const char *part)
{
        size_t n = 0;

        for (; (text = strstr(text, part)); text++)
                n++;
        return n;
}

/* 20 functions of equal cost, each called from 5 places. */
START_TEST(functions_of_an_inverted_graph_take_half_of_its_nodes)
{
        set_up();
        for (int i = 0; i < 20; i++) {
                for (int k = 0; k < 5; k++) {
                        char stack[64];

                        snprintf(stack, sizeof stack, "leaf%02d;caller%d;main", i, k);
                        APPEND({ .type = CPU, .value = k ? 10 : 40, .stack = stack });
                }
        }
        {
                ASK(some, "flame", "from=now-1h", "callers_matching=.", "max_nodes=30");

                ck_assert_uint_eq(count_parts(some, "[\"leaf"), 15);
                EXPECT(some, "[\"caller0\",");
        }
        {
                ASK(all, "flame", "from=now-1h", "callers_matching=.", "max_nodes=60");

                ck_assert_uint_eq(count_parts(all, "[\"leaf"), 20);
        }
        {
                ASK(upright, "flame", "from=now-1h", "max_nodes=8");

                EXPECT(upright, "[\"caller4\",");
                ck_assert_uint_eq(count_parts(upright, "[\"leaf"), 1);
        }
        tear_down();
}
END_TEST

START_TEST(frames_filter_as_in_pprof)
{
        set_up();
        append_calls();
        {
                ASK(focus, "folded", "focus=^par");
                ASK(ignore, "folded", "ignore=json\\.c");
                ASK(both, "folded", "focus=alloc", "ignore=run");
                ASK(hide, "folded", "hide=parse|mem");
                ASK(show, "folded", "show=main\\.c");
                ASK(hide_all, "folded", "hide=.");
                ASK(top, "top", "focus=alloc", "hide=alloc");
                ASK(text, "top", "focus=alloc", "format=text");
                REFUSED(bad, "top", "focus=(");
                ASK(series, "series", "focus=alloc", "ignore=run", "from=now-1h", "step=2h");
                ASK(whole_series, "series", "from=now-1h", "step=2h");

                expect_folded(focus, "main;parse;alloc 8, main;parse;parse 2");
                expect_folded(ignore, "main 1, main;run;alloc 4");
                expect_folded(both, "main;parse;alloc 8");
                expect_folded(hide, "main 11, main;run 4");
                expect_folded(show, "main 11, main;run 4");
                ck_assert_str_eq(hide_all, "");
                EXPECT(top, "\"total\":12,\"samples\":2,\"samples_are\":\"stacks\",\"selected_total\":15,");
                EXPECT(top,
                       "\"function\":\"parse\",\"file\":\"json.c\",\"line\":10,\"object\":\"\",\"kind\":\"native\","
                       "\"flat\":8,\"cumulative\":8");
                EXPECT(text, "12.0 ns of 15.0 ns in 2 stacks");
                EXPECT(bad, "focus: ");
                EXPECT(series, "\"total\":8,\"samples\":1,\"points\":");
                EXPECT(series, ",8,1]");
                EXPECT(whole_series, "\"total\":15,");
        }
        {
                struct pairs p = { { "focus=parse", "hide=alloc" } };
                const struct query_input in = { .param = pair_value, .param_context = &p, .now_unix_ns = NOW };
                _cleanup_buf_ struct buf b;
                uint32_t counts[2];
                _cleanup_profile_ struct profile back;

                buf_init(&b, MiB(1));
                ck_assert_int_eq(query_run(store, "pprof", &in, &b, &answer, NULL), ST_OK);
                ck_assert_int_eq(pprof_decode(b.data, b.size, NULL, &back, NULL), ST_OK);
                ck_assert_uint_eq(back.samples.count, 2);
                for (uint32_t i = 0; i < back.lines.count; i++)
                        ck_assert_str_ne(profile_text(&back, back.lines.items[i].function), "alloc");
                for (uint32_t i = 0; i < 2; i++) { /* in any order, since stacks are not sorted */
                        counts[i] = back.stacks.items[back.samples.items[i].stack].location_count;
                        ck_assert(counts[i] == 2 || counts[i] == 3);
                }
                ck_assert_uint_ne(counts[0], counts[1]);
        }
        tear_down();
}
END_TEST

/* ---- callers, callees, lines ---- */

START_TEST(callers_and_callees_of_all_matching_functions)
{
        set_up();
        append_calls();
        {
                ASK(callers, "folded", "callers_matching=^(alloc|run)$");
                ASK(callees, "folded", "callees_matching=parse|run");
                ASK(sandwich, "sandwich", "function=alloc");
                ASK(text, "sandwich", "function=alloc", "format=text");
                ASK(tree, "flame", "format=text");
                REFUSED(two, "flame", "callers_matching=a", "callees_of=b");
                REFUSED(none, "sandwich", NULL);

                expect_folded(callers, "alloc;parse;main 8, alloc;run;main 4");
                expect_folded(callees, "parse;alloc 8, parse;parse 2, run;alloc 4");
                struct json_object *j = json_tokener_parse(sandwich);

                ck_assert_ptr_nonnull(j);
                ck_assert_uint_eq(json_object_array_length(json_object_object_get(j, "rows")), 1);
                EXPECT(sandwich, "\"flat\":12,\"cumulative\":12");
                for (int i = 0; i < 2; i++) {
                        struct json_object *half = json_object_object_get(j, i ? "callees" : "callers");

                        ck_assert_str_eq(json_object_get_string(json_object_object_get(half, "focus")), "alloc");
                        ck_assert_int_eq(json_object_get_boolean(json_object_object_get(half, "inverted")), !i);
                        ck_assert_uint_eq(json_object_array_length(json_object_object_get(half, "nodes")), i ? 2 : 6);
                }
                json_object_put(j);
                EXPECT(text, "callers\n");
                EXPECT(text, " 66.67%   0.00%    parse  json.c:10\n");
                EXPECT(text, "\nmatching stacks: 12.0 ns (80.00%); percentages are of these\n\n");
                EXPECT_NOT(tree, "matching stacks");
                EXPECT(two, "are mutually exclusive");
                EXPECT(none, "function is missing");
        }
        tear_down();
}
END_TEST

static enum status read_test_source(void *context, const struct build_id *id, const char *path, bool may_fetch,
                                    struct buf *ret, struct error *err)
{
        (void)context, (void)err, (void)may_fetch;
        ck_assert_uint_eq(id->size, 4);
        if (strcmp(path, "json.c") != 0)
                return ST_NOT_FOUND;
        return buf_append_str(ret, "one\ntwo, \"2\"\r\nthree");
}

static void append_object_lines(void)
{
        struct hash128 batch = { { ++batches } };
        _cleanup_profile_ struct profile p;
        struct profile_mapping m = { .build_id = { .bytes = { 1, 2, 3, 4 }, .size = 4 } };
        struct profile_sample s = { .time_unix_ns = NOW - S };
        bool duplicate;

        ck_assert_int_eq(profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, NULL), ST_OK);
        ck_assert_int_eq(profile_type_add_id(&p, CPU, 0, &s.type, NULL), ST_OK);
        m.file = add_text(&p, "/bin/app", 8);
        for (int64_t i = 1; i <= 4; i++) {
                struct profile_line line = { .function = add_text(&p, "parse", 5),
                                             .file = add_text(&p, i < 4 ? "json.c" : "other.c", i < 4 ? 6 : 7),
                                             .line = i };
                struct profile_location l = { .line_count = 1, .address = 0x100 + (uint64_t)i };
                uint32_t location, number;

                ck_assert_int_eq(profile_add_mapping(&p, &m, &l.mapping, NULL), ST_OK);
                ck_assert_int_eq(profile_add_line(&p, &line, &l.first_line, NULL), ST_OK);
                ck_assert_int_eq(profile_add_location(&p, &l, &location, NULL), ST_OK);
                ck_assert_int_eq(profile_add_stack(&p, &location, 1, &s.stack, NULL), ST_OK);
                s.value = i;
                ck_assert_int_eq(profile_add_sample(&p, &s, &number, NULL), ST_OK);
        }
        ck_assert_int_eq(profile_store_append(store, &p, batch, &duplicate, NULL), ST_OK);
}

START_TEST(lines_have_cost_and_source)
{
        static const struct query_sources from_test = { .read = read_test_source };

        set_up();
        append_calls();
        append_object_lines();
        sources = &from_test;
        {
                ASK(without, "lines", "file=^json", "to=now-30s", "format=csv");
                ASK(with, "lines", "function=parse", "from=now-30s");
                ASK(csv, "lines", "file=json", "from=now-30s", "format=csv");
                ASK(text, "lines", "function=parse", "from=now-30s", "format=text", "limit=2");
                REFUSED(none, "lines", NULL);

                ck_assert_str_eq(without,
                                 "function,file,line,object,flat,cumulative,source\r\n"
                                 "parse,json.c,10,,0,8,\r\nparse,json.c,11,,2,2,\r\nparse,json.c,12,,0,2,\r\n");
                EXPECT(with, "\"line\":1,\"object\":\"/bin/app\",\"flat\":1,\"cumulative\":1,\"source\":\"one\"}");
                EXPECT(with, "\"line\":3,\"object\":\"/bin/app\",\"flat\":3,\"cumulative\":3,\"source\":\"three\"}");
                EXPECT(with, "\"file\":\"other.c\",\"line\":4,\"object\":\"/bin/app\",\"flat\":4,\"cumulative\":4}");
                EXPECT(csv, "parse,json.c,2,/bin/app,2,2,\"two, \"\"2\"\"\"\r\n");
                ck_assert_str_eq(text, "\njson.c\n        flat   cumulative    line\n     3.00 ns      3.00 ns"
                                       "       3  three\n\nother.c\n        flat   cumulative    line\n"
                                       "     4.00 ns      4.00 ns       4  parse\n");
                EXPECT(none, "lines needs function");
        }
        sources = NULL;
        tear_down();
}
END_TEST

/*
 * Two versions of a program with one function that has the given {line, value} pairs: the first two, and the last two.
 */
static const int64_t version_costs[2][2][2] = { { { 1, 10 }, { 2, 20 } }, { { 2, 35 }, { 3, 5 } } };

static void append_version(unsigned version, int64_t time_unix_ns)
{
        struct hash128 batch = { { ++batches } };
        _cleanup_profile_ struct profile p;
        struct profile_mapping m = { .build_id = { .bytes = { (uint8_t)(version + 1) }, .size = 8 } };
        struct profile_sample s = { .time_unix_ns = time_unix_ns };
        bool duplicate;

        ck_assert_int_eq(profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, NULL), ST_OK);
        ck_assert_int_eq(profile_type_add_id(&p, CPU, 0, &s.type, NULL), ST_OK);
        m.file = add_text(&p, "/bin/app", 8);
        for (unsigned i = 0; i < 2; i++) {
                struct profile_line line = { .function = add_text(&p, "parse", 5),
                                             .file = add_text(&p, "json.c", 6),
                                             .line = version_costs[version][i][0] };
                struct profile_location l = { .line_count = 1, .address = 0x100 + i };
                uint32_t location, number;

                s.value = version_costs[version][i][1];
                ck_assert_int_eq(profile_add_mapping(&p, &m, &l.mapping, NULL), ST_OK);
                ck_assert_int_eq(profile_add_line(&p, &line, &l.first_line, NULL), ST_OK);
                ck_assert_int_eq(profile_add_location(&p, &l, &location, NULL), ST_OK);
                ck_assert_int_eq(profile_add_stack(&p, &location, 1, &s.stack, NULL), ST_OK);
                ck_assert_int_eq(profile_add_sample(&p, &s, &number, NULL), ST_OK);
        }
        ck_assert_int_eq(profile_store_append(store, &p, batch, &duplicate, NULL), ST_OK);
}

static enum status read_version_source(void *context, const struct build_id *id, const char *path, bool may_fetch,
                                       struct buf *ret, struct error *err)
{
        (void)context, (void)err, (void)may_fetch;
        ck_assert_str_eq(path, "json.c");
        return buf_append_str(ret, id->bytes[0] > 1 ? "new 1\nnew 2\nnew 3\n" : "old 1\nold 2\nold 3\n");
}

#define VERSIONS "function=parse", "from=now-30s", "base_from=now-200s", "base_to=now-90s"

static void check_compared_lines(void)
{
        ASK(csv, "lines", VERSIONS, "format=csv");
        ASK(json, "lines", VERSIONS, "source=file");
        ASK(most_of_share, "lines", VERSIONS, "format=csv", "limit=1");
        ASK(most, "lines", VERSIONS, "format=csv", "limit=1", "compare=values");
        ASK(new, "lines", "function=parse", "from=now-30s", "base_to=now-190s", "base_from=now-200s", "format=csv");
        ASK(text, "lines", VERSIONS, "format=text");

        ck_assert_str_eq(csv,
                         "function,file,line,object,flat,cumulative,flat_after,cumulative_after,line_before,source\r\n"
                         "parse,json.c,1,/bin/app,10,10,0,0,1,new 1\r\n"
                         "parse,json.c,2,/bin/app,20,20,35,35,2,new 2\r\n"
                         "parse,json.c,3,/bin/app,0,0,5,5,3,new 3\r\n");
        EXPECT(json, "\"total\":30,\"samples\":2,\"samples_are\":\"stacks\",\"total_after\":40,"
                     "\"samples_after\":2,\"samples_after_are\":\"stacks\",\"flat\":30,"
                     "\"cumulative\":30,\"flat_after\":40,\"cumulative_after\":40,\"rows\":[{");
        EXPECT(json, "\"line\":1,\"line_before\":1,\"is_removed\":false,\"object\":\"/bin/"
                     "app\",\"flat\":10,\"cumulative\":10,\"flat_after\":0,"
                     "\"cumulative_after\":0,\"source\":\"new 1\"}");
        EXPECT(json, "\"build_id\":\"0200000000000000\",\"flat\":30,\"cumulative\":30,\"flat_after\":40,"
                     "\"cumulative_after\":40,\"text\":\"new 1\\nnew 2\\nnew 3\\n\","
                     "\"base_text\":\"old 1\\nold 2\\nold 3\\n\",\"lines_before\":[1,2,3]}");
        EXPECT(most_of_share, "cumulative_after,line_before,source\r\nparse,json.c,1,/bin/app,10,10,0,0,1,new 1\r\n");
        EXPECT(most, "cumulative_after,line_before,source\r\nparse,json.c,2,/bin/app,20,20,35,35,2,new 2\r\n");
        EXPECT_NOT(most, "parse,json.c,1");
        EXPECT(new, "cumulative_after,line_before,source\r\nparse,json.c,2,/bin/app,0,0,35,35,2,new 2\r\n");
        EXPECT(text, "before: 30.0 ns in 2 stacks, ");
        EXPECT(text, "\nafter:  40.0 ns in 2 stacks, ");
        EXPECT(text, "\n" CPU "\n\njson.c\n");
        EXPECT(text, "\n     before       after      change   of share      before       after      change   of share  "
                     "before   "
                     "line\n"
                     "    10.0 ns           0    -10.0 ns  -33.33 pp     10.0 ns           0    -10.0 ns  -33.33 pp    "
                     "   1      1  "
                     "new 1\n"
                     "    20.0 ns     35.0 ns    +15.0 ns  +20.83 pp     20.0 ns     35.0 ns    +15.0 ns  +20.83 pp    "
                     "   2      2  "
                     "new 2\n");
}

START_TEST(lines_compare_two_selections_by_number)
{
        static const struct query_sources from_versions = { .read = read_version_source };

        set_up();
        append_version(0, NOW - 100 * S);
        append_version(1, NOW - 10 * S);
        sources = &from_versions;
        check_head_and_parts(check_compared_lines);
        {
                REFUSED(order, "lines", "function=parse", "base_from=now", "base_to=now-1h");
                REFUSED(by, "lines", VERSIONS, "by=v");

                EXPECT(order, "base_from is not before base_to");
                EXPECT(by, "by is not a parameter of lines");
        }
        sources = NULL;
        tear_down();
}
END_TEST

START_TEST(inlined_recursion_counts_once)
{
        struct hash128 batch = { { ++batches } };
        _cleanup_profile_ struct profile p;
        struct profile_location l = { .mapping = PROFILE_NONE, .line_count = 4, .kind = ADDRESS_NONE };
        struct profile_sample s = { .time_unix_ns = NOW - S, .value = 7 };
        uint32_t location, number;
        bool duplicate;

        set_up();
        ck_assert_int_eq(profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, NULL), ST_OK);
        ck_assert_int_eq(profile_type_add_id(&p, CPU, 0, &s.type, NULL), ST_OK);
        for (unsigned i = 0; i < l.line_count; i++) { /* walk() calls itself twice in line 5, and then leaf() */
                struct profile_line line = { .function = i ? add_text(&p, "walk", 4) : add_text(&p, "leaf", 4),
                                             .file = add_text(&p, "tree.c", 6),
                                             .line = i ? 5 : 9 };
                uint32_t at;

                ck_assert_int_eq(profile_add_line(&p, &line, i ? &at : &l.first_line, NULL), ST_OK);
        }
        ck_assert_int_eq(profile_add_location(&p, &l, &location, NULL), ST_OK);
        ck_assert_int_eq(profile_add_stack(&p, &location, 1, &s.stack, NULL), ST_OK);
        ck_assert_int_eq(profile_add_sample(&p, &s, &number, NULL), ST_OK);
        ck_assert_int_eq(profile_store_append(store, &p, batch, &duplicate, NULL), ST_OK);
        {
                ASK(text, "lines", "function=walk", "from=now-30s", "format=text");
                ASK(diff, "lines", "function=walk", "from=now-30s", "base_from=now-30s");

                EXPECT(text, "\n     7.00 ns      7.00 ns          inlined walk\n");
                EXPECT(text, "\n     7.00 ns      7.00 ns          inlined leaf\n");
                EXPECT(diff, "{\"function\":\"walk\",\"file\":\"tree.c\",\"flat\":7,\"cumulative\":7,"
                             "\"flat_after\":7,\"cumulative_after\":7}");
        }
        tear_down();
}
END_TEST

/* ---- memory ---- */

#define INLINED 200
#define MANY (200 * INLINED)

/* Locations with INLINED lines each, all distinct, and a host for each sample. */
static void append_many(void)
{
        struct hash128 batch = { { ++batches } };
        _cleanup_profile_ struct profile p;
        uint32_t stacks[MANY / INLINED];
        bool duplicate;

        ck_assert_int_eq(profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, NULL), ST_OK);
        for (uint32_t i = 0; i < MANY / INLINED; i++) {
                struct profile_location l = { .mapping = PROFILE_NONE, .line_count = INLINED, .kind = ADDRESS_NONE };
                uint32_t location, line;

                for (uint32_t k = 0; k < INLINED; k++) {
                        struct profile_line one = { .function = add_text(&p, "walk", 4),
                                                    .file = add_text(&p, "tree.c", 6),
                                                    .line = 1 + i * INLINED + k };

                        ck_assert_int_eq(profile_add_line(&p, &one, k ? &line : &l.first_line, NULL), ST_OK);
                }
                ck_assert_int_eq(profile_add_location(&p, &l, &location, NULL), ST_OK);
                ck_assert_int_eq(profile_add_stack(&p, &location, 1, &stacks[i], NULL), ST_OK);
        }
        for (uint32_t i = 0; i < MANY; i++) {
                struct profile_sample s = { .time_unix_ns = NOW - S, .value = 1, .label_count = 1 };
                struct profile_label label = { .key = add_text(&p, "host", 4) };
                char host[16];
                uint32_t number;

                label.value = add_text(&p, host, (size_t)snprintf(host, sizeof host, "h%05" PRIu32, i));
                s.stack = stacks[i / INLINED];
                ck_assert_int_eq(profile_type_add_id(&p, CPU, 0, &s.type, NULL), ST_OK);
                ck_assert_int_eq(profile_add_label_set(&p, &label, 1, &s.first_label, NULL), ST_OK);
                ck_assert_int_eq(profile_add_sample(&p, &s, &number, NULL), ST_OK);
        }
        ck_assert_int_eq(profile_store_append(store, &p, batch, &duplicate, NULL), ST_OK);
}

static enum status note_held_memory(void *context, struct error *err)
{
        size_t *last = context;

        (void)err;
        last[0] = last[1];
        last[1] = memory_use_held(MEMORY_QUERIES);
        return ST_OK;
}

/* Memory of a query at its last check, while it sorts the result. */
static size_t measure_held_memory(const char *operation, struct pairs p)
{
        size_t held[2] = { 0 };
        struct work_meter meter;
        struct query_input in = { .param = pair_value, .param_context = &p, .now_unix_ns = NOW, .meter = &meter };
        struct error err = { 0 };
        struct buf b;

        work_meter_init(&meter, note_held_memory, held);
        buf_init(&b, MiB(4));
        ck_assert_msg(query_run(store, operation, &in, &b, &answer, &err) == ST_OK, "%s", err.text);
        buf_deinit(&b);
        return held[0];
}

START_TEST(spans_and_lines_are_part_of_the_memory_of_a_query)
{
        set_up();
        append_many();
        ck_assert_uint_ge(measure_held_memory("spans", (struct pairs){ { "by=host", "limit=1" } }), 280 * MANY);
        ck_assert_uint_ge(measure_held_memory("lines", (struct pairs){ { "function=walk", "limit=1" } }), 140 * MANY);
        ck_assert_uint_eq(memory_use_held(MEMORY_QUERIES), 0);
        tear_down();
}
END_TEST

/* ---- gauges ---- */

/* Two processes with snapshots of one time; the label "bytes" is of samples, not of a process. */
static void append_heaps(void)
{
        APPEND({ .type = MEMORY, .value = 12, .stack = "x;main", .labels = "instance=a;bytes=16" },
               { .type = MEMORY, .value = 24, .stack = "y;main", .labels = "instance=a;bytes=32" },
               { .type = MEMORY,
                 .value = 36,
                 .stack = "x;main",
                 .labels = "instance=a;bytes=16",
                 .time_unix_ns = NOW - 50 * S },
               { .type = MEMORY, .value = 100, .stack = "x;main", .labels = "instance=b;bytes=16" });
}

static void check_heaps(void)
{
        ASK(folded, "folded");
        ASK(top, "top");
        ASK(text, "top", "format=text");
        ASK(tree, "flame", "format=text");
        ASK(csv, "top", "format=csv", "by=instance");
        ASK(by_size, "top", "format=csv", "by=bytes", "function=main");
        ASK(size, "folded", "selector={bytes=\"32\"}");
        ASK(one, "folded", "selector={instance=\"a\"}");
        ASK(diff, "diff", "base_selector={instance=\"a\"}", "selector={instance=\"b\"}", "format=csv", "function=x");
        ASK(series, "series", "step=10s", "from=now-60s", "to=now-40s");
        ASK(series_csv, "series", "step=10s", "from=now-60s", "to=now-40s", "by=instance", "format=csv");
        ASK(focused, "series", "step=10s", "from=now-60s", "to=now-40s", "focus=y");
        ASK(whole, "series", "step=1h", "by=instance");

        expect_folded(folded, "main;x 124, main;y 12");
        EXPECT(top, "\"total\":136,\"samples\":4,\"samples_are\":\"stacks\",\"snapshots\":3,"
                    "\"aggregation\":\"average\",");
        EXPECT(text, "136.0 B, the average of 3 snapshots, ");
        EXPECT(tree, "136.0 B, the average of 3 snapshots, ");
        EXPECT(csv, "b,x,,0,,native,100,100\r\n");
        EXPECT(csv, "a,x,,0,,native,24,24\r\n");
        EXPECT(by_size, "16,main,,0,,native,0,124\r\n");
        EXPECT(by_size, "32,main,,0,,native,0,12\r\n");
        expect_folded(size, "main;y 12");
        expect_folded(one, "main;x 24, main;y 12");
        EXPECT(diff, "x,,0,,native,24,24,100,100\r\n");
        EXPECT(series, "\"snapshots\":3,\"aggregation\":\"average\",\"total\":136,");
        EXPECT(series, "\"points\":[[1699999940000,136,3],[1699999950000,36,1]]");
        EXPECT(series_csv, "1699999940000,a,36,2\r\n1699999950000,a,36,1\r\n");
        EXPECT(series_csv, "1699999940000,b,100,1\r\n1699999950000,b,0,0\r\n");
        EXPECT(focused, "\"total\":12,");
        EXPECT(focused, "\"points\":[[1699999940000,24,1],[1699999950000,0,0]]");
        EXPECT(whole, "\"labels\":{\"instance\":\"a\"},\"total\":36,");
}

START_TEST(gauges_are_averaged_over_the_snapshots_of_each_series)
{
        set_up();
        append_heaps();
        check_head_and_parts(check_heaps);
        tear_down();
}
END_TEST

#define GOROUTINES "goroutine:goroutine:count:goroutine:count"

START_TEST(averages_add_up_and_any_label_may_identify_a_series)
{
        set_up();
        APPEND({ .type = GOROUTINES, .value = 1, .stack = "a;main", .labels = "run=1" },
               { .type = GOROUTINES, .value = 1, .stack = "b;main", .labels = "run=1", .time_unix_ns = NOW - 50 * S },
               { .type = GOROUTINES, .value = 1, .stack = "c;main", .labels = "run=1", .time_unix_ns = NOW - 40 * S },
               { .type = GOROUTINES, .value = 7, .stack = "a;main", .labels = "run=2", .time_unix_ns = NOW - 30 * S });
        {
                ASK(top, "top", "format=csv", "function=main");
                ASK(by, "top", "by=run", "format=csv", "function=main");
                ASK(first, "top", "selector={run=\"1\"}", "format=csv", "function=main");

                EXPECT(top, "main,,0,,native,0,8\r\n");
                EXPECT(by, "2,main,,0,,native,0,7\r\n");
                EXPECT(by, "1,main,,0,,native,0,1\r\n");
                EXPECT(first, "main,,0,,native,0,1\r\n");
        }
        tear_down();
}
END_TEST

/* ---- diff ---- */

START_TEST(a_diff_is_sorted_by_shares_and_has_values_as_they_are)
{
        set_up();
        APPEND({ .type = CPU, .value = 10, .stack = "a;main", .labels = "v=1" },
               { .type = CPU, .value = 30, .stack = "b;main", .labels = "v=1" },
               { .type = CPU, .value = 40, .stack = "a;main", .labels = "v=2" },
               { .type = CPU, .value = 35, .stack = "b;main", .labels = "v=2" });
        {
#define SIDES "base_selector={v=\"1\"}", "selector={v=\"2\"}"
                ASK(shares, "diff", SIDES, "format=csv");
                ASK(values, "diff", SIDES, "format=csv", "compare=values");
                ASK(whole, "diff", SIDES, "format=csv", "sort=cumulative", "limit=1", "compare=values");
                ASK(whole_share, "diff", SIDES, "format=csv", "sort=cumulative", "limit=1");
                ASK(share_text, "diff", SIDES, "format=text", "sort=cumulative");
                ASK(value_text, "diff", SIDES, "format=text", "compare=values");
                ASK(flame, "diff", SIDES, "focus=b");
                ASK(by, "diff", SIDES, "format=csv", "by=v", "hide=main");
                ASK(sandwich, "sandwich", SIDES, "function=b");
                ASK(callers, "diff", SIDES, "callers_matching=^b$");
                ASK(empty, "diff", "base_selector={v=\"0\"}", "selector={v=\"2\"}", "format=text");
                REFUSED(bad, "diff", SIDES, "compare=yes");
                REFUSED(bad_sort, "top", "sort=name");
                REFUSED(table, "diff", SIDES, "view=top", "callees_matching=main");
                REFUSED(one_side, "series", "base_from=0");

                EXPECT(shares, "flat_after,cumulative_after\r\na,,0,,native,10,10,40,40\r\n"
                               "b,,0,,native,30,30,35,35\r\nmain,,0,,native,0,40,0,75\r\n");
                EXPECT(values, "flat_after,cumulative_after\r\na,,0,,native,10,10,40,40\r\n"
                               "b,,0,,native,30,30,35,35\r\nmain,,0,,native,0,40,0,75\r\n");
                EXPECT(whole, "flat_after,cumulative_after\r\nmain,,0,,native,0,40,0,75\r\n");
                EXPECT(whole_share, "flat_after,cumulative_after\r\na,,0,,native,10,10,40,40\r\n");
                EXPECT(share_text, "  75.00%   46.67%  -28.33 pp   75.00%   46.67%  -28.33 pp  b\n");
                EXPECT(share_text, "  25.00%   53.33%  +28.33 pp   25.00%   53.33%  +28.33 pp  a\n");
                EXPECT(share_text, "   0.00%    0.00%          0  100.00%  100.00%          0  main\n");
                EXPECT(value_text, " 10.0 ns      40.0 ns     +30.0 ns      10.0 ns      40.0 ns     +30.0 ns  a\n");
                EXPECT(value_text, " 0            0            0      40.0 ns      75.0 ns     +35.0 ns  main\n");
                EXPECT(empty, "before: 0 in 0 ");
                EXPECT(empty, "   0.00%    0.00%          -    0.00%  100.00%          -  main\n");
                EXPECT(flame, "\"total\":35,\"samples\":1,\"samples_are\":\"stacks\",\"selected_total\":75}");
                EXPECT(by, "v,function,file,line,object,kind,flat,cumulative,flat_after,cumulative_after\r\n");
                EXPECT(by, "2,a,,0,,native,0,0,40,40\r\n");
                EXPECT(by, "1,b,,0,,native,30,30,0,0\r\n");
                EXPECT(sandwich, "\"flat\":30,\"cumulative\":30,\"flat_after\":35,\"cumulative_after\":35");
                EXPECT(sandwich, "\"callers\":{");
                EXPECT(sandwich, "\"total\":40,\"samples\":2,\"samples_are\":\"stacks\",\"total_after\":75");
                EXPECT(callers, "\"inverted\":true");
                EXPECT(bad, "compare 'yes' is not one of shares, values");
                EXPECT(bad_sort, "sort 'name' is not one of flat, cumulative");
                EXPECT(table, "callees_matching selects a part of a flame graph, not of a table");
                EXPECT(one_side, "base_from is not a parameter of series; operations with it: diff, gate, services, "
                                 "lines, disassembly, sandwich");
        }
        tear_down();
}
END_TEST

/* ---- functions across builds ---- */

struct build_sample {
        const char *stack;
        int64_t value;
};

static void append_builds(const struct build_sample *before, const struct build_sample *after, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                if (before[i].stack)
                        APPEND({ .type = CPU, .value = before[i].value, .stack = before[i].stack, .labels = "v=1" });
                if (after[i].stack)
                        APPEND({ .type = CPU, .value = after[i].value, .stack = after[i].stack, .labels = "v=2" });
        }
}

START_TEST(a_diff_follows_functions_across_builds)
{
        static const struct build_sample before[] = {
                { "parse.isra.0@/src/1.4/parse.c:10;main@main.c:1", 10 },
                { "run::h0123456789abcdef@lib.rs:3;main@main.c:1", 20 },
                { "walk@tree.c:5;main@main.c:1", 40 },
                { "hash@/build/shop-1.4/src/hash.c:5;main@main.c:1", 80 },
        };
        static const struct build_sample after[] = {
                { "parse@/src/1.5/parse.c:10;main@main.c:1", 11 },
                { "run::hfedcba9876543210@lib.rs:4;main@main.c:1", 21 },
                { "walk@walk.c:5;main@main.c:1", 41 },
                { "hash@/build/shop-1.5/src/hash.c:5;main@main.c:1", 81 },
        };

        set_up();
        append_builds(before, after, 4);
        {
                ASK(rows, "diff", SIDES, "format=csv");
                ASK(exact, "diff", SIDES, "format=csv", "match=exact");
                ASK(by_old_name, "diff", SIDES, "format=csv", "function=parse.isra.0");
                ASK(lines, "lines", SIDES, "format=csv", "function_name=walk");
                ASK(callers, "diff", SIDES, "callers_of=parse.isra.0");
                ASK(sandwich, "sandwich", SIDES, "function=run");
                REFUSED(bad, "diff", SIDES, "match=fuzzy");

                EXPECT(rows, "parse,/src/1.5/parse.c,10,,native,10,10,11,11\r\n");
                EXPECT(rows, "run,lib.rs,4,,native,20,20,21,21\r\n");
                EXPECT(rows, "walk,walk.c,5,,native,40,40,41,41\r\n");
                EXPECT(rows, "hash,/build/shop-1.5/src/hash.c,5,,native,80,80,81,81\r\n");
                EXPECT(rows, "main,main.c,1,,native,0,150,0,154\r\n");
                EXPECT(exact, "parse.isra.0,/src/1.4/parse.c,10,,native,10,10,0,0\r\n");
                EXPECT(by_old_name, "parse,/src/1.5/parse.c,10,,native,10,10,11,11\r\n");
                EXPECT(lines, "walk,walk.c,5,,40,40,41,41");
                EXPECT(callers, "\"nodes\":[[-1,-1,0,10,0,0,11],[0,0,0,10,10,0,11],[1,1,10,10,1,11,11]]");
                EXPECT(sandwich, "\"flat\":20,\"cumulative\":20,\"flat_after\":21,\"cumulative_after\":21");
                EXPECT(bad, "match 'fuzzy' is not one of functions, exact");
        }
        tear_down();
}
END_TEST

START_TEST(functions_that_may_be_several_are_not_matched)
{
        static const struct build_sample before[] = {
                { "init@a.c:1;main", 1 },
                { "init@b.c:1;main", 2 },
                { "f(int)@o.cc:1;main", 4 },
        };
        static const struct build_sample after[] = {
                { "init@c.c:1;main", 3 },
                { NULL, 0 },
                { "f(long)@o.cc:1;main", 5 },
        };

        set_up();
        append_builds(before, after, 3);
        {
                ASK(rows, "diff", SIDES, "format=csv");

                EXPECT(rows, "init,a.c,1,,native,1,1,0,0\r\n");
                EXPECT(rows, "init,b.c,1,,native,2,2,0,0\r\n");
                EXPECT(rows, "init,c.c,1,,native,0,0,3,3\r\n");
                EXPECT(rows, "f(int),o.cc,1,,native,4,4,0,0\r\n");
                EXPECT(rows, "f(long),o.cc,1,,native,0,0,5,5\r\n");
        }
        tear_down();
}
END_TEST

START_TEST(numbers_of_lambdas_decide_only_if_both_builds_have_the_same)
{
#define LAMBDA(function, number) function "()::{lambda(int)#" number "}::operator()(int) const@l.cc:3;main"
        static const struct build_sample before[] = {
                { LAMBDA("f", "1"), 1 },
                { LAMBDA("f", "2"), 2 },
                { LAMBDA("g", "1"), 4 },
                { NULL, 0 },
        };
        static const struct build_sample after[] = {
                { LAMBDA("f", "1"), 10 },
                { LAMBDA("f", "2"), 20 },
                { LAMBDA("g", "1"), 40 },
                { LAMBDA("g", "2"), 80 },
        };

        set_up();
        append_builds(before, after, 4);
        {
                ASK(rows, "diff", SIDES, "format=csv");

                EXPECT(rows, "f()::{lambda(int)#1}::operator()(int) const,l.cc,3,,native,1,1,10,10\r\n");
                EXPECT(rows, "f()::{lambda(int)#2}::operator()(int) const,l.cc,3,,native,2,2,20,20\r\n");
                EXPECT(rows, "g()::{lambda}::operator()(int) const,l.cc,3,,native,4,4,120,120\r\n");
        }
        tear_down();
}
END_TEST

/* Both sides have the clone and the function: the rows are those of `top`. */
START_TEST(names_with_samples_on_both_sides_keep_their_rows)
{
        static const struct build_sample stacks[] = { { "parse.isra.0@p.c:1;main", 1 }, { "parse@p.c:2;main", 2 } };

        set_up();
        append_builds(stacks, stacks, 2);
        {
                ASK(rows, "diff", SIDES, "format=csv");

                EXPECT(rows, "parse.isra.0,p.c,1,,native,1,1,1,1\r\n");
                EXPECT(rows, "parse,p.c,2,,native,2,2,2,2\r\n");
        }
        tear_down();
}
END_TEST

/* ---- ids ---- */

static void check_ids(void)
{
        ASK(trace, "folded", "selector={trace_id=\"abababababababababababababababab\"}");
        ASK(span, "folded", "selector={span_id=\"cdcdcdcdcdcdcdcd\"}");
        ASK(label, "folded", "selector={trace_id=\"0123\"}");
        ASK(none, "folded", "selector={trace_id=\"\"}");
        ASK(regex, "folded", "selector={trace_id=~\"(ab)+|0.*\"}");

        expect_folded(trace, "main;a 1, main;b 2");
        expect_folded(span, "main;b 2");
        expect_folded(label, "main;d 8");
        expect_folded(none, "main;c 4");
        expect_folded(regex, "main;a 1, main;b 2, main;d 8");
}

START_TEST(samples_of_a_trace_or_span_are_selected)
{
        set_up();
        APPEND({ .type = CPU, .value = 1, .stack = "a;main", .trace = 0xab },
               { .type = CPU, .value = 2, .stack = "b;main", .trace = 0xab, .span = 0xcd, .labels = "trace_id=0123" },
               { .type = CPU, .value = 4, .stack = "c;main" },
               { .type = CPU, .value = 8, .stack = "d;main", .labels = "trace_id=0123" });
        check_head_and_parts(check_ids);
        tear_down();
}
END_TEST

#define TRACE_AB "abababababababababababababababab"
#define SPAN_CD "cdcdcdcdcdcdcdcd"
#define SPAN_CE "cececececececece"

static void check_spans(void)
{
        ASK(spans, "spans", NULL);
        ASK(first, "spans", "limit=1", "format=csv");
        ASK(traces, "spans", "by=trace_id", "format=csv");
        ASK(label, "spans", "by=profile_id", "format=csv");
        ASK(narrow, "spans", "selector={span_id=\"" SPAN_CD "\"}", "format=csv");
        ASK(text, "spans", "format=text", "limit=2");
        ASK(top, "top", "by=span_id", "format=csv", "function=a");
        REFUSED(focus, "spans", "focus=a");

        EXPECT(spans, "\"unit\":\"nanoseconds\",\"from_ms\":");
        EXPECT(spans, "\"total\":127,\"samples\":7,\"samples_are\":\"stacks\",\"with_id\":{\"total\":95,\"samples\":6,"
                      "\"spans\":4},"
                      "\"rows\":"
                      "[{\"labels\":{\"trace_id\":\"" TRACE_AB "\",\"span_id\":\"" SPAN_CE
                      "\"},\"service_name\":\"api\",\"span_name\":\"\",\"value\":64,\"samples\":1},"
                      "{\"labels\":{\"trace_id\":\"0123\",\"span_id\":\"\"},\"service_name\":\"\",\"span_name\":\"\","
                      "\"value\":24,\"samples\":2},"
                      "{\"labels\":{\"trace_id\":\"" TRACE_AB "\",\"span_id\":\"" SPAN_CD
                      "\"},\"service_name\":\"api\",\"span_name\":\"GET /x\",\"value\":6,\"samples\":2},");
        ck_assert_str_eq(first, "trace_id,span_id,service_name,span_name,value,samples\r\n" TRACE_AB "," SPAN_CE
                                ",api,,64,1\r\n");
        ck_assert_str_eq(traces,
                         "trace_id,service_name,span_name,value,samples\r\n" TRACE_AB ",api,,71,4\r\n0123,,,24,2\r\n");
        ck_assert_str_eq(label, "profile_id,service_name,span_name,value,samples\r\n77,,,16,1\r\n");
        ck_assert_str_eq(narrow, "trace_id,span_id,service_name,span_name,value,samples\r\n" TRACE_AB "," SPAN_CD
                                 ",api,GET /x,6,2\r\n");
        EXPECT(text, "95.0 ns of 127.0 ns, 6 of 7 stacks have ids, of 4 spans\n");
        EXPECT(text, "\n     64.0 ns  50.39%         1  trace_id=\"" TRACE_AB "\", span_id=\"" SPAN_CE "\"  api\n");
        EXPECT(text, "\n... 2 more\n");
        EXPECT(top, SPAN_CD ",a,,0,,native,2,2\r\n");
        EXPECT(top, "\n,a,,0,,native,1,1\r\n");
        EXPECT(focus, "focus is not a parameter of spans");
}

START_TEST(spans_are_listed_by_cost)
{
        set_up();
        APPEND({ .type = CPU, .value = 1, .stack = "a;main", .trace = 0xab },
               { .type = CPU,
                 .value = 2,
                 .stack = "a;main",
                 .trace = 0xab,
                 .span = 0xcd,
                 .labels = "service.name=api" },
               { .type = CPU,
                 .value = 4,
                 .stack = "b;main",
                 .trace = 0xab,
                 .span = 0xcd,
                 .labels = "service.name=api;span_name=GET /x" },
               { .type = CPU, .value = 8, .stack = "c;main", .labels = "trace_id=0123" });
        APPEND({ .type = CPU, .value = 16, .stack = "c;main", .labels = "trace_id=0123;profile_id=77" },
               { .type = CPU, .value = 32, .stack = "d;main", .labels = "service.name=api" },
               { .type = CPU,
                 .value = 64,
                 .stack = "d;main",
                 .trace = 0xab,
                 .span = 0xce,
                 .labels = "service.name=api" });
        check_head_and_parts(check_spans);
        tear_down();
}
END_TEST

/* ---- pprof ---- */

static uint32_t count_visible_labels(const struct profile *p, const struct profile_sample *s)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < s->label_count; i++) {
                const struct profile_string *key = &p->strings.items[p->labels.items[s->first_label + i].key];

                count += !label_is_hidden(key->text, key->size);
        }
        return count;
}

static void check_pprof(void)
{
        static const struct {
                const char *param;
                uint32_t types, samples;
        } cases[] = { { "labels=all", 3, 5 },
                      { "labels=none", 3, 3 },
                      { "type=memory", 1, 1 },
                      { "by=host", 3, 5 },
                      { "type=process_cpu", 2, 4 } };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct pairs p = { { cases[i].param } };
                const struct query_input in = { .param = pair_value, .param_context = &p, .now_unix_ns = NOW };
                _cleanup_profile_ struct profile back;
                _cleanup_buf_ struct buf b;
                struct error err;
                const char *shown;
                int64_t sum = 0;

                buf_init(&b, MiB(1));
                ck_assert_int_eq(query_run(store, "pprof", &in, &b, &answer, &err), ST_OK);
                ck_assert_msg(pprof_decode(b.data, b.size, NULL, &back, &err) == ST_OK, "%s", err.text);
                ck_assert_uint_eq(back.types.count, cases[i].types);
                ck_assert_uint_eq(back.samples.count, cases[i].samples);
                for (uint32_t k = 0; k < back.samples.count; k++) {
                        const struct profile_sample *s = &back.samples.items[k];

                        sum += s->value;
                        ck_assert_uint_eq(count_visible_labels(&back, s), i == 1 ? 0 : i == 3 ? 1 : 2);
                }
                ck_assert_uint_ne(back.first_shown_type, 0);
                shown = profile_text(&back, back.types.items[back.first_shown_type - 1].id);
                ck_assert_ptr_nonnull(strstr(shown, i == 2 ? "memory:" : ":cpu:nanoseconds:"));
                ck_assert_int_eq(sum, i == 2 ? 4096 : 7 + 70 * MS + (i == 4 ? 0 : 4096));
                if (i == 2)
                        continue;
                for (uint32_t k = 0; k < back.types.count; k++) {
                        const char *id = profile_text(&back, back.types.items[k].id);

                        ck_assert_int_eq(back.types.items[k].period, strcmp(id, MEMORY) != 0 ? 10 * MS : 0);
                }
                for (uint32_t k = 0; k < back.lines.count; k++)
                        ck_assert_int_eq(back.lines.items[k].start_line, back.lines.items[k].line ? 7 : 0);
        }
}

START_TEST(pprof_has_all_types_labels_period_and_start_lines)
{
        set_up();
        APPEND({ .type = COUNT, .period = 10 * MS, .value = 3, .stack = "a@a.c:9;main", .labels = "host=x;pid=1" },
               { .type = CPU, .period = 10 * MS, .value = 30 * MS, .stack = "a@a.c:9;main", .labels = "host=x;pid=1" },
               { .type = COUNT, .period = 10 * MS, .value = 4, .stack = "a@a.c:9;main", .labels = "host=y;pid=1" },
               { .type = MEMORY, .period = 524288, .value = 4096, .stack = "a@a.c:9;main", .labels = "host=y;pid=1" });
        check_head_and_parts(check_pprof);
        tear_down();
}
END_TEST

/* Sum the values of each type of the exported file: "ID=SUM ID=SUM". @return the period of the last CPU time. */
static int64_t list_pprof_sums(struct pairs params, char *text, size_t size)
{
        const struct query_input in = { .param = pair_value, .param_context = &params, .now_unix_ns = NOW };
        _cleanup_profile_ struct profile back;
        _cleanup_buf_ struct buf b;
        int64_t period = 0;
        size_t n = 0;
        struct error err;

        buf_init(&b, MiB(1));
        ck_assert_int_eq(query_run(store, "pprof", &in, &b, &answer, &err), ST_OK);
        ck_assert_msg(pprof_decode(b.data, b.size, NULL, &back, &err) == ST_OK, "%s", err.text);
        *text = 0;
        for (uint32_t k = 0; k < back.types.count; k++) {
                const char *id = profile_text(&back, back.types.items[k].id);
                int64_t sum = 0;

                for (uint32_t i = 0; i < back.samples.count; i++)
                        sum += back.samples.items[i].type == k ? back.samples.items[i].value : 0;
                n += (size_t)snprintf(text + n, size - n, "%s%s=%" PRId64, k ? " " : "", id, sum);
                ck_assert_uint_lt(n, size);
                if (strcmp(id, CPU) == 0)
                        period = back.types.items[k].period;
        }
        return period;
}

static void check_pprof_of_cpu_time(void)
{
        static const char *const labels[] = { "labels=all", "labels=none", "by=host" };
        char sums[512];

        for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
                /* 20 ms of `ns`, 40 ms of `us`, 7 samples of 10 ms of `otel`; of `go` 20 ms and their 2 samples. */
                ck_assert_int_eq(list_pprof_sums((struct pairs){ { labels[i] } }, sums, sizeof sums), 20 * MS);
                ck_assert_str_eq(sums, "block:delay:nanoseconds::=3 mutex:delay:nanoseconds::=5 " CPU
                                       "=150000000 " COUNT "=9");
                ck_assert_str_eq(answer.note, "");
        }
        {
                ASK(top, "top", "format=rows", "function=main");

                EXPECT(top, "\"cumulative\":150000000");
        }
        list_pprof_sums((struct pairs){ { "selector={host=~\"ns|us\"}" } }, sums, sizeof sums);
        ck_assert_str_eq(sums, CPU "=60000000");
        list_pprof_sums((struct pairs){ { "selector={host=\"us\"}" } }, sums, sizeof sums);
        ck_assert_str_eq(sums, MICROSECONDS "=40000");
        list_pprof_sums((struct pairs){ { "type=process_cpu:samples" } }, sums, sizeof sums);
        ck_assert_str_eq(sums, COUNT "=9");
        ck_assert_str_eq(answer.note,
                         "samples of type " COUNT " have several periods, of which the file has the greatest");
}

START_TEST(pprof_has_cpu_time_once)
{
        set_up();
        APPEND({ .type = CPU, .period = 20 * MS, .value = 20 * MS, .stack = "a;main", .labels = "host=ns" },
               { .type = MICROSECONDS, .period = 10000, .value = 40000, .stack = "a;main", .labels = "host=us" },
               { .type = COUNT, .period = 10 * MS, .value = 7, .stack = "a;main", .labels = "host=otel" },
               { .type = COUNT, .period = 5 * MS, .value = 2, .stack = "a;main", .labels = "host=go" },
               { .type = CPU, .period = 10 * MS, .value = 20 * MS, .stack = "a;main", .labels = "host=go" },
               { .type = "block:delay:nanoseconds::", .value = 3, .stack = "a;main", .labels = "host=go" },
               { .type = "mutex:delay:nanoseconds::", .value = 5, .stack = "a;main", .labels = "host=go" });
        check_head_and_parts(check_pprof_of_cpu_time);
        tear_down();
}
END_TEST

START_TEST(firefox_weights_are_in_the_profilers_units)
{
        static const struct {
                const char *type, *weights;
        } cases[] = { { "memory:alloc_space:kB:space:kB", "\"weight\":[3072],\"weightType\":\"bytes\"" },
                      { "memory:alloc_space:bytes:space:bytes", "\"weight\":[3],\"weightType\":\"bytes\"" },
                      { "wall:wall:microseconds:wall:ns", "\"weight\":[0.003],\"weightType\":\"tracing-ms\"" },
                      { "wall:wall:milliseconds:wall:ns", "\"weight\":[3],\"weightType\":\"tracing-ms\"" },
                      { "locks:contentions:count::", "\"weight\":[3],\"weightType\":\"samples\"" } };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                set_up();
                APPEND({ .type = cases[i].type, .value = 3, .stack = "a;main" });
                {
                        ASK(json, "firefox");
                        EXPECT(json, cases[i].weights);
                }
                tear_down();
        }
}
END_TEST

TEST_SUITE("query views", sums_that_do_not_fit_are_the_largest_number_and_noted,
           functions_of_an_inverted_graph_take_half_of_its_nodes,
           counts_with_a_period_add_to_cpu_time_and_omissions_are_reported,
           cpu_time_of_any_unit_is_of_one_type_in_trends_and_lists, cpu_time_has_precedence_over_unknown_units,
           partial_type_name_is_summed_by_the_same_rules, a_diff_converts_the_types_of_both_sides,
           groups_are_summed_separately_and_smallest_merged, csv_fields_are_quoted, search_matches_any_part_of_a_text,
           frames_filter_as_in_pprof, callers_and_callees_of_all_matching_functions, lines_have_cost_and_source,
           lines_compare_two_selections_by_number, inlined_recursion_counts_once,
           spans_and_lines_are_part_of_the_memory_of_a_query, gauges_are_averaged_over_the_snapshots_of_each_series,
           averages_add_up_and_any_label_may_identify_a_series, a_diff_is_sorted_by_shares_and_has_values_as_they_are,
           a_diff_follows_functions_across_builds, functions_that_may_be_several_are_not_matched,
           numbers_of_lambdas_decide_only_if_both_builds_have_the_same,
           names_with_samples_on_both_sides_keep_their_rows, samples_of_a_trace_or_span_are_selected,
           spans_are_listed_by_cost, pprof_has_all_types_labels_period_and_start_lines, pprof_has_cpu_time_once,
           firefox_weights_are_in_the_profilers_units)
