/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of querier.v1 at their limits: docs/formats/querier.md */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/proto/querier.pb-c.h"
#include "query/querier/parca_tree.h"
#include "query/querier/querier.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"

static struct store_fixture f;

static void set_up(void)
{
        store_fixture_begin(&f);
}

static void tear_down(void)
{
        store_fixture_end(&f);
}

static void append_labeled_value(int64_t value)
{
        static const char *const labels[] = { "namespace=production", "pod=p-1", "service_name=shop", NULL };
        struct test_profile t;
        struct error err;
        bool duplicate;
        uint32_t location;

        test_profile_init(&t, STORE_FIXTURE_ID, "app");
        location = test_location(&t, 0x10);
        test_sample(&t, STORE_FIXTURE_T0, value, &location, 1, labels);
        check_ok(profile_store_append(f.store, &t.p, store_fixture_batch_id(1), &duplicate, &err), &err);
        test_profile_deinit(&t);
}

/* Run a method with this memory limit for its response, which is kept. */
static enum status call_querier(const char *method, const void *request, struct arena *memory, struct error *err)
{
        const ProtobufCMessage *answer;
        struct work_meter meter;
        struct querier_input in = { .method = querier_find_method(method),
                                    .request = request,
                                    .now_unix_ns = STORE_FIXTURE_T0 + 1,
                                    .meter = &meter };

        work_meter_init(&meter, NULL, NULL);
        return querier_run(f.store, &in, memory, &answer, err);
}

static enum status call_with_room(const char *method, const void *request, struct error *err)
{
        struct arena memory;
        enum status st;

        arena_init(&memory, MiB(1));
        st = call_querier(method, request, &memory, err);
        arena_deinit(&memory);
        return st;
}

/* At every possible memory limit of the response, also between a label's name and its value. */
static size_t count_answers(const char *method, const void *request, size_t max_bytes)
{
        size_t answered = 0;

        for (size_t bytes = 64; bytes < max_bytes; bytes += 8) {
                struct arena memory;
                struct error err;
                enum status st;

                arena_init(&memory, bytes);
                st = call_querier(method, request, &memory, &err);
                ck_assert_msg(!st || st == ST_TOO_BIG, "%zu bytes: %s", bytes, err.text);
                ck_assert_msg(!st || !answered, "refused with %zu bytes, and answered with less", bytes);
                answered += !st;
                arena_deinit(&memory);
        }
        return answered;
}

START_TEST(response_over_memory_limit_is_refused)
{
        Querier__SeriesRequest series = QUERIER__SERIES_REQUEST__INIT;
        Querier__SelectSeriesRequest steps = QUERIER__SELECT_SERIES_REQUEST__INIT;
        char *by[] = { (char[]){ "namespace" }, (char[]){ "pod" } };

        append_labeled_value(1);
        ck_assert_uint_gt(count_answers("Series", &series, KiB(4)), 0);
        steps.profile_typeid = (char[]){ "process_cpu:cpu:nanoseconds:cpu:nanoseconds" };
        steps.label_selector = (char[]){ "{}" };
        steps.start = STORE_FIXTURE_T0 / 1000000 - 1000;
        steps.end = STORE_FIXTURE_T0 / 1000000 + 1000;
        steps.step = 1;
        steps.group_by = by;
        steps.n_group_by = 2;
        ck_assert_uint_gt(count_answers("SelectSeries", &steps, KiB(4)), 0);
}
END_TEST

START_TEST(too_many_selectors_are_refused)
{
        static const char *const methods[] = { "Series", "LabelNames" };
        Querier__SeriesRequest series = QUERIER__SERIES_REQUEST__INIT;
        Querier__LabelNamesRequest names = QUERIER__LABEL_NAMES_REQUEST__INIT;
        const void *requests[] = { &series, &names };
        char all[] = "{}", *selectors[101];
        struct error err;

        for (size_t i = 0; i < 101; i++)
                selectors[i] = all;
        series.matchers = names.matchers = selectors;
        for (size_t i = 0; i < 2; i++) {
                series.n_matchers = names.n_matchers = 100;
                check_ok(call_with_room(methods[i], requests[i], &err), &err);
                series.n_matchers = names.n_matchers = 101;
                ck_assert_int_eq(call_with_room(methods[i], requests[i], &err), ST_USAGE);
                ck_assert_str_eq(err.text, "matchers may be up to 100 selectors");
        }
}
END_TEST

/* Type labels do not form groups, but are part of every series. */
START_TEST(repetition_of_type_labels_is_limited)
{
        Querier__SelectSeriesRequest r = QUERIER__SELECT_SERIES_REQUEST__INIT;
        char name[] = "__name__", *by[15];
        struct error err;

        for (size_t i = 0; i < 15; i++)
                by[i] = name;
        r.profile_typeid = (char[]){ "process_cpu:cpu:nanoseconds:cpu:nanoseconds" };
        r.label_selector = (char[]){ "{}" };
        r.start = STORE_FIXTURE_T0 / 1000000 - 1000;
        r.end = STORE_FIXTURE_T0 / 1000000 + 1000;
        r.step = 1;
        r.group_by = by;
        r.n_group_by = 14;
        check_ok(call_with_room("SelectSeries", &r, &err), &err);
        r.n_group_by = 15;
        ck_assert_int_eq(call_with_room("SelectSeries", &r, &err), ST_USAGE);
        ck_assert_ptr_nonnull(strstr(err.text, "group_by may have up to 8 labels"));
}
END_TEST

START_TEST(sums_and_times_of_series_are_clamped)
{
        ParcaQuery__QueryRangeRequest r = PARCA_QUERY__QUERY_RANGE_REQUEST__INIT;
        ParcaQuery__Timestamp start = PARCA_QUERY__TIMESTAMP__INIT, end = PARCA_QUERY__TIMESTAMP__INIT;
        const ParcaQuery__QueryRangeResponse *graph;
        const ProtobufCMessage *answer;
        struct work_meter meter;
        struct querier_input in = { .method = querier_find_parca_method("QueryRange"),
                                    .request = &r,
                                    .now_unix_ns = STORE_FIXTURE_T0 + 1,
                                    .meter = &meter };
        struct arena memory;
        struct error err;

        append_labeled_value(INT64_MAX);
        work_meter_init(&meter, NULL, NULL);
        arena_init(&memory, MiB(1));
        r.query = (char[]){ "process_cpu:cpu:nanoseconds:cpu:nanoseconds{}" };
        r.start = &start;
        r.end = &end;
        start.seconds = STORE_FIXTURE_T0 / 1000000000 - 1;
        end.seconds = start.seconds + 2;
        check_ok(querier_run(f.store, &in, &memory, &answer, &err), &err);
        graph = (const ParcaQuery__QueryRangeResponse *)answer;
        ck_assert_uint_eq(graph->n_series, 1);
        ck_assert_uint_ge(graph->series[0]->n_samples, 1);
        ck_assert_int_eq(graph->series[0]->samples[0]->value, INT64_MAX);
        start.seconds = -INT64_C(9000000000000000);
        end.seconds = INT64_C(9000000000000000);
        ck_assert_int_eq(querier_run(f.store, &in, &memory, &answer, &err), ST_USAGE);
        arena_deinit(&memory);
}
END_TEST

#define TREE_NODES (WORK_CHECK_UNITS / 64 + 100) /* the meter is checked once while their sizes are computed */

/* Other queries end in the meantime. */
static enum status release_memory(void *context, struct error *err)
{
        struct memory_account *account = context;

        (void)err;
        account->limit = MiB(64);
        return ST_OK;
}

/* Names that are not UTF-8 are copied when a node's size is computed, and again when it is encoded. */
START_TEST(tree_names_match_computed_sizes)
{
        static char name[1000];
        struct query_frame frame = { .function = name, .linkage_name = "", .file = "", .mapping = "" };
        const struct loaded_sides l = { .frames.items = &frame, .frames.count = 1, .side_count = 1 };
        struct drawing d = { .nodes = calloc(TREE_NODES, sizeof *d.nodes), .count = TREE_NODES };
        struct memory_account account = { .limit = 0 };
        struct work_meter meter;
        struct arena memory;
        struct error err = { 0 };
        struct querier_call c = { .q = { .meter = &meter, .err = &err }, .memory = &memory };
        ProtobufCBinaryData tree = { 0 };

        ck_assert_ptr_nonnull(d.nodes);
        memset(name, 0xff, sizeof name - 1);
        d.nodes[0].parent = UINT32_MAX;
        for (uint32_t i = 1; i < TREE_NODES; i++)
                d.nodes[i].depth = 1;
        work_meter_init(&meter, release_memory, &account);
        buf_init(&c.scratch, LIMIT_NAME_BYTES * 3);
        arena_init_budget(&memory, MiB(64), MEMORY_QUERIES);
        memory_set_account(&account);
        ck_assert_int_eq(parca_tree_encode(&c, &l, &d, &tree), ST_TOO_BIG);
        account.limit = MiB(64);
        ck_assert_int_eq(parca_tree_encode(&c, &l, &d, &tree), ST_OK);
        ck_assert_uint_gt(tree.len, (TREE_NODES - 1) * 3 * (sizeof name - 1));
        arena_deinit(&memory);
        memory_set_account(NULL);
        buf_deinit(&c.scratch);
        free(d.nodes);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("querier", response_over_memory_limit_is_refused, too_many_selectors_are_refused,
                        repetition_of_type_labels_is_limited, sums_and_times_of_series_are_clamped,
                        tree_names_match_computed_sizes)
