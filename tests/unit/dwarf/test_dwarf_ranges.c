/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <string.h>

#include "tests/support/dwarf_usual.h"
#include "tests/support/suite.h"

/* ---- ranges ---- */

static void put_ranged(struct dwarf_maker *m, const char *name, uint64_t offset)
{
        put_uleb(m, DWARF_INFO, RANGED);
        put_text(m, DWARF_INFO, name);
        put_offset(m, DWARF_INFO, offset);
}

static void check_intervals(const struct dwarf_code *c, const uint64_t (*expected)[2], size_t count)
{
        ck_assert_uint_eq(c->interval_count, count);
        for (size_t i = 0; i < count; i++) {
                ck_assert_uint_eq(c->intervals[i].start, expected[i][0]);
                ck_assert_uint_eq(c->intervals[i].end, expected[i][1]);
        }
}

START_TEST(dwarf4_range_lists_change_base_and_skip_dropped_code)
{
        static const uint64_t pairs[][2] = {
                { 0x10, 0x20 }, /* relative to the unit */
                { UINT64_MAX, CODE + 0x100 },
                { 0, 8 },
                { UINT64_MAX, UINT64_MAX - 1 },
                { CODE + 0x202, CODE + 0x204 }, /* wraps around into code */
                { UINT64_MAX, 0 },
                { UINT64_MAX - 1, UINT64_MAX - 1 },
                { CODE + 0x300, CODE + 0x300 },
                { CODE + 0x308, CODE + 0x304 },
                { 0x10, 0x20 },
                { 0x401ff0, 0x999999 },
                { 0, 0 },
                { 0x401000, 0x401100 }, /* past the end */
        };
        static const uint64_t expected[][2] = { { CODE + 0x10, CODE + 0x20 },
                                                { CODE + 0x100, CODE + 0x108 },
                                                { 0x401ff0, 0x402000 } };
        struct dwarf_maker m;
        struct dwarf_read r;

        begin_usual(&m, 4);
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
                put_address(&m, DWARF_RANGES, pairs[i][0]);
                put_address(&m, DWARF_RANGES, pairs[i][1]);
        }
        begin_cu(&m, CODE);
        put_ranged(&m, "f", 0);
        put_ranged(&m, "past the section", 100000);
        put_end(&m, 1);
        end_unit(&m);
        open_read(&r, &m, NULL);
        check_intervals(read_unit(&r, 0), expected, 3);
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(every_dwarf5_range_entry_is_read)
{
        static const uint64_t expected[][2] = {
                { CODE + 0x10, CODE + 0x12 },   { CODE + 0x20, CODE + 0x28 },   { CODE + 0x104, CODE + 0x108 },
                { CODE + 0x200, CODE + 0x208 }, { CODE + 0x300, CODE + 0x304 }, { CODE + 0x400, CODE + 0x480 },
                { CODE + 0x500, CODE + 0x501 },
        };
        struct dwarf_maker m;
        struct dwarf_read r;

        begin_usual(&m, 5);
        put_abbrev(&m, OTHER, DW_TAG_compile_unit, true, DW_AT_addr_base, DW_FORM_sec_offset, DW_AT_rnglists_base,
                   DW_FORM_sec_offset, DW_AT_low_pc, DW_FORM_addrx, 0, 0);
        put_abbrev(&m, OTHER + 1, DW_TAG_subprogram, false, DW_AT_ranges, DW_FORM_rnglistx, 0, 0);
        put_address(&m, DWARF_ADDR, CODE + 0x10);
        put_address(&m, DWARF_ADDR, CODE + 0x12);
        put_address(&m, DWARF_ADDR, CODE + 0x100);
        put_address(&m, DWARF_ADDR, UINT64_MAX);
        put_offset(&m, DWARF_RNGLISTS, 4); /* the table of lists: one, after it */
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_startx_endx, 1), put_uleb(&m, DWARF_RNGLISTS, 0),
                put_uleb(&m, DWARF_RNGLISTS, 1);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_offset_pair, 1), put_uleb(&m, DWARF_RNGLISTS, 0x10),
                put_uleb(&m, DWARF_RNGLISTS, 0x18);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_base_addressx, 1), put_uleb(&m, DWARF_RNGLISTS, 2);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_offset_pair, 1), put_uleb(&m, DWARF_RNGLISTS, 4),
                put_uleb(&m, DWARF_RNGLISTS, 8);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_base_address, 1), put_address(&m, DWARF_RNGLISTS, CODE + 0x200);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_offset_pair, 1), put_uleb(&m, DWARF_RNGLISTS, 0),
                put_uleb(&m, DWARF_RNGLISTS, 8);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_base_addressx, 1), put_uleb(&m, DWARF_RNGLISTS, 3); /* dropped */
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_offset_pair, 1), put_uleb(&m, DWARF_RNGLISTS, CODE + 1),
                put_uleb(&m, DWARF_RNGLISTS, CODE + 9);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_start_end, 1), put_address(&m, DWARF_RNGLISTS, CODE + 0x300),
                put_address(&m, DWARF_RNGLISTS, CODE + 0x304);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_start_length, 1), put_address(&m, DWARF_RNGLISTS, CODE + 0x400),
                put_uleb(&m, DWARF_RNGLISTS, 0x80);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_startx_length, 1), put_uleb(&m, DWARF_RNGLISTS, 3),
                put_uleb(&m, DWARF_RNGLISTS, 0x80);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_start_length, 1), put_address(&m, DWARF_RNGLISTS, CODE + 0x500),
                put_uleb(&m, DWARF_RNGLISTS, 1);
        /* the list is not terminated */
        put_unit(&m, DW_UT_compile, 0);
        put_uleb(&m, DWARF_INFO, OTHER);
        put_offset(&m, DWARF_INFO, 0);
        put_offset(&m, DWARF_INFO, 0);
        put_uleb(&m, DWARF_INFO, 0); /* the unit's base is CODE + 0x10 */
        put_uleb(&m, DWARF_INFO, OTHER + 1);
        put_uleb(&m, DWARF_INFO, 0);
        put_uleb(&m, DWARF_INFO, OTHER + 1);
        put_uleb(&m, DWARF_INFO, UINT64_MAX);
        put_end(&m, 1);
        end_unit(&m);
        open_read(&r, &m, NULL);
        check_intervals(read_unit(&r, 0), expected, 7);
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(functions_dropped_by_linker_are_skipped)
{
        struct dwarf_maker m;
        struct dwarf_read r;

        begin_usual(&m, 4);
        begin_cu(&m, 0);
        put_function(&m, "at zero", 0, 0x10), put_end(&m, 1);
        put_function(&m, "at -1", UINT64_MAX, 0x10), put_end(&m, 1);
        put_function(&m, "at -2", UINT64_MAX - 1, 0x10), put_end(&m, 1);
        put_function(&m, "live", CODE, 0x10), put_end(&m, 1);
        put_function(&m, "longer than the code", CODE + 0x10, 0xffffffff), put_end(&m, 1);
        put_end(&m, 1);
        end_unit(&m);
        open_read(&r, &m, NULL);
        ck_assert_uint_eq(read_unit(&r, 0)->scope_count, 2);
        ck_assert_str_eq(plain(&r.code, 0), "live");
        ck_assert_uint_eq(r.code.intervals[1].end, 0x402000);
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(code_inside_abstract_function_is_found)
{
        struct dwarf_maker m;
        struct dwarf_read r;

        begin_usual(&m, 4);
        put_abbrev(&m, OTHER, DW_TAG_subprogram, true, DW_AT_linkage_name, DW_FORM_string, 0, 0);
        put_abbrev(&m, OTHER + 1, DW_TAG_structure_type, true, 0, 0);
        begin_cu(&m, 0);
        put_uleb(&m, DWARF_INFO, OTHER); /* as in GCC: the code of a lambda in its type, in the enclosing function */
        put_text(&m, DWARF_INFO, "around");
        put_uleb(&m, DWARF_INFO, OTHER + 1);
        put_function(&m, "operator()", CODE, 8);
        put_end(&m, 4);
        end_unit(&m);
        open_read(&r, &m, NULL);
        ck_assert_uint_eq(read_unit(&r, 0)->function_count, 1);
        ck_assert_str_eq(plain(&r.code, 0), "(anonymous struct)::operator()");
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

/* ---- strings by index ---- */

START_TEST(indexed_strings_are_read_within_bounds)
{
        struct dwarf_maker m;
        struct dwarf_read r;

        dwarf_maker_init(&m, 5);
        put_abbrev(&m, 1, DW_TAG_compile_unit, true, DW_AT_str_offsets_base, DW_FORM_sec_offset, 0, 0);
        put_abbrev(&m, 2, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_strx3, DW_AT_low_pc, DW_FORM_addr,
                   DW_AT_high_pc, DW_FORM_data1, 0, 0);
        put_text(&m, DWARF_STR, "zero");
        put_text(&m, DWARF_STR, "five");
        put_uint(&m, DWARF_STR, 'x', 1); /* without its NUL */
        put_uint(&m, DWARF_STR_OFFSETS, 0, 8);
        put_offset(&m, DWARF_STR_OFFSETS, 5);
        put_offset(&m, DWARF_STR_OFFSETS, 10);
        put_unit(&m, DW_UT_compile, 0);
        put_uleb(&m, DWARF_INFO, 1);
        put_offset(&m, DWARF_INFO, 8);
        for (unsigned i = 0; i < 3; i++) {
                put_uleb(&m, DWARF_INFO, 2);
                put_uint(&m, DWARF_INFO, i, 3);
                put_address(&m, DWARF_INFO, CODE + i);
                put_uint(&m, DWARF_INFO, 1, 1);
        }
        put_end(&m, 1);
        end_unit(&m);
        open_read(&r, &m, NULL);
        ck_assert_uint_eq(read_unit(&r, 0)->scope_count, 3);
        ck_assert_str_eq(plain(&r.code, 0), "five");
        ck_assert_str_eq(plain(&r.code, 1), ""); /* ends past the section */
        ck_assert_str_eq(plain(&r.code, 2), "");
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

/* A function of 4 bytes whose low pc is an expression. */
static void put_evaluated(struct dwarf_maker *m, const uint8_t *expression, size_t size)
{
        put_uleb(m, DWARF_INFO, OTHER + 1);
        put_uleb(m, DWARF_INFO, size);
        for (size_t i = 0; i < size; i++)
                put_uint(m, DWARF_INFO, expression[i], 1);
        put_uint(m, DWARF_INFO, 4, 1);
}
#define EXPRESSION(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

static void put_with_offset(struct dwarf_maker *m, uint64_t index, uint32_t offset)
{
        put_uleb(m, DWARF_INFO, OTHER + 2);
        put_uleb(m, DWARF_INFO, index);
        put_uint(m, DWARF_INFO, offset, 4);
        put_uint(m, DWARF_INFO, 4, 1);
}

/* clang -mllvm -minimize-addr-in-v5=Expressions and =Form. */
START_TEST(low_pc_can_be_an_address_and_an_offset)
{
        static const uint64_t expected[][2] = { { CODE + 0x10, CODE + 0x14 },   { CODE + 0x23, CODE + 0x27 },
                                                { CODE + 0x130, CODE + 0x134 }, { CODE + 0x21f, CODE + 0x223 },
                                                { CODE + 0x300, CODE + 0x304 }, { CODE + 0x5ff, CODE + 0x603 } };
        struct dwarf_maker m;
        struct dwarf_read r;

        begin_usual(&m, 5);
        put_abbrev(&m, OTHER, DW_TAG_compile_unit, true, DW_AT_addr_base, DW_FORM_sec_offset, 0, 0);
        put_abbrev(&m, OTHER + 1, DW_TAG_subprogram, false, DW_AT_low_pc, DW_FORM_exprloc, DW_AT_high_pc, DW_FORM_data1,
                   0, 0);
        put_abbrev(&m, OTHER + 2, DW_TAG_subprogram, false, DW_AT_low_pc, DW_FORM_LLVM_addrx_offset, DW_AT_high_pc,
                   DW_FORM_data1, 0, 0);
        put_address(&m, DWARF_ADDR, CODE);
        put_address(&m, DWARF_ADDR, UINT64_MAX);
        put_unit(&m, DW_UT_compile, 0);
        put_uleb(&m, DWARF_INFO, OTHER);
        put_offset(&m, DWARF_INFO, 0);
        put_evaluated(&m, EXPRESSION(DW_OP_addrx, 0, DW_OP_const1u, 0x10, DW_OP_plus));
        put_evaluated(&m, EXPRESSION(DW_OP_addr, 0x20, 0x10, 0x40, 0, 0, 0, 0, 0, DW_OP_plus_uconst, 3));
        put_evaluated(&m, EXPRESSION(DW_OP_GNU_addr_index, 0, DW_OP_const2u, 0x20, 1, DW_OP_plus, DW_OP_constu, 0x10,
                                     DW_OP_plus));
        put_evaluated(&m, EXPRESSION(DW_OP_addrx, 0, DW_OP_const4u, 0x1f, 2, 0, 0, DW_OP_plus));
        put_evaluated(&m, EXPRESSION(DW_OP_addrx, 0, DW_OP_const8u, 0, 3, 0, 0, 0, 0, 0, 0, DW_OP_plus));
        put_with_offset(&m, 0, 0x5ff);
        put_with_offset(&m, 1, CODE + 1); /* discarded */
        put_evaluated(&m, EXPRESSION(DW_OP_addrx, 1, DW_OP_const4u, 1, 0x10, 0x40, 0, DW_OP_plus));
        put_with_offset(&m, 2, 0);                                          /* past the end of the section */
        put_evaluated(&m, EXPRESSION(DW_OP_addrx, 0, DW_OP_const1u, 0x10)); /* no address, as all others */
        put_evaluated(&m, EXPRESSION(DW_OP_addrx, 0, DW_OP_const2u, 0x10));
        put_evaluated(&m, EXPRESSION(DW_OP_addrx, 0, DW_OP_deref));
        put_evaluated(&m, EXPRESSION(DW_OP_reg0));
        put_evaluated(&m, NULL, 0);
        put_end(&m, 1);
        end_unit(&m);
        open_read(&r, &m, NULL);
        check_intervals(read_unit(&r, 0), expected, 6);
        ck_assert_int_eq(r.code.damage, ST_OK);
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

TEST_SUITE("dwarf_ranges", dwarf4_range_lists_change_base_and_skip_dropped_code, every_dwarf5_range_entry_is_read,
           low_pc_can_be_an_address_and_an_offset, functions_dropped_by_linker_are_skipped,
           code_inside_abstract_function_is_found, indexed_strings_are_read_within_bounds)
