/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <string.h>

#include "common/limits.h"
#include "dwarf/code.h"
#include "tests/support/dwarf_maker.h"
#include "tests/support/suite.h"

static const struct dwarf_region regions[] = { { 0x1000, 0x2000 } };

/* A table without files; opcode_base 10, line_base -3, line_range 12. Version 4 has 64-bit addresses here. */
static size_t begin_table(struct dwarf_maker *m, uint8_t max_operations)
{
        size_t at = put_length(m, DWARF_LINE), header;
        static const uint8_t lengths[] = { 0, 1, 1, 1, 1, 0, 0, 0, 1 };

        put_uint(m, DWARF_LINE, m->version, 2);
        if (m->version >= 5) {
                put_uint(m, DWARF_LINE, 8, 1);
                put_uint(m, DWARF_LINE, 0, 1);
        }
        header = put_at(m, DWARF_LINE);
        put_offset(m, DWARF_LINE, 0);
        put_uint(m, DWARF_LINE, max_operations > 1 ? 16 : 1, 1);
        if (m->version >= 4)
                put_uint(m, DWARF_LINE, max_operations, 1);
        put_uint(m, DWARF_LINE, 1, 1);
        put_uint(m, DWARF_LINE, 0xfd, 1);
        put_uint(m, DWARF_LINE, 12, 1);
        put_uint(m, DWARF_LINE, 10, 1);
        buf_append(&m->sections[DWARF_LINE], lengths, sizeof lengths);
        m->unit = header; /* until end_header() */
        return at;
}

static void end_header(struct dwarf_maker *m)
{
        m->sections[DWARF_LINE].data[m->unit] = (uint8_t)(put_at(m, DWARF_LINE) - m->unit - 4);
}

static void put_program(struct dwarf_maker *m, const uint8_t *program, size_t size)
{
        buf_append(&m->sections[DWARF_LINE], program, size);
}

struct read {
        struct dwarf_object object;
        struct dwarf_reader *reader;
        struct dwarf_code code;
};

static const struct dwarf_code *read_table(struct read *r, const struct dwarf_maker *m)
{
        struct error err;

        ck_assert_msg(open_made(m, NULL, &r->object, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(dwarf_reader_create(&r->object, (struct dwarf_regions){ regions, 1 }, &r->reader, &err),
                         ST_OK);
        dwarf_code_init(&r->code);
        ck_assert_int_eq(dwarf_reader_lines(r->reader, 0, &r->code), ST_OK);
        return &r->code;
}

static void close_read(struct read *r)
{
        dwarf_code_deinit(&r->code);
        dwarf_reader_destroy(r->reader);
        dwarf_object_close(&r->object);
}

#define SET_ADDRESS(a) 0, 9, 2, a, 0x10, 0, 0, 0, 0, 0, 0
#define END_SEQUENCE 0, 1, 1
#define ADVANCE_PC(n) 2, n
#define ADVANCE_LINE(n) 3, n
#define FILE_NUMBER(n) 4, n
#define SET_COLUMN(n) 5, n
#define DISCRIMINATOR(n) 0, 2, 4, n
#define COPY 1

/* Read a version 4 program; expected are start, end and line of each row. */
static void check_program(const uint8_t *program, size_t size, uint8_t max_operations, enum status damage,
                          const uint64_t (*expected)[3], size_t count)
{
        struct dwarf_maker m;
        struct read r;
        const struct dwarf_code *c;
        size_t at;

        dwarf_maker_init(&m, 4);
        at = begin_table(&m, max_operations);
        put_uint(&m, DWARF_LINE, 0, 2);
        end_header(&m);
        put_program(&m, program, size);
        end_length(&m, DWARF_LINE, at);
        c = read_table(&r, &m);
        ck_assert_int_eq(c->damage, damage);
        ck_assert_uint_eq(c->lines.row_count, count);
        for (size_t i = 0; i < count; i++) {
                ck_assert_uint_eq(c->lines.rows[i].start, expected[i][0]);
                ck_assert_uint_eq(c->lines.rows[i].end, expected[i][1]);
                ck_assert_uint_eq(c->lines.rows[i].line, expected[i][2]);
        }
        close_read(&r);
        dwarf_maker_deinit(&m);
}
#define PROGRAM(...) (uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ })
#define ROWS(...) (const uint64_t[][3]){ __VA_ARGS__ }, sizeof((const uint64_t[][3]){ __VA_ARGS__ }) / 24

START_TEST(the_last_of_several_rows_at_one_address_covers_it)
{
        check_program(PROGRAM(SET_ADDRESS(0), COPY, ADVANCE_LINE(4), COPY, ADVANCE_PC(8), ADVANCE_LINE(1), COPY,
                              ADVANCE_PC(8), END_SEQUENCE),
                      1, ST_OK, ROWS({ 0x1000, 0x1008, 5 }, { 0x1008, 0x1010, 6 }));
}
END_TEST

START_TEST(row_at_sequence_end_covers_nothing)
{
        check_program(PROGRAM(SET_ADDRESS(0), COPY, ADVANCE_PC(8), ADVANCE_LINE(1), COPY, END_SEQUENCE,
                              SET_ADDRESS(0x40), COPY, ADVANCE_PC(4), END_SEQUENCE),
                      1, ST_OK, ROWS({ 0x1000, 0x1008, 1 }, { 0x1040, 0x1044, 1 }));
}
END_TEST

START_TEST(sequence_outside_code_is_skipped)
{
        /* From 0 on, where linkers place dropped code, and long enough to overlap the code. */
        check_program(PROGRAM(COPY, 9, 0xff, 0x1f, COPY, ADVANCE_PC(8), END_SEQUENCE), 1, ST_OK, NULL, 0);
        check_program(PROGRAM(COPY, ADVANCE_PC(127), COPY, ADVANCE_PC(0x7f), END_SEQUENCE), 1, ST_OK, NULL, 0);
}
END_TEST

START_TEST(truncated_program_keeps_complete_sequences)
{
        check_program(PROGRAM(SET_ADDRESS(0), COPY, ADVANCE_PC(8), END_SEQUENCE, SET_ADDRESS(0x40), COPY, 0, 9), 1,
                      ST_BAD_DATA, ROWS({ 0x1000, 0x1008, 1 }));
        check_program(
                PROGRAM(SET_ADDRESS(0), COPY, ADVANCE_PC(8), END_SEQUENCE, SET_ADDRESS(0x40), COPY, ADVANCE_PC(8)), 1,
                ST_OK, ROWS({ 0x1000, 0x1008, 1 }));
}
END_TEST

START_TEST(special_opcodes_move_both_address_and_line)
{
        /* 10 + 12 * 3 + 5: three bytes and two lines further; const_add_pc advances like opcode 255, by 20. */
        check_program(PROGRAM(SET_ADDRESS(0), 13, 51, 8, COPY, ADVANCE_PC(1), END_SEQUENCE), 1, ST_OK,
                      ROWS({ 0x1000, 0x1003, 1 }, { 0x1003, 0x1018, 3 }));
}
END_TEST

START_TEST(vliw_operations_are_counted_per_instruction)
{
        /* 16-byte words of 3 operations: 4 operations on is one word on. */
        check_program(PROGRAM(SET_ADDRESS(0), COPY, ADVANCE_PC(4), ADVANCE_LINE(1), COPY, ADVANCE_PC(2), END_SEQUENCE),
                      3, ST_OK, ROWS({ 0x1000, 0x1010, 1 }, { 0x1010, 0x1020, 2 }));
}
END_TEST

START_TEST(wrapping_advances_are_dropped)
{
        check_program(PROGRAM(SET_ADDRESS(8), COPY, ADVANCE_LINE(1), 2, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                              0xff, 0x01, COPY, ADVANCE_PC(0x10), COPY, ADVANCE_PC(8), END_SEQUENCE),
                      1, ST_OK, ROWS({ 0x1008, 0x1010, 1 }, { 0x1010, 0x1018, 2 }));
}
END_TEST

START_TEST(sequences_are_sorted_and_first_of_overlapping_ones_is_kept)
{
        check_program(PROGRAM(SET_ADDRESS(0x40), COPY, ADVANCE_PC(4), ADVANCE_LINE(1), COPY, ADVANCE_PC(4),
                              END_SEQUENCE, SET_ADDRESS(0), COPY, ADVANCE_PC(8), END_SEQUENCE, SET_ADDRESS(0x40),
                              ADVANCE_LINE(50), COPY, ADVANCE_PC(2), ADVANCE_LINE(1), COPY, ADVANCE_PC(6),
                              END_SEQUENCE),
                      1, ST_OK, ROWS({ 0x1000, 0x1008, 1 }, { 0x1040, 0x1044, 1 }, { 0x1044, 0x1048, 2 }));
}
END_TEST

/* Rows of the lines, columns and discriminators {7, 3, 0}, {7, 3, 0} again, {7, 5, 9}, {8, 5, 0}. */
START_TEST(positions_have_columns_and_discriminators)
{
        static const uint8_t program[] = { SET_ADDRESS(0), ADVANCE_LINE(6), SET_COLUMN(3),
                                           COPY,           ADVANCE_PC(4),   COPY,
                                           ADVANCE_PC(4),  SET_COLUMN(5),   DISCRIMINATOR(9),
                                           COPY,           ADVANCE_PC(4),   ADVANCE_LINE(1),
                                           COPY,           ADVANCE_PC(4),   END_SEQUENCE };
        static const struct source_position expected[] = { { 7, 3, 0 }, { 7, 5, 9 }, { 8, 5, 0 } };
        struct dwarf_maker m;
        struct read r;
        const struct dwarf_lines *l;
        size_t at;

        dwarf_maker_init(&m, 4);
        at = begin_table(&m, 1);
        put_uint(&m, DWARF_LINE, 0, 2);
        end_header(&m);
        put_program(&m, program, sizeof program);
        end_length(&m, DWARF_LINE, at);
        read_table(&r, &m);
        ck_assert_uint_eq(r.code.lines.position_count, 0);
        r.code.lines.wants_positions = true;
        ck_assert_int_eq(dwarf_reader_lines(r.reader, 0, &r.code), ST_OK);
        l = &r.code.lines;
        ck_assert_uint_eq(l->row_count, 3);
        for (size_t i = 0; i < 3; i++) {
                ck_assert_uint_lt(l->rows[i].line, l->position_count);
                ck_assert_mem_eq(&l->positions[l->rows[i].line], &expected[i], sizeof *expected);
        }
        ck_assert_uint_eq(l->positions[0].line, 0);
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(headers_that_divide_by_zero_are_refused)
{
        for (size_t field = 0; field < 3; field++) {
                static const size_t offsets[] = { 11, 14, 15 }; /* operations, line range, opcode base */
                struct dwarf_maker m;
                struct read r;
                size_t at;

                dwarf_maker_init(&m, 4);
                at = begin_table(&m, 1);
                put_uint(&m, DWARF_LINE, 0, 2);
                end_header(&m);
                put_program(&m, PROGRAM(SET_ADDRESS(0), COPY, ADVANCE_PC(8), END_SEQUENCE));
                end_length(&m, DWARF_LINE, at);
                m.sections[DWARF_LINE].data[offsets[field]] = 0;
                ck_assert_int_eq(read_table(&r, &m)->damage, ST_BAD_DATA);
                ck_assert_uint_eq(r.code.lines.row_count, 0);
                close_read(&r);
                dwarf_maker_deinit(&m);
        }
}
END_TEST

/* ---- files ---- */

static void check_path(const struct dwarf_code *c, uint64_t file, const char *expected)
{
        _cleanup_buf_ struct buf path = { 0 };

        buf_init(&path, LIMIT_NAME_BYTES);
        dwarf_lines_path(&c->lines, file, &path);
        ck_assert_str_eq(path.size ? buf_cstr(&path) : "", expected);
}

/* A unit with a directory that refers to the table at 0. */
static void put_unit_with_lines(struct dwarf_maker *m, const char *directory)
{
        put_abbrev(m, 1, DW_TAG_compile_unit, false, DW_AT_comp_dir, DW_FORM_string, DW_AT_stmt_list,
                   DW_FORM_sec_offset, 0, 0);
        put_uint(m, DWARF_ABBREV, 0, 1);
        put_unit(m, DW_UT_compile, 0);
        put_uleb(m, DWARF_INFO, 1);
        put_text(m, DWARF_INFO, directory);
        put_offset(m, DWARF_INFO, 0);
        end_unit(m);
}

static void put_file(struct dwarf_maker *m, const char *name, uint64_t directory)
{
        put_text(m, DWARF_LINE, name);
        put_uleb(m, DWARF_LINE, directory);
        put_uint(m, DWARF_LINE, 0, 2);
}

START_TEST(old_file_tables_are_relative_to_the_units_directory)
{
        struct dwarf_maker m;
        struct read r;
        size_t at;

        dwarf_maker_init(&m, 4);
        at = begin_table(&m, 1);
        put_text(&m, DWARF_LINE, "/usr/include");
        put_text(&m, DWARF_LINE, "lib");
        put_uint(&m, DWARF_LINE, 0, 1);
        put_file(&m, "a.c", 0);
        put_file(&m, "b.h", 1);
        put_file(&m, "c.c", 2);
        put_file(&m, "/d.c", 2);
        put_file(&m, "e.c", 77);
        put_uint(&m, DWARF_LINE, 0, 1);
        end_header(&m);
        put_program(&m, PROGRAM(0, 8, DW_LNE_define_file, 'f', '.', 'c', 0, 1, 0, 0, SET_ADDRESS(0), FILE_NUMBER(6),
                                COPY, ADVANCE_PC(8), END_SEQUENCE));
        end_length(&m, DWARF_LINE, at);
        put_unit_with_lines(&m, "/build");
        read_table(&r, &m);
        ck_assert_int_eq(dwarf_reader_unit(r.reader, 0, &r.code), ST_OK);
        check_path(&r.code, 0, "");
        check_path(&r.code, 1, "/build/a.c");
        check_path(&r.code, 2, "/usr/include/b.h");
        check_path(&r.code, 3, "/build/lib/c.c");
        check_path(&r.code, 4, "/d.c");
        check_path(&r.code, 5, "/build/e.c");
        check_path(&r.code, 6, "/usr/include/f.c"); /* defined by the program */
        ck_assert_uint_eq(r.code.lines.rows[0].file, 6);
        check_path(&r.code, 100, "");
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(paths_of_windows_and_urls_can_be_absolute)
{
        struct dwarf_maker m;
        struct read r;
        size_t at;

        dwarf_maker_init(&m, 4);
        at = begin_table(&m, 1);
        put_text(&m, DWARF_LINE, "C:/sdk");
        put_text(&m, DWARF_LINE, "\\\\server\\share");
        put_text(&m, DWARF_LINE, "d:relative");
        put_uint(&m, DWARF_LINE, 0, 1);
        put_file(&m, "C:/proj/a.c", 0);
        put_file(&m, "z:\\proj\\b.c", 1);
        put_file(&m, "\\\\server\\c.c", 1);
        put_file(&m, "src\\d.c", 0);
        put_file(&m, "e.h", 1);
        put_file(&m, "f.h", 2);
        put_file(&m, "g.h", 3);
        put_file(&m, "1:/h.h", 0);
        put_file(&m, "https://host/i.c", 1);
        put_file(&m, "x:/", 1);
        put_file(&m, "://j.c", 0);
        put_uint(&m, DWARF_LINE, 0, 1);
        end_header(&m);
        end_length(&m, DWARF_LINE, at);
        put_unit_with_lines(&m, "D:\\build");
        read_table(&r, &m);
        ck_assert_int_eq(dwarf_reader_unit(r.reader, 0, &r.code), ST_OK);
        check_path(&r.code, 1, "C:/proj/a.c");
        check_path(&r.code, 2, "z:\\proj\\b.c");
        check_path(&r.code, 3, "\\\\server\\c.c");
        check_path(&r.code, 4, "D:\\build/src\\d.c");
        check_path(&r.code, 5, "C:/sdk/e.h");
        check_path(&r.code, 6, "\\\\server\\share/f.h");
        check_path(&r.code, 7, "D:\\build/d:relative/g.h");
        check_path(&r.code, 8, "D:\\build/1:/h.h");
        check_path(&r.code, 9, "https://host/i.c");
        check_path(&r.code, 10, "x:/");
        check_path(&r.code, 11, "D:\\build/://j.c");
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

/* A version 5 table with these directories and a file "a.c" in each. @param unit the compilation directory */
static void check_new_paths(const char *unit, const char *const *directories, size_t count, const char *const *expected)
{
        struct dwarf_maker m;
        struct read r;
        size_t at;

        dwarf_maker_init(&m, 5);
        at = begin_table(&m, 1);
        put_uint(&m, DWARF_LINE, 1, 1), put_uleb(&m, DWARF_LINE, DW_LNCT_path),
                put_uleb(&m, DWARF_LINE, DW_FORM_string);
        put_uleb(&m, DWARF_LINE, count);
        for (size_t i = 0; i < count; i++)
                put_text(&m, DWARF_LINE, directories[i]);
        put_uint(&m, DWARF_LINE, 2, 1), put_uleb(&m, DWARF_LINE, DW_LNCT_path),
                put_uleb(&m, DWARF_LINE, DW_FORM_string);
        put_uleb(&m, DWARF_LINE, DW_LNCT_directory_index), put_uleb(&m, DWARF_LINE, DW_FORM_udata);
        put_uleb(&m, DWARF_LINE, count);
        for (size_t i = 0; i < count; i++)
                put_text(&m, DWARF_LINE, "a.c"), put_uleb(&m, DWARF_LINE, i);
        end_header(&m);
        end_length(&m, DWARF_LINE, at);
        put_unit_with_lines(&m, unit);
        read_table(&r, &m);
        ck_assert_int_eq(dwarf_reader_unit(r.reader, 0, &r.code), ST_OK);
        for (size_t i = 0; i < count; i++)
                check_path(&r.code, i, expected[i]);
        close_read(&r);
        dwarf_maker_deinit(&m);
}

START_TEST(relative_directory_0_is_not_relative_to_itself)
{
        check_new_paths("./misc", (const char *[]){ "./misc", "../sysdeps", "/usr/include" }, 3,
                        (const char *[]){ "./misc/a.c", "./misc/../sysdeps/a.c", "/usr/include/a.c" });
        check_new_paths("", (const char *[]){ "./misc", "../sysdeps" }, 2,
                        (const char *[]){ "./misc/a.c", "./misc/../sysdeps/a.c" });
        check_new_paths("/build", (const char *[]){ "", "lib" }, 2, (const char *[]){ "/build/a.c", "/build/lib/a.c" });
        check_new_paths("D:\\build", (const char *[]){ "D:\\build", "lib" }, 2,
                        (const char *[]){ "D:\\build/a.c", "D:\\build/lib/a.c" });
}
END_TEST

START_TEST(directories_with_a_slash_at_their_end_get_no_other)
{
        check_new_paths("/build/", (const char *[]){ "/build/", "lib/", "../src//", "//net/" }, 4,
                        (const char *[]){ "/build/a.c", "/build/lib/a.c", "/build/../src//a.c", "//net/a.c" });
        check_new_paths("/", (const char *[]){ "/", "." }, 2, (const char *[]){ "/a.c", "/./a.c" });
        check_new_paths("./", (const char *[]){ "./", "lib" }, 2, (const char *[]){ "./a.c", "./lib/a.c" });
        check_new_paths("D:/build/", (const char *[]){ "", "lib" }, 2,
                        (const char *[]){ "D:/build/a.c", "D:/build/lib/a.c" });
}
END_TEST

START_TEST(new_file_tables_contain_unit_directory)
{
        struct dwarf_maker m;
        struct read r;
        size_t at;

        dwarf_maker_init(&m, 5);
        put_text(&m, DWARF_LINE_STR, "/build");
        put_text(&m, DWARF_LINE_STR, "../x");
        at = begin_table(&m, 1);
        put_uint(&m, DWARF_LINE, 1, 1), put_uleb(&m, DWARF_LINE, DW_LNCT_path),
                put_uleb(&m, DWARF_LINE, DW_FORM_line_strp);
        put_uleb(&m, DWARF_LINE, 2), put_offset(&m, DWARF_LINE, 0), put_offset(&m, DWARF_LINE, 7);
        put_uint(&m, DWARF_LINE, 3, 1), put_uleb(&m, DWARF_LINE, 5), put_uleb(&m, DWARF_LINE, DW_FORM_data16);
        put_uleb(&m, DWARF_LINE, DW_LNCT_directory_index), put_uleb(&m, DWARF_LINE, DW_FORM_udata);
        put_uleb(&m, DWARF_LINE, DW_LNCT_path), put_uleb(&m, DWARF_LINE, DW_FORM_string);
        put_uleb(&m, DWARF_LINE, 2);
        put_uint(&m, DWARF_LINE, 0, 8), put_uint(&m, DWARF_LINE, 0, 8), put_uleb(&m, DWARF_LINE, 0),
                put_text(&m, DWARF_LINE, "a.c");
        put_uint(&m, DWARF_LINE, 0, 8), put_uint(&m, DWARF_LINE, 0, 8), put_uleb(&m, DWARF_LINE, 1),
                put_text(&m, DWARF_LINE, "b.h");
        end_header(&m);
        end_length(&m, DWARF_LINE, at);
        put_unit_with_lines(&m, "/elsewhere");
        read_table(&r, &m);
        check_path(&r.code, 0, "/build/a.c");
        check_path(&r.code, 1, "/build/../x/b.h"); /* without a unit, directory 0 is that of the compilation */
        ck_assert_int_eq(dwarf_reader_unit(r.reader, 0, &r.code), ST_OK);
        check_path(&r.code, 0, "/build/a.c");
        check_path(&r.code, 1, "/elsewhere/../x/b.h");
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

/* ---- bombs ---- */

START_TEST(a_trillion_empty_file_entries_are_too_many)
{
        struct dwarf_maker m;
        struct read r;
        size_t at;

        dwarf_maker_init(&m, 5);
        at = begin_table(&m, 1);
        put_uint(&m, DWARF_LINE, 0, 1), put_uleb(&m, DWARF_LINE, 0);
        put_uint(&m, DWARF_LINE, 0, 1), put_uleb(&m, DWARF_LINE, UINT64_C(1) << 40);
        end_header(&m);
        end_length(&m, DWARF_LINE, at);
        ck_assert_int_eq(read_table(&r, &m)->damage, ST_TOO_BIG);
        ck_assert_uint_le(r.code.lines.file_count, LIMIT_DWARF_LINE_FILES);
        for (int i = 0; i < 1000; i++) /* repeated reads do not bypass the limit */
                ck_assert_int_eq(dwarf_reader_lines(r.reader, 0, &r.code), ST_OK);
        ck_assert_int_eq(r.code.damage, ST_TOO_BIG);
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(rows_are_limited_also_for_shared_tables)
{
        struct dwarf_maker m;
        struct read r;
        size_t at, runs = 0;

        dwarf_maker_init(&m, 4);
        at = begin_table(&m, 1);
        put_uint(&m, DWARF_LINE, 0, 2);
        end_header(&m);
        for (int i = 0; i < (1 << 17); i++) /* a sequence of one row each, all at one place */
                put_program(&m, PROGRAM(SET_ADDRESS(0), COPY, ADVANCE_PC(1), END_SEQUENCE));
        end_length(&m, DWARF_LINE, at);
        read_table(&r, &m);
        ck_assert_int_eq(r.code.damage, ST_OK);
        ck_assert_uint_eq(r.code.lines.row_count, 1);
        while (r.code.damage == ST_OK && runs++ < 100)
                ck_assert_int_eq(dwarf_reader_lines(r.reader, 0, &r.code), ST_OK);
        ck_assert_int_eq(r.code.damage, ST_TOO_BIG);
        ck_assert_uint_le(runs, LIMIT_DWARF_REREAD + 1);
        close_read(&r);
        dwarf_maker_deinit(&m);
}
END_TEST

TEST_SUITE("dwarf_lines", the_last_of_several_rows_at_one_address_covers_it, row_at_sequence_end_covers_nothing,
           sequence_outside_code_is_skipped, truncated_program_keeps_complete_sequences,
           special_opcodes_move_both_address_and_line, vliw_operations_are_counted_per_instruction,
           wrapping_advances_are_dropped, sequences_are_sorted_and_first_of_overlapping_ones_is_kept,
           positions_have_columns_and_discriminators, headers_that_divide_by_zero_are_refused,
           old_file_tables_are_relative_to_the_units_directory, paths_of_windows_and_urls_can_be_absolute,
           relative_directory_0_is_not_relative_to_itself, directories_with_a_slash_at_their_end_get_no_other,
           new_file_tables_contain_unit_directory, a_trillion_empty_file_entries_are_too_many,
           rows_are_limited_also_for_shared_tables)
