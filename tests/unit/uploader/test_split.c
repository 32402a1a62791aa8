/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/limits.h"
#include "tests/support/elf_maker.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"
#include "uploader/split.h"
#include "uploader/strip.h"

static char dir[TEMPORARY_DIR_BYTES];

/* A program with inlined calls, a PLT, and a large table that is irrelevant for symbolization. */
static const char source[] =
        "#include <stdio.h>\\n#include <math.h>\\n"
        "static const char table[100000] = {1, 2, 3};\\n"
        "static inline __attribute__((always_inline)) int inner(int x) { return printf(\"%d\", x * 7); }\\n"
        "__attribute__((noinline)) int outer(int x) { return inner(x) + table[x]; }\\n"
        "int main(int argc, char **argv) { (void)argv; return outer(argc) + (int)sin(argc); }\\n";

static void run_shell(const char *fmt, ...) PRINTF(1, 2);
static void run_shell(const char *fmt, ...)
{
        char *command;
        va_list args;

        va_start(args, fmt);
        ck_assert_int_ge(vasprintf(&command, fmt, args), 0);
        va_end(args);
        ck_assert_msg(system(command) == 0, "%s", command);
        free(command);
}

/* The output of a command; owned. */
static char *output_of(const char *fmt, const char *file)
{
        _cleanup_free_ char *command = NULL;
        char *text = calloc(1, MiB(1));
        FILE *pipe;

        ck_assert_int_ge(asprintf(&command, "f='%s'; %s", file, fmt), 0);
        pipe = popen(command, "r");
        ck_assert_uint_lt(fread(text, 1, MiB(1) - 1, pipe), MiB(1) - 1);
        ck_assert_int_eq(pclose(pipe), 0);
        return text;
}

static void set_up(void)
{
        temporary_dir_create(dir, "split");
}

static void tear_down(void)
{
        temporary_dir_remove(dir);
}

/* Build dir/name with additional flags and split it to dir/name.split. */
static void build_and_split(const char *name, const char *flags, struct elf_image *whole, struct elf_image *split)
{
        char path[128], to[160];
        struct error err = { 0 };
        uint64_t size;
        struct stat info;
        int fd;

        run_shell("printf '%s' | ${CC:-gcc} -x c -g -O2 %s -o %s/%s - -lm", source, flags, dir, name);
        snprintf(path, sizeof path, "%s/%s", dir, name);
        snprintf(to, sizeof to, "%s.split", path);
        ck_assert_int_eq(elf_image_open(path, whole, &err), ST_OK);
        ck_assert(split_is_needed(whole));
        fd = open(to, O_RDWR | O_CREAT | O_TRUNC, 0644);
        ck_assert_msg(split_write(whole, NULL, 0, fd, &size, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(fstat(fd, &info), 0);
        ck_assert_uint_eq((uint64_t)info.st_size, size);
        ck_assert_int_eq(elf_image_from_fd(fd, to, split, &err), ST_OK);
        close(fd);
}

/* Everything but the contents kept must be unchanged. Returns the number of bytes kept in loaded sections. */
static uint64_t check_same(const struct elf_image *a, const struct elf_image *b)
{
        uint64_t loaded = 0;

        ck_assert(build_id_equal(&a->build_id, &b->build_id));
        ck_assert_uint_eq(a->entry, b->entry);
        ck_assert_uint_eq(a->header_flags, b->header_flags);
        ck_assert_uint_eq(a->machine, b->machine);
        ck_assert_uint_eq(a->type, b->type);
        ck_assert_uint_eq(a->segment_count, b->segment_count);
        for (size_t i = 0; i < a->segment_count; i++) {
                ck_assert_uint_eq(a->segments[i].type, b->segments[i].type);
                ck_assert_uint_eq(a->segments[i].address, b->segments[i].address);
                if (a->segments[i].type == PT_LOAD)
                        ck_assert_mem_eq(&a->segments[i], &b->segments[i], sizeof a->segments[i]);
        }
        ck_assert_uint_eq(a->section_count, b->section_count);
        for (size_t i = 1; i < a->section_count; i++) {
                const struct elf_section *s = &a->sections[i], *t = &b->sections[i];
                const uint8_t *sb, *tb;
                size_t sn, tn;

                ck_assert_str_eq(s->name, t->name);
                ck_assert_uint_eq(s->address, t->address);
                ck_assert_uint_eq(s->size, t->size);
                ck_assert_uint_eq(s->link, t->link);
                ck_assert_uint_eq(s->info, t->info);
                ck_assert_uint_eq(s->entry_size, t->entry_size);
                if (!split_keeps_section(a, s)) {
                        ck_assert_uint_eq(t->type, s->size || s->type != SHT_NULL ? SHT_NOBITS : SHT_NULL);
                        continue;
                }
                ck_assert_uint_eq(s->type, t->type);
                ck_assert_uint_eq(s->flags, t->flags);
                ck_assert_int_eq(elf_section_raw(a, s, &sb, &sn, NULL), ST_OK);
                ck_assert_int_eq(elf_section_raw(b, t, &tb, &tn, NULL), ST_OK);
                ck_assert_uint_eq(sn, tn);
                ck_assert_msg(memcmp(sb, tb, sn) == 0, "%s", s->name);
                if (s->flags & SHF_ALLOC)
                        loaded += s->size;
        }
        return loaded;
}

static void check_program(const char *name, const char *flags)
{
        static const char lines_of_functions[] =
                "nm $f.whole | awk '$2 ~ /^[Tt]$/ { print \"0x\" $1 }' | eu-addr2line -fis "
                "-e $f || :"; /* it exits 1 for an address without a name */
        static const char llvm_lines_of_functions[] =
                "nm $f.whole | awk '$2 ~ /^[Tt]$/ { print \"0x\" $1 }' | llvm-symbolizer --inlines --obj=$f";
        static const char *const questions[] = { lines_of_functions, llvm_lines_of_functions, "nm $f | cut -c1-16,19-",
                                                 "readelf -nW $f | grep Build.ID" };
        _cleanup_elf_image_ struct elf_image whole = { 0 }, split = { 0 };
        char path[128], split_path[160], other[160];
        struct stat theirs;
        uint64_t loaded, compact;

        build_and_split(name, flags, &whole, &split);
        loaded = check_same(&whole, &split);
        ck_assert_int_eq(elf_image_kind(&split), ELF_KIND_DEBUGINFO);
        ck_assert_int_eq(elf_image_quality(&split), QUALITY_DWARF);
        ck_assert_int_eq(elf_image_check_complete(&split, NULL), ST_OK);
        ck_assert(!split_is_needed(&split));

        snprintf(path, sizeof path, "%s/%s", dir, name);
        snprintf(split_path, sizeof split_path, "%s.split", path);
        snprintf(other, sizeof other, "%s.objcopy", path);
        run_shell("objcopy --only-keep-debug %s %s; cp %s %s.whole; cp %s %s.whole", path, other, path, path, path,
                  split_path);
        ck_assert_int_eq(stat(other, &theirs), 0);
        compact = (uint64_t)theirs.st_size + loaded + 512;
        /* Contents kept at their position in segments may leave holes. */
        ck_assert_uint_le(split.size, 2 * compact + MiB(1));
        ck_assert_int_eq(stat(split_path, &theirs), 0);
        ck_assert_uint_le((uint64_t)theirs.st_blocks * 512, compact + 64 * KiB(4));
        for (size_t i = 1; i < split.section_count; i++) {
                const struct elf_section *s = &split.sections[i];

                if ((s->flags & SHF_ALLOC) && elf_section_has_content(s))
                        ck_assert_uint_eq(s->offset, whole.sections[i].offset);
        }
        for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
                _cleanup_free_ char *before = output_of(questions[i], path);
                _cleanup_free_ char *after = output_of(questions[i], split_path);

                ck_assert(*before);
                ck_assert_str_eq(before, after);
        }
}

START_TEST(split_gives_the_same_symbols_and_is_as_small_as_objcopys)
{
        set_up();
        check_program("pie", "");
        check_program("static", "-static");
        check_program("packed", "-gz=zlib");
        check_program("relocs", "-Wl,--emit-relocs");
        tear_down();
}
END_TEST

START_TEST(gdb_accepts_split_as_debug_file)
{
        _cleanup_elf_image_ struct elf_image whole = { 0 }, split = { 0 };
        _cleanup_free_ char *text = NULL;
        char path[128];

        set_up();
        build_and_split("program", "", &whole, &split);
        snprintf(path, sizeof path, "%s/program", dir);
        run_shell("cd %s && strip program && objcopy --add-gnu-debuglink=program.split program", dir);
        text = output_of("gdb -nx -q -batch -ex 'info line outer' $f 2>&1", path);
        ck_assert_msg(strstr(text, "Line 5 of"), "%s", text);
        tear_down();
}
END_TEST

static enum status split_made(const struct elf_maker *m, struct elf_image *ret, struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_buf_ struct buf file;
        _cleanup_close_ int fd = -1;
        uint64_t size;
        enum status st;

        buf_init(&file, MiB(16));
        elf_make(m, &file);
        ck_assert_int_eq(elf_image_from_memory(file.data, file.size, "made", &img, err), ST_OK);
        ck_assert_int_eq(split_create_temporary(&fd, err), ST_OK);
        st = split_write(&img, NULL, 0, fd, &size, err);
        if (st)
                return st;
        ck_assert_int_eq(elf_image_from_fd(fd, "split", ret, err), ST_OK);
        check_same(&img, ret);
        return ST_OK;
}

START_TEST(each_class_and_byte_order_is_kept)
{
        static const uint8_t note[] = { 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 3, 'G', 'N', 'U', 0, 0xaa, 0xbb, 0xcc, 0 };
        const struct elf_maker_section sections[] = {
                { 0 },
                { ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0x1000, .content = note, .size = sizeof note },
                { ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x2000, .content = "code", .size = 4 },
                { ".bss", SHT_NOBITS, SHF_ALLOC, 0x3000, .claimed_size = 0x500000 },
                { ".debug_info", SHT_PROGBITS, .content = "dwarf", .size = 5 },
        };
        const struct elf_maker_segment segments[] = { { PT_LOAD, PF_R, 0x34, 0x1000, 0x10, 0x10 } };

        for (unsigned i = 0; i < 4; i++) {
                const struct elf_maker m = { .is_64 = i & 1,
                                             .big_endian = i & 2,
                                             .machine = EM_MIPS,
                                             .type = ET_EXEC,
                                             .sections = sections,
                                             .section_count = 5,
                                             .segments = segments,
                                             .segment_count = 1 };
                _cleanup_elf_image_ struct elf_image split = { 0 };
                struct error err = { 0 };

                ck_assert_msg(split_made(&m, &split, &err) == ST_OK, "%s", err.text);
                ck_assert_int_eq(split.is_64, m.is_64);
                ck_assert_int_eq(split.big_endian, m.big_endian);
                if (m.big_endian)
                        ck_assert_uint_eq(split.build_id.bytes[0], 0xaa);
        }
}
END_TEST

START_TEST(more_sections_than_the_header_can_count_are_kept)
{
        enum { COUNT = 0xff80 };
        struct elf_maker_section *sections = calloc(COUNT, sizeof *sections);
        const struct elf_maker m = { .is_64 = true, .wide_counts = true, .sections = sections, .section_count = COUNT };
        _cleanup_elf_image_ struct elf_image split = { 0 };
        struct error err = { 0 };

        for (size_t i = 1; i < COUNT; i++)
                sections[i] = (struct elf_maker_section){ ".debug_x", SHT_PROGBITS, .content = "x", .size = 1 };
        ck_assert_msg(split_made(&m, &split, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(split.section_count, COUNT + 1);
        ck_assert_uint_eq(split.name_section, COUNT);
        free(sections);
}
END_TEST

START_TEST(unsupported_files_are_refused_with_reason)
{
        const struct elf_maker_segment segments[] = { { PT_LOAD, PF_R | PF_X, 0, 0x1000, 64, 64 } };
        const struct elf_maker_section sections[] = { { 0 }, { ".debug_info", SHT_PROGBITS, .claimed_size = 0x10000 } };
        const struct elf_maker headless = { .is_64 = true, .segments = segments, .segment_count = 1 };
        const struct elf_maker cut = { .is_64 = true, .sections = sections, .section_count = 2 };
        struct elf_image split;
        struct error err = { 0 };

        ck_assert_int_eq(split_made(&headless, &split, &err), ST_UNSUPPORTED);
        ck_assert_str_eq(err.text, "cannot split 'made': it has no section headers");
        ck_assert_int_eq(split_made(&cut, &split, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "cut off"));
}
END_TEST

/* 2,000 sections with the same 4 MiB would result in a file of 8 GiB. */
START_TEST(overlapping_sections_do_not_enlarge_split)
{
        enum { COUNT = 2000 };
        static uint8_t content[MiB(4)];
        struct elf_maker_section sections[COUNT] = { { 0 } };
        const struct elf_maker m = { .is_64 = true, .sections = sections, .section_count = COUNT };
        struct elf_image split;
        struct error err = { 0 };

        for (size_t i = 1; i < COUNT; i++)
                sections[i] = (struct elf_maker_section){ ".debug_x", SHT_PROGBITS, .claimed_offset = 64,
                                                          .claimed_size = sizeof content };
        sections[1] =
                (struct elf_maker_section){ ".debug_x", SHT_PROGBITS, .content = content, .size = sizeof content };
        ck_assert_int_eq(split_made(&m, &split, &err), ST_TOO_BIG);
}
END_TEST

START_TEST(split_with_large_holes_is_compacted)
{
        static uint8_t code[MiB(2)];
        static uint8_t dwarf[6000];

        for (unsigned large = 0; large < 2; large++) {
                const struct elf_maker_section sections[] = {
                        { 0 },
                        { ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, .content = code,
                          .size = large ? sizeof code : 4096 },
                        { ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x400000, .content = code, .size = 100 },
                        { ".debug_info", SHT_PROGBITS, .content = dwarf, .size = sizeof dwarf },
                        { ".debug_str", SHT_PROGBITS, .content = dwarf, .size = 2000 },
                };
                const struct elf_maker_segment segments[] = { { PT_LOAD, PF_R, 0, 0x1000, MiB(3), MiB(5) } };
                const struct elf_maker m = { .is_64 = true,
                                             .machine = EM_X86_64,
                                             .type = ET_EXEC,
                                             .sections = sections,
                                             .section_count = 5,
                                             .segments = segments,
                                             .segment_count = 1 };
                _cleanup_elf_image_ struct elf_image split = { 0 };
                struct error err = { 0 };

                ck_assert_msg(split_made(&m, &split, &err) == ST_OK, "%s", err.text);
                if (large) {
                        ck_assert_uint_lt(split.size, KiB(16));
                        continue;
                }
                /* The strings fit into the gap left by the code, .debug_info does not. */
                ck_assert_uint_ge(split.sections[2].offset, 4096);
                ck_assert_uint_eq(split.sections[3].offset, split.sections[2].offset + 100);
                ck_assert_uint_lt(split.sections[4].offset, split.sections[2].offset);
        }
}
END_TEST

/* ---- stripping ---- */

static void check_same_section(const struct elf_image *a, const struct elf_section *s, const struct elf_image *b,
                               const struct elf_section *t)
{
        const uint8_t *sb, *tb;
        size_t sn, tn;

        ck_assert_msg(t != NULL, "%s", s->name);
        ck_assert_uint_eq(s->type, t->type);
        ck_assert_uint_eq(s->flags, t->flags);
        ck_assert_uint_eq(s->address, t->address);
        ck_assert_uint_eq(s->size, t->size);
        ck_assert_uint_eq(s->entry_size, t->entry_size);
        ck_assert_uint_eq(s->alignment, t->alignment);
        ck_assert_int_eq(elf_section_raw(a, s, &sb, &sn, NULL), ST_OK);
        ck_assert_int_eq(elf_section_raw(b, t, &tb, &tn, NULL), ST_OK);
        ck_assert_uint_eq(sn, tn);
        ck_assert_msg(!sn || memcmp(sb, tb, sn) == 0, "%s", s->name);
}

static void check_same_segments(const struct elf_image *a, const struct elf_image *b)
{
        ck_assert_uint_eq(a->segment_count, b->segment_count);
        ck_assert_mem_eq(a->segments, b->segments, a->segment_count * sizeof *a->segments);
        ck_assert_uint_eq(a->entry, b->entry);
        ck_assert_uint_eq(a->header_flags, b->header_flags);
}

static void strip_image(const struct elf_image *img, struct elf_image *ret)
{
        _cleanup_close_ int fd = -1;
        struct error err;
        const char *link;
        uint32_t crc;

        ck_assert_int_eq(split_create_temporary(&fd, &err), ST_OK);
        ck_assert_msg(strip_write(img, "made.debug", 0x12345678, fd, &err) == ST_OK, "%s", err.text);
        ck_assert_msg(elf_image_from_fd(fd, "stripped", ret, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(elf_image_check_complete(ret, NULL), ST_OK);
        ck_assert_int_eq(elf_image_debuglink(ret, &link, &crc, NULL), ST_OK);
        ck_assert_str_eq(link, "made.debug");
        ck_assert_uint_eq(crc, 0x12345678);
        ck_assert_ptr_null(elf_image_section(ret, ".debug_info"));
        ck_assert_ptr_null(elf_image_section(ret, ".symtab"));
}

/* @param headers_at_end as patchelf leaves them: outside of every segment */
static void check_stripped(bool is_64, bool big_endian, bool headers_at_end)
{
        const struct elf_maker_section sections[] = {
                { 0 },
                { ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x2000, .content = "code", .size = 4 },
                { ".debug_info", SHT_PROGBITS, .content = "dwarf", .size = 5 },
                { ".comment", SHT_PROGBITS, .content = "by hand", .size = 8 },
        };
        const struct elf_maker_segment segments[] = { { PT_LOAD, PF_R | PF_X, 0, 0x1000, 0x40, 0x40 },
                                                      { PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0 } };
        const struct elf_maker m = { is_64, big_endian, ET_EXEC, EM_MIPS, false, sections, 4, segments, 2 };
        size_t header = is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
        size_t bytes = 2 * (is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr));
        _cleanup_elf_image_ struct elf_image img = { 0 }, stripped = { 0 };
        _cleanup_buf_ struct buf file;

        buf_init(&file, MiB(1));
        elf_make(&m, &file);
        if (headers_at_end) {
                const uint64_t at = file.size;

                ck_assert(is_64 && !big_endian);
                memcpy(file.data + offsetof(Elf64_Ehdr, e_phoff), &at, sizeof at);
                buf_reserve(&file, bytes);
                buf_append(&file, file.data + header, bytes);
                memset(file.data + header, 0xff, bytes);
        }
        ck_assert_int_eq(elf_image_from_memory(file.data, file.size, "made", &img, NULL), ST_OK);
        strip_image(&img, &stripped);
        ck_assert_int_eq(stripped.is_64, is_64);
        ck_assert_int_eq(stripped.big_endian, big_endian);
        check_same_segments(&img, &stripped);
        check_same_section(&img, elf_image_section(&img, ".text"), &stripped, elf_image_section(&stripped, ".text"));
        check_same_section(&img, elf_image_section(&img, ".comment"), &stripped,
                           elf_image_section(&stripped, ".comment"));
}

START_TEST(stripping_keeps_class_byte_order_and_program_headers)
{
        for (unsigned i = 0; i < 4; i++)
                check_stripped(i & 1, i & 2, false);
        check_stripped(true, false, true);
}
END_TEST

/*
 * Permitted differences: the section name table, the link, and .symtab, which eu-strip, unlike binutils' strip, keeps
 * if a loaded section refers to it (.rela.plt of static programs).
 */
static bool may_differ_from_eu_strip(const struct elf_section *s)
{
        static const char *const names[] = { ".gnu_debuglink", ".shstrtab", ".symtab", ".strtab" };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (strcmp(s->name, names[i]) == 0)
                        return true;
        return false;
}

static void check_against_eu_strip(const char *name, const char *flags)
{
        _cleanup_elf_image_ struct elf_image whole = { 0 }, split = { 0 }, stripped = { 0 }, theirs = { 0 },
                                             debug = { 0 };
        char path[128];
        size_t count = 0;

        build_and_split(name, flags, &whole, &split);
        run_shell("cd %s && eu-strip -o %s.stripped -f %s.debug %s", dir, name, name, name);
        snprintf(path, sizeof path, "%s/%s.stripped", dir, name);
        ck_assert_int_eq(elf_image_open(path, &theirs, NULL), ST_OK);
        snprintf(path, sizeof path, "%s/%s.debug", dir, name);
        ck_assert_int_eq(elf_image_open(path, &debug, NULL), ST_OK);
        strip_image(&whole, &stripped);
        check_same_segments(&theirs, &stripped);
        for (size_t i = 1; i < theirs.section_count; i++)
                if (!may_differ_from_eu_strip(&theirs.sections[i]))
                        check_same_section(&theirs, &theirs.sections[i], &stripped,
                                           elf_image_section(&stripped, theirs.sections[i].name));
        for (size_t i = 1; i < stripped.section_count; i++)
                ck_assert_ptr_nonnull(elf_image_section(&theirs, stripped.sections[i].name));
        for (size_t i = 1; i < debug.section_count; i++) {
                const struct elf_section *s = &debug.sections[i];

                if (!elf_section_has_content(s) || strcmp(s->name, ".shstrtab") == 0)
                        continue;
                check_same_section(&debug, s, &split, elf_image_section(&split, s->name));
                count++;
        }
        ck_assert_uint_ge(count, 6); /* five of DWARF, and the symbols */
}

START_TEST(split_and_stripped_files_agree_with_eu_strip)
{
        set_up();
        check_against_eu_strip("pie", "");
        check_against_eu_strip("packed", "-gz=zlib");
        check_against_eu_strip("static", "-static");
        tear_down();
}
END_TEST

TEST_SUITE("split", split_gives_the_same_symbols_and_is_as_small_as_objcopys, gdb_accepts_split_as_debug_file,
           each_class_and_byte_order_is_kept, more_sections_than_the_header_can_count_are_kept,
           unsupported_files_are_refused_with_reason, overlapping_sections_do_not_enlarge_split,
           split_with_large_holes_is_compacted, stripping_keeps_class_byte_order_and_program_headers,
           split_and_stripped_files_agree_with_eu_strip)
