/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Malicious DWARF and other symbol sources: each file must give an error or a usable table with a reason, within
 * bounded time and memory.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/limits.h"
#include "sandbox/sanitizers.h"
#include "tests/support/hostile.h"

/* A file with only this DWARF, which must be refused. */
static int build_file(struct dwarf_maker *m)
{
        int fd = made_file(NULL, 0, m);

        dwarf_maker_deinit(m);
        return fd;
}

/* ---- DIEs ---- */

#define DW_TAG_imported_unit 0x3d
#define DW_AT_import 0x18
enum { LOOPING = 10, BLOCK, CALL, IMPORT, BIG_NAME };

static void put_more_abbrevs(struct dwarf_maker *m)
{
        put_abbrev(m, LOOPING, DW_TAG_subprogram, false, DW_AT_abstract_origin, DW_FORM_ref_addr, DW_AT_specification,
                   DW_FORM_ref_addr, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0, 0);
        put_abbrev(m, BLOCK, DW_TAG_lexical_block, true, 0, 0);
        put_abbrev(m, CALL, DW_TAG_inlined_subroutine, true, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4,
                   0, 0);
        put_abbrev(m, IMPORT, DW_TAG_imported_unit, false, DW_AT_import, DW_FORM_ref_addr, 0, 0);
        put_abbrev(m, BIG_NAME, DW_TAG_subprogram, true, DW_AT_name, DW_FORM_strp, DW_AT_low_pc, DW_FORM_addr,
                   DW_AT_high_pc, DW_FORM_data4, 0, 0);
}

static void put_looping(struct dwarf_maker *m, uint64_t origin, uint64_t specification, uint64_t start)
{
        put_uleb(m, DWARF_INFO, LOOPING);
        put_uint(m, DWARF_INFO, origin, 4);
        put_uint(m, DWARF_INFO, specification, 4);
        put_address(m, DWARF_INFO, start);
        put_uint(m, DWARF_INFO, 0x10, 4);
}

START_TEST(cyclic_origins_and_specifications)
{
        enum { COUNT = 100000, SIZE = 21 };
        struct dwarf_maker m;
        uint64_t first;

        made_dwarf_begin(&m);
        put_more_abbrevs(&m);
        made_unit(&m, "good", MADE_CODE, 0x10);
        first = put_at(&m, DWARF_INFO);
        put_looping(&m, first, first, MADE_CODE + 0x20);            /* a self-reference */
        put_looping(&m, first + 2 * SIZE, first, MADE_CODE + 0x30); /* mutual references */
        put_looping(&m, first + 1 * SIZE, first + 2 * SIZE, MADE_CODE + 0x40);
        for (uint64_t i = 3; i < COUNT; i++) /* a long chain that ends in a cycle */
                put_looping(&m, first + (i + 1) % COUNT * SIZE, first + i * 7 % COUNT * SIZE, MADE_CODE + 0x50);
        end_unit(&m);
        hostile_whole(build_file(&m));
        hostile_function(MADE_CODE, "good");
}
END_TEST

START_TEST(units_that_import_each_other)
{
        struct dwarf_maker m;
        uint64_t at[3] = { 0 };

        made_dwarf_begin(&m);
        put_more_abbrevs(&m);
        for (int round = 0; round < 2; round++) {
                m.sections[DWARF_INFO].size = 0;
                for (int i = 0; i < 3; i++) {
                        at[i] = put_at(&m, DWARF_INFO) + 11; /* after the header */
                        made_unit(&m, "f", MADE_CODE + 0x10 * (unsigned)i, 0x10);
                        put_uleb(&m, DWARF_INFO, IMPORT);
                        put_uint(&m, DWARF_INFO, at[(i + 1) % 3], 4);
                        end_unit(&m);
                }
        }
        hostile_whole(build_file(&m));
        hostile_function(MADE_CODE + 0x20, "f");
}
END_TEST

START_TEST(dies_a_million_deep)
{
        struct dwarf_maker m;

        made_dwarf_begin(&m);
        put_more_abbrevs(&m);
        made_unit(&m, "good", MADE_CODE, 0x10);
        for (int i = 0; i < 1000000; i++)
                put_uleb(&m, DWARF_INFO, BLOCK);
        end_unit(&m);
        hostile_partial(build_file(&m), "1 of 1 DWARF units could not be read completely; the first at 0x0: too big");
        hostile_function(MADE_CODE, "good");
}
END_TEST

START_TEST(calls_inlined_a_hundred_thousand_deep)
{
        struct dwarf_maker m;
        const struct symbol_range *r;

        made_dwarf_begin(&m);
        put_more_abbrevs(&m);
        put_text(&m, DWARF_STR, "outermost");
        made_unit(&m, "good", MADE_CODE, 0x10);
        put_uleb(&m, DWARF_INFO, BIG_NAME);
        put_uint(&m, DWARF_INFO, 0, 4);
        put_address(&m, DWARF_INFO, MADE_CODE + 0x20);
        put_uint(&m, DWARF_INFO, 0x10, 4);
        for (int i = 0; i < 100000; i++) {
                put_uleb(&m, DWARF_INFO, CALL);
                put_address(&m, DWARF_INFO, MADE_CODE + 0x20);
                put_uint(&m, DWARF_INFO, 0x10, 4);
        }
        end_unit(&m);
        hostile_partial(build_file(&m), "too big");
        r = symbol_table_find(&hostile_table, MADE_CODE + 0x20);
        ck_assert_ptr_nonnull(r);
        ck_assert_uint_eq(hostile_table.chains[r->chain].frame_count, LIMIT_INLINE_DEPTH);
        ck_assert_ptr_nonnull(strstr(made_frames(&hostile_table, MADE_CODE + 0x20), "outermost"));
}
END_TEST

START_TEST(a_name_of_forty_megabytes)
{
        struct dwarf_maker m;
        char *name = malloc(MiB(40));

        memset(name, 'x', MiB(40));
        made_dwarf_begin(&m);
        put_more_abbrevs(&m);
        buf_append(&m.sections[DWARF_STR], name, MiB(40));
        put_uint(&m, DWARF_STR, 0, 1);
        made_unit(&m, "good", MADE_CODE, 0x10);
        for (int i = 0; i < 1000; i++) {
                put_uleb(&m, DWARF_INFO, BIG_NAME);
                put_uint(&m, DWARF_INFO, (unsigned)i, 4);
                put_address(&m, DWARF_INFO, MADE_CODE + 0x20 + (unsigned)i);
                put_uint(&m, DWARF_INFO, 1, 4);
                put_uint(&m, DWARF_INFO, 0, 1);
        }
        end_unit(&m);
        hostile_whole(build_file(&m));
        hostile_function(MADE_CODE, "good");
        free(name);
}
END_TEST

/* ---- large amounts ---- */

START_TEST(large_debug_sections_are_not_copied)
{
        enum { UNITS = 40, VARIABLES = 100000, VARIABLE = 20, DATA = MiB(24) };
        static const char variable[] = { VARIABLE, 'v', 'a', 'r', 'i', 'a', 'b', 'l', 'e', 0 };
        struct rlimit data = { DATA, RLIM_INFINITY }, before;
        struct dwarf_maker m;

        made_dwarf_begin(&m);
        put_abbrev(&m, VARIABLE, 0x34, false, DW_AT_name, DW_FORM_string, 0, 0);
        for (uint64_t i = 0; i < UNITS; i++) {
                made_unit(&m, "first", MADE_CODE + 0x20 * i, 0x10);
                for (int k = 0; k < VARIABLES; k++)
                        buf_append(&m.sections[DWARF_INFO], variable, sizeof variable);
                put_uleb(&m, DWARF_INFO, 2); /* the function of made_unit() */
                put_text(&m, DWARF_INFO, "last");
                put_address(&m, DWARF_INFO, MADE_CODE + 0x20 * i + 0x10);
                put_uint(&m, DWARF_INFO, 0x10, 4);
                put_uint(&m, DWARF_INFO, 0, 1);
                end_unit(&m);
        }
        int fd = build_file(&m);

        ck_assert_int_eq(getrlimit(RLIMIT_DATA, &before), 0);
        malloc_trim(0);
        if (!BUILT_WITH_SANITIZER)
                ck_assert_int_eq(setrlimit(RLIMIT_DATA, &data), 0);
        hostile_whole(fd);
        ck_assert_int_eq(setrlimit(RLIMIT_DATA, &before), 0);
        hostile_function(MADE_CODE + 0x20 * (UNITS - 1), "first");
        hostile_function(MADE_CODE + 0x20 * (UNITS - 1) + 0x10, "last");
}
END_TEST

/* ---- overlapping data ---- */

START_TEST(overlapping_abbreviation_tables)
{
        enum { COUNT = 60000 };
        struct dwarf_maker m;

        made_dwarf_begin(&m);
        made_unit(&m, "good", MADE_CODE, 0x10);
        end_unit(&m);
        put_uint(&m, DWARF_ABBREV, 0, 1);
        for (uint64_t i = 0; i < COUNT; i++)
                put_abbrev(&m, 1, DW_TAG_compile_unit, false, DW_AT_language, DW_FORM_data1, 0, 0);
        put_uint(&m, DWARF_ABBREV, 0, 1);
        for (uint64_t i = 0; i < COUNT; i++) { /* each reads the tables of all following ones */
                put_unit(&m, DW_UT_compile, put_at(&m, DWARF_ABBREV) - 1 - (COUNT - i) * 7);
                put_uleb(&m, DWARF_INFO, 1);
                put_uint(&m, DWARF_INFO, DW_LANG_C_plus_plus, 1);
                end_unit(&m);
        }
        hostile_partial(build_file(&m), "of 60001 DWARF units could not be read completely");
        hostile_function(MADE_CODE, "good");
}
END_TEST

/* The header of a version 4 line table with one file. @return for end_length() */
static size_t begin_lines(struct dwarf_maker *m)
{
        size_t at = put_length(m, DWARF_LINE), header;

        put_uint(m, DWARF_LINE, 4, 2);
        header = put_length(m, DWARF_LINE);
        put_uint(m, DWARF_LINE, 1, 1);    /* minimum instruction length */
        put_uint(m, DWARF_LINE, 1, 1);    /* operations */
        put_uint(m, DWARF_LINE, 1, 1);    /* is_stmt */
        put_uint(m, DWARF_LINE, 0xff, 1); /* line base -1 */
        put_uint(m, DWARF_LINE, 4, 1);    /* line range */
        put_uint(m, DWARF_LINE, 10, 1);   /* opcode base */
        buf_append(&m->sections[DWARF_LINE], "\0\1\1\1\1\0\0\0\1", 9);
        put_uint(m, DWARF_LINE, 0, 1); /* no directories */
        put_text(m, DWARF_LINE, "a.c");
        put_uint(m, DWARF_LINE, 0, 3);
        put_uint(m, DWARF_LINE, 0, 1);
        end_length(m, DWARF_LINE, header);
        put_uint(m, DWARF_LINE, 0x0900, 2); /* DW_LNE_set_address: 0, 9, 2, the address */
        put_uint(m, DWARF_LINE, 2, 1);
        put_address(m, DWARF_LINE, MADE_CODE);
        return at;
}

static void put_rows(struct dwarf_maker *m, uint64_t count)
{
        char *rows = malloc(count);

        for (uint64_t i = 0; i < count; i++)
                rows[i] = (char)(10 + i % 2 * 2); /* the address stays, the line alternates */
        buf_append(&m->sections[DWARF_LINE], rows, count);
        free(rows);
        buf_append(&m->sections[DWARF_LINE], "\2\20\0\1\1", 5); /* advance by 16 bytes, end of the sequence */
}

START_TEST(two_to_the_fortieth_line_rows)
{
        enum { UNIT = 100, UNITS = 1 << 18, ROWS = 1 << 22 };
        struct dwarf_maker m;
        size_t at;

        made_dwarf_begin(&m);
        put_abbrev(&m, UNIT, DW_TAG_compile_unit, false, DW_AT_stmt_list, DW_FORM_sec_offset, 0, 0);
        made_unit(&m, "good", MADE_CODE + 0x20, 0x10);
        end_unit(&m);
        for (int i = 0; i < UNITS; i++) {
                put_unit(&m, DW_UT_compile, 0);
                put_uleb(&m, DWARF_INFO, UNIT);
                put_offset(&m, DWARF_INFO, 0);
                end_unit(&m);
        }
        at = begin_lines(&m);
        put_rows(&m, ROWS);
        end_length(&m, DWARF_LINE, at);
        hostile_partial(build_file(&m), "of 262145 DWARF units could not be read completely");
        hostile_function(MADE_CODE + 0x20, "good");
}
END_TEST

START_TEST(more_line_rows_than_the_limit_in_one_table)
{
        enum { EACH = 3 }; /* bytes of a row: advance by one, special opcode for the next line */
        uint64_t rows = LIMIT_DWARF_LINE_ROWS + 1000ul;
        struct dwarf_maker m;
        char *program = malloc(rows * EACH);
        size_t at;

        made_dwarf_begin(&m);
        made_unit(&m, "good", MADE_CODE + 0x20, 0x10);
        end_unit(&m);
        at = begin_lines(&m);
        for (uint64_t i = 0; i < rows; i++) /* the first row of a sequence is in code; later ones need not be */
                memcpy(program + i * EACH, (const char[]){ 2, 1, (char)(10 + i % 2 * 2) }, EACH);
        buf_append(&m.sections[DWARF_LINE], program, rows * EACH);
        buf_append(&m.sections[DWARF_LINE], "\2\1\0\1\1", 5);
        end_length(&m, DWARF_LINE, at);
        free(program);
        hostile_partial(build_file(&m), "too big");
        hostile_function(MADE_CODE + 0x20, "good");
}
END_TEST

START_TEST(advances_of_two_to_the_sixty_third)
{
        struct dwarf_maker m;
        size_t at;

        made_dwarf_begin(&m);
        made_unit(&m, "good", MADE_CODE + 0x20, 0x10);
        end_unit(&m);
        at = begin_lines(&m);
        for (int i = 0; i < 100000; i++) {
                put_uint(&m, DWARF_LINE, 2, 1); /* DW_LNS_advance_pc */
                put_uleb(&m, DWARF_LINE, 1ull << 63);
                put_uint(&m, DWARF_LINE, 3, 1); /* DW_LNS_advance_line */
                put_uleb(&m, DWARF_LINE, (1ull << 62) + 1);
                put_uint(&m, DWARF_LINE, 1, 1); /* DW_LNS_copy */
        }
        buf_append(&m.sections[DWARF_LINE], "\2\20\0\1\1", 5);
        end_length(&m, DWARF_LINE, at);
        hostile_whole(build_file(&m));
        hostile_function(MADE_CODE + 0x20, "good");
}
END_TEST

START_TEST(a_range_list_that_a_hundred_thousand_functions_share)
{
        enum { RANGED = 100, FUNCTIONS = 100000, RANGES = 4000 };
        struct dwarf_maker m;

        made_dwarf_begin(&m);
        put_abbrev(&m, RANGED, DW_TAG_subprogram, false, DW_AT_ranges, DW_FORM_sec_offset, 0, 0);
        made_unit(&m, "good", MADE_CODE + 0xff0, 0x10);
        for (int i = 0; i < FUNCTIONS; i++) {
                put_uleb(&m, DWARF_INFO, RANGED);
                put_offset(&m, DWARF_INFO, 0);
        }
        end_unit(&m);
        for (unsigned i = 0; i < RANGES; i += 2) {
                put_address(&m, DWARF_RANGES, MADE_CODE + i);
                put_address(&m, DWARF_RANGES, MADE_CODE + i + 1);
        }
        put_address(&m, DWARF_RANGES, 0);
        put_address(&m, DWARF_RANGES, 0);
        hostile_partial(build_file(&m), "too big");
        hostile_function(MADE_CODE + 0xff0, "good");
}
END_TEST

/* ---- other sources ---- */

START_TEST(symbols_with_entries_of_any_size)
{
        static const struct {
                uint64_t size;
                const char *partial; /* "": no error expected */
        } cases[] = { { 0, "" }, { 1, "entries of 1 bytes" }, { 23, "entries of 23 bytes" }, { 1ull << 63, "" } };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct elf_maker_section sections[] = { HOSTILE_GOOD_SYMBOLS, HOSTILE_GOOD_SYMBOLS };

                sections[0].entry_size = cases[i].size;
                sections[2].type = SHT_DYNSYM; /* so that there are usable symbols */
                sections[2].name = ".dynsym";
                ck_assert_int_eq(hostile_extract(made_file(sections, 4, NULL)), ST_OK);
                ck_assert_msg(strstr(symbol_table_partial_text(&hostile_table), cases[i].partial), "%s",
                              symbol_table_partial_text(&hostile_table));
                hostile_function(MADE_CODE + 0x100, "from_symtab");
        }
}
END_TEST

START_TEST(sections_that_wrap_around_the_file)
{
        struct elf_maker_section sections[] = {
                HOSTILE_GOOD_SYMBOLS, { .name = ".debug_info", .type = SHT_PROGBITS, .size = 8, .content = "12345678" }
        };

        sections[2].claimed_offset = UINT64_MAX - 3;
        hostile_refused(made_file(sections, 3, NULL), "cut off");
        sections[2].claimed_offset = 64;
        sections[2].claimed_size = UINT64_MAX - 63;
        hostile_refused(made_file(sections, 3, NULL), "cut off");
}
END_TEST

START_TEST(first_section_of_a_name_is_used)
{
        struct elf_maker_section sections[60] = { HOSTILE_GOOD_SYMBOLS };
        struct dwarf_maker m;

        made_dwarf_begin(&m);
        made_unit(&m, "good", MADE_CODE, 0x10);
        end_unit(&m);
        for (size_t i = 2; i < 40; i++) {
                sections[i] = sections[0];
                sections[i].name = i % 2 ? ".symtab" : ".gnu_debugdata";
                sections[i].link = (uint32_t)i; /* names that are not NUL-terminated */
        }
        hostile_partial(made_file(sections, 40, &m), ".gnu_debugdata");
        hostile_function(MADE_CODE, "good");
        hostile_function(MADE_CODE + 0x100, "from_symtab");
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(a_pclntab_whose_counts_wrap_around)
{
        static const uint64_t counts[] = { 1ull << 63, 1ull << 61, UINT64_MAX, UINT64_MAX / 8, 1ull << 32 };

        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
                /* Go 1.20, quantum 1, pointers of 8 bytes */
                const uint64_t words[40] = { 0x08010000fffffff1, counts[i], counts[i], 0, 72, 72, 72, 72, 72 };
                const struct elf_maker_section sections[] = {
                        HOSTILE_GOOD_SYMBOLS,
                        { .name = ".gopclntab",
                          .type = SHT_PROGBITS,
                          .flags = SHF_ALLOC,
                          .address = 0x500000,
                          .content = words,
                          .size = sizeof words },
                };

                hostile_partial(made_file(sections, 3, NULL), "the pclntab of 'hostile' is cut off or malformed");
                hostile_function(MADE_CODE + 0x100, "from_symtab");
        }
}
END_TEST

int main(int argc, char **argv)
{
        const TTest *const tests[] = {
                cyclic_origins_and_specifications,
                units_that_import_each_other,
                dies_a_million_deep,
                calls_inlined_a_hundred_thousand_deep,
                a_name_of_forty_megabytes,
                large_debug_sections_are_not_copied,
                overlapping_abbreviation_tables,
                two_to_the_fortieth_line_rows,
                more_line_rows_than_the_limit_in_one_table,
                advances_of_two_to_the_sixty_third,
                a_range_list_that_a_hundred_thousand_functions_share,
                symbols_with_entries_of_any_size,
                sections_that_wrap_around_the_file,
                first_section_of_a_name_is_used,
                a_pclntab_whose_counts_wrap_around,
        };

        (void)argc;
        return hostile_main("hostile", argv[0], tests, sizeof tests / sizeof *tests);
}
