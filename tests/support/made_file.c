/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/made_file.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/limits.h"
#include "symbolizer/extraction/debug_file_search.h"

enum { UNIT = 1, FUNCTION };

static const char *const dwarf_names[DWARF_SECTION_COUNT] = {
        [DWARF_INFO] = ".debug_info",         [DWARF_ABBREV] = ".debug_abbrev",
        [DWARF_LINE] = ".debug_line",         [DWARF_LINE_STR] = ".debug_line_str",
        [DWARF_STR] = ".debug_str",           [DWARF_STR_OFFSETS] = ".debug_str_offsets",
        [DWARF_ADDR] = ".debug_addr",         [DWARF_RANGES] = ".debug_ranges",
        [DWARF_RNGLISTS] = ".debug_rnglists", [DWARF_TYPES] = ".debug_types",
        [DWARF_ARANGES] = ".debug_aranges",
};

int made_memfd(const void *data, size_t size)
{
        int fd = memfd_create("made", MFD_CLOEXEC);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, data, size), (ssize_t)size);
        return fd;
}

int made_file(const struct elf_maker_section *others, size_t count, const struct dwarf_maker *dwarf)
{
        struct elf_maker_section sections[64] = {
                [0] = { .name = "" },
                [1] = { .name = ".text",
                        .type = SHT_NOBITS,
                        .flags = SHF_ALLOC | SHF_EXECINSTR,
                        .address = MADE_CODE,
                        .size = MADE_CODE_SIZE },
        };
        struct elf_maker maker = {
                .is_64 = true, .type = ET_EXEC, .machine = EM_X86_64, .sections = sections, .section_count = 2
        };
        _cleanup_buf_ struct buf file;
        int fd;

        for (size_t i = 0; i < count; i++)
                sections[maker.section_count++] = others[i];
        for (int i = 0; dwarf && i < DWARF_SECTION_COUNT; i++)
                if (dwarf->sections[i].size)
                        sections[maker.section_count++] =
                                (struct elf_maker_section){ .name = dwarf_names[i],
                                                            .type = SHT_PROGBITS,
                                                            .content = dwarf->sections[i].data,
                                                            .size = dwarf->sections[i].size };
        buf_init(&file, MiB(256));
        elf_make(&maker, &file);
        fd = made_memfd(file.data, file.size);
        return fd;
}

void made_dwarf_begin(struct dwarf_maker *m)
{
        dwarf_maker_init(m, 4);
        put_abbrev(m, UNIT, DW_TAG_compile_unit, true, DW_AT_language, DW_FORM_data1, 0, 0);
        put_abbrev(m, FUNCTION, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr,
                   DW_AT_high_pc, DW_FORM_data4, 0, 0);
}

void made_unit(struct dwarf_maker *m, const char *function, uint64_t start, uint64_t size)
{
        put_unit(m, DW_UT_compile, 0);
        put_uleb(m, DWARF_INFO, UNIT);
        put_uint(m, DWARF_INFO, DW_LANG_C_plus_plus, 1);
        put_uleb(m, DWARF_INFO, FUNCTION);
        put_text(m, DWARF_INFO, function);
        put_address(m, DWARF_INFO, start);
        put_uint(m, DWARF_INFO, size, 4);
}

enum status made_extract(int fd, struct symbol_table *ret, struct error *err)
{
        struct extract_inputs in = { .debuginfo_fd = fd, .executable_fd = -1, .altlink_fd = -1, .name = "made" };
        enum status st = symbol_table_extract(&in, ret, err);

        extract_inputs_close(&in);
        return st;
}

const char *made_frames(const struct symbol_table *t, uint64_t address)
{
        static char text[4096];
        const struct symbol_range *r = symbol_table_find(t, address);
        size_t n = 0;

        text[0] = 0;
        for (uint32_t i = 0; r && i < t->chains[r->chain].frame_count && n < sizeof text; i++) {
                const struct symbol_table_frame *f = &t->frames[t->chains[r->chain].first_frame + i];
                const struct symbol_function *fn =
                        f->function == SYMBOL_NO_FUNCTION ? NULL : &t->functions[f->function];

                n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? " < " : "",
                                      fn ? t->strings + (fn->linkage_name ? fn->linkage_name : fn->name) : "?");
                if (f->file && n < sizeof text)
                        n += (size_t)snprintf(text + n, sizeof text - n, " %s:%u", t->strings + f->file, f->line);
        }
        return text;
}
