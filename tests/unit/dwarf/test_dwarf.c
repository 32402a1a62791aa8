/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <string.h>

#include "tests/support/dwarf_usual.h"
#include "tests/support/suite.h"

/* ---- versions and formats ---- */

START_TEST(versions_widths_and_byte_orders_are_equivalent)
{
        struct dwarf_maker m;
        struct dwarf_read r;

        for (unsigned i = 0; i < 32; i++) {
                const struct dwarf_code *c;
                uint64_t origin;

                dwarf_maker_init(&m, (uint8_t)(2 + i % 4));
                m.big_endian = i & 4;
                m.address_size = i & 8 ? 4 : 8;
                m.offset_size = i & 16 ? 8 : 4;
                put_usual_abbrevs(&m);
                begin_cu(&m, 0);
                origin = put_abstract(&m, "inner");
                put_function(&m, "outer", CODE, 0x20);
                put_inlined(&m, origin, CODE + 8, 4, 300);
                put_end(&m, 2);
                end_unit(&m);
                open_read(&r, &m, NULL);
                ck_assert_uint_eq(r.object.main.units.count, 1);
                c = read_unit(&r, 0);
                ck_assert_int_eq(c->damage, ST_OK);
                ck_assert_uint_eq(c->scope_count, 2);
                ck_assert_uint_eq(c->function_count, 1);
                ck_assert_str_eq(plain(c, 0), "outer");
                ck_assert_str_eq(plain(c, 1), "inner");
                ck_assert_uint_eq(c->scopes[1].parent, 0);
                ck_assert_uint_eq(c->scopes[1].call_line, 300);
                ck_assert_uint_eq(c->intervals[0].end, CODE + 0x20);
                ck_assert_uint_eq(c->intervals[1].start, CODE + 8);
                ck_assert_uint_eq(c->intervals[1].end, CODE + 12);
                ck_assert_uint_gt(c->intervals[1].level, c->intervals[0].level);
                close_read(&r);
                dwarf_maker_deinit(&m);
        }
}
END_TEST

START_TEST(every_form_can_be_skipped)
{
        static const struct {
                unsigned form;
                unsigned bytes;
        } forms[] = {
                { DW_FORM_addr, 8 },      { DW_FORM_data1, 1 },        { DW_FORM_data2, 2 },
                { DW_FORM_data4, 4 },     { DW_FORM_data8, 8 },        { DW_FORM_data16, 16 },
                { DW_FORM_flag, 1 },      { DW_FORM_flag_present, 0 }, { DW_FORM_ref1, 1 },
                { DW_FORM_ref2, 2 },      { DW_FORM_ref4, 4 },         { DW_FORM_ref8, 8 },
                { DW_FORM_ref_addr, 4 },  { DW_FORM_ref_sig8, 8 },     { DW_FORM_strp, 4 },
                { DW_FORM_line_strp, 4 }, { DW_FORM_sec_offset, 4 },   { DW_FORM_strx1, 1 },
                { DW_FORM_strx2, 2 },     { DW_FORM_strx3, 3 },        { DW_FORM_strx4, 4 },
                { DW_FORM_addrx1, 1 },    { DW_FORM_addrx2, 2 },       { DW_FORM_addrx3, 3 },
                { DW_FORM_addrx4, 4 },    { DW_FORM_ref_sup4, 4 },     { DW_FORM_ref_sup8, 8 },
                { DW_FORM_strp_sup, 4 },  { DW_FORM_GNU_ref_alt, 4 },  { DW_FORM_GNU_strp_alt, 4 },
        };
        static const unsigned variable[] = { DW_FORM_udata,    DW_FORM_sdata,          DW_FORM_ref_udata,
                                             DW_FORM_strx,     DW_FORM_addrx,          DW_FORM_loclistx,
                                             DW_FORM_rnglistx, DW_FORM_GNU_addr_index, DW_FORM_GNU_str_index };
        static const unsigned blocks[] = { DW_FORM_block, DW_FORM_exprloc, DW_FORM_block1, DW_FORM_block2,
                                           DW_FORM_block4 };
        static const unsigned block_bytes[] = { 1, 1, 1, 2, 4 };
        const unsigned unknown_attribute = 0x3fff;
        struct dwarf_maker m;
        struct dwarf_read r;

        begin_usual(&m, 5);
        put_uleb(&m, DWARF_ABBREV, OTHER);
        put_uleb(&m, DWARF_ABBREV, 0x34);
        put_uint(&m, DWARF_ABBREV, 0, 1);
        begin_cu(&m, 0);
        put_uleb(&m, DWARF_INFO, OTHER);
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
                put_uleb(&m, DWARF_ABBREV, unknown_attribute);
                put_uleb(&m, DWARF_ABBREV, forms[i].form);
                for (unsigned b = 0; b < forms[i].bytes; b++)
                        put_uint(&m, DWARF_INFO, 0x81, 1);
        }
        for (size_t i = 0; i < sizeof variable / sizeof *variable; i++) {
                put_uleb(&m, DWARF_ABBREV, unknown_attribute);
                put_uleb(&m, DWARF_ABBREV, variable[i]);
                put_uleb(&m, DWARF_INFO, 0x12345678);
        }
        for (size_t i = 0; i < 5; i++) {
                put_uleb(&m, DWARF_ABBREV, unknown_attribute);
                put_uleb(&m, DWARF_ABBREV, blocks[i]);
                put_uint(&m, DWARF_INFO, 3, block_bytes[i]);
                put_uint(&m, DWARF_INFO, 0x818181, 3);
        }
        put_uleb(&m, DWARF_ABBREV, unknown_attribute);
        put_uleb(&m, DWARF_ABBREV, DW_FORM_indirect);
        put_uleb(&m, DWARF_INFO, DW_FORM_string);
        put_text(&m, DWARF_INFO, "indirect");
        put_uleb(&m, DWARF_ABBREV, unknown_attribute);
        put_uleb(&m, DWARF_ABBREV, DW_FORM_LLVM_addrx_offset);
        put_uleb(&m, DWARF_INFO, 0x1234);
        put_uint(&m, DWARF_INFO, 0x81818181, 4);
        put_uleb(&m, DWARF_ABBREV, unknown_attribute);
        put_uleb(&m, DWARF_ABBREV, DW_FORM_implicit_const);
        put_uleb(&m, DWARF_ABBREV, 5);
        put_uint(&m, DWARF_ABBREV, 0, 3);
        put_function(&m, "behind", CODE, 1);
        put_end(&m, 2);
        end_unit(&m);
        open_read(&r, &m, NULL);
        ck_assert_int_eq(read_unit(&r, 0)->damage, ST_OK);
        ck_assert_uint_eq(r.code.scope_count, 1);
        ck_assert_str_eq(plain(&r.code, 0), "behind");
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(an_indirect_form_that_is_indirect_again_damages_the_unit)
{
        struct dwarf_maker m;
        struct dwarf_read r;

        begin_usual(&m, 5);
        put_abbrev(&m, OTHER, 0x34, false, DW_AT_name, DW_FORM_indirect, 0, 0);
        begin_cu(&m, 0);
        put_function(&m, "before", CODE, 1);
        put_end(&m, 1);
        put_uleb(&m, DWARF_INFO, OTHER);
        for (int i = 0; i < 1000; i++)
                put_uleb(&m, DWARF_INFO, DW_FORM_indirect);
        put_end(&m, 2);
        end_unit(&m);
        open_read(&r, &m, NULL);
        ck_assert_int_eq(read_unit(&r, 0)->damage, ST_BAD_DATA);
        ck_assert_uint_eq(r.code.scope_count, 1); /* earlier functions are kept */
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(type_partial_and_skeleton_units_hold_no_functions)
{
        static const enum dwarf_unit_type types[] = { DW_UT_type, DW_UT_partial, DW_UT_skeleton };
        struct dwarf_maker m;
        struct dwarf_read r;

        for (int i = 0; i < 3; i++) {
                begin_usual(&m, 5);
                put_abbrev(&m, OTHER, i == 2 ? DW_TAG_skeleton_unit : DW_TAG_partial_unit, i != 2, 0, 0);
                put_unit(&m, types[i], 0);
                put_uleb(&m, DWARF_INFO, OTHER);
                if (i != 2)
                        put_function(&m, "f", CODE, 1);
                end_unit(&m);
                open_read(&r, &m, NULL);
                ck_assert_uint_eq(read_unit(&r, 0)->scope_count, 0);
                ck_assert_int_eq(r.code.damage, ST_OK);
                close_read(&r);
                dwarf_maker_deinit(&m);
        }
}
END_TEST

/* ---- malformed units ---- */

START_TEST(unit_past_section_end_is_skipped)
{
        struct dwarf_maker m;
        struct dwarf_object o;
        struct error err;

        begin_usual(&m, 4);
        begin_cu(&m, 0);
        put_end(&m, 1);
        end_unit(&m);
        m.sections[DWARF_INFO].data[0]++;
        ck_assert_int_eq(open_made(&m, NULL, &o, &err), ST_OK);
        ck_assert_uint_eq(o.main.units.count, 0);
        ck_assert_uint_eq(o.main.units.left_out, 1);
        ck_assert_int_eq(o.main.units.damage.code, ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(o.main.units.damage.text, "0x0"));
        dwarf_object_close(&o);
        memset(m.sections[DWARF_INFO].data, 0xff, 12); /* the 64-bit format, 2^64 bytes */
        ck_assert_int_eq(open_made(&m, NULL, &o, &err), ST_OK);
        ck_assert_int_eq(o.main.units.damage.code, ST_BAD_DATA);
        dwarf_object_close(&o);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(die_truncated_by_unit_end_keeps_earlier_ones)
{
        struct dwarf_maker m;
        struct dwarf_read r;

        begin_usual(&m, 4);
        begin_cu(&m, 0);
        put_function(&m, "whole", CODE, 1);
        put_end(&m, 1);
        put_function(&m, "cut", CODE + 1, 1);
        m.sections[DWARF_INFO].size -= 2;
        end_unit(&m);
        begin_cu(&m, 0);
        put_function(&m, "next", CODE + 2, 1);
        put_end(&m, 2);
        end_unit(&m);
        open_read(&r, &m, NULL);
        ck_assert_int_eq(read_unit(&r, 0)->damage, ST_BAD_DATA);
        ck_assert_str_eq(plain(&r.code, 0), "whole");
        ck_assert_int_eq(read_unit(&r, 1)->damage, ST_OK);
        ck_assert_str_eq(plain(&r.code, 0), "next");
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(backward_sibling_is_not_followed)
{
        struct dwarf_maker m;
        struct dwarf_read r;

        begin_usual(&m, 4);
        put_abbrev(&m, OTHER, 0x13, true, DW_AT_sibling, DW_FORM_ref4, 0, 0);
        put_abbrev(&m, OTHER + 1, 0x0f, true, DW_AT_sibling, DW_FORM_ref4, 0, 0); /* contains no code */
        begin_cu(&m, 0);
        put_uleb(&m, DWARF_INFO, OTHER + 1);
        put_uint(&m, DWARF_INFO, 11, 4);
        put_uleb(&m, DWARF_INFO, OTHER);
        put_uint(&m, DWARF_INFO, UINT32_MAX, 4);
        put_end(&m, 2);
        put_function(&m, "behind", CODE, 1);
        put_end(&m, 2);
        end_unit(&m);
        open_read(&r, &m, NULL);
        ck_assert_int_eq(read_unit(&r, 0)->damage, ST_OK);
        ck_assert_uint_eq(r.code.scope_count, 1);
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(blocks_a_hundred_thousand_deep_end_in_time)
{
        struct dwarf_maker m;
        struct dwarf_read r;

        begin_usual(&m, 4);
        put_abbrev(&m, OTHER, DW_TAG_lexical_block, true, 0, 0);
        begin_cu(&m, 0);
        put_function(&m, "deep", CODE, 0x10);
        for (int i = 0; i < 100000; i++)
                put_uleb(&m, DWARF_INFO, OTHER);
        put_function(&m, "too deep", CODE, 0x10);
        for (int i = 0; i < 100002; i++)
                put_end(&m, 1);
        put_function(&m, "after", CODE + 0x10, 0x10);
        put_end(&m, 2);
        end_unit(&m);
        open_read(&r, &m, NULL);
        ck_assert_int_eq(read_unit(&r, 0)->damage, ST_TOO_BIG);
        ck_assert_uint_eq(r.code.scope_count, 2);
        ck_assert_str_eq(plain(&r.code, 1), "after");
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

/* ---- abbreviations ---- */

START_TEST(abbreviation_codes_are_found_in_any_order_and_first_duplicate_wins)
{
        struct dwarf_maker m;
        struct dwarf_read r;

        dwarf_maker_init(&m, 4);
        put_abbrev(&m, 900000000000, DW_TAG_compile_unit, true, 0, 0);
        put_abbrev(&m, 7, DW_TAG_subprogram, false, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1,
                   DW_AT_name, DW_FORM_string, 0, 0);
        put_abbrev(&m, 7, DW_TAG_subprogram, true, DW_AT_name, DW_FORM_strp, 0, 0);
        put_uint(&m, DWARF_ABBREV, 0, 1);
        put_unit(&m, DW_UT_compile, 0);
        put_uleb(&m, DWARF_INFO, 900000000000);
        put_uleb(&m, DWARF_INFO, 7);
        put_address(&m, DWARF_INFO, CODE);
        put_uint(&m, DWARF_INFO, 9, 1);
        put_text(&m, DWARF_INFO, "first");
        put_uleb(&m, DWARF_INFO, 8); /* of no unit */
        end_unit(&m);
        open_read(&r, &m, NULL);
        ck_assert_int_eq(read_unit(&r, 0)->damage, ST_BAD_DATA);
        ck_assert_str_eq(plain(&r.code, 0), "first");
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(overlapping_abbreviation_tables_are_limited)
{
        struct dwarf_maker m;
        struct dwarf_read r;
        size_t damaged = 0, tables = 2000;

        dwarf_maker_init(&m, 4);
        for (size_t i = 0; i < 20000; i++)
                put_abbrev(&m, i + 1, DW_TAG_compile_unit, false, 0, 0);
        for (size_t i = 0; i < tables; i++) {
                put_unit(&m, DW_UT_compile, 5 * i);
                put_uleb(&m, DWARF_INFO, i + 1);
                end_unit(&m);
        }
        open_read(&r, &m, NULL);
        for (size_t i = 0; i < tables; i++)
                damaged += read_unit(&r, i)->damage == ST_TOO_BIG;
        ck_assert_uint_gt(damaged, 100);
        ck_assert_uint_lt(damaged, tables - 200);
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

TEST_SUITE("dwarf", versions_widths_and_byte_orders_are_equivalent, every_form_can_be_skipped,
           an_indirect_form_that_is_indirect_again_damages_the_unit, type_partial_and_skeleton_units_hold_no_functions,
           unit_past_section_end_is_skipped, die_truncated_by_unit_end_keeps_earlier_ones,
           backward_sibling_is_not_followed, blocks_a_hundred_thousand_deep_end_in_time,
           abbreviation_codes_are_found_in_any_order_and_first_duplicate_wins,
           overlapping_abbreviation_tables_are_limited)
