/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <sched.h>
#include <string.h>

#include "symbolizer/sources/dwarf_extract.h"
#include "tests/support/suite.h"

static struct symbol_table extract_self(void)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        struct symbol_table_builder b;
        struct dwarf_summary summary;
        struct symbol_table t;
        struct code_map code;
        struct error err;

        ck_assert_msg(elf_image_open("/proc/self/exe", &img, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(code_map_from_image(&img, &code, &err), ST_OK);
        symbol_table_builder_init(&b);
        ck_assert_msg(dwarf_extract(&(struct dwarf_input){ .img = &img, .code = &code }, &b, &summary, &err) == ST_OK,
                      "%s", err.text);
        ck_assert_uint_eq(summary.damaged_units, 0);
        ck_assert_int_eq(symbol_table_builder_finish(&b, &t, &err), ST_OK);
        symbol_table_builder_deinit(&b);
        code_map_deinit(&code);
        return t;
}

/* Uses as many threads as there are processors. */
static struct symbol_table extract_on_one_processor(void)
{
        struct symbol_table t;
        cpu_set_t before, one;

        ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
        CPU_ZERO(&one);
        CPU_SET((size_t)sched_getcpu(), &one);
        ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
        t = extract_self();
        ck_assert_int_eq(sched_setaffinity(0, sizeof before, &before), 0);
        return t;
}

START_TEST(threads_do_not_change_the_result)
{
        struct symbol_table first = extract_on_one_processor();

        for (int i = 0; i < 5; i++) {
                struct symbol_table again = extract_self();

                ck_assert_uint_eq(again.range_count, first.range_count);
                for (uint32_t r = 0; r < first.range_count; r++) {
                        ck_assert_uint_eq(again.ranges[r].start, first.ranges[r].start);
                        ck_assert_uint_eq(again.ranges[r].end, first.ranges[r].end);
                        ck_assert_uint_eq(again.ranges[r].chain, first.ranges[r].chain);
                }
                ck_assert_uint_eq(again.chain_count, first.chain_count);
                ck_assert_int_eq(memcmp(again.chains, first.chains, first.chain_count * sizeof *first.chains), 0);
                ck_assert_uint_eq(again.function_count, first.function_count);
                ck_assert_int_eq(
                        memcmp(again.functions, first.functions, first.function_count * sizeof *first.functions), 0);
                ck_assert_uint_eq(again.frame_count, first.frame_count);
                ck_assert_int_eq(memcmp(again.frames, first.frames, first.frame_count * sizeof *first.frames), 0);
                ck_assert_uint_eq(again.string_bytes, first.string_bytes);
                ck_assert_int_eq(memcmp(again.strings, first.strings, first.string_bytes), 0);
                symbol_table_deinit(&again);
        }
        symbol_table_deinit(&first);
}
END_TEST

TEST_SUITE("threads_dwarf", threads_do_not_change_the_result)
