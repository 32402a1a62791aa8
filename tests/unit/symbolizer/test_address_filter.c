/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extraction restricted to a few addresses must give the same result for them as extraction of the whole file. Files:
 * this program; the debug files of libc and python3.11 if installed; and the files of $CAIRN_ORACLE_FILES, separated by
 * colons (FILE or FILE,DWZ-FILE). $CAIRN_WANTED_ADDRESSES is the number of addresses of each.
 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/memory/array.h"
#include "common/cleanup.h"
#include "symbolizer/sources/dwarf_extract.h"
#include "symbolizer/extraction/extract.h"
#include "symbolizer/sources/code_symbols.h"
#include "tests/support/compare_tables.h"
#include "tests/support/made_file.h"
#include "tests/support/random_table.h"
#include "tests/support/suite.h"

#define ADDRESSES 120
#define GROUP_MAX 20

static void extract(const struct extract_inputs *in, struct symbol_table *ret)
{
        struct error err = { 0 };

        ck_assert_msg(symbol_table_extract(in, ret, &err) == ST_OK, "%s: %s", in->name, err.text);
}

/* Starts and ends of ranges, the bytes before them, and addresses inside ranges, and so also gaps. */
static uint64_t some_address(const struct symbol_table *t, uint64_t *state)
{
        const struct symbol_range *r = &t->ranges[random_next(state) % t->range_count];

        switch (random_next(state) % 4) {
        case 0:
                return r->start;
        case 1:
                return r->start - 1;
        case 2:
                return r->end;
        default:
                return r->start + random_next(state) % (r->end - r->start);
        }
}

static int compare_addresses(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static size_t some_addresses(const struct symbol_table *t, uint64_t *state, size_t count, uint64_t *addresses)
{
        size_t kept = 0;

        for (size_t i = 0; i < count; i++)
                addresses[i] = some_address(t, state);
        qsort(addresses, count, sizeof *addresses, compare_addresses);
        for (size_t i = 0; i < count; i++)
                if (!kept || addresses[kept - 1] != addresses[i])
                        addresses[kept++] = addresses[i];
        return kept;
}

static void compare_group(struct extract_inputs *in, const struct symbol_table *whole,
                          const struct address_filter *filter, unsigned *complete)
{
        struct symbol_table part;

        in->filter = filter;
        extract(in, &part);
        in->filter = NULL;
        *complete += part.is_complete;
        ck_assert_int_eq(part.quality, whole->quality);
        ck_assert(build_id_equal(&part.build_id, &whole->build_id));
        for (size_t i = 0; i < filter->count; i++) {
                const struct symbol_range *a = symbol_table_find(&part, filter->addresses[i]);
                const struct symbol_range *b = symbol_table_find(whole, filter->addresses[i]);
                char x[2000], y[2000];

                describe_range(&part, a, x, sizeof x);
                describe_range(whole, b, y, sizeof y);
                ck_assert_msg(strcmp(x, y) == 0, "%s: 0x%llx\n  alone: %s\n  whole: %s", in->name,
                              (unsigned long long)filter->addresses[i], x, y);
        }
        symbol_table_deinit(&part);
}

static void compare_file(const char *path, const char *alt_path, size_t count)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        _cleanup_close_ int alt_fd = alt_path ? open(alt_path, O_RDONLY | O_CLOEXEC) : -1;
        struct extract_inputs in = { .debuginfo_fd = fd, .executable_fd = -1, .altlink_fd = alt_fd, .name = path };
        uint64_t addresses[GROUP_MAX], state = 1;
        struct symbol_table whole;
        unsigned complete = 0, groups = 0;

        ck_assert_msg(fd >= 0 && (!alt_path || alt_fd >= 0), "cannot open %s", path);
        extract(&in, &whole);
        ck_assert(whole.is_complete);
        for (size_t done = 0; done < count; groups++) {
                size_t size = groups % 3 == 0 ? GROUP_MAX : groups % 3 == 1 ? 1 : 4;
                struct address_filter filter = { .addresses = addresses, .max_percent = 100 };

                filter.count = some_addresses(&whole, &state, size, addresses);
                compare_group(&in, &whole, &filter, &complete);
                done += size;
        }
        printf("# %s: %u groups of addresses read alone, %u of them read everything\n", path, groups, complete);
        symbol_table_deinit(&whole);
}

START_TEST(filtered_extraction_of_this_program_agrees)
{
        compare_file("/proc/self/exe", NULL, ADDRESSES);
}
END_TEST

static void compare_debug_file_of(const char *path)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        char hex[BUILD_ID_HEX_MAX], debug[256];

        if (elf_image_open(path, &img, NULL) || !img.build_id.size)
                return;
        build_id_hex(&img.build_id, hex);
        snprintf(debug, sizeof debug, "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
        if (access(debug, R_OK) == 0)
                compare_file(debug, NULL, ADDRESSES);
}

START_TEST(filtered_extraction_of_debian_debug_files_agrees)
{
        compare_debug_file_of("/lib/x86_64-linux-gnu/libc.so.6");
        compare_debug_file_of("/usr/bin/python3.11");
}
END_TEST

START_TEST(filtered_extraction_of_specified_files_agrees)
{
        const char *named = getenv("CAIRN_ORACLE_FILES"), *count = getenv("CAIRN_WANTED_ADDRESSES");
        _cleanup_free_ char *list = strdup(named ? named : "");
        char *save = NULL;

        for (char *file = strtok_r(list, ":", &save); file; file = strtok_r(NULL, ":", &save)) {
                char *alt = strchr(file, ',');

                if (alt)
                        *alt++ = 0;
                compare_file(file, alt, count ? strtoul(count, NULL, 10) : ADDRESSES);
        }
}
END_TEST

START_TEST(one_address_reads_few_units)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        struct symbol_table_builder all, some;
        struct dwarf_summary summary;
        struct code_map code;
        struct error err;
        uint64_t address = (uint64_t)(uintptr_t)0;
        const struct address_filter filter = { .addresses = &address, .count = 1, .max_percent = 100 };
        struct dwarf_input input = { .img = &img, .code = &code };

        ck_assert_int_eq(elf_image_open("/proc/self/exe", &img, &err), ST_OK);
        ck_assert_int_eq(code_map_from_image(&img, &code, &err), ST_OK);
        symbol_table_builder_init(&all);
        ck_assert_int_eq(dwarf_extract(&input, &all, &summary, &err), ST_OK);
        ck_assert(summary.is_complete);
        address = all.ranges[all.range_count / 2].start;
        symbol_table_builder_init(&some);
        input.filter = &filter;
        ck_assert_int_eq(dwarf_extract(&input, &some, &summary, &err), ST_OK);
        ck_assert(!summary.is_complete);
        ck_assert_uint_gt(all.range_count, 4);
        ck_assert_uint_eq(some.range_count, 1);
        ck_assert(some.ranges[0].start <= address && address < some.ranges[0].end);
        symbol_table_builder_deinit(&all);
        symbol_table_builder_deinit(&some);
        code_map_deinit(&code);
}
END_TEST

START_TEST(first_of_overlapping_units_wins_with_filter)
{
        const uint64_t address = MADE_CODE + 8;
        const struct address_filter filter = { .addresses = &address, .count = 1, .max_percent = 100 };
        const struct {
                const char *function;
                uint64_t start;
        } units[] = { { "dropped", 0 },
                      { "first", MADE_CODE },
                      { "elsewhere", MADE_CODE + 0x20 },
                      { "dropped_too", UINT64_MAX },
                      { "second", MADE_CODE },
                      { "third", MADE_CODE } };
        struct extract_inputs in = { .executable_fd = -1, .altlink_fd = -1, .name = "made" };
        struct dwarf_maker m;
        struct symbol_table table;

        made_dwarf_begin(&m);
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
                made_unit(&m, units[i].function, units[i].start, 0x10);
                put_uint(&m, DWARF_INFO, 0, 1);
                end_unit(&m);
        }
        in.debuginfo_fd = made_file(NULL, 0, &m);
        dwarf_maker_deinit(&m);
        for (int few = 0; few < 2; few++) {
                in.filter = few ? &filter : NULL;
                extract(&in, &table);
                ck_assert_str_eq(made_frames(&table, address), "first");
                symbol_table_deinit(&table);
        }
        close(in.debuginfo_fd);
}
END_TEST

/* ---- addresses that the unit or the function of their DIE does not have ---- */

enum { UNIT = 1, FUNCTION, INLINED, ABSTRACT };

static void put_row_sequence(struct dwarf_maker *m, uint64_t start, uint8_t size)
{
        const uint8_t end[] = { 1, 2, size, 0, 1, 1 }; /* copy, advance the address, end of the sequence */

        put_uint(m, DWARF_LINE, 0x020900, 3); /* set the address */
        put_address(m, DWARF_LINE, start);
        buf_append(&m->sections[DWARF_LINE], end, sizeof end);
}

/* Sequences of one row: line 1 of a.c. */
static void put_row_table(struct dwarf_maker *m, const uint64_t (*sequences)[2], size_t count)
{
        static const uint8_t header[] = { 1, 1, 1, 251, 14, 13,  0,   1,   1, 1, 1, 0, 0, 0,
                                          1, 0, 0, 1,   0,  'a', '.', 'c', 0, 0, 0, 0, 0 };
        size_t at = put_length(m, DWARF_LINE);

        put_uint(m, DWARF_LINE, 4, 2);
        put_uint(m, DWARF_LINE, sizeof header, 4);
        buf_append(&m->sections[DWARF_LINE], header, sizeof header);
        for (size_t i = 0; i < count; i++)
                put_row_sequence(m, sequences[i][0], (uint8_t)sequences[i][1]);
        end_length(m, DWARF_LINE, at);
}

static void put_listed_unit(struct dwarf_maker *m, uint64_t start, uint64_t size)
{
        uint64_t list = put_at(m, DWARF_RNGLISTS);

        put_uint(m, DWARF_RNGLISTS, DW_RLE_start_length, 1);
        put_address(m, DWARF_RNGLISTS, start);
        put_uleb(m, DWARF_RNGLISTS, size);
        put_uint(m, DWARF_RNGLISTS, DW_RLE_end_of_list, 1);
        put_unit(m, DW_UT_compile, 0);
        put_uleb(m, DWARF_INFO, UNIT);
        put_uint(m, DWARF_INFO, DW_LANG_C11, 1);
        put_offset(m, DWARF_INFO, put_at(m, DWARF_LINE));
        put_offset(m, DWARF_INFO, list);
}

/* A unit of version 5 whose range list is [MADE_CODE, MADE_CODE + size). */
static void begin_listed_unit(struct dwarf_maker *m, uint64_t size)
{
        dwarf_maker_init(m, 5);
        put_abbrev(m, UNIT, DW_TAG_compile_unit, true, DW_AT_language, DW_FORM_data1, DW_AT_stmt_list,
                   DW_FORM_sec_offset, DW_AT_ranges, DW_FORM_sec_offset, 0, 0);
        put_abbrev(m, FUNCTION, DW_TAG_subprogram, true, DW_AT_name, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr,
                   DW_AT_high_pc, DW_FORM_data4, 0, 0);
        put_abbrev(m, INLINED, DW_TAG_inlined_subroutine, false, DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_low_pc,
                   DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, DW_AT_call_file, DW_FORM_data1, DW_AT_call_line,
                   DW_FORM_data1, 0, 0);
        put_abbrev(m, ABSTRACT, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, 0, 0);
        put_uint(m, DWARF_ABBREV, 0, 1);
        put_listed_unit(m, MADE_CODE, size);
}

static void put_function(struct dwarf_maker *m, const char *name, uint64_t start, uint64_t size)
{
        put_uleb(m, DWARF_INFO, FUNCTION);
        put_text(m, DWARF_INFO, name);
        put_address(m, DWARF_INFO, start);
        put_uint(m, DWARF_INFO, size, 4);
}

/* The frames at an address alone and in a complete table. Takes the maker. */
static void check_address_frames(struct dwarf_maker *m, uint64_t address, const char *expected)
{
        const struct address_filter filter = { .addresses = &address, .count = 1, .max_percent = 100 };
        struct extract_inputs in = { .executable_fd = -1, .altlink_fd = -1, .name = "made" };
        struct symbol_table table;

        in.debuginfo_fd = made_file(NULL, 0, m);
        dwarf_maker_deinit(m);
        for (int few = 0; few < 2; few++) {
                in.filter = few ? &filter : NULL;
                extract(&in, &table);
                ck_assert_str_eq(made_frames(&table, address), expected);
                symbol_table_deinit(&table);
        }
        close(in.debuginfo_fd);
}

START_TEST(function_outside_of_its_units_list_is_found_alone)
{
        static const uint64_t sequences[][2] = { { MADE_CODE, 0x10 }, { MADE_CODE + 0x20, 0x10 }, { MADE_CODE, 0x30 } };

        for (size_t first = 0; first < 3; first += 2) { /* rows of two sequences, or of one */
                struct dwarf_maker m;

                begin_listed_unit(&m, 0x10);
                put_function(&m, "first", MADE_CODE, 0x10);
                put_uint(&m, DWARF_INFO, 0, 1);
                put_function(&m, "second", MADE_CODE + 0x20, 0x10);
                put_uint(&m, DWARF_INFO, 0, 2);
                end_unit(&m);
                put_row_table(&m, sequences + first, first ? 1 : 2);
                check_address_frames(&m, MADE_CODE + 0x28, "second a.c:1");
        }
}
END_TEST

static uint64_t put_abstract_function(struct dwarf_maker *m)
{
        uint64_t origin = put_at(m, DWARF_INFO) - m->unit;

        put_uleb(m, DWARF_INFO, ABSTRACT);
        put_text(m, DWARF_INFO, "call");
        return origin;
}

static void put_call(struct dwarf_maker *m, uint64_t origin, uint64_t start, uint64_t size)
{
        put_uleb(m, DWARF_INFO, INLINED);
        put_uint(m, DWARF_INFO, origin, 4);
        put_address(m, DWARF_INFO, start);
        put_uint(m, DWARF_INFO, size, 4);
        put_uint(m, DWARF_INFO, 1, 1);
        put_uint(m, DWARF_INFO, 7, 1);
}

START_TEST(call_is_cut_off_at_the_end_of_its_function)
{
        static const uint64_t sequence[][2] = { { MADE_CODE, 0x40 } };
        static const char *const expected[] = { "call a.c:1 < f a.c:7", "g a.c:1" };

        for (size_t i = 0; i < 2; i++) {
                struct dwarf_maker m;
                uint64_t origin;

                begin_listed_unit(&m, 0x40);
                origin = put_abstract_function(&m);
                put_function(&m, "f", MADE_CODE, 0x10);
                put_call(&m, origin, MADE_CODE + 8, 0x20);
                put_uint(&m, DWARF_INFO, 0, 1);
                put_function(&m, "g", MADE_CODE + 0x10, 0x30);
                put_uint(&m, DWARF_INFO, 0, 2);
                end_unit(&m);
                put_row_table(&m, sequence, 1);
                check_address_frames(&m, MADE_CODE + 0xf + i, expected[i]);
        }
}
END_TEST

#define RANDOM_CODE 0x40 /* bytes */

/* Functions with calls at any addresses: a damaged unit. */
static void put_random_functions(struct dwarf_maker *m, const char *const names[3], uint64_t *state)
{
        uint64_t origin = put_abstract_function(m);

        for (size_t i = 0; i < 3; i++) {
                put_function(m, names[i], MADE_CODE + random_next(state) % RANDOM_CODE,
                             random_next(state) % RANDOM_CODE);
                for (uint64_t k = random_next(state) % 3; k; k--)
                        put_call(m, origin, MADE_CODE + random_next(state) % RANDOM_CODE,
                                 random_next(state) % RANDOM_CODE);
                put_uint(m, DWARF_INFO, 0, 1);
        }
        put_uint(m, DWARF_INFO, 0, 1);
}

START_TEST(calls_and_functions_at_any_addresses_agree_alone)
{
        static const uint64_t sequence[][2] = { { MADE_CODE, RANDOM_CODE } };

        for (uint64_t seed = 1; seed <= 100; seed++) {
                struct extract_inputs in = { .executable_fd = -1, .altlink_fd = -1, .name = "random" };
                struct symbol_table whole;
                uint64_t state = seed;
                struct dwarf_maker m;
                unsigned complete = 0;

                begin_listed_unit(&m, RANDOM_CODE);
                put_random_functions(&m, (const char *const[]){ "f", "g", "h" }, &state);
                end_unit(&m);
                put_row_table(&m, sequence, 1);
                in.debuginfo_fd = made_file(NULL, 0, &m);
                dwarf_maker_deinit(&m);
                extract(&in, &whole);
                for (uint64_t address = MADE_CODE; address < MADE_CODE + 2 * RANDOM_CODE; address++) {
                        const struct address_filter filter = { .addresses = &address, .count = 1, .max_percent = 100 };

                        compare_group(&in, &whole, &filter, &complete);
                }
                symbol_table_deinit(&whole);
                close(in.debuginfo_fd);
        }
}
END_TEST

/* ---- line rows at the addresses of another unit ---- */

/* All addresses together with `other`, and each one alone. Takes the maker. */
static void check_all_addresses_alone(struct dwarf_maker *m, uint64_t first, uint64_t end, uint64_t other)
{
        struct extract_inputs in = { .executable_fd = -1, .altlink_fd = -1, .name = "made" };
        struct symbol_table whole;
        unsigned complete = 0;

        in.debuginfo_fd = made_file(NULL, 0, m);
        dwarf_maker_deinit(m);
        extract(&in, &whole);
        for (uint64_t address = first; address < end; address++) {
                const uint64_t both[] = { address, other };

                for (size_t count = 1; count <= 2; count++)
                        compare_group(&in, &whole, &(struct address_filter){ both, count, .max_percent = 100 },
                                      &complete);
        }
        symbol_table_deinit(&whole);
        close(in.debuginfo_fd);
}

/* "stray" has rows and a function at the addresses of the unit after it and behind them. */
static void make_stray_rows(struct dwarf_maker *m, bool has_rows)
{
        static const uint64_t stray[][2] = { { MADE_CODE, 0x40 } }, own[][2] = { { MADE_CODE + 0x10, 0x10 } };

        begin_listed_unit(m, 0x10);
        put_row_table(m, stray, 1);
        put_function(m, "stray", MADE_CODE, 0x40);
        put_uint(m, DWARF_INFO, 0, 2);
        end_unit(m);
        put_listed_unit(m, MADE_CODE + 0x10, 0x10);
        put_row_table(m, own, has_rows);
        put_function(m, "own", MADE_CODE + 0x10, 0x10);
        put_uint(m, DWARF_INFO, 0, 2);
        end_unit(m);
}

START_TEST(rows_at_addresses_of_another_unit_do_not_count)
{
        for (int has_rows = 0; has_rows < 2; has_rows++) {
                const struct {
                        uint64_t address;
                        const char *frames;
                } expected[] = { { MADE_CODE + 0xf, "stray a.c:1" },
                                 { MADE_CODE + 0x10, has_rows ? "own a.c:1" : "own" },
                                 { MADE_CODE + 0x1f, has_rows ? "own a.c:1" : "own" },
                                 { MADE_CODE + 0x20, "" } };
                struct dwarf_maker m;

                for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
                        make_stray_rows(&m, has_rows);
                        check_address_frames(&m, expected[i].address, expected[i].frames);
                }
                make_stray_rows(&m, has_rows);
                check_all_addresses_alone(&m, MADE_CODE, MADE_CODE + 0x50, MADE_CODE + 0x50);
        }
}
END_TEST

START_TEST(rows_of_units_at_any_addresses_agree_alone)
{
        static const char *const names[4][3] = {
                { "a", "b", "c" }, { "d", "e", "f" }, { "g", "h", "i" }, { "j", "k", "l" }
        };

        for (uint64_t seed = 1; seed <= 100; seed++) {
                uint64_t state = seed;
                struct dwarf_maker m;

                for (size_t unit = 0; unit < 4; unit++) {
                        uint64_t sequences[2][2];

                        for (size_t i = 0; i < 2; i++) {
                                sequences[i][0] = MADE_CODE + random_next(&state) % RANDOM_CODE;
                                sequences[i][1] = 1 + random_next(&state) % (RANDOM_CODE - 1);
                        }
                        if (unit == 0)
                                begin_listed_unit(&m, random_next(&state) % RANDOM_CODE);
                        else
                                put_listed_unit(&m, MADE_CODE + random_next(&state) % RANDOM_CODE,
                                                random_next(&state) % (RANDOM_CODE / 4));
                        put_row_table(&m, sequences, random_next(&state) % 3);
                        put_random_functions(&m, names[unit], &state);
                        end_unit(&m);
                }
                check_all_addresses_alone(&m, MADE_CODE, MADE_CODE + 3 * RANDOM_CODE, MADE_CODE + 3 * RANDOM_CODE);
        }
}
END_TEST

/* ---- units that are not read, by their abbreviations and line tables ---- */

enum content { DATA, DATA_WITHOUT_LINES, CODE, ROWS, SPLIT, CONTENT_COUNT };

static uint64_t put_data_table(struct dwarf_maker *m, enum content content)
{
        uint64_t offset = put_at(m, DWARF_ABBREV);

        put_abbrev(m, INLINED, DW_TAG_variable, false, DW_AT_low_pc, DW_FORM_data1, 0, 0);
        if (content == SPLIT)
                put_abbrev(m, UNIT, DW_TAG_compile_unit, true, DW_AT_GNU_dwo_name, DW_FORM_string, DW_AT_GNU_dwo_id,
                           DW_FORM_data8, 0, 0);
        else if (content == DATA_WITHOUT_LINES)
                put_abbrev(m, UNIT, DW_TAG_compile_unit, true, DW_AT_language, DW_FORM_data1, 0, 0);
        else
                put_abbrev(m, UNIT, DW_TAG_compile_unit, true, DW_AT_stmt_list, DW_FORM_sec_offset, 0, 0);
        put_abbrev(m, ABSTRACT, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, 0, 0);
        if (content == CODE)
                put_abbrev(m, FUNCTION, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, DW_AT_low_pc,
                           DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0, 0);
        put_uint(m, DWARF_ABBREV, 0, 1);
        return offset;
}

/* Version 4: "real" at MADE_CODE in a unit that gives its addresses, then one that does not and has the content. */
static void make_unit_without_addresses(struct dwarf_maker *m, enum content content)
{
        static const uint64_t sequence[][2] = { { MADE_CODE + 0x100, 0x10 } };
        uint64_t table;

        dwarf_maker_init(m, 4);
        put_abbrev(m, UNIT, DW_TAG_compile_unit, true, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4,
                   DW_AT_stmt_list, DW_FORM_sec_offset, 0, 0);
        put_abbrev(m, FUNCTION, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr,
                   DW_AT_high_pc, DW_FORM_data4, 0, 0);
        put_uint(m, DWARF_ABBREV, 0, 1);
        table = put_data_table(m, content);
        put_unit(m, DW_UT_compile, 0);
        put_uleb(m, DWARF_INFO, UNIT);
        put_address(m, DWARF_INFO, MADE_CODE);
        put_uint(m, DWARF_INFO, 0x10, 4);
        put_offset(m, DWARF_INFO, 0);
        put_row_table(m, NULL, 0);
        put_function(m, "real", MADE_CODE, 0x10);
        put_uint(m, DWARF_INFO, 0, 1);
        end_unit(m);
        put_unit(m, DW_UT_compile, table);
        put_uleb(m, DWARF_INFO, UNIT);
        if (content == SPLIT) {
                put_text(m, DWARF_INFO, "absent.dwo");
                put_uint(m, DWARF_INFO, 1, 8);
        } else if (content == DATA_WITHOUT_LINES) {
                put_uint(m, DWARF_INFO, DW_LANG_C11, 1);
        } else {
                put_offset(m, DWARF_INFO, put_at(m, DWARF_LINE));
                put_row_table(m, sequence, content == ROWS ? 1 : 0);
        }
        put_uleb(m, DWARF_INFO, INLINED);
        put_uint(m, DWARF_INFO, 0, 1);
        if (content == CODE)
                put_function(m, "code", MADE_CODE + 0x100, 0x10);
        put_uint(m, DWARF_INFO, 0, 1);
        end_unit(m);
}

static uint64_t count_units_read(const struct dwarf_maker *m, uint64_t address)
{
        const struct address_filter filter = { .addresses = &address, .count = 1, .max_percent = 100 };
        _cleanup_close_ int fd = made_file(NULL, 0, m);
        _cleanup_elf_image_ struct elf_image img = { 0 };
        struct symbol_table_builder builder;
        struct dwarf_summary summary;
        struct code_map code;
        struct error err;
        char path[64];

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ck_assert_int_eq(elf_image_open(path, &img, &err), ST_OK);
        ck_assert_int_eq(code_map_from_image(&img, &code, &err), ST_OK);
        symbol_table_builder_init(&builder);
        ck_assert_int_eq(dwarf_extract(&(struct dwarf_input){ .img = &img, .code = &code, .filter = &filter }, &builder,
                                       &summary, &err),
                         ST_OK);
        ck_assert(!summary.is_complete);
        symbol_table_builder_deinit(&builder);
        code_map_deinit(&code);
        return summary.unit_count;
}

START_TEST(units_of_data_are_not_read)
{
        static const unsigned expected[CONTENT_COUNT] = { 1, 1, 2, 2, 2 };
        static const char *const frames[CONTENT_COUNT] = { "", "", "code", "? a.c:1", "" };

        for (enum content content = 0; content < CONTENT_COUNT; content++) {
                struct dwarf_maker m;

                make_unit_without_addresses(&m, content);
                ck_assert_uint_eq(count_units_read(&m, MADE_CODE + 8), expected[content]);
                check_address_frames(&m, MADE_CODE + 0x108, frames[content]);
        }
}
END_TEST

/*
 * Units whose own abbreviation has the same bytes as that of the unit before, or other bytes under the same code, or
 * the same bytes in a unit with shorter addresses.
 */
START_TEST(similar_abbreviations_of_units_are_told_apart)
{
        static const struct {
                const char *name;
                uint8_t code, high_form, address_size;
        } units[] = { { "a", 1, DW_FORM_data4, 8 }, { "b", 5, DW_FORM_data4, 8 }, { "c", 5, DW_FORM_data8, 8 },
                      { "d", 1, DW_FORM_data8, 8 }, { "e", 1, DW_FORM_data8, 4 }, { "f", 7, DW_FORM_data8, 8 },
                      { "g", 7, DW_FORM_data8, 8 }, { "h", 1, DW_FORM_data4, 8 } };
        const size_t count = sizeof units / sizeof *units;

        for (size_t wanted = 0; wanted < count; wanted++) {
                char expected[16];
                struct dwarf_maker m;

                dwarf_maker_init(&m, 4);
                for (size_t i = 0; i < count; i++) {
                        const uint64_t sequence[][2] = { { MADE_CODE + 0x20 * i, 0x10 } };
                        uint64_t table = put_at(&m, DWARF_ABBREV);

                        m.address_size = 8;
                        put_abbrev(&m, 11, DW_TAG_variable, false, DW_AT_name, DW_FORM_strp, 0, 0);
                        put_abbrev(&m, units[i].code, DW_TAG_compile_unit, true, 0x52 /* DW_AT_entry_pc */,
                                   DW_FORM_addr, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, units[i].high_form,
                                   DW_AT_stmt_list, DW_FORM_sec_offset, 0, 0);
                        put_abbrev(&m, 12, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, DW_AT_low_pc,
                                   DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0, 0);
                        put_uint(&m, DWARF_ABBREV, 0, 1);
                        m.address_size = units[i].address_size;
                        put_unit(&m, DW_UT_compile, table);
                        put_uleb(&m, DWARF_INFO, units[i].code);
                        put_address(&m, DWARF_INFO, 0);
                        put_address(&m, DWARF_INFO, sequence[0][0]);
                        put_uint(&m, DWARF_INFO, 0x10, units[i].high_form == DW_FORM_data8 ? 8 : 4);
                        put_offset(&m, DWARF_INFO, put_at(&m, DWARF_LINE));
                        put_uleb(&m, DWARF_INFO, 12);
                        put_text(&m, DWARF_INFO, units[i].name);
                        put_address(&m, DWARF_INFO, sequence[0][0]);
                        put_uint(&m, DWARF_INFO, 0x10, 4);
                        put_uint(&m, DWARF_INFO, 0, 1);
                        end_unit(&m);
                        m.address_size = 8;
                        put_row_table(&m, sequence, 1);
                }
                /* Of the unit before, the line table is read. A unit whose DIE is misread is read in full. */
                ck_assert_uint_eq(count_units_read(&m, MADE_CODE + 0x20 * wanted + 8), wanted ? 2 : 1);
                snprintf(expected, sizeof expected, "%s a.c:1", units[wanted].name);
                check_address_frames(&m, MADE_CODE + 0x20 * wanted + 8, expected);
        }
}
END_TEST

/* ---- .debug_aranges ---- */

enum { A, B, TWIN, C, LISTED_UNITS }; /* at these multiples of 0x20; TWIN is a copy of B at its address */

struct listing {
        uint64_t units[LISTED_UNITS]; /* offsets in .debug_info */
        uint64_t starts[LISTED_UNITS];
};

/* Units with one function each, then rows of a table without a unit at MADE_CODE + 0x60. */
static void put_listed_units(struct dwarf_maker *m, bool has_twin, struct listing *ret)
{
        static const char *const functions[LISTED_UNITS] = { "a", "b", "twin", "c" };
        static const uint64_t lone[][2] = { { MADE_CODE + 0x60, 0x10 } };

        dwarf_maker_init(m, 4);
        put_abbrev(m, UNIT, DW_TAG_compile_unit, true, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4,
                   DW_AT_stmt_list, DW_FORM_sec_offset, 0, 0);
        put_abbrev(m, FUNCTION, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr,
                   DW_AT_high_pc, DW_FORM_data4, 0, 0);
        put_uint(m, DWARF_ABBREV, 0, 1);
        for (int i = 0; i < LISTED_UNITS; i++) {
                const uint64_t start = MADE_CODE + 0x20ul * (i == C                  ? 2
                                                             : i == TWIN && has_twin ? B
                                                             : i == TWIN             ? 4
                                                                                     : i);
                const uint64_t sequence[][2] = { { start, 0x10 } };

                ret->units[i] = put_at(m, DWARF_INFO);
                ret->starts[i] = start;
                put_unit(m, DW_UT_compile, 0);
                put_uleb(m, DWARF_INFO, UNIT);
                put_address(m, DWARF_INFO, start);
                put_uint(m, DWARF_INFO, 0x10, 4);
                put_offset(m, DWARF_INFO, put_at(m, DWARF_LINE));
                put_row_table(m, sequence, 1);
                put_function(m, functions[i], start, 0x10);
                put_uint(m, DWARF_INFO, 0, 1);
                end_unit(m);
        }
        put_row_table(m, lone, 1);
}

static size_t begin_listing(struct dwarf_maker *m, unsigned version, uint64_t unit, unsigned address_size)
{
        size_t at = put_length(m, DWARF_ARANGES);

        put_uint(m, DWARF_ARANGES, version, 2);
        put_offset(m, DWARF_ARANGES, unit);
        put_uint(m, DWARF_ARANGES, address_size, 1);
        put_uint(m, DWARF_ARANGES, 0, 1);
        put_uint(m, DWARF_ARANGES, 0, 4); /* the ranges are at a multiple of 16 */
        return at;
}

static void put_listed_range(struct dwarf_maker *m, uint64_t start, uint64_t size)
{
        put_address(m, DWARF_ARANGES, start);
        put_address(m, DWARF_ARANGES, size);
}

static void put_listing(struct dwarf_maker *m, uint64_t unit, uint64_t start, uint64_t size)
{
        size_t at = begin_listing(m, 2, unit, 8);

        put_listed_range(m, start, size);
        put_listed_range(m, 0, 0);
        end_length(m, DWARF_ARANGES, at);
}

/* Each address alone has the frames that it has in a complete table. */
static void check_all_addresses(const struct dwarf_maker *m)
{
        _cleanup_close_ int fd = made_file(NULL, 0, m);
        struct extract_inputs in = { .debuginfo_fd = fd, .executable_fd = -1, .altlink_fd = -1, .name = "made" };
        struct symbol_table whole, part;

        extract(&in, &whole);
        for (uint64_t address = MADE_CODE; address < MADE_CODE + 0xa0; address += 4) {
                const struct address_filter filter = { .addresses = &address, .count = 1, .max_percent = 100 };
                char expected[200];

                in.filter = &filter;
                extract(&in, &part);
                snprintf(expected, sizeof expected, "%s", made_frames(&whole, address));
                ck_assert_str_eq(made_frames(&part, address), expected);
                symbol_table_deinit(&part);
        }
        symbol_table_deinit(&whole);
}

START_TEST(listed_addresses_read_the_units_that_list_them)
{
        struct listing l;
        struct dwarf_maker m;

        put_listed_units(&m, true, &l);
        for (int i = LISTED_UNITS - 1; i >= 0; i--) /* in any order */
                put_listing(&m, l.units[i], l.starts[i], 0x10);
        ck_assert_uint_eq(count_units_read(&m, l.starts[A] + 8), 1);
        ck_assert_uint_eq(count_units_read(&m, l.starts[B] + 8), 2);
        ck_assert_uint_eq(count_units_read(&m, l.starts[C] + 8), 1);
        check_all_addresses(&m);
        check_address_frames(&m, l.starts[B] + 8, "b a.c:1");
}
END_TEST

START_TEST(units_that_are_not_listed_are_found)
{
        for (int missing = 0; missing < LISTED_UNITS; missing++) {
                struct listing l;
                struct dwarf_maker m;

                put_listed_units(&m, true, &l);
                for (int i = 0; i < LISTED_UNITS; i++)
                        if (i != missing)
                                put_listing(&m, l.units[i], l.starts[i], 0x10);
                check_all_addresses(&m);
                dwarf_maker_deinit(&m);
        }
}
END_TEST

/* Of a unit whose set ends with a pair of zeros too early, or that has another's addresses, or with a bad header. */
START_TEST(malformed_and_wrong_listings_are_not_trusted)
{
        enum { WRONG, EMPTY, EARLY_END, CUT_OFF, BAD_VERSION, BAD_UNIT, BAD_SIZE, TWICE, TOO_LONG, LARGE, KINDS };

        for (int kind = 0; kind < KINDS; kind++) {
                struct listing l;
                struct dwarf_maker m;
                size_t at;

                put_listed_units(&m, kind == EARLY_END, &l); /* else its twin would be taken for B */
                put_listing(&m, l.units[A], l.starts[A], 0x10);
                at = begin_listing(&m, kind == BAD_VERSION ? 3 : 2, l.units[B] + (kind == BAD_UNIT),
                                   kind == BAD_SIZE ? 4 : 8);
                if (kind == EARLY_END)
                        put_listed_range(&m, 0, 0);
                if (kind != EMPTY)
                        put_listed_range(&m, l.starts[kind == WRONG ? C : B],
                                         kind == LARGE ? UINT64_MAX - l.starts[B] : 0x10);
                if (kind != CUT_OFF)
                        put_listed_range(&m, 0, 0);
                end_length(&m, DWARF_ARANGES, at);
                put_listing(&m, l.units[kind == TWICE ? B : C], l.starts[kind == WRONG ? B : C], 0x10);
                put_listing(&m, l.units[TWIN], l.starts[TWIN], 0x10);
                if (kind == TOO_LONG)
                        put_uint(&m, DWARF_ARANGES, 0x7fffffff, 4);
                check_all_addresses(&m);
                dwarf_maker_deinit(&m);
        }
}
END_TEST

START_TEST(random_listings_agree)
{
        for (uint64_t seed = 1; seed <= 200; seed++) {
                uint64_t state = seed;
                struct listing l;
                struct dwarf_maker m;

                put_listed_units(&m, false, &l);
                for (uint64_t i = random_next(&state) % 8; i > 0; i--) {
                        size_t at = begin_listing(&m, 2, l.units[random_next(&state) % LISTED_UNITS], 8);

                        for (uint64_t k = random_next(&state) % 4; k > 0; k--)
                                put_listed_range(&m, MADE_CODE + random_next(&state) % 12 * 0x10,
                                                 random_next(&state) % 5 * 0x10);
                        if (random_next(&state) % 8)
                                put_listed_range(&m, 0, 0);
                        end_length(&m, DWARF_ARANGES, at);
                }
                check_all_addresses(&m);
                dwarf_maker_deinit(&m);
        }
}
END_TEST

START_TEST(filter_over_unit_limit_reads_all_units)
{
        _cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        struct extract_inputs in = { .debuginfo_fd = fd, .executable_fd = -1, .altlink_fd = -1, .name = "self" };
        struct symbol_table table;
        uint64_t address;
        const struct address_filter filter = { .addresses = &address, .count = 1, .max_percent = 0 };

        extract(&in, &table);
        address = table.ranges[table.range_count / 2].start;
        symbol_table_deinit(&table);
        in.filter = &filter;
        extract(&in, &table);
        ck_assert(table.is_complete);
        symbol_table_deinit(&table);
}
END_TEST

/* ---- symbols ---- */

static void add_symbol(struct code_symbols *s, const char *name, uint64_t start, uint64_t end, bool is_sized)
{
        ck_assert(array_reserve(&s->items, &s->capacity, s->count));
        s->items[s->count++] = (struct code_symbol){ .name = name,
                                                     .start = start,
                                                     .end = end,
                                                     .is_sized = is_sized,
                                                     .is_function = true,
                                                     .source = QUALITY_SYMTAB };
}

START_TEST(symbols_that_cover_no_filtered_address_are_omitted)
{
        const uint64_t address = 0x150;
        const struct address_filter filter = { .addresses = &address, .count = 1 };
        struct code_symbols s = { 0 };
        struct error err;

        add_symbol(&s, "around", 0x100, 0x200, true);
        add_symbol(&s, "twin", 0x100, 0x1000, false);
        add_symbol(&s, "cut", 0x120, 0x1000, false);
        add_symbol(&s, "last", 0x140, 0x1000, false);
        add_symbol(&s, "over", 0x130, 0x138, true);
        add_symbol(&s, "behind", 0x160, 0x170, true);
        ck_assert_int_eq(code_symbols_filter(&s, &filter, &err), ST_OK);
        ck_assert_uint_eq(s.count, 3);
        ck_assert_str_eq(s.items[0].name, "around");
        ck_assert_str_eq(s.items[1].name, "twin");
        ck_assert_str_eq(s.items[2].name, "last");
        code_symbols_deinit(&s);
}
END_TEST

TEST_SUITE("address_filter", filtered_extraction_of_this_program_agrees,
           filtered_extraction_of_debian_debug_files_agrees, filtered_extraction_of_specified_files_agrees,
           one_address_reads_few_units, first_of_overlapping_units_wins_with_filter,
           function_outside_of_its_units_list_is_found_alone, call_is_cut_off_at_the_end_of_its_function,
           calls_and_functions_at_any_addresses_agree_alone, rows_at_addresses_of_another_unit_do_not_count,
           rows_of_units_at_any_addresses_agree_alone, units_of_data_are_not_read,
           similar_abbreviations_of_units_are_told_apart, listed_addresses_read_the_units_that_list_them,
           units_that_are_not_listed_are_found, malformed_and_wrong_listings_are_not_trusted, random_listings_agree,
           filter_over_unit_limit_reads_all_units, symbols_that_cover_no_filtered_address_are_omitted)
