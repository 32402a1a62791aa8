/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <string.h>

#include "common/limits.h"
#include "dwarf/code.h"
#include "tests/support/dwarf_maker.h"
#include "tests/support/suite.h"

#define CODE 0x401000
static const struct dwarf_region regions[] = { { 0x401000, 0x402000 } };

/* ---- what was made, opened and read ---- */

struct read {
        struct dwarf_object object;
        struct dwarf_reader *reader;
        struct dwarf_code code;
};

static void open_read(struct read *r, const struct dwarf_maker *m, const struct dwarf_maker *alt)
{
        struct error err;

        ck_assert_msg(open_made(m, alt, &r->object, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(dwarf_reader_create(&r->object, (struct dwarf_regions){ regions, 1 }, &r->reader, &err), ST_OK);
        dwarf_code_init(&r->code);
}

static const struct dwarf_code *read_unit(struct read *r, size_t i)
{
        ck_assert_int_eq(dwarf_reader_unit(r->reader, i, &r->code), ST_OK);
        return &r->code;
}

static void close_read(struct read *r)
{
        dwarf_code_deinit(&r->code);
        dwarf_reader_destroy(r->reader);
        dwarf_object_close(&r->object);
}

static const char *plain(const struct dwarf_code *c, size_t scope)
{
        const char *s = c->names[c->scopes[scope].name].plain;

        return s ? s : "";
}

/* ---- a file that most tests vary ---- */

enum { CU = 1, FUNCTION, ABSTRACT, INLINED, RANGED, OTHER };

static void put_usual_abbrevs(struct dwarf_maker *m)
{
        unsigned list = m->version >= 4 ? DW_FORM_sec_offset : DW_FORM_data4;

        put_abbrev(m, CU, DW_TAG_compile_unit, true, DW_AT_language, DW_FORM_data1, DW_AT_low_pc, DW_FORM_addr, 0, 0);
        put_abbrev(m, FUNCTION, DW_TAG_subprogram, true, DW_AT_name, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
                   m->version >= 4 ? DW_FORM_data4 : DW_FORM_addr, 0, 0);
        put_abbrev(m, ABSTRACT, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, 0, 0);
        put_abbrev(m, INLINED, DW_TAG_inlined_subroutine, false, DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_low_pc,
                   DW_FORM_addr, DW_AT_high_pc, m->version >= 4 ? DW_FORM_data4 : DW_FORM_addr, DW_AT_call_file,
                   DW_FORM_data1, DW_AT_call_line, DW_FORM_udata, 0, 0);
        put_abbrev(m, RANGED, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, DW_AT_ranges, list, 0, 0);
}

static void begin_usual(struct dwarf_maker *m, uint8_t version)
{
        dwarf_maker_init(m, version);
        put_usual_abbrevs(m);
}

static void begin_cu(struct dwarf_maker *m, uint64_t low_pc)
{
        put_unit(m, DW_UT_compile, 0);
        put_uleb(m, DWARF_INFO, CU);
        put_uint(m, DWARF_INFO, DW_LANG_C_plus_plus, 1);
        put_address(m, DWARF_INFO, low_pc);
}

static void put_addresses(struct dwarf_maker *m, uint64_t start, uint64_t size)
{
        put_address(m, DWARF_INFO, start);
        if (m->version >= 4)
                put_uint(m, DWARF_INFO, size, 4);
        else
                put_address(m, DWARF_INFO, start + size);
}

static void put_function(struct dwarf_maker *m, const char *name, uint64_t start, uint64_t size)
{
        put_uleb(m, DWARF_INFO, FUNCTION);
        put_text(m, DWARF_INFO, name);
        put_addresses(m, start, size);
}

static uint64_t put_abstract(struct dwarf_maker *m, const char *name)
{
        uint64_t at = put_at(m, DWARF_INFO);

        put_uleb(m, DWARF_INFO, ABSTRACT);
        put_text(m, DWARF_INFO, name);
        return at;
}

static void put_inlined(struct dwarf_maker *m, uint64_t origin, uint64_t start, uint64_t size, uint64_t line)
{
        put_uleb(m, DWARF_INFO, INLINED);
        put_uint(m, DWARF_INFO, origin - m->unit, 4);
        put_addresses(m, start, size);
        put_uint(m, DWARF_INFO, 1, 1);
        put_uleb(m, DWARF_INFO, line);
}

static void put_end(struct dwarf_maker *m, unsigned levels)
{
        put_uint(m, DWARF_INFO, 0, levels);
}

/* ---- versions and formats ---- */

START_TEST(each_version_width_and_byte_order_says_the_same)
{
        struct dwarf_maker m;
        struct read r;

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

START_TEST(every_form_can_be_stepped_over)
{
        static const struct { unsigned form; unsigned bytes; } forms[] = {
                { DW_FORM_addr, 8 },         { DW_FORM_data1, 1 },     { DW_FORM_data2, 2 },      { DW_FORM_data4, 4 },
                { DW_FORM_data8, 8 },        { DW_FORM_data16, 16 },   { DW_FORM_flag, 1 },       { DW_FORM_flag_present, 0 },
                { DW_FORM_ref1, 1 },         { DW_FORM_ref2, 2 },      { DW_FORM_ref4, 4 },       { DW_FORM_ref8, 8 },
                { DW_FORM_ref_addr, 4 },     { DW_FORM_ref_sig8, 8 },  { DW_FORM_strp, 4 },       { DW_FORM_line_strp, 4 },
                { DW_FORM_sec_offset, 4 },   { DW_FORM_strx1, 1 },     { DW_FORM_strx2, 2 },      { DW_FORM_strx3, 3 },
                { DW_FORM_strx4, 4 },        { DW_FORM_addrx1, 1 },    { DW_FORM_addrx2, 2 },     { DW_FORM_addrx3, 3 },
                { DW_FORM_addrx4, 4 },       { DW_FORM_ref_sup4, 4 },  { DW_FORM_ref_sup8, 8 },   { DW_FORM_strp_sup, 4 },
                { DW_FORM_GNU_ref_alt, 4 },  { DW_FORM_GNU_strp_alt, 4 },
        };
        static const unsigned variable[] = { DW_FORM_udata, DW_FORM_sdata, DW_FORM_ref_udata, DW_FORM_strx, DW_FORM_addrx,
                                             DW_FORM_loclistx, DW_FORM_rnglistx, DW_FORM_GNU_addr_index,
                                             DW_FORM_GNU_str_index };
        static const unsigned blocks[] = { DW_FORM_block, DW_FORM_exprloc, DW_FORM_block1, DW_FORM_block2, DW_FORM_block4 };
        static const unsigned block_bytes[] = { 1, 1, 1, 2, 4 };
        const unsigned unknown_attribute = 0x3fff;
        struct dwarf_maker m;
        struct read r;

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
        struct read r;

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
        ck_assert_uint_eq(r.code.scope_count, 1); /* what came before stays */
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(type_partial_and_skeleton_units_hold_no_functions)
{
        static const enum dwarf_unit_type types[] = { DW_UT_type, DW_UT_partial, DW_UT_skeleton };
        struct dwarf_maker m;
        struct read r;

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

/* ---- lies ---- */

START_TEST(a_unit_that_ends_past_its_section_is_left_out)
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

START_TEST(a_die_that_is_cut_off_by_its_unit_keeps_what_came_before)
{
        struct dwarf_maker m;
        struct read r;

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

START_TEST(a_sibling_that_leads_back_is_not_followed)
{
        struct dwarf_maker m;
        struct read r;

        begin_usual(&m, 4);
        put_abbrev(&m, OTHER, 0x13, true, DW_AT_sibling, DW_FORM_ref4, 0, 0);
        put_abbrev(&m, OTHER + 1, 0x0f, true, DW_AT_sibling, DW_FORM_ref4, 0, 0); /* holds no code */
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
        struct read r;

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

START_TEST(codes_in_any_order_are_found_and_the_first_of_two_counts)
{
        struct dwarf_maker m;
        struct read r;

        dwarf_maker_init(&m, 4);
        put_abbrev(&m, 900000000000, DW_TAG_compile_unit, true, 0, 0);
        put_abbrev(&m, 7, DW_TAG_subprogram, false, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1, DW_AT_name,
                   DW_FORM_string, 0, 0);
        put_abbrev(&m, 7, DW_TAG_subprogram, true, DW_AT_name, DW_FORM_strp, 0, 0);
        put_uint(&m, DWARF_ABBREV, 0, 1);
        put_unit(&m, DW_UT_compile, 0);
        put_uleb(&m, DWARF_INFO, 900000000000);
        put_uleb(&m, DWARF_INFO, 7);
        put_address(&m, DWARF_INFO, CODE);
        put_uint(&m, DWARF_INFO, 9, 1);
        put_text(&m, DWARF_INFO, "first");
        put_uleb(&m, DWARF_INFO, 8); /* nobody's */
        end_unit(&m);
        open_read(&r, &m, NULL);
        ck_assert_int_eq(read_unit(&r, 0)->damage, ST_BAD_DATA);
        ck_assert_str_eq(plain(&r.code, 0), "first");
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(tables_that_lie_in_one_another_are_read_so_often_only)
{
        struct dwarf_maker m;
        struct read r;
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

/* ---- names ---- */

START_TEST(a_circle_of_origins_ends_with_the_names_on_it)
{
        struct dwarf_maker m;
        struct read r;
        uint64_t first;

        begin_usual(&m, 4);
        put_abbrev(&m, OTHER, DW_TAG_subprogram, false, DW_AT_abstract_origin, DW_FORM_ref4, 0, 0);
        put_abbrev(&m, OTHER + 1, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, DW_AT_specification, DW_FORM_ref4, 0, 0);
        begin_cu(&m, 0);
        first = put_at(&m, DWARF_INFO);
        put_uleb(&m, DWARF_INFO, OTHER); /* to the next one */
        put_uint(&m, DWARF_INFO, first + 5, 4);
        put_uleb(&m, DWARF_INFO, OTHER + 1); /* and back */
        put_text(&m, DWARF_INFO, "circle");
        put_uint(&m, DWARF_INFO, first, 4);
        put_function(&m, "f", CODE, 0x10);
        put_inlined(&m, first, CODE, 4, 1);
        put_inlined(&m, put_at(&m, DWARF_INFO), CODE + 4, 4, 1); /* its own origin */
        put_end(&m, 2);
        end_unit(&m);
        open_read(&r, &m, NULL);
        ck_assert_int_eq(read_unit(&r, 0)->damage, ST_OK);
        ck_assert_str_eq(plain(&r.code, 1), "circle");
        ck_assert_str_eq(plain(&r.code, 2), "");
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(names_of_another_unit_have_its_scopes_in_front)
{
        struct dwarf_maker m;
        struct read r;
        uint64_t origin;

        begin_usual(&m, 4);
        put_abbrev(&m, OTHER, DW_TAG_namespace, true, DW_AT_name, DW_FORM_string, 0, 0);
        put_abbrev(&m, OTHER + 1, DW_TAG_class_type, true, 0, 0);
        put_abbrev(&m, OTHER + 2, DW_TAG_inlined_subroutine, false, DW_AT_abstract_origin, DW_FORM_ref_addr, DW_AT_low_pc,
                   DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1, 0, 0);
        begin_cu(&m, 0);
        put_function(&m, "f", CODE, 0x10);
        put_uleb(&m, DWARF_INFO, OTHER + 2);
        put_offset(&m, DWARF_INFO, 0);
        put_address(&m, DWARF_INFO, CODE);
        put_uint(&m, DWARF_INFO, 4, 1);
        put_end(&m, 2);
        end_unit(&m);
        begin_cu(&m, 0);
        put_uleb(&m, DWARF_INFO, OTHER);
        put_text(&m, DWARF_INFO, "ns");
        put_uleb(&m, DWARF_INFO, OTHER + 1);
        origin = put_abstract(&m, "method");
        put_end(&m, 3);
        end_unit(&m);
        m.sections[DWARF_INFO].data[m.unit - 15] = (uint8_t)origin;
        open_read(&r, &m, NULL);
        ck_assert_int_eq(read_unit(&r, 0)->damage, ST_OK);
        ck_assert_str_eq(plain(&r.code, 0), "f");
        ck_assert_str_eq(plain(&r.code, 1), "ns::(anonymous class)::method");
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

enum { SCOPE = OTHER, SIGNED, NAMED, POINTING };

/* A type unit of version 5 whose type says where else its name is, or has it. */
static void put_type(struct dwarf_maker *m, uint64_t signature, const char *name, uint64_t other)
{
        put_unit(m, DW_UT_type, 0);
        m->sections[DWARF_INFO].data[m->unit + 12] = (uint8_t)signature;
        put_uleb(m, DWARF_INFO, CU);
        put_uint(m, DWARF_INFO, DW_LANG_C_plus_plus, 1);
        put_address(m, DWARF_INFO, 0);
        m->sections[DWARF_INFO].data[m->unit + 20] = (uint8_t)(put_at(m, DWARF_INFO) - m->unit);
        put_uleb(m, DWARF_INFO, name ? NAMED : SIGNED);
        if (name)
                put_text(m, DWARF_INFO, name);
        else
                put_uint(m, DWARF_INFO, other, 8);
        put_end(m, 2);
        end_unit(m);
}

static void put_signed_function(struct dwarf_maker *m, uint64_t signature, const char *name, uint64_t start)
{
        put_uleb(m, DWARF_INFO, SIGNED);
        put_uint(m, DWARF_INFO, signature, 8);
        put_function(m, name, start, 4);
        put_end(m, 2);
}

START_TEST(a_class_that_is_a_signature_has_the_name_of_its_type_unit)
{
        struct dwarf_maker m;
        struct read r;

        begin_usual(&m, 5);
        put_abbrev(&m, SCOPE, DW_TAG_namespace, true, DW_AT_name, DW_FORM_string, 0, 0);
        put_abbrev(&m, SIGNED, DW_TAG_class_type, true, DW_AT_signature, DW_FORM_ref_sig8, 0, 0);
        put_abbrev(&m, NAMED, DW_TAG_class_type, true, DW_AT_name, DW_FORM_string, 0, 0);
        begin_cu(&m, 0);
        put_uleb(&m, DWARF_INFO, SCOPE);
        put_text(&m, DWARF_INFO, "ns");
        put_signed_function(&m, 11, "direct", CODE);
        put_signed_function(&m, 12, "over_another", CODE + 0x10);
        put_signed_function(&m, 13, "in_a_circle", CODE + 0x20);
        put_signed_function(&m, 99, "nowhere", CODE + 0x30);
        put_signed_function(&m, 11, "again", CODE + 0x40);
        put_end(&m, 2);
        end_unit(&m);
        put_type(&m, 11, "Class", 0);
        put_type(&m, 12, NULL, 11);
        put_type(&m, 13, NULL, 14);
        put_type(&m, 14, NULL, 13);
        put_type(&m, 11, "Later", 0);
        open_read(&r, &m, NULL);
        ck_assert_int_eq(read_unit(&r, 0)->damage, ST_OK);
        ck_assert_uint_eq(r.code.scope_count, 5);
        ck_assert_str_eq(plain(&r.code, 0), "ns::Class::direct");
        ck_assert_str_eq(plain(&r.code, 1), "ns::Class::over_another");
        ck_assert_str_eq(plain(&r.code, 2), "ns::(anonymous class)::in_a_circle");
        ck_assert_str_eq(plain(&r.code, 3), "ns::(anonymous class)::nowhere");
        ck_assert_str_eq(plain(&r.code, 4), "ns::Class::again");
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(a_type_whose_name_leads_in_a_circle_or_out_of_its_unit_has_none)
{
        for (int outside = 0; outside < 2; outside++) {
                struct dwarf_maker m;
                struct read r;

                begin_usual(&m, 5);
                put_abbrev(&m, SIGNED, DW_TAG_class_type, true, DW_AT_signature, DW_FORM_ref_sig8, 0, 0);
                put_abbrev(&m, POINTING, DW_TAG_class_type, true, DW_AT_specification, DW_FORM_ref4, 0, 0);
                begin_cu(&m, 0);
                put_signed_function(&m, 11, "f", CODE);
                put_end(&m, 1);
                end_unit(&m);
                put_unit(&m, DW_UT_type, 0);
                m.sections[DWARF_INFO].data[m.unit + 12] = 11;
                put_uleb(&m, DWARF_INFO, CU);
                put_uint(&m, DWARF_INFO, DW_LANG_C_plus_plus, 1);
                put_address(&m, DWARF_INFO, 0);
                m.sections[DWARF_INFO].data[m.unit + 20] = outside ? 0xff : (uint8_t)(put_at(&m, DWARF_INFO) - m.unit);
                put_uleb(&m, DWARF_INFO, POINTING);
                put_uint(&m, DWARF_INFO, put_at(&m, DWARF_INFO) - 1 - m.unit, 4);
                put_end(&m, 2);
                end_unit(&m);
                open_read(&r, &m, NULL);
                read_unit(&r, 0);
                ck_assert_str_eq(plain(&r.code, 0), "(anonymous class)::f");
                close_read(&r);
                dwarf_maker_deinit(&m);
        }
}
END_TEST

/* A class in the function at hand, with a function inside. */
static void put_local_class(struct dwarf_maker *m, const char *name, uint64_t start)
{
        put_uleb(m, DWARF_INFO, OTHER);
        put_function(m, name, start, 4);
        put_end(m, 2);
}

START_TEST(a_function_in_a_class_in_a_function_has_both_in_front)
{
        struct dwarf_maker m;
        struct read r;

        begin_usual(&m, 4);
        put_abbrev(&m, OTHER, DW_TAG_class_type, true, 0, 0);
        put_abbrev(&m, OTHER + 1, DW_TAG_subprogram, true, DW_AT_linkage_name, DW_FORM_string, 0, 0);
        begin_cu(&m, 0);
        put_function(&m, "around", CODE, 0x20);
        put_local_class(&m, "inside", CODE + 0x10);
        put_end(&m, 1);
        put_uleb(&m, DWARF_INFO, OTHER + 1);
        put_text(&m, DWARF_INFO, "_Z6linkedv");
        put_local_class(&m, "linked_inside", CODE + 0x30);
        put_end(&m, 2);
        end_unit(&m);
        open_read(&r, &m, NULL);
        ck_assert_int_eq(read_unit(&r, 0)->damage, ST_OK);
        ck_assert_str_eq(plain(&r.code, 1), "around::(anonymous class)::inside");
        ck_assert_ptr_null(r.code.names[r.code.scopes[1].name].around);
        ck_assert_str_eq(plain(&r.code, 2), "(anonymous class)::linked_inside");
        ck_assert_str_eq(r.code.names[r.code.scopes[2].name].around, "_Z6linkedv");
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(a_function_that_is_declared_inside_of_itself_has_a_name)
{
        struct dwarf_maker m;
        struct read r;
        size_t spec;

        begin_usual(&m, 4);
        put_abbrev(&m, OTHER, DW_TAG_class_type, true, 0, 0);
        put_abbrev(&m, OTHER + 1, DW_TAG_subprogram, true, DW_AT_specification, DW_FORM_ref4, DW_AT_low_pc, DW_FORM_addr,
                   DW_AT_high_pc, DW_FORM_data4, 0, 0);
        begin_cu(&m, 0);
        put_uleb(&m, DWARF_INFO, OTHER + 1);
        spec = put_at(&m, DWARF_INFO);
        put_uint(&m, DWARF_INFO, 0, 4);
        put_address(&m, DWARF_INFO, CODE);
        put_uint(&m, DWARF_INFO, 0x10, 4);
        put_uleb(&m, DWARF_INFO, OTHER);
        m.sections[DWARF_INFO].data[spec] = (uint8_t)(put_abstract(&m, "f") - m.unit);
        put_end(&m, 3);
        end_unit(&m);
        open_read(&r, &m, NULL);
        ck_assert_int_eq(read_unit(&r, 0)->damage, ST_OK);
        ck_assert_ptr_nonnull(strstr(plain(&r.code, 0), "f::(anonymous class)::f"));
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(a_dwz_file_lends_functions_and_names)
{
        struct dwarf_maker m, alt;
        struct read r;
        uint64_t origin;

        begin_usual(&alt, 4);
        put_abbrev(&alt, OTHER, DW_TAG_partial_unit, true, 0, 0);
        put_unit(&alt, DW_UT_partial, 0);
        put_uleb(&alt, DWARF_INFO, OTHER);
        origin = put_abstract(&alt, "shared");
        put_end(&alt, 1);
        end_unit(&alt);
        put_text(&alt, DWARF_STR, "a name");
        begin_usual(&m, 4);
        put_abbrev(&m, OTHER, DW_TAG_inlined_subroutine, false, DW_AT_abstract_origin, DW_FORM_GNU_ref_alt, DW_AT_low_pc,
                   DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1, 0, 0);
        put_abbrev(&m, OTHER + 1, DW_TAG_subprogram, true, DW_AT_linkage_name, DW_FORM_GNU_strp_alt, DW_AT_low_pc,
                   DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1, 0, 0);
        begin_cu(&m, 0);
        put_uleb(&m, DWARF_INFO, OTHER + 1);
        put_offset(&m, DWARF_INFO, 2);
        put_address(&m, DWARF_INFO, CODE);
        put_uint(&m, DWARF_INFO, 8, 1);
        put_uleb(&m, DWARF_INFO, OTHER);
        put_offset(&m, DWARF_INFO, origin);
        put_address(&m, DWARF_INFO, CODE);
        put_uint(&m, DWARF_INFO, 4, 1);
        put_end(&m, 2);
        end_unit(&m);
        open_read(&r, &m, &alt);
        ck_assert_int_eq(read_unit(&r, 0)->damage, ST_OK);
        ck_assert_str_eq(r.code.names[r.code.scopes[0].name].linkage, "name");
        ck_assert_str_eq(plain(&r.code, 1), "shared");
        close_read(&r);
        open_read(&r, &m, NULL); /* without it the frames stay, nameless */
        ck_assert_uint_eq(read_unit(&r, 0)->scope_count, 2);
        ck_assert_str_eq(plain(&r.code, 1), "");
        close_read(&r);
        dwarf_maker_deinit(&m);
        dwarf_maker_deinit(&alt);
}
END_TEST

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

START_TEST(old_range_lists_change_their_base_and_drop_what_the_linker_dropped)
{
        static const uint64_t pairs[][2] = {
                { 0x10, 0x20 },                 /* relative to the unit */
                { UINT64_MAX, CODE + 0x100 },   { 0, 8 },
                { UINT64_MAX, UINT64_MAX - 1 }, { CODE + 0x202, CODE + 0x204 }, /* wraps into code */
                { UINT64_MAX, 0 },              { UINT64_MAX - 1, UINT64_MAX - 1 },
                { CODE + 0x300, CODE + 0x300 }, { CODE + 0x308, CODE + 0x304 }, { 0x10, 0x20 },
                { 0x401ff0, 0x999999 },         { 0, 0 },
                { 0x401000, 0x401100 },         /* behind the end */
        };
        static const uint64_t expected[][2] = { { CODE + 0x10, CODE + 0x20 }, { CODE + 0x100, CODE + 0x108 },
                                                { 0x401ff0, 0x402000 } };
        struct dwarf_maker m;
        struct read r;

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

START_TEST(each_entry_of_new_range_lists_is_understood)
{
        static const uint64_t expected[][2] = {
                { CODE + 0x10, CODE + 0x12 }, { CODE + 0x20, CODE + 0x28 }, { CODE + 0x104, CODE + 0x108 },
                { CODE + 0x200, CODE + 0x208 }, { CODE + 0x300, CODE + 0x304 }, { CODE + 0x400, CODE + 0x480 },
                { CODE + 0x500, CODE + 0x501 },
        };
        struct dwarf_maker m;
        struct read r;

        begin_usual(&m, 5);
        put_abbrev(&m, OTHER, DW_TAG_compile_unit, true, DW_AT_addr_base, DW_FORM_sec_offset, DW_AT_rnglists_base,
                   DW_FORM_sec_offset, DW_AT_low_pc, DW_FORM_addrx, 0, 0);
        put_abbrev(&m, OTHER + 1, DW_TAG_subprogram, false, DW_AT_ranges, DW_FORM_rnglistx, 0, 0);
        put_address(&m, DWARF_ADDR, CODE + 0x10);
        put_address(&m, DWARF_ADDR, CODE + 0x12);
        put_address(&m, DWARF_ADDR, CODE + 0x100);
        put_address(&m, DWARF_ADDR, UINT64_MAX);
        put_offset(&m, DWARF_RNGLISTS, 4); /* the table of lists: one, behind it */
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_startx_endx, 1), put_uleb(&m, DWARF_RNGLISTS, 0), put_uleb(&m, DWARF_RNGLISTS, 1);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_offset_pair, 1), put_uleb(&m, DWARF_RNGLISTS, 0x10), put_uleb(&m, DWARF_RNGLISTS, 0x18);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_base_addressx, 1), put_uleb(&m, DWARF_RNGLISTS, 2);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_offset_pair, 1), put_uleb(&m, DWARF_RNGLISTS, 4), put_uleb(&m, DWARF_RNGLISTS, 8);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_base_address, 1), put_address(&m, DWARF_RNGLISTS, CODE + 0x200);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_offset_pair, 1), put_uleb(&m, DWARF_RNGLISTS, 0), put_uleb(&m, DWARF_RNGLISTS, 8);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_base_addressx, 1), put_uleb(&m, DWARF_RNGLISTS, 3); /* dropped */
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_offset_pair, 1), put_uleb(&m, DWARF_RNGLISTS, CODE + 1), put_uleb(&m, DWARF_RNGLISTS, CODE + 9);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_start_end, 1), put_address(&m, DWARF_RNGLISTS, CODE + 0x300), put_address(&m, DWARF_RNGLISTS, CODE + 0x304);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_start_length, 1), put_address(&m, DWARF_RNGLISTS, CODE + 0x400), put_uleb(&m, DWARF_RNGLISTS, 0x80);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_startx_length, 1), put_uleb(&m, DWARF_RNGLISTS, 3), put_uleb(&m, DWARF_RNGLISTS, 0x80);
        put_uint(&m, DWARF_RNGLISTS, DW_RLE_start_length, 1), put_address(&m, DWARF_RNGLISTS, CODE + 0x500), put_uleb(&m, DWARF_RNGLISTS, 1);
        /* no end of the list */
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

START_TEST(functions_that_the_linker_dropped_are_left_out)
{
        struct dwarf_maker m;
        struct read r;

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

START_TEST(code_inside_of_an_abstract_function_is_found)
{
        struct dwarf_maker m;
        struct read r;

        begin_usual(&m, 4);
        put_abbrev(&m, OTHER, DW_TAG_subprogram, true, DW_AT_linkage_name, DW_FORM_string, 0, 0);
        put_abbrev(&m, OTHER + 1, DW_TAG_structure_type, true, 0, 0);
        begin_cu(&m, 0);
        put_uleb(&m, DWARF_INFO, OTHER); /* as GCC has it: the code of a lambda, in its type, in the function around */
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

START_TEST(strings_by_index_are_found_and_those_past_the_end_are_not)
{
        struct dwarf_maker m;
        struct read r;

        dwarf_maker_init(&m, 5);
        put_abbrev(&m, 1, DW_TAG_compile_unit, true, DW_AT_str_offsets_base, DW_FORM_sec_offset, 0, 0);
        put_abbrev(&m, 2, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_strx3, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
                   DW_FORM_data1, 0, 0);
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

TEST_SUITE("dwarf", each_version_width_and_byte_order_says_the_same, every_form_can_be_stepped_over,
           an_indirect_form_that_is_indirect_again_damages_the_unit, type_partial_and_skeleton_units_hold_no_functions,
           a_unit_that_ends_past_its_section_is_left_out, a_die_that_is_cut_off_by_its_unit_keeps_what_came_before,
           a_sibling_that_leads_back_is_not_followed, blocks_a_hundred_thousand_deep_end_in_time,
           codes_in_any_order_are_found_and_the_first_of_two_counts, tables_that_lie_in_one_another_are_read_so_often_only,
           a_circle_of_origins_ends_with_the_names_on_it, names_of_another_unit_have_its_scopes_in_front,
           a_class_that_is_a_signature_has_the_name_of_its_type_unit,
           a_type_whose_name_leads_in_a_circle_or_out_of_its_unit_has_none,
           a_function_in_a_class_in_a_function_has_both_in_front, a_function_that_is_declared_inside_of_itself_has_a_name,
           a_dwz_file_lends_functions_and_names, old_range_lists_change_their_base_and_drop_what_the_linker_dropped,
           each_entry_of_new_range_lists_is_understood, functions_that_the_linker_dropped_are_left_out,
           code_inside_of_an_abstract_function_is_found, strings_by_index_are_found_and_those_past_the_end_are_not)
