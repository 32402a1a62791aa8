/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables of CFI that is written byte by byte, valid and malformed. */
#include <dwarf.h>
#include <elf.h>
#include <string.h>

#include "common/limits.h"
#include "tests/support/elf_maker.h"
#include "tests/support/suite.h"
#include "unwind-tables/unwind_table.h"
#include "unwind-tables/unwind_step.h"

#define CODE UINT64_C(0x10000)
#define CODE_SIZE 0x40000
#define FRAMES UINT64_C(0x80000) /* address of .eh_frame */

static struct buf frames, file;
static struct unwind_rules rules;
static struct unwind_table table;

static void set_up(void)
{
        buf_init(&frames, MiB(1));
        buf_init(&file, MiB(1));
        ck_assert_int_eq(unwind_rules_init(&rules, NULL), ST_OK);
        table = (struct unwind_table){ 0 };
}

static void tear_down(void)
{
        buf_deinit(&frames);
        buf_deinit(&file);
        unwind_rules_deinit(&rules);
        unwind_table_deinit(&table);
}

/* ---- writing ---- */

static void add_cie(const char *augmentation, const void *program, size_t size)
{
        size_t begin = frames.size, data = strlen(augmentation) ? 1 : 0;
        uint32_t length;

        buf_append_u32(&frames, 0); /* the length, set below */
        buf_append_u32(&frames, 0);
        buf_append_u8(&frames, 1);
        buf_append(&frames, augmentation, strlen(augmentation) + 1);
        buf_append_uleb128(&frames, 1);
        buf_append_sleb128(&frames, -8);
        buf_append_u8(&frames, 16);
        if (data) {
                buf_append_uleb128(&frames, 1);
                buf_append_u8(&frames, 0x1b); /* pcrel, sdata4 */
        }
        buf_append(&frames, program, size);
        while (frames.size % 4)
                buf_append_u8(&frames, DW_CFA_nop);
        length = (uint32_t)(frames.size - begin - 4);
        memcpy(frames.data + begin, &length, 4);
}

/* An FDE of the CIE at 0, whose augmentation begins with zR. */
static void add_fde(uint64_t start, uint32_t size, const void *program, size_t program_size)
{
        size_t begin = frames.size;
        uint32_t length;

        buf_append_u32(&frames, 0);
        buf_append_u32(&frames, (uint32_t)begin + 4);
        buf_append_u32(&frames, (uint32_t)(start - (FRAMES + begin + 8)));
        buf_append_u32(&frames, size);
        buf_append_uleb128(&frames, 0);
        buf_append(&frames, program, program_size);
        while (frames.size % 4)
                buf_append_u8(&frames, DW_CFA_nop);
        length = (uint32_t)(frames.size - begin - 4);
        memcpy(frames.data + begin, &length, 4);
}

#define CIE(augmentation, ...)                                                                                         \
        add_cie(augmentation, (const uint8_t[]){ __VA_ARGS__ }, sizeof(const uint8_t[]){ __VA_ARGS__ })
#define FDE(start, size, ...)                                                                                          \
        add_fde(start, size, (const uint8_t[]){ __VA_ARGS__ }, sizeof(const uint8_t[]){ __VA_ARGS__ })
/* The start of every function: the CFA is sp + 8, the return address at CFA - 8. */
#define USUAL_CIE() CIE("zR", DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1)

static enum status build_as(uint16_t machine, struct error *err)
{
        const struct elf_maker_section sections[] = {
                { 0 },
                { .name = ".eh_frame",
                  .type = SHT_PROGBITS,
                  .flags = SHF_ALLOC,
                  .address = FRAMES,
                  .content = frames.data,
                  .size = frames.size },
        };
        const struct elf_maker_segment segments[] = {
                { .type = PT_LOAD, .flags = PF_R | PF_X, .address = CODE, .memory_size = CODE_SIZE },
        };
        const struct elf_maker maker = { .is_64 = true,
                                         .type = ET_DYN,
                                         .machine = machine,
                                         .sections = sections,
                                         .section_count = 2,
                                         .segments = segments,
                                         .segment_count = 1 };
        _cleanup_elf_image_ struct elf_image img = { 0 };

        elf_make(&maker, &file);
        ck_assert_int_eq(elf_image_from_memory(file.data, file.size, "made", &img, err), ST_OK);
        return unwind_table_build(&img, &rules, &table, err);
}

static void build(void)
{
        struct error err = { 0 };
        enum status st = build_as(EM_X86_64, &err);

        ck_assert_msg(st == ST_OK, "%s", err.text);
}

static const struct unwind_rule *rule_of(uint64_t pc)
{
        const struct unwind_row *row = NULL;

        return unwind_table_find(&table, pc, &row) == ST_OK ? &rules.items[row->rule] : NULL;
}

static void unknown_at(uint64_t pc, enum unwind_unknown_reason reason)
{
        const struct unwind_rule *r = rule_of(pc);

        ck_assert_ptr_nonnull(r);
        ck_assert_uint_eq(r->cfa, UNWIND_CFA_UNKNOWN);
        ck_assert_uint_eq(r->reason, reason);
        ck_assert_uint_gt(table.stats.unknown_rows[reason], 0);
}

static void cfa_at(uint64_t pc, uint8_t base, int32_t offset)
{
        const struct unwind_rule *r = rule_of(pc);

        ck_assert_ptr_nonnull(r);
        ck_assert_uint_eq(r->cfa, UNWIND_CFA_REGISTER);
        ck_assert_uint_eq(r->base, base);
        ck_assert_int_eq(r->cfa_offset, offset);
}

/* ---- tests ---- */

START_TEST(rows_follow_the_prologue)
{
        USUAL_CIE();
        FDE(CODE + 0x100, 0x50, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2,
            DW_CFA_advance_loc | 3, DW_CFA_def_cfa_register, 6, DW_CFA_advance_loc1, 0x40, DW_CFA_def_cfa, 7, 8);
        build();
        cfa_at(CODE + 0x100, UNWIND_BASE_SP, 8);
        cfa_at(CODE + 0x101, UNWIND_BASE_SP, 16);
        cfa_at(CODE + 0x103, UNWIND_BASE_SP, 16);
        cfa_at(CODE + 0x104, UNWIND_BASE_FP, 16);
        ck_assert_uint_eq(rule_of(CODE + 0x104)->fp, UNWIND_AT_CFA);
        ck_assert_int_eq(rule_of(CODE + 0x104)->fp_offset, -16);
        cfa_at(CODE + 0x143, UNWIND_BASE_FP, 16);
        cfa_at(CODE + 0x144, UNWIND_BASE_SP, 8);
        cfa_at(CODE + 0x14f, UNWIND_BASE_SP, 8);
}
END_TEST

START_TEST(find_between_fdes_is_not_found)
{
        const struct unwind_row *row = NULL;

        USUAL_CIE();
        FDE(CODE + 0x100, 0x10, DW_CFA_nop);
        FDE(CODE + 0x120, 0x10, DW_CFA_nop);
        build();
        ck_assert_int_eq(unwind_table_find(&table, CODE + 0xff, &row), ST_NOT_FOUND);
        ck_assert_int_eq(unwind_table_find(&table, CODE + 0x110, &row), ST_NOT_FOUND);
        ck_assert_int_eq(unwind_table_find(&table, CODE + 0x11f, &row), ST_NOT_FOUND);
        ck_assert_int_eq(unwind_table_find(&table, CODE + 0x130, &row), ST_NOT_FOUND);
        ck_assert_int_eq(unwind_table_find(&table, UINT64_MAX, &row), ST_NOT_FOUND);
        ck_assert_ptr_null(row); /* untouched on failure */
        ck_assert_ptr_nonnull(rule_of(CODE + 0x10f));
        ck_assert_uint_eq(table.stats.gap_rows, 2);
}
END_TEST

START_TEST(function_over_several_pages_has_rows_in_each)
{
        USUAL_CIE();
        FDE(CODE + 0x10, 0x30000 - 0x10, DW_CFA_nop);
        build();
        ck_assert_uint_eq(table.page_count, 3);
        cfa_at(CODE + 0x10000, UNWIND_BASE_SP, 8);
        cfa_at(CODE + 0x2ffff, UNWIND_BASE_SP, 8);
        ck_assert_ptr_null(rule_of(CODE + 0x30000));
        ck_assert_uint_eq(table.rows[table.pages[1].first_row].offset, 0);
        ck_assert_uint_eq(table.row_count, 3); /* the gap begins with a page: no row */
}
END_TEST

START_TEST(discarded_and_foreign_functions_are_skipped)
{
        USUAL_CIE();
        FDE(0, 0x10, DW_CFA_nop);
        FDE(CODE + CODE_SIZE - 8, 0x10, DW_CFA_nop);
        FDE(CODE, 0x10, DW_CFA_nop);
        build();
        ck_assert_uint_eq(table.stats.fdes, 3);
        ck_assert_uint_eq(table.stats.fdes_discarded, 1);
        ck_assert_uint_eq(table.stats.fdes_outside, 1);
        ck_assert_uint_eq(table.stats.functions, 1);
}
END_TEST

START_TEST(restore_state_restores_the_cfa_too)
{
        USUAL_CIE();
        FDE(CODE, 0x10, DW_CFA_def_cfa_offset, 32, DW_CFA_remember_state, DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset,
            8, DW_CFA_advance_loc | 1, DW_CFA_restore_state);
        build();
        cfa_at(CODE + 4, UNWIND_BASE_SP, 8);
        cfa_at(CODE + 5, UNWIND_BASE_SP, 32);
}
END_TEST

START_TEST(nesting_over_the_limit_is_malformed_from_there)
{
        uint8_t program[LIMIT_UNWIND_REMEMBERED + 2];

        memset(program, DW_CFA_remember_state, sizeof program);
        program[0] = DW_CFA_advance_loc | 2;
        USUAL_CIE();
        add_fde(CODE, 0x10, program, sizeof program);
        build();
        cfa_at(CODE + 1, UNWIND_BASE_SP, 8);
        unknown_at(CODE + 2, UNWIND_REASON_MALFORMED);
        unknown_at(CODE + 15, UNWIND_REASON_MALFORMED);
        ck_assert_ptr_null(rule_of(CODE + 16));
}
END_TEST

START_TEST(undefined_return_address_ends_the_stack)
{
        struct unwind_regs regs = { .pc = CODE, .sp = 0x1000, .code_mask = UINT64_MAX };

        USUAL_CIE();
        FDE(CODE, 0x10, DW_CFA_undefined, 16);
        build();
        ck_assert_uint_eq(rule_of(CODE)->cfa, UNWIND_CFA_STOP);
        ck_assert_int_eq(unwind_step(&regs, rule_of(CODE), NULL, NULL), UNWIND_DONE);
        ck_assert_uint_eq(regs.sp, 0x1000);
}
END_TEST

START_TEST(plt_expression_is_supported)
{
        USUAL_CIE();
        FDE(CODE, 0x40, DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and,
            DW_OP_lit10, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus);
        build();
        ck_assert_uint_eq(rule_of(CODE)->cfa, UNWIND_CFA_PLT);
        ck_assert_int_eq(rule_of(CODE)->cfa_offset, 8);
        ck_assert_int_eq(rule_of(CODE)->cfa_add, 10);
}
END_TEST

START_TEST(realigned_frame_is_supported)
{
        USUAL_CIE();
        FDE(CODE, 0x40, DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref, DW_CFA_expression, 6, 2,
            DW_OP_breg6, 0);
        FDE(CODE + 0x40, 0x40, DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 0x98, 0x01, DW_OP_deref, DW_OP_plus_uconst,
            8);
        build();
        ck_assert_uint_eq(rule_of(CODE)->cfa, UNWIND_CFA_DEREF);
        ck_assert_uint_eq(rule_of(CODE)->base, UNWIND_BASE_FP);
        ck_assert_int_eq(rule_of(CODE)->cfa_offset, -8);
        ck_assert_uint_eq(rule_of(CODE)->fp, UNWIND_AT_FP);
        ck_assert_int_eq(rule_of(CODE + 0x40)->cfa_offset, 152);
        ck_assert_int_eq(rule_of(CODE + 0x40)->cfa_add, 8);
}
END_TEST

START_TEST(unsupported_rules_are_counted_by_reason)
{
        USUAL_CIE();
        FDE(CODE + 0x00, 0x10, DW_CFA_def_cfa_expression, 2, DW_OP_lit0, DW_OP_deref);
        FDE(CODE + 0x10, 0x10, DW_CFA_def_cfa, 17, 8);
        FDE(CODE + 0x20, 0x10, DW_CFA_val_expression, 6, 1, DW_OP_lit0);
        FDE(CODE + 0x30, 0x10, DW_CFA_expression, 16, 1, DW_OP_lit0);
        FDE(CODE + 0x40, 0x10, DW_CFA_register, 7, 2);
        FDE(CODE + 0x50, 0x10, DW_CFA_def_cfa_offset, 0x80, 0x80, 0x80, 0x80, 0x10);
        FDE(CODE + 0x60, 0x10, 0x3f);
        build();
        unknown_at(CODE + 0x00, UNWIND_REASON_CFA_EXPRESSION);
        unknown_at(CODE + 0x10, UNWIND_REASON_CFA_REGISTER);
        unknown_at(CODE + 0x20, UNWIND_REASON_FP);
        unknown_at(CODE + 0x30, UNWIND_REASON_RA);
        unknown_at(CODE + 0x40, UNWIND_REASON_SP);
        unknown_at(CODE + 0x50, UNWIND_REASON_OFFSET);
        unknown_at(CODE + 0x60, UNWIND_REASON_MALFORMED);
        ck_assert_uint_eq(unwind_stats_count_unknown(&table.stats), 7);
}
END_TEST

START_TEST(record_past_the_section_is_bad_data)
{
        struct error err = { 0 };

        USUAL_CIE();
        FDE(CODE, 0x10, DW_CFA_nop);
        frames.data[0] += 64;
        ck_assert_int_eq(build_as(EM_X86_64, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "'made'"));
        ck_assert_uint_eq(table.row_count, 0); /* untouched on failure */
}
END_TEST

START_TEST(cie_with_unknown_augmentation_skips_only_its_functions)
{
        CIE("zX", DW_CFA_nop);
        FDE(CODE, 0x10, DW_CFA_nop);
        build();
        ck_assert_uint_eq(table.stats.fdes_unreadable, 1);
        ck_assert_uint_eq(table.row_count, 0);
}
END_TEST

START_TEST(overlapping_function_ends_where_the_next_begins)
{
        USUAL_CIE();
        FDE(CODE + 0x20, 0x10, DW_CFA_def_cfa_offset, 24);
        FDE(CODE, 0x28, DW_CFA_nop);
        build();
        cfa_at(CODE + 0x1f, UNWIND_BASE_SP, 8);
        cfa_at(CODE + 0x20, UNWIND_BASE_SP, 24);
        cfa_at(CODE + 0x2f, UNWIND_BASE_SP, 24);
}
END_TEST

START_TEST(other_processors_are_not_supported)
{
        struct error err = { 0 };

        USUAL_CIE();
        ck_assert_int_eq(build_as(EM_RISCV, &err), ST_UNSUPPORTED);
}
END_TEST

START_TEST(rules_are_shared_by_tables)
{
        size_t count;

        USUAL_CIE();
        FDE(CODE, 0x10, DW_CFA_nop);
        build();
        count = rules.count;
        unwind_table_deinit(&table);
        buf_clear(&file);
        build();
        ck_assert_uint_eq(rules.count, count);
}
END_TEST

START_TEST(full_rule_table_is_reported)
{
        struct unwind_rule r = { .cfa = UNWIND_CFA_REGISTER };
        uint16_t index;

        for (r.cfa_offset = 100000; rules.count < UNWIND_RULES_MAX; r.cfa_offset++)
                ck_assert_int_eq(unwind_rules_intern(&rules, &r, &index), ST_OK);
        USUAL_CIE();
        FDE(CODE, 0x10, DW_CFA_nop);
        build();
        unknown_at(CODE, UNWIND_REASON_RULES_FULL);
}
END_TEST

static int read_word(void *ctx, __u64 addr, __u64 *ret)
{
        (void)ctx;
        *ret = addr + 0x100000;
        return addr < 0x1000 ? -1 : 0;
}

START_TEST(step_needs_progress)
{
        struct unwind_regs regs = {
                .pc = CODE, .sp = 0x8000, .fp = 0x7000, .code_mask = UINT64_MAX, .pc_is_return = 1
        };

        ck_assert_int_eq(unwind_step(&regs, &rules.items[UNWIND_RULE_FRAME_POINTER], read_word, NULL),
                         UNWIND_NO_PROGRESS);
        regs = (struct unwind_regs){
                .pc = CODE, .sp = 0x8000, .fp = 0x9000, .code_mask = UINT64_MAX, .pc_is_return = 1
        };
        ck_assert_int_eq(unwind_step(&regs, &rules.items[UNWIND_RULE_FRAME_POINTER], read_word, NULL), UNWIND_STEPPED);
        ck_assert_uint_eq(regs.sp, 0x9010);
        ck_assert_uint_eq(regs.pc, 0x109008);
        ck_assert_uint_eq(regs.fp, 0x109000);
        regs.fp = 0x20;
        ck_assert_int_eq(unwind_step(&regs, &rules.items[UNWIND_RULE_FRAME_POINTER], read_word, NULL),
                         UNWIND_NO_MEMORY_AT);
        ck_assert_uint_eq(regs.pc, 0x109008); /* untouched on failure */
}
END_TEST

START_TEST(scratch_registers_are_unknown_above_frames_that_pushed)
{
        const struct unwind_rule r = { .cfa = UNWIND_CFA_REGISTER,
                                       .base = UNWIND_BASE_SCRATCH + 10,
                                       .cfa_offset = 8,
                                       .ra = UNWIND_AT_CFA,
                                       .ra_offset = -8 };
        struct unwind_regs regs = { .pc = CODE, .sp = 0x8000, .code_mask = UINT64_MAX, .scratch_known = 1 };

        regs.scratch[10] = 0x9000;
        ck_assert_int_eq(unwind_step(&regs, &r, read_word, NULL), UNWIND_STEPPED);
        ck_assert_uint_eq(regs.sp, 0x9008);
        ck_assert_int_eq(unwind_step(&regs, &r, read_word, NULL), UNWIND_NO_REGISTER);
}
END_TEST

START_TEST(scratch_registers_are_known_above_a_leaf_that_pushed_nothing)
{
        const struct unwind_rule helper = { .cfa = UNWIND_CFA_REGISTER,
                                            .base = UNWIND_BASE_SP,
                                            .cfa_offset = 8,
                                            .ra = UNWIND_AT_CFA,
                                            .ra_offset = -8 };
        const struct unwind_rule caller = { .cfa = UNWIND_CFA_REGISTER,
                                            .base = UNWIND_BASE_SCRATCH,
                                            .cfa_offset = 8,
                                            .ra = UNWIND_AT_CFA,
                                            .ra_offset = -8 };
        struct unwind_rule pushed = helper;
        struct unwind_regs regs = { .pc = CODE, .sp = 0x8000, .code_mask = UINT64_MAX, .scratch_known = 1 }, start;

        regs.scratch[0] = 0x9000;
        start = regs;
        ck_assert_int_eq(unwind_step(&regs, &helper, read_word, NULL), UNWIND_STEPPED);
        ck_assert_int_eq(unwind_step(&regs, &caller, read_word, NULL), UNWIND_STEPPED);
        ck_assert_uint_eq(regs.sp, 0x9008);
        ck_assert_int_eq(unwind_step(&regs, &caller, read_word, NULL), UNWIND_NO_REGISTER);
        pushed.cfa_offset = 16;
        ck_assert_int_eq(unwind_step(&start, &pushed, read_word, NULL), UNWIND_STEPPED);
        ck_assert_int_eq(unwind_step(&start, &caller, read_word, NULL), UNWIND_NO_REGISTER);
}
END_TEST

START_TEST(aarch64_leaf_returns_through_its_link_register)
{
        struct unwind_regs regs = {
                .pc = CODE, .sp = 0x8000, .lr = UINT64_C(0xffba000000020004), .code_mask = (UINT64_C(1) << 48) - 1
        };
        struct error err = { 0 };

        CIE("zR", DW_CFA_def_cfa, 31, 0);
        frames.data[14] = 30; /* the return address column */
        ck_assert_uint_eq(frames.data[8], 1);
        FDE(CODE, 0x10, DW_CFA_nop);
        ck_assert_int_eq(build_as(EM_AARCH64, &err), ST_OK);
        ck_assert_ptr_nonnull(rule_of(CODE));
        ck_assert_uint_eq(rule_of(CODE)->ra, UNWIND_SAME);
        ck_assert_int_eq(unwind_step(&regs, rule_of(CODE), read_word, NULL), UNWIND_STEPPED);
        ck_assert_uint_eq(regs.pc, 0x20004); /* without its signature */
        ck_assert_int_eq(unwind_step(&regs, rule_of(CODE), read_word, NULL), UNWIND_NO_REGISTER);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("unwind", rows_follow_the_prologue, find_between_fdes_is_not_found,
                        function_over_several_pages_has_rows_in_each, discarded_and_foreign_functions_are_skipped,
                        restore_state_restores_the_cfa_too, nesting_over_the_limit_is_malformed_from_there,
                        undefined_return_address_ends_the_stack, plt_expression_is_supported,
                        realigned_frame_is_supported, unsupported_rules_are_counted_by_reason,
                        record_past_the_section_is_bad_data, cie_with_unknown_augmentation_skips_only_its_functions,
                        overlapping_function_ends_where_the_next_begins, other_processors_are_not_supported,
                        rules_are_shared_by_tables, full_rule_table_is_reported, step_needs_progress,
                        scratch_registers_are_unknown_above_frames_that_pushed,
                        scratch_registers_are_known_above_a_leaf_that_pushed_nothing,
                        aarch64_leaf_returns_through_its_link_register)
