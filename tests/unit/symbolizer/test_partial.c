/* SPDX-License-Identifier: Apache-2.0 */
/* Readable parts of a damaged file are used, and unreadable ones are reported. */
#include <string.h>
#include <unistd.h>

#include "common/files/file.h"
#include "symbolizer/extraction/debug_file_search.h"
#include "symbolizer/extraction/extract_files.h"
#include "tests/support/made_file.h"
#include "tests/support/suite.h"

static struct symbol_table extract(int fd)
{
        struct symbol_table t;
        struct error err;

        ck_assert_msg(made_extract(fd, &t, &err) == ST_OK, "%s", err.text);
        ck_assert_msg(symbol_table_check(&t, &err) == ST_OK, "%s", err.text);
        return t;
}

static void assert_partial(const struct symbol_table *t, const char *text)
{
        ck_assert_msg(strstr(symbol_table_partial_text(t), text), "'%s'", symbol_table_partial_text(t));
}

static const char names[] = "\0from_symtab\0other";
static const Elf64_Sym symbols[] = {
        { 0 },
        { .st_name = 1,
          .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
          .st_shndx = 1,
          .st_value = MADE_CODE + 0x100,
          .st_size = 0x10 },
};

/* A symbol table as section 2 and its names as section 3. */
#define SYMTAB(kind, entry)                                                                                            \
        { .name = ".symtab",                                                                                           \
          .type = kind,                                                                                                \
          .content = symbols,                                                                                          \
          .size = sizeof symbols,                                                                                      \
          .link = 3,                                                                                                   \
          .entry_size = entry },                                                                                       \
        {                                                                                                              \
                .name = ".strtab", .type = SHT_STRTAB, .content = names, .size = sizeof names                          \
        }
static const struct elf_maker_section good_symbols[] = { SYMTAB(SHT_SYMTAB, sizeof(Elf64_Sym)) };

/* ---- DWARF ---- */

START_TEST(a_whole_file_is_not_partial)
{
        struct symbol_table t;
        struct dwarf_maker m;

        made_dwarf_begin(&m);
        made_unit(&m, "f", MADE_CODE, 0x10);
        end_unit(&m);
        put_uint(&m, DWARF_INFO, 0, 4); /* padding: units of length zero */
        t = extract(made_file(good_symbols, 2, &m));
        ck_assert_str_eq(symbol_table_partial_text(&t), "");
        ck_assert_uint_eq(t.partial, 0);
        ck_assert_str_eq(made_frames(&t, MADE_CODE), "f");
        symbol_table_deinit(&t);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(damaged_unit_is_skipped_and_counted)
{
        struct symbol_table t;
        struct dwarf_maker m;

        made_dwarf_begin(&m);
        made_unit(&m, "first", MADE_CODE, 0x10);
        end_unit(&m);
        made_unit(&m, "damaged", MADE_CODE + 0x10, 0x10);
        put_uleb(&m, DWARF_INFO, 77); /* an undefined abbreviation */
        end_unit(&m);
        made_unit(&m, "last", MADE_CODE + 0x20, 0x10);
        end_unit(&m);
        t = extract(made_file(NULL, 0, &m));
        assert_partial(&t, "1 of 3 DWARF units could not be read completely; the first at 0x");
        ck_assert_str_eq(made_frames(&t, MADE_CODE), "first");
        ck_assert_str_eq(made_frames(&t, MADE_CODE + 0x10), "damaged");
        ck_assert_str_eq(made_frames(&t, MADE_CODE + 0x20), "last");
        ck_assert_int_eq(t.quality, QUALITY_DWARF);
        symbol_table_deinit(&t);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(unit_past_section_end_is_skipped_with_following_ones)
{
        struct symbol_table t;
        struct dwarf_maker m;

        made_dwarf_begin(&m);
        made_unit(&m, "first", MADE_CODE, 0x10);
        end_unit(&m);
        made_unit(&m, "second", MADE_CODE + 0x10, 0x10);
        end_unit(&m);
        m.sections[DWARF_INFO].size -= 3;
        t = extract(made_file(good_symbols, 2, &m));
        assert_partial(&t, "1 of 2 DWARF units");
        assert_partial(&t, "cut off or malformed");
        ck_assert_str_eq(made_frames(&t, MADE_CODE), "first");
        ck_assert_str_eq(made_frames(&t, MADE_CODE + 0x10), "");
        ck_assert_str_eq(made_frames(&t, MADE_CODE + 0x100), "from_symtab");
        symbol_table_deinit(&t);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(units_with_invalid_header_or_version_are_skipped)
{
        struct symbol_table t;
        struct dwarf_maker m;

        made_dwarf_begin(&m);
        m.version = 9;
        made_unit(&m, "of the future", MADE_CODE, 0x10);
        end_unit(&m);
        m.version = 4;
        m.address_size = 3;
        put_unit(&m, DW_UT_compile, 0);
        end_unit(&m);
        m.address_size = 8;
        made_unit(&m, "known", MADE_CODE, 0x10);
        end_unit(&m);
        t = extract(made_file(NULL, 0, &m));
        assert_partial(&t, "2 of 3 DWARF units could not be read completely; the unit at 0x0 of .debug_info is of an "
                           "unknown version");
        ck_assert_str_eq(made_frames(&t, MADE_CODE), "known");
        symbol_table_deinit(&t);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(undecompressible_section_is_treated_as_empty)
{
        static const char packed[] = "ZLIB\0\0\0\0\0\0\1\0this was never packed";
        const struct elf_maker_section others[] = {
                good_symbols[0],
                good_symbols[1],
                { .name = ".zdebug_line", .type = SHT_PROGBITS, .content = packed, .size = sizeof packed },
        };
        struct symbol_table t;
        struct dwarf_maker m;

        made_dwarf_begin(&m);
        made_unit(&m, "f", MADE_CODE, 0x10);
        end_unit(&m);
        t = extract(made_file(others, 3, &m));
        assert_partial(&t, "cannot unpack section '.zdebug_line'");
        ck_assert_str_eq(made_frames(&t, MADE_CODE), "f");
        ck_assert_str_eq(made_frames(&t, MADE_CODE + 0x100), "from_symtab");
        symbol_table_deinit(&t);
        dwarf_maker_deinit(&m);
}
END_TEST

/* ---- other sources ---- */

START_TEST(dwarf_is_used_despite_malformed_symbol_table)
{
        const struct elf_maker_section broken[] = { SYMTAB(SHT_SYMTAB, 1) };
        struct symbol_table t;
        struct dwarf_maker m;

        made_dwarf_begin(&m);
        made_unit(&m, "f", MADE_CODE, 0x10);
        end_unit(&m);
        t = extract(made_file(broken, 2, &m));
        assert_partial(&t, "section '.symtab' of 'made' has entries of 1 bytes, 24 are needed");
        ck_assert_str_eq(made_frames(&t, MADE_CODE), "f");
        symbol_table_deinit(&t);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(symbols_are_used_despite_malformed_minidebuginfo)
{
        const struct elf_maker_section sections[] = {
                { .name = ".dynsym",
                  .type = SHT_DYNSYM,
                  .content = symbols,
                  .size = sizeof symbols,
                  .link = 3,
                  .entry_size = sizeof *symbols },
                { .name = ".dynstr", .type = SHT_STRTAB, .content = names, .size = sizeof names },
                { .name = ".gnu_debugdata", .type = SHT_PROGBITS, .content = "no xz", .size = 5 },
        };
        struct symbol_table t = extract(made_file(sections, 3, NULL));

        assert_partial(&t, "cannot unpack .gnu_debugdata");
        ck_assert_str_eq(made_frames(&t, MADE_CODE + 0x100), "from_symtab");
        ck_assert_int_eq(t.quality, QUALITY_DYNSYM);
        symbol_table_deinit(&t);
}
END_TEST

static struct symbol_table extract_go(size_t keep)
{
        _cleanup_buf_ struct buf data;
        struct symbol_table t;

        buf_init(&data, 1 << 20);
        ck_assert_int_eq(file_read("tests/corpus/gopclntab/good/go1.20", &data, NULL), ST_OK);
        const struct elf_maker_section sections[] = {
                good_symbols[0],
                good_symbols[1],
                { .name = ".gopclntab",
                  .type = SHT_PROGBITS,
                  .flags = SHF_ALLOC,
                  .address = 0x500000,
                  .content = data.data,
                  .size = keep < data.size ? keep : data.size },
        };
        t = extract(made_file(sections, 3, NULL));
        return t;
}

START_TEST(symbols_are_used_despite_truncated_pclntab)
{
        struct symbol_table t = extract_go(40);

        assert_partial(&t, "the pclntab of 'made' is cut off or malformed");
        ck_assert_str_eq(made_frames(&t, MADE_CODE + 0x100), "from_symtab");
        symbol_table_deinit(&t);
}
END_TEST

static const struct extract_inputs no_inputs = {
        .debuginfo_fd = -1, .executable_fd = -1, .altlink_fd = -1, .name = "made"
};

START_TEST(one_good_file_of_several_is_enough)
{
        struct extract_inputs in = no_inputs;
        struct symbol_table t;
        struct error err;

        in.debuginfo_fd = made_file(good_symbols, 2, NULL);
        in.executable_fd = made_memfd("\177ELF\2\1\1 and no more", 20);
        in.altlink_fd = made_memfd("text", 4);
        ck_assert_msg(symbol_table_extract(&in, &t, &err) == ST_OK, "%s", err.text);
        extract_inputs_close(&in);
        assert_partial(&t, "cannot read 'made (executable)'");
        assert_partial(&t, "; cannot read 'made (dwz supplementary file)': not an ELF file");
        ck_assert_str_eq(made_frames(&t, MADE_CODE + 0x100), "from_symtab");
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(reasons_are_the_error_without_usable_symbols)
{
        const struct elf_maker_section broken[] = { SYMTAB(SHT_SYMTAB, 1) };
        struct symbol_table t;
        struct error err;

        ck_assert_int_eq(made_extract(made_file(broken, 2, NULL), &t, &err), ST_BAD_DATA);
        ck_assert_msg(strstr(err.text, "no symbol could be read: section '.symtab'"), "%s", err.text);
        ck_assert_int_eq(made_extract(made_memfd("text", 4), &t, &err), ST_BAD_DATA);
        ck_assert_msg(strstr(err.text, "not an ELF file"), "%s", err.text);
}
END_TEST

/* ---- the text ---- */

START_TEST(reasons_are_limited_to_one_line)
{
        struct extract_notes n = { 0 };
        char word[32];

        extract_notes_add(&n, "a\nb\x1b[31m\xff%s", "\xc3\xa4");
        ck_assert_str_eq(n.text, "a?b?[31m?\xc3\xa4");
        extract_notes_add(&n, "a\nb\x1b[31m\xff%s", "\xc3\xa4");
        ck_assert_str_eq(n.text, "a?b?[31m?\xc3\xa4"); /* only once */
        for (int i = 0; i < 100; i++) {
                snprintf(word, sizeof word, "\xe2\x82\xac reason %d", i);
                extract_notes_add(&n, "%s", word);
                ck_assert_uint_lt(strlen(n.text), sizeof n.text);
        }
        ck_assert_str_eq(n.text + strlen(n.text) - 3, "...");
}
END_TEST

TEST_SUITE("partial", a_whole_file_is_not_partial, damaged_unit_is_skipped_and_counted,
           unit_past_section_end_is_skipped_with_following_ones, units_with_invalid_header_or_version_are_skipped,
           undecompressible_section_is_treated_as_empty, dwarf_is_used_despite_malformed_symbol_table,
           symbols_are_used_despite_malformed_minidebuginfo, symbols_are_used_despite_truncated_pclntab,
           one_good_file_of_several_is_enough, reasons_are_the_error_without_usable_symbols,
           reasons_are_limited_to_one_line)
