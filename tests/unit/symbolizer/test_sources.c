/* SPDX-License-Identifier: Apache-2.0 */
/* Symbol sources other than DWARF: Go's pclntab, PLT stubs, relocatable files, and how they are merged into a table. */
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "symbolizer/sources/source_plt.h"
#include "symbolizer/table/gap_fill.h"
#include "tests/support/made_file.h"
#include "tests/support/suite.h"

#define TEXT_SECTION                                                                                                   \
        {                                                                                                              \
                .name = ".text", .type = SHT_NOBITS, .flags = SHF_ALLOC | SHF_EXECINSTR, .address = 0x1000,            \
                .size = 0x1000                                                                                         \
        }
#define PCLNTAB_SECTION(data, n)                                                                                       \
        {                                                                                                              \
                .name = ".gopclntab", .type = SHT_PROGBITS, .flags = SHF_ALLOC, .address = 0x20000, .content = (data), \
                .size = (n)                                                                                            \
        }

static enum status extract_file(const struct buf *file, struct symbol_table *t, struct error *err)
{
        return made_extract(made_memfd(file->data, file->size), t, err);
}

static struct symbol_table extract_made(const struct elf_maker *m)
{
        _cleanup_buf_ struct buf file;
        struct symbol_table t;
        struct error err;

        buf_init(&file, MiB(1));
        elf_make(m, &file);
        ck_assert_msg(extract_file(&file, &t, &err) == ST_OK, "%s", err.text);
        return t;
}

/* ---- merging ---- */

static uint32_t chain(struct symbol_table_builder *b, const char *name, const char *file, uint32_t line)
{
        struct symbol_table_frame f = { name[0] ? symbol_table_builder_add_function(b, name, "") : SYMBOL_NO_FUNCTION,
                                        symbol_table_builder_add_string(b, file), line };

        return symbol_table_builder_add_chain(b, &f, 1);
}

START_TEST(source_fills_gaps_and_names_unnamed_lines)
{
        struct symbol_table_builder b;
        struct source_ranges names = { 0 };
        struct symbol_table t;

        symbol_table_builder_init(&b);
        symbol_table_builder_add_range(&b, 0x10, 0x20, chain(&b, "known", "a.c", 1));
        symbol_table_builder_add_range(&b, 0x30, 0x40, chain(&b, "", "b.s", 2));
        ck_assert(source_ranges_add(&names, 0x00, 0x38, chain(&b, "lesser", "", 0)));
        ck_assert(fill_table_gaps(&b, &names));
        ck_assert_int_eq(symbol_table_builder_finish(&b, &t, NULL), ST_OK);
        ck_assert_str_eq(made_frames(&t, 0x00), "lesser");
        ck_assert_str_eq(made_frames(&t, 0x10), "known a.c:1");
        ck_assert_str_eq(made_frames(&t, 0x20), "lesser");
        ck_assert_str_eq(made_frames(&t, 0x30), "lesser b.s:2");
        ck_assert_str_eq(made_frames(&t, 0x38), "? b.s:2");
        ck_assert_str_eq(made_frames(&t, 0x40), "");
        symbol_table_deinit(&t);
        source_ranges_deinit(&names);
        symbol_table_builder_deinit(&b);
}
END_TEST

START_TEST(source_without_additions_is_reported)
{
        struct symbol_table_builder b;
        struct source_ranges names = { 0 };

        symbol_table_builder_init(&b);
        symbol_table_builder_add_range(&b, 0x10, 0x20, chain(&b, "known", "a.c", 1));
        ck_assert(source_ranges_add(&names, 0x10, 0x20, chain(&b, "lesser", "", 0)));
        ck_assert(!fill_table_gaps(&b, &names));
        ck_assert_uint_eq(b.range_count, 1);
        source_ranges_deinit(&names);
        symbol_table_builder_deinit(&b);
}
END_TEST

/* ---- Go ---- */

/* A Go program: code at 0x1000, and the corpus file as its data at 0x20000. */
static void make_go(const char *path, bool is_64, bool big_endian, const char *section, struct buf *file)
{
        _cleanup_buf_ struct buf data;
        struct error err;

        buf_init(&data, MiB(1));
        ck_assert_msg(file_read(path, &data, &err) == ST_OK, "%s", err.text);
        const struct elf_maker_section sections[] = {
                { .name = "" },
                TEXT_SECTION,
                { .name = section,
                  .type = SHT_PROGBITS,
                  .flags = SHF_ALLOC | SHF_WRITE,
                  .address = 0x20000,
                  .content = data.data,
                  .size = data.size },
                { .name = ".go.buildinfo",
                  .type = SHT_PROGBITS,
                  .flags = SHF_ALLOC,
                  .address = 0x30000,
                  .content = "",
                  .size = 1 },
        };
        const struct elf_maker maker = { .is_64 = is_64,
                                         .big_endian = big_endian,
                                         .type = ET_EXEC,
                                         .machine = EM_X86_64,
                                         .sections = sections,
                                         .section_count = 4 };

        elf_make(&maker, file);
}

static const struct {
        const char *name;
        bool is_64, big_endian;
} go_corpus[] = {
        { "go1.12", true, false },       { "go1.14", true, false }, { "go1.15", true, false },
        { "go1.15-mips", false, true },  { "go1.16", true, false }, { "go1.18", true, false },
        { "go1.18-s390x", true, true },  { "go1.20", true, false }, { "go1.20-arm64", true, false },
        { "go1.20-386", false, false },  { "go1.26", true, false }, { "go1.27", true, false },
        { "go1.27-moved", true, false },
};
#define GO_CORPUS_COUNT (sizeof go_corpus / sizeof *go_corpus)

static struct symbol_table extract_go(size_t index, const char *section)
{
        char path[256];
        _cleanup_buf_ struct buf file;
        struct symbol_table t;
        struct error err;

        snprintf(path, sizeof path, "tests/corpus/gopclntab/good/%s", go_corpus[index].name);
        buf_init(&file, MiB(1));
        make_go(path, go_corpus[index].is_64, go_corpus[index].big_endian, section, &file);
        ck_assert_msg(extract_file(&file, &t, &err) == ST_OK, "%s: %s", path, err.text);
        return t;
}

START_TEST(lines_of_declarations_are_in_pclntab_since_go_1_20)
{
        for (size_t i = 0; i < GO_CORPUS_COUNT; i++) {
                struct symbol_table t = extract_go(i, ".gopclntab");
                bool has_lines = strcmp(go_corpus[i].name, "go1.20") >= 0;
                const struct symbol_range *r = symbol_table_find(&t, 0x1018);
                const uint32_t want[] = { 1, 1, 9 }; /* main.mul, main.add, main.main */

                ck_assert_ptr_nonnull(r);
                ck_assert_uint_eq(t.chains[r->chain].frame_count, 3);
                for (uint32_t k = 0; k < 3; k++)
                        ck_assert_msg(symbol_table_start_line(&t, &t.frames[t.chains[r->chain].first_frame + k]) ==
                                              (has_lines ? want[k] : 0),
                                      "%s: frame %u", go_corpus[i].name, k);
                symbol_table_deinit(&t);
        }
}
END_TEST

START_TEST(every_layout_of_pclntab_gives_functions_lines_and_inlined_calls)
{
        for (size_t i = 0; i < GO_CORPUS_COUNT; i++) {
                struct symbol_table t = extract_go(i, ".gopclntab");
                const struct {
                        uint64_t address;
                        const char *frames;
                } want[] = {
                        { 0x0fff, "" },
                        { 0x1000, "main.main /src/main.go:10" },
                        { 0x100c, "main.main /src/main.go:11" },
                        { 0x1010, "main.add /src/add.go:25 < main.main /src/main.go:11" },
                        { 0x1018, "main.mul /src/add.go:30 < main.add /src/add.go:25 < main.main /src/main.go:11" },
                        { 0x101f, "main.mul /src/add.go:30 < main.add /src/add.go:25 < main.main /src/main.go:11" },
                        { 0x1020, "main.main /src/main.go:12" },
                        { 0x1037, "main.main /src/main.go:12" },
                        { 0x1038, "" },
                        { 0x1040, "main.(*T).Area /src/shape.go:7" },
                        { 0x1050, "" },
                };

                ck_assert_int_eq(t.quality, QUALITY_GO_PCLNTAB);
                for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
                        const char *got = made_frames(&t, want[k].address);

                        ck_assert_msg(strcmp(got, want[k].frames) == 0, "%s at 0x%x: '%s'", go_corpus[i].name,
                                      (unsigned)want[k].address, got);
                }
                symbol_table_deinit(&t);
        }
}
END_TEST

/*
 * A position-independent program of Go 1.26 or later: moduledata is a section of its own, whose pointers are
 * relocations.
 */
static void make_independent_go(const char *path, uint16_t machine, uint32_t relative, struct buf *file)
{
        enum { TABLE_SIZE = 0x400, TREES = 0x800, MODULE_WORDS = 75 };
        static const uint8_t zeroes[MODULE_WORDS * 8];
        Elf64_Rela relocations[MODULE_WORDS];
        size_t count = 0;
        _cleanup_buf_ struct buf data;

        buf_init(&data, MiB(1));
        ck_assert_int_eq(file_read(path, &data, NULL), ST_OK);
        for (size_t i = 0; i < MODULE_WORDS; i++) {
                uint64_t word;

                memcpy(&word, data.data + TABLE_SIZE + i * sizeof word, sizeof word);
                if (word)
                        relocations[count++] = (Elf64_Rela){ 0x20000 + TABLE_SIZE + i * sizeof word,
                                                             ELF64_R_INFO(0, relative), (int64_t)word };
        }
        const struct elf_maker_section sections[] = {
                { .name = "" },
                TEXT_SECTION,
                PCLNTAB_SECTION(data.data, TABLE_SIZE),
                { .name = ".go.module",
                  .type = SHT_PROGBITS,
                  .flags = SHF_ALLOC | SHF_WRITE,
                  .address = 0x20000 + TABLE_SIZE,
                  .content = zeroes,
                  .size = sizeof zeroes },
                { .name = data.size > TREES ? ".rodata" : ".bss",
                  .type = data.size > TREES ? SHT_PROGBITS : SHT_NOBITS,
                  .flags = SHF_ALLOC,
                  .address = 0x20000 + TREES,
                  .content = data.data + TREES,
                  .size = data.size > TREES ? data.size - TREES : 8 },
                { .name = ".rela",
                  .type = SHT_RELA,
                  .flags = SHF_ALLOC,
                  .address = 0x30000,
                  .content = relocations,
                  .size = count * sizeof *relocations,
                  .entry_size = sizeof *relocations },
        };
        const struct elf_maker maker = {
                .is_64 = true, .type = ET_DYN, .machine = machine, .sections = sections, .section_count = 6
        };

        elf_make(&maker, file);
}

START_TEST(moduledata_of_a_position_independent_program_is_relocated)
{
        static const struct {
                uint16_t machine;
                uint32_t relative;
        } machines[] = { { EM_X86_64, R_X86_64_RELATIVE },
                         { EM_AARCH64, R_AARCH64_RELATIVE },
                         { EM_RISCV, R_RISCV_RELATIVE },
                         { EM_PPC64, R_PPC64_RELATIVE } };
        static const char *const names[] = { "go1.26", "go1.27", "go1.27-moved" };

        for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
                for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                        char path[256];
                        _cleanup_buf_ struct buf file;
                        struct symbol_table t;
                        struct error err;

                        snprintf(path, sizeof path, "tests/corpus/gopclntab/good/%s", names[i]);
                        buf_init(&file, MiB(1));
                        make_independent_go(path, machines[m].machine, machines[m].relative, &file);
                        ck_assert_msg(extract_file(&file, &t, &err) == ST_OK, "%s: %s", path, err.text);
                        ck_assert_str_eq(made_frames(&t, 0x1018), "main.mul /src/add.go:30 < main.add /src/add.go:25 < "
                                                                  "main.main /src/main.go:11");
                        symbol_table_deinit(&t);
                }
        }
}
END_TEST

START_TEST(a_pclntab_without_a_section_of_its_own_is_found_by_its_magic)
{
        for (size_t i = 0; i < GO_CORPUS_COUNT; i++) {
                struct symbol_table t = extract_go(i, ".rodata");

                ck_assert_str_eq(made_frames(&t, 0x1010), "main.add /src/add.go:25 < main.main /src/main.go:11");
                symbol_table_deinit(&t);
        }
}
END_TEST

START_TEST(recursive_inline_tree_is_terminated)
{
        _cleanup_buf_ struct buf file;
        struct symbol_table t;
        const struct symbol_chain *c;

        buf_init(&file, MiB(1));
        make_go("tests/corpus/gopclntab/bad/cycle", true, false, ".gopclntab", &file);
        ck_assert_int_eq(extract_file(&file, &t, NULL), ST_OK);
        c = &t.chains[symbol_table_find(&t, 0x1018)->chain];
        ck_assert_uint_eq(c->frame_count, LIMIT_INLINE_DEPTH + 1);
        ck_assert_str_eq(t.strings + t.functions[t.frames[c->first_frame + c->frame_count - 1].function].name,
                         "main.main");
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(symbols_fill_gaps_of_pclntab)
{
        static const char names[] = "\0main.main\0c_function";
        const Elf64_Sym symbols[] = {
                { 0 },
                { .st_name = 1,
                  .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
                  .st_shndx = 1,
                  .st_value = 0x1000,
                  .st_size = 0x40 },
                { .st_name = 11,
                  .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
                  .st_shndx = 1,
                  .st_value = 0x1100,
                  .st_size = 8 },
        };
        _cleanup_buf_ struct buf data;
        struct symbol_table t;

        buf_init(&data, MiB(1));
        ck_assert_int_eq(file_read("tests/corpus/gopclntab/good/go1.20", &data, NULL), ST_OK);
        const struct elf_maker_section sections[] = {
                { .name = "" },
                TEXT_SECTION,
                PCLNTAB_SECTION(data.data, data.size),
                { .name = ".symtab",
                  .type = SHT_SYMTAB,
                  .content = symbols,
                  .size = sizeof symbols,
                  .link = 4,
                  .entry_size = sizeof *symbols },
                { .name = ".strtab", .type = SHT_STRTAB, .content = names, .size = sizeof names },
        };
        const struct elf_maker maker = {
                .is_64 = true, .type = ET_EXEC, .machine = EM_X86_64, .sections = sections, .section_count = 5
        };

        t = extract_made(&maker);
        ck_assert_str_eq(made_frames(&t, 0x1000), "main.main /src/main.go:10");
        ck_assert_str_eq(made_frames(&t, 0x1038), "main.main");
        ck_assert_str_eq(made_frames(&t, 0x1100), "c_function");
        ck_assert_int_eq(t.quality, QUALITY_GO_PCLNTAB);
        symbol_table_deinit(&t);
}
END_TEST

/* ---- PLT ---- */

#define PLT_AT 0x1000
#define GOT_AT 0x3000

static struct symbol_table extract_plt(uint16_t machine, uint32_t jump_slot, const void *code, size_t size,
                                       const char *section)
{
        static const char names[] = "\0malloc\0free@V1";
        const Elf64_Sym symbols[] = {
                { 0 },
                { .st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) },
                { .st_name = 8, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) },
        };
        const Elf64_Rela relocations[] = {
                { GOT_AT + 0x18, ELF64_R_INFO(1, jump_slot), 0 },
                { GOT_AT + 0x20, ELF64_R_INFO(2, jump_slot), 0 },
                { GOT_AT + 0x28, ELF64_R_INFO(99, jump_slot), 0 },
        };
        const struct elf_maker_section sections[] = {
                { .name = "" },
                { .name = section,
                  .type = SHT_PROGBITS,
                  .flags = SHF_ALLOC | SHF_EXECINSTR,
                  .address = PLT_AT,
                  .content = code,
                  .size = size,
                  .entry_size = 16 },
                { .name = ".dynsym",
                  .type = SHT_DYNSYM,
                  .flags = SHF_ALLOC,
                  .content = symbols,
                  .size = sizeof symbols,
                  .link = 3,
                  .entry_size = sizeof *symbols },
                { .name = ".dynstr", .type = SHT_STRTAB, .flags = SHF_ALLOC, .content = names, .size = sizeof names },
                { .name = ".rela.plt",
                  .type = SHT_RELA,
                  .flags = SHF_ALLOC,
                  .content = relocations,
                  .size = sizeof relocations,
                  .link = 2,
                  .entry_size = sizeof *relocations },
        };
        const struct elf_maker maker = {
                .is_64 = true, .type = ET_DYN, .machine = machine, .sections = sections, .section_count = 5
        };

        return extract_made(&maker);
}

START_TEST(x86_stubs_are_named_by_slot_or_number)
{
        static const uint8_t code[] = {
                0xff, 0x35, 2,    0x20, 0,    0,    0xff, 0x25, 4,    0x20,
                0,    0,    0x0f, 0x1f, 0x40, 0, /* the dynamic loader's: slot 0x3010 */
                0xff, 0x25, 2,    0x20, 0,    0,    0x68, 1,    0,    0,
                0,    0xe9, 0,    0,    0,    0, /* slot 0x3018; its number is irrelevant */
                0xf3, 0x0f, 0x1e, 0xfa, 0x68, 1,    0,    0,    0,    0xf2,
                0xe9, 0,    0,    0,    0,    0x90, /* number 1 */
                0xff, 0x25, 0xf2, 0x1f, 0,    0,    0x90, 0x90, 0x90, 0x90,
                0x90, 0x90, 0x90, 0x90, 0x90, 0x90,                      /* symbol 99 */
                0x68, 0xff, 0xff, 0xff, 0xff, 0xe9, 0,    0,    0,    0, /* truncated; number 2^32 - 1 */
        };
        struct symbol_table t = extract_plt(EM_X86_64, R_X86_64_JUMP_SLOT, code, sizeof code, ".plt");

        ck_assert_str_eq(made_frames(&t, PLT_AT), PLT_REST_NAME);
        ck_assert_str_eq(made_frames(&t, PLT_AT + 0x10), "malloc@plt");
        ck_assert_str_eq(made_frames(&t, PLT_AT + 0x1f), "malloc@plt");
        ck_assert_str_eq(made_frames(&t, PLT_AT + 0x20), "free@plt");
        ck_assert_str_eq(made_frames(&t, PLT_AT + 0x30), PLT_REST_NAME);
        ck_assert_str_eq(made_frames(&t, PLT_AT + 0x40), PLT_REST_NAME);
        ck_assert_int_eq(t.quality, QUALITY_DYNSYM);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(stubs_without_indirect_jumps_are_named)
{
        static const uint8_t code[] = {
                0x4c, 0x8b, 0x1d, 0x11, 0x20, 0, 0,    0xe8, 0, 0, 0, 0,    0xe9, 0, 0, 0, 0,
                0x68, 1,    0,    0,    0,    0, 0xe9, 0,    0, 0, 0, 0xcc, 0,    0, 0,    /* slot 0x3018, lazy: two
                                                                                              entries */
                0x4c, 0x8b, 0x1d, 0xf9, 0x1f, 0, 0,    0xe9, 0, 0, 0, 0,    0xcc, 0, 0, 0, /* slot 0x3020 */
                0x4c, 0x8b, 0x1d, 0xf1, 0x1f, 0, 0,                                        /* truncated: slot 0x3028 */
        };
        struct symbol_table t = extract_plt(EM_X86_64, R_X86_64_JUMP_SLOT, code, sizeof code, ".plt");

        ck_assert_str_eq(made_frames(&t, PLT_AT), "malloc@plt");
        ck_assert_str_eq(made_frames(&t, PLT_AT + 0x1f), "malloc@plt");
        ck_assert_str_eq(made_frames(&t, PLT_AT + 0x20), "free@plt");
        ck_assert_str_eq(made_frames(&t, PLT_AT + 0x30), PLT_REST_NAME);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(tables_of_other_machines_have_one_name)
{
        static const uint8_t code[32] = { 0 };
        struct symbol_table t = extract_plt(EM_S390, R_X86_64_JUMP_SLOT, code, sizeof code, ".plt");

        ck_assert_str_eq(made_frames(&t, PLT_AT + 0x1f), PLT_REST_NAME);
        ck_assert_str_eq(made_frames(&t, PLT_AT + 0x20), "");
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(arm_stubs_are_named_with_and_without_a_landing_pad)
{
        static const uint32_t code[] = {
                0xa9bf7bf0, 0xd0000010, 0xf9400a11, 0x91004210, 0xd61f0220, 0xd503201f,
                0xd503201f, 0xd503201f,                                                 /* the dynamic loader's */
                0xd0000010, 0xf9400e11, 0x91006210, 0xd61f0220,                         /* slot 0x3018 */
                0xd503245f, 0xd0000010, 0xf9401211, 0x91008210, 0xd61f0220, 0xd503201f, /* slot 0x3020 */
        };
        struct symbol_table t = extract_plt(EM_AARCH64, R_AARCH64_JUMP_SLOT, code, sizeof code, ".plt");

        ck_assert_str_eq(made_frames(&t, PLT_AT), PLT_REST_NAME);
        ck_assert_str_eq(made_frames(&t, PLT_AT + 0x1c), PLT_REST_NAME);
        ck_assert_str_eq(made_frames(&t, PLT_AT + 0x20), "malloc@plt");
        ck_assert_str_eq(made_frames(&t, PLT_AT + 0x2c), "malloc@plt");
        ck_assert_str_eq(made_frames(&t, PLT_AT + 0x30), "free@plt");
        ck_assert_str_eq(made_frames(&t, PLT_AT + 0x47), "free@plt");
        symbol_table_deinit(&t);
}
END_TEST

/* ---- relocatable files ---- */

#define SYM(name, section, value, size)                                                                                \
        {                                                                                                              \
                .st_name = name, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = section,                  \
                .st_value = value, .st_size = size                                                                     \
        }

static const char module_names[] = "\0init\0work\0exit";

static struct elf_maker module(const struct elf_maker_section *sections)
{
        return (struct elf_maker){
                .is_64 = true, .type = ET_REL, .machine = EM_X86_64, .sections = sections, .section_count = 7
        };
}

START_TEST(text_is_at_0_and_followed_by_other_code_in_file_order)
{
        const Elf64_Sym symbols[] = { { 0 }, SYM(1, 1, 4, 8), SYM(6, 3, 0, 0x20), SYM(11, 4, 0, 0x10) };
        const struct elf_maker_section sections[] = {
                { .name = "" },
                { .name = ".init.text", .type = SHT_NOBITS, .flags = SHF_ALLOC | SHF_EXECINSTR, .size = 0x10 },
                { .name = ".data", .type = SHT_NOBITS, .flags = SHF_ALLOC | SHF_WRITE, .size = 0x1000 },
                { .name = ".text", .type = SHT_NOBITS, .flags = SHF_ALLOC | SHF_EXECINSTR, .size = 0x20 },
                { .name = ".exit.text", .type = SHT_NOBITS, .flags = SHF_ALLOC | SHF_EXECINSTR, .size = 0x10 },
                { .name = ".symtab",
                  .type = SHT_SYMTAB,
                  .content = symbols,
                  .size = sizeof symbols,
                  .link = 6,
                  .entry_size = sizeof *symbols },
                { .name = ".strtab", .type = SHT_STRTAB, .content = module_names, .size = sizeof module_names },
        };
        const struct elf_maker maker = module(sections);
        struct symbol_table t = extract_made(&maker);

        ck_assert_str_eq(made_frames(&t, 0x00), "work");
        ck_assert_str_eq(made_frames(&t, 0x20), "");
        ck_assert_str_eq(made_frames(&t, 0x24), "init");
        ck_assert_str_eq(made_frames(&t, 0x30), "exit");
        ck_assert_int_eq(t.quality, QUALITY_SYMTAB);
        symbol_table_deinit(&t);
}
END_TEST

/* The text that marks the table as partial. The symbols are always read. */
static const char *extract_with_relocation(uint32_t type, uint64_t at)
{
        static const uint8_t line[16];
        const Elf64_Sym symbols[] = { { 0 }, SYM(6, 1, 0, 0x20) };
        const Elf64_Rela relocations[] = { { at, ELF64_R_INFO(1, type), 0 } };
        const struct elf_maker_section sections[] = {
                { .name = "" },
                { .name = ".text", .type = SHT_NOBITS, .flags = SHF_ALLOC | SHF_EXECINSTR, .size = 0x20 },
                { .name = ".debug_str", .type = SHT_PROGBITS, .content = line, .size = sizeof line },
                { .name = ".rela.debug_str",
                  .type = SHT_RELA,
                  .content = relocations,
                  .size = sizeof relocations,
                  .link = 5,
                  .info = 2 },
                { .name = ".empty", .type = SHT_PROGBITS },
                { .name = ".symtab",
                  .type = SHT_SYMTAB,
                  .content = symbols,
                  .size = sizeof symbols,
                  .link = 6,
                  .entry_size = sizeof *symbols },
                { .name = ".strtab", .type = SHT_STRTAB, .content = module_names, .size = sizeof module_names },
        };
        const struct elf_maker maker = module(sections);
        struct symbol_table t = extract_made(&maker);
        static char partial[SYMBOL_PARTIAL_BYTES];

        ck_assert_str_eq(made_frames(&t, 0x10), "work");
        snprintf(partial, sizeof partial, "%s", symbol_table_partial_text(&t));
        symbol_table_deinit(&t);
        return partial;
}

START_TEST(relocations_are_limited_to_their_section)
{
        static const char outside[] = "a relocation of .debug_str of 'made' is outside its section";

        ck_assert_str_eq(extract_with_relocation(R_X86_64_64, 8), "");
        ck_assert_str_eq(extract_with_relocation(R_X86_64_64, 9), outside);
        ck_assert_str_eq(extract_with_relocation(R_X86_64_32, 12), "");
        ck_assert_str_eq(extract_with_relocation(R_X86_64_32, UINT64_MAX), outside);
}
END_TEST

START_TEST(unknown_relocation_leaves_the_symbols)
{
        ck_assert_str_eq(
                extract_with_relocation(R_X86_64_GOTPCREL, 0),
                "the DWARF of 'made' is not used: relocation type 9 of machine 62 in .rela.debug_str is unknown");
}
END_TEST

TEST_SUITE("sources", source_fills_gaps_and_names_unnamed_lines, source_without_additions_is_reported,
           every_layout_of_pclntab_gives_functions_lines_and_inlined_calls,
           lines_of_declarations_are_in_pclntab_since_go_1_20,
           moduledata_of_a_position_independent_program_is_relocated,
           a_pclntab_without_a_section_of_its_own_is_found_by_its_magic, recursive_inline_tree_is_terminated,
           symbols_fill_gaps_of_pclntab, x86_stubs_are_named_by_slot_or_number, stubs_without_indirect_jumps_are_named,
           tables_of_other_machines_have_one_name, arm_stubs_are_named_with_and_without_a_landing_pad,
           text_is_at_0_and_followed_by_other_code_in_file_order, relocations_are_limited_to_their_section,
           unknown_relocation_leaves_the_symbols)
