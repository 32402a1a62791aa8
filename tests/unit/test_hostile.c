/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files made to hurt whoever reads them, given to the worker as the service
 * gives it files: each ends in an error or in what can be used, with a reason,
 * in time and without much memory.
 */
#include <limits.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/limits.h"
#include "sandbox/sanitizers.h"
#include "sandbox/worker.h"
#include "symbolizer/extract_find.h"
#include "symbolizer/extract_worker.h"
#include "tests/support/made_file.h"
#include "tests/support/suite.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

#define SLOWNESS (BUILT_WITH_SANITIZER ? 8 : 1)
#define CPU_S (20.0 * SLOWNESS)
#define MEMORY_BYTES (MiB(512) * SLOWNESS)

static struct symbol_table table;
static struct error error;

/* What all workers so far took: one of them, since each test is a process of its own. */
static void assert_modest(void)
{
        struct rusage used;
        double cpu_s;

        ck_assert_int_eq(getrusage(RUSAGE_CHILDREN, &used), 0);
        cpu_s = (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
                (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
        if (getenv("HOSTILE_VERBOSE"))
                fprintf(stderr, "%.2f s, %ld MiB, '%s' '%s'\n", cpu_s, used.ru_maxrss >> 10, error.text,
                        symbol_table_partial(&table));
        ck_assert_msg(cpu_s < CPU_S, "%.1f s", cpu_s);
        ck_assert_msg((size_t)used.ru_maxrss << 10 < MEMORY_BYTES, "%ld KiB", used.ru_maxrss);
}

static enum status extract(int fd)
{
        struct extract_inputs in = { .debuginfo_fd = fd, .executable_fd = -1, .altlink_fd = -1, .name = "hostile" };
        enum status st = symbol_table_extract_confined(&in, NULL, &table, &error);

        extract_inputs_close(&in);
        assert_modest();
        return st;
}

/* It is used, without what the text says. */
static void assert_partial(int fd, const char *text)
{
        enum status st = extract(fd);

        ck_assert_msg(st == ST_OK, "%s", error.text);
        ck_assert_msg(strstr(symbol_table_partial(&table), text), "'%s'", symbol_table_partial(&table));
}

static void assert_whole(int fd)
{
        enum status st = extract(fd);

        ck_assert_msg(st == ST_OK, "%s", error.text);
        ck_assert_str_eq(symbol_table_partial(&table), "");
}

static void assert_refused(int fd, const char *text)
{
        ck_assert_int_ne(extract(fd), ST_OK);
        ck_assert_msg(strstr(error.text, text), "'%s'", error.text);
}

static void assert_function(uint64_t address, const char *frames)
{
        ck_assert_str_eq(made_frames(&table, address), frames);
}

static const char names[] = "\0from_symtab\0other";
static const Elf64_Sym symbols[] = {
        { 0 },
        { .st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_value = MADE_CODE + 0x100,
          .st_size = 0x10 },
};
#define GOOD_SYMBOLS                                                                                                   \
        { .name = ".symtab", .type = SHT_SYMTAB, .content = symbols, .size = sizeof symbols, .link = 3,                \
          .entry_size = sizeof *symbols },                                                                             \
        { .name = ".strtab", .type = SHT_STRTAB, .content = names, .size = sizeof names }
static const struct elf_maker_section good_symbols[] = { { .name = "" }, GOOD_SYMBOLS };

/* ---- DIEs ---- */

#define DW_TAG_imported_unit 0x3d
#define DW_AT_import 0x18
enum { LOOPING = 10, BLOCK, CALL, IMPORT, BIG_NAME };

static void put_more_abbrevs(struct dwarf_maker *m)
{
        put_abbrev(m, LOOPING, DW_TAG_subprogram, false, DW_AT_abstract_origin, DW_FORM_ref_addr, DW_AT_specification,
                   DW_FORM_ref_addr, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0, 0);
        put_abbrev(m, BLOCK, DW_TAG_lexical_block, true, 0, 0);
        put_abbrev(m, CALL, DW_TAG_inlined_subroutine, true, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0, 0);
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

START_TEST(loops_of_origins_and_specifications)
{
        enum { COUNT = 100000, SIZE = 21 };
        struct dwarf_maker m;
        uint64_t first;

        made_dwarf_begin(&m);
        put_more_abbrevs(&m);
        made_unit(&m, "good", MADE_CODE, 0x10);
        first = put_at(&m, DWARF_INFO);
        put_looping(&m, first, first, MADE_CODE + 0x20);                     /* itself */
        put_looping(&m, first + 2 * SIZE, first, MADE_CODE + 0x30);          /* each other */
        put_looping(&m, first + 1 * SIZE, first + 2 * SIZE, MADE_CODE + 0x40);
        for (uint64_t i = 3; i < COUNT; i++)                                 /* a long chain, closed at its end */
                put_looping(&m, first + (i + 1) % COUNT * SIZE, first + i * 7 % COUNT * SIZE, MADE_CODE + 0x50);
        end_unit(&m);
        assert_whole(made_file(NULL, 0, &m));
        assert_function(MADE_CODE, "good");
}
END_TEST

START_TEST(units_that_import_one_another_in_a_circle)
{
        struct dwarf_maker m;
        uint64_t at[3] = { 0 };

        made_dwarf_begin(&m);
        put_more_abbrevs(&m);
        for (int round = 0; round < 2; round++) {
                m.sections[DWARF_INFO].size = 0;
                for (int i = 0; i < 3; i++) {
                        at[i] = put_at(&m, DWARF_INFO) + 11; /* behind the header */
                        made_unit(&m, "f", MADE_CODE + 0x10 * (unsigned)i, 0x10);
                        put_uleb(&m, DWARF_INFO, IMPORT);
                        put_uint(&m, DWARF_INFO, at[(i + 1) % 3], 4);
                        end_unit(&m);
                }
        }
        assert_whole(made_file(NULL, 0, &m));
        assert_function(MADE_CODE + 0x20, "f");
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
        assert_partial(made_file(NULL, 0, &m), "1 of 1 DWARF units could not be read whole; the first at 0x0: too big");
        assert_function(MADE_CODE, "good");
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
        assert_partial(made_file(NULL, 0, &m), "too big");
        r = symbol_table_find(&table, MADE_CODE + 0x20);
        ck_assert_ptr_nonnull(r);
        ck_assert_uint_eq(table.chains[r->chain].frame_count, LIMIT_INLINE_DEPTH);
        ck_assert_ptr_nonnull(strstr(made_frames(&table, MADE_CODE + 0x20), "outermost"));
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
        assert_whole(made_file(NULL, 0, &m));
        assert_function(MADE_CODE, "good");
        free(name);
}
END_TEST

/* ---- data that is shared ---- */

START_TEST(abbreviations_that_lie_in_one_another)
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
        for (uint64_t i = 0; i < COUNT; i++) { /* each reads the tables of all behind it */
                put_unit(&m, DW_UT_compile, put_at(&m, DWARF_ABBREV) - 1 - (COUNT - i) * 7);
                put_uleb(&m, DWARF_INFO, 1);
                put_uint(&m, DWARF_INFO, DW_LANG_C_plus_plus, 1);
                end_unit(&m);
        }
        assert_partial(made_file(NULL, 0, &m), "of 60001 DWARF units could not be read whole");
        assert_function(MADE_CODE, "good");
}
END_TEST

/* The header of a line table, version 4, of one file. @return for end_length() */
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
        put_uint(m, DWARF_LINE, 0, 1);    /* no directories */
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
                rows[i] = (char)(10 + i % 2 * 2); /* the address stays, the line goes to and fro */
        buf_append(&m->sections[DWARF_LINE], rows, count);
        free(rows);
        buf_append(&m->sections[DWARF_LINE], "\2\20\0\1\1", 5); /* 16 bytes on, end of the sequence */
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
        assert_partial(made_file(NULL, 0, &m), "of 262145 DWARF units could not be read whole");
        assert_function(MADE_CODE + 0x20, "good");
}
END_TEST

START_TEST(more_line_rows_than_the_limit_in_one_table)
{
        enum { EACH = 3 }; /* bytes of a row: one further, special opcode for the next line */
        uint64_t rows = LIMIT_DWARF_LINE_ROWS + 1000ul;
        struct dwarf_maker m;
        char *program = malloc(rows * EACH);
        size_t at;

        made_dwarf_begin(&m);
        made_unit(&m, "good", MADE_CODE + 0x20, 0x10);
        end_unit(&m);
        at = begin_lines(&m);
        for (uint64_t i = 0; i < rows; i++) /* the first of a sequence is in code; what follows need not be */
                memcpy(program + i * EACH, (const char[]){ 2, 1, (char)(10 + i % 2 * 2) }, EACH);
        buf_append(&m.sections[DWARF_LINE], program, rows * EACH);
        buf_append(&m.sections[DWARF_LINE], "\2\1\0\1\1", 5);
        end_length(&m, DWARF_LINE, at);
        free(program);
        assert_partial(made_file(NULL, 0, &m), "too big");
        assert_function(MADE_CODE + 0x20, "good");
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
        assert_whole(made_file(NULL, 0, &m));
        assert_function(MADE_CODE + 0x20, "good");
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
        assert_partial(made_file(NULL, 0, &m), "too big");
        assert_function(MADE_CODE + 0xff0, "good");
}
END_TEST

/* ---- packed sections ---- */

/* A debug section that claims to unpack to so many bytes, beside a good symbol table. */
static int packed_file(const char *name, bool is_zdebug, uint32_t algorithm, uint64_t claimed, const void *data, size_t size)
{
        _cleanup_buf_ struct buf packed;
        struct elf_maker_section sections[] = { GOOD_SYMBOLS,
                                                { .name = name, .type = SHT_PROGBITS, .flags = is_zdebug ? 0 : SHF_COMPRESSED } };

        buf_init(&packed, MiB(8));
        if (is_zdebug) {
                buf_append(&packed, "ZLIB", 4);
                for (int i = 7; i >= 0; i--)
                        buf_append_u8(&packed, (uint8_t)(claimed >> 8 * i));
        } else {
                buf_append_u32(&packed, algorithm);
                buf_append_u32(&packed, 0);
                buf_append_u64(&packed, claimed);
                buf_append_u64(&packed, 1);
        }
        buf_append(&packed, data, size);
        sections[2].content = packed.data;
        sections[2].size = packed.size;
        return made_file(sections, 3, NULL);
}

/* zlib: 64 bytes, all zero. zstd: one frame with one block of 128 KiB zeros. */
static const uint8_t zlib_zeros[] = { 0x78, 0x9c, 0x63, 0x60, 0xa0, 0x0c, 0x00, 0x00, 0x00, 0x40, 0x00, 0x01 };
static const uint8_t zstd_zeros[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38, 0x03, 0x00, 0x10, 0x00 };

START_TEST(sections_that_claim_to_unpack_to_more_than_there_is)
{
        static const uint64_t claims[] = { 65, KiB(200), GiB(3), GiB(4), GiB(4) + 1, 1ull << 40, 1ull << 63, UINT64_MAX };

        for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
                assert_partial(packed_file(".zdebug_info", true, 0, claims[i], zlib_zeros, sizeof zlib_zeros), ".zdebug_info");
                assert_partial(packed_file(".debug_info", false, ELFCOMPRESS_ZLIB, claims[i], zlib_zeros, sizeof zlib_zeros),
                               ".debug_info");
                assert_partial(packed_file(".debug_info", false, ELFCOMPRESS_ZSTD, claims[i] + KiB(128), zstd_zeros,
                                           sizeof zstd_zeros), ".debug_info");
                assert_function(MADE_CODE + 0x100, "from_symtab");
        }
}
END_TEST

START_TEST(sections_that_unpack_to_more_than_they_claim)
{
        static const uint64_t claims[] = { 1, 63 };

        for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
                assert_partial(packed_file(".zdebug_info", true, 0, claims[i], zlib_zeros, sizeof zlib_zeros), "cannot unpack");
                assert_partial(packed_file(".debug_info", false, ELFCOMPRESS_ZLIB, claims[i], zlib_zeros, sizeof zlib_zeros),
                               "cannot unpack");
                assert_partial(packed_file(".debug_info", false, ELFCOMPRESS_ZSTD, claims[i], zstd_zeros, sizeof zstd_zeros),
                               "cannot unpack");
                assert_function(MADE_CODE + 0x100, "from_symtab");
        }
}
END_TEST

START_TEST(sections_packed_in_unknown_ways)
{
        assert_partial(packed_file(".debug_info", false, 0xbad, 64, zlib_zeros, sizeof zlib_zeros), "unknown compression 2989");
        assert_partial(packed_file(".debug_info", false, ELFCOMPRESS_ZLIB, 64, zlib_zeros, 0), "broken");
}
END_TEST

/* Each claims as much as all together may have. */
START_TEST(many_sections_that_claim_to_be_as_big_as_a_file)
{
        static const char *const sections_named[] = { ".debug_info", ".debug_abbrev", ".debug_line", ".debug_str",
                                                      ".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_line_str" };
        struct elf_maker_section sections[10] = { GOOD_SYMBOLS };
        _cleanup_buf_ struct buf packed;

        buf_init(&packed, MiB(1));
        buf_append_u32(&packed, ELFCOMPRESS_ZSTD);
        buf_append_u32(&packed, 0);
        buf_append_u64(&packed, GiB(4));
        buf_append_u64(&packed, 1);
        buf_append(&packed, zstd_zeros, sizeof zstd_zeros);
        for (size_t i = 0; i < 8; i++)
                sections[2 + i] = (struct elf_maker_section){ .name = sections_named[i], .type = SHT_PROGBITS,
                                                              .flags = SHF_COMPRESSED, .content = packed.data,
                                                              .size = packed.size };
        assert_partial(made_file(sections, 10, NULL), "cannot unpack section");
        assert_function(MADE_CODE + 0x100, "from_symtab");
}
END_TEST

/* ---- other sources ---- */

static size_t xz_of_zeros(size_t size, struct buf *ret)
{
        lzma_stream stream = LZMA_STREAM_INIT;
        uint8_t *zeros = calloc(1, MiB(1));

        ck_assert_int_eq(lzma_easy_encoder(&stream, 0, LZMA_CHECK_CRC32), LZMA_OK);
        for (size_t done = 0; done <= size;) {
                bool is_last = done == size;

                if (stream.avail_in == 0 && !is_last) {
                        stream.next_in = zeros;
                        stream.avail_in = MiB(1);
                        done += MiB(1);
                }
                stream.next_out = buf_reserve(ret, KiB(64));
                stream.avail_out = KiB(64);
                ck_assert_ptr_nonnull(stream.next_out);
                if (lzma_code(&stream, is_last ? LZMA_FINISH : LZMA_RUN) == LZMA_STREAM_END)
                        done++;
                buf_commit(ret, KiB(64) - stream.avail_out);
        }
        lzma_end(&stream);
        free(zeros);
        return ret->size;
}

START_TEST(a_minidebuginfo_that_unpacks_to_more_than_the_limit)
{
        struct elf_maker_section sections[] = { GOOD_SYMBOLS, { .name = ".gnu_debugdata", .type = SHT_PROGBITS } };
        _cleanup_buf_ struct buf packed;

        buf_init(&packed, MiB(8));
        sections[2].size = xz_of_zeros(LIMIT_MINIDEBUGINFO_BYTES + MiB(16), &packed);
        sections[2].content = packed.data;
        assert_partial(made_file(sections, 3, NULL), ".gnu_debugdata");
        assert_function(MADE_CODE + 0x100, "from_symtab");
}
END_TEST

static void pack(const void *data, size_t size, struct buf *ret)
{
        size_t used = 0;

        buf_init(ret, MiB(8));
        ck_assert_int_eq(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, data, size, buf_reserve(ret, size + KiB(4)), &used,
                                                 size + KiB(4)), LZMA_OK);
        buf_commit(ret, used);
}

/* As often as one likes: only the first is opened. */
START_TEST(a_minidebuginfo_in_a_minidebuginfo)
{
        struct elf_maker_section sections[] = { GOOD_SYMBOLS, { .name = ".gnu_debugdata", .type = SHT_PROGBITS } };
        _cleanup_buf_ struct buf packed = { 0 };
        int fd = made_file(good_symbols + 1, 2, NULL);

        for (int depth = 0; depth < 10; depth++) {
                uint8_t bytes[KiB(16)];
                ssize_t n = pread(fd, bytes, sizeof bytes, 0);

                ck_assert_int_gt(n, 0);
                close(fd);
                buf_deinit(&packed);
                pack(bytes, (size_t)n, &packed);
                sections[2].content = packed.data;
                sections[2].size = packed.size;
                fd = made_file(sections, 3, NULL);
        }
        assert_whole(fd);
        assert_function(MADE_CODE + 0x100, "from_symtab");
}
END_TEST

START_TEST(symbols_with_entries_of_any_size)
{
        static const struct {
                uint64_t size;
                const char *partial; /* "": all is well */
        } cases[] = { { 0, "" }, { 1, "entries of 1 bytes" }, { 23, "entries of 23 bytes" }, { 1ull << 63, "" } };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct elf_maker_section sections[] = { GOOD_SYMBOLS, GOOD_SYMBOLS };

                sections[0].entry_size = cases[i].size;
                sections[2].type = SHT_DYNSYM; /* so that there is something of use */
                sections[2].name = ".dynsym";
                ck_assert_int_eq(extract(made_file(sections, 4, NULL)), ST_OK);
                ck_assert_msg(strstr(symbol_table_partial(&table), cases[i].partial), "%s", symbol_table_partial(&table));
                assert_function(MADE_CODE + 0x100, "from_symtab");
        }
}
END_TEST

START_TEST(sections_that_wrap_around_the_file)
{
        struct elf_maker_section sections[] = { GOOD_SYMBOLS, { .name = ".debug_info", .type = SHT_PROGBITS, .size = 8,
                                                                .content = "12345678" } };

        sections[2].claimed_offset = UINT64_MAX - 3;
        assert_refused(made_file(sections, 3, NULL), "cut off");
        sections[2].claimed_offset = 64;
        sections[2].claimed_size = UINT64_MAX - 63;
        assert_refused(made_file(sections, 3, NULL), "cut off");
}
END_TEST

START_TEST(of_sections_of_one_name_the_first_counts)
{
        struct elf_maker_section sections[60] = { GOOD_SYMBOLS };
        struct dwarf_maker m;

        made_dwarf_begin(&m);
        made_unit(&m, "good", MADE_CODE, 0x10);
        end_unit(&m);
        for (size_t i = 2; i < 40; i++) {
                sections[i] = sections[0];
                sections[i].name = i % 2 ? ".symtab" : ".gnu_debugdata";
                sections[i].link = (uint32_t)i; /* names that are no strings */
        }
        assert_partial(made_file(sections, 40, &m), ".gnu_debugdata");
        assert_function(MADE_CODE, "good");
        assert_function(MADE_CODE + 0x100, "from_symtab");
}
END_TEST

START_TEST(a_pclntab_whose_counts_wrap_around)
{
        static const uint64_t counts[] = { 1ull << 63, 1ull << 61, UINT64_MAX, UINT64_MAX / 8, 1ull << 32 };

        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
                /* Go 1.20, quantum 1, pointers of 8 bytes */
                const uint64_t words[40] = { 0x08010000fffffff1, counts[i], counts[i], 0, 72, 72, 72, 72, 72 };
                const struct elf_maker_section sections[] = {
                        GOOD_SYMBOLS,
                        { .name = ".gopclntab", .type = SHT_PROGBITS, .flags = SHF_ALLOC, .address = 0x500000,
                          .content = words, .size = sizeof words },
                };

                assert_partial(made_file(sections, 3, NULL), "the pclntab of 'hostile' is cut off or malformed");
                assert_function(MADE_CODE + 0x100, "from_symtab");
        }
}
END_TEST

int main(int argc, char **argv)
{
        const TTest *const tests[] = {
                loops_of_origins_and_specifications,
                units_that_import_one_another_in_a_circle,
                dies_a_million_deep,
                calls_inlined_a_hundred_thousand_deep,
                a_name_of_forty_megabytes,
                abbreviations_that_lie_in_one_another,
                two_to_the_fortieth_line_rows,
                more_line_rows_than_the_limit_in_one_table,
                advances_of_two_to_the_sixty_third,
                a_range_list_that_a_hundred_thousand_functions_share,
                sections_that_claim_to_unpack_to_more_than_there_is,
                sections_that_unpack_to_more_than_they_claim,
                sections_packed_in_unknown_ways,
                many_sections_that_claim_to_be_as_big_as_a_file,
                a_minidebuginfo_that_unpacks_to_more_than_the_limit,
                a_minidebuginfo_in_a_minidebuginfo,
                symbols_with_entries_of_any_size,
                sections_that_wrap_around_the_file,
                of_sections_of_one_name_the_first_counts,
                a_pclntab_whose_counts_wrap_around,
        };
        char program[PATH_MAX];

        (void)argc;
        /* build/tests/unit/test_hostile, and build/cairn */
        snprintf(program, sizeof program, "%.*s/../../cairn", (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
        worker_set_program(program);
        return suite_run("hostile", tests, sizeof tests / sizeof *tests);
}
