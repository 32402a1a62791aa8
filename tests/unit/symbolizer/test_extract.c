/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <dlfcn.h>
#include <link.h>
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/limits.h"
#include "symbolizer/extraction/extract.h"
#include "symbolizer/extraction/debug_file_search.h"
#include "symbolizer/table/interval_overlay.h"
#include "symbolizer/table/symbol_table_builder.h"
#include "tests/support/elf_maker.h"
#include "tests/support/made_file.h"
#include "tests/support/suite.h"

/* ---- interval overlay ---- */

static char painted[64];

static void overlay_letter(void *context, uint64_t start, uint64_t end, uint32_t item)
{
        (void)context;
        for (uint64_t i = start; i < end; i++) {
                ck_assert_int_eq(painted[i], '.');
                painted[i] = (char)('a' + item);
        }
}

static const char *overlay_intervals(const struct interval *items, size_t count)
{
        struct interval_list list = { 0 };

        memset(painted, '.', sizeof painted - 1);
        painted[16] = 0;
        for (size_t i = 0; i < count; i++)
                ck_assert(interval_list_add(&list, items[i]));
        ck_assert(interval_list_overlay(&list, overlay_letter, NULL));
        interval_list_deinit(&list);
        return painted;
}
#define PAINT(...)                                                                                                     \
        overlay_intervals((struct interval[]){ __VA_ARGS__ },                                                          \
                          sizeof((struct interval[]){ __VA_ARGS__ }) / sizeof(struct interval))

START_TEST(deepest_interval_wins_and_outer_one_continues)
{
        ck_assert_str_eq(PAINT({ 2, 12, 0, 0 }, { 4, 8, 1, 1 }, { 5, 6, 2, 2 }), "..aabcbbaaaa....");
}
END_TEST

START_TEST(inner_interval_may_exceed_outer_one)
{
        ck_assert_str_eq(PAINT({ 2, 6, 0, 0 }, { 4, 10, 1, 1 }), "..aabbbbbb......");
}
END_TEST

START_TEST(intervals_may_be_unsorted_or_empty)
{
        ck_assert_str_eq(PAINT({ 9, 9, 3, 9 }, { 10, 12, 2, 0 }, { 0, 2, 1, 0 }, { 1, 2, 0, 5 }), "ba........cc....");
}
END_TEST

START_TEST(later_interval_wins_on_equal_level)
{
        ck_assert_str_eq(PAINT({ 0, 4, 1, 0 }, { 2, 6, 0, 0 }), "bbbbaa..........");
}
END_TEST

/* ---- the builder ---- */

static uint32_t chain_of(struct symbol_table_builder *b, const char *function, uint32_t line)
{
        struct symbol_table_frame frame = { .function = function ? symbol_table_builder_add_function(b, "", function)
                                                                 : SYMBOL_NO_FUNCTION,
                                            .line = line };

        return symbol_table_builder_add_chain(b, &frame, 1);
}

/* The lines of the ranges, each as "start-end:line ". */
static const char *lines_of(struct symbol_table_builder *b)
{
        static char text[256];
        struct symbol_table t;
        size_t n = 0;

        ck_assert_int_eq(symbol_table_builder_finish(b, &t, NULL), ST_OK);
        ck_assert_int_eq(symbol_table_check(&t, NULL), ST_OK);
        text[0] = '\0';
        for (size_t i = 0; i < t.range_count; i++)
                n += (size_t)snprintf(text + n, sizeof text - n, "%llx-%llx:%u ", (unsigned long long)t.ranges[i].start,
                                      (unsigned long long)t.ranges[i].end,
                                      t.frames[t.chains[t.ranges[i].chain].first_frame].line);
        symbol_table_deinit(&t);
        symbol_table_builder_deinit(b);
        return text;
}

START_TEST(first_of_overlapping_units_wins)
{
        struct symbol_table_builder b;
        uint32_t first, second;

        symbol_table_builder_init(&b);
        first = chain_of(&b, "f", 1);
        second = chain_of(&b, "f", 2);
        symbol_table_builder_add_range(&b, 0x10, 0x20, first);
        symbol_table_builder_add_range(&b, 0x40, 0x50, first);
        symbol_table_builder_add_range(&b, 0x10, 0x20, second);
        symbol_table_builder_add_range(&b, 0x30, 0x60, second);
        ck_assert_str_eq(lines_of(&b), "10-20:1 30-40:2 40-50:1 50-60:2 ");
}
END_TEST

/* A function of assembly that is too long for its code: its rows end where the next unit begins. */
START_TEST(unit_with_row_overrides_earlier_one_without)
{
        struct symbol_table_builder b;
        struct symbol_table_frame frame = { .line = 7 };
        uint32_t first;

        symbol_table_builder_init(&b);
        first = chain_of(&b, "long", 0);
        symbol_table_builder_add_range(&b, 0x10, 0x40, first);
        frame.function = symbol_table_builder_add_function(&b, "", "next");
        frame.file = symbol_table_builder_add_string(&b, "next.S");
        symbol_table_builder_add_range(&b, 0x20, 0x30, symbol_table_builder_add_chain(&b, &frame, 1));
        frame.function = SYMBOL_NO_FUNCTION;
        frame.line = 8;
        symbol_table_builder_add_range(&b, 0x28, 0x38, symbol_table_builder_add_chain(&b, &frame, 1));
        ck_assert_str_eq(lines_of(&b), "10-20:0 20-30:7 30-38:8 38-40:0 ");
}
END_TEST

START_TEST(unit_with_functions_overrides_earlier_one_with_lines)
{
        struct symbol_table_builder b;
        uint32_t first, second, third;

        symbol_table_builder_init(&b);
        first = chain_of(&b, NULL, 1);
        second = chain_of(&b, "f", 2);
        third = chain_of(&b, "f", 3);
        symbol_table_builder_add_range(&b, 0x10, 0x30, first);
        symbol_table_builder_add_range(&b, 0x18, 0x20, second);
        symbol_table_builder_add_range(&b, 0x18, 0x28, third);
        ck_assert_str_eq(lines_of(&b), "10-18:1 18-20:2 20-28:3 28-30:1 ");
}
END_TEST

START_TEST(equal_chains_are_shared_and_adjacent_ranges_joined)
{
        struct symbol_table_builder b;
        struct symbol_table t;
        struct symbol_table_frame frame = { .line = 7 };

        symbol_table_builder_init(&b);
        frame.function = symbol_table_builder_add_function(&b, "", "f");
        ck_assert_uint_eq(symbol_table_builder_add_function(&b, "", "f"), frame.function);
        symbol_table_builder_add_range(&b, 0x20, 0x30, symbol_table_builder_add_chain(&b, &frame, 1));
        symbol_table_builder_add_range(&b, 0x30, 0x40, symbol_table_builder_add_chain(&b, &frame, 1));
        symbol_table_builder_add_range(&b, 0x10, 0x20, symbol_table_builder_add_chain(&b, &frame, 1));
        ck_assert_int_eq(symbol_table_builder_finish(&b, &t, NULL), ST_OK);
        ck_assert_uint_eq(t.chain_count, 1);
        ck_assert_uint_eq(t.range_count, 1);
        ck_assert_uint_eq(t.ranges[0].start, 0x10);
        ck_assert_uint_eq(t.ranges[0].end, 0x40);
        ck_assert_int_eq(symbol_table_check(&t, NULL), ST_OK);
        symbol_table_deinit(&t);
        symbol_table_builder_deinit(&b);
}
END_TEST

START_TEST(range_with_function_overrides_range_with_line)
{
        struct symbol_table_builder b;
        struct symbol_table t;
        struct symbol_table_frame named = { .line = 1 }, nameless = { SYMBOL_NO_FUNCTION, 0, 2 };

        symbol_table_builder_init(&b);
        named.function = symbol_table_builder_add_function(&b, "f", "");
        symbol_table_builder_add_range(&b, 0, 0x100, symbol_table_builder_add_chain(&b, &nameless, 1));
        symbol_table_builder_add_range(&b, 0x40, 0x50, symbol_table_builder_add_chain(&b, &named, 1));
        ck_assert_int_eq(symbol_table_builder_finish(&b, &t, NULL), ST_OK);
        ck_assert_uint_eq(t.range_count, 3);
        ck_assert_uint_eq(t.frames[t.chains[t.ranges[1].chain].first_frame].line, 1);
        symbol_table_deinit(&t);
        symbol_table_builder_deinit(&b);
}
END_TEST

/* ---- whole files: this program ---- */

static struct symbol_table extract_self(void)
{
        struct extract_inputs in = { .debuginfo_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
                                     .executable_fd = -1,
                                     .altlink_fd = -1,
                                     .name = "self" };
        struct symbol_table t;
        struct error err;

        ck_assert_msg(symbol_table_extract(&in, &t, &err) == ST_OK, "%s", err.text);
        extract_inputs_close(&in);
        return t;
}

static uint64_t object_find_address(const void *p)
{
        Dl_info info;
        struct link_map *map;

        ck_assert(dladdr1(p, &info, (void **)&map, RTLD_DL_LINKMAP));
        return (uint64_t)p - map->l_addr;
}

static const char *function_name(const struct symbol_table *t, const struct symbol_table_frame *f)
{
        return f->function == SYMBOL_NO_FUNCTION ? "" : t->strings + t->functions[f->function].name;
}

__attribute__((noinline)) static const void *where_am_i_called(void)
{
        return (const char *)__builtin_return_address(0) - 1;
}

static inline __attribute__((always_inline)) const void *inlined_call(int *line)
{
        *line = __LINE__ + 1;
        return where_am_i_called();
}

__attribute__((noinline)) static const void *calls_inlined(int *inner_line, int *outer_line)
{
        const void *p;

        *outer_line = __LINE__ + 1;
        p = inlined_call(inner_line);
        __asm__ volatile("" ::"r"(p)); /* no tail call */
        return p;
}

START_TEST(inlined_call_has_both_frames_with_lines)
{
        struct symbol_table t = extract_self();
        int inner_line, outer_line;
        const void *p = calls_inlined(&inner_line, &outer_line);
        const struct symbol_range *r = symbol_table_find(&t, object_find_address(p));
        const struct symbol_table_frame *f;

        ck_assert_ptr_nonnull(r);
        ck_assert_uint_eq(t.chains[r->chain].frame_count, 2);
        f = &t.frames[t.chains[r->chain].first_frame];
        ck_assert_str_eq(function_name(&t, &f[0]), "inlined_call");
        ck_assert_uint_eq(f[0].line, (unsigned)inner_line);
        ck_assert_str_eq(function_name(&t, &f[1]), "calls_inlined");
        ck_assert_uint_eq(f[1].line, (unsigned)outer_line);
        ck_assert_ptr_nonnull(strstr(t.strings + f[0].file, "tests/unit/symbolizer/test_extract.c"));
        ck_assert_int_eq(t.quality, QUALITY_DWARF);
        ck_assert_int_eq(symbol_table_check(&t, NULL), ST_OK);
        ck_assert_uint_gt(t.segment_count, 0);
        symbol_table_deinit(&t);
}
END_TEST

/* ---- symbols in generated files ---- */

static struct symbol_table extract_symbols(const Elf64_Sym *symbols, size_t count, const char *names, size_t name_bytes)
{
        const struct elf_maker_section sections[] = {
                { .name = "" },
                { .name = ".text",
                  .type = SHT_NOBITS,
                  .flags = SHF_ALLOC | SHF_EXECINSTR,
                  .address = 0x1000,
                  .size = 0x100 },
                { .name = ".symtab",
                  .type = SHT_SYMTAB,
                  .content = symbols,
                  .size = count * sizeof *symbols,
                  .link = 3,
                  .entry_size = sizeof *symbols },
                { .name = ".strtab", .type = SHT_STRTAB, .content = names, .size = name_bytes },
        };
        const struct elf_maker maker = {
                .is_64 = true, .type = ET_DYN, .machine = EM_X86_64, .sections = sections, .section_count = 4
        };
        struct extract_inputs in = { .executable_fd = -1, .altlink_fd = -1, .name = "made" };
        _cleanup_buf_ struct buf file;
        struct symbol_table t;
        struct error err;

        buf_init(&file, MiB(1));
        elf_make(&maker, &file);
        in.debuginfo_fd = memfd_create("made", MFD_CLOEXEC);
        ck_assert_int_eq(write(in.debuginfo_fd, file.data, file.size), (ssize_t)file.size);
        ck_assert_msg(symbol_table_extract(&in, &t, &err) == ST_OK, "%s", err.text);
        extract_inputs_close(&in);
        return t;
}

static const char *name_at(const struct symbol_table *t, uint64_t address)
{
        const struct symbol_range *r = symbol_table_find(t, address);

        if (!r)
                return "";
        return t->strings + t->functions[t->frames[t->chains[r->chain].first_frame].function].linkage_name;
}

#define SYMBOL(n, b, t, v, s)                                                                                          \
        {                                                                                                              \
                .st_name = n, .st_info = ELF64_ST_INFO(b, t), .st_shndx = 1, .st_value = v, .st_size = s               \
        }

START_TEST(best_name_of_several_symbols_wins)
{
        static const char names[] =
                "\0__libc_f\0f\0weak\0local\0label\0vers@@V_1\0f(@TypeOf(x))\0lazy@typeInfo(T).?\0at@";
        const Elf64_Sym symbols[] = {
                { 0 },
                SYMBOL(1, STB_GLOBAL, STT_FUNC, 0x1010, 0x10),
                SYMBOL(10, STB_GLOBAL, STT_FUNC, 0x1010, 0x10),
                SYMBOL(12, STB_WEAK, STT_FUNC, 0x1010, 0x10),
                SYMBOL(23, STB_GLOBAL, STT_NOTYPE, 0x1010, 0),
                SYMBOL(17, STB_LOCAL, STT_FUNC, 0x1030, 0x10),
                SYMBOL(12, STB_WEAK, STT_FUNC, 0x1030, 0x10),
                SYMBOL(29, STB_GLOBAL, STT_FUNC, 0x1050, 0x10),
                SYMBOL(39, STB_GLOBAL, STT_FUNC, 0x1060, 0x10), /* of Zig */
                SYMBOL(53, STB_GLOBAL, STT_FUNC, 0x1070, 0x10),
                SYMBOL(72, STB_GLOBAL, STT_FUNC, 0x1080, 0x10),
        };
        struct symbol_table t = extract_symbols(symbols, 11, names, sizeof names);

        ck_assert_str_eq(name_at(&t, 0x101f), "f");
        ck_assert_str_eq(name_at(&t, 0x1020), "");
        ck_assert_str_eq(name_at(&t, 0x1030), "weak");
        ck_assert_str_eq(name_at(&t, 0x1050), "vers");
        ck_assert_str_eq(name_at(&t, 0x1060), "f(@TypeOf(x))");
        ck_assert_str_eq(name_at(&t, 0x1070), "lazy@typeInfo(T).?");
        ck_assert_str_eq(name_at(&t, 0x1080), "at@");
        ck_assert_int_eq(t.quality, QUALITY_SYMTAB);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(unsized_symbol_ends_at_next_symbol)
{
        static const char names[] = "\0asm\0sized\0inside\0.Lx\0$x";
        const Elf64_Sym symbols[] = {
                { 0 },
                SYMBOL(1, STB_GLOBAL, STT_NOTYPE, 0x1000, 0),
                SYMBOL(5, STB_GLOBAL, STT_FUNC, 0x1040, 0x20),
                SYMBOL(11, STB_LOCAL, STT_NOTYPE, 0x1050, 0),
                SYMBOL(18, STB_LOCAL, STT_NOTYPE, 0x1020, 0),
                SYMBOL(22, STB_LOCAL, STT_NOTYPE, 0x1030, 0),
        };
        struct symbol_table t = extract_symbols(symbols, 6, names, sizeof names);

        ck_assert_str_eq(name_at(&t, 0x1000), "asm");
        ck_assert_str_eq(name_at(&t, 0x103f), "asm");
        ck_assert_str_eq(name_at(&t, 0x1040), "sized");
        ck_assert_str_eq(name_at(&t, 0x105f), "sized");
        ck_assert_str_eq(name_at(&t, 0x1060), "inside");
        ck_assert_str_eq(name_at(&t, 0x10ff), "inside");
        ck_assert_str_eq(name_at(&t, 0x1100), "");
        symbol_table_deinit(&t);
}
END_TEST

/* As GNU as for RISC-V writes it: f is 0x20 bytes long in DWARF and, after relaxation, 0x18. No row covers it. */
START_TEST(function_that_is_too_long_does_not_hide_the_next_symbol)
{
        static const char names[] = "\0f\0next";
        const Elf64_Sym symbols[] = {
                { 0 },
                SYMBOL(1, STB_GLOBAL, STT_FUNC, MADE_CODE, 0x18),
                SYMBOL(3, STB_GLOBAL, STT_FUNC, MADE_CODE + 0x18, 0x20),
        };
        const struct elf_maker_section others[] = {
                { .name = ".symtab",
                  .type = SHT_SYMTAB,
                  .content = symbols,
                  .size = sizeof symbols,
                  .link = 3,
                  .entry_size = sizeof *symbols },
                { .name = ".strtab", .type = SHT_STRTAB, .content = names, .size = sizeof names },
        };
        struct dwarf_maker m;
        struct symbol_table t;
        struct error err;

        made_dwarf_begin(&m);
        made_unit(&m, "f", MADE_CODE, 0x20);
        put_uint(&m, DWARF_INFO, 0, 1);
        end_unit(&m);
        ck_assert_msg(made_extract(made_file(others, 2, &m), &t, &err) == ST_OK, "%s", err.text);
        ck_assert_str_eq(made_frames(&t, MADE_CODE + 0x17), "f");
        ck_assert_str_eq(made_frames(&t, MADE_CODE + 0x18), "next");
        ck_assert_str_eq(made_frames(&t, MADE_CODE + 0x20), "next");
        symbol_table_deinit(&t);
        dwarf_maker_deinit(&m);
}
END_TEST

START_TEST(sizes_past_the_code_are_clipped)
{
        static const char names[] = "\0f";
        const Elf64_Sym symbols[] = { { 0 }, SYMBOL(1, STB_GLOBAL, STT_FUNC, 0x1080, UINT64_MAX) };
        struct symbol_table t = extract_symbols(symbols, 2, names, sizeof names);

        ck_assert_uint_eq(t.range_count, 1);
        ck_assert_uint_eq(t.ranges[0].end, 0x1100);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(non_elf_file_is_bad_data)
{
        struct extract_inputs in = {
                .debuginfo_fd = memfd_create("text", MFD_CLOEXEC), .executable_fd = -1, .altlink_fd = -1, .name = "text"
        };
        struct symbol_table t;
        struct error err;

        ck_assert_int_eq(
                write(in.debuginfo_fd, "hello, world, this is no ELF file at all, and long enough to be one", 66), 66);
        ck_assert_int_eq(symbol_table_extract(&in, &t, &err), ST_BAD_DATA);
        ck_assert_msg(strstr(err.text, "text"), "%s", err.text);
        extract_inputs_close(&in);
}
END_TEST

TEST_SUITE("extract", deepest_interval_wins_and_outer_one_continues, inner_interval_may_exceed_outer_one,
           intervals_may_be_unsorted_or_empty, later_interval_wins_on_equal_level, first_of_overlapping_units_wins,
           unit_with_row_overrides_earlier_one_without, unit_with_functions_overrides_earlier_one_with_lines,
           equal_chains_are_shared_and_adjacent_ranges_joined, range_with_function_overrides_range_with_line,
           inlined_call_has_both_frames_with_lines, best_name_of_several_symbols_wins,
           unsized_symbol_ends_at_next_symbol, sizes_past_the_code_are_clipped,
           function_that_is_too_long_does_not_hide_the_next_symbol, non_elf_file_is_bad_data)
