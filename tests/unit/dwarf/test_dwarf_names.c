/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <string.h>

#include "tests/support/dwarf_usual.h"
#include "tests/support/suite.h"

#define HASKELL 0x18

START_TEST(cyclic_origins_use_names_of_the_cycle)
{
        struct dwarf_maker m;
        struct dwarf_read r;
        uint64_t first;

        begin_usual(&m, 4);
        put_abbrev(&m, OTHER, DW_TAG_subprogram, false, DW_AT_abstract_origin, DW_FORM_ref4, 0, 0);
        put_abbrev(&m, OTHER + 1, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, DW_AT_specification,
                   DW_FORM_ref4, 0, 0);
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

START_TEST(names_of_another_unit_are_qualified_with_its_scopes)
{
        struct dwarf_maker m;
        struct dwarf_read r;
        uint64_t origin;

        begin_usual(&m, 4);
        put_abbrev(&m, OTHER, DW_TAG_namespace, true, DW_AT_name, DW_FORM_string, 0, 0);
        put_abbrev(&m, OTHER + 1, DW_TAG_class_type, true, 0, 0);
        put_abbrev(&m, OTHER + 2, DW_TAG_inlined_subroutine, false, DW_AT_abstract_origin, DW_FORM_ref_addr,
                   DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1, 0, 0);
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

/* A version 5 type unit whose type refers to another DIE for its name, or has it itself. */
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

START_TEST(class_with_signature_is_named_by_type_unit)
{
        struct dwarf_maker m;
        struct dwarf_read r;

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

START_TEST(type_with_cyclic_or_invalid_reference_has_no_name)
{
        for (int outside = 0; outside < 2; outside++) {
                struct dwarf_maker m;
                struct dwarf_read r;

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

/* A class in the current function, with a member function. */
static void put_local_class(struct dwarf_maker *m, const char *name, uint64_t start)
{
        put_uleb(m, DWARF_INFO, OTHER);
        put_function(m, name, start, 4);
        put_end(m, 2);
}

START_TEST(function_in_local_class_is_qualified_with_both)
{
        struct dwarf_maker m;
        struct dwarf_read r;

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

START_TEST(function_declared_inside_itself_has_a_name)
{
        struct dwarf_maker m;
        struct dwarf_read r;
        size_t spec;

        begin_usual(&m, 4);
        put_abbrev(&m, OTHER, DW_TAG_class_type, true, 0, 0);
        put_abbrev(&m, OTHER + 1, DW_TAG_subprogram, true, DW_AT_specification, DW_FORM_ref4, DW_AT_low_pc,
                   DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0, 0);
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

START_TEST(dwz_file_provides_functions_and_names)
{
        struct dwarf_maker m, alt;
        struct dwarf_read r;
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
        put_abbrev(&m, OTHER, DW_TAG_inlined_subroutine, false, DW_AT_abstract_origin, DW_FORM_GNU_ref_alt,
                   DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1, 0, 0);
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
        open_read(&r, &m, NULL); /* without it the frames are kept, without names */
        ck_assert_uint_eq(read_unit(&r, 0)->scope_count, 2);
        ck_assert_str_eq(plain(&r.code, 1), "");
        close_read(&r);
        dwarf_maker_deinit(&m);
        dwarf_maker_deinit(&alt);
}
END_TEST

enum { DECLARED = OTHER, ANEW, AS_DECLARED, INSTANCE, ABROAD };

static void put_definition(struct dwarf_maker *m, uint64_t abbrev, uint64_t ref, uint64_t start)
{
        put_uleb(m, DWARF_INFO, abbrev);
        put_uint(m, DWARF_INFO, ref, 4);
        put_address(m, DWARF_INFO, start);
        put_uint(m, DWARF_INFO, 4, 1);
}

static void check_declaration(const struct dwarf_code *c, size_t scope, uint32_t file, uint32_t line)
{
        const struct dwarf_name *n = &c->names[c->scopes[scope].name];

        ck_assert_msg(n->start_file == file && n->start_line == line && !n->start_path,
                      "scope %zu: file %u, line %u, path '%s'", scope, n->start_file, n->start_line,
                      n->start_path ? n->start_path : "");
}

START_TEST(declaration_file_and_line_are_first_of_chain)
{
        struct dwarf_maker m;
        struct dwarf_read r;
        uint64_t declared, linked;

        begin_usual(&m, 4);
        put_abbrev(&m, DECLARED, DW_TAG_subprogram, false, DW_AT_linkage_name, DW_FORM_string, DW_AT_decl_file,
                   DW_FORM_data1, DW_AT_decl_line, DW_FORM_udata, 0, 0);
        put_abbrev(&m, ANEW, DW_TAG_subprogram, false, DW_AT_specification, DW_FORM_ref4, DW_AT_low_pc, DW_FORM_addr,
                   DW_AT_high_pc, DW_FORM_data1, DW_AT_decl_line, DW_FORM_data2, 0, 0);
        put_abbrev(&m, AS_DECLARED, DW_TAG_subprogram, false, DW_AT_specification, DW_FORM_ref4, DW_AT_low_pc,
                   DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1, 0, 0);
        put_abbrev(&m, INSTANCE, DW_TAG_subprogram, false, DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_low_pc,
                   DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1, DW_AT_linkage_name, DW_FORM_string, 0, 0);
        put_abbrev(&m, ABROAD, DW_TAG_subprogram, false, DW_AT_abstract_origin, DW_FORM_ref_addr, DW_AT_low_pc,
                   DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1, 0, 0);
        begin_cu(&m, 0);
        declared = put_at(&m, DWARF_INFO) - m.unit;
        put_uleb(&m, DWARF_INFO, DECLARED);
        put_text(&m, DWARF_INFO, "_ZN1c1fEv");
        put_uint(&m, DWARF_INFO, 3, 1);
        put_uleb(&m, DWARF_INFO, 70000);
        put_definition(&m, ANEW, declared, CODE);
        put_uint(&m, DWARF_INFO, 12, 2);
        linked = put_at(&m, DWARF_INFO) - m.unit;
        put_definition(&m, AS_DECLARED, declared, CODE + 0x10);
        put_definition(&m, INSTANCE, linked, CODE + 0x20); /* has a linkage name of its own */
        put_text(&m, DWARF_INFO, "_ZN1cC1Ev");
        put_function(&m, "undeclared", CODE + 0x30, 4);
        put_end(&m, 2);
        end_unit(&m);
        begin_cu(&m, 0);
        put_definition(&m, ABROAD, declared, CODE + 0x40); /* the first unit begins at 0 */
        put_end(&m, 1);
        end_unit(&m);
        open_read(&r, &m, NULL);
        ck_assert_int_eq(read_unit(&r, 0)->damage, ST_OK);
        check_declaration(&r.code, 0, 3, 12);
        check_declaration(&r.code, 1, 3, 70000);
        check_declaration(&r.code, 2, 3, 70000);
        ck_assert_str_eq(r.code.names[r.code.scopes[2].name].linkage, "_ZN1cC1Ev");
        check_declaration(&r.code, 3, UINT32_MAX, 0);
        /* An index into another unit's file table is invalid here, and that unit has no table. */
        ck_assert_int_eq(read_unit(&r, 1)->damage, ST_OK);
        ck_assert_str_eq(r.code.names[r.code.scopes[0].name].linkage, "_ZN1c1fEv");
        check_declaration(&r.code, 0, UINT32_MAX, 70000);
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

/* A function with a name and a linkage name. */
static void put_linked(struct dwarf_maker *m, const char *name, const char *linkage, uint64_t start)
{
        put_uleb(m, DWARF_INFO, OTHER);
        put_text(m, DWARF_INFO, name);
        put_text(m, DWARF_INFO, linkage);
        put_address(m, DWARF_INFO, start);
        put_uint(m, DWARF_INFO, 16, 4);
}

START_TEST(linkage_name_is_bare_or_encoded)
{
        static const struct {
                uint8_t language;
                const char *name, *linkage, *given, *plain;
                bool is_bare;
        } functions[] = {
                { DW_LANG_C_plus_plus, "read", "read", "read", "", true },
                { DW_LANG_C_plus_plus, "read", "lib_read", "lib_read", "", false },
                { DW_LANG_C_plus_plus, "_Z1fv", "_Z1fv", "_Z1fv", "", false },
                { HASKELL, "fact", "Main_fact_info", "", "fact", false },
                { HASKELL, "L7133701809754877692", "Main_Rect_con_info", "Main_Rect_con_info", "", false },
                { HASKELL, "L7a", "Main_Rect_con_info", "", "L7a", false },
                { HASKELL, "L2", "julia_L2_321", "", "L2", false },
                { HASKELL, "", "Main_main_info", "Main_main_info", "", false },
        };
        struct dwarf_maker m;
        struct dwarf_read r;

        begin_usual(&m, 4);
        put_abbrev(&m, OTHER, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, DW_AT_linkage_name, DW_FORM_string,
                   DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0, 0);
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
                put_unit(&m, DW_UT_compile, 0);
                put_uleb(&m, DWARF_INFO, CU);
                put_uint(&m, DWARF_INFO, functions[i].language, 1);
                put_address(&m, DWARF_INFO, 0);
                put_linked(&m, functions[i].name, functions[i].linkage, CODE);
                put_end(&m, 1);
                end_unit(&m);
        }
        open_read(&r, &m, NULL);
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
                const struct dwarf_code *c = read_unit(&r, i);
                const struct dwarf_name *name = &c->names[c->scopes[0].name];

                ck_assert_int_eq(c->damage, ST_OK);
                ck_assert_str_eq(name->linkage ? name->linkage : "", functions[i].given);
                if (!name->linkage)
                        ck_assert_str_eq(name->plain, functions[i].plain);
                ck_assert_int_eq(name->is_bare, functions[i].is_bare);
        }
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

TEST_SUITE("dwarf_names", cyclic_origins_use_names_of_the_cycle, names_of_another_unit_are_qualified_with_its_scopes,
           class_with_signature_is_named_by_type_unit, type_with_cyclic_or_invalid_reference_has_no_name,
           function_in_local_class_is_qualified_with_both, function_declared_inside_itself_has_a_name,
           declaration_file_and_line_are_first_of_chain, linkage_name_is_bare_or_encoded,
           dwz_file_provides_functions_and_names)
