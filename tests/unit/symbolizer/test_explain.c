/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <string.h>

#include "dwarf/dwarf_explain.h"
#include "tests/support/dwarf_maker.h"
#include "tests/support/suite.h"

static const struct dwarf_region regions[] = { { 0x1000, 0x2000 } };

struct read {
        struct dwarf_object object;
        struct dwarf_reader *reader;
        struct dwarf_code code;
};

static void open_read(struct read *r, const struct dwarf_maker *m)
{
        struct error err;

        ck_assert_msg(open_made(m, NULL, &r->object, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(dwarf_reader_create(&r->object, (struct dwarf_regions){ regions, 1 }, &r->reader, &err),
                         ST_OK);
        dwarf_code_init(&r->code);
        ck_assert_int_eq(dwarf_reader_unit(r->reader, 0, &r->code), ST_OK);
}

static void close_read(struct read *r)
{
        dwarf_code_deinit(&r->code);
        dwarf_reader_destroy(r->reader);
        dwarf_object_close(&r->object);
}

/* ---- a unit: DECLARED "f", its function [0x1000, 0x1100) with an inlined call of ABSTRACT "g" in a list of ranges
 * ---- */

enum { CU = 1, DECLARED, FUNCTION, ABSTRACT, INLINED };

struct offsets {
        uint64_t declared, function, abstract, inlined;
};

static void put_die(struct dwarf_maker *m, unsigned abbrev, uint64_t *at)
{
        *at = put_at(m, DWARF_INFO);
        put_uleb(m, DWARF_INFO, abbrev);
}

/* @param size of the function */
static void put_usual(struct dwarf_maker *m, struct offsets *o, unsigned size)
{
        dwarf_maker_init(m, 4);
        put_abbrev(m, CU, DW_TAG_compile_unit, true, DW_AT_name, DW_FORM_string, DW_AT_producer, DW_FORM_string,
                   DW_AT_comp_dir, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0, 0);
        put_abbrev(m, DECLARED, DW_TAG_subprogram, false, DW_AT_linkage_name, DW_FORM_string, 0, 0);
        put_abbrev(m, FUNCTION, DW_TAG_subprogram, true, DW_AT_specification, DW_FORM_ref4, DW_AT_low_pc, DW_FORM_addr,
                   DW_AT_high_pc, DW_FORM_data4, 0, 0);
        put_abbrev(m, ABSTRACT, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, 0, 0);
        put_abbrev(m, INLINED, DW_TAG_inlined_subroutine, false, DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_ranges,
                   DW_FORM_sec_offset, DW_AT_call_line, DW_FORM_data1, DW_AT_call_column, DW_FORM_data1, 0, 0);
        put_uint(m, DWARF_ABBREV, 0, 1);
        put_unit(m, DW_UT_compile, 0);
        put_uleb(m, DWARF_INFO, CU);
        put_text(m, DWARF_INFO, "a.c");
        put_text(m, DWARF_INFO, "made by hand");
        put_text(m, DWARF_INFO, "/dir");
        put_address(m, DWARF_INFO, 0x1000);
        put_uint(m, DWARF_INFO, 0x100, 4);
        put_die(m, DECLARED, &o->declared);
        put_text(m, DWARF_INFO, "_Z1fv");
        put_die(m, ABSTRACT, &o->abstract);
        put_text(m, DWARF_INFO, "g");
        put_die(m, FUNCTION, &o->function);
        put_uint(m, DWARF_INFO, o->declared - m->unit, 4);
        put_address(m, DWARF_INFO, 0x1000);
        put_uint(m, DWARF_INFO, size, 4);
        put_die(m, INLINED, &o->inlined);
        put_uint(m, DWARF_INFO, o->abstract - m->unit, 4);
        put_offset(m, DWARF_INFO, 0);
        put_uint(m, DWARF_INFO, 7, 1);
        put_uint(m, DWARF_INFO, 9, 1);
        put_uint(m, DWARF_INFO, 0, 2);
        end_unit(m);
        for (uint64_t start = 0x10; start <= 0x20; start += 0x10) { /* relative to the unit's low_pc */
                put_address(m, DWARF_RANGES, start);
                put_address(m, DWARF_RANGES, start + 8);
        }
        put_address(m, DWARF_RANGES, 0);
        put_address(m, DWARF_RANGES, 0);
}

START_TEST(scopes_have_die_range_call_and_path_to_name)
{
        struct dwarf_scope_found inner, outer;
        struct dwarf_maker m;
        struct offsets o;
        struct read r;
        uint32_t scope;

        put_usual(&m, &o, 0x100);
        open_read(&r, &m);
        scope = dwarf_scope_at(&r.code, 0x1025);
        ck_assert_uint_ne(scope, DWARF_NO_SCOPE);
        dwarf_scope_explain(r.reader, &r.code, scope, 0x1025, &inner);
        ck_assert_uint_eq(inner.die, o.inlined);
        ck_assert_int_eq(inner.tag, DW_TAG_inlined_subroutine);
        ck_assert(inner.has_interval && inner.is_list);
        ck_assert_uint_eq(inner.entry, 1);
        ck_assert_uint_eq(inner.list, 0);
        ck_assert_uint_eq(inner.start, 0x1020);
        ck_assert_uint_eq(inner.end, 0x1028);
        ck_assert_uint_eq(inner.used_start, 0x1020);
        ck_assert_uint_eq(inner.used_end, 0x1028);
        ck_assert_uint_eq(inner.call_line, 7);
        ck_assert_uint_eq(inner.call_column, 9);
        ck_assert_uint_eq(inner.hop_count, 2);
        ck_assert_int_eq(inner.hops[1].how, DWARF_HOP_ORIGIN);
        ck_assert_uint_eq(inner.hops[inner.name_hop].die, o.abstract);
        dwarf_scope_explain(r.reader, &r.code, r.code.scopes[scope].parent, 0x1025, &outer);
        ck_assert_uint_eq(outer.die, o.function);
        ck_assert(outer.has_interval && !outer.is_list);
        ck_assert_int_eq(outer.hops[1].how, DWARF_HOP_SPECIFICATION);
        ck_assert_uint_eq(outer.hops[outer.name_hop].die, o.declared);
        ck_assert_str_eq(outer.name.linkage, "_Z1fv");
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(part_of_a_call_that_exceeds_its_function_is_not_used)
{
        struct dwarf_scope_found call;
        struct dwarf_maker m;
        struct offsets o;
        struct read r;

        put_usual(&m, &o, 0x24);
        open_read(&r, &m);
        dwarf_scope_explain(r.reader, &r.code, dwarf_scope_at(&r.code, 0x1022), 0x1022, &call);
        ck_assert_uint_eq(call.die, o.inlined);
        ck_assert_uint_eq(call.start, 0x1020);
        ck_assert_uint_eq(call.end, 0x1028);
        ck_assert_uint_eq(call.used_start, 0x1020);
        ck_assert_uint_eq(call.used_end, 0x1024);
        ck_assert_uint_eq(dwarf_scope_at(&r.code, 0x1025), DWARF_NO_SCOPE);
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(units_have_attributes_and_ranges)
{
        struct dwarf_unit_found u;
        struct dwarf_maker m;
        struct offsets o;
        struct read r;

        put_usual(&m, &o, 0x100);
        open_read(&r, &m);
        dwarf_unit_explain(r.reader, &u);
        ck_assert_str_eq(u.name, "a.c");
        ck_assert_str_eq(u.producer, "made by hand");
        ck_assert_str_eq(u.directory, "/dir");
        ck_assert_uint_eq(u.line_table, UINT64_MAX);
        ck_assert(!u.is_split);
        ck_assert(dwarf_unit_claims(r.reader, 0, 0x10ff));
        ck_assert(!dwarf_unit_claims(r.reader, 0, 0x1100));
        ck_assert(dwarf_code_covers(&r.code, 0x1000));
        ck_assert(!dwarf_code_covers(&r.code, 0x1100));
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

/* ---- rows ---- */

static void put_table(struct dwarf_maker *m, const uint8_t *program, size_t size)
{
        static const uint8_t lengths[] = { 0, 1, 1, 1, 1, 0, 0, 0, 1 };
        size_t at = put_length(m, DWARF_LINE), header;

        put_uint(m, DWARF_LINE, 4, 2);
        header = put_length(m, DWARF_LINE);
        put_uint(m, DWARF_LINE, 1, 1);    /* bytes of an instruction */
        put_uint(m, DWARF_LINE, 1, 1);    /* operations of one */
        put_uint(m, DWARF_LINE, 1, 1);    /* rows have is_stmt */
        put_uint(m, DWARF_LINE, 0xfd, 1); /* line_base -3 */
        put_uint(m, DWARF_LINE, 12, 1);
        put_uint(m, DWARF_LINE, 10, 1);
        buf_append(&m->sections[DWARF_LINE], lengths, sizeof lengths);
        put_uint(m, DWARF_LINE, 0, 1); /* directories */
        put_text(m, DWARF_LINE, "a.c");
        put_uint(m, DWARF_LINE, 0, 3);
        put_uint(m, DWARF_LINE, 0, 1);
        end_length(m, DWARF_LINE, header);
        buf_append(&m->sections[DWARF_LINE], program, size);
        end_length(m, DWARF_LINE, at);
}

START_TEST(last_row_at_an_address_is_reported)
{
        static const uint8_t program[] = {
                0,
                9,
                DW_LNE_set_address,
                0x00,
                0x10,
                0,
                0,
                0,
                0,
                0,
                0,
                DW_LNS_copy, /* 0x1000 line 1 */
                DW_LNS_advance_pc,
                4,
                DW_LNS_advance_line,
                4,
                DW_LNS_copy, /* 0x1004 line 5 */
                DW_LNS_advance_line,
                2,
                DW_LNS_set_column,
                33,
                DW_LNS_negate_stmt,
                DW_LNS_copy, /* 0x1004 line 7 */
                DW_LNS_advance_pc,
                4,
                DW_LNS_copy, /* 0x1008 */
                DW_LNS_advance_pc,
                8,
                0,
                1,
                DW_LNE_end_sequence, /* 0x1010 */
        };
        struct dwarf_context x = { 0 };
        struct dwarf_unit unit = { .format = { .version = 4, .address_size = 8, .offset_size = 4 } };
        const struct dwarf_regions code = { regions, 1 };
        struct dwarf_lines files = { 0 };
        struct dwarf_row_found row;
        struct dwarf_object object;
        struct dwarf_maker m;
        struct error err;

        dwarf_maker_init(&m, 4);
        put_table(&m, program, sizeof program);
        ck_assert_msg(open_made(&m, NULL, &object, &err) == ST_OK, "%s", err.text);
        x.object = &object;
        x.file = &object.main;
        x.unit = &unit;
        ck_assert_int_eq(dwarf_row_find(&x, 0, 0x1006, &code, &files, &row), ST_OK);
        ck_assert_uint_eq(row.address, 0x1004);
        ck_assert_uint_eq(row.end, 0x1008);
        ck_assert_uint_eq(row.line, 7);
        ck_assert_uint_eq(row.column, 33);
        ck_assert(!row.is_statement);
        ck_assert_uint_eq(row.rows_at_address, 2);
        ck_assert_uint_eq(row.sequence_start, 0x1000);
        ck_assert_uint_eq(row.sequence_end, 0x1010);
        ck_assert_int_eq(dwarf_row_find(&x, 0, 0x1010, &code, &files, &row), ST_NOT_FOUND);
        ck_assert_int_eq(dwarf_row_find(&x, 0, 0xfff, &code, &files, &row), ST_NOT_FOUND);
        dwarf_lines_deinit(&files);
        dwarf_object_close(&object);
        dwarf_maker_deinit(&m);
}
END_TEST

TEST_SUITE("explain", scopes_have_die_range_call_and_path_to_name, part_of_a_call_that_exceeds_its_function_is_not_used,
           units_have_attributes_and_ranges, last_row_at_an_address_is_reported)
