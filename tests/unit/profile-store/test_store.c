/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "profile-store/profile_store.h"
#include "profile-store/scan.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define OTHER_ID "ffeeddccbbaa99887766554433221100ffeeddcc"
#define DAY_NS INT64_C(86400000000000)
#define T0 (INT64_C(20000) * DAY_NS + INT64_C(1000000000)) /* 2024-10-04T00:00:01Z */

static char dir[TEMPORARY_DIR_BYTES];
static struct symbol_index *symbols;
static struct profile_store *store;

static void open_store(bool read_only)
{
        const struct profile_store_options options = {
                .size = sizeof options, .flush_interval_ms = UINT64_MAX, .symbols = symbols, .read_only = read_only
        };
        _cleanup_free_ char *path = path_join(dir, "profiles");
        struct error err;

        check_ok(profile_store_open(path, &options, &store, &err), &err);
}

static void reopen(void)
{
        profile_store_close(store);
        open_store(false);
}

static void set_up(void)
{
        _cleanup_free_ char *index = NULL;
        struct error err;

        temporary_dir_create(dir, "store");
        index = path_join(dir, "index");
        check_ok(symbol_index_open(index, false, &symbols, &err), &err);
        open_store(false);
}

static void tear_down(void)
{
        profile_store_close(store);
        symbol_index_close(symbols);
        temporary_dir_remove(dir);
}

static bool append(struct test_profile *t, const char *batch)
{
        struct error err;
        bool duplicate = false;

        check_ok(profile_store_append(store, &t->p, hash_bytes128(batch, strlen(batch)), &duplicate, &err), &err);
        return duplicate;
}

static void flush(void)
{
        struct error err;

        check_ok(profile_store_flush(store, &err), &err);
}

/* Two samples of one stack and one of another, at T0, T0 + 1 s and T0 + 1 day. */
static void append_three(const char *batch)
{
        struct test_profile t;
        uint32_t stack[2], root;

        test_profile_init(&t, ID, "/usr/bin/worker");
        root = test_location(&t, 0x1010);
        stack[0] = test_location(&t, 0x1110);
        stack[1] = root;
        test_sample(&t, T0, 10, stack, 2, (const char *const[]){ "service.name=api", "comm=post", NULL });
        test_sample(&t, T0 + 1000000000, 20, stack, 2, (const char *const[]){ "service.name=api", NULL });
        test_sample(&t, T0 + DAY_NS, 40, &root, 1, (const char *const[]){ "service.name=web", NULL });
        ck_assert(!append(&t, batch));
        test_profile_deinit(&t);
}

static const struct scan_filter everything = { .from_unix_ns = 0, .to_unix_ns = INT64_MAX };

static struct stack_sums sum(const struct scan_filter *filter, int64_t *total, uint64_t *samples)
{
        struct store_scan *scan;
        struct stack_sums sums;
        struct error err;

        *total = 0;
        *samples = 0;
        check_ok(store_scan_begin(store, &scan, &err), &err);
        check_ok(store_scan_sum(scan, filter, &sums, &err), &err);
        for (size_t i = 0; i < sums.count; i++) {
                *total += sums.items[i].value;
                *samples += sums.items[i].samples;
        }
        store_scan_end(scan);
        return sums;
}

static void expect_total(const struct scan_filter *filter, int64_t want_total, uint64_t want_samples,
                         size_t want_stacks)
{
        int64_t total;
        uint64_t samples;
        struct stack_sums sums = sum(filter, &total, &samples);

        ck_assert_int_eq(total, want_total);
        ck_assert_uint_eq(samples, want_samples);
        ck_assert_uint_eq(sums.count, want_stacks);
        stack_sums_deinit(&sums);
}

/* "leaf;...;root" of all stacks, sorted, one per line; each frame is "function@file:line". */
static char *folded(const struct scan_filter *filter)
{
        struct store_scan *scan;
        struct stack_sums sums;
        const struct scan_stacks *stacks;
        struct error err;
        struct buf out;
        char *lines[64];
        size_t n = 0;

        check_ok(store_scan_begin(store, &scan, &err), &err);
        check_ok(store_scan_sum(scan, filter, &sums, &err), &err);
        check_ok(store_scan_resolve(scan, &sums, &stacks, &err), &err);
        ck_assert_uint_eq(stacks->count, sums.count);
        for (size_t i = 0; i < stacks->count; i++) {
                buf_init(&out, 1 << 20);
                for (size_t k = stacks->first[i]; k < stacks->first[i + 1]; k++) {
                        const struct scan_location *l = &stacks->locations[stacks->indexes[k]];

                        if (!l->frame_count)
                                buf_printf(&out, "%s+0x%llx(%s);", l->mapping, (unsigned long long)l->address,
                                           l->state);
                        for (uint32_t f = 0; f < l->frame_count; f++)
                                buf_printf(&out, "%s@%s:%lld%s;", l->frames[f].function, l->frames[f].file,
                                           (long long)l->frames[f].line, l->frames[f].inlined ? "i" : "");
                }
                buf_printf(&out, " %lld\n", (long long)sums.items[i].value);
                lines[n++] = strdup(buf_cstr(&out));
                buf_deinit(&out);
        }
        for (size_t i = 0; i < n; i++) {
                for (size_t k = i + 1; k < n; k++) {
                        if (strcmp(lines[k], lines[i]) < 0) {
                                char *swap = lines[i];

                                lines[i] = lines[k];
                                lines[k] = swap;
                        }
                }
        }
        buf_init(&out, 1 << 20);
        for (size_t i = 0; i < n; i++) {
                buf_append_str(&out, lines[i]);
                free(lines[i]);
        }
        stack_sums_deinit(&sums);
        store_scan_end(scan);
        buf_cstr(&out);
        return (char *)out.data;
}

static void expect_folded(const char *want)
{
        _cleanup_free_ char *got = folded(&everything);

        ck_assert_str_eq(got, want);
}

static struct profile_store_stat stat_of(void)
{
        struct profile_store_stat s;
        struct error err;

        check_ok(profile_store_stat(store, &s, &err), &err);
        return s;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void append_one(const char *batch, const char *id, uint64_t address)
{
        struct test_profile t;
        struct error err;
        uint32_t leaf;

        test_profile_init(&t, id, "/bin/x");
        leaf = test_location(&t, address);
        test_sample(&t, T0, 1, &leaf, 1, NULL);
        check_ok(profile_store_append(store, &t.p, hash_bytes128(batch, strlen(batch)), NULL, &err), &err);
        test_profile_deinit(&t);
}

START_TEST(samples_are_equal_in_head_in_part_and_after_reopening)
{
        static const char raw[] = "/usr/bin/worker+0x1010(no_debuginfo); 40\n"
                                  "/usr/bin/worker+0x1110(no_debuginfo);/usr/bin/worker+0x1010(no_debuginfo); 30\n";

        set_up();
        append_three("a");
        expect_total(&everything, 70, 3, 2);
        expect_folded(raw);
        reopen();
        expect_total(&everything, 70, 3, 2);
        expect_folded(raw);
        flush();
        ck_assert_uint_eq(stat_of().queued_batches, 0);
        ck_assert_uint_eq(stat_of().queue_disk_bytes, 0);
        expect_total(&everything, 70, 3, 2);
        expect_folded(raw);
        reopen();
        expect_total(&everything, 70, 3, 2);
        expect_folded(raw);
        tear_down();
}
END_TEST

START_TEST(resent_batch_counts_once)
{
        struct test_profile t;
        uint32_t leaf;

        set_up();
        test_profile_init(&t, ID, "/bin/x");
        leaf = test_location(&t, 0x1000);
        test_sample(&t, T0, 7, &leaf, 1, NULL);
        ck_assert(!append(&t, "a"));
        ck_assert(append(&t, "a"));
        flush();
        ck_assert(append(&t, "a"));
        reopen();
        ck_assert(append(&t, "a"));
        ck_assert(!append(&t, "b"));
        expect_total(&everything, 14, 2, 1);
        test_profile_deinit(&t);
        tear_down();
}
END_TEST

START_TEST(filters_select_by_time_type_and_labels_in_head_and_parts)
{
        const struct label_matcher api = { .key = "service.name", .op = LABEL_EQUAL, .value = "api" };
        const struct label_matcher not_api = { .key = "service_name", .op = LABEL_NOT_EQUAL, .value = "api" };
        const struct label_matcher no_comm = { .key = "comm", .op = LABEL_EQUAL, .value = "" };
        const struct scan_filter by_api = { 0, INT64_MAX, NULL, &api, 1 };
        const struct scan_filter by_not_api = { 0, INT64_MAX, NULL, &not_api, 1 };
        const struct label_matcher both[] = { api, no_comm };
        const struct scan_filter by_both = { 0, INT64_MAX, NULL, both, 2 };
        const struct scan_filter half_open = { T0, T0 + 1000000000, NULL, NULL, 0 };
        const struct scan_filter other_type = { 0, INT64_MAX, "memory:alloc:bytes:space:bytes", NULL, 0 };

        set_up();
        append_three("a");
        for (int round = 0; round < 2; round++) {
                expect_total(&by_api, 30, 2, 1);
                expect_total(&by_not_api, 40, 1, 1);
                expect_total(&by_both, 20, 1, 1);
                expect_total(&half_open, 10, 1, 1);
                expect_total(&other_type, 0, 0, 0);
                flush();
        }
        tear_down();
}
END_TEST

START_TEST(matchers_of_type_components_select_samples)
{
        static const struct {
                const char *key, *value;
        } matching[] = {
                { "__profile_type__", "process_cpu:cpu:nanoseconds:cpu:nanoseconds" },
                { "__name__", "process_cpu" },
                { "__type__", "cpu" },
                { "__unit__", "nanoseconds" },
                { "__period_type__", "cpu" },
                { "__period_unit__", "nanoseconds" },
        };

        set_up();
        append_three("a");
        for (int round = 0; round < 2; round++) {
                for (size_t i = 0; i < sizeof matching / sizeof *matching; i++) {
                        const struct label_matcher same = { matching[i].key, LABEL_EQUAL, matching[i].value, NULL,
                                                            NULL };
                        const struct label_matcher other = { matching[i].key, LABEL_EQUAL, "memory", NULL, NULL };
                        const struct label_matcher not_same = { matching[i].key, LABEL_NOT_EQUAL, matching[i].value,
                                                                NULL, NULL };
                        const struct label_matcher none = { matching[i].key, LABEL_EQUAL, "", NULL, NULL };

                        expect_total(&(struct scan_filter){ 0, INT64_MAX, NULL, &same, 1 }, 70, 3, 2);
                        expect_total(&(struct scan_filter){ 0, INT64_MAX, NULL, &other, 1 }, 0, 0, 0);
                        expect_total(&(struct scan_filter){ 0, INT64_MAX, NULL, &not_same, 1 }, 0, 0, 0);
                        expect_total(&(struct scan_filter){ 0, INT64_MAX, NULL, &none, 1 }, 0, 0, 0);
                }
                flush();
        }
        tear_down();
}
END_TEST

START_TEST(label_names_and_values_are_limited_to_time_range)
{
        set_up();
        append_three("a");
        for (int round = 0; round < 2; round++) {
                struct store_scan *scan;
                struct scan_names names;
                struct error err;

                check_ok(store_scan_begin(store, &scan, &err), &err);
                const struct scan_filter later = { T0 + 1, INT64_MAX, NULL, NULL, 0 };
                const struct label_matcher web = { .key = "service_name", .op = LABEL_EQUAL, .value = "web" };
                const struct scan_filter of_web = { 0, INT64_MAX, NULL, &web, 1 };
                int64_t from, to;

                check_ok(store_scan_list_label_names(scan, &everything, &names, &err), &err);
                ck_assert_uint_eq(names.count, 2);
                ck_assert_str_eq(names.items[0], "comm");
                ck_assert_str_eq(names.items[1], "service_name");
                check_ok(store_scan_list_label_names(scan, &later, &names, &err), &err);
                ck_assert_uint_eq(names.count, 1);
                check_ok(store_scan_list_label_names(scan, &of_web, &names, &err), &err);
                ck_assert_uint_eq(names.count, 1); /* that has no comm */
                ck_assert(store_scan_get_time_range(scan, &from, &to));
                ck_assert_int_eq(from, T0);
                ck_assert(to >= T0 + DAY_NS && to < T0 + DAY_NS + 1000000); /* statistics are of milliseconds */
                check_ok(store_scan_list_label_values(scan, "service.name", &everything, &names, &err), &err);
                ck_assert_uint_eq(names.count, 2);
                ck_assert_str_eq(names.items[0], "api");
                ck_assert_str_eq(names.items[1], "web");
                check_ok(store_scan_list_types(scan, &everything, &names, &err), &err);
                ck_assert_uint_eq(names.count, 1);
                ck_assert_str_eq(names.items[0], "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
                store_scan_end(scan);
                flush();
        }
        tear_down();
}
END_TEST

START_TEST(late_symbols_rewrite_only_locations)
{
        struct resymbolize_result result;
        struct profile_store_stat before, after;
        struct build_id id;
        struct error err;

        set_up();
        append_three("a");
        flush();
        before = stat_of();
        ck_assert_uint_eq(before.unresolved_locations, 2);
        test_load_symbols(symbols, ID, QUALITY_DWARF, 0x1000, 4, "work", "/src/work.c");
        ck_assert(build_id_from_hex(&id, OTHER_ID, strlen(OTHER_ID)));
        check_ok(profile_store_resymbolize(store, &(struct resymbolize_request){ .ids = &id, .count = 1 }, &result,
                                           &err),
                 &err);
        ck_assert_uint_eq(result.locations_seen, 0);
        ck_assert(build_id_from_hex(&id, ID, strlen(ID)));
        check_ok(profile_store_resymbolize(store, &(struct resymbolize_request){ .ids = &id, .count = 1 }, &result,
                                           &err),
                 &err);
        ck_assert_uint_eq(result.locations_seen, 2);
        ck_assert_uint_eq(result.locations_changed, 2);
        ck_assert_uint_eq(result.files_rewritten, 1);
        after = stat_of();
        ck_assert_uint_eq(after.unresolved_locations, 0);
        ck_assert_uint_eq(after.location_rows, before.location_rows);
        ck_assert_uint_eq(after.sample_files, before.sample_files);
        expect_folded("work_0_inner@/src/work.c:11i;work_0@/src/work.c:10; 40\n"
                      "work_1_inner@/src/work.c:21i;work_1@/src/work.c:20;"
                      "work_0_inner@/src/work.c:11i;work_0@/src/work.c:10; 30\n");
        check_ok(profile_store_resymbolize(store, &(struct resymbolize_request){ 0 }, &result, &err), &err);
        ck_assert_uint_eq(result.locations_seen, 2);
        ck_assert_uint_eq(result.locations_changed, 0);
        ck_assert_uint_eq(result.files_rewritten, 0);
        reopen();
        ck_assert_uint_eq(stat_of().unresolved_locations, 0);
        tear_down();
}
END_TEST

static void check_resymbolize_without_file(bool is_missing)
{
        static const char first[] = "profiles/tables/locations/part-00000000000000000001-00000000000000000001.parquet";
        _cleanup_free_ char *path = NULL;
        struct resymbolize_result result;
        struct build_id id;
        struct error err;

        set_up();
        append_one("a", OTHER_ID, 0x3000);
        flush();
        append_one("b", ID, 0x1000);
        flush();
        path = path_join(dir, first);
        ck_assert_int_eq(is_missing ? unlink(path) : truncate(path, 100), 0);
        test_load_symbols(symbols, ID, QUALITY_DWARF, 0x1000, 4, "work", "/src/work.c");
        check_ok(profile_store_resymbolize(store, &(struct resymbolize_request){ 0 }, &result, &err), &err);
        ck_assert_uint_eq(result.files_skipped, 1);
        ck_assert_uint_eq(result.locations_changed, 1);
        ck_assert_uint_eq(result.files_rewritten, 1);
        ck_assert_uint_eq(stat_of().unresolved_locations, 1);
        ck_assert(build_id_from_hex(&id, ID, strlen(ID)));
        check_ok(profile_store_resymbolize(store, &(struct resymbolize_request){ .ids = &id, .count = 1 }, &result,
                                           &err),
                 &err);
        ck_assert_uint_eq(result.locations_seen, 1);
        ck_assert_uint_eq(result.locations_changed, 0);
        /* The statistics of the damaged file exclude this object, so it is not opened. */
        ck_assert_uint_eq(result.files_skipped, 0);
        ck_assert_uint_eq(result.files_read, 1);
        tear_down();
}

START_TEST(a_damaged_file_of_locations_does_not_stop_the_others_from_being_resymbolized)
{
        check_resymbolize_without_file(false);
}
END_TEST

START_TEST(a_missing_file_of_locations_does_not_stop_the_others_from_being_resymbolized)
{
        check_resymbolize_without_file(true);
}
END_TEST

START_TEST(a_dry_run_counts_what_would_change_and_writes_nothing)
{
        struct resymbolize_request request = { .dry_run = true };
        struct resymbolize_result result;
        struct profile_store_stat before;
        struct error err;

        set_up();
        append_three("a");
        flush();
        before = stat_of();
        test_load_symbols(symbols, ID, QUALITY_DWARF, 0x1000, 4, "work", "/src/work.c");
        check_ok(profile_store_resymbolize(store, &request, &result, &err), &err);
        ck_assert_uint_eq(result.locations_changed, 2);
        ck_assert_uint_eq(result.files_rewritten, 1);
        ck_assert_uint_eq(result.before[SYMBOL_NO_DEBUGINFO], 2);
        ck_assert_uint_eq(result.after[SYMBOL_NO_DEBUGINFO], 0);
        ck_assert_uint_eq(result.after[SYMBOL_RESOLVED], 2);
        ck_assert_uint_eq(stat_of().unresolved_locations, 2);
        ck_assert_uint_eq(stat_of().bytes, before.bytes);
        tear_down();
}
END_TEST

START_TEST(only_objects_indexed_since_a_time_are_resymbolized)
{
        struct resymbolize_request request = { .indexed_since_unix_s = INT64_MAX };
        struct resymbolize_result result;
        struct build_id id;
        struct error err;

        set_up();
        append_one("a", OTHER_ID, 0x3000);
        append_one("b", ID, 0x1000);
        flush();
        test_load_symbols(symbols, ID, QUALITY_DWARF, 0x1000, 4, "work", "/src/work.c");
        check_ok(profile_store_resymbolize(store, &request, &result, &err), &err);
        ck_assert_uint_eq(result.locations_seen, 0);
        request.indexed_since_unix_s = 1; /* the other object was never indexed */
        ck_assert(build_id_from_hex(&id, OTHER_ID, strlen(OTHER_ID)));
        request.ids = &id;
        request.count = 1;
        check_ok(profile_store_resymbolize(store, &request, &result, &err), &err);
        ck_assert_uint_eq(result.locations_seen, 0);
        request.count = 0;
        check_ok(profile_store_resymbolize(store, &request, &result, &err), &err);
        ck_assert_uint_eq(result.locations_seen, 1);
        ck_assert_uint_eq(result.locations_changed, 1);
        tear_down();
}
END_TEST

/* All memory except the floors of flush and re-symbolization is used by others. */
static void take_all_memory(struct memory_reservation *held, enum memory_use use)
{
        *held = (struct memory_reservation){ .use = use };
        for (size_t n = memory_use_ceiling(use); n > 1000; n /= 2)
                while (!memory_reserve(held, n, NULL))
                        ;
}

START_TEST(resymbolization_without_free_memory_proceeds_in_smaller_steps_or_says_so)
{
        struct memory_reservation held[MEMORY_USES], own;
        struct resymbolize_result result;
        struct error err;
        enum status st;

        set_up();
        for (int i = 0; i < 8; i++) {
                char name[16];

                snprintf(name, sizeof name, "%d", i);
                append_one(name, ID, 0x1000 + 16u * (unsigned)i);
                flush();
        }
        test_load_symbols(symbols, ID, QUALITY_DWARF, 0x1000, 8, "work", "/src/work.c");
        check_ok(memory_budget_set_limit(LIMIT_MEMORY_LEAST_BYTES, &err), &err);
        for (enum memory_use use = MEMORY_CONNECTIONS; use < MEMORY_USES; use++)
                if (use != MEMORY_FLUSH && use != MEMORY_RESYMBOLIZE)
                        take_all_memory(&held[use], use);
        take_all_memory(&own, MEMORY_RESYMBOLIZE);
        st = profile_store_resymbolize(store, &(struct resymbolize_request){ 0 }, &result, &err);
        ck_assert_int_eq(st, ST_BUSY); /* not even the floor is available */
        memory_shrink(&own, own.bytes - KiB(64));
        check_ok(profile_store_resymbolize(store, &(struct resymbolize_request){ 0 }, &result, &err), &err);
        ck_assert_uint_eq(result.files_skipped, 0);
        ck_assert_uint_eq(result.locations_changed, 8);
        memory_release(&own);
        ck_assert_uint_eq(memory_use_held(MEMORY_RESYMBOLIZE), 0);
        ck_assert_uint_eq(stat_of().unresolved_locations, 0);
        tear_down();
}
END_TEST

START_TEST(head_is_resolved_at_scan_and_at_flush)
{
        static const char want[] = "work_0_inner@/src/work.c:11i;work_0@/src/work.c:10; 40\n"
                                   "work_1_inner@/src/work.c:21i;work_1@/src/work.c:20;"
                                   "work_0_inner@/src/work.c:11i;work_0@/src/work.c:10; 30\n";

        set_up();
        test_load_symbols(symbols, ID, QUALITY_DWARF, 0x1000, 4, "work", "/src/work.c");
        append_three("a");
        expect_folded(want);
        flush();
        expect_folded(want);
        ck_assert_uint_eq(stat_of().unresolved_locations, 0);
        tear_down();
}
END_TEST

START_TEST(sender_frames_are_replaced_by_lines_of_the_object)
{
        struct test_profile t;
        struct resymbolize_result result;
        struct error err;
        uint32_t leaf;

        set_up();
        test_profile_init(&t, ID, "[kernel]");
        leaf = test_named_location(&t, true, 0x1010, "vfs_read", "", 0);
        test_sample(&t, T0, 1, &leaf, 1, NULL);
        leaf = test_named_location(&t, true, 0x1110, "main.run", "run.go", 7);
        test_sample(&t, T0, 2, &leaf, 1, NULL);
        leaf = test_named_location(&t, false, 0, "eval", "page.js", 3);
        test_sample(&t, T0, 4, &leaf, 1, NULL);
        append(&t, "a");
        test_profile_deinit(&t);
        flush();
        expect_folded("eval@page.js:3; 4\nmain.run@run.go:7; 2\nvfs_read@:0; 1\n");
        ck_assert_uint_eq(stat_of().unresolved_locations, 0);
        test_load_symbols(symbols, ID, QUALITY_DWARF, 0x1000, 4, "k", "/src/k.c");
        check_ok(profile_store_resymbolize(store, &(struct resymbolize_request){ 0 }, &result, &err), &err);
        ck_assert_uint_eq(result.locations_changed, 2);
        expect_folded("eval@page.js:3; 4\nk_0_inner@/src/k.c:11i;k_0@/src/k.c:10; "
                      "1\nk_1_inner@/src/k.c:21i;k_1@/src/k.c:20; 2\n");
        tear_down();
}
END_TEST

START_TEST(stacks_and_locations_are_written_once)
{
        set_up();
        append_three("a");
        flush();
        append_three("b");
        append_three("c");
        flush();
        ck_assert_uint_eq(stat_of().sample_rows, 9);
        ck_assert_uint_eq(stat_of().stack_rows, 2);
        ck_assert_uint_eq(stat_of().location_rows, 2);
        reopen();
        append_three("d");
        flush();
        ck_assert_uint_eq(stat_of().stack_rows, 2);
        ck_assert_uint_eq(stat_of().location_rows, 2);
        expect_total(&everything, 280, 12, 2);
        tear_down();
}
END_TEST

START_TEST(labels_over_column_limit_are_stored_in_map)
{
        const struct label_matcher late = { .key = "late", .op = LABEL_EQUAL, .value = "here" };
        const struct scan_filter by_late = { 0, INT64_MAX, NULL, &late, 1 };
        struct test_profile t;
        struct store_scan *scan;
        struct scan_names names;
        struct error err;
        uint32_t leaf;

        set_up();
        test_profile_init(&t, ID, "/bin/x");
        leaf = test_location(&t, 0x1000);
        for (int i = 0; i < 256; i++) {
                char label[32];

                snprintf(label, sizeof label, "key%d=v", i);
                test_sample(&t, T0, 1, &leaf, 1, (const char *const[]){ label, NULL });
        }
        append(&t, "a");
        test_profile_deinit(&t);
        flush();
        test_profile_init(&t, ID, "/bin/x");
        leaf = test_location(&t, 0x1000);
        test_sample(&t, T0, 1000, &leaf, 1, (const char *const[]){ "late=here", "key7=v", NULL });
        append(&t, "b");
        test_profile_deinit(&t);
        flush();
        expect_total(&by_late, 1000, 1, 1);
        check_ok(store_scan_begin(store, &scan, &err), &err);
        check_ok(store_scan_list_label_values(scan, "late", &everything, &names, &err), &err);
        ck_assert_uint_eq(names.count, 1);
        ck_assert_str_eq(names.items[0], "here");
        check_ok(store_scan_list_label_names(scan, &everything, &names, &err), &err);
        ck_assert_uint_eq(names.count, 257);
        store_scan_end(scan);
        tear_down();
}
END_TEST

START_TEST(a_full_queue_refuses_until_it_is_flushed)
{
        const struct profile_store_options options = { .size = sizeof options,
                                                       .flush_interval_ms = UINT64_MAX,
                                                       .max_queued_bytes = 1 };
        _cleanup_free_ char *path = NULL;
        struct test_profile t;
        struct error err;
        uint32_t leaf;

        set_up();
        path = path_join(dir, "profiles");
        profile_store_close(store);
        check_ok(profile_store_open(path, &options, &store, &err), &err);
        append_three("a");
        test_profile_init(&t, ID, "/bin/x");
        leaf = test_location(&t, 0x1000);
        test_sample(&t, T0, 7, &leaf, 1, NULL);
        ck_assert_int_eq(profile_store_append(store, &t.p, hash_bytes128("b", 1), NULL, &err), ST_BUSY);
        flush();
        ck_assert(!append(&t, "b"));
        expect_total(&everything, 77, 4, 3);
        test_profile_deinit(&t);
        tear_down();
}
END_TEST

START_TEST(only_one_process_writes_and_others_read_what_is_acknowledged)
{
        const struct profile_store_options write = { .size = sizeof write, .flush_interval_ms = UINT64_MAX };
        _cleanup_free_ char *path = NULL;
        struct profile_store *second, *writer;
        struct error err;

        set_up();
        path = path_join(dir, "profiles");
        ck_assert_int_eq(profile_store_open(path, &write, &second, &err), ST_BUSY);
        append_three("a");
        flush();
        append_three("b");
        writer = store;
        open_store(true);
        expect_total(&everything, 140, 6, 2);
        second = store;
        store = writer;
        flush();
        append_three("c");
        store = second;
        expect_total(&everything, 210, 9, 2);
        ck_assert_int_eq(profile_store_flush(store, &err), ST_USAGE);
        profile_store_close(store);
        store = writer;
        tear_down();
}
END_TEST

/* The newest segment of the queue; owned. */
static char *find_newest_segment(void)
{
        _cleanup_free_ char *queue = path_join(dir, "profiles/queue");
        _cleanup_closedir_ DIR *d = opendir(queue);
        char newest[NAME_MAX + 1] = "";
        struct dirent *e;

        ck_assert_ptr_nonnull(d);
        while ((e = readdir(d)))
                if (strstr(e->d_name, ".queue") && strcmp(e->d_name, newest) > 0)
                        snprintf(newest, sizeof newest, "%s", e->d_name);
        return path_join(queue, newest);
}

/* Damage it, to find out whether bytes are read again. */
START_TEST(reader_reads_only_new_queue_records)
{
        _cleanup_free_ char *segment = NULL;
        struct profile_store *reader, *writer;
        int fd;

        set_up();
        append_three("a");
        writer = store;
        open_store(true);
        reader = store;
        expect_total(&everything, 70, 3, 2);
        segment = find_newest_segment();
        fd = open(segment, O_WRONLY | O_CLOEXEC);
        ck_assert_int_eq(pwrite(fd, "damaged", 7, 100), 7);
        expect_total(&everything, 70, 3, 2);

        store = writer;
        flush();
        append_three("b");
        append_three("c");
        store = reader;
        expect_total(&everything, 210, 9, 2);

        free(segment);
        segment = find_newest_segment();
        close(fd);
        fd = open(segment, O_WRONLY | O_CLOEXEC);
        ck_assert_int_eq(ftruncate(fd, 0), 0);
        expect_total(&everything, 70, 3, 2);
        close(fd);
        profile_store_close(reader);
        store = writer;
        tear_down();
}
END_TEST

/* The number of resolved locations of the stacks; files of the table may be missing. */
static size_t count_resolved_locations(void)
{
        const struct scan_stacks *stacks;
        struct store_scan *scan;
        struct stack_sums sums;
        struct error err;
        size_t ret;

        check_ok(store_scan_begin(store, &scan, &err), &err);
        check_ok(store_scan_sum(scan, &everything, &sums, &err), &err);
        check_ok(store_scan_resolve(scan, &sums, &stacks, &err), &err);
        ret = stacks->first[stacks->count];
        free(sums.items);
        store_scan_end(scan);
        return ret;
}

START_TEST(stacks_are_cached_after_first_query)
{
        _cleanup_free_ char *stacks = NULL;
        size_t count;

        set_up();
        append_three("a");
        flush();
        count = count_resolved_locations();
        ck_assert_uint_gt(count, 0);
        stacks = path_join(dir, "profiles/tables/stacks");
        ck_assert_int_eq(file_remove_tree(stacks, NULL), ST_OK);
        ck_assert_uint_eq(count_resolved_locations(), count);
        tear_down();
}
END_TEST

START_TEST(missing_counts_resolvable_samples)
{
        struct store_scan *scan;
        struct scan_missing *missing;
        struct error err;
        size_t count;
        char hex[BUILD_ID_HEX_MAX];

        set_up();
        append_three("a");
        flush();
        check_ok(store_scan_begin(store, &scan, &err), &err);
        check_ok(store_scan_list_missing(scan, &everything, &missing, &count, &err), &err);
        ck_assert_uint_eq(count, 1);
        ck_assert_str_eq(build_id_hex(&missing[0].build_id, hex), ID);
        ck_assert_str_eq(missing[0].state, "no_debuginfo");
        ck_assert_uint_eq(missing[0].locations, 2);
        ck_assert_uint_eq(sample_count_round(missing[0].samples), 1); /* 70 ns of a period of 53 ms */
        store_scan_end(scan);
        tear_down();
}
END_TEST

START_TEST(values_of_two_units_are_not_summed)
{
        struct scan_uploads uploads;
        struct test_profile t;
        struct profile_type bytes;
        struct store_scan *scan;
        struct stack_sums sums;
        struct error err;
        uint32_t leaf;

        set_up();
        test_profile_init(&t, ID, "/bin/x");
        leaf = test_location(&t, 0x1000);
        test_sample(&t, T0, 7 * TEST_PROFILE_PERIOD, &leaf, 1, NULL);
        bytes = (struct profile_type){ .id = test_string(&t, "memory:inuse:bytes:space:bytes"),
                                       .unit = test_string(&t, "bytes") };
        check_ok(profile_add_type(&t.p, &bytes, &t.type, &err), &err);
        test_sample(&t, T0, 4096, &leaf, 1, NULL);
        append(&t, "a");
        test_profile_deinit(&t);
        for (int round = 0; round < 2; round++) {
                check_ok(store_scan_begin(store, &scan, &err), &err);
                ck_assert_int_eq(store_scan_sum(scan, &everything, &sums, &err), ST_USAGE);
                check_ok(store_scan_rank_uploads(scan, &everything, NULL, &uploads, &err), &err);
                ck_assert_uint_eq(sample_count_round(uploads.missing[0].samples), 7); /* of the type that tells */
                ck_assert_str_eq(uploads.unit, "");
                store_scan_end(scan);
                flush();
        }
        tear_down();
}
END_TEST

TEST_SUITE("profile store", samples_are_equal_in_head_in_part_and_after_reopening, resent_batch_counts_once,
           filters_select_by_time_type_and_labels_in_head_and_parts, matchers_of_type_components_select_samples,
           late_symbols_rewrite_only_locations, label_names_and_values_are_limited_to_time_range,
           late_symbols_rewrite_only_locations,
           a_damaged_file_of_locations_does_not_stop_the_others_from_being_resymbolized,
           a_missing_file_of_locations_does_not_stop_the_others_from_being_resymbolized,
           a_dry_run_counts_what_would_change_and_writes_nothing, only_objects_indexed_since_a_time_are_resymbolized,
           resymbolization_without_free_memory_proceeds_in_smaller_steps_or_says_so,
           head_is_resolved_at_scan_and_at_flush, sender_frames_are_replaced_by_lines_of_the_object,
           stacks_and_locations_are_written_once, labels_over_column_limit_are_stored_in_map,
           a_full_queue_refuses_until_it_is_flushed, only_one_process_writes_and_others_read_what_is_acknowledged,
           reader_reads_only_new_queue_records, stacks_are_cached_after_first_query, missing_counts_resolvable_samples,
           values_of_two_units_are_not_summed)
