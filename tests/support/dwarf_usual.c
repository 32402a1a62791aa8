/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/dwarf_usual.h"

#include <check.h>

static const struct dwarf_region regions[] = { { CODE, CODE + 0x1000 } };

void open_read(struct dwarf_read *r, const struct dwarf_maker *m, const struct dwarf_maker *alt)
{
        struct error err;

        ck_assert_msg(open_made(m, alt, &r->object, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(dwarf_reader_create(&r->object, (struct dwarf_regions){ regions, 1 }, &r->reader, &err),
                         ST_OK);
        dwarf_code_init(&r->code);
}

const struct dwarf_code *read_unit(struct dwarf_read *r, size_t i)
{
        ck_assert_int_eq(dwarf_reader_unit(r->reader, i, &r->code), ST_OK);
        return &r->code;
}

void close_read(struct dwarf_read *r)
{
        dwarf_code_deinit(&r->code);
        dwarf_reader_destroy(r->reader);
        dwarf_object_close(&r->object);
}

const char *plain(const struct dwarf_code *c, size_t scope)
{
        const char *s = c->names[c->scopes[scope].name].plain;

        return s ? s : "";
}

/* ---- writing ---- */

void put_usual_abbrevs(struct dwarf_maker *m)
{
        unsigned list = m->version >= 4 ? DW_FORM_sec_offset : DW_FORM_data4;

        put_abbrev(m, CU, DW_TAG_compile_unit, true, DW_AT_language, DW_FORM_data1, DW_AT_low_pc, DW_FORM_addr, 0, 0);
        put_abbrev(m, FUNCTION, DW_TAG_subprogram, true, DW_AT_name, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr,
                   DW_AT_high_pc, m->version >= 4 ? DW_FORM_data4 : DW_FORM_addr, 0, 0);
        put_abbrev(m, ABSTRACT, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, 0, 0);
        put_abbrev(m, INLINED, DW_TAG_inlined_subroutine, false, DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_low_pc,
                   DW_FORM_addr, DW_AT_high_pc, m->version >= 4 ? DW_FORM_data4 : DW_FORM_addr, DW_AT_call_file,
                   DW_FORM_data1, DW_AT_call_line, DW_FORM_udata, 0, 0);
        put_abbrev(m, RANGED, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, DW_AT_ranges, list, 0, 0);
}

void begin_usual(struct dwarf_maker *m, uint8_t version)
{
        dwarf_maker_init(m, version);
        put_usual_abbrevs(m);
}

void begin_cu(struct dwarf_maker *m, uint64_t low_pc)
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

void put_function(struct dwarf_maker *m, const char *name, uint64_t start, uint64_t size)
{
        put_uleb(m, DWARF_INFO, FUNCTION);
        put_text(m, DWARF_INFO, name);
        put_addresses(m, start, size);
}

uint64_t put_abstract(struct dwarf_maker *m, const char *name)
{
        uint64_t at = put_at(m, DWARF_INFO);

        put_uleb(m, DWARF_INFO, ABSTRACT);
        put_text(m, DWARF_INFO, name);
        return at;
}

void put_inlined(struct dwarf_maker *m, uint64_t origin, uint64_t start, uint64_t size, uint64_t line)
{
        put_uleb(m, DWARF_INFO, INLINED);
        put_uint(m, DWARF_INFO, origin - m->unit, 4);
        put_addresses(m, start, size);
        put_uint(m, DWARF_INFO, 1, 1);
        put_uleb(m, DWARF_INFO, line);
}

void put_end(struct dwarf_maker *m, unsigned levels)
{
        put_uint(m, DWARF_INFO, 0, levels);
}
