/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends random honest and hostile batches to one store. Every acknowledged sample must be in the tables after one
 * flush, also if the store was closed and replayed its queue before; nothing may be quarantined; every written file
 * must be readable; rejections must be ST_TOO_BIG or ST_BAD_DATA, and never apply to honest senders.
 *
 * CAIRN_PROPERTY_SECONDS (default 6) and CAIRN_PROPERTY_SEED set the duration and the random seed.
 */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "profile-store/profile_store.h"
#include "profile-store/scan.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define DAY_NS INT64_C(86400000000000)
#define T0 (INT64_C(20000) * DAY_NS)
#define BATCHES_A_FLUSH 8

static uint64_t state;

static uint64_t next_random(void)
{
        state ^= state << 13;
        state ^= state >> 7;
        return state ^= state << 17;
}

static uint32_t random_below(uint32_t n)
{
        return (uint32_t)(next_random() % n);
}

/* Mostly small, sometimes at or just over a limit. */
static uint32_t size_around(uint32_t limit)
{
        switch (random_below(8)) {
        case 0:
                return limit - random_below(2);
        case 1:
                return limit + random_below(2);
        case 2:
                return random_below(limit + 1);
        default:
                return random_below(4) + 1;
        }
}

static int64_t extreme_number(void)
{
        static const int64_t numbers[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT32_MAX, INT64_MAX - 1, INT64_MAX };

        return numbers[random_below(sizeof numbers / sizeof *numbers)];
}

static char dir[TEMPORARY_DIR_BYTES];
static struct profile_store *store;

static void ok(enum status st, const struct error *err)
{
        ck_assert_msg(st == ST_OK, "seed state %llx: %s", (unsigned long long)state, err->text);
}

static void open_store(void)
{
        const struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        struct error err;

        ok(profile_store_open(dir, &options, &store, &err), &err);
}

/* Any bytes but NUL, sometimes invalid UTF-8. */
static uint32_t random_text(struct profile *p, uint32_t size, bool *ok_ret)
{
        _cleanup_free_ char *text = malloc((size_t)size + 1);
        uint32_t ret = 0;

        ck_assert_ptr_nonnull(text);
        for (uint32_t i = 0; i < size; i++)
                text[i] = (char)(random_below(3) ? 'a' + random_below(26) : 1 + random_below(255));
        *ok_ret &= profile_add_string(p, text, size, &ret, NULL) == ST_OK;
        return ret;
}

static uint32_t random_location(struct test_profile *t, uint32_t line_count, bool *ok_ret)
{
        struct profile_location l = { .mapping = random_below(4) ? t->mapping : PROFILE_NONE,
                                      .kind = ADDRESS_OBJECT,
                                      .address = random_below(2) ? next_random() : 0x1000 + random_below(64) };
        uint32_t ret = 0, unused;

        l.first_line = t->p.lines.count;
        l.line_count = line_count;
        for (uint32_t i = 0; i < line_count; i++) {
                struct profile_line line = { .line = extreme_number() };

                line.function = random_text(&t->p, i ? 3 : size_around(256), ok_ret);
                line.file = random_text(&t->p, 3, ok_ret);
                *ok_ret &= profile_add_line(&t->p, &line, &unused, NULL) == ST_OK;
        }
        *ok_ret &= profile_add_location(&t->p, &l, &ret, NULL) == ST_OK;
        return ret;
}

static void hostile_samples(struct test_profile *t, bool *ok_ret)
{
        uint32_t samples = size_around(LIMIT_BATCH_LABEL_KEYS), days = size_around(LIMIT_BATCH_DATES);
        uint32_t frames = size_around(LIMIT_STACK_FRAMES), key_bytes = size_around(LIMIT_LABEL_KEY_BYTES);
        _cleanup_free_ uint32_t *locations = calloc(frames + 1, sizeof *locations);
        uint32_t stack = 0, unused;
        bool wide = random_below(2), late = random_below(4) == 0;

        ck_assert_ptr_nonnull(locations);
        for (uint32_t i = 0; i < frames; i++)
                locations[i] = i < 8 ? random_location(t, size_around(LIMIT_LINES_PER_LOCATION), ok_ret)
                                     : locations[random_below(8)];
        *ok_ret &= profile_add_stack(&t->p, locations, frames, &stack, NULL) == ST_OK;
        t->p.types.items[0].period = extreme_number();
        for (uint32_t i = 0; i < samples; i++) {
                struct profile_sample s = { .stack = stack,
                                            .value = extreme_number(),
                                            .duration_ns = extreme_number() };
                struct profile_label label = { 0 };

                s.value += !s.value; /* 0 is no sample, in no format */
                s.time_unix_ns = late ? extreme_number() : T0 + (i % days) * DAY_NS;
                if (wide || !i) {
                        label.key = random_text(&t->p, key_bytes, ok_ret);
                        label.value = random_text(&t->p, size_around(64), ok_ret);
                        s.label_count = 1;
                        *ok_ret &= profile_add_label_set(&t->p, &label, 1, &s.first_label, NULL) == ST_OK;
                }
                *ok_ret &= profile_add_sample(&t->p, &s, &unused, NULL) == ST_OK;
        }
        profile_set_missing_times(&t->p, T0);
}

/* Returns the number of acknowledged samples. */
static uint64_t send_one(uint64_t number)
{
        bool honest = random_below(2), made = true;
        struct test_profile t;
        struct error err = { 0 };
        uint64_t samples;
        uint32_t leaf;
        enum status st;

        test_profile_init(&t, ID, "/bin/x");
        if (honest) {
                leaf = test_location(&t, 0x1000 + random_below(4096));
                for (uint32_t i = 0, n = 1 + random_below(4); i < n; i++)
                        test_sample(&t, T0 + random_below(3) * DAY_NS, 1, &leaf, 1,
                                    (const char *const[]){ "host=a", NULL });
        } else {
                hostile_samples(&t, &made);
        }
        samples = t.p.samples.count;
        st = made ? profile_store_append(store, &t.p, hash_bytes128(&number, sizeof number), NULL, &err) : ST_TOO_BIG;
        test_profile_deinit(&t);
        if (honest)
                ok(st, &err);
        ck_assert_msg(st == ST_OK || st == ST_TOO_BIG || st == ST_BAD_DATA, "%s", err.text);
        return st ? 0 : samples;
}

static void read_all_files(void)
{
        const struct scan_filter all = { INT64_MIN, INT64_MAX, NULL, NULL, 0 };
        const struct scan_stacks *stacks;
        struct store_scan *scan;
        struct stack_sums sums;
        struct error err;

        ok(store_scan_begin(store, &scan, &err), &err);
        ok(store_scan_sum(scan, &all, &sums, &err), &err);
        ok(store_scan_resolve(scan, &sums, &stacks, &err), &err);
        stack_sums_deinit(&sums);
        store_scan_end(scan);
}

START_TEST(every_acknowledged_sample_is_in_the_tables_after_one_flush)
{
        const char *seconds = getenv("CAIRN_PROPERTY_SECONDS"), *seed = getenv("CAIRN_PROPERTY_SEED");
        int64_t end = monotonic_ns() + (seconds ? atoll(seconds) : 6) * INT64_C(1000000000);
        uint64_t acknowledged = 0, number = 0;
        struct profile_store_stat stat;
        struct error err;

        state = seed ? strtoull(seed, NULL, 0) | 1 : 20261122;
        temporary_dir_create(dir, "property");
        open_store();
        do {
                for (int i = 0; i < BATCHES_A_FLUSH; i++)
                        acknowledged += send_one(number++);
                if (random_below(2)) {
                        profile_store_close(store);
                        open_store();
                }
                ok(profile_store_flush(store, &err), &err);
                ok(profile_store_stat(store, &stat, &err), &err);
                ck_assert_msg(stat.health.quarantined_batches == 0, "quarantined: %s", stat.health.quarantine_reason);
                ck_assert_uint_eq(stat.sample_rows, acknowledged);
                ck_assert_uint_eq(stat.queued_batches, 0);
        } while (monotonic_ns() < end);
        read_all_files();
        ck_assert_uint_gt(acknowledged, 0);
        profile_store_close(store);
        temporary_dir_remove(dir);
}
END_TEST

TEST_SUITE("store property", every_acknowledged_sample_is_in_the_tables_after_one_flush)
