/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables as read by other programs. With STORE_SAMPLES=DIR the stores are kept in DIR/before, DIR/after (after
 * re-symbolization) and DIR/compacted (after compaction), each with the result of a query in top.tsv, which
 * tests/e2e/store/tables.t compares.
 */
#include <inttypes.h>
#include <string.h>

#include "common/files/file.h"
#include "profile-store/profile_store.h"
#include "profile-store/scan.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define KERNEL_ID "ffeeddccbbaa99887766554433221100ffeeddcc"
#define DAY_NS INT64_C(86400000000000)
#define T0 (INT64_C(20000) * DAY_NS)
#define KERNEL_TEXT UINT64_C(0xffffffff81000000)

static struct symbol_index *symbols;
static struct profile_store *store;

static uint32_t random_state = 1;

static uint32_t draw(uint32_t below)
{
        random_state = random_state * 1664525 + 1013904223;
        return (random_state >> 8) % below;
}

/* 200 samples over three days: stacks of an object, some below a kernel frame or an interpreter's. */
static void append_batch(uint32_t batch)
{
        struct test_profile t;
        struct profile_mapping kernel = { 0 };
        struct profile_location in_kernel = { .kind = ADDRESS_OBJECT,
                                              .frame_type = PROFILE_FRAME_KERNEL,
                                              .line_count = 1 };
        struct profile_line line = { 0 };
        struct error err;

        test_profile_init(&t, ID, "/usr/bin/worker");
        kernel.file = test_string(&t, "[kernel.kallsyms]");
        ck_assert(build_id_from_hex(&kernel.build_id, KERNEL_ID, strlen(KERNEL_ID)));
        check_ok(profile_add_mapping(&t.p, &kernel, &in_kernel.mapping, &err), &err);
        line.function = test_string(&t, "vfs_read");
        check_ok(profile_add_line(&t.p, &line, &in_kernel.first_line, &err), &err);
        for (int i = 0; i < 200; i++) {
                uint32_t stack[8], n = 0;
                char label[32];

                if (draw(4) == 0) {
                        in_kernel.address = KERNEL_TEXT + 0x10 * draw(8);
                        check_ok(profile_add_location(&t.p, &in_kernel, &stack[n++], &err), &err);
                }
                for (uint32_t depth = 1 + draw(4); depth; depth--)
                        stack[n++] = test_location(&t, 0x1000 + 0x40 * draw(32));
                if (draw(3) == 0)
                        stack[n++] = test_named_location(&t, false, 0, "eval", "page.js", 3);
                snprintf(label, sizeof label, batch < 2 ? "comm=worker%u" : "Thread.Name=worker%u", draw(5));
                test_sample(&t, T0 + draw(3) * DAY_NS + draw(1000) * INT64_C(1000000), 1 + draw(100), stack, n,
                            (const char *const[]){ "service.name=api", label, NULL });
        }
        check_ok(profile_store_append(store, &t.p, hash_bytes128(&batch, sizeof batch), NULL, &err), &err);
        test_profile_deinit(&t);
}

static void open_all(const char *dir)
{
        struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        _cleanup_free_ char *profiles = path_join(dir, "profiles"), *index = path_join(dir, "index");
        struct error err;

        check_ok(file_make_dirs(dir, &err), &err);
        check_ok(symbol_index_open(index, false, &symbols, &err), &err);
        options.symbols = symbols;
        check_ok(profile_store_open(profiles, &options, &store, &err), &err);
}

static void close_all(void)
{
        profile_store_close(store);
        symbol_index_close(symbols);
}

/* "function TAB flat" of the innermost frame of each leaf; unsorted, one line per stack, to be summed by the reader. */
static void write_top(const char *dir)
{
        const struct scan_filter all = { 0, INT64_MAX, NULL, NULL, 0 };
        _cleanup_free_ char *path = path_join(dir, "top.tsv");
        _cleanup_buf_ struct buf out;
        struct store_scan *scan;
        struct stack_sums sums;
        const struct scan_stacks *s;
        struct error err;

        buf_init(&out, 1 << 24);
        check_ok(store_scan_begin(store, &scan, &err), &err);
        check_ok(store_scan_sum(scan, &all, &sums, &err), &err);
        check_ok(store_scan_resolve(scan, &sums, &s, &err), &err);
        for (size_t i = 0; i < s->count; i++) {
                const struct scan_location *leaf = &s->locations[s->indexes[s->first[i]]];

                if (leaf->frame_count)
                        buf_printf(&out, "%s\t%s\t%" PRId64 "\n", leaf->frames[0].function, leaf->frames[0].file,
                                   sums.items[i].value);
                else
                        buf_printf(&out, "0x%" PRIx64 " [%s]\t\t%" PRId64 "\n", leaf->address, path_base(leaf->mapping),
                                   sums.items[i].value);
        }
        check_ok(file_write_durable(path, out.data, out.size, &err), &err);
        stack_sums_deinit(&sums);
        store_scan_end(scan);
}

static int64_t total(void)
{
        const struct scan_filter all = { 0, INT64_MAX, NULL, NULL, 0 };
        struct store_scan *scan;
        struct stack_sums sums;
        struct error err;
        int64_t ret = 0;

        check_ok(store_scan_begin(store, &scan, &err), &err);
        check_ok(store_scan_sum(scan, &all, &sums, &err), &err);
        for (size_t i = 0; i < sums.count; i++)
                ret += sums.items[i].value;
        stack_sums_deinit(&sums);
        store_scan_end(scan);
        return ret;
}

static void fill(const char *dir)
{
        struct error err;

        random_state = 1;
        open_all(dir);
        for (uint32_t i = 0; i < 4; i++) {
                append_batch(i);
                check_ok(profile_store_flush(store, &err), &err);
        }
}

static void load_all_symbols(void)
{
        test_load_symbols(symbols, ID, QUALITY_DWARF, 0x1000, 8, "work", "/src/work.c");
        test_load_symbols(symbols, KERNEL_ID, QUALITY_DWARF, KERNEL_TEXT, 1, "vfs", "/src/fs/read_write.c");
}

START_TEST(totals_are_unchanged_by_resymbolization)
{
        const char *keep = getenv("STORE_SAMPLES");
        char temporary[] = "/tmp/cairn-tables-XXXXXX";
        const char *top = keep ? keep : mkdtemp(temporary);
        _cleanup_free_ char *before = path_join(top, "before"), *after = path_join(top, "after"),
                            *compacted = path_join(top, "compacted");
        struct compaction_result merged;
        struct profile_store_stat stat;
        struct resymbolize_result result;
        struct error err;
        int64_t raw;

        fill(before);
        raw = total();
        write_top(before);
        close_all();
        fill(after);
        ck_assert_int_eq(total(), raw);
        load_all_symbols();
        check_ok(profile_store_resymbolize(store, &(struct resymbolize_request){ 0 }, &result, &err), &err);
        ck_assert_uint_eq(result.locations_changed, 32 + 8);
        ck_assert_int_eq(total(), raw);
        check_ok(profile_store_stat(store, &stat, &err), &err);
        ck_assert_uint_eq(stat.location_rows, 32 + 8 + 1);
        ck_assert_uint_eq(stat.unresolved_locations, 0);
        ck_assert_uint_eq(stat.sample_rows, 800);
        write_top(after);
        close_all();
        fill(compacted);
        load_all_symbols();
        check_ok(profile_store_resymbolize(store, &(struct resymbolize_request){ 0 }, &result, &err), &err);
        check_ok(profile_store_compact(store, NULL, NULL, &merged, &err), &err);
        ck_assert_uint_gt(merged.merges, 3);
        ck_assert_int_eq(total(), raw);
        check_ok(profile_store_stat(store, &stat, &err), &err);
        ck_assert_uint_eq(stat.sample_rows, 800);
        ck_assert_uint_eq(stat.sample_files, 3);
        ck_assert_uint_eq(stat.location_files, 1);
        write_top(compacted);
        close_all();
        if (!keep)
                ck_assert_int_eq(file_remove_tree(top, NULL), ST_OK);
}
END_TEST

TEST_SUITE("profile store tables", totals_are_unchanged_by_resymbolization)
