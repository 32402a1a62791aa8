/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "common/limits.h"
#include "elf-image/elf_image.h"
#include "tests/support/elf_maker.h"
#include "tests/support/suite.h"

static const uint8_t id_bytes[20] = { 0xab, 0xcd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18 };

static const char *hex_of(const struct elf_image *img)
{
        static char hex[BUILD_ID_HEX_MAX];

        return build_id_hex(&img->build_id, hex);
}

/* A file of the given class and byte order with a build-id, code, two functions and DWARF. */
static void make_program(struct elf_maker *m, struct buf *file)
{
        _cleanup_buf_ struct buf note, symbols;
        static const char strings[] = "\0undefined\0start\0end";
        struct elf_maker_section sections[6] = { { 0 } };
        const struct elf_maker_segment segments[] = {
                { PT_LOAD, PF_R | PF_X, 0, 0x400000, 0x100, 0x100 },
                { PT_LOAD, PF_R | PF_W, 0x100, 0x601100, 0x20, 0x80 },
        };
        const uint32_t names[] = { 0, 1, 11, 17 };

        buf_init(&note, 4096);
        buf_init(&symbols, 4096);
        elf_make_note(m, &note, "GNU", 4, NT_GNU_BUILD_ID, id_bytes, sizeof id_bytes);
        for (size_t i = 0; i < 4; i++) {
                uint8_t info = i ? ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) : 0;
                uint16_t section = i < 2 ? SHN_UNDEF : i == 2 ? 2 : SHN_XINDEX;

                elf_make_word(m, &symbols, names[i], 4);
                if (!m->is_64) {
                        elf_make_word(m, &symbols, 0x400000 + i * 0x10, 4);
                        elf_make_word(m, &symbols, 0x10, 4);
                }
                buf_append_u8(&symbols, info);
                buf_append_u8(&symbols, STV_HIDDEN);
                elf_make_word(m, &symbols, section, 2);
                if (m->is_64) {
                        elf_make_word(m, &symbols, 0x400000 + i * 0x10, 8);
                        elf_make_word(m, &symbols, 0x10, 8);
                }
        }
        sections[1] = (struct elf_maker_section){ ".note.gnu.build-id", SHT_NOTE,         SHF_ALLOC, 0x400200,
                                                  .content = note.data, .size = note.size };
        sections[2] = (struct elf_maker_section){ ".text",  SHT_PROGBITS,          SHF_ALLOC | SHF_EXECINSTR,
                                                  0x400000, .content = "codecode", .size = 8 };
        sections[3] =
                (struct elf_maker_section){ ".symtab",    SHT_SYMTAB,   0,         0,
                                            symbols.data, symbols.size, .link = 4, .entry_size = m->is_64 ? 24 : 16 };
        sections[4] = (struct elf_maker_section){ ".strtab", SHT_STRTAB, .content = strings, .size = sizeof strings };
        sections[5] = (struct elf_maker_section){ ".debug_info", SHT_PROGBITS, .content = "dwarf", .size = 5 };
        m->sections = sections;
        m->section_count = 6;
        m->segments = segments;
        m->segment_count = 2;
        elf_make(m, file);
        m->sections = NULL;
        m->segments = NULL;
}

static void check_program(bool is_64, bool big_endian, bool wide)
{
        struct elf_maker m = { .is_64 = is_64, .big_endian = big_endian, .wide_counts = wide, .machine = EM_PPC };
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_buf_ struct buf file;
        struct elf_symbol_cursor c;
        struct elf_symbol sym;
        const uint8_t *bytes;
        struct error err = { 0 };

        buf_init(&file, MiB(1));
        make_program(&m, &file);
        ck_assert_msg(elf_image_from_memory(file.data, file.size, "made", &img, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(img.is_64, is_64);
        ck_assert_int_eq(img.machine, EM_PPC);
        ck_assert_str_eq(hex_of(&img), "abcd0102030405060708090a0b0c0d0e0f101112");
        ck_assert_int_eq(img.build_id_kind, ELF_BUILD_ID_GNU);
        ck_assert_uint_eq(img.section_count, 7);
        ck_assert_str_eq(img.sections[6].name, ".shstrtab");
        ck_assert_int_eq(elf_image_kind(&img), ELF_KIND_BOTH);
        ck_assert_int_eq(elf_image_quality(&img), QUALITY_DWARF);
        ck_assert_int_eq(elf_image_check_complete(&img, &err), ST_OK);

        ck_assert(elf_image_bytes_at(&img, 0x400001, 3, &bytes));
        ck_assert_mem_eq(bytes, "ELF", 3);
        ck_assert(!elf_image_bytes_at(&img, 0x4000ff, 2, &bytes));

        ck_assert_int_eq(elf_symbols_begin(&img, elf_image_section(&img, ".symtab"), &c, &err), ST_OK);
        ck_assert(elf_symbols_next(&c, &sym) && !*sym.name);
        ck_assert(elf_symbols_next(&c, &sym) && !elf_symbol_is_function(&sym));
        ck_assert_str_eq(sym.name, "undefined");
        ck_assert(elf_symbols_next(&c, &sym) && elf_symbol_is_function(&sym));
        ck_assert_str_eq(sym.name, "start");
        ck_assert_uint_eq(sym.value, 0x400020);
        ck_assert_uint_eq(sym.visibility, STV_HIDDEN);
        /* No SHT_SYMTAB_SHNDX: defined, the section is unknown. */
        ck_assert(elf_symbols_next(&c, &sym) && elf_symbol_is_function(&sym));
        ck_assert_ptr_null(elf_image_section_at(&img, sym.section));
        ck_assert(!elf_symbols_next(&c, &sym));
}

START_TEST(classes_and_byte_orders_are_equivalent)
{
        for (unsigned i = 0; i < 8; i++)
                check_program(i & 1, i & 2, i & 4);
}
END_TEST

static enum status open_made(const struct elf_maker_section *sections, size_t count, struct buf *file,
                             struct elf_image *ret, struct error *err)
{
        struct elf_maker m = { .is_64 = true, .sections = sections, .section_count = count };

        buf_init(file, MiB(4));
        elf_make(&m, file);
        return elf_image_from_memory(file->data, file->size, "made", ret, err);
}

START_TEST(truncated_program_is_refused_or_incomplete)
{
        struct elf_maker m = { .is_64 = true };
        _cleanup_buf_ struct buf file;

        buf_init(&file, MiB(1));
        make_program(&m, &file);
        for (size_t n = 0; n < file.size; n++) {
                struct elf_image img;
                struct error err = { 0 };
                void *exact = malloc(n ? n : 1); /* so that AddressSanitizer detects reads past the cut */

                memcpy(exact, file.data, n);
                ck_assert_int_eq(elf_image_from_memory(exact, n, "cut", &img, &err), ST_BAD_DATA);
                ck_assert_msg(strstr(err.text, n < 4 ? "not an ELF file" : "cut off"), "%zu: %s", n, err.text);
                free(exact);
        }
}
END_TEST

START_TEST(content_of_section_past_file_end_is_truncated)
{
        const struct elf_maker_section sections[] = {
                { 0 }, { ".debug_info", SHT_PROGBITS, .content = "x", .size = 1, .claimed_size = 0x100000 }
        };
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_buf_ struct buf file;
        struct elf_section_data data = { 0 };
        struct error err = { 0 };

        ck_assert_int_eq(open_made(sections, 2, &file, &img, &err), ST_OK);
        ck_assert_int_eq(elf_section_data(&img, &img.sections[1], LIMIT_SECTION_UNPACKED_BYTES, &data, &err),
                         ST_BAD_DATA);
        ck_assert_int_eq(elf_image_check_complete(&img, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(
                strstr(err.text, "cut off: section '.debug_info' (0x100000 bytes at 0x40) ends past the file's"));
}
END_TEST

START_TEST(empty_section_has_nonnull_bytes)
{
        const struct elf_maker_section sections[] = { { 0 }, { ".debug_cu_index", SHT_PROGBITS, .content = "" } };
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_buf_ struct buf file;
        _cleanup_elf_section_data_ struct elf_section_data data = { 0 };

        ck_assert_int_eq(open_made(sections, 2, &file, &img, NULL), ST_OK);
        ck_assert_int_eq(elf_section_data(&img, &img.sections[1], LIMIT_SECTION_UNPACKED_BYTES, &data, NULL), ST_OK);
        ck_assert_uint_eq(data.size, 0);
        ck_assert_ptr_nonnull(data.bytes);
}
END_TEST

START_TEST(wrapping_section_offset_is_truncated)
{
        const struct elf_maker_section sections[] = {
                { 0 }, { ".a", SHT_PROGBITS, .claimed_offset = UINT64_MAX - 1, .claimed_size = 8 }
        };
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_buf_ struct buf file;
        const uint8_t *bytes;
        size_t size;

        ck_assert_int_eq(open_made(sections, 2, &file, &img, NULL), ST_OK);
        ck_assert_int_eq(elf_section_raw(&img, &img.sections[1], &bytes, &size, NULL), ST_BAD_DATA);
}
END_TEST

START_TEST(symbols_with_invalid_strings_and_entry_sizes_are_not_overread)
{
        static const uint8_t symbol[24] = { 0xff, 0xff, 0xff, 0x7f };
        const struct elf_maker_section sections[] = {
                { 0 },
                { ".symtab", SHT_SYMTAB, .content = symbol, .size = 24, .link = 3, .entry_size = 24 },
                { ".small", SHT_SYMTAB, .content = symbol, .size = 24, .link = 3, .entry_size = 23 },
                { ".strtab", SHT_STRTAB, .content = "abc", .size = 3 }, /* no NUL */
                { ".nolink", SHT_DYNSYM, .content = symbol, .size = 24, .link = 99, .entry_size = 24 },
        };
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_buf_ struct buf file;
        struct elf_symbol_cursor c;
        struct elf_symbol sym;

        ck_assert_int_eq(open_made(sections, 5, &file, &img, NULL), ST_OK);
        ck_assert_int_eq(elf_symbols_begin(&img, &img.sections[1], &c, NULL), ST_OK);
        ck_assert(elf_symbols_next(&c, &sym));
        ck_assert_str_eq(sym.name, "");
        ck_assert_int_eq(elf_symbols_begin(&img, &img.sections[2], &c, NULL), ST_BAD_DATA);
        ck_assert_int_eq(elf_symbols_begin(&img, &img.sections[3], &c, NULL), ST_BAD_DATA);
        ck_assert_int_eq(elf_symbols_begin(&img, &img.sections[4], &c, NULL), ST_OK);
        ck_assert(elf_symbols_next(&c, &sym) && !*sym.name);
}
END_TEST

START_TEST(wide_section_index_comes_from_its_own_table)
{
        static const uint8_t symbol[24] = { 0, 0, 0, 0, STT_FUNC, 0, 0xff, 0xff };
        static const uint8_t words[4] = { 0x78, 0x56, 0x01, 0 };
        const struct elf_maker_section sections[] = {
                { 0 },
                { ".symtab", SHT_SYMTAB, .content = symbol, .size = 24, .entry_size = 24 },
                { ".symtab_shndx", SHT_SYMTAB_SHNDX, .content = words, .size = 4, .link = 1 },
        };
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_buf_ struct buf file;
        struct elf_symbol_cursor c;
        struct elf_symbol sym;

        ck_assert_int_eq(open_made(sections, 3, &file, &img, NULL), ST_OK);
        ck_assert_int_eq(elf_symbols_begin(&img, &img.sections[1], &c, NULL), ST_OK);
        ck_assert(elf_symbols_next(&c, &sym));
        ck_assert_uint_eq(sym.section, 0x15678);
}
END_TEST

/* Content compressed with an ELF compression header, or the older format. */
static void pack(struct buf *to, uint32_t algorithm, bool gnu, uint64_t claimed, const void *data, size_t n)
{
        struct elf_maker m = { .is_64 = true };
        uLongf size = compressBound(n) + 64;
        _cleanup_free_ uint8_t *packed = malloc(size);

        if (gnu) {
                m.big_endian = true;
                buf_append(to, "ZLIB", 4);
                elf_make_word(&m, to, claimed, 8);
        } else {
                elf_make_word(&m, to, algorithm, 4);
                elf_make_word(&m, to, 0, 4);
                elf_make_word(&m, to, claimed, 8);
                elf_make_word(&m, to, 1, 8);
        }
        if (algorithm == 2)
                size = ZSTD_compress(packed, size, data, n, 1);
        else
                compress(packed, &size, data, n);
        buf_append(to, packed, size);
}

static const char packed_text[] = "the content of a section, the content of a section";

static enum status unpack_section(const struct buf *packed, bool gnu, size_t max, struct buf *got, struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_elf_section_data_ struct elf_section_data data = { 0 };
        _cleanup_buf_ struct buf file;
        struct elf_maker_section sections[] = {
                { 0 }, { gnu ? ".zdebug_str" : ".debug_str", SHT_PROGBITS, .flags = gnu ? 0 : SHF_COMPRESSED }
        };
        enum status st;

        sections[1].content = packed->data;
        sections[1].size = packed->size;
        ck_assert_int_eq(open_made(sections, 2, &file, &img, err), ST_OK);
        st = elf_section_data(&img, &img.sections[1], max, &data, err);
        if (!st) {
                ck_assert_uint_eq(data.size, sizeof packed_text);
                buf_append(got, data.bytes, data.size);
        }
        return st;
}

static enum status unpack_made(uint32_t algorithm, bool gnu, uint64_t claimed, size_t max, struct buf *got,
                               struct error *err)
{
        _cleanup_buf_ struct buf packed;

        buf_init(&packed, 4096);
        pack(&packed, algorithm, gnu, claimed ? claimed : sizeof packed_text, packed_text, sizeof packed_text);
        return unpack_section(&packed, gnu, max, got, err);
}

START_TEST(compressed_sections_are_decompressed)
{
        _cleanup_buf_ struct buf got;
        struct error err = { 0 };

        buf_init(&got, 4096);
        ck_assert_int_eq(unpack_made(1, false, 0, 1000, &got, &err), ST_OK);
        ck_assert_int_eq(unpack_made(2, false, 0, 1000, &got, &err), ST_OK);
        ck_assert_int_eq(unpack_made(1, true, 0, 1000, &got, &err), ST_OK);
        ck_assert_uint_eq(got.size, 3 * 51);
        ck_assert_mem_eq(got.data, got.data + 51, 51);
        ck_assert_mem_eq(got.data, got.data + 102, 51);
}
END_TEST

START_TEST(checksum_of_a_compressed_section_is_verified)
{
        _cleanup_buf_ struct buf packed, got;
        struct error err = { 0 };

        buf_init(&packed, 4096);
        buf_init(&got, 4096);
        pack(&packed, 1, false, sizeof packed_text, packed_text, sizeof packed_text);
        packed.data[packed.size - 1] ^= 1;
        ck_assert_int_eq(unpack_section(&packed, false, 1000, &got, &err), ST_BAD_DATA);
        packed.data[packed.size - 1] ^= 1;
        buf_append(&packed, "padding", 7); /* after the stream, as linkers may write */
        ck_assert_int_eq(unpack_section(&packed, false, 1000, &got, &err), ST_OK);
        ck_assert_mem_eq(got.data, packed_text, sizeof packed_text);
        packed.size = 40; /* cut off */
        ck_assert_int_eq(unpack_section(&packed, false, 1000, &got, &err), ST_BAD_DATA);
}
END_TEST

START_TEST(compressed_section_with_wrong_size_is_refused)
{
        struct error err = { 0 };

        ck_assert_int_eq(unpack_made(1, false, 50, 1000, NULL, &err), ST_BAD_DATA);
        ck_assert_int_eq(unpack_made(1, false, 52, 1000, NULL, &err), ST_BAD_DATA);
        ck_assert_int_eq(unpack_made(2, false, 50, 1000, NULL, &err), ST_BAD_DATA);
        ck_assert_int_eq(unpack_made(2, false, 52, 1000, NULL, &err), ST_BAD_DATA);
        ck_assert_int_eq(unpack_made(1, false, GiB(3), GiB(4), NULL, &err),
                         ST_BAD_DATA); /* exceeds deflate's maximum ratio */
        ck_assert_msg(strstr(err.text, "cannot be"), "%s", err.text);
        ck_assert_int_eq(unpack_made(9, false, 0, 1000, NULL, &err), ST_UNSUPPORTED);
        ck_assert_int_eq(unpack_made(1, false, UINT64_MAX, 1000, NULL, &err), ST_TOO_BIG);
        ck_assert_int_eq(unpack_made(2, false, 0, 50, NULL, &err), ST_TOO_BIG);
}
END_TEST

START_TEST(go_build_id_is_used_without_gnu_build_id)
{
        struct elf_maker m = { .is_64 = true };
        _cleanup_buf_ struct buf go, gnu, file;
        _cleanup_elf_image_ struct elf_image img = { 0 };
        struct elf_maker_section sections[] = { { 0 },
                                                { ".note.go.buildid", SHT_NOTE, .flags = 0 },
                                                { ".note.gnu.build-id", SHT_NOTE, .flags = 0 } };
        struct build_id expected;

        buf_init(&go, 4096);
        buf_init(&gnu, 4096);
        elf_make_note(&m, &go, "Go\0", 4, 4, "abc/def", 7);
        elf_make_note(&m, &gnu, "GNU", 4, NT_GNU_BUILD_ID, id_bytes, 20);
        sections[1].content = go.data;
        sections[1].size = go.size;
        ck_assert_int_eq(open_made(sections, 2, &file, &img, NULL), ST_OK);
        ck_assert(build_id_from_go(&expected, "abc/def", 7));
        ck_assert_int_eq(img.build_id_kind, ELF_BUILD_ID_GO);
        ck_assert(build_id_equal(&img.build_id, &expected));
        elf_image_close(&img);
        buf_deinit(&file);
        sections[2].content = gnu.data;
        sections[2].size = gnu.size;
        ck_assert_int_eq(open_made(sections, 3, &file, &img, NULL), ST_OK);
        ck_assert_int_eq(img.build_id_kind, ELF_BUILD_ID_GNU);
}
END_TEST

START_TEST(placeholder_is_not_a_build_id)
{
        static const uint8_t zeros[BUILD_ID_MAX];
        const struct {
                const uint8_t *id;
                size_t size;
                bool is_used;
        } cases[] = { { zeros, 20, false },   { zeros, 1, false },    { zeros, BUILD_ID_MAX, false },
                      { id_bytes, 1, false }, { id_bytes, 2, false }, { id_bytes, 3, true } };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct elf_maker m = { .is_64 = true };
                _cleanup_buf_ struct buf note, file;
                _cleanup_elf_image_ struct elf_image img = { 0 };
                struct elf_maker_section sections[] = { { 0 }, { ".note.gnu.build-id", SHT_NOTE, .flags = 0 } };

                buf_init(&note, 4096);
                elf_make_note(&m, &note, "GNU", 4, NT_GNU_BUILD_ID, cases[i].id, cases[i].size);
                if (!cases[i].is_used)
                        elf_make_note(&m, &note, "Go\0", 4, 4, "abc/def", 7);
                sections[1].content = note.data;
                sections[1].size = note.size;
                ck_assert_int_eq(open_made(sections, 2, &file, &img, NULL), ST_OK);
                ck_assert_int_eq(img.build_id_kind, cases[i].is_used ? ELF_BUILD_ID_GNU : ELF_BUILD_ID_GO);
                ck_assert_int_eq(img.has_placeholder_id, !cases[i].is_used);
        }
}
END_TEST

START_TEST(build_id_is_found_through_segments_without_section_headers)
{
        struct elf_maker m = { .is_64 = true };
        struct elf_maker_segment segments[] = { { PT_NOTE, PF_R, 64 + 56, 0x1000, 0, 0 } };
        _cleanup_buf_ struct buf file;
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_buf_ struct buf note;

        buf_init(&note, 4096);
        elf_make_note(&m, &note, "XYZ", 4, 3, "no", 2);
        elf_make_note(&m, &note, "GNU", 4, NT_GNU_BUILD_ID, id_bytes, 20);
        segments[0].file_size = note.size;
        m.segments = segments;
        m.segment_count = 1;
        buf_init(&file, 4096);
        elf_make(&m, &file);
        buf_append(&file, note.data, note.size);
        ck_assert_int_eq(elf_image_from_memory(file.data, file.size, "made", &img, NULL), ST_OK);
        ck_assert_uint_eq(img.section_count, 0);
        ck_assert_str_eq(hex_of(&img), "abcd0102030405060708090a0b0c0d0e0f101112");
}
END_TEST

START_TEST(debuglink_and_altlink_are_read)
{
        static const char debuglink[] = "a.debug\0\x78\x56\x34\x12";
        static const char altlink[] = "/x/y\0\xaa\xbb\xcc";
        static const uint8_t sup[] = { 5, 0, 0, 'z', 0, 2, 0x12, 0x34 };
        struct elf_maker_section sections[] = {
                { 0 },
                { ".gnu_debuglink", SHT_PROGBITS, .content = debuglink, .size = 12 },
                { ".gnu_debugaltlink", SHT_PROGBITS, .content = altlink, .size = 8 },
                { ".debug_sup", SHT_PROGBITS, .content = sup, .size = sizeof sup },
        };
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_buf_ struct buf file;
        const char *text;
        struct build_id id;
        uint32_t crc;

        ck_assert_int_eq(open_made(sections, 4, &file, &img, NULL), ST_OK);
        ck_assert_int_eq(elf_image_debuglink(&img, &text, &crc, NULL), ST_OK);
        ck_assert_str_eq(text, "a.debug");
        ck_assert_uint_eq(crc, 0x12345678);
        ck_assert_int_eq(elf_image_altlink(&img, &text, &id, NULL), ST_OK);
        ck_assert_str_eq(text, "/x/y");
        ck_assert_uint_eq(id.size, 3);
        elf_image_close(&img);
        buf_deinit(&file);
        sections[2].name = ".other";
        sections[1].size = 10; /* the CRC is truncated */
        ck_assert_int_eq(open_made(sections, 4, &file, &img, NULL), ST_OK);
        ck_assert_int_eq(elf_image_altlink(&img, &text, &id, NULL), ST_OK);
        ck_assert_str_eq(text, "z");
        ck_assert_uint_eq(id.bytes[1], 0x34);
        ck_assert_int_eq(elf_image_debuglink(&img, &text, &crc, NULL), ST_BAD_DATA);
}
END_TEST

START_TEST(plt_alone_is_not_code)
{
        const struct elf_maker_section sections[] = {
                { 0 },
                { ".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, .content = "plt", .size = 3 },
                { ".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, .claimed_size = 0x1000 },
                { ".debug_line", SHT_PROGBITS, .content = "lines", .size = 5 },
        };
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_buf_ struct buf file;

        ck_assert_int_eq(open_made(sections, 4, &file, &img, NULL), ST_OK);
        ck_assert_int_eq(elf_image_kind(&img), ELF_KIND_DEBUGINFO);
        ck_assert_int_eq(elf_image_quality(&img), QUALITY_LINES);
        ck_assert_int_eq(elf_image_check_complete(&img, NULL), ST_OK);
}
END_TEST

START_TEST(counts_over_the_limits_are_refused)
{
        struct elf_maker m = { .is_64 = true, .wide_counts = true };
        const struct elf_maker_section sections[] = { { 0 } };
        _cleanup_buf_ struct buf file;
        struct elf_image img;
        struct error err = { 0 };
        uint64_t shoff, many = LIMIT_ELF_SECTIONS + 1;

        buf_init(&file, 4096);
        m.sections = sections;
        m.section_count = 1;
        elf_make(&m, &file);
        memcpy(&shoff, file.data + 40, 8);
        memcpy(file.data + shoff + 32, &many, 8);
        ck_assert_int_eq(elf_image_from_memory(file.data, file.size, "made", &img, &err), ST_TOO_BIG);
        many = UINT64_MAX / 64;
        memcpy(file.data + shoff + 32, &many, 8);
        ck_assert_int_eq(elf_image_from_memory(file.data, file.size, "made", &img, &err), ST_TOO_BIG);
        file.data[58] = 63; /* e_shentsize */
        ck_assert_int_eq(elf_image_from_memory(file.data, file.size, "made", &img, &err), ST_BAD_DATA);
}
END_TEST

/* Compares readelf -SW of this program, line by line, with the sections read here. */
START_TEST(sections_of_real_program_agree_with_readelf)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_free_ char *command = NULL;
        char line[512], self[4096] = { 0 };
        size_t seen = 0;
        FILE *pipe;

        ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof self - 1), 0);
        ck_assert_int_eq(elf_image_open(self, &img, NULL), ST_OK);
        ck_assert_int_ge(asprintf(&command, "readelf -SW '%s'", self), 0);
        pipe = popen(command, "r");
        while (fgets(line, sizeof line, pipe)) {
                unsigned long index, address, offset, size;
                char name[64], type[32];

                if (sscanf(line, " [%lu] %63s %31s %lx %lx %lx", &index, name, type, &address, &offset, &size) != 6 ||
                    index == 0)
                        continue;
                seen++;
                ck_assert_uint_lt(index, img.section_count);
                ck_assert(strncmp(img.sections[index].name, name, 60) == 0 || strchr(name, '['));
                ck_assert_uint_eq(img.sections[index].address, address);
                ck_assert_uint_eq(img.sections[index].offset, offset);
                ck_assert_uint_eq(img.sections[index].size, size);
        }
        ck_assert_int_eq(pclose(pipe), 0);
        ck_assert_uint_ge(seen, 20);
        ck_assert_uint_eq(seen, img.section_count - 1);
        ck_assert_int_eq(elf_image_kind(&img), ELF_KIND_BOTH);
        ck_assert_uint_eq(img.build_id.size, 20);
}
END_TEST

START_TEST(quality_names_round_trip)
{
        for (unsigned q = QUALITY_NONE; q <= QUALITY_DWARF; q++) {
                enum symbol_quality parsed = QUALITY_NONE;

                ck_assert(symbol_quality_parse(symbol_quality_name((enum symbol_quality)q), &parsed));
                ck_assert_uint_eq(parsed, q);
        }
        ck_assert(!symbol_quality_parse("best", &(enum symbol_quality){ 0 }));
}
END_TEST

START_TEST(version_of_a_symbol_is_cut_from_its_name)
{
        static const struct {
                const char *name;
                size_t size;
        } names[] = { { "pthread_create@@GLIBC_2.34", 14 },
                      { "free@LIB_1.0-rc+b", 4 },
                      { "f@", 2 },
                      { "lazy@typeInfo(T)", 16 },
                      { "*File::Error+@SystemError#os_error=<Errno>:Errno", 48 },
                      { "*A@B#same?", 10 },
                      { "plain", 5 } };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                ck_assert_uint_eq(elf_symbol_name_size(names[i].name), names[i].size);
}
END_TEST

TEST_SUITE("elf-image", classes_and_byte_orders_are_equivalent, truncated_program_is_refused_or_incomplete,
           content_of_section_past_file_end_is_truncated, wrapping_section_offset_is_truncated,
           empty_section_has_nonnull_bytes, symbols_with_invalid_strings_and_entry_sizes_are_not_overread,
           wide_section_index_comes_from_its_own_table, compressed_sections_are_decompressed,
           checksum_of_a_compressed_section_is_verified, compressed_section_with_wrong_size_is_refused,
           go_build_id_is_used_without_gnu_build_id, placeholder_is_not_a_build_id,
           build_id_is_found_through_segments_without_section_headers, debuglink_and_altlink_are_read,
           plt_alone_is_not_code, counts_over_the_limits_are_refused, sections_of_real_program_agree_with_readelf,
           quality_names_round_trip, version_of_a_symbol_is_cut_from_its_name)
