/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/limits.h"
#include "profile-formats/profile_type.h"
#include "scrape/counter_delta.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"

/* A profile of allocations; numbers of strings, locations and stacks depend on the order in which they are added. */
struct heap {
        struct test_profile t;
        uint32_t allocated, in_use;
};

static void heap_begin(struct heap *h)
{
        test_profile_init(&h->t, "00112233445566778899aabbccddeeff00112233", "/bin/shop");
        ck_assert_int_eq(profile_type_add_id(&h->t.p, "memory:alloc_space:bytes:space:bytes", 1, &h->allocated, NULL),
                         ST_OK);
        ck_assert_int_eq(profile_type_add_id(&h->t.p, "memory:inuse_space:bytes:space:bytes", 1, &h->in_use, NULL),
                         ST_OK);
}

static void heap_add(struct heap *h, uint32_t type, uint64_t address, int64_t value, const char *label)
{
        uint32_t location = test_location(&h->t, address);

        h->t.type = type;
        test_sample(&h->t, 1, value, &location, 1, (const char *const[]){ label, NULL });
}

/* Replace `last` by the profile's totals, and free the profile. */
static enum counter_change heap_end(struct heap *h, struct counter_totals *last, char *out, size_t size)
{
        struct counter_totals now = { 0 };
        enum counter_change change;
        size_t n = 0;

        ck_assert_int_eq(counter_totals_subtract(last, &h->t.p, &now, &change, NULL), ST_OK);
        counter_totals_deinit(last);
        *last = now;
        out[0] = 0;
        for (uint32_t i = 0; i < h->t.p.samples.count; i++) {
                const struct profile_sample *s = &h->t.p.samples.items[i];

                n += (size_t)snprintf(out + n, size - n, "%s%s=%lld", i ? " " : "",
                                      s->type == h->allocated ? "allocated" : "in_use", (long long)s->value);
        }
        test_profile_deinit(&h->t);
        return change;
}

START_TEST(deltas_of_counters_and_gauges)
{
        struct counter_totals totals = { 0 };
        struct heap h;
        char text[200];

        heap_begin(&h);
        heap_add(&h, h.allocated, 0x10, 100, NULL);
        heap_add(&h, h.in_use, 0x10, 7, NULL);
        ck_assert_int_eq(heap_end(&h, &totals, text, sizeof text), COUNTER_FIRST);
        ck_assert_str_eq(text, "in_use=7");

        heap_begin(&h); /* another order, so other numbers */
        heap_add(&h, h.allocated, 0x20, 5, NULL);
        heap_add(&h, h.allocated, 0x10, 130, NULL);
        heap_add(&h, h.in_use, 0x10, 3, NULL);
        ck_assert_int_eq(heap_end(&h, &totals, text, sizeof text), COUNTER_ADDED);
        ck_assert_str_eq(text, "allocated=5 allocated=30 in_use=3");

        heap_begin(&h);
        heap_add(&h, h.allocated, 0x10, 130, NULL);
        heap_add(&h, h.allocated, 0x20, 5, NULL);
        ck_assert_int_eq(heap_end(&h, &totals, text, sizeof text), COUNTER_ADDED);
        ck_assert_str_eq(text, "");
        counter_totals_deinit(&totals);
}
END_TEST

START_TEST(totals_are_kept_by_label_set)
{
        struct counter_totals totals = { 0 };
        struct heap h;
        char text[200];

        heap_begin(&h);
        heap_add(&h, h.allocated, 0x10, 1, "bytes=16");
        heap_add(&h, h.allocated, 0x10, 2, "bytes=32");
        (void)heap_end(&h, &totals, text, sizeof text);
        ck_assert_uint_eq(totals.count, 2);
        heap_begin(&h);
        heap_add(&h, h.allocated, 0x10, 5, "bytes=32");
        heap_add(&h, h.allocated, 0x10, 1, "bytes=16");
        heap_add(&h, h.allocated, 0x10, 4, "bytes=32");
        ck_assert_int_eq(heap_end(&h, &totals, text, sizeof text), COUNTER_ADDED);
        ck_assert_str_eq(text, "allocated=7");
        counter_totals_deinit(&totals);
}
END_TEST

START_TEST(restarted_process_counts_from_zero)
{
        struct counter_totals totals = { 0 };
        struct heap h;
        char text[200];

        heap_begin(&h);
        heap_add(&h, h.allocated, 0x10, 100, NULL);
        heap_add(&h, h.allocated, 0x20, 100, NULL);
        (void)heap_end(&h, &totals, text, sizeof text);
        heap_begin(&h); /* one is smaller, though the other is larger */
        heap_add(&h, h.allocated, 0x10, 99, NULL);
        heap_add(&h, h.allocated, 0x20, 500, NULL);
        ck_assert_int_eq(heap_end(&h, &totals, text, sizeof text), COUNTER_RESET);
        ck_assert_str_eq(text, "allocated=99 allocated=500");
        heap_begin(&h); /* one is missing */
        heap_add(&h, h.allocated, 0x20, 600, NULL);
        ck_assert_int_eq(heap_end(&h, &totals, text, sizeof text), COUNTER_RESET);
        ck_assert_str_eq(text, "allocated=600");
        heap_begin(&h); /* all are missing */
        ck_assert_int_eq(heap_end(&h, &totals, text, sizeof text), COUNTER_RESET);
        ck_assert_str_eq(text, "");
        heap_begin(&h);
        heap_add(&h, h.allocated, 0x20, 3, NULL);
        ck_assert_int_eq(heap_end(&h, &totals, text, sizeof text), COUNTER_ADDED);
        ck_assert_str_eq(text, "allocated=3");
        counter_totals_deinit(&totals);
}
END_TEST

START_TEST(invalid_totals_are_refused)
{
        static const int64_t values[][2] = { { -1, 1 }, { INT64_MAX, 1 } };
        struct counter_totals totals = { 0 }, now = { 0 };
        enum counter_change change;
        struct error err;
        struct heap h;
        char text[200];

        heap_begin(&h);
        heap_add(&h, h.allocated, 0x10, 4, NULL);
        (void)heap_end(&h, &totals, text, sizeof text);
        for (size_t i = 0; i < 2; i++) {
                heap_begin(&h);
                heap_add(&h, h.allocated, 0x10, values[i][0], NULL);
                heap_add(&h, h.allocated, 0x10, values[i][1], NULL);
                ck_assert_int_eq(counter_totals_subtract(&totals, &h.t.p, &now, &change, &err), ST_BAD_DATA);
                ck_assert_ptr_null(now.items);
                test_profile_deinit(&h.t);
        }
        heap_begin(&h);
        heap_add(&h, h.allocated, 0x10, 6, NULL);
        ck_assert_int_eq(heap_end(&h, &totals, text, sizeof text), COUNTER_ADDED);
        ck_assert_str_eq(text, "allocated=2");
        ck_assert_uint_ge(memory_use_held(MEMORY_CACHES), sizeof(struct counter_total));
        counter_totals_deinit(&totals);
        ck_assert_uint_eq(memory_use_held(MEMORY_CACHES), 0);
        ck_assert_uint_eq(memory_use_held(MEMORY_INGEST), 0);
}
END_TEST

/* A terabyte of names if each line's names were read separately. */
START_TEST(long_names_shared_by_many_frames_are_cheap)
{
        struct counter_totals totals = { 0 };
        _cleanup_free_ char *name = malloc(LIMIT_NAME_BYTES);
        struct profile_line line;
        struct heap h;
        char text[200];

        memset(name, 'x', LIMIT_NAME_BYTES - 1);
        name[LIMIT_NAME_BYTES - 1] = 0;
        for (int i = 0; i < 2; i++) {
                uint32_t first;

                heap_begin(&h);
                line = (struct profile_line){ .function = test_string(&h.t, name),
                                              .linkage_name = test_string(&h.t, name + 1),
                                              .file = test_string(&h.t, name + 2) };
                for (uint32_t k = 0; k < LIMIT_LINES_PER_LOCATION; k++) {
                        uint32_t number;

                        ck_assert_int_eq(profile_add_line(&h.t.p, &line, &number, NULL), ST_OK);
                        first = k ? first : number;
                }
                for (uint32_t k = 0; k < 20000; k++) {
                        const struct profile_location l = { .mapping = PROFILE_NONE,
                                                            .kind = ADDRESS_NONE,
                                                            .first_line = first,
                                                            .line_count = LIMIT_LINES_PER_LOCATION };
                        uint32_t number;

                        ck_assert_int_eq(profile_add_location(&h.t.p, &l, &number, NULL), ST_OK);
                }
                heap_add(&h, h.allocated, 0x10, 5 + i, NULL);
                ck_assert_int_eq(heap_end(&h, &totals, text, sizeof text), i ? COUNTER_ADDED : COUNTER_FIRST);
        }
        ck_assert_str_eq(text, "allocated=1");
        counter_totals_deinit(&totals);
}
END_TEST

TEST_SUITE("counter_delta", deltas_of_counters_and_gauges, totals_are_kept_by_label_set,
           restarted_process_counts_from_zero, invalid_totals_are_refused, long_names_shared_by_many_frames_are_cheap)
