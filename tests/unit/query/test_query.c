/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <json-c/json.h>
#include <sched.h>
#include <string.h>

#include "common/compress/compress.h"
#include "common/limits.h"
#include "profile-formats/folded.h"
#include "profile-formats/pprof/pprof.h"
#include "query/engine/unit_text.h"
#include "query/query.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define S INT64_C(1000000000)
#define NOW (INT64_C(1700000000) * S)

/* ---- times ------------------------------------------------------------------------------------ */

START_TEST(times_parse_in_every_form)
{
        static const struct {
                const char *text;
                int64_t ns;
        } cases[] = {
                { "now", NOW },
                { "now-1h30m", NOW - 5400 * S },
                { "-15m", NOW - 900 * S },
                { "now+250ms", NOW + S / 4 },
                { "now-90", NOW - 90 * S },
                { "now-7d", NOW - 604800 * S },
                { "1700000000", NOW },
                { "1700000000123", NOW + 123 * (S / 1000) },
                { "1700000000123456", NOW + 123456 * (S / 1000000) },
                { "1700000000123456789", NOW + 123456789 },
                { "2023-11-14T22:13:20Z", NOW },
                { "2023-11-14T22:13:20.5Z", NOW + S / 2 },
                { "2023-11-14T23:13:20+01:00", NOW },
                { "2023-11-14 20:43:20-01:30", NOW },
                { "2023-11-15", NOW + 6400 * S },
                { "2024-02-29", NOW + (106 * 86400 + 6400) * S },
        };
        static const char *const bad[] = { "",
                                           "nowish",
                                           "now-",
                                           "now-1x",
                                           "now-1h30",
                                           "-1d12h30",
                                           "2023-13-01",
                                           "2023-02-29",
                                           "2023-04-31T00:00:00Z",
                                           "2023-11-14T",
                                           "1e9",
                                           "tomorrow",
                                           "now-99999999999999999w",
                                           "2023-11-14T22:13:20+1" };
        int64_t t;

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                ck_assert_msg(time_text_parse(cases[i].text, NOW, &t, NULL) == ST_OK, "%s", cases[i].text);
                ck_assert_msg(t == cases[i].ns, "%s is %lld", cases[i].text, (long long)t);
        }
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
                ck_assert_msg(time_text_parse(bad[i], NOW, &t, NULL) == ST_USAGE, "%s", bad[i]);
        ck_assert_int_eq(duration_text_parse("1h30m", &t, NULL), ST_OK);
        ck_assert_int_eq(t, 5400 * S);
        ck_assert_int_eq(duration_text_parse("0", &t, NULL), ST_USAGE);
        ck_assert_int_eq(duration_text_parse("1m30", &t, NULL), ST_USAGE);
}
END_TEST

START_TEST(last_number_without_a_unit_is_reported_with_its_likely_unit)
{
        struct error err = { 0 };
        int64_t t;

        ck_assert_int_eq(time_text_parse("now-1h30", NOW, &t, &err), ST_USAGE);
        ck_assert_str_eq(err.text, "'now-1h30' is not a time: the last number has no unit; use now-1h30m");
        ck_assert_int_eq(duration_text_parse("1m30", &t, &err), ST_USAGE);
        ck_assert_str_eq(err.text, "'1m30' is not a duration: the last number has no unit; use 1m30s");
        ck_assert_int_eq(time_text_parse("x30", NOW, &t, &err), ST_USAGE);
        ck_assert_str_eq(err.text, "'x30' is not a time: use now-1h, 2026-01-31T12:00:00Z or Unix seconds");
}
END_TEST

START_TEST(values_are_formatted_readably)
{
        char out[40];

        ck_assert_str_eq(format_value(1234567890, "nanoseconds", out, sizeof out), "1.23 s");
        ck_assert_str_eq(format_value(0, "nanoseconds", out, sizeof out), "0");
        ck_assert_str_eq(format_value(-90 * S, "nanoseconds", out, sizeof out), "-1.50 min");
        ck_assert_str_eq(format_value(5 << 20, "bytes", out, sizeof out), "5.00 MiB");
        ck_assert_str_eq(format_value(1234567, "count", out, sizeof out), "1,234,567");
        ck_assert_str_eq(format_value(-123, "count", out, sizeof out), "-123");
        ck_assert_str_eq(format_value(1234567, "microseconds", out, sizeof out), "1.23 s");
        ck_assert_str_eq(format_value(90, "s", out, sizeof out), "1.50 min");
        ck_assert_str_eq(format_value(5120, "kilobytes", out, sizeof out), "5.00 MiB");
        ck_assert_str_eq(format_value(5120, "kB", out, sizeof out), "5.00 MiB");
        ck_assert_str_eq(format_value(1234567, "Microsecond", out, sizeof out), "1.23 s");
        ck_assert_str_eq(format_value(1234567, "\u00b5s", out, sizeof out), "1.23 s");
        ck_assert_str_eq(format_value(90, "secs", out, sizeof out), "1.50 min");
        ck_assert_str_eq(format_value(1234, "", out, sizeof out), "1,234");
        ck_assert_str_eq(format_value(1234, "ss", out, sizeof out), "1,234");
}
END_TEST

/* ---- queries of a store --------------------------------------------------------------------------- */

static char dir[TEMPORARY_DIR_BYTES];
static struct profile_store *store;

static void append_folded(const char *text, const char *type, const char *service, int64_t time_unix_ns, uint8_t id)
{
        struct hash128 batch = { { id } };
        struct profile p;
        struct error err;
        bool duplicate;

        ck_assert_msg(folded_decode(text, strlen(text), type, &p, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(profile_add_label_to_all(&p, "service.name", service, &err), ST_OK);
        profile_set_missing_times(&p, time_unix_ns);
        ck_assert_msg(profile_store_append(store, &p, batch, &duplicate, &err) == ST_OK, "%s", err.text);
        profile_deinit(&p);
}

#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

static void open_store(void)
{
        const struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        struct error err;

        temporary_dir_create(dir, "query");
        ck_assert_msg(profile_store_open(dir, &options, &store, &err) == ST_OK, "%s", err.text);
        append_folded("main;work;leaf 5000000000\nmain;work 1000000000\nmain;rec;rec;rec 2000000000\n"
                      "main;read;sys_read_[k] 500000000\n",
                      CPU, "api", NOW - 60 * S, 1);
        append_folded("main;work;leaf 9000000000\nmain;new 1000000000\n", CPU, "api", NOW - 10 * S, 2);
        append_folded("main;idle 7000000000\n", CPU, "db", NOW - 30 * S, 3);
        append_folded("main;alloc 4096\n", "memory:inuse_space:bytes:space:bytes", "db", NOW - 30 * S, 4);
}

static void close_store(void)
{
        profile_store_close(store);
        temporary_dir_remove(dir);
}

/* "name=value" pairs follow the operation, ended by NULL. */
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

static char *run_query(const char *operation, struct pairs p, enum status want)
{
        struct buf b;
        struct query_answer answer = { 0 };
        struct error err = { 0 };
        enum status st;

        buf_init(&b, MiB(4));
        st = query_run(store, operation,
                       &(struct query_input){ .param = pair_value, .param_context = &p, .now_unix_ns = NOW }, &b,
                       &answer, &err);
        ck_assert_msg(st == want, "%s: %s", operation, err.text);
        if (st) {
                buf_clear(&b);
                buf_append_str(&b, err.text);
        } else {
                ck_assert_ptr_nonnull(answer.content_type);
        }
        ck_assert_ptr_nonnull(buf_cstr(&b));
        return (char *)b.data;
}

#define ASK(name, operation, ...)                                                                                      \
        _cleanup_free_ char *name = run_query(operation, (struct pairs){ { __VA_ARGS__ } }, ST_OK)

START_TEST(top_counts_leaves_flat_and_recursion_once)
{
        open_store();
        {
                ASK(rows, "top", "selector={service_name=\"api\"}", "to=now-20s", "format=rows");
                ASK(text, "top", "selector={service.name=\"api\"}", "format=text");
                ASK(none, "top", "selector={service.name=\"nobody\"}", "format=rows");
                struct json_object *j = json_tokener_parse(rows);
                static const struct {
                        const char *function;
                        int64_t flat, cumulative;
                } want[] = {
                        { "leaf", 5 * S, 5 * S },     { "rec", 2 * S, 2 * S },      { "work", S, 6 * S },
                        { "sys_read", S / 2, S / 2 }, { "main", 0, 8 * S + S / 2 }, { "read", 0, S / 2 },
                };

                ck_assert_uint_eq(json_object_array_length(j), 6);
                for (size_t i = 0; i < 6; i++) {
                        struct json_object *row = json_object_array_get_idx(j, i);

                        ck_assert_str_eq(json_object_get_string(json_object_object_get(row, "function")),
                                         want[i].function);
                        ck_assert_int_eq(json_object_get_int64(json_object_object_get(row, "flat")), want[i].flat);
                        ck_assert_int_eq(json_object_get_int64(json_object_object_get(row, "cumulative")),
                                         want[i].cumulative);
                }
                json_object_put(j);
                ck_assert_ptr_nonnull(strstr(text, "18.5 s in 6 stacks"));
                ck_assert_ptr_nonnull(strstr(text, "14.0 s  75.68%       14.0 s  75.68%  leaf"));
                ck_assert_str_eq(none, "[]");
        }
        close_store();
}
END_TEST

START_TEST(rows_of_equal_sums_are_sorted_by_name)
{
        open_store();
        append_folded("m;c 3\nm;a 3\nm;d 3\nm;b 3\n", CPU, "ties", NOW - 5 * S, 9);
        {
                ASK(rows, "top", "selector={service.name=\"ties\"}", "format=rows");
                struct json_object *j = json_tokener_parse(rows);
                char order[8] = "";

                ck_assert_uint_eq(json_object_array_length(j), 5);
                for (size_t i = 0; i < 5; i++)
                        order[i] = json_object_get_string(
                                json_object_object_get(json_object_array_get_idx(j, i), "function"))[0];
                ck_assert_str_eq(order, "abcdm");
                json_object_put(j);
        }
        close_store();
}
END_TEST

START_TEST(folded_merges_equal_stacks_and_marks_the_kernel)
{
        open_store();
        {
                ASK(all, "folded", "selector={service.name=\"api\"}");
                ASK(db, "folded", "selector={service.name!~\"a.*\"}");
                ASK(below, "folded", "selector={service.name=\"api\"}", "callees_of=work");
                ASK(above, "folded", "selector={service.name=\"api\"}", "callers_of=leaf");

                ck_assert_ptr_nonnull(strstr(all, "main;work;leaf 14000000000\n"));
                ck_assert_ptr_nonnull(strstr(all, "main;read;sys_read_[k] 500000000\n"));
                ck_assert_ptr_null(strstr(all, "idle"));
                ck_assert_str_eq(db, "main;idle 7000000000\n");
                ck_assert_ptr_nonnull(strstr(below, "work 1000000000\n"));
                ck_assert_ptr_nonnull(strstr(below, "work;leaf 14000000000\n"));
                ck_assert_uint_eq(strlen(below), strlen("work 1000000000\nwork;leaf 14000000000\n"));
                ck_assert_str_eq(above, "leaf;work;main 14000000000\n");
        }
        close_store();
}
END_TEST

static int64_t of_node(struct json_object *nodes, size_t node, size_t member)
{
        return json_object_get_int64(json_object_array_get_idx(json_object_array_get_idx(nodes, node), member));
}

/* The nodes that were not merged into others; every total is the sum of self and the children's totals. */
static size_t check_widths(struct json_object *flame)
{
        struct json_object *nodes = json_object_object_get(flame, "nodes"),
                           *frames = json_object_object_get(flame, "frames");
        size_t count = json_object_array_length(nodes), others = 0;
        _cleanup_free_ int64_t *sums = calloc(count, sizeof *sums);

        ck_assert_ptr_nonnull(sums);
        for (size_t i = 0; i < count; i++) {
                sums[i] += of_node(nodes, i, 2);
                if (i == 0)
                        continue;
                sums[of_node(nodes, i, 0)] += of_node(nodes, i, 3);
                others += strcmp(json_object_get_string(json_object_array_get_idx(
                                         json_object_array_get_idx(frames, (size_t)of_node(nodes, i, 1)), 0)),
                                 "(other)") == 0;
        }
        for (size_t i = 0; i < count; i++)
                ck_assert_int_eq(sums[i], of_node(nodes, i, 3));
        return count - others;
}

START_TEST(flame_json_has_the_tree_in_drawing_order)
{
        open_store();
        {
                ASK(text, "flame", "selector={service.name=\"api\"}");
                ASK(few, "flame", "selector={service.name=\"api\"}", "max_nodes=3");
                ASK(html, "flame", "format=html");
                struct json_object *j = json_tokener_parse(text), *nodes = json_object_object_get(j, "nodes");
                struct json_object *root = json_object_array_get_idx(nodes, 0);
                struct json_object *less = json_tokener_parse(few);

                ck_assert_int_eq(json_object_get_int64(json_object_array_get_idx(root, 3)), 18 * S + S / 2);
                ck_assert_str_eq(json_object_get_string(json_object_object_get(j, "unit")), "nanoseconds");
                for (size_t i = 1; i < json_object_array_length(nodes); i++) {
                        int64_t parent = json_object_get_int64(
                                json_object_array_get_idx(json_object_array_get_idx(nodes, i), 0));

                        ck_assert_int_ge(parent, 0);
                        ck_assert_int_lt(parent, (int64_t)i);
                }
                ck_assert_uint_eq(check_widths(j), json_object_array_length(nodes));
                ck_assert_uint_eq(check_widths(less), 3);
                ck_assert_int_eq(json_object_get_int64(json_object_object_get(less, "left_out")),
                                 (int64_t)json_object_array_length(nodes) - 3);
                json_object_put(j);
                json_object_put(less);
                ck_assert_ptr_nonnull(strstr(html, "<!doctype html>"));
                ck_assert_ptr_nonnull(strstr(html, "\"nodes\":[["));
                ck_assert_ptr_null(strstr(html, "/*data*/"));
                ck_assert_ptr_null(strstr(html, "http://"));
                ck_assert_ptr_null(strstr(html, "https://"));
        }
        close_store();
}
END_TEST

START_TEST(the_heaviest_nodes_are_kept)
{
        _cleanup_buf_ struct buf text;

        buf_init(&text, MiB(1));
        for (unsigned i = 1; i <= 300; i++) /* 300 leaves of equal and unequal weights under one of 17 functions */
                buf_printf(&text, "f%u;leaf%u %u\n", i % 17, i, i * 7919 % 101 + 1);
        ck_assert_ptr_nonnull(buf_cstr(&text));
        open_store();
        append_folded((const char *)text.data, CPU, "many", NOW - 5 * S, 9);
        for (unsigned max = 1; max <= 320; max += 29) {
                char parameter[32];
                int64_t least = INT64_MAX, parents = 0;

                snprintf(parameter, sizeof parameter, "max_nodes=%u", max);
                {
                        ASK(json, "flame", "selector={service.name=\"many\"}", parameter);
                        struct json_object *j = json_tokener_parse(json), *nodes = json_object_object_get(j, "nodes");
                        size_t count = check_widths(j), left_out = json_object_array_length(nodes) - count;

                        ck_assert_uint_eq(left_out > 0, max < 318);
                        ck_assert_uint_eq(count, max < 318 ? max : 318);
                        ck_assert_int_eq(json_object_get_int64(json_object_object_get(j, "left_out")),
                                         (int64_t)(318 - count));
                        for (size_t i = 1; i < count + left_out; i++) {
                                struct json_object *frame = json_object_array_get_idx(
                                        json_object_object_get(j, "frames"), (size_t)of_node(nodes, i, 1));

                                if (json_object_get_int(json_object_array_get_idx(frame, 3)) == 4)
                                        continue;
                                least = of_node(nodes, i, 3) < least ? of_node(nodes, i, 3) : least;
                                parents += of_node(nodes, i, 0) == 0;
                        }
                        /* The 17 functions outweigh every leaf, and no omitted leaf outweighs a kept one. */
                        if (max > 18)
                                ck_assert_int_eq(parents, 17);
                        if (max == 30)
                                ck_assert_int_ge(least, 97);
                        json_object_put(j);
                }
        }
        close_store();
}
END_TEST

START_TEST(name_cannot_close_the_script_element)
{
        open_store();
        append_folded("main;</script><script>alert(1)</script> 1\n", CPU, "evil", NOW - 5 * S, 9);
        {
                ASK(html, "flame", "selector={service.name=\"evil\"}", "format=html");

                ck_assert_ptr_null(strstr(html, "<script>alert"));
                ck_assert_ptr_nonnull(strstr(html, "\\u003cscript>alert"));
        }
        close_store();
}
END_TEST

START_TEST(diff_shows_both_sides)
{
        open_store();
        {
                ASK(rows, "diff", "selector={service.name=\"api\"}", "from=now-20s", "base_from=now-1h",
                    "base_to=now-20s", "format=rows");
                ASK(text, "diff", "selector={service.name=\"api\"}", "from=now-20s", "base_from=now-1h",
                    "base_to=now-20s", "format=text");
                ASK(tree, "diff", "selector={service.name=\"api\"}", "from=now-20s", "base_from=now-1h",
                    "base_to=now-20s");

                ck_assert_ptr_nonnull(strstr(rows, "\"function\":\"leaf\""));
                ck_assert_ptr_nonnull(
                        strstr(rows, "\"flat\":5000000000,\"cumulative\":5000000000,\"flat_after\":9000000000"));
                ck_assert_ptr_nonnull(strstr(text, "before: 8.50 s in 4 stacks"));
                ck_assert_ptr_nonnull(strstr(text, "after:  10.0 s in 2 stacks"));
                ck_assert_ptr_nonnull(strstr(tree, "\"total\":8500000000"));
                ck_assert_ptr_nonnull(strstr(tree, "\"total\":10000000000"));
        }
        close_store();
}
END_TEST

START_TEST(pprof_output_has_the_same_sums)
{
        open_store();
        {
                struct pairs p = { { "selector={service.name=\"api\"}" } };
                _cleanup_profile_ struct profile back;
                _cleanup_buf_ struct buf b;
                struct query_answer answer;
                struct error err;
                int64_t sum = 0;

                buf_init(&b, MiB(1));
                ck_assert_int_eq(
                        query_run(store, "pprof",
                                  &(struct query_input){ .param = pair_value, .param_context = &p, .now_unix_ns = NOW },
                                  &b, &answer, &err),
                        ST_OK);
                ck_assert(gzip_detect(b.data, b.size));
                ck_assert_int_eq(pprof_decode(b.data, b.size, NULL, &back, &err), ST_OK);
                for (uint32_t i = 0; i < back.samples.count; i++)
                        sum += back.samples.items[i].value;
                ck_assert_int_eq(sum, 18 * S + S / 2);
                ck_assert_str_eq(profile_text(&back, back.types.items[0].id), CPU);
        }
        close_store();
}
END_TEST

START_TEST(types_are_chosen_by_name_or_part)
{
        open_store();
        append_folded("main;cache 512\n", "memory:inuse_space:bytes:space:bytes", "cache", NOW - 30 * S, 5);
        {
                ASK(types, "types", NULL);
                ASK(of_cache, "types", "selector={service.name=\"cache\"}");
                ASK(cache, "folded", "selector={service.name=\"cache\"}");
                ASK(nothing, "folded", "selector={service.name=\"cache\"}", "type=cpu");
                ASK(memory, "folded", "type=memory", "selector={service.name=\"db\"}");
                ASK(space, "folded", "type=inuse_space", "selector={service.name=\"db\"}");
                ASK(cpu, "folded", "selector=process_cpu:cpu{service.name=\"db\"}");
                _cleanup_free_ char *wrong = run_query("top", (struct pairs){ { "type=nonsense" } }, ST_USAGE);

                ck_assert_str_eq(types, "[\"memory:inuse_space:bytes:space:bytes\",\"" CPU "\"]");
                ck_assert_str_eq(of_cache, "[\"memory:inuse_space:bytes:space:bytes\"]");
                ck_assert_str_eq(cache, "main;cache 512\n");
                ck_assert_str_eq(nothing, "");
                ck_assert_str_eq(memory, "main;alloc 4096\n");
                ck_assert_str_eq(space, "main;alloc 4096\n");
                ck_assert_str_eq(cpu, "main;idle 7000000000\n");
                ck_assert_ptr_nonnull(strstr(wrong, "there are: memory:inuse_space:bytes:space:bytes, " CPU));
        }
        {
                ASK(same, "folded", "type=process_cpu:cpu", "selector=process_cpu:cpu{service.name=\"db\"}");
                _cleanup_free_ char *two = run_query(
                        "top", (struct pairs){ { "type=cpu", "selector={__profile_type__=\"memory\"}" } }, ST_USAGE);
                _cleanup_free_ char *base = run_query(
                        "diff", (struct pairs){ { "selector=memory{}", "base_selector=process_cpu{}" } }, ST_USAGE);
                _cleanup_free_ char *only =
                        run_query("diff", (struct pairs){ { "base_selector=process_cpu{}" } }, ST_USAGE);

                ASK(services, "services", "selector=process_cpu:cpu{service.name=\"db\"}");

                _cleanup_free_ char *other = run_query("series", (struct pairs){ { "function=leaf" } }, ST_USAGE);

                ck_assert_str_eq(other, "function is not a parameter of series; operations with it: top, diff, trend, "
                                        "lines, disassembly, addresses, sandwich");
                ASK(narrow, "folded", "type=process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                    "selector=process_cpu:cpu{service.name=\"db\"}");

                ck_assert_str_eq(same, "main;idle 7000000000\n");
                ck_assert_str_eq(narrow, same);
                ck_assert_ptr_nonnull(strstr(services, "\"value\":7000000000,"));
                ck_assert_str_eq(two, "selector has the type 'memory', but the request has 'cpu'");
                ck_assert_str_eq(base, "base_selector has the type 'process_cpu', but the request has 'memory'");
                ck_assert_str_eq(only, "base_selector has the type 'process_cpu', but the request has none");
        }
        close_store();
}
END_TEST

START_TEST(series_sum_per_step_from_multiples_of_it)
{
        open_store();
        {
                ASK(text, "series", "from=now-60s", "step=20s");
                struct json_object *j = json_tokener_parse(text), *points = json_object_object_get(j, "points");
                int64_t sum = 0;

                for (size_t i = 0; i < json_object_array_length(points); i++) {
                        struct json_object *point = json_object_array_get_idx(points, i);

                        ck_assert_int_eq(json_object_get_int64(json_object_array_get_idx(point, 0)) % 20000, 0);
                        sum += json_object_get_int64(json_object_array_get_idx(point, 1));
                }
                ck_assert_int_eq(sum, 25 * S + S / 2);
                ck_assert_uint_eq(json_object_array_length(points), 3);
                json_object_put(j);
                free(run_query("series", (struct pairs){ { "from=now-7d", "step=1s" } }, ST_USAGE));
        }
        close_store();
}
END_TEST

START_TEST(labels_and_values_are_listed)
{
        open_store();
        {
                ASK(labels, "labels", NULL);
                ASK(values, "values", "name=service.name");
                ASK(some, "values", "name=service.name", "type=memory", "format=text");

                ck_assert_ptr_nonnull(strstr(labels, "\"service_name\""));
                ck_assert_str_eq(values, "[\"api\",\"db\"]");
                ck_assert_str_eq(some, "db\n");
        }
        close_store();
}
END_TEST

START_TEST(invalid_parameters_are_reported)
{
        open_store();
        {
                _cleanup_free_ char *from = run_query("top", (struct pairs){ { "from=yesterdayish" } }, ST_USAGE);
                _cleanup_free_ char *order = run_query("top", (struct pairs){ { "from=now", "to=now-1h" } }, ST_USAGE);
                _cleanup_free_ char *format = run_query("top", (struct pairs){ { "format=xml" } }, ST_USAGE);
                _cleanup_free_ char *limit = run_query("top", (struct pairs){ { "limit=-1" } }, ST_USAGE);
                _cleanup_free_ char *operation = run_query("drop", (struct pairs){ { NULL } }, ST_NOT_FOUND);
                _cleanup_free_ char *name = run_query("values", (struct pairs){ { NULL } }, ST_USAGE);

                ck_assert_ptr_nonnull(strstr(from, "'yesterdayish' is not a time"));
                ck_assert_ptr_nonnull(strstr(order, "from is not before to"));
                ck_assert_ptr_nonnull(strstr(format, "format 'xml'"));
                ck_assert_ptr_nonnull(strstr(limit, "limit '-1'"));
                ck_assert_ptr_nonnull(strstr(operation, "unknown query 'drop'"));
                ck_assert_ptr_nonnull(strstr(name, "name is missing"));
        }
        close_store();
}
END_TEST

START_TEST(a_format_is_answered_or_refused)
{
        static const char *const names[] = { "json", "rows", "text", "html", "csv" };
        static const char *const types[] = { "application/json", "application/json", "text/plain", "text/html",
                                             "text/csv" };
        static const struct {
                const char *operation, *param;
                const char *formats; /* the letters of those that it has, in their order */
        } cases[] = {
                { "top", "limit=1", "jrtc" },
                { "flame", "max_nodes=9", "jth" },
                { "diff", "base_from=now-2h", "jrthc" },
                { "diff", "view=top", "jrtc" },
                { "series", "step=1m", "jtc" },
                { "spans", "limit=1", "jtc" },
                { "sandwich", "function=leaf", "jt" },
                { "lines", "function=leaf", "jtc" },
                { "labels", "limit=1", "jtc" },
                { "labels", "counts=1", "j" },
                { "values", "name=service.name", "jtc" },
                { "types", "limit=1", "jtc" },
                { "missing", "limit=1", "jtc" },
                { "uploads", "limit=1", "jtc" },
                { "addresses", "function=leaf", "jc" },
        };

        open_store();
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
                        char format[16];
                        struct pairs p = { { cases[i].param, format } };
                        struct query_answer answer = { 0 };
                        struct error err = { 0 };
                        struct buf b;
                        enum status st;
                        bool is_expected = strchr(cases[i].formats, *names[f]);

                        snprintf(format, sizeof format, "format=%s", names[f]);
                        buf_init(&b, MiB(4));
                        st = query_run(
                                store, cases[i].operation,
                                &(struct query_input){ .param = pair_value, .param_context = &p, .now_unix_ns = NOW },
                                &b, &answer, &err);
                        ck_assert_msg(st == (is_expected ? ST_OK : ST_USAGE), "%s %s: %s", cases[i].operation, format,
                                      err.text);
                        if (!st)
                                ck_assert_msg(strncmp(answer.content_type, types[f], strlen(types[f])) == 0,
                                              "%s %s: %s", cases[i].operation, format, answer.content_type);
                        else
                                ck_assert_ptr_nonnull(strstr(err.text, "format"));
                        buf_deinit(&b);
                }
        }
        close_store();
}
END_TEST

/* ---- cancelled queries ------------------------------------------------------------------------------- */

/* Many stacks with many names, so that every loop reaches a check, which is made every 65,536 units. */
static void open_large_store(void)
{
        struct buf text;

        open_store();
        buf_init(&text, MiB(16));
        for (int i = 0; i < 20000; i++)
                buf_printf(&text, "main;f%d;g%d;leaf%d %d\n", i % 100, i % 5000, i, i + 1);
        ck_assert_ptr_nonnull(buf_cstr(&text));
        append_folded((const char *)text.data, CPU, "large", NOW - 20 * S, 5);
        buf_deinit(&text);
}

struct ending {
        uint64_t after; /* checks before cancellation */
};

static enum status cancel_work(void *context, struct error *err)
{
        struct ending *e = context;

        return e->after-- ? ST_OK : error_set(err, ST_BUSY, "ended by the test");
}

static enum status run_cancelled(const char *operation, struct pairs p, uint64_t after, uint64_t *checks_ret,
                                 size_t *size_ret)
{
        _cleanup_buf_ struct buf b;
        struct ending e = { after };
        struct work_meter meter;
        struct query_answer answer;
        struct error err = { 0 };
        enum status st;

        work_meter_init(&meter, cancel_work, &e);
        buf_init(&b, MiB(64));
        st = query_run(
                store, operation,
                &(struct query_input){ .param = pair_value, .param_context = &p, .now_unix_ns = NOW, .meter = &meter },
                &b, &answer, &err);
        if (st)
                ck_assert_str_eq(err.text, "ended by the test");
        *checks_ret = meter.checks;
        *size_ret = b.size;
        return st;
}

/* Without helper threads a query makes the same number of checks in each run. */
static void run_on_one_cpu(void)
{
        cpu_set_t cpus;

        CPU_ZERO(&cpus);
        CPU_SET(sched_getcpu(), &cpus);
        ck_assert_int_eq(sched_setaffinity(0, sizeof cpus, &cpus), 0);
}

START_TEST(every_query_can_be_cancelled)
{
        static const struct {
                const char *operation;
                struct pairs p;
        } cases[] = {
                { "top", { { "limit=0" } } },
                { "top", { { "limit=100000", "format=text" } } },
                { "top", { { "function=.*1" } } },
                { "flame", { { "max_nodes=0" } } },
                { "flame", { { "callers_of=leaf7" } } },
                { "flame", { { "format=text" } } },
                { "flame", { { "format=html" } } },
                { "folded", { { NULL } } },
                { "pprof", { { NULL } } },
                { "diff", { { "base_from=now-2h", "base_to=now-1h", "max_nodes=0" } } },
                { "diff", { { "view=top" } } },
                { "series", { { NULL } } },
                { "series", { { "by=service.name" } } },
                { "top", { { "by=service.name", "focus=leaf", "hide=leaf1" } } },
                { "flame", { { "by=service.name", "callers_matching=leaf.*9" } } },
                { "sandwich", { { "function=leaf7.*" } } },
                { "lines", { { "function=leaf.*" } } },
                { "autofdo", { { NULL } } },
                { "labels", { { NULL } } },
                { "values", { { "name=service.name" } } },
                { "types", { { NULL } } },
                { "missing", { { NULL } } },
                { "uploads", { { NULL } } },
        };

        run_on_one_cpu();
        open_large_store();
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                uint64_t checks, all;
                size_t size, whole;

                ck_assert_int_eq(run_cancelled(cases[i].operation, cases[i].p, UINT64_MAX, &all, &whole), ST_OK);
                ck_assert_msg(all > 1, "%s was asked only at its end", cases[i].operation);
                ck_assert_int_eq(run_cancelled(cases[i].operation, cases[i].p, 0, &checks, &size), ST_BUSY);
                ck_assert_uint_eq(checks, 1);
                ck_assert_msg(size == 0, "%s went on to its answer", cases[i].operation);
                ck_assert_int_eq(run_cancelled(cases[i].operation, cases[i].p, all - 1, &checks, &size), ST_BUSY);
        }
        close_store();
}
END_TEST

static int compare_values(const void *x, const void *y, void *context)
{
        const uint32_t *a = x, *b = y;

        ++*(uint64_t *)context;
        return *a < *b ? -1 : *a > *b;
}

START_TEST(cancelled_sort_keeps_all_items)
{
        enum { COUNT = 300000 };
        _cleanup_free_ uint32_t *items = calloc(COUNT, sizeof *items);
        struct ending e = { UINT64_MAX };
        struct work_meter meter;
        uint64_t compared = 0, all, sum = 0, sum_after = 0;

        for (uint32_t i = 0; i < COUNT; i++)
                sum += items[i] = (uint32_t)(i * 2654435761u);
        work_meter_init(&meter, cancel_work, &e);
        ck_assert_int_eq(work_meter_sort(&meter, items, COUNT, sizeof *items, compare_values, &compared, NULL), ST_OK);
        for (uint32_t i = 1; i < COUNT; i++)
                ck_assert_uint_le(items[i - 1], items[i]);
        all = meter.checks;
        ck_assert_uint_gt(all, 8);
        for (uint64_t after = 0; after < all; after++) {
                sum_after = 0;
                for (uint32_t i = 0; i < COUNT; i++)
                        items[i] = (uint32_t)(i * 2654435761u);
                e.after = after;
                work_meter_init(&meter, cancel_work, &e);
                ck_assert_int_eq(work_meter_sort(&meter, items, COUNT, sizeof *items, compare_values, &compared, NULL),
                                 ST_BUSY);
                for (uint32_t i = 0; i < COUNT; i++)
                        sum_after += items[i];
                ck_assert_uint_eq(sum_after, sum);
        }
}
END_TEST

/* ---- text output for terminals ------------------------------------------------------------------------ */

START_TEST(text_output_has_no_control_characters)
{
        static const char *const operations[] = { "top",     "flame",  "diff",   "values", "missing",
                                                  "uploads", "folded", "series", "labels", "types" };

        open_store();
        append_folded("ma\033]0;owned\007in;le\302\233af\177\xff\342\200\256x 90000000000\n", CPU,
                      "ser\033[2Jvice\342\200\256", NOW - 5 * S, 9);
        for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
                ASK(text, operations[i], "format=text", strcmp(operations[i], "values") ? NULL : "name=service.name");

                for (const char *c = text; *c; c++)
                        ck_assert_msg(*c == '\n' || ((unsigned char)*c >= 0x20 && *c != 0x7f), "%s: %s", operations[i],
                                      text);
                ck_assert_ptr_null(strstr(text, "\302\233"));
                ck_assert_ptr_null(strstr(text, "\342\200\256"));
                ck_assert_ptr_null(strchr(text, '\xff'));
        }
        {
                ASK(top, "top", "format=text");
                ASK(flame, "flame", "format=text");
                ASK(folded, "folded");
                ASK(values, "values", "format=text", "name=service.name");
                ASK(json, "top");
                json_object *parsed = json_tokener_parse(json);

                ck_assert_ptr_nonnull(strstr(top, "le\\xc2\\x9baf\\x7f"));
                ck_assert_ptr_nonnull(strstr(top, "\\u{202e}x"));
                ck_assert_ptr_nonnull(strstr(flame, "ma\\x1b]0"));
                ck_assert_ptr_nonnull(strstr(folded, "ma\\x1b]0"));
                ck_assert_ptr_nonnull(strstr(values, "ser\\x1b[2Jvice\\u{202e}\n"));
                ck_assert_ptr_nonnull(parsed);
                json_object_put(parsed);
        }
        close_store();
}
END_TEST

TEST_SUITE("query", every_query_can_be_cancelled, cancelled_sort_keeps_all_items, text_output_has_no_control_characters,
           times_parse_in_every_form, last_number_without_a_unit_is_reported_with_its_likely_unit,
           values_are_formatted_readably, top_counts_leaves_flat_and_recursion_once,
           rows_of_equal_sums_are_sorted_by_name, folded_merges_equal_stacks_and_marks_the_kernel,
           flame_json_has_the_tree_in_drawing_order, the_heaviest_nodes_are_kept, name_cannot_close_the_script_element,
           diff_shows_both_sides, pprof_output_has_the_same_sums, types_are_chosen_by_name_or_part,
           series_sum_per_step_from_multiples_of_it, labels_and_values_are_listed, invalid_parameters_are_reported,
           a_format_is_answered_or_refused)
