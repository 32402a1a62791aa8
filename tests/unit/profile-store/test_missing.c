/* SPDX-License-Identifier: Apache-2.0 */
/* Unresolved samples: counted by reason when they are flushed, and listed by the benefit of an upload. */
#include <stdlib.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "common/program/metrics_write.h"
#include "profile-store/profile_store.h"
#include "profile-store/scan.h"
#include "symbol-index/index_load.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define T0 (INT64_C(20000) * 86400 * INT64_C(1000000000))
#define KNOWN 0x1000     /* in test objects: inside a function */
#define UNKNOWN 0x2000   /* in the segment, outside of functions */
#define OUTSIDE 0x900000 /* in no segment */

static char dir[TEMPORARY_DIR_BYTES];
static struct symbol_index *symbols;
static struct profile_store *store;

static void set_up(void)
{
        struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        _cleanup_free_ char *index = NULL, *profiles = NULL;
        struct error err;

        temporary_dir_create(dir, "missing");
        index = path_join(dir, "index");
        profiles = path_join(dir, "profiles");
        check_ok(symbol_index_open(index, false, &symbols, &err), &err);
        options.symbols = symbols;
        check_ok(profile_store_open(profiles, &options, &store, &err), &err);
}

static void tear_down(void)
{
        profile_store_close(store);
        symbol_index_close(symbols);
        temporary_dir_remove(dir);
}

static void flush(void)
{
        struct error err;

        check_ok(profile_store_flush(store, &err), &err);
}

static struct build_id id_of(const char *hex)
{
        struct build_id id;

        ck_assert(build_id_from_hex(&id, hex, strlen(hex)));
        return id;
}

static void mark(const char *hex, enum symbol_object_state state)
{
        const struct build_id id = id_of(hex);
        struct error err;

        check_ok(symbol_index_set_state(symbols, &id, state, "it is broken", NULL, &err), &err);
}

/* Symbols of an executable with one loaded segment; without a function if it is stripped. */
static void load(const char *hex, enum symbol_quality quality, bool stripped)
{
        struct symbol_range range = { KNOWN, KNOWN + 0x100, 0 };
        struct symbol_chain chain = { 0, 1 };
        struct symbol_table_frame frame = { 0 };
        struct symbol_function function = { .name = 1 };
        struct symbol_segment segment = { .file_offset = 0, .file_size = 0x4000, .address = 0 };
        char strings[] = "\0shown";
        struct symbol_table t = { .build_id = id_of(hex),
                                  .quality = quality,
                                  .is_complete = true,
                                  .segments = &segment,
                                  .segment_count = 1,
                                  .strings = strings,
                                  .string_bytes = sizeof strings };
        struct error err;
        bool replaced;
        uint64_t generation;

        if (!stripped) {
                t.ranges = &range;
                t.chains = &chain;
                t.frames = &frame;
                t.functions = &function;
                t.range_count = t.chain_count = t.frame_count = t.function_count = 1;
        }
        check_ok(symbol_table_check(&t, &err), &err);
        check_ok(symbol_index_load(symbols, &t, &replaced, &generation, &err), &err);
        ck_assert(replaced);
}

static void append(struct test_profile *t)
{
        static unsigned number;
        struct error err;

        number++;
        check_ok(profile_store_append(store, &t->p, hash_bytes128(&number, sizeof number), NULL, &err), &err);
        test_profile_deinit(t);
}

/* Stacks of two samples, each with one location, at consecutive addresses. */
static void ingest(const char *hex, uint64_t address, uint32_t count)
{
        struct test_profile t;

        test_profile_init(&t, hex, "/bin/x");
        for (uint32_t i = 0; i < count; i++) {
                uint32_t location = test_location(&t, address + i);

                test_sample(&t, T0, 2 * TEST_PROFILE_PERIOD, &location, 1, NULL);
        }
        append(&t);
}

static void ingest_named(const char *hex, uint64_t address, const char *file)
{
        struct test_profile t;
        uint32_t location;

        test_profile_init(&t, hex, "/bin/x");
        location = test_named_location(&t, true, address, "sent", file, *file ? 7 : 0);
        test_sample(&t, T0, 2 * TEST_PROFILE_PERIOD, &location, 1, NULL);
        append(&t);
}

static void ingest_without_address(const char *hex)
{
        struct test_profile t;
        struct profile_location l = { .kind = ADDRESS_NONE };
        struct error err;
        uint32_t location;

        test_profile_init(&t, hex, "/bin/x");
        l.mapping = t.mapping;
        check_ok(profile_add_location(&t.p, &l, &location, &err), &err);
        test_sample(&t, T0, 2 * TEST_PROFILE_PERIOD, &location, 1, NULL);
        append(&t);
}

/* ---- the metric ---------------------------------------------------------------------------- */

static long counted(const char *reason)
{
        _cleanup_buf_ struct buf out;
        char name[96];
        const char *at;

        buf_init(&out, MiB(1));
        metrics_write(&out);
        snprintf(name, sizeof name, "\ncairn_unresolved_frames_total{reason=\"%s\"} ", reason);
        at = strstr(buf_cstr(&out), name);
        ck_assert_msg(at, "no counter for %s", reason);
        return strtol(at + strlen(name), NULL, 10);
}

static void ingest_every_reason(void)
{
        mark("cccccc", OBJECT_PENDING);
        mark("dddddd", OBJECT_FAILED);
        load("eeeeee", QUALITY_NONE, true);
        load("ffffff", QUALITY_SYMTAB, false);
        test_load_symbols(symbols, "0a0a0a", QUALITY_SYMTAB, KNOWN, 1, "f", "f.c"); /* no segments are known */
        ingest("", 0x10, 9);
        ingest_without_address("aaaaaa");
        ingest("bbbbbb", 0x10, 2);
        ingest("cccccc", 0x10, 3);
        ingest("dddddd", 0x10, 4);
        ingest("eeeeee", 0x10, 5);
        ingest("ffffff", UNKNOWN, 6);
        ingest("ffffff", OUTSIDE, 7);
        ingest("0a0a0a", UNKNOWN, 8);
        ingest_named("0b0b0b", 0x10, "sent.c");
        ingest("ffffff", KNOWN, 10);
}

START_TEST(new_locations_without_frames_are_counted_by_reason)
{
        static const struct {
                const char *reason;
                long count;
        } want[] = {
                { "no_build_id", 9 }, { "no_address", 1 }, { "no_debuginfo", 2 },  { "pending", 3 }, { "failed", 4 },
                { "stripped", 5 },    { "uncovered", 6 },  { "not_in_object", 7 }, { "outside", 8 },
        };

        ingest_every_reason();
        for (size_t i = 0; i < sizeof want / sizeof *want; i++)
                ck_assert_msg(counted(want[i].reason) == 0, "%s is not 0 before the flush", want[i].reason);
        for (int round = 0; round < 2; round++) { /* locations that are already known are not counted again */
                flush();
                for (size_t i = 0; i < sizeof want / sizeof *want; i++)
                        ck_assert_msg(counted(want[i].reason) == want[i].count, "%s: %ld, want %ld", want[i].reason,
                                      counted(want[i].reason), want[i].count);
                ingest_every_reason();
        }
}
END_TEST

START_TEST(locations_with_frames_have_no_reason)
{
        _cleanup_buf_ struct buf out;

        ingest_every_reason();
        flush();
        buf_init(&out, MiB(1));
        metrics_write(&out);
        ck_assert_ptr_null(strstr(buf_cstr(&out), "reason=\"sender\""));
        ck_assert_ptr_null(strstr(buf_cstr(&out), "reason=\"resolved\""));
}
END_TEST

/* ---- useful uploads ------------------------------------------------------------------------ */

static const struct scan_filter everything = { .from_unix_ns = 0, .to_unix_ns = INT64_MAX };

static void expect(const struct scan_upload *u, const char *hex, enum symbol_state state, uint64_t locations)
{
        char got[BUILD_ID_HEX_MAX];

        ck_assert_str_eq(build_id_hex(&u->build_id, got), hex);
        ck_assert_str_eq(symbol_state_name(u->state), symbol_state_name(state));
        ck_assert_uint_eq(sample_count_round(u->samples), 2 * locations);
        ck_assert(!u->samples.are_stacks);
        ck_assert_uint_eq(u->locations, locations);
        ck_assert_int_eq(u->value, 2 * TEST_PROFILE_PERIOD * (int64_t)locations);
}

START_TEST(only_reasons_fixed_by_debuginfo_request_upload)
{
        struct store_scan *scan;
        struct scan_uploads u;
        struct error err;

        ingest_every_reason();
        for (int round = 0; round < 2; round++) { /* the head, then parts */
                check_ok(store_scan_begin(store, &scan, &err), &err);
                check_ok(store_scan_rank_uploads(scan, &everything, NULL, &u, &err), &err);
                ck_assert_uint_eq(sample_count_round(u.samples), 2 * (9 + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 1 + 10));
                ck_assert_str_eq(u.unit, "nanoseconds");
                ck_assert_uint_eq(u.missing_count, 5);
                expect(&u.missing[0], "0a0a0a", SYMBOL_OUTSIDE, 8);
                expect(&u.missing[1], "ffffff", SYMBOL_UNCOVERED, 6);
                expect(&u.missing[2], "eeeeee", SYMBOL_STRIPPED, 5);
                expect(&u.missing[3], "dddddd", SYMBOL_FAILED, 4);
                expect(&u.missing[4], "bbbbbb", SYMBOL_NO_DEBUGINFO, 2);
                ck_assert_uint_eq(u.poor_count, 1);
                expect(&u.poor[0], "ffffff", SYMBOL_RESOLVED, 10);
                ck_assert_int_eq(u.poor[0].quality, QUALITY_SYMTAB);
                store_scan_end(scan);
                flush();
        }
}
END_TEST

/* One profile has the number and the time of the same samples, in two periods; another type does not tell. */
START_TEST(samples_are_counted_once_by_the_type_with_most)
{
        struct profile_type number, slow, bytes;
        struct scan_missing *missing;
        struct test_profile t;
        struct store_scan *scan;
        uint32_t time, leaf;
        struct error err;
        size_t count;

        test_profile_init(&t, "bbbbbb", "/bin/x");
        leaf = test_location(&t, 0x1000);
        time = t.type;
        test_sample(&t, T0, 3 * TEST_PROFILE_PERIOD, &leaf, 1, NULL);
        number = (struct profile_type){ .id = test_string(&t, "process_cpu:samples:count:cpu:nanoseconds"),
                                        .unit = test_string(&t, "count") };
        check_ok(profile_add_type(&t.p, &number, &t.type, &err), &err);
        test_sample(&t, T0, 8, &leaf, 1, NULL);
        slow = t.p.types.items[time];
        slow.period *= 2;
        check_ok(profile_add_type(&t.p, &slow, &t.type, &err), &err);
        test_sample(&t, T0, 10 * TEST_PROFILE_PERIOD, &leaf, 1, NULL);
        bytes = (struct profile_type){ .id = test_string(&t, "memory:alloc_space:bytes:space:bytes"),
                                       .unit = test_string(&t, "bytes") };
        check_ok(profile_add_type(&t.p, &bytes, &t.type, &err), &err);
        for (int i = 0; i < 20; i++)
                test_sample(&t, T0 + i, 4096, &leaf, 1, NULL);
        append(&t);
        check_ok(store_scan_begin(store, &scan, &err), &err);
        check_ok(store_scan_list_missing(scan, &everything, &missing, &count, &err), &err);
        ck_assert_uint_eq(count, 1);
        ck_assert_uint_eq(sample_count_round(missing[0].samples), 8); /* 3 + 5 of them are timed */
        ck_assert(!missing[0].samples.are_stacks);
        store_scan_end(scan);
}
END_TEST

START_TEST(samples_of_an_unknown_period_add_their_stacks)
{
        struct profile_type unknown;
        struct scan_missing *missing;
        struct test_profile t;
        struct store_scan *scan;
        struct error err;
        uint32_t leaf;
        size_t count;

        test_profile_init(&t, "bbbbbb", "/bin/x");
        leaf = test_location(&t, 0x1000);
        test_sample(&t, T0, 2 * TEST_PROFILE_PERIOD, &leaf, 1, NULL);
        unknown = t.p.types.items[t.type];
        unknown.period = 0;
        check_ok(profile_add_type(&t.p, &unknown, &t.type, &err), &err);
        test_sample(&t, T0, 5, &leaf, 1, NULL);
        append(&t);
        check_ok(store_scan_begin(store, &scan, &err), &err);
        check_ok(store_scan_list_missing(scan, &everything, &missing, &count, &err), &err);
        ck_assert_uint_eq(sample_count_round(missing[0].samples), 3);
        ck_assert(missing[0].samples.are_stacks);
        store_scan_end(scan);
}
END_TEST

START_TEST(values_of_a_gauge_are_not_added_up)
{
        static const struct {
                const char *type, *unit;
        } cases[] = { { "memory:alloc_space:bytes:space:bytes", "bytes" },
                      { "memory:inuse_space:bytes:space:bytes", "" } };
        struct store_scan *scan;
        struct scan_uploads u;
        struct error err;

        load("ffffff", QUALITY_SYMTAB, false);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct scan_filter filter = { .from_unix_ns = INT64_MIN, .to_unix_ns = INT64_MAX };
                struct profile_type type;
                struct test_profile t;
                uint32_t leaf;

                test_profile_init(&t, "ffffff", "/bin/x");
                leaf = test_location(&t, UNKNOWN);
                type = (struct profile_type){ .id = test_string(&t, cases[i].type), .unit = test_string(&t, "bytes") };
                check_ok(profile_add_type(&t.p, &type, &t.type, &err), &err);
                for (int snapshot = 0; snapshot < 3; snapshot++)
                        test_sample(&t, T0 + snapshot, 4096, &leaf, 1, NULL);
                append(&t);
                flush();
                filter.type = cases[i].type;
                check_ok(store_scan_begin(store, &scan, &err), &err);
                check_ok(store_scan_rank_uploads(scan, &filter, NULL, &u, &err), &err);
                ck_assert_uint_eq(u.missing_count, 1);
                ck_assert_str_eq(u.unit, cases[i].unit);
                store_scan_end(scan);
        }
}
END_TEST

START_TEST(object_with_full_debuginfo_requests_no_upload)
{
        struct store_scan *scan;
        struct scan_uploads u;
        struct resymbolize_result result;
        struct error err;

        load("ffffff", QUALITY_SYMTAB, false);
        ingest("ffffff", UNKNOWN, 2);
        ingest("ffffff", KNOWN, 3);
        flush();
        load("ffffff", QUALITY_DWARF, false);
        check_ok(profile_store_resymbolize(store, &(struct resymbolize_request){ 0 }, &result, &err), &err);
        check_ok(store_scan_begin(store, &scan, &err), &err);
        check_ok(store_scan_rank_uploads(scan, &everything, NULL, &u, &err), &err);
        ck_assert_uint_eq(u.missing_count, 0);
        ck_assert_uint_eq(u.poor_count, 0);
        store_scan_end(scan);
}
END_TEST

START_TEST(object_is_listed_once_with_main_reason)
{
        struct test_profile t;
        struct store_scan *scan;
        struct scan_uploads u;
        struct error err;
        uint32_t stack[3];

        load("ffffff", QUALITY_SYMTAB, false);
        test_profile_init(&t, "ffffff", "/bin/x");
        for (uint32_t i = 0; i < 3; i++)
                stack[i] = test_location(&t, UNKNOWN + i);
        test_sample(&t, T0, 5, stack, 3, NULL);
        append(&t);
        flush();
        check_ok(store_scan_begin(store, &scan, &err), &err);
        check_ok(store_scan_rank_uploads(scan, &everything, NULL, &u, &err), &err);
        ck_assert_uint_eq(u.missing_count, 1);
        ck_assert_uint_eq(sample_count_round(u.missing[0].samples), 1);
        ck_assert_uint_eq(u.missing[0].locations, 3);
        ck_assert_int_eq(u.missing[0].value, 5);
        store_scan_end(scan);
        mark("ffffff", OBJECT_FAILED);
        ingest("ffffff", OUTSIDE, 50);
        ingest("dddddd", 0x10, 1);
        flush();
        mark("dddddd", OBJECT_FAILED);
        ingest("dddddd", 0x20, 2);
        flush();
        check_ok(store_scan_begin(store, &scan, &err), &err);
        check_ok(store_scan_rank_uploads(scan, &everything, NULL, &u, &err), &err);
        ck_assert_uint_eq(u.missing_count, 2);
        expect(&u.missing[0], "dddddd", SYMBOL_FAILED, 3);
        ck_assert_uint_eq(sample_count_round(u.missing[1].samples), 1);
        store_scan_end(scan);
}
END_TEST

START_TEST(sender_names_without_lines_request_upload)
{
        struct store_scan *scan;
        struct scan_uploads u;
        struct error err;

        ingest_named("aaaaaa", 0x10, "");
        ingest_named("bbbbbb", 0x10, "sent.c");
        ingest_named("", 0x10, "");
        check_ok(store_scan_begin(store, &scan, &err), &err);
        check_ok(store_scan_rank_uploads(scan, &everything, NULL, &u, &err), &err);
        ck_assert_uint_eq(u.missing_count, 0);
        ck_assert_uint_eq(u.poor_count, 1);
        expect(&u.poor[0], "aaaaaa", SYMBOL_SENDER, 1);
        store_scan_end(scan);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("missing", new_locations_without_frames_are_counted_by_reason,
                        locations_with_frames_have_no_reason, only_reasons_fixed_by_debuginfo_request_upload,
                        samples_are_counted_once_by_the_type_with_most, samples_of_an_unknown_period_add_their_stacks,
                        values_of_a_gauge_are_not_added_up, object_with_full_debuginfo_requests_no_upload,
                        object_is_listed_once_with_main_reason, sender_names_without_lines_request_upload)
