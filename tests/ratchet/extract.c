/* SPDX-License-Identifier: Apache-2.0 */
/* Extraction: from the DWARF of C++ units with mangled names, inlined calls and lines to a symbol table: whole, and for
 * a few addresses. */
#include <elf.h>
#include <sched.h>
#include <sys/mman.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "symbolizer/extraction/debug_file_search.h"
#include "symbolizer/extraction/extract.h"
#include "tests/ratchet/ratchet.h"
#include "tests/support/dwarf_maker.h"
#include "tests/support/elf_maker.h"

#define CODE 0x401000ul
#define UNITS 8
#define UNIT_FUNCTIONS 200
#define FUNCTION_BYTES 64
#define INLINED_CALLS 3 /* in each function */
#define ROWS 16         /* of each function */

enum { CU = 1, FUNCTION, ABSTRACT, INLINED };

static int made_fd = -1;

static uint64_t find_unit_start(unsigned unit)
{
        return CODE + (uint64_t)unit * UNIT_FUNCTIONS * FUNCTION_BYTES;
}

static void put_abbrevs(struct dwarf_maker *m)
{
        put_abbrev(m, CU, DW_TAG_compile_unit, true, DW_AT_language, DW_FORM_data1, DW_AT_name, DW_FORM_string,
                   DW_AT_stmt_list, DW_FORM_sec_offset, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0, 0);
        put_abbrev(m, FUNCTION, DW_TAG_subprogram, true, DW_AT_name, DW_FORM_string, DW_AT_linkage_name, DW_FORM_string,
                   DW_AT_decl_file, DW_FORM_data1, DW_AT_decl_line, DW_FORM_udata, DW_AT_low_pc, DW_FORM_addr,
                   DW_AT_high_pc, DW_FORM_data4, 0, 0);
        put_abbrev(m, ABSTRACT, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, DW_AT_linkage_name,
                   DW_FORM_string, DW_AT_decl_file, DW_FORM_data1, DW_AT_decl_line, DW_FORM_udata, 0, 0);
        put_abbrev(m, INLINED, DW_TAG_inlined_subroutine, false, DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_low_pc,
                   DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, DW_AT_call_file, DW_FORM_data1, DW_AT_call_line,
                   DW_FORM_udata, 0, 0);
        put_uint(m, DWARF_ABBREV, 0, 1);
}

static void put_names(struct dwarf_maker *m, unsigned number)
{
        char linkage[160];

        snprintf(linkage, sizeof linkage,
                 "_ZNSt6vectorIN3app4ItemILi%uENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEEESaIS7_EE9push_"
                 "backEOS7_",
                 number);
        put_text(m, DWARF_INFO, "push_back");
        put_text(m, DWARF_INFO, linkage);
        put_uint(m, DWARF_INFO, 1, 1);
        put_uleb(m, DWARF_INFO, 100 + number);
}

static void put_functions(struct dwarf_maker *m, unsigned unit)
{
        uint64_t unit_offset = m->unit, origins[INLINED_CALLS], start = find_unit_start(unit);

        for (unsigned i = 0; i < INLINED_CALLS; i++) {
                origins[i] = put_at(m, DWARF_INFO) - unit_offset;
                put_uleb(m, DWARF_INFO, ABSTRACT);
                put_names(m, i); /* the same in each unit */
        }
        for (unsigned i = 0; i < UNIT_FUNCTIONS; i++, start += FUNCTION_BYTES) {
                put_uleb(m, DWARF_INFO, FUNCTION);
                put_names(m, INLINED_CALLS + unit * UNIT_FUNCTIONS + i);
                put_address(m, DWARF_INFO, start);
                put_uint(m, DWARF_INFO, FUNCTION_BYTES, 4);
                for (unsigned k = 0; k < INLINED_CALLS; k++) {
                        put_uleb(m, DWARF_INFO, INLINED);
                        put_uint(m, DWARF_INFO, origins[k], 4);
                        put_address(m, DWARF_INFO, start + 8 + 16 * k);
                        put_uint(m, DWARF_INFO, 8, 4);
                        put_uint(m, DWARF_INFO, 1, 1);
                        put_uleb(m, DWARF_INFO, 200 + k);
                }
                put_uint(m, DWARF_INFO, 0, 1);
        }
}

static void put_line_table(struct dwarf_maker *m, uint64_t start)
{
        static const uint8_t operands[] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };
        size_t at = put_length(m, DWARF_LINE), header;

        put_uint(m, DWARF_LINE, 4, 2);
        header = put_length(m, DWARF_LINE);
        buf_append(&m->sections[DWARF_LINE],
                   (const uint8_t[]){ 1 /* instruction */, 1 /* operations */, 1 /* statements */, (uint8_t)-5, 14,
                                      sizeof operands + 1 },
                   6);
        buf_append(&m->sections[DWARF_LINE], operands, sizeof operands);
        put_uint(m, DWARF_LINE, 0, 1);
        put_text(m, DWARF_LINE, "unit.cc");
        put_uint(m, DWARF_LINE, 0, 4); /* directory, time, size; end of the files */
        end_length(m, DWARF_LINE, header);
        buf_append(&m->sections[DWARF_LINE], (const uint8_t[]){ 0, 9, DW_LNE_set_address }, 3);
        put_address(m, DWARF_LINE, start);
        put_uint(m, DWARF_LINE, DW_LNS_copy, 1);
        for (unsigned i = 0; i < UNIT_FUNCTIONS * ROWS; i++) /* four bytes on, at most eight lines */
                put_uint(m, DWARF_LINE, 13 + 14 * FUNCTION_BYTES / ROWS + 5 + (i * 7) % 5, 1);
        buf_append(&m->sections[DWARF_LINE], (const uint8_t[]){ 0, 1, DW_LNE_end_sequence }, 3);
        end_length(m, DWARF_LINE, at);
}

static struct elf_maker_section make_section(const struct dwarf_maker *m, const char *name, enum dwarf_section_id id)
{
        return (struct elf_maker_section){
                .name = name, .type = SHT_PROGBITS, .content = m->sections[id].data, .size = m->sections[id].size
        };
}

static void write_file(const struct dwarf_maker *m)
{
        const struct elf_maker_section sections[] = {
                { 0 },
                { .name = ".text",
                  .type = SHT_NOBITS,
                  .flags = SHF_ALLOC | SHF_EXECINSTR,
                  .address = CODE,
                  .size = find_unit_start(UNITS) - CODE },
                make_section(m, ".debug_info", DWARF_INFO),
                make_section(m, ".debug_abbrev", DWARF_ABBREV),
                make_section(m, ".debug_line", DWARF_LINE),
        };
        const struct elf_maker maker = { .is_64 = true,
                                         .type = ET_EXEC,
                                         .machine = EM_X86_64,
                                         .sections = sections,
                                         .section_count = sizeof sections / sizeof *sections };
        _cleanup_buf_ struct buf file;
        struct error err;

        buf_init(&file, MiB(4));
        elf_make(&maker, &file);
        made_fd = memfd_create("made", MFD_CLOEXEC);
        require_ok(file_write_all(made_fd, file.data, file.size, "made", &err), &err);
}

static void prepare_extract(void)
{
        struct dwarf_maker m;
        cpu_set_t one;

        CPU_ZERO(&one);
        CPU_SET((unsigned)sched_getcpu(), &one); /* extraction uses a thread for each processor */
        require_true(sched_setaffinity(0, sizeof one, &one) == 0, "cannot choose a processor");
        dwarf_maker_init(&m, 4);
        put_abbrevs(&m);
        for (unsigned i = 0; i < UNITS; i++) {
                uint64_t lines = put_at(&m, DWARF_LINE);

                put_line_table(&m, find_unit_start(i));
                put_unit(&m, DW_UT_compile, 0);
                put_uleb(&m, DWARF_INFO, CU);
                put_uint(&m, DWARF_INFO, DW_LANG_C_plus_plus_14, 1);
                put_text(&m, DWARF_INFO, "unit.cc");
                put_offset(&m, DWARF_INFO, lines);
                put_address(&m, DWARF_INFO, find_unit_start(i));
                put_uint(&m, DWARF_INFO, UNIT_FUNCTIONS * FUNCTION_BYTES, 4);
                put_functions(&m, i);
                put_uint(&m, DWARF_INFO, 0, 1);
                end_unit(&m);
        }
        write_file(&m);
        dwarf_maker_deinit(&m);
}

static void run_extract(void)
{
        struct extract_inputs in = { .debuginfo_fd = made_fd, .executable_fd = -1, .altlink_fd = -1, .name = "made" };
        struct symbol_table table;
        struct error err;

        require_ok(symbol_table_extract(&in, &table, &err), &err);
        require_true(table.range_count > UNITS * UNIT_FUNCTIONS * ROWS / 2 &&
                             table.function_count == INLINED_CALLS + UNITS * UNIT_FUNCTIONS,
                     "the table lacks ranges or functions");
        symbol_table_deinit(&table);
        extract_inputs_close(&in);
}

/* The first functions of two units: these units and the line tables of those before are read. */
static void run_extract_few(void)
{
        const uint64_t addresses[] = { find_unit_start(2) + 8, find_unit_start(5) + 8 };
        const struct address_filter filter = { .addresses = addresses, .count = 2, .max_percent = 100 };
        struct extract_inputs in = { .debuginfo_fd = made_fd,
                                     .executable_fd = -1,
                                     .altlink_fd = -1,
                                     .name = "made",
                                     .with_positions = true,
                                     .filter = &filter };
        struct symbol_table table;
        struct error err;

        require_ok(symbol_table_extract(&in, &table, &err), &err);
        require_true(!table.is_complete && table.range_count >= 2 && table.function_count >= 2,
                     "the table lacks ranges or functions");
        symbol_table_deinit(&table);
        extract_inputs_close(&in);
}

const struct ratchet_path extract_paths[] = {
        { "extract", prepare_extract, run_extract },
        { "extract-few", prepare_extract, run_extract_few },
        { NULL },
};
