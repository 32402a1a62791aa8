/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums by stack and by group, compared with a plain loop over the same samples: random filters over parts of several
 * days and the head, labels for which only later parts have a column or none, missing labels, long and short runs, sums
 * over 64 bits, and enough rows for several threads. Also the memory limit of a query.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/scan_groups.h"
#include "query/query.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"

#define ROUNDS 6
#define SAMPLES 40000 /* of a round */
#define STACKS 500
#define FILTERS 60
#define GROUP_FILTERS 6
#define LABELS_EACH 32 /* divides LIMIT_LABEL_COLUMNS, one of which is for service.name */

struct made_sample {
        int64_t time_ns, value;
        uint32_t stack;
        char service[12], late[12]; /* "": missing; late: from the fourth round on */
};

static struct store_fixture fixture;
static struct made_sample made[ROUNDS * SAMPLES + LIMIT_LABEL_COLUMNS / LABELS_EACH];
static size_t made_count;
static bool small_values; /* small enough that sums do not exceed 64 bits */
static uint64_t state = 88172645463325252u;

static uint32_t draw_below(uint32_t n)
{
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return (uint32_t)(state >> 32) % n;
}

/* Some rounds have few label sets and stacks, and therefore long runs. */
static struct made_sample make_sample(unsigned round)
{
        bool few = round % 2;
        struct made_sample s = {
                .time_ns = STORE_FIXTURE_T0 + (int64_t)draw_below(3 * 86400) * 1000000000 + draw_below(1000) * 1000,
                .value = small_values || draw_below(50) ? (int64_t)draw_below(100)
                         : draw_below(2)                ? INT64_MAX
                                                        : INT64_MIN,
                .stack = draw_below(few ? 3 : draw_below(STACKS) + 1),
        };

        if (few && draw_below(20))
                s.value = 10;
        if (draw_below(10))
                snprintf(s.service, sizeof s.service, "s%u", draw_below(few ? 2 : 30));
        if (round >= 3 && draw_below(3))
                snprintf(s.late, sizeof s.late, "l%u", draw_below(5));
        return s;
}

static void append_round(unsigned round)
{
        uint32_t locations[STACKS];
        struct test_profile t;
        struct error err;

        test_profile_init(&t, STORE_FIXTURE_ID, "/usr/bin/app");
        for (uint32_t i = 0; i < STACKS; i++)
                locations[i] = test_location(&t, 0x1000 + i);
        for (unsigned i = 0; i < SAMPLES; i++) {
                struct made_sample s = make_sample(round);
                char service[32], late[32];
                const char *labels[3];
                unsigned count = 0;

                snprintf(service, sizeof service, "service.name=%s", s.service);
                snprintf(late, sizeof late, "late=%s", s.late);
                if (*s.service)
                        labels[count++] = service;
                if (*s.late)
                        labels[count++] = late;
                labels[count] = NULL;
                test_sample(&t, s.time_ns, s.value, &locations[s.stack], 1, labels);
                made[made_count++] = s;
        }
        check_ok(profile_store_append(fixture.store, &t.p, store_fixture_batch_id(round), NULL, &err), &err);
        test_profile_deinit(&t);
}

static bool is_first_char(void *context, const char *text, size_t n)
{
        return n > 1 && text[1] == *(const char *)context;
}

static bool matches_matcher(const struct label_matcher *m, const struct made_sample *s)
{
        const char *value = strcmp(m->key, "late") == 0 ? s->late : strcmp(m->key, "none") == 0 ? "" : s->service;
        bool is_equal = strcmp(m->value, value) == 0;

        switch (m->op) {
        case LABEL_EQUAL:
                return is_equal;
        case LABEL_NOT_EQUAL:
                return !is_equal;
        case LABEL_REGEX:
                return m->match(m->context, value, strlen(value));
        default:
                return !m->match(m->context, value, strlen(value));
        }
}

static bool is_selected(const struct scan_filter *f, const struct made_sample *s)
{
        bool selected = s->time_ns >= f->from_unix_ns && s->time_ns < f->to_unix_ns;

        for (size_t i = 0; selected && i < f->matcher_count; i++)
                selected = matches_matcher(&f->matchers[i], s);
        return selected;
}

struct expected {
        __int128 value;
        uint64_t samples;
};

static int64_t saturate_sum(__int128 v)
{
        return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

static void compare_sums(const struct scan_filter *filter)
{
        static struct expected expected[STACKS];
        const struct scan_stacks *stacks;
        struct stack_sums sums;
        struct store_scan *scan;
        struct error err;
        size_t count = 0;

        memset(expected, 0, sizeof expected);
        for (size_t i = 0; i < made_count; i++) {
                if (is_selected(filter, &made[i])) {
                        expected[made[i].stack].value += made[i].value;
                        expected[made[i].stack].samples++;
                }
        }
        for (size_t i = 0; i < STACKS; i++)
                count += expected[i].samples != 0;
        check_ok(store_scan_begin(fixture.store, &scan, &err), &err);
        check_ok(store_scan_sum(scan, filter, &sums, &err), &err);
        check_ok(store_scan_resolve(scan, &sums, &stacks, &err), &err);
        ck_assert_uint_eq(sums.count, count);
        for (size_t i = 0; i < sums.count; i++) {
                uint64_t stack = stacks->locations[stacks->indexes[stacks->first[i]]].address - 0x1000;

                ck_assert_uint_lt(stack, STACKS);
                ck_assert_uint_eq(sums.items[i].samples, expected[stack].samples);
                ck_assert_int_eq(sums.items[i].value, saturate_sum(expected[stack].value));
                ck_assert(!i || memcmp(sums.items[i - 1].id, sums.items[i].id, sizeof sums.items[i].id) < 0);
        }
        stack_sums_deinit(&sums);
        store_scan_end(scan);
}

static struct label_matcher make_matcher(void)
{
        static const char *const keys[] = { "service.name", "service_name", "late", "none" };
        static const char *const values[] = { "s1", "s7", "l2", "", "absent" };
        static const char first[] = "123";

        return (struct label_matcher){ .key = keys[draw_below(4)],
                                       .op = (enum label_match)draw_below(4),
                                       .value = values[draw_below(5)],
                                       .match = is_first_char,
                                       .context = (void *)(uintptr_t)&first[draw_below(3)] };
}

static void compare_random_filters(unsigned count, void compare(const struct scan_filter *filter))
{
        for (unsigned i = 0; i < count; i++) {
                struct label_matcher matchers[] = { make_matcher(), make_matcher() };
                int64_t from = STORE_FIXTURE_T0 + (int64_t)draw_below(4 * 86400) * 1000000000;
                struct scan_filter filter = { .to_unix_ns = INT64_MAX,
                                              .matchers = matchers,
                                              .matcher_count = draw_below(3) };

                if (draw_below(2)) {
                        filter.from_unix_ns = from;
                        filter.to_unix_ns = from + (int64_t)draw_below(2 * 86400) * 1000000000 + 500;
                }
                compare(&filter);
        }
}

/* All rounds but the last are in parts. */
static void append_rounds(void)
{
        for (unsigned round = 0; round < ROUNDS; round++) {
                append_round(round);
                if (round != ROUNDS - 1)
                        store_fixture_flush(&fixture);
        }
}

START_TEST(sums_agree_with_plain_loop)
{
        made_count = 0;
        store_fixture_begin(&fixture);
        append_rounds();
        compare_random_filters(FILTERS, compare_sums);
        store_fixture_flush(&fixture);
        compare_random_filters(FILTERS, compare_sums);
        store_fixture_end(&fixture);
}
END_TEST

/* ---- groups ---- */

#define SERVICES 31 /* "" and s0 to s29 */
#define LATES 6     /* "" and l0 to l4 */
#define STEP_NS (INT64_C(3600) * 1000000000)
#define STEPS 50 /* fewer than there are in the samples */

static struct expected groups[SERVICES][LATES][STACKS];

/* The number in "s7" or "l7" plus 1; 0 for "". */
static size_t number_text(const char *text)
{
        return *text ? (size_t)strtoul(text + 1, NULL, 10) + 1 : 0;
}

static void expect_groups(const struct scan_filter *filter, const struct scan_group_by *by)
{
        bool service = false, late = false;

        memset(groups, 0, sizeof groups);
        for (size_t i = 0; i < by->label_count; i++) {
                service |= strncmp(by->labels[i], "service", 7) == 0;
                late |= strcmp(by->labels[i], "late") == 0;
        }
        for (size_t i = 0; i < made_count; i++) {
                const struct made_sample *s = &made[i];
                size_t item = by->totals    ? 0
                              : by->step_ns ? (size_t)((s->time_ns - by->first_unix_ns) / by->step_ns)
                                            : s->stack;
                struct expected *e;

                if (!is_selected(filter, s) ||
                    (by->step_ns && !by->totals && (s->time_ns < by->first_unix_ns || item >= by->step_count)))
                        continue;
                e = &groups[service ? number_text(s->service) : 0][late ? number_text(s->late) : 0][item];
                e->value += s->value;
                e->samples++;
        }
}

/* Subtract the sums found from the expected ones: nothing may remain. */
static void check_groups(const struct scan_group_by *by, const struct scan_group_sums *sums,
                         const struct scan_stacks *stacks)
{
        for (size_t i = 0; i < sums->count; i++) {
                const struct scan_group_sum *sum = &sums->items[i];
                const struct scan_group *g = &sums->groups[sum->group];
                size_t service = 0, late = 0, item = sum->item;
                struct expected *e;

                ck_assert_uint_eq(g->label_count, by->label_count);
                for (uint32_t k = 0; k < g->label_count; k++) {
                        if (strcmp(g->labels[k].name, "service_name") == 0)
                                service = number_text(g->labels[k].value);
                        else if (strcmp(g->labels[k].name, "late") == 0)
                                late = number_text(g->labels[k].value);
                        else
                                ck_assert_str_eq(g->labels[k].value, "");
                }
                if (stacks)
                        item = stacks->locations[stacks->indexes[stacks->first[sum->item]]].address - 0x1000;
                e = &groups[service][late][item];
                e->value -= sum->value;
                e->samples -= sum->samples;
                ck_assert(!i || sum[-1].group < sum->group ||
                          (sum[-1].group == sum->group && sum[-1].item < sum->item));
        }
        for (size_t i = 0; i < sizeof groups / sizeof groups[0][0][0]; i++) {
                const struct expected *e = &groups[0][0][0] + i;

                ck_assert_msg(!e->value && !e->samples, "%zu: %" PRId64 " in %" PRIu64 " samples differ", i,
                              (int64_t)e->value, e->samples);
        }
}

static void compare_groups_of(const struct scan_filter *filter, const struct scan_group_by *by)
{
        const struct scan_stacks *stacks = NULL;
        struct scan_group_sums sums;
        struct store_scan *scan;
        struct error err;

        expect_groups(filter, by);
        check_ok(store_scan_begin(fixture.store, &scan, &err), &err);
        check_ok(store_scan_sum_groups(scan, filter, by, &sums, &err), &err);
        if (!by->totals && !by->step_ns)
                check_ok(store_scan_resolve(scan, &sums.stacks, &stacks, &err), &err);
        check_groups(by, &sums, stacks);
        scan_group_sums_deinit(&sums);
        store_scan_end(scan);
}

static void compare_random_groups(const struct scan_filter *filter)
{
        static const char *const labels[] = { "none", "service.name", "late", "service_name" };
        size_t first = draw_below(4);
        struct scan_group_by by = { .labels = labels + first,
                                    .label_count = draw_below((uint32_t)(4 - first) + 1),
                                    .series = draw_below(3) == 0 };

        if (first == 1 && by.label_count == 3)
                by.label_count = 2; /* one label twice */
        if (draw_below(3) == 0) {
                by.totals = true;
        } else if (draw_below(2)) {
                by.first_unix_ns = STORE_FIXTURE_T0 + STEP_NS / 2 + (draw_below(2) ? 0 : 1);
                by.step_ns = STEP_NS;
                by.step_count = STEPS;
        }
        compare_groups_of(filter, &by);
}

/* Samples with so many labels in total that later ones get no column. */
static void append_label_columns(void)
{
        const char *labels[LABELS_EACH + 2] = { 0 };
        struct test_profile t;
        uint32_t location;
        struct error err;

        test_profile_init(&t, STORE_FIXTURE_ID, "/usr/bin/app");
        location = test_location(&t, 0x1000);
        for (unsigned i = 0; i < LIMIT_LABEL_COLUMNS; i += LABELS_EACH) {
                char names[LABELS_EACH][24];

                for (unsigned k = 0; k < LABELS_EACH; k++) {
                        snprintf(names[k], sizeof names[k], "a%03u=x", i + k);
                        labels[k] = names[k];
                }
                labels[LABELS_EACH - (i == 0)] = "service.name=s1";
                test_sample(&t, STORE_FIXTURE_T0, 1, &location, 1, labels);
                made[made_count++] = (struct made_sample){ .time_ns = STORE_FIXTURE_T0, .value = 1, .service = "s1" };
        }
        check_ok(profile_store_append(fixture.store, &t.p, store_fixture_batch_id(ROUNDS), NULL, &err), &err);
        test_profile_deinit(&t);
        store_fixture_flush(&fixture);
}

static void compare_groups_of_rounds(bool fill_columns)
{
        made_count = 0;
        small_values = true;
        store_fixture_begin(&fixture);
        if (fill_columns)
                append_label_columns();
        append_rounds();
        compare_random_filters(GROUP_FILTERS, compare_random_groups);
        store_fixture_flush(&fixture);
        compare_random_filters(GROUP_FILTERS, compare_random_groups);
        store_fixture_end(&fixture);
}

START_TEST(group_sums_agree_with_plain_loop)
{
        compare_groups_of_rounds(false);
}
END_TEST

START_TEST(group_sums_include_labels_without_a_column)
{
        compare_groups_of_rounds(true);
}
END_TEST

static void append_zones(unsigned batch, const char *const *labels)
{
        struct test_profile t;
        uint32_t location;
        struct error err;

        test_profile_init(&t, STORE_FIXTURE_ID, "/usr/bin/app");
        location = test_location(&t, 0x1000);
        test_sample(&t, STORE_FIXTURE_T0, 1, &location, 1, labels);
        check_ok(profile_store_append(fixture.store, &t.p, store_fixture_batch_id(batch), NULL, &err), &err);
        test_profile_deinit(&t);
}

/* In the newest queued batch, since files of other programs may have duplicate keys. */
static void repeat_label(const char *name, const char *as)
{
        struct batch *b = fixture.store->head[fixture.store->head_count - 1];
        unsigned found = 0;

        for (uint32_t i = 0; i < b->label_set_count; i++) {
                for (uint32_t k = 0; k < b->label_sets[i].count; k++) {
                        struct batch_label *l = (struct batch_label *)&b->label_sets[i].labels[k];

                        if (strcmp(l->name, name) == 0) {
                                l->name = as;
                                found++;
                        }
                }
        }
        ck_assert_uint_eq(found, 1);
}

/* As a selector with zone="b" takes them. */
START_TEST(last_value_of_repeated_label_is_grouped)
{
        const struct scan_filter all = { .from_unix_ns = 0, .to_unix_ns = INT64_MAX };
        struct scan_group_by by = { .all_labels = true, .totals = true };
        struct scan_group_sums sums;
        struct store_scan *scan;
        struct error err;
        size_t zones = 0;

        made_count = 0;
        store_fixture_begin(&fixture);
        append_label_columns();
        append_zones(ROUNDS + 1, (const char *const[]){ "zone=a", "zonf=b", NULL });
        repeat_label("zonf", "zone");
        append_zones(ROUNDS + 2, (const char *const[]){ "zone=b", NULL });
        store_fixture_flush(&fixture);
        check_ok(store_scan_begin(fixture.store, &scan, &err), &err);
        check_ok(store_scan_sum_groups(scan, &all, &by, &sums, &err), &err);
        for (size_t i = 0; i < sums.count; i++) {
                const struct scan_group *g = &sums.groups[sums.items[i].group];

                if (!g->label_count || strcmp(g->labels[0].name, "zone") != 0)
                        continue;
                zones++;
                ck_assert_uint_eq(g->label_count, 1);
                ck_assert_str_eq(g->labels[0].value, "b");
                ck_assert_int_eq(sums.items[i].value, 2);
        }
        ck_assert_uint_eq(zones, 1);
        scan_group_sums_deinit(&sums);
        store_scan_end(scan);
        store_fixture_end(&fixture);
}
END_TEST

/* ---- memory ---- */

static const char *get_top_param(void *context, const char *name)
{
        (void)context;
        return strcmp(name, "from") == 0 ? "0" : strcmp(name, "to") == 0 ? "1900000000" : NULL;
}

static enum status ask_top(struct error *err)
{
        const struct query_input in = { .param = get_top_param, .now_unix_ns = STORE_FIXTURE_T0 };
        struct query_answer about;
        struct buf answer;
        enum status st;

        buf_init(&answer, SIZE_MAX / 2);
        st = query_run(fixture.store, "top", &in, &answer, &about, err);
        buf_deinit(&answer);
        return st;
}

START_TEST(query_over_memory_limit_suggests_remedies)
{
        struct test_profile t;
        struct error err;

        store_fixture_begin(&fixture);
        test_profile_init(&t, STORE_FIXTURE_ID, "/usr/bin/app");
        for (uint32_t i = 0; i < 30000; i++) {
                uint32_t location = test_location(&t, 0x1000 + i);

                test_sample(&t, STORE_FIXTURE_T0, 1, &location, 1, (const char *const[]){ NULL });
        }
        check_ok(profile_store_append(fixture.store, &t.p, store_fixture_batch_id(0), NULL, &err), &err);
        test_profile_deinit(&t);
        store_fixture_flush(&fixture);
        check_ok(memory_budget_set_limit((size_t)512 << 20, &err), &err);
        check_ok(ask_top(&err), &err);
        ck_assert_uint_eq(memory_use_held(MEMORY_QUERIES), 0);

        check_ok(memory_set_query_limits(1 << 20, 0, &err), &err);
        ck_assert_int_eq(ask_top(&err), ST_TOO_BIG);
        ck_assert_ptr_nonnull(strstr(err.text, "--query-memory"));
        ck_assert_ptr_nonnull(strstr(err.text, "shorter time range"));
        ck_assert_uint_eq(memory_use_held(MEMORY_QUERIES), 0);

        check_ok(memory_set_query_limits(0, (size_t)64 << 20, &err), &err);
        ck_assert_uint_eq(memory_use_ceiling(MEMORY_QUERIES), (size_t)64 << 20);
        check_ok(ask_top(&err), &err);
        ck_assert_int_eq(memory_set_query_limits((size_t)65 << 20, (size_t)64 << 20, &err), ST_USAGE);
        ck_assert_int_eq(memory_set_query_limits(0, (size_t)513 << 20, &err), ST_USAGE);
        ck_assert_int_eq(memory_set_query_limits(1000, 0, &err), ST_USAGE);
        store_fixture_end(&fixture);
}
END_TEST

TEST_SUITE("scan random", sums_agree_with_plain_loop, group_sums_agree_with_plain_loop,
           group_sums_include_labels_without_a_column, last_value_of_repeated_label_is_grouped,
           query_over_memory_limit_suggests_remedies)
